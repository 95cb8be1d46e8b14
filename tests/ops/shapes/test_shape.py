"""Shapes, joining, splitting, order and einsum beyond the table: random calls compared with NumPy and PyTorch."""

import itertools

import numpy as np
import pytest

import cygrad as cg
from cygrad.testing import assert_no_leak, gradcheck

from peers import torch
DTYPES = ("float32", "float64", "int64", "int16", "uint8", "bool")


def numbers(rng, shape, dtype="float64"):
    return rng.integers(0, 9, shape).astype(dtype)


def strided(rng, a):
    """The same numbers with other strides."""
    order = rng.permutation(a.ndim)
    a = np.ascontiguousarray(a.transpose(order)).transpose(np.argsort(order)) if a.ndim else a
    flips = tuple(slice(None, None, -1) if rng.random() < 0.3 else slice(None) for _ in range(a.ndim))
    return a[flips].copy("K")[flips] if a.ndim else a


def same(found, wanted):
    wanted = np.asarray(wanted)
    assert found.shape == wanted.shape and found.dtype == wanted.dtype
    assert np.array_equal(found.numpy(), wanted)


# ---- views -----------------------------------------------------------------------------------------------------------

def test_views_are_numpys():
    for seed in range(300):
        rng = np.random.default_rng(seed)
        shape = tuple(rng.integers(0, 4, rng.integers(0, 5)))
        a = strided(rng, numbers(rng, shape, DTYPES[seed % len(DTYPES)]))
        x = cg.asarray(a)
        axes = tuple(int(d) for d in rng.permutation(a.ndim)[:rng.integers(0, a.ndim + 1)])
        order = tuple(int(d) for d in rng.permutation(a.ndim))
        more = tuple(int(d) for d in rng.permutation(a.ndim + len(axes))[:len(axes)])
        ones = tuple(d for d in axes if a.shape[d] == 1)
        pairs = [(cg.permute(x, order), a.transpose(order)), (x.permute(*order) if order else x, a.transpose(order)),
                 (cg.flip(x, axes), np.flip(a, axes)), (x.flip(), np.flip(a)),
                 (cg.squeeze(x), a.squeeze()), (cg.squeeze(x, ones), a.squeeze(ones)),
                 (cg.expand_dims(x, more), np.expand_dims(a, more)), (x.unsqueeze(0), a[None]),
                 (cg.flip(x.T, axes).permute(order), np.flip(a.T, axes).transpose(order))]
        for found, wanted in pairs:
            same(found, wanted)
            assert found.size == 0 or np.shares_memory(found.numpy(), a)


def test_writes_through_views_reach_the_tensor():
    x = cg.zeros((2, 3))
    cg.flip(x, 1)[:, 0] = 1
    x.permute(1, 0)[0] = cg.tensor([2.0, 3.0])
    x.squeeze()[[0, 1], [1, 1]] = 4
    cg.split(x, 3, 1)[1].unsqueeze(0)[..., 0] += 1
    assert x.tolist() == [[2, 5, 1], [3, 5, 1]]


# ---- joining and splitting -------------------------------------------------------------------------------------------

def test_joining_is_numpys():
    for seed in range(200):
        rng = np.random.default_rng(seed)
        shape = list(rng.integers(0, 4, rng.integers(1, 4)))
        axis = int(rng.integers(-len(shape), len(shape)))
        parts = []
        for _ in range(rng.integers(1, 7)):
            part = list(shape)
            part[axis] = int(rng.integers(0, 4))
            parts.append(strided(rng, numbers(rng, part, DTYPES[seed % len(DTYPES)])))
        same(cg.concat([cg.asarray(p) for p in parts], axis), np.concatenate(parts, axis))
        same(cg.concat(parts, None), np.concatenate(parts, None))
        equal = [strided(rng, numbers(rng, shape, DTYPES[seed % len(DTYPES)])) for _ in parts]
        same(cg.stack(equal, axis), np.stack(equal, axis))
        cuts = sorted(int(i) for i in rng.integers(-5, 6, rng.integers(0, 4)))
        a = equal[0]
        for sections in (cuts, 1, max(a.shape[axis], 1)):
            found, wanted = cg.split(a, sections, axis), np.split(a, sections, axis)
            assert len(found) == len(wanted)
            for f, w in zip(found, wanted, strict=True):
                same(f, w)


def test_joining_promotes():
    both = [cg.tensor([1, 2]), cg.tensor([0.5], dtype="float32"), cg.tensor([True])]
    assert cg.concat(both).dtype == cg.float32 and cg.concat(both).tolist() == [1, 2, 0.5, 1]
    x = cg.tensor([1.0], dtype="float32").attach_grad()
    with cg.record(), pytest.warns(cg.PrecisionWarning, match="^stack: a float32 tensor"):
        y = cg.stack([x, cg.tensor([2.0], dtype="float64")])
    y.backward()
    assert y.dtype == cg.float64 and x.grad.dtype == cg.float32 and x.grad.tolist() == [1]


def test_many_inputs_and_one_tensor_twice():
    xs = [cg.tensor(np.full(2, float(i))).attach_grad() for i in range(20)]
    with cg.record():
        y = cg.concat([*xs, xs[3]])
        z = cg.stack([*xs[:5], xs[3]], 1)
    y.backward(cg.tensor(np.arange(42.0)))
    assert xs[19].grad.tolist() == [38, 39] and xs[3].grad.tolist() == [6 + 40, 7 + 41]
    z.backward(cg.tensor(np.arange(12.0).reshape(2, 6)))
    assert xs[3].grad.tolist() == [3 + 5, 9 + 11]


def test_concat_gradients_take_no_memory():
    """They are parts of one gradient, which is all that is live in backward."""
    xs = [cg.zeros(10000).attach_grad("write") for _ in range(4)]
    with cg.record():
        y = cg.concat([x * 2.0 for x in xs])
    head = cg.ones(40000)
    cg.memory.reset_peak()
    before = cg.memory.stats()["live_bytes"]
    y.backward(head)
    assert cg.memory.stats()["peak_bytes"] - before <= 5 * 40000


def test_wide_margins_are_numpys():
    for n in (1, 2, 3, 7):
        for widths in ((0, 0), (1, 0), (0, 1), (5, 9), (20, 31)):
            for mode in ("edge", "reflect", "symmetric", "wrap"):
                a = np.arange(n)
                same(cg.pad(a, widths, mode), np.pad(a, widths, mode))


def test_pad_is_numpys():
    for seed in range(150):
        rng = np.random.default_rng(seed)
        shape = tuple(rng.integers(1, 5, rng.integers(1, 4)))
        a = strided(rng, numbers(rng, shape, DTYPES[seed % len(DTYPES)]))
        widths = rng.integers(0, 4, (a.ndim, 2)).tolist()
        mode = ("constant", "edge", "reflect", "symmetric", "wrap")[seed % 5]
        same(cg.pad(a, widths, mode), np.pad(a, widths, mode))
        same(cg.pad(a, 2, value=3), np.pad(a, 2, constant_values=3))
        same(cg.pad(a, [1, 0]), np.pad(a, [1, 0]))
    for mode in ("edge", "reflect", "symmetric", "wrap"):
        with assert_no_leak():
            assert gradcheck(lambda x, mode=mode: cg.pad(x, ((2, 1), (0, 2)), mode),
                             [cg.tensor(np.random.default_rng(0).normal(size=(3, 3)))], order=2)


def test_triangles_are_numpys():
    for seed in range(100):
        rng = np.random.default_rng(seed)
        a = strided(rng, numbers(rng, tuple(rng.integers(0, 5, rng.integers(2, 5))), DTYPES[seed % len(DTYPES)]))
        k = int(rng.integers(-5, 6))
        same(cg.tril(a, k), np.tril(a, k))
        same(cg.triu(cg.asarray(a), k), np.triu(a, k))


# ---- order -----------------------------------------------------------------------------------------------------------

def test_order_is_numpys_and_stable():
    for seed in range(150):
        rng = np.random.default_rng(seed)
        a = strided(rng, numbers(rng, tuple(rng.integers(0, 6, rng.integers(1, 4))), DTYPES[seed % len(DTYPES)]))
        if a.dtype.kind == "f" and a.size and seed % 2:
            a[tuple(rng.integers(0, n) for n in a.shape)] = np.nan
        axis = int(rng.integers(-a.ndim, a.ndim))
        x = cg.asarray(a)
        np.testing.assert_array_equal(cg.sort(x, axis).numpy(), np.sort(a, axis))
        same(cg.argsort(x, axis), np.argsort(a, axis, kind="stable"))
        down = cg.argsort(x, axis, descending=True)
        theirs = torch.argsort(torch.from_numpy(a.copy()), dim=axis, descending=True, stable=True)
        same(down, theirs.numpy())
        np.testing.assert_array_equal(cg.sort(x, axis, True).numpy(), np.take_along_axis(a, down.numpy(), axis))
        k = int(rng.integers(0, a.shape[axis] + 1))
        values, indices = x.topk(k, axis)
        same(indices, np.take(down.numpy(), range(k), axis))
        np.testing.assert_array_equal(values.numpy(), np.take_along_axis(a, indices.numpy(), axis))
        values, indices = cg.topk(x, k, axis, largest=False)
        same(indices, np.take(np.argsort(a, axis, kind="stable"), range(k), axis))


@pytest.mark.parametrize("k", [1, 5, 64, 65, 300])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_first_of_many(k, dtype):
    """topk keeps a short list in order while it reads a row, and sorts the row for a long list. Both give the same
    positions, for ties and nan too."""
    rng = np.random.default_rng(k)
    for a in (rng.normal(size=(3, 300)), rng.integers(0, 9, (3, 300)), np.arange(900.0).reshape(3, 300),
              np.where(rng.random((3, 300)) < 0.3, np.nan, rng.integers(0, 9, (3, 300))), np.full((3, 300), np.nan)):
        a = a.astype(dtype)
        for x, axis in ((a, 1), (a.T, 0), (a[:, ::-1], -1), (np.stack([a, -a], 2), 1)):
            for largest in (True, False):
                values, indices = cg.topk(cg.asarray(x), k, axis, largest)
                wanted = cg.argsort(x, axis, descending=largest).numpy()
                assert np.array_equal(indices.numpy(), np.take(wanted, range(k), axis))
                np.testing.assert_array_equal(values.numpy(), np.take_along_axis(x, indices.numpy(), axis))


def test_order_has_pytorchs_gradients():
    rng = np.random.default_rng(0)
    a, weight = rng.normal(size=(3, 5, 2)), rng.normal(size=(3, 5, 2))
    for axis, largest in itertools.product((0, 1, -1), (True, False)):
        ours, theirs = cg.tensor(a).attach_grad(), torch.tensor(a, requires_grad=True)
        k = a.shape[axis] - 1
        cut = tuple(slice(k) if d == axis % 3 else slice(None) for d in range(3))
        with cg.record():
            y = cg.sort(ours, axis, largest) * weight
            z = cg.topk(ours, k, axis, largest)[0] * weight[cut]
            first = cg.autograd.grad([y * y, z * z], [ours], create_graph=True)
            second = cg.autograd.grad((first[0] * first[0]).sum(), [ours])
        u = torch.sort(theirs, axis, largest)[0] * torch.tensor(weight)
        v = torch.topk(theirs, k, axis, largest)[0] * torch.tensor(weight[cut])
        t_first = torch.autograd.grad((u * u).sum() + (v * v).sum(), [theirs], create_graph=True)
        t_second = torch.autograd.grad((t_first[0] ** 2).sum(), [theirs])
        for f, w in zip((*first, *second), (*t_first, *t_second), strict=True):
            np.testing.assert_allclose(f.detach().numpy(), w.detach().numpy(), rtol=1e-12, atol=1e-12)


# ---- einsum ----------------------------------------------------------------------------------------------------------

def equation(rng):
    """A random equation with operands for it."""
    sizes = dict(zip("ijklm", rng.integers(1, 4, 5), strict=True))
    terms, shapes = [], []
    dots = [int(n) for n in rng.integers(1, 4, rng.integers(0, 3))]
    for _ in range(rng.integers(1, 4)):
        term = "".join(rng.permutation(list("ijklm"))[:rng.integers(0, 4)])
        if term and rng.random() < 0.2:
            term += term[0]
        shape = [sizes[a] if rng.random() < 0.95 or term.count(a) > 1 else 1 for a in term]
        if dots and rng.random() < 0.6:
            some = dots[rng.integers(0, len(dots)):]
            some = [n if rng.random() < 0.8 else 1 for n in some]
            at = int(rng.integers(0, len(term) + 1))
            term, shape = term[:at] + "..." + term[at:], shape[:at] + some + shape[at:]
        terms.append(term)
        shapes.append(shape)
    left = ",".join(terms)
    if rng.random() < 0.2:
        return left, shapes
    letters = sorted(set(left) - set(",."))
    right = "".join(rng.permutation(letters)[:rng.integers(0, len(letters) + 1)]) if letters else ""
    at = int(rng.integers(0, len(right) + 1))
    return left + " -> " + (right[:at] + "..." + right[at:] if "..." in left else right), shapes


def test_einsum_is_numpys():
    for seed in range(400):
        rng = np.random.default_rng(seed)
        text, shapes = equation(rng)
        dtype = ("float64", "float32", "int64", "int16", "float64")[seed % 5]
        arrays = [strided(rng, rng.integers(-4, 5, s).astype(dtype)) for s in shapes]
        same(cg.einsum(text, *map(cg.asarray, arrays)), np.einsum(text, *arrays))


def test_einsum_has_pytorchs_gradients():
    for seed in range(150):
        rng = np.random.default_rng(seed)
        text, shapes = equation(rng)
        arrays = [rng.normal(size=s) for s in shapes]
        ours = [cg.tensor(a).attach_grad() for a in arrays]
        theirs = [torch.tensor(a, requires_grad=True) for a in arrays]
        with cg.record():
            y = cg.einsum(text, *ours)
            first = cg.autograd.grad(y * y, ours, create_graph=True)
            total = sum([(g * g).sum() for g in first[1:]], (first[0] * first[0]).sum())
            second = cg.autograd.grad(total, ours)
        z = torch.einsum(text, *theirs)
        t_first = torch.autograd.grad((z * z).sum(), theirs, create_graph=True)
        t_second = torch.autograd.grad(sum((g * g).sum() for g in t_first), theirs)
        np.testing.assert_allclose(y.detach().numpy(), z.detach().numpy(), rtol=1e-11, atol=1e-11)
        for f, w in zip((*first, *second), (*t_first, *t_second), strict=True):
            np.testing.assert_allclose(f.detach().numpy(), w.detach().numpy(), rtol=1e-9, atol=1e-9)


def test_einsum_keeps_the_operands_and_no_copies():
    x, w = cg.ones((8, 6), dtype="float64").attach_grad(), cg.ones((5, 4, 6), dtype="float64").attach_grad()
    with cg.record():
        a, b = x * 1.0, w * 1.0
        with cg.record() as tape:
            y = cg.einsum("ij,kmj->mik", a, b)
    assert tape.saved_bytes == a.nbytes + b.nbytes and y.shape == (4, 8, 5)
