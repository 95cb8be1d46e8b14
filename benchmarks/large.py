"""Elementwise work on 16,777,216 float32 numbers, where memory and not arithmetic limits the speed.

*fresh result*: y = f(x), with y deleted before the next call. *forward + backward*: recorded, then the gradients as new
results of grad(), with a head gradient that exists before; add and mul have two variables. Every library has processes
of its own, also with one thread. *PyTorch keeping memory* is PyTorch in a process whose allocator returns nothing to
the system (MALLOC_MMAP_THRESHOLD_ and MALLOC_TRIM_THRESHOLD_ of 8 GiB). This has the effect of a pool. NumPy's sigmoid
and gelu are written out, with SciPy's erf. The machine's limit is the time to read and write the necessary bytes, at
the rate of a copy in the same run. quick: only add and exp."""

import numpy as np

from benchmarks import limits
from benchmarks.timing import repeat
from benchmarks.work import EAGER, KEPT, LIMITS, Case

THREADS = None
LIBRARIES = (*EAGER, KEPT, LIMITS)
SEPARATE = True
QUICK = dict(rounds=2, processes=1)
FULL = dict(rounds=7)
SIZE = 1 << 24
OPERATORS = ("add", "mul", "exp", "tanh", "sigmoid", "gelu")
QUICKLY = ("add", "exp")

# The number of arrays of this size that must be read or written: in forward, and in forward and the least backward.
# With one input: x, y; then head, the saved array, dx. In backward, add computes nothing (the head is both gradients),
# and mul reads head, x and w and writes two.
PASSES = {"add": (3, 3), "mul": (3, 8)} | dict.fromkeys(("exp", "tanh", "sigmoid", "gelu"), (2, 5))


def inputs(size):
    """Two operands and a head gradient."""
    rng = np.random.default_rng(0)
    return [rng.standard_normal(size, np.float32) for _ in range(3)]


def some(*arrays):
    """Some thousand numbers of each array, to compare results across processes."""
    return [np.array(a[:: max(1, a.size // 1999)], np.float64) for a in arrays]


def numpy_functions():
    from scipy.special import erf

    half = np.float32(0.5 ** 0.5)
    return {"add": np.add, "mul": np.multiply, "exp": np.exp, "tanh": np.tanh,
            "sigmoid": lambda x: 1 / (1 + np.exp(-x)), "gelu": lambda x: x * (1 + erf(x * half)) * np.float32(0.5)}


def torch_functions():
    import torch

    return {"gelu": torch.nn.functional.gelu} | {name: getattr(torch, name) for name in OPERATORS if name != "gelu"}


def cygrad_functions():
    import cygrad as cg

    return {name: getattr(cg, name) for name in OPERATORS}


# ---- f, and f with its gradients: the timed function, and arrays to compare ------------------------------------------

def cygrad_work(f, operands, head, backward):
    """cygrad's work: a function without arguments, and one that returns some of the values."""
    import cygrad as cg

    variables, head = [cg.asarray(x) for x in operands], cg.asarray(head)
    if not backward:
        return lambda: f(*variables), lambda: some(f(*variables).numpy())
    for x in variables:
        x.attach_grad()

    def both():
        with cg.record():
            y = f(*variables)
        return y, cg.autograd.grad(y, variables, head)

    def values():
        y, gradients = both()
        return some(y.detach().numpy(), *(g.numpy() for g in gradients))

    return both, values


def torch_work(f, operands, head, backward):
    """The same in PyTorch."""
    import torch

    variables, head = [torch.from_numpy(x) for x in operands], torch.from_numpy(head)
    if not backward:
        return lambda: f(*variables), lambda: some(f(*variables).numpy())
    variables = [x.detach().requires_grad_() for x in variables]

    def both():
        y = f(*variables)
        return y, torch.autograd.grad(y, variables, head)

    def values():
        y, gradients = both()
        return some(y.detach().numpy(), *(g.numpy() for g in gradients))

    return both, values


def cases(libraries, quick, size=SIZE):
    """The machine's rate, and each operator in both modes."""
    x, w, head = inputs(size)
    made = limits.cases(libraries, ("copy",))
    functions = {}
    if "cygrad" in libraries:
        functions["cygrad"] = cygrad_functions(), cygrad_work
    for peer in ("PyTorch", KEPT):
        if peer in libraries:
            functions[peer] = torch_functions(), torch_work
    for name in QUICKLY if quick else OPERATORS:
        operands = [x, w] if name in ("add", "mul") else [x]
        for mode, passes in zip(("fresh result", "forward + backward"), PASSES[name], strict=True):
            backward = mode != "fresh result"
            works = {peer: work(table[name], operands, head, backward) for peer, (table, work) in functions.items()}
            if "NumPy" in libraries and not backward:
                f = numpy_functions()[name]
                works["NumPy"] = (lambda f=f, operands=operands: f(*operands),
                                  lambda f=f, operands=operands: some(f(*operands)))
            made.append(Case(f"{name}, {mode}", "ms", {peer: repeat(run) for peer, (run, _) in works.items()},
                             {peer: values for peer, (_, values) in works.items()},
                             details=dict(limit="copy", amount=4 * size * passes)))
    return made
