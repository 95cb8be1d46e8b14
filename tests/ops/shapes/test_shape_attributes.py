"""The attributes of views, joins, indices and products: comparison, hashes, repr, pickling and checks. Unpickling
restores their C fields."""

import pickle

import numpy as np
import pytest

import cygrad as cg
from cygrad.core.execute.program import Program
from cygrad.core.execute.run import apply
from cygrad.core.graph.views import Window
from cygrad.ops.elementwise import base
from cygrad.ops.shapes import index, join, masks, shape, slices, window
from cygrad.ops.linalg import einsum, linalg
from cygrad.ops.layers import gradient

X = np.arange(24, dtype="float32").reshape(4, 6)
INDEX = ((1, 2, 2), 3, None)                        # [1:4:2, 3, None] of X
CASES = [
    (shape, "reshape", shape.Shape((2, 12)), [X], X.reshape(2, 12), "Shape(shape=(2, 12))"),
    (shape, "broadcast_to", shape.Shape((3, 4, 6)), [X], np.broadcast_to(X, (3, 4, 6)), "Shape(shape=(3, 4, 6))"),
    (shape, "permute", shape.Permutation((1, 0)), [X], X.T, "Permutation(axes=(1, 0))"),
    (shape, "expand_dims", shape.Dimensions(2), [X], X[:, None], "Dimensions(mask=2)"),
    (shape, "squeeze", shape.Dimensions(1), [X[:1]], X[0], "Dimensions(mask=1)"),
    (shape, "flip", shape.Dimensions(1), [X], X[::-1], "Dimensions(mask=1)"),
    (shape, "cast", shape.DType("int64"), [X], X.astype("int64"), "DType(dtype=dtype('int64'))"),
    (join, "concat", join.Parts(0, (0, 4, 6)), [X, X[:2]], np.concatenate([X, X[:2]]),
     "Parts(axis=0, starts=(0, 4, 6))"),
    (join, "stack", base.Axis(1), [X, X], np.stack([X, X], 1), "Axis(axis=1)"),
    (join, "split", join.Section(1, 2, 3), [X], X[:, 2:5], "Section(axis=1, start=2, count=3)"),
    (join, "pad", join.Margins(((1, 0), (0, 2)), 1.5, "float32"), [X],
     np.pad(X, ((1, 0), (0, 2)), constant_values=1.5), "Margins(widths=((1, 0), (0, 2)), value=1.5, dtype='float32')"),
    (join, "tril", join.Diagonal(-1), [X], np.tril(X, -1), "Diagonal(k=-1)"),
    (index, "take", index.Indexed(1, 1), [X, np.array([5, 0])], X[:, [5, 0]], "Indexed(axis=1, count=1)"),
    (index, "one_hot", index.Classes(3, "int32"), [np.array([2, 0])], np.eye(3, dtype="int32")[[2, 0]],
     "Classes(classes=3, dtype=dtype('int32'))"),
    (masks, "mask_put", masks.MaskDimensions(1), [X, X[:1], np.arange(4) == 2],
     np.concatenate([X[:2], X[:1], X[3:]]), "MaskDimensions(ndim=1)"),
    (slices, "getitem", slices.Slices(INDEX), [X], X[1:4:2, 3, None], "Slices(index=((1, 2, 2), 3, None))"),
    (slices, "put_slice", slices.Region((3,), slices.Slices(((2, -1, 2),))), [X[0, :2]], np.array([0, 1, 0]),
     "Region(shape=(3,), slices=Slices(index=((2, -1, 2),)))"),
    (slices, "put", slices.ArrayIndex(slices.Slices(((0, 1, 4), (0, 1, 6))), (1, 0), 0), [X, X[0], np.arange(6)[None]],
     None, "ArrayIndex(slices=Slices(index=((0, 1, 4), (0, 1, 6))), order=(1, 0), axis=0)"),
    (window, "as_view", Window((2, 2), (6, 1), 3), [X], X[:2, 3:5], "Window(shape=(2, 2), strides=(6, 1), offset=3)"),
    (einsum, "einsum", einsum.Contraction("ab", "cb", "ca"), [X, X], X @ X.T, "Contraction(x='ab', y='cb', z='ca')"),
    (linalg, "linear", linalg.Activation("relu"), [X, -X], np.maximum(X @ -X.T, 0), "Activation(activation='relu')"),
    (gradient, "scale_gradient", gradient.Factor(2.0), [X], X, "Factor(factor=2.0)"),
]


@pytest.mark.parametrize("module, name, attributes, inputs, wanted, printed", CASES, ids=[case[1] for case in CASES])
def test_attributes_are_values(module, name, attributes, inputs, wanted, printed):
    again = pickle.loads(pickle.dumps(attributes))
    assert again == attributes and hash(again) == hash(attributes) and again is not attributes
    assert repr(attributes) == printed
    if name == "put":                               # each column of every row gets X[0, column]
        inputs = [inputs[0], np.broadcast_to(X[:1].T, (6, 4)), inputs[2]]
        wanted = np.broadcast_to(X[0], (4, 6))
    for a in (attributes, again):
        y = apply(module.OPERATORS[name], *map(cg.tensor, inputs), attributes=a)
        assert np.array_equal(y.numpy(), wanted)


def test_attributes_that_differ():
    assert shape.Shape((2, 3)) != shape.Shape((3, 2)) and shape.Shape((2,)) != shape.Permutation((0,))
    assert join.Section(0, 1, 2) != join.Section(0, 1, 3)
    with pytest.raises(AttributeError):
        join.Diagonal(1).k = 2


@pytest.mark.parametrize("make, message", [
    (lambda: shape.Shape((1,) * 17), "a tensor has at most 16 dimensions"),
    (lambda: shape.Shape((-1,)), "a shape cannot have negative sizes"),
    (lambda: shape.Permutation(tuple(range(17))), "a tensor has at most 16 dimensions"),
    (lambda: slices.Slices((None,) * 17), "at most 16 dimensions, but this index would give 17"),
    (lambda: slices.Slices((0,) * 17), "an index has at most 16 dimensions, this one has more"),
    (lambda: slices.Region((2, 3), slices.Slices((0,))), "put_slice: the index is for 1 dimensions"),
    (lambda: slices.ArrayIndex(slices.Slices((None,)), (1,), 0), "put: order"),
    (lambda: Window((2,), (1, 1), 0), "a window must have a stride for each"),
    (lambda: einsum.Contraction("a", "b" * 17, "b" * 17), "einsum: a tensor has at most 16 dimensions"),
    (lambda: join.Margins(((0, 0),) * 17, 0, "float32"), "at most 16 dimensions"),
])
def test_attributes_are_checked(make, message):
    with pytest.raises((ValueError, IndexError), match=message):
        make()


@pytest.mark.parametrize("chosen", [[1, 1, 3], [1, 2, 3]], ids=["repeated", "once"])
def test_the_gradient_of_put_is_captured(chosen):
    """The indices of the run, not of the trace, decide which write to a position is the last."""
    x, v, indices = cg.zeros((4,)).attach_grad(), cg.ones((3,)).attach_grad(), cg.tensor([[2, 0, 2]])
    weights = cg.tensor([1.0, 2.0, 3.0, 4.0])

    def gradients():
        with cg.record():
            y = slices.put(x, v, indices, (((0, 1, 4),), None, 0))
            loss = (y * weights).sum()
        return cg.autograd.grad(loss, [x, v], create_graph=True)

    program = Program(gradients)
    indices[...] = cg.tensor([chosen])
    for ours, eager in zip(program.run(), gradients(), strict=True):
        assert ours.tolist() == eager.tolist()


def test_the_gradient_of_a_masked_write_is_captured():
    """The gradient of x reads the mask of the run. The number of true elements must not change."""
    x, mask = cg.zeros((2, 3)).attach_grad(), cg.tensor([[True, False, False], [False, True, False]])

    def gradient():
        with cg.record():
            y = masks.mask_put(x * 1, cg.ones((2,)), mask)
            loss = (y * y * y + 3 * y).sum()
        return cg.autograd.grad(loss, x, create_graph=True)

    program = Program(gradient)
    mask[...] = cg.tensor([[False, False, True], [False, True, False]])
    assert program.run().tolist() == gradient().tolist() == [[3, 3, 0], [3, 0, 3]]


def test_a_write_that_is_written_over_has_no_gradient():
    v = cg.ones((2,)).attach_grad()
    with cg.record():
        y = slices.put(cg.zeros((1,)), v, np.array([[0, 0]]), (((0, 1, 1),), None, 0))
    y.backward(cg.tensor([float("inf")]))
    assert v.grad.tolist() == [0, float("inf")]
