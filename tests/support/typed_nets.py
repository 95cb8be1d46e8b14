"""Random nets that run: operators on blobs of known shapes, and the same operators in eager code."""

import random

import numpy as np

import cygrad as cg
from cygrad.graph import Net
from cygrad.ops.calls import call

UNARY = ["relu", "tanh", "sigmoid", "sin", "cos", "exp", "square", "neg", "softplus", "gelu", "silu", "abs", "atan"]
BINARY = ["add", "sub", "mul", "maximum", "hypot"]


class Maker:
    """Adds operators at random. `shapes` are those of all blobs, `sizes` those of the inputs with their dtype."""

    def __init__(self, seed):
        self.dice = random.Random(seed)
        self.net, self.shapes, self.sizes = Net(f"random {seed}"), {}, {}
        self.dtype = self.dice.choice(["float32", "float64"])
        for _ in range(self.dice.randint(1, 3)): self.input(self.dice.choice([(4, 6), (6,), (1, 6), (4, 1), ()]))

    def input(self, shape):
        name = f"x{len(self.sizes)}"
        self.shapes[name], self.sizes[name] = shape, (shape, self.dtype)
        return name

    def blob(self):
        """A blob, more often a late one."""
        names = [*self.shapes]
        return names[max(self.dice.randrange(len(names)), self.dice.randrange(len(names)))]

    def add(self, type, inputs, made, **arguments):
        self.shapes[self.net.add_operator(type, inputs, **arguments)] = made

    def step(self):
        x = self.blob()
        shape, kind = self.shapes[x], self.dice.randrange(9)
        if kind <= 1: self.add(self.dice.choice(UNARY), x, shape)
        elif kind <= 3: self.binary(x)
        elif kind == 4 and shape:
            axis = self.dice.randrange(len(shape))
            self.add(self.dice.choice(["sum", "mean"]), x, tuple(1 if i == axis else n for i, n in enumerate(shape)),
                     axis=axis, keepdims=True)
        elif kind == 5 and shape: self.add("softmax", x, shape, axis=-1)
        elif kind == 6 and shape:
            n = self.dice.choice([3, 6])
            self.add("linear", [x, self.input((n, shape[-1]))], (*shape[:-1], n))
        elif kind == 7 and shape: self.add("concat", [x, x], (*shape[:-1], 2 * shape[-1]), axis=-1)
        elif kind == 8 and len(shape) == 2: self.add("transpose", x, shape[::-1])
        else: self.add("reshape", x, (int(np.prod(shape)),), shape=(-1,))

    def binary(self, x):
        """An operator on x and another blob or a number."""
        y = self.blob() if self.dice.random() < 0.8 else None
        try: shape = np.broadcast_shapes(self.shapes[x], self.shapes[y] if y else ())
        except ValueError: y, shape = None, self.shapes[x]
        self.add(self.dice.choice(BINARY), [x, self.dice.choice([0.5, 2, -1.5]) if y is None else y], shape)


def typed_net(seed):
    """(net, {input: (shape, dtype)}); the net's loss is "loss"."""
    maker = Maker(seed)
    for _ in range(maker.dice.randint(1, 14)): maker.step()
    read = [name for name in maker.shapes if name in maker.net]
    total = maker.net.mean(read[-1])
    for name in read[-3:-1]: total = maker.net.add([total, maker.net.mean(name)])
    maker.net.mul([total, 3.0], "loss")
    return maker.net, {name: size for name, size in maker.sizes.items() if name in maker.net.inputs}


def arrays_for(sizes, seed=0):
    """Numbers for inputs."""
    r = np.random.default_rng(seed)
    return {name: r.uniform(-1, 1, shape).astype(dtype) for name, (shape, dtype) in sizes.items()}


def eager_run(net, arrays, heads):
    """The values of all blobs and the gradients of the inputs, by eager code for the operators of a net without
    gradients. The sum of the blobs `heads` is differentiated."""
    values = {name: cg.tensor(a) for name, a in arrays.items()}
    for x in values.values():
        if x.dtype.kind == "f": x.requires_grad_()
    variables = {name: x for name, x in values.items() if x.requires_grad}
    values |= net.constants
    with cg.record(train_mode=bool(net.training)):
        for o in net.operators:
            found = call(o.type, [None if n is None else values[n] for n in o.inputs], dict(o.arguments))
            values |= zip(o.outputs, found if isinstance(found, tuple) else (found,), strict=True)
    gradients = cg.autograd.grad([values[y] for y in heads], [*variables.values()], allow_unused=True)
    found = {name: y.detach().numpy() for name, y in values.items() if isinstance(y, cg.Tensor)}
    return found, {name: None if g is None else g.numpy() for name, g in zip(variables, gradients, strict=True)}
