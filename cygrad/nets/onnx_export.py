"""Nets as ONNX models: what each operator is there, in one table, and the model around them.

An operator with another meaning in ONNX is refused, by its name, before anything is written. So is one that writes
over a blob, since a value in ONNX is written once."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from cygrad.core.errors import cut, described
from cygrad.core.graph.tensor import Tensor
from cygrad.core.handles import Replacing
from cygrad.core.paths import file_path
from cygrad.nets.definition import STOP, Operator
from cygrad.nets.plan import Signature, inferred

OPSET, IR = 20, 9           # ONNX 1.15 (2023): the first with Gelu
MOST = 1 << 31              # bytes of a message of protobuf
LARGEST, LEAST = (1 << 63) - 1, -(1 << 63)
Outputs = str | list[str]


class Unknown(Exception):
    """Why ONNX has no counterpart of an operator."""


class Model:
    """What is written of a model: nodes, initializers, and the name of each blob.

    net: the Net. shapes: (shape, dtype) of each blob. onnx: the package."""

    def __init__(self, net: Any, shapes: Mapping[str, Signature], onnx: Any):
        self.net, self.shapes, self.onnx = net, {**shapes}, onnx
        self.nodes: list[Any] = []
        self.initializers: dict[str, Any] = {}
        self.values: dict[str, Any] = {**net.constants, **net.bindings}
        self.known: dict[str, Any] = {}             # elements of blobs that no input decides
        self.taken = {*net.blobs}

    def name(self, stem: str) -> str:
        """A name that nothing has."""
        k = 1
        while (name := f"{stem}/{k}") in self.taken: k += 1
        self.taken.add(name)
        return name

    def add(self, kind: str, *inputs: str, out: str | Sequence[str] = "", **attributes: Any) -> str:
        """Add a node and return its output: a fresh one, or `out`, of which the first is returned."""
        names = [out or self.name(kind)] if isinstance(out, str) else [*out]
        self.nodes.append(self.onnx.helper.make_node(kind, [*inputs], names, **attributes))
        return names[0]

    def constant(self, value: Any, dtype: Any = None) -> str:
        """An initializer of a number or an array."""
        name = self.name("constant")
        self.initializers[name] = np.ascontiguousarray(np.asarray(value, dtype)).reshape(np.shape(value))
        return name

    def ints(self, *values: int) -> str:
        return self.constant([*values], "int64")

    def array(self, blob: Any) -> Any:
        """The elements of a constant, or None."""
        x = self.values.get(blob)
        if blob in self.known: return self.known[blob]
        return x.detach().numpy() if isinstance(x, Tensor) else None if x is None else np.asarray(x)

    def dtype(self, blob: Any) -> str:
        return self.shapes[blob][1]

    def shape(self, blob: Any) -> tuple[int, ...]:
        return self.shapes[blob][0] if blob in self.shapes else np.shape(self.array(blob))

    def operand(self, blob: Any, dtype: str | None = None) -> str:
        """The value of an operand, cast to a dtype; "" for an absent one."""
        if blob is None: return ""
        x = self.values.get(blob)
        if x is not None and not isinstance(x, Tensor): return self.constant(x, dtype or np.asarray(x).dtype)
        if x is not None and blob not in self.initializers:
            self.initializers[blob] = np.array(x.detach().numpy(), order="C")
        return blob if dtype is None or dtype == self.dtype(blob) else self.cast(blob, dtype)

    def cast(self, name: str, dtype: str, out: str = "") -> str:
        kind = self.onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        return self.add("Cast", name, out=out, to=kind)


# ---- rules: each adds the nodes of an operator -----------------------------------------------------------------------

def plain(kind: str, m: Model, o: Operator, **attributes: Any) -> None:
    """One node on all inputs, in the dtype of the result."""
    dtype = m.dtype(o.outputs[0])
    m.add(kind, *[m.operand(name, dtype) for name in o.inputs], out=o.outputs[0], **attributes)


def with_arguments(kind: str, names: Mapping[str, str], m: Model, o: Operator) -> None:
    """One node, with arguments of the operator as attributes of other names."""
    plain(kind, m, o, **{names[key]: value for key, value in o.arguments.items() if key in names})


def comparison(kind: str, m: Model, o: Operator, negated: bool = False) -> None:
    """A node whose result has another dtype than the operands, which are cast to a common one."""
    known = [m.dtype(name) for name in o.inputs if name in m.shapes]
    values = [m.values[str(name)] for name in o.inputs if name not in m.shapes]
    dtype = np.result_type(*map(np.dtype, known), *values).name
    inputs = [m.operand(name, dtype) for name in o.inputs]
    if negated: m.add("Not", m.add(kind, *inputs), out=o.outputs[0])
    else: m.add(kind, *inputs, out=o.outputs[0])


def logical(kind: str, m: Model, o: Operator) -> None:
    m.add(kind, *[m.operand(name, "bool") for name in o.inputs], out=o.outputs[0])


def reduction(kind: str, m: Model, o: Operator) -> None:
    x, axis, y = o.inputs[0], o.arguments.get("axis"), o.outputs[0]
    axes = range(len(m.shape(x))) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    keeps = int(o.arguments.get("keepdims", False))
    if not len(axes): m.add("Identity", m.operand(x, m.dtype(y)), out=y)
    else: m.add(kind, m.operand(x, m.dtype(y)), m.ints(*axes), out=y, keepdims=keeps)


def place_of_extreme(kind: str, m: Model, o: Operator) -> None:
    x, axis = o.inputs[0], o.arguments.get("axis")
    if axis is None and o.arguments.get("keepdims"): raise Unknown("keepdims=True is for one axis in ONNX")
    flat = m.add("Reshape", m.operand(x), m.ints(-1)) if axis is None else m.operand(x)
    m.add(kind, flat, out=o.outputs[0], axis=axis or 0, keepdims=int(o.arguments.get("keepdims", False)))


def power(m: Model, o: Operator) -> None:
    dtype = m.dtype(o.outputs[0])
    exponent = m.constant(o.arguments["p"], dtype) if "p" in o.arguments else m.operand(o.inputs[1], dtype)
    m.add("Pow", m.operand(o.inputs[0], dtype), exponent, out=o.outputs[0])


def no_dropout(m: Model, o: Operator) -> None:
    if "generator" in o.arguments or m.net.training: raise Unknown("it draws random numbers; capture in predict mode")
    plain("Identity", m, o)


def square(m: Model, o: Operator) -> None:
    x = m.operand(o.inputs[0])
    m.add("Mul", x, x, out=o.outputs[0])


def reciprocal_root(m: Model, o: Operator) -> None:
    m.add("Reciprocal", m.add("Sqrt", m.operand(o.inputs[0])), out=o.outputs[0])


def silu(m: Model, o: Operator) -> None:
    x = m.operand(o.inputs[0])
    m.add("Mul", x, m.add("Sigmoid", x), out=o.outputs[0])


def softplus(m: Model, o: Operator) -> None:
    if o.arguments.get("beta", 1.0) != 1: raise Unknown("Softplus of ONNX has beta=1")
    plain("Softplus", m, o)


def clip(m: Model, o: Operator) -> None:
    y, dtype = o.outputs[0], m.dtype(o.outputs[0])
    low, high = ([*o.inputs[1:], None, None])[:2]
    x = m.operand(o.inputs[0], dtype)
    if low is not None: x = m.add("Max", x, m.operand(low, dtype), out=y if high is None else "")
    if high is not None: x = m.add("Min", x, m.operand(high, dtype), out=y)
    if low is None and high is None: m.add("Identity", x, out=y)


def where(m: Model, o: Operator) -> None:
    dtype = m.dtype(o.outputs[0])
    m.add("Where", m.operand(o.inputs[0], "bool"), *[m.operand(name, dtype) for name in o.inputs[1:]], out=o.outputs[0])


def cast(m: Model, o: Operator) -> None:
    m.cast(m.operand(o.inputs[0]), m.dtype(o.outputs[0]), o.outputs[0])


def zeros(m: Model, o: Operator) -> None:
    sizes, axis, dtype = o.arguments["shape"], o.arguments.get("axis", 0), o.arguments["dtype"]
    shape = m.ints(*sizes)
    if not o.inputs: m.known[o.outputs[0]] = np.zeros(sizes, dtype)
    else:
        size = m.add("Gather", m.add("Shape", m.operand(o.inputs[0])), m.ints(axis))
        parts = [size if n == -1 else m.ints(n) for n in sizes]
        shape = m.add("Concat", *parts, axis=0)
    value = m.onnx.numpy_helper.from_array(np.zeros(1, dtype))
    m.add("ConstantOfShape", shape, out=o.outputs[0], value=value)


def reshape(m: Model, o: Operator) -> None:
    shape = o.arguments["shape"]
    shape = shape if isinstance(shape, tuple) else (shape,)
    empty = 0 in shape
    if o.arguments.get("rows") and not empty: shape = (0, *shape[1:])       # the size of the operand
    m.add("Reshape", m.operand(o.inputs[0]), m.ints(*shape), out=o.outputs[0], allowzero=int(empty))


def permutation(m: Model, o: Operator) -> None:
    n, axes = len(m.shape(o.inputs[0])), o.arguments.get("axes")
    order = range(n)[::-1] if not axes else [a % n for a in axes]
    m.add("Transpose", m.operand(o.inputs[0]), out=o.outputs[0], perm=[*order])


def with_axes(kind: str, m: Model, o: Operator) -> None:
    axis = o.arguments.get("axis")
    if axis is None: axis = tuple(d for d, n in enumerate(m.shape(o.inputs[0])) if n == 1)
    axes = axis if isinstance(axis, tuple) else (axis,)
    m.add(kind, m.operand(o.inputs[0]), m.ints(*axes), out=o.outputs[0])


def expand(m: Model, o: Operator) -> None:
    shape = o.arguments["shape"]
    sizes = shape if isinstance(shape, tuple) else (shape,)
    m.add("Expand", m.operand(o.inputs[0]), m.ints(*sizes), out=o.outputs[0])


def concat(m: Model, o: Operator) -> None:
    if o.arguments.get("axis", 0) is None: raise Unknown("axis=None flattens, which Concat of ONNX does not")
    plain("Concat", m, o, axis=o.arguments.get("axis", 0))


def stack(m: Model, o: Operator) -> None:
    n, axis, dtype = len(m.shape(o.outputs[0])), o.arguments.get("axis", 0), m.dtype(o.outputs[0])
    parts = [m.add("Unsqueeze", m.operand(name, dtype), m.ints(axis % n)) for name in o.inputs]
    m.add("Concat", *parts, out=o.outputs[0], axis=axis % n)


def split(m: Model, o: Operator) -> None:
    axis = o.arguments.get("axis", 0)
    m.add("Split", m.operand(o.inputs[0]), m.ints(*[m.shape(y)[axis] for y in o.outputs]), out=o.outputs, axis=axis)


def part(m: Model, o: Operator) -> None:
    start, axis = o.arguments["start"], o.arguments["axis"]
    m.add("Slice", m.operand(o.inputs[0]), m.ints(start), m.ints(start + o.arguments["count"]), m.ints(axis),
          out=o.outputs[0])


def getitem(m: Model, o: Operator) -> None:
    index = o.arguments["index"]
    entries = [*index] if isinstance(index, tuple) else [index]
    if any(isinstance(e, bool | tuple) for e in entries): raise Unknown("its index has an array")
    missing = len(m.shape(o.inputs[0])) - sum(e is not None and e is not Ellipsis for e in entries)
    if Ellipsis in entries:
        at = entries.index(Ellipsis)
        entries[at:at + 1] = [slice(None)] * missing
    x, named = m.operand(o.inputs[0]), [e for e in entries if e is not None]
    cuts = [(d, e) for d, e in enumerate(named) if isinstance(e, slice) and e != slice(None)]
    if cuts:
        starts, ends = zip(*[bounds(e) for _, e in cuts], strict=True)
        x = m.add("Slice", x, m.ints(*starts), m.ints(*ends), m.ints(*[d for d, _ in cuts]),
                  m.ints(*[1 if e.step is None else e.step for _, e in cuts]))
    for d in range(len(named) - 1, -1, -1):
        if not isinstance(named[d], slice): x = m.add("Gather", x, m.constant(named[d], "int64"), axis=d)
    new = [k for k, e in enumerate(e for e in entries if e is None or isinstance(e, slice)) if e is None]
    if new: x = m.add("Unsqueeze", x, m.ints(*new))
    m.add("Identity", x, out=o.outputs[0])


def bounds(s: slice) -> tuple[int, int]:
    """The start and the end of a slice in ONNX, which has large numbers in place of None."""
    back = s.step is not None and s.step < 0
    start = (LARGEST if back else 0) if s.start is None else s.start
    return start, (LEAST if back else LARGEST) if s.stop is None else s.stop


def flip(m: Model, o: Operator) -> None:
    axis = o.arguments.get("axis")
    axes = range(len(m.shape(o.inputs[0]))) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    n = len(axes)
    m.add("Slice", m.operand(o.inputs[0]), m.ints(*[LARGEST] * n), m.ints(*[LEAST] * n), m.ints(*axes),
          m.ints(*[-1] * n), out=o.outputs[0])


def rows(m: Model, o: Operator) -> None:
    """Embedding: rows of the second operand."""
    m.add("Gather", m.operand(o.inputs[1]), m.operand(o.inputs[0], "int64"), out=o.outputs[0], axis=0)


def take(m: Model, o: Operator) -> None:
    axis, x = o.arguments.get("axis"), m.operand(o.inputs[0])
    if axis is None: x = m.add("Reshape", x, m.ints(-1))
    m.add("Gather", x, m.operand(o.inputs[1], "int64"), out=o.outputs[0], axis=axis or 0)


def gather(m: Model, o: Operator) -> None:
    m.add("GatherElements", m.operand(o.inputs[0]), m.operand(o.inputs[1], "int64"), out=o.outputs[0],
          axis=o.arguments["axis"])


def activated(m: Model, o: Operator) -> str:
    """Where an operator writes its result, before the activation that is its argument; activate() adds that."""
    return o.outputs[0] if o.arguments.get("activation") is None else m.name(o.type)


def activate(m: Model, o: Operator, x: str) -> None:
    kind = o.arguments.get("activation")
    if kind is None: return
    m.shapes[x] = m.shapes[o.outputs[0]]
    RULES[kind](m, Operator(kind, x, o.outputs))


def linear(m: Model, o: Operator) -> None:
    x, w, b = ([*o.inputs, None])[:3]
    y = activated(m, o)
    if b is not None and len(m.shape(x)) == 2: m.add("Gemm", *map(m.operand, (x, w, b)), out=y, transB=1)
    else:
        turned = m.add("Transpose", m.operand(w), perm=[1, 0])
        z = m.add("MatMul", m.operand(x), turned, out="" if b is not None else y)
        if b is not None: m.add("Add", z, m.operand(b), out=y)
    activate(m, o, y)


def each(value: Any, n: int) -> list[int]:
    """A size for each spatial axis."""
    if isinstance(value, str): raise Unknown(f"padding={value!r} has no counterpart; give the numbers")
    return [*value] if isinstance(value, tuple) else [value] * n


def convolution(kind: str, m: Model, o: Operator) -> None:
    a, n, y = o.arguments, len(m.shape(o.inputs[0])) - 2, activated(m, o)
    more = {"output_padding": each(a.get("output_padding", 0), n)} if kind == "ConvTranspose" else {}
    m.add(kind, *map(m.operand, o.inputs), out=y, strides=each(a.get("stride", 1), n), group=a.get("groups", 1),
          pads=each(a.get("padding", 0), n) * 2, dilations=each(a.get("dilation", 1), n), **more)
    activate(m, o, y)


def pooling(kind: str, m: Model, o: Operator) -> None:
    a, n = o.arguments, len(m.shape(o.inputs[0])) - 2
    if a.get("ceil_mode"): raise Unknown("ceil_mode=True counts other windows in ONNX")
    if a.get("divisor_override") is not None: raise Unknown("divisor_override has no counterpart")
    size, stride = a["kernel_size"], a.get("stride")
    more = {"count_include_pad": int(a.get("count_include_pad", True))} if kind == "AveragePool" else {}
    m.add(kind, m.operand(o.inputs[0]), out=o.outputs[0], kernel_shape=each(size, n),
          pads=each(a.get("padding", 0), n) * 2, strides=each(size if stride is None else stride, n),
          dilations=each(a.get("dilation", 1), n), **more)


def mean_of_images(m: Model, o: Operator) -> None:
    if {*each(o.arguments["output_size"], 1)} != {1}: raise Unknown("only output_size=1 has a counterpart")
    plain("GlobalAveragePool", m, o)


def batch_norm(m: Model, o: Operator) -> None:
    x, mean, var, weight, bias = ([*o.inputs, None, None])[:5]
    n, dtype = m.shape(mean)[0], m.dtype(x)
    scale = m.constant(np.ones(n, dtype)) if weight is None else m.operand(weight)
    shift = m.constant(np.zeros(n, dtype)) if bias is None else m.operand(bias)
    m.add("BatchNormalization", m.operand(x), scale, shift, m.operand(mean), m.operand(var), out=o.outputs[0],
          epsilon=o.arguments.get("eps", 1e-5))


def axes_of_rows(m: Model, o: Operator) -> int:
    """The number of last axes over which rows are normalized."""
    if len(o.inputs) > 1 and o.inputs[1] is not None: return len(m.shape(o.inputs[1]))
    axes = o.arguments.get("axes")
    if axes is not None and not isinstance(axes, int): raise Unknown("its axes have no counterpart")
    return 1 if axes is None else axes


def layer_norm(m: Model, o: Operator) -> None:
    x, weight, bias = ([*o.inputs, None, None])[:3]
    n = axes_of_rows(m, o)
    scale = m.constant(np.ones(m.shape(x)[-n:], m.dtype(x))) if weight is None else m.operand(weight)
    m.add("LayerNormalization", m.operand(x), scale, *([m.operand(bias)] if bias is not None else []), out=o.outputs[0],
          axis=-n, epsilon=o.arguments.get("eps", 1e-5))


def rms_norm(m: Model, o: Operator) -> None:
    x, y, n = m.operand(o.inputs[0]), o.outputs[0], axes_of_rows(m, o)
    eps = o.arguments.get("eps")
    if eps is None: eps = np.finfo(m.dtype(o.inputs[0])).eps
    square = m.add("ReduceMean", m.add("Mul", x, x), m.ints(*range(-n, 0)), keepdims=1)
    root = m.add("Sqrt", m.add("Add", square, m.constant(eps, m.dtype(o.inputs[0]))))
    weight = o.inputs[1] if len(o.inputs) > 1 else None
    z = m.add("Div", x, root, out="" if weight is not None else y)
    if weight is not None: m.add("Mul", z, m.operand(weight), out=y)


def attention(m: Model, o: Operator) -> None:
    """softmax(scale q k' + mask) v; a query that sees no key has the result 0."""
    a, y = o.arguments, o.outputs[0]
    q, k, v, mask = ([*o.inputs, None])[:4]
    n, dtype, last = len(m.shape(q)), m.dtype(q), a.get("heads_last", False)
    if a.get("p"): raise Unknown("its dropout draws random numbers")
    if m.shape(q)[:n - 3] != m.shape(k)[:n - 3] or m.shape(q)[-2 if last else -3] != m.shape(k)[-2 if last else -3]:
        raise Unknown("its queries and keys differ in their first sizes")
    order = [*range(n - 3), n - 2, n - 3, n - 1]
    x, t, w = (m.add("Transpose", m.operand(z), perm=order) if last else m.operand(z) for z in (q, k, v))
    rows, columns = m.shape(q)[-3 if last else -2], m.shape(k)[-3 if last else -2]
    scale = 1 / np.sqrt(m.shape(q)[-1]) if a.get("scale") is None else a["scale"]
    t = m.add("Transpose", t, perm=[*range(n - 2), n - 1, n - 2])
    s = m.add("MatMul", m.add("Mul", x, m.constant(scale, dtype)), t)
    least = m.constant(-np.inf, dtype)
    if mask is not None:
        s = m.add("Where", m.operand(mask), s, least) if m.dtype(mask) == "bool" else m.add("Add", s, m.operand(mask))
    if a.get("is_causal"): s = m.add("Where", m.constant(np.tri(rows, columns, dtype=bool)), s, least)
    p = m.add("Softmax", s, axis=-1)
    if mask is not None:
        seen = m.add("Greater", m.add("ReduceMax", s, m.ints(-1), keepdims=1), least)
        p = m.add("Where", seen, p, m.constant(0, dtype))
    z = m.add("MatMul", p, w, out="" if last else y)
    if last: m.add("Transpose", z, out=y, perm=order)


def recurrence(kind: str, order: Sequence[int], m: Model, o: Operator, **more: Any) -> None:
    """A layer in one direction. `order` are the gates as ONNX lists them."""
    x, w, r, b, c, *states = o.inputs
    arrays = [m.array(name) for name in (w, r, b, c)]
    if any(a is None for a in arrays): raise Unknown("its weights are no constants")
    gates = [np.concatenate([np.split(a, len(order))[k] for k in order])[None] for a in arrays]
    hidden = m.shape(r)[-1]
    first = [m.add("Unsqueeze", m.operand(h), m.ints(0)) for h in states]
    y, last = m.name(kind), [m.name(kind) for _ in o.outputs[1:]]
    m.add(kind, m.operand(x), m.constant(gates[0]), m.constant(gates[1]), m.constant(np.concatenate(gates[2:], 1)), "",
          *first, out=[y, *last], hidden_size=hidden, direction="reverse" if o.arguments.get("reverse") else "forward",
          **more)
    for made, name, axis in zip((y, *last), o.outputs, (1, *[0] * len(last)), strict=True):
        m.add("Squeeze", made, m.ints(axis), out=name)


# The rule for each type of operator; others have no counterpart.
RULES: dict[str, Callable[[Model, Operator], None]] = {
    **{row: partial(plain, kind) for row, kind in dict(
        add="Add", sub="Sub", mul="Mul", div="Div", maximum="Max", minimum="Min", matmul="MatMul", neg="Neg", abs="Abs",
        exp="Exp", log="Log", sqrt="Sqrt", reciprocal="Reciprocal", floor="Floor", ceil="Ceil", round="Round",
        sign="Sign", erf="Erf", sin="Sin", cos="Cos", tan="Tan", asin="Asin", acos="Acos", atan="Atan", sinh="Sinh",
        cosh="Cosh", asinh="Asinh", acosh="Acosh", atanh="Atanh", relu="Relu", tanh="Tanh", sigmoid="Sigmoid",
        softsign="Softsign", mish="Mish", hardswish="HardSwish", gelu="Gelu", copy="Identity",
        dropout_identity="Identity").items()},
    STOP: partial(plain, "Identity"), "gelu_tanh": partial(plain, "Gelu", approximate="tanh"),
    "softmax": partial(with_arguments, "Softmax", {"axis": "axis"}),
    "log_softmax": partial(with_arguments, "LogSoftmax", {"axis": "axis"}),
    "leaky_relu": partial(with_arguments, "LeakyRelu", {"negative_slope": "alpha"}),
    "elu": partial(with_arguments, "Elu", {"alpha": "alpha"}),
    "celu": partial(with_arguments, "Celu", {"alpha": "alpha"}),
    **{row: partial(comparison, kind) for row, kind in dict(
        greater="Greater", greater_equal="GreaterOrEqual", less="Less", less_equal="LessOrEqual", equal="Equal",
        isnan="IsNaN", isinf="IsInf").items()},
    "not_equal": partial(comparison, "Equal", negated=True),
    **{row: partial(logical, kind) for row, kind in dict(
        logical_and="And", logical_or="Or", logical_xor="Xor", logical_not="Not").items()},
    **{row: partial(reduction, kind) for row, kind in dict(
        sum="ReduceSum", mean="ReduceMean", max="ReduceMax", min="ReduceMin", prod="ReduceProd",
        logsumexp="ReduceLogSumExp").items()},
    "argmax": partial(place_of_extreme, "ArgMax"), "argmin": partial(place_of_extreme, "ArgMin"),
    "pow": power, "power": power, "square": square, "rsqrt": reciprocal_root, "silu": silu, "softplus": softplus,
    "dropout": no_dropout, "clip": clip, "where": where, "astype": cast, "zeros": zeros,
    "reshape": reshape, "transpose": permutation, "permute": permutation, "broadcast_to": expand, "flip": flip,
    "squeeze": partial(with_axes, "Squeeze"), "expand_dims": partial(with_axes, "Unsqueeze"),
    "concat": concat, "stack": stack, "split": split, "split_part": part, "getitem": getitem,
    "embedding": rows, "take": take, "gather": gather, "linear": linear,
    **{f"conv{n}d": partial(convolution, "Conv") for n in (1, 2, 3)},
    **{f"conv_transpose{n}d": partial(convolution, "ConvTranspose") for n in (1, 2, 3)},
    **{f"max_pool{n}d": partial(pooling, "MaxPool") for n in (1, 2, 3)},
    **{f"avg_pool{n}d": partial(pooling, "AveragePool") for n in (1, 2, 3)},
    **{f"adaptive_avg_pool{n}d": mean_of_images for n in (1, 2, 3)},
    "batch_norm_predict": batch_norm, "layer_norm": layer_norm, "rms_norm": rms_norm,
    "attend": attention, "attend_with_dropout": attention,
    "lstm_layer": partial(recurrence, "LSTM", (0, 3, 1, 2)),            # i, f, g, o here; i, o, f, c there
    "gru_layer": partial(recurrence, "GRU", (1, 0, 2), linear_before_reset=1),      # r, u, n here; z, r, h there
    "rnn_layer": partial(recurrence, "RNN", (0,), activations=["Tanh"]),
    "rnn_relu_layer": partial(recurrence, "RNN", (0,), activations=["Relu"]),
}


# ---- the model -------------------------------------------------------------------------------------------------------

def free_axes(net: Any, shapes: Mapping[str, Signature]) -> dict[str, Signature]:
    """The shapes of all blobs when the free sizes of the inputs are larger by one: all first sizes together if the net
    then runs, else each one alone; and each of the other sizes alone, with those before it."""
    names, found, now = [*map(str, net.inputs)], dict(shapes), {str(name): shapes[name] for name in net.inputs}

    def attempt(places: Sequence[tuple[str, int]]) -> bool:
        nonlocal found, now
        changed = {name: (tuple(n + ((name, d) in places) for d, n in enumerate(shape)), dtype)
                   for name, (shape, dtype) in now.items()}
        try: found = inferred(net, changed)
        except (IndexError, RuntimeError, TypeError, ValueError): return False
        now = changed
        return True

    first = [(name, 0) for name in names if shapes[name][0]]
    whole = len(first) > 1 and attempt(first)
    for name in names:
        for d in range(len(shapes[name][0])):
            if not (whole and d == 0): attempt([(name, d)])
    return found


def to_onnx(net: Any, path: Any) -> None:
    """As Net.to_onnx."""
    who = "Net.to_onnx"
    name = file_path(path, who, "net.onnx")
    if not name.lower().endswith(".onnx"):
        raise ValueError(f"{who}: the path must end with .onnx, got {cut(repr(name))}")
    try: import onnx
    except ImportError:
        raise ImportError(f"{who} needs the package onnx; install it with pip install 'cygrad[onnx]'") from None
    shapes = {**inferred(net, None), **{key: (tuple(x.shape), np.dtype(x.dtype).name) for key, x in (
        *net.constants.items(), *net.bindings.items()) if isinstance(x, Tensor)}}
    model, written = Model(net, shapes, onnx), {*map(str, net.inputs)}
    wrong = [f"the output {described(str(y))}, which is an input" for y in net.outputs if y in net.inputs]
    for k, o in enumerate(net.operators):
        rule = RULES.get(o.type) if o.of is None else None
        why = "" if rule is None else None if written.isdisjoint(o.outputs) else "it writes over a blob"
        try:
            if rule is not None and why is None: rule(model, o)
        except Unknown as e: why = str(e)
        if why is not None: wrong.append(f"operator {k}, {cut(repr(o))}" + (f" ({why})" if why else ""))
        written |= {*map(str, o.outputs)}
    if wrong:
        raise ValueError(f"{who}: ONNX has no counterpart of {'; '.join(wrong[:5])}{'; ...' * (len(wrong) > 5)}; "
                         f"write the function with other operators")
    nbytes = sum(a.nbytes for a in model.initializers.values())
    if nbytes >= MOST:
        raise ValueError(f"{who}: the constants take {nbytes:,} bytes, and a file of ONNX holds less than {MOST:,}; "
                         f"save the net with Net.save")
    larger = free_axes(net, inferred(net, None))
    helper = onnx.helper

    def info(blob: str) -> Any:
        shape, dtype = shapes[blob]
        pairs = enumerate(zip(shape, larger[blob][0], strict=True))
        sizes = [n if n == more else f"{blob}_{d}" for d, (n, more) in pairs]
        return helper.make_tensor_value_info(blob, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), sizes)

    graph = helper.make_graph(model.nodes, net.name, [info(str(x)) for x in net.inputs],
                              [info(str(y)) for y in net.outputs],
                              [onnx.numpy_helper.from_array(a, key) for key, a in model.initializers.items()])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR,
                             producer_name="cygrad")
    onnx.checker.check_model(made)
    with Replacing(name, who) as file: file.write(made.SerializeToString())
