"""Every row of the table under vmap and jvp: lanes are those of separate calls, tangents agree with gradients."""

import warnings

import numpy as np
import pytest

import cygrad as cg
from cygrad.func import jvp, lanes, vjp, vmap
from rows import every_case, is_floating

N = 3                       # lanes

# Operators that have no rule for lanes, or none for some of their samples.
ONE_BY_ONE = {
    "add_at", "as_view", "cross_entropy", "ctc_loss", "diag", "einsum", "embedding_bag", "gru",
    "linear_cross_entropy", "lstm", "mask_put", "nll_loss", "put", "put_view", "rnn", "rnn_relu",
    "searchsorted", "soft_cross_entropy",
}
RANDOM = {"attention_with_dropout", "dropout_with"}     # each lane has numbers of its own


def tensors_of(y):
    return [y] if isinstance(y, cg.Tensor) else [z for z in y if isinstance(z, cg.Tensor)]


def mappings(args):
    """Which arguments to map: each one of floats alone, then all of them."""
    places = [i for i, a in enumerate(args) if isinstance(a, np.ndarray) and a.dtype.kind == "f"]
    return [[p] for p in places] + ([places] if len(places) > 1 else [])


@every_case
def test_lanes(row, args, kwargs):
    args = [a.astype("float64") if isinstance(a, np.ndarray) and a.dtype.kind == "f" else a for a in args]
    lanes.warned.clear()
    for places in mappings(args):
        full = [np.stack([a * (1 + 0.05 * k) for k in range(N)]) if i in places else a for i, a in enumerate(args)]
        with warnings.catch_warnings(record=True):
            warnings.simplefilter("always")
            want = [row.tested(*[a[k] if i in places else a for i, a in enumerate(full)], **kwargs)
                    for k in range(N)]
            if not tensors_of(want[0]) or row.name in RANDOM: continue
            f = vmap(lambda *xs: row.tested(*xs, **kwargs), tuple(0 if i in places else None for i in range(len(args))))
            if row.operator.data_dependent_shape:
                with pytest.raises(RuntimeError, match="depends on values"): f(*full)
                continue
            got = f(*full)
        for k in range(N):
            for one, all_of in zip(tensors_of(want[k]), tensors_of(got), strict=True):
                np.testing.assert_allclose(np.asarray(all_of)[k], np.asarray(one), 1e-9, 1e-11)
        del want, got, f
    assert lanes.warned <= ONE_BY_ONE | RULES_OF_SOLVERS


RULES_OF_SOLVERS = {row.operator.name for row in cg.ops.TABLE if row.name.endswith("_update")}


@pytest.mark.parametrize("row, args, kwargs", [c for c in every_case.args[1] if c.values[0].operator.differentiable])
def test_tangents(row, args, kwargs):
    """<u, J t> = <J' u, t>, with J' u from the gradients, which other tests compare with differences."""
    args = [a.astype("float64") if is_floating(a) else a for a in args]
    places = [i for i, a in enumerate(args) if is_floating(a)]

    def f(*xs):
        given = list(args)
        for i, x in zip(places, xs, strict=True): given[i] = x
        return [y for y in tensors_of(row.tested(*given, **kwargs)) if y.dtype.kind == "f"]

    rng = np.random.default_rng(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        xs = tuple(cg.tensor(args[i]) for i in places)
        ts = tuple(cg.tensor(rng.standard_normal(x.shape)) for x in xs)
        ys, out = jvp(f, xs, ts)
        heads = [cg.tensor(rng.standard_normal(y.shape)).astype(y.dtype) for y in ys]
        values, pull = vjp(f, *xs)
        gradients = pull(heads)
    for y, value in zip(ys, values, strict=True): np.testing.assert_array_equal(np.asarray(y), np.asarray(value))
    one = sum(float((h * t).sum()) for h, t in zip(heads, out, strict=True))
    other = sum(float((g * t).sum()) for g, t in zip(gradients, ts, strict=True))
    tolerance = 1e-8 if all(y.dtype == "float64" for y in ys) else 1e-5
    if np.isfinite(other): assert one == pytest.approx(other, tolerance, 1e-10)
    del pull
