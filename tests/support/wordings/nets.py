"""The wording of errors: layers of convolution, pooling, normalization, recurrence and attention."""

import numpy as np

import cygrad as cg
from cygrad import nn


def ones(*shape):
    return cg.ones(shape)


def attention(*shapes, **named):
    return nn.MultiheadAttention(8, 2, batch_first=True)(*(ones(*shape) for shape in shapes), **named)


Q, K = (2, 4, 8), (2, 5, 8)

CASES = [
    (lambda: nn.Conv2d(3, 4, (3, 3, 3)), ValueError,
     "Conv2d: kernel_size must be an int or a tuple of 2, got (3, 3, 3)"),
    (lambda: nn.Conv2d(3, 4, 2.5), TypeError, "Conv2d: kernel_size must be an int, got 2.5"),
    (lambda: nn.Conv1d(3, 4, 0), ValueError, "Conv1d: kernel_size must be at least 1, got 0"),
    (lambda: nn.Conv2d(3, 4, 3, padding=(1, -1)), ValueError, "Conv2d: padding must be at least 0, got -1"),
    (lambda: nn.Conv2d(3, 4, 3, padding="full"), ValueError,
     "Conv2d: padding must be numbers, \"same\" or \"valid\", got 'full'"),
    (lambda: nn.Conv2d(3, 4, 3, 2, padding="same"), ValueError, "Conv2d: padding=\"same\" needs stride 1, got (2, 2)"),
    (lambda: nn.Conv2d(3, 4, 3, padding_mode="edge"), ValueError,
     "Conv2d: padding_mode must be zeros, reflect, replicate, circular, got 'edge'"),
    (lambda: nn.ConvTranspose2d(3, 4, 3, padding_mode="reflect"), ValueError,
     "ConvTranspose2d: padding_mode must be zeros, got 'reflect'"),
    (lambda: nn.Conv3d(3, 4, 3, groups=2), ValueError,
     "Conv3d: in_channels must be a multiple of groups, got 3 in 2 groups"),
    (lambda: nn.Conv3d(4, 3, 3, groups=2), ValueError,
     "Conv3d: out_channels must be a multiple of groups, got 3 in 2 groups"),
    (lambda: nn.Conv2d(None, 4, 3)(ones(3, 4)), ValueError,
     "Conv2d: x must be (n, channels, ...) or (channels, ...) with 2 further dimensions, got (3, 4)"),
    (lambda: nn.ConvTranspose1d(3, 4, 3, 2)(ones(2, 3, 5), [13]), ValueError,
     "ConvTranspose1d: output_size must be from (11,) to (12,) for x of shape (2, 3, 5), got (13,)"),
    (lambda: nn.Conv2d(3, 4, 3)(ones(2, 4, 8, 8)), ValueError, "conv2d: <*>(2, 4, 8, 8)<*>"),
    (lambda: nn.MaxPool2d(2, return_indices=True), ValueError,
     "MaxPool2d: return_indices=True is not supported; there is no operator that puts elements back"),
    (lambda: nn.ZeroPad2d((1, 2)), ValueError, "ZeroPad2d: padding must be an int or 4 ints, got (1, 2)"),
    (lambda: nn.ReflectionPad1d(-1), ValueError, "ReflectionPad1d: padding must be at least 0, got -1"),
    (lambda: nn.Upsample(4, recompute_scale_factor=True), ValueError,
     "Upsample: recompute_scale_factor=True is not supported; pass size instead"),

    (lambda: nn.Bilinear(2, 3, 4)(ones(1, 2), ones(1, 2)), ValueError,
     "Bilinear: x2 must have 3 features, its last dimension, got shape (1, 2)"),
    (lambda: nn.Bilinear(2, 3, 4)(ones(5, 2), ones(4, 3)), ValueError,
     "Bilinear: the leading dimensions of x1 and x2 must broadcast, got (5, 2) and (4, 3)"),
    (lambda: nn.LSTM(3, 4)(ones(5, 2, 2)), ValueError,
     "LSTM: x must have 3 features, its last dimension, got shape (5, 2, 2)"),
    (lambda: nn.GRU(3, 4)(ones(5, 2)), ValueError,
     "GRU: x must have 3 features, its last dimension, got shape (5, 2)"),
    (lambda: nn.RNN(3, 4)(ones(3)), ValueError,
     "RNN: x must be (steps, input_size) or, for a batch, have 3 dimensions, got (3,)"),
    (lambda: nn.GRUCell(3, 4)(ones(5, 2)), ValueError,
     "GRUCell: x must have 3 features, its last dimension, got shape (5, 2)"),
    (lambda: nn.RNN(3, 4)(cg.ones((5, 3), dtype="float64")), ValueError,
     "RNN: x is float64 and the parameters are float32; convert x or the layer with astype"),
    (lambda: nn.LSTMCell(3, 4)(ones(2, 3), (ones(2, 5), None)), ValueError,
     "LSTMCell: a state in hx must be (2, 4), got (2, 5)"),
    (lambda: nn.RNNCell(3, 4)(ones(3), ones(1, 4)), ValueError, "RNNCell: a state in hx must be (4,), got (1, 4)"),
    (lambda: nn.LSTM(3, 4, 2, batch_first=True)(ones(6, 7, 3), (ones(2, 7, 4), ones(2, 6, 4))), ValueError,
     "LSTM: a state in hx must be (2, 6, 4), got (2, 7, 4)"),
    (lambda: nn.GRU(3, 4, bidirectional=True)(ones(7, 3), ones(1, 4)), ValueError,
     "GRU: a state in hx must be (2, 4), got (1, 4)"),
    (lambda: nn.GRU(3, 4)(ones(0, 2, 3)), ValueError, "GRU: x is (0, 2, 3)<*>with at least one step"),
    (lambda: attention((2, 4, 7), K, K), ValueError,
     "MultiheadAttention: query must have 8 features, its last dimension, got shape (2, 4, 7)"),
    (lambda: nn.MultiheadAttention(8, 2, kdim=3)(ones(4, 2, 8), ones(5, 2, 8), ones(5, 2, 8)), ValueError,
     "MultiheadAttention: key must have 3 features, its last dimension, got shape (2, 5, 8)"),
    (lambda: attention(Q, K, (2, 6, 8)), ValueError,
     "MultiheadAttention: query, key and value must have one batch size, and key and value the same steps, got batches "
     "of 2, 2 and 2 with 4, 5 and 6 steps"),
    (lambda: nn.TransformerBlock(8, 2)(ones(2, 5, 7)), ValueError,
     "TransformerBlock: src must have 3 dimensions, or 2 without a batch, of which the last is d_model=8, got (2, 5, "
     "7)"),
    (lambda: nn.TransformerBlock(8, 2, norm_first=True)(ones(8)), ValueError,
     "TransformerBlock: src must have 3 dimensions, or 2 without a batch, of which the last is d_model=8, got (8,)"),
    (lambda: nn.init.zeros_(None), TypeError, "zeros_ fills a tensor of float32 or float64, got None"),
    (lambda: nn.init.xavier_uniform_(nn.Linear(None, 3).bias), ValueError,
     "xavier_uniform_: a tensor of shape (3,) has no fan_in and fan_out; it must have at least 2 dimensions"),
    (lambda: type("Own", (nn.Dropout,), {})(0.5, True, 1), TypeError,
     "Own takes only p by position: pass generator by name"),
    (lambda: type("Own", (nn.Linear,), {})(2, 3, wrong=1), TypeError,
     "Own takes no wrong; it takes in_features, out_features, bias, device, dtype, generator"),

    (lambda: nn.BatchNorm2d(3)(ones(2, 3)), ValueError,
     "BatchNorm2d: x must be (n, channels, height, width), got (2, 3)"),
    (lambda: nn.BatchNorm1d(3, eps="1e-5"), TypeError, "BatchNorm1d: eps must be a number, got '1e-5'"),
    (lambda: nn.InstanceNorm2d(3, momentum=None), TypeError, "InstanceNorm2d: momentum must be a number, got None"),
    (lambda: nn.BatchNorm1d(3, track_running_stats=False).freeze_statistics(), ValueError,
     "BatchNorm1d: freeze_statistics needs running statistics; make the layer with track_running_stats=True"),
    (lambda: nn.InstanceNorm1d(None, affine=True)(ones(3)), ValueError,
     "InstanceNorm1d: x must be (n, channels, length) or (channels, length), got (3,)"),
    (lambda: nn.GroupNorm(2, 3), ValueError,
     "GroupNorm: num_channels must be a multiple of num_groups, got 3 in 2 groups"),
    (lambda: nn.GroupNorm(2, None)(ones(3)), ValueError, "GroupNorm: x must be (n, channels, ...), got (3,)"),
    (lambda: nn.LayerNorm(()), ValueError, "LayerNorm: normalized_shape must have at least one size, got ()"),
    (lambda: nn.LayerNorm((3, 4), elementwise_affine=False)(ones(2, 4)), ValueError,
     "LayerNorm: x must be (..., 3, 4), got (2, 4)"),
    (lambda: nn.RMSNorm(None)(ones()), ValueError, "RMSNorm: x must have at least one dimension, got shape ()"),

    (lambda: nn.LSTM(3, 4, proj_size=2), ValueError, "LSTM: proj_size is not supported, got 2; apply a Linear to y"),
    (lambda: nn.LSTM(3, 4, dropout=1.5), ValueError, "LSTM: dropout must be a probability from 0 to 1, got 1.5"),
    (lambda: nn.LSTM(3, 4)(ones(5, 2, 3), ones(1, 2, 4)), TypeError,
     "LSTM: hx must be a pair (h, c), got a float32 tensor of shape (1, 2, 4)"),
    (lambda: nn.GRU(3, 4)(ones(5, 3), lengths=[5]), ValueError,
     "GRU: lengths belong to a batch, but x has shape (5, 3)"),
    (lambda: nn.RNN(3, 4, nonlinearity="gelu"), ValueError,
     "RNN: nonlinearity must be \"tanh\" or \"relu\", got 'gelu'"),
    (lambda: nn.GRU(None, 4)(ones(3)), ValueError,
     "GRU: x must be (steps, input_size) or, for a batch, have 3 dimensions, got (3,)"),
    (lambda: nn.LSTMCell(3, 4)(ones(5, 2, 3)), ValueError,
     "LSTMCell: x must be (batch, input_size) or (input_size,), got (5, 2, 3)"),
    (lambda: nn.GRU(3, 4, proj_size=2), TypeError, "GRU takes no proj_size; it takes <*>"),

    (lambda: nn.MultiheadAttention(8, 3), ValueError,
     "MultiheadAttention: embed_dim must be a multiple of num_heads, got 8 and 3 heads"),
    (lambda: nn.MultiheadAttention(8, 2, add_bias_kv=True), ValueError,
     "MultiheadAttention: add_bias_kv=True is not supported"),
    (lambda: nn.MultiheadAttention(8, 2, dropout=-1), ValueError,
     "MultiheadAttention: dropout must be a probability from 0 to 1, got -1"),
    (lambda: attention((4, 8), K, K), ValueError,
     "MultiheadAttention: query, key and value must have 3 dimensions, or 2 without a batch, got (4, 8), (2, 5, 8) and "
     "(2, 5, 8)"),
    (lambda: attention(Q, K, K, attn_mask=np.ones((5, 4), bool)), ValueError,
     "MultiheadAttention: attn_mask must be (4, 5) or (4, 4, 5), got (5, 4)"),
    (lambda: attention(Q, K, K, key_padding_mask=np.ones((5, 2), bool)), ValueError,
     "MultiheadAttention: key_padding_mask must be (2, 5), got (5, 2)"),
    (lambda: attention(Q, K, K, attn_mask=np.ones((4, 5), "int64")), TypeError,
     "MultiheadAttention: attn_mask must be bools (True: may not be seen) or float32, got int64"),
    (lambda: nn.TransformerBlock(8, 2, activation="swish"), ValueError,
     "TransformerBlock: activation must be \"relu\", \"gelu\" or a function, got 'swish'"),
]
