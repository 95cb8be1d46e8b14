"""Checks of chapter 28."""

import math

import numpy as np

from cygrad.graph import Workspace
from cygrad.learn.checking import equal, expect


def result(net, name, **values):
    workspace = Workspace()
    for blob, value in values.items(): workspace.feed(blob, value)
    workspace.run(net)
    return workspace.fetch(name)


WHY = {"If": "`where` would compute both ways.", "While": "The number of turns is known only when the net runs."}


def has(net, kind, output, inputs):
    """Check that the net has an operator of that type, its inputs and its output."""
    types = [o.type for o in net.operators]
    expect(kind in types, f"The net has no {kind}; its operators are {', '.join(types) or 'none'}. {WHY[kind]} Use "
                          f"`net.add_operator(\"{kind}\", ...)`.")
    expect(set(net.inputs) == inputs, f"The net has the inputs {', '.join(net.inputs)}, but {', '.join(inputs)} is "
                                      "right.")
    expect(any(output in o.outputs for o in net.operators), f"No operator writes the blob {output!r}.")


def two_ways(reader):
    net = reader.build()
    has(net, "If", "y", {"x"})
    for x in ([1.0, 2.0, 3.0], [-1.0, -2.0, 2.5], [0.0, 0.0, 0.0]):
        x = np.array(x, "float32")
        right, other = (x * 2, x * x) if x.sum() > 0 else (x * x, x * 2)
        equal(f"y for {x.tolist()}", result(net, "y", x=x), right, "`then` runs where the condition is true.",
              [(other, "The other way ran. The condition is sum of x > 0, and `then` is the way for true.")])


def loop(reader):
    net = reader.build()
    has(net, "While", "f", {"n"})
    for n in (1, 2, 5, 10):
        got = result(net, "f", n=n)
        equal(f"f for n = {n}", got, math.factorial(n),
              "f begins with 1 and i with 1; a turn multiplies f by i and adds 1 to i, as long as i <= n.",
              [(math.factorial(n - 1), "The last factor is missing: the loop goes on while i <= n."),
               (math.factorial(n + 1), "There is a factor too many."),
               (0, "The product begins with 0. Begin with 1."),
               (n + 1, "This is the counter: the first output of the body is the product.")])
