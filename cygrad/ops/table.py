"""THE TABLE: every operator, one row.

Exports, Tensor methods, type stubs, the operator page, the tests of tests/test_table.py and the benchmarks read these
rows; an operator that is not here does not exist."""

from functools import cached_property

import numpy as np

from cygrad.ops import elementwise, linalg, loss, reduce, shape
from cygrad.ops.samples import (
    LABELS,
    call,
    cross_entropy_like,
    log_softmax_like,
    one,
    positive,
    put_slice_like,
    real,
    two,
)


class Row:
    """One operator.

    function    what users call; its name is the public one
    operator    the operator of that name, from its module's OPERATORS
    like        the same in NumPy: the value is tested against it
    samples     makes `tries`, sample calls: each a tuple (positional arguments, keyword arguments); an array among the
                arguments is an input, anything else an attribute
    keeps       what backward keeps, for the reader and the tests: "x", "y" are inputs, "out" the output, "lse" a value
                for each row; per wanted input, e.g. {"x": "y", "y": "x"}; where it depends on the call, a function of
                the call's arguments that returns this
    methods     names under which Tensor has it
    ties        an input at which it has a kink, and the gradient that is the convention there
    public      whether users have it as cygrad.<name>
    """

    def __init__(self, function, operator, like, samples, keeps=(), methods=(), ties=(), public=True):
        self.function, self.operator, self.like, self.samples = function, operator, like, samples
        self.keeps = keeps if callable(keeps) else dict(keeps)
        self.methods, self.ties, self.public = methods, ties, public

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


E, L, O, R, S = (m.OPERATORS for m in (elementwise, linalg, loss, reduce, shape))

TABLE = [
    Row(elementwise.add, E["add"], np.add, two, methods=("add",)),
    Row(elementwise.sub, E["sub"], np.subtract, two, methods=("sub",)),
    Row(elementwise.mul, E["mul"], np.multiply, two, {"x": "y", "y": "x"}, methods=("mul",)),
    Row(elementwise.div, E["div"], np.divide, two, {"x": "y", "y": "y out"}, methods=("div",)),
    Row(elementwise.neg, E["neg"], np.negative, one, methods=("neg",)),
    Row(elementwise.pow, E["pow"], np.power,
        lambda: [call(real(2, 3), 3), call(positive(2, 3), 0.5), call(positive(3), -1.5),
        call(real(3), 2), call(real(2), 0), call(real(2), 1), call(real(0, 2), 2), call(positive(), 2.5)],
        lambda x, p: {} if p in (0, 1) else {"x": "x"}, methods=("pow",)),
    Row(elementwise.exp, E["exp"], np.exp, one, {"x": "out"}, methods=("exp",)),
    Row(elementwise.log, E["log"], np.log, lambda: one(positive), {"x": "x"}, methods=("log",)),
    Row(elementwise.tanh, E["tanh"], np.tanh, one, {"x": "out"}, methods=("tanh",)),
    Row(elementwise.relu, E["relu"], lambda x: np.maximum(x, 0), one, {"x": "out"}, methods=("relu",),
        ties=(0.0, 0.0)),
    Row(elementwise.relu_gradient, E["relu_gradient"], lambda g, y: np.where(y > 0, g, 0),
        lambda: [call(real(2, 3), real(2, 3, seed=1)), call(real(0, 3), real(0, 3))], {"g": "y"}, public=False),
    Row(elementwise.less, E["less"], np.less, two),
    Row(elementwise.less_equal, E["less_equal"], np.less_equal, two),
    Row(elementwise.equal, E["equal"], np.equal, two),
    Row(elementwise.not_equal, E["not_equal"], np.not_equal, two),
    Row(elementwise.greater, E["greater"], np.greater, two),
    Row(elementwise.greater_equal, E["greater_equal"], np.greater_equal, two),

    Row(reduce.sum, R["sum"], lambda x, axis=None, keepdims=False: np.sum(x, axis, keepdims=keepdims),
        lambda: [call(real(2, 3)), call(real(2, 3), axis=0), call(real(2, 3, 4), axis=(0, 2), keepdims=True),
         call(real(2, 3), axis=-1), call(real(3, 0), axis=1), call(real(0)), call(real())], methods=("sum",)),
    Row(reduce.mean, R["mean"], lambda x, axis=None, keepdims=False: np.mean(x, axis, keepdims=keepdims),
        lambda: [call(real(2, 3)), call(real(2, 3), axis=0), call(real(2, 3, 4), axis=(0, 2), keepdims=True),
         call(real(2, 3), axis=-1), call(real(0, 3), axis=1), call(real())], methods=("mean",)),

    Row(shape.reshape, S["reshape"], lambda x, shape: np.reshape(x, shape),
        lambda: [call(real(2, 6), (3, 4)), call(real(2, 3), (-1,)), call(real(0, 3), (3, 0)), call(real(), (1, 1)),
         call(real(2, 3), (1, 2, 1, 3))], methods=("reshape",)),
    Row(shape.transpose, S["transpose"], lambda x, axes=None: np.transpose(x, axes),
        lambda: [call(real(2, 3)), call(real(2, 3, 4), (1, 2, 0)), call(real(0, 2)), call(real(3))],
        methods=("transpose",)),
    Row(shape.broadcast_to, S["broadcast_to"], np.broadcast_to,
        lambda: [call(real(3), (2, 3)), call(real(2, 1), (2, 4)), call(real(), (2, 2)), call(real(1, 3), (0, 3)),
         call(real(2, 3), (2, 3)), call(real(0), (2, 0))], methods=("broadcast_to",)),
    Row(shape.getitem, S["getitem"], lambda x, index: x[index],
        lambda: [call(real(4, 3), (slice(1, 3),)), call(real(4, 3), (slice(None, None, -2), 1)),
         call(real(4, 3), (Ellipsis, -1)),
         call(real(4), (None, slice(0, 0))), call(real(2, 3, 2), 1), call(real(5), (slice(4, None, -3),)),
         call(real(0, 3), (slice(None), 1))],
        public=False),
    Row(shape.put_slice, S["put_slice"], put_slice_like,
        lambda: [call(real(2, 3), (4, 3), ((1, 1, 2), (0, 1, 3))), call(real(2), (5,), ((4, -3, 2),)),
         call(real(0), (3,), ((0, 1, 0),))], public=False),
    Row(shape.astype, S["cast"], lambda x, dtype: x.astype(dtype),
        lambda: [call(real(2, 3), "float64"), call(real(2, 3), "float32"), call(real(0, 2), "float64")],
        methods=("astype",)),

    Row(linalg.matmul, L["matmul"], np.matmul,
        lambda: [call(real(2, 3), real(3, 4)), call(real(2, 2, 3), real(3, 4)), call(real(2, 1, 2, 3), real(3, 3, 2)),
         call(real(3), real(3, 2)), call(real(2, 3), real(3)), call(real(3), real(3, seed=1)),
         call(real(0, 3), real(3, 2)),
         call(real(2, 0), real(0, 3)), call(real(2, 2, 3), real(2, 3, 1))], {"x": "y", "y": "x"}, methods=("matmul",)),
    Row(linalg.linear, L["linear"], lambda x, w, b=0.0: x @ w.T + b,
        lambda: [call(real(4, 3), real(2, 3), real(2)), call(real(4, 3), real(2, 3)),
         call(real(2, 2, 3), real(4, 3), real(4)),
         call(real(3), real(2, 3), real(2)), call(real(0, 3), real(2, 3), real(2))], {"x": "w", "w": "x"}),

    Row(loss.log_softmax, O["log_softmax"], log_softmax_like,
        lambda: [call(real(4, 3)), call(real(2, 3, 4), axis=1), call(real(5)), call(real(0, 3)),
         call(1000 * real(2, 3))],
        {"x": "out"}, methods=("log_softmax",)),
    Row(loss.cross_entropy, O["cross_entropy"], cross_entropy_like,
        lambda: [call(real(4, 3), LABELS), call(real(4, 3), LABELS, reduction="sum"),
         call(real(4, 3), LABELS, reduction="none"),
         call(1000 * real(4, 3), LABELS), call(real(0, 3), LABELS[:0], reduction="sum"),
         call(real(0, 3), LABELS[:0]), call(real(0, 3), LABELS[:0], reduction="none")], {"x": "x labels lse"}),
]

ROWS = {row.name: row for row in TABLE}
