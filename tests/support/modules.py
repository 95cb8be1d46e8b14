"""Comparison of cygrad's functions with PyTorch's modules on PyTorch's own sample inputs (ModuleInfo).

`python tests/support/modules.py` compares everything and prints the counts of tests/support/modules.txt. Write them
there when modules are added."""

import sys
import warnings
from collections import Counter
from functools import cache, partial
from operator import attrgetter

import numpy as np

import cygrad as cg
from conventions import NO_AXIS, Unsupported, padded, refuse
from opinfo import SEED, Side, flat, one_thread, report, same, walk

# ---- adapters --------------------------------------------------------------------------------------------------------


def given(f, *names, **renamed):
    """f with the module's parameters, buffers and options of these names. axis="dim" passes m.dim as axis."""
    names = dict.fromkeys(names) | renamed

    def call(m, p, *args, **kwargs):
        args += tuple(kwargs.values())              # (Linear's first sample passes its input by name)
        return f(*args, **{ours: option(m, p, theirs or ours) for ours, theirs in names.items()})
    return call


def option(m, p, name):
    return p[name] if name in p else attrgetter(name)(m)


def loss(f, *names, **renamed):
    return given(f, "reduction", *names, **renamed)


def convolution(f, *names):
    return given(f, "weight", "bias", "stride", "padding", "dilation", "groups", *names)


def max_pool(f):
    return given(f, "kernel_size", "stride", "padding", "dilation", "ceil_mode")


def avg_pool(f, *names):
    return given(f, "kernel_size", "stride", "padding", "ceil_mode", "count_include_pad", *names)


def lp_pool(f):
    return given(f, "norm_type", "kernel_size", "stride", "ceil_mode")


def along(f):
    def call(m, p, x):
        refuse(not x.shape, NO_AXIS)
        return f(x, axis=m.dim)
    return call


def padding(mode, **more):
    return given(partial(padded(cg.pad), mode=mode), pad="padding", **more)


def softplus(m, p, x):
    refuse(m.threshold != 20, "threshold=")
    return cg.softplus(x, m.beta)


def batch_norm(m, p, x):
    """momentum=None is the average of all batches so far."""
    momentum = 1 / (int(m.num_batches_tracked) + 1) if m.momentum is None else m.momentum
    running = p.get("running_mean"), p.get("running_var")
    return cg.batch_norm(x, *running, p.get("weight"), p.get("bias"), m.training or running[0] is None, momentum, m.eps)


def instance_norm(dimensions):
    def call(m, p, x):
        refuse(m.track_running_stats, "track_running_stats=")
        alone = x.ndim == dimensions + 1            # without a batch
        y = cg.instance_norm(x[None] if alone else x, p.get("weight"), p.get("bias"), m.eps)
        return y[0] if alone else y
    return call


def last_axes(f, *names):
    """layer_norm and rms_norm, over as many axes as normalized_shape has."""
    def call(m, p, x):
        how = {name: p.get(name) for name in names}
        return f(x, eps=m.eps, axes=tuple(range(-len(m.normalized_shape), 0)), **how)
    return call


def refuse_all_ignored(m, target):
    ignored = m.reduction == "mean" and target.dtype.kind == "i" and (target.numpy() == m.ignore_index).all()
    refuse(ignored, "all targets ignored, where PyTorch's second derivative is nan")


def cross_entropy(m, p, x, target):
    refuse_all_ignored(m, target)
    return cg.cross_entropy(x, target, p.get("weight"), m.ignore_index, m.reduction, m.label_smoothing)


def linear_cross_entropy(m, p, x, target):
    refuse(m.out_features != (), "out_features=")
    refuse(m.weight is not None, "weight=")
    refuse(target.dtype.kind == "f", "probabilities as the target")
    refuse_all_ignored(m, target)
    ignored = -100 if m.ignore_index is None else m.ignore_index
    return cg.linear_cross_entropy(x, p["linear.weight"], target, p.get("linear.bias"), ignore_index=ignored,
                                   reduction=m.reduction, label_smoothing=m.label_smoothing,
                                   chunk=None if m.options is None else 3)


def kl_div(m, p, x, target):
    refuse(m.reduction == "batchmean" and not x.shape, "batchmean of a 0-d tensor")
    return cg.kl_div(x, target, reduction=m.reduction, log_target=m.log_target)


def ctc_loss(m, p, x, *args):
    """After log_softmax, in whose gradient the further term of PyTorch's ctc_loss vanishes."""
    return cg.ctc_loss(cg.log_softmax(x), *args, blank=m.blank, reduction=m.reduction, zero_infinity=m.zero_infinity)


class Packed:
    """A PackedSequence as one padded tensor, in the module's layout, and the lengths of its sequences."""

    def __init__(self, x, lengths):
        self.x, self.lengths = x, lengths


def recurrent(f, *names):
    def call(m, p, x, states=None):
        refuse(m.mode == "LSTM" and m.proj_size, "proj_size=")
        how = {name: getattr(m, name) for name in ("num_layers", "bidirectional", "batch_first", *names)}
        if isinstance(x, Packed): x, how["lengths"] = x.x, x.lengths
        states = [] if states is None else flat(states)
        alone = x.ndim == 2                         # one sequence, without a batch
        if alone:
            x = cg.expand_dims(x, 0 if m.batch_first else 1)
            states = [h[:, None] for h in states]
        y, last = f(x, list(p.values()), *states, **how)
        if not alone: return [y, *flat(last)]
        return [y[0] if m.batch_first else y[:, 0], *(h[:, 0] for h in flat(last))]
    return call


def cell(f, *names):
    """One step of one layer."""
    def call(m, p, x, states):
        how = {name: getattr(m, name) for name in names}
        _, last = f(x[None, None], list(p.values()), *(h[None, None] for h in flat(states)), **how)
        return [h[0, 0] for h in flat(last)]
    return call


# ---- calls of PyTorch's modules --------------------------------------------------------------------------------------

def whole(m, *args, **kwargs):
    return m(*args, **kwargs)


def without_indices(m, x):
    y = m(x)
    return y[0] if isinstance(y, tuple) else y


def after_log_softmax(m, x, *args):
    return m(x.log_softmax(2), *args)


def without_options(m, x, target):
    """Without the options of PyTorch's computation in chunks, whose gradient has no graph. The result is the same."""
    m.options = None
    return m(x, target)


def sequences(m, x, states=None):
    """The results of a recurrent module as one list. Packed sequences are padded again."""
    from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
    if isinstance(x, Packed):
        y, last = m(pack_padded_sequence(x.x, x.lengths, m.batch_first), states)
        y, _ = pad_packed_sequence(y, m.batch_first)
    else:
        y, last = m(x, states)
    return [y, *flat(last)]


# ---- the table -------------------------------------------------------------------------------------------------------

class Module:
    """A module of torch.nn and an adapter: ours(m, p, *inputs) computes with cygrad what the module m computes, where p
    has its parameters and buffers as tensors. theirs(m, *inputs) calls the module. `second` False: PyTorch has no
    second gradient."""

    def __init__(self, name, ours, theirs=whole, second=True):
        self.key, self.ours, self.theirs, self.second = name, ours, theirs, second


def of_dimensions(kind, name, adapt, *args, lazy=False):
    """The modules for 1, 2 and 3 dimensions. `lazy`: also those that infer their channels in the first call."""
    return [Module(f"{prefix}{kind}{d}d", adapt(getattr(cg, f"{name}{d}d")), *args)
            for prefix in (("", "Lazy") if lazy else ("",)) for d in (1, 2, 3)]


MODULES = [
    Module("Linear", given(cg.linear, w="weight", b="bias")),
    Module("Bilinear", given(lambda x, y, weight, bias: cg.einsum("...n,anm,...m->...a", x, weight, y)
                             + (0 if bias is None else bias), "weight", "bias")),
    Module("Embedding", given(cg.embedding, "weight", "padding_idx")),
    *of_dimensions("Conv", "conv", convolution, lazy=True),
    *of_dimensions("ConvTranspose", "conv_transpose", lambda f: convolution(f, "output_padding"), lazy=True),
    *of_dimensions("MaxPool", "max_pool", max_pool, without_indices),
    Module("AvgPool1d", avg_pool(cg.avg_pool1d)),
    Module("AvgPool2d", avg_pool(cg.avg_pool2d, "divisor_override")),
    Module("AvgPool3d", avg_pool(cg.avg_pool3d, "divisor_override")),
    *of_dimensions("AdaptiveMaxPool", "adaptive_max_pool", lambda f: given(f, "output_size")),
    *of_dimensions("AdaptiveAvgPool", "adaptive_avg_pool", lambda f: given(f, "output_size")),
    *of_dimensions("LPPool", "lp_pool", lp_pool),
    *[Module(f"BatchNorm{d}d", batch_norm) for d in (1, 2, 3)],
    *[Module(f"InstanceNorm{d}d", instance_norm(d)) for d in (1, 2, 3)],
    Module("GroupNorm", given(cg.group_norm, "num_groups", "weight", "bias", "eps")),
    Module("LocalResponseNorm", given(cg.local_response_norm, "size", "alpha", "beta", "k")),
    Module("LayerNorm", last_axes(cg.layer_norm, "weight", "bias")),
    Module("RMSNorm", last_axes(cg.rms_norm, "weight")),
    Module("RNN", recurrent(cg.rnn, "nonlinearity"), sequences),
    Module("GRU", recurrent(cg.gru), sequences),
    Module("LSTM", recurrent(cg.lstm), sequences),
    Module("RNNCell", cell(cg.rnn, "nonlinearity")),
    Module("GRUCell", cell(cg.gru)),
    Module("LSTMCell", cell(cg.lstm)),

    *[Module(name, given(getattr(cg, name.lower()))) for name in (
        "Hardswish", "LogSigmoid", "Mish", "ReLU", "SELU", "SiLU", "Sigmoid", "Softsign", "Tanh")],
    Module("CELU", given(cg.celu, "alpha")),
    Module("ELU", given(cg.elu, "alpha")),
    Module("GELU", given(cg.gelu, "approximate")),
    Module("GLU", given(cg.glu, axis="dim")),
    Module("Hardtanh", given(cg.hardtanh, "min_val", "max_val")),
    Module("LeakyReLU", given(cg.leaky_relu, "negative_slope")),
    Module("PReLU", given(cg.prelu, "weight")),
    Module("ReLU6", given(lambda x: cg.hardtanh(x, 0, 6))),
    Module("Softplus", softplus),
    Module("Tanhshrink", given(lambda x: x - cg.tanh(x))),
    Module("Threshold", given(cg.threshold, "threshold", "value")),
    Module("Softmax", along(cg.softmax)),
    Module("Softmax2d", given(lambda x: cg.softmax(x, axis=-3))),
    Module("LogSoftmax", along(cg.log_softmax)),
    Module("Softmin", along(lambda x, axis: cg.softmax(-x, axis))),

    Module("L1Loss", loss(cg.l1_loss)),
    Module("MSELoss", loss(cg.mse_loss)),
    Module("SmoothL1Loss", loss(cg.smooth_l1_loss, "beta")),
    Module("HuberLoss", loss(cg.huber_loss, "delta")),
    Module("KLDivLoss", kl_div),
    Module("NLLLoss", loss(cg.nll_loss, "weight", "ignore_index")),
    Module("GaussianNLLLoss", loss(cg.gaussian_nll_loss, "full", "eps")),
    Module("PoissonNLLLoss", loss(cg.poisson_nll_loss, "log_input", "full", "eps")),
    Module("HingeEmbeddingLoss", loss(cg.hinge_embedding_loss, "margin")),
    Module("SoftMarginLoss", loss(cg.soft_margin_loss)),
    Module("MarginRankingLoss", loss(cg.margin_ranking_loss, "margin")),
    Module("CosineEmbeddingLoss", loss(cg.cosine_embedding_loss, "margin")),
    Module("MultiMarginLoss", loss(cg.multi_margin_loss, "p", "margin", "weight"), second=False),
    Module("MultiLabelMarginLoss", loss(cg.multilabel_margin_loss), second=False),
    Module("MultiLabelSoftMarginLoss", loss(cg.multilabel_soft_margin_loss, "weight")),
    Module("BCELoss", loss(cg.binary_cross_entropy, "weight")),
    Module("BCEWithLogitsLoss", loss(cg.binary_cross_entropy_with_logits, "weight", "pos_weight")),
    Module("CrossEntropyLoss", cross_entropy),
    Module("LinearCrossEntropyLoss", linear_cross_entropy, without_options),
    Module("CTCLoss", ctc_loss, after_log_softmax, second=False),

    *[Module(f"ZeroPad{d}d", padding("constant")) for d in (1, 2, 3)],
    *[Module(f"ConstantPad{d}d", padding("constant", value="value")) for d in (1, 2, 3)],
    *[Module(f"{kind}Pad{d}d", padding(mode)) for d in (1, 2, 3)
      for kind, mode in (("Reflection", "reflect"), ("Replication", "replicate"), ("Circular", "circular"))],
]

WITHOUT = {
    **dict.fromkeys(("FractionalMaxPool2d", "FractionalMaxPool3d", "Hardshrink", "Softshrink"),
                    "cygrad has no such function"),
    **dict.fromkeys(("MultiheadAttention", "TransformerEncoder", "TransformerEncoderLayer", "TransformerDecoderLayer",
                     "Transformer"), "compositions; their parts are compared here and in counterparts.py"),
}


# ---- the comparison --------------------------------------------------------------------------------------------------

@cache
def infos():
    """PyTorch's ModuleInfos by the names of their modules in torch.nn."""
    one_thread()
    from torch.testing._internal.common_modules import module_db
    return {info.name.removeprefix("nn."): info for info in module_db}


def samples_of(info):
    """(module, args, kwargs) for each sample, in float64, in train mode, and in eval mode if it differs. Parameters and
    statistics that start as ones or zeros get random numbers, because a comparison does not see a factor of 1."""
    import torch
    torch.manual_seed(SEED)
    packed = {"with_packed_sequence": True} if info.name in ("nn.RNN", "nn.GRU") else {}
    for training in (True, False) if info.train_and_eval_differ else (True,):
        for sample in info.module_inputs_func(info, device="cpu", dtype=torch.float64, requires_grad=True,
                                              training=training, **packed):
            given = sample.constructor_input
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "enable_nested_tensor is True", UserWarning)  # TransformerEncoder
                m = info.module_cls(*given.args, **given.kwargs).to(torch.float64).train(training)
            m.made_with = given.args, given.kwargs      # for layers.py
            args = tuple(unpacked(m, x) for x in sample.forward_input.args)
            if info.is_lazy: m(*args)
            with torch.no_grad():
                for t in [*m.parameters(), *floating_buffers(m).values()]:
                    if t.numel() and (t == t.flatten()[0]).all(): t += torch.rand_like(t) + 0.5
            yield m, args, sample.forward_input.kwargs


def unpacked(m, x):
    from torch.nn.utils.rnn import PackedSequence, pad_packed_sequence
    if not isinstance(x, PackedSequence): return x
    y, lengths = pad_packed_sequence(x, m.batch_first)
    return Packed(y.detach().requires_grad_(), lengths.tolist())


def floating_buffers(m):
    return {name: b for name, b in m.named_buffers() if b.is_floating_point()}


def inputs(v, convert):
    """walk, into packed sequences too."""
    if isinstance(v, Packed): return Packed(convert(v.x), v.lengths)
    if isinstance(v, tuple): return tuple(inputs(x, convert) for x in v)
    return walk(v, convert)


def compare(module, m, args, kwargs):
    """Compare values, gradients, and the statistics after the call. Returns whether there were gradients. Raises
    AssertionError if they differ, Unsupported if cygrad refuses the sample."""
    import torch
    ours, theirs = [], []

    def to_cygrad(t):
        x = cg.tensor(np.array(t.detach().numpy()))
        if t.requires_grad: ours.append(x.requires_grad_())
        return x

    def to_torch(t):
        x = t.detach().clone()
        if t.requires_grad: theirs.append(x.requires_grad_())
        return x

    x, named = inputs(args, to_cygrad), inputs(kwargs, to_cygrad)
    p = {name: to_cygrad(t) for name, t in m.named_parameters()}
    statistics = {name: to_cygrad(t) for name, t in floating_buffers(m).items()}
    with cg.record():
        y = flat(module.ours(m, p | statistics, *x, **named))
    found = Side([*y, *statistics.values()], ours,
                 lambda v, like: cg.tensor(v, dtype=like.dtype, requires_grad=True), cg.autograd.grad, cg.record,
                 module.second)
    x, named = inputs(args, to_torch), inputs(kwargs, to_torch)
    theirs += m.parameters()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "reduction: 'mean' divides", UserWarning)     # KLDivLoss
        y = flat(module.theirs(m, *x, **named))
    wanted = Side([*y, *floating_buffers(m).values()], theirs,
                  lambda v, like: torch.tensor(v, dtype=like.dtype, requires_grad=True), torch.autograd.grad,
                  torch.enable_grad, module.second)
    for (what, a), (_, b) in zip(found.arrays(), wanted.arrays(), strict=True):
        same(a, b, what)
    return len(ours) > 0


def count(module):
    """Compare on all samples: (compared, differentiated, Counter of reasons of those skipped)."""
    compared = differentiated = 0
    skipped = Counter()
    for m, args, kwargs in samples_of(infos()[module.key]):
        try:
            differentiated += compare(module, m, args, kwargs)
            compared += 1
        except Unsupported as e:
            skipped[str(e)] += 1
        except Exception as e:
            shapes = [tuple(getattr(x, "shape", ())) for x in args]
            e.add_note(f"{m}, {'train' if m.training else 'eval'} mode, inputs {shapes}")
            raise
    return compared, differentiated, skipped


if __name__ == "__main__":
    sys.exit(report(MODULES, count, f"{len(MODULES)} modules"))
