"""Solvers whose states are divided among the ranks, against the solver in one process."""

import warnings

import numpy as np
from common import COMM, RANK, SIZE, main, raised, random, same_on_all_ranks

import cygrad as cg
import cygrad.comm.sharded as sharded
from cygrad.comm import ShardedSolver

SHAPES = [(3, 4), (5,), (2, 2), (), (70,), (6,)]
MAKE = [lambda p: cg.optim.Adam(p, alpha=0.1), lambda p: cg.optim.AdamW(p, alpha=0.1, wd=0.01),
        lambda p: cg.optim.Sgd(p, lr=0.1), lambda p: cg.optim.Lamb(p, eta=0.1), lambda p: cg.optim.Momentum(p, lr=0.1)]


def parameters():
    return {f"w{k}": cg.tensor(random(shape, k, "float64" if k % 2 else "float32")).attach_grad()
            for k, shape in enumerate(SHAPES)}


def groups(ps):
    *some, last = ps.items()
    return [{"params": dict(some), "weight_decay": 0.1}, {"params": dict([last]), "lr": 0.5, "wd_mult": 0.5}]


def steps(solver, ps, numbers):
    """What Updaters do with a solver. Every second step leaves a parameter out."""
    for i in numbers:
        solver.zero_grad()
        for k, x in enumerate(ps.values()):
            if k == 2 and i % 2: continue
            x.grad = cg.tensor(np.random.default_rng(10 * i + k).normal(size=x.shape).astype(x.dtype))
            x.fresh_grad = True
        solver.scale_grad(0.5)
        assert not solver.check_inf_or_nan_grad()
        solver.weight_decay(0.01)
        solver.clip_grad_by_norm(2.0)
        norm = solver.clip_grad_by_global_norm(1.0)
        solver.update()
        assert norm > 0 and not any(x.fresh_grad for x in ps.values())
        solver.set_learning_rate(solver.learning_rate() * 0.9)


def bits(ps):
    return [x.detach().numpy().tobytes() for x in ps.values()]


def equal(a, b):
    """Whether two state_dict()s are equal, bit for bit."""
    assert {**a, "state": 0} == {**b, "state": 0}
    return a["state"].keys() == b["state"].keys() and all(
        x.keys() == y.keys() and all(np.asarray(x[key]).tobytes() == np.asarray(y[key]).tobytes() for key in x)
        for x, y in ((a["state"][name], b["state"][name]) for name in a["state"]))


def check_updates_and_states():
    """The bits of one process, with groups and without, in segments of any length; states go to and fro."""
    before = sharded.SEGMENT
    for sharded.SEGMENT in (before, 48):
        for make in MAKE:
            for given in (dict, groups):
                a, b, c = parameters(), parameters(), parameters()
                one, many = make(given(a)), ShardedSolver(make(given(b)), COMM)
                for solver, ps in ((one, a), (many, b)): steps(solver, ps, range(3))
                assert bits(a) == bits(b) and equal(many.state_dict(), one.state_dict())
                assert [{**g, "params": 0} for g in many.param_groups] == [{**g, "params": 0} for g in one.param_groups]
                assert [[*map(id, g["params"])] for g in many.param_groups][0][0] == id(b["w0"])
                for name in c: c[name].copy_(a[name].detach())
                later = ShardedSolver(make(given(c)), COMM)
                later.load_state_dict(one.state_dict())
                one.load_state_dict(many.state_dict())
                for solver, ps in ((one, a), (many, b), (later, c)): steps(solver, ps, range(3, 5))
                assert bits(a) == bits(b) == bits(c) and equal(later.state_dict(), one.state_dict())
    sharded.SEGMENT = before


def check_bytes():
    """Only the owner has states: counted by the solver, and by the pool."""
    ps, shapes = parameters(), [(100,), (60,), (40,), (10, 10)]
    large = {f"v{k}": cg.ones(shape).attach_grad() for k, shape in enumerate(shapes)}
    before = cg.memory.stats()["by_category"]["optimizer"]
    solver = ShardedSolver(cg.optim.Adam(0.1), COMM)
    solver.set_parameters(large)
    held = cg.memory.stats()["by_category"]["optimizer"] - before
    assert solver.bytes_per_rank()[RANK] == held and sum(solver.bytes_per_rank()) == 2 * 300 * 4
    assert solver.bytes_per_rank() == {1: [2400], 2: [1280, 1120], 3: [800, 800, 800]}[SIZE]
    assert f"bytes_per_rank={solver.bytes_per_rank()}" in repr(solver)
    whole = cg.optim.Adam(large, alpha=0.1)
    ShardedSolver(whole, COMM)
    assert len(whole.get_parameters()) < 4 or SIZE == 1
    assert [*solver.get_parameters()] == [*large] and solver.lr == 0.1
    del ps


def check_groups_and_schedules():
    ps = parameters()
    solver = ShardedSolver(cg.optim.Sgd(lr=1.0), COMM)
    solver.set_parameters(groups(ps))
    schedule = cg.optim.StepLR(solver, 1, 0.5)
    schedule.step()
    assert schedule.get_last_lr() == [0.5, 0.25] and solver.learning_rate() == 0.5
    solver.param_groups[1]["lr"] = 0.125
    assert solver.solver.param_groups[1]["lr"] == 0.125 and len(solver.param_groups[0]["params"]) == 5


def check_an_update_that_fails_on_one_rank():
    """All ranks raise, and their parameters are equal."""
    ps = parameters()
    solver = ShardedSolver(cg.optim.Adam(ps, alpha=0.1), COMM)
    for x in ps.values(): x.grad, x.fresh_grad = cg.ones(x.shape, dtype=x.dtype), True

    def hook():
        if RANK == SIZE - 1: raise ValueError("wrong")

    text = raised(lambda: solver.update(hook), ValueError if RANK == SIZE - 1 else RuntimeError)
    assert "wrong" in text and same_on_all_ranks(*ps.values())
    steps(solver, ps, [0])
    assert same_on_all_ranks(*ps.values())


def check_slices():
    w = cg.ones((5, 2)).attach_grad()
    for make, fails in ((cg.optim.Sgd, False), (cg.optim.Lamb, True)):
        solver = ShardedSolver(make({"w": w}), COMM)
        w.grad, w.fresh_grad = cg.GradientSlice([1], [[1.0, 1.0]], (5, 2)), True
        if fails: assert "is a GradientSlice, and Lamb takes" in raised(solver.update, TypeError)
        else: solver.update()
        assert same_on_all_ranks(w) and w[0].tolist() == [1, 1] and w[1, 0].item() < 1


def check_nothing_to_update():
    w = cg.ones(2).attach_grad()
    solver = ShardedSolver(cg.optim.AdamW({"w": w}), COMM)
    solver.weight_decay(0.5)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        solver.update()
    assert [str(c.message) for c in caught][0].startswith("update: no backward pass has reached") and len(caught) == 1
    assert "has no parameters" in raised(ShardedSolver(cg.optim.Sgd(), COMM).update, RuntimeError)


def check_trainers():
    """An Updater with a scope: the same run as a solver in one process on the joined batch, to rounding."""
    data = np.random.default_rng(0).normal(size=(4, 12, 3)).astype("f4")
    for accum in (1, 2):
        runs = []
        for distributed in (True, False):
            w = {"a": cg.tensor(random((3, 4), 1) / 1e6).attach_grad(), "idle": cg.ones(2).attach_grad(),
                 "b": cg.tensor(np.full((4, 1), 0.5, "f4")).attach_grad()}
            solver = cg.optim.Adam(0.1)
            if distributed: solver = ShardedSolver(solver, COMM)
            solver.set_parameters(w)
            feed = iter([x[RANK::SIZE] if distributed else x for x in data]).__next__
            scope = COMM.all_reduce_callback(w.values(), 8) if distributed else None
            order = []
            updater = cg.trainers.Updater(
                solver, lambda x, w=w: cg.tanh(x @ w["a"]).matmul(w["b"]).sum(), feed, accum_grad=accum,
                comm_callback=scope, comm_callback_on_start=lambda i, order=order: order.append("start"),
                comm_callback_on_finish=lambda i, order=order: order.append("finish"))
            for i in range(4 // accum): updater.update(i)
            assert order == (["start", "finish"] * (4 // accum) if distributed else [])
            assert w["idle"].tolist() == [1, 1] and not w["idle"].fresh_grad
            if distributed: assert same_on_all_ranks(*w.values())
            runs.append([x.detach().numpy().copy() for x in w.values()])
        for x, y in zip(*runs, strict=True): np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-6)
        del w, updater, solver, scope


if __name__ == "__main__": main(globals())
