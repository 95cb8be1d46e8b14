"""The wording of errors: functions that rearrange elements."""

import cygrad as cg


def x():
    return cg.zeros((2, 3))


CASES = [
    (lambda: cg.tile(x(), 1.5), TypeError,
     "tile: reps must be an integer or several, got 1.5"),
    (lambda: cg.tile(x(), (2, -1)), ValueError,
     "tile: reps is (2, -1); it must not be negative"),
    (lambda: cg.repeat(x(), [1.5], 0), TypeError,
     "repeat: repeats must be integers, got [1.5]"),
    (lambda: cg.repeat(x(), -1), ValueError,
     "repeat: repeats is -1; it must be at least 0"),
    (lambda: cg.repeat(x(), [1, 2, 3], 0), ValueError,
     "repeat: 3 numbers of repeats for 2 slices; there must be one for each"),
    (lambda: cg.roll(x(), (1, 2), (0, 1, 1)), ValueError,
     "roll: shift has 2 numbers and axis has 3; there must be one for each"),
    (lambda: cg.moveaxis(x(), (0, 0), (0, 1)), ValueError,
     "moveaxis: duplicate axis 0 in (0, 0)"),
    (lambda: cg.moveaxis(x(), 0, (0, 1)), ValueError,
     "moveaxis: source has 1 axes and destination has 2; there must be as many"),
    (lambda: cg.rot90(x(), axes=(0,)), ValueError,
     "rot90: axes is (0,); it must be two axes"),
    (lambda: cg.fliplr(cg.zeros(3)), ValueError,
     "fliplr needs a tensor with at least 2 dimensions, got shape (3,)"),
    (lambda: cg.flipud(cg.tensor(1.0)), ValueError,
     "flipud needs a tensor with at least 1 dimension, got shape ()"),
    (lambda: cg.broadcast_arrays(x(), cg.zeros(3), cg.zeros((2, 4))), ValueError,
     "broadcast_arrays: tensor 2 has shape (2, 4), those before it (2, 3); from the last dimension on, sizes must be "
     "equal or 1"),
    (lambda: cg.meshgrid(x()), ValueError,
     "meshgrid: tensor 0 has shape (2, 3); each must be a vector"),
    (lambda: cg.meshgrid(cg.zeros(2), indexing="yx"), ValueError,
     "meshgrid: indexing must be 'xy' or 'ij', got 'yx'"),
    (lambda: cg.vstack([]), ValueError,
     "vstack needs at least one tensor, got none"),
    (lambda: cg.r_[()], ValueError, "r_ and c_ need something to join, got nothing between the brackets"),
    (lambda: cg.r_["r", cg.zeros(2)], ValueError,
     "r_ and c_ take a text of one to three integers, \"axis,ndim,place\", got 'r'; there is no class of matrices"),
    (lambda: cg.r_[1:], ValueError,
     "r_ and c_: a range needs an end, as in start:stop, got slice(1, None, None)"),
]
