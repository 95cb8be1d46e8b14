"""Decoders, and stacks of layers: TransformerDecoderLayer, TransformerEncoder, TransformerDecoder and Transformer
(Vaswani et al. 2017). The layer of an encoder is TransformerBlock, in attention.py."""

from __future__ import annotations

import copy
import math
from typing import Any

from cygrad.core.errors import described
from cygrad.core.execute.generator import Generator
from cygrad.core.graph.tensor import Tensor
from cygrad.core.interop.creation import full
from cygrad.nn.attention import Activation, MultiheadAttention, TransformerBlock, TransformerLayer
from cygrad.nn.containers import ModuleList
from cygrad.nn.dropout import Dropout
from cygrad.nn.factory import size
from cygrad.nn.init import xavier_uniform_
from cygrad.nn.module import Module
from cygrad.nn.normalization import LayerNorm
from cygrad.ops.shapes.join import triu


class TransformerDecoderLayer(TransformerLayer):
    """Self-attention, attention to a memory, and two linear layers, each with a residual connection, dropout and layer
    normalization: PyTorch's layer, with its arguments, defaults and names of parameters. x is (steps, batch, d_model),
    or (batch, steps, d_model) with `batch_first`, or (steps, d_model); the memory, an encoder's result, has the same
    layout, and steps of its own.

    norm_first=False   x = norm1(x + attention(x)), x = norm2(x + cross(x, memory)), then norm3(x + mlp(x))
    norm_first=True    x = x + attention(norm1(x)), x = x + cross(norm2(x), memory), then x + mlp(norm3(x))

    self_attn (attention) and multihead_attn (cross) are MultiheadAttention, norm1 to norm3 LayerNorm, dropout1 to
    dropout3 Dropout; mlp, the other parts and arguments are those of TransformerBlock. With `causal`, step i of x sees
    steps 0 to i of x."""

    multihead_attn: MultiheadAttention
    norm3: LayerNorm
    dropout3: Dropout

    def __init__(self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1,
                 activation: Activation = "relu", layer_norm_eps: float = 1e-5, batch_first: bool = False,
                 norm_first: bool = False, bias: bool = True, device: Any = None, dtype: Any = None, *,
                 causal: bool = False, generator: Generator | None = None):
        self._make(("self_attn", "multihead_attn"), d_model, nhead, dim_feedforward, dropout, activation,
                   layer_norm_eps, batch_first, norm_first, bias, device, dtype, causal, generator)

    def forward(self, tgt: Tensor, memory: Tensor, tgt_mask: Any = None, memory_mask: Any = None,
                tgt_key_padding_mask: Any = None, memory_key_padding_mask: Any = None, tgt_is_causal: bool = False,
                memory_is_causal: bool = False) -> Tensor:
        """The result, like `tgt`. The masks are those of MultiheadAttention, True where a step may not be seen:
        tgt_mask (steps, steps), memory_mask (steps, steps of memory), and key padding masks (batch, steps) of each."""
        x, own = tgt, (tgt_mask, tgt_key_padding_mask, tgt_is_causal or self.causal)
        other = memory, memory_mask, memory_key_padding_mask, memory_is_causal
        try:
            if self.norm_first:
                x = x + self._attention(self.norm1(x), *own)
                x = x + self._cross(self.norm2(x), *other)
                return x + self._mlp(self.norm3(x))
            x = self.norm1(x + self._attention(x, *own))
            x = self.norm2(x + self._cross(x, *other))
            return self.norm3(x + self._mlp(x))
        except ValueError:
            self._check("tgt", tgt)
            self._check("memory", memory)
            raise

    def _cross(self, x, memory, mask, padding, causal):
        return self.dropout2(self.multihead_attn(x, memory, memory, padding, False, mask, True, causal)[0])

    def _mlp(self, x):
        return self.dropout3(self._linears(x))


def repeated(stack, name, layer, n):
    """A list of n copies of a layer. They have their own parameters, with equal values, as in PyTorch, and draw from
    the same generators: with copies of these, all layers would drop the same elements."""
    if not isinstance(layer, Module):
        raise TypeError(f"{type(stack).__name__}: {name} must be a module, got {described(layer)}")
    found = (getattr(module, "generator", None) for module in layer.modules())
    shared = {id(generator): generator for generator in found if isinstance(generator, Generator)}
    return ModuleList(copy.deepcopy(layer, dict(shared)) for _ in range(size(stack, "num_layers", n)))


def optional(stack, name, module):
    """A module that a stack is made with, or None."""
    if module is None or isinstance(module, Module): return module
    raise TypeError(f"{type(stack).__name__}: {name} must be a module or None, got {described(module)}")


class TransformerEncoder(Module):
    """A stack of `num_layers` copies of `encoder_layer`, such as a TransformerBlock, each called with the result of the
    previous one, and then `norm`, if it is not None.

    layers   a ModuleList of the copies, whose parameters are equal at first. `encoder_layer` itself is not part of it

    A difference from PyTorch: enable_nested_tensor and mask_check do not exist, so predictions of padded steps are
    those of the layers, where PyTorch's fast path may give zeros."""

    layers: ModuleList
    norm: Module | None

    def __init__(self, encoder_layer: Module, num_layers: int, norm: Module | None = None):
        self.layers = repeated(self, "encoder_layer", encoder_layer, num_layers)
        self.num_layers, self.norm = len(self.layers), optional(self, "norm", norm)

    def forward(self, src: Tensor, mask: Any = None, src_key_padding_mask: Any = None,
                is_causal: bool | None = None) -> Tensor:
        """The result, like `src`. The masks are those of TransformerBlock, and each layer gets them. is_causal=None is
        False: a causal mask is not looked for, which changes no result."""
        x = src
        for layer in self.layers:
            x = layer(x, src_mask=mask, src_key_padding_mask=src_key_padding_mask, is_causal=bool(is_causal))
        return x if self.norm is None else self.norm(x)


class TransformerDecoder(Module):
    """A stack of `num_layers` copies of `decoder_layer`, such as a TransformerDecoderLayer, each called with the result
    of the previous one and the memory, and then `norm`, if it is not None.

    layers   a ModuleList of the copies, whose parameters are equal at first. `decoder_layer` itself is not part of it
    """

    layers: ModuleList
    norm: Module | None

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None):
        self.layers = repeated(self, "decoder_layer", decoder_layer, num_layers)
        self.num_layers, self.norm = len(self.layers), optional(self, "norm", norm)

    def forward(self, tgt: Tensor, memory: Tensor, tgt_mask: Any = None, memory_mask: Any = None,
                tgt_key_padding_mask: Any = None, memory_key_padding_mask: Any = None,
                tgt_is_causal: bool | None = None, memory_is_causal: bool = False) -> Tensor:
        """The result, like `tgt`. The masks are those of TransformerDecoderLayer, and each layer gets them.
        tgt_is_causal=None is False: a causal mask is not looked for, which changes no result."""
        x = tgt
        for layer in self.layers:
            x = layer(x, memory, tgt_mask=tgt_mask, memory_mask=memory_mask, tgt_key_padding_mask=tgt_key_padding_mask,
                      memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=bool(tgt_is_causal),
                      memory_is_causal=memory_is_causal)
        return x if self.norm is None else self.norm(x)


class Transformer(Module):
    """An encoder and a decoder that attends to its result: PyTorch's module, with its arguments, defaults and names of
    parameters. src is (steps, batch, d_model), or (batch, steps, d_model) with `batch_first`, or (steps, d_model); tgt
    has the same layout, and steps of its own.

    encoder   a TransformerEncoder of num_encoder_layers TransformerBlocks, or custom_encoder
    decoder   a TransformerDecoder of num_decoder_layers TransformerDecoderLayers, or custom_decoder

    Both end with a LayerNorm, and all matrices are from U(-b, b) with b = sqrt(6 / (rows + columns)): xavier_uniform_.
    The other arguments are those of the layers."""

    def __init__(self, d_model: int = 512, nhead: int = 8, num_encoder_layers: int = 6, num_decoder_layers: int = 6,
                 dim_feedforward: int = 2048, dropout: float = 0.1, activation: Activation = "relu",
                 custom_encoder: Module | None = None, custom_decoder: Module | None = None,
                 layer_norm_eps: float = 1e-5, batch_first: bool = False, norm_first: bool = False, bias: bool = True,
                 device: Any = None, dtype: Any = None, *, generator: Generator | None = None):
        def made(stack, layer, n):
            one = layer(d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first,
                        bias, device, dtype, generator=generator)
            return stack(one, n, LayerNorm(d_model, layer_norm_eps, bias=bias, device=device, dtype=dtype))

        self.encoder = optional(self, "custom_encoder", custom_encoder) or made(
            TransformerEncoder, TransformerBlock, num_encoder_layers)
        self.decoder = optional(self, "custom_decoder", custom_decoder) or made(
            TransformerDecoder, TransformerDecoderLayer, num_decoder_layers)
        self.d_model, self.nhead, self.batch_first = d_model, nhead, bool(batch_first)
        for x in self.parameters():
            if x.ndim > 1: xavier_uniform_(x, generator=generator)

    def forward(self, src: Tensor, tgt: Tensor, src_mask: Any = None, tgt_mask: Any = None, memory_mask: Any = None,
                src_key_padding_mask: Any = None, tgt_key_padding_mask: Any = None,
                memory_key_padding_mask: Any = None, src_is_causal: bool | None = None,
                tgt_is_causal: bool | None = None, memory_is_causal: bool = False) -> Tensor:
        """The decoder's result, like `tgt`. The masks are those of TransformerEncoder and TransformerDecoder."""
        memory = self.encoder(src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal)
        return self.decoder(tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask,
                            tgt_key_padding_mask=tgt_key_padding_mask, memory_key_padding_mask=memory_key_padding_mask,
                            tgt_is_causal=tgt_is_causal, memory_is_causal=memory_is_causal)

    @staticmethod
    def generate_square_subsequent_mask(sz: int, *, dtype: Any = None) -> Tensor:
        """The mask (sz, sz) by which step i sees steps 0 to i: 0 there, else -inf."""
        return triu(full((sz, sz), -math.inf, dtype=dtype), 1)
