"""Random programs captured as nets, run on other inputs and compared with eager code, bit for bit: views, in-place
writes over results and memory made inside, several outputs, gradients.

CYGRAD_PROGRAMS is the number of programs (300). `make test-all` runs 10,000."""

import os

import numpy as np

import cygrad as cg
from cygrad.graph import Net, Workspace

from tests.support.programs import WRITES, Program, in_cygrad, write
from tests.support.rows import same_bits

COUNT = int(os.environ.get("CYGRAD_PROGRAMS", "300"))
OTHERS = 3851, 4241, 5621, 6023, 9905       # programs in which a view contributes to a gradient between two others


class Captured:
    """A function of tensors, made from a random program. In every second one the variables are from outside, and a
    backward pass writes to their .grad."""

    def __init__(self, seed):
        self.program = Program(seed)
        self.trains = seed % 2 == 1
        self.variables = [cg.tensor(a) for a in self.program.variables]
        if self.trains:
            for x, req in zip(self.variables, self.program.grad_reqs, strict=True): x.attach_grad(req)
        self.shapes = [a.shape for a in self.program.constants]
        if not self.trains: self.shapes = [a.shape for a in self.program.variables] + self.shapes

    def __call__(self, *inputs):
        if not self.trains: return self.steps([*inputs])
        for x in self.variables: x.zero_grad()
        with cg.record():
            out = self.steps([x * 1.0 for x in self.variables] + [x * 1.0 for x in inputs])
            loss = sum([(v * v).sum() for v in out if v.dtype.kind == "f"])
        if isinstance(loss, cg.Tensor) and loss.requires_grad: loss.backward()
        return [y.detach() for y in out]

    def steps(self, values):
        for name, operands, arguments in self.program.steps:
            if name in WRITES:
                i, j = operands
                write(name, values[i], values[j] if isinstance(j, int) else j, arguments)
            else: values.append(in_cygrad(name, [values[i] for i in operands], arguments))
        return values[-4:]


def eager(f, arrays):
    """The results of f and the gradients of its variables, or None if eager code refuses the program."""
    try: out = f(*[cg.tensor(a) for a in arrays])
    except (cg.InplaceError, ValueError, RuntimeError): return None
    return [y.numpy().copy() for y in out], [x.grad.numpy().copy() for x in f.variables if f.trains]


def test_nets_compute_what_eager_code_computes():
    captured, refused = 0, {}
    for seed in (*range(COUNT), *OTHERS):
        f, rng = Captured(seed), np.random.default_rng(seed + 1)
        arrays = [rng.uniform(-1.5, 1.5, shape) for shape in f.shapes]
        if eager(f, arrays) is None: continue
        try: net = Net.capture(f, *[cg.tensor(a) for a in arrays])
        except RuntimeError as e:
            refused.setdefault(str(e).split(",")[0], []).append(seed)
            continue
        captured += 1
        workspace = Workspace()
        for _ in range(2):
            arrays = [rng.uniform(-1.5, 1.5, shape) for shape in f.shapes]
            for name, a in zip(net.inputs, arrays, strict=True): workspace.feed(name, a)
            workspace.run(net)
            gradients = [x.grad.numpy().copy() for x in f.variables if f.trains]
            results = [workspace.fetch(name).numpy() for name in net.outputs]
            expected, wanted = eager(f, arrays)
            for ours, theirs in zip(gradients, wanted, strict=True): same_bits(ours, theirs)
            for y in expected:
                assert any(y.shape == o.shape and y.tobytes() == o.tobytes() for o in results), seed
    assert captured > 0.6 * COUNT, (captured, refused)
