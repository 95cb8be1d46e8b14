"""Losses. Each is an operator or a function of cygrad as a module; its docstring has the formula and the shapes.

With reduction="mean" the result is the mean of the losses of all elements (rows, for losses over classes), with "sum"
their sum, and with "none" there is one loss for each. PyTorch's size_average= and reduce= do not exist."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from cygrad.core.errors import described
from cygrad.core.graph.tensor import Tensor
from cygrad.core.interop.numpy import asarray
from cygrad.nn.module import Module
from cygrad.ops.losses import ctc, distances, entropy, likelihoods, loss, margins

Reduction = Literal["mean", "sum", "none"]
REDUCTIONS = ("mean", "sum", "none")


class Loss(Module):
    """The base of losses: it has the reduction."""

    _shown: tuple[str, ...] = ("reduction",)
    _reductions: tuple[str, ...] = REDUCTIONS

    def __init__(self, *, reduction: Any = "mean"):
        if reduction not in self._reductions:
            names = ", ".join(f'"{name}"' for name in self._reductions)
            raise ValueError(f"{type(self).__name__}: reduction must be one of {names}, got {described(reduction)}")
        self.reduction = reduction

    def _take_weight(self, name: str, weight: Any) -> None:
        """Make a weight a buffer, so that it is part of the state_dict."""
        self.register_buffer(name, None if weight is None else asarray(weight).detach())


class MSELoss(Loss):
    """(x - target)^2"""

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        """The mean squared error."""
        return loss.mse(x, target, self.reduction)


class L1Loss(Loss):
    """|x - target|"""

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        """The mean absolute error."""
        return distances.l1_loss(x, target, self.reduction)


class SmoothL1Loss(Loss):
    """d^2 / (2 beta) for d = |x - target| < beta, else d - beta / 2"""

    _shown = "reduction", "beta"

    def __init__(self, *, reduction: Reduction = "mean", beta: float = 1.0):
        super().__init__(reduction=reduction)
        self.beta = beta

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        """The smooth L1 loss."""
        return distances.smooth_l1_loss(x, target, self.reduction, self.beta)


class HuberLoss(Loss):
    """d^2 / 2 for d = |x - target| < delta, else delta (d - delta / 2)"""

    _shown = "reduction", "delta"

    def __init__(self, *, reduction: Reduction = "mean", delta: float = 1.0):
        super().__init__(reduction=reduction)
        self.delta = delta

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        """The Huber loss."""
        return distances.huber_loss(x, target, self.reduction, self.delta)


class CrossEntropyLoss(Loss):
    """-log(softmax(x)[target]) over the classes, axis 1 of x (axis 0 without a batch). `target` has class indices, or
    probabilities of x's shape. `weight`: a factor for each class; it is a buffer. Rows of the class ignore_index do not
    count. With label_smoothing e the target is (1 - e) target + e / classes."""

    weight: Tensor | None

    _shown = "ignore_index", "reduction", "label_smoothing"

    def __init__(self, weight: Any = None, *, ignore_index: int = -100, reduction: Reduction = "mean",
                 label_smoothing: float = 0.0):
        super().__init__(reduction=reduction)
        self._take_weight("weight", weight)
        self.ignore_index, self.label_smoothing = ignore_index, label_smoothing

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        """The cross entropy of the scores `x`."""
        return entropy.cross_entropy(x, target, self.weight, self.ignore_index, self.reduction, self.label_smoothing)


class LinearCrossEntropyLoss(Loss):
    """CrossEntropyLoss of a linear layer: x is (N, in_features), target has class indices (N,). The scores are computed
    in chunks of rows and never stored together.

    linear   the layer, whose weight is (num_classes, in_features), without a bias unless bias=True

    Rows of the class ignore_index do not count. PyTorch's out_features=, weight= and options= do not exist; `chunk` is
    the number of rows in a chunk; linear_cross_entropy says what the default is."""

    _shown = "ignore_index", "reduction", "label_smoothing"

    def __init__(self, in_features: int, num_classes: int, *, bias: bool = False, device: Any = None, dtype: Any = None,
                 reduction: Reduction = "mean", ignore_index: int | None = None, label_smoothing: float = 0.0,
                 chunk: int | None = None, generator: Any = None):
        from cygrad.nn.linear import Linear

        super().__init__(reduction=reduction)
        self.linear = Linear(in_features, num_classes, bias, device, dtype, generator=generator)
        self.ignore_index = -100 if ignore_index is None else ignore_index
        self.label_smoothing, self.chunk = label_smoothing, chunk

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        """The cross entropy of the linear layer's scores."""
        from cygrad.ops.losses.linear_entropy import linear_cross_entropy

        return linear_cross_entropy(x, self.linear.weight, target, self.linear.bias, ignore_index=self.ignore_index,
                                    reduction=self.reduction, label_smoothing=self.label_smoothing, chunk=self.chunk)

    def _flops(self, x, target, *, y):
        return 2 * np.shape(x)[0] * self.linear.weight.size


class NLLLoss(Loss):
    """-x[target] over the classes, for log-probabilities x, such as those of LogSoftmax. See CrossEntropyLoss."""

    weight: Tensor | None

    _shown = "ignore_index", "reduction"

    def __init__(self, weight: Any = None, *, ignore_index: int = -100, reduction: Reduction = "mean"):
        super().__init__(reduction=reduction)
        self._take_weight("weight", weight)
        self.ignore_index = ignore_index

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        """The negative log-likelihood."""
        return entropy.nll_loss(x, target, self.weight, self.ignore_index, self.reduction)


class KLDivLoss(Loss):
    """target (log(target) - x), for log-probabilities x; with log_target, `target` has log-probabilities too. The mean
    is that of all elements; reduction="batchmean" divides the sum by the size of the batch, which is the divergence."""

    _shown = "reduction", "log_target"
    _reductions = (*REDUCTIONS, "batchmean")

    def __init__(self, *, reduction: Literal["mean", "sum", "none", "batchmean"] = "mean", log_target: bool = False):
        super().__init__(reduction=reduction)
        self.log_target = log_target

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        """The divergence."""
        return likelihoods.kl_div(x, target, self.reduction, self.log_target)


class BCELoss(Loss):
    """-(target log(x) + (1 - target) log(1 - x)), for probabilities x; logarithms are at least -100. `weight`: a factor
    for each element; it is a buffer."""

    weight: Tensor | None

    def __init__(self, weight: Any = None, *, reduction: Reduction = "mean"):
        super().__init__(reduction=reduction)
        self._take_weight("weight", weight)

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        """The binary cross entropy of the probabilities `x`."""
        return likelihoods.binary_cross_entropy(x, target, self.weight, self.reduction)


class BCEWithLogitsLoss(Loss):
    """BCELoss of sigmoid(x), computed without overflow. `weight`: a factor for each element; `pos_weight`: one for
    positive targets, by class. They are buffers."""

    weight: Tensor | None
    pos_weight: Tensor | None

    def __init__(self, weight: Any = None, *, reduction: Reduction = "mean", pos_weight: Any = None):
        super().__init__(reduction=reduction)
        self._take_weight("weight", weight)
        self._take_weight("pos_weight", pos_weight)

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        """The binary cross entropy of the scores `x`."""
        return likelihoods.binary_cross_entropy_with_logits(x, target, self.weight, self.reduction, self.pos_weight)


class GaussianNLLLoss(Loss):
    """(log(v) + (x - target)^2 / v) / 2 with v = max(var, eps), plus log(2 pi) / 2 if `full`"""

    _shown = "full", "eps", "reduction"

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: Reduction = "mean"):
        super().__init__(reduction=reduction)
        self.full, self.eps = full, eps

    def forward(self, x: Tensor, target: Tensor, var: Tensor) -> Tensor:
        """The negative log-likelihood of `target` under N(x, var)."""
        return likelihoods.gaussian_nll_loss(x, target, var, self.full, self.eps, self.reduction)


class PoissonNLLLoss(Loss):
    """exp(x) - target x, or with log_input=False x - target log(x + eps); `full` adds Stirling's approximation of
    log(target!)"""

    _shown = "log_input", "full", "eps", "reduction"

    def __init__(self, log_input: bool = True, full: bool = False, *, eps: float = 1e-8,
                 reduction: Reduction = "mean"):
        super().__init__(reduction=reduction)
        self.log_input, self.full, self.eps = log_input, full, eps

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        """The negative log-likelihood of counts."""
        return likelihoods.poisson_nll_loss(x, target, self.log_input, self.full, self.eps, self.reduction)


class SoftMarginLoss(Loss):
    """log(1 + exp(-target x)) for targets 1 and -1"""

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        """The logistic loss."""
        return likelihoods.soft_margin_loss(x, target, self.reduction)


class Margin(Loss):
    """The base of losses with a margin."""

    _shown: tuple[str, ...] = "margin", "reduction"

    def __init__(self, margin: float, *, reduction: Reduction = "mean"):
        super().__init__(reduction=reduction)
        self.margin = margin


class MarginRankingLoss(Margin):
    """max(0, -target (x1 - x2) + margin) for targets 1 and -1"""

    def __init__(self, margin: float = 0.0, *, reduction: Reduction = "mean"):
        super().__init__(margin, reduction=reduction)

    def forward(self, x1: Tensor, x2: Tensor, target: Tensor) -> Tensor:
        """The ranking loss."""
        return margins.margin_ranking_loss(x1, x2, target, self.margin, self.reduction)


class HingeEmbeddingLoss(Margin):
    """x for the target 1, max(0, margin - x) for the target -1"""

    def __init__(self, margin: float = 1.0, *, reduction: Reduction = "mean"):
        super().__init__(margin, reduction=reduction)

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        """The hinge loss of distances."""
        return margins.hinge_embedding_loss(x, target, self.margin, self.reduction)


class CosineEmbeddingLoss(Margin):
    """1 - cos(x1, x2) for the target 1, max(0, cos(x1, x2) - margin) for the target -1"""

    def __init__(self, margin: float = 0.0, *, reduction: Reduction = "mean"):
        super().__init__(margin, reduction=reduction)

    def forward(self, x1: Tensor, x2: Tensor, target: Tensor) -> Tensor:
        """The loss of cosines."""
        return margins.cosine_embedding_loss(x1, x2, target, self.margin, self.reduction)


class TripletMarginLoss(Margin):
    """max(0, d(anchor, positive) - d(anchor, negative) + margin) with the p-norm of the difference plus eps as the
    distance d; with `swap`, the second distance is the smaller one of anchor and positive to the negative"""

    _shown = "margin", "p", "eps", "swap", "reduction"

    def __init__(self, margin: float = 1.0, p: float = 2.0, eps: float = 1e-6, swap: bool = False, *,
                 reduction: Reduction = "mean"):
        super().__init__(margin, reduction=reduction)
        self.p, self.eps, self.swap = p, eps, swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        """The triplet loss."""
        return margins.triplet_margin_loss(anchor, positive, negative, self.margin, self.p, self.eps, self.swap,
                                           self.reduction)


class MultiMarginLoss(Margin):
    """sum over the other classes i of max(0, margin - x[target] + x[i])^p / classes. `weight`: a factor for each class;
    it is a buffer."""

    weight: Tensor | None

    _shown = "p", "margin", "reduction"

    def __init__(self, p: Literal[1, 2] = 1, margin: float = 1.0, weight: Any = None, *,
                 reduction: Reduction = "mean"):
        super().__init__(margin, reduction=reduction)
        self.p = p
        self._take_weight("weight", weight)

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        """The hinge loss of classes."""
        return margins.multi_margin_loss(x, target, self.p, self.margin, self.weight, self.reduction)


class MultiLabelMarginLoss(Loss):
    """sum over target classes j and other classes i of max(0, 1 - x[j] + x[i]) / classes; a row of `target` lists its
    classes up to the first negative number"""

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        """The hinge loss of sets of classes."""
        return margins.multilabel_margin_loss(x, target, self.reduction)


class MultiLabelSoftMarginLoss(Loss):
    """The mean of BCEWithLogitsLoss over the classes. `weight`: a factor for each class; it is a buffer."""

    weight: Tensor | None

    def __init__(self, weight: Any = None, *, reduction: Reduction = "mean"):
        super().__init__(reduction=reduction)
        self._take_weight("weight", weight)

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        """The binary cross entropy of each class."""
        return margins.multilabel_soft_margin_loss(x, target, self.weight, self.reduction)


class CTCLoss(Loss):
    """-log p(targets | log_probs), summed over all alignments with blanks (Graves et al. 2006). log_probs is (T, N,
    classes). The mean divides each loss by its target's length. With zero_infinity, impossible targets have the loss
    0."""

    _shown = "blank", "reduction", "zero_infinity"

    def __init__(self, blank: int = 0, *, reduction: Reduction = "mean", zero_infinity: bool = False):
        super().__init__(reduction=reduction)
        self.blank, self.zero_infinity = blank, zero_infinity

    def forward(self, log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any) -> Tensor:
        """The loss of sequences."""
        return ctc.ctc_loss(log_probs, targets, input_lengths, target_lengths, self.blank, self.reduction,
                            self.zero_infinity)
