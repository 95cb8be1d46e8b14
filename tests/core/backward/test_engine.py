"""The backward pass: depth, width, what is live when, what may be overwritten, every wrong gradient that was found."""

import subprocess
import sys
import threading

import numpy as np
import pytest
from programs import Program, forward, in_cygrad

import cygrad as cg

MIB = 1 << 20
N = MIB // 4                                        # float32 elements of 1 MiB


def in_a_small_stack(body):
    """Run `body` in a thread with a stack of 256 KiB, in a process of its own."""
    code = f"""
import gc, threading, numpy as np, cygrad as cg
gc.disable()
failed = []
def body():
    try:
{body}
    except BaseException as e:
        failed.append(e)
threading.stack_size(262144)
t = threading.Thread(target=body); t.start(); t.join()
assert not failed, failed[0]
stats = cg.memory.stats()
assert stats["live_bytes"] == stats["live_buffers"] == 0, stats
print("fine")
"""
    out = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, timeout=100)
    assert out.returncode == 0 and out.stdout == "fine\n", out.stderr[-2000:] or out.returncode


# ---- depth and width -------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("step, slope", [("y = y + 1.0", 1.0), ("y = cg.neg(y)", 1.0), ("y = y * one", 1.0)])
def test_a_million_operations_forward_backward_free(step, slope):
    in_a_small_stack(f"""
        x, one = cg.tensor([1.0, 2.0]).attach_grad(), cg.ones(2)
        y = x
        with cg.record():
            for _ in range(1_000_000): {step}
        y.backward()
        assert x.grad.tolist() == [{slope}, {slope}], x.grad
        del y
""")


def test_a_million_nodes_that_are_dropped():
    in_a_small_stack("""
        x = cg.tensor([1.0]).attach_grad()
        with cg.record() as tape:
            y = x
            for _ in range(1_000_000): y = cg.tanh(y)
        assert tape.nodes == 1_000_000
        del y
        assert tape.nodes == 0
""")


def test_deep_second_derivatives():
    in_a_small_stack("""
        x = cg.tensor([1.0], requires_grad=True)
        with cg.record():
            y = x
            for _ in range(20_000): y = y * 1.0
            y = y * y
        y.backward(create_graph=True)
        x.grad.backward()
        assert x.grad.item() == 4.0, x.grad        # 2 + 2: requires_grad adds
        del y
""")


def test_a_failed_pass_over_a_deep_graph():
    in_a_small_stack("""
        from cygrad.core.store import buffer as core
        x = cg.tensor([0.0]).attach_grad()
        with cg.record():
            y = x
            for _ in range(200_000): y = y * y
        held = y
        core.set_failure(2, True)
        try: y.backward()
        except MemoryError: pass
        else: raise AssertionError("no allocation in backward")
        finally: core.set_failure(0, False)
        del y, held
""")


def test_one_variable_used_100_000_times():
    x = cg.tensor([1.0, -1.0]).attach_grad()
    with cg.record():
        total = x
        for _ in range(99_999):
            total = total + x
    total.backward()
    assert x.grad.tolist() == [100_000.0, 100_000.0]


def test_a_sum_over_1_000_branches():
    x = cg.tensor(np.linspace(0, 1, 7)).attach_grad()
    with cg.record():
        h = cg.exp(x)
        branches = [h * float(k) for k in range(1000)]
        while len(branches) > 1:
            pairs = zip(branches[::2], branches[1::2], strict=False)
            branches = [a + b for a, b in pairs] + branches[len(branches) & ~1:]
    loss = branches.pop()
    loss.backward()
    np.testing.assert_allclose(x.grad.numpy(), 499500 * np.exp(np.linspace(0, 1, 7)), rtol=1e-12)


# ---- what is live when: exact bytes ----------------------------------------------------------------------------------

def peak_of(f):
    """Bytes at the peak of f() beyond what was live before."""
    before = cg.memory.stats()["live_bytes"]
    with cg.memory.track() as t:
        f()
    return t.peak_bytes - before


def test_a_chain_of_exp_runs_back_in_its_own_outputs():
    x = cg.zeros(N).attach_grad()

    def step():
        with cg.record():
            h = x
            for _ in range(4):
                h = cg.exp(h * 0.5)                 # h * 0.5 saves a number, exp its output: 1 MiB per iteration
            loss = h.sum()
        del h
        assert cg.memory.stats()["by_category"]["saved"] == 4 * MIB
        loss.backward()

    # forward, iteration 4: three outputs, the product and its exp. Loss and head have 4 bytes each and are live when
    # the last exp writes its gradient over its output. The others overwrite outputs and gradients too
    assert peak_of(step) == 5 * MIB
    assert x.grad[0].item() > 0


def test_gradients_take_over_the_blocks_of_what_was_kept():
    x = cg.zeros(N).attach_grad()

    def step():
        with cg.record():
            h = cg.tanh(x)
            for _ in range(5):
                h = cg.tanh(h)
            loss = h.sum()
        del h
        cg.memory.reset_peak()
        loss.backward()

    assert peak_of(step) == 6 * MIB + 8             # six outputs, loss and head: backward adds 4 bytes


def test_a_number_and_a_strided_gradient():
    x = cg.zeros(N).attach_grad()

    def step():
        with cg.record():
            loss = (cg.tanh(x) * 2.0).sum()
        loss.backward()

    # backward of * 2: tanh's output is saved, the gradient of the sum is a view of 4 bytes, the result is new
    assert peak_of(step) == 2 * MIB + 8


def test_both_operands():
    x, y = cg.ones(N).attach_grad(), cg.ones(N).attach_grad()

    def step():
        with cg.record():
            loss = (cg.exp(x) * cg.tanh(y)).sum()
        loss.backward()

    # backward of the product: exp and tanh save its operands too, so both gradients are new
    assert peak_of(step) == 4 * MIB + 8

    def alone():
        with cg.record():
            loss = ((x * 2.0) * (y * 2.0)).sum()
        loss.backward()

    # nothing else holds the operands: each gradient overwrites the operand that it reads, so the peak is forward's,
    # two operands, their product and the loss
    assert peak_of(alone) == 3 * MIB + 4


def test_a_step_of_an_mlp():
    n, sizes = 256, (128, 256, 16)
    w1, w2 = (cg.ones((b, a)).attach_grad() for a, b in zip(sizes, sizes[1:], strict=False))
    b1, b2 = (cg.zeros(b).attach_grad() for b in sizes[1:])
    x, labels = cg.ones((n, sizes[0])), cg.zeros(n, "int64")

    def step():
        with cg.record():
            loss = cg.cross_entropy(cg.linear(cg.relu(cg.linear(x, w1, b1)), w2, b2), labels)
        loss.backward()

    step()
    hidden, logits = 4 * n * sizes[1], 4 * n * sizes[2]
    # backward of the second linear: relu's output (still saved by relu), its gradient (new), the gradient of the logits
    # (in the logits' own memory), the loss; weight gradients go directly into .grad
    assert peak_of(step) == 2 * hidden + logits + 4


def test_a_kept_gradient_costs_its_bytes_and_no_more():
    x = cg.zeros(N).attach_grad()
    with cg.record():
        h = cg.exp(x)
        loss = cg.exp(h).sum()
    before = cg.memory.stats()["live_bytes"]
    g = cg.autograd.grad(loss, h, retain_graph=True)
    assert cg.memory.stats()["live_bytes"] == before + MIB
    loss.backward()
    assert g.tolist() == [pytest.approx(np.e)] * N if N < 10 else g[-1].item() == pytest.approx(np.e)


# ---- retain_graph ----------------------------------------------------------------------------------------------------

def test_retain_graph_keeps_all_and_gives_the_same_again():
    compared = 0
    for seed in range(60):
        program = Program(seed)
        if program.kind == "inplace":
            continue
        variables = [cg.tensor(a).attach_grad() for a in program.variables]
        with cg.record() as tape:
            loss = forward(program, [*variables, *map(cg.tensor, program.constants)], in_cygrad)
        if not loss.requires_grad:
            continue
        compared += 1
        before, nodes = tape.saved_bytes, tape.nodes
        loss.backward(retain_graph=True)
        assert (tape.saved_bytes, tape.nodes) == (before, nodes), program
        first = [x.grad.numpy().copy() for x in variables]
        loss.backward()
        assert tape.saved_bytes == 0, program
        for x, g in zip(variables, first, strict=True):
            assert x.grad.numpy().tobytes() == g.tobytes(), program
        with pytest.raises(cg.GraphFreedError, match="retain_graph=True"):
            loss.backward()
    assert compared > 20


# ---- donation never overwrites memory that something else holds ------------------------------------------------------

@pytest.mark.parametrize("part", range(4))
def test_what_is_held_does_not_change(part):
    """Random intermediates, NumPy views of others, slices, heads and returned gradients do not change in backward,
    while memory that nothing else holds is overwritten."""
    compared = 0
    for seed in range(part, 240, 4):
        program = Program(seed)
        if program.kind == "inplace":
            continue
        rng = np.random.default_rng(seed)
        variables = [cg.tensor(a).attach_grad() for a in program.variables]
        values = [*variables, *map(cg.tensor, program.constants)]
        with cg.record():
            loss = forward(program, values, in_cygrad)
        if not loss.requires_grad:
            continue
        compared += 1
        held = []
        for v in values:
            way = rng.integers(5)
            if way == 0: held.append(v)
            elif way == 1: held.append(v.detach().numpy())
            elif way == 2 and v.ndim: held.append(v.detach()[:1])
            elif way == 3 and v.ndim: held.append(v.detach().numpy()[::-1][:2])
        read = [(v.detach().numpy() if isinstance(v, cg.Tensor) else v).tobytes() for v in held]
        del values, v
        head = cg.tensor(1.5, dtype="float64")
        gradients = cg.autograd.grad(loss, variables, head, retain_graph=True, allow_unused=True)
        got = [g is not None and g.numpy().tobytes() for g in gradients]
        loss.backward(head)
        assert [(v.detach().numpy() if isinstance(v, cg.Tensor) else v).tobytes() for v in held] == read, program
        assert [g is not None and g.numpy().tobytes() for g in gradients] == got, program
        assert head.item() == 1.5
        for x, g in zip(variables, gradients, strict=True):
            if g is not None:
                scale = max(1, np.abs(g.numpy()).max(initial=0))
                np.testing.assert_allclose(x.grad.numpy(), g.numpy(), 1e-12, 1e-12 * scale)
    assert compared > 20


def test_a_gradient_view_that_is_held():
    x = cg.ones(4).attach_grad()
    with cg.record():
        h = cg.exp(x)
        y = cg.exp(h * 1.0)
    g = cg.autograd.grad(y, h, retain_graph=True)
    window = g.numpy()[1:3]
    del g
    kept = window.copy()
    y.backward()
    assert (window == kept).all()


# ---- gradients that were once wrong ----------------------------------------------------------------------------------

@pytest.mark.parametrize("request_", ["write", "add"])
@pytest.mark.parametrize("given", [True, False])
def test_one_variable_as_both_operands_of_a_product(request_, given):
    a = np.array([[1.0, 2.0], [3.0, 4.0]])
    x = cg.tensor(a).attach_grad(request_)
    if not given:
        x.grad = None
    ones = np.ones((2, 2))
    for f, expected in ((lambda: x @ x, ones @ a.T + a.T @ ones), (lambda: cg.linear(x, x), ones @ a + ones.T @ a)):
        x.zero_grad()
        with cg.record():
            y = f().sum()
        y.backward()
        np.testing.assert_allclose(x.grad.numpy(), expected)


def test_grad_through_two_ways_of_different_length():
    x = cg.tensor([0.7], dtype="float64", requires_grad=True)
    with cg.record():
        e = cg.exp(x)
        y = x * e
    assert cg.autograd.grad(y, x, retain_graph=True).item() == pytest.approx(np.exp(0.7) * 1.7)
    assert cg.autograd.grad(y, [e, x], retain_graph=True)[0].item() == pytest.approx(0.7)
    cg.backward(y, inputs=x)
    assert x.grad.item() == pytest.approx(np.exp(0.7) * 1.7)


def test_inputs_of_random_graphs_equal_the_whole_pass():
    compared = 0
    for seed in range(150):
        program = Program(seed)
        if program.kind == "inplace":
            continue
        variables = [cg.tensor(a).attach_grad() for a in program.variables]
        with cg.record():
            loss = forward(program, [*variables, *map(cg.tensor, program.constants)], in_cygrad)
        if not loss.requires_grad:
            continue
        compared += 1
        loss.backward(retain_graph=True)
        for x in variables:
            g = cg.autograd.grad(loss, x, retain_graph=True, allow_unused=True)
            assert (g is not None) == x.fresh_grad, program
            if g is not None:
                scale = max(1, np.abs(g.numpy()).max(initial=0))
                np.testing.assert_allclose(x.grad.numpy(), g.numpy(), 1e-12, 1e-12 * scale, err_msg=repr(program))
    assert compared > 50


def test_a_gradient_that_the_graph_keeps_is_not_overwritten_silently():
    x = cg.tensor([2.0]).attach_grad()
    x.grad[...] = 10.0
    with cg.record():
        y = x * x.grad + x * 3.0                    # 13 is right, but backward writes the 3 into x.grad first
    with pytest.raises(cg.InplaceError, match=r"mul saved .* at version 1, .* is at version 2.*use a copy\(\) of it"):
        y.backward()
    x = cg.tensor([[2.0]]).attach_grad()
    x.grad[...] = 10.0
    with cg.record():
        y = x @ x.grad                              # read before it is written, so it is correct
    y.backward()
    assert x.grad.item() == 10.0


def test_second_derivative_of_a_mean():
    x = cg.tensor([1.0, 2.0, 3.0], requires_grad=True)
    with cg.record():
        y = (x * x * x).mean()
    g = cg.autograd.grad(y, x, create_graph=True)
    g.backward(cg.ones(3))
    np.testing.assert_allclose(x.grad.numpy(), [2.0, 4.0, 6.0], rtol=1e-6)


def test_second_derivative_of_linear_over_nothing():
    x, w = cg.ones((2, 0, 3)).attach_grad(), cg.ones((0, 3)).attach_grad()
    with cg.record():
        y = cg.linear(x, w).sum()
    gx, gw = cg.autograd.grad(y, [x, w], create_graph=True)
    assert gx.shape == (2, 0, 3) and gw.shape == (0, 3)


def test_writes_to_repeated_elements_are_refused():
    x = cg.zeros(3)
    wide = cg.broadcast_to(x, (2, 3))
    for write in (lambda: wide.__iadd__(1.0), lambda: wide.__setitem__(0, 1.0)):
        with pytest.raises(ValueError, match=r"repeats its elements \(broadcast in dimension 0\).*copy\(\) it first"):
            write()
    assert x.tolist() == [0, 0, 0]


@pytest.mark.parametrize("n", [6, 5000])
def test_two_tensors_over_one_array(n):
    """Operands that overlap the target are read before they are written, as in NumPy."""
    a, b = np.arange(float(n)), np.arange(float(n))
    x, y = cg.asarray(a[1:]), cg.asarray(a[:-1])
    x += y
    b[1:] += b[:-1]
    assert (a == b).all()
    x, y = cg.asarray(a), cg.asarray(a[::-1])
    x *= y
    b *= b[::-1]
    assert (a == b).all()


def test_memory_that_must_not_be_written_is_no_gradient_and_no_parameter():
    a = np.zeros(3, "f4")
    a.flags.writeable = False
    x = cg.ones(3)
    with pytest.raises(ValueError, match="read-only"):
        cg.mark_variables(x, cg.asarray(a))
    x.attach_grad()
    with pytest.raises(ValueError, match="read-only"):
        x.grad = cg.asarray(a)
    with pytest.raises(ValueError, match=r"repeats its elements \(stride 0 in dimension 0\)"):
        x.grad = cg.broadcast_to(cg.zeros(()), (3,))
    solver = cg.optim.Sgd()
    with pytest.raises(ValueError, match="read-only"):
        solver.set_parameters([cg.asarray(a).requires_grad_()])
    assert a.tolist() == [0, 0, 0] and x.grad.tolist() == [0, 0, 0]


# ---- re-entrancy -----------------------------------------------------------------------------------------------------

def test_passes_inside_a_pass():
    """A listener to memory events runs Python code during a pass. It may run passes over other graphs that share
    variables, and nodes that the first pass does not need."""
    x, w, v = (cg.tensor([k]).attach_grad() for k in (2.0, 3.0, 4.0))
    with cg.record():
        h = x * 2.0
        first, second, third = (h * w) * w, (h * v) * v, (x * w) * v
    inner = []

    def listener(event):
        if not inner:
            inner.append(None)
            inner[0] = cg.autograd.grad(second, v, retain_graph=True).item(), cg.autograd.grad(third, x).item()

    head = cg.ones(1)
    with cg.memory.events(listener):
        g = cg.autograd.grad(first, w, head)
    assert g.item() == 24.0 and inner == [(32.0, 12.0)]


def test_a_pass_inside_a_pass_over_the_same_graph_raises():
    x = cg.tensor([2.0]).attach_grad()
    with cg.record():
        y = cg.exp(cg.exp(x * x))
    errors = []

    def listener(event):
        if not errors:
            errors.append(None)
            try:
                y.backward()
            except RuntimeError as e:
                errors[0] = str(e)

    head = cg.ones(1)                               # then the pass causes the first event
    with cg.memory.events(listener):
        y.backward(head)
    assert "in another thread or in one of its own hooks" in errors[0]


def test_python_that_runs_when_external_memory_ends_sees_a_sound_node():
    """When a node releases a borrowed array, its deallocation runs Python code. That code sees an empty slot."""
    seen, looking = [], []

    class Watched(np.ndarray):
        def __del__(self):
            if looking:
                seen.append((looking[0].saved_bytes, looking[1].saved_bytes))

    x = cg.ones(64, dtype="float64").attach_grad()
    with cg.record() as tape:
        y = x * cg.asarray(Watched(64))
        z = cg.exp(y)
    looking += [y.grad_fn, tape]
    before = tape.saved_bytes
    del y
    z.backward()
    looking.clear()
    assert before == 512 and len(seen) == 1 and seen[0][0] == 0 and seen[0][1] <= before


def test_a_scope_that_dies_open_leaves_no_dangling_tape():
    x = cg.ones(3).attach_grad()
    try:
        scope = cg.record()
        tape = scope.__enter__()
        del scope
        y = x * x
        assert tape.nodes == 1
        del tape
        y = y * x                                   # still recorded on the thread's tape
    finally:
        cg.set_recording(False), cg.set_training(False)
    y.backward()
    assert x.grad.tolist() == [3, 3, 3]
    with cg.record() as tape:
        y = x * x
    assert tape.nodes == 1


def test_a_scope_left_by_another_thread():
    def body():
        with cg.record():
            yield

    x = cg.ones(3).attach_grad()
    g = body()
    next(g)
    errors = []

    def close():
        try:
            g.close()                               # noqa: F821 (deleted below, when the thread has ended)
        except RuntimeError as e:
            errors.append(str(e))

    other = threading.Thread(target=close)
    other.start(), other.join()
    del g                                           # and with it the scope, which is still open here
    assert errors == ["this thread exits a scope that it has not entered"]
    try:
        assert cg.is_recording()                    # does not change this thread's flags
        y = x * x
    finally:
        cg.set_recording(False), cg.set_training(False)
    y.backward()
    assert x.grad.tolist() == [2, 2, 2]


# ---- nothing for the garbage collector -------------------------------------------------------------------------------

def test_create_graph_leaves_no_cycle():
    import gc
    gc.collect(), gc.disable()
    try:
        for attach in (lambda x: x.attach_grad(), lambda x: x.requires_grad_(), lambda x: x.attach_grad("add")):
            x = attach(cg.tensor([1.0, 2.0]))
            with cg.record():
                y = (x * x * x).sum()
            y.backward(create_graph=True)
            with cg.record():
                z = (x.grad * x.grad).sum()
            z.backward(create_graph=True)
            del x, y, z
            assert cg.memory.stats()["live_buffers"] == 0
    finally:
        gc.enable()


def test_a_graph_outlives_its_variable():
    x = cg.tensor([2.0]).attach_grad()
    w = cg.tensor([5.0]).attach_grad()
    with cg.record():
        y = x * w
    del x
    y.backward()
    assert w.grad.item() == 2.0
