"""The least that a step of the perceptron can have live at once, computed from shapes alone, without cygrad.

The step is a list of calls in the order of execution. A call reads and makes values of known sizes. A value lives from
the call that makes it to the last call that reads it. What a call reads and makes is live together until it returns. In
backward, a call may write its result over an operand of the same size that no later call reads. The bound is the
largest number of bytes that is live during any call. Data and parameters are allocated before and do not count. `.grad`
is None before the step, gradients live until the update, and solver states live always."""

from typing import NamedTuple

FLOAT, LABEL = 4, 8


class Step(NamedTuple):
    """One call: the names of the values that it reads, the name and the bytes of the value that it makes (0: none), and
    whether it may overwrite an operand."""

    reads: tuple
    makes: str
    nbytes: int = 0
    over: bool = False


def program(problem):
    """The calls of a training step."""
    n, sizes = problem.batch, problem.sizes
    widths = sizes[1:]
    last = len(widths)
    values, calls = {k: FLOAT * n * w for k, w in enumerate(widths, 1)}, []

    def call(makes, nbytes, *reads, over=False):
        calls.append(Step(reads, makes, nbytes, over))

    h = "data"
    for k in range(1, last):
        call(f"a{k}", values[k], h)
        call(f"h{k}", values[k], f"a{k}")
        h = f"h{k}"
    call("y", values[last], h)
    if problem.loss == "mse":
        call("d", values[last], "y")                # y - target
        call("s", values[last], "d")                # d * d
        call("loss", FLOAT, "s")
        call("head", FLOAT, "loss")
        call("ds", values[last], "head", over=True)
        call("g", values[last], "ds", "d", over=True)
    else:
        call("labels", LABEL * n, "y")              # a copy of the caller's
        call("lse", FLOAT * n, "y")                 # logsumexp of each row, then its loss
        call("rows", FLOAT * n, "y", "lse", "labels")
        call("loss", FLOAT, "rows")
        call("head", FLOAT, "loss")
        call("g", values[last], "head", "y", "lse", "labels", over=True)
    g = "g"
    for k in range(last, 0, -1):
        below = f"h{k - 1}" if k > 1 else "data"
        call(f"dw{k}", FLOAT * widths[k - 1] * sizes[k - 1], g, below)
        call(f"db{k}", FLOAT * widths[k - 1], g)
        if k > 1:
            call(f"dh{k}", values[k - 1], g)
            call(f"g{k}", values[k - 1], f"dh{k}", below, over=True)     # reads where the output of relu is above 0
            g = f"g{k}"
    gradients = [f"d{p}{k}" for k in range(1, last + 1) for p in "wb"]
    call("update", 0, "loss", *gradients)
    return calls


def most_live(calls):
    """The largest number of bytes that is live during any of the calls."""
    last_read = {name: i for i, call in enumerate(calls) for name in call.reads}
    live, most = {}, 0
    for i, call in enumerate(calls):
        dying = {name for name in call.reads if name in live and last_read[name] == i}
        reused = call.over and any(live[name] == call.nbytes for name in dying)
        most = max(most, sum(live.values()) + (0 if reused else call.nbytes))
        for name in dying: del live[name]
        if call.makes in last_read: live[call.makes] = call.nbytes
    return most


def bound(problem):
    """The same for a step, with the solver states."""
    states = 2 * parameter_bytes(problem) if problem.solver == "adam" else 0
    return most_live(program(problem)) + states


def parameter_bytes(problem):
    return sum(FLOAT * (a + 1) * b for a, b in zip(problem.sizes, problem.sizes[1:], strict=False))
