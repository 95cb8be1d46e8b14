"""Runs of nets in tests: workspaces with values, small nets, and a training step to capture."""

import cygrad as cg
from cygrad.graph import Net, Workspace


def filled(**blobs):
    """A workspace with values."""
    workspace = Workspace()
    for name, x in blobs.items(): workspace.feed(name, x)
    return workspace


def run(net, *names, **blobs):
    """The values of blobs after a run, as arrays."""
    workspace = filled(**blobs)
    workspace.run(net)
    found = [workspace.fetch(name).numpy() for name in names]
    return found[0] if len(names) == 1 else found


def scaled():
    """y = x w, z = exp(y)"""
    net = Net("scaled")
    net.mul(["x", "w"], "y")
    net.exp("y", "z")
    return net


def training_step(model, solver):
    """A step of a solver on the cross-entropy of a model."""
    solver.set_parameters(dict(model.named_parameters()))

    def step(x, t):
        solver.zero_grad()
        with cg.record(): loss = cg.cross_entropy(model(x), t)
        loss.backward()
        solver.update()
        return loss

    return step
