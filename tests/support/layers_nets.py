"""The rows of layers.py for convolution, pooling, padding, normalization, recurrence and attention."""

from conventions import refuse
from layers_made import layer
from modules import Packed, flat, sequences, without_indices


def recurrent(name):
    def call(found, x, states=None):
        lengths = None
        if isinstance(x, Packed): x, lengths = x.x, x.lengths
        y, last = found(x, states, lengths)
        return [y, *flat(last)]
    return layer(name, call=call, theirs=sequences, check=no_projection)


def no_projection(m, x, states=None):
    refuse(m.mode == "LSTM" and m.proj_size, "proj_size=")


def negative(m, x):
    refuse(any(n < 0 for n in m.padding), "negative widths")


def attention(name):
    """PyTorch's module with its default, need_weights=True."""
    def call(found, *args, need_weights=True, **kwargs):
        y, weights = found(*args, need_weights=need_weights, **kwargs)
        return [y] if weights is None else [y, weights]

    def theirs(m, *args, **kwargs):
        y, weights = m(*args, **kwargs)
        return [y] if weights is None else [y, weights]

    def check(m, *args, **kwargs):
        refuse(m.bias_k is not None, "add_bias_kv=")
        refuse(m.add_zero_attn, "add_zero_attn=")
    return layer(name, call=call, theirs=theirs, check=check)


def in_steps(m, *args, **kwargs):
    """PyTorch's module by its attention that has second derivatives."""
    from torch.nn.attention import SDPBackend, sdpa_kernel
    with sdpa_kernel(SDPBackend.MATH): return m(*args, **kwargs)


NETS = [
    *(layer(f"{name}{d}d") for name in ("Conv", "ConvTranspose") for d in (1, 2, 3)),
    *(layer(f"MaxPool{d}d", theirs=without_indices, without=("return_indices",)) for d in (1, 2, 3)),
    *(layer(f"{name}{d}d") for name in ("AvgPool", "AdaptiveMaxPool", "AdaptiveAvgPool", "LPPool", "BatchNorm",
                                        "InstanceNorm") for d in (1, 2, 3)),
    *map(layer, ("GroupNorm", "LocalResponseNorm", "LayerNorm", "RMSNorm")),
    *map(recurrent, ("RNN", "GRU", "LSTM")),
    *map(layer, ("RNNCell", "GRUCell", "LSTMCell")),
    *(layer(f"{name}Pad{d}d", check=negative) for name in ("Zero", "Constant", "Reflection", "Replication", "Circular")
      for d in (1, 2, 3)),
    attention("MultiheadAttention"),
    *(layer(name, theirs=in_steps) for name in ("TransformerEncoderLayer", "TransformerEncoder",
                                                "TransformerDecoderLayer", "Transformer")),
]
