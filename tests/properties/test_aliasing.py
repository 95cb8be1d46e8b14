"""Tensors that flow into a pass may share memory with those that the pass writes: results are as with a copy. A pass
that fails leaves each .grad unchanged, complete, or marked as incomplete."""

import copy
import gc

import numpy as np
import pytest

import cygrad as cg
from cygrad.testing import fail_allocation


def variable(*values, req="write"):
    return cg.tensor(values or [1.0, 2.0, 3.0]).attach_grad(req)


def two_paths(x):
    with cg.record():
        return x * x + x * 3


HEADS = {
    "the gradient": lambda x: x.grad,
    "its detach": lambda x: x.grad.detach(),
    "a slice": lambda x: x.grad[:],
    "a view": lambda x: x.grad.reshape(3, 1).reshape(3),
    "an array over it": lambda x: cg.asarray(x.grad.numpy()),
}


@pytest.mark.parametrize("req", ["write", "add"])
@pytest.mark.parametrize("head", HEADS.values(), ids=HEADS)
def test_a_head_that_shares_memory_with_a_gradient(head, req):
    x = variable(req=req)
    x.grad.fill_(2)
    y = two_paths(x)
    y.backward(head(x))
    assert x.grad.tolist() == ([10, 14, 18] if req == "write" else [12, 16, 20])


@pytest.mark.parametrize("head", HEADS.values(), ids=HEADS)
def test_the_same_in_a_collector(head):
    x = variable()
    x.grad.fill_(2)
    with cg.GradientCollector() as gc:
        y = two_paths(x)
        gc.backward(y, head(x))
    assert x.grad.tolist() == [10, 14, 18]


def test_a_head_that_is_the_buffer_of_another_variable():
    x, w, b = cg.tensor([1.0, 2.0, 3.0]), cg.tensor([4.0, 5.0, 6.0]), cg.full(3, 2.0)
    cg.mark_variables([x, w], [b, cg.zeros(3)])
    with cg.record():
        y = x * w + x * 3
    y.backward(b)
    assert x.grad is b and b.tolist() == [14, 16, 18] and w.grad.tolist() == [2, 4, 6]


@pytest.mark.parametrize("both", [True, False])
def test_two_buffers_over_one_array(both):
    """The head and the gradient are different buffers, of which one or both use the memory of the array."""
    own = cg.full(3, 2.0)
    a = own.numpy() if not both else np.full(3, 2, np.float32)
    x = cg.tensor([1.0, 2.0, 3.0])
    cg.mark_variables(x, cg.asarray(a))
    y = two_paths(x)
    y.backward(cg.asarray(a) if both else own)
    assert a.tolist() == [10, 14, 18]


def test_a_hook_that_returns_the_gradient():
    """It is pending for `h` while the contribution of `p` overwrites x.grad."""
    x = variable()
    x.grad.fill_(2)
    with cg.record():
        h = x * 2
        p = x * 5
        z = h[:]
        y = z + p
    z.register_hook(lambda g: x.grad)
    y.backward()
    assert x.grad.tolist() == [9, 9, 9]             # 5 + 2 * 2


def test_a_hook_on_the_variable_that_returns_its_gradient():
    x = variable(req="add")
    x.grad.fill_(2)
    with x.register_hook(lambda g: x.grad):
        two_paths(x).backward()
    assert x.grad.tolist() == [4, 4, 4]


def test_a_node_hook_and_a_function_that_return_the_gradient():
    class Own(cg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return x.grad

    x = variable()
    x.grad.fill_(2)
    with cg.record():
        h = x * 2
        p = x * 5
        y = Own.apply(h) + p
    y.backward()
    assert x.grad.tolist() == [9, 9, 9]
    x.grad.fill_(2)
    with cg.record():
        h = x * 2
        p = x * 5
        z = h * 1
        y = z + p
    with z.grad_fn.register_hook(lambda inputs, outputs: (x.grad, None)):
        y.backward()
    assert x.grad.tolist() == [9, 9, 9]
    del Own
    gc.collect()                                    # (a class is a cycle)


def test_heads_stay_as_they_were():
    x, head = variable(), np.full(3, 2, np.float32)
    two_paths(x).backward(cg.asarray(head))
    assert head.tolist() == [2, 2, 2] and x.grad.tolist() == [10, 14, 18]
    own = cg.full(3, 2.0)
    two_paths(x).backward(own)
    assert own.tolist() == [2, 2, 2] and x.grad.tolist() == [10, 14, 18]


def test_gradients_with_a_graph_are_each_their_own():
    a, b, head = variable(), variable(), cg.ones(3)
    with cg.record():
        y = a + b
    y.backward(head, create_graph=True)
    assert a.grad is not b.grad and a.grad is not head
    a.zero_grad()
    assert b.grad.tolist() == [1, 1, 1] and head.tolist() == [1, 1, 1]


def test_a_gradient_that_another_variable_got_first_is_copied_with_its_graph():
    a, b = variable(), variable()
    with cg.record():
        y = (a + b) * (a + b)
    y.backward(cg.ones(3), create_graph=True)
    assert a.grad is not b.grad
    with cg.record():
        second = cg.autograd.grad(b.grad.sum(), a)
    assert second.tolist() == [2, 2, 2]


# ---- a pass that fails -----------------------------------------------------------------------------------------------

class Refuses(cg.autograd.Function):
    """y = x, and a backward that fails."""

    @staticmethod
    def forward(ctx, x):
        return x * 1

    @staticmethod
    def backward(ctx, g):
        raise ArithmeticError("no")


def failing(x, w):
    """The gradient of w is complete and that of x partial when the pass fails."""
    with cg.record():
        y = (Refuses.apply(x) + x * w).sum()
    try:
        y.backward()
    except ArithmeticError as e:
        return e.__notes__
    pytest.fail("the pass did not fail")


@pytest.mark.parametrize("req", ["write", "add"])
def test_the_note_counts_incomplete_gradients_apart(req):
    x, w = variable(req=req), variable(4.0, 5.0, 6.0, req=req)
    assert failing(x, w) == [
        "cygrad: in backward, at Refuses; 1 gradients had been written before, 1 more are incomplete (only some of "
        "their contributions had been added: zero or assign them); the graph has been freed: record it again"]
    assert not x.fresh_grad and w.fresh_grad and w.grad.tolist() == [1, 2, 3]


def complete(x, w):
    with cg.record():
        y = (x * w).sum()
    y.backward()


def test_incomplete_stays_through_adding_passes():
    x, w = variable(req="add"), variable(req="add")
    failing(x, w)
    complete(x, w)
    assert not x.fresh_grad and w.fresh_grad
    solver = cg.optim.Sgd(1.0)
    solver.set_parameters({"the weights": w, "the rest": x})
    before = w.tolist(), x.tolist()
    with pytest.raises(RuntimeError, match="update: the gradient of 'the rest' is incomplete"):
        solver.update()
    assert (w.tolist(), x.tolist()) == before and w.fresh_grad


@pytest.mark.parametrize("end", [
    lambda x: x.zero_grad(), lambda x: setattr(x, "grad", cg.zeros(3)), lambda x: setattr(x, "grad", None),
    lambda x: cg.mark_variables(x, cg.zeros(3), "add"),
], ids=["zeroed", "assigned", "None", "marked"])
def test_incomplete_ends(end):
    x, w = variable(req="add"), variable(req="add")
    failing(x, w)
    end(x)
    complete(x, w)
    assert x.fresh_grad
    solver = cg.optim.Sgd(1.0)
    solver.set_parameters([x])
    solver.update()
    assert x.tolist() == [0, 0, 0]                  # x - w


def test_incomplete_ends_when_overwritten():
    x, w = variable(), variable()
    failing(x, w)
    complete(x, w)
    assert x.fresh_grad and x.grad.tolist() == [1, 2, 3]
    failing(x, w)
    with cg.GradientCollector() as gc:
        y = (x * w).sum()
        gc.backward(y)
    assert x.fresh_grad and x.grad.tolist() == [1, 2, 3]


def test_an_interrupted_pass_leaves_incomplete_gradients():
    class Stops(Refuses):
        @staticmethod
        def backward(ctx, g):
            raise KeyboardInterrupt

    x, w = variable(req="add"), variable(req="add")
    with cg.record():
        y = (Stops.apply(x) + x * w).sum()
    with pytest.raises(KeyboardInterrupt):
        y.backward()
    assert not x.fresh_grad and w.fresh_grad


def net(x, w, v, b):
    h = cg.linear(x, w, b)
    h = cg.relu(h) * h + cg.linear(x * 2, w, b)
    return (h @ v).sum() + (w * w).sum()


@pytest.mark.parametrize("req", ["write", "add"])
@pytest.mark.parametrize("start", ["zeros", "None"])
def test_each_gradient_is_as_before_or_whole_or_incomplete(req, start):
    """Every allocation of a backward fails in turn. fresh_grad of each gradient is then correct."""
    rng = np.random.default_rng(0)
    shapes = (5, 3), (4, 3), (4, 2), (4,)
    data = [rng.standard_normal(s) for s in shapes]
    n, done, partly = 0, False, 0
    while not done:
        n += 1
        xs = [cg.asarray(a.copy()).attach_grad(req) for a in data]
        if start == "None":
            for x in xs: x.grad = None
        else:
            for x in xs:
                x.grad = cg.full(x.shape, 7.0, dtype="float64")
                x.fresh_grad = False                # (until the pass below reaches it)
        with cg.record():
            y = net(*xs)
        head = cg.ones((), dtype="float64")
        try:
            with fail_allocation(n):
                y.backward(head)
            done = True
        except MemoryError as e:
            note = e.__notes__[0]
            del e
        plain = [cg.asarray(a).attach_grad() for a in data]
        with cg.record():
            z = net(*plain)
        z.backward()
        n_whole = n_part = 0
        for x, p in zip(xs, plain, strict=True):
            whole = p.grad.numpy() + (7 if req == "add" and start == "zeros" else 0)
            if x.fresh_grad:
                np.testing.assert_allclose(x.grad.numpy(), whole)
                n_whole += 1
                continue
            untouched = x.grad is None if start == "None" else (x.grad.numpy() == 7).all()
            solver = cg.optim.Sgd()
            solver.set_parameters([x])
            if untouched:                           # no contribution has arrived
                with pytest.warns(UserWarning, match="no backward pass has reached"): solver.update()
            else:
                with pytest.raises(RuntimeError, match="is incomplete"):
                    solver.update()
                n_part += 1
        if not done:
            assert f"; {n_whole} gradients had been written before" in note
            assert (f", {n_part} more are incomplete" in note) == (n_part > 0)
        partly += n_part
    assert n > 5 and n_whole == 4 and partly


def test_a_gradient_with_a_graph_is_kept_when_its_sum_cannot_be_made():
    x = variable(req="add")
    with cg.record():
        y = (x * x * x).sum()
    y.backward(create_graph=True)
    before = x.grad
    with cg.record():
        y = x * 3
    for n in (1, 2, 3, 4):
        with fail_allocation(n):
            try:
                y.backward(cg.ones(3), retain_graph=True)
                break
            except MemoryError as e:
                del e
        assert x.grad is before
    assert x.grad is not before and x.grad.tolist() == [6, 15, 30]


def test_a_kept_gradient_is_nobody_elses():
    """A gradient of a sum repeats one number, a head belongs to the caller, and one gradient reaches several
    intermediates."""
    x, weights = variable(), cg.tensor([1.0, 2.0, 3.0])
    with cg.record():
        y = x * 2
        a, b = y.sum(), (y * weights).sum()
    y.retain_grad()
    a.backward(retain_graph=True)
    y.grad *= 1                                     # (can be written)
    b.backward()
    assert y.grad.tolist() == [2, 3, 4]             # (it adds)
    with cg.record():
        y = x * 2
        z = y + 1
    stash, head = [], cg.ones(3)
    for t in (y, z):
        t.retain_grad()
        t.register_hook(stash.append)
    z.backward(head, retain_graph=True)
    cg.backward([z], [cg.full(3, 7.0)], retain_graph=True, inputs=[z])
    assert z.grad.tolist() == [8] * 3 and y.grad.tolist() == head.tolist() == stash[0].tolist() == [1] * 3
    y.attach_grad("add")
    y.grad = None
    for _ in range(2): z.backward(head, retain_graph=True)
    assert y.grad.tolist() == [2] * 3 and head.tolist() == [1] * 3


@pytest.mark.parametrize("req", ["write", "add"])
@pytest.mark.parametrize("share", [lambda h: h, lambda h: h[:], lambda h: cg.asarray(h.numpy())],
                         ids=["itself", "a view", "an array over it"])
def test_a_hook_that_assigns_what_is_on_its_way(share, req):
    x, head = variable(req=req), cg.ones(3)
    with cg.record():
        a = x * 1.0
        q, p = a + 0.0, x * 3.0
        y = p + q
    p.register_hook(lambda g: setattr(x, "grad", share(head)))
    y.backward(head)
    assert x.grad.tolist() == ([4] * 3 if req == "write" else [5] * 3) and head.tolist() == [1] * 3
    x = cg.tensor([[1.0, 2.0], [3.0, 4.0]]).attach_grad(req)
    with cg.record():
        p = x @ cg.tensor([[0.0, 1.0], [1.0, 0.0]])
        y = p * cg.tensor([[1.0, 2.0], [3.0, 4.0]])
    p.register_hook(lambda g: setattr(x, "grad", g))
    y.backward()
    assert x.grad.tolist() == ([[2, 1], [4, 3]] if req == "write" else [[3, 3], [7, 7]])


def test_a_hook_may_not_mark_what_is_on_its_way():
    x, head = variable(), cg.ones(3)
    with cg.record():
        y = x * 2
    y.register_hook(lambda g: cg.mark_variables(x, head))
    with pytest.raises(RuntimeError, match="mark_variables: a running backward pass may still read the memory"):
        y.backward(head)


def test_a_copy_of_an_incomplete_gradient_is_incomplete():
    x, w = variable(req="add"), variable(req="add")
    failing(x, w)
    y = copy.deepcopy(x)
    x.grad = x.grad                                 # assign it again
    cg.mark_variables(x, x.grad, "add")
    for t in (x, y):
        complete(t, w)
        solver = cg.optim.Sgd(1.0)
        solver.set_parameters([t])
        with pytest.raises(RuntimeError, match="is incomplete"):
            solver.update()
        t.drop_grad()
        t.requires_grad_()
        complete(t, w)
        assert t.fresh_grad
        solver.update()


@pytest.mark.parametrize("uses", [2, 3])
def test_a_zero_gradient_that_two_variables_have(uses):
    """Memory that replaces zeros gets their roles."""
    x, y = cg.ones(4).attach_grad(), cg.ones(4).attach_grad()
    x.grad = y.grad
    with cg.record():
        z = x * 2
    z.backward()
    del z
    x.grad = None
    assert cg.memory.stats()["by_category"]["gradients"] == 16
    with cg.record():
        z = sum([y * k for k in range(1, uses + 1)])
    z.backward(y.grad)
    assert y.grad.tolist() == [2 * uses * (uses + 1) / 2] * 4
