"""Calls of every operator with inputs of a given number of elements, float32, for sweep.py.

`cases()` lists them. A case has a label, the row, the functions of both libraries and `make(n)`, which returns the
arguments: arrays are inputs, all else are attributes. Elementwise operators and losses get numbers of their samples
(tests/samples), drawn at random. The others have shapes here. Images have 8 channels and a side of at most 256."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

import cygrad as cg
from tests.samples import TABLE
from tests.support.in_torch import torch_counterparts

LOSSES = ("distances", "likelihoods", "loss", "margins")
FLAT = ("elementwise", "functions", "special", "activations", "compare", *LOSSES)
SPARSE = 1 << 12            # different numbers in the inputs of elementwise operators
VIEWS = ("reshape", "transpose", "permute", "squeeze", "expand_dims", "flip", "broadcast_to", "getitem", "split",
         "diagonal")            # their results share memory, so the size of what they view does not matter
SEVERAL = ("qr", "svd", "eigh", "slogdet")      # have several results; backward is that of the first
PUBLIC = (*SEVERAL, "cholesky", "eigvalsh")     # for samples, their functions have other results or operands
SIDE = 256                  # the longest side of an image
WIDTH = 64                  # of rows: features, classes, sizes of heads


@dataclass
class Sized:
    """A call: `ours(*args, **kwargs)` and `theirs(*args, **kwargs)`, where args = make(n)."""

    label: str
    row: str
    make: Callable
    ours: Callable
    theirs: Callable
    kwargs: dict
    backward: bool
    variables: int = 5      # the number of floating inputs, from the first, whose gradients are computed


def numbers(*shape):
    """Normal numbers, the same for every process."""
    return np.random.default_rng(sum(shape)).standard_normal(shape, np.float32)


def below(bound, *shape):
    """Integers from 0 to bound - 1."""
    return np.random.default_rng(bound).integers(0, bound, shape)


# ---- shapes of about n elements --------------------------------------------------------------------------------------

def side(n):    return math.isqrt(n)
def rows(n):    return max(n // WIDTH, 1), min(n, WIDTH)
def square(n):  return side(n), side(n)


def images(n, d=2):
    """(batch, 8 or fewer channels, side, ...) with d sides."""
    channels = 8 if n >= 1 << 10 else 1
    side = min(SIDE, 1 << max(2, round(math.log2(n / channels) / d)))
    return max(1, n // channels // side ** d), channels, *[side] * d


def matrix(n):  return [numbers(*square(n))]
def vector(n):  return [numbers(n)]


def positive(n):
    """A symmetric positive definite matrix."""
    x = numbers(*square(n))
    return [x @ x.T + len(x) * np.eye(len(x), dtype=np.float32)]


def triangular(n):
    k = side(n)
    return [np.tril(numbers(k, k)) / k + np.eye(k, dtype=np.float32), numbers(k, 4)]


def normalized(n):
    x = numbers(*images(n))
    return [x, numbers(x.shape[1]), numbers(x.shape[1])]


def convolved(d, transposed, n):
    x = numbers(*images(n, d))
    shape = (x.shape[1], 16) if transposed else (16, x.shape[1])
    return [x, numbers(*shape, *[3] * d), numbers(16)]


def heads(n):
    """(batch, heads, length, size)"""
    length = max(4, min(256, n // 256))
    size = min(WIDTH, max(1, n // length))
    return max(1, n // (length * size * 4)), 4, length, size


def with_head(n):
    r, k = rows(n)
    return [numbers(r, k), numbers(WIDTH, k), below(WIDTH, r)]


SHAPED = {
    "sum": [("", matrix, {}), ("inner axis", matrix, {"axis": -1}), ("outer axis", matrix, {"axis": 0})],
    "mean": [("", matrix, {}), ("inner axis", matrix, {"axis": -1}), ("outer axis", matrix, {"axis": 0})],
    **{name: [("inner axis", matrix, {"axis": -1}), ("outer axis", matrix, {"axis": 0})]
       for name in ("prod", "any", "all", "var", "std", "max", "min", "argmax", "argmin", "logsumexp", "softmax",
                    "log_softmax", "cumsum", "cumprod", "cummax", "cummin")},
    "norm": [("", matrix, {})],
    "reshape": [("", lambda n: [numbers(*square(n)), (-1,)], {})],
    "transpose": [("", matrix, {})], "permute": [("", lambda n: [*matrix(n), (1, 0)], {})],
    "squeeze": [("", lambda n: [numbers(1, n)], {"axis": 0})], "expand_dims": [("", lambda n: [numbers(n), 0], {})],
    "flip": [("inner axis", matrix, {"axis": -1}), ("outer axis", matrix, {"axis": 0})],
    "broadcast_to": [("", lambda n: [numbers(side(n)), square(n)], {})],
    "copy": [("", vector, {})],
    "astype": [("to float64", lambda n: [numbers(n), "float64"], {}),
               ("to int64", lambda n: [numbers(n), "int64"], {}),
               ("from int64", lambda n: [below(100, n), "float32"], {}),
               ("from bool to int64", lambda n: [numbers(n) > 0, "int64"], {})],
    "concat": [("outer axis", lambda n: matrix(n // 2) * 2, {"axis": 0}),
               ("inner axis", lambda n: matrix(n // 2) * 2, {"axis": 1})],
    "stack": [("outer axis", lambda n: matrix(n // 2) * 2, {"axis": 0}),
              ("inner axis", lambda n: matrix(n // 2) * 2, {"axis": 2})],
    "split": [("", lambda n: [numbers(*square(n)), 2], {})], "pad": [("", lambda n: [*matrix(n), 1], {})],
    "tril": [("", matrix, {})], "triu": [("", matrix, {})],
    "getitem": [("every second row", lambda n: [*matrix(n), (slice(None, None, 2),)], {}),
                ("every second column", lambda n: [*matrix(n), (slice(None), slice(None, None, 2))], {})],
    "take": [("rows", lambda n: [numbers(*rows(n)), below(rows(n)[0], rows(n)[0])], {"axis": 0}),
             ("elements", lambda n: [numbers(n), below(n, n)], {"axis": 0})],
    "add_at": [("rows", lambda n: [numbers(*rows(n)), 0, numbers(*rows(n)), below(rows(n)[0], rows(n)[0])], {})],
    "gather": [("", lambda n: [*matrix(n), 1, below(side(n), *square(n))], {})],
    "scatter_add": [("", lambda n: [*matrix(n), 1, below(side(n), *square(n)), *matrix(n)], {})],
    "argwhere": [("", lambda n: [numbers(n) > 1], {})],
    "one_hot": [("", lambda n: [below(WIDTH, rows(n)[0]), WIDTH, "float32"], {})],
    "select": [("", lambda n: [numbers(n), numbers(n) > 0], {})],
    "mask_put": [("", lambda n: [numbers(n), numbers(int((numbers(n) > 0).sum())), numbers(n) > 0], {})],
    "sort": [("", matrix, {})], "argsort": [("", matrix, {})],
    "topk": [("", lambda n: [*matrix(n), 4], {})],
    "matmul": [("", lambda n: [*matrix(n), *matrix(n)], {}),
               ("matrix and vector", lambda n: [*matrix(n), numbers(side(n))], {}),
               ("vectors", lambda n: [numbers(n), numbers(n)], {}),
               ("batches", lambda n: [numbers(n // 16, 4, 4), numbers(n // 16, 4, 4)], {})],
    "linear": [("", lambda n: [numbers(*rows(n)), numbers(WIDTH, rows(n)[1]), numbers(WIDTH)], {})],
    "einsum": [("ij,ik->jk", lambda n: [numbers(*rows(n)), numbers(*rows(n)), "ij,ik->jk"], {}),
               ("i,j->ij", lambda n: [numbers(side(n)), numbers(side(n)), "i,j->ij"], {})],
    "diagonal": [("", matrix, {})], "diag": [("", lambda n: [numbers(side(n))], {})],
    **{name: [("", positive, {})] for name in (
        "cholesky", "qr", "svd", "svdvals", "eigh", "eigvalsh", "inv", "pinv", "det", "slogdet")},
    "solve": [("", lambda n: [*positive(n), numbers(side(n), 4)], {})],
    "solve_triangular": [("", triangular, {"upper": False})],
    "lstsq": [("", lambda n: [numbers(*rows(n)), numbers(rows(n)[0], 4)], {})],
    **{f"conv{t}{d}d": [("", partial(convolved, d, bool(t)), {})] for t in ("", "_transpose") for d in (1, 2, 3)},
    **{f"{kind}_pool{d}d": [("", lambda n, d=d: [numbers(*images(n, d))], {"kernel_size": 2})]
       for kind in ("max", "avg") for d in (1, 2, 3)},
    **{f"adaptive_{kind}_pool{d}d": [("", lambda n, d=d: [numbers(*images(n, d))], {"output_size": 3})]
       for kind in ("max", "avg") for d in (1, 2, 3)},
    "unfold": [("", lambda n: [numbers(*images(n))], {"kernel_size": 2})],
    "interpolate": [("nearest", lambda n: [numbers(*images(n // 4))], {"scale_factor": 2}),
                    ("bilinear", lambda n: [numbers(*images(n // 4))], {"scale_factor": 2, "mode": "bilinear"})],
    "layer_norm": [("", lambda n: [numbers(*rows(n)), numbers(rows(n)[1]), numbers(rows(n)[1])], {})],
    "rms_norm": [("", lambda n: [numbers(*rows(n)), numbers(rows(n)[1])], {})],
    "group_norm": [("", lambda n: [normalized(n)[0], max(1, images(n)[1] // 2), *normalized(n)[1:]], {})],
    "instance_norm": [("", normalized, {})], "batch_norm": [("", normalized, {})],
    "embedding": [("", lambda n: [below(1000, rows(n)[0]), numbers(1000, WIDTH)], {})],
    "scaled_dot_product_attention": [("", lambda n: [numbers(*heads(n)) for _ in range(3)], {})],
    "cross_entropy": [("", lambda n: [numbers(*rows(n)), below(rows(n)[1], rows(n)[0])], {})],
    "soft_cross_entropy": [("", lambda n: [numbers(*rows(n)), np.abs(numbers(*rows(n)))], {})],
    "nll_loss": [("", lambda n: [numbers(*rows(n)), below(rows(n)[1], rows(n)[0])], {})],
    "linear_cross_entropy": [("", with_head, {})],
    "batch_norm_predict": [("", lambda n: [normalized(n)[0], *np.ones((2, images(n)[1]), np.float32).tolist(),
                                           *normalized(n)[1:]], {})],
    "embedding_bag": [("", lambda n: [below(1000, max(1, n // 512), 8), numbers(1000, WIDTH)], {"mode": "sum"})],
    "fold": [("", lambda n: [numbers(1, 4, (side(n // 4) + 1) ** 2), 2 * (side(n // 4) + 2,), 2], {})],
    "searchsorted": [("", lambda n: [np.sort(numbers(n)), numbers(n)], {})],
    "glu": [("", matrix, {})],
    "prelu": [("", lambda n: [numbers(*rows(n)), np.full(1, 0.25, np.float32)], {})],
    "bitwise_and": [("bool", lambda n: [numbers(n) > 0, numbers(n) > 1], {})],
}


# Programs of both libraries whose operands have particular layouts, and functions that make tensors.
LAYOUTS = [
    ("row + column", "add", lambda n: [numbers(1, side(n)), numbers(side(n), 1)], lambda x, y: x + y),
    ("x + column", "add", lambda n: [*matrix(n), numbers(side(n), 1)], lambda x, y: x + y),
    ("x + row", "add", lambda n: [*matrix(n), numbers(side(n))], lambda x, y: x + y),
    ("x * short row", "mul", lambda n: [numbers(n // 4, 4), numbers(4)], lambda x, y: x * y),
    ("x + channel", "add", lambda n: [numbers(*images(n)), numbers(images(n)[1], 1, 1)], lambda x, y: x + y),
    ("x.T + y", "add", lambda n: [*matrix(n), *matrix(n)], lambda x, y: x.T + y),
    ("x[:, ::2] + y", "add", lambda n: [*matrix(n), numbers(side(n), side(n) // 2)], lambda x, y: x[:, ::2] + y),
    ("x * 2", "mul", vector, lambda x: x * 2),
    ("x > 0", "greater", vector, lambda x: x > 0),
    ("x.T * 1", "mul", matrix, lambda x: x.T * 1),
]


def torch_functions():
    """Functions of PyTorch by the names of rows, with the arguments of the rows' functions."""
    import torch

    on, f = torch.linalg, torch.nn.functional
    plain = {name: getattr(on, name) for name in ("cholesky", "qr", "svd", "eigh", "eigvalsh", "det", "slogdet")}
    plain["lstsq"] = lambda x, b: on.lstsq(x, b).solution
    plain["scaled_dot_product_attention"] = f.scaled_dot_product_attention
    plain["embedding"] = f.embedding
    plain["copy"] = torch.clone
    plain["argsort"] = lambda x: torch.argsort(x, stable=True)
    plain["topk"] = lambda x, k: torch.topk(x, k).indices
    plain["cummax"] = lambda x, axis: torch.cummax(x, axis)[1]
    plain["cummin"] = lambda x, axis: torch.cummin(x, axis)[1]
    plain["any"], plain["all"] = torch.any, torch.all
    plain["polygamma"] = lambda x, n: torch.polygamma(n, x)
    plain |= {"gather": torch.gather, "scatter_add": torch.scatter_add, "embedding_bag": f.embedding_bag,
              "add_at": lambda x, axis, v, i: x.index_add(axis, i, v)}
    found = {row.name: getattr(f, row.name, None) or getattr(torch, row.name, None) for row in TABLE}
    return {name: function for name, function in (found | torch_counterparts(torch) | plain).items() if function}


def flat_case(row):
    """The first sample of a row whose arrays have equal shapes, drawn from to have n elements."""
    args, kwargs = next((a, k) for a, k in row.tries if a[0].size > 1 and len(
        {v.shape for v in a if isinstance(v, np.ndarray)}) == 1)

    def make(n):
        rng = np.random.default_rng(n)

        def drawn(a):
            few = rng.choice(a.ravel(), min(n, SPARSE))
            return np.resize(few.astype(np.float32) if few.dtype.kind == "f" else few, n)

        return [drawn(a) if isinstance(a, np.ndarray) else a for a in args]

    return make, kwargs


def cases():
    """All cases, and {name: reason} of the rows that cannot be compared."""
    import torch

    theirs, made, without = torch_functions(), [], {}
    for row in TABLE:
        if row.name not in theirs:
            without[row.name] = "PyTorch has no such function, or only as a module"
        elif row.name in SHAPED:
            for variant, make, kwargs in SHAPED[row.name]:
                ours = row.function if row.name in PUBLIC else row.tested
                made.append(Sized(f"{row.name}, {variant}" if variant else row.name, row.name, make, ours,
                                  theirs[row.name], kwargs, row.operator.differentiable and "int" not in variant))
        elif row.family in FLAT:
            make, kwargs = flat_case(row)
            made.append(Sized(row.name, row.name, make, row.tested, theirs[row.name], kwargs,
                             row.operator.differentiable and row.name != "floor_divide",
                             1 if row.family in LOSSES else len(row.tries[0][0])))
        else:
            without[row.name] = "what other operators compute in backward, or a module in PyTorch"
    made += [Sized(label, row, make, f, f, {}, row != "greater") for label, row, make, f in LAYOUTS]
    made.append(Sized("x.T.copy()", "copy", matrix, lambda x: x.T.copy(), lambda x: x.T.contiguous(), {}, True))
    made.append(Sized("x.T.reshape", "reshape", matrix, lambda x: x.T.reshape(-1), lambda x: x.T.reshape(-1), {}, True))
    for name in ("arange", "zeros", "ones", "eye"):
        make = (lambda n: [side(n)]) if name == "eye" else lambda n: [n]
        made.append(Sized(name, name, make, getattr(cg, name), getattr(torch, name), {}, False))
    return made, without
