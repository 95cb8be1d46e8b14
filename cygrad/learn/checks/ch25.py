"""Checks of chapter 25."""

import numpy as np

import cygrad as cg
from cygrad.graph import Net, Workspace
from cygrad.learn.checking import equal, expect


def net(reader):
    net = reader.build()
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(4, 3)), rng.normal(size=(3, 2))
    expect(net.operators, "The net has no operators.")
    equal("The set of inputs of the net", set(net.inputs), {"x", "w"}, "Blobs that nobody writes are inputs.")
    written = {name for o in net.operators for name in o.outputs}
    expect("loss" in written, f"No operator writes the blob \"loss\"; there are {', '.join(sorted(written))}. The "
                              "second argument of a method names its result.")
    workspace = Workspace()
    workspace.feed("x", x)
    workspace.feed("w", w)
    workspace.run(net)
    y = np.tanh(x @ w)
    equal("The loss", workspace.fetch("loss"), (y * y).mean(), "It is the mean of the squares of tanh(x w).",
          [((y * y).sum(), "This is the sum."), (((x @ w) ** 2).mean(), "The tanh is missing."),
           (y.mean() ** 2, "Square first, then take the mean.")])
    expect("w_grad" in written, "No operator writes the gradient of w: call `net.add_gradient_operators([\"loss\"])`.")
    equal("The gradient of w", workspace.fetch("w_grad"), x.T @ (2 * y * (1 - y * y) / y.size),
          "The net must compute the loss by operators that have gradients.")


def branch(reader):
    for numbers in ([1.0, 2.0, -0.5], [-1.0, 0.5, 0.0]):
        x = cg.tensor(numbers)
        equal(f"leaky({numbers})", reader.leaky(x), x * (2.0 if sum(numbers) > 0 else 0.5),
              "The result must be that of before: the condition is one for the whole tensor.",
              [(cg.where(x > 0, x * 2.0, x * 0.5), "Each element was tested by itself. The condition is the sum.")])
    try: captured = Net.capture(reader.leaky, ((3,), "float32"))
    except RuntimeError as e:
        expect(False, f"The function cannot be captured: {str(e).partition(', ')[0]}. `if` needs the value. "
                      "`cg.where(condition, a, b)` takes a where the condition is true.")
    workspace = Workspace()
    for numbers in ([1.0, 2.0, -0.5], [-1.0, 0.5, 0.0]):
        workspace.feed(captured.inputs[0], np.array(numbers, "float32"))
        workspace.run(captured)
        equal(f"The result of the net for {numbers}", workspace.fetch(captured.outputs[0]),
              np.array(numbers) * (2.0 if sum(numbers) > 0 else 0.5), "Both ways must be in the net.")
