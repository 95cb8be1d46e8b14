"""The wording of errors: losses over classes."""

import numpy as np
import cygrad as cg
from wrong import labels_written_through_numpy

ROWS = "integers of the shape of x without its axis of classes, which is axis 1, or 0 if x has one axis"


def x(*shape):
    return cg.zeros(shape or (2, 3))


CASES = [
    (lambda: cg.cross_entropy(cg.zeros((3, 0)), np.array([-100] * 3)), ValueError,
     "cross_entropy: x is (3, 0), which has no classes; wanted at least one"),
    (lambda: cg.cross_entropy(cg.zeros((3, 0)), cg.zeros((3, 0))), ValueError,
     "cross_entropy: x is (3, 0), which has no classes; wanted at least one"),
    (lambda: cg.linear_cross_entropy(cg.zeros((3, 4)), cg.zeros((0, 4)), np.array([-100] * 3)), ValueError,
     "linear_cross_entropy: weight is (0, 4), which has no classes; wanted at least one"),
    (lambda: cg.cross_entropy(cg.zeros((1, 3)), np.array([2**64 - 100], "uint64")), IndexError,
     "cross_entropy: the label 18446744073709551516 is not a class"),
    (lambda: cg.cross_entropy(x(), cg.tensor([0, 1, 2])), ValueError,
     f"cross_entropy: x is (2, 3) and the target is (3,); wanted {ROWS}, or probabilities of the shape of x"),
    (lambda: cg.cross_entropy(x(), cg.tensor([0, 3])), IndexError,
     "cross_entropy: label 3 at index 1 is not a class; there are 3 classes, from 0 to 2"),
    (lambda: cg.cross_entropy(x(2, 3, 2), cg.tensor([[0, 2], [-1, 0]])), IndexError,
     "cross_entropy: label -1 at index (1, 0) is not a class; there are 3 classes, from 0 to 2"),
    (lambda: cg.cross_entropy(x(3), cg.tensor(5)), IndexError,
     "cross_entropy: label 5 at index () is not a class; there are 3 classes, from 0 to 2"),
    (lambda: cg.cross_entropy(x(), cg.tensor([0, 1]), ignore_index=2**70), ValueError,
     "cross_entropy: ignore_index is 1180591620717411303424; it must fit into 64 bits"),
    (lambda: cg.nll_loss(x(), cg.tensor([0, 1]), ignore_index=2**63), ValueError,
     "nll_loss: ignore_index is 9223372036854775808; it must fit into 64 bits"),
    (lambda: cg.linear_cross_entropy(x(), x(4, 3), cg.tensor([0, 1]), ignore_index=-2**63 - 1), ValueError,
     "linear_cross_entropy: ignore_index is -9223372036854775809; it must fit into 64 bits"),
    (lambda: cg.cross_entropy(x(), cg.tensor([0, 1]), reduction="max"), ValueError,
     "cross_entropy: reduction must be one of none, mean, sum; got 'max'"),
    (lambda: cg.cross_entropy(x(), cg.tensor([0, 1]), "sum"), TypeError,
     "cross_entropy: weight is 'sum'; pass the reduction by name, as reduction='sum'"),
    (lambda: cg.cross_entropy(x(), cg.tensor([0, 1]), cg.ones(2)), ValueError,
     "cross_entropy: weight is (2,); wanted a number for each of the 3 classes"),
    (lambda: cg.cross_entropy(x(), cg.tensor([0, 1]), cg.ones(3).attach_grad()), ValueError,
     "cross_entropy: weight requires a gradient, but the loss has none for it; pass weight.detach()"),
    (lambda: cg.cross_entropy(x(), cg.tensor([0, 1]), ignore_index=0.5), TypeError,
     "cross_entropy: ignore_index must be an integer, got 0.5"),
    (lambda: cg.cross_entropy(x(), cg.tensor([0, 1]), label_smoothing="much"), TypeError,
     "cross_entropy: label_smoothing must be a number, got 'much'"),
    (lambda: cg.cross_entropy(x(), cg.tensor([0, 1]), label_smoothing=1.5), ValueError,
     "cross_entropy: label_smoothing is 1.5; it must be from 0 to 1"),
    (lambda: cg.cross_entropy(cg.zeros((2, 3), dtype="int64"), cg.tensor([0, 1])), TypeError,
     "cross_entropy: x is int64; wanted a floating dtype"),
    (lambda: cg.cross_entropy(cg.tensor(1.0), cg.tensor(0)), ValueError,
     "cross_entropy: x is (); wanted (n, classes, ...) or (classes,)"),
    (lambda: cg.cross_entropy(x(), cg.tensor([0.0, 1.0])), TypeError,
     f"cross_entropy: the target is float32 of shape (2,) for x (2, 3); wanted {ROWS}, or probabilities of the shape "
     f"of x"),
    (lambda: cg.nll_loss(x(), cg.tensor([0])), ValueError,
     f"nll_loss: x is (2, 3) and the target is (1,); wanted {ROWS}"),
    (lambda: cg.nll_loss(x(), cg.tensor([-1, 0])), IndexError,
     "nll_loss: label -1 at index 0 is not a class; there are 3 classes, from 0 to 2"),
    (lambda: labels_written_through_numpy(), cg.InplaceError,
     "cross_entropy: label 10000000000 at index 0 was a class in forward but is not one now: the labels were modified "
     "since; pass a copy()"),
    (lambda: cg.linear_cross_entropy(x(), x(4, 2), cg.tensor([0, 1])), ValueError,
     "linear_cross_entropy: x is (2, 3) and weight is a float32 tensor of shape (4, 2); wanted x (..., n) and floating "
     "weight (classes, n)"),
    (lambda: cg.linear_cross_entropy(x(), x(4, 3), cg.tensor([0, 1]), x(3)), ValueError,
     "linear_cross_entropy: bias is a float32 tensor of shape (3,) and weight is (4, 3); wanted floating bias (4,)"),
    (lambda: cg.linear_cross_entropy(x(), x(4, 3), cg.tensor([0])), ValueError,
     "linear_cross_entropy: x is (2, 3) and the target is (1,); wanted integers of the shape of x without its last "
     "axis"),
    (lambda: cg.linear_cross_entropy(x(), x(4, 3), cg.tensor([0, 4])), IndexError,
     "linear_cross_entropy: label 4 at index 1 is not a class; there are 4 classes, from 0 to 3"),
    (lambda: cg.linear_cross_entropy(x(), x(4, 3), cg.tensor([0, 1]), chunk=0), ValueError,
     "linear_cross_entropy: chunk must be an integer of at least 1, got 0"),
]
CASES += [
    (lambda: cg.ctc_loss(x(3), [1], 3, 1), ValueError,
     "ctc_loss: log_probs is (3,); wanted (steps, samples, classes) or (steps, classes)"),
    (lambda: cg.ctc_loss(x(4, 2, 3), [[1], [3]], [4, 4], [1, 1]), IndexError,
     "ctc_loss: label 3 at index (1, 0) is not a class; there are 3 classes, from 0 to 2"),
    (lambda: cg.ctc_loss(x(4, 2, 3), [1, -1], [4, 4], [1, 1]), IndexError,
     "ctc_loss: label -1 at index 1 is not a class; there are 3 classes, from 0 to 2"),
    (lambda: cg.ctc_loss(x(4, 2, 3), [1, 2, 1], [4, 4], [1, 1]), ValueError,
     "ctc_loss: targets has shape (3,); wanted (2, longest target), or (2,) for all targets in a row, which is the sum "
     "of target_lengths"),
    (lambda: cg.ctc_loss(x(4, 2, 3), [[1], [2]], [4, 5], [1, 1]), ValueError,
     "ctc_loss: input_lengths[1] is 5; it must be from 0 to 4, the steps of log_probs"),
    (lambda: cg.ctc_loss(x(4, 2, 3), [[1], [2]], [4, 4], [1, 2]), ValueError,
     "ctc_loss: target_lengths[1] is 2; it must be from 0 to 1, the size of targets"),
    (lambda: cg.ctc_loss(x(4, 2, 3), [[1], [2]], [4], [1, 1]), ValueError,
     "ctc_loss: input_lengths has shape (1,); wanted one length for each of the 2 samples"),
    (lambda: cg.ctc_loss(x(4, 2, 3), [[1.0], [2.0]], [4, 4], [1, 1]), TypeError,
     "ctc_loss: targets must be integers, got [[1.0], [2.0]]"),
    (lambda: cg.ctc_loss(x(4, 2, 3), [[1], [2]], [4, 4], [1, 1], 3), ValueError,
     "ctc_loss: blank must be an integer from 0 to 2, got 3"),
]
