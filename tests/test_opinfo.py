"""Every row against its PyTorch counterpart, in float64, on PyTorch's own samples: value, first and second gradient.

tests/opinfo.txt holds how many samples of each are compared, so that no comparison fades away unseen: `python
tests/opinfo.py` prints it anew. CYGRAD_OPINFO=all compares the reference inputs of PyTorch as well. Without PyTorch
these tests fail."""

import gc
from pathlib import Path

import pytest
from opinfo import ALL, COUNTERPARTS, WITHOUT, Counterpart, compare, count, line, op_named, samples_of

from cygrad.ops import ROWS

LINES = Path(__file__).with_name("opinfo.txt").read_text().splitlines()
EXPECTED = {text.partition(":")[0]: text for text in LINES}


@pytest.fixture(scope="module", autouse=True)
def no_collecting_of_pytorch():
    """PyTorch's list is very many objects that stay: the collector is not to look at them after every test."""
    op_named("add")
    gc.collect()
    gc.freeze()


@pytest.mark.parametrize("counterpart", COUNTERPARTS, ids=lambda c: c.key.replace(" ", "-"))
def test_agrees_with_pytorch(counterpart):
    compared, differentiated, skipped = count(counterpart)
    found = line(counterpart, compared, differentiated, skipped)
    if ALL:
        assert compared >= int(EXPECTED[counterpart.key].partition(": ")[2].partition(" ")[0]), found
    else:
        assert found == EXPECTED.get(counterpart.key), "tests/opinfo.txt differs; python tests/opinfo.py prints it"
    assert compared > 0
    if ROWS[counterpart.row].operator.differentiable:
        assert differentiated > 0


def test_every_row_has_a_counterpart_or_a_reason():
    having = {c.row for c in COUNTERPARTS}
    assert not having & set(WITHOUT) and all(WITHOUT.values())
    missing = set(ROWS) - having - set(WITHOUT)
    assert not missing, f"tests/opinfo.py names no counterpart of {', '.join(sorted(missing))}, and no reason"
    gone = (having | set(WITHOUT)) - set(ROWS)
    assert not gone, f"tests/opinfo.py names rows that are not: {', '.join(sorted(gone - set(ROWS)))}"
    assert set(EXPECTED) >= {c.key for c in COUNTERPARTS}


@pytest.mark.parametrize("wrong, what", [
    (Counterpart("exp", "expm1"), "values 0"),
    (Counterpart("mul", "add"), "values 0"),
    (Counterpart("neg", "neg", lambda f: lambda x: f(x.detach())), "first 0"),
    (Counterpart("tanh", "tanh", lambda f: lambda x: f(x).detach() + (x - x.detach()) * (1 - f(x) ** 2).detach()),
     "second 0"),
], ids=["value", "value-of-two", "gradient", "second-gradient"])
def test_the_comparison_can_fail(wrong, what):
    op = op_named(wrong.opinfo)
    sample = next(iter(samples_of(op)))
    with pytest.raises(AssertionError, match=what):
        compare(wrong, op, sample)
