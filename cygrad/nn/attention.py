"""MultiheadAttention and TransformerBlock. transformer.py has decoders, and stacks of layers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from cygrad.core.errors import described
from cygrad.core.execute.generator import Generator
from cygrad.core.graph.tensor import Tensor
from cygrad.core.interop.creation import arange, zeros
from cygrad.core.interop.numpy import asarray
from cygrad.nn.dropout import Dropout
from cygrad.nn.factory import check_features, floating, size, source
from cygrad.nn.linear import Linear
from cygrad.nn.module import Module
from cygrad.nn.normalization import LayerNorm
from cygrad.nn.parameter import Parameter
from cygrad.ops.layers.attention import scaled_dot_product_attention
from cygrad.ops.elementwise.compare import greater_equal, logical_and, logical_not, not_equal, where
from cygrad.ops.elementwise.functions import gelu, relu
from cygrad.ops.shapes.join import split
from cygrad.ops.linalg.linalg import linear, matmul
from cygrad.ops.layers.random import dropout
from cygrad.ops.reductions.reduce import any as any_of
from cygrad.ops.reductions.reduce import mean
from cygrad.ops.shapes.shape import keep_rows, permute, reshape, swapaxes
from cygrad.ops.reductions.softmax import softmax

Activation = Literal["relu", "gelu"] | Callable[[Tensor], Tensor]        # the argument of layers of transformers


class MultiheadAttention(Module):
    """Attention of several heads (Vaswani et al. 2017): query is (L, batch, embed_dim), key (S, batch, kdim) and value
    (S, batch, vdim), or batch comes first with `batch_first`, or there is none. Each is projected to embed_dim numbers,
    embed_dim / num_heads for each head, and out_proj projects the heads' results.

    in_proj_weight    (3 embed_dim, embed_dim), the projections of query, key and value, one below the other, from
                      U(-b, b) with b = sqrt(6 / (4 embed_dim)): xavier_uniform_
    q_proj_weight (embed_dim, embed_dim), k_proj_weight (embed_dim, kdim), v_proj_weight (embed_dim, vdim): instead of
                      it if kdim or vdim is another number, from U(-b, b) with b = sqrt(6 / (columns + embed_dim))
    in_proj_bias      (3 embed_dim,), zeros, unless `bias` is False
    out_proj          Linear(embed_dim, embed_dim), whose bias is zeros

    In train mode, weights of attention are set to zero with probability `dropout`. `dtype` is float32 or float64 (None:
    the default one). The numbers come from `generator` (None: the default one). add_bias_kv and add_zero_attn, which
    keep PyTorch's order of arguments, raise ValueError.

    A difference from PyTorch: forward returns no weights unless need_weights=True, because the matrix of weights,
    (batch, L, S), is otherwise not made, neither here nor in backward. For a query that may see no key, the weights and
    the results of the heads are zeros, so its result is the bias of out_proj; PyTorch gives the same without weights,
    and NaN with need_weights=True."""

    in_proj_weight: Tensor | None
    in_proj_bias: Tensor | None
    out_proj: Linear

    def __init__(self, embed_dim: int, num_heads: int, dropout: float = 0.0, bias: bool = True,
                 add_bias_kv: Literal[False] = False, add_zero_attn: Literal[False] = False, kdim: int | None = None,
                 vdim: int | None = None, batch_first: bool = False, device: Any = None, dtype: Any = None, *,
                 generator: Generator | None = None):
        for name, value in (("add_bias_kv", add_bias_kv), ("add_zero_attn", add_zero_attn)):
            if value: raise ValueError(f"MultiheadAttention: {name}=True is not supported")
        if isinstance(dropout, bool) or not isinstance(dropout, (int, float)) or not 0 <= dropout <= 1:
            raise ValueError(f"MultiheadAttention: dropout must be a probability from 0 to 1, got {described(dropout)}")
        dtype = floating(self, device, dtype)
        self.embed_dim, self.num_heads = size(self, "embed_dim", embed_dim), size(self, "num_heads", num_heads)
        if self.embed_dim % self.num_heads:
            raise ValueError(f"MultiheadAttention: embed_dim must be a multiple of num_heads, got {embed_dim} and "
                             f"{num_heads} heads")
        self.kdim = self.embed_dim if kdim is None else size(self, "kdim", kdim)
        self.vdim = self.embed_dim if vdim is None else size(self, "vdim", vdim)
        self.head_dim, self.dropout, self.batch_first = self.embed_dim // self.num_heads, float(dropout), batch_first
        self.generator, n = generator, self.embed_dim
        shapes = {"in_proj_weight": (3 * n, n)}
        if (self.kdim, self.vdim) != (n, n):
            shapes = {"q_proj_weight": (n, n), "k_proj_weight": (n, self.kdim), "v_proj_weight": (n, self.vdim)}
        for name in ("in_proj_weight", "q_proj_weight", "k_proj_weight", "v_proj_weight"):
            shape = shapes.get(name)
            self.register_parameter(name, None if shape is None else xavier_parameter(shape, dtype, generator))
        self.register_parameter("in_proj_bias", Parameter(zeros(3 * n, dtype=dtype)) if bias else None)
        self.out_proj = Linear(n, n, bias, dtype=dtype, generator=generator)
        if bias: self.out_proj.bias = Parameter(zeros(n, dtype=dtype))

    def forward(self, query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Any = None,
                need_weights: bool = False, attn_mask: Any = None, average_attn_weights: bool = True,
                is_causal: bool = False) -> tuple[Tensor, Tensor | None]:
        """The result, like query, and the weights, or None.

        key_padding_mask   (batch, S): bools, True for keys that no query may see, or numbers that are added to scores
        attn_mask          (L, S) or (batch * num_heads, L, S): bools, True where a query may not see a key, or numbers
        is_causal          query i sees keys 0 to i; unlike in PyTorch, no attn_mask has to be given

        The bools are PyTorch's, and the opposite of those of cygrad.scaled_dot_product_attention. The weights, with
        need_weights, are (batch, L, S), the means over the heads, or (batch, num_heads, L, S) without
        average_attn_weights; dropout is applied."""
        if self._mode is not None and self.dropout: self._training()
        query, key, value = mapped(asarray, query, key, value)
        alone = query.ndim == 2
        if alone != (key.ndim == 2) or query.ndim not in (2, 3) or key.ndim != value.ndim:
            raise ValueError(f"MultiheadAttention: query, key and value must have 3 dimensions, or 2 without a batch, "
                             f"got {query.shape}, {key.shape} and {value.shape}")
        if alone: query, key, value = mapped(lambda x: x[None], query, key, value)
        elif not self.batch_first: query, key, value = mapped(lambda x: swapaxes(x, 0, 1), query, key, value)
        try:
            q, k, v = (self._heads(x) for x in self._project(query, key, value))
            mask = self._mask(q, k, key_padding_mask, attn_mask, alone)
            if need_weights: y, weights = self._with_weights(q, k, v, mask, is_causal)
            else:
                y, weights = scaled_dot_product_attention(q, k, v, mask, self.dropout, is_causal,
                                                          generator=self.generator), None
        except ValueError:
            self._check(query, key, value)
            raise
        y = self.out_proj(keep_rows(permute(y, (0, 2, 1, 3)), (query.shape[1], self.embed_dim)))
        if weights is not None and average_attn_weights: weights = mean(weights, 1)
        if alone: return y[0], None if weights is None else weights[0]
        return y if self.batch_first else swapaxes(y, 0, 1), weights

    def _flops(self, query, key, value, *args, y, **kwargs):
        """Those of the projections, and of the two products with the matrix of weights, with all elements of it."""
        q, k, v = (math.prod(x.shape[:-1]) for x in (query, key, value))
        batch = 1 if query.ndim == 2 else query.shape[0 if self.batch_first else 1]
        projections = q * self.embed_dim + k * self.kdim + v * self.vdim
        return 2 * self.embed_dim * (projections + 2 * q * (k // batch if batch else 0))

    def _check(self, query, key, value):
        """Raise ValueError if the operands, with the batch first, do not fit the layer or each other."""
        for name, x, n in (("query", query, self.embed_dim), ("key", key, self.kdim), ("value", value, self.vdim)):
            check_features(self, name, x, n)
        (a, steps, _), (b, n, _), (c, m, _) = query.shape, key.shape, value.shape
        if n != m or len({a, b, c} - {1}) > 1:
            raise ValueError(f"MultiheadAttention: query, key and value must have one batch size, and key and value "
                             f"the same steps, got batches of {a}, {b} and {c} with {steps}, {n} and {m} "
                             f"steps") from None

    def _project(self, query, key, value):
        """The projections: one product if the three operands are one, two if key and value are."""
        w, b, n = self.in_proj_weight, self.in_proj_bias, self.embed_dim
        if w is not None and query is key and key is value: return split(linear(query, w, b), 3, -1)
        biases = (None,) * 3 if b is None else split(b, 3)
        if w is None: weights = self.q_proj_weight, self.k_proj_weight, self.v_proj_weight
        elif key is value:
            (w1, w2), (b1, b2) = split(w, [n]), (None, None) if b is None else split(b, [n])
            return linear(query, w1, b1), *split(linear(key, w2, b2), 2, -1)
        else: weights = split(w, 3)
        return [linear(x, w, b) for x, w, b in zip((query, key, value), weights, biases, strict=True)]

    def _heads(self, x):
        """(batch, rows, embed_dim) as (batch, num_heads, rows, head_dim)."""
        return permute(keep_rows(x, (x.shape[1], self.num_heads, self.head_dim)), (0, 2, 1, 3))

    def _mask(self, q, k, padding, mask, alone):
        """One mask for scaled_dot_product_attention that broadcasts to (batch, num_heads, L, S), or None."""
        (n, heads, rows, _), columns = q.shape, k.shape[-2]
        if mask is not None:
            mask = asarray(mask)
            if mask.shape == (n * heads, rows, columns) and mask.ndim == 3:
                mask = reshape(mask, (n, heads, rows, columns))
            elif mask.shape != (rows, columns):
                raise ValueError(f"MultiheadAttention: attn_mask must be {(rows, columns)} or "
                                 f"{(n * heads, rows, columns)}, got {mask.shape}")
            mask = allowed("attn_mask", mask, q)
        if padding is None: return mask
        padding, wanted = asarray(padding), (columns,) if alone else (n, columns)
        if padding.shape != wanted:
            raise ValueError(f"MultiheadAttention: key_padding_mask must be {wanted}, got {padding.shape}")
        padding = allowed("key_padding_mask", padding, q)
        padding = padding[None, None, None] if alone else keep_rows(padding, (1, 1, columns))
        return padding if mask is None else joined(mask, padding)

    def _with_weights(self, q, k, v, mask, causal):
        """The result and the weights, through the matrix of weights."""
        s = matmul(q * (1 / math.sqrt(self.head_dim)), swapaxes(k, -1, -2))
        if mask is not None: s = where(mask, s, -math.inf) if mask.dtype == "bool" else s + mask
        if causal: s = where(greater_equal(arange(s.shape[-2])[:, None], arange(s.shape[-1])), s, -math.inf)
        seen = any_of(not_equal(s.detach(), -math.inf), -1, True)
        weights = where(seen, softmax(where(seen, s, 0.0)), 0.0)
        if self.dropout: weights = dropout(weights, self.dropout, self.generator)
        return matmul(weights, v), weights

    def extra_repr(self) -> str:
        """The sizes, and the arguments that differ from their defaults."""
        text = f"{self.embed_dim}, {self.num_heads}"
        if self.dropout: text += f", dropout={self.dropout}"
        if self.in_proj_bias is None: text += ", bias=False"
        if self.in_proj_weight is None: text += f", kdim={self.kdim}, vdim={self.vdim}"
        return text + ", batch_first=True" * bool(self.batch_first)


def xavier_parameter(shape, dtype, generator):
    bound = math.sqrt(6 / sum(shape))
    return Parameter(source(generator).uniform(shape, -bound, bound, dtype=dtype))


def mapped(f, query, key, value):
    """f of the three operands, once for those that are the same."""
    q = f(query)
    k = q if key is query else f(key)
    return q, k, q if value is query else k if value is key else f(value)


def allowed(name, mask, q):
    """A mask of PyTorch's kind as one of scaled_dot_product_attention: True where a query may see a key."""
    if mask.dtype == "bool": return logical_not(mask)
    if mask.dtype == q.dtype: return mask
    raise TypeError(f"MultiheadAttention: {name} must be bools (True: may not be seen) or {q.dtype}, got {mask.dtype}")


def joined(a, b):
    """A mask that hides what one of two masks hides."""
    if a.dtype == "bool" and b.dtype == "bool": return logical_and(a, b)
    if a.dtype == "bool": return where(a, b, -math.inf)
    return where(b, a, -math.inf) if b.dtype == "bool" else a + b


class TransformerLayer(Module):
    """The base of TransformerBlock and TransformerDecoderLayer: the parts that both have, and the linear layers."""

    self_attn: MultiheadAttention
    linear1: Linear
    dropout: Dropout
    linear2: Linear
    norm1: LayerNorm
    norm2: LayerNorm
    dropout1: Dropout
    dropout2: Dropout

    def _make(self, attentions, d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first,
              norm_first, bias, device, dtype, causal, generator):
        """Make the parts in PyTorch's order: a norm and a Dropout for each of the attentions and for the linear
        layers."""
        if isinstance(activation, str) and activation not in ("relu", "gelu") or not (
                isinstance(activation, str) or callable(activation)):
            raise ValueError(f"{type(self).__name__}: activation must be \"relu\", \"gelu\" or a function, got "
                             f"{described(activation)}")
        dtype = floating(self, device, dtype)
        made = {"dtype": dtype, "generator": generator}
        for name in attentions:
            setattr(self, name, MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first, **made))
        self.linear1 = Linear(d_model, dim_feedforward, bias, **made)
        self.dropout = Dropout(dropout, generator=generator)
        self.linear2 = Linear(dim_feedforward, d_model, bias, **made)
        numbers = range(1, len(attentions) + 2)
        for i in numbers: setattr(self, f"norm{i}", LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype))
        for i in numbers: setattr(self, f"dropout{i}", Dropout(dropout, generator=generator))
        self.activation, self.norm_first, self.causal = activation, bool(norm_first), bool(causal)

    def _attention(self, x, mask, padding, causal):
        return self.dropout1(self.self_attn(x, x, x, padding, False, mask, True, causal)[0])

    def _linears(self, x):
        """linear2(dropout(activation(linear1(x))))"""
        first = self.linear1
        if self.activation == "relu" and type(first) is Linear and first._hooks is None: x = first(x, "relu")
        else:                                       # (hooks get the result before the activation)
            x = first(x)
            x = relu(x) if self.activation == "relu" else gelu(x) if self.activation == "gelu" else self.activation(x)
        return self.linear2(self.dropout(x))

    def _check(self, name, x):
        """Raise ValueError if an input does not fit. forward() calls it when an operator has failed."""
        n, shape = self.self_attn.embed_dim, np.shape(x)
        if len(shape) in (2, 3) and shape[-1] == n: return
        raise ValueError(f"{type(self).__name__}: {name} must have 3 dimensions, or 2 without a batch, of which the "
                         f"last is d_model={n}, got {shape}") from None

    def extra_repr(self) -> str:
        """The arguments that differ from their defaults and are not those of a child."""
        text = [f"{name}=True" for name in ("norm_first", "causal") if getattr(self, name)]
        if self.activation != "relu": text.insert(0, f"activation={self.activation!r}")
        return ", ".join(text)


class TransformerBlock(TransformerLayer):
    """Self-attention and two linear layers, each with a residual connection, dropout and layer normalization: PyTorch's
    TransformerEncoderLayer, with its arguments, defaults and names of parameters. x is (steps, batch, d_model), or
    (batch, steps, d_model) with `batch_first`, or (steps, d_model).

    norm_first=False   x = norm1(x + attention(x)), then norm2(x + mlp(x)) (Vaswani et al. 2017)
    norm_first=True    x + attention(norm1(x)), then x + mlp(norm2(x)), which trains deep stacks without warm-up
    mlp(x)             linear2(dropout(activation(linear1(x)))), with dim_feedforward numbers between the two

    self_attn is a MultiheadAttention, linear1 and linear2 are Linear, norm1 and norm2 LayerNorm, dropout, dropout1 and
    dropout2 Dropout. With `causal`, step i sees steps 0 to i. `activation` is "relu", "gelu" or a function. `dtype` is
    float32 or float64 (None: the default one). The numbers come from `generator` (None: the default one). The matrix of
    attention weights is not made."""

    def __init__(self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1,
                 activation: Activation = "relu", layer_norm_eps: float = 1e-5, batch_first: bool = False,
                 norm_first: bool = False, bias: bool = True, device: Any = None, dtype: Any = None, *,
                 causal: bool = False, generator: Generator | None = None):
        self._make(("self_attn",), d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first,
                   norm_first, bias, device, dtype, causal, generator)

    def forward(self, src: Tensor, src_mask: Any = None, src_key_padding_mask: Any = None,
                is_causal: bool = False) -> Tensor:
        """The result, like `src`. The masks are those of MultiheadAttention: True where a step may not be seen."""
        x, masks = src, (src_mask, src_key_padding_mask, is_causal or self.causal)
        try:
            if self.norm_first:
                x = x + self._attention(self.norm1(x), *masks)
                return x + self._mlp(self.norm2(x))
            x = self.norm1(x + self._attention(x, *masks))
            return self.norm2(x + self._mlp(x))
        except ValueError:
            self._check("src", src)
            raise

    def _mlp(self, x):
        return self.dropout2(self._linears(x))


TransformerEncoderLayer = TransformerBlock                 # PyTorch's name
