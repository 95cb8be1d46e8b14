"""Initializers: bounds and moments by their formulas, PyTorch's gains, and properties of structured ones."""

import math

import numpy as np
import pytest
from peers import torch

import cygrad as cg
from cygrad import nn
from cygrad.nn import init


def generator(seed=0):
    return cg.random.Generator(seed)


NAMES = ["linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "sigmoid",
         "tanh", "relu", "selu"]


def test_gains_are_those_of_pytorch():
    for name in NAMES: assert math.isclose(init.calculate_gain(name), torch.nn.init.calculate_gain(name))
    for a in None, 0.0, 0.2, math.sqrt(5):
        assert math.isclose(init.calculate_gain("leaky_relu", a), torch.nn.init.calculate_gain("leaky_relu", a))


SHAPE = (60, 40, 3, 2)
IN, OUT = 40 * 6, 60 * 6


@pytest.mark.parametrize("fill, kind, scale", [
    (lambda x, g: init.uniform_(x, -2, 4, g), "uniform", (-2, 4)),
    (lambda x, g: init.normal_(x, 3, 2, g), "normal", (3, 2)),
    (lambda x, g: init.xavier_uniform_(x, 2, g), "uniform", 2 * math.sqrt(6 / (IN + OUT))),
    (lambda x, g: init.xavier_normal_(x, 2, g), "normal", 2 * math.sqrt(2 / (IN + OUT))),
    (lambda x, g: init.kaiming_uniform_(x, generator=g), "uniform", math.sqrt(6 / IN)),
    (lambda x, g: init.kaiming_uniform_(x, math.sqrt(5), generator=g), "uniform", 1 / math.sqrt(IN)),
    (lambda x, g: init.kaiming_uniform_(x, 0, "fan_out", "tanh", g), "uniform", 5 / 3 * math.sqrt(3 / OUT)),
    (lambda x, g: init.kaiming_normal_(x, generator=g), "normal", math.sqrt(2 / IN)),
    (lambda x, g: init.kaiming_normal_(x, 0.5, "fan_out", generator=g), "normal", math.sqrt(2 / 1.25 / OUT)),
    (lambda x, g: init.NormalInitializer(0.3, g)(x.shape, x.dtype), "normal", 0.3),
    (lambda x, g: init.UniformInitializer((-3, 3), g)(x.shape, x.dtype), "uniform", 3),
])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_distributions(fill, kind, scale, dtype):
    x = nn.Parameter(cg.zeros(SHAPE, dtype=dtype))
    with cg.record():
        y = fill(x, generator())
    a = y.detach().numpy()
    assert y.dtype == dtype and y.is_leaf and y.shape == SHAPE and len(np.unique(a)) > a.size * 0.9
    if kind == "uniform":
        low, high = scale if isinstance(scale, tuple) else (-scale, scale)
        assert low <= a.min() < low + 0.01 * (high - low) and high - 0.01 * (high - low) < a.max() <= high
        mean, std = (low + high) / 2, (high - low) / math.sqrt(12)
    else:
        mean, std = scale if isinstance(scale, tuple) else (0, scale)
        assert 3.5 < abs((a - mean) / std).max() < 6
    assert abs(a.mean() - mean) < 5 * std / math.sqrt(a.size) and abs(a.std() / std - 1) < 0.02
    np.testing.assert_array_equal(fill(nn.Parameter(cg.ones(SHAPE, dtype=dtype)), generator()).detach().numpy(), a)


def test_truncated_normal():
    x = nn.Parameter(cg.zeros(4000))
    assert init.trunc_normal_(x, 1.0, 2.0, 0.0, 4.0, generator()) is x
    a = x.numpy()
    assert 0 <= a.min() < 0.1 and 3.9 < a.max() <= 4 and abs(a.mean() - 1.7127) < 0.1
    assert init.trunc_normal_(cg.zeros(0)).shape == (0,)


def test_constants_and_structure():
    x = nn.Parameter(cg.zeros(2, 3))
    assert (init.constant_(x, 1.5).numpy() == 1.5).all() and x.version == 1
    assert (init.ones_(x).numpy() == 1).all() and (init.zeros_(x).numpy() == 0).all()
    np.testing.assert_array_equal(init.eye_(x).numpy(), np.eye(2, 3))
    assert init.ConstantInitializer(2)((3,)).numpy().tolist() == [2, 2, 2]
    for shape, groups in (((4, 2, 3), 2), ((2, 4, 3, 5), 1), ((6, 2, 1, 2, 3), 3)):
        w = init.dirac_(cg.ones(shape), groups)
        theirs = torch.nn.init.dirac_(torch.ones(shape), groups)
        np.testing.assert_array_equal(w.numpy(), theirs.numpy())


@pytest.mark.parametrize("shape", [(5, 5), (3, 7), (7, 3), (4, 2, 3), (8, 2, 2), (1, 1), (0, 3)])
def test_orthogonal(shape):
    x = init.orthogonal_(nn.Parameter(cg.zeros(shape, dtype="float64")), 2.0, generator())
    a = x.numpy().reshape(shape[0], math.prod(shape[1:]))
    small = a @ a.T if a.shape[0] <= a.shape[1] else a.T @ a
    np.testing.assert_allclose(small, 4 * np.eye(len(small)), 0, 1e-12)
    y = init.OrthogonalInitializer(2.0, generator())(shape, "float64")
    np.testing.assert_array_equal(x.numpy(), y.numpy())


def test_orthogonal_is_uniform_in_its_signs():
    g = generator()
    traces = np.array([np.trace(init.orthogonal_(cg.zeros(2, 2), generator=g).numpy()) for _ in range(400)])
    assert abs((traces > 0.01).mean() - 0.25) < 0.1     # half are reflections, with trace 0, half are rotations
    assert abs((traces < -0.01).mean() - 0.25) < 0.1


def test_sparse():
    x = init.sparse_(cg.zeros(10, 6, dtype="float64"), 0.25, 2.0, generator())
    assert ((x.numpy() == 0).sum(axis=0) == 3).all()
    kept = x.numpy()[x.numpy() != 0]
    assert 1.3 < kept.std() < 2.7 and len({tuple(c) for c in (x.numpy() == 0).T}) > 1


def test_formulas_of_nnabla():
    assert init.calc_normal_std_he_forward(3, 7, (2, 5)) == math.sqrt(2 / 30)
    assert init.calc_normal_std_he_backward(3, 7, (2, 5)) == math.sqrt(2 / 70)
    assert init.calc_normal_std_glorot(3, 7, (2, 5)) == math.sqrt(2 / 37)
    low, high = init.calc_uniform_lim_glorot(3, 7)
    assert -low == high == math.sqrt(6 / 10)


def test_uniform_integers():
    make = init.UniformIntInitializer((-3, 4), generator())
    x = make((100, 70))
    assert x.dtype == "float32" and x.shape == (100, 70) and make((2,), "float64").dtype == "float64"
    values, counts = np.unique(x.numpy(), return_counts=True)
    assert values.tolist() == list(range(-3, 4)) and 850 < counts.min() and counts.max() < 1150
    np.testing.assert_array_equal(init.UniformIntInitializer((-3, 4), generator())((100, 70)).numpy(), x.numpy())
    assert (init.UniformIntInitializer()((100,)).numpy() < 10).all() and make((), "int64").item() in range(-3, 4)


@pytest.mark.parametrize("shape", [(2, 3, 1000), (1000,), (4, 1), (), (0,), (3, 0), (0, 3)])
@pytest.mark.parametrize("dtype", [None, "float64"])
def test_ranges(shape, dtype):
    x = init.RangeInitializer(-2, 0.1)(shape, dtype)
    expected = [-2 + 0.1 * i for i in range(shape[-1] if shape else 1)]
    assert x.dtype == (dtype or "float32") and x.shape == shape
    np.testing.assert_array_equal(x.numpy(), np.broadcast_to(np.array(expected if shape else expected[0], x.dtype),
                                                             shape))
    assert init.RangeInitializer()((3,)).numpy().tolist() == [0, 1, 2]


@pytest.mark.parametrize("dim, shape", [(0, (4,)), (1, (3,)), (-1, (2,)), (0, (4, 1, 1))])
def test_weight_normalization_leaves_a_weight_as_it_is(dim, shape):
    w = nn.Parameter(init.normal_(cg.zeros(4, 3, 2, dtype="float64"), generator=generator()))
    g = init.WeightNormalizationScaleInitializer(w, dim)(shape, "float64")
    v = torch.from_numpy(w.numpy().copy())
    wanted = torch.linalg.vector_norm(v, dim=[i for i in range(3) if i != dim % 3]).numpy()
    np.testing.assert_allclose(g.numpy(), wanted.reshape(shape), 1e-12)
    make = init.WeightNormalizationScaleInitializer(cg.zeros(2, 2), eps=4.0)
    assert make((2,)).numpy().tolist() == [2, 2] and make((2,)).dtype == "float32"
    big = init.WeightNormalizationScaleInitializer(np.full((1, 4), 1e30, "float32"))((1,))
    assert big.numpy() == np.float32(2e30)          # (in float32 the squares are inf)


def test_a_failed_allocation_changes_nothing():
    for fill in (init.normal_, init.xavier_uniform_, init.orthogonal_, lambda x: init.sparse_(x, 0.5)):
        for n in range(1, 5):
            x = nn.Parameter(cg.ones(3, 3))
            with cg.testing.fail_allocation(n) as f:
                try: fill(x)
                except MemoryError: pass
            if f.failed: assert (x.numpy() == 1).all() and x.version == 0 and not cg.is_recording()
