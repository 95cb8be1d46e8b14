"""Checks of chapter 7."""

import cygrad as cg
from cygrad import nn
from cygrad.learn.checking import equal, expect


def residual(reader):
    inner = nn.Linear(3, 3)
    layer = reader.Residual(inner)
    names = [name for name, _ in layer.named_parameters()]
    equal("The list of parameters of Residual(Linear(3, 3))", names, ["inner.weight", "inner.bias"],
          "Assign the module to an attribute: `self.inner = inner`.",
          [([], "Assign the module to the attribute `self.inner`; it is found there.")])
    x = cg.random.Generator(0).normal((2, 3))
    got = layer(x)
    expect(got is not None, "forward returns None: its gap is not filled, or a `return` is missing.")
    equal("The result", got, x + inner(x), "It is x + inner(x).", [(inner(x), "x itself is missing in the sum.")])


def tower(reader):
    cg.random.seed(0)
    model = reader.Tower(3, 4)
    names = [name for name, _ in model.named_parameters()]
    expect(names, "Tower(3, 4) has no parameters. A module does not look into a plain list: use nn.ModuleList (or "
                  "nn.Sequential).")
    equal("The number of parameters of Tower(3, 4), weights and biases,", len(names), 6,
          "There are three layers with a weight and a bias each.",
          [(2, "There is one layer only. If all positions of the list hold the same layer, it counts once.")])
    x = right = cg.random.Generator(0).normal((2, 4))
    parameters = [p for _, p in model.named_parameters()]
    for w, b in zip(parameters[::2], parameters[1::2], strict=True): right = cg.tanh(cg.linear(right, w, b))
    got = model(x)
    expect(got is not None, "forward returns None: its gap is not filled, or a `return` is missing.")
    equal("The result", got, right, "Each layer is followed by a tanh, also the last one.")
