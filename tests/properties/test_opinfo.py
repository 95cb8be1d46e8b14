"""Every row compared with its PyTorch counterpart, in float64, on PyTorch's own samples: value, first and second
gradient.

tests/support/opinfo.txt has the number of samples that are compared for each row, so that no comparison is lost
unnoticed; `python tests/support/opinfo.py` prints it. CYGRAD_OPINFO=all compares the reference inputs of PyTorch as
well. Without PyTorch these tests fail."""

import gc
from pathlib import Path

import pytest
from counterparts import COUNTERPARTS, WITHOUT, Counterpart
from opinfo import ALL, compare, count, line, op_named, samples_of

import cygrad as cg
from cygrad.ops import ROWS, TABLE

LINES = (Path(__file__).parents[1] / "support" / "opinfo.txt").read_text().splitlines()
EXPECTED = {text.partition(":")[0]: text for text in LINES}


@pytest.fixture(scope="module", autouse=True)
def no_collecting_of_pytorch():
    """PyTorch's list has very many permanent objects, which the collector should not traverse after every test."""
    op_named("add")
    gc.collect()
    gc.freeze()


@pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel")     # PyTorch's, once in a process
@pytest.mark.parametrize("counterpart", COUNTERPARTS, ids=lambda c: c.key.replace(" ", "-"))
def test_agrees_with_pytorch(counterpart):
    compared, differentiated, skipped = count(counterpart)
    found = line(counterpart, compared, differentiated, skipped)
    if ALL:
        assert compared >= int(EXPECTED[counterpart.key].partition(": ")[2].partition(" ")[0]), found
    else:
        assert found == EXPECTED.get(counterpart.key), "opinfo.txt differs; python tests/support/opinfo.py prints it"
    assert compared > 0
    if ROWS[counterpart.row].operator.differentiable:
        assert differentiated > 0


def test_every_row_has_a_counterpart_or_a_reason():
    having = {c.row for c in COUNTERPARTS}
    assert not having & set(WITHOUT) and all(WITHOUT.values())
    missing = {row.name for row in TABLE} - having - set(WITHOUT)
    assert not missing, f"support/counterparts.py has no counterpart of {', '.join(sorted(missing))}, and no reason"
    gone = (having | set(WITHOUT)) - set(ROWS)
    assert not gone, f"tests/support/counterparts.py names rows that are not: {', '.join(sorted(gone - set(ROWS)))}"
    assert list(EXPECTED) == [c.key for c in COUNTERPARTS]
    page = Path(__file__).parents[2].joinpath("docs", "overview.md").read_text()
    assert f"{len(having)} rows of" in page, f"docs/overview.md says how many rows are compared: {len(having)}"


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


KINKS = [                                           # (row, name in PyTorch, inputs with kinks and ties)
    ("relu", "relu", [[-1.0, 0.0, -0.0, 1.0]]),
    ("abs", "abs", [[-1.0, 0.0, -0.0, 1.0]]),
    ("sqrt", "sqrt", [[0.0, 4.0]]),
    ("power", "pow", [[0.0, 0.0, 2.0, 0.0], [0.0, 1.0, 0.0, 2.0]]),
    ("maximum", "maximum", [[1.0, 1.0, 0.0], [1.0, 0.0, 1.0]]),
    ("minimum", "minimum", [[1.0, 1.0, 0.0], [1.0, 0.0, 1.0]]),
    ("clip", "clamp", [[0.0, 1.0, 0.5, 2.0], [0.0, 1.0, 1.0, 1.0], [1.0, 1.0, 1.0, 3.0]]),
    ("max", "amax", [[1.0, 1.0, 0.0]]),
    ("min", "amin", [[1.0, 0.0, 0.0]]),
    ("norm", "norm", [[0.0, 0.0]]),
    ("std", "std", [[1.0, 1.0]]),
    ("prod", "prod", [[0.0, 2.0, 3.0]]),
    ("prod", "prod", [[0.0, 0.0, 3.0]]),
]


@pytest.mark.parametrize("row, name, arrays", KINKS)
def test_kinks_and_ties_are_as_in_pytorch(row, name, arrays):
    """Where the gradient is a convention. (max along an axis divides it among equal elements like amax, not
    torch.max.)"""
    import torch
    ours = [cg.tensor(a, dtype="float64", requires_grad=True) for a in arrays]
    theirs = [torch.tensor(a, dtype=torch.float64, requires_grad=True) for a in arrays]
    with cg.record():
        y = ROWS[row].function(*ours)
    z = getattr(torch, name)(*theirs)
    y.backward(cg.ones(y.shape, dtype="float64"))
    z.backward(torch.ones_like(z))
    assert y.tolist() == z.tolist()
    for x, t in zip(ours, theirs, strict=True):
        assert x.grad.tolist() == t.grad.tolist()
