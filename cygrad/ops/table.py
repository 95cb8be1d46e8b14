"""The table of operators, one row each, by family.

Exports, Tensor's methods, type stubs, the operator page, tests/ops/test_table.py and the benchmarks read these rows. An
operator without a row has no public name. The test inputs of each row are in tests/samples. PARTS are rows for nets.

A row with a path, such as "loss.mse", loads its module at the first use of the row. So `import cygrad` takes no longer
when such families are added. They have no methods of Tensor."""

from collections.abc import Callable
from functools import cached_property
from importlib import import_module
from typing import Any

from cygrad.ops import (
    compare, elementwise, functions, gradient, index, join, linalg, masks, minmax, random, reduce, scan, shape, slices,
    softmax, sort, statistics, window,
)


class Row:
    """One operator.

    function    the public function; its name is the name of the row. Or its path: "MODULE.FUNCTION"
    operator    the operator in OPERATORS of the function's module, by the function's name or by `operator`
    methods     names of the function as a method of Tensor
    aliases     other public names of the function, such as those of the Array API standard, NumPy or PyTorch
    public      whether the function is exported as cygrad.<name>

    `key` is the name of the operator in OPERATORS, `name` that of the function, and `family` that of its module. `late`
    says whether it is loaded at first use.
    """

    def __init__(self, function: Callable[..., Any] | str, operator: str | None = None, methods: tuple[str, ...] = (),
                 aliases: tuple[str, ...] = (), public: bool = True):
        self.late = isinstance(function, str)
        if isinstance(function, str):
            self.family, _, self.name = function.partition(".")
            if methods: raise ValueError(f"{function}: a row that is loaded late has no methods")
        else:
            self.family, self.name = function.__module__.rpartition(".")[2], function.__name__
            self.function = function
        self.key = operator or self.name
        self.methods, self.aliases, self.public = methods, aliases, public

    @cached_property
    def module(self) -> Any:
        """The module of the family."""
        return import_module("cygrad.ops." + self.family)

    @cached_property
    def function(self) -> Callable[..., Any]:
        """The public function."""
        return getattr(self.module, self.name)

    @cached_property
    def operator(self) -> Any:
        """The operator, of which there is one instance."""
        return self.module.OPERATORS[self.key]

    def __repr__(self):
        return f"<row {self.name}>"


TABLE = [
    Row(elementwise.add, methods=("add",)),
    Row(elementwise.sub, methods=("sub",), aliases=("subtract",)),
    Row(elementwise.mul, methods=("mul",), aliases=("multiply",)),
    Row(elementwise.div, methods=("div",), aliases=("divide",)),
    Row(elementwise.floor_divide, methods=("floor_divide",)),
    Row(elementwise.remainder, methods=("remainder",), aliases=("mod",)),
    Row(elementwise.neg, methods=("neg",), aliases=("negative",)),
    Row(elementwise.abs, methods=("abs",), aliases=("absolute",)),
    Row(elementwise.sign, methods=("sign",)),
    Row(elementwise.floor, methods=("floor",)),
    Row(elementwise.ceil, methods=("ceil",)),
    Row(elementwise.trunc, methods=("trunc",)),
    Row(elementwise.round, methods=("round",)),
    Row(elementwise.pow, methods=("pow",)),
    Row(elementwise.power),
    Row(elementwise.square, methods=("square",)),
    Row(elementwise.sqrt, methods=("sqrt",)),
    Row(elementwise.rsqrt, methods=("rsqrt",)),
    Row(elementwise.reciprocal, methods=("reciprocal",)),

    Row(functions.exp, methods=("exp",)),
    Row(functions.expm1, methods=("expm1",)),
    Row(functions.log, methods=("log",)),
    Row(functions.log1p, methods=("log1p",)),
    Row(functions.sin, methods=("sin",)),
    Row(functions.cos, methods=("cos",)),
    Row(functions.tan, methods=("tan",)),
    Row(functions.asin, methods=("asin",), aliases=("arcsin",)),
    Row(functions.acos, methods=("acos",), aliases=("arccos",)),
    Row(functions.atan, methods=("atan",), aliases=("arctan",)),
    Row(functions.sinh, methods=("sinh",)),
    Row(functions.cosh, methods=("cosh",)),
    Row(functions.tanh, methods=("tanh",)),
    Row(functions.asinh, methods=("asinh",), aliases=("arcsinh",)),
    Row(functions.acosh, methods=("acosh",), aliases=("arccosh",)),
    Row(functions.atanh, methods=("atanh",), aliases=("arctanh",)),
    Row(functions.erf, methods=("erf",)),
    Row(functions.sigmoid, methods=("sigmoid",)),
    Row(functions.softplus, methods=("softplus",)),
    Row(functions.silu, methods=("silu",)),
    Row(functions.gelu, methods=("gelu",)),
    Row(functions.gelu_tanh, public=False),
    Row(functions.relu, methods=("relu",)),
    Row(functions.relu_gradient, public=False),

    Row("special.log2"),
    Row("special.log10"),
    Row("special.exp2"),
    Row("special.cbrt"),
    Row("special.logaddexp"),
    Row("special.xlogy"),
    Row("special.erfc"),
    Row("special.lgamma"),
    Row("special.digamma"),
    Row("special.polygamma"),
    Row("special.sinc"),
    Row("special.sinc_derivative", public=False),
    Row("special.atan2", aliases=("arctan2",)),
    Row("special.hypot"),
    Row("special.copysign"),
    Row("special.fmax"),
    Row("special.fmin"),

    Row("activations.leaky_relu"),
    Row("activations.prelu"),
    Row("activations.threshold"),
    Row("activations.hardtanh"),
    Row("activations.hardsigmoid"),
    Row("activations.hardswish"),
    Row("activations.elu"),
    Row("activations.selu"),
    Row("activations.celu"),
    Row("activations.softsign"),
    Row("activations.logsigmoid"),
    Row("activations.mish"),
    Row("activations.glu"),

    Row(compare.less),
    Row(compare.less_equal),
    Row(compare.equal),
    Row(compare.not_equal),
    Row(compare.greater),
    Row(compare.greater_equal),
    Row(compare.isnan, methods=("isnan",)),
    Row(compare.isinf, methods=("isinf",)),
    Row(compare.isfinite, methods=("isfinite",)),
    Row(compare.logical_and, methods=("logical_and",)),
    Row(compare.logical_or, methods=("logical_or",)),
    Row(compare.logical_xor, methods=("logical_xor",)),
    Row(compare.logical_not, methods=("logical_not",)),
    Row(compare.bitwise_and, methods=("bitwise_and",)),
    Row(compare.bitwise_or, methods=("bitwise_or",)),
    Row(compare.bitwise_xor, methods=("bitwise_xor",)),
    Row(compare.bitwise_not, methods=("bitwise_not",)),
    Row(compare.maximum, methods=("maximum",)),
    Row(compare.minimum, methods=("minimum",)),
    Row(compare.clip, methods=("clip", "clamp"), aliases=("clamp",)),
    Row(compare.where),

    Row(reduce.sum, methods=("sum",)),
    Row(reduce.mean, methods=("mean",)),
    Row(reduce.prod, methods=("prod",)),
    Row(reduce.any, methods=("any",)),
    Row(reduce.all, methods=("all",)),

    Row(statistics.var, methods=("var",)),
    Row(statistics.std, methods=("std",)),
    Row(statistics.norm, methods=("norm",)),

    Row(minmax.max, methods=("max",)),
    Row(minmax.min, methods=("min",)),
    Row(minmax.argmax, methods=("argmax",)),
    Row(minmax.argmin, methods=("argmin",)),

    Row(scan.cumsum, methods=("cumsum",)),
    Row(scan.cumprod, methods=("cumprod",)),
    Row(scan.recurrence, public=False),
    Row(scan.cummax, methods=("cummax",)),
    Row(scan.cummin, methods=("cummin",)),

    Row(shape.reshape, methods=("reshape",)),
    Row(shape.transpose, methods=("transpose",)),
    Row(shape.permute, methods=("permute",), aliases=("permute_dims",)),
    Row(shape.squeeze, methods=("squeeze",)),
    Row(shape.expand_dims, methods=("expand_dims", "unsqueeze"), aliases=("unsqueeze",)),
    Row(shape.flip, methods=("flip",)),
    Row(shape.broadcast_to, methods=("broadcast_to",)),
    Row(shape.copy, methods=("copy", "clone")),
    Row(shape.astype, operator="cast", methods=("astype",)),

    Row(join.concat, aliases=("concatenate", "cat")),
    Row(join.stack),
    Row(join.split, methods=("split",)),
    Row(join.pad),
    Row(join.tril, methods=("tril",)),
    Row(join.triu, methods=("triu",)),

    Row(slices.getitem, public=False),
    Row(slices.put_slice, public=False),
    Row(slices.put, public=False),

    Row(window.as_view, public=False),
    Row(window.put_view, public=False),

    Row(index.take, methods=("take",)),
    Row(index.add_at, public=False),
    Row(index.gather, methods=("gather",)),
    Row(index.scatter_add, methods=("scatter_add",)),
    Row(index.argwhere),
    Row(index.one_hot),

    Row(masks.select, public=False),
    Row(masks.mask_put, public=False),

    Row(sort.sort, methods=("sort",)),
    Row(sort.argsort, methods=("argsort",)),
    Row(sort.topk, methods=("topk",)),
    Row(sort.searchsorted, methods=("searchsorted",)),

    Row(linalg.matmul, methods=("matmul",)),
    Row(linalg.linear),

    Row("einsum.einsum"),

    Row("diagonal.diagonal"),
    Row("diagonal.diag"),

    Row("decompose.cholesky"),
    Row("decompose.qr"),

    Row("spectra.svd"),
    Row("spectra.svdvals"),
    Row("spectra.eigh"),
    Row("spectra.eigvalsh"),
    Row("spectra.spectral_gaps", public=False),

    Row("solve.solve"),
    Row("solve.solve_triangular"),
    Row("solve.inv"),
    Row("solve.pinv"),
    Row("solve.lstsq"),

    Row("determinant.det"),
    Row("determinant.slogdet"),
    Row("determinant.cofactor", public=False),

    Row(softmax.log_softmax, methods=("log_softmax",)),
    Row(softmax.softmax, methods=("softmax",)),
    Row(softmax.logsumexp, methods=("logsumexp",)),

    Row("conv.conv1d"),
    Row("conv.conv2d"),
    Row("conv.conv3d"),
    Row("conv.conv_transpose1d"),
    Row("conv.conv_transpose2d"),
    Row("conv.conv_transpose3d"),
    Row("conv.conv_weight", public=False),

    Row("pool.max_pool1d"),
    Row("pool.max_pool2d"),
    Row("pool.max_pool3d"),
    Row("pool.avg_pool1d"),
    Row("pool.avg_pool2d"),
    Row("pool.avg_pool3d"),
    Row("pool.adaptive_max_pool1d"),
    Row("pool.adaptive_max_pool2d"),
    Row("pool.adaptive_max_pool3d"),
    Row("pool.adaptive_avg_pool1d"),
    Row("pool.adaptive_avg_pool2d"),
    Row("pool.adaptive_avg_pool3d"),
    Row("pool.pool_put", public=False),
    Row("pool.pool_take", public=False),
    Row("pool.avg_spread", public=False),

    Row("patches.unfold"),
    Row("patches.fold"),

    Row("resize.interpolate"),
    Row("resize.interpolate_back", public=False),

    Row("normalize.layer_norm"),
    Row("normalize.rms_norm"),

    Row("channels.group_norm"),
    Row("channels.instance_norm"),
    Row("channels.batch_norm"),
    Row("channels.batch_norm_predict", public=False),

    Row("embedding.embedding"),
    Row("embedding.embedding_bag"),

    Row("attention.scaled_dot_product_attention"),
    Row("attention.attention_with_dropout", public=False),

    Row("recurrent.lstm"),
    Row("recurrent.gru"),
    Row("recurrent.rnn"),
    Row("recurrent.rnn_relu", public=False),

    Row("loss.mse", aliases=("mse_loss",)),
    Row("loss.bce_with_logits"),

    Row("entropy.cross_entropy"),
    Row("entropy.soft_cross_entropy", public=False),
    Row("entropy.nll_loss", aliases=("nll",)),
    Row("linear_entropy.linear_cross_entropy"),
    Row("ctc.ctc_loss"),

    Row("distances.l1_loss"),
    Row("distances.smooth_l1_loss"),
    Row("distances.huber_loss"),
    Row("likelihoods.kl_div"),
    Row("likelihoods.gaussian_nll_loss"),
    Row("likelihoods.poisson_nll_loss"),
    Row("likelihoods.binary_cross_entropy"),
    Row("likelihoods.binary_cross_entropy_with_logits"),
    Row("likelihoods.soft_margin_loss"),
    Row("margins.hinge_embedding_loss"),

    Row(random.dropout_with, operator="dropout", public=False),
    Row(random.dropout_identity, public=False),

    Row(gradient.scale_gradient, methods=("scale_gradient",)),

    Row("rules.sgd_update", public=False),
    Row("rules.sgdw_update", public=False),
    Row("rules.momentum_update", public=False),
    Row("rules.nesterov_update", public=False),
    Row("rules.lars_update", public=False),
    Row("rules.adagrad_update", public=False),
    Row("rules.adadelta_update", public=False),
    Row("rules.rmsprop_update", public=False),
    Row("rules.rmsprop_graves_update", public=False),
    Row("rules.adam_update", public=False),
    Row("rules.adamw_update", public=False),
    Row("rules.adamax_update", public=False),
    Row("rules.amsgrad_update", public=False),
    Row("rules.adabound_update", public=False),
    Row("rules.amsbound_update", public=False),
    Row("rules.adabelief_update", public=False),
    Row("rules.adabelief_max_update", public=False),
    Row("rules.lamb_update", public=False),
    Row("rules.lion_update", public=False),
]

# Rows of functions that run one operator whose own row is a function that runs several, such as topk: first indices,
# then values. Nets name these. The samples of the other row are theirs too.
PARTS = [
    Row("activations.prelu_broadcast", operator="prelu", public=False),
    Row("base.code_is", operator="has_code", public=False),
    Row(scan.cumsum_reversed, operator="cumsum", public=False),
    Row(scan.cummax_places, operator="cummax", public=False),
    Row(scan.cummin_places, operator="cummin", public=False),
    Row(join.split_part, operator="split", public=False),
    Row(slices.assign, public=False),
    Row(index.take_at, operator="take", public=False),
    Row(index.gather_ranked, public=False),
    Row(masks.kept_mask, public=False),
    Row(sort.topk_places, operator="topk", public=False),
    Row(gradient.locally_constant, public=False),
    Row("einsum.contract", operator="einsum", public=False),
    Row("diagonal.put_diagonal", operator="diag", public=False),
    Row("solve.solve_transposed", operator="solve", public=False),
    Row("solve.solve_triangular_transposed", operator="solve_triangular", public=False),
    Row("solve.lstsq_parts", operator="lstsq", public=False),
    Row("conv.conv1d_sized", operator="conv1d", public=False),
    Row("conv.conv2d_sized", operator="conv2d", public=False),
    Row("conv.conv3d_sized", operator="conv3d", public=False),
    Row("conv.conv_transpose1d_sized", operator="conv_transpose1d", public=False),
    Row("conv.conv_transpose2d_sized", operator="conv_transpose2d", public=False),
    Row("conv.conv_transpose3d_sized", operator="conv_transpose3d", public=False),
    Row("resize.interpolate_scaled", operator="interpolate", public=False),
    Row("channels.batch_norm_with_statistics", operator="batch_norm", public=False),
    Row("embedding.embedding_bag_weighted", operator="embedding_bag", public=False),
    Row("attention.attend", operator="scaled_dot_product_attention", public=False),
    Row("attention.attend_with_dropout", operator="attention_with_dropout", public=False),
    Row("recurrent.lstm_layer", operator="lstm", public=False),
    Row("recurrent.gru_layer", operator="gru", public=False),
    Row("recurrent.rnn_layer", operator="rnn", public=False),
    Row("recurrent.rnn_relu_layer", operator="rnn_relu", public=False),
    Row("loss.mean_square", operator="mse", public=False),
    Row("entropy.cross_entropy_along", operator="cross_entropy", public=False),
    Row("entropy.soft_cross_entropy_along", operator="soft_cross_entropy", public=False),
    Row("likelihoods.bce_with_pos_weight", operator="binary_cross_entropy_with_logits", public=False),
    Row("ctc.ctc_loss_packed", operator="ctc_loss", public=False),
]

ROWS = {row.name: row for row in (*TABLE, *PARTS)}

# Public functions that are made of operators: the names of each module. It is loaded at the first use of a function.
COMPOSED = {
    "diagonal": ("trace",),
    "norms": ("matrix_norm", "matrix_power"),
    "pool": ("lp_pool1d", "lp_pool2d", "lp_pool3d"),
    "products": ("cross", "inner", "kron", "outer", "tensordot", "vecdot"),
    "distances": ("cosine_similarity", "pairwise_distance"),
    "margins": (
        "cosine_embedding_loss", "margin_ranking_loss", "multi_margin_loss", "multilabel_margin_loss",
        "multilabel_soft_margin_loss", "triplet_margin_loss",
    ),
    "rearrange": (
        "array_split", "atleast_1d", "atleast_2d", "atleast_3d", "broadcast_arrays", "column_stack", "dsplit", "dstack",
        "fliplr", "flipud", "hsplit", "hstack", "meshgrid", "moveaxis", "repeat", "roll", "rot90", "tile", "unstack",
        "vsplit", "vstack",
    ),
    "resize": ("pixel_shuffle", "pixel_unshuffle"),
    "selection": (
        "allclose", "array_equal", "index_add", "isclose", "masked_fill", "nan_to_num", "nonzero", "take_along_axis",
        "unique",
    ),
    "summaries": (
        "average", "count_nonzero", "diff", "median", "nanmean", "nansum", "percentile", "ptp", "quantile",
    ),
}
