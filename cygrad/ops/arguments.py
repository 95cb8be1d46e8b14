"""From attributes back to arguments: the row of the table, and the arguments of its function, for an execution.

`Attributes.arguments()` gives the fields as arguments. The functions below are for operators whose function has other
names for them, or whose attributes decide which row it is. Each takes the
operator, its attributes and the fields, and returns the row's name and the arguments."""

from cygrad.ops import index, sort
from cygrad.ops.table import PARTS, TABLE

# Rows by the key of their operator in OPERATORS of its module. If there are several, that of TABLE.
ROW_OF = {row.key: row.name for row in (*PARTS, *TABLE)}

NUMBERS = {                                         # what the function calls the number
    "pow": "p", "softplus": "beta", "leaky_relu": "negative_slope", "elu": "alpha", "celu": "alpha", "polygamma": "n",
    "sinc_derivative": "n",
}
INSTEAD = {                                         # operators that run in another row than that of their name
    "cummax": "cummax_places", "cummin": "cummin_places", "topk": "topk_places", "split": "split_part",
    "prelu": "prelu_broadcast", "batch_norm": "batch_norm_with_statistics", "lstm": "lstm_layer", "gru": "gru_layer",
    "rnn": "rnn_layer", "rnn_relu": "rnn_relu_layer", "mse": "mean_square", "ctc_loss": "ctc_loss_packed",
}


def without(given, *names):
    """The arguments without some."""
    return {name: value for name, value in given.items() if name not in names}


# ---- elementwise, reductions, scans ----------------------------------------------------------------------------------

def number(operator, attributes, given):
    return operator.name, {NUMBERS[operator.name]: given["number"]}


def one_axis(operator, attributes, given):
    """argmax and argmin take one axis, or None for all."""
    axis = given["axis"]
    return operator.name, given | {"axis": axis if isinstance(axis, int) else None}


def scan(operator, attributes, given):
    return ("cumsum_reversed" if given["reverse"] else operator.name), without(given, "reverse")


def places(operator, attributes, given):
    return INSTEAD[operator.name], without(given, "reverse")


# ---- indices and joins -----------------------------------------------------------------------------------------------

def take(operator, attributes, given):
    return ("take" if attributes.count == 1 else "take_at"), given


def gather(operator, attributes, given):
    return ("gather_ranked" if operator is index.OPERATORS["gather_ranked"] else "gather"), given


def searchsorted(operator, attributes, given):
    return "searchsorted", {"side": "right" if operator is sort.OPERATORS["searchsorted_right"] else "left"}


def put_view(operator, attributes, given):
    return "put_view", without(given, "shape")


def diag(operator, attributes, given):
    shape, k = attributes.shape, attributes.offset
    if (attributes.axis1, attributes.axis2, len(shape)) == (0, 1, 2) and shape[0] == shape[1] >= abs(k):
        return "diag", {"k": k}
    return "put_diagonal", {"shape": shape} | given


# ---- matrices --------------------------------------------------------------------------------------------------------

def triangle(operator, attributes, given):
    return operator.name, {"UPLO": "U" if attributes.upper else "L"}


def qr(operator, attributes, given):
    return "qr", {"mode": "complete" if attributes.full else "reduced"}


def svd(operator, attributes, given):
    return "svd", {"full_matrices": attributes.full}


def solve(operator, attributes, given):
    return ("solve_transposed" if attributes.transposed else "solve"), {}


def solve_triangular(operator, attributes, given):
    arguments = {"upper": attributes.upper, "left": attributes.left, "unitriangular": attributes.unit}
    return "solve_triangular" + ("_transposed" if attributes.transposed else ""), arguments


def cutoff(operator, attributes, given):
    rcond = attributes.rcond if attributes.rcond == attributes.rcond else None
    return ("pinv", {"rtol": rcond}) if operator.name == "pinv" else ("lstsq_parts", {"rcond": rcond})


def einsum(operator, attributes, given):
    """Labels of an ellipsis are no letters."""
    labels = attributes.x, attributes.y, attributes.z
    if "".join(labels).isascii(): return "einsum", {"equation": f"{labels[0]},{labels[1]}->{labels[2]}"}
    return "contract", {"labels": labels}


# ---- images ----------------------------------------------------------------------------------------------------------

def conv(operator, attributes, given):
    if operator.name == "conv_weight": return "conv_weight", without(given, "activation", "given")
    if attributes.given is None: return operator.name + "_sized", without(given, "activation", "given")
    arguments = without(given, "low", "size", "given")
    if "transpose" not in operator.name: return operator.name, arguments | {"padding": given["given"]}
    return operator.name, arguments | {"padding": given["low"], "output_padding": given["given"]}


def ceils(attributes):
    """Whether a window leaves the images, so that the sizes of the result were rounded up."""
    a = attributes
    return any(m > (n + 2 * p - d * (k - 1) - 1) // s + 1
               for n, m, k, s, p, d in zip(a.size, a.out, a.kernel, a.stride, a.low, a.dilation, strict=True))


def pooling(operator, attributes, given):
    if attributes.adaptive: return operator.name, {"output_size": attributes.out}
    windows = {"kernel_size": attributes.kernel, "stride": attributes.stride, "padding": attributes.low,
               "ceil_mode": ceils(attributes)}
    if operator.name.startswith("max"): return operator.name, windows | {"dilation": attributes.dilation}
    windows["count_include_pad"] = attributes.padding_counts
    if attributes.divisor: windows["divisor_override"] = attributes.divisor
    return operator.name, windows


def pool_places(operator, attributes, given):
    arguments = {"kernel": attributes.kernel, "stride": attributes.stride, "padding": attributes.low,
                 "dilation": attributes.dilation, "adaptive": attributes.adaptive}
    return operator.name, arguments | ({"size": attributes.size} if operator.name == "pool_put" else {})


def avg_spread(operator, attributes, given):
    return "avg_spread", {"kernel": attributes.kernel, "stride": attributes.stride, "padding": attributes.low,
                          "size": attributes.size, "adaptive": attributes.adaptive,
                          "padding_counts": attributes.padding_counts, "divisor": attributes.divisor or None}


def patches(operator, attributes, given):
    arguments = {"kernel_size": attributes.kernel, "dilation": attributes.dilation, "padding": attributes.low,
                 "stride": attributes.stride}
    return operator.name, arguments | ({"output_size": attributes.size} if operator.name == "fold" else {})


def interpolate(operator, attributes, given):
    """The scale is an argument unless it follows from the sizes."""
    a, arguments = attributes, {"mode": attributes.mode, "align_corners": attributes.align_corners}
    if operator.name == "interpolate_back": return operator.name, arguments | {"size": a.size, "scale": a.scale}
    corners = [(n - 1) / (m - 1) if m > 1 else 0.0 for n, m in zip(a.size, a.out, strict=True)]
    natural = corners if a.align_corners else [n / m for n, m in zip(a.size, a.out, strict=True)]
    if a.scale != tuple(natural): return "interpolate_scaled", arguments | {"size": a.out, "scale": a.scale}
    return "interpolate", {"size": a.out} | (arguments if a.mode != "nearest" else {"mode": a.mode})


# ---- layers, losses, solvers -----------------------------------------------------------------------------------------

def embedding_bag(operator, attributes, given):
    return "embedding_bag_weighted" if attributes.weighted and not attributes.offsets else "embedding_bag", given


def attend(operator, attributes, given):
    arguments = {"is_causal": attributes.is_causal, "scale": attributes.scale, "heads_last": attributes.heads_last}
    if operator.name == "scaled_dot_product_attention": return "attend", arguments
    return "attend_with_dropout", arguments | {"p": attributes.p, "seed": attributes.key,
                                               "counter": attributes.counter}


def over_classes(operator, attributes, given):
    """Losses over classes, which are along axis 1, or 0 if there is one axis, unless they were moved to the last."""
    if operator.name == "linear_cross_entropy": return operator.name, without(given, "axis")
    if operator.name == "nll_loss": return operator.name, without(given, "axis", "chunk", "label_smoothing")
    rest = without(given, "chunk", *(("ignore_index",) if operator.name == "soft_cross_entropy" else ()))
    if attributes.axis > 1: return operator.name + "_along", rest
    return operator.name, without(rest, "axis")


def criterion(operator, attributes, given):
    """Elementwise losses: what their numbers and variants mean."""
    numbers, name = attributes.numbers, operator.name
    arguments = {
        "smooth_l1_loss": lambda: {"beta": numbers[0]},
        "huber_loss": lambda: {"delta": numbers[0]},
        "hinge_embedding_loss": lambda: {"margin": numbers[0]},
        "kl_div": lambda: {"log_target": attributes.variant == 1},
        "gaussian_nll_loss": lambda: {"eps": numbers[0], "full": numbers[1] != 0},
        "poisson_nll_loss": lambda: {"log_input": attributes.variant == 0, "eps": numbers[0], "full": numbers[1] != 0},
    }.get(name, dict)()
    if name == "binary_cross_entropy_with_logits" and attributes.operands == (0, 1, 3): name = "bce_with_pos_weight"
    return name, arguments | {"reduction": attributes.reduction}


def rule(operator, attributes, given):
    return operator.name, dict(zip(operator.settings, given["values"], strict=True))


CONVERSIONS = {name: convert for names, convert in {
    " ".join(NUMBERS): number,
    "argmax argmin": one_axis,
    "cumsum cumprod": scan,
    "cummax cummin": places,
    "take": take,
    "gather": gather,
    "searchsorted": searchsorted,
    "put_view": put_view,
    "diag": diag,
    "eigh eigvalsh": triangle,
    "qr": qr,
    "svd": svd,
    "solve": solve,
    "solve_triangular": solve_triangular,
    "pinv lstsq": cutoff,
    "einsum": einsum,
    "conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d conv_weight": conv,
    " ".join(f"{kind}_pool{n}d" for kind in ("max", "avg", "adaptive_max", "adaptive_avg") for n in (1, 2, 3)): pooling,
    "pool_put pool_take": pool_places,
    "avg_spread": avg_spread,
    "unfold fold": patches,
    "interpolate interpolate_back": interpolate,
    "embedding_bag": embedding_bag,
    "scaled_dot_product_attention attention_with_dropout": attend,
    "cross_entropy soft_cross_entropy nll_loss linear_cross_entropy": over_classes,
    "l1_loss smooth_l1_loss huber_loss hinge_embedding_loss kl_div gaussian_nll_loss poisson_nll_loss "
    "binary_cross_entropy binary_cross_entropy_with_logits soft_margin_loss": criterion,
    " ".join(row.name for row in TABLE if row.name.endswith("_update")): rule,
}.items() for name in names.split()}
