"""x[mask] and x[mask] = v: of a mask, one bit per element is saved, or the positions of the true elements."""

import numpy as np
import pytest

import cygrad as cg

DTYPES = ("float32", "float64")


def case(n, true, seed=0):
    """A mask of n elements with this number of true ones."""
    mask = np.zeros(n, bool)
    mask[np.random.default_rng(seed).choice(n, true, replace=False)] = True
    return mask


# Elements, true elements, and saved bytes: the smaller of a bit per element and 2 or 4 bytes per true element.
KEPT = [(0, 0, 0), (1, 1, 1), (8, 8, 1), (9, 1, 2), (17, 1, 2), (100, 0, 0), (100, 6, 12), (100, 7, 13), (100, 100, 13),
        (65_536, 4095, 8190), (65_536, 4096, 8192), (65_537, 2048, 8192), (65_537, 2049, 8193)]


@pytest.mark.parametrize("n, true, nbytes", KEPT)
@pytest.mark.parametrize("dtype", DTYPES)
def test_select_keeps_bits_or_places(n, true, nbytes, dtype):
    mask = case(n, true)
    a = np.random.default_rng(1).normal(size=n).astype(dtype)
    g = np.random.default_rng(2).normal(size=true).astype(dtype)
    for how in ({}, {"create_graph": True}):
        x, chosen = cg.tensor(a).attach_grad(), cg.tensor(mask)
        with cg.record() as tape:
            y = x[chosen]
        assert tape.saved_bytes == nbytes
        chosen[...] = True                          # a later write has no effect
        (dx,) = cg.autograd.grad(y, [x], cg.tensor(g), **how)
        wanted = np.zeros(n, dtype)
        wanted[mask] = g
        assert np.array_equal(dx.detach().numpy(), wanted)


@pytest.mark.parametrize("n, true, nbytes", KEPT)
def test_a_write_keeps_bits_or_places(n, true, nbytes):
    mask = case(n, true)
    x, v = cg.ones(n).attach_grad(), cg.tensor(np.arange(true, dtype="float32")).attach_grad()
    with cg.record():
        y = x * 1.0
        with cg.record() as tape:
            y[mask] = v
    assert tape.saved_bytes == nbytes
    y.backward(cg.tensor(np.arange(n, dtype="float32")))
    assert np.array_equal(x.grad.numpy(), np.where(mask, 0, np.arange(n, dtype="float32")))
    assert np.array_equal(v.grad.numpy(), np.flatnonzero(mask).astype("float32"))


@pytest.mark.parametrize("shape, ndim", [((4, 3), 1), ((4, 3), 2), ((2, 3, 5), 2), ((3, 1, 1), 1), ((3, 1, 1), 3),
                                         ((0, 3), 1), ((2, 0), 1)])
def test_masks_over_the_first_dimensions(shape, ndim):
    """Backward gets the number of dimensions right, also if the others have one element."""
    rng = np.random.default_rng(3)
    mask = rng.random(shape[:ndim]) < 0.5
    a = rng.normal(size=shape)
    for strided in (False, True):
        m = cg.asarray(np.asfortranarray(mask)) if strided else cg.tensor(mask)
        x = cg.tensor(a).attach_grad()
        with cg.record():
            y = x[m]
            z = x * 1.0
            z[m] = 7.0
        g, h = rng.normal(size=y.shape), rng.normal(size=shape)
        cg.backward([y, z], [cg.tensor(g), cg.tensor(h)])
        wanted = h.copy()
        wanted[mask] = g
        assert np.array_equal(x.grad.numpy(), wanted)


def test_second_derivatives():
    mask = case(40, 20)
    x, v = cg.tensor(np.linspace(1, 2, 40)).attach_grad(), cg.tensor(np.linspace(2, 3, 20)).attach_grad()

    def f(x, v):
        y = x * x
        y[mask] = v * v
        return y[mask].sum() + (y * y).sum()

    assert cg.testing.gradcheck(f, [x, v], order=2)


def test_a_write_in_place_fails_whole():
    """Without memory for the bits nothing is written."""
    mask = case(1000, 500)
    x = cg.zeros(1000).attach_grad()
    with cg.record():
        y = x * 1.0
        value = cg.ones(500)
        kept = cg.tensor(mask)
        for n in (1, 2, 3):
            try:
                with cg.testing.fail_allocation(n):
                    y[kept] = value
            except MemoryError:
                assert y.version == 0 and not y.detach().numpy().any()
            else:
                break
        else:
            raise AssertionError("no write got through")
    assert n > 1 and y.version == 1
    y.backward()
    assert np.array_equal(x.grad.numpy(), 1.0 - mask)


def test_a_mask_may_be_what_is_written():
    x = cg.tensor([True, False, True, True])
    x[x] = False
    assert x.tolist() == [False] * 4


def test_hooks_see_the_bits():
    seen = []
    x = cg.tensor(np.arange(100.0)).attach_grad()
    mask = case(100, 50)
    with cg.autograd.saved_tensors_hooks(lambda t: seen.append((t.dtype, t.shape)) or t.numpy().copy(),
                                         lambda kept: cg.asarray(np.repeat(kept, 2)[::2])), cg.record():
        y = x[mask]
        z = x[case(100, 3)]
    assert seen == [(np.uint8, (13,)), (np.uint16, (3,))]
    cg.backward([y, z])
    assert np.array_equal(x.grad.numpy(), 1.0 * mask + case(100, 3))
