"""cygrad's functions compared with PyTorch's modules, in float64, on PyTorch's own samples: value, first and second
gradients of inputs and parameters, running statistics.

tests/support/modules.txt has the number of samples that are compared for each module, so that no comparison is lost
unnoticed; `python tests/support/modules.py` prints it. Without PyTorch these tests fail."""

import gc
from pathlib import Path

import pytest
from modules import MODULES, WITHOUT, Module, batch_norm, compare, count, given, infos, recurrent, samples_of
from opinfo import line

import cygrad as cg

LINES = (Path(__file__).parents[1] / "support" / "modules.txt").read_text().splitlines()
EXPECTED = {text.partition(":")[0]: text for text in LINES}


@pytest.fixture(scope="module", autouse=True)
def no_collecting_of_pytorch():
    """PyTorch's list has very many permanent objects, which the collector should not traverse after every test."""
    infos()
    gc.collect()
    gc.freeze()


@pytest.mark.parametrize("module", MODULES, ids=lambda m: m.key)
def test_agrees_with_pytorch(module):
    compared, differentiated, skipped = count(module)
    found = line(module, compared, differentiated, skipped)
    assert found == EXPECTED.get(module.key), "modules.txt differs; python tests/support/modules.py prints it"
    assert compared == differentiated > 0


def test_every_module_is_compared_or_has_a_reason():
    having = [m.key for m in MODULES]
    assert len(set(having)) == len(having) and not set(having) & set(WITHOUT) and all(WITHOUT.values())
    assert set(having) | set(WITHOUT) == set(infos())
    assert list(EXPECTED) == having
    page = Path(__file__).parents[2].joinpath("docs", "overview.md").read_text()
    assert f"{len(having)} modules" in page, f"docs/overview.md says how many modules are compared: {len(having)}"


def losing_statistics(m, p, x):
    """batch_norm that writes into copies of the statistics."""
    kept = {name: p[name].copy() for name in p if name.startswith("running")}
    return batch_norm(m, p | kept, x)


@pytest.mark.parametrize("wrong, what", [
    (Module("Tanh", given(cg.sigmoid)), "values 0"),
    (Module("Linear", given(lambda x, w, b: cg.linear(x.detach(), w, b), w="weight", b="bias")), "first 0"),
    (Module("Linear", given(lambda x, w, b: cg.linear(x, w, b.detach()), w="weight", b="bias")), "first 2"),
    (Module("Tanh", given(lambda x: cg.tanh(x).detach() + (x - x.detach()) * (1 - cg.tanh(x) ** 2).detach())),
     "second 0"),
    (Module("BatchNorm1d", losing_statistics), "values 1"),
    (Module("RNN", lambda m, p, x: recurrent(cg.rnn)(m, p, x)), "values 0"),
], ids=["value", "gradient-of-input", "gradient-of-parameter", "second-gradient", "statistics", "option"])
def test_the_comparison_can_fail(wrong, what):
    m, args, kwargs = next(samples_of(infos()[wrong.key]))
    with pytest.raises(AssertionError, match=what):
        compare(wrong, m, args, kwargs)
