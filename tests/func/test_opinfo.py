"""jvp and vmap of every row that has a PyTorch counterpart, in float64, on PyTorch's own samples: tangents beside those
of PyTorch's forward mode, lanes beside PyTorch's results for each of them. CYGRAD_OPINFO=all compares all samples."""

import numpy as np
import pytest
from conventions import Unsupported
from counterparts import COUNTERPARTS
from opinfo import ALL, flat, numbers, op_named, samples_of, same, walk

import cygrad as cg
from cygrad.func import jvp, vmap
from cygrad.ops import ROWS

ENOUGH = 4                                          # comparisons of each counterpart
# Rows for which tests/support/conventions.py reads the values of the operands, which have none inside of vmap.
READING = ("abs batch_norm celu clip digamma elu hardsigmoid hardtanh mish power selu sign sinc").split()
SYMMETRIC = ("cholesky", "eigh")                    # they read one triangle, PyTorch's derivatives both
DIFFERENTIABLE = [c for c in COUNTERPARTS if ROWS[c.row].operator.differentiable]


def leaves_of(given):
    """The tensors of a sample that have gradients, and a function that puts others in their places."""
    found = []
    walk(given, lambda t: found.append(t.detach()) if t.requires_grad else None)

    def put(xs, other):
        """The sample with `xs` for these tensors, and other(t) for the others."""
        xs = iter(xs)
        return walk(given, lambda t: next(xs) if t.requires_grad else other(t.detach()))

    return found, put


def ours(t):
    return cg.asarray(t.numpy())


def compared(counterpart, op, sample):
    """Compare tangents and lanes on one sample; the number of comparisons."""
    import torch
    leaves, put = leaves_of((sample.input, sample.args, sample.kwargs))
    if not leaves or not leaves[0].numel(): return 0
    rng = np.random.default_rng(0)

    def function(*xs):
        x, args, kwargs = put(xs, ours)
        return counterpart.function(x, *args, **kwargs)

    def theirs(*xs):
        x, args, kwargs = put(xs, lambda t: t)
        with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH): y = op(x, *args, **kwargs)
        return counterpart.theirs(y) if counterpart.theirs else y

    done, row = 0, ROWS[counterpart.row]
    if op.supports_forward_ad and op.name != "tensor_split":        # (whose sections are a tensor that PyTorch reads)
        ts = [rng.uniform(-1, 1, tuple(x.shape)) for x in leaves]
        if row.name in SYMMETRIC: ts = [t + np.swapaxes(t, -1, -2) for t in ts]
        _, got = jvp(function, tuple(map(ours, leaves)), tuple(cg.tensor(t) for t in ts))
        _, wanted = torch.func.jvp(theirs, tuple(leaves), tuple(torch.tensor(t) for t in ts))
        for a, b in zip(flat(got), flat(wanted), strict=True): same(numbers(a), numbers(b), "tangent")
        done += 1
    if row.name in READING or row.operator.data_dependent_shape: return done
    lanes = [leaves, [0.75 * x for x in leaves]]
    got = vmap(function)(*[cg.tensor(np.stack([x.numpy() for x in of])) for of in zip(*lanes, strict=True)])
    for k, xs in enumerate(lanes):
        for a, b in zip(flat(got), flat(theirs(*xs)), strict=True): same(numbers(a)[k], numbers(b), f"lane {k}")
    return done + 1


@pytest.mark.filterwarnings("ignore:.*torch.jit.script.* is deprecated")
@pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel")
@pytest.mark.filterwarnings("ignore:vmap. .* has no rule for lanes")
@pytest.mark.filterwarnings("ignore:reduction. 'mean' divides")
@pytest.mark.parametrize("counterpart", DIFFERENTIABLE, ids=lambda c: c.key.replace(" ", "-"))
def test_tangents_and_lanes_are_those_of_pytorch(counterpart):
    op = op_named(counterpart.opinfo)
    done = 0
    for sample in samples_of(op, counterpart.references):
        if done >= ENOUGH and not ALL: break
        try: done += compared(counterpart, op, sample)
        except Unsupported: pass                    # (tests/support/opinfo.txt counts them)
    assert done
