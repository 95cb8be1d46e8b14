"""Programs on one to three ranks: programs/ has the checks. Three ranks are more than the cores of some machines."""

import pytest
from ranks import checks, needs_mpi

pytestmark = needs_mpi


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("name", ["collectives", "overlap", "solvers", "trainers"])
def test_checks(name, n):
    checks(name, n)


@pytest.mark.parametrize("n", [2, 3])
def test_calls_that_differ(n):
    checks("mismatches", n)


def test_an_mpi_without_threads():
    """Where MPI allows calls of one thread only, the scope sums when backward has ended."""
    checks("serialized", 2, MPI4PY_RC_THREAD_LEVEL="funneled")
