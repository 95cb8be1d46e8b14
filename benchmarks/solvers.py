"""The update of each of the nineteen solvers, of one float32 parameter of 1,000,000 and of 10,000 elements.

An update reads the parameter, the gradient and the states, and writes the parameter and the states. *copy* is the
time in which the machine copies as many bytes, half of them read and half written; Lamb and Lars, which need a norm
before they can write, read again. 10,000 elements are in the caches of a CPU, where copying is several times faster
and the arithmetic takes a share of the time. An update writes where it has read, so it can be faster than a copy.
PyTorch is the same rule of torch.optim with fused=True, or where it has no fused kernel with foreach=True. Before
timing, three updates must give equal parameters."""

import ctypes
import os
from dataclasses import dataclass, field

import numpy as np

from benchmarks import limits
from benchmarks.work import LIMITS, Case

THREADS = None
LIBRARIES = ("cygrad", "PyTorch", LIMITS)
SIZES = 1_000_000, 10_000
ALONE = 1 << 20             # bytes below which one thread copies: starting a second takes longer


@dataclass(frozen=True)
class Rule:
    """moved: elements that are read or written for each element of the parameter. more: settings in cygrad. torch: the
    class in torch.optim, or None, with `theirs`, its settings, and `kind`, its implementation."""

    moved: int
    more: dict = field(default_factory=dict)
    torch: str | None = None
    theirs: dict = field(default_factory=dict)
    kind: str = "foreach"


RULES = {
    "Sgd": Rule(3, torch="SGD", kind="fused"),
    "SgdW": Rule(5),
    "Momentum": Rule(5, torch="SGD", theirs=dict(momentum=0.9), kind="fused"),
    "Nesterov": Rule(5, torch="SGD", theirs=dict(momentum=0.9, nesterov=True), kind="fused"),
    "Adagrad": Rule(5, torch="Adagrad", theirs=dict(eps=1e-8), kind="fused"),
    "Adadelta": Rule(7, torch="Adadelta", theirs=dict(rho=0.95)),
    "RMSprop": Rule(5, torch="RMSprop", theirs=dict(alpha=0.9)),
    "RMSpropGraves": Rule(9),
    "Adam": Rule(7, torch="Adam", kind="fused"),
    "AdamW": Rule(7, dict(weight_decay=0.01), torch="AdamW", kind="fused"),
    "Adamax": Rule(7, torch="Adamax"),
    "AMSGRAD": Rule(9, dict(bias_correction=True), torch="Adam", theirs=dict(amsgrad=True), kind="fused"),
    "AdaBound": Rule(7),
    "AMSBound": Rule(9),
    "AdaBelief": Rule(7),
    "Lamb": Rule(10),           # m and v are written and read again for the step, and so is w
    "Lars": Rule(7),            # w and g are read for their norms, and again
    "Lion": Rule(5),
    "Ftrl": Rule(7),
}


def arrays(n):
    """A parameter and a gradient."""
    rng = np.random.default_rng(0)
    return rng.normal(0, 1, n).astype(np.float32), rng.normal(0, 1, n).astype(np.float32)


def cygrad_update(name, n, lr):
    """f(n) that updates a parameter n times, and the parameter."""
    import cygrad as cg

    data, gradient = arrays(n)
    w = cg.tensor(data).attach_grad()
    w.grad = cg.tensor(gradient)
    solver = getattr(cg.optim, name)(lr, **RULES[name].more)
    solver.set_parameters(w)

    def run(times):
        for _ in range(times):
            w.fresh_grad = True
            solver.update()

    return run, w


def torch_update(name, n, lr):
    import torch

    rule = RULES[name]
    data, gradient = arrays(n)
    w = torch.nn.Parameter(torch.from_numpy(data))
    w.grad = torch.from_numpy(gradient)
    more = rule.theirs | {key: value for key, value in rule.more.items() if key == "weight_decay"}
    optimizer = getattr(torch.optim, rule.torch)([w], lr=lr, **more, **{rule.kind: True})

    def run(times):
        for _ in range(times): optimizer.step()

    return run, w


def copies(nbytes):
    """f(n) that copies n times; `nbytes` are read and written in all."""
    made, threads = limits.library(), int(os.environ.get("OMP_NUM_THREADS", 1)) if nbytes >= ALONE else 1
    x, y = np.ones(nbytes // 2, np.uint8), np.zeros(nbytes // 2, np.uint8)
    into, source = (a.ctypes.data_as(ctypes.c_void_p) for a in (y, x))

    def run(times, kept=(x, y)):
        for _ in range(times): made.copy(into, source, ctypes.c_long(nbytes // 2), threads)

    return run


def updated(make, name, n):
    """A function that returns the first elements of a parameter after three updates."""
    def values():
        run, w = make(name, n, 0.01)
        run(3)
        return [np.asarray(w.detach())[:1000].copy()]

    return values


def cases(libraries, quick, sizes=SIZES):
    """Each solver with each size."""
    made = []
    for n in sizes:
        for name, rule in RULES.items():
            ways = {"cygrad": cygrad_update} | ({"PyTorch": torch_update} if rule.torch else {})
            ways = {peer: make for peer, make in ways.items() if peer in libraries}
            runs = {peer: make(name, n, 1e-6)[0] for peer, make in ways.items()}
            if LIMITS in libraries: runs[LIMITS] = copies(4 * n * rule.moved)
            made.append(Case(f"{name}, {n:,}", "us", runs,
                             {peer: updated(make, name, n) for peer, make in ways.items()},
                             details=dict(solver=name, elements=n, kind=rule.kind if rule.torch else "", limit="own")))
    return made
