"""Writes through views in nets: the base and its other views change too, and the gradients follow.

Each function is run by eager code, by a net of its operators that is differentiated, by this net with hooks, and by
another net to which the operators are moved."""

import numpy as np
import pytest
from net_runs import filled, run

import cygrad as cg
from cygrad.graph import GradientRegistry, Net, Workspace, register_gradient

X = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
W = np.array([[0.5, -1.5, 2.5]])


def part(x, w):
    y = x * 2
    y[0:1] += w
    return y * y


def by_another_part(x, w):
    """The operand is a part of the same memory, which eager code copies before the write."""
    y = x * 2
    v = y[0:1]
    v *= y[1:2]
    v += w
    v *= y[1:2]
    return y * y


def base(x, w):
    y = x * 2
    v = y[0]
    y *= w
    return v * v + (y * y).sum()


def both(x, w):
    """Earlier and later uses of the base and of two views that overlap."""
    y = x * 2
    a, b = y[0], y[:, 1:]
    early = y.sum() * a.sum() * b.sum()
    a *= w[0]
    middle = b.sum() * y.sum()
    b += a[:2]
    return early + middle + (a * a * a).sum() * y.sum()


def view_of_a_view(x, w):
    y = x * 2
    row = y.T[1]
    row[0:1] *= w[0, 1:2]
    return y * y + row.sum()


def kinds(x, w):
    y = x * 2
    for v in (y.reshape(-1)[1:3], y.T[0], y.squeeze()[1, :2], y.flip(1)[0, :2], cg.expand_dims(y, 0)[0, 1, 1:],
              cg.diagonal(y), y.split(2)[1][0, 1:], y.permute(1, 0)[1:, 0]):
        v *= w[0, :2]
    return y * y


def assigned(x, w):
    y = x * 2
    v = y[0]
    y[0, 1:] = w[0, :2] * 3
    y[1] = 0.0
    return y * v.sum() + v


def overwritten(x, w):
    """The base is gone, but not its memory."""
    y = x * 2
    v, u = y[0:1], y[:, 0]
    y = y.exp()
    v += w
    return y.sum() + (u * u).sum() * v.sum()


def into_zeros(x, w):
    y = cg.zeros((2, 3), dtype=x.dtype)
    y[0:1] = w
    y[1] += x[0] * w[0]
    return y * y


FUNCTIONS = [part, by_another_part, base, both, view_of_a_view, kinds, assigned, overwritten, into_zeros]
every_function = pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)


def eager(f):
    x, w = cg.tensor(X).requires_grad_(), cg.tensor(W).requires_grad_()
    with cg.record(): y = f(x, w).sum()
    return [g.numpy() for g in cg.autograd.grad(y, (x, w))]


def captured(f):
    def summed(x, w): return f(x, w).sum()

    with cg.record(): return Net.capture(summed, X, W)


def moved(operators, constants):
    net = Net("moved")
    for name, value in constants.items(): net.add_constant(value, name)
    for o in operators: net.add_operator(o)
    return net


@every_function
def test_gradients_follow_a_write_through_a_view(f):
    net = captured(f)
    found = net.add_gradient_operators([*net.outputs])
    for _ in range(2):
        for g, h in zip(run(net, found["x"], found["w"], x=X, w=W), eager(f), strict=True):
            np.testing.assert_array_equal(g, h)


@every_function
def test_a_run_with_hooks_has_the_same_gradients(f):
    net = captured(f)
    found = net.add_gradient_operators([*net.outputs])
    workspace, seen = filled(x=X, w=W), []
    workspace.run(net, before=lambda operator, values: seen.append(operator))
    assert seen == list(net.operators)
    for name, h in zip(("x", "w"), eager(f), strict=True):
        np.testing.assert_array_equal(workspace.fetch(found[name]).numpy(), h)


@every_function
def test_the_operators_have_the_same_values_in_another_net(f):
    net = captured(f)
    found = net.add_gradient_operators([*net.outputs])
    other = moved(net.operators, net.constants)
    for g, h in zip(run(other, found["x"], found["w"], x=X, w=W), eager(f), strict=True):
        np.testing.assert_allclose(g, h, rtol=1e-14)


@every_function
def test_each_operator_that_is_changed_runs_alone(f):
    """An operator between two of a pass makes each run alone."""
    net = captured(f)
    found = net.add_gradient_operators([*net.outputs])
    at = next(k for k, o in enumerate(net.operators) if o.is_gradient) + 1
    net.insert_operator(at, "neg", "x", "unused")
    for g, h in zip(run(net, found["x"], found["w"], x=X, w=W), eager(f), strict=True):
        np.testing.assert_allclose(g, h, rtol=1e-14)


@every_function
def test_the_backward_pass_of_the_registry(f):
    net = captured(f)
    operators, found = GradientRegistry.get_backward_pass(list(net.operators), [*net.outputs])
    for o in operators: net.add_operator(o)
    for g, h in zip(run(net, found["x"], found["w"], x=X, w=W), eager(f), strict=True):
        np.testing.assert_array_equal(g, h)


@every_function
def test_a_captured_backward_reaches_the_variables(f):
    x, w = cg.tensor(X).requires_grad_(), cg.tensor(W).requires_grad_()

    def step():
        with cg.record(): y = f(x, w).sum()
        y.backward()

    net = Net.capture(step)
    Workspace().run(net)
    for z, h in zip((x, w), eager(f), strict=True): np.testing.assert_array_equal(z.grad.numpy(), h)


@every_function
def test_immediate_mode(f):
    net = captured(f)
    workspace, other = filled(x=X, w=W), Net()
    for name, value in net.constants.items(): other.add_constant(value, name)
    with workspace.immediate():
        for o in net.operators: other.add_operator(o)
        found = other.add_gradient_operators([*net.outputs])
    for name, h in zip(("x", "w"), eager(f), strict=True):
        np.testing.assert_allclose(workspace.fetch(found[name]).numpy(), h, rtol=1e-14)


def test_a_net_that_is_built_by_hand():
    net = Net()
    net.copy("x", "y")
    net.getitem("y", "v", index=(slice(0, 1),))
    net.add(["v", "w"], "v", inplace=True)
    net.sum("y", "s")
    found = net.add_gradient_operators(["s"])
    x_grad, w_grad, v, y = run(net, found["x"], found["w"], "v", "y", x=X, w=W)
    assert x_grad.tolist() == np.ones_like(X).tolist() and w_grad.tolist() == np.ones_like(W).tolist()
    assert v.tolist() == (X[:1] + W).tolist() == y[:1].tolist()


def test_the_gradient_of_a_first_version_is_that_before_the_write():
    net = Net()
    net.square("x", "y")
    net.getitem("y", "v", index=0)
    net.mul(["v", "w"], "v", inplace=True)
    net.mul(["y", "y"], "z")
    found = net.add_gradient_operators(["z"])
    w = W[0]
    y_grad, v_grad, x_grad = run(net, found["y"], found["v"], found["x"], x=X, w=w)
    after = X ** 2 * np.array([w, np.ones(3)])
    wanted = 2 * after * np.array([w, np.ones(3)])
    np.testing.assert_allclose(y_grad, wanted, rtol=1e-14)
    np.testing.assert_allclose(v_grad, wanted[0], rtol=1e-14)
    np.testing.assert_allclose(x_grad, wanted * 2 * X, rtol=1e-14)


def test_what_a_write_through_a_view_overwrites_is_refused():
    """square needs y, of which a part was written since."""
    net = Net()
    net.copy("x", "y")
    net.square("y", "z")
    net.getitem("y", "v", index=0)
    net.mul(["v", 2.0], "v", inplace=True)
    net.sum("z", "s")
    with pytest.raises(RuntimeError, match=r"z = square\(y\), needs version 1 of the blob 'y', which has version 2 "
                                           r"now: version 1 by operator 0, .*; version 2 by operator 3, v = mul"):
        net.add_gradient_operators(["s"])


def test_a_view_that_may_be_a_copy_is_refused_by_name():
    """Without the shapes it is not known whether the reshape of a transposed tensor is a view."""
    net = Net()
    net.copy("x", "y")
    net.reshape(net.transpose("y"), "v", shape=-1)
    net.mul(["v", 2.0], "v", inplace=True)
    net.sum("y", "s")
    with pytest.raises(RuntimeError, match=r"operator 3, v = mul\(v, constant, inplace=True\), writes to memory that "
                                           r"other blobs may share: whether a reshape .* write to a copy\(\)"):
        net.add_gradient_operators(["s"])
    alone = net.clone()                             # (nothing but v is read after the write)
    found = alone.add_gradient_operators(["v"])
    assert run(alone, found["x"], x=X).tolist() == (2 * np.ones_like(X)).tolist()


def test_a_dropout_may_be_a_view():
    """In predict mode its result is a view of its input, in train mode it has memory of its own."""
    net = Net()
    net.copy("x", "h")
    net.dropout("h", "d", p=0.5)
    net.mul(["d", 3.0], "d", inplace=True)
    net.sum("h", "s")
    with pytest.raises(RuntimeError, match="or a dropout, is a view or a copy is not known before a run; write to a"):
        net.clone().add_gradient_operators(["s"])
    with pytest.raises(RuntimeError, match="or a dropout, is a view or a copy is not known before a run; write to a"):
        net.clone().add_gradient_operators(["s", "d"])
    found = net.add_gradient_operators(["d"])
    net.training = False
    assert run(net, found["x"], x=X).tolist() == (3 * np.ones_like(X)).tolist()


def test_parts_of_a_split():
    net = Net()
    net.copy("x", "y")
    net.split("y", ["a", "b"], sections=2)
    net.mul(["b", "w"], "b", inplace=True)
    net.mul(["y", "y"], "z")
    found = net.add_gradient_operators(["z", "a"])
    wanted = 2 * X * np.array([np.ones(3), W[0] ** 2])
    wanted[0] += 1
    x_grad, w_grad = run(net, found["x"], found["w"], x=X, w=W)
    np.testing.assert_allclose(x_grad, wanted, rtol=1e-14)
    np.testing.assert_allclose(w_grad, 2 * X[1:] ** 2 * W, rtol=1e-14)
    np.testing.assert_allclose(run(moved(net.operators, net.constants), found["x"], x=X, w=W), wanted, rtol=1e-14)


def test_a_rule_without_a_gradient_on_the_way_of_a_write():
    """A registered gradient of None reaches nothing."""
    register_gradient("exp")(lambda operator, heads: ([], [None]))
    try:
        net = Net()
        net.copy("x", "y")
        net.getitem("y", "v", index=0)
        net.mul(["v", "w"], "v", inplace=True)
        net.exp("y", "z")
        assert {*net.add_gradient_operators(["z"])} == {"z"}
    finally: register_gradient("exp")(None)


def test_a_second_derivative_through_a_write():
    net = Net()
    net.square("x", "y")
    net.getitem("y", "v", index=0)
    net.mul(["v", "w"], "v", inplace=True)
    net.mul(["y", "y"], "z")
    found = net.add_gradient_operators(["z"])
    operators, second = GradientRegistry.get_backward_pass(list(net.operators), [found["x"]])
    for o in operators: net.add_operator(o)

    def f(x, w):
        y = cg.square(x)
        v = y[0]
        v *= w
        return y * y

    x, w = cg.tensor(X).requires_grad_(), cg.tensor(W[0]).requires_grad_()
    with cg.record():
        g, = cg.autograd.grad(f(x, w), (x,), create_graph=True)
        wanted = cg.autograd.grad(g, (x, w))
    for name, h in zip(("x", "w"), wanted, strict=True):
        np.testing.assert_allclose(run(net, second[name], x=X, w=W[0]), h.numpy(), rtol=1e-12)
