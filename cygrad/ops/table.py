"""THE TABLE: every operator, one row.

Exports, Tensor methods, type stubs, the operator page, the tests of tests/test_table.py and the benchmarks read these
rows; an operator that is not here does not exist."""

from functools import cached_property

import numpy as np

from cygrad.ops import (
    compare, einsum, elementwise, minmax, functions, gradient, index, join, linalg, loss, masks, statistics, normalize,
    random, reduce, scan, shape, slices, softmax, sort, window,
)
from cygrad.ops.samples import (
    LABELS,
    MASK,
    above_one,
    activated,
    add_at_like,
    along_axes,
    as_view_like,
    bce_like,
    call,
    clip_like,
    cross_entropy_like,
    cumsum_like,
    dropout_like,
    erf_like,
    gather_like,
    gelu_like,
    gelu_tanh_like,
    inside,
    integers,
    layer_norm_like,
    log_softmax_like,
    logsumexp_like,
    mask,
    mask_put_like,
    mse_like,
    nll_like,
    norm_like,
    one,
    order_like,
    positive,
    put_like,
    put_slice_like,
    put_view_like,
    real,
    scatter_add_like,
    sigmoid_like,
    silu_like,
    softmax_like,
    targets,
    truths,
    two,
    unequal,
    whole,
)


class Row:
    """One operator.

    function    what users call; its name is the public one
    operator    the operator of that name, from its module's OPERATORS
    like        the same in NumPy: the value is tested against it
    samples     makes `tries`, sample calls: each a tuple (positional arguments, keyword arguments); an array among the
                arguments is an input, anything else an attribute
    keeps       what backward keeps, for the reader and the tests: "x", "y" are inputs, "out" the output, "lse" a value
                for each row, "order" a place for each element, "difference" an array of the two inputs' common shape;
                packed, "bits" a bit for each element of the first input, "truths" one and "codes" two for each of the
                output, "choice" one where one gradient is wanted, else two, "places" bits or places of a mask, "hard" a
                bit for each target where these have no gradient; per wanted input, e.g. {"x": "y", "y": "x"}; where it
                depends on the call, a function of the call's arguments that returns this
    methods     names under which Tensor has it
    ties        an input at which it has a kink, and the gradient that is the convention there; of several inputs a
                tuple of each
    public      whether users have it as cygrad.<name>
    aliases     other public names that it has, such as those of the Array API standard, NumPy or PyTorch
    own_gradient    whether its gradient is one of its own, not the derivative of its value
    tested      the function of arrays in front and one tensor back, where the one that users call takes or gives others
    """

    def __init__(self, function, operator, like, samples, keeps=(), methods=(), ties=(), public=True, aliases=(),
                 own_gradient=False, tested=None):
        self.function, self.operator, self.like, self.samples = function, operator, like, samples
        self.keeps = keeps if callable(keeps) else dict(keeps)
        self.methods, self.ties, self.public = methods, ties, public
        self.aliases, self.own_gradient, self.tested = aliases, own_gradient, tested or function

    def kept(self, *args, **kwargs):
        """`keeps` of a call with these arguments."""
        return self.keeps(*args, **kwargs) if callable(self.keeps) else self.keeps

    @property
    def name(self):
        """The name of what users call, and of the row."""
        return self.function.__name__

    @property
    def family(self):
        """The module that the operator is in."""
        return self.function.__module__.rpartition(".")[2]

    @cached_property
    def tries(self):
        return self.samples()

    def __repr__(self):
        return f"<row {self.name}>"


C, E, F, G, L, O, P, R, S = (
    m.OPERATORS for m in (compare, elementwise, functions, gradient, linalg, loss, random, reduce, shape))
I, J, K, SLICES, SORT, WINDOW = (m.OPERATORS for m in (index, join, masks, slices, sort, window))
M, N, W, X, Z = (m.OPERATORS for m in (statistics, scan, softmax, minmax, normalize))

TABLE = [
    Row(elementwise.add, E["add"], np.add, two, methods=("add",)),
    Row(elementwise.sub, E["sub"], np.subtract, two, methods=("sub",), aliases=("subtract",)),
    Row(elementwise.mul, E["mul"], np.multiply, two, {"x": "y", "y": "x"}, methods=("mul",), aliases=("multiply",)),
    Row(elementwise.div, E["div"], np.divide, two, {"x": "y", "y": "y out"}, methods=("div",), aliases=("divide",)),
    Row(elementwise.neg, E["neg"], np.negative, one, methods=("neg",), aliases=("negative",)),
    Row(elementwise.abs, E["abs"], np.abs, one, {"x": "codes"}, methods=("abs",), ties=(0.0, 0.0),
        aliases=("absolute",)),
    Row(elementwise.sign, E["sign"], np.sign, one, methods=("sign",), ties=(0.0, 0.0)),
    Row(elementwise.floor, E["floor"], np.floor, one, methods=("floor",), ties=(1.0, 0.0)),
    Row(elementwise.ceil, E["ceil"], np.ceil, one, methods=("ceil",), ties=(1.0, 0.0)),
    Row(elementwise.trunc, E["trunc"], np.trunc, one, methods=("trunc",), ties=(1.0, 0.0)),
    Row(elementwise.round, E["round"], np.round, one, methods=("round",), ties=(1.0, 0.0)),
    Row(elementwise.pow, E["pow"], np.power,
        lambda: [call(real(2, 3), 3), call(positive(2, 3), 0.5), call(positive(3), -1.5),
        call(real(3), 2), call(real(2), 0), call(real(2), 1), call(real(0, 2), 2), call(positive(), 2.5)],
        lambda x, p: {} if p in (0, 1) else {"x": "x"}, methods=("pow",)),
    Row(elementwise.power, E["power"], np.power,
        lambda: [*two(positive), call(positive(3), np.array([0.5, 1.0, 2.0]))], {"x": "x y", "y": "x out"}),
    Row(elementwise.square, E["square"], np.square, one, {"x": "x"}, methods=("square",)),
    Row(elementwise.sqrt, E["sqrt"], np.sqrt, lambda: one(positive), {"x": "out"}, methods=("sqrt",)),
    Row(elementwise.rsqrt, E["rsqrt"], lambda x: 1 / np.sqrt(x), lambda: one(positive), {"x": "out"},
        methods=("rsqrt",)),
    Row(elementwise.reciprocal, E["reciprocal"], np.reciprocal, one, {"x": "out"}, methods=("reciprocal",)),

    Row(functions.exp, F["exp"], np.exp, one, {"x": "out"}, methods=("exp",)),
    Row(functions.expm1, F["expm1"], np.expm1, one, {"x": "out"}, methods=("expm1",)),
    Row(functions.log, F["log"], np.log, lambda: one(positive), {"x": "x"}, methods=("log",)),
    Row(functions.log1p, F["log1p"], np.log1p, lambda: one(positive), {"x": "x"}, methods=("log1p",)),
    Row(functions.sin, F["sin"], np.sin, one, {"x": "x"}, methods=("sin",)),
    Row(functions.cos, F["cos"], np.cos, one, {"x": "x"}, methods=("cos",)),
    Row(functions.tan, F["tan"], np.tan, lambda: one(inside), {"x": "out"}, methods=("tan",)),
    Row(functions.asin, F["asin"], np.arcsin, lambda: one(inside), {"x": "x"}, methods=("asin",), aliases=("arcsin",)),
    Row(functions.acos, F["acos"], np.arccos, lambda: one(inside), {"x": "x"}, methods=("acos",), aliases=("arccos",)),
    Row(functions.atan, F["atan"], np.arctan, one, {"x": "x"}, methods=("atan",), aliases=("arctan",)),
    Row(functions.sinh, F["sinh"], np.sinh, one, {"x": "x"}, methods=("sinh",)),
    Row(functions.cosh, F["cosh"], np.cosh, one, {"x": "x"}, methods=("cosh",)),
    Row(functions.tanh, F["tanh"], np.tanh, one, {"x": "out"}, methods=("tanh",)),
    Row(functions.asinh, F["asinh"], np.arcsinh, one, {"x": "x"}, methods=("asinh",), aliases=("arcsinh",)),
    Row(functions.acosh, F["acosh"], np.arccosh, lambda: one(above_one), {"x": "x"}, methods=("acosh",),
        aliases=("arccosh",)),
    Row(functions.atanh, F["atanh"], np.arctanh, lambda: one(inside), {"x": "x"}, methods=("atanh",),
        aliases=("arctanh",)),
    Row(functions.erf, F["erf"], erf_like, one, {"x": "x"}, methods=("erf",)),
    Row(functions.sigmoid, F["sigmoid"], sigmoid_like, one, {"x": "out"}, methods=("sigmoid",)),
    Row(functions.softplus, F["softplus"], lambda x, beta=1.0: np.logaddexp(0, beta * x) / beta,
        lambda: [*one(), call(real(3), beta=2.5), call(real(3), -0.5)], {"x": "out"}, methods=("softplus",)),
    Row(functions.silu, F["silu"], silu_like, one, {"x": "x"}, methods=("silu",)),
    Row(functions.gelu, F["gelu"], gelu_like, one, {"x": "x"}, methods=("gelu",)),
    Row(functions.gelu_tanh, F["gelu_tanh"], gelu_tanh_like, one, {"x": "x"}, public=False),
    Row(functions.relu, F["relu"], lambda x: np.maximum(x, 0), one, {"x": "out"}, methods=("relu",), ties=(0.0, 0.0)),
    Row(functions.relu_gradient, F["relu_gradient"], lambda g, y: np.where(y > 0, g, 0),
        lambda: [call(real(2, 3), real(2, 3, seed=1)), call(real(0, 3), real(0, 3))], {"g": "bits"}, public=False),

    Row(compare.less, C["less"], np.less, two),
    Row(compare.less_equal, C["less_equal"], np.less_equal, two),
    Row(compare.equal, C["equal"], np.equal, two),
    Row(compare.not_equal, C["not_equal"], np.not_equal, two),
    Row(compare.greater, C["greater"], np.greater, two),
    Row(compare.greater_equal, C["greater_equal"], np.greater_equal, two),
    Row(compare.isnan, C["isnan"], np.isnan, one, methods=("isnan",)),
    Row(compare.isinf, C["isinf"], np.isinf, one, methods=("isinf",)),
    Row(compare.isfinite, C["isfinite"], np.isfinite, one, methods=("isfinite",)),
    Row(compare.logical_and, C["logical_and"], np.logical_and, truths, methods=("logical_and",)),
    Row(compare.logical_or, C["logical_or"], np.logical_or, truths, methods=("logical_or",)),
    Row(compare.logical_xor, C["logical_xor"], np.logical_xor, truths, methods=("logical_xor",)),
    Row(compare.logical_not, C["logical_not"], np.logical_not, lambda: [call(a) for (a, _), _ in truths()],
        methods=("logical_not",)),
    Row(compare.bitwise_and, C["bitwise_and"], np.bitwise_and, whole, methods=("bitwise_and",)),
    Row(compare.bitwise_or, C["bitwise_or"], np.bitwise_or, whole, methods=("bitwise_or",)),
    Row(compare.bitwise_xor, C["bitwise_xor"], np.bitwise_xor, whole, methods=("bitwise_xor",)),
    Row(compare.bitwise_not, C["bitwise_not"], np.bitwise_not, lambda: [call(a) for (a, _), _ in whole()],
        methods=("bitwise_not",)),
    Row(compare.maximum, C["maximum"], np.maximum, unequal, {"x": "codes", "y": "codes"}, methods=("maximum",),
        ties=((1.0, 1.0), (0.5, 0.5))),
    Row(compare.minimum, C["minimum"], np.minimum, unequal, {"x": "codes", "y": "codes"}, methods=("minimum",),
        ties=((1.0, 1.0), (0.5, 0.5))),
    Row(compare.clip, C["clip"], clip_like,
        lambda: [call(real(2, 3), -1, 0.5), call(real(2, 3), min=-1), call(real(3), max=1), call(real()),
         call(real(0, 3), 0, 1), call(real(2, 3), real(3, seed=3), real(2, 1, seed=4)), call(real(3), 1.0, -1.0)],
        {"x": "choice", "min": "choice", "max": "choice"}, methods=("clip", "clamp"),
        ties=((1.0, 1.0, 2.0), (1.0, 0.0, 0.0)), aliases=("clamp",)),
    Row(compare.where, C["where"], np.where,
        lambda: [call(mask(2, 3), real(2, 3), real(2, 3, seed=1)), call(mask(3), real(2, 1), real(3, seed=1)),
         call(mask(2, 3), real(3), 0.5), call(mask(2, 3), -1.5, real(2, 3)), call(mask(0, 3), real(3), real(3)),
         call(mask(), real(2), real(1, seed=1))],
        lambda condition, x, y: dict.fromkeys(
            "xy", "truths" if condition.size == np.broadcast(condition, x, y).size else "condition")),

    Row(reduce.sum, R["sum"], lambda x, axis=None, keepdims=False: np.sum(x, axis, keepdims=keepdims),
        lambda: [call(real(2, 3)), call(real(2, 3), axis=0), call(real(2, 3, 4), axis=(0, 2), keepdims=True),
         call(real(2, 3), axis=-1), call(real(3, 0), axis=1), call(real(0)), call(real())], methods=("sum",)),
    Row(reduce.mean, R["mean"], lambda x, axis=None, keepdims=False: np.mean(x, axis, keepdims=keepdims),
        lambda: [call(real(2, 3)), call(real(2, 3), axis=0), call(real(2, 3, 4), axis=(0, 2), keepdims=True),
         call(real(2, 3), axis=-1), call(real(0, 3), axis=1), call(real())], methods=("mean",)),
    Row(reduce.prod, R["prod"], lambda x, axis=None, keepdims=False: np.prod(x, axis, keepdims=keepdims),
        lambda: [*along_axes(), call(real(0, 3), axis=0), call(np.array([[0, 2, 3], [0, 0, 3.0]]), axis=1),
         call(real(5, 2), axis=0)], {"x": "x"}, methods=("prod",)),
    Row(reduce.any, R["any"], lambda x, axis=None, keepdims=False: np.any(x, axis, keepdims=keepdims),
        lambda: [*along_axes(), call(real(0, 3), axis=0), call(np.array([[0, 2], [0, 0.0]]), axis=1)],
        methods=("any",)),
    Row(reduce.all, R["all"], lambda x, axis=None, keepdims=False: np.all(x, axis, keepdims=keepdims),
        lambda: [*along_axes(), call(real(0, 3), axis=0), call(np.array([[0, 2], [1, 2.0]]), axis=1)],
        methods=("all",)),

    Row(statistics.var, M["var"], lambda x, axis=None, keepdims=False, correction=0: np.var(x, axis, ddof=correction,
        keepdims=keepdims), lambda: [*along_axes(), call(real(3, 4), axis=0, correction=1)], {"x": "x"},
        methods=("var",), ties=(0.5, 0.0)),
    Row(statistics.std, M["std"], lambda x, axis=None, keepdims=False, correction=0: np.std(x, axis, ddof=correction,
        keepdims=keepdims), lambda: [*along_axes(one=False), call(real(3, 4), axis=0, correction=1)], {"x": "x out"},
        methods=("std",), ties=(0.5, 0.0)),
    Row(statistics.norm, M["norm"], norm_like,
        lambda: [*along_axes(), call(real(2, 3), 3, 0), call(real(2, 3), np.inf, 1), call(real(2, 3), -np.inf, 1),
         call(real(2, 3), 0.5, 0), call(real(2, 3), -2, None, True), call(real(2, 3), 1, 1)],
        lambda x, ord=2, axis=None, keepdims=False: {"x": "x" if ord == 1 else "x out"}, methods=("norm",),
        ties=(0.0, 0.0)),

    Row(minmax.max, X["max"], lambda x, axis=None, keepdims=False: np.max(x, axis, keepdims=keepdims),
        along_axes, {"x": "bits"}, methods=("max",), ties=(1.0, 0.25)),
    Row(minmax.min, X["min"], lambda x, axis=None, keepdims=False: np.min(x, axis, keepdims=keepdims),
        along_axes, {"x": "bits"}, methods=("min",), ties=(1.0, 0.25)),
    Row(minmax.argmax, X["argmax"], lambda x, axis=None, keepdims=False: np.argmax(x, axis, keepdims=keepdims),
        lambda: along_axes(several=False), methods=("argmax",)),
    Row(minmax.argmin, X["argmin"], lambda x, axis=None, keepdims=False: np.argmin(x, axis, keepdims=keepdims),
        lambda: along_axes(several=False), methods=("argmin",)),

    Row(scan.cumsum, N["cumsum"], cumsum_like,
        lambda: [call(real(5)), call(real(2, 3), 0), call(real(2, 3, 4), 1), call(real(2, 3), -1), call(real(2, 3)),
         call(real(0, 3), 1), call(real())], methods=("cumsum",)),

    Row(shape.reshape, S["reshape"], lambda x, shape: np.reshape(x, shape),
        lambda: [call(real(2, 6), (3, 4)), call(real(2, 3), (-1,)), call(real(0, 3), (3, 0)), call(real(), (1, 1)),
         call(real(2, 3), (1, 2, 1, 3))], methods=("reshape",)),
    Row(shape.transpose, S["transpose"], lambda x, axes=None: np.transpose(x, axes),
        lambda: [call(real(2, 3)), call(real(2, 3, 4), (1, 2, 0)), call(real(0, 2)), call(real(3))],
        methods=("transpose",)),
    Row(shape.permute, S["permute"], np.transpose,
        lambda: [call(real(2, 3), (1, 0)), call(real(2, 3, 4), (2, 0, -2)), call(real(0, 2), (1, 0)), call(real(), ())],
        methods=("permute",), aliases=("permute_dims",)),
    Row(shape.squeeze, S["squeeze"], np.squeeze,
        lambda: [call(real(1, 3, 1)), call(real(1, 3, 1), axis=0), call(real(1, 3, 1), axis=(0, -1)), call(real(2, 3)),
         call(real(1, 0))], methods=("squeeze",)),
    Row(shape.expand_dims, S["expand_dims"], np.expand_dims,
        lambda: [call(real(2, 3), 1), call(real(2, 3), (0, -1)), call(real(), 0), call(real(0, 2), -1)],
        methods=("expand_dims", "unsqueeze"), aliases=("unsqueeze",)),
    Row(shape.flip, S["flip"], np.flip,
        lambda: [call(real(2, 3)), call(real(2, 3), axis=1), call(real(2, 3, 2), axis=(0, -1)), call(real(0, 2)),
         call(real())], methods=("flip",)),
    Row(shape.broadcast_to, S["broadcast_to"], np.broadcast_to,
        lambda: [call(real(3), (2, 3)), call(real(2, 1), (2, 4)), call(real(), (2, 2)), call(real(1, 3), (0, 3)),
         call(real(2, 3), (2, 3)), call(real(0), (2, 0))], methods=("broadcast_to",)),
    Row(shape.copy, S["copy"], np.copy, one, methods=("copy", "clone")),
    Row(shape.astype, S["cast"], lambda x, dtype: x.astype(dtype),
        lambda: [call(real(2, 3), "float64"), call(real(2, 3), "float32"), call(real(0, 2), "float64")],
        methods=("astype",)),

    Row(join.concat, J["concat"], lambda *xs, axis=0: np.concatenate(xs, axis),
        lambda: [call(real(2, 3), real(1, 3)), call(real(2, 3), real(2, 1), axis=1), call(real(2, 2), axis=-1),
         call(real(0, 3), real(2, 3)), call(real(2), real(1), real(3), real(1, seed=1)),
         call(real(2, 3), real(), axis=None), call(real(2, 0), real(3, 0))],
        aliases=("concatenate", "cat"), tested=lambda *xs, axis=0: join.concat(xs, axis)),
    Row(join.stack, J["stack"], lambda *xs, axis=0: np.stack(xs, axis),
        lambda: [call(real(2, 3), real(2, 3, seed=1)), call(real(3), real(3, seed=1), real(3, seed=2), axis=1),
         call(real(), real(seed=1)), call(real(0, 2), axis=-1)], tested=lambda *xs, axis=0: join.stack(xs, axis)),
    Row(join.split, J["split"], lambda x, sections, axis=0: np.split(x, sections, axis)[1],
        lambda: [call(real(4, 3), 2), call(real(2, 5), [1, 4], axis=1), call(real(2, 5), [-3, 9], -1),
         call(real(3, 2), [2, 1]), call(real(0, 3), 3, axis=1)], methods=("split",),
        tested=lambda x, sections, axis=0: join.split(x, sections, axis)[1]),
    Row(join.pad, J["pad"], lambda x, widths, value=0: np.pad(x, widths, constant_values=value),
        lambda: [call(real(2, 3), 1), call(real(2, 3), ((0, 2), (1, 0)), value=1.5), call(real(3), (2, 1)),
         call(real(0, 2), 1), call(real(), 1)]),
    Row(join.tril, J["tril"], np.tril,
        lambda: [call(real(3, 3)), call(real(2, 3), 1), call(real(2, 4, 3), -1), call(real(0, 3)), call(real(2, 2), 9)],
        methods=("tril",)),
    Row(join.triu, J["triu"], np.triu,
        lambda: [call(real(3, 3)), call(real(2, 3), 1), call(real(2, 4, 3), -1), call(real(3, 0)),
         call(real(2, 2), -9)],
        methods=("triu",)),

    Row(slices.getitem, SLICES["getitem"], lambda x, index: x[index],
        lambda: [call(real(4, 3), (slice(1, 3),)), call(real(4, 3), (slice(None, None, -2), 1)),
         call(real(4, 3), (Ellipsis, -1)),
         call(real(4), (None, slice(0, 0))), call(real(2, 3, 2), 1), call(real(5), (slice(4, None, -3),)),
         call(real(0, 3), (slice(None), 1))],
        public=False),
    Row(slices.put_slice, SLICES["put_slice"], put_slice_like,
        lambda: [call(real(2, 3), (4, 3), ((1, 1, 2), (0, 1, 3))), call(real(2), (5,), ((4, -3, 2),)),
         call(real(0), (3,), ((0, 1, 0),))], public=False),
    Row(window.as_view, WINDOW["as_view"], as_view_like,
        lambda: [call(real(3, 4), (2, 2), (4, 2), 1), call(real(3, 4), (4,), (-3,), 11),
         call(real(3, 4), (3, 2), (0, 1), 5), call(real(4), (), (), 3), call(real(0, 3), (3, 0), (1, 3), 0)],
        public=False),
    Row(window.put_view, WINDOW["put_view"], put_view_like,
        lambda: [call(real(3, 4), real(2, 2), (4, 2), 1), call(real(3, 4), real(4), (-3,), 11),
         call(real(4), real(), (), 3), call(real(4), real(0, 2), (2, 1), 0)], public=False),
    Row(slices.put, SLICES["put"], put_like,
        lambda: [call(real(4, 3), real(2, 3), np.array([[2, -4]]), (((0, 1, 4), (0, 1, 3)), None, 0)),
         call(real(3, 4), real(2), np.array([[0, 2], [1, -1]]), (((0, 1, 3), (1, 1, 3)), (1, 0), 0)),
         call(real(2, 3), real(2, 4), np.array([[0, 1, 0, 0]]), (((0, 1, 2), (0, 1, 3)), None, 1)),
         call(real(3, 2), real(0, 2), np.zeros((1, 0), int), (((0, 1, 3), (0, 1, 2)), None, 0))],
        {"x": "indices", "v": "indices"}, public=False),

    Row(index.take, I["take"], np.take,
        lambda: [call(real(5, 3), np.array([0, 4, -1, 0])), call(real(2, 5, 2), np.array([[1, 3], [0, 1]]), axis=1),
         call(real(4), np.array(2), axis=0), call(real(3, 2), np.array([1, 1, 0]), axis=-1),
         call(real(0, 3), np.array([2, 0]), axis=1), call(real(3), np.zeros((0, 2), int), axis=0)],
        {"x": "indices"}, methods=("take",)),
    Row(index.add_at, I["add_at"], add_at_like,
        lambda: [call(real(4, 3), 0, real(3, 3), np.array([1, -1, 1])),
         call(real(0, 3), 1, real(0, 1), np.array([2]))], {"v": "indices"}, public=False),
    Row(index.gather, I["gather"], gather_like,
        lambda: [call(real(3, 4), 1, integers(3, 2, low=-4, high=4)), call(real(3, 4), 0, integers(2, 3, high=3)),
         call(real(2, 3, 2), -2, integers(2, 4, 2, high=3)), call(real(0, 3), 1, integers(0, 2, high=3)),
         call(real(4), 0, np.array([1, 1, 1]))], {"x": "index"}, methods=("gather",)),
    Row(index.scatter_add, I["scatter_add"], scatter_add_like,
        lambda: [call(real(3, 4), 1, integers(3, 2, low=-4, high=4), real(3, 2)),
         call(real(3, 4), 0, integers(2, 3, high=3), real(2, 3)), call(real(4), 0, np.array([1, 1, 1]), real(3)),
         call(real(2, 3), 1, integers(2, 2, high=3), real(2, 5)),
         call(real(0, 3), 1, integers(0, 2, high=3), real(0, 2))],
        {"src": "index"}, methods=("scatter_add",)),
    Row(masks.select, K["select"], lambda x, mask: x[mask],
        lambda: [call(real(2, 3), MASK), call(real(2, 3, 2), MASK), call(real(3, 2), MASK[0]),
         call(real(2, 3), MASK[0, :2]),
         call(real(0, 3), MASK[:0]), call(real(3), np.zeros(3, bool))], {"x": "places"}, public=False),
    Row(masks.mask_put, K["mask_put"], mask_put_like,
        lambda: [call(real(2, 3), real(4), MASK), call(real(3, 2), real(2, 2), MASK[0]),
         call(real(0, 3), real(0), MASK[:0])], {"x": "places", "v": "places"}, public=False),
    Row(index.argwhere, I["argwhere"], np.argwhere,
        lambda: [call(MASK), call(np.array([[0.0, 2.0], [3.0, 0.0]])), call(real(0, 2)), call(np.array(True))]),
    Row(index.one_hot, I["one_hot"], lambda labels, classes, dtype: np.eye(classes, dtype=dtype)[labels],
        lambda: [call(LABELS, 3, "float32"), call(LABELS.reshape(2, 2), 4, "int64"), call(LABELS[:0], 3, "float64"),
         call(np.array(1), 2, "bool")]),

    Row(sort.sort, SORT["sort"],
        lambda x, axis=-1, descending=False: -np.sort(-x, axis) if descending else np.sort(x, axis),
        lambda: [call(real(5)), call(real(3, 4), axis=0), call(real(2, 3, 2), axis=1, descending=True),
         call(real(0, 3)), call(real(2, 0))], {"x": "order"}, methods=("sort",)),
    Row(sort.argsort, SORT["argsort"], order_like,
        lambda: [call(real(5)), call(real(3, 4), axis=0), call(np.array([1.0, 2.0, 1.0, 2.0]), descending=True),
         call(np.array([1.0, 2.0, 1.0, 2.0])), call(real(0, 3))], methods=("argsort",)),
    Row(sort.topk, SORT["topk"],
        lambda x, k, axis=-1, largest=True: np.take(order_like(x, axis, largest), range(k), axis),
        lambda: [call(real(5), 2), call(real(3, 4), 3, axis=0), call(np.array([1.0, 2.0, 1.0, 2.0]), 3),
         call(real(2, 3), 1, largest=False), call(real(0, 3), 2), call(real(3), 0)], methods=("topk",),
        tested=lambda x, k, axis=-1, largest=True: sort.topk(x, k, axis, largest)[1]),

    Row(linalg.matmul, L["matmul"], np.matmul,
        lambda: [call(real(2, 3), real(3, 4)), call(real(2, 2, 3), real(3, 4)), call(real(2, 1, 2, 3), real(3, 3, 2)),
         call(real(3), real(3, 2)), call(real(2, 3), real(3)), call(real(3), real(3, seed=1)),
         call(real(0, 3), real(3, 2)),
         call(real(2, 0), real(0, 3)), call(real(2, 2, 3), real(2, 3, 1))], {"x": "y", "y": "x"}, methods=("matmul",)),
    Row(linalg.linear, L["linear"], lambda x, w, b=0.0, activation=None: activated(x @ w.T + b, activation),
        lambda: [call(real(4, 3), real(2, 3), real(2)), call(real(4, 3), real(2, 3)),
         call(real(2, 2, 3), real(4, 3), real(4)),
         call(real(3), real(2, 3), real(2)), call(real(0, 3), real(2, 3), real(2)),
         call(real(4, 3), real(2, 3), real(2), activation="relu"), call(real(5, 3), real(2, 3), activation="relu"),
         call(real(2, 2, 3), real(4, 3), real(4), activation="tanh"), call(real(3), real(2, 3), activation="sigmoid"),
         call(real(0, 3), real(2, 3), real(2), activation="sigmoid")],
        lambda x, w, b=None, activation=None: (
            {"x": "w", "w": "x"} if activation is None else {"x": "w out", "w": "x out", "b": "out"})),

    Row(einsum.einsum, einsum.OPERATORS["einsum"], lambda x, y, equation: np.einsum(equation, x, y),
        lambda: [call(real(2, 3), real(3, 4), "ij,jk->ik"), call(real(2, 3), real(4, 3), "ij,kj->ki"),
         call(real(2, 3, 4), real(2, 4, 5), "bij,bjk->bik"), call(real(2, 3, 2), real(3, 2, 4), "ijk,jkl->il"),
         call(real(2), real(3), "i,j"), call(real(3), real(3, seed=1), "i,i"), call(real(2, 3), real(3), "ij,j->ij"),
         call(real(2, 3, 4), real(4, 2), "abc,ca->cab"), call(real(0, 3), real(3, 2), "ij,jk->ik"),
         call(real(2, 0), real(0, 3), "ij,jk->ki"), call(real(2, 2, 3), real(2, 2, 3, seed=1), "...ij,...kj->...ik"),
         call(real(2, 3, 2), real(2, 2, 3), "abc,acb->a")], {"x": "y", "y": "x"},
        tested=lambda x, y, equation: einsum.einsum(equation, x, y)),

    Row(softmax.log_softmax, W["log_softmax"], log_softmax_like,
        lambda: [call(real(4, 3)), call(real(2, 3, 4), axis=1), call(real(5)), call(real(0, 3)),
         call(1000 * real(2, 3))],
        {"x": "out"}, methods=("log_softmax",)),
    Row(softmax.softmax, W["softmax"], softmax_like,
        lambda: [call(real(4, 3)), call(real(2, 3, 4), axis=1), call(real(5)), call(real(0, 3)),
         call(1000 * real(2, 3))], {"x": "out"}, methods=("softmax",)),
    Row(softmax.logsumexp, W["logsumexp"], logsumexp_like,
        lambda: [*along_axes(), call(1000 * real(2, 3), axis=1), call(1000 * real(2, 3), axis=0)], {"x": "x out"},
        methods=("logsumexp",)),

    Row(normalize.layer_norm, Z["layer_norm"], layer_norm_like,
        lambda: [call(real(4, 3), real(3, seed=1), real(3, seed=2)),
         call(real(2, 3, 4), real(3, 4, seed=1), real(3, 4, seed=2), eps=0.5),
         call(real(5), real(5, seed=1), real(5, seed=2)), call(real(0, 3), real(3, seed=1), real(3, seed=2)),
         call(real(40, 200), real(200, seed=1), real(200, seed=2))],
        {"x": "x weight rates", "weight": "x rates"}),

    Row(loss.cross_entropy, O["cross_entropy"], cross_entropy_like,
        lambda: [call(real(4, 3), LABELS), call(real(4, 3), LABELS, reduction="sum"),
         call(real(4, 3), LABELS, reduction="none"),
         call(1000 * real(4, 3), LABELS), call(real(0, 3), LABELS[:0], reduction="sum"),
         call(real(0, 3), LABELS[:0]), call(real(0, 3), LABELS[:0], reduction="none")], {"x": "x labels lse"}),
    Row(loss.nll, O["nll"], nll_like,
        lambda: [call(real(4, 3), LABELS), call(real(4, 3), LABELS, reduction="sum"),
         call(real(4, 3), LABELS, reduction="none"), call(real(0, 3), LABELS[:0], reduction="sum")],
        {"log_probabilities": "labels"}),
    Row(loss.mse, O["mse"], mse_like,
        lambda: [call(real(4, 3), real(4, 3, seed=1)), call(real(4, 3), real(4, 3, seed=1), reduction="sum"),
         call(real(4, 3), real(3, seed=1), reduction="none"), call(real(4, 1), real(4, 3, seed=1)),
         call(real(3), 0.5), call(real(0, 3), real(3), reduction="sum"), call(real(), real(seed=1))],
        {"x": "difference", "y": "difference"}),
    Row(loss.bce_with_logits, O["bce_with_logits"], bce_like,
        lambda: [call(real(4, 3), targets(4, 3)), call(real(4, 3), targets(4, 3), reduction="sum"),
         call(real(4, 3), targets(4, 3), reduction="none"), call(100 * real(3), targets(3)),
         call(real(0, 3), targets(0, 3), reduction="sum"), call(real(), targets()),
         call(real(4, 5), np.array([0.0, 1, 1, 0, 1])[None] * np.ones((4, 1)))],
        lambda x, targets, reduction="mean": {"x": "x hard" if ((targets == 0) | (targets == 1)).all() else "x targets",
                                              "targets": "x"}),

    Row(random.dropout_with, P["dropout"], dropout_like,
        lambda: [call(real(4, 3), 0.5, 7, 2**40), call(real(2, 3, 5), 0.9, 2**64 - 1, 0), call(real(5), 0.0, 1, 2),
         call(real(5), 1.0, 1, 2), call(real(), 0.25, 3, 1), call(real(0, 3), 0.5, 1, 2), call(real(700), 0.1, 5, 3)],
        public=False),
    Row(random.dropout_identity, P["dropout_identity"], lambda x: x, one, public=False),

    Row(gradient.scale_gradient, G["scale_gradient"], lambda x, s: x,
        lambda: [call(real(2, 3), 1.0), call(real(), 1), call(real(0, 2), 1), call(real(2, 3), -0.5),
         call(real(3), 0.0)], methods=("scale_gradient",), own_gradient=True),
]

ROWS = {row.name: row for row in TABLE}
