"""A library of shapes: it records what a net executes as calls of liveness.py, computed from shapes alone.

Backward runs the operations in reverse order. Each of its calls reads exactly what the formula needs. A view is not a
call, and neither is its gradient, unless the view shows a part: then a call writes into zeros, or adds to the gradient
that other parts have made. A product also adds to an existing gradient. Other gradients are added over one of them. Of
the output of a relu only the signs are needed. They are packed, one bit each, after the last call of the forward pass
that reads the output, unless another formula reads it."""

import math

import numpy as np

from benchmarks.memory.liveness import FLOAT, LABEL, Step

OUT = None


class Value:
    """`array`: only its shape and strides matter, not its elements. `place`: the name of the memory of the value.
    `wanted`: whether it has a gradient."""

    def __init__(self, on, array, place, wanted):
        self.on, self.array, self.place, self.wanted = on, array, place, wanted

    shape = property(lambda self: self.array.shape)
    nbytes = property(lambda self: FLOAT * self.array.size)

    def __add__(self, other): return self.on.through(self.shape, self, other)

    def __sub__(self, other): return self.on.through(self.shape, self, other)

    def __mul__(self, other):
        return self.on.each([self, other], [other], [self]) if isinstance(other, Value) else self.on.each([self], [])

    def __matmul__(self, other):
        many = np.broadcast_shapes(self.shape[:-2], other.shape[:-2])
        return self.on.product((*many, self.shape[-2], other.shape[-1]), self, other)

    def __getitem__(self, index): return self.on.part(self, self.array[index])

    def __iter__(self): return (self[i] for i in range(self.shape[0]))

    def permute(self, axes): return self.on.view(self, self.array.transpose(axes))

    def reshape(self, shape):
        y = self.array.reshape(shape)
        return self.on.view(self, y) if np.may_share_memory(y, self.array) else self.on.through(y.shape, self)


class Shapes:
    """The functions that nets.py needs."""

    def __init__(self):
        self.calls, self.nodes, self.gradients, self.signs, self.values = [], [], {}, [], 0

    def program(self, net):
        """The calls of a training step."""
        parameters = [self.value(s, "data", True) for s in net.parameters]
        y = net.f(self, parameters, self.value(net.batch, "data", False))
        loss = self.mean(self.square(y - self.value(net.output, "data", False)))
        forward = len(self.calls)
        self.give(loss, self.call(loss.nbytes, loss.place))
        for node, backward in reversed(self.nodes):
            g = self.gradients.pop(node, None)
            if g is not None: backward(g)
        self.call(0, loss.place, *[self.gradients[p] for p in parameters])
        for y, name in self.signs: self.pack(y, name, forward)
        return self.calls

    # ---- notes

    def value(self, shape, place, wanted=True): return Value(self, np.empty(shape, np.float32), place, wanted)

    def call(self, nbytes, *reads, over=False):
        """Record a call. Returns the name of the value that it makes."""
        self.values += 1
        self.calls.append(Step(reads, f"v{self.values}", nbytes, over))
        return f"v{self.values}"

    def made(self, shape, inputs, backward):
        """The result of a forward call. backward(g) passes the gradients to the inputs."""
        place = self.call(FLOAT * math.prod(shape), *[x.place for x in inputs])
        return self.recorded(self.value(shape, place, any(x.wanted for x in inputs)), backward)

    def recorded(self, y, backward):
        if y.wanted: self.nodes.append((y, backward))
        return y

    def give(self, x, g):
        """Receive a gradient of x."""
        if not x.wanted: return
        so_far = self.gradients.get(x)
        self.gradients[x] = g if so_far is None else self.call(x.nbytes, so_far, g, over=True)

    def give_sum(self, x, *reads):
        """A call that makes a gradient of x, or adds it to an existing one."""
        so_far = self.gradients.get(x)
        self.gradients[x] = (self.call(x.nbytes, *reads) if so_far is None
                             else self.call(x.nbytes, *reads, so_far, over=True))

    def pack(self, y, name, forward):
        """Let the gradient of a relu read y, if another backward call reads y anyway, or else the signs of y."""
        readers = [i for i, call in enumerate(self.calls) if y.place in call.reads]
        others = max(readers) >= forward
        for i, call in enumerate(self.calls):
            if name not in call.reads or not others: continue
            self.calls[i] = call._replace(reads=tuple(y.place if r == name else r for r in call.reads))
        if not others: self.calls.insert(max(readers) + 1, Step((y.place,), name, -(-y.array.size // 8)))

    # ---- operations

    def through(self, shape, *xs):
        """An operation that passes gradients through unchanged."""
        return self.made(shape, xs, lambda g: [self.give(x, g) for x in xs])

    def each(self, xs, *needs):
        """An elementwise operation, with the values that the gradient of each input reads (OUT: the output)."""
        def backward(g):
            for x, read in zip(xs, needs, strict=True):
                if x.wanted: self.give(x, self.call(x.nbytes, g, *[(v or y).place for v in read], over=True))

        y = self.made(xs[0].shape, xs, backward)
        return y                                    # (which `backward` refers to)

    def tanh(self, x): return self.each([x], [OUT])

    sigmoid = softmax = tanh

    def gelu(self, x): return self.each([x], [x])

    square = gelu

    def relu(self, x):
        signs = Value(self, x.array, f"signs {len(self.signs)}", False)
        y = self.each([x], [signs])
        self.signs.append((y, signs.place))
        return y

    def view(self, x, array):
        return self.recorded(Value(self, array, x.place, x.wanted), lambda g: self.give(x, g))

    def part(self, x, array):
        return self.recorded(Value(self, array, x.place, x.wanted), lambda g: self.give_sum(x, g))

    def split(self, x, n, axis): return [self.part(x, a) for a in np.split(x.array, n, axis)]

    def stack(self, xs, axis): return self.through(np.stack([x.array for x in xs], axis).shape, *xs)

    def concat(self, xs, axis): return self.through(np.concatenate([x.array for x in xs], axis).shape, *xs)

    def pad(self, x, widths): return self.through(np.pad(x.array, widths).shape, x)

    def topk(self, x, k):
        """Backward reads the positions, which are a result too."""
        shape = (*x.shape[:-1], k)
        places = self.value(shape, self.call(LABEL * math.prod(shape), x.place), False)
        return self.made(shape, (x, places), lambda g: self.give_sum(x, g, places.place)), places

    def product(self, shape, x, y):
        def backward(g):
            for z, other in ((y, x), (x, y)):
                if z.wanted: self.give_sum(z, g, other.place)

        return self.made(shape, (x, y), backward)

    def linear(self, x, w): return self.product((*x.shape[:-1], w.shape[0]), x, w)

    def layer_norm(self, x, w, b):
        rates = self.call(FLOAT * math.prod(x.shape[:-1]), x.place)

        def backward(g):
            for p, read in ((w, (x.place, rates)), (b, ())): self.give_sum(p, g, *read)
            if x.wanted: self.give(x, self.call(x.nbytes, g, x.place, w.place, rates, over=True))

        return self.made(x.shape, (x, w, b), backward)

    def mean(self, x): return self.through((), x)               # (one number, repeated)
