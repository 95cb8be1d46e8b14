"""vmap: axes of arguments and results, nesting, random numbers, writes in place, and what it refuses."""

import re
import warnings
from collections import OrderedDict

import numpy as np
import pytest

import cygrad as cg
from cygrad.core.errors import PerformanceWarning
from cygrad.func import grad, hessian, jacobian, jvp, vjp, vmap
from cygrad.graph import Net, Workspace


def near(x, y, tol=1e-9):
    np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=tol, atol=tol)


def f64(*shape, seed=0):
    return cg.tensor(np.random.default_rng(seed).standard_normal(shape))


# ---- axes ------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2, -3])
def test_the_axis_of_an_argument(axis):
    x = f64(2, 3, 4)
    seen = []

    def f(x):
        seen.append((x.shape, x.ndim, x.size, x.dtype))
        return x * 2

    y = vmap(f, in_axes=axis)(x)
    near(y, 2 * np.moveaxis(np.asarray(x), axis, 0))
    shape = tuple(n for i, n in enumerate((2, 3, 4)) if i != axis % 3)
    assert seen == [(shape, 2, int(np.prod(shape)), np.dtype("float64"))]


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2, -3])
def test_the_axis_of_a_result(axis):
    x = f64(2, 3, 4)
    near(vmap(lambda x: x + 1, out_axes=axis)(x), np.moveaxis(np.asarray(x), 0, axis) + 1)
    near(vmap(vmap(lambda x: x, out_axes=-1), out_axes=1)(x), np.transpose(np.asarray(x), (2, 0, 1)))


def test_arguments_that_are_shared():
    x, w = f64(5, 3), f64(3, seed=1)
    for axes in ((0, None), [0, None]): near(vmap(cg.matmul, in_axes=axes)(x, w), np.asarray(x) @ np.asarray(w))
    near(vmap(lambda x, scale: x * scale, (0, None))(x, 3), 3 * np.asarray(x))
    near(vmap(lambda x, text: x * len(text), (0, None))(x, "four"), 4 * np.asarray(x))
    near(vmap(lambda x, w: x @ w, in_axes=(1, 0))(x.T, cg.stack([w] * 5)), np.asarray(x) @ np.asarray(w))


def test_axes_in_containers():
    x, w, b = f64(4, 3), f64(3, 4, seed=1), f64(3, seed=2)
    f = vmap(lambda p, more: p["x"] * p["w"] + more[0] * more[1]["b"],
             in_axes=({"x": 0, "w": 1}, [None, {"b": None}]))
    near(f({"x": x, "w": w}, [2.0, {"b": b}]), np.asarray(x) * np.asarray(w).T + 2 * np.asarray(b))
    f = vmap(lambda p, y: p["x"] + p["w"][0] + y, in_axes=({"x": None, "w": [0]}, None))
    near(f({"x": b, "w": [x]}, b), np.asarray(x) + 2 * np.asarray(b))
    near(vmap(lambda p: p[0] * p[1])((x, x)), np.asarray(x) ** 2)
    near(vmap(lambda p, x: p[0] + x, in_axes=(None, 0))([b, b], x), np.asarray(x) + np.asarray(b))


def test_axes_of_results_in_containers():
    x = f64(2, 3, 4)
    a, (b, c), d = vmap(lambda x: (x, (x, x.sum()), {"x": x}), out_axes=(0, (1, 0), {"x": 2}))(x)
    assert (a.shape, b.shape, c.shape, d["x"].shape) == ((2, 3, 4), (3, 2, 4), (2,), (3, 4, 2))
    near(d["x"], np.moveaxis(np.asarray(x), 0, 2))
    a, b = vmap(lambda x: (x, x), out_axes=1)(x)
    near(a, b)
    assert type(vmap(lambda x: OrderedDict(y=x))(x)) is OrderedDict
    assert vmap(lambda x: [x])(x)[0].shape == x.shape and vmap(lambda x: (x, None, "text"))(x)[1:] == (None, "text")


def test_results_that_do_not_depend():
    x, w = f64(5, 3), f64(3, seed=1)
    near(vmap(lambda x: w * 2)(x), np.tile(2 * np.asarray(w), (5, 1)))
    near(vmap(lambda x: 3.5)(x), np.full(5, 3.5))
    near(vmap(lambda x: cg.arange(3))(x), np.tile(np.arange(3), (5, 1)))
    same, y = vmap(lambda x: (w * 2, x), out_axes=(None, 0))(x)
    near(same, 2 * np.asarray(w))
    near(vmap(lambda x: vmap(lambda y: x)(w))(w), np.tile(np.asarray(w)[:, None], (1, 3)))


def test_keyword_arguments_are_mapped_along_the_first_axis():
    x, k = f64(2, 3), f64(2, seed=1)
    near(vmap(lambda x, *, k: x * k)(x, k=k), np.asarray(x) * np.asarray(k)[:, None])


@pytest.mark.parametrize("call, message", [
    (lambda x: vmap(cg.add)(x, x[:1]), "input 0 has 2 slices along its axis, and input 1 has 1"),
    (lambda x: vmap(lambda p: p["a"] + p["b"])({"a": x, "b": x[:1]}), "input 0 has 2 slices"),
    (lambda x: vmap(cg.add, (0, 1))(x, x), "input 0 has 2 slices along its axis, and input 1 has 3"),
    (lambda x: vmap(lambda: x)(), "no argument is mapped"),
    (lambda x: vmap(cg.exp, None)(x), "no argument is mapped"),
    (lambda x: vmap(cg.exp)(1.0), "maps axis 0 of input 0, which has shape ()"),
    (lambda x: vmap(cg.exp, 2)(x), "maps axis 2 of input 0"), (lambda x: vmap(cg.exp, -3)(x), "maps axis -3 of input"),
    (lambda x: vmap(cg.add, (0,))(x, x), "in_axes has 1 entries for 2"),
    (lambda x: vmap(cg.exp, (0.0,))(x), "in_axes must be"), (lambda x: vmap(cg.exp, True)(x), "in_axes must be"),
    (lambda x: vmap(lambda p: p[0], ((0, 0),))((x,)), "in_axes must be"),
    (lambda x: vmap(lambda p: p["a"], ({"b": 0},))({"a": x}), "in_axes must be"),
    (lambda x: vmap(cg.exp, 0, "text")(x), "out_axes must be"), (lambda x: vmap(cg.exp, 0, (0, 0))(x), "out_axes must"),
    (lambda x: vmap(lambda x: (x, x), 0, (0,))(x), "out_axes must be"),
    (lambda x: vmap(cg.exp, 0, 2)(x), "out_axes has 2"), (lambda x: vmap(cg.exp, 0, -3)(x), "out_axes has -3"),
    (lambda x: vmap(cg.exp, 0, None)(x), "differs from slice to slice"),
    (lambda x: vmap(cg.exp)(x[:0]), "the mapped axis has size 0")])
def test_axes_that_do_not_fit(call, message):
    with pytest.raises(ValueError, match=f"^vmap: .*{re.escape(message)}"): call(f64(2, 3))
    assert vmap(lambda x: x.sum())(cg.ones((2, 3))).tolist() == [3, 3]


# ---- nesting ---------------------------------------------------------------------------------------------------------

def test_lanes_in_lanes():
    x, y, z = f64(2, 3), f64(5, 3, seed=1), f64(7, 3, seed=2)
    found = vmap(lambda x: vmap(lambda y: vmap(lambda z: x * y * z)(z))(y))(x)
    near(found, np.asarray(x)[:, None, None] * np.asarray(y)[:, None] * np.asarray(z))
    a, b = f64(2, 3, 4), f64(2, 3, 4, seed=1)
    near(vmap(vmap(vmap(cg.mul)))(a, b), np.asarray(a) * np.asarray(b))
    gram = vmap(vmap(lambda a, b: (a * b).sum(), (None, 0)), (0, None))(x, y)
    near(gram, np.asarray(x) @ np.asarray(y).T)
    near(vmap(lambda y: vmap(lambda x: x * y, out_axes=1)(x), out_axes=-1)(y),
         (np.asarray(y)[:, None] * np.asarray(x)).T)


def test_derivatives_of_lanes_and_lanes_of_derivatives():
    x, t = f64(4, 3), f64(4, 3, seed=1)
    def f(x): return (x ** 3).sum() * x[0]

    each = vmap(grad(f))(x)
    near(each, grad(lambda x: vmap(f)(x).sum())(x))
    y, dy = vmap(lambda x, t: jvp(f, (x,), (t,)))(x, t)
    near(dy, (np.asarray(each) * np.asarray(t)).sum(1))
    near(jvp(vmap(f), (x,), (t,))[1], dy)
    near(vmap(hessian(f))(x)[2], hessian(f)(x[2]))
    near(vmap(grad(lambda x: (grad(f)(x) ** 2).sum()))(x)[1], grad(lambda x: (grad(f)(x) ** 2).sum())(x[1]))
    near(vjp(vmap(f), x)[1](cg.ones(4, dtype="float64"))[0], each)


def test_lanes_in_a_recorded_step():
    """A backward pass around vmap reaches the variables outside."""
    w = f64(3).attach_grad()
    x = f64(5, 3, seed=1)
    with cg.record(): y = (vmap(lambda x: cg.tanh(x @ w))(x) ** 2).sum()
    y.backward()
    a = np.tanh(np.asarray(x) @ np.asarray(w.detach()))
    near(w.grad, (2 * a * (1 - a * a)) @ np.asarray(x))


# ---- what functions may do -------------------------------------------------------------------------------------------

def test_random_numbers():
    """A draw that reads a mapped tensor has other numbers in each lane, and another draw the same in all."""
    x = cg.zeros((3, 1000))
    with cg.train_mode(): y = vmap(lambda x: cg.dropout(x + 1, 0.5))(x)
    kept = np.asarray(y) != 0
    assert abs(kept.mean() - 0.5) < 0.05 and all((kept[i] != kept[j]).mean() > 0.3 for i in range(3) for j in range(i))
    y = vmap(lambda x: x + cg.random.normal((1000,)))(x)
    near(y[0], y[1])
    near(y[0], y[2])
    assert np.asarray(y[0]).std() > 0.9
    noise = cg.random.normal((3, 1000))                     # numbers of their own, as mapped argument
    y = vmap(cg.add)(x, noise)
    near(y, noise)


def test_draws_do_not_depend_on_gradients():
    x = cg.ones((3, 8))
    def f(x): return cg.dropout(x, 0.5).sum()
    def run(g):
        cg.random.seed(1)
        with cg.train_mode(): return np.asarray(g(x))

    near(run(vmap(grad(f))).sum(1), run(vmap(f)))


def test_writes_in_place():
    def f(x):
        y = x * 1
        y += x
        y[0] = 5.0
        y[1:] = x[1:] * 3
        y[0] = x[1]
        return y

    x = f64(4, 3)
    wanted = np.stack([np.asarray(f(row)) for row in x])
    near(vmap(f)(x), wanted)
    near(vmap(grad(lambda x: f(x).sum()))(x), np.tile([0, 4, 3], (4, 1)))
    near(grad(lambda x: vmap(f)(x).sum())(x), np.tile([0, 4, 3], (4, 1)))

    def over_views(x):
        y = x * 1
        part, other = y[:2], y[1:]
        part *= 3
        y += x
        return (y * other[0]).sum()

    wanted = np.stack([np.asarray(grad(over_views)(row)) for row in x])
    near(vmap(over_views)(x), np.stack([np.asarray(over_views(row)) for row in x]))
    near(vmap(grad(over_views))(x), wanted)
    near(grad(lambda x: vmap(over_views)(x).sum())(x), wanted)

    def shared(x):
        y = cg.zeros(3, dtype="float64")
        y += x
        return y

    with pytest.raises(RuntimeError, match="that all lanes share"): vmap(shared)(x)


@pytest.mark.parametrize("f", [lambda x: x.sum().item(), lambda x: float(x.sum()), lambda x: x if x.sum() > 0 else -x,
                               lambda x: x.numpy(), lambda x: x.tolist(), lambda x: np.asarray(x)])
def test_values_cannot_be_read(f):
    with pytest.raises(RuntimeError, match="it stands for each slice inside of vmap"): vmap(f)(f64(2, 3))


@pytest.mark.parametrize("f", [lambda x: x[x > 0], cg.nonzero, cg.argwhere, cg.unique])
def test_shapes_cannot_depend_on_values(f):
    with pytest.raises(RuntimeError, match="depends on values"): vmap(f)(f64(2, 3))


@pytest.mark.parametrize("layer, rows", [(cg.lstm, 4), (cg.gru, 3), (cg.rnn, 1)])
def test_recurrent_layers_take_lanes_as_samples(layer, rows):
    """No warning says that they run lane by lane. Samples may have lengths of their own, the same in all lanes."""
    xs, weights = f64(4, 2, 5, 3), [f64(rows * 2, 3, seed=1), f64(rows * 2, 2, seed=2)]
    states = f64(4, 1, 2, 2, seed=3)
    more = (None,) if layer is cg.lstm else ()

    def loss(x, h):
        y, last = layer(x, weights, h, *more, batch_first=True, lengths=[5, 2])
        return (y * y).sum() + sum(z.sum() for z in (last if layer is cg.lstm else (last,)))

    for given in ((xs, states), (xs, states[0]), (xs[0], states)):
        axes = tuple(0 if x.shape[0] == 4 else None for x in given)
        of_lane = [[x if a is None else x[k] for x, a in zip(given, axes, strict=True)] for k in range(4)]
        near(vmap(loss, axes)(*given), cg.stack([loss(*one) for one in of_lane]))
        for got, wanted in zip(vmap(grad(loss, (0, 1)), axes)(*given),
                               zip(*[grad(loss, (0, 1))(*one) for one in of_lane], strict=True), strict=True):
            near(got, cg.stack(list(wanted)))


def test_running_statistics_are_shared():
    """batch_norm in train mode would move them once for each slice. Frozen ones are constants."""
    layer, xs = cg.nn.BatchNorm1d(3, dtype="float64"), f64(4, 5, 3)
    before = layer.running_mean.copy()

    def alone(x): return cg.batch_norm(x, training=True)

    with cg.train_mode():
        with pytest.raises(RuntimeError, match=r"call freeze_statistics\(\) of the layer"): vmap(layer)(xs)
        near(layer.running_mean, before)
        near(vmap(alone)(xs), cg.stack([alone(x) for x in xs]))
        layer.freeze_statistics()
        near(vmap(layer)(xs), cg.stack([layer(x) for x in xs]))


def test_choices_by_masks():
    x = f64(4, 3)
    near(vmap(lambda x: cg.where(x.sum() > 0, x, -x))(x), np.asarray(x) * np.sign(np.asarray(x).sum(1, keepdims=True)))


def test_selection_by_mapped_indices():
    x, at = f64(4, 3), cg.tensor([2, 0, 1, 2])
    near(vmap(lambda x, i: cg.take(x, i))(x, at), np.asarray(x)[np.arange(4), np.asarray(at)])
    near(vmap(lambda i: cg.take(x, i, axis=0))(at % 2), np.asarray(x)[np.asarray(at) % 2])


def test_functions_of_numpy_inside():
    x = f64(4, 3)
    near(vmap(lambda x: np.sum(np.exp(x)) * np.sin(x))(x),
         np.exp(np.asarray(x)).sum(1, keepdims=True) * np.sin(np.asarray(x)))


def test_one_evaluation_for_all_lanes():
    calls = []
    vmap(lambda x: calls.append(0) or x * 2)(f64(100, 3))
    assert len(calls) == 1


def test_lanes_one_by_one_warn_once():
    x = f64(3, 4)
    bins = cg.tensor(np.array([-1.0, 0.0, 1.0]))
    cg.func.lanes.warned.discard("searchsorted")
    with pytest.warns(PerformanceWarning, match="searchsorted has no rule for lanes") as caught:
        for _ in range(2): y = vmap(lambda x: cg.searchsorted(bins, x))(x)
    assert len(caught) == 1
    near(y, np.searchsorted(np.asarray(bins), np.asarray(x)))


# ---- programs of other suites ----------------------------------------------------------------------------------------

def test_learning_to_learn():
    """Gradients through an inner step of gradient descent for each task (MAML), beside a loop over the tasks."""
    rng = np.random.default_rng(0)
    p = {"w": f64(1, 8), "v": f64(8, 1, seed=1), "b": f64(8, seed=2)}
    x, y, x_test, y_test = (cg.tensor(rng.standard_normal((5, 6, 1))) for _ in range(4))

    def loss(p, x, y): return ((cg.tanh(x @ p["w"] + p["b"]) @ p["v"] - y) ** 2).mean()

    def after_one_step(p, x, y, x_test, y_test):
        g = grad(loss)(p, x, y)
        return loss({name: p[name] - 0.1 * g[name] for name in p}, x_test, y_test)

    tasks = x, y, x_test, y_test
    each = vmap(after_one_step, (None, 0, 0, 0, 0))(p, *tasks)
    near(each, [float(after_one_step(p, *[a[k] for a in tasks])) for k in range(5)])
    found = grad(lambda p: vmap(after_one_step, (None, 0, 0, 0, 0))(p, *tasks).sum())(p)
    parts = [grad(after_one_step)(p, *[a[k] for a in tasks]) for k in range(5)]
    for name in p: near(found[name], sum(np.asarray(part[name]) for part in parts))


def test_forces_of_a_potential():
    """Lennard-Jones: forces of many pairs, and a loss of the forces."""
    def potential(r): return 4 * (r @ r) ** -6 - 4 * (r @ r) ** -3

    r = f64(10, 3) + 2
    forces = vmap(grad(potential))(r)
    d2 = (np.asarray(r) ** 2).sum(1, keepdims=True)
    near(forces, (24 * d2 ** -4 - 48 * d2 ** -7) * np.asarray(r))

    def loss(scale): return (vmap(grad(lambda r: scale * potential(r)))(r) ** 2).sum()
    near(grad(loss)(np.float64(3)), 6 * (np.asarray(forces) ** 2).sum())


def test_the_jacobian_of_a_lookup():
    """Places that are read twice."""
    x, at = f64(4), np.array([1, 1, 3])
    for mode in ("forward", "reverse"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PerformanceWarning)
            near(jacobian(lambda x: x[at] ** 2, mode=mode)(x), 2 * np.asarray(x)[at, None] * np.eye(4)[at])


def test_transformations_in_a_captured_function():
    x = f64(3, 4)
    def f(x): return cg.tanh(x).sum() * x[0]

    for g in (vmap(f), vmap(grad(f)), lambda x: jvp(lambda x: (x ** 3).sum(), (x,), (x,))[1],
              lambda x: grad(lambda x: vmap(f)(x).sum())(x)):
        net = Net.capture(g, ((3, 4), "float64"))
        workspace = Workspace()
        workspace.feed("x", np.asarray(x))
        workspace.run(net)
        np.testing.assert_array_equal(workspace.fetch(*net.outputs), g(x))
        del workspace
