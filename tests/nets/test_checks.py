"""What operators of a known type take: it is checked when they are added to a net."""

import pytest

from cygrad.graph import Net, Operator


@pytest.mark.parametrize(("add", "error", "words"), [
    (lambda net: net.mul(["x", "y", "z"]), ValueError,
     "Net.mul: mul takes the inputs x, y; got 3 inputs: x, y, z; pass those that it takes in one list"),
    (lambda net: net.add_operator("mul", "x"), ValueError,
     "Net.add_operator: mul takes the inputs x, y; got 1 input: x"),
    (lambda net: net.insert_operator(0, "mul", "x"), ValueError,
     "Net.insert_operator: mul takes the inputs x, y; got 1"),
    (lambda net: net.add_operator(Operator("linear", ["x"] * 4, "y")), ValueError,
     r"linear takes the inputs x, w, b \(optional\); got 4 inputs"),
    (lambda net: net.lstm(["x", "w"]), ValueError, "any number of weights.*; got 2 inputs: x, w"),
    (lambda net: net.mul(["x", None]), ValueError,
     "mul takes the inputs x, y; got None for y; pass a blob or a number"),
    (lambda net: net.stop_gradient(["x", "y"]), ValueError, "stop_gradient takes the inputs x; got 2 inputs: x, y"),
    (lambda net: net.sum("x", axes=1), TypeError,
     "Net.sum: sum has no argument 'axes'; its arguments are axis, keepdims"),
    (lambda net: net.clip("x", min=0.0), TypeError,
     "clip has no argument 'min'; it is an input, so pass it in the list of inputs: x, min, max"),
    (lambda net: net.topk("x"), TypeError, "topk: the argument 'k' is missing; pass it by keyword"),
    (lambda net: net.add_operator("random", [], "r", law="normal"), TypeError,
     "random: the argument 'shape' is missing"),
    (lambda net: net.dropout("x", q=0.5), TypeError, "dropout has no argument 'q'; its arguments are p"),
])
def test_inputs_and_arguments_are_checked_when_an_operator_is_added(add, error, words):
    net = Net()
    net.relu("x", "r")
    before = net.text(), net.edits
    with pytest.raises(error, match=words): add(net)
    assert (net.text(), net.edits) == before


def test_operators_with_optional_inputs_and_of_unknown_types_are_added():
    net = Net()
    net.linear(["x", "w"])
    net.linear(["x", "w", None])
    net.clip(["x", None, "high"])
    net.einsum(["x", "y", "z"], equation="i,i,i->")
    net.concat([])
    net.embedding_bag(["i", "w", None, "p"], mode="sum")
    net.relu("x", "x", inplace=True)
    net.add_operator("unknown", ["x"] * 9, "u", axes=3)
    assert len(net) == 8
