"""How operators execute for all lanes of cg.func.vmap: the rule that an operator declares in `lanes`, or lane by lane.

A rule gets the operator, its operands and attributes, and the number of lanes n. `mapped` says which operands have
lanes, as their first axis. It returns the results, each with all lanes as the first axis, or NotImplemented."""

import warnings

from cygrad.core.errors import PerformanceWarning
from cygrad.core.execute.run import apply
from cygrad.core.graph.tensor import Tensor
from cygrad.core.interop.creation import arange
from cygrad.core.late_bound import bind
from cygrad.ops.calls import call
from cygrad.ops.elementwise.compare import where
from cygrad.ops.linalg.linalg import matmul
from cygrad.ops.shapes.index import take
from cygrad.ops.shapes.join import concat, stack
from cygrad.ops.shapes.rearrange import moveaxis
from cygrad.ops.shapes.shape import broadcast_to, reshape

warned: set[str] = set()      # the operators of which a warning has said that they have no rule


def map_lanes(op, operands, mapped, attributes, n):
    """The results of an operation for all lanes."""
    if op.data_dependent_shape:
        raise RuntimeError(f"vmap: the shape of the result of {op.name} depends on values, so its lanes could have "
                           f"different shapes; call it outside of vmap, or compute with a mask")
    results = RULES[op.lanes](op, operands, mapped, attributes, n) if op.lanes else NotImplemented
    return one_by_one(op, operands, mapped, attributes, n) if results is NotImplemented else results


def one_by_one(op, operands, mapped, attributes, n):
    """The operation lane by lane."""
    if op.name not in warned and not any(0 in x.shape for x in operands if isinstance(x, Tensor)):
        warned.add(op.name)
        warnings.warn(f"vmap: {op.name} has no rule for lanes, or none for these operands, so it runs lane by lane",
                      PerformanceWarning, 2)
    results = [apply(op, *[x[k] if of_lanes else x for x, of_lanes in zip(operands, mapped, strict=True)],
                     attributes=attributes) for k in range(n)]
    if isinstance(results[0], tuple): return tuple([stack(list(parts)) for parts in zip(*results, strict=True)])
    return stack(results)


# ---- parts of rules --------------------------------------------------------------------------------------------------

def each(f, results):
    """f of one result, or of each of several."""
    return tuple(map(f, results)) if isinstance(results, tuple) else f(results)


def expanded(operands, mapped, n):
    """The operands, all with lanes: those that have none repeat, as views."""
    return [x if of_lanes or not isinstance(x, Tensor) else broadcast_to(x, (n, *x.shape))
            for x, of_lanes in zip(operands, mapped, strict=True)]


def dense(x):
    """`x` for an operator that reads it as a whole: a copy if it repeats elements."""
    return x.copy() if 0 in x.strides else x


def shifted(attributes, n):
    """The attributes of the operation on all lanes: axes are one higher, shapes have one more size."""
    if attributes is None: return None
    old = attributes.fields()
    new = {name: SHIFTS[name](value, n) if name in SHIFTS else value for name, value in old.items()}
    return attributes if new == old else type(attributes)(*new.values())


SHIFTS = {
    "axis": lambda axis, n: axis + 1,
    "axis1": lambda axis, n: axis + 1,
    "axis2": lambda axis, n: axis + 1,
    "axes": lambda axes, n: (0, *[axis + 1 for axis in axes]),
    "mask": lambda mask, n: mask << 1,
    "shape": lambda shape, n: (n, *shape),
    "widths": lambda widths, n: ((0, 0), *widths),
    "index": lambda index, n: ((0, 1, n), *index),
    "slices": shifted,
    "order": lambda order, n: None if order is None else (0, *[d + 1 for d in order]),
}


def merged(x):
    """Lanes and samples as one axis."""
    return reshape(x, (x.shape[0] * x.shape[1], *x.shape[2:]))


def parted(x, n):
    """Undo merged()."""
    return reshape(x, (n, x.shape[0] // n, *x.shape[1:]))


def in_channels(x):
    """(n, samples, channels, ...) as (samples, n * channels, ...)."""
    x = moveaxis(x, 0, 1)
    return reshape(x, (x.shape[0], x.shape[1] * x.shape[2], *x.shape[3:]))


def from_channels(x, n):
    """Undo in_channels()."""
    return moveaxis(reshape(x, (x.shape[0], n, x.shape[1] // n, *x.shape[2:])), 1, 0)


def beside(w, ndim):
    """(n, *s) with new axes after the first, so that it has `ndim` dimensions."""
    return reshape(w, (w.shape[0], *[1] * (ndim - w.ndim), *w.shape[1:]))


# ---- rules -----------------------------------------------------------------------------------------------------------

def broadcasting(op, operands, mapped, attributes, n):
    """Operators whose operands broadcast along all dimensions, or all but the last ones."""
    ndim = 1 + max(x.ndim - of_lanes for x, of_lanes in zip(operands, mapped, strict=True) if isinstance(x, Tensor))
    return apply(op, *[beside(x, ndim) if of_lanes else x for x, of_lanes in zip(operands, mapped, strict=True)],
                 attributes=attributes)


def stretching(op, operands, mapped, attributes, n):
    """broadcast_to, whose result has at least as many dimensions as its operand."""
    return apply(op, beside(operands[0], 1 + len(attributes.shape)), attributes=shifted(attributes, n))


def shifting(op, operands, mapped, attributes, n):
    """Operators whose attributes say everything about axes and shapes."""
    return apply(op, *expanded(operands, mapped, n), attributes=shifted(attributes, n))


def places(op, operands, mapped, attributes, n):
    """argmax and argmin, which have one axis, or all of them: a place in the flattened tensor."""
    x, = operands
    if attributes.mask.bit_count() == 1: return shifting(op, operands, mapped, attributes, n)
    y = apply(op, reshape(x, (n, x.size // n)), attributes=type(attributes)(2, False))
    return reshape(y, (n, *[1] * (x.ndim - 1))) if attributes.keepdims else y


def leading(op, operands, mapped, attributes, n):
    """Operators that treat the first dimensions alike, however many there are."""
    return apply(op, *expanded(operands, mapped, n), attributes=attributes)


def aligning(op, operands, mapped, attributes, n):
    """Operators whose operands broadcast along their first dimensions, of which all have lanes."""
    ndim = 1 + max(x.ndim - of_lanes for x, of_lanes in zip(operands, mapped, strict=True))
    return apply(op, *[beside(x, ndim) for x in expanded(operands, mapped, n)], attributes=attributes)


def samples(op, operands, mapped, attributes, n):
    """Operators whose first operand, and results, have samples as their first axis. The others have none."""
    if not mapped[0] or any(mapped[1:]) or operands[0].shape[1] == 0: return NotImplemented
    return each(lambda y: parted(y, n), apply(op, merged(operands[0]), *operands[1:], attributes=attributes))


def pairs_of_samples(op, operands, mapped, attributes, n):
    """Operators of which each operand has samples."""
    if any(x.shape[of_lanes] == 0 for x, of_lanes in zip(operands, mapped, strict=True)): return NotImplemented
    return parted(apply(op, *[dense(merged(x)) for x in expanded(operands, mapped, n)], attributes=attributes), n)


def convolving(op, operands, mapped, attributes, n):
    """Convolutions: lanes of x alone are more samples; those of the weights are groups."""
    if any(0 in x.shape for x in operands): return NotImplemented
    if not any(mapped[1:]): return samples(op, operands, mapped, attributes, n)
    x, *weights = expanded(operands, mapped, n)
    return from_channels(apply(op, in_channels(x), *map(merged, weights), attributes=grouped(attributes, n)), n)


def gradients_of_weights(op, operands, mapped, attributes, n):
    """The gradient of the weights of a convolution, of x and the gradient of its result."""
    if any(0 in x.shape for x in operands): return NotImplemented
    y = apply(op, *map(in_channels, expanded(operands, mapped, n)), attributes=grouped(attributes, n))
    return parted(y, n)


def grouped(attributes, n):
    fields = attributes.fields()
    return type(attributes)(*(fields | {"groups": n * fields["groups"]}).values())


def linear(op, operands, mapped, attributes, n):
    """a(x w' + b): lanes of x alone are more rows."""
    if not any(mapped[1:]): return apply(op, *operands, attributes=attributes)
    x, w, *b = operands
    rest = x.shape[mapped[0]:-1]
    if mapped[0]: x = reshape(x, (n, -1 if 0 not in x.shape else 0, x.shape[-1])) if x.ndim > 1 else x
    if 0 in x.shape or 0 in w.shape: return NotImplemented
    if not mapped[0]: x = reshape(x, (-1, x.shape[-1]))
    y = matmul(x, w.mT)
    if b: y = y + (beside(b[0], 3) if mapped[2] else b[0])
    if y.ndim == 2: y = broadcast_to(y, (n, *y.shape))
    if attributes.activation is not None: y = call(attributes.activation, [y], {})
    return reshape(y, (n, *rest, y.shape[-1]))


def normalizing_rows(op, operands, mapped, attributes, n):
    """layer_norm and rms_norm: the rows are the last dimensions."""
    if not any(mapped[1:]): return apply(op, *operands, attributes=attributes)
    x, *weights = operands
    y = apply(op, x, attributes=attributes)
    if not mapped[0]: y = broadcast_to(y, (n, *y.shape))
    return scaled(y, weights, mapped[1:], lambda w: beside(w, y.ndim), lambda w: w)


def scaled(y, weights, mapped, place, plain):
    """y times the first of the weights, plus the second."""
    for k, (w, of_lanes) in enumerate(zip(weights, mapped, strict=True)):
        w = place(w) if of_lanes else plain(w)
        y = y + w if k else y * w
    return y


def normalizing_samples(op, operands, mapped, attributes, n):
    """group_norm and instance_norm: each sample for itself, then a weight and a bias for each channel."""
    if not any(mapped[1:]): return samples(op, operands, mapped, attributes, n)
    x, *weights = operands
    if 0 in x.shape: return NotImplemented
    y = samples(op, [x], mapped[:1], attributes, n) if mapped[0] else apply(op, x, attributes=attributes)
    if not mapped[0]: y = broadcast_to(y, (n, *y.shape))
    ones = (1,) * (y.ndim - 3)
    return scaled(y, weights, mapped[1:], lambda w: reshape(w, (n, 1, w.shape[1], *ones)),
                  lambda w: reshape(w, (w.shape[0], *ones)))


def normalizing_channels(op, operands, mapped, attributes, n):
    """batch_norm: each channel for itself, so lanes are more channels."""
    if any(0 in x.shape for x in operands): return NotImplemented
    x, *weights = expanded(operands, mapped, n)
    results = apply(op, in_channels(x), *map(merged, weights), attributes=attributes)
    return each(lambda y: from_channels(y, n) if y.ndim > 1 else parted(y, n), results)     # (statistics: (channels,))


def recurring(op, operands, mapped, attributes, n):
    """lstm, gru and rnn: lanes of x and of the states are more samples. Weights have none."""
    x, weights, states = operands[0], operands[1:5], operands[5:]
    if any(mapped[1:5]) or 0 in x.shape: return NotImplemented
    x, *states = expanded([x, *states], [mapped[0], *mapped[5:]], n)
    results = apply(op, dense(in_channels(x)), *weights, *[dense(merged(z)) for z in states], attributes=attributes)
    return each(lambda y: from_channels(y, n) if y.ndim == 3 else parted(y, n), results)


def taking(op, operands, mapped, attributes, n):
    """x[..., i, j, ...]: lanes of x alone are one more axis before; lanes of indices are one more index."""
    x, *indices = operands
    if not any(mapped[1:]): return apply(op, *operands, attributes=shifted(attributes, n))
    fields = attributes.fields()
    axis, count = fields["axis"], fields["count"]
    if axis: x = moveaxis(x, [mapped[0] + axis + k for k in range(count)], [mapped[0] + k for k in range(count)])
    x = x if mapped[0] else broadcast_to(x, (n, *x.shape))
    indices, ndim = with_lane(indices, mapped[1:], n)
    y = apply(op, x, *indices, attributes=type(attributes)(*(fields | {"axis": 0, "count": count + 1}).values()))
    return moveaxis(y, list(range(1, ndim)), list(range(1 + axis, ndim + axis))) if axis else y


def with_lane(indices, mapped, n):
    """Index arrays and, before them, one of the lane; and the dimensions that all of them have together."""
    ndim = 1 + max(i.ndim - of_lanes for i, of_lanes in zip(indices, mapped, strict=True))
    indices = [beside(i, ndim) if of_lanes else i for i, of_lanes in zip(indices, mapped, strict=True)]
    return [reshape(arange(n), (n, *[1] * (ndim - 1))), *indices], ndim


def adding_at(op, operands, mapped, attributes, n):
    """x[..., i, j, ...] += v, as taking() reads it."""
    (x, v), indices = expanded(operands[:2], mapped[:2], n), operands[2:]
    if not any(mapped[2:]): return apply(op, x, v, *indices, attributes=shifted(attributes, n))
    fields = attributes.fields()
    axis, count = fields["axis"], fields["count"]
    indices, ndim = with_lane(indices, mapped[2:], n)
    there, back = [1 + axis + k for k in range(count)], [1 + k for k in range(count)]
    v = moveaxis(v, list(range(1 + axis, ndim + axis)), list(range(1, ndim)))
    y = apply(op, moveaxis(x, there, back), v, *indices,
              attributes=type(attributes)(*(fields | {"axis": 0, "count": count + 1}).values()))
    return moveaxis(y, back, there)


def putting(op, operands, mapped, attributes, n):
    """x[index] = v, with stacked index arrays: lanes of these are one more array, of an axis of x before theirs."""
    (x, v), indices = expanded(operands[:2], mapped[:2], n), operands[2]
    fields = shifted(attributes, n).fields()
    if not mapped[2]: return apply(op, x, v, indices, attributes=type(attributes)(*fields.values()))
    axis, order = fields["axis"] - 1, fields["order"] or range(v.ndim + indices.shape[1] - indices.ndim + 2)
    fields |= {"axis": axis, "order": (*[d for d in order if d][:axis], 0, *[d for d in order if d][axis:])}
    lane = broadcast_to(reshape(arange(n), (1, n, *[1] * (indices.ndim - 2))), (1, n, *indices.shape[2:]))
    return apply(op, x, moveaxis(v, 0, axis), concat([lane, moveaxis(indices, 0, 1)]),
                 attributes=type(attributes)(*fields.values()))


def contracting(op, operands, mapped, attributes, n):
    """The contraction of two operands: the lane is one more label, of those that have lanes and of the result."""
    fields = attributes.fields()
    lane = next(a for a in map(chr, range(0x4e00, 0x9fff)) if a not in "".join(fields.values()))
    x, y = (lane * of_lanes + labels for labels, of_lanes in zip((fields["x"], fields["y"]), mapped, strict=True))
    return apply(op, *operands, attributes=type(attributes)(x, y, lane + fields["z"]))


def looking_up(op, operands, mapped, attributes, n):
    """embedding: each index for itself. Lanes of the weight are one more index."""
    indices, weight = operands
    if not mapped[1]: return apply(op, indices, weight, attributes=attributes)
    if attributes.padding_idx is not None or attributes.sparse: return NotImplemented
    indices = indices if mapped[0] else broadcast_to(indices, (n, *indices.shape))
    return weight[reshape(arange(n), (n, *[1] * (indices.ndim - 1))), indices]


def reducing_elements(op, operands, mapped, attributes, n):
    """Losses of elements: the loss of each, then their sum or mean in each lane."""
    fields = attributes.fields()
    none = type(attributes)(*(fields | {"reduction": "none"}).values())
    return reduced(apply(op, *expanded(operands, mapped, n), attributes=none), fields["reduction"])


def reducing_probabilities(op, operands, mapped, attributes, n):
    """A loss over classes whose targets are probabilities."""
    if any(mapped[2:]): return NotImplemented
    fields = shifted(attributes, n).fields()
    none = type(attributes)(*(fields | {"reduction": "none"}).values())
    x, targets = map(dense, expanded(operands[:2], mapped[:2], n))
    return reduced(apply(op, x, targets, *operands[2:], attributes=none), fields["reduction"])


def reduced(y, how):
    """The losses `y` of elements, with lanes first, as `how` says: "none", "mean", "sum" or "batchmean"."""
    if how == "none": return y
    axes, samples = tuple(range(1, y.ndim)), y.shape[1] if y.ndim > 1 else 1
    if how == "mean": return y.mean(axis=axes) if axes else y
    total = y.sum(axis=axes) if axes else y
    return total / samples if how == "batchmean" else total


def reducing_classes(op, operands, mapped, attributes, n):
    """Losses over classes, of samples or of one."""
    fields = attributes.fields()
    if any(mapped[2:]): return NotImplemented
    (x, target), weight = expanded(operands[:2], mapped[:2], n), operands[2:]
    if 0 in x.shape: return NotImplemented
    none = fields | {"reduction": "none"}
    if fields["axis"] == 0:
        y = apply(op, x, dense(target), *weight, attributes=type(attributes)(*(none | {"axis": 1}).values()))
    else:
        each_sample = type(attributes)(*none.values())
        y = parted(apply(op, merged(x), dense(merged(target)), *weight, attributes=each_sample), n)
    if fields["reduction"] == "none": return y
    axes = tuple(range(1, y.ndim))
    total = y.sum(axis=axes) if axes else y
    if fields["reduction"] == "sum": return total
    counts = (target != fields["ignore_index"]).astype(y.dtype)
    if weight: counts = counts * take(weight[0], where(counts > 0, target, 0))
    return total / (counts.sum(axis=axes) if axes else counts)


RULES = {rule.__name__: rule for rule in (
    broadcasting, stretching, shifting, places, leading, aligning, samples, pairs_of_samples, convolving,
    gradients_of_weights, linear, normalizing_rows, normalizing_samples, normalizing_channels, recurring, taking,
    adding_at, putting, contracting, reducing_probabilities, looking_up, reducing_elements, reducing_classes,
)}
bind(map_lanes=map_lanes)
