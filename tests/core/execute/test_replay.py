"""Replay refuses by name what it cannot repeat. test_table.py compares its bits with eager code."""

import copy
import re
import threading
import time

import numpy as np
import pytest

import cygrad as cg
from cygrad.core.execute.replay import Replay
from cygrad.ops.slices import put

from rows import every_gradient, floating_places, same_bits, tensors


@pytest.mark.parametrize("write", [
    lambda x: x.__iadd__(1), lambda x: x.__imul__(x), lambda x: x.__setitem__(0, 1.0), lambda x: x.fill_(2),
    lambda x: x.copy_(x * 2), lambda x: x.__setitem__([0, 1], 1.0), lambda x: x[1:].__isub__(1),
    lambda x: x[1:].__iadd__(x[:-1]),
], ids=["add", "square", "item", "fill", "copy", "index", "view", "overlap"])
@pytest.mark.parametrize("inside", [True, False])
def test_a_write_in_place(write, inside):
    """A write over a result, or over the input, which then changes at each run."""
    def f(x):
        before = x * 3
        y = x * 1 if inside else x
        write(y)
        return y * 2, before

    x = cg.tensor([1.0, 2.0, 3.0])
    replay = Replay(f, x)
    x[...] = cg.tensor([4.0, 0.5, -1.0])
    eager = cg.tensor([4.0, 0.5, -1.0])
    version = x.version
    for _ in range(2):
        for ours, theirs in zip(replay.run(), f(eager), strict=True): same_bits(ours.numpy(), theirs.numpy())
        same_bits(x.numpy(), eager.numpy())
    assert (x.version > version) == (not inside)


def test_a_write_over_memory_made_inside():
    """Each run starts with the initial contents of zeros() and the like, even if they are read before a write."""
    def f(x):
        total, ones = cg.zeros(3), cg.ones((2, 3))
        first = total + x
        total += x
        ones[1] *= x
        total += ones[1]
        return first, total, ones

    x = cg.tensor([1.0, 2.0, 3.0])
    replay = Replay(f, x)
    for values in [1.0, -2.0, 0.5], [4.0, 0.0, 3.0]:
        x[...] = cg.tensor(values)
        for ours, eager in zip(replay.run(), f(cg.tensor(values)), strict=True): same_bits(ours.numpy(), eager.numpy())


def test_a_write_over_memory_that_is_shared_inside():
    array = np.zeros(3, "f4")

    def f(x):
        y = cg.asarray(array)
        y += x
        return y * 2

    with pytest.raises(RuntimeError, match="Replay: add in place over memory of another library cannot be captured"):
        Replay(f, cg.ones(3))
    y = cg.asarray(array)                           # shared before: the replay writes to it as eager code does
    replay = Replay(lambda x: y.__iadd__(x) * 2, cg.ones(3))
    replay.run()
    assert array.tolist() == [2, 2, 2] and replay.run().tolist() == [6, 6, 6]


def test_one_run_at_a_time():
    x = cg.ones(1 << 20)
    replay = Replay(lambda x: cg.exp(x * 2), x)
    errors, go, end = [], threading.Barrier(2), time.monotonic() + 30

    def run():
        go.wait()
        while not errors and time.monotonic() < end:
            try: replay.run()
            except RuntimeError as e: errors.append(str(e))

    threads = [threading.Thread(target=run) for _ in range(2)]
    for t in threads: t.start()
    for t in threads: t.join()
    assert errors and set(errors) == {"Replay: this replay is already running; wait for it, or make another"}


@pytest.mark.parametrize("read", [
    lambda x: x.sum().item(), lambda x: float(x.sum()), lambda x: int(x.sum()), lambda x: bool(x.sum() > 0),
    lambda x: x.numpy(), lambda x: x.tolist(), lambda x: np.asarray(x), lambda x: memoryview(x),
    lambda x: x.__dlpack__(), lambda x: cg.tensor(x), copy.copy, copy.deepcopy, lambda x: cg.random.normal(3),
    lambda x: cg.random.permutation(3), lambda x: cg.train_mode()(cg.dropout)(x, 0.5),
])
def test_reading_values(read):
    with pytest.raises(RuntimeError, match="Replay: .* cannot be captured"):
        Replay(lambda x: (read(x * 1), x * 2)[1], cg.ones(3))


@pytest.mark.parametrize("f", [
    lambda x: x.max(), lambda x: cg.min(x, axis=0), lambda x: cg.cross_entropy(x, [0, 1]), lambda x: cg.var(x),
    lambda x: cg.std(x), lambda x: cg.norm(x), lambda x: cg.prod(x), lambda x: cg.norm(x, float("inf")),
    lambda x: cg.norm(x, 3), lambda x: cg.nll(x, [0, 1]),
    lambda x: put(x, x * 2, np.array([[1, 1]]), (((0, 1, 2), (0, 1, 3)), None, 0)),
    lambda x: cg.norm(x * 1, float("inf")), lambda x: cg.norm(x * 1, 3), lambda x: cg.sort(x * 1)[:, 0],
    lambda x: cg.abs(x - 2), lambda x: cg.clip(x, 1, 4), lambda x: cg.maximum(x, 3 - x), lambda x: cg.minimum(x, 2.0),
    lambda x: cg.where(x > 2, x, -x), lambda x: cg.topk(x, 2)[0], lambda x: cg.bce_with_logits(x, cg.zeros((2, 3))),
], ids=["max", "min", "cross_entropy", "var", "std", "norm", "prod", "largest", "norm3", "nll", "put", "largest_made",
        "norm3_made", "sort", "abs", "clip", "maximum", "minimum", "where", "topk", "bce_with_logits"])
def test_a_gradient_that_reads_values(f):
    """Either it is refused by name, or the replay computes it again from other inputs."""
    x = cg.tensor([[1.0, 2.0, 3.0], [4.0, 0.5, 6.0]]).attach_grad()

    def gradient(x):
        with cg.record():
            y = f(x).sum()
        return cg.autograd.grad(y, x, create_graph=True)

    try:
        replay = Replay(gradient, x)
    except RuntimeError as e:
        assert str(e).startswith("Replay: the gradient of ") and "reads the values" in str(e)
        return
    with cg.no_grad():
        x[...] = cg.tensor([[7.0, 2.0, 1.0], [0.25, 8.0, 3.0]])
    np.testing.assert_allclose(replay.run().numpy(), gradient(x).detach().numpy(), rtol=1e-6)


@pytest.mark.parametrize("order", [1, 2])
@every_gradient
def test_gradients_through_captured_results(row, args, kwargs, order):
    """Formulas read saved values, which are results of the same capture. Every row computes the gradients of other
    inputs bit for bit, or is refused by name."""
    xs = tensors(args)
    places = floating_places(args)
    leaves = [xs[i].requires_grad_() for i in places]
    if not leaves:
        pytest.skip("no floating input")

    def gradients():
        with cg.record():
            inputs = list(xs)
            for i in places:
                inputs[i] = xs[i] * 1.0
            y = row.tested(*inputs, **kwargs)
            loss = (y * y).sum()
        for _ in range(order):
            found = cg.autograd.grad(loss, leaves, create_graph=True, allow_unused=True)
            found = tuple([g for g in found if g is not None])
            with cg.record():
                loss = sum([(g * g).sum() for g in found])
        return found

    try:
        replay = Replay(gradients)
    except RuntimeError as e:
        assert re.match("Replay: (the gradient of .* reads the values|the shape of the result of .* depends)", str(e))
        return
    with cg.no_grad():
        for x in leaves:
            x.copy_(np.flip(x.numpy()) * 0.875)
    for ours, eager in zip(replay.run(), gradients(), strict=True):
        same_bits(ours.numpy(), eager.detach().numpy())


def test_tensors_on_the_memory_of_a_captured_result():
    """detach(), a view, a result that shares memory: each follows the result, not the captured numbers."""
    x = cg.ones(4)

    def f(x):
        y = x * 2
        return y.detach() + 1, y[1:] * 3, y.reshape(2, 2), (x * 3).detach(), y.T

    replay = Replay(f, x)
    x[...] = cg.tensor([1.0, 2.0, 3.0, 4.0])
    assert [y.tolist() for y in replay.run()] == [y.tolist() for y in f(x)]


def test_hidden_outputs_are_planned():
    """The gradient of topk goes to the positions that the replay finds."""
    x = cg.tensor([3.0, 1.0, 2.0]).attach_grad()

    def gradient():
        with cg.record():
            y = cg.topk(x * 1, 1)[0].sum()
        return cg.autograd.grad(y, x, create_graph=True)

    replay = Replay(gradient)
    with cg.no_grad():
        x[...] = cg.tensor([1.0, 2.0, 5.0])
    assert replay.run().tolist() == [0, 0, 1]


@pytest.mark.parametrize("f", [
    cg.abs, lambda x: cg.clip(x, 1.0, 2.0), lambda x: cg.maximum(x, 2.0), lambda x: cg.minimum(x, 3 - x), cg.sort,
    lambda x: cg.where(x > 1, x, x * x), lambda x: cg.bce_with_logits(x, cg.tensor([0.0, 1.0, 1.0])),
], ids=["abs", "clip", "maximum", "minimum", "sort", "where", "bce_with_logits"])
def test_packed_codes_are_planned(f):
    """Gradients follow the codes that the replay computes, also in formulas."""
    x = cg.tensor([3.0, -1.0, 2.0]).attach_grad()
    w = cg.tensor([1.0, 10.0, 100.0])

    def gradient():
        with cg.record():
            y = (f(x * 1) * w).sum()
        return cg.autograd.grad(y, x, create_graph=True)

    replay = Replay(gradient)
    with cg.no_grad():
        x[...] = cg.tensor([-1.0, 2.0, 1.5])
    assert replay.run().tolist() == gradient().tolist()


def test_a_backward_pass_of_kernels():
    x = cg.ones(3).attach_grad()

    def f(x):
        with cg.record():
            y = x * x
        y.backward()
        return y

    with pytest.raises(RuntimeError, match="Replay: a backward pass without create_graph cannot be captured"):
        Replay(f, x)
    assert x.grad.tolist() == [0, 0, 0]


@pytest.mark.parametrize("f", [lambda x: {"a": x * 2}, lambda x: ((x * 2, x), x * 4), lambda x: (x * 2, None)])
def test_results_that_are_no_tensors(f):
    with pytest.raises(TypeError, match="Replay: the function must return a tensor or a tuple of tensors; it returned"):
        Replay(f, cg.ones(3))


def test_outputs_before_the_first_run():
    replay = Replay(lambda x: x * 2, cg.ones(3))
    with pytest.raises(RuntimeError, match="Replay: outputs is empty before the first run"):
        print(replay.outputs)
    assert replay.run() is replay.outputs and replay.outputs.tolist() == [2, 2, 2]


def test_printing_and_constants_are_no_reads():
    replay = Replay(lambda x: (repr(x), x * cg.tensor([1.0, 2.0]) + cg.ones(2))[1], cg.ones(2))
    assert replay.run().tolist() == [2, 3]


def test_the_flag_is_restored():
    with pytest.raises(RuntimeError):
        Replay(lambda x: x.item(), cg.ones(1))
    assert cg.ones(1).item() == 1


CURRENT = []                                        # a Replay, while a test runs


@pytest.mark.parametrize("what, f", [
    ("run\\(\\) of another Replay", lambda x: CURRENT[0].run() + x),
    ("another Replay", lambda x: Replay(lambda x: x * 2, x).run() + x),
    ("an update of a solver", lambda x: solver_of(x).update()),
    ("zero_grad", lambda x: (x * 2, x.zero_grad())),
    ("mark_variables", lambda x: cg.mark_variables(x * 2, cg.ones(3))),
    ("adding to the .grad of a variable", lambda x: added(x)),
    ("reading the values of a tensor", lambda x: cg.full(5, x.sum())),
    ("drawing random numbers", lambda x: x * cg.random.exponential(3)),
    ("gamma\\(\\)", lambda x: x * cg.random.gamma(np.ones(3))),
    ("categorical\\(\\)", lambda x: x * cg.random.categorical(np.zeros(3))),
    ("drawing random numbers", lambda x: x * cg.random.choice(3, replace=False)),
    ("shuffle\\(\\)", lambda x: cg.random.shuffle(x.detach())),
])
def test_what_changes_state(what, f):
    x = cg.ones(3).attach_grad("add")
    CURRENT[:] = [Replay(lambda x: x * 2, x)]
    with pytest.raises(RuntimeError, match=f"Replay: {what} cannot be captured"):
        Replay(f, x)
    CURRENT.clear()


def solver_of(x):
    solver = cg.optim.Sgd(1.0)
    solver.set_parameters([x])
    return solver


def added(x):
    with cg.record():
        y = (x * x).sum()
    y.backward(create_graph=True)
    return x.grad


def test_what_another_thread_computes():
    x, out = cg.ones(3), []

    def f(x):
        thread = threading.Thread(target=lambda: out.append(x * 2))
        thread.start()
        thread.join()
        return out.pop() + 1

    with pytest.raises(RuntimeError, match="Replay: add uses a result of another thread"):
        Replay(f, x)
    with pytest.raises(RuntimeError, match="Replay: the result uses a result of another thread"):
        Replay(lambda x: (x + 1, of_another_thread(x))[1], x)


def of_another_thread(x):
    out = []
    thread = threading.Thread(target=lambda: out.append(x * 2))
    thread.start()
    thread.join()
    return out[0]


def test_what_is_freed_while_it_is_captured():
    def scoped(x):
        with cg.memory.scope() as scope:
            b = x * 2
            y = scope.keep(b + 1)
        return y * 3

    def freed(x):
        c = cg.full(3, 3.0)
        y = x * 2 + c
        c.free()
        return y

    x = cg.ones(3)
    for f, want in ((scoped, [9, 15, 15]), (freed, [5, 7, 7])):
        replay = Replay(f, x)
        x[1:] = 2.0
        assert replay.run().tolist() == want
        x.fill_(1)
