"""Bytes that one call of each operator saves for backward: cygrad's, the least that its exact gradients need, and
PyTorch's.

The inputs are results of another operation, 100 x 100 float32, all with gradients unless the row says otherwise. So
every saved buffer counts once, also one that another operation saves too. cygrad's figure is `saved_bytes` of a
recording scope around the call, after a sum has used the result and the program has deleted it. PyTorch's is the sum of
the distinct storages that saved_tensors_hooks receives during the call. Reductions and softmax run along the last axis.
max and min are compared with amax and amin, which also divide a gradient among equal elements. Labels are int64.

The least is declared here for each operator, with the reason, and not measured. It is what derivatives of every order
need if nothing is computed again at the cost of the operation itself. Labels and indices count in the smallest integers
that can hold them."""

import numpy as np

import cygrad as cg

SIDE = 100
SAME = ("neg abs sign floor ceil trunc round square sqrt rsqrt reciprocal exp expm1 log log1p sin cos tan asin acos "
        "atan sinh cosh tanh asinh acosh atanh erf sigmoid relu log2 log10 exp2 erfc erfinv lgamma digamma "
        "sinc").split()
TWO = ("add sub mul div maximum minimum matmul logaddexp xlogy atan2 hypot copysign fmax fmin "
       "floor_divide remainder nextafter").split()
FUNCTIONAL = ("softplus silu gelu leaky_relu hardtanh hardsigmoid hardswish elu selu celu softsign logsigmoid mish "
              "glu").split()
SAME_CALL = object()
POOLED = {1: 4, 2: 2, 3: (1, 2, 2)}                 # windows of four elements, by the number of dimensions
PARTS = {1: 2500, 2: 50, 3: (10, 5, 50)}

N = SIDE * SIDE
ROW = 4 * SIDE              # bytes of a number for each row
PLACE = SIDE                # ... and of a label or an index, which fits into a byte


def packed(n, bits):
    """The bytes of n elements of `bits` bits."""
    return (n * bits + 7) // 8


def least():
    """By row: the least bytes that exact gradients need, and why."""
    made = {}

    def add(names, nbytes, why):
        made.update(dict.fromkeys(names.split(), (nbytes, why)))

    add("floor_divide nextafter neg sign floor ceil trunc round add sub sum mean cumsum reshape transpose copy permute "
        "squeeze expand_dims broadcast_to diagonal diag astype split pad flip concat stack tril triu getitem as_view "
        "put_view put_slice scale_gradient dropout_identity", 0, "the gradient depends on no value")
    add("dropout_with", 0, "the random numbers can be drawn again")
    add("square log log1p log2 log10 lgamma digamma polygamma erfc sinc sinc_derivative sin cos asin acos atan sinh "
        "cosh asinh acosh atanh erf silu gelu gelu_tanh pow",
        4 * N, "the input")
    add("sqrt rsqrt reciprocal exp exp2 expm1 cbrt tan tanh sigmoid softplus erfinv", 4 * N,
        "the output, which a consumer may save too")
    add("softmax log_softmax", 4 * N, "the output")
    add("mul matmul linear einsum power logaddexp xlogy atan2 remainder", 8 * N, "both inputs")
    add("hardswish mish glu", 4 * N, "the input")
    add("elu selu celu softsign logsigmoid", 4 * N, "the output, which a consumer may save too")
    add("prelu", 4 * N + 4 * SIDE, "both inputs")
    add("leaky_relu", packed(N, 1), "a bit per element: whether it is above 0")
    add("threshold hardtanh hardsigmoid", packed(N, 1), "a bit per element: whether the gradient passes")
    add("conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d conv_weight", 8 * N, "both inputs")
    add("div", 8 * N, "the divisor and the quotient")
    add("cholesky inv", 4 * N, "the output")
    add("det slogdet svdvals eigvalsh", 4 * N, "the matrix: factors need as much")
    add("solve solve_triangular pinv cofactor", 8 * N, "the matrix and the output")
    add("lstsq", 12 * N, "the matrix, the right sides and the solution")
    add("qr", 8 * N, "both factors")
    add("svd", 8 * N + ROW, "both matrices of vectors, and the values")
    add("eigh", 4 * N + ROW, "the vectors and the values")
    add("eig", 4 * N + ROW, "the vectors and the values")
    add("eigvals expm logm sqrtm", 4 * N, "the matrix")
    add("spectral_gaps", 4 * N, "the output")
    add("abs", packed(N, 2), "two bits per element: above 0, below, or neither")
    made["copysign"] = packed(N, 2), "two bits per element: whether the sign changes, or it is 0"
    made["hypot"] = 12 * N, "both inputs and the result"
    add("maximum minimum fmax fmin", packed(N, 2), "two bits per element: which is larger, or equal")
    add("relu relu_gradient", packed(N, 1), "a bit per element: whether it is above 0")
    add("clip", packed(N, 1), "a bit per element: whether it is within the bounds")
    made["clip, bounds with gradients"] = packed(N, 2), "two bits per element: which of the three it equals, or none"
    add("where", packed(N, 1), "a bit per element: the condition")
    add("select mask_put", packed(N, 1), "a bit per element: the mask")
    made["select, 93 of 10,000"] = 2 * 93, "the positions of the true elements, in 16 bits each"
    add("max min", packed(N, 1), "a bit per element: several may be equal, and divide the gradient")
    add("max_pool1d max_pool2d max_pool3d adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d", N // 4,
        "a place in its window of up to 256 elements for each output, in 8 bits")
    add("avg_pool1d avg_pool2d avg_pool3d adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d avg_spread "
        "unfold fold interpolate interpolate_back", 0, "the gradient depends on no value")
    add("pool_put pool_take", N // 4, "a place in its window for each output, in 8 bits")
    add("sort", N, "a position for each element, in 8 bits for a row of 100")
    made["gather, by topk"] = 10 * SIDE, "a position for each of the 10 in a row, in 8 bits"
    add("prod var", 4 * N, "the input")
    add("std norm logsumexp", 4 * N + ROW, "the input, and the result of each row")
    add("layer_norm rms_norm", 4 * N + ROW + ROW, "the input, the weight, and a rate for each row")
    add("group_norm instance_norm", 4 * N + ROW + 2 * ROW, "the input, the weight, a mean and a rate for each group")
    add("batch_norm", 4 * N + ROW + 2 * ROW, "the input, the weight, a mean and a rate for each channel")
    add("batch_norm_predict", 4 * N + ROW + 2 * ROW, "the input, the weight, a mean and a rate for each channel")
    made["batch_norm_predict, without a weight"] = 2 * ROW, "a mean and a rate for each channel"
    add("embedding", PLACE, "the indices, in 8 bits each")
    made["embedding_bag"] = PLACE + PLACE, "the indices, and a number for each bag to find its first, in 8 bits each"
    made["embedding_bag, 10 in each"] = PLACE, "the indices, in 8 bits each"
    made["embedding_bag, max"] = PLACE * SIDE // 10, "the row of each element of 10 bags, in 8 bits"
    add("scaled_dot_product_attention attention_with_dropout", 16 * N + ROW,
        "the three inputs, the output, and a number for each row")
    add("lstm", 15 * N + 2 * ROW // 4, "x, 4 gates, the cell and the result of each step; the weights and first states")
    add("gru", 12 * N + 3 * N // 4 + ROW // 4, "x, 3 gates, a product and the result of each step; the weights, h0")
    add("rnn rnn_relu", 16 * N + ROW, "x and the result of each step; the weights and the first state")
    add("cumprod", 4 * N, "the input")
    made["recurrence"] = 8 * N, "the factors and the result"
    made["gather, by cummax"] = N, "a position for each element, in 8 bits for a row of 100"
    add("gather scatter_add take put add_at nll_loss", PLACE, "the indices, in 8 bits each")
    add("cross_entropy", 4 * N + ROW + PLACE, "the input, a sum for each row, and the labels in 8 bits")
    add("soft_cross_entropy", 8 * N + ROW, "both inputs, and a sum for each row")
    add("linear_cross_entropy", 8 * N + ROW + PLACE, "both inputs, a sum for each row, and the labels in 8 bits")
    add("ctc_loss", 4 * N + PLACE, "the input, and the labels in 8 bits")
    add("mse", 4 * N, "the difference")
    add("bce_with_logits", 8 * N, "both inputs")
    add("l1_loss hinge_embedding_loss", packed(N, 2), "two bits per element: the sign of its gradient")
    add("smooth_l1_loss huber_loss", 4 * N, "the difference")
    add("kl_div poisson_nll_loss binary_cross_entropy soft_margin_loss", 8 * N, "both inputs")
    made["gaussian_nll_loss"] = 8 * N, "the difference and the variance"
    made["binary_cross_entropy_with_logits"] = 16 * N, "the input, the target and both weights"
    made["bce_with_logits, targets 0 or 1 without gradients"] = 4 * N + packed(N, 1), "the input, a bit for each target"
    return made


INT64 = "the caller's int64 tensor, free while the caller holds it; a smaller copy always costs memory"
# Reasons for saving more than the least.
MORE = dict.fromkeys("gather scatter_add take put add_at nll_loss cross_entropy linear_cross_entropy ctc_loss "
                     "embedding_bag".split(), INT64)
MORE.update(dict.fromkeys(
    "smooth_l1_loss huber_loss gaussian_nll_loss".split(),
    "both inputs instead of their difference, which would be an array more at the peak: a target without a gradient is "
    "the caller's in most programs"))
MORE["power"] = "the output too: without it the gradient of the exponent would compute each power again"


def samples():
    """By row: the number of arrays, a call in cygrad and a call in PyTorch. A call takes the library, labels and the
    arrays."""
    made = {name: (1, one(name), one(name)) for name in SAME}
    made |= {name: (2, one(name), one(name)) for name in TWO}
    made |= {name: (1, one(name), functional(name)) for name in FUNCTIONAL}

    def add(name, arrays, mine, theirs=SAME_CALL):
        made[name] = arrays, mine, mine if theirs is SAME_CALL else theirs

    add("prelu", 2, lambda m, _, x, w: m.prelu(x, w[0] * 1.0),
        lambda m, _, x, w: m.nn.functional.prelu(x, w[0] * 1.0))
    add("threshold", 1, lambda m, _, x: m.threshold(x, 0.5, 0.1),
        lambda m, _, x: m.nn.functional.threshold(x, 0.5, 0.1))
    add("pow", 1, lambda m, _, x: m.pow(x, 2.5))
    add("cbrt", 1, lambda m, _, x: m.cbrt(x), None)
    add("polygamma", 1, lambda m, _, x: m.polygamma(1, x))
    add("sinc_derivative", 1, lambda m, _, x: m.ops.ROWS["sinc_derivative"].function(x, 1), None)
    add("power", 2, lambda m, _, x, y: m.power(x, y), lambda m, _, x, y: m.pow(x, y))
    add("clip", 1, lambda m, _, x: m.clip(x, 0.4, 0.7))
    add("clip, bounds with gradients", 3, lambda m, _, x, y, z: m.clip(x, y, z))
    add("where", 2, lambda m, _, x, y: m.where(x > y, x, y))
    for name in ("sum", "mean", "cumsum", "softmax", "log_softmax", "logsumexp", "std", "var"):
        add(name, 1, along(name, "axis"), along(name, "dim"))
    for name in ("max", "min"):
        add(name, 1, along(name, "axis"), along("a" + name, "dim"))
    for name in ("prod", "cumprod"): add(name, 1, along(name, "axis"), along(name, "dim"))
    add("recurrence", 2, lambda m, _, x, y: m.ops.ROWS["recurrence"].function(x, y, 1), None)
    add("norm", 1, along("norm", "axis"), lambda m, _, x: m.linalg.vector_norm(x, dim=-1))
    add("reshape", 1, lambda m, _, x: m.reshape(x, (SIDE * SIDE,)))
    add("transpose", 1, lambda m, _, x: x.T)
    add("copy", 1, lambda m, _, x: m.copy(x), lambda m, _, x: m.clone(x))
    add("permute", 1, lambda m, _, x: m.permute(x, (1, 0)))
    add("squeeze", 1, lambda m, _, x: m.squeeze(x[:1], 0))
    add("expand_dims", 1, lambda m, _, x: m.expand_dims(x, 0), lambda m, _, x: m.unsqueeze(x, 0))
    add("broadcast_to", 1, lambda m, _, x: m.broadcast_to(x, (2, SIDE, SIDE)))
    add("astype", 1, lambda m, _, x: x.astype("float64"), lambda m, _, x: x.double())
    add("split", 1, lambda m, _, x: m.split(x, 2), lambda m, _, x: m.split(x, SIDE // 2))
    add("pad", 1, lambda m, _, x: m.pad(x, 1), lambda m, _, x: m.nn.functional.pad(x, (1, 1, 1, 1)))
    add("gather", 1, lambda m, labels, x: m.gather(x, 1, labels[:, None]))
    add("scatter_add", 2, lambda m, labels, x, y: m.scatter_add(x, 1, labels[:, None], y[:, :1]))
    add("gather, by topk", 1, lambda m, _, x: m.topk(x, 10)[0])
    add("gather, by cummax", 1, lambda m, _, x: m.cummax(x, 1)[0])
    add("select", 1, lambda m, _, x: x[x > 0.5])
    add("select, 93 of 10,000", 1, lambda m, _, x: x[x > 0.893])
    add("mask_put", 1, lambda m, _, x: m.ops.ROWS["mask_put"].function(x, m.zeros(int((x > 0.5).sum())), x > 0.5),
        lambda m, _, x: m.masked_fill(x, x > 0.5, 0.0))
    add("put", 2, lambda m, labels, x, y: m.ops.ROWS["put"].function(x, y, labels[None],
        (((0, 1, SIDE),) * 2, None, 0)),
        lambda m, labels, x, y: m.index_put(x, (labels,), y))
    add("add_at", 2, lambda m, labels, x, y: m.ops.ROWS["add_at"].function(x, 0, y, labels),
        lambda m, labels, x, y: m.index_add(x, 0, labels, y))
    add("as_view", 1, lambda m, _, x: m.ops.ROWS["as_view"].function(x, (SIDE,), (SIDE + 1,), 0),
        lambda m, _, x: m.as_strided(x, (SIDE,), (SIDE + 1,)))
    add("put_view", 2, lambda m, _, x, y: m.ops.ROWS["put_view"].function(x, y[0], (SIDE + 1,), 0),
        lambda m, _, x, y: m.as_strided_scatter(x, y[0], (SIDE,), (SIDE + 1,)))
    add("put_slice", 1, lambda m, _, x: m.ops.ROWS["put_slice"].function(x, (2 * SIDE, SIDE), ((1, 2, SIDE),
        (0, 1, SIDE))), None)
    add("flip", 1, lambda m, _, x: m.flip(x, (0,)))
    add("concat", 2, lambda m, _, x, y: m.concat([x, y]))
    add("stack", 2, lambda m, _, x, y: m.stack([x, y]))
    add("tril", 1, lambda m, _, x: m.tril(x))
    add("triu", 1, lambda m, _, x: m.triu(x))
    add("getitem", 1, lambda m, _, x: x[10:50, ::2])
    add("take", 1, lambda m, labels, x: m.take(x, labels, 0), lambda m, labels, x: m.index_select(x, 0, labels))
    add("sort", 1, lambda m, _, x: m.sort(x), lambda m, _, x: m.sort(x).values)
    add("linear", 2, lambda m, _, x, w: m.linear(x, w), lambda m, _, x, w: m.nn.functional.linear(x, w))
    add("einsum", 2, lambda m, _, x, y: m.einsum("ij,jk->ik", x, y))
    add("diagonal", 1, lambda m, _, x: m.diagonal(x))
    add("diag", 1, lambda m, _, x: m.diag(x[0]))
    for name in ("inv", "det", "slogdet", "svdvals", "pinv", "qr"):
        add(name, 1, lambda m, _, x, f=name: getattr(m.linalg, f)(x))
    add("svd", 1, lambda m, _, x: m.linalg.svd(x, full_matrices=False))
    add("cholesky", 1, lambda m, _, x: m.linalg.cholesky(x + x.T + SIDE * m.eye(SIDE)))
    for name in ("eigh", "eigvalsh"):
        add(name, 1, lambda m, _, x, f=name: getattr(m.linalg, f)(x + x.T))
    for name in ("eig", "eigvals"):
        add(name, 1, lambda m, _, x, f=name: getattr(m.linalg, f)(x * 1e-3 + m.diag(m.arange(SIDE) + 1.0)))
    add("expm", 1, lambda m, _, x: m.linalg.expm(x * 1e-3), lambda m, _, x: m.linalg.matrix_exp(x * 1e-3))
    for name in ("logm", "sqrtm"):
        add(name, 1, lambda m, _, x, f=name: getattr(m.linalg, f)(x * 1e-3 + m.eye(SIDE)), None)
    add("solve", 2, lambda m, _, x, y: m.linalg.solve(x, y))
    add("solve_triangular", 2, lambda m, _, x, y: m.linalg.solve_triangular(x + m.eye(SIDE), y, upper=True))
    add("lstsq", 2, lambda m, _, x, y: m.linalg.lstsq(x, y)[0])
    add("cofactor", 1, lambda m, _, x: m.ops.ROWS["cofactor"].function(x), None)
    add("spectral_gaps", 1, lambda m, _, x: m.ops.ROWS["spectral_gaps"].function(x[0].cumsum()), None)
    for shape, nd in (((1, 1, -1), 1), ((1, 1, SIDE, SIDE), 2), ((1, 1, 10, 10, -1), 3)):
        for name in (f"conv{nd}d", f"conv_transpose{nd}d"):
            add(name, 2, lambda m, _, x, w, f=name, s=shape: getattr(m, f)(x.reshape(s), w.reshape(s)),
                lambda m, _, x, w, f=name, s=shape: getattr(m.nn.functional, f)(x.reshape(s), w.reshape(s)))
            if "transpose" in name: continue
            for f, how in (("max_pool", dict(kernel_size=POOLED[nd])), ("avg_pool", dict(kernel_size=POOLED[nd])),
                           ("adaptive_max_pool", dict(output_size=PARTS[nd])),
                           ("adaptive_avg_pool", dict(output_size=PARTS[nd]))):
                add(f"{f}{nd}d", 1, lambda m, _, x, f=f"{f}{nd}d", s=shape, how=how: getattr(m, f)(x.reshape(s), **how),
                    lambda m, _, x, f=f"{f}{nd}d", s=shape, how=how: getattr(m.nn.functional, f)(x.reshape(s), **how))
    add("unfold", 1, lambda m, _, x: m.unfold(x[None], 2), lambda m, _, x: m.nn.functional.unfold(x[None], 2))
    add("fold", 1, lambda m, _, x: m.fold(x.reshape((1, 100, 100)), (20, 20), 2, stride=2),
        lambda m, _, x: m.nn.functional.fold(x.reshape((1, 100, 100)), (20, 20), 2, stride=2))
    add("interpolate", 1, lambda m, _, x: m.interpolate(x[None, None], (150, 150), mode="bilinear"),
        lambda m, _, x: m.nn.functional.interpolate(x[None, None], (150, 150), mode="bilinear"))
    add("interpolate_back", 1, lambda m, _, x: m.ops.ROWS["interpolate_back"].function(x[None, None], (50, 50)), None)
    add("pool_put", 1, lambda m, _, x: m.ops.ROWS["pool_put"].function(
        x[None, None, :50, :50], m.zeros((1, 1, 50, 50), dtype="uint8"), (2, 2), (2, 2), (0, 0), (1, 1),
        (100, 100)), None)
    add("pool_take", 1, lambda m, _, x: m.ops.ROWS["pool_take"].function(
        x[None, None], m.zeros((1, 1, 50, 50), dtype="uint8"), (2, 2), (2, 2), (0, 0), (1, 1)), None)
    add("avg_spread", 1, lambda m, _, x: m.ops.ROWS["avg_spread"].function(
        x[None, None], (2, 2), (2, 2), (0, 0), (200, 200)), None)
    add("conv_weight", 2, lambda m, _, x, y: m.ops.ROWS["conv_weight"].function(
        x[None], y[None], (1,), (1,), (0,), (1,)), None)
    for name, theirs in (("cross_entropy", "cross_entropy"), ("nll_loss", "nll_loss")):
        add(name, 1, lambda m, labels, x, f=name: getattr(m, f)(x, labels),
            lambda m, labels, x, f=theirs: getattr(m.nn.functional, f)(x, labels))
    add("linear_cross_entropy", 2, lambda m, labels, x, w: m.linear_cross_entropy(x, w, labels),
        lambda m, labels, x, w: m.nn.functional.cross_entropy(x @ w.T, labels))
    add("ctc_loss", 1, lambda m, labels, x: m.ctc_loss(x, labels[:SIDE // 2], SIDE, SIDE // 2),
        lambda m, labels, x: m.nn.functional.ctc_loss(x, labels[:SIDE // 2], m.tensor(SIDE), m.tensor(SIDE // 2)))
    add("soft_cross_entropy", 2, lambda m, _, x, y: m.cross_entropy(x, y),
        lambda m, _, x, y: m.nn.functional.cross_entropy(x, y))
    for name, theirs in (("mse", "mse_loss"), ("bce_with_logits", "binary_cross_entropy_with_logits")):
        add(name, 2, one(name), lambda m, _, x, y, f=theirs: getattr(m.nn.functional, f)(x, y))
    for name in ("l1_loss smooth_l1_loss huber_loss kl_div poisson_nll_loss binary_cross_entropy soft_margin_loss "
                 "gaussian_nll_loss").split():
        n = 3 if name == "gaussian_nll_loss" else 2
        if name == "soft_margin_loss":              # PyTorch has no gradient of the target
            add(name, 2, one(name), lambda m, _, x, y: m.nn.functional.soft_margin_loss(x, y.detach()))
        else: add(name, n, one(name), functional(name))
    add("hinge_embedding_loss", 2, lambda m, _, x, y: m.hinge_embedding_loss(x, y),
        lambda m, _, x, y: m.nn.functional.hinge_embedding_loss(x, y))
    add("binary_cross_entropy_with_logits", 4,
        lambda m, _, x, t, w, u: m.binary_cross_entropy_with_logits(x, t, w, pos_weight=u),
        lambda m, _, x, t, w, u: m.nn.functional.binary_cross_entropy_with_logits(
            x, t, w.detach(), pos_weight=u.detach()))
    add("gelu_tanh", 1, lambda m, _, x: m.gelu(x, approximate="tanh"),
        lambda m, _, x: m.nn.functional.gelu(x, approximate="tanh"))
    add("bce_with_logits, targets 0 or 1 without gradients", 1,
        lambda m, _, x: m.bce_with_logits(x, (x.detach() > 0.5).astype("float32")),
        lambda m, _, x: m.nn.functional.binary_cross_entropy_with_logits(x, (x.detach() > 0.5).float()))
    add("layer_norm", 3, lambda m, _, x, w, b: m.layer_norm(x, w[0] * 1.0, b[0] * 1.0),
        lambda m, _, x, w, b: m.nn.functional.layer_norm(x, (SIDE,), w[0] * 1.0, b[0] * 1.0))
    add("rms_norm", 2, lambda m, _, x, w: m.rms_norm(x, w[0] * 1.0),
        lambda m, _, x, w: m.nn.functional.rms_norm(x, (SIDE,), w[0] * 1.0))
    add("group_norm", 3, lambda m, _, x, w, b: m.group_norm(x, 1, w[0] * 1.0, b[0] * 1.0),
        lambda m, _, x, w, b: m.nn.functional.group_norm(x, 1, w[0] * 1.0, b[0] * 1.0))
    add("instance_norm", 3, lambda m, _, x, w, b: m.instance_norm(x[None], w[0] * 1.0, b[0] * 1.0),
        lambda m, _, x, w, b: m.nn.functional.instance_norm(x[None], None, None, w[0] * 1.0, b[0] * 1.0))
    add("batch_norm", 3, lambda m, _, x, w, b: m.batch_norm(x, None, None, w[0] * 1.0, b[0] * 1.0, True),
        lambda m, _, x, w, b: m.nn.functional.batch_norm(x, None, None, w[0] * 1.0, b[0] * 1.0, True))
    add("batch_norm_predict", 3, lambda m, _, x, w, b: m.batch_norm(x, *m_and_v(m), w[0] * 1.0, b[0] * 1.0, False),
        lambda m, _, x, w, b: m.nn.functional.batch_norm(x, *m_and_v(m), w[0] * 1.0, b[0] * 1.0, False))
    add("batch_norm_predict, without a weight", 1, lambda m, _, x: m.batch_norm(x, *m_and_v(m), training=False),
        lambda m, _, x: m.nn.functional.batch_norm(x, *m_and_v(m), training=False))
    add("embedding", 1, lambda m, labels, w: m.embedding(labels, w),
        lambda m, labels, w: m.nn.functional.embedding(labels, w))
    add("embedding_bag", 1, lambda m, labels, w: m.embedding_bag(labels, w, m.arange(SIDE)),
        lambda m, labels, w: m.nn.functional.embedding_bag(labels, w, m.arange(SIDE)))
    for name, mode in (("10 in each", "mean"), ("max", "max")):
        add(f"embedding_bag, {name}", 1,
            lambda m, labels, w, mode=mode: m.embedding_bag(labels.reshape((10, 10)), w, mode=mode),
            lambda m, labels, w, mode=mode: m.nn.functional.embedding_bag(labels.reshape((10, 10)), w, mode=mode))
    add("scaled_dot_product_attention", 3, lambda m, _, *x: m.scaled_dot_product_attention(*x),
        lambda m, _, *x: m.nn.functional.scaled_dot_product_attention(*[y[None, None] for y in x]))
    add("attention_with_dropout", 3, lambda m, _, *x: m.ops.ROWS["attention_with_dropout"].function(*x, 0.5, 1, 2),
        lambda m, _, *x: m.nn.functional.scaled_dot_product_attention(*[y[None, None] for y in x], dropout_p=0.5))
    quarter = SIDE // 4                             # hidden numbers; a sequence of 100 steps
    for name, n in (("lstm", 4), ("gru", 3)):
        add(name, 3, lambda m, _, x, w, u, f=name, n=n: getattr(m, f)(
                x[:, None], [m.copy(w[:n * quarter]), m.copy(u[:n * quarter, :quarter])])[0],
            lambda m, _, x, w, u, f=name, n=n: pytorch_layer(m, f, x, w[:n * quarter].clone(),
                                                             u[:n * quarter, :quarter].clone()))
    for name, theirs in (("rnn", "rnn_tanh"), ("rnn_relu", "rnn_relu")):
        add(name, 3, lambda m, _, x, w, u, f=name: m.ops.ROWS[f].function(x[:, None], [w, u])[0],
            lambda m, _, x, w, u, f=theirs: pytorch_layer(m, f, x, w, u))
    add("relu_gradient", 2, lambda m, _, x, y: m.ops.ROWS["relu_gradient"].function(x, y), None)
    add("scale_gradient", 1, lambda m, _, x: m.scale_gradient(x, 0.5), None)
    add("dropout_identity", 1, lambda m, _, x: m.ops.ROWS["dropout_identity"].function(x), None)
    add("dropout_with", 1, lambda m, _, x: m.dropout(x, 0.5), lambda m, _, x: m.nn.functional.dropout(x, 0.5))
    return made


def row_of(name):
    """The operator of a row: the text before the comma."""
    return name.partition(",")[0]


def pytorch_layer(torch, name, x, w, u):
    state = torch.zeros(1, 1, u.shape[1])
    options = False, 1, 0.0, True, False, False     # biases, layers, dropout, train, both directions, batch_first
    return getattr(torch, name)(x[:, None], (state, state) if name == "lstm" else state, [w, u], *options)[0]


def left_out():
    """Rows that are not compared with PyTorch, which has no such function."""
    return [name for name, (_, _, theirs) in samples().items() if theirs is None]


def m_and_v(module):
    """The running statistics of batch_norm."""
    return module.zeros(SIDE), module.ones(SIDE)


def one(name):
    return lambda module, labels, *xs: getattr(module, name)(*xs)


def functional(name):
    return lambda module, labels, *xs: getattr(module.nn.functional, name)(*xs)


def along(name, axis):
    return lambda module, labels, x: getattr(module, name)(x, **{axis: -1})


def arrays(n):
    """n inputs, and labels, in NumPy."""
    rng = np.random.default_rng(3)
    return [rng.uniform(0.2, 0.9, (SIDE, SIDE)).astype(np.float32) for _ in range(n)], rng.integers(0, SIDE, SIDE)


def cygrad_bytes(n, call):
    inputs, labels = arrays(n)
    with cg.record():
        xs = [cg.tensor(a).requires_grad_() * 1.0 for a in inputs]
        with cg.record() as tape:
            result = call(cg, cg.tensor(labels), *xs)
        used = [y.sum() for y in (result if isinstance(result, (list, tuple)) else [result])]
        del result, xs                              # the graph alone holds what it has saved of them
    kept = tape.saved_bytes
    del used                                        # frees the graph
    return kept


def torch_bytes(n, call):
    import torch

    inputs, labels = arrays(n)
    labels = torch.from_numpy(labels)
    xs = [torch.from_numpy(a).requires_grad_() * 1.0 for a in inputs]
    kept = []                                       # holds them, so that no two have the same address
    with torch.autograd.graph.saved_tensors_hooks(lambda t: kept.append(t) or t, lambda t: t):
        call(torch, labels, *xs)
    storages = {t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in kept}
    return sum(storages.values())
