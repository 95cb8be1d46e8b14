"""Solver.fuse_into_backward(): gradients of weights that take no memory, and what must not change the result."""

import pickle
import threading

import numpy as np
import pytest

import cygrad as cg
from cygrad import nn, trainers

LINEAR = ["Sgd", "SgdW", "Momentum", "Nesterov"]    # rules that are linear in the gradient
IN_STATES = ["SgdW", "Momentum"]                    # those that move a parameter by its state alone
KIB, MIB = 1 << 10, 1 << 20


def normal(*shape): return cg.random.normal(shape, dtype="float64")


def layer(name):
    """(weight, a function of it whose other memory is small)"""
    def variable(*shape): return (0.1 * normal(*shape)).attach_grad()
    if name == "linear":
        x = normal(3, 5, 256).attach_grad()
        return variable(300, 256), lambda w: cg.linear(x, w, activation="tanh")
    if name == "matmul":
        x = normal(4, 300).attach_grad()
        return variable(300, 256), lambda w: cg.matmul(x, w)
    if name == "batched":
        x = normal(4, 300, 3)
        return variable(256, 300), lambda w: cg.matmul(w, x)
    if name == "conv1d":
        x = normal(2, 160, 7).attach_grad()
        return variable(160, 160, 3), lambda w: cg.conv1d(x, w, padding=1)
    if name == "conv2d":
        x = normal(1, 256, 1, 2)
        return variable(256, 256, 3, 1), lambda w: cg.conv2d(x, w, padding=(1, 0))
    if name == "embedding":
        return variable(3000, 32), lambda w: cg.embedding(np.array([1, 5, 1, 2999]), w)
    x, t = normal(40, 32).attach_grad(), np.arange(40) * 70
    return variable(3000, 32), lambda w: cg.linear_cross_entropy(x, w, t, chunk=8)


def solver_for(w, name):
    solver = getattr(cg.optim, name)(0.05)
    solver.set_parameters({"w": w})
    return solver


def values(w, solver): return [w.numpy().copy(), *[x.numpy().copy() for x in solver.get_states()["w"].pstate.values()]]


def same(x, y):
    for u, v in zip(x, y, strict=True): np.testing.assert_allclose(u, v, rtol=1e-9, atol=1e-12)


def backward_growth(loss):
    """The largest growth of live memory in a backward pass."""
    cg.memory.reset_peak()
    before = cg.memory.stats()["live_bytes"]
    loss.backward()
    return cg.memory.stats()["peak_bytes"] - before


def trained(make, name, fuse, uses=1, decay=0.0):
    """The weight and its states after three steps, the growth of memory in a backward pass, the bytes of the weight."""
    cg.random.seed(1)
    w, f = make()
    solver = solver_for(w, name)
    if fuse: solver.fuse_into_backward()
    growth = 0
    for _ in range(3):
        if fuse and decay: solver.weight_decay(decay)
        with cg.record(): loss = sum(cg.tanh(f(w)).sum() for _ in range(uses))
        growth = max(growth, backward_growth(loss))
        del loss
        if not fuse and decay: solver.weight_decay(decay)
        solver.update()
        if not fuse: solver.zero_grad()
    assert solver.get_states()["w"].t == 3
    return values(w, solver), growth, w.nbytes


@pytest.mark.parametrize("solver", LINEAR)
@pytest.mark.parametrize("name", ["linear", "matmul", "batched", "conv1d", "conv2d", "embedding", "head"])
def test_products_go_straight_into_weights(name, solver):
    plain, needed, nbytes = trained(lambda: layer(name), solver, False)
    fused, growth, _ = trained(lambda: layer(name), solver, True)
    same(plain, fused)
    assert needed > 0.9 * nbytes
    reads = name == "head" and solver not in IN_STATES      # a chunk reads the weight after the product of another
    assert growth < nbytes // 2 or reads


@pytest.mark.parametrize("solver", [*LINEAR, "Adam", "AdamW"])
def test_decay_is_part_of_the_product(solver):
    same(trained(lambda: layer("linear"), solver, False, decay=0.1)[0],
         trained(lambda: layer("linear"), solver, True, decay=0.1)[0])


@pytest.mark.parametrize("solver", [*LINEAR, "Adam"])
def test_a_shared_weight_holds_one_sum_or_none(solver):
    plain, _, nbytes = trained(lambda: layer("linear"), solver, False, uses=3)
    fused, growth, _ = trained(lambda: layer("linear"), solver, True, uses=3)
    same(plain, fused)
    assert growth < (nbytes // 2 if solver in IN_STATES else nbytes + 100 * KIB)


@pytest.mark.parametrize("solver", [*LINEAR, "Adam", "Lamb", "Lars"])
def test_accumulation(solver):
    def run(fuse):
        cg.random.seed(1)
        w, f = layer("linear")
        s = solver_for(w, solver)
        if fuse: s.fuse_into_backward()
        factors = iter(range(1, 10))
        updater = trainers.Updater(s, lambda: next(factors) * cg.tanh(f(w)).sum(), accum_grad=3)
        before = cg.memory.stats()["live_bytes"]
        for i in range(3): updater.update(i)
        assert s.get_states()["w"].t == 3
        return values(w, s), cg.memory.stats()["live_bytes"] - before, w.nbytes

    (plain, _, nbytes), (fused, growth, _) = run(False), run(True)
    same(plain, fused)
    if solver in IN_STATES: assert growth < nbytes // 2


def large(kind):
    """A weight of more than 1 MiB whose gradient can come by rows."""
    w = normal(700, 1000).attach_grad()
    if kind == "linear":
        x = normal(3, 5, 1000).attach_grad()
        return w, lambda w: cg.linear(x, w)
    if kind == "strided":
        x = normal(3, 5, 1000)
        return w, lambda w: cg.linear(x.transpose((1, 0, 2)), w)
    if kind == "matmul":
        x = normal(2, 3, 700)
        return w, lambda w: cg.matmul(x, w)
    return w, lambda w: cg.embedding(np.array([[0, 699], [3, 3]]), w, padding_idx=3)


@pytest.mark.parametrize("solver", ["Adam", "AdamW", "RMSprop", "Adagrad", "Lion", "Ftrl"])
@pytest.mark.parametrize("kind", ["linear", "strided", "matmul", "embedding"])
def test_other_rules_take_rows(kind, solver):
    plain, _, nbytes = trained(lambda: large(kind), solver, False)
    fused, growth, _ = trained(lambda: large(kind), solver, True)
    same(plain, fused)
    assert MIB - 8000 <= growth <= MIB + 150 * KIB < nbytes


def one_step(fuse, w, solver, loss_of):
    s = solver_for(w, solver)
    if fuse: s.fuse_into_backward()
    with cg.record(): y = loss_of(w)
    y.backward()
    s.update()
    return values(w, s)


def test_a_product_that_reads_the_weight_has_memory_of_its_own():
    def run(fuse):
        cg.random.seed(3)
        return one_step(fuse, normal(40, 40).attach_grad(), "Sgd", lambda w: cg.matmul(w.detach(), w).sum())

    same(run(False), run(True))


def test_a_hook_sees_the_whole_gradient():
    def run(fuse):
        cg.random.seed(4)
        w, f = layer("linear")
        w.register_hook(lambda g: 2 * g)
        return one_step(fuse, w, "Momentum", lambda w: f(w).sum())

    same(run(False), run(True))


def test_a_wanted_gradient_is_a_result():
    w, f = layer("linear")
    solver = solver_for(w, "Momentum")
    before = w.numpy().copy()
    with solver.fuse_into_backward():
        with cg.record(): y = f(w).sum()
        g, = cg.autograd.grad([y], [w])
    np.testing.assert_array_equal(w.numpy(), before)
    assert g.shape == w.shape and not any(x.any() for x in values(w, solver)[1:])


def test_a_failure_between_two_contributions_ends_the_update():
    w, x = cg.ones(4, 4).attach_grad(), cg.ones(2, 4).attach_grad()
    solver = cg.optim.Momentum(0.5, momentum=0.0)
    solver.set_parameters({"w": w})
    with solver.fuse_into_backward():
        with cg.record():
            h = cg.matmul(x, w)
            h.register_hook(lambda g: 1 / 0)
            y = cg.matmul(h, w).sum()
        with pytest.raises(ZeroDivisionError) as e: y.backward()
        assert any("the fused updates have moved w;" in n for n in e.value.__notes__)
        np.testing.assert_array_equal(w.numpy(), 1 - 0.5 * 8)      # the gradient of the second product: h' ones
        with cg.record(): y = cg.matmul(x, w).sum()                # the next pass begins anew
        y.backward()
        np.testing.assert_array_equal(w.numpy(), 1 - 0.5 * 8 - 0.5 * 2)
    del e


def accumulating():
    w = cg.ones(4, 4).attach_grad()
    solver = cg.optim.Momentum(0.5, momentum=0.0)
    solver.set_parameters({"w": w})

    def sum_up():
        with cg.record(): y = cg.matmul(cg.ones(2, 4), w).sum()
        y.backward()
        np.testing.assert_array_equal(w.numpy(), 1.0)

    return w, solver, solver.fuse_into_backward(), sum_up


def test_a_failure_in_a_scope_of_accumulation_ends_it():
    w, solver, fused, sum_up = accumulating()
    with pytest.raises(ZeroDivisionError), fused.accumulate():
        sum_up()
        raise ZeroDivisionError
    np.testing.assert_array_equal(w.numpy(), 0.0)
    with fused.accumulate(), pytest.raises(RuntimeError, match="accumulate: these updates accumulate already"):
        with fused.accumulate(): pass
    assert not fused.accumulates


def test_closing_ends_what_has_accumulated():
    w, solver, fused, sum_up = accumulating()
    with fused.accumulate(): sum_up()
    fused.close()
    np.testing.assert_array_equal(w.numpy(), 0.0)
    assert w.version > 0


# ---- what must not change the result ---------------------------------------------------------------------------------

def both(run, *args):
    """run(fuse, *args) with and without."""
    cg.random.seed(6)
    plain = run(False, *args)
    cg.random.seed(6)
    same(plain, run(True, *args))


def solver_of_dict(weights, name, fuse):
    solver = getattr(cg.optim, name)(0.1)
    solver.set_parameters(weights)
    if fuse: solver.fuse_into_backward()
    return solver


@pytest.mark.parametrize("name", [*LINEAR, "Adam"])
def test_both_operands_of_a_product_are_parameters(name):
    def run(fuse):
        a, b = normal(3, 500).attach_grad(), normal(500, 400).attach_grad()
        solver = solver_of_dict({"a": a, "b": b}, name, fuse)
        with cg.record(): y = cg.tanh(cg.matmul(a, b)).sum()
        y.backward()
        solver.update()
        return [a.numpy().copy(), b.numpy().copy()]

    both(run)


@pytest.mark.parametrize("name", [*LINEAR, "Adam"])
def test_a_weight_whose_memory_another_node_reads_is_updated_after_the_pass(name):
    def run(fuse):
        w, x = normal(4, 4).attach_grad(), normal(3, 4).attach_grad()
        solver = solver_of_dict({"w": w}, name, fuse)
        with cg.record(): y = cg.linear(cg.linear(x, w.detach()), w).sum()
        y.backward()
        solver.update()
        return [w.numpy().copy(), x.grad.numpy().copy()]

    both(run)


@pytest.mark.parametrize("freeze", [lambda w: w.requires_grad_(False), lambda w: w.attach_grad("null"),
                                    lambda w: w.drop_grad()])
@pytest.mark.parametrize("name", ["Sgd", "Momentum", "Adam"])
def test_a_weight_that_was_frozen_after_it_was_recorded_stays(name, freeze):
    w = normal(4, 4).attach_grad()
    solver_of_dict({"w": w}, name, True)
    before = w.numpy().copy()
    with cg.record(): y = cg.linear(normal(2, 4), w).sum()
    freeze(w)
    y.backward()
    np.testing.assert_array_equal(w.numpy(), before)


@pytest.mark.parametrize("name", ["Sgd", "Momentum", "Adam", "Nesterov"])
def test_rows_become_dense_beside_a_dense_gradient(name):
    def run(fuse):
        w = normal(5, 2).attach_grad()
        solver = solver_of_dict({"w": w}, name, fuse)
        if not fuse: solver.zero_grad()
        with cg.record(): y = cg.embedding(np.array([1, 3]), w, sparse=True).sum()
        y.backward()
        solver.update()
        return [w.numpy().copy()]

    both(run)


@pytest.mark.parametrize("name", ["Sgd", "Momentum", "Nesterov", "Adam", "AdamW", "Lion", "Lamb", "Lars", "Ftrl"])
@pytest.mark.parametrize("req", ["write", "add"])
@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_accumulation_by_hand(name, req, decay):
    """Sums for each grad_req. The decay is set before the passes, since the state then has it."""
    def run(fuse):
        w = normal(4, 4).attach_grad("add" if not fuse else req)
        solver = solver_of_dict({"w": w}, name, fuse)
        for _ in range(2):
            solver.zero_grad()
            if fuse and decay: solver.weight_decay(decay)
            with solver.fused.accumulate() if fuse else cg.record():
                for k in range(3):
                    with cg.record(): y = (k + 1) * cg.tanh(cg.linear(normal(2, 4), w)).sum()
                    y.backward()
            if not fuse and decay: solver.weight_decay(decay)
            solver.update()
        return values(w, solver)

    both(run)


def test_threads_that_share_a_weight_lose_no_update():
    w = cg.zeros((64, 64), dtype="float64").attach_grad()
    solver = cg.optim.Sgd(1.0)
    solver.set_parameters({"w": w})
    solver.fuse_into_backward()
    x = cg.ones((8, 64), dtype="float64")

    def work():
        for _ in range(20):
            with cg.record(): y = cg.linear(x, w).sum()
            y.backward()

    threads = [threading.Thread(target=work) for _ in range(3)]
    for t in threads: t.start()
    for t in threads: t.join()
    np.testing.assert_array_equal(w.numpy(), -8.0 * 60)
    assert solver.get_states()["w"].t == 60


def test_a_copy_in_another_dtype_is_no_parameter():
    m = nn.Linear(4, 4)
    solver = solver_of_dict(dict(m.named_parameters()), "Momentum", True)
    old = m.weight
    m.astype("float64")
    before = old.numpy().copy(), m.weight.numpy().copy()
    with cg.record(): y = m(normal(2, 4)).sum()
    y.backward()
    for w, v in zip((old, m.weight), before, strict=True): np.testing.assert_array_equal(w.numpy(), v)
    assert m.weight.fresh_grad and solver.fused is not None


def test_a_weight_freed_between_two_contributions_is_left_alone():
    w, x = cg.ones(4, 4).attach_grad(), cg.ones(2, 4).attach_grad()
    solver = cg.optim.Momentum(0.5)
    solver.set_parameters({"w": w})
    with solver.fuse_into_backward() as fused, fused.accumulate():
        with cg.record(): y = cg.matmul(x, w).sum()
        y.backward()
        w.free()
    others = [cg.ones(4, 4) for _ in range(8)]
    with pytest.raises(RuntimeError, match="was freed"): solver.update()
    for t in others: np.testing.assert_array_equal(t.numpy(), 1.0)


def half(call):
    w, solver, fused, sum_up = accumulating()
    with fused.accumulate(): sum_up()
    try: call(solver, w)
    finally: solver.update()


@pytest.mark.parametrize("call", [
    lambda s, w: s.set_learning_rate(1.0), lambda s, w: s.weight_decay(0.1), lambda s, w: s.zero_grad(),
    lambda s, w: s.state_dict(), lambda s, w: s.set_states(s.get_states()), lambda s, w: pickle.dumps(s),
    lambda s, w: s.param_groups[0].update(lr=1.0), lambda s, w: s.load_state_dict({}),
])
def test_half_an_update_is_neither_changed_nor_saved(call):
    with pytest.raises(RuntimeError, match="the update of 'w' has begun, by accumulate.. or a pass"): half(call)


def test_a_pass_between_accumulation_and_update_is_refused():
    with pytest.raises(RuntimeError, match="sums of accumulate.. wait for update"):
        half(lambda solver, w: one_step_on(w))
    w, solver, fused, sum_up = accumulating()
    with fused.accumulate(): pass
    solver.update()
    one_step_on(w)


def one_step_on(w):
    with cg.record(): y = cg.matmul(cg.ones(2, 4), w).sum()
    y.backward()


@pytest.mark.parametrize("name", ["update", "close"])
def test_an_update_is_not_ended_within_its_pass(name):
    w, x = cg.ones(4, 4).attach_grad(), cg.ones(2, 4).attach_grad()
    solver = cg.optim.Momentum(0.5, momentum=0.0)
    solver.set_parameters({"w": w})
    fused = solver.fuse_into_backward()
    with cg.record():
        h = cg.matmul(x, w)
        h.register_hook(lambda g: solver.update() if name == "update" else fused.close())
        y = cg.matmul(h, w).sum()
    with pytest.raises(RuntimeError, match=f"{name}: a backward pass has begun the update of 'w'"): y.backward()


def test_a_decay_lasts_for_one_pass():
    w = cg.ones(4, 4).attach_grad()
    solver = cg.optim.Sgd(1.0)
    solver.set_parameters({"w": w})
    solver.fuse_into_backward()
    x = cg.zeros(2, 4)
    for k, wanted in enumerate((0.5, 0.5, 0.25)):
        if k != 1: solver.weight_decay(0.5)
        with cg.record(): y = cg.matmul(x, w).sum()
        y.backward()
        np.testing.assert_array_equal(w.numpy(), wanted)


def test_a_solver_without_a_rule_is_refused():
    solver = cg.optim.Solver()
    solver.set_parameters({"w": cg.ones(2).attach_grad()})
    with pytest.raises(NotImplementedError, match="has no rule"): solver.fuse_into_backward()
