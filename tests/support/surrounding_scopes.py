"""More cases of surroundings: scopes in which a net is run by eager code."""

from tempfile import TemporaryDirectory

from surroundings import case, trained, variable

import cygrad as cg


def inside_and_after(build, scope):
    """The gradients of a step that `scope` runs, and of one after it."""
    w = variable([3.0])

    def step():
        with cg.record(): loss = (w * w).sum()
        loss.backward()
    run = build(step)
    run()
    scope(run)
    first = w.grad.item()
    run()
    return first, w.grad.item()


@case("checkpoint", r"checkpoint\(\) is open in this thread")
def checkpointed(build):
    def scope(run):
        with cg.record(): cg.checkpoint(run)
    return inside_and_after(build, scope)


@case("memory.budget", r"memory.budget\(\) is open in this thread")
def bounded(build):
    def scope(run):
        with cg.memory.budget("1GiB"): run()
    return inside_and_after(build, scope)


@case("memory.offload", r"memory.offload\(\) is open in this thread")
def offloaded(build):
    def scope(run):
        with TemporaryDirectory() as folder, cg.memory.offload(folder, smallest=0): run()
    return inside_and_after(build, scope)


@case("fused updates", r"the updates of a variable of shape \(1,\) are fused into backward and were not")
def fused(build):
    a, b = variable(), variable()
    solver, step = trained(a, b)
    run, seen = build(step), []
    for change in (lambda: None, solver.fuse_into_backward, lambda: solver.fused.close()):
        change()
        run()
        run()
        seen.append((a.item(), b.item()))
    return seen
