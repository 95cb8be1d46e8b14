"""Programs with less memory than their values need: the same bits, never a byte over, and a known price."""

import random

import numpy as np
import programs
import pytest

import cygrad as cg
from cygrad.core.execute.program import Program

from rows import same_bits

N = 4096                                            # elements of a value


def chain(n):
    """A step of n operators of equal work, whose gradients read their results."""
    x = cg.tensor(np.linspace(-1, 1, N, dtype="float32")).attach_grad()

    def step():
        with cg.record():
            y = x
            for _ in range(n): y = cg.tanh(y)
            y = y.sum()
        y.backward()
        return y

    return x, step


def limited(step, share):
    """The program of a step, and one whose arena has a share of its bytes at most."""
    whole = Program(step)
    small = Program(step, _limit=int(share * whole.arena_bytes))
    assert small.arena_bytes <= share * whole.arena_bytes
    return whole, small


@pytest.mark.parametrize("share,most", [(1, 0), (0.7, 31), (0.5, 51), (0.3, 71), (0.2, 82), (0.1, 145), (0.06, 334)])
def test_the_price_of_a_chain(share, most):
    """Down to a fifth, a call for each value that does not fit; below, some values are made more than once."""
    x, step = chain(100)
    whole, small = limited(step, share)
    calls, work = small.recomputed
    assert 100 * (1 - share) - 1 <= calls <= most and work == pytest.approx(calls / 203, rel=0.05)
    a, g = float(whole.run()), x.grad.numpy().copy()
    assert float(small.run()) == a
    same_bits(x.grad.numpy(), g)


def test_a_larger_budget_never_costs_more():
    _, step = chain(60)
    whole = Program(step).arena_bytes
    prices = [Program(step, _limit=limit).recomputed[0] for limit in range(whole // 12, whole, whole // 97)]
    assert prices == sorted(prices, reverse=True) and prices[0] > 100 > prices[-1]


def test_the_least_that_is_enough():
    _, step = chain(30)
    try: Program(step, _limit=100)
    except cg.MemoryLimitError as e:
        least = e.requested
        assert e.limit == 100 and f"needs {least:,}" in str(e) and "tanh" in str(e)
    assert Program(step, _limit=least).arena_bytes == least
    with pytest.raises(cg.MemoryLimitError): Program(step, _limit=least - 64)


def test_nothing_is_made_again_from_what_was_written_since():
    """exp(w) cannot be made again after w changes, so a limit that would need it is refused."""
    w, x = cg.ones(N), cg.ones(N).attach_grad()

    def step():
        y = cg.exp(w)
        w.copy_(w * 0.5)
        with cg.record():
            z = x
            for _ in range(20): z = cg.tanh(z)
            loss = (z * y).sum()
        loss.backward()
        return loss

    whole, small = limited(step, 0.5)
    names = [s.name for s in small.steps]
    assert "tanh (again)" in names and "exp (again)" not in names
    a = float(whole.run()), float(whole.run())
    w.copy_(cg.ones(N))
    assert (float(small.run()), float(small.run())) == a and a[0] != a[1]


def test_what_is_made_again_before_a_write_may_be_overwritten_after():
    """y is dropped and made again before the write to w, of which it must not see anything."""
    w = cg.ones(N)

    def step():
        y = cg.exp(w)
        z = cg.ones(N) * 2
        big = [cg.sin(z * k) for k in range(8)]
        s = cg.zeros(N)
        for b in big: s = s + b
        s = s + y
        w.copy_(w + 1)
        return (s + w).sum()

    whole, small = limited(step, 0.6)
    a = float(whole.run()), float(whole.run())
    w.copy_(cg.ones(N))
    assert (float(small.run()), float(small.run())) == a


def test_nothing_is_made_again_from_a_gradient_that_was_written():
    """h shares the memory of x.grad, which the first pass overwrites."""
    x, z = (cg.tensor(np.linspace(-1, 1, N)).attach_grad() for _ in range(2))
    x.grad = cg.tensor(np.linspace(0, 1, N))
    h = x.grad

    def step():
        a = cg.exp(h)
        b = cg.sin(a)
        with cg.record(): first = (x * x).sum()
        first.backward()
        with cg.record():
            q = z
            for _ in range(8): q = cg.tanh(q)
            second = (q * b * a).sum()
        second.backward()
        return b

    start = h.numpy().copy()
    whole, small = limited(step, 0.6)
    wanted = whole.run().numpy().copy()
    h.copy_(cg.tensor(start))
    assert small.recomputed[0] > 0
    same_bits(small.run().numpy(), wanted)


def test_a_gradient_that_is_assigned_later_must_not_share_what_runs_again():
    w, x = cg.tensor(np.linspace(0, 1, N)), cg.tensor(np.linspace(-1, 1, N)).attach_grad()

    def step():
        with cg.record():
            y = x
            for _ in range(12): y = cg.tanh(y * w)
            y = y.sum()
        y.backward()

    program = Program(step, _limit=int(0.5 * Program(step).arena_bytes))
    program.run()
    x.grad = w
    with pytest.raises(RuntimeError, match=r"the .grad of a variable of shape \(4096,\) shares the memory of a tensor"):
        program.run()
    x.grad = w.copy()
    program.run()


def test_a_budget_of_its_own_peak_costs_nothing():
    """Results are written over operands before it is decided whether steps must run again."""
    whole = Program(lambda x: cg.tanh(cg.exp(cg.sin(x))), cg.ones(N))
    again = Program(lambda x: cg.tanh(cg.exp(cg.sin(x))), cg.ones(N), _limit=whole.arena_bytes)
    assert again.arena_bytes == whole.arena_bytes == 4 * N and again.recomputed == (0, 0)


def test_random_operators_draw_once():
    x = cg.ones(N).attach_grad()
    generator = cg.random.Generator(3)

    def step():
        with cg.record():
            y = x
            for _ in range(12): y = cg.tanh(cg.dropout(y, 0.3, generator=generator))
            y = y.sum()
        y.backward()
        return y

    whole, small = limited(step, 0.45)
    assert any("dropout (again)" in s.name for s in small.steps)
    state, found = generator.state, []
    for p in whole, small:
        generator.state = state
        for _ in range(2): found.append((float(p.run()), x.grad.numpy().copy()))
    assert found[0][0] == found[2][0] and found[1][0] == found[3][0] != found[0][0]
    for k in range(2): same_bits(found[k][1], found[k + 2][1])


def check_random(seed):
    """A random program, twice differentiated or with writes in place, under three random limits."""
    p = programs.Program(seed, least=12)
    if p.kind == "exception": return 0
    r = random.Random(seed)
    variables = [cg.tensor(v).attach_grad(q) for v, q in zip(p.variables, p.grad_reqs, strict=True)]
    constants = [cg.tensor(v) for v in p.constants]

    def step():
        with cg.record():
            loss = programs.forward(p, [*variables, *constants], programs.in_cygrad)
            if not isinstance(loss, cg.Tensor) or not loss.requires_grad: return loss
            kept = cg.dropout(loss * cg.ones(5), 0.5).sum() if seed % 5 == 0 else loss
        if p.kind == "create_graph":
            first = cg.autograd.grad(kept, variables, create_graph=True, allow_unused=True)
            with cg.record():
                for g in first:
                    if g is not None: kept = kept + (g * g).sum()
        kept.backward()
        return loss

    def results(program):
        cg.random.seed(seed)
        for x, v in zip(constants, p.constants, strict=True): x.copy_(cg.tensor(v))
        for x in variables:
            if x.grad is not None: x.zero_grad()
        found = []
        for _ in range(2):
            loss = program.run()
            found += [np.array(loss), *[x.grad.numpy().copy() for x in variables if x.grad is not None]]
        return found

    try:
        results(Program(step))                      # (the first run makes gradients; a program depends on them)
        whole = Program(step)
        wanted = results(whole)
    except (cg.InplaceError, ValueError, RuntimeError):
        return 0
    calls = 0
    for share in (r.random(), r.random(), 0.5):
        try: small = Program(step, _limit=int(share * whole.arena_bytes))
        except cg.MemoryLimitError: continue
        assert small.arena_bytes <= share * whole.arena_bytes
        for a, b in zip(wanted, results(small), strict=True): same_bits(a, b)
        calls += small.recomputed[0]
    return calls


def test_random_programs():
    with np.errstate(all="ignore"): assert sum(check_random(seed) for seed in range(120)) > 500


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_many_random_programs(part):
    with np.errstate(all="ignore"):
        for seed in range(1000 * (part + 1), 1000 * (part + 1) + 400): check_random(seed)
