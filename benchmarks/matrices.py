"""Rows, sums and products of float32 matrices.

softmax and logsumexp along the rows of a 4096 x 4096 matrix: forward (not recorded), and forward and backward with a
head gradient that exists before and the gradient as a new result of grad(). sum and mean along each axis of the same
matrix. Products of square matrices, and of 64 pairs of 128 x 128 matrices, in GFLOP/s, with 2 n^3 operations each.
NumPy's softmax and logsumexp are written out. jax is compiled by jax.jit, with jax.vjp for the gradients.

The machine's limit is the time to read and write the necessary bytes, at the rate of a copy (for sums: of reading) in
the same run, and for products the rate of multiply-adds. quick: no product of 2048, no mean."""

import numpy as np

from benchmarks import limits
from benchmarks.timing import repeat
from benchmarks.work import EAGER, LIMITS, Case

THREADS = None
LIBRARIES = (*EAGER, "jax.jit", LIMITS)
QUICK = dict(rounds=3, processes=1)
FULL = dict(rounds=11)
SIDE = 4096
SIZES = (64, 256, 1024, 2048)
BATCH, INNER = 64, 128

# By name: the function, the axis, and how many arrays of the matrix's size must be read or written (forward; both).
ROWWISE = {"softmax": ("softmax", 1, 2, 5), "logsumexp": ("logsumexp", 1, 1, 3)}
REDUCTIONS = {f"{name}, axis {axis}": (name, axis) for name in ("sum", "mean") for axis in (0, 1)}


def some(array):
    """Some thousand numbers of an array."""
    array = np.asarray(array).ravel()
    return np.array(array[:: max(1, array.size // 1999)], np.float64)


def numpy_softmax(x, axis):
    y = np.exp(x - x.max(axis, keepdims=True))
    y /= y.sum(axis, keepdims=True)
    return y


def numpy_logsumexp(x, axis):
    highest = x.max(axis, keepdims=True)
    return np.log(np.exp(x - highest).sum(axis)) + highest[:, 0]


# ---- each library: methods that take arrays and return the function to time ------------------------------------------

class Cygrad:
    def __init__(self):
        import cygrad as cg

        self.library = cg

    def tensor(self, x):
        return self.library.asarray(x)

    def wait(self, y):
        """Work is finished when a call returns."""

    def forward(self, name, axis, x):
        f, x = getattr(self.library, name), self.tensor(x)
        return lambda: f(x, axis)

    def both(self, name, axis, x, head):
        cg, f = self.library, getattr(self.library, name)
        x, head = self.tensor(x).attach_grad(), self.tensor(head)

        def work():
            with cg.record():
                y = f(x, axis)
            return y.detach(), cg.autograd.grad(y, x, head)

        return work

    def product(self, a, b):
        a, b = self.tensor(a), self.tensor(b)
        return lambda: a @ b


class PyTorch(Cygrad):
    def __init__(self):
        import torch

        self.library = torch

    def tensor(self, x):
        return self.library.from_numpy(x)

    def both(self, name, axis, x, head):
        f = getattr(self.library, name)
        x, head = self.tensor(x).detach().requires_grad_(), self.tensor(head)

        def work():
            y = f(x, axis)
            return y.detach(), self.library.autograd.grad(y, x, head)[0]

        return work


class Numpy(Cygrad):
    both = None

    def __init__(self):
        self.library = np

    def tensor(self, x):
        return x

    def forward(self, name, axis, x):
        f = {"softmax": numpy_softmax, "logsumexp": numpy_logsumexp}.get(name) or getattr(np, name)
        return lambda: f(x, axis)


class Jax(Cygrad):
    def __init__(self):
        import jax

        self.jax = jax
        self.functions = {"softmax": jax.nn.softmax, "logsumexp": jax.nn.logsumexp, "sum": jax.numpy.sum,
                          "mean": jax.numpy.mean}

    def tensor(self, x):
        return self.jax.numpy.asarray(x)

    def wait(self, y):
        self.jax.block_until_ready(y)

    def forward(self, name, axis, x):
        f, x = self.jax.jit(lambda x: self.functions[name](x, axis)), self.tensor(x)
        return lambda: f(x)

    def both(self, name, axis, x, head):
        def work(x, head):
            y, backward = self.jax.vjp(lambda x: self.functions[name](x, axis), x)
            return y, backward(head)[0]

        f, x, head = self.jax.jit(work), self.tensor(x), self.tensor(head)
        return lambda: f(x, head)

    def product(self, a, b):
        f, a, b = self.jax.jit(self.jax.numpy.matmul), self.tensor(a), self.tensor(b)
        return lambda: f(a, b)


KINDS = {"cygrad": Cygrad, "PyTorch": PyTorch, "NumPy": Numpy, "jax.jit": Jax}


# ---- cases -----------------------------------------------------------------------------------------------------------

def case(name, unit, libraries, make, limit, amount, tolerance=1e-4, **details):
    """A case: `make(library)` returns the function to time, or None if the library does not have it."""
    runs, values = {}, {}
    for peer, library in libraries.items():
        work = make(library)
        if work is None:
            continue

        def wait_at_end(n, work=work, library=library):
            for _ in range(n):
                y = work()
            library.wait(y)

        def arrays(work=work):
            y = work()
            return [some(a) for a in (y if isinstance(y, tuple) else (y,))]

        runs[peer] = repeat(work) if type(library) is not Jax else wait_at_end
        values[peer] = arrays
    return Case(name, unit, runs, values, tolerance=tolerance, details=dict(limit=limit, amount=amount, **details))


def cases(libraries, quick, side=SIDE, sizes=SIZES):
    """The machine's rates, rows, sums, products."""
    made = limits.cases(libraries, ("copy", "read", "fma"))
    libraries = {peer: kind() for peer, kind in KINDS.items() if peer in libraries}
    rng = np.random.default_rng(0)
    x, head = (rng.standard_normal((side, side), np.float32) for _ in range(2))
    for name, (f, axis, forward, both) in ROWWISE.items():
        g = head if name == "softmax" else np.ascontiguousarray(head[0])
        made.append(case(f"{name}, forward", "ms", libraries, lambda l, f=f, axis=axis: l.forward(f, axis, x),
                         "copy" if name == "softmax" else "read", forward * x.nbytes))
        made.append(case(f"{name}, forward + backward", "ms", libraries,
                         lambda l, f=f, axis=axis, g=g: l.both and l.both(f, axis, x, g), "copy", both * x.nbytes))
    for name, (f, axis) in REDUCTIONS.items():
        if quick and f == "mean":
            continue
        made.append(case(name, "ms", libraries, lambda l, f=f, axis=axis: l.forward(f, axis, x), "read", x.nbytes,
                         tolerance=1e-3))
    for n in sizes[:-1] if quick else sizes:
        a, b = (rng.standard_normal((n, n), np.float32) for _ in range(2))
        made.append(product(f"matmul {n}", libraries, a, b))
    a, b = (rng.standard_normal((BATCH, INNER, INNER), np.float32) for _ in range(2))
    made.append(product(f"matmul {BATCH} x {INNER}", libraries, a, b))
    return made


def product(name, libraries, a, b):
    """A matrix product, whose speed is shown in operations per second."""
    operations = 2 * a.size * b.shape[-1]
    return case(name, "us", libraries, lambda l: l.product(a, b), "fma", operations, tolerance=1e-3, shown="GFLOP/s")
