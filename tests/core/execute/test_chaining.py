"""Elementwise steps in a row become one step, which runs strip by strip: the bits of eager code in less memory."""

import random

import numpy as np
import pytest

import cygrad as cg
from cygrad.core.execute.program import Program
from cygrad.graph import Net, Workspace

from rows import both_dtypes, same_bits

N = 40_001                  # elements: two threads share them, and the last strip is shorter
KIB = 1 << 10


def compared(f, *xs):
    """The names of the steps of f and the bytes of its arena, after two runs with the bits of eager code."""
    program = Program(f, *xs)
    for _ in range(2):
        found, wanted = program.run(*xs), f(*xs)
        if not isinstance(found, tuple): found, wanted = (found,), (wanted,)
        for a, b in zip(found, wanted, strict=True): same_bits(np.asarray(a), np.asarray(b))
    return [step.name for step in program.steps], program.arena_bytes


def numbers(*shape, dtype="float32", seed=0):
    return cg.tensor(np.random.default_rng(seed).uniform(-2, 2, shape).astype(dtype))


def rounded(n): return (n + 63) // 64 * 64


# ---- what becomes a chain --------------------------------------------------------------------------------------------

@both_dtypes
def test_a_chain_has_only_its_result(dtype):
    x, y = numbers(N, dtype=dtype), numbers(N, dtype=dtype, seed=1)

    def f(x, y):
        z = cg.tanh(x * y + 1) - x
        return cg.exp(z * z) * 0.5

    names, nbytes = compared(f, x, y)
    assert names == ["fused mul, add, tanh, ... (7)"] and nbytes == rounded(x.nbytes)


def test_forward_and_backward_are_chains():
    x = numbers(N).attach_grad()

    def step(y):
        with cg.record(): z = cg.tanh(x * y) * y
        z.backward()
        return x.grad * 1

    names, nbytes = compared(step, numbers(N, seed=1))
    assert [name for name in names if "zero" not in name and name != ".grad"] == [
        "fused mul, tanh", "head gradient (backward)", "fused mul, tanh, mul (backward)", "mul"]
    assert nbytes == rounded(4 * N)                 # (the head gradient, and then the result; tanh(x y) is in .grad)


def test_what_other_steps_read_has_memory():
    x = numbers(300, 100)

    def f(x):
        y = cg.exp(x)
        z = y * 2 + x
        return y.sum(0), z.T @ z

    names, nbytes = compared(f, x)
    assert names[0] == "fused exp, mul, add" and nbytes >= 2 * x.nbytes


def test_rows_numbers_and_transposed_operands():
    x, row, column = numbers(200, 301), numbers(301, seed=1), numbers(200, 1, seed=2)
    other = numbers(301, 200, seed=3)
    names, nbytes = compared(lambda x: cg.maximum(x * row + column, other.T) * 3 - row[5], x)
    assert names == ["fused mul, add, maximum, ... (5)"] and nbytes == rounded(x.nbytes)


def test_reshaped_operands_and_bools():
    x = numbers(200, 300)

    def f(x):
        y = (x * 2).reshape(300, 200) + 1
        return cg.where(y > 0, y, y * 0.25).reshape(-1)

    names, nbytes = compared(f, x)
    assert names == ["fused mul, add, greater, ... (5)"] and nbytes == rounded(x.nbytes)


def test_codes_are_written_and_read_by_strips():
    """Backward of abs, maximum and clip reads codes; that of relu signs."""
    x, w = numbers(N).attach_grad(), numbers(N, seed=1)

    def step(y):
        with cg.record(): z = cg.relu(cg.clip(cg.abs(x * y), 0.1, 2.0) - cg.maximum(x, w)) * y
        z.backward()
        return z * 1, x.grad * 1

    names, _ = compared(step, numbers(N, seed=2))
    assert sum(name.startswith("fused") for name in names) >= 2


def test_large_results_are_streamed():
    n = (1 << 22) + 13                              # elements: more than 16 MiB
    x = numbers(n)
    def f(x):
        y = cg.sqrt(cg.abs(x)) + x
        return y, y * 2
    names, nbytes = compared(f, x)
    assert names == ["fused abs, sqrt, add, ... (4)"] and nbytes == 2 * rounded(4 * n)


def test_long_chains_are_several_steps():
    def f(x):
        for _ in range(50): x = x * 1.01 + 0.5
        return x

    names, nbytes = compared(f, numbers(N))
    assert len(names) == 100 // 32 + 1 and nbytes == rounded(4 * N)


# ---- what does not ---------------------------------------------------------------------------------------------------

def test_steps_that_share_nothing_stay_apart():
    x, y = numbers(N), numbers(N, seed=1)
    assert compared(lambda x, y: (cg.exp(x), cg.sin(y)), x, y)[0] == ["exp", "sin"]


def test_elements_in_another_order():
    x = numbers(200, 200)

    def f(x):
        y = x * 2
        return cg.exp(y.T) + y

    assert compared(f, x)[0] == ["mul", "fused exp, add"]
    assert compared(lambda x: (lambda y: y[1:] * y[:-1])(x * 2), x)[0] == ["mul", "mul"]


def test_writes_in_place():
    """Each write is seen by what comes after it, and raises the version."""
    x = numbers(N)

    def function(total):
        def f(x):
            before = total * 2
            total.__imul__(0.5)
            total.__iadd__(x)
            return before + total
        return f

    ours, theirs = numbers(N, seed=1), numbers(N, seed=1)
    program, f = Program(function(ours), x), function(theirs)
    assert [step.name for step in program.steps] == ["fused mul, mul, add, ... (4)"]
    for _ in range(3):
        same_bits(program.run(x).numpy(), f(x).numpy())
        same_bits(ours.numpy(), theirs.numpy())
        assert ours.version == theirs.version


@pytest.mark.parametrize("write", [
    lambda t, x: t[1:].__iadd__(t[:-1] * 2), lambda t, x: t[:-1].copy_(t[1:]), lambda t, x: t.__iadd__(t.flip(0)),
    lambda t, x: t.__iadd__(t[7]), lambda t, x: (t * x, t[3:].__imul__(2), t.__iadd__(x)),
], ids=["shifted", "back", "reversed", "one element", "part"])
@pytest.mark.parametrize("shared", [False, True])
def test_overlapping_memory(write, shared):
    """Strips must not see what another strip has written: the same values as whole steps, one after the other.
    `shared`: the memory is that of a NumPy array, which a second tensor has too."""
    def function(array):
        t = cg.asarray(array) if shared else cg.tensor(array)
        twin = cg.asarray(array[::-1]) if shared else t

        def f(x):
            y = t * x
            write(t, x)
            twin.__imul__(1.5)
            return y + t, t * twin
        return f

    array = np.random.default_rng(0).uniform(1, 2, 5_000).astype("f4")
    copies, x = (array.copy(), array.copy()), numbers(5_000)
    program, f = Program(function(copies[0]), x), function(copies[1])
    for _ in range(2):
        for a, b in zip(program.run(x), f(x), strict=True): same_bits(a.numpy(), b.numpy())
        if shared: same_bits(*copies)


# ---- anything --------------------------------------------------------------------------------------------------------

UNARY = [cg.tanh, cg.exp, cg.sigmoid, cg.relu, cg.square, cg.abs, cg.neg, cg.gelu, cg.floor,
         lambda x: cg.clip(x, -1, 1), lambda x: x * 0.5, lambda x: 1 - x, lambda x: cg.leaky_relu(x, 0.1),
         lambda x: x ** 2]
BINARY = [cg.add, cg.sub, cg.mul, cg.maximum, cg.minimum, lambda x, y: cg.where(x > y, x, y * 0.5)]


def random_step(seed, shape, dtype):
    """A step of operations at random on a variable and an argument, with views, writes and a backward pass."""
    chance = random.Random(seed)
    choices = [(chance.random(), chance.random(), chance.random()) for _ in range(chance.randint(3, 14))]
    w = numbers(*shape, dtype=dtype, seed=seed).attach_grad(chance.choice(["write", "add"]))
    row, kept = numbers(shape[-1], dtype=dtype, seed=seed + 1), numbers(*shape, dtype=dtype, seed=seed + 2)

    def step(x):
        values = [x, w, row, w * x]
        with cg.record():
            for kind, a, b in choices:
                y, z = values[int(a * len(values))], values[int(b * len(values))]
                if kind < 0.35: made = UNARY[int(b * len(UNARY))](y)
                elif kind < 0.7: made = BINARY[int(kind * 1e4) % len(BINARY)](y, z)
                elif kind < 0.75: made = y.T.T
                elif kind < 0.8: made = y.reshape(-1).reshape(y.shape)
                elif kind < 0.85: made = cg.flip(y, -1)
                elif kind < 0.9: made = y.detach() * z.detach()
                else:
                    made = y * 1
                    made += z if z.ndim <= y.ndim else 2
                values.append(made)
            loss = sum(((y * 0.1).sum() for y in values[4:]), (w * 0.1).sum())
        if b > 0.5:
            kept.__imul__(0.5)
            kept.__iadd__(values[-1].detach())
        loss.backward()
        return [y.detach() * 1 if k % 2 else y.detach() for k, y in enumerate(values[4:])]

    return step, w, kept


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("seed", range(40))
def test_random_steps(seed, threads):
    shape = [(3, 5), (70, 90), (257, 301)][seed % 3]
    dtype = "float64" if seed % 5 == 0 else "float32"
    x, before = numbers(*shape, dtype=dtype, seed=seed + 3), cg.get_num_threads()
    cg.set_num_threads(threads)
    try:
        (ours, *state), (theirs, *wanted) = random_step(seed, shape, dtype), random_step(seed, shape, dtype)
        program = Program(ours, x)
        with np.errstate(all="ignore"):
            for _ in range(2):
                for a, b in zip(program.run(x), theirs(x), strict=True): same_bits(a.numpy(), b.numpy())
                for a, b in zip((*state, state[0].grad), (*wanted, wanted[0].grad), strict=True):
                    same_bits(a.detach().numpy(), b.detach().numpy())
    finally: cg.set_num_threads(before)


def test_a_budget_that_only_chains_meet():
    """Chains need less than steps that run again do, and the error of a smaller budget says so."""
    def f(x, y):
        z = cg.exp(x)
        return cg.tanh(z * y + z) * cg.sin(z) - x, x.sum()

    x, y = numbers(N), numbers(N, seed=1)
    whole = Program(f, x, y)
    assert [step.name for step in whole.steps] == ["fused exp, mul, add, ... (7)", "sum"]
    assert Program(f, x, y, _limit=whole.arena_bytes).recomputed == (0, 0)
    with pytest.raises(cg.MemoryLimitError, match=f"which needs {whole.arena_bytes:,}"):
        Program(f, x, y, _limit=whole.arena_bytes - 1)


# ---- nets ------------------------------------------------------------------------------------------------------------

def chain_net():
    net, h = Net("chain"), "x"
    for kind in ("tanh", "square", "exp", "neg"): h = net.add_operator(kind, h, kind)
    return net


def test_a_plan_counts_what_chains_save():
    net, shape = chain_net(), {"x": (1000,)}
    net.share_blobs()
    plan = net.plan(shape)
    assert plan.steps == ("fused tanh, square, exp, ... (4)",) and plan.kinds == ("forward",)
    assert plan.peak_bytes == plan.bound_bytes == 4032 and [row.blob for row in plan.rows] == ["neg"]
    net.add_gradient_operators(["neg"])
    plan = net.plan(shape)
    assert [k for s, k in zip(plan.steps, plan.kinds, strict=True) if s.startswith("fused")] == ["forward", "gradient"]
    assert max(plan.live()) == plan.bound_bytes


def test_blobs_that_are_kept_have_memory():
    x, net, workspace = numbers(1000), chain_net(), Workspace()
    net.share_blobs()
    workspace.feed("x", x)
    workspace.run(net, keep=["square", "neg"])
    same_bits(workspace.fetch("square").numpy(), cg.square(cg.tanh(x)).numpy())
    same_bits(workspace.fetch("neg").numpy(), cg.neg(cg.exp(cg.square(cg.tanh(x)))).numpy())


def test_a_chain_ends_where_a_program_can_stop():
    x, net, workspace = numbers(1000), chain_net(), Workspace()
    net.add_gradient_operators(["neg"])
    net.share_blobs()
    workspace.feed("x", x)
    workspace.forward(net)
    same_bits(workspace.fetch("neg").numpy(), cg.neg(cg.exp(cg.square(cg.tanh(x)))).numpy())
    for _ in range(2):
        workspace.backward(net)
        y = x.copy().attach_grad()
        with cg.record(): z = cg.neg(cg.exp(cg.square(cg.tanh(y))))
        z.backward()
        same_bits(workspace.fetch(net.gradients["x"]).numpy(), y.grad.numpy())


@pytest.mark.parametrize("share", [0.9, 0.7, 0.5])
def test_under_a_budget(share):
    """Steps run again where what chains save is not enough."""
    x = numbers(N).attach_grad()

    def step(y):
        with cg.record():
            h = x
            for _ in range(6): h = cg.cumsum(cg.tanh(h * y), 0) * 1e-4
        h.backward()
        return x.grad * 1

    y = numbers(N, seed=1)
    whole = Program(step, y)
    wanted = step(y).numpy()
    program = Program(step, y, _limit=int(share * whole.arena_bytes))
    assert program.arena_bytes <= share * whole.arena_bytes and program.recomputed[0] > 0
    same_bits(program.run(y).numpy(), wanted)


@pytest.mark.parametrize("shift", [0, 8])
def test_a_gradient_over_memory_that_a_chain_writes(shift):
    """Both are in one buffer, and the gradient begins behind what is written."""
    def made():
        base = cg.tensor((np.arange(N + 8) % 17).astype("float32"))
        w, start = cg.ones(N).attach_grad("add"), base[:N]
        w.grad = base[shift:N + shift]

        def f(x):
            with cg.record(): z = w * x
            z.backward()
            start.__iadd__(x)
            return start * x + w.grad

        return f, base

    x, (f, base), (g, other) = numbers(N), made(), made()
    program = Program(f, x)
    for _ in range(2):
        same_bits(program.run(x).numpy(), g(x).numpy())
        same_bits(base.numpy(), other.numpy())
