"""memory.plan(): the memory of a program before it runs."""

from cygrad.core.errors import described
from cygrad.core.graph.planning import planning
from cygrad.memory.profiling import profile


def plan(f, *example, **named):
    """The memory that f(*example, **named) will need, without running it: a closed profile (see `memory.profile`) of
    the call. `.peak_bytes` is the peak that memory.track() then measures; at_peak(), table(), plot() and save() show
    what it consists of.

    f is traced: operators infer shapes and dtypes, but nothing is computed and no tensor data is allocated, so f may be
    larger than the memory. It can be a whole training step with backward and the update of a solver. Parameters,
    gradients, versions, generators and solvers do not change, and other threads can use them meanwhile. But layers that
    wait for their sizes get them from the example, and draw their parameters, as in a first call. Raises
    RuntimeError if f needs values: item(), numpy(), a condition on a tensor, a shape that depends on values. What f
    makes from values, such as ones(), arange() and tensor(), is allocated. The plan is higher than the call where
    memory depends on values that f computes (bce_with_logits keeps targets of 0 and 1 as bits), and where f replaces a
    .grad that has a graph, whose saved tensors stay."""
    if not callable(f):
        raise TypeError(f"memory.plan takes a function and its arguments, got {described(f)}; a net has a plan() of "
                        f"its own")
    with profile() as p, planning():
        f(*example, **named)
    return p
