"""Distances of two tensors: CosineSimilarity and PairwiseDistance."""

from __future__ import annotations

from cygrad.core.graph.tensor import Tensor
from cygrad.nn.factory import number
from cygrad.nn.module import Module
from cygrad.ops.losses.distances import cosine_similarity, pairwise_distance


class CosineSimilarity(Module):
    """x1 . x2 / (|x1| |x2|) along `axis`, where each norm is at least `eps`; x1 and x2 are broadcast. The result has
    one axis less. See cygrad.cosine_similarity."""

    _shown = "axis", "eps"

    def __init__(self, axis: int = 1, eps: float = 1e-8):
        self.axis, self.eps = axis, number(self, "eps", eps)

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """The cosines."""
        return cosine_similarity(x1, x2, self.axis, self.eps)


class PairwiseDistance(Module):
    """The `p`-norm of x1 - x2 + eps along the last axis; x1 and x2 are broadcast. With `keepdims` the result keeps that
    axis, of size 1. See cygrad.pairwise_distance."""

    _shown = "p", "eps", "keepdims"

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdims: bool = False):
        self.p, self.eps, self.keepdims = number(self, "p", p), number(self, "eps", eps), bool(keepdims)

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """The distances."""
        return pairwise_distance(x1, x2, self.p, self.eps, self.keepdims)
