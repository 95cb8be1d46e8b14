"""Failing allocations (M8): every allocation of a call fails, once or for all later ones too. The call raises
MemoryError, live bytes and arguments are unchanged, and the same call then works."""

import numpy as np
import pytest
from programs import Program, forward, in_cygrad

import cygrad as cg
from cygrad.testing import fail_allocation
from tests.samples import TABLE

TRIES = [pytest.param(row, *pair, id=f"{row.name}-{i}") for row in TABLE for i, pair in enumerate(row.tries)]


def state():
    stats = cg.memory.stats()
    return [stats[key] for key in ("live_bytes", "live_buffers", "external_bytes", "by_category")]


def every_failure(call, unchanged=None):
    """`call` returns bytes to compare. unchanged() must be the same after each failure. Returns the number of
    allocations."""
    expected = call()
    before = state()
    given = unchanged() if unchanged else None
    n = 0
    while True:
        n += 1
        reached = False
        for persistent in (False, True):
            raised = False
            with fail_allocation(n, persistent) as failure:
                try:
                    call()
                except MemoryError as e:
                    assert f"allocation {n} of" in str(e)
                    raised = True
            reached |= failure.failed
            assert raised == failure.failed, f"allocation {n} failed, and nobody noticed"
            assert not cg.is_recording() and not cg.is_training()
            assert state() == before, (n, persistent)
            if unchanged: assert unchanged() == given, (n, persistent)
            assert call() == expected, (n, persistent)
        if not reached: return n - 1


def bits(t):
    return None if t is None else (t.dtype.name, t.shape, t.detach().numpy().tobytes())


# ---- every row -------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("row, args, kwargs", TRIES)
def test_every_allocation_of_a_row_can_fail(row, args, kwargs):
    """Value, gradients by kernels, gradients with a graph, gradients of those."""
    arrays = [a for a in args if isinstance(a, np.ndarray)]
    xs = [cg.tensor(a) if isinstance(a, np.ndarray) else a for a in args]
    given = [x for x in xs if isinstance(x, cg.Tensor)]
    leaves = [x.requires_grad_() for x in given if x.dtype.kind == "f"]

    function = getattr(row, "tested", row.function)

    def call():
        with cg.record():
            y = function(*xs, **kwargs)
        ys = y if isinstance(y, tuple | list) else [y]
        del y
        found = [bits(y) for y in ys]
        ys = [y for y in ys if y.requires_grad]
        if not ys: return found
        with cg.record():
            first = cg.autograd.grad(ys, leaves, create_graph=True, allow_unused=True)
        found += map(bits, first)
        pairs = [(g, x) for g, x in zip(first, leaves, strict=True) if g is not None and g.requires_grad]
        if pairs:
            second = cg.autograd.grad([g for g, _ in pairs], leaves, [x.detach() for _, x in pairs], retain_graph=True,
                                      allow_unused=True)
            found += map(bits, second)
        return found + list(map(bits, cg.autograd.grad(ys, leaves, allow_unused=True)))

    def unchanged():
        return [(x.version, x.grad, bits(x)) for x in given]

    allocations = every_failure(call, unchanged)
    assert allocations or row.operator.views or not arrays


# ---- training steps --------------------------------------------------------------------------------------------------

def leaf(*shape, seed=0, req="write"):
    return cg.tensor(np.random.default_rng(seed).uniform(-1, 1, shape)).attach_grad(req)


def with_writes(w, b, x):
    """Broadcasting, and writes to parts of intermediates."""
    h = x @ w.T + b
    h *= h
    h[1:] = h[:-1] * 2
    return (h.T.reshape(-1) ** 2).mean()


def with_writes_through_views(w, b, x):
    h = x @ w.T + b
    columns = h.T
    h[:, 0] -= b[0]
    columns[1:] *= 2.0
    h[1:, 1] = columns[2, 1:]
    return (columns.reshape(-1) * h.T.reshape(-1)).mean()


def with_a_taking_tensor(w, b, x):
    """A plain tensor to which recorded values are written."""
    t = cg.zeros((5, 3), dtype="float64")
    t[...] = b
    t += x @ w.T
    return cg.log_softmax(t)[:, 1].sum()


def with_a_penalty(w, b, x):
    """A gradient inside the loss."""
    loss = (cg.exp(x @ w.T * 0.1) / (b * b + 1)).sum()
    dw, db = cg.autograd.grad(loss, [w, b], create_graph=True)
    return loss + (dw * dw).sum() + (db * db).mean()


class Trainer:
    """Two parameters, Adam, and a step on data."""

    def __init__(self, loss_of, req):
        self.loss_of, self.x = loss_of, np.random.default_rng(5).uniform(-1, 1, (5, 4))
        self.w, self.b = leaf(3, 4, req=req), leaf(3, seed=1, req=req)
        self.solver = cg.optim.Adam(0.01)
        self.solver.set_parameters({"w": self.w, "b": self.b})

    def step(self):
        self.solver.zero_grad()
        with cg.record():
            loss = self.loss_of(self.w, self.b, cg.tensor(self.x))
        loss.backward()
        self.solver.update()

    def parameters(self):
        return bits(self.w), bits(self.b)


@pytest.mark.parametrize("req", ["write", "add"])
@pytest.mark.parametrize("loss_of", [
    with_writes, with_writes_through_views, with_a_taking_tensor, with_a_penalty])
def test_every_allocation_of_a_step_can_fail(loss_of, req):
    """A failed step changes no bit of the parameters. The next step equals that of a model that never failed, so the
    states of the solver are unchanged too."""
    trainer, twin = Trainer(loss_of, req), Trainer(loss_of, req)
    trainer.step(), twin.step()
    with fail_allocation(1 << 40) as failure:
        trainer.step()
    twin.step()
    assert failure.allocations > 6
    for n in range(1, failure.allocations + 1):
        for persistent in (False, True):
            trainer.solver.zero_grad()              # (gradients that are zero have no memory)
            before, parameters = state(), trainer.parameters()
            with fail_allocation(n, persistent):
                try:
                    trainer.step()
                    pytest.fail(f"allocation {n} failed, and nobody noticed")
                except MemoryError as e:
                    assert f"allocation {n} of" in str(e)
            trainer.solver.zero_grad()
            assert state() == before, (n, persistent)
            assert trainer.parameters() == parameters, (n, persistent)
            trainer.step(), twin.step()
            assert trainer.parameters() == twin.parameters(), (n, persistent)


def test_a_failed_backward_of_add_leaves_what_was_there():
    """zero_grad() removes what the failed pass has added, and with retain_graph the pass can run again."""
    w = leaf(3, 4, req="add")
    with cg.record():
        loss = (cg.tanh(w) * w[:, ::-1]).sum() + (w @ w.T).sum()
    loss.backward(retain_graph=True)
    whole = w.grad.numpy().copy()

    def call():
        w.zero_grad()
        try:
            loss.backward(retain_graph=True)
            return bits(w.grad)
        finally:
            w.zero_grad()

    assert every_failure(call) > 3
    loss.backward()
    assert np.array_equal(w.grad.numpy(), whole)


# ---- random programs -------------------------------------------------------------------------------------------------

def fail_in(program):
    """Every failure in a program. False if cygrad refuses the program."""
    variables = [cg.tensor(a).requires_grad_() for a in program.variables]
    constants = [cg.tensor(a) for a in program.constants]

    def call():
        copies = [c.copy() for c in constants]
        with cg.record():
            loss = forward(program, [*variables, *copies], in_cygrad)
            if not isinstance(loss, cg.Tensor) or not loss.requires_grad: return float(loss)
            found = cg.autograd.grad(loss, variables, create_graph=program.kind == "create_graph", allow_unused=True)
        return [bits(loss), *map(bits, found)]

    try:
        every_failure(call, lambda: [(x.version, x.grad, bits(x)) for x in [*variables, *constants]])
    except (cg.InplaceError, ValueError) as e:
        assert program.kind == "inplace", program
        assert isinstance(e, cg.InplaceError) or "repeats its elements" in str(e), program
        return False
    return True


@pytest.mark.parametrize("kind", ["inplace", "create_graph"])
def test_every_allocation_of_random_programs_can_fail(kind):
    programs = [Program(seed) for seed in range(60)]
    outcomes = [fail_in(p) for p in programs if p.kind == kind]
    assert sum(outcomes) >= len(outcomes) / 4


# ---- plans, captures and nets ----------------------------------------------------------------------------------------

def training_step():
    """A step with dropout, constants, in-place writes and Adam with rate zero; its parameters, and a batch."""
    cg.random.seed(0)
    w, b = leaf(3, 4, req="write"), leaf(3, seed=1)
    solver = cg.optim.Adam(0.0)
    solver.set_parameters({"w": w, "b": b})

    def step(x, t):
        solver.zero_grad()
        with cg.record():
            h = cg.dropout(cg.linear(x, w, b), 0.5)
            h += cg.tensor([1.0, 2.0, 3.0], dtype="float64")
            loss = cg.cross_entropy(h, t)
        loss.backward()
        solver.update()
        return loss

    return step, (w, b), (cg.tensor(np.ones((5, 4))), cg.tensor([0, 1, 2, 0, 1]))


@pytest.mark.parametrize("kind", ["memory.plan", "capture", "net.plan", "run", "forward and backward"])
def test_every_allocation_of_a_plan_and_of_a_run_can_fail(kind):
    step, parameters, batch = training_step()
    step(*batch)                                    # (the solver has its states then)
    net = cg.graph.Net.capture(step, *batch)
    generator = cg.random.default_generator

    def run():
        workspace, begin = cg.graph.Workspace(), generator.state
        try:
            for name, x in zip(net.inputs, batch, strict=True): workspace.feed(name, x)
            if kind == "run": workspace.run(net)
            else:
                workspace.forward(net)
                workspace.backward(net)
            return bits(workspace.fetch(net.outputs[0]))
        finally: generator.state = begin

    calls = {"memory.plan": lambda: cg.memory.plan(step, *batch).peak_bytes - cg.memory.stats()["live_bytes"],
             "capture": lambda: cg.graph.Net.capture(step, *batch).text(), "net.plan": lambda: net.plan().table()}

    def unchanged():
        if kind in calls: return [(bits(p), bits(p.grad), p.version, p.fresh_grad) for p in parameters], generator.state
        return [bits(p) for p in parameters], generator.state

    made = every_failure(calls.get(kind, run), unchanged)
    assert made >= (1 if kind in calls else 5)      # (a trace allocates constants, a run the blobs and the arena)
