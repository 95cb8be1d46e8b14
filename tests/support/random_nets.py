"""Nets for tests: random ones, with everything that a definition can have, and two of known form."""

import math
import random

import numpy as np

from cygrad.graph import Net, Operator
from cygrad.ops.calls import arguments_taken, fits, operands
from cygrad.ops.table import ROWS

NAMES = ["x", "w/0:b", "Größe", "a b", "f(x)=1", "<script>", "\"q\"", "'", "&amp;", "a\\b", "]]>", "名前", "e\u0301",
         "None"]
FLOATS = [0.0, -0.0, 1.0, math.inf, -math.inf, math.nan, 5e-324, 1.7976931348623157e308]
STRINGS = ["", "mean", "\n\t\0", "\"", "</svg>", "\U0001f600", "\u202e"]


def value(r, depth=0):
    """A random argument."""
    kind = r.randrange(9 if depth < 3 else 8)
    if kind == 0: return None
    if kind == 1: return r.random() < 0.5
    if kind == 2: return r.choice([0, 1, -1, 7, -1 << 63, (1 << 64) - 1, r.getrandbits(40)])
    if kind == 3: return r.choice([*FLOATS, r.random()])
    if kind == 4: return r.choice(STRINGS)
    if kind == 5: return ...
    if kind in (6, 7): return slice(*(r.choice([None, 0, -1, 1 << 40]) for _ in range(3)))
    return tuple(value(r, depth + 1) for _ in range(r.randrange(4)))


def taken(r, kind):
    """A number of inputs that a row of the table takes, and the names of arguments: those that it needs and others."""
    names = operands(kind)
    needed, others = arguments_taken(kind)
    n = r.choice([n for n in range(10) if fits(names, n)])
    return n, [*needed, *(name for name in others or () if r.random() < 0.3)]


def random_net(seed, operators=12):
    """A net of so many operators at random."""
    r = random.Random(seed)
    net = Net(r.choice(NAMES))
    blobs = r.sample(NAMES, 4)
    for _ in range(operators):
        kind = r.choice([*ROWS, "unknown.type", "a b", "<b>"])
        n, names = r.randrange(4), r.choices(["axis", "p", "größe", "type_"], k=r.randrange(3))
        if kind in ROWS: n, names = taken(r, kind)
        reads = [r.choice([*blobs[-8:], r.choice([2, 2.0, True, math.nan, -0.0])]) for _ in range(n)]
        if kind not in ROWS and r.random() < 0.3: reads.append(None)
        arguments = {name: value(r) for name in names}
        written = [b for b in blobs if b not in net.constants]
        outputs = r.choice([1, 1, 2, 0, r.sample(written, 1), f"out {r.randrange(9)}"])
        if r.random() < 0.2:
            made = net.add_operator(Operator(kind, [b for b in reads if isinstance(b, str | None)], ["d " + kind],
                                             arguments, r.choice(["", "a label"]), True))
        else:
            made = net.add_operator(kind, reads, outputs, **arguments)
        blobs += [made] if isinstance(made, str) else made
    for name in ([b for b in net.inputs if not net.versions(b)] + [None])[:2]:
        array = r.choice([np.zeros((2, 3), np.float32), np.array(3), np.zeros((0, 2)), np.array([True, False])])
        net.add_constant(array, name)
    net.add_constant(r.choice([1, 1.0, True, math.inf]))
    if r.random() < 0.5: net.outputs = r.sample(net.blobs, 2)
    net.training = r.choice([None, True, False])
    for name in net.inputs: net.shapes[name] = r.choice([((), "float64"), ((3, 0), "int8")])
    return net


def mlp(layers=5):
    """An MLP and operators like those of its gradients: 6 for each layer."""
    net, x, saved = Net("mlp"), "x", []
    for k in range(layers):
        h = net.linear([x, f"w{k}", f"b{k}"], f"h{k}")
        saved.append((x, h))
        x = net.relu(h, f"a{k}")
    loss = net.cross_entropy([x, "labels"], "loss", label_smoothing=0.1)

    def gradient(kind, inputs, output, **arguments):
        return net.add_operator(Operator(kind, inputs, [output], arguments, is_gradient=True))

    d = gradient("cross_entropy_gradient", [x, "labels", loss], f"{x}_grad")
    for k in range(layers - 1, -1, -1):
        x, h = saved[k]
        d = gradient("relu_gradient", [f"a{k}", d], f"{h}_grad")
        gradient("matmul", [x, d], f"w{k}_grad")
        gradient("sum", [d], f"b{k}_grad", axis=0)
        if k: d = gradient("matmul", [d, f"w{k}"], f"a{k - 1}_grad")
    return net


def chain(length):
    """A chain of operators, some of which have a weight or write x again."""
    net, x = Net("chain"), "x"
    for k in range(length):
        x = net.add_operator("relu" if k % 3 else "conv2d", x if k % 3 else [x, f"w{k}"], "x" if k % 7 == 3 else 1)
    return net


def same(a, b):
    """Whether two nets are equal in all that a file holds."""
    def constants(net):
        return [(name, repr(v) if isinstance(v, bool | int | float) else (v.dtype, v.tolist()))
                for name, v in net.constants.items()]

    return (a.name == b.name and a.operators == b.operators and a.inputs == b.inputs and a.outputs == b.outputs
            and a.blobs == b.blobs and constants(a) == constants(b) and a.training is b.training
            and a.text() == b.text()
            and {k: v for k, v in a.shapes.items() if k in a} == b.shapes)
