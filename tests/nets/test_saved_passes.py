"""Saved nets with backward passes: they load as they were, and damaged ones give errors."""

import copy
import json
import random

import numpy as np
import pytest
from branching import fed, looping, small
from crafted import safetensors
from rows import same_bits

from cygrad.graph import Net, Workspace
from cygrad.nets.files import described_nets
from cygrad.nets.subnets import nets_within

X = np.array([0.5, -1.0, 2.0])
ODD = [None, True, 0, 1, -1, 3, 10**6, 2.5, "", "x", "y", "s", "x_grad", "tanh", "mul_gradient", "zero_gradient", [],
       ["x"], ["x", "y"], {}, {"x": None}, {"s": "x"}]


def second():
    """The sum of x tanh(x), with its first and second derivative."""
    net = Net("second")
    net.sum(net.mul(["x", net.tanh("x", "y")], "z"), "s")
    first = net.add_gradient_operators(["s"])["x"]
    again = net.clone()
    again.add_gradient_operators([first])
    return again


def run(net, *names):
    workspace = Workspace()
    for name in net.inputs: workspace.feed(name, X)
    workspace.run(net)
    return [workspace.fetch(name).numpy() for name in names]


def test_a_loaded_net_has_the_gradients_of_the_saved_one(tmp_path):
    net = second()
    net.save(tmp_path / "n.safetensors")
    other = Net.load(tmp_path / "n.safetensors")
    assert other.operators == net.operators and len(other.passes) == 2 and other.gradients == net.gradients
    names = ["s", "x_grad", net.param_to_grad["x"]]
    for a, b in zip(run(net, *names), run(other, *names), strict=True): same_bits(a, b)
    with pytest.raises(RuntimeError, match="has gradient operators already"): other.add_gradient_operators(["s"])


def test_a_clone_is_saved_without_gradients_of_its_own(tmp_path):
    net = second().clone()
    net.save(tmp_path / "n.safetensors")
    other = Net.load(tmp_path / "n.safetensors")
    with pytest.raises(RuntimeError, match="has no gradient operators"): _ = other.gradients
    third = other.add_gradient_operators([second().param_to_grad["x"]])["x"]
    t, s = np.tanh(X), 1 - np.tanh(X) ** 2
    wanted = 3 * (-2 * t * s) + X * (-2 * s * s + 4 * t * t * s)
    np.testing.assert_allclose(run(other, third)[0], wanted, rtol=1e-10)


def test_an_edited_pass_is_saved_as_operators(tmp_path):
    net = Net("edited")
    net.sum(net.tanh("x", "y"), "s")
    found = net.add_gradient_operators(["s"])
    net.insert_operator(1, "relu", "y", "r")
    net.save(tmp_path / "n.safetensors")
    other = Net.load(tmp_path / "n.safetensors")
    assert other.passes == () and other.operators == net.operators
    net.outputs = other.outputs = found["x"]
    same_bits(*run(net, found["x"]), *run(other, found["x"]))


def mutated(value, dice):
    """The value with another part."""
    if isinstance(value, dict) and value and dice.random() < 0.85:
        key = dice.choice([*value])
        return {**value, key: mutated(value[key], dice)}
    if isinstance(value, list) and value and dice.random() < 0.85:
        value, i = list(value), dice.randrange(len(value))
        what = dice.random()
        if what < 0.6: value[i] = mutated(value[i], dice)
        elif what < 0.75: del value[i]
        elif what < 0.9: value.insert(i, copy.deepcopy(dice.choice(value)))
        else: dice.shuffle(value)
        return value
    return copy.deepcopy(dice.choice(ODD))


def branching():
    """A net with an If inside a While, and its gradients."""
    net, names = looping(), ["x", "i", "n"]
    body = small("body", names, ("less", ["i", 1], "c"), ("add", ["i", 1], "j"), outputs=["x", "j"])
    body.add_operator("If", ["c", "x"], "y", then=small("sine", ["x"], ("sin", "x", "y"), outputs="y"),
                      otherwise=small("square", ["x"], ("mul", ["x", "x"], "y"), outputs="y"))
    body.outputs = ["y", "j"]
    net.add_operator("While", ["y", 0, "n"], ["z", "k"], body=body, turns=3,
                     condition=small("goes", names, ("less", ["i", "n"], "goes"), outputs="goes"))
    net.sum("z", "total")
    net.outputs = "total"
    net.add_gradient_operators(["total"])
    return net


@pytest.mark.parametrize("make", [second, branching])
def test_damaged_passes_give_errors(tmp_path, make):
    """Files that are damaged in one or two places are refused, or are nets, which run or say why they do not."""
    net = make()
    text = json.dumps(described_nets(net, nets_within(net.operators)))
    counts = {"refused": 0, "ran": 0, "failed": 0}
    path, dice = tmp_path / "n.safetensors", random.Random(0)
    for _ in range(600):
        found = json.loads(text)
        for _ in range(dice.choice([1, 1, 2])): found = mutated(found, dice)
        about = {"format": "cygrad.graph", "version": "1", "net": json.dumps(found)}
        path.write_bytes(safetensors({"__metadata__": about}, b""))
        try: net = Net.load(path)
        except ValueError:
            counts["refused"] += 1
            continue
        assert net.text() and net.to_dot()
        try: run(net) if make is second else fed(a=X, b=X, n=2).run(net)
        except (ValueError, TypeError, RuntimeError): counts["failed"] += 1
        else: counts["ran"] += 1
    assert counts["refused"] > 400 and counts["ran"] > 20
