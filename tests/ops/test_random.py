"""Random numbers: the published vectors of the generator, states, distributions, dropout."""

import copy
import math
import os
import pickle
import sys
import threading

import numpy as np
import pytest
from scipy import stats

import cygrad as cg
from cygrad.kernels.random import philox
from cygrad.random import Generator
from cygrad.testing import assert_no_leak, fail_allocation, gradcheck
from tests.samples.random import philox as philox_in_python

# Random123 1.14, tests/kat_vectors, lines "philox4x32 10": counter, key, block.
VECTORS = """
00000000 00000000 00000000 00000000   00000000 00000000   6627e8d5 e169c58d bc57ac4c 9b00dbd8
ffffffff ffffffff ffffffff ffffffff   ffffffff ffffffff   408f276d 41c83b0e a20bc7c6 6d5451fd
243f6a88 85a308d3 13198a2e 03707344   a4093822 299f31d0   d16cfe09 94fdcceb 5001e420 24126ea1
"""
N = 2 * 32768 + 777                                 # more than the grain of two threads, and not a multiple of a block


def whole(words):
    return sum(w << 32 * i for i, w in enumerate(words))


@pytest.mark.parametrize("line", VECTORS.split("\n")[1:-1])
def test_known_answers(line):
    words = [int(w, 16) for w in line.split()]
    assert philox(whole(words[:4]), whole(words[4:6])) == tuple(words[6:])


def test_the_blocks_of_a_draw_are_those_of_the_generator():
    """Kernels compute them in parallel, Python one by one."""
    for counter in (0, 5, 2**32 - 3, 2**64 - 2):    # (a carry into the second word, and the end of the numbers)
        g = Generator(2**63 + 11)
        g.state = 2**63 + 11, counter
        words = [w for i in range(100) for w in philox((counter + i) % 2**64, 2**63 + 11)]
        first = g.uniform(399)
        assert first.tolist() == [float(np.float32((w >> 8) * 2.0**-24)) for w in words[:399]]
        assert g.state == (2**63 + 11, (counter + 100) % 2**64)
        g.state = 2**63 + 11, counter
        bits = [words[2 * i + 1] << 32 | words[2 * i] for i in range(199)]
        assert g.uniform(199, dtype="float64").tolist() == [(b >> 11) * 2.0**-53 for b in bits]
        assert philox_in_python(2**63 + 11, counter, 17) == words[:17] or counter == 2**64 - 2


# ---- states ----------------------------------------------------------------------------------------------------------

DRAWS = {
    "normal": lambda g: g.normal((3, 5)), "normal64": lambda g: g.normal(7, dtype="float64"),
    "uniform": lambda g: g.uniform((2, 3), -1, 4), "uniform64": lambda g: g.uniform(5, dtype="float64"),
    "integers": lambda g: g.integers((4,), -3, 90), "bernoulli": lambda g: g.bernoulli((3, 3), 0.3),
    "permutation": lambda g: g.permutation(9), "rows": lambda g: g.permutation(cg.arange(12).reshape(4, 3)),
    "ones and zeros": lambda g: g.bernoulli(9, p=0.3, dtype="float32"),
    "bytes": lambda g: g.integers(0, 256, (9,), dtype="uint8"),
}
every_draw = pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)


@every_draw
def test_a_state_gives_the_same_again(draw):
    g = Generator(3)
    g.normal(10)
    before = g.state
    first, second = draw(g), draw(g)
    after = g.state
    assert after != before and first.tolist() != second.tolist()
    g.state = before
    assert draw(g).tolist() == first.tolist()
    for other in (pickle.loads(pickle.dumps(g)), copy.copy(g), copy.deepcopy(g)):
        assert type(other) is Generator and other is not g and other.state == g.state
        assert draw(other).tolist() == second.tolist()
    draw(g)
    assert g.state == after


@every_draw
def test_seeds_differ(draw):
    assert draw(Generator(1)).tolist() == draw(Generator(1)).tolist() != draw(Generator(2)).tolist()
    assert Generator().state != Generator().state   # seeded by the system


@every_draw
def test_a_failed_allocation_leaves_the_state(draw):
    g = Generator(5)
    before = g.state
    for n in range(1, 9):
        with fail_allocation(n) as failure:
            try:
                draw(g)
            except MemoryError:
                assert g.state == before
        if not failure.failed:
            break
    assert n > 1 and not failure.failed and g.state != before


def test_module_functions_draw_from_the_default_generator():
    default = cg.random.default_generator
    kept = default.state
    try:
        cg.random.seed(12)
        assert default.state == (12, 0)
        ours = [cg.random.normal((2, 2)), cg.random.uniform(3, low=2, high=3), cg.random.integers(0, 9, size=(4,)),
                cg.random.bernoulli((5,), 0.5), cg.random.permutation(5)]
        g = Generator(12)
        theirs = [g.normal((2, 2)), g.uniform(3, low=2, high=3), g.integers(0, 9, size=(4,)), g.bernoulli((5,), 0.5),
                  g.permutation(5)]
        assert [t.tolist() for t in ours] == [t.tolist() for t in theirs] and default.state == g.state
    finally:
        default.state = kept


def test_known_numbers():
    """These numbers must not change: a seed in a paper must give the same numbers next year."""
    g = Generator(2024)
    assert g.uniform(3, dtype="float64").tolist() == KNOWN["uniform"]
    np.testing.assert_allclose(g.normal(3, dtype="float64").numpy(), KNOWN["normal"], rtol=1e-15)
    assert g.integers((5,), 0, 1000).tolist() == KNOWN["integers"]
    assert g.permutation(8).tolist() == KNOWN["permutation"]
    assert g.state == (2024, 17)


KNOWN = {
    "uniform": [0.26856328700755017, 0.08359602535716226, 0.43589427749306986],
    "normal": [2.200758566316354, 1.0847517844347934, -0.006329137227506847],
    "integers": [721, 668, 805, 245, 660],
    "permutation": [3, 2, 4, 1, 6, 0, 5, 7],
}


def test_thread_counts_agree(two_threads):
    draws = [lambda g: g.normal(N), lambda g: g.normal(N, dtype="float64"), lambda g: g.uniform(N),
             lambda g: g.uniform(N, dtype="float64"), lambda g: g.bernoulli(N), lambda g: g.integers((N,), 0, 5)]

    def dropped(g):
        with cg.train_mode():
            return cg.dropout(cg.ones(N), 0.3, g)

    for draw in [*draws, dropped]:
        found = []
        for threads in (1, 2, 3):
            cg.set_num_threads(threads)
            found.append(draw(Generator(8)).numpy())
        assert np.array_equal(found[0], found[1]) and np.array_equal(found[0], found[2])
        assert np.array_equal(draw(Generator(8)).numpy()[:100], found[0][:100])


def test_float32_is_float64_rounded():
    one, two = Generator(4), Generator(4)
    assert np.array_equal(one.normal(1001).numpy(), two.normal(1001, dtype="float64").numpy().astype("float32"))


def test_threads_share_the_default_generator_and_never_a_number():
    kept = cg.random.default_generator.state
    found = [[] for _ in range(4)]

    def work(mine):
        for _ in range(200):
            mine += cg.random.uniform(6, dtype="float64").tolist()

    threads = [threading.Thread(target=work, args=(mine,)) for mine in found]
    try:
        cg.random.seed(77)
        interval = sys.getswitchinterval()
        sys.setswitchinterval(1e-6)
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        sys.setswitchinterval(interval)
        assert cg.random.default_generator.state == (77, 4 * 200 * 3)
        together = sorted(sum(found, []))
        assert together == sorted(Generator(77).uniform(4 * 200 * 6, dtype="float64").tolist())
    finally:
        cg.random.default_generator.state = kept


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_fork_goes_on_from_the_parents_state():
    g = Generator(6)
    g.normal(100)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write, pickle.dumps([g.normal(N).numpy()[-3:].tolist(), g.state]))
        os._exit(0)
    os.waitpid(child, 0)
    theirs, state = pickle.loads(os.read(read, 10000))
    os.close(read)
    os.close(write)
    assert theirs == g.normal(N).numpy()[-3:].tolist() and state == g.state


# ---- distributions ---------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_normal(dtype):
    x = Generator(1).normal((1 << 18,), dtype=dtype).numpy().astype("float64")
    n = x.size
    assert abs(x.mean()) < 4 / np.sqrt(n) and abs(x.var() - 1) < 4 * np.sqrt(2 / n)
    assert abs((x**3).mean()) < 4 * np.sqrt(15 / n) and abs((x**4).mean() - 3) < 4 * np.sqrt(96 / n)
    assert stats.kstest(x, "norm").pvalue > 0.01
    tail = (np.abs(x) > 4).sum()                    # 16.6 are expected
    assert 5 < tail < 33
    pairs = x.reshape(-1, 2)                        # both of a pair come from one block
    assert abs(np.corrcoef(pairs.T)[0, 1]) < 4 / np.sqrt(n / 2)
    assert abs(np.corrcoef(pairs[:-1, 1], pairs[1:, 0])[0, 1]) < 4 / np.sqrt(n / 2)
    y = Generator(1).normal((1 << 18,), 3, 2, dtype=dtype).numpy()
    np.testing.assert_allclose(y, 3 + 2 * x, rtol=1e-6, atol=1e-6)
    assert Generator(1).normal(4, scale=0, loc=1.5).tolist() == [1.5] * 4


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_uniform(dtype):
    x = Generator(2).uniform((1 << 18,), dtype=dtype).numpy().astype("float64")
    n = x.size
    assert x.min() >= 0 and x.max() < 1
    assert abs(x.mean() - 0.5) < 4 / np.sqrt(12 * n) and stats.kstest(x, "uniform").pvalue > 0.01
    assert abs(np.corrcoef(x[:-1], x[1:])[0, 1]) < 4 / np.sqrt(n)
    y = Generator(2).uniform((1 << 18,), -3, 5, dtype=dtype).numpy()
    np.testing.assert_allclose(y, -3 + 8 * x, rtol=1e-6, atol=1e-6)
    assert Generator(2).uniform((3,), 2, 2, dtype=dtype).tolist() == [2, 2, 2]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_uniform_never_gives_the_upper_bound(dtype):
    """If few floating-point numbers are between the bounds, rounding could reach the upper one."""
    low = np.array(1, dtype)
    high = np.nextafter(np.nextafter(low, np.array(2, dtype)), np.array(2, dtype))
    x = Generator(3).uniform((1000,), float(low), float(high), dtype=dtype).numpy()
    assert x.min() == low and x.max() < high and len(set(x.tolist())) == 2


def test_integers_are_unbiased():
    n = 1 << 17
    for high in (2, 3, 6, 7, 100, 1000):
        x = Generator(high).integers((n,), 0, high).numpy()
        assert stats.chisquare(np.bincount(x, minlength=high)).pvalue > 0.005, high
    wide = 3 * 2**62                                # a remainder of 64 bits would be below 2^62 too often
    x = Generator(1).integers((n,), 0, wide, dtype="uint64").numpy()
    assert stats.chisquare(np.bincount((x >> np.uint64(62)).astype(int), minlength=3)).pvalue > 0.005
    assert stats.kstest(x.astype("float64") / wide, "uniform").pvalue > 0.005


def test_integers_in_every_dtype_and_range():
    for dtype in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"):
        info = np.iinfo(dtype)
        x = Generator(5).integers((2000,), info.min, info.max, dtype=dtype, endpoint=True)
        assert x.dtype == dtype
        numbers = x.numpy().astype("float64")
        assert numbers.min() < info.min + 0.01 * (float(info.max) - info.min)
        assert numbers.max() > info.max - 0.01 * (float(info.max) - info.min)
    x = Generator(5).integers((1000,), -4, 3).numpy()
    assert set(x.tolist()) == set(range(-4, 3))
    assert set(Generator(5).integers((1000,), -4, 3, endpoint=True).tolist()) == set(range(-4, 4))
    assert Generator(5).integers((3,), 7, 7, endpoint=True).tolist() == [7, 7, 7]
    assert set(Generator(5).integers((100,), 2, dtype="bool").tolist()) == {False, True}


def test_bernoulli():
    for p in (0.0, 0.001, 0.3, 0.5, 1.0):
        x = Generator(9).bernoulli((1 << 17,), p)
        assert x.dtype == "bool"
        count = int(x.numpy().sum())
        assert stats.binomtest(count, 1 << 17, p).pvalue > 0.01
    y = Generator(9).bernoulli((1 << 17,), 1.0, dtype="float32")
    assert y.dtype == "float32" and y.numpy().min() == 1


def test_permutations_are_uniform():
    g = Generator(10)
    counts = {}
    for _ in range(6000):
        order = tuple(g.permutation(4).tolist())
        counts[order] = counts.get(order, 0) + 1
    assert len(counts) == 24 and stats.chisquare(list(counts.values())).pvalue > 0.01
    large = g.permutation(5000).numpy()
    assert sorted(large.tolist()) == list(range(5000))
    assert (large == np.arange(5000)).sum() < 8     # one is expected
    assert sorted(g.permutation(np.int64(3)).tolist()) == [0, 1, 2] and g.normal(np.int32(3)).shape == (3,)
    assert g.permutation(0).tolist() == [] and g.permutation(1).tolist() == [0]


def test_permutation_of_rows():
    g = Generator(11)
    x = cg.tensor(np.arange(12.0).reshape(6, 2))
    state = g.state
    y = g.permutation(x)
    g.state = state
    assert np.array_equal(y.numpy(), x.numpy()[g.permutation(6).numpy()])
    assert x.tolist() == np.arange(12.0).reshape(6, 2).tolist() and y.dtype == x.dtype
    assert sorted(g.permutation(2).tolist()) == [0, 1]
    assert sorted(g.permutation([3, 1, 2]).tolist()) == [1, 2, 3]
    v = cg.ones((3, 2)).attach_grad()
    assert g.permutation(v).shape == (3, 2)
    with cg.record(), pytest.raises(RuntimeError, match="detach"):
        g.permutation(v)


def test_shapes_and_orders_of_arguments():
    g = Generator(1)
    for shape in ((), (3,), (2, 0), (2, 3, 4), [5]):
        assert g.normal(shape).shape == g.uniform(shape).shape == g.bernoulli(shape).shape == tuple(shape)
        assert g.integers(shape, 0, 5).shape == g.integers(0, 5, shape).shape == tuple(shape)
        assert g.normal(1, 2, shape).shape == g.uniform(low=1, high=2, shape=shape).shape == tuple(shape)
    assert g.normal().shape == g.uniform(1, 2).shape == g.integers(0, 5).shape == g.integers(5).shape == ()
    assert g.normal(0, 1).shape == g.normal((), 3, 4).shape == g.normal(3, 4, ()).shape == g.normal(3.0, 4).shape == ()
    assert g.normal(3, 4, size=2).shape == g.normal(3, 4, (2,)).shape == g.bernoulli(2, 1).shape == (2,)
    assert g.normal(4).shape == g.bernoulli(4).shape == g.bernoulli(4, 0.5).shape == g.bernoulli(0.5, 4).shape == (4,)
    assert g.integers(5, 6, (3,)).tolist() == g.integers(5, 6, shape=3).tolist() == [5, 5, 5]
    assert g.integers((3,), 5, high=6).tolist() == g.integers(5, high=6, size=(3,)).tolist() == [5, 5, 5]
    assert g.integers((3,), 1).tolist() == g.integers(1, size=3).tolist() == [0, 0, 0]
    assert g.uniform(10, 11, (2,)).numpy().min() >= 10 and g.uniform((2,), high=11, low=10).numpy().min() >= 10
    assert g.normal(0, 1, size=2).shape == g.normal((2,), 0, scale=1).shape == (2,)
    assert g.bernoulli((3,), p=1).tolist() == g.bernoulli(1.0, (3,)).tolist() == [True] * 3
    assert g.normal(2).dtype == "float32" and g.normal(2, dtype=cg.float64).dtype == "float64"
    cg.set_default_dtype("float64")
    assert g.normal(2).dtype == g.uniform(2).dtype == "float64"
    cg.set_default_dtype("float32")


# ---- dropout ---------------------------------------------------------------------------------------------------------

def test_dropout_in_predict_mode_is_the_tensor():
    x = cg.ones((3, 4))
    g = Generator(1)
    assert cg.dropout(x) is x and cg.dropout(x, 0.9, g) is x
    with cg.record(train_mode=False):
        assert cg.dropout(x, 0.5, g) is x
    with cg.predict_mode(), assert_no_leak():
        assert cg.dropout(x, 0.5, g).tolist() == x.tolist()
    assert g.state == (1, 0)
    v = cg.ones(3).attach_grad()
    with cg.record(train_mode=False) as tape:
        y = cg.dropout(v, 0.5, g)
    assert y.grad_fn.name() == "dropout_identity" and tape.saved_bytes == 0 and y.tolist() == [1, 1, 1]
    y.backward()
    assert v.grad.tolist() == [1, 1, 1] and g.state == (1, 0)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_dropout_drops_and_scales(dtype):
    x = cg.tensor(np.random.default_rng(0).normal(size=(300, 500)), dtype=dtype)
    for p in (0.0, 0.2, 0.5, 0.9):
        with cg.train_mode():
            y = cg.dropout(x, p, Generator(2)).numpy()
        kept = y != 0
        assert stats.binomtest(int(kept.sum()), kept.size, 1 - p).pvalue > 0.01
        np.testing.assert_allclose(y[kept], x.numpy()[kept] / (1 - p), rtol=1e-6)
        assert np.array_equal(cg.ops.ROWS["dropout_with"].function(x, p, 2, 0).numpy(), y)
    with cg.train_mode():
        assert not cg.dropout(x, 1, Generator(2)).numpy().any()
        assert not cg.dropout(cg.full((4,), float("nan")), 1).numpy().any()
        assert cg.dropout(x).tolist() != cg.dropout(x).tolist()


def test_dropout_gives_the_gradient_its_own_mask_and_keeps_nothing():
    x = cg.ones((7, 9)).attach_grad()
    with cg.record() as tape:
        z = x * 2
        y = cg.dropout(z, 0.4)
        del z
    assert tape.saved_bytes == 0
    y.backward(cg.full((7, 9), 3.0))
    np.testing.assert_allclose(x.grad.numpy(), y.detach().numpy() * 3, rtol=1e-6)
    assert 0 < (x.grad.numpy() == 0).sum() < 63


def test_dropout_of_strided_empty_and_0d():
    with cg.train_mode():
        wide = cg.tensor(np.arange(1.0, 25).reshape(4, 6))
        dense = cg.dropout(wide.copy().T.copy(), 0.5, Generator(3))
        assert cg.dropout(wide.T, 0.5, Generator(3)).tolist() == dense.tolist()
        assert cg.dropout(wide[::-2, ::3], 0.5, Generator(3)).tolist() == \
            cg.dropout(wide[::-2, ::3].copy(), 0.5, Generator(3)).tolist()
        assert cg.dropout(cg.zeros((0, 3))).shape == (0, 3)
        assert cg.dropout(cg.tensor(2.0), 0.0).item() == 2 and cg.dropout(cg.tensor(2.0), 1.0).item() == 0


def test_dropout_to_any_order():
    def f(x):
        with cg.train_mode():
            return cg.dropout(x * x, 0.4, Generator(4)) * x

    assert gradcheck(f, [np.linspace(-1, 2, 12).reshape(3, 4)], order=3)


def test_dropout_that_fails_leaves_the_generator():
    x, g = cg.ones((4, 4)).attach_grad(), Generator(5)
    for n in range(1, 5):
        with fail_allocation(n) as failure, cg.record():
            try:
                cg.dropout(x, 0.5, g)
            except MemoryError:
                assert g.state == (5, 0)
        if not failure.failed:
            break
    assert n > 1 and g.state == (5, 4)
    with cg.train_mode(), pytest.raises(TypeError):
        cg.dropout(x, "half", g)
    assert g.state == (5, 4)


def test_scale_gradient():
    for s in (2, 0.0, -1.5):
        x = cg.tensor([[1.0, -2.0], [3.0, 4.0]]).attach_grad()
        with cg.record() as tape:
            y = x.scale_gradient(s)
            z = y * y
        assert np.shares_memory(y.detach().numpy(), x.detach().numpy()) and tape.nodes == 2
        z.backward(retain_graph=True)
        assert x.grad.tolist() == (2 * s * x.detach().numpy()).tolist()
        head = cg.asarray(np.ones((2, 4), "float32")[:, ::2])
        z.backward(head)
        assert x.grad.tolist() == (2 * s * x.detach().numpy()).tolist()
    x = cg.tensor(3.0).attach_grad()
    with cg.record():
        y = cg.scale_gradient(x, 2.0) ** 3
        (first,) = cg.autograd.grad([y], [x], create_graph=True)
        (second,) = cg.autograd.grad([first], [x])
    assert first.item() == 2 * 27 and second.item() == 2 * 2 * 18       # scaled once on each path back


def numbers_of(key, counter, n):
    """n pairs of 64-bit numbers, one pair for each block."""
    words = philox_in_python(key, counter, 4 * n)
    return [(words[i] | words[i + 1] << 32, words[i + 2] | words[i + 3] << 32) for i in range(0, 4 * n, 4)]


def drawn_with(key, counter, draw):
    g = Generator(key)
    g.state = key, counter
    return draw(g).numpy()


@pytest.mark.parametrize("n", [1, 2, 127, 128, 129, 1001])
@pytest.mark.parametrize("loc, scale", [(0.0, 1.0), (3.25, 0.5), (-1e-3, 2e20), (1.5, 0.0), (float("nan"), 1.0)])
def test_normal_numbers_are_those_of_the_c_library_rounded(n, loc, scale):
    """float32 is computed by other functions, whose results have the same bits once they are rounded."""
    wanted = []
    for a, b in numbers_of(5, 2**32 - 7, (n + 1) // 2):
        r = scale * math.sqrt(-2 * math.log((float(a) + 0.5) * 2.0**-64))
        angle = 2 * math.pi * ((b >> 11) * 2.0**-53)
        wanted += [loc + r * math.cos(angle), loc + r * math.sin(angle)]
    for dtype in ("float64", "float32"):
        y = drawn_with(5, 2**32 - 7, lambda g, dtype=dtype: g.normal(shape=n, loc=loc, scale=scale, dtype=dtype))
        assert np.array_equal(y, np.array(wanted[:n]).astype(dtype), equal_nan=True)


@pytest.mark.parametrize("n", [1, 63, 64, 65, 1000])
@pytest.mark.parametrize("low, high", [(0, 1), (0, 2), (-3, 997), (0, 2**33 + 1), (-2**63, 2**63), (5, 5 + 2**62 + 1)])
def test_integers_are_the_first_that_fit(n, low, high):
    mask, wanted = (1 << (high - low - 1).bit_length()) - 1, []
    for i in range(n):
        attempt = 0
        while True:
            c = 2**40 + i
            first = philox(c + (attempt << 64), 9)
            a, b = (first[k] | first[k + 1] << 32 for k in (0, 2))
            v = next((v & mask for v in (a, b) if v & mask < high - low), None)
            if v is not None: break
            attempt += 1
        wanted.append(low + v)
    assert drawn_with(9, 2**40, lambda g: g.integers(shape=n, low=low, high=high)).tolist() == wanted


@pytest.mark.parametrize("n", [0, 1, 2, 63, 64, 65, 66, 130, 500])
def test_a_permutation_exchanges_from_the_last_on(n):
    wanted = list(range(n))
    for i in range(n - 1, 0, -1):
        mask, attempt = (1 << i.bit_length()) - 1, 0
        while True:
            w = philox(2**33 + i + (attempt << 64), 3)
            j = next((v for v in ((w[k] | w[k + 1] << 32) & mask for k in (0, 2)) if v <= i), None)
            if j is not None: break
            attempt += 1
        wanted[i], wanted[j] = wanted[j], wanted[i]
    assert drawn_with(3, 2**33, lambda g: g.permutation(n)).tolist() == wanted
