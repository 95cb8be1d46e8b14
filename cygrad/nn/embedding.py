"""Layers that look up rows: Embedding and EmbeddingBag."""

from __future__ import annotations

from typing import Any, Literal

from cygrad.core.errors import described
from cygrad.core.execute.generator import Generator
from cygrad.core.graph.tensor import Tensor
from cygrad.nn.factory import floating, size, source
from cygrad.nn.module import Module
from cygrad.nn.parameter import Parameter
from cygrad.ops.layers.embedding import embedding, embedding_bag


class RowLookup(Module):
    """A weight whose rows are looked up."""

    def __init__(self, num_embeddings, embedding_dim, padding_idx, device, dtype, generator):
        dtype = floating(self, device, dtype)
        self.num_embeddings = size(self, "num_embeddings", num_embeddings)
        self.embedding_dim = size(self, "embedding_dim", embedding_dim)
        self.padding_idx = self._padding(padding_idx)
        shape = self.num_embeddings, self.embedding_dim
        weight = source(generator).normal(shape, dtype=dtype)
        if self.padding_idx is not None: weight[self.padding_idx] = 0
        self.weight = weight.requires_grad_()

    def _padding(self, index):
        """padding_idx as an index from the start."""
        if index is None: return None
        if isinstance(index, bool) or not hasattr(index, "__index__"):
            raise TypeError(f"{type(self).__name__}: padding_idx must be an int or None, got {described(index)}")
        n, i = self.num_embeddings, index.__index__()
        if not -n <= i < n:
            raise ValueError(f"{type(self).__name__}: padding_idx {i} is out of range for {n} rows")
        return i % n

    @classmethod
    def from_pretrained(cls, embeddings: Any, freeze: bool = True, padding_idx: int | None = None,
                        **options: Any) -> Any:
        """A layer with the rows of `embeddings` (num_embeddings, embedding_dim) as its weight: a tensor becomes the
        weight itself, other data is copied. With `freeze` the weight is frozen. `options` are those of the layer, such
        as sparse=True. The row `padding_idx` is not set to zero."""
        weight = Parameter(embeddings, requires_grad=not freeze)
        if weight.ndim != 2 or not weight.size:
            raise ValueError(f"{cls.__name__}.from_pretrained: embeddings must be (rows, columns), got {weight.shape}")
        layer = cls(1, 1, dtype=weight.dtype, **options)
        layer.num_embeddings, layer.embedding_dim = weight.shape
        layer.padding_idx = layer._padding(padding_idx)
        layer.weight = weight
        return layer

    def extra_repr(self) -> str:
        """The sizes, and the options that are not the default."""
        options = [f"{name}={getattr(self, name)!r}" for name in self._shown if getattr(self, name)
                   or getattr(self, name) == 0 and name == "padding_idx"]
        return ", ".join([str(self.num_embeddings), str(self.embedding_dim), *options])


class Embedding(RowLookup):
    """The rows of a weight at `indices`: indices of any shape give (*shape, embedding_dim).

    weight   (num_embeddings, embedding_dim), from N(0, 1); the row padding_idx is zeros and gets no gradient

    With `sparse` the gradient is a GradientSlice of the rows that were looked up, which Sgd, Momentum, Adagrad and Adam
    take. PyTorch's max_norm, norm_type and scale_grad_by_freq do not exist. `dtype` is float32 or float64 (None: the
    default one). The numbers come from `generator` (None: the default one)."""

    _shown = "padding_idx", "sparse"

    def __init__(self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None, *, sparse: bool = False,
                 device: Any = None, dtype: Any = None, generator: Generator | None = None):
        super().__init__(num_embeddings, embedding_dim, padding_idx, device, dtype, generator)
        self.sparse = bool(sparse)

    def forward(self, indices: Tensor) -> Tensor:
        """The rows at `indices`."""
        return embedding(indices, self.weight, self.padding_idx, self.sparse)


class EmbeddingBag(RowLookup):
    """The sum, mean or maximum of the rows of a weight in each bag of indices: (bags, embedding_dim).

    weight   (num_embeddings, embedding_dim), from N(0, 1); the row padding_idx is zeros, gets no gradient, and does not
             count in a bag

    `indices` are (bags, n), or (n,) with `offsets`, the position at which each bag begins. With include_last_offset the
    offsets have one more entry at the end, the number of indices. An empty bag gives zeros. Other options as for
    Embedding."""

    _shown = "mode", "padding_idx", "sparse", "include_last_offset"

    def __init__(self, num_embeddings: int, embedding_dim: int, *, mode: Literal["sum", "mean", "max"] = "mean",
                 sparse: bool = False, include_last_offset: bool = False, padding_idx: int | None = None,
                 device: Any = None, dtype: Any = None, generator: Generator | None = None):
        if mode not in ("sum", "mean", "max"):
            raise ValueError(f"EmbeddingBag: mode must be \"sum\", \"mean\" or \"max\", got {described(mode)}")
        if sparse and mode == "max":
            raise ValueError("EmbeddingBag: with mode=\"max\" the gradient is a tensor; leave out sparse")
        super().__init__(num_embeddings, embedding_dim, padding_idx, device, dtype, generator)
        self.mode, self.sparse, self.include_last_offset = mode, bool(sparse), bool(include_last_offset)

    def forward(self, indices: Tensor, offsets: Tensor | None = None,
                per_sample_weights: Tensor | None = None) -> Tensor:
        """One row for each bag."""
        if self.include_last_offset and offsets is not None: offsets = offsets[:-1]
        return embedding_bag(indices, self.weight, offsets, self.mode, self.sparse, per_sample_weights,
                             self.padding_idx)
