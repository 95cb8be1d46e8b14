"""More cases of surroundings: scopes in which a net is run by eager code."""

from surroundings import case, variable

import cygrad as cg


def passes_inside(scope):
    """The gradients of a step in a scope, and after it."""
    def outcome(build):
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
    return outcome


@case("checkpoint", r"checkpoint\(\) is open in this thread")
def checkpointed(build):
    def scope(run):
        with cg.record(): cg.checkpoint(run)
    return passes_inside(scope)(build)


@case("memory.budget", r"memory.budget\(\) is open in this thread")
def bounded(build):
    def scope(run):
        with cg.memory.budget("1GiB"): run()
    return passes_inside(scope)(build)
