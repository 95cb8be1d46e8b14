"""check_gradients and compare_nets: the errors that they find, and what they leave alone."""

import numpy as np
import pytest

import cygrad as cg
from cygrad.graph import Net, Operator, register_gradient
from cygrad.testing import check_gradients, compare_nets

rng = np.random.default_rng(0)
X, W, B, T = rng.normal(size=(4, 3)), rng.normal(size=(2, 3)), rng.normal(size=2), np.array([0, 1, 1, 0])


def mlp(name="mlp"):
    net = Net(name)
    net.cross_entropy([net.linear([net.tanh(net.linear(["x", "w", "b"], "h")), "v"]), "t"], "loss")
    return net


MLP = {"x": X, "w": W, "b": B, "v": rng.normal(size=(2, 2)), "t": T}


@pytest.fixture
def wrong_square():
    """A gradient of square that is wrong by a factor: x instead of 2 x."""
    @register_gradient("square")
    def gradient(operator, output_gradients):
        return [Operator("mul", [operator.inputs[0], output_gradients[0]], "dx")], ["dx"]
    yield
    register_gradient("square")(None)


def test_check_gradients_accepts():
    assert check_gradients(mlp(), MLP)
    assert check_gradients(Operator("matmul", ["x", "w"], "y"), {"x": X, "w": W.T})
    assert check_gradients(mlp(), MLP, "h", wrt=["w"])
    assert check_gradients(mlp(), {name: cg.tensor(x, dtype="float32") if x.dtype.kind == "f" else x
                                   for name, x in MLP.items()}, head={"loss": 2.0})
    two = Net()
    two.split("x", ["a", "b"], sections=[1], axis=1)
    two.argmax("x", "largest")
    assert check_gradients(two, {"x": X})


def test_check_gradients_checks_the_gradient_operators_that_a_net_has():
    net = mlp()
    net.add_gradient_operators(["loss"])
    text = net.text()
    assert check_gradients(net, MLP) and net.text() == text
    headed = Net()
    headed.mul(["x", "x"], "y")
    headed.exp("e", "head")
    headed.add_gradient_operators({"y": "head"})
    assert check_gradients(headed, {"x": X, "e": rng.normal(size=X.shape)}, wrt="x")


def test_check_gradients_finds_a_wrong_gradient(wrong_square):
    net = Net("squares")
    net.sum(net.square("x"), "y")
    with pytest.raises(AssertionError, match=(
            r"^check_gradients: the gradient of 'x', of shape \(2,\), is wrong at element \(0,\): net squares gives "
            r"(-?[\d.]+), finite differences give (-?[\d.]+);")) as caught:
        check_gradients(net, {"x": np.array([1.0, -2.0])})
    given, measured = (float(word.strip(",;")) for word in str(caught.value).split() if word[-2:-1].isdigit()
                       and "." in word)
    assert np.isclose(2 * given, measured, rtol=1e-6)
    net.add_gradient_operators(["y"])
    with pytest.raises(AssertionError, match="is wrong at element"): check_gradients(net, {"x": np.array([1.0, -2.0])})
    del caught


def test_check_gradients_finds_the_element():
    net = Net()
    net.create_python_operator(lambda x: x.numpy() ** 2, "x", "y",
                               lambda xs, ys, gs: 2 * xs[0].numpy() * gs[0].numpy() * [1, 1, 1.001])
    with pytest.raises(AssertionError, match=r"'x', of shape \(4, 3\), is wrong at element \(0, 2\)"):
        check_gradients(net, {"x": X + 3})


def test_check_gradients_of_a_stopped_path_is_zero():
    net = Net()
    net.mul([net.stop_gradient("x"), "w"], "y")
    with pytest.raises(AssertionError, match=r"'x', .* net net gives 0, finite"): check_gradients(net, {"x": X, "w": X})
    assert check_gradients(net, {"x": X, "w": X}, wrt=["w"])


def test_check_gradients_of_an_embedding():
    net = Net()
    net.mul([net.embedding(["indices", "table"]), "w"], "y")
    assert check_gradients(net, {"table": X, "indices": np.array([3, 0, 3]), "w": X[:3]})


def test_check_gradients_draws_the_same_numbers():
    net = Net()
    net.mul([net.dropout("x", p=0.5), "x"], "y")
    net.training = True
    before = cg.random.default_generator.state
    assert check_gradients(net, {"x": X})
    assert cg.random.default_generator.state == before


def test_check_gradients_of_a_captured_net_leaves_its_tensors():
    layer = cg.nn.Linear(3, 2)
    net = Net.capture(lambda x: cg.tanh(layer(x)), cg.tensor(X, dtype="float32"), names=dict(layer.named_parameters()))
    before = layer.weight.detach().numpy().copy()
    assert check_gradients(net, {"x": X})
    assert np.array_equal(layer.weight.detach().numpy(), before) and layer.weight.grad is None


def test_compare_nets_accepts():
    one, two = Net("one"), Net("two")
    one.mul([one.add(["x", "w"]), 2.0], "y")
    two.mul(["x", 2.0], "a")
    two.mul(["w", 2.0], "b")
    two.add(["a", "b"], "z")
    inputs = {"x": X, "w": X[::-1]}
    assert compare_nets([one, two], inputs, [["y"], ["z"]], gradients_of=["x", "w"])
    assert compare_nets([one, lambda x, w: (x + w) * 2], inputs, "y", gradients_of="x")
    assert compare_nets([one, one.clone()], {"x": np.full(2, np.nan), "w": np.zeros(2)}, ["y"])
    assert compare_nets([one, lambda x, w: (x + w) * 2.0000001], inputs, ["y"], atol=1e-5, gradients_of=["x"])


def test_compare_nets_finds_a_bit():
    one, two = Net("one"), Net("two")
    one.mul(["x", 3.0], "y")
    two.add([two.add(["x", "x"]), "x"], "y")
    two.add(["y", "tiny"], "y")
    with pytest.raises(AssertionError, match=(
            r"^compare_nets: the output 'y' of net 1 \(two\) differs from that of net 0 \(one\) at 1 of 3 elements, "
            r"first at \(1,\): 6.000000000000001 and 6.0$")):
        compare_nets([one, two], {"x": np.array([1.0, 2.0, 4.0]), "tiny": np.array([0.0, 1e-15, 0.0])}, ["y"])
    with pytest.raises(AssertionError, match="at 1 of 1 elements"):
        compare_nets([lambda x: x, lambda x: x * -1], {"x": np.zeros(1)}, ["y"])
    with pytest.raises(AssertionError, match=r"its shape is \(3, 4\), not \(4, 3\)"):
        compare_nets([lambda x: x, lambda x: x.T], {"x": X}, ["y"])
    with pytest.raises(AssertionError, match="its dtype is float32, not float64"):
        compare_nets([lambda x: x, lambda x: x.astype("float32")], {"x": X}, ["y"])


def test_compare_nets_finds_a_wrong_gradient(wrong_square):
    one, two = Net("one"), Net("two")
    one.mul(["x", "x"], "y")
    two.square("x", "y")
    assert compare_nets([one, two], {"x": X}, ["y"])
    with pytest.raises(AssertionError, match=r"^compare_nets: the gradient of 'x' of net 1 \(two\) differs from that"):
        compare_nets([one, two], {"x": X}, ["y"], gradients_of=["x"])


def test_compare_nets_draws_the_same_numbers():
    net = Net()
    net.dropout("x", "y", p=0.5)
    net.training = True
    assert compare_nets([net, net.clone()], {"x": X}, ["y"], gradients_of=["x"])
