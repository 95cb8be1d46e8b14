"""A program repeats what it can, and refuses the rest by name. test_table.py compares its bits with eager code."""

import copy
import re
import threading
import time

import numpy as np
import pytest

import cygrad as cg
from cygrad.core.execute.program import Program
from cygrad.ops.shapes.slices import put

from rows import every_gradient, floating_places, same_bits, tensors


# ---- writes ----------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("write", [
    lambda x: x.__iadd__(1), lambda x: x.__imul__(x), lambda x: x.__setitem__(0, 1.0), lambda x: x.fill_(2),
    lambda x: x.copy_(x * 2), lambda x: x.__setitem__([0, 1], 1.0), lambda x: x[1:].__isub__(1),
    lambda x: x[1:].__iadd__(x[:-1]),
], ids=["add", "square", "item", "fill", "copy", "index", "view", "overlap"])
@pytest.mark.parametrize("where", ["result", "argument", "outside"])
def test_a_write_in_place(write, where):
    """A write over a result, over the argument or over a tensor outside, which then changes at each run."""
    def function(outside):
        def f(x):
            before = x * 3
            y = x * 1 if where == "result" else x if where == "argument" else outside
            write(y)
            return y * 2, before
        return f

    ours, theirs = cg.tensor([1.0, 2.0, 3.0]), cg.tensor([1.0, 2.0, 3.0])
    program, f = Program(function(ours), cg.zeros(3)), function(theirs)
    assert ours.tolist() == [1, 2, 3] and ours.version == 0
    for values in [4.0, 0.5, -1.0], [2.0, 3.0, 0.25]:
        x, eager = cg.tensor(values), cg.tensor(values)
        for a, b in zip(program.run(x), f(eager), strict=True): same_bits(a.numpy(), b.numpy())
        for a, b in ((x, eager), (ours, theirs)):
            same_bits(a.numpy(), b.numpy())
            assert a.version == b.version


def test_arguments_that_cannot_be_written():
    program = Program(lambda x, y: (x.__iadd__(y), y * 2), ((2,), "float32"), ((2,), "float32"))
    x = cg.ones(2)
    for arguments, error, text in [
        (([1.0, 2.0], x), TypeError, "writes to argument 0, which must be a tensor, got"),
        ((cg.ones((2, 2)).T[0], x), ValueError, "argument 0, which must be contiguous"),
        ((cg.ones(1).broadcast_to(2), x), ValueError, "repeats its elements"),
        ((x, x), ValueError, "arguments 0 and 1 share memory"),
        ((x,), TypeError, "takes 2 tensors, got 1"),
        ((cg.ones(3), x), ValueError, r"argument 0 has shape \(3,\); the program takes \(2,\)"),
        ((x, cg.ones(2, dtype="float64")), TypeError, "argument 1 is float64; the program takes float32"),
    ]:
        with pytest.raises(error, match=text): program.run(*arguments)
        assert x.tolist() == [1, 1]
    shared = np.zeros(3, "f4")
    with pytest.raises(ValueError, match="share memory"):
        program.run(cg.asarray(shared[:2]), cg.asarray(shared[1:]))
    assert program.run(x, [1.0, 2.0])[0].tolist() == [2, 3] and x.tolist() == [2, 3]


def test_an_argument_on_memory_that_the_program_writes():
    """A program was planned for arguments apart from what it writes."""
    w, total = cg.ones(2).attach_grad(), cg.zeros(2)

    def f(x):
        with cg.record(): y = (x * w).sum()
        y.backward()
        total.copy_(x)

    program = Program(f, ((2,), "float32"))
    for x in (w.grad, total):
        with pytest.raises(ValueError, match="argument 0 shares memory with a tensor outside"): program.run(x)
    program.run(w)                                  # (only read)
    assert w.grad.tolist() == [1, 1] and total.tolist() == [1, 1]


def test_an_argument_that_is_not_contiguous():
    program = Program(lambda x: x * 2, ((2, 3), "float32"))
    assert program.run(np.arange(6, dtype="f4").reshape(3, 2).T).tolist() == [[0, 4, 8], [2, 6, 10]]
    assert program.run([[1.0, 2, 3], [4, 5, 6]]).tolist() == [[2, 4, 6], [8, 10, 12]]


def test_a_write_over_memory_made_inside():
    """Each run starts with the initial contents of zeros() and the like, even if they are read before a write."""
    def f(x):
        total, ones = cg.zeros(3), cg.ones((2, 3))
        first = total + x
        total += x
        ones[1] *= x
        total += ones[1]
        return first, total, ones

    program = Program(f, cg.tensor([1.0, 2.0, 3.0]))
    for values in [1.0, -2.0, 0.5], [4.0, 0.0, 3.0]:
        x = cg.tensor(values)
        for ours, eager in zip(program.run(x), f(x), strict=True): same_bits(ours.numpy(), eager.numpy())


def test_a_write_over_memory_that_is_shared():
    array = np.zeros(3, "f4")

    def f(x):
        y = cg.asarray(array)
        y += x
        return y * 2

    program = Program(f, cg.ones(3))
    assert array.tolist() == [0, 0, 0]
    assert program.run(cg.ones(3)).tolist() == [2, 2, 2] and array.tolist() == [1, 1, 1]
    assert program.run(cg.ones(3)).tolist() == [4, 4, 4]


# ---- threads ---------------------------------------------------------------------------------------------------------

def test_one_run_at_a_time():
    x = cg.ones(1 << 20)
    program = Program(lambda x: cg.exp(x * 2), x)
    errors, go, end = [], threading.Barrier(2), time.monotonic() + 30

    def run():
        go.wait()
        while not errors and time.monotonic() < end:
            try: program.run(x)
            except RuntimeError as e: errors.append(str(e))

    threads = [threading.Thread(target=run) for _ in range(2)]
    for t in threads: t.start()
    for t in threads: t.join()
    assert errors and set(errors) == {"run: this program is running already; wait for it, or make another"}


def test_another_thread_cannot_read_what_is_traced():
    """Neither its values, nor a saved tensor in backward."""
    x, seen = cg.ones(3), []
    w = cg.ones(3).attach_grad()

    def attempt(read, *values):
        try: read(*values)
        except RuntimeError as e: seen.append(str(e))

    def f(x):
        with cg.record(): y = (x * w).sum()
        for read in (lambda: x * 2, lambda: 2 - x, lambda: x.sum(), lambda: x.__iadd__(1), lambda: cg.concat([x, x]),
                     lambda: y.backward(), lambda: cg.tensor(x)):
            thread = threading.Thread(target=attempt, args=(read,))
            thread.start()
            thread.join()
        return y

    program = Program(f, x)
    assert len(seen) == 7 and all("has no values" in text for text in seen), seen
    assert program.run(x).item() == 3 and w.grad.tolist() == [0, 0, 0]


def test_what_a_trace_leaves_behind_has_no_values():
    left = []
    w = cg.ones(3).attach_grad()

    def f(x):
        with cg.record(): y = (w * x * 2).sum()
        left.extend([y, x * 1])

    cg.memory.plan(f, cg.ones(3))
    Program(f, cg.ones(3))
    for y in left:
        assert repr(y).startswith("tensor(no values, shape=")
        for read in (lambda: y + 1, lambda: y.numpy(), lambda: cg.exp(y), lambda: y.backward(), lambda: y.copy_(1)):
            with pytest.raises(RuntimeError): read()
    with cg.record(), pytest.raises(RuntimeError, match="no values"): (left[0] * 2).backward()
    assert w.grad.tolist() == [0, 0, 0]
    with pytest.raises(RuntimeError, match="no values"): Program(lambda: left[0] * 2)
    left.clear()


# ---- reading values --------------------------------------------------------------------------------------------------

READS = [
    lambda x: x.sum().item(), lambda x: float(x.sum()), lambda x: int(x.sum()), lambda x: bool(x.sum() > 0),
    lambda x: x.numpy(), lambda x: x.tolist(), lambda x: np.asarray(x), lambda x: memoryview(x),
    lambda x: x.__dlpack__(), lambda x: cg.tensor(x), copy.copy, copy.deepcopy, lambda x: cg.full(5, x.sum()),
    lambda x: cg.argwhere(x), lambda x: x[x > 0], lambda x: cg.random.gamma(x),
]


@pytest.mark.parametrize("read", READS)
def test_reading_values(read):
    with pytest.raises(RuntimeError, match="^capture: .* cannot be captured"):
        Program(lambda x: (read(x * 1), x * 2)[1], cg.ones(3))
    with pytest.raises(RuntimeError, match="^memory.plan: .* needs values, and a plan computes none"):
        cg.memory.plan(lambda x: read(x * 1), cg.ones(3))


@pytest.mark.parametrize("f", [
    lambda x: x.max(), lambda x: cg.min(x, axis=0), lambda x: cg.cross_entropy(x, [0, 1]), lambda x: cg.var(x),
    lambda x: cg.std(x), lambda x: cg.norm(x), lambda x: cg.prod(x), lambda x: cg.norm(x, float("inf")),
    lambda x: cg.norm(x, 3), lambda x: cg.nll(x, [0, 1]),
    lambda x: put(x, x * 2, np.array([[1, 1]]), (((0, 1, 2), (0, 1, 3)), None, 0)),
    lambda x: cg.norm(x * 1, float("inf")), lambda x: cg.norm(x * 1, 3), lambda x: cg.sort(x * 1)[:, 0],
    lambda x: cg.abs(x - 2), lambda x: cg.clip(x, 1, 4), lambda x: cg.maximum(x, 3 - x), lambda x: cg.minimum(x, 2.0),
    lambda x: cg.where(x > 2, x, -x), lambda x: cg.topk(x, 2)[0], lambda x: cg.bce_with_logits(x, cg.zeros((2, 3))),
], ids=["max", "min", "cross_entropy", "var", "std", "norm", "prod", "largest", "norm3", "nll", "put", "largest_made",
        "norm3_made", "sort", "abs", "clip", "maximum", "minimum", "where", "topk", "bce_with_logits"])
def test_a_gradient_that_reads_values(f):
    """Either it is refused by name, or the program computes it again from other inputs."""
    x = cg.tensor([[1.0, 2.0, 3.0], [4.0, 0.5, 6.0]]).attach_grad()

    def gradient():
        with cg.record():
            y = f(x).sum()
        return cg.autograd.grad(y, x, create_graph=True)

    try:
        program = Program(gradient)
    except RuntimeError as e:
        assert str(e).startswith("capture: the gradient of ") and "reads the values" in str(e)
        return
    with cg.no_grad():
        x[...] = cg.tensor([[7.0, 2.0, 1.0], [0.25, 8.0, 3.0]])
    np.testing.assert_allclose(program.run().numpy(), gradient().detach().numpy(), rtol=1e-6)


@pytest.mark.parametrize("order", [1, 2])
@every_gradient
def test_gradients_through_captured_results(row, args, kwargs, order):
    """Formulas read saved values, which are results of the same program. Every row computes the gradients of other
    inputs bit for bit, or is refused by name."""
    xs = tensors(args)
    places = floating_places(args)
    leaves = [xs[i].requires_grad_() for i in places]
    if not leaves:
        pytest.skip("no floating input")

    def gradients():
        with cg.record():
            inputs = list(xs)
            for i in places:
                inputs[i] = xs[i] * 1.0
            y = row.tested(*inputs, **kwargs)
            loss = (y * y).sum()
        for _ in range(order):
            found = cg.autograd.grad(loss, leaves, create_graph=True, allow_unused=True)
            found = tuple([g for g in found if g is not None])
            with cg.record():
                loss = sum([(g * g).sum() for g in found])
        return found

    try:
        program = Program(gradients)
    except RuntimeError as e:
        assert re.match("capture: (the gradient of .* reads the values|a result whose shape depends)", str(e))
        return
    with cg.no_grad():
        for x in leaves:
            x.copy_(np.flip(x.numpy()) * 0.875)
    for ours, eager in zip(program.run(), gradients(), strict=True):
        same_bits(ours.numpy(), eager.detach().numpy())


# ---- results ---------------------------------------------------------------------------------------------------------

def test_tensors_on_the_memory_of_a_captured_result():
    """detach(), a view, a result that shares memory: each follows the result."""
    def f(x):
        y = x * 2
        return y.detach() + 1, y[1:] * 3, y.reshape(2, 2), (x * 3).detach(), y.T

    program, x = Program(f, cg.ones(4)), cg.tensor([1.0, 2.0, 3.0, 4.0])
    assert [y.tolist() for y in program.run(x)] == [y.tolist() for y in f(x)]


def test_hidden_outputs_are_planned():
    """The gradient of topk goes to the positions that the run finds."""
    x = cg.tensor([3.0, 1.0, 2.0]).attach_grad()

    def gradient():
        with cg.record():
            y = cg.topk(x * 1, 1)[0].sum()
        return cg.autograd.grad(y, x, create_graph=True)

    program = Program(gradient)
    with cg.no_grad():
        x[...] = cg.tensor([1.0, 2.0, 5.0])
    assert program.run().tolist() == [0, 0, 1]


@pytest.mark.parametrize("f", [
    cg.abs, lambda x: cg.clip(x, 1.0, 2.0), lambda x: cg.maximum(x, 2.0), lambda x: cg.minimum(x, 3 - x), cg.sort,
    lambda x: cg.where(x > 1, x, x * x), lambda x: cg.bce_with_logits(x, cg.tensor([0.0, 1.0, 1.0])),
], ids=["abs", "clip", "maximum", "minimum", "sort", "where", "bce_with_logits"])
def test_packed_codes_are_planned(f):
    """Gradients follow the codes that the run computes, also in formulas."""
    x = cg.tensor([3.0, -1.0, 2.0]).attach_grad()
    w = cg.tensor([1.0, 10.0, 100.0])

    def gradient():
        with cg.record():
            y = (f(x * 1) * w).sum()
        return cg.autograd.grad(y, x, create_graph=True)

    program = Program(gradient)
    with cg.no_grad():
        x[...] = cg.tensor([-1.0, 2.0, 1.5])
    assert program.run().tolist() == gradient().tolist()


def test_results_in_containers():
    def f(x):
        return {"a": x * 2, "b": [x + 1, None]}, (x, x[1:])

    x = cg.tensor([1.0, 2.0])
    first, second = Program(f, x).run(x)
    assert first["a"].tolist() == [2, 4] and first["b"][0].tolist() == [2, 3] and first["b"][1] is None
    assert [y.tolist() for y in second] == [[1, 2], [2]] and not np.shares_memory(second[0].numpy(), x.numpy())


@pytest.mark.parametrize("result", [3, "x", object(), {1, 2}])
def test_results_that_are_no_tensors(result):
    with pytest.raises(TypeError, match="a captured function returns tensors, .*; this one returned"):
        Program(lambda x: (x * 2, result), cg.ones(3))


def test_a_result_that_is_a_gradient():
    """A run returns a copy, and .grad stays the variable's own."""
    w = cg.ones(2).attach_grad()

    def f(x):
        old = w.grad
        with cg.record(): y = (w * x).sum()
        y.backward()
        return old, w.grad

    program = Program(f, cg.ones(2))
    for values in [2.0, 3.0], [5.0, 7.0]:
        assert [y.tolist() for y in program.run(cg.tensor(values))] == [values, values]
        assert w.grad.tolist() == values


def test_outputs_before_the_first_run():
    program = Program(lambda x: x * 2, cg.ones(3))
    with pytest.raises(RuntimeError, match="outputs is empty before the first run"):
        print(program.outputs)
    assert program.run(cg.ones(3)) is program.outputs and program.outputs.tolist() == [2, 2, 2]


def test_printing_and_constants_are_no_reads():
    program = Program(lambda x: (repr(x), x * cg.tensor([1.0, 2.0]) + cg.ones(2))[1], cg.ones(2))
    assert program.run(cg.ones(2)).tolist() == [2, 3]


def test_nothing_to_do():
    assert Program(lambda: None).run() is None
    assert Program(lambda x: x, cg.ones(2)).run([3.0, 4.0]).tolist() == [3, 4]


def test_the_flags_are_restored():
    with pytest.raises(RuntimeError):
        Program(lambda x: (cg.set_recording(True), x.item()), cg.ones(1))
    assert cg.ones(1).item() == 1 and not cg.is_recording()


# ---- what changes state ----------------------------------------------------------------------------------------------

CURRENT = []                                        # a Program, while a test runs


@pytest.mark.parametrize("what, f", [
    ("run\\(\\) of another program", lambda x: CURRENT[0].run(x) + x),
    ("mark_variables", lambda x: cg.mark_variables(x * 2, cg.ones(3))),
    ("reading the values of a tensor", lambda x: cg.full(5, x.sum())),
    ("drawing these random numbers", lambda x: x * cg.random.choice(3, replace=False)),
    ("gamma\\(\\)", lambda x: x * cg.random.gamma(np.ones(3))),
    ("categorical\\(\\)", lambda x: x * cg.random.categorical(np.zeros(3))),
    ("shuffle\\(\\)", lambda x: cg.random.shuffle(x)),
    ("free\\(\\) of a tensor from outside", lambda x: CURRENT[1].free()),
    ("attach_grad\\(\\) or requires_grad_\\(\\) of a tensor from outside", lambda x: CURRENT[1].attach_grad()),
    ("check_inf_grad\\(\\) of a solver", lambda x: CURRENT[2].check_inf_grad()),
    ("set_learning_rate\\(\\)", lambda x: CURRENT[2].set_learning_rate(2.0)),
    ("update\\(\\) of a solver for a parameter that the function makes", lambda x: updated(cg.ones(3).attach_grad())),
])
def test_what_is_refused(what, f):
    x, v = cg.ones(3), cg.ones(3).attach_grad()
    solver = cg.optim.Sgd(1.0)
    solver.set_parameters([v])
    CURRENT[:] = [Program(lambda x: x * 2, x), cg.ones(3), solver]
    with pytest.raises(RuntimeError, match=f"^capture: {what} cannot be captured"): Program(f, x)
    CURRENT.clear()


def updated(x):
    solver = cg.optim.Sgd(1.0)
    solver.set_parameters([x])
    with cg.record(): y = x.sum()
    y.backward()
    solver.update()


def test_programs_do_not_nest():
    for inner in (lambda x: Program(lambda x: x * 2, x), lambda x: cg.memory.plan(lambda x: x * 2, x)):
        for outer in (Program, cg.memory.plan):
            with pytest.raises(RuntimeError, match="do not nest"): outer(inner, cg.ones(3))


class State:
    """A variable, a solver, running statistics and a generator; `step` changes them all."""

    def __init__(self, grad_req, solver, before=None):
        self.w = cg.tensor([1.0, -2.0, 3.0]).attach_grad(grad_req)
        if before == "none": self.w.grad = None
        if before == "fresh":
            with cg.record(): y = (self.w * self.w).sum()
            y.backward()
        self.solver = solver()
        self.solver.set_parameters([self.w])
        self.mean, self.var = cg.zeros(3), cg.ones(3)
        self.generator = cg.random.Generator(5)

    def step(self, x, zero=None):
        if zero == "zero": self.w.zero_grad()
        if zero == "solver": self.solver.zero_grad()
        if zero == "none": self.w.grad = None
        with cg.train_mode(), cg.record():
            h = cg.batch_norm(x * self.w, self.mean, self.var, training=True)
            h = cg.dropout(h + self.generator.normal(x.shape), 0.3, generator=self.generator)
            loss = (h * self.w * self.w).sum()
        loss.backward()
        self.solver.update()
        return loss, h.detach()

    def values(self):
        return [self.w.numpy().copy(), self.mean.numpy().copy(), self.var.numpy().copy(),
                *([] if self.w.grad is None else [self.w.grad.numpy().copy()]),
                *[v.numpy().copy() for s in self.solver.get_states().values() for v in s.pstate.values()],
                *[np.array(s.t) for s in self.solver.get_states().values()], np.array(self.generator.state),
                np.array(self.w.fresh_grad), np.array(self.w.version)]


@pytest.mark.parametrize("zero", [None, "zero", "solver", "none"])
@pytest.mark.parametrize("before", [None, "none", "fresh"])
@pytest.mark.parametrize("grad_req", ["write", "add"])
@pytest.mark.parametrize("solver", [cg.optim.Sgd, cg.optim.Adam, cg.optim.Momentum])
def test_a_training_step(grad_req, solver, before, zero):
    """Gradients, running statistics, draws and updates, bit for bit; and a trace changes none of them."""
    ours, theirs = State(grad_req, solver, before), State(grad_req, solver, before)
    start, grad = ours.values(), ours.w.grad
    program = Program(lambda x: ours.step(x, zero), ((4, 3), "float32"))
    assert ours.w.grad is grad
    for a, b in zip(ours.values(), start, strict=True): same_bits(a, b)
    rng = np.random.default_rng(0)
    for _ in range(3):
        x = cg.tensor(rng.normal(size=(4, 3)).astype("f4"))
        for a, b in zip(program.run(x), theirs.step(x, zero), strict=True): same_bits(a.numpy(), b.detach().numpy())
        for a, b in zip(ours.values(), theirs.values(), strict=True): same_bits(a, b)


def test_a_gradient_that_is_removed():
    """A function that ends with .grad = None leaves None."""
    w = cg.ones(2).requires_grad_()

    def f(x):
        with cg.record(): y = (w * x).sum()
        y.backward()
        g = w.grad * 2
        w.grad = None
        return g

    program = Program(f, cg.ones(2))
    for _ in range(2):
        assert program.run([2.0, 3.0]).tolist() == [4, 6] and w.grad is None


def test_adding_to_a_gradient_with_a_graph():
    x = cg.ones(3).attach_grad("add")

    def added():
        with cg.record():
            y = (x * x * x).sum()
        y.backward(create_graph=True)
        return x.grad

    program = Program(added)
    assert x.grad.tolist() == [0, 0, 0]
    assert program.run().tolist() == [3] * 3 and program.run().tolist() == [6] * 3 and x.grad.tolist() == [6] * 3


def test_variables_made_inside():
    """They are new in each run."""
    def f(x):
        v, c = (x * 2).attach_grad("add"), cg.tensor([1.0, 2.0]).attach_grad("add")
        with cg.record(): y = (v * v * c).sum()
        y.backward()
        y.detach()
        return v.grad, c.grad

    program, x = Program(f, cg.ones(2)), cg.tensor([3.0, 4.0])
    for _ in range(2):
        assert [g.tolist() for g in program.run(x)] == [g.tolist() for g in f(x)] == [[12, 32], [36, 64]]


def test_what_is_freed_while_it_is_captured():
    def scoped(x):
        with cg.memory.scope() as scope:
            b = x * 2
            y = scope.keep(b + 1)
        return y * 3

    def freed(x):
        c = x * 3
        y = x * 2 + c
        c.free()
        return y

    x = cg.tensor([1.0, 2.0, 2.0])
    for f in (scoped, freed):
        assert Program(f, cg.ones(3)).run(x).tolist() == f(x).tolist()


@pytest.mark.parametrize("shared", [True, False], ids=["shared", "alone"])
@pytest.mark.parametrize("work", ["backward", "zero_grad"])
def test_a_gradient_that_is_a_part_of_a_buffer(work, shared):
    """A program writes to this part only, whether others hold the buffer or not."""
    def f(x):
        if work == "zero_grad": return x.zero_grad()
        with cg.record(): y = (x * x).sum()
        y.backward()

    found = []
    for program in (True, False):
        whole = cg.arange(8.0)
        x = cg.tensor([1.0, 2.0]).attach_grad("add")
        x.grad = whole[3:5]
        if not shared: del whole
        run = Program(f_of(f, x)).run if program else f_of(f, x)
        for _ in range(2): run()
        found.append((x.grad.tolist(), whole.tolist() if shared else None))
    assert found[0] == found[1]


def f_of(f, x):
    return lambda: f(x)
