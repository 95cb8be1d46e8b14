"""The table of operators, one row each, by family.

Exports, Tensor's methods, type stubs, the operator page, tests/ops/test_table.py and the benchmarks read these rows. An
operator without a row has no public name. The test inputs of each row are in tests/samples.

A row with a path, such as "losses.loss.mse", loads its module at the first use of the row. So `import cygrad` takes no
longer when such families are added. They have no methods of Tensor."""

from collections.abc import Callable
from functools import cached_property
from importlib import import_module
from typing import Any

from cygrad.ops.elementwise import compare, elementwise, functions
from cygrad.ops.shapes import index, join, masks, shape, slices, sort, window
from cygrad.ops.reductions import minmax, reduce, scan, softmax, statistics
from cygrad.ops.linalg import linalg
from cygrad.ops.layers import gradient, random


class Row:
    """One operator.

    function    the public function; its name is the name of the row. Or its path: "FOLDER.MODULE.FUNCTION"
    methods     names of the function as a method of Tensor
    aliases     other public names of the function, such as those of the Array API standard, NumPy or PyTorch
    public      whether the function is exported as cygrad.<name>
    parts       functions that run one operator, where this function runs several, such as cummax: first cummax_places,
                then gather_ranked; or that run its operator otherwise. Nets name these. Each has a row in ROWS, and the
                samples of this row are theirs too. A path, if it is in another module

    `name` is that of the function, `path` that of its module (below cygrad.ops), and `family` the last name of that.
    `late` says whether it is loaded at first use. The `operator` is the one in OPERATORS of the module that declares
    the row.
    """

    def __init__(self, function: Callable[..., Any] | str, methods: tuple[str, ...] = (), aliases: tuple[str, ...] = (),
                 public: bool = True, parts: tuple[str, ...] = ()):
        self.late = isinstance(function, str)
        if isinstance(function, str):
            self.path, _, self.name = function.rpartition(".")
            if methods: raise ValueError(f"{function}: a row that is loaded late has no methods")
        else:
            self.path, self.name = function.__module__.removeprefix("cygrad.ops."), function.__name__
            self.function = function
        self.family = self.path.rpartition(".")[2]
        self.methods, self.aliases, self.public, self.parts = methods, aliases, public, parts

    @cached_property
    def module(self) -> Any:
        """The module of the family."""
        return import_module("cygrad.ops." + self.path)

    @cached_property
    def function(self) -> Callable[..., Any]:
        """The public function."""
        return getattr(self.module, self.name)

    @cached_property
    def operator(self) -> Any:
        """The operator, of which there is one instance."""
        return next(o for o in self.module.OPERATORS.values() if self.name == o.row or self.name in o.functions)

    @property
    def selects(self) -> bool:
        """Whether the function gathers values at the places that the operator computes."""
        return bool(self.operator.selects and self.name in self.operator.functions)

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

    Row("elementwise.special.log2"),
    Row("elementwise.special.log10"),
    Row("elementwise.special.exp2"),
    Row("elementwise.special.cbrt"),
    Row("elementwise.special.logaddexp"),
    Row("elementwise.special.xlogy"),
    Row("elementwise.special.erfc"),
    Row("elementwise.special.erfinv"),
    Row("elementwise.special.lgamma"),
    Row("elementwise.special.digamma"),
    Row("elementwise.special.polygamma"),
    Row("elementwise.special.sinc"),
    Row("elementwise.special.sinc_derivative", public=False),
    Row("elementwise.special.atan2", aliases=("arctan2",)),
    Row("elementwise.special.hypot"),
    Row("elementwise.special.copysign"),
    Row("elementwise.special.fmax"),
    Row("elementwise.special.fmin"),

    Row("elementwise.representation.bitwise_left_shift", aliases=("left_shift",)),
    Row("elementwise.representation.bitwise_right_shift", aliases=("right_shift",)),
    Row("elementwise.representation.signbit"),
    Row("elementwise.representation.nextafter"),

    Row("layers.activations.leaky_relu"),
    Row("layers.activations.prelu", parts=("prelu_broadcast",)),
    Row("layers.activations.threshold"),
    Row("layers.activations.hardtanh"),
    Row("layers.activations.hardsigmoid"),
    Row("layers.activations.hardswish"),
    Row("layers.activations.elu"),
    Row("layers.activations.selu"),
    Row("layers.activations.celu"),
    Row("layers.activations.softsign"),
    Row("layers.activations.logsigmoid"),
    Row("layers.activations.mish"),
    Row("layers.activations.glu"),

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
    Row(compare.bitwise_not, methods=("bitwise_not",), aliases=("bitwise_invert", "invert")),
    Row(compare.maximum, methods=("maximum",)),
    Row(compare.minimum, methods=("minimum",)),
    Row(compare.clip, methods=("clip", "clamp"), aliases=("clamp",)),
    Row(compare.where, parts=("elementwise.base.code_is",)),

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

    Row(scan.cumsum, methods=("cumsum",), parts=("cumsum_reversed",)),
    Row(scan.cumprod, methods=("cumprod",)),
    Row(scan.recurrence, public=False),
    Row(scan.cummax, methods=("cummax",), parts=("cummax_places",)),
    Row(scan.cummin, methods=("cummin",), parts=("cummin_places",)),

    Row(shape.reshape, methods=("reshape",)),
    Row(shape.transpose, methods=("transpose",)),
    Row(shape.permute, methods=("permute",), aliases=("permute_dims",)),
    Row(shape.squeeze, methods=("squeeze",)),
    Row(shape.expand_dims, methods=("expand_dims", "unsqueeze"), aliases=("unsqueeze",)),
    Row(shape.flip, methods=("flip",)),
    Row(shape.broadcast_to, methods=("broadcast_to",)),
    Row(shape.copy, methods=("copy", "clone")),
    Row(shape.astype, methods=("astype",)),

    Row(join.concat, aliases=("concatenate", "cat")),
    Row(join.stack),
    Row(join.split, methods=("split",), parts=("split_part",)),
    Row(join.pad),
    Row(join.tril, methods=("tril",)),
    Row(join.triu, methods=("triu",)),

    Row(slices.getitem, public=False),
    Row(slices.put_slice, public=False),
    Row(slices.put, parts=("assign",), public=False),

    Row(window.as_view, public=False),
    Row(window.put_view, public=False),

    Row(index.take, methods=("take",), parts=("take_at",)),
    Row(index.add_at, public=False),
    Row(index.gather, methods=("gather",), parts=("gather_ranked",)),
    Row(index.scatter_add, methods=("scatter_add",)),
    Row(index.argwhere),
    Row(index.one_hot),

    Row(masks.select, parts=("kept_mask",), public=False),
    Row(masks.mask_put, public=False),

    Row(sort.sort, methods=("sort",)),
    Row(sort.argsort, methods=("argsort",)),
    Row(sort.topk, methods=("topk",), parts=("topk_places",)),
    Row(sort.searchsorted, methods=("searchsorted",)),

    Row(linalg.matmul, methods=("matmul",)),
    Row(linalg.linear),

    Row("linalg.einsum.einsum", parts=("contract",)),

    Row("linalg.diagonal.diagonal"),
    Row("linalg.diagonal.diag", parts=("put_diagonal",)),

    Row("linalg.decompose.cholesky"),
    Row("linalg.decompose.qr"),

    Row("linalg.spectra.svd"),
    Row("linalg.spectra.svdvals"),
    Row("linalg.spectra.eigh"),
    Row("linalg.spectra.eigvalsh"),
    Row("linalg.spectra.spectral_gaps", public=False),
    Row("linalg.general.eig"),
    Row("linalg.general.eigvals"),
    Row("linalg.general.expm"),
    Row("linalg.general.logm"),
    Row("linalg.general.sqrtm"),

    Row("linalg.solve.solve", parts=("solve_transposed",)),
    Row("linalg.solve.solve_triangular", parts=("solve_triangular_transposed",)),
    Row("linalg.solve.inv"),
    Row("linalg.solve.pinv"),
    Row("linalg.solve.lstsq", parts=("lstsq_parts",)),

    Row("linalg.determinant.det"),
    Row("linalg.determinant.slogdet"),
    Row("linalg.determinant.cofactor", public=False),

    Row(softmax.log_softmax, methods=("log_softmax",)),
    Row(softmax.softmax, methods=("softmax",)),
    Row(softmax.logsumexp, methods=("logsumexp",)),

    *[Row(f"images.conv.{name}{d}d", parts=(f"{name}{d}d_sized",)) for name in ("conv", "conv_transpose")
      for d in (1, 2, 3)],
    Row("images.conv.conv_weight", public=False),

    *[Row(f"images.pool.{name}_pool{d}d") for name in ("max", "avg", "adaptive_max", "adaptive_avg")
      for d in (1, 2, 3)],
    Row("images.pool.pool_put", public=False),
    Row("images.pool.pool_take", public=False),
    Row("images.pool.avg_spread", public=False),

    Row("images.patches.unfold"),
    Row("images.patches.fold"),

    Row("images.resize.interpolate", parts=("interpolate_scaled",)),
    Row("images.resize.interpolate_back", public=False),

    Row("layers.normalize.layer_norm"),
    Row("layers.normalize.rms_norm"),

    Row("layers.channels.group_norm"),
    Row("layers.channels.instance_norm"),
    Row("layers.channels.batch_norm", parts=("batch_norm_with_statistics",)),
    Row("layers.channels.batch_norm_predict", public=False),

    Row("layers.embedding.embedding"),
    Row("layers.embedding.embedding_bag", parts=("embedding_bag_weighted",)),

    Row("layers.attention.scaled_dot_product_attention", parts=("attend",)),
    Row("layers.attention.attention_with_dropout", parts=("attend_with_dropout",), public=False),

    Row("layers.recurrent.lstm", parts=("lstm_layer",)),
    Row("layers.recurrent.gru", parts=("gru_layer",)),
    Row("layers.recurrent.rnn", parts=("rnn_layer",)),
    Row("layers.recurrent.rnn_relu", parts=("rnn_relu_layer",), public=False),

    Row("losses.loss.mse", aliases=("mse_loss",), parts=("mean_square",)),
    Row("losses.loss.bce_with_logits"),

    Row("losses.entropy.cross_entropy", parts=("cross_entropy_along",)),
    Row("losses.entropy.soft_cross_entropy", parts=("soft_cross_entropy_along",), public=False),
    Row("losses.entropy.nll_loss", aliases=("nll",)),
    Row("losses.linear_entropy.linear_cross_entropy"),
    Row("losses.ctc.ctc_loss", parts=("ctc_loss_packed",)),

    Row("losses.distances.l1_loss"),
    Row("losses.distances.smooth_l1_loss"),
    Row("losses.distances.huber_loss"),
    Row("losses.likelihoods.kl_div"),
    Row("losses.likelihoods.gaussian_nll_loss"),
    Row("losses.likelihoods.poisson_nll_loss"),
    Row("losses.likelihoods.binary_cross_entropy"),
    Row("losses.likelihoods.binary_cross_entropy_with_logits", parts=("bce_with_pos_weight",)),
    Row("losses.likelihoods.soft_margin_loss"),
    Row("losses.margins.hinge_embedding_loss"),

    Row(random.dropout_with, public=False),
    Row(random.dropout_identity, public=False),

    Row(gradient.scale_gradient, methods=("scale_gradient",), parts=("locally_constant",)),

    *[Row(f"rules.{name}_update", public=False) for name in """
        sgd sgdw momentum nesterov lars adagrad ftrl adadelta rmsprop rmsprop_graves adam adamw adamax amsgrad adabound
        amsbound adabelief adabelief_max lamb lion
    """.split()],
]

ROWS = {row.name: row for row in TABLE} | {
    part.name: part for row in TABLE for name in row.parts
    for part in [Row(name if "." in name else f"{row.path}.{name}", public=False)]}

# Public functions that are made of operators: the names of each module. It is loaded at the first use of a function.
COMPOSED = {
    "elementwise.angles": ("deg2rad", "degrees", "rad2deg", "radians"),
    "linalg.diagonal": ("trace",),
    "linalg.norms": ("matrix_norm", "matrix_power", "matrix_rank", "normalize"),
    "images.pool": ("lp_pool1d", "lp_pool2d", "lp_pool3d"),
    "layers.channels": ("local_response_norm",),
    "linalg.products": ("cross", "inner", "kron", "outer", "tensordot", "vecdot"),
    "losses.distances": ("cosine_similarity", "pairwise_distance"),
    "losses.margins": (
        "cosine_embedding_loss", "margin_ranking_loss", "multi_margin_loss", "multilabel_margin_loss",
        "multilabel_soft_margin_loss", "triplet_margin_loss",
    ),
    "shapes.rearrange": (
        "append", "array_split", "atleast_1d", "atleast_2d", "atleast_3d", "broadcast_arrays", "chunk",
        "column_stack", "dsplit", "dstack", "fliplr", "flipud", "hsplit", "hstack", "meshgrid", "moveaxis",
        "repeat", "roll", "rot90", "tile", "unstack", "vsplit", "vstack",
    ),
    "images.resize": ("pixel_shuffle", "pixel_unshuffle"),
    "reductions.selection": (
        "allclose", "array_equal", "index_add", "isclose", "isin", "masked_fill", "nan_to_num", "nonzero",
        "take_along_axis", "unique",
    ),
    "reductions.summaries": (
        "average", "count_nonzero", "diff", "gradient", "median", "nanmean", "nansum", "percentile", "ptp", "quantile",
    ),
}
