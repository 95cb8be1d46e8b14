"""Hooks of all four kinds, and retained gradients of intermediates: contracts 3 and 4."""

import gc
import weakref

import pytest

import cygrad as cg


def leaf(*values):
    return cg.tensor(list(values), dtype="float64").attach_grad()


# ---- register_hook ---------------------------------------------------------------------------------------------------

def test_hook_on_an_intermediate_sees_the_complete_gradient_once():
    x, seen = leaf(1, 2), []
    with cg.record():
        y = x * 3
        z = (y * y).sum() + (y * 5).sum()
        y.register_hook(lambda g: seen.append(g.tolist()))
    z.backward()
    assert seen == [[2 * 3 + 5, 2 * 6 + 5]] and x.grad.tolist() == [33, 51]


def test_hook_on_a_variable_sees_the_sum_and_replaces_it():
    x, seen = leaf(1, 2), []
    x.register_hook(lambda g: seen.append(g.tolist()))
    x.register_hook(lambda g: g * 10)
    x.register_hook(lambda g: seen.append(g.tolist()))
    for _ in range(2):
        with cg.record():
            y = (x * 2).sum() + (x * 3).sum()
        y.backward()
    assert seen == [[5, 5], [50, 50]] * 2 and x.grad.tolist() == [50, 50]


def test_removed_hooks_are_not_called():
    x, seen = leaf(1.0), []
    handle = x.register_hook(lambda g: seen.append(1))
    with x.register_hook(lambda g: seen.append(2)), cg.record():
        x.sum().backward()
    handle.remove()
    handle.remove()
    with cg.record():
        x.sum().backward()
    assert seen == [1, 2]


def test_hooks_and_grad():
    x = leaf(1, 2)
    x.register_hook(lambda g: g + 1)
    with cg.record():
        y = x * 2
        y.register_hook(lambda g: g * 10)
        z = y.sum()
    assert [g.tolist() for g in cg.autograd.grad(z, [x, y])] == [[21, 21], [10, 10]] and x.grad.tolist() == [0, 0]


def test_hooks_under_create_graph_are_differentiated():
    x = leaf(1, 2)
    x.register_hook(lambda g: g * g)
    with cg.record():
        y = (x * x).sum()
    g = cg.autograd.grad(y, x, create_graph=True)   # (2 x)^2
    with cg.record():
        s = g.sum()
    x2 = cg.autograd.grad(s, x)                     # 8 x, squared by the hook
    assert g.tolist() == [4, 16] and x2.tolist() == [64, 256]


def test_a_gradient_that_a_hook_keeps_is_not_written_over():
    x, kept = leaf(1, 2), []
    with cg.record():
        y = cg.exp(x)
        z = (y * 2).sum()
        y.register_hook(kept.append)
    z.backward()
    assert kept[0].tolist() == [2, 2] and not kept[0].requires_grad


def test_a_hook_may_write_into_a_gradient_that_nobody_shares():
    def scale(g):
        g *= 10

    x = leaf(1, 2)
    with cg.record():
        y = x * 2
        y.register_hook(scale)
        z = (y * 3).sum()
    z.backward()
    assert x.grad.tolist() == [60, 60]


@pytest.mark.parametrize("graph", [False, True])
@pytest.mark.parametrize("kind", ["tensor", "before", "after"])
def test_a_hook_that_writes_into_a_shared_gradient_is_told(kind, graph):
    """a + b passes one gradient to both operands, so a write for one would change that of the other."""
    def write(*grads):
        g = grads[0][0] if isinstance(grads[0], tuple) else grads[0]
        g *= 10

    a, b, head = leaf(1, 2), leaf(3, 4), cg.ones(2, dtype="float64")
    with cg.record():
        y = a + b
    if kind == "tensor": a.register_hook(write)
    elif kind == "before": y.grad_fn.register_prehook(write)
    else: y.grad_fn.register_hook(write)
    with pytest.raises(cg.InplaceError, match="wrote in place to a gradient of shape .2,. that it shares with others"):
        y.backward(head, create_graph=graph)
    assert b.grad.tolist() in ([0, 0], [1, 1])      # (the one that arrived first, not the written one)


@pytest.mark.parametrize("value, error, words", [
    (lambda: 3.0, TypeError, "a hook on a result of mul returned float; it may return None or a tensor"),
    (lambda: cg.zeros(3), ValueError, r"float32 tensor of shape \(3,\); the gradient is float64 of shape \(2,\)"),
])
def test_what_a_hook_may_not_return(value, error, words):
    x = leaf(1, 2)
    with cg.record():
        y = x * 2
        y.register_hook(lambda g: value())
        z = y.sum()
    with pytest.raises(error, match=words) as e:
        z.backward()
    assert "at mul; 0 gradients" in e.value.__notes__[0] and x.grad.tolist() == [0, 0]
    del e
    with pytest.raises(cg.GraphFreedError):
        z.backward()


def test_an_exception_in_a_hook_reaches_the_caller_as_itself():
    class Own(Exception):
        pass

    def hook(g):
        raise Own("mine")

    a, b = leaf(1.0), leaf(2.0)
    with cg.record():
        y = a * 1
        y.register_hook(hook)
        z = (y * b).sum()
    with pytest.raises(Own, match="mine") as e:
        z.backward()
    assert "1 gradients had been written" in e.value.__notes__[0] and b.grad.tolist() == [1.0]
    del e


def test_hooks_of_a_freed_graph_are_gone():
    class Big:
        pass

    big = Big()
    ref = weakref.ref(big)
    x = leaf(1.0)
    with cg.record():
        y = x * 2
        y.register_hook(lambda g, big=big, me=y: None)  # a cycle through the tensor itself
        z = y.sum()
    del big
    z.backward()
    del y, z
    gc.collect()
    assert ref() is None


# ---- register_post_accumulate_grad_hook ------------------------------------------------------------------------------

@pytest.mark.parametrize("req", ["write", "add"])
def test_post_accumulate_hooks_run_once_when_all_has_come(req):
    x, seen = leaf(1, 2).attach_grad(req), []
    x.register_post_accumulate_grad_hook(lambda v: seen.append((id(v), v.grad.tolist())))
    for _ in range(2):
        with cg.record():
            y = (x * 2).sum() + (x * 3).sum()
        y.backward()
    assert seen == [(id(x), [5, 5]), (id(x), [5, 5] if req == "write" else [10, 10])]
    with cg.record():
        cg.autograd.grad((x * 2).sum(), x)
    assert len(seen) == 2


def test_a_hook_that_refers_to_its_own_variable_lets_go_when_removed():
    x = leaf(1.0)
    with x.register_post_accumulate_grad_hook(lambda v: print(x)):
        pass


def test_a_solver_in_a_post_accumulate_hook():
    x = leaf(1, 2)
    x.requires_grad_()

    def step(v):
        with cg.no_grad():
            v -= 0.5 * v.grad
        v.grad = None

    x.register_post_accumulate_grad_hook(step)
    with cg.record():
        y = (x * x).sum()
    y.backward()
    assert x.tolist() == [0, 0] and x.grad is None


# ---- hooks on nodes --------------------------------------------------------------------------------------------------

def test_node_hooks_see_and_replace():
    x, w, seen = leaf(1, 2), leaf(3, 4), []
    with cg.record():
        y = x * w
        node = y.grad_fn
        node.register_prehook(lambda gs: tuple(g * 2 for g in gs))
        node.register_hook(lambda inputs, outputs: seen.append(
            ([g.tolist() for g in inputs], [g.tolist() for g in outputs])))
        node.register_hook(lambda inputs, outputs: (inputs[0], inputs[1] + 100))
        z = y.sum()
    z.backward()
    assert seen == [([[6, 8], [2, 4]], [[2, 2]])]
    assert x.grad.tolist() == [6, 8] and w.grad.tolist() == [102, 104]


def test_node_hooks_in_order_with_the_others():
    x, order = leaf(1.0), []
    with cg.record():
        y = x * 2
        y.grad_fn.register_hook(lambda i, o: order.append("post"))
        y.grad_fn.register_prehook(lambda o: order.append("pre"))
        y.register_hook(lambda g: order.append("tensor"))
        y.retain_grad()
        z = y.sum()
    x.register_post_accumulate_grad_hook(lambda v: order.append("accumulated"))
    x.register_hook(lambda g: order.append("leaf"))
    z.backward()
    assert order == ["tensor", "pre", "post", "leaf", "accumulated"]


def test_a_leaf_takes_post_hooks():
    """As for PyTorch's accumulator: after .grad is complete and after the variable's own hooks, without inputs."""
    x, order = leaf(1.0, 2.0), []
    with cg.record():
        y = x * 2 + x * 3
    [node] = {n for n, _ in y.grad_fn.next_functions[0][0].next_functions if n is not None}
    seen = node.register_hook(lambda i, o: order.append((i, [g.tolist() for g in o], x.grad.tolist())))
    x.register_post_accumulate_grad_hook(lambda v: order.append("accumulated"))
    x.register_hook(lambda g: g * 10)
    y.backward(retain_graph=True)
    assert order == ["accumulated", ((), [[50.0, 50.0]], [50.0, 50.0])]
    cg.autograd.grad(y, x, retain_graph=True)       # nothing arrives in .grad
    assert len(order) == 2
    handle = node.register_hook(lambda i, o: ())
    y.backward(create_graph=True)
    assert len(order) == 4
    handle.remove()
    seen.remove()                                   # (it refers to its own variable)
    x.zero_grad()
    x.grad = None
    del y, node


def test_a_leafs_post_hook_keeps_what_it_was_given():
    x, kept = leaf(1.0, 2.0), []
    with cg.record():
        y = x * 2
    y.grad_fn.next_functions[0][0].register_hook(lambda i, o: kept.extend(o))
    y.backward(retain_graph=True)
    y.backward(2)
    assert [g.tolist() for g in kept] == [[2.0, 2.0], [4.0, 4.0]] and x.grad.tolist() == [4.0, 4.0]


def test_wrong_counts_from_node_hooks():
    for register, words in (("register_prehook", "a pre-hook of mul returned 2 values; .* a tuple of 1"),
                            ("register_hook", "a hook of mul returned 3 values; .* a tuple of 2")):
        x = leaf(1.0)
        with cg.record():
            y = x * x
            getattr(y.grad_fn, register)(lambda *gs: (None,) * (len(gs) + 1))
            z = y.sum()
        with pytest.raises(ValueError, match=words):
            z.backward()
        del y, z


# ---- retained gradients ----------------------------------------------------------------------------------------------

def test_retain_grad():
    """The gradients of several passes are added, as in PyTorch."""
    x = leaf(1, 2)
    with cg.record():
        y = x * 3
        y.retain_grad()
        z = (y * y).sum()
    assert y.grad is None and y.grad_req == "add" and not y.is_leaf
    z.backward(retain_graph=True)
    first = y.grad
    assert first.tolist() == [6, 12]
    y.retain_grad()                                 # changes nothing
    z.backward()
    assert y.grad is first and y.grad.tolist() == [12, 24] and x.grad.tolist() == [18, 36]


def test_retain_grad_after_attach_grad():
    """A result that keeps its gradient already keeps its grad_req."""
    x = leaf(1, 2)
    with cg.record():
        y = x * 3
        y.attach_grad().retain_grad()
        z = (y * y).sum()
    assert y.grad_req == "write" and y.grad.tolist() == [0, 0]
    z.backward(retain_graph=True)
    z.backward()
    assert y.grad.tolist() == [6, 12]
    y.drop_grad()
    y.retain_grad()
    assert y.grad is None and y.grad_req == "add"


@pytest.mark.parametrize("req, twice", [("write", [6, 12]), ("add", [12, 24]), ("null", None)])
def test_attach_grad_on_an_intermediate(req, twice):
    x = leaf(1, 2)
    with cg.record():
        y = x * 3
        assert y.attach_grad(req) is y
        z = (y * y).sum()
    if req != "null": assert y.grad.tolist() == [0, 0]
    z.backward(retain_graph=True)
    assert req == "null" or y.fresh_grad
    z.backward()
    assert (y.grad if twice is None else y.grad.tolist()) == twice
    assert x.grad.tolist() == [18, 36]              # the graph still exists
    y.drop_grad()
    assert y.grad is None and y.requires_grad


def test_mark_variables_on_an_intermediate_writes_into_the_given_buffer():
    x, g = leaf(1, 2), cg.zeros(2, dtype="float64")
    with cg.record():
        y = x * 3
        cg.mark_variables(y, g)
        z = (y * y).sum()
    z.backward()
    assert g.tolist() == [6, 12] and y.grad is g


def test_a_given_buffer_and_create_graph():
    x, g = leaf(1, 2), cg.zeros(2, dtype="float64")
    with cg.record():
        y = x * 3
        cg.mark_variables(y, g)
        z = (y * y).sum()
    with pytest.raises(RuntimeError, match="create_graph=True would replace the gradient"):
        z.backward(create_graph=True)
    assert g.tolist() == [0, 0] == x.grad.tolist()
    cg.autograd.grad(z, x, create_graph=True)
    z.backward()
    assert g.tolist() == [6, 12]


def test_kept_gradients_and_inputs():
    x = leaf(1, 2)
    with cg.record():
        a = x * 2
        b = a * 3
        a.retain_grad()
        b.retain_grad()
        z = (b * b).sum()
    z.backward(inputs=[b], retain_graph=True)
    assert b.grad.tolist() == [12, 24] and a.grad is None and x.grad.tolist() == [0, 0]
    z.backward(inputs=[a, x], retain_graph=True)
    assert a.grad.tolist() == [36, 72] and x.grad.tolist() == [72, 144]
    cg.autograd.grad(z, [x, a])
    assert a.grad.tolist() == [36, 72]
    with pytest.raises(RuntimeError, match="input 0 has no .grad"):
        z.backward(inputs=[b * 2])


def test_kept_gradients_under_create_graph():
    x = leaf(1, 2)
    with cg.record():
        y = x * x
        y.retain_grad()
        z = (y * y).sum()
    with cg.record():
        z.backward(create_graph=True)
        s = (y.grad * y.grad).sum()                 # (2 x^2)^2
    assert cg.autograd.grad(s, x).tolist() == [16, 128]
    x.grad = None                                   # (its graph leads back to x)


def test_a_kept_gradient_goes_with_the_tensor_when_it_is_written():
    x = leaf(1, 2)
    with cg.record():
        y = x * 3
        y.retain_grad()
        y *= 2
        z = (y * y).sum()
    z.backward()
    assert y.grad.tolist() == [12, 24] and x.grad.tolist() == [72, 144]


def test_a_kept_gradient_dies_with_its_tensor():
    x = leaf(1, 2)
    with cg.record():
        y = x * 3
        y.retain_grad()
        z = (y * y).sum()
    z.backward(retain_graph=True)
    kept = cg.memory.stats()["by_category"]["gradients"]
    del y
    assert cg.memory.stats()["by_category"]["gradients"] == kept - 16
    z.backward()
    assert x.grad.tolist() == [18, 36]


def test_a_view_of_all_of_a_tensor_keeps_the_gradient_of_its_own_uses():
    x = leaf(1, 2)
    with cg.record():
        y = x * 1
        w = y[:]
        y *= 2
        assert w.grad_fn.next_functions == ((y.grad_fn, 0),)
        y.retain_grad()
        w.attach_grad("add")
        z = (y * y).sum() + (w * 3).sum()
    for _ in range(2):
        z.backward(retain_graph=True)
    assert y.grad.tolist() == [14, 22] and w.grad.tolist() == [6, 6]
    del w
    z.backward()
    assert y.grad.tolist() == [21, 33]


def test_a_kept_gradient_goes_with_a_view_when_the_whole_is_written():
    x = leaf(1, 2, 3)
    with cg.record():
        y = x * 1
        v = y[1:]
        v.retain_grad()
        y *= 2
        z = (v * v).sum() + y.sum()
    z.backward()
    assert v.grad.tolist() == [8, 12] and x.grad.tolist() == [2, 18, 26]


@pytest.mark.parametrize("ask", [lambda z, h: cg.autograd.grad(z, h), lambda z, h: z.backward(inputs=[h])])
def test_a_pass_in_a_hook_cannot_take_a_wanted_gradient_away(ask):
    x = leaf(1, 2)
    with cg.record():
        h = x * 2
        h.retain_grad()
        y = h * 3
        z, other = y.sum(), ((h * 5) * 1 * 1).sum()
    handle = y.register_hook(lambda g: other.backward(retain_graph=True))
    with pytest.raises(RuntimeError, match="already running in this graph"):
        ask(z, h)
    handle.remove()
    assert x.grad.tolist() == [0, 0]
    other.backward()                                # nodes that did not run are not freed
    assert h.grad.tolist() == [5, 5] and x.grad.tolist() == [10, 10]


def test_what_a_hook_refers_to_may_look_at_the_graph_as_it_dies():
    """Its last reference goes away while the node of the hook is freed. The tape does not list this node any more."""
    seen = []

    class Nosy:
        def __call__(self, g):
            return None

        def __del__(self):
            seen.append((tape.nodes, tape.saved_bytes))

    x = leaf(1, 2, 3)
    with cg.record() as tape:
        kept = x * x
        y = cg.exp(x)
        y.register_hook(Nosy())
        assert tape.nodes == 2
        del y
    assert seen == [(1, 0)]                         # (x itself is a parameter, not saved)
    kept.backward(cg.ones(3, dtype=x.dtype))
    assert x.grad.tolist() == [2, 4, 6]


# ---- as soon as complete ---------------------------------------------------------------------------------------------

def test_a_leafs_hook_runs_when_its_last_contribution_has_come():
    """It runs after the node of that contribution and before nodes that were recorded earlier."""
    a, b, c = (cg.full(2, k).attach_grad() for k in (2.0, 3.0, 5.0))
    order = []
    with cg.record():
        p = a * b                                   # recorded first: runs last
        p.register_hook(lambda g: order.append("p"))
        q = p * c
        y = q + c
    for name, x in (("a", a), ("b", b), ("c", c)):
        x.register_post_accumulate_grad_hook(lambda x, name=name: order.append((name, x.grad.tolist()[0])))
    y.backward()
    assert order == [("c", 7), "p", ("b", 10), ("a", 15)] or order == [("c", 7), "p", ("a", 15), ("b", 10)]


def test_a_kept_gradient_is_stored_when_it_is_complete():
    x = cg.ones(3).attach_grad()
    seen = []
    with cg.record():
        y = x * 2
        z = x * 3                                   # recorded later, but waits for the sum below
        u = z * 1.0
        u.register_hook(lambda g: seen.append(y.grad is not None and y.grad.tolist()))
        s = u + y
    y.retain_grad()
    s.backward()
    assert seen == [[1, 1, 1]] and x.grad.tolist() == [5] * 3


def test_a_solver_in_hooks_uses_each_gradient_up():
    """Only one gradient of a weight is live at a time, so the activations determine the peak."""
    layers, width, batch = 12, 64, 16
    x = cg.ones(batch, width)
    ws = [cg.full((width, width), 1 / width).attach_grad() for _ in range(layers)]
    solvers = {id(w): cg.optim.Sgd(0.1) for w in ws}
    for w in ws: solvers[id(w)].set_parameters([w])

    def use(w):
        solvers[id(w)].update()
        w.zero_grad()

    handles = [w.register_post_accumulate_grad_hook(use) for w in ws]
    start = cg.memory.stats()["live_bytes"]
    with cg.memory.track() as t:
        with cg.record():
            h = x
            for w in ws: h = cg.linear(h, w, activation="relu")
            loss = h.sum()
        del h
        loss.backward()
    del loss
    assert t.peak_bytes - start <= (layers + 3) * 4 * batch * width + 2 * 4 * width * width
    assert cg.memory.stats()["live_bytes"] == start and ws[0].numpy()[0, 0] != 1 / width
    for handle in handles: handle.remove()


@pytest.mark.parametrize("graph", [False, True])
def test_a_hook_that_writes_what_a_later_node_needs(graph):
    a, c, d = (cg.full(2, k).attach_grad() for k in (2.0, 3.0, 5.0))
    with cg.record():
        p = c * d
        q = p * a

    def write(x):
        with cg.no_grad(): d[:] = 7.0

    handle = a.register_post_accumulate_grad_hook(write)
    with pytest.raises(cg.InplaceError, match=r"mul saved a tensor of shape \(2,\) for backward at version 0, but it"):
        q.backward(create_graph=graph)
    assert c.grad.tolist() == [0, 0] and a.fresh_grad and not c.fresh_grad
    handle.remove()
    a.grad = None


def test_a_solver_in_a_hook_waits_for_gradients_that_are_half_way():
    a, b = leaf(2, 3), leaf(1, 1)
    solver, seen = cg.optim.Sgd(1.0), []
    solver.set_parameters([a, b])

    def update(v):
        solver.update()
        seen.append((a.grad.tolist(), a.fresh_grad))

    with b.register_post_accumulate_grad_hook(update):      # (which refers to b)
        with cg.record():
            y = (a * 3 * b).sum() + (a * 4).sum()
        y.backward()
    assert seen == [([4, 4], False)] and a.fresh_grad
    solver.update()
    assert a.tolist() == [2 - 7, 3 - 7] and b.tolist() == [1 - 6, 1 - 9]


@pytest.mark.parametrize("drop", [lambda a: a.zero_grad(), lambda a: setattr(a, "grad", None)])
def test_a_hook_that_drops_a_gradient_half_way_leaves_it_incomplete(drop):
    a, b = leaf(2).attach_grad("add"), leaf(1)
    b.register_post_accumulate_grad_hook(lambda v: drop(a))
    with cg.record():
        y = (a * 3 * b).sum() + (a * 4).sum()
    y.backward()
    assert a.grad.tolist() == [3] and not a.fresh_grad
    solver = cg.optim.Sgd(1.0)
    solver.set_parameters([a])
    with pytest.raises(RuntimeError, match="update: the gradient of '0' is incomplete: a backward pass failed, or "
                                           "the gradient was zeroed or assigned by a hook, after some"):
        solver.update()
    a.zero_grad()
    with pytest.warns(UserWarning, match="update: no backward pass has reached a parameter"): solver.update()
