"""checkpoint(): what is computed again has the same bits, is computed once, and takes the memory that it says."""

import copy
import gc
import pickle
from functools import reduce

import numpy as np
import programs
import pytest

import cygrad as cg
from cygrad import nn
from cygrad.core.execute.program import Program
from cygrad.core.execute.recipes import executed_recipes

N = 3000


def block(width):
    return nn.Sequential(nn.Linear(width, 2 * width), nn.ReLU(), nn.Linear(2 * width, width), nn.Dropout(0.3),
                         nn.Sigmoid())


def step(call, blocks, x):
    """The gradients of one step, in which call(block, h) is the call of each block."""
    for w in (x, *(w for m in blocks for w in m.parameters())): w.grad = None
    cg.random.seed(7)
    with cg.record():
        h = x
        for m in blocks: h = call(m, h)
        loss = (h * h).sum()
    loss.backward()
    return [w.grad.numpy().copy() for w in (x, *(w for m in blocks for w in m.parameters()))]


def equal(a, b):
    assert len(a) == len(b)
    for x, y in zip(a, b, strict=True): np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("call", [
    cg.checkpoint,
    lambda m, h: cg.checkpoint(m, h, determinism_check="hash"),
    lambda m, h: cg.checkpoint(m, h, keep="linear"),
    lambda m, h: cg.checkpoint(lambda h: reduce(lambda h, layer: cg.checkpoint(layer, h), m, h), h),
    lambda m, h: cg.checkpoint(lambda h: reduce(lambda h, layer: layer(h), m, h), h, keep=["relu", "dropout"]),
], ids=["plain", "hash", "kept", "nested", "names"])
def test_gradients_are_bit_equal(call):
    cg.random.seed(0)
    blocks, x = [block(5) for _ in range(3)], cg.random.normal((4, 5)).attach_grad()
    wanted = step(lambda m, h: m(h), blocks, x)
    before = executed_recipes()
    equal(step(call, blocks, x), wanted)
    assert executed_recipes() > before


def test_each_operator_runs_once_more_at_most():
    x, calls = cg.ones(4).attach_grad(), []

    def f(x):
        calls.append(1)
        for _ in range(10): x = cg.sin(x) * 2
        return x

    before = executed_recipes()
    with cg.record(): y = cg.checkpoint(f, x).sum()
    y.backward()
    assert calls == [1] and executed_recipes() - before == 18       # (the last sine and product are not needed)


def test_forward_keeps_what_is_alive_and_backward_needs_one_block():
    n = 4 * N                                       # bytes of a value
    x = cg.ones(N).attach_grad()

    def f(x):
        for _ in range(8): x = cg.exp(cg.sin(x))
        return x

    with cg.memory.track() as eager, cg.record(): y = f(f(f(x)))
    assert eager.peak_bytes >= 24 * n
    del y
    with cg.memory.track() as forward, cg.record():
        y = x
        for _ in range(3): y = cg.checkpoint(f, y)
    assert forward.peak_bytes <= 6 * n              # two arguments, the result, and what one call has alive
    assert cg.memory.stats()["by_category"]["saved"] == 2 * n and cg.memory.stats()["live_bytes"] == 4 * n
    with cg.memory.track() as backward: y.backward(cg.ones(N))
    assert backward.peak_bytes <= 4 * n + 8 * n + 3 * n     # what was alive, the values of one call, and gradients


def test_a_nested_call_is_dropped_again():
    x = cg.ones(N).attach_grad()

    def inner(x):
        for _ in range(10): x = cg.sin(x)
        return x

    def outer(x):
        for _ in range(6): x = cg.checkpoint(inner, x)
        return x

    before = executed_recipes()
    with cg.record(): y = cg.checkpoint(outer, x).sum()
    with cg.memory.track() as t: y.backward()
    assert t.peak_bytes <= 4 * N * (6 + 10 + 4)     # what is between the inner calls, and the values of one
    assert executed_recipes() - before == 59 + 5 * 9        # (each inner call twice, but for what the first left)


def test_create_graph_retained_graphs_and_views():
    def f(x):
        y = cg.tanh(x.reshape(2, 3).T @ x.reshape(2, 3))
        return (y[1:] * y[:-1]).sum()

    results = []
    for call in (lambda f, x: f(x), cg.checkpoint):
        x = cg.tensor(np.linspace(-1, 1, 6)).attach_grad()
        with cg.record():
            y = call(f, x)
            g, = cg.autograd.grad(y, [x], create_graph=True)
            z = y + (g * g).sum()
        z.backward(retain_graph=True)
        first = x.grad.numpy().copy()
        z.backward()
        results.append([g.numpy().copy(), first, x.grad.numpy().copy()])
    equal(*results)


def test_what_is_written_in_the_function_is_computed_from_the_old_values():
    def f(x, table):
        y = cg.exp(x)
        z = cg.sin(y + table)                       # reads `table` before the write
        table += 1.0
        w = cg.zeros(3)
        w += z
        v = cg.cos(w + table)
        w *= 2.0
        return (cg.sin(v) + w + table).sum()

    results = []
    for call in (lambda f, *xs: f(*xs), cg.checkpoint):
        x, table = cg.tensor([1.0, 2.0, 3.0]).attach_grad(), cg.tensor([0.5, 0.25, 0.125])
        with cg.record(): y = call(f, x, table)
        y.backward()
        results.append([x.grad.numpy().copy(), table.numpy().copy()])
    equal(*results)


def test_what_is_written_later_raises():
    x, c = cg.ones(3).attach_grad(), cg.ones(3)
    with cg.record(): y = cg.checkpoint(lambda x: cg.sin(x + c), x).sum()
    c += 1
    with pytest.raises(cg.InplaceError, match="a tensor of 12 bytes that it depends on was written in place"):
        y.backward()
    x = cg.ones(3).attach_grad()

    def f(x):
        y = cg.exp(x)
        z = y * y
        y += 1.0                                    # z's gradient needs the old value: as in eager code
        return z

    with cg.record(): z = cg.checkpoint(f, x).sum()
    with pytest.raises(cg.InplaceError, match="released|written in place since"): z.backward()


def test_functions_are_never_repeated():
    runs = []

    class Twice(cg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            runs.append(1)
            y = cg.exp(x)
            ctx.save_for_backward(y)
            return y * 2

        @staticmethod
        def backward(ctx, g): return g * ctx.saved_tensors[0] * 2

    x = cg.ones(3).attach_grad()
    before = executed_recipes()
    with cg.record(): y = cg.checkpoint(lambda x: cg.sin(Twice.apply(cg.sin(x))), x).sum()
    y.backward()
    s = np.sin(np.float32(1))
    np.testing.assert_allclose(x.grad.numpy(), 2 * np.cos(2 * np.exp(s)) * np.exp(s) * np.cos(np.float32(1)), rtol=1e-5)
    assert runs == [1] and executed_recipes() == before     # the operand of the last sine is what the Function returned


def test_numbers_drawn_in_the_function_stay():
    x = cg.ones(5).attach_grad()

    def f(x): return cg.sin(cg.dropout(x, 0.5) * cg.random.normal((5,)))

    results = []
    for call in (lambda f, x: f(x), cg.checkpoint):
        cg.random.seed(3)
        with cg.record(): y = call(f, x)
        y.backward(cg.ones(5))
        results.append([x.grad.numpy().copy(), cg.random.normal((2,)).numpy()])
    equal(*results)


def test_hash_finds_what_numpy_has_written():
    shared = np.ones(3, "float32")
    c, x = cg.asarray(shared), cg.ones(3).attach_grad()
    with cg.record(): y = cg.checkpoint(lambda x: cg.sin(cg.cos(x + c)), x, determinism_check="hash").sum()
    shared[0] = 2
    with pytest.raises(RuntimeError, match="add, computed again, gave other values than before"): y.backward()


def test_plans_and_captured_steps_compute_again():
    cg.random.seed(0)
    blocks, x = [block(40) for _ in range(3)], cg.random.normal((200, 40))
    parameters = [w for m in blocks for w in m.parameters()]

    def run(x):
        with cg.record():
            h = x
            for m in blocks: h = call(m, h)
            loss = (h * h).sum()
        loss.backward()
        return loss

    peaks, found = [], []
    for call in (lambda m, h: m(h), cg.checkpoint):         # noqa: B007 (run() reads it)
        for w in parameters: w.grad = None
        peaks.append(cg.memory.plan(run, x).peak_bytes)
        program = Program(run, x)
        cg.random.seed(5)
        program.run(x)
        found.append([w.grad.numpy().copy() for w in parameters])
        for w in parameters: w.grad = None
        live = cg.memory.stats()["live_bytes"]
        cg.random.seed(5)
        del program
        with cg.memory.track() as t: run(x)
        found.append([w.grad.numpy().copy() for w in parameters])
        assert t.peak_bytes - live <= peaks[-1]
    assert peaks[1] < peaks[0]
    for others in found[1:]: equal(found[0], others)


def test_modules():
    cg.random.seed(0)
    m, x = block(4), cg.ones(2, 4).attach_grad()
    wanted = step(lambda m, h: m(h), [m], x)
    assert m.checkpoint_(keep="linear") is m
    before = executed_recipes()
    equal(step(lambda m, h: m(h), [m], x), wanted)
    assert executed_recipes() > before
    for other in (copy.deepcopy(m), pickle.loads(pickle.dumps(m))):
        before = executed_recipes()
        equal(step(lambda m, h: m(h), [other], x), wanted)
        assert executed_recipes() > before
    m.checkpoint_(False)
    before = executed_recipes()
    equal(step(lambda m, h: m(h), [m], x), wanted)
    assert executed_recipes() == before


def test_outside_of_record_it_only_calls():
    assert cg.checkpoint(lambda x, k: x * k, cg.ones(2), k=3).tolist() == [3, 3]


def test_an_error_in_the_function_closes_the_region():
    x = cg.ones(2).attach_grad()

    def f(x):
        y = cg.exp(x)
        raise KeyError(y.shape)

    with cg.record():
        with pytest.raises(KeyError): cg.checkpoint(f, x)
        before = executed_recipes()
        y = cg.exp(cg.exp(x)).sum()
    y.backward()
    assert executed_recipes() == before


def test_a_long_chain_is_made_and_freed_without_recursion():
    x = cg.ones(2, dtype="float64").attach_grad()

    def f(x):
        for _ in range(30_000): x = x * 0.9999
        return cg.exp(x)

    with cg.record(): y = cg.checkpoint(f, x).sum()
    y.backward()
    assert x.grad.numpy()[0] > 0
    with cg.record(): y = cg.checkpoint(f, x).sum()
    del y


@pytest.mark.parametrize("n", range(0, 40, 3))
def test_an_allocation_that_fails_leaves_nothing(n):
    x = cg.ones(N).attach_grad()

    def f(x):
        for _ in range(5): x = cg.exp(cg.sin(x))
        return x

    with cg.record():
        try:
            with cg.testing.fail_allocation(n + 1): y = cg.checkpoint(f, cg.checkpoint(f, x)).sum()
        except MemoryError: return
    try:
        with cg.testing.fail_allocation(n + 1): y.backward(retain_graph=True)
    except MemoryError: pass
    else: assert n
    x.grad = None
    y.backward()
    got = x.grad.numpy().copy()
    with cg.record(): y = f(f(x)).sum()
    x.grad = None
    y.backward()
    equal([got], [x.grad.numpy()])


def test_many_nested_calls_leave_other_scopes_alone():
    def deep(x, n):
        if n == 0: return cg.log(x * 0 - 1)
        return cg.checkpoint(deep, cg.exp(x * 0.1), n - 1)

    for n in (10, 140):
        with cg.autograd.detect_anomaly(forward=True), cg.record():
            with pytest.raises(RuntimeError, match="produced the first NaN"): deep(cg.ones(10).attach_grad(), n)
    with cg.autograd.detect_anomaly(forward=True), cg.record():
        with pytest.raises(RuntimeError, match="produced the first NaN"): cg.log(cg.ones(2).attach_grad() * -1)


# ---- random programs -------------------------------------------------------------------------------------------------

def run_steps(p, values, first, last, rng, depth):
    """Run steps, some of them inside of checkpoint()."""
    k = first
    while k < last:
        if depth and rng.random() < 0.5:
            end = min(last, k + int(rng.integers(1, 8)))
            cg.checkpoint(run_steps, p, values, k, end, rng, depth - 1,
                          determinism_check="hash" if rng.random() < 0.3 else "metadata")
            k = end
            continue
        name, operands, arguments = p.steps[k]
        if name in programs.WRITES:
            i, j = operands
            programs.write(name, values[i], values[j] if isinstance(j, int) else j, arguments)
        else: values.append(programs.in_cygrad(name, [values[i] for i in operands], arguments))
        k += 1


def run_program(p, depth):
    """[loss, gradients] of a random program, None if it was refused."""
    rng = np.random.default_rng(p.seed)
    variables = [cg.tensor(a).attach_grad(r) for a, r in zip(p.variables, p.grad_reqs, strict=True)]
    values = [*variables, *map(cg.tensor, p.constants)]
    try:
        with cg.record():
            run_steps(p, values, 0, len(p.steps), rng, depth)
            last, loss = values[-4:], 0.0
            del values[:]                           # (only what checkpoint() has kept is alive)
            for v in last: loss = loss + (v * v).sum()
            del last, v
        if not loss.requires_grad: return [float(loss)]
        if p.kind == "create_graph":
            found = cg.autograd.grad(loss, variables, create_graph=True, allow_unused=True)
            with cg.record():
                for g in found:
                    if g is not None: loss = loss + (g * g).sum()
            loss.backward(create_graph=p.seed % 2 == 0)
        else: loss.backward(retain_graph=p.seed % 2 == 0)
        return [float(loss), *(x.grad.numpy().copy() for x in variables if x.fresh_grad)]
    except (cg.InplaceError, ValueError): return None


def test_random_programs():
    """Either both have the same bits, or both are refused; one that overwrites what an earlier checkpoint() has read is
    refused alone."""
    compared = alone = 0
    before = executed_recipes()
    for seed in range(900):
        p = programs.Program(seed)
        plain, found = run_program(p, 0), run_program(p, 3)
        if plain is None: assert found is None, p
        elif found is None:
            assert p.kind == "inplace", p
            alone += 1
        else:
            equal(plain, found)
            compared += 1
        gc.collect() if seed % 100 == 0 else None
        assert cg.memory.stats()["live_bytes"] == 0, p
    assert compared > 600 and alone < 12 and executed_recipes() - before > 2000
