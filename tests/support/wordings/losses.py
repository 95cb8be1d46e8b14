"""The wording of errors: losses other than cross_entropy and nll."""

import numpy as np

import cygrad as cg
from cygrad.ops.losses.criteria import Settings


def x():
    return cg.zeros((2, 3))


CASES = [
    (lambda: Settings("mean", 0, (), (0, 5)), ValueError,
     "a loss has up to 2 numbers, 4 operands from 0 to 3, and 2 variants; got (), (0, 5) and 0"),
    (lambda: cg.l1_loss(x(), x(), "batchmean"), ValueError,
     "l1_loss: reduction must be one of none, mean, sum; got 'batchmean'"),
    (lambda: cg.kl_div(x(), x(), "avg"), ValueError,
     "kl_div: reduction must be one of none, mean, sum, batchmean; got 'avg'"),
    (lambda: cg.kl_div(1.0, 1.0, "batchmean"), ValueError,
     "kl_div: x has no dimensions; \"batchmean\" needs a first dimension to divide by"),
    (lambda: cg.l1_loss(x(), cg.zeros(2)), ValueError,
     "l1_loss: shapes (2, 3) and (2,) do not broadcast; sizes 3 and 2 in dimension -1 must agree, or one of them must "
     "be 1"),
    (lambda: cg.huber_loss(x(), x(), delta=0), ValueError, "huber_loss: delta is 0; it must be above 0"),
    (lambda: cg.smooth_l1_loss(x(), x(), beta=-1), ValueError, "smooth_l1_loss: beta is -1; it must be at least 0"),
    (lambda: cg.huber_loss(x(), x(), delta="1"), TypeError, "huber_loss: delta must be a Python number, got str"),
    (lambda: cg.poisson_nll_loss(x(), x(), eps=-1e-8), ValueError,
     "poisson_nll_loss: eps is -1e-08; it must be at least 0"),
    (lambda: cg.gaussian_nll_loss(x(), x(), np.array([1, 1, -0.5])), ValueError,
     "gaussian_nll_loss: var has an element below 0; a variance must be at least 0"),
    (lambda: cg.gaussian_nll_loss(x(), x(), cg.ones((4, 3))), ValueError,
     "gaussian_nll_loss: var has shape (4, 3) and x has (2, 3); var must broadcast to the shape of x"),
    (lambda: cg.binary_cross_entropy(x() - 0.5, x()), ValueError,
     "binary_cross_entropy: x has an element outside of 0 to 1; wanted probabilities "
     "(binary_cross_entropy_with_logits takes logits)"),
    (lambda: cg.binary_cross_entropy(x(), cg.zeros(3)), ValueError,
     "binary_cross_entropy: x is (2, 3) and target is (3,); the shapes must be equal"),
    (lambda: cg.binary_cross_entropy_with_logits(x(), x(), pos_weight=cg.ones((2, 2, 3))), ValueError,
     "binary_cross_entropy_with_logits: pos_weight has shape (2, 2, 3) and x has (2, 3); pos_weight must broadcast to "
     "the shape of x"),
    (lambda: cg.triplet_margin_loss(x(), x(), x(), margin=0), ValueError,
     "triplet_margin_loss: margin is 0; it must be above 0"),
    (lambda: cg.triplet_margin_loss(x(), x(), cg.zeros(3)), ValueError,
     "triplet_margin_loss: anchor is (2, 3), positive is (2, 3) and negative is (3,); they must have as many "
     "dimensions"),
    (lambda: cg.cosine_embedding_loss(x(), x(), cg.ones((2, 1))), ValueError,
     "cosine_embedding_loss: x1 is (2, 3), x2 is (2, 3) and target is (2, 1); wanted x1 and x2 (n, features) and "
     "target (n,), or (features,) and a single target"),
    (lambda: cg.multi_margin_loss(x(), [0, 3]), IndexError,
     "multi_margin_loss: label 3 is not a class; the classes are 0 to 2"),
    (lambda: cg.multi_margin_loss(x(), [0, 1], p=3), ValueError, "multi_margin_loss: p is 3; it must be 1 or 2"),
    (lambda: cg.multi_margin_loss(x(), [0, 1, 2]), ValueError,
     "multi_margin_loss: x is (2, 3) and target is (3,); wanted x (n, classes) and target (n,), or one row of them"),
    (lambda: cg.multi_margin_loss(x(), cg.zeros(2)), TypeError,
     "multi_margin_loss: the target is float32; wanted integers"),
    (lambda: cg.multi_margin_loss(x(), [0, 1], weight=cg.ones(2)), ValueError,
     "multi_margin_loss: weight has shape (2,); it must have a number for each of the 3 classes"),
    (lambda: cg.multilabel_margin_loss(x(), [[3, -1, 0], [0, 1, 2]]), IndexError,
     "multilabel_margin_loss: label 3 is not a class; the classes are 0 to 2, and -1 ends the labels of a row"),
    (lambda: cg.multilabel_soft_margin_loss(1.0, 1.0), ValueError,
     "multilabel_soft_margin_loss: x has no dimensions; the last is that of the classes"),
]
