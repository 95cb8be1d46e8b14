"""The cost of one operation: chains of 1,000 operations on float32 tensors of 1 and of 64 numbers.

Modes: *not recorded*; *recorded* (one recording scope around everything; deleting the graph is timed too); *forward +
backward* (recorded, then backward with a head gradient that exists before; cygrad overwrites `.grad`, and PyTorch's is
set to None before). Times are for one operation, including Python's loop.

`y * c` is the chain with a constant tensor c. The second table has every elementwise operator of cygrad's table, called
as a function f(y) or f(y, c), next to multiply called the same way in the same rounds. If a chain of one operator would
overflow, it alternates with another one: pow with exponents 1.5 and 1 / 1.5; exp with sub(y, 1); log with add(y, 1).
The time of a separate chain of that add or sub is subtracted. Comparisons, logic, and functions that would leave their
domain are applied 1,000 times to the same input, and are not timed with backward. (x * x).sum() is a whole forward and
backward on 4 numbers in an open scope."""

import numpy as np

import cygrad as cg
from benchmarks.work import EAGER, Case
from tests.samples import TABLE

THREADS = 1
LIBRARIES = EAGER
LENGTH = 1000
MODES = ("not recorded", "recorded", "forward + backward")
FAMILIES = ("elementwise", "functions", "compare")
RUN_OFF = {"square", "expm1", "tan", "asin", "acos", "sinh", "cosh", "acosh", "atanh"}
NO_DERIVATIVE = {"floor_divide"}                    # in PyTorch; cygrad's is zeros
COMPANIONS = {"exp": "sub", "log": "add"}
FEW = ("add", "sub", "maximum", "relu", "exp", "tanh", "sqrt", "where", "less")  # for a quick run
EXPONENTS = (1.5, 1 / 1.5)


def inputs(name, size):
    """The start of a chain and the second operand. 1,000 operations stay in range."""
    rng = np.random.default_rng(size)
    x = rng.uniform(0.5, 1.0, size).astype(np.float32)
    c = rng.uniform(0.999, 1.001, size).astype(np.float32)
    if name == "exp":
        x, c = -x, np.ones(size, np.float32)
    elif name in ("log", "acosh"):
        x, c = x + 1, np.ones(size, np.float32)
    elif name in ("add", "sub"):
        c = c - np.float32(1)
    return x, c


# ---- chains: functions from the start to the end ---------------------------------------------------------------------

def chain_times(c):
    def go(y):
        for _ in range(LENGTH):
            y = y * c
        return y

    return go


def chain_one(f):
    def go(y):
        for _ in range(LENGTH):
            y = f(y)
        return y

    return go


def chain_two(f, c):
    def go(y):
        for _ in range(LENGTH):
            y = f(y, c)
        return y

    return go


def chain_powers(f):
    a, b = EXPONENTS

    def go(y):
        for _ in range(LENGTH // 2):
            y = f(y, a)
            y = f(y, b)
        return y

    return go


def chain_alternating(f, g, c):
    def go(y):
        for _ in range(LENGTH // 2):
            y = f(y)
            y = g(y, c)
        return y

    return go


def same_input(f, *others):
    def one(x):
        for _ in range(LENGTH):
            y = f(x)
        return y

    def two(x):
        c = others[0]                               # (f(x, *others) would cost 40 ns more than a chain's f(y, c))
        for _ in range(LENGTH):
            y = f(x, c)
        return y

    return two if others else one


def same_bools(f, *others):
    others = [c > 1 for c in others]

    def go(x):
        return same_input(f, *others)(x > 0.75)

    return go


def chain_where(f, c):
    mask = c > 1

    def go(y):
        for _ in range(LENGTH):
            y = f(mask, y, c)
        return y

    return go


def chain_clip(f):
    def go(y):
        for _ in range(LENGTH):
            y = f(y, 0.25, 0.75)
        return y

    return go


def chain_of(row, functions, c):
    """The chain of a row of the table. `functions` returns a library's function by the operator's name."""
    f = functions(row.name)
    if row.name in COMPANIONS:
        return chain_alternating(f, functions(COMPANIONS[row.name]), c)
    if row.name == "pow":
        return chain_powers(f)
    if row.name == "where":
        return chain_where(f, c)
    if row.name == "clip":
        return chain_clip(f)
    others = [c] * (arity(row) - 1)
    if row.name.startswith("bitwise"):
        return same_bools(f, *others)
    if not timed_backward(row):
        return same_input(f, *others)
    return chain_two(f, c) if arity(row) == 2 else chain_one(f)


def timed_backward(row):
    """Whether a chain of 1,000 calls of the operator stays in range and has a gradient."""
    return row.operator.differentiable and row.name not in RUN_OFF


def arity(row):
    """The number of inputs of the operator, from its first sample call."""
    arguments, _ = row.tries[0]
    return sum(isinstance(a, np.ndarray) for a in arguments)


# ---- the libraries' functions by the names of cygrad's table ---------------------------------------------------------

def cygrad_function(name):
    return next(row.function for row in TABLE if row.name == name)


def torch_function(name):
    import torch

    if name == "relu_gradient":
        return lambda g, y: torch.ops.aten.threshold_backward(g, y, 0)
    name = {"equal": "eq", "power": "pow"}.get(name, name)                 # torch.equal returns one bool
    return getattr(torch, name, None) or getattr(torch.nn.functional, name, None)


def numpy_function(name):
    return next(row.like for row in TABLE if row.name == name)


# ---- how each library runs a chain in each mode ----------------------------------------------------------------------

def cygrad_run(go, x, mode):
    """f(n) and a function that returns what it computes, for cygrad."""
    start = cg.tensor(x).attach_grad()
    head = cg.ones(x.shape)

    def run(n):
        if mode == "not recorded":
            for _ in range(n):
                go(start)
            return
        with cg.record():
            for _ in range(n):
                y = go(start)
                if mode == "forward + backward":
                    y.backward(head)
                del y

    def values():
        if mode == "not recorded":
            return [go(start).numpy()]
        with cg.record():
            y = go(start)
        y.backward(head)
        return [y.detach().numpy(), start.grad.numpy()]

    return run, values


def torch_run(go, x, mode):
    """f(n) and what it computes, for PyTorch."""
    import torch

    start = torch.from_numpy(x.copy()).requires_grad_()
    head = torch.ones(x.shape)

    def run(n):
        if mode == "not recorded":
            with torch.no_grad():
                for _ in range(n):
                    go(start)
            return
        for _ in range(n):
            y = go(start)
            if mode == "forward + backward":
                start.grad = None
                y.backward(head)
            del y

    def values():
        if mode == "not recorded":
            with torch.no_grad():
                return [go(start).numpy()]
        start.grad = None
        y = go(start)
        y.backward(head)
        return [y.detach().numpy(), start.grad.numpy()]

    return run, values


def numpy_run(go, x):
    """f(n) and what it computes, for NumPy, which records nothing."""

    def run(n):
        for _ in range(n):
            go(x)

    return run, lambda: [go(x)]


# ---- cases -----------------------------------------------------------------------------------------------------------

def times_case(libraries, size, mode):
    """y * c."""
    x, c = inputs("mul", size)
    made = {}
    if "cygrad" in libraries:
        made["cygrad"] = cygrad_run(chain_times(cg.tensor(c)), x, mode)
    if "PyTorch" in libraries:
        import torch

        made["PyTorch"] = torch_run(chain_times(torch.from_numpy(c)), x, mode)
    if "NumPy" in libraries and mode == "not recorded":
        made["NumPy"] = numpy_run(chain_times(c), x)
    return case(f"y * c, size {size}, {mode}", made, dict(kind="chain", size=size, mode=mode))


def row_case(libraries, row, size, mode):
    """An elementwise row of the table, with its companion and with multiply."""
    x, c = inputs(row.name, size)
    multiply, companion = next(r for r in TABLE if r.name == "mul"), COMPANIONS.get(row.name)
    made = {}
    if "cygrad" in libraries:
        made["cygrad"] = cygrad_run(chain_of(row, cygrad_function, cg.tensor(c)), x, mode)
        mx, mc = inputs("mul", size)
        made["cygrad multiply"] = cygrad_run(chain_of(multiply, cygrad_function, cg.tensor(mc)), mx, mode)
        if companion:
            made["cygrad companion"] = cygrad_run(chain_two(cygrad_function(companion), cg.tensor(c)), x, mode)
    if "PyTorch" in libraries and torch_function(row.name):
        import torch

        made["PyTorch"] = torch_run(chain_of(row, torch_function, torch.from_numpy(c)), x, mode)
        if companion:
            made["PyTorch companion"] = torch_run(chain_two(torch_function(companion), torch.from_numpy(c)), x, mode)
    if "NumPy" in libraries and mode == "not recorded":
        made["NumPy"] = numpy_run(chain_of(row, numpy_function, c), x)
        if companion:
            made["NumPy companion"] = numpy_run(chain_two(numpy_function(companion), c), x)
    return case(f"{row.name}, size {size}, {mode}", made, dict(kind="table", operator=row.name, size=size, mode=mode))


def case(name, made, details):
    compared = {peer: values for peer, (_, values) in made.items() if " " not in peer}
    return Case(name, "us", {peer: run for peer, (run, _) in made.items()}, compared, per=LENGTH, tolerance=1e-3,
                details=details)


def square_case(libraries):
    """(x * x).sum() on 4 numbers."""
    x = np.array([1, 2, 3, 4], np.float32)
    runs, values = {}, {}
    if "cygrad" in libraries:
        mine = cg.tensor(x).attach_grad()

        def run(n):
            with cg.record():
                for _ in range(n):
                    (mine * mine).sum().backward()

        runs["cygrad"], values["cygrad"] = run, lambda: (run(1), [mine.grad.numpy()])[1]
    if "PyTorch" in libraries:
        import torch

        theirs = torch.from_numpy(x.copy()).requires_grad_()

        def run_torch(n):
            for _ in range(n):
                theirs.grad = None
                (theirs * theirs).sum().backward()

        runs["PyTorch"], values["PyTorch"] = run_torch, lambda: (run_torch(1), [theirs.grad.numpy()])[1]
    return Case("(x * x).sum(), 4 numbers, forward + backward", "us", runs, values, details=dict(kind="chain"))


def cases(libraries, quick):
    """Every chain. quick: only size 1 and a few rows of the table."""
    made = [times_case(libraries, size, mode) for size in (1, 64) for mode in MODES] + [square_case(libraries)]
    for size in (1,) if quick else (1, 64):
        for row in TABLE:
            if row.family in FAMILIES and not (quick and row.name not in FEW):
                recorded = row.operator.differentiable and row.name not in NO_DERIVATIVE
                modes = MODES if timed_backward(row) and recorded else MODES[:2] if recorded else MODES[:1]
                made += [row_case(libraries, row, size, mode) for mode in modes]
    return made
