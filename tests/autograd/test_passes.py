"""backward and grad, contract 4."""

import itertools
import threading

import numpy as np
import pytest

import cygrad as cg
from cygrad.autograd import grad
from cygrad.testing import assert_no_leak


def variable(*numbers, dtype="float64", req="write"):
    return cg.tensor(list(numbers or (1.0, 2.0)), dtype=dtype).attach_grad(req)


def recorded(f, *args):
    with cg.record():
        return f(*args)


def state(*xs):
    return [(x.grad.tolist(), x.grad.version, x.fresh_grad) for x in xs]


# ---- heads -----------------------------------------------------------------------------------------------------------

def test_heads_are_ones_by_default():
    x = variable(1, 2, 3, 4)
    y = recorded(lambda: x * x + 1)
    y.backward()
    assert x.grad.tolist() == [2.0, 4.0, 6.0, 8.0]


def test_head_gradients():
    x = variable()
    for head in (cg.tensor([1.0, 10.0], dtype="float64"), cg.tensor([[10.0, 1.0]], dtype="float64")[0, ::-1]):
        recorded(lambda: x * x).backward(head)
        assert x.grad.tolist() == [2.0, 40.0] and head.tolist() == [1.0, 10.0]
    y, z = recorded(lambda: (x * 2, x * 3))
    cg.backward([y, z], [None, cg.tensor([1.0, 10.0], dtype="float64")])
    assert x.grad.tolist() == [5.0, 32.0]


def test_numbers_and_arrays_as_heads():
    x = cg.tensor([1.0, 2.0]).attach_grad()
    with cg.record():
        y, z = x * 2, (x * 3).sum()
    y.backward(8.0, retain_graph=True)
    assert x.grad.tolist() == [16.0, 16.0]
    cg.backward([y, z], [np.float32(2), 3], retain_graph=True)
    assert x.grad.tolist() == [13.0, 13.0]
    a = np.array([1.0, 2.0], "float32")
    for head in (a, a[::-1][::-1], np.broadcast_to(np.float32(1), 2) * a):
        y.backward(head, retain_graph=True)
        assert x.grad.tolist() == [2.0, 4.0]
        x.grad.fill_(7)                             # (reuses the memory of the head)
        assert head.tolist() == [1.0, 2.0]
    assert cg.autograd.grad(y, x, 2, retain_graph=True).tolist() == [4.0, 4.0]
    assert cg.autograd.grad([y, z], [x], [np.int64(2), None], retain_graph=True)[0].tolist() == [7.0, 7.0]
    assert cg.autograd.grad(z, x, np.array(5, "float32"), create_graph=True).tolist() == [15.0, 15.0]
    before = x.grad.tolist()
    for wrong, error in ((np.ones(3, "float32"), ValueError), (np.ones(2), ValueError), (True, TypeError),
                         (np.True_, TypeError), (2j, TypeError), ("2", TypeError), ([1.0, 2.0], ValueError)):
        with pytest.raises(error, match="^backward: "):
            y.backward(wrong, retain_graph=True)
    assert x.grad.tolist() == before
    y.backward(1)


def test_create_graph_is_named_where_it_is_missing():
    x = cg.tensor([1.0, 2.0]).attach_grad()
    with cg.record():
        y = (x * x).sum()
    g = cg.autograd.grad(y, x, retain_graph=True)
    with cg.record():
        late = (g * g).sum() + 1
    y.backward(retain_graph=True)
    with cg.record():
        later = cg.stack([x.grad, g])
    for f in (late.backward, later.backward, g.backward, x.grad.backward, lambda: cg.autograd.grad(g, x)):
        with pytest.raises(RuntimeError, match=r"; it comes from a gradient without a graph: pass create_graph=True"):
            f()
    with cg.record():
        plain = cg.ones(2) * 2
    with pytest.raises(RuntimeError, match=r"inside `with cygrad.record\(\):`$"):
        plain.backward()
    with cg.record():
        linear = (3 * x).sum()
    constant = cg.autograd.grad(linear, x, create_graph=True)
    with pytest.raises(RuntimeError, match="unless you did: then it does not depend on a variable, and its derivative "
                                           "is zero$"):
        cg.autograd.grad(constant, x)
    g = cg.autograd.grad(y, x, create_graph=True)
    cg.autograd.grad(g, x)
    with cg.record():
        mixed = (g.detach() * x).sum()              # it has a graph of its own, so its gradient is complete
    mixed.backward()
    assert x.grad.tolist() == [2.0, 4.0]


def test_same_head_twice_counts_twice():
    x = variable()
    y = recorded(lambda: x * 3)
    cg.backward([y, y])
    assert x.grad.tolist() == [6.0, 6.0]
    y = recorded(lambda: x * 3)
    cg.backward([y, y], [None, cg.tensor([1.0, 2.0], dtype="float64")])
    assert x.grad.tolist() == [6.0, 9.0]
    y = recorded(lambda: x * 3)
    assert grad([y, y, y], x).tolist() == [9.0, 9.0]


def test_heads_that_feed_heads():
    x = variable()
    for order in itertools.permutations(range(3)):
        with cg.record():
            a = x * x
            b = a * 3
            c = b + a
        heads = [a, b, c]
        cg.backward([heads[i] for i in order])
        assert x.grad.tolist() == [2 * v * (1 + 3 + 4) for v in (1.0, 2.0)]


def test_variable_as_head_gets_ones():
    x = variable()
    x.backward()
    assert x.grad.tolist() == [1.0, 1.0]
    x.backward(cg.tensor([5.0, 6.0], dtype="float64"))
    assert x.grad.tolist() == [5.0, 6.0]
    y = recorded(lambda: x * 2)
    cg.backward([x, y])
    assert x.grad.tolist() == [3.0, 3.0]
    assert grad(x, x).tolist() == [1.0, 1.0]


@pytest.mark.parametrize("req", ["write", "add"])
def test_one_variable_in_all_places_of_an_operation(req):
    """Kernels write straight into .grad: the second place must add to the first."""
    numbers = np.array([[0.0, 1.0], [2.0, 3.0]])
    ones = np.ones((2, 2))
    w = cg.tensor(numbers).attach_grad(req)
    for f, wanted in (
        (lambda: cg.matmul(w, w), ones @ numbers.T + numbers.T @ ones),
        (lambda: cg.linear(w, w), ones @ numbers + ones @ numbers),
        (lambda: w * w, 2 * numbers), (lambda: w - w, 0 * numbers), (lambda: w / (w + 1), 1 / (numbers + 1) ** 2),
    ):
        w.zero_grad()
        recorded(f).backward()
        np.testing.assert_allclose(w.grad.numpy(), wanted, rtol=1e-14, atol=1e-15)


def test_head_is_never_written_over():
    """The caller's head stays unchanged, even if every kernel in the pass could overwrite it."""
    x = variable()
    head = cg.tensor([3.0, 4.0], dtype="float64")
    recorded(lambda: cg.tanh(cg.exp(-(x * 0.1)))).backward(head)
    assert head.tolist() == [3.0, 4.0] and head.version == 0
    recorded(lambda: x * 1).backward(head)
    assert x.grad is not head
    x.grad.numpy()[...] = 0
    assert head.tolist() == [3.0, 4.0]


@pytest.mark.parametrize("ask", [cg.backward, lambda *a: grad(a[0], X, *a[1:])], ids=["backward", "grad"])
def test_wrong_heads(ask):
    y, z = recorded(lambda: (X * 2, X * 3))
    before = state(X)
    for outputs, gradients, error, match in [
        ([], None, ValueError, "got no outputs; pass a tensor or a list of tensors"),
        ([y, z], [None], ValueError, "got 2 outputs but 1 gradients; pass one"),
        (y, [None, None], ValueError, "got 1 outputs but 2 gradients"),
        (y, cg.ones(3, dtype="float64"), ValueError,
         r"gradient 0 is float64 of shape \(3,\); output 0 is float64 of shape \(2,\), and they must agree"),
        ([y, z], [None, cg.ones(2)], ValueError, r"gradient 1 is float32 of shape \(2,\); output 1 is float64"),
        ([y, 3.0], None, TypeError, "output 1 must be a tensor, got float"),
        (y, [[1.0, 1.0]], TypeError, "gradient 0 must be a tensor, a NumPy array, a number or None, got list"),
    ]:
        with pytest.raises(error, match=match):
            ask(outputs, gradients)
        assert state(X) == before
    cg.backward([y, z])                             # the refused calls freed nothing
    assert X.grad.tolist() == [5.0, 5.0]


@pytest.fixture(autouse=True)
def shared_variable():
    global X
    X = variable()
    yield
    X = None


def test_nothing_recorded():
    x = variable()
    outside = x * x
    for y in (outside, cg.zeros(2), recorded(lambda: cg.zeros(2) * 2), recorded(lambda: x.detach() * 2)):
        for ask in (y.backward, lambda y=y: grad(y, x), lambda y=y: cg.backward([recorded(lambda: x * 2), y])):
            with pytest.raises(RuntimeError, match=r"was not recorded; compute it from a variable .* inside `with cyg"):
                ask()
    assert x.grad.tolist() == [0.0, 0.0]


# ---- retain_graph and freed graphs -----------------------------------------------------------------------------------

def freed(ask):
    with pytest.raises(cg.GraphFreedError, match=r"backward through \w+ a second time: .*retain_graph=True"):
        ask()


def test_retain_graph():
    x = variable(req="add")
    y = recorded(lambda: cg.exp(x * x))
    y.backward(retain_graph=True)
    first = x.grad.tolist()
    y.backward(retain_graph=True)
    assert x.grad.tolist() == [2 * v for v in first]
    y.backward()
    assert x.grad.tolist() == [3 * v for v in first]
    freed(y.backward)
    assert x.grad.tolist() == [3 * v for v in first]
    assert issubclass(cg.GraphFreedError, RuntimeError)


def test_retained_gradients_are_bit_equal():
    x = variable(0.3, -1.7)
    y = recorded(lambda: (cg.tanh(x) * cg.exp(x) / (x * x + 1)).sum())
    y.backward(retain_graph=True)
    first = x.grad.copy().numpy().tobytes()
    y.backward()
    assert x.grad.numpy().tobytes() == first


def test_a_node_that_kept_nothing_counts_too():
    x = variable()
    y = recorded(lambda: x + 1)
    y.backward()
    freed(y.backward)
    freed(lambda: grad(y, x))


def test_freed_from_a_sibling():
    x = variable()
    with cg.record():
        a = x * x
        b, c = a + 1, a + 2
    b.backward()
    before = state(x)
    freed(c.backward)
    freed(lambda: cg.backward([recorded(lambda: x * 1), c]))
    freed(lambda: grad(c, x))
    assert state(x) == before


def test_freed_through_a_new_graph():
    x = variable()
    a = recorded(lambda: x * x)
    recorded(lambda: a + 1).backward()
    z = recorded(lambda: a * 3 + x)
    before = state(x)
    freed(z.backward)
    assert state(x) == before
    assert z.tolist() == [4.0, 14.0]


def test_what_leads_elsewhere_is_not_freed():
    """Only the nodes that ran are freed. What another output needs in addition still exists."""
    x, w = variable(), variable()
    a, b = recorded(lambda: (x * x, w * w))
    c = recorded(lambda: a * 2 + b * 3)
    assert grad(c, a).tolist() == [2.0, 2.0]
    a.backward()                                    # a's own node did not run
    assert x.grad.tolist() == [2.0, 4.0]
    freed(c.backward)
    b.backward()
    assert w.grad.tolist() == [2.0, 4.0]


def test_buffers_are_freed_as_nodes_run():
    """Not at the end: the peak of a backward pass over a chain is far below the bytes that the graph saves."""
    x = cg.tensor(np.zeros(1000)).attach_grad()
    with cg.record() as tape:
        y = x
        for _ in range(50):
            y = cg.exp(y * 0.01)
    kept = tape.saved_bytes
    assert kept == 50 * 8000
    live = cg.memory.stats()["live_bytes"]
    with cg.memory.track() as t:
        y.backward()
    assert t.peak_bytes <= live + 3 * 8000
    assert tape.saved_bytes == 0


def test_freed_bytes_of_a_partial_pass():
    x, w = variable(), variable()
    with cg.record() as tape:
        a = cg.exp(x)
        b = cg.exp(w)
        c = a * b
    assert tape.saved_bytes == 32
    grad(c, x)
    assert tape.saved_bytes == 16                   # w's exp has not run
    freed(lambda: grad(c, w))
    b.backward()
    assert tape.saved_bytes == 0


# ---- create_graph ----------------------------------------------------------------------------------------------------

def test_create_graph_to_third_order():
    x = variable(0.5, 2.0)
    with cg.record():
        y = x * x * x * x
        first = grad(y, x, create_graph=True)
        second = grad(first, x, create_graph=True)
        third = grad(second, x, create_graph=True)
        fourth = grad(third, x)
    v = np.array([0.5, 2.0])
    for found, wanted in ((first, 4 * v**3), (second, 12 * v**2), (third, 24 * v), (fourth, 24 + 0 * v)):
        np.testing.assert_allclose(found.detach().numpy(), wanted, rtol=1e-14)
    assert first.requires_grad and third.requires_grad and not fourth.requires_grad
    assert x.grad.tolist() == [0.0, 0.0]


def test_create_graph_outside_record():
    """A backward with create_graph records also outside record()."""
    x = variable()
    y = recorded(lambda: x * x * x)
    first = grad(y, x, create_graph=True)
    assert not cg.is_recording() and first.requires_grad
    assert grad(first, x).tolist() == [6.0, 12.0]


def test_backward_with_create_graph_puts_a_new_gradient():
    for req in ("write", "add"):
        x = variable(req=req)
        old = x.grad
        y = recorded(lambda x=x: x * x * x)
        y.backward(create_graph=True)
        assert x.grad is not old and x.grad.requires_grad and old.tolist() == [0.0, 0.0]
        g, x.grad = x.grad, None
        g.backward()
        assert x.grad.tolist() == [6.0, 12.0]


def test_create_graph_adds():
    x = variable(req="add")
    for n in (1, 2):
        recorded(lambda: x * x).backward(create_graph=True)
        assert x.grad.tolist() == [2.0 * n, 4.0 * n] and x.grad.requires_grad
    recorded(lambda: x * x).backward()
    assert x.grad.tolist() == [6.0, 12.0]
    assert not x.grad.requires_grad


def test_create_graph_leaves_no_cycle():
    """x.grad has a graph that leads to x. Reference counts alone must free everything."""
    with assert_no_leak():
        x = variable()
        y = recorded(lambda x=x: cg.exp(cg.tanh(x) * x).sum())
        y.backward(create_graph=True)
        second = grad(recorded(lambda x=x: x.grad.sum()), x, create_graph=True)
        del second, y, x


def test_create_graph_retains_and_may_be_told_not_to():
    x = variable()
    y = recorded(lambda: x * x)
    grad(y, x, create_graph=True)
    grad(y, x, create_graph=True, retain_graph=False)
    freed(lambda: grad(y, x))


def test_heads_with_a_graph():
    """The head's own graph is part of the gradient's."""
    x, h = variable(), variable(3.0, 4.0)
    y = recorded(lambda: x * x)
    dx = grad(y, x, h, create_graph=True)
    assert grad(dx, h).tolist() == [2.0, 4.0]


# ---- errors come before anything changes -----------------------------------------------------------------------------

def test_nothing_has_changed_after_a_refusal():
    """If the second of two heads cannot run, the first does not run either."""
    x, w = variable(), variable()
    good, old = recorded(lambda: (w * w, x * x))
    bad = recorded(lambda: old * 2)
    old.backward()
    before = state(x, w)
    with cg.record() as tape:
        pass
    for ask in (lambda: cg.backward([good, bad]), lambda: cg.backward([bad, good]), lambda: grad([good, bad], [w, x])):
        freed(ask)
        assert state(x, w) == before
    good.backward()
    assert w.grad.tolist() == [2.0, 4.0] and tape.nodes == 0


def test_backward_runs_without_recording():
    x = variable()
    with cg.record() as tape:
        y = x * x
        nodes = tape.nodes
        y.backward(retain_graph=True)
        assert tape.nodes == nodes and cg.is_recording() and cg.is_training()
        assert not x.grad.requires_grad


def test_backward_from_another_thread():
    x = variable()
    y = recorded(lambda: x * x)
    thread = threading.Thread(target=y.backward)
    thread.start()
    thread.join()
    assert x.grad.tolist() == [2.0, 4.0]


def test_a_long_chain_runs_and_is_freed():
    x = variable(1.0)
    with cg.record() as tape:
        y = x
        for _ in range(100_000):
            y = y + x
    assert tape.nodes == 100_000
    y.backward()
    assert x.grad.tolist() == [100_001.0]
    y = recorded(lambda: x)
    assert tape.nodes == 0


def test_an_exception_carries_where_it_happened():
    x = cg.tensor([1.0, 2.0]).attach_grad()
    with cg.record():
        y = (x * x).exp()
    notes = []
    try:
        with cg.testing.fail_allocation(1, persistent=True):
            y.backward(y)
    except MemoryError as e:
        notes = e.__notes__
    assert [n for n in notes if "in backward, at exp" in n and "0 gradients had been written" in n], notes


def test_an_exception_counts_what_its_own_node_had_written():
    """linear writes dw straight into w.grad; then there is no memory for dx."""
    x, w = cg.ones((2, 3)).attach_grad(), cg.ones((4, 3)).attach_grad()
    w.grad.fill_(0)                                 # (zeros without memory would not be written)
    with cg.record():
        y = cg.linear(x * 1.0, w)
    head = cg.ones((2, 4))
    with pytest.raises(MemoryError) as caught, cg.testing.fail_allocation(1):
        y.backward(head, retain_graph=True)
    assert caught.value.__notes__ == ["cygrad: in backward, at linear; 1 gradients had been written before; "
                                     "the graph is kept"]
    assert w.fresh_grad and w.grad.tolist() == [[2.0] * 3] * 4 and not x.fresh_grad
    del caught
