"""The wording of every error: what was wanted, what came and what to do.

`test_every_raise_is_tested` reads the raise statements of all files, so an error without a case here fails."""

import copy
import ctypes
import hashlib
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from capsules import Exporter, Speaking

import cygrad as cg
from cygrad.core.pickling import load_tensor
from cygrad.core.replay import Replay
from cygrad.random import Generator
from cygrad.testing import assert_no_leak, fail_allocation, gradcheck

def VARIABLE():
    return cg.tensor([1.0, 2.0]).attach_grad()


def RESULT():
    x = VARIABLE()
    with cg.record():
        return x * x


def recording(f):
    with cg.record():
        return f()


def set_grad(x, value):
    x.grad = value


def written_after_it_was_kept():
    x, w = VARIABLE(), VARIABLE()
    with cg.record():
        y = x * w
    w += 1
    w += 1
    y.backward()


def write_to_a_detached():
    y = RESULT()
    with cg.record():
        z = y.detach()
        z += y


def write_to_a_part_of_steps():
    p, x = cg.asarray(np.zeros((4, 2), "float32")[:, 0]), VARIABLE()
    with cg.record():
        p[1:3] += x


def hooked(value):
    x = VARIABLE()
    x.register_hook(lambda g: value)
    with cg.record():
        y = x * x
    y.backward()


def node_hooked(before, value):
    y = RESULT()
    (y.grad_fn.register_prehook if before else y.grad_fn.register_hook)(lambda *gs: value)
    y.backward()


def function(forward=None, backward=None, *inputs):
    class Own(cg.autograd.Function):
        pass

    if forward: Own.forward = staticmethod(forward)
    if backward: Own.backward = staticmethod(backward)
    with cg.record():
        y = Own.apply(*(inputs or (VARIABLE(),)))
    y.backward()


def save_and_free(ctx, x):
    y = x * 1
    ctx.save_for_backward(y)
    y.free()
    return x * 2


def two_dtypes(ctx, x):
    return x * 1, x.astype("float64")


def saved_outside():
    kept = []
    y = None

    class Own(cg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            kept.append(ctx)
            return x * 1

    with cg.record():
        y = Own.apply(VARIABLE())
    ctx = kept.pop()
    del y
    return ctx.saved_tensors


def packed(pack, unpack):
    x = VARIABLE()
    with cg.autograd.saved_tensors_hooks(pack, unpack), cg.record():
        y = cg.exp(x)
    y.backward()


def nan():
    x = cg.zeros(1).attach_grad()
    with cg.autograd.detect_anomaly(), cg.record():
        y = (x * 0) ** 0.5 * 0
        y.backward()


def closed_collector():
    with cg.GradientCollector() as gc:
        pass
    gc.backward(RESULT())


def other_mode():
    x = VARIABLE()
    with cg.record():
        y = cg.dropout(x, 0.5)
    y.backward(train_mode=False)


def two_collectors():
    with cg.GradientCollector():
        cg.GradientCollector()


def collector_of_another_thread():
    with cg.GradientCollector() as gc, ThreadPoolExecutor(1) as pool:
        pool.submit(gc.close).result()


def profiled():
    with cg.memory.profile() as p:
        return p


def profile_twice():
    with cg.memory.profile() as p, p:
        pass


def limited():
    with cg.memory.limit(0):
        cg.zeros((4096, 4096))


def in_two_passes_at_once():
    y, errors = RESULT(), []

    def listen(event):                              # called by every allocation, so also in the middle of a pass
        if not errors and y.grad_fn is not None:
            errors.append(None)
            try:
                y.backward(retain_graph=True)
            except RuntimeError as e:
                errors[0] = str(e)
            else:
                errors.clear()

    head = cg.ones(2)
    with cg.memory.events(listen):
        y.backward(head)
    raise RuntimeError(errors[0])


def view_of_a_leaf():
    x = VARIABLE()
    with cg.record():
        x[:1].fill_(0)


def own_gradient():
    x = VARIABLE()
    x.grad = x


def labels_written_through_numpy():
    x, labels = cg.ones((2, 3)).attach_grad(), cg.tensor([0, 1])
    with cg.record():
        loss = cg.cross_entropy(x, labels)
    labels.numpy()[0] = 10**10
    loss.backward()


def kept_index(values):
    x, index = cg.ones(2).attach_grad(), cg.tensor(values)
    with cg.record():
        y = x[index]
    index.numpy()[:] = 2**40
    return y


def twice_in_a_solver():
    x = VARIABLE()
    cg.optim.Sgd().set_parameters({"a": x, "b": x})


def graph_into_a_given_buffer():
    x = cg.tensor([1.0, 2.0])
    cg.mark_variables(x, cg.zeros(2))
    with cg.record():
        y = x * x
    y.backward(create_graph=True)


def backward_twice():
    y = RESULT()
    y.backward()
    y.backward()


def failing_allocation():
    with fail_allocation(1):
        cg.zeros(2)


def nested_failures():
    with fail_allocation(2), fail_allocation(1):
        pass


def counting():
    calls = []

    def f(x):
        calls.append(x.shape)
        return x * len(calls)

    return f


def freed():
    x = cg.zeros(2)
    x.free()
    return x


def free_what_is_lent():
    x = cg.zeros(2)
    a = x.numpy()
    x.free()
    return a


def free_a_gradient():
    x = VARIABLE()
    x.grad.free()


def entered_twice():
    with cg.memory.scope() as s, s:
        pass


def without_shape():
    e = Exporter()
    e.managed.inner.shape = None
    return e


def leaking():
    with assert_no_leak():
        x = cg.zeros(2)
    return x


CASES = [
    (lambda: cg.Tensor([1.0]), TypeError,
     "a Tensor is made by cygrad.tensor(data), asarray, zeros, ones and their like"),
    (lambda: cg.zeros(2, dtype="nonsense"), TypeError,
     "'nonsense' is not a dtype; cygrad has <*>"),
    (lambda: cg.zeros(2, dtype="float16"), TypeError,
     "cygrad has no dtype float16; it has <*>; convert with astype first"),
    (lambda: cg.set_default_dtype("int64"), TypeError,
     "the default dtype is float32 or float64, got int64"),
    (lambda: cg.ones(2, dtype="uint64") + cg.ones(2, dtype="int8"), TypeError,
     "uint64 and int8 have no common integer dtype; convert one with astype"),
    (lambda: cg.tensor(["a"]), TypeError,
     "a tensor holds numbers; this list has dtype <U1; cygrad has <*>"),
    (lambda: cg.tensor([[1, 2], [3]]), ValueError,
     "the data is no rectangular array of numbers: <*>"),
    (lambda: cg.asarray(np.zeros((1,) * 17)), ValueError,
     "a tensor has at most 16 dimensions, got an array of shape (1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, "
     "1, 1)"),
    (lambda: cg.zeros((1,) * 17), ValueError,
     "a tensor has at most 16 dimensions, got a shape of 17"),
    (lambda: cg.zeros((2, -1)), ValueError,
     "a shape has no negative sizes, got (2, -1)"),
    (lambda: cg.zeros(2.5), TypeError,
     "a shape is a whole number or a tuple of them, got 2.5"),
    (lambda: cg.zeros((2**40, 2**40)), ValueError,
     "a shape of (1099511627776, 1099511627776) has too many elements"),
    (lambda: cg.zeros((2**62,)), ValueError,
     "a shape of (4611686018427387904,) has too many elements"),
    (lambda: cg.broadcast_to(cg.zeros(2), 1.5), TypeError,
     "a shape is a whole number or a tuple of them, got 1.5"),
    (lambda: cg.zeros(2).reshape("a"), TypeError,
     "a shape is a whole number or a tuple of them, got 'a'"),
    (lambda: cg.empty(2**47, dtype="float64"), MemoryError,
     "1125899906842624 bytes are more than any machine has"),
    (lambda: cg.empty(2**44, dtype="float64"), MemoryError,
     "the system gave no block of 140737488355328 bytes; cygrad holds <*> bytes, <*> of them in live tensors"),
    (lambda: cg.arange(0, 3, 0), ValueError,
     "arange wants a step other than 0"),
    (lambda: len(cg.tensor(1.0)), TypeError,
     "a 0-d tensor has no length"),
    (lambda: list(cg.tensor(1.0)), TypeError,
     "a 0-d tensor cannot be iterated over"),
    (lambda: cg.zeros(2).item(), ValueError,
     "item() wants a tensor of one element, this one has shape (2,)"),
    (lambda: bool(cg.zeros(2)), ValueError,
     "the truth of a tensor of shape (2,) is not one value; use any() or all()"),
    (lambda: [1, 2][cg.tensor([0, 1])], TypeError,
     "a tensor of shape (2,) is no index; one of one element is"),
    (lambda: [1, 2][cg.tensor(1.0)], TypeError,
     "a float32 tensor is no index; only integers are"),
    (lambda: cg.zeros(2).__array__("float64", copy=False), ValueError,
     "a float32 tensor cannot become float64 without a copy"),
    (lambda: recording(lambda: VARIABLE().numpy()), RuntimeError,
     "numpy() of a tensor of shape (2,) that gradients flow through, while recording: they would be lost "
     "silently; use detach() first, or pause() the recording"),
    (lambda: cg.ones(2, dtype="uint8") + 300, OverflowError,
     "the number 300 does not fit the dtype uint8 of the other operand"),
    (lambda: pow(cg.zeros(2), 2, 3), TypeError,
     "pow() of a tensor takes no third argument"),
    (lambda: cg.zeros((2, 3)) + cg.zeros((2, 4)), ValueError,
     "add: shapes (2, 3) and (2, 4) do not broadcast; sizes 3 and 4 in dimension -1 must agree, or one of them "
     "be 1"),
    (lambda: cg.pow(cg.zeros(2), "x"), TypeError,
     "pow: the exponent is a Python number, a tensor or an array, got str"),
    (lambda: cg.gelu(cg.zeros(2), approximate="erf"), ValueError,
     "gelu: approximate is 'erf'; it is 'none' or 'tanh'"),
    (lambda: cg.softplus(cg.zeros(2), beta="1"), TypeError,
     "softplus: beta is a Python number, got str"),
    (lambda: cg.softplus(cg.zeros(2), beta=0), ValueError,
     "softplus: beta is 0; it scales x and must not be 0"),
    (lambda: cg.zeros(2) & cg.zeros(2), TypeError,
     "bitwise_and: wanted bools or integers, got float32; compare first, as in (x > 0) & (y > 0)"),
    (lambda: cg.pow(cg.tensor([2]), -1), ValueError,
     "pow: int64 to the power of -1 is no integer; use -1.0, or cast with astype first"),
    (lambda: cg.pow(cg.ones(2, dtype="int8"), 300), OverflowError,
     "the number 300 does not fit the dtype int8 of the other operand"),
    (lambda: cg.neg(cg.tensor([True])), TypeError,
     "neg has no meaning for bool tensors; cast with astype first"),
    (lambda: cg.ops.ROWS["relu_gradient"].function(cg.tensor([1]), cg.tensor([1])), TypeError,
     "relu_gradient has no meaning for int64 tensors; cast with astype first"),
    (lambda: cg.zeros((2, 3)).sum(2), IndexError,
     "axis 2 is out of range for a tensor of 2 dimensions"),
    (lambda: cg.zeros((2, 3)).sum("a"), TypeError,
     "an axis is a whole number, got 'a'"),
    (lambda: cg.zeros((2, 3)).sum((0, -2)), ValueError,
     "axis 0 stands twice in (0, -2)"),
    (lambda: cg.zeros((2, 0)).max(1), ValueError,
     "max: a tensor of shape (2, 0) has nothing along axis 1 to choose from; its size there must be 1 at least"),
    (lambda: cg.zeros(0, dtype="int64").argmin(), ValueError,
     "argmin: a tensor of shape (0,) has nothing along axis 0 to choose from; its size there must be 1 at least"),
    (lambda: cg.zeros(0).norm(float("-inf")), ValueError,
     "norm: a tensor of shape (0,) has nothing along axis 0 to choose from; its size there must be 1 at least"),
    (lambda: cg.zeros(2).norm("fro"), TypeError,
     "norm: the order is a number, inf or -inf, got 'fro'"),
    (lambda: cg.zeros(2).std(correction=True), TypeError,
     "std: the correction is a number that n is lessened by, got True"),
    (lambda: cg.zeros((2, 3)).argmax((0, 1)), TypeError,
     "an axis is a whole number, got (0, 1)"),
    (lambda: cg.zeros((2, 3)).cumsum(2), IndexError,
     "axis 2 is out of range for a tensor of 2 dimensions"),
    (lambda: cg.zeros((2, 3)).reshape(4, 2), ValueError,
     "reshape: a tensor of shape (2, 3) has 6 elements, which do not fill shape (4, 2)"),
    (lambda: cg.zeros((2, 3)).reshape(-1, -1), ValueError,
     "reshape: a shape has sizes of 0 and more and at most one -1, got (-1, -1)"),
    (lambda: cg.zeros((2, 3)).transpose(0, 0), ValueError,
     "transpose: the axes (0, 0) do not name each of the 2 dimensions once"),
    (lambda: cg.zeros(3).broadcast_to((3, 2)), ValueError,
     "broadcast_to: a tensor of shape (3,) cannot be repeated to shape (3, 2); each size must be equal or 1, "
     "counted from the last"),
    (lambda: cg.zeros(3)[(None,) * 16], ValueError,
     "a tensor has at most 16 dimensions, this index would give 17"),
    (lambda: cg.zeros((2, 3))[0, 0, 0], IndexError,
     "3 indices for a tensor of 2 dimensions"),
    (lambda: cg.zeros((2, 3))[..., ...], IndexError,
     "an index has at most one Ellipsis (...)"),
    (lambda: cg.zeros((2, 3))["a"], TypeError,
     "an index is made of ints, slices, ..., None and arrays of integers or bools, got str"),
    (lambda: cg.zeros(3)[[0.5]], TypeError,
     "indices are integers, got a float32 tensor of shape (1,)"),
    (lambda: cg.zeros((2, 3))[:, [0, 3]], IndexError,
     "index 3 is out of range for a dimension of size 3"),
    (lambda: cg.zeros((2, 3))[:, [True]], IndexError,
     "a mask of shape (1,) for dimensions of sizes (3,); the two must be equal"),
    (lambda: cg.zeros(3)[([0], *[None] * 16)], ValueError,
     "a tensor has at most 16 dimensions, this index would give 17"),
    (lambda: cg.zeros((1,) * 16)[([0],) * 15], IndexError,
     "an index has at most 14 arrays, this one has 15"),
    (lambda: cg.take(cg.zeros((1,) * 16), [[0]], 0), ValueError,
     "take: a tensor has at most 16 dimensions, this index would give 17"),
    (lambda: cg.zeros((2, 3))[[0, 1], [0, 1, 2]], ValueError,
     "take: shapes (2,) and (3,) do not broadcast; sizes 2 and 3 in dimension -1 must agree, or one of them be 1"),
    (lambda: kept_index([0, 1]).backward(), cg.InplaceError,
     "take: index 1099511627776 was in range in forward and is not now, for a dimension of size 2; it has been written "
     "meanwhile: give a copy()"),
    (lambda: kept_index([True, False]).backward(), cg.InplaceError,
     "select: the mask chose 1 in forward and chooses 2 now; it has been written meanwhile: give a copy()"),
    (lambda: cg.ops.ROWS["add_at"].function(cg.zeros(3), 0, cg.zeros(2), cg.tensor([1])), ValueError,
     "add_at: v is (2,); wanted (1,), that of the places"),
    (lambda: cg.ops.ROWS["select"].function(cg.zeros(3), cg.zeros(3)), IndexError,
     "select: x is (3,) and the mask is (3,), float32; wanted a bool mask of the shape of x, or of its first "
     "dimensions"),
    (lambda: cg.gather(cg.zeros((2, 3)), 1, [[0], [0], [0]]), ValueError,
     "gather: x is (2, 3) and the index is (3, 1); wanted as many dimensions, and none of the index larger than that "
     "of x but dimension 1"),
    (lambda: cg.gather(cg.zeros((2, 3)), 1, [[3]]), IndexError,
     "gather: index 3 is out of range for a dimension of size 3"),
    (lambda: cg.scatter_add(cg.zeros(3), 0, [0], [True]), TypeError,
     "scatter_add: x is float32 and src is bool; wanted one dtype, not bool; convert with astype"),
    (lambda: cg.scatter_add(cg.zeros(3), 0, [0, 1], [1.0]), ValueError,
     "scatter_add: the index is (2,) but src is (1,); wanted a src at least as large in each dimension"),
    (lambda: cg.one_hot([0, 3], 3), IndexError,
     "one_hot: label 3 is no class; the classes go from 0 to 2"),
    (lambda: cg.one_hot([0], -1), ValueError,
     "one_hot: the number of classes is -1; wanted 0 or more"),
    (lambda: cg.one_hot(cg.zeros((1,) * 16, dtype="int64"), 2), ValueError,
     "one_hot: the labels have 16 dimensions, which is the most; reshape them"),
    (lambda: Replay(cg.argwhere, cg.zeros(3)), RuntimeError,
     "Replay: the shape of what argwhere gives depends on values, so no memory can be planned for it; keep masks and "
     "counts outside of what is captured"),
    (lambda: cg.flip(cg.zeros((2, 3)), (0, -2)), ValueError,
     "flip: axis 0 stands twice in (0, -2)"),
    (lambda: cg.squeeze(cg.zeros((2, 3)), 1), ValueError,
     "squeeze: dimension 1 of a tensor of shape (2, 3) has size 3; only those of size 1 can go"),
    (lambda: cg.expand_dims(cg.zeros((1,) * 16), 0), ValueError,
     "expand_dims: a tensor has at most 16 dimensions, this would give 17"),
    (lambda: cg.permute(cg.zeros((2, 3)), 0), ValueError,
     "permute: the axes (0,) do not name each of the 2 dimensions once"),
    (lambda: cg.concat([]), ValueError,
     "concat wants at least one tensor, got none"),
    (lambda: cg.concat([cg.zeros((2, 3)), cg.zeros((2, 4))]), ValueError,
     "concat: tensor 0 has shape (2, 3) but tensor 1 has (2, 4); only the sizes of dimension 0 may differ"),
    (lambda: cg.stack([cg.zeros(2), cg.zeros(3)]), ValueError,
     "stack: tensor 0 has shape (2,) but tensor 1 has (3,); all must be equal"),
    (lambda: cg.stack([cg.zeros((1,) * 16)]), ValueError,
     "stack: the tensors have 16 dimensions, which is the most; use concat()"),
    (lambda: cg.split(cg.zeros(5), 2), ValueError,
     "split: dimension 0 of size 5 cannot be cut into 2 equal parts; give the places to cut at as a list"),
    (lambda: cg.pad(cg.zeros(3), 1, "mean"), ValueError,
     "pad: mode is 'mean'; it is one of constant, edge, reflect, symmetric, wrap"),
    (lambda: cg.pad(cg.zeros((2, 0)), 1, "edge"), ValueError,
     "pad: dimension 1 has size 0, so there is nothing for mode 'edge' to repeat; use mode 'constant'"),
    (lambda: cg.pad(cg.zeros(3), (1, -1)), ValueError,
     "pad: widths is (1, -1); wanted whole numbers of at least 0: one, a pair, or a list of 1 pairs"),
    (lambda: cg.tril(cg.zeros(3)), ValueError,
     "tril wants a matrix or a stack of them, got a tensor of shape (3,)"),
    (lambda: cg.topk(cg.zeros(3), 4), ValueError,
     "topk: k is 4, but dimension 0 has 3 elements"),
    (lambda: cg.einsum(cg.zeros(3), "i->"), TypeError,
     "einsum: the equation comes first and is a string, got Tensor"),
    (lambda: cg.einsum("i,j->", cg.zeros(3)), ValueError,
     "einsum: 'i,j->' speaks of 2 operands, but 1 were given"),
    (lambda: cg.einsum("i->", cg.zeros((2, 3))), ValueError,
     "einsum: 'i' in 'i->' does not name the 2 dimensions of operand 0"),
    (lambda: cg.einsum("i...->i", cg.zeros((2, 3))), ValueError,
     "einsum: 'i...->i' has an ellipsis of 1 dimensions on the left; the result needs one too"),
    (lambda: cg.einsum("i1->i", cg.zeros((2, 3))), ValueError,
     "einsum: 'i1' in 'i1->i' has other things than letters and one ellipsis (...)"),
    (lambda: cg.einsum("ij->ik", cg.zeros((2, 3))), ValueError,
     "einsum: the result 'ik' of 'ij->ik' names 'k'; wanted letters of the operands, each once"),
    (lambda: cg.einsum("ij,jk", cg.zeros((2, 3)), cg.zeros((4, 5))), ValueError,
     "einsum: in 'ij,jk' a dimension has size 3, and again, in operand 1 of shape (4, 5), size 4; they must be equal"),
    (lambda: cg.einsum("abcdefghij,klmnopqrst", cg.zeros((1,) * 10), cg.zeros((1,) * 10)), ValueError,
     "einsum: a tensor has at most 16 dimensions, this step would give 20; sum in another order"),
    (lambda: cg.zeros((2, 3))[0, 3], IndexError,
     "index 3 is out of range for dimension 1 of size 3"),
    (lambda: cg.zeros(2, dtype="int64").__setitem__(0, cg.tensor(1.5)), TypeError,
     "setitem: a float32 value cannot be written into a int64 tensor; cast it with astype"),
    (lambda: cg.zeros(2).fill_("a"), TypeError,
     "fill_ wants a number, got str"),
    (lambda: cg.zeros(2).__iadd__(cg.zeros((2, 2))), ValueError,
     "add in place: the result has shape (2, 2), but the tensor written to has shape (2,)"),
    (lambda: cg.zeros(2).__iadd__(cg.zeros(2, dtype="float64")), TypeError,
     "add in place: the result has dtype float64, but the tensor written to has dtype float32; write x = x add "
     "y, or cast the operand"),
    (lambda: cg.asarray(np.frombuffer(b"ab", "uint8")).fill_(0), ValueError,
     "this tensor of shape (2,) lies over read-only memory and cannot be written; copy() it first"),
    (lambda: cg.zeros(1).broadcast_to((3, 2)).fill_(0), ValueError,
     "this tensor of shape (3, 2) repeats its elements (broadcast in dimension 0) and cannot be written; copy() "
     "it first"),
    (lambda: cg.matmul(cg.zeros((32, 10)), cg.zeros((12, 5))), ValueError,
     "matmul: x is (32, 10) but y is (12, 5); the inner sizes 10 and 12 must agree"),
    (lambda: cg.matmul(cg.zeros(3), cg.zeros((4, 2))), ValueError,
     "matmul: x is (3,) but y is (4, 2); the inner sizes 3 and 4 must agree"),
    (lambda: cg.matmul(cg.zeros(3), 2.0), ValueError,
     "matmul: x is (3,) and y is (); each needs a dimension at least, multiply by a number with *"),
    (lambda: cg.linear(cg.zeros((2, 3)), cg.zeros((2, 4))), ValueError,
     "linear: x is (2, 3) and w is (2, 4); wanted x (..., n_in) and w (n_out, n_in)"),
    (lambda: cg.linear(cg.zeros((2, 3)), cg.zeros((2, 3)), cg.zeros(3)), ValueError,
     "linear: b is (3,) but w is (2, 3); wanted b (2,)"),
    (lambda: cg.linear(cg.zeros((2, 3), dtype="int64"), cg.zeros((2, 3), dtype="int64")), TypeError,
     "linear wants floating tensors; cast x and w with astype"),
    (lambda: cg.log_softmax(cg.tensor(1.0)), IndexError,
     "axis -1 is out of range for a tensor of 0 dimensions"),
    (lambda: cg.cross_entropy(cg.zeros((2, 3)), cg.tensor([0, 1, 2])), ValueError,
     "cross_entropy: x is (2, 3) and the labels are (3,); wanted x (n, classes) and labels (n,); reshape what "
     "has more dimensions"),
    (lambda: cg.cross_entropy(cg.zeros((2, 3)), cg.tensor([0, 3])), IndexError,
     "cross_entropy: label 3 of row 1 is no class; there are 3 classes, from 0 to 2"),
    (lambda: cg.cross_entropy(cg.zeros((2, 3)), cg.tensor([0, 1]), reduction="max"), ValueError,
     "cross_entropy: reduction is 'max'; it is one of none, mean, sum"),
    (lambda: cg.cross_entropy(cg.zeros((2, 3), dtype="int64"), cg.tensor([0, 1])), TypeError,
     "cross_entropy: x is int64; wanted a floating dtype"),
    (lambda: cg.cross_entropy(cg.zeros((2, 3)), cg.tensor([0.0, 1.0])), TypeError,
     "cross_entropy: the labels are float32; wanted integers"),
    (lambda: cg.nll(cg.zeros((2, 3)), cg.tensor([0])), ValueError,
     "nll: log_probabilities is (2, 3) and the labels are (1,); wanted log_probabilities (n, classes) and labels (n,); "
     "reshape what has more dimensions"),
    (lambda: cg.nll(cg.zeros((2, 3)), cg.tensor([-1, 0])), IndexError,
     "nll: label -1 of row 0 is no class; there are 3 classes, from 0 to 2"),
    (lambda: cg.bce_with_logits(cg.zeros((2, 3)), cg.zeros(3)), ValueError,
     "bce_with_logits: x is (2, 3) but the targets are (3,); there must be one target for each element of x"),
    (lambda: cg.mse(cg.zeros(2), cg.zeros(3)), ValueError,
     "sub: shapes (2,) and (3,) do not broadcast; sizes 2 and 3 in dimension -1 must agree, or one of them be 1"),
    (lambda: cg.mse(cg.zeros(2), cg.zeros(2), reduction="avg"), ValueError,
     "mse: reduction is 'avg'; it is one of none, mean, sum"),
    (lambda: cg.set_num_threads(0), ValueError,
     "set_num_threads wants a whole number of at least 1, got 0"),
    (lambda: cg.record("yes"), TypeError,
     "train_mode is True, False or None (leave it), got 'yes'"),
    (lambda: cg.no_grad(3), TypeError,
     "a scope decorates functions, got 3"),
    (lambda: cg.no_grad().__exit__(), RuntimeError,
     "a scope was left that this thread has not entered"),
    (lambda: VARIABLE().attach_grad("plus"), ValueError,
     "grad_req is \"write\", \"add\" or \"null\", got 'plus'"),
    (lambda: cg.zeros(2, dtype="int64").attach_grad(), TypeError,
     "a gradient was asked for of a tensor of dtype int64; only float32 and float64 tensors have gradients: "
     "cast it with astype first"),
    (lambda: cg.mark_variables([cg.zeros(2)], []), ValueError,
     "mark_variables: 1 variables, 0 gradients and 1 grad_reqs; there must be as many of each"),
    (lambda: cg.mark_variables([cg.zeros(2)], [3.0]), TypeError,
     "mark_variables: variable and gradient 0 must be tensors, got Tensor and float"),
    (lambda: cg.mark_variables(cg.zeros(2), cg.zeros(3)), ValueError,
     "mark_variables: gradient 0 is float32 of shape (3,); the tensor is float32 of shape (2,), and they must "
     "agree"),
    (lambda: set_grad(VARIABLE(), 3.0), TypeError,
     "grad is a tensor or None, got float"),
    (lambda: set_grad(VARIABLE(), cg.zeros(2, dtype="float64")), ValueError,
     "the gradient assigned is float64 of shape (2,); the tensor is float32 of shape (2,), and they must agree"),
    (lambda: own_gradient(), ValueError,
     "a tensor cannot be its own gradient; assign a copy()"),
    (lambda: set_grad(VARIABLE(), cg.asarray(np.frombuffer(bytes(8), "float32"))), ValueError,
     "the gradient assigned lies over read-only memory, but backward writes into it; give a copy()"),
    (lambda: set_grad(VARIABLE(), cg.zeros(1).broadcast_to(2)), ValueError,
     "the gradient assigned, of shape (2,), repeats its elements (stride 0 in dimension 0), but backward writes "
     "into each; give a copy()"),
    (lambda: set_grad(cg.zeros(2), cg.zeros(2)), RuntimeError,
     "this tensor keeps no gradient; attach_grad() or requires_grad_() first"),
    (lambda: setattr(cg.zeros(2), "fresh_grad", True), RuntimeError,
     "this tensor keeps no gradient; attach_grad() or requires_grad_() first"),
    (lambda: cg.backward([]), ValueError,
     "backward: no outputs were given; wanted a tensor or a list of them"),
    (lambda: cg.backward([RESULT()], []), ValueError,
     "backward: 1 outputs but 0 gradients; give one for each, or None"),
    (lambda: cg.backward([3.0]), TypeError,
     "backward: output 0 must be a tensor, got float"),
    (lambda: cg.backward(1), TypeError,
     "backward: output 0 must be a tensor, got int"),
    (lambda: cg.backward(cg.zeros(2)), RuntimeError,
     "backward: output 0, of shape (2,), was not recorded; compute it from a variable (attach_grad() or "
     "requires_grad_()) inside `with cygrad.record():`"),
    (lambda: cg.backward(RESULT(), [3.0]), TypeError,
     "backward: gradient 0 must be a tensor or None, got float"),
    (lambda: cg.backward(RESULT(), cg.zeros(3)), ValueError,
     "backward: gradient 0 is float32 of shape (3,); output 0 is float32 of shape (2,), and they must agree"),
    (lambda: RESULT().backward(train_mode=3), TypeError,
     "backward: train_mode is True, False or None (the mode of the forward pass), got 3"),
    (lambda: RESULT().backward(None, None, True), TypeError,
     "backward takes train_mode by keyword only: backward(outputs, gradients, retain_graph, train_mode=...)"),
    (lambda: RESULT().backward(inputs=[]), RuntimeError,
     "backward: inputs is empty; name the variables that are to receive gradients, or leave it out"),
    (lambda: RESULT().backward(inputs=[cg.zeros(2)]), RuntimeError,
     "backward: input 0 keeps no gradient; attach_grad() or requires_grad_() makes a variable, "
     "retain_grad() keeps that of a recorded result"),
    (lambda: cg.autograd.grad(RESULT(), VARIABLE(), None, None, True), TypeError,
     "grad takes create_graph, allow_unused and train_mode by keyword only"),
    (lambda: cg.autograd.grad(RESULT(), []), ValueError,
     "grad: no inputs were given; wanted a tensor or a list of them"),
    (lambda: cg.autograd.grad(RESULT(), 3.0), TypeError,
     "grad: input 0 must be a tensor or a GradientEdge, got float"),
    (lambda: cg.autograd.grad(RESULT(), [3.0]), TypeError,
     "grad: input 0 must be a tensor or a GradientEdge, got float"),
    (lambda: cg.autograd.GradientEdge(VARIABLE()), TypeError,
     "GradientEdge wants a node: a tensor's grad_fn or one of its next_functions, got Tensor"),
    (lambda: cg.autograd.GradientEdge(RESULT().grad_fn, 1), ValueError,
     "GradientEdge: output 1 of mul; its outputs are numbered from 0, and it has 1"),
    (lambda: cg.autograd.saved_tensors_hooks(id, id).__exit__(None, None, None), RuntimeError,
     "saved_tensors_hooks: this scope is not open, it cannot be left"),
    (lambda: cg.autograd.grad(RESULT(), cg.zeros(2)), RuntimeError,
     "grad: input 0, of shape (2,), is no variable and no recorded result; attach_grad() it before the forward "
     "pass, or pass allow_unused=True"),
    (lambda: cg.autograd.grad(RESULT(), VARIABLE()), RuntimeError,
     "grad: input 0 is not reachable from the outputs; pass allow_unused=True to get None for it"),
    (lambda: graph_into_a_given_buffer(), RuntimeError,
     "create_graph=True would put a new tensor in the place of the gradient that mark_variables was given for a "
     "variable of shape (2,); use autograd.grad, or attach_grad()"),
    (lambda: labels_written_through_numpy(), cg.InplaceError,
     "cross_entropy: label 10000000000 of row 0 was a class in forward and is none now; it has been written meanwhile: "
     "give a copy()"),
    (lambda: twice_in_a_solver(), ValueError,
     "set_parameters: 'b' is the same tensor as 'a'; each is updated once, name it once"),
    (lambda: cg.linear(cg.broadcast_to(cg.zeros(1), (1 << 31, 1)), cg.zeros((1, 1))), ValueError,
     "a matrix product of (2147483648, 1) and (1, 1) is larger than the 32-bit sizes of BLAS allow"),
    (lambda: backward_twice(), cg.GraphFreedError,
     "backward through mul a second time: what it kept was freed by the pass that ran first; call that one with "
     "retain_graph=True to keep it"),
    (lambda: written_after_it_was_kept(), cg.InplaceError,
     "mul kept a tensor of shape (2,) for backward at version 0, but it has been written in place since and is "
     "at version 2; write to a copy(), or compute what needs it before the write (a variable's .grad is written "
     "by backward itself: keep a copy() of it)"),
    (lambda: recording(lambda: VARIABLE().fill_(0)), cg.InplaceError,
     "a leaf variable of shape (2,) was to be written in place while recording; write inside pause() or "
     "no_grad(), or make a new tensor"),
    (lambda: view_of_a_leaf(), cg.InplaceError,
     "a view of a leaf variable of shape (1,) was to be written in place while recording; write inside pause() "
     "or no_grad(), or make a new tensor"),
    (lambda: RESULT().fill_(0), cg.InplaceError,
     "this result of mul, of shape (2,), belongs to a graph and was to be written outside record(): its "
     "gradient would not know; write to its detach() instead"),
    (lambda: write_to_a_detached(), cg.InplaceError,
     "this tensor of shape (2,) is detached, by detach() or as a view taken outside record(), and shares its memory "
     "with others: they would not know of a recorded write to it; write to a copy()"),
    (lambda: write_to_a_part_of_steps(), cg.InplaceError,
     "this view of shape (2,) is part of a tensor of shape (4,) that lies in steps over memory of others: a recorded "
     "write through it has no gradient; write to a copy()"),
    (lambda: hooked(1.0), TypeError,
     "a hook on a variable returned float; it may return None, or a tensor in the place of the gradient"),
    (lambda: hooked(cg.zeros(3)), ValueError,
     "a hook on a variable returned a float32 tensor of shape (3,); the gradient is float32 of shape (2,), and they "
     "must agree"),
    (lambda: node_hooked(True, (None, None)), ValueError,
     "a pre-hook of mul returned 2 values; it may return None, or a tuple of 1 tensors or None"),
    (lambda: node_hooked(False, 1.0), ValueError,
     "a hook of mul returned float; it may return None, or a tuple of 2 tensors or None"),
    (lambda: VARIABLE().register_hook(1), TypeError, "register_hook wants a function, got int"),
    (lambda: cg.zeros(2).register_hook(print), RuntimeError,
     "register_hook: no gradient flows to this tensor of shape (2,); attach_grad() it, or record what it is computed "
     "by"),
    (lambda: RESULT().register_post_accumulate_grad_hook(print), RuntimeError,
     "register_post_accumulate_grad_hook: this tensor of shape (2,) is no variable; attach_grad() or "
     "requires_grad_() makes one"),
    (lambda: RESULT().grad_fn.next_functions[0][0].register_hook(print), RuntimeError,
     "register_hook: this is the node of a variable, which computes nothing; use the variable's register_hook or "
     "register_post_accumulate_grad_hook"),
    (lambda: cg.zeros(2).retain_grad(), RuntimeError,
     "retain_grad: no gradient flows to this tensor of shape (2,); compute it from a variable inside record()"),
    (lambda: RESULT().requires_grad_(False), RuntimeError,
     "requires_grad_(False): this result of mul, of shape (2,), is part of a graph; take its detach()"),
    (lambda: cg.autograd.Function(), RuntimeError,
     "Function is not instantiated; call Function.apply(...)"),
    (lambda: function(), NotImplementedError, "a Function needs a static method forward(ctx, *inputs)"),
    (lambda: function(lambda ctx, x: x * 1), NotImplementedError,
     "a Function needs a static method backward(ctx, *grads)"),
    (lambda: function(lambda ctx, x: 3.0), TypeError,
     "Own.forward returned float as output 0; it must be a tensor, or a tuple of tensors"),
    (lambda: function(two_dtypes), TypeError,
     "Own.forward returned outputs of dtypes float32 and float64; those with a gradient must have one dtype"),
    (lambda: function(lambda ctx, x: ctx.save_for_backward(3.0)), TypeError,
     "save_for_backward: argument 0 is float; it keeps tensors and None, other things are attributes of ctx"),
    (lambda: function(lambda ctx, x: ctx.save_for_backward(*[x] * 101)), ValueError,
     "save_for_backward: at most 100 tensors, got 101"),
    (lambda: function(save_and_free), RuntimeError,
     "save_for_backward: a tensor that Own.forward saved was freed in it; keep it alive, or save another"),
    (lambda: function(lambda ctx, *xs: xs[0] * 1, None, *[VARIABLE()] * 101), ValueError,
     "Own.apply: at most 100 inputs, got 101"),
    (lambda: function(lambda ctx, x: (x * 1,) * 101), ValueError,
     "Own.forward returned 101 outputs; at most 100"),
    (lambda: function(lambda ctx, x: x * 1, lambda ctx, g: (g, g)), ValueError,
     "Own.backward returned 2 gradients, but forward was given 1 inputs; return one for each, None where there is "
     "none"),
    (lambda: function(lambda ctx, x: x * 1, lambda ctx, g: 3.0), TypeError,
     "Own.backward returned float as gradient 0; it must be a tensor or None"),
    (lambda: function(lambda ctx, x: x * 1, lambda ctx, g: g.reshape(1, 2)), ValueError,
     "Own.backward returned a gradient of shape (1, 2) for input 0 of shape (2,); they must agree"),
    (lambda: saved_outside(), cg.GraphFreedError,
     "saved_tensors is known in backward alone, and freed after it; call backward with retain_graph=True to run it "
     "again"),
    (lambda: cg.autograd.saved_tensors_hooks(1, print), TypeError,
     "saved_tensors_hooks wants two functions, pack and unpack, got int and <*>"),
    (lambda: packed(lambda t: t, lambda t: 3.0), TypeError,
     "saved_tensors_hooks: unpack returned float; it must return the tensor that pack was given"),
    (lambda: packed(lambda t: t, lambda t: cg.zeros(3)), ValueError,
     "saved_tensors_hooks: unpack returned a float32 tensor of shape (3,); pack was given a float32 tensor of shape "
     "(2,), and they must agree"),
    (lambda: nan(), RuntimeError,
     "the backward of pow, recorded at <*>, made the first NaN: its incoming gradients had none"),
    (lambda: other_mode(), RuntimeError,
     "backward was asked for in predict mode, but dropout was recorded in train mode; leave train_mode out, or record "
     "the graph anew"),
    (lambda: two_collectors(), RuntimeError,
     "GradientCollector: another one is open in this thread; close it first, or call its backward several times"),
    (lambda: collector_of_another_thread(), RuntimeError,
     "GradientCollector: it was opened in another thread, which alone can close it"),
    (lambda: closed_collector(), RuntimeError,
     "GradientCollector.backward: not open in this thread; call it inside the with block"),
    (lambda: in_two_passes_at_once(), RuntimeError,
     "backward runs through this graph (at mul) already, in another thread or in a hook of its own; wait for "
     "that pass, or record the graph anew"),
    (lambda: Replay(lambda: None), RuntimeError,
     "Replay: the function ran no operation on tensors"),
    (lambda: cg.optim.Sgd(lr=-0.1), ValueError,
     "lr must be at least 0 and finite, got -0.1"),
    (lambda: cg.optim.Adam("x"), TypeError,
     "alpha must be a number, got 'x'"),
    (lambda: cg.optim.Adam(lr=0.1), TypeError,
     "Adam calls its learning rate alpha, not lr: Adam(alpha=0.1)"),
    (lambda: cg.optim.Adam(eps=0), ValueError,
     "eps must be greater than 0 and finite, got 0"),
    (lambda: cg.optim.Adam(beta1=1), ValueError,
     "beta1 must be at least 0 and less than 1, got 1"),
    (lambda: cg.optim.Sgd().update(), RuntimeError,
     "update: this solver has no parameters; give it some with set_parameters() first"),
    (lambda: cg.optim.Sgd().set_parameters(3.0), TypeError,
     "set_parameters wants a dict of names and variables, or a list of variables, got float"),
    (lambda: cg.optim.Sgd().set_parameters([3.0]), TypeError,
     "set_parameters: '0' must be a tensor, got float"),
    (lambda: cg.optim.Sgd().set_parameters([cg.zeros(2)]), ValueError,
     "set_parameters: '0', of shape (2,), is no variable; attach_grad() or requires_grad_() it first"),
    (lambda: cg.optim.Sgd().set_parameters({"w": cg.zeros((2, 3)).T.attach_grad()}), ValueError,
     "set_parameters: 'w', of shape (3, 2), is not contiguous; use a copy()"),
    (lambda: cg.optim.Sgd().set_parameters([cg.asarray(np.frombuffer(bytes(8), "float32")).attach_grad()]), ValueError,
     "set_parameters: '0', of shape (2,), lies over read-only memory and cannot be updated; use a copy()"),
    (lambda: failing_allocation(), MemoryError,
     "allocation 1 of 8 bytes fails on request (testing.fail_allocation)"),
    (lambda: fail_allocation(0).__enter__(), ValueError,
     "fail_allocation: n is a whole number of at least 1, got 0"),
    (lambda: nested_failures(), RuntimeError,
     "fail_allocation: another scope of it is open; they do not nest"),
    (lambda: gradcheck(cg.exp, [1.0]), TypeError,
     "gradcheck: no input is a floating tensor or array; there is nothing to differentiate"),
    (lambda: gradcheck(lambda x: 3, np.ones(2)), TypeError,
     "gradcheck: output 0 of f must be a tensor, got int"),
    (lambda: gradcheck(cg.exp, np.ones(2), order=0), ValueError,
     "gradcheck: order is a whole number of at least 1, got 0"),
    (lambda: gradcheck(lambda x: x.detach(), np.ones(2)), RuntimeError,
     "gradcheck: no output of f depends on an input through recorded operations"),
    (lambda: gradcheck(cg.log, -np.ones(2)), AssertionError,
     "gradcheck: f is nan at the inputs; choose them inside its domain"),
    (lambda: gradcheck(counting(), np.ones(2)), AssertionError,
     "gradcheck: f gives other values when it is called again with the same inputs"),
    (lambda: gradcheck(lambda x: x.detach() + x * 0, np.array([2.0])), AssertionError,
     "gradcheck: derivative 1 for input 0, of shape (1,), is wrong at element (0,): backward says 0, finite "
     "differences say <*>"),
    (lambda: leaking(), AssertionError,
     "assert_no_leak: the scope ends with +8 live bytes in +1 buffers (other +8) against its start"),
    # memory
    (lambda: cg.memory.profile().at_peak(), RuntimeError,
     "this memory.profile() has seen nothing yet; use it as a scope: with cygrad.memory.profile() as p: ..."),
    (profile_twice, RuntimeError,
     "this memory.profile() is open already; make another one for a scope inside it"),
    (lambda: profiled().table(by="size"), ValueError,
     "by is one of 'operation', 'category', 'line', got 'size'"),
    (lambda: cg.memory.why([1.0]), TypeError,
     "memory.why: wanted a tensor, got list"),
    (lambda: cg.show_config("json"), ValueError,
     "show_config: mode is \"stdout\" or \"dicts\", got 'json'"),
    (lambda: cg.memory.limit("much"), ValueError,
     "memory.limit: a size is a number of bytes or text such as \"256MiB\" or \"1.5GB\" (kB, MB, GB, TB by 1000; KiB, "
     "MiB, GiB, TiB by 1024), got 'much'"),
    (lambda: cg.memory.limit("1.5 parsec"), ValueError,
     "memory.limit: a size is a number of bytes or text such as <*>, got '1.5 parsec'"),
    (lambda: cg.memory.limit(1.5), TypeError,
     "memory.limit: a size is a whole number of bytes or text such as \"256MiB\", got 1.5"),
    (lambda: cg.memory.limit(True), TypeError,
     "memory.limit: a size is a whole number of bytes or text such as \"256MiB\", got True"),
    (lambda: cg.memory.limit(-1), ValueError,
     "memory.limit: a size is at least 0 bytes, got -1"),
    (limited, cg.MemoryLimitError,
     "memory.limit of 0 bytes: tensor at <*> asked for 67,108,864 bytes, but 0 are live and hold <*> of the system; "
     "at most 0 would fit; free tensors (memory.why says who holds one), work on smaller pieces, or raise the limit"),
    (lambda: profiled().save("memory.txt"), ValueError,
     "save: the report is .html or .json, got 'memory.txt'; plot() draws pictures"),
    (lambda: Generator("a"), TypeError,
     "a seed is a whole number, got 'a'"),
    (lambda: cg.random.seed(-1), ValueError,
     "the key is a whole number from 0 to 2**64 - 1, got -1"),
    (lambda: setattr(Generator(1), "state", 3), TypeError,
     "a generator's state is a pair (key, counter), got 3"),
    (lambda: cg.random.normal((2,), loc="a"), TypeError,
     "loc is a number, got 'a'"),
    (lambda: cg.random.normal((2,), 0, -1), ValueError,
     "normal: the scale is a number of at least 0, got -1"),
    (lambda: cg.random.normal((2,), dtype="int64"), TypeError,
     "such random numbers are float32 or float64, not int64"),
    (lambda: cg.random.normal((2,), shape=(3,)), TypeError,
     "normal: the shape is given twice, as (2,) and as (3,)"),
    (lambda: cg.random.normal(1, 0, 5), TypeError,
     "normal(1, 0, 5): which of the numbers is the shape? Write it as a tuple, (1,) or (5,), or as shape=..."),
    (lambda: cg.random.normal(size=(2,), shape=(3,)), TypeError,
     "normal: size is another name for shape; give one of them"),
    (lambda: cg.random.normal((2,), 0, 1, 3), TypeError,
     "normal takes a shape and loc and scale; 3 is one too many"),
    (lambda: cg.random.uniform((2,), 3, 1), ValueError,
     "uniform: low is at most high, and both are finite; got 3.0 and 1.0"),
    (lambda: cg.random.bernoulli((2,), 1.5), ValueError,
     "p is a probability, from 0 to 1, got 1.5"),
    (lambda: cg.random.integers((2,), 0.5, 3), TypeError,
     "integers: low and high are whole numbers, got 0.5 and 3"),
    (lambda: cg.random.integers((2,), 3, 3), ValueError,
     "integers: there is no number from 3 up to 3"),
    (lambda: cg.random.integers((2,), 3, dtype="float32"), TypeError,
     "integers: the dtype is one of whole numbers, not float32"),
    (lambda: cg.random.integers((2,), -1, 3, dtype="uint8"), ValueError,
     "integers: uint8 holds 0 to 255, not -1 to 2"),
    (lambda: cg.random.permutation(-1), ValueError,
     "permutation: wanted a number of at least 0, got -1"),
    (lambda: cg.random.permutation(cg.tensor(1.0)), ValueError,
     "permutation: a 0-d tensor has no rows; give a whole number, or rows"),
    (lambda: cg.dropout(cg.ones(2), generator=3), TypeError,
     "a generator is a cygrad.random.Generator or None (the default one), got int"),
    (lambda: cg.dropout(cg.ones(2, dtype="int64")), TypeError,
     "dropout: x is int64; wanted a floating dtype"),
    (lambda: cg.scale_gradient(cg.ones(2), "a"), TypeError,
     "scale_gradient: s must be a Python number, got str"),
    (lambda: cg.asarray((ctypes.POINTER(ctypes.c_int) * 2)()), TypeError,
     "a tensor holds numbers; this <*> has something else: <*>"),
    (lambda: hashlib.sha256(cg.zeros((2, 3)).T), BufferError,
     "this tensor is not contiguous as the reader asks for it; lend its copy()"),
    (lambda: cg.zeros(2).__dlpack__(stream=1), BufferError,
     "__dlpack__: memory of the CPU has no streams; got stream=1"),
    (lambda: cg.zeros(2).__dlpack__(dl_device=(2, 0)), BufferError,
     "__dlpack__: this tensor is in memory of the CPU, device (1, 0), and cannot go to device (2, 0)"),
    (lambda: VARIABLE().__dlpack__(), BufferError,
     "__dlpack__: this memory is lent for reading only, and the consumer asks for a form of DLPack that cannot say so "
     "(before 1.0); give it a detach() or a copy()"),
    (lambda: cg.from_dlpack(3), TypeError,
     "from_dlpack wants an object with __dlpack__ and __dlpack_device__, got int"),
    (lambda: cg.from_dlpack(np.ones(2), device="cuda"), ValueError,
     "from_dlpack: the device is None or \"cpu\", got 'cuda'"),
    (lambda: cg.from_dlpack(Exporter(said_device=2)), BufferError,
     "from_dlpack: the memory is on device (2, 0); cygrad reads that of the CPU alone, device (1, 0): move it there "
     "first"),
    (lambda: cg.from_dlpack(Exporter(device=2)), BufferError,
     "from_dlpack: the capsule is of device (2, 0); cygrad reads memory of the CPU alone, (1, 0)"),
    (lambda: cg.from_dlpack(Exporter(major=2)), BufferError,
     "from_dlpack: the capsule is of DLPack 2.0; cygrad reads 1.x and what was before"),
    (lambda: cg.from_dlpack(Speaking(None)), BufferError,
     "from_dlpack: __dlpack__ gave None, which is no DLPack capsule, or one that was consumed before"),
    (lambda: cg.from_dlpack(Exporter(lanes=2)), TypeError,
     "from_dlpack: the elements have DLPack's dtype code 2 with 32 bits and 2 lanes; cygrad has <*>; convert them "
     "first"),
    (lambda: cg.from_dlpack(Exporter(ndim=17)), ValueError,
     "from_dlpack: a tensor has 0 to 16 dimensions, this capsule has 17"),
    (lambda: cg.from_dlpack(without_shape()), ValueError,
     "from_dlpack: this capsule has dimensions and no shape"),
    (lambda: cg.from_dlpack(Exporter(shape=(-1,))), ValueError,
     "from_dlpack: this capsule has a negative size, -1"),
    (lambda: cg.from_dlpack(Exporter(data=False)), ValueError,
     "from_dlpack: this capsule has elements and no memory"),
    (lambda: cg.from_dlpack(Exporter(shape=(4,), offset=2), copy=False), ValueError,
     "from_dlpack: the elements, of 4 bytes, do not lie at multiples of that and must be copied, but copy is False"),
    (lambda: load_tensor(b"123", "float32", (1,), None, False), ValueError,
     "a pickled float32 tensor of shape (1,) has 4 bytes, this one has 3"),
    (lambda: copy.deepcopy(RESULT()), RuntimeError,
     "deepcopy of this result of mul, of shape (2,): a copy would be outside the graph; use detach() to say that "
     "this is meant"),
    (lambda: freed().shape, RuntimeError,
     "this tensor was freed, by its free() or at the end of a memory.scope(); make a new one, or keep() it in that "
     "scope"),
    (lambda: free_a_gradient(), RuntimeError,
     "free: this tensor of shape (2,) is the gradient of a variable; assign None to that .grad"),
    (lambda: free_what_is_lent(), RuntimeError,
     "free: the memory of this tensor of shape (2,) would not come back, others hold it: 1 lent to arrays or by "
     "DLPack; let go of those first"),
    (lambda: cg.memory.scope().keep(cg.zeros(2)), RuntimeError,
     "keep: this memory.scope() is not open"),
    (lambda: cg.memory.scope().keep(3), TypeError,
     "keep wants a tensor that is alive, got int"),
    (lambda: cg.memory.scope().__exit__(), RuntimeError,
     "a memory.scope() was left that this thread has not entered"),
    (lambda: entered_twice(), RuntimeError,
     "this memory.scope() is open already; make one for each with"),
]


# What no caller can bring about: a machine without memory (or with a lot), a mistake inside cygrad.
UNREACHABLE = [
    "there was no memory left to write down what this memory.profile.. saw",
    "no memory for .*",
    ".* has no (infer|forward|fused backward|gradient)",
    ".* asks in (backward|its formula) for what it does not keep",
    "the formula of .* gave .*",
    ".* does not write in place",
    "the table of kernels is full.*",
    "no kernel is named .*",
    "this tensor is lent for reading only.*",         # Python's own readers say it in their words
]
# Tested where a process of its own is at hand: test_threads_in_the_environment, test_packaging.py.
ELSEWHERE = ["CYGRAD_NUM_THREADS is .*", "profile.plot needs matplotlib, .*",
             "a kernel is named .* already; .*",
             ".* at .* kept a tensor of shape .* for backward, and its memory has been written since, .*"]


@pytest.mark.parametrize("f, error, wording", CASES, ids=[wording[:50] for _, _, wording in CASES])
def test_wording(f, error, wording):
    pattern = "^" + ".*".join(map(re.escape, wording.split("<*>"))) + "$"
    with pytest.raises(error) as caught:
        f()
    assert re.search(pattern, str(caught.value)), str(caught.value)     # (match= would look at its notes too)
    assert type(caught.value) is error
    del caught


def test_threads_in_the_environment():
    for asked in ("0", "two", "-1"):
        run = subprocess.run([sys.executable, "-c", "import cygrad"], env={**os.environ, "CYGRAD_NUM_THREADS": asked},
                             capture_output=True, text=True)
        assert f"ValueError: CYGRAD_NUM_THREADS is '{asked}'; it wants a whole number of at least 1" in run.stderr


def raised(path):
    """(line, pattern) of each raise statement with a message: its literal text, with .* for what is put in."""
    source = path.read_text()
    for found in re.finditer(r"\braise [A-Za-z_.]+(\(\w+\))?\(", source):
        depth, end = 1, found.end()
        while depth:
            depth += {"(": 1, ")": -1}.get(source[end], 0)
            end += 1
        literals = re.findall(r'f?"((?:[^"\\]|\\.)*)"', source[found.end():end])
        text = "".join(literals).replace('\\"', '"')
        pieces = re.split(r"\{[^{}]*\}", text)
        if text:
            yield source.count("\n", 0, found.start()) + 1, ".*".join(map(re.escape, pieces))


def test_every_raise_is_tested():
    package = Path(cg.__file__).parent
    known = [wording.replace("<*>", "x") for _, _, wording in CASES]
    missing = []
    for path in sorted([*package.rglob("*.py"), *package.rglob("*.pyx")]):
        if path.relative_to(package).parts[0] in ("demo", "__main__.py"):
            continue                                # a command line's errors: test_demo.py has them, run as commands
        for line, pattern in raised(path):
            said = pattern.replace("\\", "").replace(".*", "x")
            if any(re.fullmatch(pattern, k, re.DOTALL) for k in known):
                continue
            if any(re.fullmatch(p, said) for p in UNREACHABLE + ELSEWHERE):
                continue
            missing.append(f"{path.relative_to(package)}:{line}: {said}")
    assert not missing, "no test has the wording of\n" + "\n".join(missing)
