"""Nets with If and While for tests, and the same in eager code."""

import numpy as np
from rows import same_bits

import cygrad as cg
from cygrad.graph import Net, Workspace


def small(name, inputs, *operators, outputs):
    """A net of (type, inputs, output) with these inputs and outputs."""
    net = Net(name)
    for kind, reads, *more in operators: net.add_operator(kind, reads, more[0], **(more[1] if len(more) > 1 else {}))
    net.inputs, net.outputs = inputs, outputs
    return net


def fed(**blobs):
    workspace = Workspace()
    for name, x in blobs.items(): workspace.feed(name, x)
    return workspace


def values(net, *names, **blobs):
    """The values of blobs after a run, as arrays: of a program, run twice, of its two parts, and of eager code, which
    have the same bits."""
    planned, direct, parts = (fed(**blobs) for _ in range(3))
    planned.run(net, keep=names)
    found = [planned.fetch(name).numpy() for name in names]
    planned.run(net, keep=names)
    direct.run(net, before=lambda operator, values: None, keep=names)
    for name, a in zip(names, found, strict=True):
        same_bits(planned.fetch(name).numpy(), a)
        same_bits(direct.fetch(name).numpy(), a)
    if any(o.is_gradient for o in net.operators):
        parts.forward(net)
        for _ in range(2):
            parts.backward(net)
            for name, a in zip(names, found, strict=True):
                if name in parts: same_bits(parts.fetch(name).numpy(), a)
    return found


def differences(f, arrays, k, eps=1e-6):
    """The gradient of the number f(*arrays) for array k, by central differences."""
    found = np.zeros_like(arrays[k])
    for at in np.ndindex(*arrays[k].shape):
        moved = []
        for sign in (1, -1):
            other = [a.copy() for a in arrays]
            other[k][at] += sign * eps
            moved.append(f(*other))
        found[at] = (moved[0] - moved[1]) / (2 * eps)
    return found


def choosing():
    """x = exp(a); z = 2 x w where c, else x x; loss = sum(z)"""
    net = Net("choosing")
    net.exp("a", "x")
    net.add_operator(
        "If", ["c", "x", "w"], "z",
        then=small("scaled", ["x", "w"], ("mul", ["x", "w"], "y"), ("mul", ["y", 2.0], "z"), outputs=["z"]),
        otherwise=small("squared", ["x", "w"], ("mul", ["x", "x"], "y"), outputs=["y"]))
    net.sum("z", "loss")
    return net


def chosen(c, a, w):
    """The same in eager code: the loss."""
    x = cg.exp(a)
    return ((x * w) * 2.0 if c else x * x).sum()


def looping(turns=8, type="sum"):
    """y = (y + x / y) / 2 for n turns, which begins with y = a; then a sum. x = exp(b)"""
    net = Net("looping")
    net.exp("b", "x")
    names = ["y", "i", "x", "n"]
    net.add_operator(
        "While", ["a", 0, "x", "n"], ["y", "i"], turns=turns,
        condition=small("goes on", names, ("less", ["i", "n"], "goes"), outputs=["goes"]),
        body=small("turn", names, ("div", ["x", "y"], "q"), ("add", ["y", "q"], "s"), ("mul", ["s", 0.5], "next"),
                   ("add", ["i", 1], "more"), outputs=["next", "more"]))
    net.add_operator(type, "y", "loss")
    net.outputs = ["loss", "y", "i"]
    return net


def looped(n, a, b):
    """The same in eager code: the loss."""
    x, y = cg.exp(b), a
    for _ in range(n): y = (y + x / y) * 0.5
    return y.sum()


def eager_gradients(f, *arrays):
    """The value of f and its gradients."""
    xs = [cg.tensor(a).requires_grad_() for a in arrays]
    with cg.record(): loss = f(*xs)
    found = cg.autograd.grad(loss, xs, allow_unused=True)
    return loss.numpy(), [np.zeros_like(a) if g is None else g.numpy() for a, g in zip(arrays, found, strict=True)]


# ---- random programs -------------------------------------------------------------------------------------------------

UNARY, BINARY = ("sin", "tanh", "exp", "neg", "sigmoid", "permute"), ("add", "mul", "sub", "maximum")
TURNED = {"permute": {"axes": (1, 0)}}      # (so that inputs of nets are not dense)
TURNS = 4


class Block:
    """A random program of three square matrices, whose result is the last value: operators, and If and While with
    blocks."""

    def __init__(self, r, depth=0):
        self.steps = []
        for n in range(3, 3 + int(r.integers(1, 5))):
            kind = r.choice(["unary", "binary", "if", "while"] if depth < 3 else ["unary", "binary"],
                            p=[0.2, 0.3, 0.25, 0.25] if depth < 3 else [0.4, 0.6])
            reads = [int(k) for k in r.integers(0, n, 3)]
            if kind == "unary": self.steps.append((kind, str(r.choice(UNARY)), reads[:1]))
            elif kind == "binary": self.steps.append((kind, str(r.choice(BINARY)), reads[:2]))
            elif kind == "if":
                self.steps.append((kind, float(r.normal()), reads, Block(r, depth + 1), Block(r, depth + 1)))
            else: self.steps.append((kind, (int(r.integers(0, TURNS + 1)), float(r.normal() + 1)), reads,
                                     Block(r, depth + 1)))

    def run(self, *values):
        """In eager code, written out."""
        values = [*values]
        for kind, what, reads, *blocks in self.steps:
            xs = [values[k] for k in reads]
            if kind in ("unary", "binary"): y = xs[0].T if what in TURNED else getattr(cg, what)(*xs)
            elif kind == "if": y = blocks[0 if xs[0].detach().mean().item() > what else 1].run(*xs)
            else:
                y, i = xs[0], 0
                while i < what[0] and y.detach().mean().item() < what[1]:
                    y, i = blocks[0].run(y, *xs[1:]), i + 1
            values.append(y)
        return values[-1]

    def net(self, name="block", counter=False):
        """As a net. With a counter, that is its second input, and its second output one more."""
        net, names = Net(name), ["a", "b", "c"]
        net.inputs = ["a", "i", "b", "c"] if counter else names
        for k, (kind, what, reads, *blocks) in enumerate(self.steps):
            xs, y = [names[n] for n in reads], f"y{k}"
            if kind in ("unary", "binary"): net.add_operator(what, xs, y, **TURNED.get(what, {}))
            elif kind == "if":
                net.mean(xs[0], f"m{k}")
                net.greater([f"m{k}", what], f"c{k}")
                net.add_operator("If", [f"c{k}", *xs], y, then=blocks[0].net("then"), otherwise=blocks[1].net("other"))
            else:
                goes = small("goes", ["a", "i", "b", "c"], ("less", ["i", what[0]], "few"), ("mean", "a", "m"),
                             ("less", ["m", what[1]], "low"), ("logical_and", ["few", "low"], "goes"), outputs="goes")
                net.add_operator("While", [xs[0], 0, *xs[1:]], [y, f"i{k}"], condition=goes, turns=TURNS,
                                 body=blocks[0].net("turn", True))
            names.append(y)
        if counter: net.add(["i", 1], "j")
        net.outputs = [names[-1], "j"] if counter else [names[-1]]
        return net
