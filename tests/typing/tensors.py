"""Programs of users as a type checker sees them: `make check` runs mypy on this folder, and tests/project/test_stubs.py
runs the programs. Here: tensors, scopes and gradients."""

from typing import Any, assert_type

import numpy as np
import numpy.typing as npt

import cygrad as cg

x = cg.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
with cg.record() as tape:
    loss = cg.mean(cg.exp(x) @ x.T + 2.0 * x)
assert_type(loss, cg.Tensor)
assert_type(tape.nodes, int)
loss.backward()
assert_type(loss.item(), int | float)
assert_type(float(loss), float)
assert_type(x.grad, cg.Tensor | None)
assert_type(x.shape, tuple[int, ...])
assert_type(x[0], cg.Tensor)
assert_type(x.detach().numpy(), npt.NDArray[Any])
assert_type(cg.asarray(np.ones(3)), cg.Tensor)
for row in x: assert_type(row, cg.Tensor)

with cg.memory.profile() as p: cg.ones(3)
assert_type(p, cg.memory.profile)
assert_type(p.peak_bytes, int)
with cg.memory.track() as watched: cg.ones(3)
assert_type(watched, cg.memory.track)
assert_type(watched.leaked_bytes, int)
with cg.memory.limit("1GiB") as bound: cg.ones(3)
assert_type(bound, cg.memory.limit)
with cg.memory.budget("1GiB") as budget: cg.ones(3)
assert_type(budget, cg.memory.budget)
with cg.memory.scope() as scope: kept = scope.keep(cg.ones(3))
assert_type(scope, cg.memory.scope)
assert_type(kept, cg.Tensor)
with cg.autograd.detect_anomaly() as watching: cg.ones(3)
assert_type(watching, cg.autograd.detect_anomaly)


@cg.no_grad()
def norm(y: cg.Tensor) -> float:
    return float(cg.sqrt((y * y).sum()))


assert_type(norm(x), float)
with cg.record(): total = x.sum()
assert_type(cg.autograd.grad(total, x, retain_graph=True), cg.Tensor)
assert_type(cg.autograd.grad(total, [x], allow_unused=True), tuple[cg.Tensor | None, ...])
