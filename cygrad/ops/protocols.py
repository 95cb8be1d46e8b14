"""NumPy's functions and ufuncs of tensors: np.exp(x), np.concatenate([x, y]), np.add.reduce(x). ops/ufuncs loads this
module at the first call.

NumPy's function calls cygrad's of the same name, so the result is a tensor and is recorded. The names come from the
table of operators and from the namespace of cygrad. A parameter of NumPy's that cygrad's function does not have is
either done here (out, dtype, where, initial, casting), or refused by name. A function that cygrad does not have is
refused, whether or not gradients flow: NumPy's result would have none. What only reads, such as np.shape, gets arrays.

A function that writes to an array (np.add(x, y, out=array)) is computed by NumPy on the tensor's memory."""

from __future__ import annotations

import inspect
import math
import operator
import sys
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from cygrad.core.answers import KEYWORDS, REFUSED, counterpart, of_numpy
from cygrad.core.errors import described
from cygrad.core.graph.tensor import Tensor
from cygrad.core.interop.numpy import asarray
from cygrad.core.late_bound import namespace
from cygrad.ops.table import COMPOSED, TABLE
from cygrad.ops.ufuncs import called

if TYPE_CHECKING:
    import numpy.typing as npt
    Data = Tensor | npt.ArrayLike

NAMES = [name for row in TABLE if row.public for name in (row.name, *row.aliases)]
NAMES += [name for names in COMPOSED.values() for name in names]
# The ufuncs of the same names: of two names for one, such as pow and power, the first.
UFUNCS = {f: name for name in reversed(NAMES) if isinstance(f := getattr(np, name, None), np.ufunc)}
UFUNCS |= {np.rint: "round", np.fabs: "abs"}
SCIPY = {name: name for name in ("cbrt", "erf", "erfc", "erfinv", "exp2", "expm1", "log1p", "round", "xlogy")} | {
    "expit": "sigmoid", "gammaln": "lgamma", "log_expit": "logsigmoid", "psi": "digamma"}
LN_2 = math.log(2)
COMPARISONS = {np.less, np.less_equal, np.equal, np.not_equal, np.greater, np.greater_equal}
# The ufuncs without a function of that name, and what they do.
OTHERS = {
    np.positive: operator.pos, np.conjugate: operator.pos, np.divmod: divmod,
    np.logaddexp2: lambda x, y: namespace().logaddexp(x * LN_2, y * LN_2) / LN_2,
}
if hasattr(np, "matvec"):               # NumPy 2.2
    OTHERS |= {np.matvec: lambda x, v: (x @ asarray(v)[..., None])[..., 0],
               np.vecmat: lambda v, x: (asarray(v)[..., None, :] @ x)[..., 0, :]}
REDUCES = {np.add: "sum", np.multiply: "prod", np.maximum: "max", np.minimum: "min", np.logical_and: "all",
           np.logical_or: "any", np.logaddexp: "logsumexp"}
ACCUMULATES = {np.add: "cumsum", np.multiply: "cumprod", np.maximum: "cummax", np.minimum: "cummin"}
INSTEAD = {"at": "cygrad.index_add(x, axis, indices, y)", "reduceat": "the reduction of each part x[i:j]"}
NEUTRAL = {"sum": 0, "nansum": 0, "prod": 1, "any": False, "all": True, "count_nonzero": 0}
MERGED = {"sum": "add", "nansum": "add", "prod": "multiply", "max": "maximum", "min": "minimum"}
# What only reads values or shapes, or writes them to a file. No gradient can be lost.
READS = {"array_equiv", "array_repr", "array_str", "array2string", "can_cast",
         "min_scalar_type", "shares_memory", "may_share_memory", "save",
         "savetxt", "savez", "savez_compressed", "einsum_path"}
# What reads shapes and dtypes only, so a tensor needs no values: it has none while a program is traced.
FACTS = {"shape", "ndim", "size", "result_type", "common_type", "iscomplexobj", "isrealobj"}
# Parameters without an effect on the result, and all values of others that have none.
IGNORED = {"optimize", "stable", "overwrite_input", "subok", "like"}
PLAIN = {"order": ("C", "K", "A"), "device": ("cpu",), "copy": (True,), "sparse": (False,), "mode": ("raise",),
         "kind": ("quicksort", "mergesort", "heapsort", "stable"), "sorted": (True,), "equal_nan": (True,)}
MISSING = None, np._NoValue


# ---- ufuncs ----------------------------------------------------------------------------------------------------------

def module_of(ufunc):
    """The module that has a ufunc under its name: "numpy", "scipy.special" or None."""
    return next((module for module in ("numpy", "scipy.special")
                 if getattr(sys.modules.get(module), ufunc.__name__, None) is ufunc), None)


@cache
def function_of(ufunc):
    """cygrad's function for a ufunc, or None."""
    if ufunc in OTHERS: return OTHERS[ufunc]
    name = SCIPY.get(ufunc.__name__) if module_of(ufunc) == "scipy.special" else UFUNCS.get(ufunc)
    return name and getattr(namespace(), name)


def scalar(x):
    """Undo what NumPy does before it compares: np.float64(2.1) < x makes an array of the scalar, which is not weak."""
    return x[()] if type(x) is np.ndarray and x.ndim == 0 else x


def array_ufunc(ufunc, method, inputs, out, options):
    """A ufunc, or its method reduce, accumulate or outer, of inputs of which one is a tensor. `out` is a tuple or
    None."""
    if method == "__call__" and out is None and not options and (f := function_of(ufunc)):
        if ufunc in COMPARISONS: return f(*map(scalar, inputs))
        called[ufunc] = f
        return f(*inputs)
    written = inputs[:1] if method == "at" else out or ()
    if written and all(isinstance(a, np.ndarray) for a in written):
        return getattr(ufunc, method)(*lent(inputs), **options, **({"out": out} if out else {}))
    name = ".".join(filter(None, (module_of(ufunc), ufunc.__name__, method.removeprefix("__call__"))))
    if method in ("__call__", "outer"): f = function_of(ufunc)
    else: f = {"reduce": REDUCES, "accumulate": ACCUMULATES}.get(method, {}).get(ufunc)
    if f is None: raise TypeError(refusal(ufunc, method, name))
    if method == "outer":
        x, y = map(asarray, inputs)
        inputs = x.reshape((*x.shape, *[1] * y.ndim)), y
    elif method != "__call__":
        return along_axis(name, f, ufunc, method, inputs, out and out[0], options)
    options.pop("subok", None)
    return elementwise(name, f, ufunc, inputs, out, **options)


def refusal(ufunc, method, name):
    """The message for a ufunc or method that cygrad does not have."""
    if module_of(ufunc) is None:
        return f"the ufunc {name} {REFUSED}: pass x.detach().numpy() for an array without a gradient"
    letters = "xyzwv"[:ufunc.nin] if method == "__call__" else "x"
    lent = ", ".join(f"{x}.detach().numpy()" for x in letters)
    ours = f"{INSTEAD[method]}, or " if method in INSTEAD else ""
    return f"{name} {REFUSED}: call {ours}{name}({lent}) for an array without a gradient"


def elementwise(name, f, ufunc, inputs, out, where=True, dtype=None, casting="same_kind", order="K", **more):
    """f(*inputs) with the other parameters of a ufunc."""
    if ufunc in COMPARISONS: inputs = map(scalar, inputs)
    inputs = list(inputs)
    if "axis" in more and ufunc is np.vecdot: inputs.append(more.pop("axis"))
    for keyword in more: refuse(name, keyword)
    if order not in PLAIN["order"]: refuse(name, "order", order)
    masked = where is not True
    if masked and out is None:
        raise TypeError(f"{name} of a tensor takes where only with out, because the other elements have no value: "
                        f"pass out, or call cygrad.where(mask, {ufunc.__name__}(...), other)")
    if dtype is not None: inputs = [as_dtype(name, x, dtype, casting) for x in inputs]
    if masked: inputs = [away(x, where, ufunc) for x in inputs]
    y = f(*inputs)
    if casting != "same_kind" and y.dtype != "bool":
        for x in inputs: check_cast(name, x, y.dtype, casting)
    if dtype is not None and y.dtype != np.dtype(dtype): refuse(name, "dtype", dtype)
    if out is None: return y
    results = y if isinstance(y, tuple) else (y,)
    for i, (t, y) in enumerate(zip(out, results, strict=True)):
        if t is None: continue
        if masked: y = namespace().where(where, y, t)
        write(name, t, y, casting)
        results = *results[:i], t, *results[i + 1:]
    return results[0] if len(results) == 1 else results


def away(x, mask, ufunc):
    """`x` with another number where the mask is false, at which derivatives are finite: the gradient of what is not
    taken is 0 times a derivative, which would be NaN at infinity."""
    if not isinstance(x, (Tensor, np.ndarray)) or x.dtype.kind != "f": return x
    return namespace().where(mask, x, 2.0 if ufunc is np.arccosh else 0.5)


def along_axis(name, ours, ufunc, method, inputs, out, options):
    """ufunc.reduce and ufunc.accumulate: axis 0 is the default."""
    given = dict(zip(("axis", "dtype", "out", "keepdims", "initial", "where"), inputs[1:], strict=False)) | options
    axis, x = given.pop("axis", 0), asarray(inputs[0])
    if method == "reduce": y = reduction(name, ours, x, axis=axis, **given)
    else:
        if given.get("dtype") is not None: x = x.astype(given["dtype"])
        y = getattr(namespace(), ours)(x, axis)
        if isinstance(y, tuple): y = y[0]           # cummax gives the places too
    return y if out is None else write(name, out, y)


# ---- what cygrad's functions do not do themselves --------------------------------------------------------------------

def refuse(name, keyword, *value):
    """Raise TypeError for a parameter, or a value of it, that NumPy's function of a tensor does not take."""
    shown = f"={described(value[0])}" if value else ""
    raise TypeError(f"{name} of a tensor takes no {keyword}{shown}: leave it out, or call {name}(x.detach().numpy(), "
                    f"...) for an array without a gradient")


def lent(values):
    """The values with arrays for tensors. Raises RuntimeError where a gradient would be lost."""
    return [np.asarray(x) if isinstance(x, Tensor) else x for x in values]


def check_cast(name, x, dtype, casting):
    """Raise TypeError unless x may become `dtype`. A Python number may."""
    if isinstance(x, (Tensor, np.ndarray)) and not np.can_cast(x.dtype, dtype, casting):
        raise TypeError(f"{name} of a tensor: {x.dtype} may not become {np.dtype(dtype)} with casting={casting!r}")


def as_dtype(name, x, dtype, casting):
    """x as an operand of that dtype."""
    check_cast(name, x, dtype, casting)
    return asarray(x).astype(dtype)


def write(name, out, y, casting="same_kind"):
    """Write the result to the tensor `out`, which is returned."""
    if not isinstance(out, Tensor): raise TypeError(f"{name}: out must be a tensor, got {described(out)}")
    if y.shape != out.shape: raise ValueError(f"{name}: out has shape {out.shape}; it must be {y.shape}")
    check_cast(name, y, out.dtype, casting)
    return out.copy_(y)


def reduction(name, ours, x, axis=None, dtype=None, out=None, keepdims=False, initial=None, where=True, **more):
    """cygrad's reduction `ours` with NumPy's parameters. Elements that `where` leaves out count as the neutral element,
    or as `initial`."""
    cygrad = namespace()
    f, keepdims = getattr(cygrad, ours), keepdims is not np._NoValue and bool(keepdims)
    if dtype is not None: x = x.astype(dtype)
    if initial is np._NoValue: initial = None
    if where is np._NoValue: where = True
    if where is not True:
        if ours in ("mean", "var", "std"): return moments(ours, x, axis, keepdims, asarray(where), **more)
        if ours not in NEUTRAL and (initial is None or ours not in MERGED): refuse(name, "where")
        x = cygrad.where(where, x, NEUTRAL.get(ours, initial))
    if initial is not None and ours not in MERGED: refuse(name, "initial")
    if initial is not None and x.size == 0: y = cygrad.full_like(cygrad.sum(x, axis, keepdims), initial, dtype=x.dtype)
    else:
        y = f(x, axis, keepdims, **more)
        if initial is not None: y = getattr(cygrad, MERGED[ours])(y, initial)
    return y


def moments(ours, x, axis, keepdims, where, correction=0):
    """mean, var and std over the elements where `where` is true."""
    cygrad = namespace()
    n = cygrad.sum(cygrad.broadcast_to(where, x.shape), axis, True)
    y = cygrad.sum(cygrad.where(where, x, 0), axis, True) / n
    if ours != "mean":
        d = cygrad.where(where, x - y, 0)
        y = cygrad.sum(d * d, axis, True) / (n - correction)
    if ours == "std": y = cygrad.sqrt(y)
    return y if keepdims else cygrad.squeeze(y, axis)


# ---- functions -------------------------------------------------------------------------------------------------------

def dot(a, b):
    """numpy.dot: the last dimension of a with the second last of b."""
    a, b = asarray(a), asarray(b)
    if a.ndim == 0 or b.ndim == 0: return a * b
    return a @ b if a.ndim < 3 and b.ndim < 3 or b.ndim == 1 else namespace().tensordot(a, b, ((-1,), (-2,)))


def vdot(a, b):
    return namespace().vecdot(asarray(a).reshape(-1), asarray(b).reshape(-1))


def where(condition: Data, x: Data | None = None, y: Data | None = None) -> Tensor | tuple[Tensor, ...]:
    """x where the condition is true, else y; of a condition alone, the indices where it is true. See cygrad.where."""
    return namespace().nonzero(condition) if x is None and y is None else namespace().where(condition, x, y)


def round(a, decimals=0):
    scale = 10.0 ** decimals
    return namespace().round(a) if decimals == 0 else namespace().round(asarray(a) * scale) / scale


def reshape(a, shape, copy=None):
    y = asarray(a).reshape(shape)
    return y.copy() if copy else y


def copyto(dst, src, casting="same_kind", where=True):
    src = asarray(src) if isinstance(src, (Tensor, np.ndarray)) else src
    check_cast("numpy.copyto", src, dst.dtype, casting)
    dst.copy_(src if where is True else namespace().where(where, src, dst))


def pad(array, pad_width, mode="constant", constant_values=0):
    return namespace().pad(array, pad_width, mode, constant_values)


def broadcast_arrays(*args, subok=False):
    """Of what is no number too, such as None. Then the results are arrays."""
    if all(hasattr(x, "dtype") or isinstance(x, (bool, int, float, list)) for x in args):
        return namespace().broadcast_arrays(*args)
    return np.broadcast_arrays(*arrays(args), subok=subok)


def svd(a, full_matrices=True, compute_uv=True):
    linalg = namespace().linalg
    return linalg.svd(a, full_matrices) if compute_uv else linalg.svdvals(a)


def pinv(a, rcond=None, rtol=None):
    return namespace().linalg.pinv(a, rtol=rcond if rtol in MISSING else rtol)


def cross(a, b, axisa=-1, axisb=-1, axisc=-1, axis=None):
    if axis is not None: axisa = axisb = axisc = axis
    moveaxis = namespace().moveaxis
    return moveaxis(namespace().cross(moveaxis(asarray(a), axisa, -1), moveaxis(asarray(b), axisb, -1)), -1, axisc)


def rollaxis(a, axis, start=0):
    a = asarray(a)
    axis, start = axis % a.ndim, start + a.ndim * (start < 0)
    return namespace().moveaxis(a, axis, start - (axis < start))


def partition(a, kth, axis=-1):
    """A sorted array is partitioned at every place."""
    return namespace().sort(asarray(a), axis)


def select(condlist, choicelist, default=0):
    y = default
    for condition, choice in reversed([*zip(condlist, choicelist, strict=True)]):
        y = namespace().where(condition, choice, y)
    return y


def linspace(start, stop, num=50, endpoint=True, axis=0):
    start, stop = asarray(start), asarray(stop)
    step = (stop - start) / max(num - bool(endpoint), 1)
    k = namespace().arange(num, dtype=step.dtype).reshape((num,) + (1,) * step.ndim)
    return namespace().moveaxis(start + k * step, 0, axis)


# Functions whose parameters differ in more than their names.
ADAPTED = {"dot": dot, "vdot": vdot, "where": where, "round": round, "around": round, "reshape": reshape,
           "copyto": copyto, "pad": pad, "linalg.svd": svd, "linalg.pinv": pinv, "broadcast_arrays": broadcast_arrays,
           "cross": cross, "rollaxis": rollaxis, "partition": partition, "select": select, "linspace": linspace,
           "real": lambda val: +asarray(val), "real_if_close": lambda a: +asarray(a),
           "imag": lambda val: namespace().zeros_like(val)}
REDUCTIONS = {"sum", "mean", "prod", "any", "all", "max", "min", "amax", "amin", "var", "std", "nansum", "nanmean",
              "ptp", "count_nonzero"}


@cache
def parameters(function):
    return inspect.signature(function).parameters


def array_function(function, args, kwargs):
    """A function of NumPy, of arguments of which one is a tensor, also one in a list."""
    name = f"{function.__module__}.{function.__name__}".removeprefix("numpy.")
    if name in FACTS: return function._implementation(*shaped(args), **shaped(kwargs))
    if name in READS: return function._implementation(*detached(args), **detached(kwargs))
    ours = counterpart(name)
    if ours is None and name not in ADAPTED: raise TypeError(of_numpy(name))
    given, keywords = arguments_of(function, args, kwargs)
    out = keywords.pop("out", None)
    written = given[0] if name == "copyto" else out
    if isinstance(written, np.ndarray): return function._implementation(*arrays(args), **arrays(kwargs))
    y = run(f"numpy.{name}", name, ours, given, keywords)
    return y if out is None else write(f"numpy.{name}", out, y)


def arguments_of(function, args, kwargs):
    """(positional, by name): the arguments of NumPy's function that it has no default for, and the others that are not
    the default."""
    known = parameters(function)
    positional, keywords = [], {}
    for name, value in inspect.Signature(known.values()).bind(*args, **kwargs).arguments.items():
        p = known[name]
        if p.kind is p.VAR_POSITIONAL: positional.extend(value)
        elif p.kind is p.VAR_KEYWORD: keywords |= value
        elif p.default is p.empty: positional.append(value)
        elif value is not p.default and value is not np._NoValue: keywords[name] = value
    return positional, keywords


def run(full, name, ours, given, keywords):
    """cygrad's function of arguments in NumPy's words."""
    if name in ADAPTED:
        f, known = ADAPTED[name], parameters(ADAPTED[name])
    else:
        f = operator.attrgetter(ours)(namespace())
        known = inspect.signature(f).parameters
    spread = next((key for key, p in known.items() if p.kind is p.VAR_POSITIONAL), None)
    dtype, casting, after = keywords.get("dtype"), keywords.pop("casting", "same_kind"), None
    if "dtype" not in known and name not in REDUCTIONS: keywords.pop("dtype", None)
    else: dtype = None
    taken = {}
    for key, value in keywords.items():
        ours_key = next((k for k in (key, *KEYWORDS.get(key, ())) if k in known), None)
        if name in REDUCTIONS and key in ("dtype", "initial", "where"): taken[key] = value
        elif ours_key == spread and spread is not None: after = value
        elif ours_key is not None: taken[ours_key] = value
        elif key in IGNORED or value is None or isinstance(value, (str, bool)) and value in PLAIN.get(key, ()): pass
        else: refuse(full, key, value)
    if after is not None: given.append(after)
    listed = isinstance(given[0], (list, tuple)) if given else False
    if casting != "same_kind":
        for x in given[0] if listed else given: check_cast(full, x, dtype or np.result_type(*dtypes(given)), casting)
    if dtype is not None:
        if listed: given[0] = [as_dtype(full, x, dtype, casting) for x in given[0]]
        else: given[0] = asarray(given[0]).astype(dtype)
    if name in REDUCTIONS: return reduction(full, ours, asarray(given[0]), **taken)
    return f(*given, **taken)


def dtypes(given):
    return [x.dtype for x in (given[0] if isinstance(given[0], (list, tuple)) else given) if hasattr(x, "dtype")]


def arrays(values):
    """The arguments with arrays for tensors, also for those in lists."""
    if isinstance(values, dict): return {name: arrays(value) for name, value in values.items()}
    if isinstance(values, (list, tuple)): return type(values)(map(arrays, values))
    return np.asarray(values) if isinstance(values, Tensor) else values


def detached(values):
    """The same, for what only reads."""
    if isinstance(values, dict): return {name: detached(value) for name, value in values.items()}
    if isinstance(values, (list, tuple)): return type(values)(map(detached, values))
    return values.detach().numpy() if isinstance(values, Tensor) else values


def shaped(values):
    """The same, for what reads shapes and dtypes only."""
    if isinstance(values, dict): return {name: shaped(value) for name, value in values.items()}
    if isinstance(values, (list, tuple)): return type(values)(map(shaped, values))
    return np.broadcast_to(np.empty((), values.dtype), values.shape) if isinstance(values, Tensor) else values
