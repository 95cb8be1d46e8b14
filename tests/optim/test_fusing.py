"""Solver.fuse_into_backward(): updates within backward, whose gradients are never stored."""

import gc

import numpy as np
import pytest

import cygrad as cg
from cygrad import nn, trainers

SOLVERS = ["Sgd", "Momentum", "Nesterov", "Adam", "AdamW", "RMSprop", "Adagrad", "Lion", "Lamb", "Lars", "Ftrl"]


def model(seed=0):
    cg.random.seed(seed)
    m = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 12), nn.Tanh(), nn.Linear(12, 3))
    return m, cg.random.normal((8, 6)), np.arange(8) % 3


def solver_of(m, name, **settings):
    solver = getattr(cg.optim, name)(**settings)
    solver.set_parameters(dict(m.named_parameters()))
    return solver


def pass_of(m, x, t):
    with cg.record(): loss = cg.cross_entropy(m(x), t)
    loss.backward()
    return loss


@pytest.mark.parametrize("name", SOLVERS)
def test_it_agrees_with_the_plain_update(name):
    (a, x, t), (b, _, _) = model(), model()
    plain, fused = solver_of(a, name), solver_of(b, name)
    handle = fused.fuse_into_backward()
    for _ in range(5):
        plain.zero_grad()
        pass_of(a, x, t)
        plain.weight_decay(0.01)
        plain.update()
        fused.zero_grad()
        fused.weight_decay(0.01)
        pass_of(b, x, t)
        fused.update()
    handle.close()
    for u, v in zip(a.parameters(), b.parameters(), strict=True):
        np.testing.assert_allclose(u.numpy(), v.numpy(), rtol=1e-6, atol=1e-7)
    for name_, state in plain.get_states().items(): assert fused.get_states()[name_].t == state.t == 5


def test_grad_stays_as_it_was_and_update_does_nothing():
    m, x, t = model()
    solver = solver_of(m, "Sgd", lr=0.1)
    pass_of(m, x, t)
    before = [w.grad.numpy().copy() for w in m.parameters()]
    solver.zero_grad()
    for w, g in zip(m.parameters(), before, strict=True): w.grad[...] = g
    with solver.fuse_into_backward():
        pass_of(m, x, t)
        moved = [w.numpy().copy() for w in m.parameters()]
        solver.update()
    for w, g, v in zip(m.parameters(), before, moved, strict=True):
        np.testing.assert_array_equal(w.grad.numpy(), g)
        np.testing.assert_array_equal(w.numpy(), v)
    solver.zero_grad()
    pass_of(m, x, t)                                # after the scope, gradients are stored again
    assert all(w.fresh_grad for w in m.parameters())


def test_one_gradient_is_alive_at_a_time():
    width, layers = 64, 6
    m = nn.Sequential(*[nn.Linear(width, width) for _ in range(layers)])
    for w in m.parameters(): w.drop_grad() if hasattr(w, "drop_grad") else None
    for w in m.parameters(): w.attach_grad()
    x = cg.ones(2, width)
    weight = 4 * width * width

    def gradients():
        for w in m.parameters(): w.grad = None
        with cg.memory.profile() as p:
            with cg.record(): y = m(x).sum()
            y.backward()
        return p.peak_bytes

    plain = gradients()
    solver = solver_of(m, "Momentum")
    solver.fuse_into_backward()                     # (not kept: it stays on)
    live = cg.memory.stats()["live_bytes"]
    fused = gradients()
    assert plain - fused >= (layers - 2) * weight - solver_bytes(solver)
    assert cg.memory.stats()["live_bytes"] <= live and all(w.grad is None for w in m.parameters())


def solver_bytes(solver): return sum(x.nbytes for s in solver.get_states().values() for x in s.pstate.values())


def test_shared_weights_and_rows():
    def run(fuse):
        cg.random.seed(0)
        e, w = nn.Embedding(10, 4, sparse=True), cg.random.normal((4, 4)).attach_grad()
        solver = cg.optim.Sgd(lr=0.1)
        solver.set_parameters({"e": e.weight, "w": w})
        if fuse: solver.fuse_into_backward()
        for _ in range(3):
            if not fuse: solver.zero_grad()
            with cg.record(): y = cg.tanh(cg.tanh(e(np.array([1, 2, 1])) @ w) @ w).sum()
            y.backward()
            if not fuse: solver.update()
        return e.weight.numpy().copy(), w.numpy().copy()

    for u, v in zip(run(False), run(True), strict=True): np.testing.assert_allclose(u, v, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("call", [
    lambda s: s.clip_grad_by_norm(1), lambda s: s.clip_grad_by_global_norm(1), lambda s: s.clip_grad_by_value(1),
    lambda s: s.scale_grad(2), lambda s: s.check_inf_or_nan_grad(), lambda s: s.check_nan_grad(),
    lambda s: s.check_inf_grad(), lambda s: s.set_parameters([]), lambda s: s.clear_parameters(),
    lambda s: s.remove_parameters("w"), lambda s: s.fuse_into_backward(), lambda s: s.update(lambda: None),
])
def test_what_needs_stored_gradients_is_refused(call):
    m, x, t = model()
    solver = solver_of(m, "Sgd")
    with solver.fuse_into_backward(), pytest.raises(RuntimeError, match="fused into backward"): call(solver)


@pytest.mark.parametrize("how", [{"retain_graph": True}, {"create_graph": True}])
def test_passes_that_are_run_again_are_refused_before_anything_runs(how):
    m, x, t = model()
    solver = solver_of(m, "Sgd", lr=0.1)
    before = [w.numpy().copy() for w in m.parameters()]
    with solver.fuse_into_backward():
        with cg.record(): loss = cg.cross_entropy(m(x), t)
        with pytest.raises(RuntimeError, match=f"fuse_into_backward: {[*how][0]}"): loss.backward(**how)
        for w, v in zip(m.parameters(), before, strict=True): np.testing.assert_array_equal(w.numpy(), v)
        loss.backward()                             # the graph is as it was


def test_a_pass_that_fails_says_which_parameters_have_moved():
    m, x, t = model()
    solver = solver_of(m, "Sgd", lr=0.1)
    with solver.fuse_into_backward():
        with cg.record():
            h = m[0](x)
            h.register_hook(lambda g: 1 / 0)
            loss = cg.cross_entropy(m[4](m[3](m[2](m[1](h)))), t)
        with pytest.raises(ZeroDivisionError) as e: loss.backward()
    assert any("fused updates have moved 4.weight" in n or "fused updates have moved 4.bias" in n
               for n in e.value.__notes__)
    del e


def test_trainers():
    def run(fuse):
        m, x, t = model()
        solver = solver_of(m, "Momentum", lr=0.1)
        if fuse: solver.fuse_into_backward()
        updater = trainers.Updater(solver, lambda: cg.cross_entropy(m(x), t))
        for i in range(4): updater.update(i)
        return [w.numpy().copy() for w in m.parameters()]

    for u, v in zip(run(False), run(True), strict=True): np.testing.assert_allclose(u, v, rtol=1e-6, atol=1e-7)
    m, x, t = model()
    solver = solver_of(m, "Momentum", lr=0.1)
    before = [w.numpy().copy() for w in m.parameters()]
    with solver.fuse_into_backward():
        with pytest.raises(RuntimeError, match="fused into backward"):
            trainers.DynamicLossScalingUpdater(solver, lambda: cg.cross_entropy(m(x), t)).update(0)
    for w, v in zip(m.parameters(), before, strict=True): np.testing.assert_array_equal(w.numpy(), v)


def test_a_solver_that_is_gone_lets_gradients_be_stored():
    m, x, t = model()
    solver = solver_of(m, "Sgd", lr=0.1)
    solver.fuse_into_backward()
    del solver
    gc.collect()
    pass_of(m, x, t)
    assert all(w.grad is not None and w.fresh_grad for w in m.parameters())
