"""The wording of errors: integer arguments, and arguments of functions that are made of operators."""

import numpy as np

import cygrad as cg

LABELS = "the classes are 0 to 2, and -1 ends the labels of a row"


def x():
    return cg.zeros((2, 3))


def backward_of(f, value):
    """The backward pass of f(value).sum()."""
    v = cg.tensor(value).attach_grad()
    with cg.record(): y = f(v).sum()
    y.backward()


CASES = [
    # integers
    (lambda: cg.matrix_power(cg.eye(2), 1.5), TypeError, "matrix_power: n must be an integer, got 1.5"),
    (lambda: cg.matrix_power(cg.eye(2), True), TypeError, "matrix_power: n must be an integer, got True"),
    (lambda: cg.tensordot(x(), x(), 1.5), TypeError, "tensordot: axes must be an integer, got 1.5"),
    (lambda: cg.diagonal(x(), "a"), TypeError, "diagonal: offset must be an integer, got 'a'"),
    (lambda: cg.diag(cg.zeros(3), 2**63), ValueError,
     f"diag: the matrix would have {2**63 + 3} rows and columns; a tensor has at most <*> elements"),
    (lambda: cg.diag(x(), 1.5), TypeError, "diag: k must be an integer, got 1.5"),
    (lambda: cg.tril(x(), None), TypeError, "tril: k must be an integer, got None"),
    (lambda: cg.split(x(), 1.5), TypeError, "split: sections must be an integer, got 1.5"),
    (lambda: cg.split(x(), [1.5]), TypeError, "split: an index must be an integer, got 1.5"),
    (lambda: cg.hsplit(x(), "a"), TypeError, "hsplit: sections must be an integer, got 'a'"),
    (lambda: cg.array_split(x(), 2**40), ValueError,
     "array_split: sections is 1099511627776; it must be at most 2147483647"),
    (lambda: cg.array_split(x(), 0), ValueError, "array_split: sections is 0; it must be at least 1"),
    (lambda: cg.array_split(x(), 2**20_000), ValueError,
     "array_split: sections is an integer of 20001 bits; it must be at most 2147483647"),
    (lambda: cg.repeat(x(), 2**62), ValueError,
     f"repeat: the result would have the sizes (6, {2**62}); a tensor has at most <*> elements"),
    (lambda: cg.repeat(x(), [2**62, 2**62], 0), ValueError,
     f"repeat: the result would have the sizes ({2**63}, 3); a tensor has at most <*> elements"),
    (lambda: cg.tile(x(), 2**63), ValueError,
     f"tile: the result would have the sizes (2, {3 * 2**63}); a tensor has at most <*> elements"),
    (lambda: cg.topk(x(), 1.5), TypeError, "topk: k must be an integer, got 1.5"),
    (lambda: cg.diff(x(), "a"), TypeError, "diff: n must be an integer, got 'a'"),
    (lambda: cg.arange([2, 3]), TypeError, "arange: start, stop and step must be numbers, got (0, [2, 3], 1)"),
    (lambda: cg.eye(1.5), TypeError, "eye: n_rows must be an integer, got 1.5"),
    (lambda: cg.linspace(0, 1, 1.5), TypeError, "linspace: num must be an integer, got 1.5"),
    (lambda: cg.linspace(0, 1, -1), ValueError, "linspace: num is -1; it must be at least 0"),
    (lambda: cg.one_hot([1], None), TypeError, "one_hot: classes must be an integer, got None"),
    (lambda: cg.random.choice(2**63, 3), ValueError,
     "choice: a is 9223372036854775808; it must be at most 9223372036854775807"),
    (lambda: cg.random.choice(-1, 3), ValueError, "choice: a is -1; it must be at least 0"),
    (lambda: cg.random.choice(True, 2), ValueError,
     "choice: a must be an integer, or a tensor, array or list with rows, got True"),
    (lambda: cg.random.permutation(True), ValueError,
     "permutation: x must be an integer, or a tensor, array or list with rows, got True"),
    (lambda: cg.random.categorical(x(), axis=1.5), TypeError, "an axis must be an int, got 1.5"),
    (lambda: cg.max_pool1d(x(), np.array("a")), TypeError,
     "max_pool1d: kernel_size must be an integer or a tuple of integers, got a <U1 array of shape ()"),
    # shapes and numbers
    (lambda: cg.matrix_norm(cg.zeros((0, 3)), 2), ValueError,
     "matrix_norm: x is (0, 3); its empty matrices have no norm with ord 2"),
    (lambda: cg.matrix_norm(np.full((2, 2), np.nan), 2), np.linalg.LinAlgError,
     "matrix_norm: x: the iteration did not converge; nan and inf are a usual cause"),
    (lambda: cg.linalg.norm(cg.zeros((3, 0)), 1), ValueError,
     "linalg.norm: x is (3, 0); its empty matrices have no norm with ord 1"),
    (lambda: cg.matrix_power(cg.zeros((2, 2)), -1), np.linalg.LinAlgError,
     "matrix_power: x is singular: pivot 0 is zero"),
    (lambda: backward_of(cg.det, np.full((2, 2), np.nan)), np.linalg.LinAlgError,
     "backward of det: x: the iteration did not converge; nan and inf are a usual cause"),
    (lambda: backward_of(lambda v: cg.slogdet(v).logabsdet, np.zeros((2, 2))), np.linalg.LinAlgError,
     "backward of slogdet: x is singular: pivot 0 is zero"),
    (lambda: backward_of(lambda v: cg.qr(v).R, np.zeros((2, 2))), np.linalg.LinAlgError,
     "backward of qr: x is singular: pivot 0 is zero"),
    (lambda: cg.cross(x(), cg.zeros((3, 3))), ValueError,
     "cross: shapes (2, 3) and (3, 3) do not broadcast; sizes 2 and 3 in dimension -2 must agree, or one of them must "
     "be 1"),
    (lambda: cg.vecdot(x(), cg.zeros((3, 3))), ValueError,
     "vecdot: shapes (2, 3) and (3, 3) do not broadcast; <*>"),
    (lambda: cg.cosine_similarity(x(), cg.zeros(2)), ValueError,
     "cosine_similarity: shapes (2, 3) and (2,) do not broadcast; <*>"),
    (lambda: cg.pairwise_distance(x(), cg.zeros(2)), ValueError,
     "pairwise_distance: shapes (2, 3) and (2,) do not broadcast; <*>"),
    (lambda: cg.pairwise_distance(cg.zeros((3, 0)), cg.zeros((3, 0)), float("inf")), ValueError,
     "pairwise_distance: p is inf and x1 - x2 has shape (3, 0); p must be a number, and the last size at least 1 if it "
     "is infinite"),
    (lambda: cg.pairwise_distance(x(), x(), "2"), TypeError, "pairwise_distance: p must be a Python number, got str"),
    (lambda: cg.pairwise_distance(x(), x(), 10**400), ValueError,
     f"pairwise_distance: p is an integer of {(10**400).bit_length()} bits; it must fit float64"),
    (lambda: cg.mse(x(), cg.zeros(2)), ValueError, "mse: shapes (2, 3) and (2,) do not broadcast; <*>"),
    (lambda: cg.margin_ranking_loss(x(), x(), cg.zeros(2)), ValueError,
     "margin_ranking_loss: shapes (2, 3) and (2,) do not broadcast; <*>"),
    (lambda: cg.triplet_margin_loss(x(), x(), cg.zeros((4, 3))), ValueError,
     "triplet_margin_loss: shapes (2, 3) and (4, 3) do not broadcast; <*>"),
    (lambda: cg.triplet_margin_loss(x(), x(), x(), None), TypeError,
     "triplet_margin_loss: margin must be a Python number, got NoneType"),
    (lambda: cg.cosine_embedding_loss(x(), x(), cg.zeros(3)), ValueError,
     "cosine_embedding_loss: shapes (2, 3) and (3, 1) do not broadcast; <*>"),
    (lambda: cg.hinge_embedding_loss(x(), x(), "a"), TypeError,
     "hinge_embedding_loss: margin must be a Python number, got str"),
    (lambda: cg.multilabel_margin_loss(x(), [[0, -2, 0], [0, 1, 2]]), IndexError,
     f"multilabel_margin_loss: label -2 is not a class; {LABELS}"),
    (lambda: cg.multilabel_margin_loss(x(), [[0, -1, 3], [0, 1, 2]]), IndexError,
     f"multilabel_margin_loss: label 3 is not a class; {LABELS}"),
    (lambda: cg.multi_margin_loss(x(), np.array([0, 2**64 - 3], "uint64")), IndexError,
     f"multi_margin_loss: label {2**64 - 3} is not a class; the classes are 0 to 2"),
    (lambda: cg.ctc_loss(cg.zeros((4, 2, 0)), [[0], [0]], [4, 4], [1, 1]), ValueError,
     "ctc_loss: log_probs is (4, 2, 0); wanted at least one class, the blank"),
    (lambda: cg.ctc_loss(cg.zeros((4, 0)), [0], [4], [1]), ValueError,
     "ctc_loss: log_probs is (4, 0); wanted at least one class, the blank"),
    (lambda: cg.clip(cg.zeros((2, 3), "int64"), cg.zeros(2)), ValueError,
     "clip: shapes (2, 3) and (2,) do not broadcast; <*>"),
    (lambda: cg.smooth_l1_loss(x(), x(), "avg", 0), ValueError,
     "smooth_l1_loss: reduction must be one of none, mean, sum; got 'avg'"),
    (lambda: cg.binary_cross_entropy_with_logits(x(), x(), reduction="avg"), ValueError,
     "binary_cross_entropy_with_logits: reduction must be one of none, mean, sum; got 'avg'"),
    (lambda: cg.take_along_axis(x(), [[0], [3]], 1), IndexError,
     "take_along_axis: index 3 is out of range for a dimension of size 3"),
    (lambda: cg.take_along_axis(x(), cg.zeros((3, 1), "int64"), 1), ValueError,
     "take_along_axis: indices has shape (3, 1) and x has (2, 3); except in dimension 1, sizes must be equal or 1"),
    (lambda: cg.index_add(x(), 0, [2], cg.zeros((1, 3))), IndexError,
     "index_add: index 2 is out of range for a dimension of size 2"),
    (lambda: cg.nan_to_num(x(), "a"), TypeError, "nan_to_num: nan must be a number, got 'a'"),
    (lambda: cg.isclose(x(), x(), None), TypeError, "isclose: rtol must be a number, got None"),
    (lambda: cg.quantile(x(), "a"), TypeError, "quantile: q must be numbers, got 'a'"),
    (lambda: cg.diff(x(), append=cg.zeros(2)), ValueError,
     "diff: append has shape (2,) and x has (2, 3); only the sizes of dimension 1 may differ"),
    (lambda: cg.vstack(cg.tensor(1.0)), TypeError,
     "vstack: xs must be a sequence of tensors, got a float32 tensor of shape ()"),
    (lambda: cg.dstack(cg.zeros((0, 3))), ValueError, "dstack needs at least one tensor, got none"),
]
