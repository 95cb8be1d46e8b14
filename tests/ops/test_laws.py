"""Random numbers of further distributions: compared with SciPy's distributions, for fixed seeds; states, threads,
parameters that are tensors; categories, choices and shuffles."""

import copy
import warnings

import numpy as np
import pytest
from scipy import stats

import cygrad as cg
from cygrad.random import Generator
from cygrad.testing import assert_no_leak, fail_allocation

N = 100_000
DRAWS = {
    "exponential": lambda g: g.exponential((3, 5), 2), "gumbel": lambda g: g.gumbel(7, dtype="float64"),
    "gamma": lambda g: g.gamma((9,), 0.5), "gamma of tensors": lambda g: g.gamma(np.array([[1.0], [2]]), np.ones(3)),
    "poisson": lambda g: g.poisson((40,), 30.0), "small poisson": lambda g: g.poisson((40,), 3, dtype="int16"),
    "truncated": lambda g: g.truncated_normal((33,), 1.0, 5.0),
    "categorical": lambda g: g.categorical(np.zeros((4, 3))),
    "probs": lambda g: g.categorical(probs=[1, 2, 3], shape=9),
    "choice": lambda g: g.choice(10, 7), "choice of different": lambda g: g.choice(10, (2, 3), replace=False),
    "choice by p": lambda g: g.choice(3, 9, p=[1, 2, 3]),
    "choice of different by p": lambda g: g.choice(cg.arange(8).reshape(4, 2), 3, False, [1, 2, 3, 4]),
    "choice of rows": lambda g: g.choice(cg.arange(8).reshape(4, 2), 5),
}
KNOWN = [                                           # of the key 7
    [0.2874791302417942, 2.457394227706865, 0.22905594846379412],
    [-0.3270735174094902, 2.412953116798115, -0.4612982273280412],
    [4.472284965805428, 4.477172937521054, 7.556269227464864],
    [6, 6, 0, 3, 10, 3],
    [50, 39, 50, 40, 36, 42],
    [1.1776718735456866, 1.141564361475969, 1.058564830741238],
]
each_draw = pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)


# ---- states ----------------------------------------------------------------------------------------------------------

@each_draw
def test_a_state_gives_the_same_again(draw):
    g = Generator(5)
    g.normal(3)
    state, twin = g.state, copy.copy(g)
    first = draw(g)
    assert g.state[1] > state[1]
    after = g.state
    again = draw(g)
    assert first.size < 8 or again.tolist() != first.tolist()
    g.state = state
    assert draw(g).tolist() == first.tolist() == draw(twin).tolist()
    assert g.state == after
    assert draw(Generator(6)).tolist() != first.tolist() or first.size < 8


@each_draw
def test_a_failed_allocation_leaves_the_state(draw):
    g = Generator(3)
    wanted = draw(g)
    after, n = g.state, 0
    g.state = 3, 0
    while True:
        before = g.state
        try:
            with fail_allocation(n + 1):
                found = draw(g)
            break
        except MemoryError:
            assert g.state == before
            n += 1
    assert n > 0 and found.tolist() == wanted.tolist() and g.state == after


@each_draw
def test_nothing_stays_alive(draw):
    with assert_no_leak():
        draw(Generator(1))


def test_thread_counts_agree(two_threads):
    shape, a = (3, 33_333), np.linspace(0.1, 40, 33_333)
    draws = [
        lambda g: g.exponential(shape), lambda g: g.gumbel(shape, a, 1.0), lambda g: g.gamma(shape, a),
        lambda g: g.poisson(shape, a), lambda g: g.truncated_normal(shape, a - 3, a), lambda g: g.choice(9, shape),
        lambda g: g.categorical(np.zeros((3, 5)), shape=(33_333, 3)),
    ]
    for draw in draws:
        cg.set_num_threads(1)
        one = draw(Generator(4))
        cg.set_num_threads(2)
        assert draw(Generator(4)).numpy().tobytes() == one.numpy().tobytes()


def test_an_element_does_not_depend_on_the_others():
    """A gamma or Poisson number and a truncated one is a function of the key, its block and its parameters."""
    a = np.linspace(0.2, 30, 500)
    for draw in (lambda g, a: g.gamma(a, dtype="float64"), lambda g, a: g.poisson(a),
                 lambda g, a: g.truncated_normal(low=a, high=a + 1, dtype="float64")):
        g = Generator(8)
        wanted = draw(g, a).numpy()
        for i in (0, 1, 77, 499):
            g.state = 8, i
            assert draw(g, a[i:i + 1]).item() == wanted[i]


def test_known_numbers():
    """The numbers of a seed stay the same in later versions."""
    found = [Generator(7).exponential(3, dtype="float64"), Generator(7).gumbel(3, dtype="float64"),
             Generator(7).gamma(3.5, shape=3, dtype="float64"), Generator(7).poisson((6,), 4.5),
             Generator(7).poisson((6,), 45.0), Generator(7).truncated_normal(3, 1.0, 2.0, dtype="float64")]
    wanted = KNOWN
    for f, w in zip(found, wanted, strict=True):
        np.testing.assert_allclose(f.numpy(), w, rtol=1e-13)


def test_module_functions_draw_from_the_default_generator():
    cg.random.seed(11)
    r, x = cg.random, cg.arange(9)
    found = [r.exponential(4), r.gumbel(4), r.gamma(2.0, shape=4), r.poisson(3.0, shape=4), r.truncated_normal(4),
             r.categorical(np.zeros(5), 4), r.choice(9, 4), r.shuffle(x)]
    g, y = Generator(11), cg.arange(9)
    wanted = [g.exponential(4), g.gumbel(4), g.gamma(2.0, shape=4), g.poisson(3.0, shape=4), g.truncated_normal(4),
              g.categorical(np.zeros(5), 4), g.choice(9, 4), g.shuffle(y)]
    assert found.pop() is wanted.pop() is None and x.tolist() == y.tolist()
    for f, w in zip(found, wanted, strict=True): assert f.tolist() == w.tolist()
    assert r.default_generator.state == g.state


# ---- distributions ---------------------------------------------------------------------------------------------------

CONTINUOUS = {
    "exponential": (lambda g, d: g.exponential((N,), 2.5, dtype=d), stats.expon(0, 2.5)),
    "gumbel": (lambda g, d: g.gumbel((N,), 1.0, 0.5, dtype=d), stats.gumbel_r(1, 0.5)),
    **{f"gamma {a}": (lambda g, d, a=a: g.gamma((N,), a, 3.0, dtype=d), stats.gamma(a, 0, 3))
       for a in (0.05, 0.5, 1.0, 1.5, 20.0, 1e6)},
    **{f"truncated {low} {high}": (
        lambda g, d, low=low, high=high: g.truncated_normal(N, low, high, 1.0, 2.0, dtype=d),
        stats.truncnorm((low - 1) / 2, (high - 1) / 2, 1, 2))
       for low, high in ((-3.0, 5.0), (-np.inf, np.inf), (0.5, 1.5), (4.0, 4.5), (-9.0, -7.0), (9.0, np.inf),
                         (-np.inf, -5.0), (25.0, 80.0), (-60.0, 1.5))},
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("draw, law", CONTINUOUS.values(), ids=CONTINUOUS)
def test_distributions(draw, law, dtype):
    x = draw(Generator(21), dtype)
    assert x.dtype == dtype and x.shape == (N,)
    x = x.numpy().astype("float64")
    assert stats.kstest(x, law.cdf).pvalue > 0.001
    mean, variance = law.stats("mv")
    assert abs(x.mean() - mean) < 5 * np.sqrt(variance / N)
    assert abs(x.var() / variance - 1) < 0.1
    low, high = law.support()
    assert low - 1e-12 <= x.min() and x.max() <= high + 1e-12
    assert abs(np.corrcoef(x[::2], x[1::2])[0, 1]) < 0.03


@pytest.mark.parametrize("rate", [0.01, 0.7, 9.99, 10.0, 35.0, 1e4, 1e9])
def test_poisson(rate):
    x = Generator(22).poisson((N,), rate).numpy()
    law = stats.poisson(rate)
    assert x.dtype == "int64" and x.min() >= 0
    assert abs(x.mean() - rate) < 5 * np.sqrt(rate / N) and abs(x.var() / rate - 1) < 0.1 + 5 / np.sqrt(N * rate)
    edges = np.unique(law.ppf(np.linspace(0, 1, 30)[1:-1]))
    cells = np.diff(np.concatenate([[0], law.cdf(edges), [1]]))
    counts = np.histogram(x, np.concatenate([[-np.inf], edges + 0.5, [np.inf]]))[0]
    wide = cells > 1e-4
    assert stats.chisquare(counts[wide], cells[wide] / cells[wide].sum() * counts[wide].sum()).pvalue > 0.001


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
def test_poisson_fits_its_dtype(dtype):
    """The largest lam that is allowed gives samples that fit; a larger one raises before a draw."""
    g, most = Generator(5), np.iinfo(dtype).max
    lam = min(np.floor((np.sqrt(float(most) - 5) - 5)**2), 2.0**62)
    state = g.state
    for wrong in (1e12, 1e18) if most < 2**32 else (2.0**63,):
        with pytest.raises(ValueError, match="poisson: lam "): g.poisson((3,), wrong, dtype=dtype)
        with pytest.raises(ValueError, match="poisson: lam "): g.poisson(np.array([1.0, wrong, 2.0]), dtype=dtype)
    assert g.state == state and g.poisson((0,), 300, dtype="int8").shape == (0,)
    x = g.poisson((N,), lam, dtype=dtype).numpy().astype("float64")
    assert x.min() >= 0 and abs(x.mean() - lam) < 5 * np.sqrt(lam / N) + 1e-6 * lam
    assert g.poisson((4,), 1e12, dtype="float32").numpy().min() > 9e11


def test_edges_of_parameters():
    g = Generator(1)
    assert g.exponential((5,), 0.0).tolist() == [0] * 5 and g.gamma((5,), 0.0).tolist() == [0] * 5
    assert g.gamma((2,), np.inf).tolist() == [np.inf] * 2 and g.poisson((5,), 0).tolist() == [0] * 5
    assert g.truncated_normal(5, 3.0, 3.0).tolist() == [3] * 5
    assert g.truncated_normal(5, 1e200, np.inf, dtype="float64").tolist() == [1e200] * 5
    far = g.truncated_normal(1000, 40.0, 41.0, dtype="float64").numpy()
    assert (far >= 40).all() and far.mean() - 40 < 0.05
    low, high = np.float32(0.1).item(), np.nextafter(np.float32(0.1), np.float32(1)).item()
    assert set(g.truncated_normal(99, low, high).tolist()) <= {low, high}
    assert (g.gumbel(N).numpy() > -5).all() and np.isfinite(g.gumbel(N).numpy()).all()
    big = g.poisson((1000,), 2.0**62).numpy()
    assert (big > 0).all() and abs(big / 2.0**62 - 1).max() < 1e-6
    for draw in (g.exponential, g.gumbel, g.truncated_normal): assert draw((0, 3)).shape == (0, 3)
    assert g.gamma((0,), 1.0).shape == g.poisson((0,), 1).shape == (0,)


def test_parameters_broadcast():
    g = Generator(2)
    scale = cg.tensor([[1.0], [100]])
    x = g.exponential((2, 50), scale)
    assert x.shape == (2, 50) and x[1].mean().item() > 20 * x[0].mean().item()
    assert g.gamma(np.array([1.0, 2, 3]), np.array([[1], [2]])).shape == (2, 3)     # the common shape
    assert g.poisson(cg.tensor([[1, 2]], dtype="int32"), shape=(3, 2)).shape == (3, 2)
    assert g.exponential(scale=cg.tensor(2.0)).shape == ()
    assert g.gamma(2).shape == g.poisson(4).shape == () and g.exponential(4).shape == (4,)
    assert g.gamma(2.0, 1.0, (3,)).shape == g.gamma((3,), 2.0).shape == g.gamma(a=2.0, size=3).shape == (3,)
    together = Generator(3).gamma(np.array([0.5, 7.0]), shape=(4, 2), dtype="float64")
    alone = Generator(3).gamma((4, 2), 7.0, dtype="float64")
    assert together[:, 1].tolist() == alone[:, 1].tolist()


def test_gradients_by_composition():
    scale = cg.tensor([1.0, 2, 3], requires_grad=True)
    with cg.record():
        e = cg.random.exponential((5, 3))
        (scale * e).sum().backward()
        with pytest.raises(RuntimeError, match="gradients flow through"):
            cg.random.exponential((5, 3), scale)
    np.testing.assert_allclose(scale.grad.numpy(), e.numpy().sum(0), rtol=1e-5)


# ---- categories, choices, shuffles -----------------------------------------------------------------------------------

def frequencies(x, n):
    return np.bincount(x.numpy().ravel(), minlength=n)


@pytest.mark.parametrize("by", ["logits", "probs"])
def test_categorical(by):
    p = np.array([[0.1, 0.0, 0.6, 0.3], [0.25, 0.25, 0.5, 0.0]])
    with np.errstate(divide="ignore"): given = np.log(p) + 700 if by == "logits" else 3 * p
    x = Generator(4).categorical(**{by: given.T}, axis=0, shape=(N, 2))
    assert x.shape == (N, 2) and x.dtype == "int64"
    for r in range(2):
        counts = frequencies(x[:, r], 4)
        some = p[r] > 0
        assert (counts[~some] == 0).all() and stats.chisquare(counts[some], N * p[r][some]).pvalue > 0.001
    assert Generator(4).categorical(**{by: given}).shape == (2,)
    assert Generator(4).categorical(**{by: given}, shape=(0, 2)).shape == (0, 2)
    assert Generator(4).categorical(probs=np.ones((0, 3))).shape == (0,)


def test_choice():
    g = Generator(5)
    assert stats.chisquare(frequencies(g.choice(7, N), 7)).pvalue > 0.001
    assert stats.chisquare(frequencies(g.choice(3, N, p=[1, 2, 5]), 3), N * np.array([1, 2, 5]) / 8).pvalue > 0.001
    assert 0 <= g.choice(5).item() < 5 and g.choice(5).shape == ()
    assert sorted(g.choice(5, 5, replace=False).tolist()) == [0, 1, 2, 3, 4]
    assert sorted(g.choice(5, 4, replace=False, p=[1e-300, 1, 1, 0, 1]).tolist()) == [0, 1, 2, 4]
    rows = cg.arange(12).reshape(4, 3)
    picked = g.choice(rows, (2, 5))
    assert picked.shape == (2, 5, 3) and (picked.numpy()[..., 1] - picked.numpy()[..., 0] == 1).all()
    assert g.choice([5.0, 7.0], shape=3).dtype == "float32" and g.choice(0, (0, 2)).shape == (0, 2)


def test_weights_without_replacement():
    """The first has the weights p, and the second those of the rest."""
    g, p, counts = Generator(6), np.array([1.0, 2, 3, 4]) / 10, np.zeros((4, 4))
    for _ in range(20_000): counts[tuple(g.choice(4, 2, False, p).tolist())] += 1
    wanted = p[:, None] * p / (1 - p[:, None]) * (1 - np.eye(4))
    off = ~np.eye(4, dtype=bool)
    assert (counts.diagonal() == 0).all()
    assert stats.chisquare(counts[off], 20_000 * wanted[off]).pvalue > 0.001


def test_shuffle():
    g, counts = Generator(7), {}
    for _ in range(6000):
        x = cg.arange(3)
        g.shuffle(x)
        counts[tuple(x.tolist())] = counts.get(tuple(x.tolist()), 0) + 1
    assert len(counts) == 6 and stats.chisquare(list(counts.values())).pvalue > 0.001
    x = cg.arange(12).reshape(3, 4).T                # strided, along another axis
    columns = {tuple(c) for c in x.numpy().T.tolist()}
    version = x.version
    g.shuffle(x, axis=1)
    assert x.version > version and {tuple(c) for c in x.numpy().T.tolist()} == columns
    assert Generator(9).permutation(20).tolist() == (lambda y: (Generator(9).shuffle(y), y.tolist())[1])(cg.arange(20))


def test_shuffle_that_fails_leaves_the_generator():
    g = Generator(1)
    x = cg.arange(5)
    for n in range(1, 4):
        try:
            with fail_allocation(n): g.shuffle(x)
        except MemoryError:
            assert g.state == (1, 0) and x.tolist() == [0, 1, 2, 3, 4]
        else: break
    else: raise AssertionError("every allocation failed")
    w = cg.tensor([1.0, 2], requires_grad=True)
    before = g.state
    with cg.record():
        with pytest.raises(RuntimeError, match=r"shuffle\(\) of a tensor"): g.shuffle(w * 2)
        y = w * w
        saved = cg.tensor([3.0, 4])
        z = (y * saved).sum()
    assert g.state == before
    g.shuffle(saved)                                 # it was saved for backward
    with pytest.raises(cg.InplaceError): z.backward()


def test_logits_that_look_like_probabilities_warn():
    """At the caller's line, once for each with Python's default filter; what cannot be probabilities does not."""
    p = np.array([[0.25, 0.75], [0.5, 0.5]])
    text = "^categorical: each row of logits is at least 0 and sums to 1, as probabilities do; pass those as probs=p, "
    for given in (p, p[0], p.astype("float32"), cg.tensor(p), cg.softmax(cg.ones(1000) * 3), [0.1] * 10):
        with pytest.warns(UserWarning, match=text) as seen: Generator(0).categorical(given)
        assert [w.filename for w in seen] == [__file__]
    with pytest.warns(UserWarning, match=text): cg.random.categorical(p.T, axis=0)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("default")
        for _ in range(3): cg.random.categorical(p)
        cg.random.categorical(p)
    assert len(seen) == 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for given in (np.log(p), p - 1, p * 1.01, np.ones((3, 1)), np.zeros((0, 2)), [[0.5, 0.5], [0.5, 0.6]],
                      [[1.5, -0.5]], [-np.inf, 0]):
            Generator(0).categorical(given)
        Generator(0).categorical(probs=p)
        Generator(0).choice(2, p=[0.5, 0.5])
    drawn = Generator(1).categorical(probs=p[0], shape=1000).tolist()
    assert drawn == Generator(1).categorical(np.log(p[0]), 1000).tolist()
