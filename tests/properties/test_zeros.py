"""Gradients that are known to be zero have no memory until they are read or written."""

import copy
import pickle

import numpy as np
import pytest

import cygrad as cg
from cygrad.testing import fail_allocation

N = 1000


def live(): return cg.memory.stats()["live_bytes"]


def variable(): return cg.ones(N).attach_grad()


def test_what_is_no_read():
    x = variable()
    g, before = x.grad, live()
    assert before == 4 * N and g is x.grad
    assert (g.shape, g.strides, g.dtype, g.ndim, g.size, g.nbytes, len(g)) == ((N,), (1,), "float32", 1, N, 4 * N, N)
    assert g.version == 0 and not g.requires_grad and g.is_leaf and g.grad is None and hash(g) and not x.fresh_grad
    cg.memory.why(g)
    assert live() == before


READS = {
    "tolist": lambda g: g.tolist() == [0] * N, "item": lambda g: g[0].item() == 0, "repr": lambda g: "0." in repr(g),
    "numpy": lambda g: not g.numpy().any(), "memoryview": lambda g: memoryview(g).nbytes == 4 * N,
    "DLPack": lambda g: not np.from_dlpack(g).any(), "operand": lambda g: (g + 1).tolist() == [1] * N,
    "second operand": lambda g: (1.0 - g).tolist() == [1] * N,
    "three": lambda g: not cg.where(g > 0, g, g).numpy().any(),
    "list": lambda g: not cg.concat([g, g]).numpy().any(), "slice": lambda g: g[1:3].tolist() == [0, 0],
    "mask": lambda g: g[g == 0].shape == (N,), "copy": lambda g: g.copy().tolist() == [0] * N,
    "tensor": lambda g: cg.tensor(g).tolist() == [0] * N, "astype": lambda g: not g.astype("float64").numpy().any(),
    "pickle": lambda g: pickle.loads(pickle.dumps(g)).tolist() == [0] * N, "iter": lambda g: next(iter(g)).item() == 0,
    "detach": lambda g: not g.detach().numpy().any(), "equal": lambda g: (g == 0).all().item(),
}
WRITES = {
    "fill_": lambda g: g.fill_(3), "add": lambda g: g.__iadd__(3), "item": lambda g: g.__setitem__(slice(None), 3),
    "copy_": lambda g: g.copy_(cg.full(N, 3.0)), "array": lambda g: g.numpy().__setitem__(slice(None), 3),
    "detach": lambda g: g.detach().fill_(3), "indices": lambda g: g.__setitem__(np.arange(N), 3),
    "mask": lambda g: g.__setitem__(g == 0, 3),
}


@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_reading_makes_zeros(read):
    x = variable()
    before = live()
    assert read(x.grad)
    assert live() == before + 4 * N and cg.memory.stats()["by_category"]["gradients"] == 4 * N


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_writing_makes_zeros_first(write):
    x = variable()
    g = x.grad
    write(g)
    assert g is x.grad and g.tolist() == [3] * N


@pytest.mark.parametrize("use", [*READS.values(), *WRITES.values()], ids=[*READS, *(f"write {name}" for name in WRITES)]
                         )
def test_there_may_be_no_memory_for_them(use):
    x = variable()
    g, before = x.grad, cg.memory.stats()
    with fail_allocation(1), pytest.raises(MemoryError):
        use(g)
    with cg.memory.limit(0), pytest.raises(cg.MemoryLimitError):
        use(g)
    after = cg.memory.stats()
    assert {k: after[k] for k in ("live_bytes", "by_category")} == {k: before[k] for k in ("live_bytes", "by_category")}
    assert g.version == 0 and g.tolist() == [0] * N


def test_zero_grad_gives_the_memory_back():
    x = variable()
    with cg.record(): y = x * 2
    y.backward()
    g = x.grad
    name, version = id(g), g.version
    del g, y
    assert live() == 8 * N
    x.zero_grad()
    assert live() == 4 * N and id(x.grad) == name and x.grad.version == version + 1
    x.zero_grad()
    assert live() == 4 * N and x.grad.tolist() == [0] * N


@pytest.mark.parametrize("know", [
    lambda x: x.grad, lambda x: x.grad[1:], lambda x: x.grad.detach(), lambda x: x.grad.numpy(),
    lambda x: memoryview(x.grad), lambda x: x.grad.__dlpack__(),
], ids=["reference", "view", "detach", "array", "buffer", "capsule"])
def test_who_else_knows_the_gradient_sees_zeros_at_once(know):
    x = variable()
    with cg.record(): y = x * 2
    y.backward()
    del y
    other = know(x)
    x.zero_grad()
    assert live() == 8 * N                          # (it has memory)
    if not hasattr(other, "tolist"): other = np.from_dlpack(x.grad)
    assert not np.any(np.asarray(other))


def test_a_buffer_of_the_callers_is_written():
    x = variable()
    a = np.full(N, 7, "float32")
    b = cg.full(N, 7.0)
    for buffer in (cg.asarray(a), b):
        cg.mark_variables(x, buffer)
        x.zero_grad()
        assert not buffer.numpy().any()
    assert not a.any() and live() == 8 * N


@pytest.mark.parametrize("req", ["write", "add"])
def test_gradients_arrive_as_in_zeros_with_memory(req):
    def run(made):
        x, w = (cg.tensor(a).attach_grad(req) for a in (np.arange(12.0).reshape(3, 4), np.ones((5, 4))))
        if made: x.grad.numpy(), w.grad.numpy()
        found = []
        for _ in range(2):
            with cg.record(): y = (cg.linear(x, w) * x.T[:1].sum() + x.T.sum()).sum() + x[1:].sum()
            y.backward()
            found += [x.grad.numpy().tobytes(), w.grad.numpy().tobytes(), x.grad.version > 0]
        x.zero_grad()
        with cg.record(): y = x * 1.0
        y.backward(x.grad)                          # zeros flow in
        found.append(x.grad.numpy().tobytes())
        with cg.GradientCollector() as gc:
            gc.backward((x * 3).sum())
            gc.zero_gradients()
            gc.backward((x * 2).sum())
        found.append(x.grad.numpy().tobytes())
        x.zero_grad()
        with cg.record(): (x * x).sum().backward(create_graph=True)
        found.append(x.grad.detach().numpy().tobytes())
        x.grad = None
        return found

    assert run(False) == run(True)


def test_a_view_of_zeros_shares_what_arrives():
    x = variable()
    g = x.grad
    view = g.detach()
    with cg.record(): y = x * 2
    y.backward()
    assert view.tolist() == g.tolist() == [2] * N


def test_a_solver_takes_zeros_that_are_said_to_be_fresh():
    x = variable()
    solver = cg.optim.Adam(0.1)
    solver.set_parameters([x])
    x.fresh_grad = True
    with fail_allocation(1), pytest.raises(MemoryError):
        solver.update()
    assert x.fresh_grad and x.version == 0
    solver.update()
    assert x.tolist() == [1] * N and not x.fresh_grad and x.version == 1


def test_zeros_in_a_function_and_as_a_variable():
    x = variable()
    class Keep(cg.autograd.Function):
        @staticmethod
        def forward(ctx, x, g):
            ctx.save_for_backward(g)
            return x * 1.0

        @staticmethod
        def backward(ctx, d):
            g, = ctx.saved_tensors
            return d + g, None

    with cg.record(): y = Keep.apply(x, x.grad)
    y.backward()
    assert x.grad.tolist() == [1] * N
    w = cg.ones(3).attach_grad()
    g = w.grad.attach_grad()                        # a variable of its own
    with cg.record(): y = g * 2
    y.backward()
    assert g.grad.tolist() == [2] * 3 and g.tolist() == [0] * 3
    w.grad = None


@pytest.mark.parametrize("layers, width, batch", [(8, 64, 32), (16, 32, 128)])
def test_the_peak_of_a_step(layers, width, batch):
    """Gradients are allocated while saved values are released: the peak is the larger of both, plus one of each."""
    x = cg.ones(batch, width)
    ws = [cg.full((width, width), 1 / width).attach_grad() for _ in range(layers)]
    solver = cg.optim.Sgd(0.1)
    solver.set_parameters(ws)
    weight, activation = 4 * width * width, 4 * batch * width
    for _ in range(2):
        solver.zero_grad()
        start = live()
        assert start == layers * weight + activation
        with cg.memory.track() as t:
            with cg.record():
                h = x
                for w in ws: h = cg.linear(h, w, activation="relu")
                loss = h.sum()
            del h
            loss.backward()
        del loss
        most = max(layers * weight + 2 * activation, layers * activation + weight) + activation
        assert t.peak_bytes - start <= most + 8     # (loss and head)
        solver.update()


def test_sizes_of_nothing():
    x = cg.zeros((0, 3)).attach_grad()
    assert x.grad.tolist() == [] and x.grad.shape == (0, 3)
    x.zero_grad()
    with cg.record(): y = (x * 2).sum()
    y.backward()
    assert x.grad.shape == (0, 3)


def test_a_deep_copy_has_zeros_without_memory():
    x = variable()
    before = live()
    y = copy.deepcopy(x)
    assert live() == before + 4 * N and y.grad.tolist() == [0] * N and live() == before + 8 * N


def test_zeros_are_there_before_anybody_is_told():
    x = variable()
    g, seen = x.grad, []
    with cg.memory.events(lambda e: seen.append((e[0], not g.numpy().any()))):
        g[0].item()
    assert seen[0] == ("allocate", True)
