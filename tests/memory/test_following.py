"""Eager steps that are like an earlier one, under a budget: the cost of the plan, never a byte over, the same bits."""

import threading

import numpy as np
import programs
import pytest
from small_models import MODELS
from watching import Watcher

import cygrad as cg
from benchmarks.budgets import recurrent
from cygrad.core.execute.program import Program
from cygrad.core.store import buffer as core

N = 10_000                                          # elements of a value
SHARES = (0.9, 0.7, 0.5, 0.3, 0.2, 0.15, 0.1)


def chain(x, steps=60, then=lambda: None):
    with cg.record():
        y = x
        for _ in range(steps): y = cg.tanh(y)
        z = y.sum()
        del y
        then()
    z.backward()
    return z


def variable(): return cg.tensor(np.linspace(-1, 1, N, dtype="float32")).attach_grad()


def peak_of(f):
    f()
    cg.memory.reset_peak()
    f()
    return cg.memory.stats()["peak_bytes"]


def calls_of_steps(b, step, n):
    """How many calls each of n steps repeats."""
    found = [b.recomputed.calls]
    for _ in range(n):
        step()
        found.append(b.recomputed.calls)
    return [int(x) for x in np.diff(found)]


@pytest.mark.parametrize("share", SHARES)
def test_a_chain_costs_what_the_plan_says(share):
    x = variable()
    bound = int(share * peak_of(lambda: chain(x)))
    wanted = x.grad.numpy().copy()
    with Watcher() as seen, cg.memory.budget(bound) as b:
        assert b.planned is None
        first, *later = calls_of_steps(b, lambda: chain(x), 4)
        if b.planned is not None: assert later == 3 * [b.planned] and b.planned <= first
        else: assert max(later) <= first            # (no plan costs less)
    assert seen.most <= bound
    np.testing.assert_array_equal(x.grad.numpy(), wanted)


def test_a_chain_costs_as_much_as_a_captured_one():
    """The planner is the same. (Eager code holds a value more: the one that is made while its operand has a name.)"""
    x = variable()
    peak, live = peak_of(lambda: chain(x)), cg.memory.stats()["live_bytes"]
    for share in SHARES[:5]:
        bound = int(share * peak)
        with cg.memory.budget(bound) as b: calls = calls_of_steps(b, lambda: chain(x), 2)[1]
        most, least = [Program(lambda: chain(x), _limit=bound - live - n).recomputed[0] for n in (4 * N, 0)]
        assert least <= calls <= most, share


def test_a_smaller_budget_costs_more():
    x, costs = variable(), []
    peak = peak_of(lambda: chain(x))
    for share in np.linspace(1, 0.12, 25):
        with cg.memory.budget(int(share * peak)) as b: costs.append(calls_of_steps(b, lambda: chain(x), 2)[1])
    assert costs == sorted(costs) and costs[-1] > costs[0] == 0


@pytest.mark.parametrize("which", MODELS)
def test_training_steps(which):
    """From the third step on (the second has the states of the solver for the first time), the cost is the plan's or
    that of a step without one, and the bits are the same."""
    def run(budget, n=6):
        cg.random.seed(0)
        model, x = MODELS[which]()
        labels = np.arange(model(x).shape[0]) % 4
        solver = cg.optim.Adam()
        solver.set_parameters(dict(model.named_parameters()))

        def step():
            solver.zero_grad()
            with cg.record(): loss = cg.cross_entropy(model(x), labels)
            loss.backward()
            solver.update()
            losses.append(loss.item())

        losses = []
        cg.memory.reset_peak()
        if budget is None: calls = [step() for _ in range(n)]
        else:
            with cg.memory.budget(budget) as b: calls = calls_of_steps(b, step, n)
        return losses, [w.numpy().copy() for w in model.parameters()], calls, cg.memory.stats()["peak_bytes"]

    losses, state, _, peak = run(None)
    done = 0
    for share in (0.98, 0.95, 0.9, 0.85, 0.8):
        try: found, other, calls, most = run(int(share * peak))
        except cg.MemoryLimitError: break
        done += 1
        assert found == losses and most <= share * peak
        for a, b in zip(state, other, strict=True): np.testing.assert_array_equal(a, b)
        assert calls[4] == calls[5]
    assert done


def test_a_first_step_with_more_memory_than_later_ones():
    """It makes .grad. What it cost without a plan says nothing of the later steps."""
    x = variable()

    def step():
        with cg.record():
            y = x
            for _ in range(60): y = cg.sin(cg.exp(y * 0.1))
            z = y.sum()
        z.backward()

    with cg.memory.budget(12 * 4 * N) as b:
        first, *later = calls_of_steps(b, step, 4)
        assert first < later[0] and later == 3 * [b.planned]


def test_steps_of_two_kinds_in_turn():
    x = variable()
    peak = peak_of(lambda: chain(x, 40))
    with cg.memory.budget(int(0.4 * peak)) as b:
        calls = calls_of_steps(b, lambda: (chain(x, 40), chain(x, 30)), 4)
        assert len(set(calls[1:])) == 1 and b.planned is not None and calls[1] <= calls[0]


@pytest.mark.parametrize("seed", range(8))
def test_steps_that_change(seed):
    """In length, in shape, in the operators, and where they fail: never over, and always the same bits."""
    rng = np.random.default_rng(seed)
    kinds = [(int(rng.integers(20, 40)), int(rng.integers(0, 20)), N if rng.random() < 0.7 else N // 2)
             for _ in range(3)]
    order = [kinds[k] for k in rng.integers(0, 3, 12)]

    def step(length, at, n, fails=False):
        x = cg.tensor(np.linspace(-1, 1, n, dtype="float32")).attach_grad()
        with cg.record():
            y = x
            for k in range(length): y = cg.sin(cg.exp(y * 0.1)) if k == at else cg.tanh(y)
            z = y.sum()
            if fails: y.register_hook(lambda g: 1 / 0)
            del y
        try: z.backward()
        except ZeroDivisionError: return None
        return x.grad.numpy().copy()

    wanted = {k: step(*k) for k in kinds}
    cg.memory.reset_peak()
    step(*max(kinds, key=lambda k: k[0] * k[2]))
    bound = int(0.3 * cg.memory.stats()["peak_bytes"])
    with Watcher() as seen, cg.memory.budget(bound) as b:
        for k, kind in enumerate(order):
            if k % 5 == 4: assert step(*kind, fails=True) is None
            np.testing.assert_array_equal(step(*kind), wanted[kind])
    assert seen.most <= bound and b.recomputed.calls
    assert cg.memory.stats()["live_bytes"] == 0


def test_an_exception_in_forward_ends_the_step():
    x = variable()
    bound = int(0.4 * peak_of(lambda: chain(x)))
    wanted = x.grad.numpy().copy()
    with cg.memory.budget(bound) as b:
        chain(x)
        before = calls_of_steps(b, lambda: chain(x), 1)
        for _ in range(2):
            with pytest.raises(ZeroDivisionError): chain(x, 45, then=lambda: 1 / 0)
            chain(x)
            np.testing.assert_array_equal(x.grad.numpy(), wanted)
        assert calls_of_steps(b, lambda: chain(x), 2)[1] == before[0] == b.planned


def test_failed_allocations():
    """Any allocation of a step that follows a plan can fail."""
    x = variable()
    bound = int(0.3 * peak_of(lambda: chain(x)))
    wanted = x.grad.numpy().copy()
    with Watcher() as seen, cg.memory.budget(bound):
        for _ in range(2): chain(x)
        for n in range(1, 260, 6):
            core.set_failure(n, False)
            try: chain(x)
            except MemoryError: pass
            finally: core.set_failure(0, False)
            if n % 4: continue
            chain(x)
            np.testing.assert_array_equal(x.grad.numpy(), wanted)
    assert seen.most <= bound


def test_a_scope_that_is_opened_again_knows_the_step():
    x = variable()
    b = cg.memory.budget(int(0.3 * peak_of(lambda: chain(x))))
    for k in range(3):
        with b: chain(x)
        assert (b.planned is None) == (k == 0)


def test_what_other_scopes_compute_again_is_not_counted():
    """Their work would look as if the planned steps cost more than planned, which ends a plan."""
    step = recurrent(20, 16)
    step()
    live = cg.memory.stats()["live_bytes"]
    bound = live + int(0.6 * (peak_of(step) - live))
    b = cg.memory.budget(bound)
    for k in range(8):
        with b: step()
        assert (b.planned is None) == (k == 0)
        if k < 3: continue
        with cg.memory.budget(bound): step()


def test_scopes_inside_share_what_is_known():
    x = variable()
    peak = peak_of(lambda: chain(x))
    wanted = x.grad.numpy().copy()
    with cg.memory.budget(int(0.5 * peak)) as outer:
        calls = []
        for _ in range(3):
            with cg.memory.budget(int(0.3 * peak)) as b: calls += calls_of_steps(b, lambda: chain(x), 1)
            np.testing.assert_array_equal(x.grad.numpy(), wanted)
        assert calls[1] == calls[2] == outer.planned


def test_what_is_kept_by_name():
    """Values that names refer to are not evicted; more than a few of them count as other memory."""
    x, kept = variable(), []
    wanted = chain(x).item()

    def step():
        kept.clear()
        with cg.record():
            y = x
            for _ in range(100):
                y = cg.tanh(y)
                kept.append(y)
            for _ in range(60): y = cg.tanh(y)
            z = y.sum()
            del y
        z.backward()
        return z.item()

    whole = peak_of(step)
    with cg.memory.budget(int(0.8 * whole)) as b:
        calls = calls_of_steps(b, step, 3)
        assert 0 < calls[2] == calls[1] <= calls[0]
    np.testing.assert_allclose(kept[-1].numpy().sum(), wanted, atol=1e-3)


@pytest.mark.parametrize("retain", [False, True])
def test_two_backward_passes_in_a_step(retain):
    """A graph that is differentiated twice is one step."""
    x, results = variable(), []

    def step():
        with cg.record():
            y = x
            for _ in range(20): y = cg.tanh(y)
            z = y.sum()
            del y
            if not retain: g, = cg.autograd.grad(z, [x], create_graph=True)
            total = z if retain else (g * g).sum() + z
        if retain: total.backward(retain_graph=True)
        total.backward()
        results.append(x.grad.numpy().copy())

    peak = peak_of(step)
    with cg.memory.budget(int((0.6 if retain else 0.9) * peak)) as b: calls = calls_of_steps(b, step, 4)
    assert 0 < calls[3] == calls[2] <= calls[0]
    for r in results: np.testing.assert_array_equal(r, results[0])


def test_threads():
    """Two threads train, each in a budget of its own, and a third one allocates."""
    x = variable()
    peak = peak_of(lambda: chain(x))
    wanted, failed, done = x.grad.numpy().copy(), [], threading.Event()

    def train():
        try:
            v = variable()
            with cg.memory.budget(int(1.6 * peak)) as b:
                for _ in range(6):
                    chain(v)
                    np.testing.assert_array_equal(v.grad.numpy(), wanted)
                    assert cg.memory.stats()["live_bytes"] <= 1.6 * peak
            assert b.recomputed.calls >= 0
        except Exception as e: failed.append(e)

    def allocate():
        while not done.is_set(): cg.ones(3 * N) + 1

    threads = [threading.Thread(target=f) for f in (train, train, allocate)]
    for t in threads: t.start()
    for t in threads[:2]: t.join()
    done.set()
    threads[2].join()
    assert not failed, failed


def test_random_programs():
    """Each four times under three budgets: over none of them, and bit-equal where the budget is enough."""
    done = recomputed = 0
    for seed in range(240):
        p = programs.Program(seed)
        if p.kind == "exception": continue
        cg.memory.reset_peak()
        try: wanted = programs.run(p)
        except programs.Refused: continue
        peak = cg.memory.stats()["peak_bytes"]
        for share in (0.9, 0.8, 0.7):
            bound = int(share * peak)
            cg.memory.reset_peak()
            try:
                with cg.memory.budget(bound) as b:
                    for _ in range(4):
                        found = programs.run(p)
                        np.testing.assert_array_equal(wanted[0], found[0])
                        for u, v in zip(wanted[1], found[1], strict=True):
                            if u is not None: np.testing.assert_array_equal(u, v)
            except cg.MemoryLimitError: continue
            finally: assert cg.memory.stats()["peak_bytes"] <= bound, p
            done += 1
            recomputed += b.recomputed.calls
    assert done > 80 and recomputed > 100, (done, recomputed)


def test_a_new_scope_in_each_step_follows_the_steps_before():
    """Handles that the same line makes share what they have seen; another line, or another budget, has seen nothing."""
    step = recurrent(steps=30)
    bound = int(0.5 * peak_of(step))

    def costs(bound):
        found = []
        for _ in range(4):
            with cg.memory.budget(bound) as b: step()
            found.append(b.recomputed.calls)
        return found

    first, *later = costs(bound)
    assert max(later) < first / 1.3 and costs(bound)[0] == later[-1]
    assert costs(bound + 64)[0] > 1.3 * later[-1]
    with cg.memory.budget(bound) as b: step()
    assert b.recomputed.calls == first


def test_handles_of_one_line_that_are_open_at_once_do_not_share():
    x = variable()
    bound = int(0.5 * peak_of(lambda: chain(x)))
    handles = [cg.memory.budget(bound) for _ in range(2)]
    wanted = x.grad.numpy().copy()
    for _ in range(3):
        with handles[0], handles[1]: chain(x)
        np.testing.assert_array_equal(x.grad.numpy(), wanted)
