"""Runs of nets in tests: workspaces with values, small nets, and a training step to capture."""

import numpy as np
from rows import same_bits

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


def check_alone(net, arrays):
    """Each gradient operator, in a net that has no other, gives what it gives in the whole net. Returns how many there
    are."""
    known = filled(**arrays)
    made = {str(name) for o in net.operators for name in o.outputs}
    with np.errstate(all="ignore"): known.run(net, keep=[*made])
    n = 0
    for o in net.operators:
        if o.of is None or not all(n is None or n in known or n in net.constants for n in o.inputs): continue
        alone = Net()
        for name, value in net.constants.items():
            if name in o.of.inputs or name in o.inputs: alone.add_constant(value, name)
        alone.add_operator(o)
        workspace = Workspace()
        for name in dict.fromkeys((*o.of.inputs, *o.inputs)):
            if name is not None and name not in net.constants: workspace.feed(name, known.fetch(name))
        with np.errstate(all="ignore"): workspace.run(alone)
        for name in o.outputs:
            assert (name in workspace) == (name in known)
            if name in known: same_bits(workspace.fetch(name).numpy(), known.fetch(name).numpy())
        n += 1
    return n
