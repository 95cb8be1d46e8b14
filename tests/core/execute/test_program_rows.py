"""Row-sparse gradients in programs and plans."""

import gc

import numpy as np
import pytest

import cygrad as cg
from cygrad.core.execute.program import Program

from rows import same_bits


def table(make, seed=0):
    return make(cg.tensor(np.random.default_rng(seed).normal(size=(6, 3)).astype("f4")))


def row_sparse(w): return w.attach_grad(stype="row_sparse")
def accumulating(w): return w.requires_grad_()
def written(w): return w.attach_grad()


def numbers(g):
    if g is None: return [None]
    if isinstance(g, cg.GradientSlice): return [g.indices.numpy().copy(), g.values.numpy().copy()]
    return [g.numpy().copy()]


def equal(a, b):
    assert len(a) == len(b)
    for x, y in zip(a, b, strict=True):
        assert (x is None) == (y is None)
        if x is not None: same_bits(x, y)


class State:
    def __init__(self, make, solver, parts, zero):
        self.w, self.zero, self.parts = table(make), zero, parts
        self.solver = solver() if solver else None
        if solver: self.solver.set_parameters([self.w])

    def step(self, *indices):
        if self.zero == "none": self.w.grad = None
        if self.zero == "zero": self.w.zero_grad()
        with cg.record():
            y = sum([cg.embedding(i, self.w, sparse=True).sum() * (k + 1) for k, i in enumerate(indices)])
            if "dense" in self.parts: y = y + (self.w * self.w).sum()
            if "twice" in self.parts:
                y.backward()
                y = cg.embedding(indices[0], self.w, sparse=True).sum()
        y.backward()
        if self.solver: self.solver.update()
        return y

    def values(self):
        states = self.solver.get_states().values() if self.solver else ()
        arrays = [v.numpy().copy() for s in states for v in s.pstate.values()]
        return [self.w.numpy().copy(), *numbers(self.w.grad), *arrays, *[np.array(s.t) for s in states]]


SOLVERS = [None, cg.optim.Sgd, cg.optim.Adam, cg.optim.Momentum]
CASES = [(row_sparse, zero) for zero in (None, "none", "zero")] + [(written, zero) for zero in (None, "none", "zero")]
CASES += [(accumulating, "none")]


@pytest.mark.parametrize("parts", [(), ("dense",), ("two",), ("two", "dense")], ids=["one", "dense", "two", "mixed"])
@pytest.mark.parametrize("make, zero", CASES)
@pytest.mark.parametrize("solver", SOLVERS)
def test_steps(make, zero, solver, parts):
    """.grad, parameters and states, bit for bit, with other indices in each run; and plans of the same steps."""
    ours, theirs = (State(make, solver, parts, zero) for _ in range(2))
    count = 2 if "two" in parts else 1
    first = [cg.tensor([0, 1, 1, 5])] * count
    try: theirs.step(*first)
    except TypeError as e:
        assert "takes only tensors" in str(e)       # (not every solver takes rows)
        with pytest.raises(TypeError, match="takes only tensors"): Program(ours.step, *first)
        return
    ours.step(*first)
    before, grad = ours.values(), ours.w.grad
    program = Program(ours.step, *first)
    assert ours.w.grad is grad
    equal(ours.values(), before)
    rng = np.random.default_rng(0)
    for _ in range(3):
        indices = [cg.tensor(rng.integers(0, 6, 4)) for _ in range(count)]
        stats = cg.memory.stats()
        plan = cg.memory.plan(theirs.step, *indices)
        assert {k: v for k, v in stats.items() if k != "peak_bytes"} == {
            k: v for k, v in cg.memory.stats().items() if k != "peak_bytes"}
        expected = theirs.run(indices, plan)
        same_bits(program.run(*indices).numpy(), expected)
        equal(ours.values(), theirs.values())


def run(self, indices, plan):
    with cg.memory.track() as measured: y = self.step(*indices).detach().numpy().copy()
    assert plan.peak_bytes == measured.peak_bytes
    return y


State.run = run


def test_a_slice_that_is_kept_does_not_change():
    state = State(row_sparse, None, (), None)
    program = Program(state.step, cg.tensor([0, 1]))
    program.run([2, 3])
    kept = state.w.grad
    values, indices = kept.values, kept.indices
    program.run([4, 5])
    assert kept.indices.tolist() == indices.tolist() == [2, 3] and state.w.grad.indices.tolist() == [4, 5]
    program.run([1, 1])
    assert state.w.grad.indices.tolist() == [1, 1] and values.shape == (2, 3)
    before = cg.memory.stats()["live_bytes"]
    for _ in range(20): program.run([3, 3])
    assert cg.memory.stats()["live_bytes"] <= before


def test_indices_are_checked_at_each_run():
    state = State(row_sparse, None, (), None)
    program = Program(state.step, cg.tensor([0, 1]))
    with pytest.raises(IndexError): program.run([0, 6])
    program.run([0, 5])
    assert state.w.grad.indices.tolist() == [0, 5]


@pytest.mark.parametrize("what, make, zero, f", [
    ("adding a row-sparse gradient to the .grad of an earlier run", accumulating, None, lambda s: None),
    ("deduplicate of a GradientSlice", row_sparse, None, lambda s: s.w.grad.deduplicate()),
    ("a .grad that is first a GradientSlice and then a tensor", row_sparse, None, lambda s: dense(s)),
    ("clip_grad_by_norm\\(\\) of row-sparse gradients", row_sparse, None, lambda s: s.solver.clip_grad_by_norm(1.0)),
])
def test_what_is_refused(what, make, zero, f):
    state = State(make, cg.optim.Sgd, (), zero)
    for _ in range(2):
        with pytest.raises(RuntimeError, match=f"^capture: {what} cannot be captured"):
            Program(lambda i: (unfinished(state, i) if "clip" in what else state.step(i), f(state)), cg.tensor([0, 1]))
        state.step(cg.tensor([0, 1]))


def dense(state):
    with cg.record(): y = (state.w * state.w).sum()
    y.backward()


def unfinished(state, i):
    with cg.record(): y = cg.embedding(i, state.w, sparse=True).sum()
    y.backward()


def test_to_dense_in_a_program():
    state = State(row_sparse, None, (), None)
    program = Program(lambda i: (state.step(i), state.w.grad.to_dense() * 2)[1], cg.tensor([0, 1, 1]))
    assert program.run([2, 3, 3])[:, 0].tolist() == [0, 0, 2, 4, 0, 0]
    del program
    gc.collect()


def test_rows_without_elements():
    """The values of a gradient of shape (6, 0) have no memory, but its indices have."""
    w = row_sparse(cg.zeros((6, 0)))
    rows = cg.tensor([1, 4])

    def f(i):
        with cg.record(): y = cg.embedding(i, w, sparse=True).sum()
        y.backward()

    Program(f, cg.tensor([0, 0])).run(rows)
    assert w.grad.indices.tolist() == [1, 4] and w.grad.values.shape == (2, 0)
