"""Random programs with many views, broadcasting and in-place writes, compared with PyTorch in float64.

If PyTorch computes gradients, cygrad computes the same ones. If PyTorch raises because a tensor that backward needs was
written, cygrad raises too, or returns the gradients that PyTorch computes when it saves copies, but never wrong ones
(M10). CYGRAD_AGAINST is the number of programs (2000)."""

import os
from collections import Counter
from contextlib import nullcontext

import numpy as np
import pytest
from peers import torch

import cygrad as cg

COUNT = int(os.environ.get("CYGRAD_AGAINST", "2000"))
SHAPES = [(3, 4), (3, 4), (4,), (2, 3, 4), (1, 4), (3, 1), (), (4, 3), (2, 6)]
COMPUTE = ("add", "sub", "mul", "div", "tanh", "exp", "square", "relu", "sum", "matmul", "copy")
VIEWS = ("index", "transpose", "reshape", "broadcast")
WRITES = ("iadd", "isub", "imul", "itruediv", "setitem", "detached")


class Program:
    """Program number `seed`: arrays of the leaves and of plain tensors, steps (name, operands, argument), and the
    weights of the values in the loss."""

    def __init__(self, seed):
        self.seed, self.twice = seed, seed % 3 == 0
        self.rng = rng = np.random.default_rng(seed)
        self.leaves = [self.array() for _ in range(rng.integers(2, 5))]
        self.plain = [self.array() for _ in range(rng.integers(0, 3))]
        self.shapes = [a.shape for a in self.leaves + self.plain]
        self.repeats = [False] * len(self.shapes)   # a broadcast view, or a view of one, which must not be written
        self.of_leaf = [i < len(self.leaves) for i in range(len(self.shapes))]
        self.steps = []
        self.writes = 0
        for _ in range(rng.integers(6, 16)):
            r = rng.random()
            kind = COMPUTE if r < 0.45 else VIEWS if r < 0.75 else WRITES
            getattr(self, kind[rng.integers(len(kind))])()
        n = len(self.shapes)
        chosen = sorted({n - 1, *rng.integers(0, n, 3).tolist()})
        self.weights = [(i, float(rng.uniform(-1, 1))) for i in chosen]

    def array(self):
        return self.rng.uniform(-1.5, 1.5, SHAPES[self.rng.integers(len(SHAPES))])

    def any(self):
        """The number of a random value, preferably a late one."""
        n = len(self.shapes)
        return min(int(n * (1 - self.rng.random() ** 2)), n - 1)

    def step(self, name, operands, argument, shape, repeats=False, of_leaf=False):
        if np.prod(shape) > 200 or len(shape) > 4: return
        self.steps.append((name, operands, argument))
        self.shapes.append(tuple(shape))
        self.repeats.append(repeats)
        self.of_leaf.append(of_leaf)

    def see(self, name, i, argument, shape, repeats=False):
        self.step(name, (i,), argument, shape, self.repeats[i] or repeats, self.of_leaf[i])

    # ---- new values

    def unary(self, name):
        i = self.any()
        self.step(name, (i,), None, self.shapes[i])

    def binary(self, name):
        i, j = self.any(), self.any()
        try:
            self.step(name, (i, j), None, np.broadcast_shapes(self.shapes[i], self.shapes[j]))
        except ValueError:
            self.unary("tanh")

    add = sub = mul = div = tanh = exp = square = relu = copy = None    # filled in below

    def sum(self):
        i = self.any()
        axes = tuple(d for d in range(len(self.shapes[i])) if self.rng.random() < 0.5)
        if axes:
            self.step("sum", (i,), axes, [1 if d in axes else n for d, n in enumerate(self.shapes[i])])

    def matmul(self):
        i, j = self.any(), self.any()
        x, y = self.shapes[i], self.shapes[j]
        if len(x) >= 2 and len(y) == 2 and x[-1] == y[0]:
            self.step("matmul", (i, j), None, (*x[:-1], y[1]))

    # ---- views

    def some_index(self, shape, ints=True):
        index = []
        for n in shape[:self.rng.integers(0, len(shape) + 1)]:
            a, b = sorted(self.rng.integers(0, n + 1, 2).tolist())
            r = self.rng.random()
            if r < 0.3 and ints: index.append(int(self.rng.integers(-n, n)))
            elif r < 0.6: index.append(slice(None, None, int(self.rng.integers(1, 3))))
            else: index.append(slice(a, max(b, a + 1)) if a < n else slice(0, 1))
        if self.rng.random() < 0.15: index.append(None)
        if self.rng.random() < 0.3: index.append(Ellipsis)
        return tuple(index)

    def index(self):
        i = self.any()
        index = self.some_index(self.shapes[i])
        self.see("index", i, index, np.empty(self.shapes[i])[index].shape)

    def transpose(self):
        i = self.any()
        order = tuple(self.rng.permutation(len(self.shapes[i])).tolist())
        self.see("transpose", i, order, [self.shapes[i][d] for d in order])

    def reshape(self):
        i = self.any()
        shape = self.shapes[i]
        n = int(np.prod(shape))
        new = [(n,), shape[::-1], (1, *shape), (*shape, 1)][self.rng.integers(4)]
        self.see("reshape", i, tuple(new), new)

    def broadcast(self):
        i = self.any()
        shape = (2, *self.shapes[i])
        self.see("broadcast", i, shape, shape, repeats=True)

    # ---- writes

    def target(self, name):
        """A value to write, usually one that may be written: no leaf, no repeated elements."""
        for _ in range(8):
            i = self.any()
            if not self.of_leaf[i] and not self.repeats[i]: return i
            if name != "detached" and self.rng.random() < 0.01: return i
        return None

    def value_for(self, shape):
        """A number, or the number of a value that can be written to this shape."""
        fits = []
        for k, s in enumerate(self.shapes):
            try:
                if np.broadcast_shapes(s, shape) == tuple(shape): fits.append(k)
            except ValueError:
                pass
        if not fits or self.rng.random() < 0.3: return round(float(self.rng.uniform(0.5, 1.5)), 3)
        return fits[self.rng.integers(len(fits))]

    def write(self, name):
        i = self.target(name)
        if i is None: return
        index = self.some_index(self.shapes[i]) if name == "setitem" else None
        shape = np.empty(self.shapes[i])[index].shape if index is not None else self.shapes[i]
        value = self.value_for(shape)
        if name == "detached" and self.rng.random() < 0.6: name = "iadd"
        self.steps.append((name, (i, value), index))
        self.writes += 1

    iadd = isub = imul = itruediv = setitem = detached = None

    def __repr__(self):
        first = len(self.leaves) + len(self.plain)
        lines = [f"x{k} = {'leaf' if k < len(self.leaves) else 'plain'} {self.shapes[k]}" for k in range(first)]
        n = first
        for name, operands, argument in self.steps:
            made = name not in WRITES
            words = [f"x{o}" if isinstance(o, int) else str(o) for o in operands]
            lines.append(f"{f'x{n} = ' if made else ''}{name}({', '.join(words)}; {argument})")
            n += made
        return f"Program({self.seed})\n  " + "\n  ".join(lines) + f"\n  loss over {self.weights}"


for _name in ("tanh", "exp", "square", "relu", "copy"):
    setattr(Program, _name, lambda self, name=_name: self.unary(name))
for _name in ("add", "sub", "mul", "div"):
    setattr(Program, _name, lambda self, name=_name: self.binary(name))
for _name in WRITES:
    setattr(Program, _name, lambda self, name=_name: self.write(name))


# ---- the two libraries -----------------------------------------------------------------------------------------------

class Cygrad:
    errors = (cg.InplaceError, ValueError)

    def copy(x): return x * 1.0
    def tanh(x): return cg.tanh(x)
    def exp(x): return cg.exp(x)
    def relu(x): return cg.relu(x)
    def sum(x, axes): return x.sum(axis=axes, keepdims=True)
    def transpose(x, order): return x.transpose(order)
    def reshape(x, shape): return x.reshape(shape)
    def broadcast(x, shape): return cg.broadcast_to(x, shape)
    def matmul(x, y): return cg.matmul(x, y)
    def value(x, value): return value
    def fresh(y): return y


class Torch:
    errors = RuntimeError
    copied = False                                  # some result, so that it saves other memory than the program writes

    def copy(x): return x.clone()
    def tanh(x): return torch.tanh(x)
    def exp(x): return torch.exp(x)
    def relu(x): return torch.relu(x)
    def sum(x, axes): return x.sum(axes, keepdim=True)
    def transpose(x, order): return x.permute(order)
    def reshape(x, shape): return x.reshape(shape)
    def broadcast(x, shape): return x.broadcast_to(shape)
    def matmul(x, y): return torch.matmul(x, y)

    def value(x, value):                            # cygrad reads overlapping operands first: it copies them
        shares = torch.is_tensor(value) and value.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
        return value.clone() if shares else value

    def fresh(y):                                   # PyTorch keeps the order of strides, so a reshape would copy
        if not y.is_contiguous(): Torch.copied = True
        return y.contiguous()


BACKWARD = -1


class Refusal(Exception):
    """The library refused step number args[0], or BACKWARD, with the message args[1]."""


def compute(lib, name, x, argument):
    if name == "add": return x[0] + x[1]
    if name == "sub": return x[0] - x[1]
    if name == "mul": return x[0] * x[1]
    if name == "div": return x[0] / (x[1] * x[1] + 0.5)
    if name == "exp": return lib.exp(lib.tanh(x[0]))
    if name == "square": return x[0] ** 2
    if name == "matmul": return lib.matmul(*x)
    return getattr(lib, name)(*x) if argument is None else getattr(lib, name)(*x, argument)


def write(lib, name, x, value, index):
    if name == "setitem":
        x[index] = lib.value(x, value)
        return
    if name == "detached":
        x = x.detach()
        value = value if isinstance(value, float) else value.detach()
        name = "iadd"
    value = value * value + 0.5 if name == "itruediv" else lib.value(x, value)
    if name == "iadd": x += value
    elif name == "isub": x -= value
    elif name == "imul": x *= value
    else: x /= value


def run(program, lib, leaves, plain):
    """Run all steps. Returns the loss."""
    values = [*leaves, *plain]
    for k, (name, operands, argument) in enumerate(program.steps):
        try:
            if name in WRITES:
                i, value = operands
                write(lib, name, values[i], values[value] if isinstance(value, int) else value, argument)
            elif name == "index":
                values.append(values[operands[0]][argument])
            else:
                y = compute(lib, name, [values[i] for i in operands], argument)
                values.append(y if name in VIEWS else lib.fresh(y))
        except lib.errors as e:
            raise Refusal(k, str(e)) from None
    loss = 0.0
    try:
        for i, w in program.weights: loss = loss + (values[i] * values[i] * w).sum()
    except lib.errors as e:
        raise Refusal(len(program.steps), str(e)) from None
    return loss


def gradients(program, loss, leaves, grad):
    """The gradients of the loss. One program in three also differentiates the sum of their squares."""
    first = grad(loss, leaves, create_graph=program.twice, allow_unused=True)
    if not program.twice: return first
    again = [(g * g).sum() for g in first if g is not None and g.requires_grad]
    second = grad(again, leaves, allow_unused=True) if again else [None] * len(leaves)
    return [*first, *second]


def in_cygrad(program):
    leaves = [cg.tensor(a, requires_grad=True) for a in program.leaves]
    with cg.record():
        loss = run(program, Cygrad, leaves, [cg.tensor(a) for a in program.plain])
        if not loss.requires_grad: return float(loss), []
        try:
            found = gradients(program, loss, leaves, cg.autograd.grad)
        except cg.InplaceError as e:
            raise Refusal(BACKWARD, str(e)) from None
    return float(loss), [None if g is None else g.detach().numpy() for g in found]


def in_torch(program):
    leaves = [torch.tensor(a, requires_grad=True) for a in program.leaves]
    loss = run(program, Torch, leaves, [torch.tensor(a) for a in program.plain])
    if not loss.requires_grad: return loss.item(), []
    try:
        found = gradients(program, loss, leaves, torch.autograd.grad)
    except RuntimeError as e:
        assert "modified by an inplace operation" in str(e), e
        raise Refusal(BACKWARD, str(e)) from None
    return loss.item(), [None if g is None else g.detach().numpy(force=True) for g in found]


def outcome(f, program):
    """(step, message) of a refusal, or None, and loss and gradients, or None."""
    try:
        return None, f(program)
    except Refusal as e:
        return e.args, None


def agree(ours, theirs, program):
    np.testing.assert_allclose(ours[0], theirs[0], 1e-9, 1e-10, err_msg=repr(program))
    for i, (a, b) in enumerate(zip(ours[1], theirs[1], strict=True)):
        if a is None or b is None:
            zero = b if a is None else a
            assert zero is None or not zero.any(), f"leaf {i}: {a}, PyTorch has {b}\n{program}"
            continue
        scale = max(1.0, np.abs(b).max(initial=0))
        np.testing.assert_allclose(a, b, 1e-9, 1e-10 * scale, err_msg=f"leaf {i} of {program}")


def judge(seed):
    """Run program `seed` in both libraries. Returns the outcome in a few words. Raises AssertionError if it is
    wrong."""
    program = Program(seed)
    refused, ours = outcome(in_cygrad, program)
    Torch.copied = False
    theirs_refused, theirs = outcome(in_torch, program)
    if refused is None and theirs_refused is None:
        agree(ours, theirs, program)
        return "the same" if program.writes else "the same, without writes"
    if theirs_refused and theirs_refused[0] != BACKWARD:
        # (it treats a view of a plain tensor as a leaf after a write to a view of that)
        name, (target, _), _ = program.steps[theirs_refused[0]]
        if name in WRITES and not program.of_leaf[target] and "a leaf Variable" in theirs_refused[1]:
            return "PyTorch alone refuses a write"
    if refused is None:
        with torch.autograd.graph.saved_tensors_hooks(torch.clone, lambda t: t):
            agree(ours, in_torch(program), program)
        return "right where PyTorch raises"
    if "repeats its elements" in refused[1] and refused[0] != (theirs_refused or refused)[0]:
        return "cygrad alone refuses a write"       # (PyTorch looks at the part that is written)
    if theirs_refused:
        assert refused[0] == theirs_refused[0], (refused, theirs_refused, program)
        return "both raise in backward" if refused[0] == BACKWARD else "both refuse a write"
    if refused[0] == BACKWARD:
        assert refused[1].startswith("div saved") or Torch.copied, (refused, program)
        return "cygrad alone raises in backward"
    assert "repeats its elements" in refused[1], (refused, program)     # (PyTorch looks at the part that is written)
    return "cygrad alone refuses a write"


def test_random_programs():
    """div saves its output where PyTorch saves an input, so a write to the output is the only one that cygrad alone
    refuses."""
    outcomes = Counter(judge(seed) for seed in range(COUNT))
    print(dict(outcomes))
    if COUNT >= 600:
        assert outcomes["the same"] > 0.5 * COUNT and outcomes["both raise in backward"] > 0.05 * COUNT, outcomes
        assert outcomes["both refuse a write"] and outcomes["right where PyTorch raises"], outcomes
        assert outcomes["cygrad alone raises in backward"] + outcomes["cygrad alone refuses a write"] < 0.05 * COUNT


# ---- never silently wrong (M10) --------------------------------------------------------------------------------------

def written_after_it_was_kept(lib, tensor, scope):
    """The gradient of h * h at 4, which is 8. In between, 200 is added to h; PyTorch then computes 408."""
    x = tensor([4.0])
    with scope:
        h = x * 1.0
        y = h * h
        h += 200
    y.backward(lib.ones_like(y))
    return x.grad.tolist()


@pytest.mark.parametrize("ours, theirs", [
    (lambda: cg.autograd.saved_tensors_hooks(lambda t: t, lambda t: t),
     lambda: torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t)),
    (lambda: cg.autograd.saved_tensors_hooks(lambda t: t.numpy().copy(), cg.tensor),
     torch.autograd.graph.save_on_cpu),
], ids=["identity-hooks", "kept-elsewhere"])
def test_hooks_on_saved_tensors_do_not_switch_the_check_off(ours, theirs):
    """Two programs for which PyTorch is silently wrong with hooks. Without hooks it raises. cygrad raises in both
    cases."""
    def variable(data): return torch.tensor(data, dtype=torch.float64, requires_grad=True)
    assert written_after_it_was_kept(torch, variable, theirs()) == [408.0]
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        written_after_it_was_kept(torch, variable, nullcontext())
    for scope in (nullcontext(), ours()):
        with pytest.raises(cg.InplaceError, match="mul saved a tensor .* at version 0, but .* is at version 1"):
            with cg.record():
                written_after_it_was_kept(cg, lambda data: cg.tensor(data, "float64", True), scope)


if __name__ == "__main__":
    import sys
    for text, n in sorted(Counter(judge(s) for s in range(*map(int, sys.argv[1:3]))).items()): print(n, text)
