"""For each row of the table, the same function in PyTorch's OpInfo, and an adapter for its calling convention.
opinfo.py compares them. A new row needs a line in COUNTERPARTS, or a reason in WITHOUT."""

from conventions import (
    added_at, added_to, alone, along, approximated, attending, averaged, best, cast_to, chosen, clipped, clipped_above,
    clipped_below, convolved, cut, cut_evenly, decomposed, divided, encoded, expanded, filled, flipped, gathered,
    halved, indexed, inverted, joined, looked_up, masked, max_adapted, max_pooled, moved, narrowed, normalised, normed,
    of_batches, of_instances, of_numbers, off_poles, off_zero, ordered, padded, permuted, plain, put, raised, reduced,
    resized, reversed_power, scaled, scaled_rows, selected, signless, sixfold, solved, spread, squared_error, squeezed,
    summed, swapped, systems, taken, taken_along, to_a_power, triangle, with_alpha, with_logits, with_numbers,
    with_slopes, within, without_format,
)

from cygrad.ops import ROWS, rules


class Counterpart:
    """A row, the OpInfo ("name" or "name/variant") of the same function, and an adapter: adapt(f) takes the row's
    function and returns one with PyTorch's parameters. `theirs` selects from PyTorch's results those that cygrad has.
    `references` False: PyTorch's reference inputs do not work, or are for something else."""

    def __init__(self, row, opinfo, adapt=None, theirs=None, references=True):
        self.row, self.opinfo, self.adapt, self.theirs, self.references = row, opinfo, adapt, theirs, references

    @property
    def key(self):
        return f"{self.row} {self.opinfo}"

    @property
    def function(self):
        f = ROWS[self.row].function
        return self.adapt(f) if self.adapt else f


COUNTERPARTS = [
    Counterpart("add", "add", scaled),
    Counterpart("sub", "sub", scaled),
    Counterpart("mul", "mul"),
    Counterpart("div", "div/no_rounding_mode", divided),
    Counterpart("floor_divide", "div/floor_rounding", lambda f: lambda x, y, rounding_mode: f(x, y)),
    Counterpart("remainder", "remainder"),
    Counterpart("remainder", "__rmod__", lambda f: lambda x, y: y % x),
    Counterpart("neg", "neg"),
    Counterpart("copy", "clone", without_format),
    *[Counterpart("pow", name, raised(p)) for name, p in
      (("square", 2), ("reciprocal", -1), ("positive", 1))],
    Counterpart("power", "pow", to_a_power),
    Counterpart("power", "__rpow__", reversed_power),
    *[Counterpart(name, name) for name in (
        "log2", "log10", "exp2", "logaddexp", "xlogy", "erfc", "erfinv", "lgamma", "atan2", "hypot", "copysign", "fmax",
        "fmin")],
    Counterpart("digamma", "digamma", off_poles),
    Counterpart("sinc", "sinc", off_zero),
    Counterpart("polygamma", "polygamma/polygamma_n_1", lambda f: lambda x, n: f(n, x)),
    *[Counterpart(name, name) for name in (
        "exp", "expm1", "log", "log1p", "sqrt", "rsqrt", "square", "reciprocal", "sin", "cos", "tan",
        "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "sigmoid", "erf", "maximum",
        "minimum", "logical_and", "logical_or", "logical_xor", "logical_not", "bitwise_and", "bitwise_or",
        "bitwise_xor", "bitwise_not", "isnan", "isinf", "isfinite")],
    *[Counterpart(name, name) for name in ("floor", "ceil", "trunc", "round")],
    Counterpart("abs", "abs", of_numbers),
    Counterpart("sign", "sign", of_numbers),
    Counterpart("relu", "nn.functional.relu", plain),
    Counterpart("silu", "nn.functional.silu", plain),
    Counterpart("gelu", "nn.functional.gelu", approximated),
    Counterpart("softplus", "nn.functional.logsigmoid", lambda f: lambda x: -f(-x)),
    *[Counterpart(name, f"nn.functional.{name}", plain) for name in (
        "hardswish", "logsigmoid", "softsign")],
    Counterpart("hardsigmoid", "nn.functional.relu6", sixfold),
    Counterpart("prelu", "nn.functional.prelu"),
    Counterpart("selu", "nn.functional.selu", with_slopes),
    Counterpart("mish", "nn.functional.mish", within),
    *[Counterpart(name, f"nn.functional.{name}", with_numbers) for name in (
        "leaky_relu", "threshold")],
    *[Counterpart(name, f"nn.functional.{name}", with_slopes) for name in ("hardtanh", "elu")],
    Counterpart("celu", "nn.functional.celu", with_alpha),
    Counterpart("glu", "nn.functional.glu", halved),
    Counterpart("where", "where", chosen, references=False),
    Counterpart("clip", "clamp", clipped, references=False),
    Counterpart("clip", "clamp_min", clipped_below),
    Counterpart("clip", "clamp_max", clipped_above),
    Counterpart("less", "lt"),
    Counterpart("less_equal", "le"),
    Counterpart("equal", "eq"),
    Counterpart("not_equal", "ne"),
    Counterpart("greater", "gt"),
    Counterpart("greater_equal", "ge"),

    Counterpart("sum", "sum", reduced),
    Counterpart("mean", "mean", reduced),
    Counterpart("prod", "prod", reduced),
    Counterpart("max", "amax", reduced),
    Counterpart("max", "max/reduction_with_dim", reduced, lambda y: y.values),
    Counterpart("max", "max/reduction_no_dim", reduced),
    Counterpart("min", "amin", reduced),
    Counterpart("min", "min/reduction_with_dim", reduced, lambda y: y.values),
    Counterpart("min", "min/reduction_no_dim", reduced),
    Counterpart("argmax", "argmax", reduced),
    Counterpart("argmin", "argmin", reduced),
    Counterpart("any", "any", reduced),
    Counterpart("all", "all", reduced),
    Counterpart("var", "var", spread),
    Counterpart("var", "var/unbiased", spread),
    Counterpart("std", "std", spread),
    Counterpart("std", "std/unbiased", spread),
    Counterpart("norm", "linalg.vector_norm", normed),
    Counterpart("logsumexp", "logsumexp", reduced),
    Counterpart("softmax", "softmax", along),
    Counterpart("cumsum", "cumsum", along),
    Counterpart("cumprod", "cumprod", along),
    Counterpart("cummax", "cummax", along),
    Counterpart("cummin", "cummin", along),

    Counterpart("reshape", "reshape"),
    Counterpart("transpose", "permute", permuted),
    Counterpart("transpose", "transpose", swapped),
    Counterpart("transpose", "t", lambda f: lambda x: f(x)),
    Counterpart("permute", "permute", permuted),
    Counterpart("permute", "movedim", moved),
    Counterpart("broadcast_to", "broadcast_to"),
    Counterpart("broadcast_to", "expand", expanded),
    Counterpart("getitem", "__getitem__", indexed),
    Counterpart("getitem", "select", selected),
    Counterpart("getitem", "narrow", narrowed),
    Counterpart("squeeze", "squeeze", squeezed),
    Counterpart("squeeze", "squeeze/multiple", squeezed),
    Counterpart("expand_dims", "unsqueeze"),
    Counterpart("concat", "cat", joined),
    Counterpart("stack", "stack", joined),
    Counterpart("split", "split", cut_evenly),
    Counterpart("split", "split/list_args", cut_evenly),
    Counterpart("split", "tensor_split", cut),
    Counterpart("flip", "flip", flipped),
    *[Counterpart("pad", f"nn.functional.pad/{mode}", padded)
      for mode in ("constant", "reflect", "replicate", "circular")],
    Counterpart("tril", "tril", triangle),
    Counterpart("triu", "triu", triangle),
    Counterpart("take", "take", taken),
    Counterpart("take", "index_select", taken_along),
    Counterpart("gather", "gather", gathered),
    Counterpart("scatter_add", "scatter_add", added_at),
    Counterpart("add_at", "index_add", added_to),
    Counterpart("select", "masked_select", masked),
    Counterpart("mask_put", "masked_fill", filled),
    Counterpart("put", "index_put", put),
    Counterpart("argwhere", "argwhere"),
    Counterpart("sort", "sort", ordered, lambda y: y.values),
    Counterpart("argsort", "argsort", ordered),
    Counterpart("topk", "topk", best),
    Counterpart("one_hot", "nn.functional.one_hot", encoded),
    Counterpart("astype", "float", cast_to("float32")),
    Counterpart("astype", "double", cast_to("float64")),

    Counterpart("matmul", "matmul"),
    Counterpart("linear", "nn.functional.linear"),
    Counterpart("einsum", "einsum", summed),

    Counterpart("diagonal", "diagonal", lambda f: lambda x, offset=0, dim1=0, dim2=1: f(x, offset, dim1, dim2)),
    Counterpart("diag", "diag", lambda f: lambda x, diagonal=0: f(x, diagonal)),

    Counterpart("cholesky", "linalg.cholesky", lambda f: lambda x, upper=False: f(x, upper)),
    Counterpart("qr", "linalg.qr"),
    Counterpart("svd", "linalg.svd", decomposed, signless),
    Counterpart("svdvals", "linalg.svdvals"),
    Counterpart("eigh", "linalg.eigh", lambda f: lambda x, UPLO="L": signless(f(x, UPLO)), signless),
    Counterpart("eigvalsh", "linalg.eigvalsh"),
    Counterpart("solve", "linalg.solve", systems),
    Counterpart("solve_triangular", "linalg.solve_triangular"),
    Counterpart("inv", "linalg.inv"),
    Counterpart("expm", "matrix_exp"),
    Counterpart("pinv", "linalg.pinv", inverted),
    Counterpart("lstsq", "linalg.lstsq/grad_oriented", solved, lambda y: y[0] if isinstance(y, tuple) else y),
    Counterpart("det", "linalg.det"),
    Counterpart("slogdet", "linalg.slogdet"),

    *[Counterpart(name, f"nn.functional.{name}", convolved) for kind in ("conv", "conv_transpose")
      for name in (f"{kind}1d", f"{kind}2d", f"{kind}3d")],

    *[Counterpart(f"max_pool{d}d", f"nn.functional.max_pool{d}d", max_pooled, alone) for d in (1, 2, 3)],
    *[Counterpart(f"avg_pool{d}d", f"nn.functional.avg_pool{d}d", averaged) for d in (1, 2, 3)],
    *[Counterpart(f"adaptive_max_pool{d}d", f"nn.functional.adaptive_max_pool{d}d", max_adapted, alone)
      for d in (1, 2, 3)],
    *[Counterpart(f"adaptive_avg_pool{d}d", f"nn.functional.adaptive_avg_pool{d}d") for d in (1, 2, 3)],
    Counterpart("unfold", "nn.functional.unfold"),
    *[Counterpart("interpolate", f"nn.functional.interpolate/{mode}", resized)
      for mode in ("nearest", "linear", "bilinear", "bicubic", "trilinear")],

    Counterpart("log_softmax", "log_softmax", along),
    Counterpart("layer_norm", "nn.functional.layer_norm", normalised),
    Counterpart("rms_norm", "nn.functional.rms_norm", scaled_rows),
    Counterpart("group_norm", "nn.functional.group_norm"),
    Counterpart("instance_norm", "nn.functional.instance_norm", of_instances),
    Counterpart("batch_norm", "nn.functional.batch_norm", of_batches),
    Counterpart("embedding", "nn.functional.embedding", looked_up),
    Counterpart("scaled_dot_product_attention", "nn.functional.scaled_dot_product_attention", attending),
    Counterpart("cross_entropy", "nn.functional.cross_entropy"),
    Counterpart("nll_loss", "nn.functional.nll_loss"),
    Counterpart("mse", "nn.functional.mse_loss", squared_error),
    Counterpart("bce_with_logits", "nn.functional.binary_cross_entropy_with_logits", with_logits),
    *[Counterpart(name, f"nn.functional.{name}") for name in (
        "l1_loss", "smooth_l1_loss", "huber_loss", "kl_div", "gaussian_nll_loss", "poisson_nll_loss",
        "binary_cross_entropy", "binary_cross_entropy_with_logits", "soft_margin_loss", "hinge_embedding_loss")],
]

WITHOUT = {
    **dict.fromkeys(("bitwise_left_shift", "bitwise_right_shift"), "PyTorch's OpInfo has integers only; compared with "
                    "NumPy in tests/ops"),
    "signbit": "no gradient; compared with NumPy in tests/ops",
    "nextafter": "PyTorch has no gradient of it; compared with NumPy in tests/ops",
    "cbrt": "PyTorch has none",
    "recurrence": "what cumprod computes in backward",
    "searchsorted": "PyTorch warns of vectors that are not contiguous; compared with NumPy in tests/ops",
    "ctc_loss": "compared through log_softmax in losses/test_ctc.py, because PyTorch's gradient has a further term",
    "linear_cross_entropy": "composed of linear and cross_entropy in tests/properties/test_table_torch.py",
    "soft_cross_entropy": "cross_entropy with probabilities, compared there",
    "sinc_derivative": "what sinc computes in backward",
    "relu_gradient": "what relu computes in backward",
    "pool_put": "what max_pool1d, max_pool2d and max_pool3d compute in backward",
    "pool_take": "what pool_put computes in backward",
    "fold": "PyTorch has no OpInfo of it; tests/properties/test_table_torch.py",
    "avg_spread": "what avg_pool1d, avg_pool2d and avg_pool3d compute in backward",
    "interpolate_back": "what interpolate computes in backward",
    "conv_weight": "what conv1d, conv2d and conv3d compute in backward",
    "gelu_tanh": "gelu(approximate='tanh'), compared there",
    "embedding_bag": "PyTorch has no second gradient of it; tests/ops/layers/test_embedding.py, test_table_torch.py",
    "put_slice": "what getitem computes in backward",
    "as_view": "what a view becomes when the memory is written to elsewhere; tests/properties/test_against_torch.py",
    "put_view": "a write through a view; tests/properties/test_against_torch.py",
    "scale_gradient": "PyTorch has none",
    **{row: "an update of a solver; tests/optim/test_solvers.py" for row in ROWS if row.endswith("_update")},
    "dropout_with": "other random numbers; tests/ops/test_random.py",
    "dropout_identity": "dropout in predict mode",
    "batch_norm_predict": "batch_norm in predict mode, compared there",
    **dict.fromkeys(rules.OPERATORS, "rules of solvers; tests/optim/test_solvers.py compares 20 steps"),
    **dict.fromkeys(("lstm", "gru", "rnn", "rnn_relu"), "PyTorch's are modules; modules.py"),
    "attention_with_dropout": "other random numbers; tests/ops/layers/test_attention.py",
    **dict.fromkeys(("eig", "eigvals"), "complex in PyTorch; tests/properties/test_table_torch.py"),
    **dict.fromkeys(("logm", "sqrtm"), "PyTorch has none"),
    "spectral_gaps": "what svd and eigh compute in backward; tests/properties/test_table_torch.py",
    "cofactor": "what det computes in backward; tests/properties/test_table_torch.py",
}
