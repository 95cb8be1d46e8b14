"""Random functions as programs, run on other inputs and compared with eager code, bit for bit: views, in-place writes
(over arguments, results, views and memory made inside), several outputs, gradients of first and second order. Their
plans are compared with the memory that eager code takes.

CYGRAD_PROGRAMS is the number of programs (1000). `make test-all` runs 10,000."""

import os

import numpy as np
import pytest

import cygrad as cg
from cygrad.core.execute.program import Program

from tests.support.programs import WRITES, in_cygrad, write
from tests.support.programs import Program as Recipe
from tests.support.rows import same_bits

COUNT = int(os.environ.get("CYGRAD_PROGRAMS", "1000"))


class Captured:
    """A function of tensors, made from a random program. Some steps have several outputs, some write over memory that
    was made inside, and in one third the gradients are part of the result."""

    def __init__(self, seed):
        self.program = Recipe(seed)
        self.rng_seed = seed
        self.gradients = self.program.kind == "create_graph"
        self.arrays = [*self.program.variables, *self.program.constants]

    def __call__(self, *inputs):
        rng = np.random.default_rng(self.rng_seed)
        values = list(inputs)
        if not self.gradients:
            return self.steps(values, rng)
        leaves = [x.detach().requires_grad_() for x in inputs]
        with cg.record():
            values = [x * 1.0 for x in leaves]
            out = self.steps(values, rng)
            loss = sum([(v * v).sum() for v in out])
        found = cg.autograd.grad(loss, leaves, create_graph=True, allow_unused=True)
        with cg.record():
            again = sum([(g * g).sum() for g in found if g is not None])
        if isinstance(again, cg.Tensor) and again.requires_grad:
            found += cg.autograd.grad(again, leaves, create_graph=True, allow_unused=True)
        return (*out, *[g for g in found if g is not None])

    def steps(self, values, rng):
        extra = []
        for name, operands, arguments in self.program.steps:
            if name in WRITES:
                i, j = operands
                write(name, values[i], values[j] if isinstance(j, int) else j, arguments)
            else:
                values.append(in_cygrad(name, [values[i] for i in operands], arguments))
            self.more([*values, *extra], extra, rng)
        return (*values[-4:], *extra[-4:])

    def more(self, values, extra, rng):
        """Occasionally a step that the programs do not have."""
        x = values[rng.integers(len(values))]
        kind = rng.integers(24)
        if kind == 0 and x.ndim and x.shape[0] > 1:
            extra.extend(cg.split(x, [1]))
        elif kind == 1 and x.ndim and x.size:
            largest, places = cg.topk(x.reshape(-1), 1)
            extra.extend([largest, x.reshape(-1)[places]])
        elif kind == 2:
            made = cg.zeros(x.shape, dtype="float64")
            before = made + x
            made[...] = x * 2
            made += before
            extra.extend([before, made])
        elif kind == 3 and not self.gradients and x.ndim and x.shape[0]:
            made = cg.ones((2, *x.shape), dtype="float64")
            made[1] -= x
            made[0, :1] = made[1, -1:]
            extra.append(made[0])
        elif kind == 4 and not self.gradients:
            if 0 not in x.strides or x.size < 2: x *= 0.5     # over an input, a view or a result
        elif kind == 5 and x.ndim == 2:
            extra.append(x.T.reshape(-1) if x.size else x.T)


def run(f, arrays):
    """The results of f as arrays and the contents of its inputs afterwards, or the error that it raises."""
    tensors = [cg.tensor(a) for a in arrays]
    try:
        out = f(*tensors)
    except (cg.InplaceError, ValueError) as e:
        return None, type(e)
    return [y.detach().numpy().copy() for y in out], [x.numpy().copy() for x in tensors]


def test_programs_compute_what_eager_code_computes():
    captured, refused, writes = 0, {}, 0
    for seed in range(COUNT):
        f = Captured(seed)
        rng = np.random.default_rng(seed + 1)
        expected, error = run(f, f.arrays)
        if expected is None:
            with pytest.raises(error): Program(f, *f.arrays)
            continue
        try:
            program = Program(f, *f.arrays)
        except RuntimeError as e:
            assert str(e).startswith("capture: "), (seed, e)
            reason = str(e).split(",")[0]
            refused[reason] = refused.get(reason, 0) + 1
            continue
        captured += 1
        writes += any(step[0] in WRITES for step in f.program.steps)
        assert program.bound_bytes <= program.arena_bytes
        for _ in range(2):
            arrays = [rng.uniform(-1.5, 1.5, a.shape) for a in f.arrays]
            tensors = [cg.tensor(a) for a in arrays]
            expected, after = run(f, arrays)
            for ours, eager in zip(program.run(*tensors), expected, strict=True): same_bits(ours.numpy(), eager)
            for ours, eager in zip(tensors, after, strict=True): same_bits(ours.numpy(), eager)
        del program
    assert captured > 0.9 * COUNT and writes > 0.1 * COUNT, (captured, writes, refused)


def test_plans_equal_what_eager_code_takes():
    planned = 0
    for seed in range(COUNT // 5):
        f = Captured(seed)
        tensors = [cg.tensor(a) for a in f.arrays]
        if run(f, f.arrays)[0] is None: continue
        before, versions = cg.memory.stats(), [x.version for x in tensors]
        plan = cg.memory.plan(f, *tensors)
        assert unchanged(before, cg.memory.stats()) and versions == [x.version for x in tensors], seed
        with cg.memory.track() as measured: f(*tensors)
        assert plan.peak_bytes == measured.peak_bytes, seed
        planned += 1
    assert planned > 0.15 * COUNT


def unchanged(before, after):
    return all(before[key] == after[key] for key in before if key != "peak_bytes")
