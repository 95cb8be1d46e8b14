"""Registered gradients, gradients of Python operators, higher derivatives, and passes that were edited."""

import numpy as np
import pytest
from net_runs import run, scaled
from rows import same_bits

from cygrad.graph import GradientRegistry, Net, Operator, register_gradient

X = np.array([0.5, -1.0, 2.0])


# ---- registered gradients --------------------------------------------------------------------------------------------

@pytest.fixture
def registered():
    """Registers gradients, and removes them after the test."""
    types = []

    def register(type):
        types.append(type)
        return register_gradient(type)

    yield register
    for type in types: register_gradient(type)(None)


def times(number):
    """A gradient of mul(x, w): `number` times the gradient of y for x, and nothing for w."""
    def gradient(operator, heads):
        return [Operator("mul", [heads[0], operator.inputs[1]], "t"), Operator("mul", ["t", operator.outputs[0]], "u"),
                Operator("concat", ["u"] * number, "g")], ["t" if number == 1 else "g", None]
    return gradient


def test_a_registered_gradient_takes_the_place_of_the_types_own(registered):
    registered("mul")(times(1))
    net = scaled()
    found = net.add_gradient_operators(["z"])
    assert found == {"z": "z_autogen_grad", "y": "y_grad", "x": "t"} and net.operators[-1].type == "concat"
    assert run(net, "t", x=X, w=X).tolist() == (np.exp(X * X) * X).tolist()


def test_a_net_keeps_the_gradient_with_which_it_was_differentiated(registered):
    registered("mul")(times(1))
    net = scaled()
    found = net.add_gradient_operators(["z"])
    registered("mul")(lambda operator, heads: ([], [None, None]))
    assert run(net, found["x"], x=X, w=X).tolist() == (np.exp(X * X) * X).tolist()
    later = scaled()
    assert "x" not in later.add_gradient_operators(["z"])


def test_a_registered_gradient_with_a_number_among_the_inputs(registered):
    @registered("mul")
    def gradient(operator, heads):
        return [Operator("mul", [heads[0], operator.inputs[1]], "g")], ["g", None]
    net = Net()
    net.mul(["x", 3.0], "y")
    found = net.add_gradient_operators(["y"])
    assert run(net, found["x"], x=X).tolist() == [3, 3, 3]


def test_a_registered_gradient_can_be_differentiated(registered):
    @registered("square")
    def gradient(operator, heads):
        return [Operator("mul", [operator.inputs[0], heads[0]], "t"), Operator("add", ["t", "t"], "g")], ["g"]
    net = Net()
    net.square("x", "y")
    first = net.add_gradient_operators(["y"])["x"]
    again = net.clone()
    second = again.add_gradient_operators([first])["x"]
    assert [g.tolist() for g in run(again, first, second, x=X)] == [(2 * X).tolist(), [2, 2, 2]]


def test_an_error_in_a_registered_gradient_is_not_hidden(registered):
    """Defect 6 of Caffe2: the registry of Python was asked after any failure."""
    @registered("mul")
    def gradient(operator, heads):
        raise KeyError("mine")
    with pytest.raises(KeyError, match="mine"): scaled().add_gradient_operators(["z"])


@pytest.mark.parametrize("result, error, wording", [
    (3, TypeError, r"must be \(operators, input_gradients\), got 3"),
    (([], ["a"]), ValueError, "has 1 input gradients; the operator has 2 inputs"),
    (([3], [None, None]), TypeError, "must be made of Operator, got 3"),
    (([Operator("neg", "other", "g")], ["g", None]), RuntimeError, "reads the blob 'other', which is not in the scope"),
    (([], ["other", None]), RuntimeError, "gives the blob 'other', which is not in the scope"),
])
def test_wrong_registered_gradients(registered, result, error, wording):
    registered("mul")(lambda operator, heads: result)
    net = scaled()
    with pytest.raises(error, match=wording): net.add_gradient_operators(["z"])
    assert len(net) == 2


# ---- Python operators ------------------------------------------------------------------------------------------------

def test_python_operators_have_gradients():
    net = Net()
    net.create_python_operator(lambda x: np.tanh(x.numpy()), "x", "y",
                               lambda inputs, outputs, heads: heads[0].numpy() * (1 - outputs[0].numpy() ** 2))
    found = net.add_gradient_operators(["y"])
    np.testing.assert_allclose(run(net, found["x"], x=X), 1 - np.tanh(X) ** 2, rtol=1e-15)


def test_the_second_derivative_of_a_python_operator():
    for as_numpy in (False, True):
        net = Net()
        net.create_python_operator(lambda x: x * x, "x", "y", lambda inputs, outputs, heads, as_numpy=as_numpy:
                                   np.asarray((heads[0] * 2).detach()) if as_numpy else heads[0] * inputs[0] * 2)
        first = net.add_gradient_operators(["y"])["x"]
        again = net.clone()
        second = again.add_gradient_operators([first])["x"]
        if not as_numpy: assert run(again, second, x=X).tolist() == [2, 2, 2]
        else:
            with pytest.raises(RuntimeError, match="grad_f of a Python operator gave a float64 array .*, which has no "
                                                   "second derivative"): run(again, x=X)


# ---- higher derivatives, other ways to the operators -----------------------------------------------------------------

def sine():
    net = Net("sine")
    net.sum(net.sin("x", "y"), "s")
    return net


def derivatives(add, n=3):
    """A net with derivatives of the sine, each added by add(net, ys) to a clone."""
    net, names = sine(), ["s"]
    for _ in range(n):
        net = net.clone()
        names.append(add(net, names[-1:])["x"])
    return net, names[1:]


def added_one_by_one(net, ys):
    operators, found = GradientRegistry.get_backward_pass(net.operators, ys)
    for operator in operators: net.add_operator(operator)
    return found


@pytest.mark.parametrize("add", [Net.add_gradient_operators, added_one_by_one])
def test_third_derivatives(add):
    net, names = derivatives(add)
    assert len(net.passes) == 3
    wanted = [np.cos(X), -np.sin(X), -np.cos(X)]
    for g, w in zip(run(net, *names, x=X), wanted, strict=True): np.testing.assert_allclose(g, w, rtol=1e-12)


def test_get_backward_pass():
    operators, found = GradientRegistry.get_backward_pass(sine().operators, {"s": None})
    assert [o.type for o in operators] == ["ones_like", "sum_gradient", "sin_gradient"] and found["x"] == "x_grad"
    assert all(o.is_gradient for o in operators) and operators[2].of == sine().operators[0]
    for wrong in (3, sine().operators[0], [3], None):
        with pytest.raises(TypeError, match="the operators must be a list of Operator"):
            GradientRegistry.get_backward_pass(wrong, ["s"])


def cubed():
    """x (x x), with x twice in one operator."""
    net = Net()
    net.mul(["x", net.mul(["x", "x"], "y")], "z")
    return net


@pytest.mark.parametrize("make, wanted", [(sine, [np.cos(X), -np.sin(X)]), (cubed, [3 * X * X, 6 * X])])
def test_an_edited_pass_runs_one_by_one(make, wanted):
    net = make()
    first = net.add_gradient_operators([net.outputs[0]])["x"]
    again = net.clone()
    second = again.add_gradient_operators([first])["x"]
    again.insert_operator(1, "relu", "y", "in between")
    for g, w in zip(run(again, first, second, x=X), wanted, strict=True): np.testing.assert_allclose(g, w, rtol=1e-12)


def test_the_second_derivative_of_an_edited_pass_that_reads_outputs():
    net = Net()
    net.exp("x", "y")
    first = net.add_gradient_operators(["y"])["x"]
    again = net.clone()
    second = again.add_gradient_operators([first])["x"]
    again.insert_operator(1, "relu", "y", "in between")
    same_bits(run(again, second, x=X), run(net, first, x=X))


def test_a_gradient_whose_operator_was_removed():
    """It runs alone on the values of the blobs that its operator reads."""
    net = scaled()
    found = net.add_gradient_operators(["z"])
    net.remove_operator(net.operators[0])
    same_bits(run(net, found["x"], x=X, w=X, y=X + 1), np.exp(X + 1) * X)


def test_a_renamed_blob_keeps_the_pass():
    net, other = scaled(), scaled()
    for n in (net, other): n.add_gradient_operators(["z"])
    for old, new in (("y", "why"), ("x_grad", "gx"), ("x", "input"), ("z_autogen_grad", "head")): net.rename(old, new)
    assert net.gradients == {"z": "head", "why": "y_grad", "input": "gx", "w": "w_grad"}
    assert net.param_to_grad == {"input": "gx", "w": "w_grad"}
    same_bits(run(net, "gx", input=X, w=X), run(other, "x_grad", x=X, w=X))
    second = net.clone()
    name = second.add_gradient_operators(["gx"])["input"]
    np.testing.assert_allclose(run(second, name, input=X, w=X), np.exp(X * X) * X * X, rtol=1e-15)


def test_saved_nets_keep_their_passes(tmp_path):
    net, names = derivatives(Net.add_gradient_operators)
    net.save(tmp_path / "n.safetensors")
    other = Net.load(tmp_path / "n.safetensors")
    assert len(other.passes) == 3 and other.operators == net.operators
    for a, b in zip(run(net, *names, x=X), run(other, *names, x=X), strict=True): same_bits(a, b)
