"""GradientCollector, saved_tensors_hooks and detect_anomaly: contracts 4 and 6."""

import re
import threading

import numpy as np
import pytest

import cygrad as cg
from cygrad.autograd import detect_anomaly, disable_saved_tensors_hooks, saved_tensors_hooks


def leaf(*values, req="write"):
    return cg.tensor(list(values), dtype="float64").attach_grad(req)


# ---- GradientCollector -----------------------------------------------------------------------------------------------

@pytest.mark.parametrize("req", ["write", "add"])
def test_the_first_gradient_overwrites_and_further_ones_add(req):
    x = leaf(1, 2, req=req)
    for _ in range(3):                              # each collector starts with no variables
        with cg.GradientCollector() as gc:
            assert cg.is_recording() and cg.is_training()
            for k in (1, 2, 3):
                gc.backward((x * k).sum() + (x * k).sum())
        assert x.grad.tolist() == [12, 12] and not cg.is_recording() and not cg.is_training()


def test_null_stays_null_and_create_graph_adds_too():
    x, n = leaf(1, 2), leaf(1, 2, req="null")
    with cg.GradientCollector() as gc:
        gc.backward((x * n).sum())
        gc.backward((x * x).sum(), create_graph=True)
        assert n.grad is None and x.grad.tolist() == [3, 6]
        gc.backward((x * 1).sum())
    assert x.grad.tolist() == [4, 7] and not x.grad.requires_grad


def test_a_backward_that_is_not_the_collectors_own_is_collected_too():
    x = leaf(1.0)
    with cg.GradientCollector() as gc:
        (x * 2).backward()
        gc.backward(x * 3)
        assert cg.autograd.grad(x * 5, x).tolist() == [5]
    assert x.grad.tolist() == [5]


def test_zero_gradients_clears_what_was_collected_nan_too():
    x, other = leaf(0.0), leaf(1.0)
    other.grad[...] = 7.0
    with cg.GradientCollector() as gc:
        gc.backward(cg.log(x) * 0.0)
        assert np.isnan(x.grad.item()) and x.fresh_grad
        gc.zero_gradients()
        assert x.grad.item() == 0 and other.grad.item() == 7 and not x.fresh_grad
        gc.backward(x * 2)
    assert x.grad.item() == 2


def test_one_at_a_time_and_the_first_is_unharmed():
    x = leaf(1.0)
    with cg.GradientCollector() as gc:
        gc.backward(x * 1)
        with pytest.raises(RuntimeError, match="another one is open in this thread"):
            cg.GradientCollector()
        assert cg.is_recording() and cg.is_training()
        gc.backward(x * 2)
    assert x.grad.item() == 3


def test_close_is_harmless_twice_and_restores_what_it_found():
    with cg.record(train_mode=False):
        gc = cg.GradientCollector()
        with gc:
            cg.set_recording(False)
        assert cg.is_recording() and not cg.is_training()
        with cg.GradientCollector():
            gc.close()                              # an old one
            assert cg.is_training()
    with pytest.raises(RuntimeError, match="not open in this thread"):
        gc.backward(leaf(1.0))
    with gc:                                        # it may be opened again
        pass
    gc.close()


def test_an_exception_closes_it():
    with pytest.raises(KeyError), cg.GradientCollector():
        raise KeyError
    assert not cg.is_recording()
    with cg.GradientCollector():
        pass


def test_each_thread_has_its_own():
    x, errors = leaf(1.0), []

    def other(gc):
        try:
            gc.close()
        except RuntimeError as e:
            errors.append(str(e))
        y = leaf(1.0)
        with cg.GradientCollector() as mine:
            mine.backward(y * 2)
            mine.backward(y * 2)
        errors.append(y.grad.item())

    with cg.GradientCollector() as gc:
        t = threading.Thread(target=other, args=(gc,))
        t.start()
        t.join()
        gc.backward(x * 1)
        gc.backward(x * 1)
    assert errors == ["GradientCollector: it was opened in another thread, and only that thread can close it", 4.0]
    assert x.grad.item() == 2


# ---- saved_tensors_hooks ---------------------------------------------------------------------------------------------

def to_numpy():
    return saved_tensors_hooks(lambda t: t.numpy().copy(), cg.asarray)


def net(x, w):
    return (cg.tanh(x @ w) * cg.relu(x @ w) / (1 + x * x).sum()).sum()


@pytest.mark.parametrize("retain", [False, True])
def test_gradients_are_the_same_and_nothing_is_kept(retain):
    x, w = leaf(1, 2, 3, -1), leaf(*range(8))
    x2, w2 = (v.detach().copy().attach_grad() for v in (x, w))
    with cg.record():
        y = net(x.reshape(2, 2), w.reshape(2, 4)[:, :2])
    y.backward()
    with to_numpy(), cg.record() as tape:
        y = net(x2.reshape(2, 2), w2.reshape(2, 4)[:, :2])
    assert tape.saved_bytes == 0
    for _ in range(1 + retain):
        y.backward(retain_graph=retain)
        assert x2.grad.tolist() == x.grad.tolist() and w2.grad.tolist() == w.grad.tolist()
    assert tape.saved_bytes == 0


def test_second_derivatives_through_packed_tensors():
    x = leaf(1, 2)
    with to_numpy(), cg.record():
        y = (x * x * x).sum()
        g = cg.autograd.grad(y, x, create_graph=True)
        s = g.sum()
    assert g.tolist() == [3, 12] and cg.autograd.grad(s, x).tolist() == [6, 12]


def test_in_place_checks_stay_on():
    x = leaf(1, 2)
    with to_numpy(), cg.record():
        a = x * 1
        y = cg.exp(a) * a
        b = cg.exp(a)
        b += 1
        z = b.sum()
    with pytest.raises(cg.InplaceError, match="exp saved a tensor .* at version 0, but it has .* at version 1"):
        z.backward()
    a = a.detach()
    a += 1
    with pytest.raises(cg.InplaceError, match="mul saved a tensor"):
        y.backward()


def test_memory_that_is_gone_was_not_written_to():
    x = leaf(1, 2)
    with to_numpy(), cg.record():
        y = cg.exp(x * 1) * (x * 1)
    for _ in range(10):                             # its memory is reused
        t = cg.zeros(2, dtype="float64")
        t += 1
    y.backward()
    np.testing.assert_allclose(x.grad.numpy(), np.exp([1, 2]) * [2, 3])


def test_hooks_see_detached_tensors_and_record_nothing():
    x, seen = leaf(1, 2), []

    def pack(t):
        seen.append((t.requires_grad, cg.is_recording(), t.shape))
        return t * 1

    with saved_tensors_hooks(pack, lambda t: t), cg.record() as tape:
        y = x * x
        assert tape.nodes == 1
    assert seen == [(False, False, (2,))] * len(seen) and seen
    y.backward()
    assert x.grad.tolist() == [2, 4]


def test_scopes_of_hooks_nest():
    x, names = leaf(1.0), []

    def scope(name):
        return saved_tensors_hooks(lambda t: (names.append(name), t)[1], lambda t: t)

    with cg.record(), scope("outer"):
        cg.exp(x)
        with scope("inner"):
            cg.exp(x)
        cg.exp(x)
    with cg.record():
        cg.exp(x)
    assert names == ["outer", "inner", "outer"]


@pytest.mark.parametrize("unpack, error, words", [
    (lambda t: 3.0, TypeError, "unpack returned float; it must return the tensor that was passed to pack"),
    (lambda t: cg.zeros(3), ValueError, r"unpack returned a float32 tensor of shape \(3,\); pack got a float64"),
])
def test_what_unpack_may_not_return(unpack, error, words):
    x = leaf(1, 2)
    with saved_tensors_hooks(lambda t: t, unpack), cg.record():
        y = cg.exp(x)
    with pytest.raises(error, match=words) as e:
        y.backward()
    del e


def test_an_exception_in_pack_ends_the_operation():
    x = leaf(1, 2)

    def pack(t):
        raise KeyError("mine")

    with cg.testing.assert_no_leak(), cg.record(), saved_tensors_hooks(pack, pack):
        with pytest.raises(KeyError, match="mine") as e:
            cg.exp(x)
        del e


# ---- detect_anomaly --------------------------------------------------------------------------------------------------

def test_the_first_nan_and_its_line():
    x = leaf(0.0, 1.0)
    with detect_anomaly(), cg.record():
        y = x * 0
        z = y ** 0.5                                # the line
        w = (z * z * 0).sum() + (z * 1).sum()
        with pytest.raises(RuntimeError, match="the backward of (mul|pow), recorded at .*test_scopes.py:") as e:
            w.backward()
    del e
    with cg.record():                               # silent without the scope
        w = ((x * 0) ** 0.5 * 0).sum()
    w.backward()
    assert np.isnan(x.grad.tolist()).any()


def test_anomaly_under_create_graph_and_a_nan_from_outside():
    x = leaf(1.0)
    with detect_anomaly(), cg.record():
        y = x * x
        y.backward(cg.tensor([float("nan")], dtype="float64"))      # the NaN comes from outside: no error
        assert np.isnan(x.grad.item())
        z = (x - 1) ** 0.5
        with pytest.raises(RuntimeError, match="the backward of pow.*its incoming gradients had none"):
            cg.autograd.grad(z * 0, x, create_graph=True)


def test_in_place_errors_name_the_line_under_detect_anomaly():
    x = leaf(1.0)
    with detect_anomaly(), cg.record():
        y = x * 1
        z = cg.exp(y)
        z += 1
    lines = r"exp \(recorded at .*test_scopes.py:(\d+) in test_in_place.*since \(at .*test_scopes.py:(\d+) in test_in"
    with pytest.raises(cg.InplaceError, match=lines) as e:
        z.backward()
    first, second = re.search(lines, str(e.value)).groups()
    assert int(second) == int(first) + 1
    del e


# ---- scopes that are never left --------------------------------------------------------------------------------------

def in_a_thread(f):
    """The result of `f` in a thread of its own, whose flags end with it."""
    found = []
    thread = threading.Thread(target=lambda: found.append(f()))
    thread.start()
    thread.join()
    return found[0]


def test_hooks_whose_scope_died_without_being_left_still_work():
    def run():
        seen, x = [], leaf(3)

        def scope(k):
            return saved_tensors_hooks(lambda t: seen.append(k) or t, lambda t: t)

        def step():
            with cg.record():
                y = x * x
            y.backward()

        first, second = scope("a"), scope("b")
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)            # not in order: there were none before the first
        del first
        step()
        second.__exit__(None, None, None)           # ... and the first's before the second
        del second
        step()
        scope("c").__enter__()
        step()
        return seen, x.grad.tolist()

    assert in_a_thread(run) == (["a", "a", "c", "c"], [6])


def test_a_collector_that_died_open_collects_on():
    def run():
        x = leaf(3, req="add")
        cg.GradientCollector().__enter__()
        (x * 2).backward()
        (x * 3).backward()
        return x.grad.tolist()

    assert in_a_thread(run) == [5]

    def another():
        cg.GradientCollector().__enter__()
        with cg.GradientCollector() as gc:
            x = leaf(3)
            gc.backward(x * 2)
        return x.grad.tolist()

    assert in_a_thread(another) == [2]


# ---- disable_saved_tensors_hooks -------------------------------------------------------------------------------------

def disabled_hooks(disable, hooks):
    """The messages of PyTorch's scopes."""
    seen = []

    def opened(scope):
        try:
            with scope: seen.append("open")
        except RuntimeError as e: seen.append(str(e))

    def use(): return hooks(lambda t: t, lambda t: t)

    opened(use())
    with disable("outer"):
        opened(use())
        with disable("inner"): opened(use())
        opened(use())
        with pytest.raises(KeyError), disable("inner"): raise KeyError
        opened(use())
    opened(use())
    with use(): opened(disable("inside of hooks"))
    opened(use())
    return seen


def test_disabled_saved_tensors_hooks_as_in_pytorch():
    graph = pytest.importorskip("torch").autograd.graph
    expected = disabled_hooks(graph.disable_saved_tensors_hooks, graph.saved_tensors_hooks)
    assert disabled_hooks(disable_saved_tensors_hooks, saved_tensors_hooks) == expected
    assert expected == ["open", "outer", "inner", "outer", "outer", "open", "inside of hooks", "open"]


def test_disabled_saved_tensors_hooks_of_one_thread(tmp_path):
    seen = []

    def work():
        with saved_tensors_hooks(lambda t: t, lambda t: t): seen.append("open")

    scope = disable_saved_tensors_hooks("not here")
    with scope, scope:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    work()
    offload = cg.memory.offload
    with offload(tmp_path), disable_saved_tensors_hooks("not here"), offload(tmp_path): pass
    assert seen == ["open"] * 2
