"""Tensors that wait for their shape. Layers are what makes them."""

import copy
import operator
import pickle
import weakref

import numpy as np
import pytest

import cygrad as cg
from cygrad import nn
from cygrad.core.dtypes import dtype_number
from cygrad.core.graph.unreadable import Unreadable
from cygrad.core.graph.waiting import WaitingTensor, give_shapes, is_waiting, new_waiting, shaped, waiting, write_later
from tests.core.graph.test_freed import USES


def new(shape=(2, None)):
    return new_waiting("Linear.weight", shape, dtype_number("float32")).requires_grad_()


def give(*pairs):
    give_shapes(shaped(list(pairs)))


# What concerns the role of a tensor, and what another test has.
WORKS = {"copy", "deepcopy", "dumps", "grad", "grad =", "attach_grad", "in a solver", "dtype", "ndim", "version",
         "grad_req"}
KNOWN = {"shape", "size", "nbytes"}


@pytest.mark.parametrize("name", [name for name in USES if name not in WORKS])
def test_every_use_of_the_elements_raises_and_says_so(name):
    """Also if all sizes are known: then the shape can be read."""
    for x, shape in ((new(), r"\?"), (new((2, 2)), "2")):
        if name in KNOWN and shape == "2":
            assert USES[name](x) == {"shape": (2, 2), "size": 4, "nbytes": 16}[name]
            continue
        with pytest.raises(RuntimeError, match=rf"^Linear.weight, of shape \(2, {shape}\), has no values yet, because "
                           "the input size of its layer is unknown; call the model once on an example, or load a"):
            USES[name](x)


def test_slots():
    """Every slot of Tensor is refused or defined (test_freed)."""
    assert WaitingTensor.__mro__[1:3] == (Unreadable, cg.Tensor)
    assert WaitingTensor.__basicsize__ == cg.Tensor.__basicsize__
    with pytest.raises(TypeError, match="Tensor is not instantiated"): WaitingTensor()


def test_what_can_be_asked():
    x = new()
    assert isinstance(x, cg.Tensor) and isinstance(x, nn.Parameter) and is_waiting(x) and x in {x}
    assert repr(x) == str(x) == "<Linear.weight of shape (2, ?), float32, requires_grad=True, which waits for its size>"
    assert repr(new((3,)).drop_grad()) == "<Linear.weight of shape (3,), float32, which waits for its size>"
    assert x.dtype == cg.float32 and x.ndim == 2 and x.requires_grad and x.is_leaf and x.grad_fn is None
    assert x.grad is None and not x.fresh_grad and x.grad_req == "add" and x.version == 0
    assert "attach_grad" in dir(x) and "numpy" not in dir(x)
    with pytest.raises(AttributeError, match="a tensor has no data: use detach"): _ = x.data
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"): _ = x.nonsense
    with pytest.raises(RuntimeError, match="has no values yet"): x.grad = cg.ones((2, 2))
    with pytest.raises(RuntimeError, match="has no values yet"): x.fresh_grad = True
    with pytest.raises(RuntimeError, match="has no values yet"): x.attach_grad(stype="row_sparse")
    with pytest.raises(RuntimeError, match="has no values yet"): x.copy_(cg.ones((2, 2)))
    ref = weakref.ref(x)
    del x
    assert ref() is None


def test_it_becomes_an_ordinary_tensor_in_place():
    x, calls = new(), []
    x.attach_grad("write")
    x.register_hook(lambda g: calls.append(g.tolist()))
    view, grad, before = x.detach(), x.grad, cg.memory.stats()["live_bytes"]
    assert is_waiting(view) and is_waiting(grad) and "the gradient of Linear.weight" in repr(grad)
    give((x, nn.Parameter(cg.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]))))
    assert type(x) is type(view) is type(grad) is cg.Tensor
    assert cg.memory.stats()["live_bytes"] == before + 24
    assert cg.memory.stats()["by_category"]["parameters"] >= 24
    assert x.tolist() == view.tolist() == [[1, 2, 3], [4, 5, 6]] and x.grad is grad and grad.tolist() == [[0] * 3] * 2
    assert x.requires_grad and not view.requires_grad and x.grad_req == "write"
    with cg.record(): y = (x * x).sum()
    y.backward()
    assert x.grad.tolist() == [[2, 4, 6], [8, 10, 12]] == calls[0] and x.grad is grad
    view.fill_(0)
    assert x.version == 1 and x.tolist() == [[0] * 3] * 2


def test_a_frozen_one_and_one_that_dies_before():
    x, y = new().drop_grad(), new()
    view = y.detach()
    give((x, nn.Parameter(cg.ones((2, 1)))))
    assert not x.requires_grad and x.tolist() == [[1], [1]]
    pairs = [(y, nn.Parameter(cg.ones((2, 1))))]
    found = shaped(pairs)
    del y, pairs
    give_shapes(found)
    assert view.tolist() == [[1], [1]]


def test_writes_are_done_in_the_order_of_the_calls():
    x, y, seen = new(), new((2,)), []
    write_later(x, lambda z: seen.append(("x", z.tolist())))
    y.fill_(3)
    x.fill_(2)
    write_later(y, lambda z: seen.append(("y", z.tolist())))
    x[...] = 5
    x.detach()[:] = 7.0
    write_later(x, lambda z: seen.append(("x", z.tolist())))
    with pytest.raises(TypeError, match="fill_ takes a number, got str"): x.fill_("a")
    with pytest.raises(RuntimeError, match="has no values yet"): x[0] = 1
    with cg.record(), pytest.raises(cg.InplaceError, match="a leaf variable, Linear.weight, cannot be written in pl"):
        x.fill_(1)
    give((y, cg.ones(2)), (x, cg.ones((2, 1))))
    assert seen == [("x", [[1], [1]]), ("y", [3, 3]), ("x", [[7], [7]])] and x.tolist() == [[7], [7]]


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies(again):
    x = new().attach_grad("write")
    x.fill_(4)
    y = again(x)
    assert is_waiting(y) and y is not x and y.grad_req == "write" and is_waiting(y.grad) and repr(y) == repr(x)
    y[...] = 5
    give((x, nn.Parameter(cg.ones((2, 1)))))
    assert is_waiting(y)
    give((y, nn.Parameter(cg.ones((2, 2)))))
    assert x.tolist() == [[4], [4]] and y.tolist() == [[5, 5]] * 2 and y.grad.tolist() == [[0, 0]] * 2
    assert not is_waiting(again(x))


@pytest.mark.parametrize("n", (1, 2, 3, 4))
def test_nothing_changes_if_an_allocation_fails(n):
    x = new().attach_grad()
    solver = cg.optim.Adam([x])
    y = nn.Parameter(cg.ones((2, 1)))
    with cg.testing.fail_allocation(n) as failure:
        try: found = shaped([(x, y)])
        except MemoryError: assert is_waiting(x) and is_waiting(x.grad)
        else: give_shapes(found)
    assert failure.failed == is_waiting(x) == (n < 3)
    if n >= 3: assert [s.tolist() for s in solver.get_states()["0"].pstate.values()] == [[[0], [0]]] * 2


def test_a_scope_frees_what_got_its_shape_in_it():
    with cg.memory.scope() as s:
        x, y, z = new(), new(), s.keep(new())
        give((x, cg.ones((2, 1))), (z, cg.ones((2, 1))))
    assert is_waiting(y) and z.tolist() == [[1], [1]]
    with pytest.raises(RuntimeError, match="was freed"): x.numpy()
    assert waiting(y).name == "Linear.weight"
    with cg.memory.scope():
        give((y, cg.ones((2, 1))))
    assert y.tolist() == [[1], [1]]


def test_another_dtype_is_refused():
    with pytest.raises(TypeError, match="Linear.weight waits for a contiguous float32 tensor, got float64"):
        shaped([(new(), cg.ones((2, 1), dtype="float64"))])


def test_a_function_of_the_user():
    class Same(cg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, g):
            return g

    with cg.record(), pytest.raises(RuntimeError, match="Linear.weight, .* has no values yet"): Same.apply(new())


def test_operators_with_arrays():
    for f in (operator.add, operator.mul, operator.matmul):
        with pytest.raises(RuntimeError, match="has no values yet"): f(np.ones((2, 2)), new())
