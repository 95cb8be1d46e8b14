"""Pickles and copies of tensors: data, dtype and grad_req; never the graph, never code."""

import copy
import io
import pickle
import pickletools

import numpy as np
import pytest

import cygrad as cg
from cygrad.testing import assert_no_leak

PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)


def kinds():
    matrix = cg.tensor(np.arange(12.0).reshape(3, 4))
    yield matrix
    yield from (matrix.T, matrix[:, ::-2], matrix[1:], matrix[0, 0], matrix[:0], cg.zeros((2, 0, 3)))
    for dtype in ("bool", "int8", "uint64", "float32", "float64"):
        yield cg.tensor([1, 0, 1], dtype=dtype)
    yield cg.asarray(np.frombuffer(bytes(8), "float32"))
    yield cg.broadcast_to(cg.tensor([1.0, 2.0]), (3, 2))
    yield cg.ones(2).attach_grad()
    yield cg.ones(2).attach_grad("add")
    yield cg.ones(2).attach_grad("null")
    yield cg.ones(2).requires_grad_()
    without = cg.ones(2).attach_grad()
    without.grad = None
    yield without


def alike(a, b):
    assert type(a) is type(b) is cg.Tensor and a is not b
    assert a.tolist() == b.tolist() and a.dtype == b.dtype and a.shape == b.shape
    assert a.requires_grad == b.requires_grad and a.grad_req == b.grad_req and a.is_leaf and a.version == 0
    assert (a.grad is None) == (b.grad is None)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_pickles(protocol):
    for x in kinds():
        y = pickle.loads(pickle.dumps(x, protocol))
        alike(y, x)
        if x.size:
            assert not np.shares_memory(x.detach().numpy(), y.detach().numpy())
        y.detach().fill_(3)                         # has memory of its own, whatever the original shares
        if y.grad is not None:
            assert not y.grad.numpy().any()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_views_pickle_their_own_elements(protocol):
    large = cg.zeros((1000, 100))
    for view in (large[:2], large[::500, 1]):
        assert len(pickle.dumps(view, protocol)) < (5000 if protocol == 0 else 2200)


def test_out_of_band():
    x = cg.tensor(np.arange(1000.0))
    buffers = []
    data = pickle.dumps(x, 5, buffer_callback=buffers.append)
    assert len(data) < 200 and len(buffers) == 1
    assert np.shares_memory(np.asarray(buffers[0]), x.numpy())          # nothing was copied
    y = pickle.loads(data, buffers=buffers)
    alike(y, x)
    assert not np.shares_memory(x.numpy(), y.numpy())
    for odd in (x[::2], cg.zeros((0, 2)), cg.tensor(3.0), x.copy().attach_grad()):
        buffers = []
        data = pickle.dumps(odd, 5, buffer_callback=buffers.append)
        alike(pickle.loads(data, buffers=[bytes(b.raw()) for b in buffers]), odd)


def test_what_is_recorded_comes_back_without_its_graph():
    v = cg.ones(3).attach_grad()
    with cg.record():
        y = v * 2
        loaded = pickle.loads(pickle.dumps(y))      # works in any mode, as printing does
    assert loaded.requires_grad and loaded.is_leaf and loaded.grad is None and loaded.tolist() == [2, 2, 2]
    with cg.record():
        (loaded * 3).backward()
    assert loaded.grad.tolist() == [3, 3, 3] and v.grad.tolist() == [0, 0, 0]


def test_gradients_are_not_in_a_pickle():
    v = cg.ones(2).attach_grad("add")
    with cg.record():
        (v * 5).backward()
    w = pickle.loads(pickle.dumps(v))
    assert w.grad.tolist() == [0, 0] and not w.fresh_grad
    with cg.record():
        (w * 5).backward()
        (w * 5).backward()
    assert w.grad.tolist() == [10, 10]


OLD_BYTES = {("_codecs", "encode"), ("__builtin__", "bytes")}          # how the old protocols write bytes


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_pickle_names_nothing_but_the_loader(protocol):
    """The names that a restricted unpickler has to allow."""

    class OnlyOurs(pickle.Unpickler):
        def find_class(self, module, name):
            if (module, name) in OLD_BYTES and protocol < 3:
                return super().find_class(module, name)
            assert (module, name) == ("cygrad.core.pickling", "load_tensor")
            return super().find_class(module, name)

    for x in kinds():
        data = pickle.dumps(x, protocol)
        alike(OnlyOurs(io.BytesIO(data)).load(), x)
        assert sum(op.name == "REDUCE" for op, _, _ in pickletools.genops(data)) <= (2 if protocol < 3 else 1)


# Pickles of version 0.1: a variable and a generator.
OLD = {
    "variable": b"\x80\x04\x95W\x00\x00\x00\x00\x00\x00\x00\x8c\x14cygrad.core.pickling\x94\x8c\x0bload_tensor"
                b"\x94\x93\x94(C\x10\x00\x00\x80?\x00\x00\x00@\x00\x00@@\x00\x00\x80@\x94\x8c\x07float32\x94K"
                b"\x02K\x02\x86\x94\x8c\x03add\x94\x89t\x94R\x94.",
    "generator": b"\x80\x04\x954\x00\x00\x00\x00\x00\x00\x00\x8c\x15cygrad.core.generator\x94\x8c\tGenerator\x94"
                 b"\x93\x94K\x07\x85\x94R\x94K\x07K\x03\x86\x94b.",
}


def test_pickles_of_version_0_1_load():
    alike(pickle.loads(OLD["variable"]), cg.tensor([[1, 2], [3, 4]], requires_grad=True, dtype="float32"))
    assert pickle.loads(OLD["generator"]).state == (7, 3)


def test_a_pickled_generator_names_a_path_that_does_not_change():
    g = cg.random.Generator(7)
    g.state = 7, 3
    for protocol in PROTOCOLS:
        data = pickle.dumps(g, protocol)
        assert b"cygrad.core.pickling" in data and b"execute" not in data
        assert pickle.loads(data).state == (7, 3)


def test_pickles_that_lie():
    from cygrad.core.pickling import load_tensor

    with assert_no_leak():
        for args, error in [((b"123", "float32", (1,), None, False), ValueError),
                            ((b"", "object", (0,), None, False), TypeError),
                            ((b"", "float32", (-1,), None, False), ValueError),
                            ((b"1234", "float32", (1,), "maybe", False), ValueError),
                            ((b"1234", "int32", (1,), "write", False), TypeError),
                            ((b"1234" * 3, "float32", (2**60,), None, False), (ValueError, MemoryError)),
                            (("text", "float32", (1,), None, False), TypeError)]:
            with pytest.raises(error):
                load_tensor(*args)
            del args


def test_many_in_one():
    x = cg.ones(3).attach_grad()
    state = {"w": x, "same": x, "list": [x[1:], cg.tensor(2)]}
    loaded = pickle.loads(pickle.dumps(state))
    assert loaded["w"] is loaded["same"] and loaded["list"][0].tolist() == [1, 1]
    del state, loaded


# ---- copies ----------------------------------------------------------------------------------------------------------

def test_copy():
    for x in kinds():
        y = copy.copy(x)
        alike(y, x)
        assert not x.size or not np.shares_memory(x.detach().numpy(), y.detach().numpy())
        if y.grad is not None:
            assert y.grad is not x.grad and not y.grad.numpy().any()


def test_a_copy_of_a_variable_takes_gradients_of_its_own():
    v = cg.ones(2).attach_grad("add")
    with cg.record():
        (v * 5).backward()
    w = copy.copy(v)
    assert w.grad_req == "add" and w.grad.tolist() == [0, 0] and not w.fresh_grad
    with cg.record():
        (w * 3).backward()
        (w * 3).backward()
    assert w.grad.tolist() == [6, 6] and v.grad.tolist() == [5, 5]
    n = cg.ones(2).attach_grad("null")
    assert copy.copy(n).grad_req == "null" and not copy.copy(n).requires_grad


def test_a_copy_of_an_intermediate_is_a_variable():
    """As in PyTorch: a leaf outside the graph."""
    v = cg.ones(2).attach_grad()
    with cg.record():
        y = copy.copy(v * 2)
        (y * 3).backward()
    assert y.is_leaf and y.requires_grad and y.grad_req == "add"
    assert y.grad.tolist() == [3, 3] and v.grad.tolist() == [0, 0]


def test_deepcopy():
    for x in kinds():
        y = copy.deepcopy(x)
        alike(y, x)
        assert not x.size or not np.shares_memory(x.detach().numpy(), y.detach().numpy())
    v = cg.ones(2).attach_grad("add")
    with cg.record():
        (v * 5).backward()
    assert v.fresh_grad
    w = copy.deepcopy(v)
    assert w.grad.tolist() == [5, 5] and w.grad is not v.grad and w.fresh_grad and w.grad_req == "add"
    v.zero_grad()
    assert w.grad.tolist() == [5, 5]
    model = {"a": v, "b": [v, v.grad]}
    twin = copy.deepcopy(model)
    assert twin["a"] is twin["b"][0] and twin["b"][1] is twin["a"].grad
    del model, twin


def test_deepcopy_of_what_has_a_graph_says_what_to_do():
    v = cg.ones(2).attach_grad()
    with cg.record():
        y = v * 2
        with pytest.raises(RuntimeError, match=r"deepcopy of this result of mul, of shape \(2,\).*detach\(\)"):
            copy.deepcopy(y)
        z = copy.deepcopy(y.detach())
    assert z.tolist() == [2, 2] and copy.copy(y).tolist() == [2, 2]
    with cg.record():
        (v * v).backward(create_graph=True)
    with pytest.raises(RuntimeError, match="deepcopy of this result"):
        copy.deepcopy(v)                            # its gradient has a graph
    v.grad = None
