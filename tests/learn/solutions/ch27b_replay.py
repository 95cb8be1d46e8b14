"""Train by replay (chapter 27).

Write `train(model, solver, x, t, steps)`: so many training steps with the loss `cg.cross_entropy(model(x), t)`, and
return the list of losses as floats. Capture one step as a net (`Net.capture`), feed a `Workspace` with x and t, and run
the net. The model may be called only once, while it is captured. The solver has the parameters of the model already.
"""

import cygrad as cg
from cygrad.graph import Net, Workspace


def train(model, solver, x, t, steps):
    def step(x, t):
        solver.zero_grad()
        with cg.record():
            loss = cg.cross_entropy(model(x), t)
        loss.backward()
        solver.update()
        return loss

    net, workspace, losses = Net.capture(step, x, t), Workspace(), []
    workspace.feed(net.inputs[0], x)
    workspace.feed(net.inputs[1], t)
    for _ in range(steps):
        workspace.run(net)
        losses.append(workspace.fetch(net.outputs[0]).item())
    return losses
