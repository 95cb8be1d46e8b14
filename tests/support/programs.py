"""Random programs over the rows of the table, as data, so the same program runs in cygrad and in PyTorch.

A program is a few variables and a list of steps (row, operands by number, arguments). One third are differentiated
twice (create_graph), one third are interrupted (an exception in forward, or a failed allocation), and one third write
in place."""

import operator

import numpy as np

import cygrad as cg
from cygrad.core.store import buffer as core
from cygrad.ops import ROWS

KINDS = ("create_graph", "exception", "inplace")
SHAPES = [(), (3,), (2, 3), (3, 3), (4, 1), (1, 3), (2, 2, 3), (0, 3), (5,)]
MOST = 96                                           # elements of one value


class Boom(Exception):
    """Raised during a forward pass."""


class Refused(Exception):
    """cygrad refused a write, because a gradient would be lost or wrong, or the target repeats elements."""


class Program:
    """Program number `seed`: `kind`, `variables` (arrays), `constants`, `steps`, `rows` (the rows that it uses)."""

    def __init__(self, seed, least=5):
        self.seed = seed
        self.kind = KINDS[seed % 3]
        self.rng = rng = np.random.default_rng(seed)
        shapes = [(3, 3)] + [SHAPES[i] for i in rng.integers(0, len(SHAPES), rng.integers(1, 4))]
        self.variables = [rng.uniform(-1.5, 1.5, s) for s in shapes]
        self.constants = [rng.uniform(-1.5, 1.5, SHAPES[i]) for i in rng.integers(0, len(SHAPES), 1)]
        self.shapes = [a.shape for a in self.variables + self.constants]
        self.steps, self.rows = [], set()
        self.single = False                         # a value goes through float32
        names = sorted(MAKERS)
        wanted = least + int(rng.integers(0, 6))
        while len(self.steps) < wanted or len(self.rows) < least:
            name = names[rng.integers(len(names))]
            step = MAKERS[name](self, *self.pick())
            if step is None or np.prod(step[-1]) > MOST:
                continue
            *step, shape = step
            self.steps.append((name, *step))
            self.rows.add(name)
            self.shapes.append(shape)
            self.single |= name == "astype"
        if self.kind == "inplace":
            for _ in range(rng.integers(1, 4)):
                self.add_inplace()
        self.grad_reqs = [("write", "add")[i] for i in rng.integers(0, 2, len(self.variables))]

    def pick(self):
        """The numbers and shapes of two random values, preferably late ones."""
        n = len(self.shapes)
        i, j = (int(n * (1 - r * r)) for r in self.rng.uniform(0, 0.999, 2))
        i, j = min(i, n - 1), min(j, n - 1)
        return i, self.shapes[i], j, self.shapes[j]

    def add_inplace(self):
        """Insert a write before a random step: of a number or a value into an existing value."""
        at = int(self.rng.integers(1, len(self.steps) + 1))
        first = len(self.variables) + len(self.constants)
        made = sum(s[0] not in WRITES for s in self.steps[:at])
        target = first + int(self.rng.integers(made)) if made else first - 1
        shape = self.shapes[target]
        name = WRITES[self.rng.integers(len(WRITES))]
        fits = [k for k in range(first + made) if broadcast(self.shapes[k], shape) == shape]
        value = fits[self.rng.integers(len(fits))] if self.rng.random() < 0.7 else 0.75
        index = tuple(slice(int(self.rng.integers(0, 2)), None) for _ in shape)
        if name == "setitem" and value != 0.75:
            fits = [k for k in range(first + made) if self.shapes[k] == ()]
            value = fits[-1] if fits else 0.75
        self.steps.insert(at, (name, (target, value), index))
        self.rows.add(name)

    def __repr__(self):
        return f"Program({self.seed}): {self.kind}, variables {[a.shape for a in self.variables]}, {self.steps}"


def broadcast(x, y):
    try:
        return np.broadcast_shapes(x, y)
    except ValueError:
        return None


# ---- the kinds of steps: each function returns (operands, arguments, shape of the result) or None --------------------

def same(p, i, x, j, y):
    return (i,), None, x


def pair(p, i, x, j, y):
    shape = broadcast(x, y)
    return None if shape is None else ((i, j), None, shape)


def power(p, i, x, j, y):
    return (i,), (2, 3, 1, 0.5, -1.5)[p.rng.integers(5)], x


def reduction(p, i, x, j, y):
    axes = [d for d in range(len(x)) if p.rng.random() < 0.5]
    keepdims = bool(p.rng.integers(2))
    if not x or not axes or any(x[d] == 0 for d in axes):
        return None
    shape = [1 if d in axes else n for d, n in enumerate(x) if keepdims or d not in axes]
    return (i,), (tuple(axes), keepdims), tuple(shape)


def reshaped(p, i, x, j, y):
    shape = ((int(np.prod(x)),), x[::-1], (1, *x))[p.rng.integers(3)]
    return (i,), shape, shape


def transposed(p, i, x, j, y):
    axes = tuple(int(a) for a in p.rng.permutation(len(x)))
    return None if len(x) < 2 else ((i,), axes, tuple(x[a] for a in axes))


def repeated(p, i, x, j, y):                        # (a write to it is refused, because its elements repeat)
    shape = (2, *(3 if n == 1 else n for n in x))
    return (i,), shape, shape


def indexed(p, i, x, j, y):
    if not x or 0 in x:
        return None
    index = []
    for n in x[:p.rng.integers(1, len(x) + 1)]:
        start = int(p.rng.integers(n))
        index.append(start if p.rng.random() < 0.3 else slice(start, None, int(p.rng.integers(1, 3))))
    index = tuple(index)
    if p.rng.random() < 0.3:
        index = (None, *index)
    return (i,), index, np.empty(x)[index].shape


def put(p, i, x, j, y):
    shape = tuple(2 * n + 1 for n in x)
    return (i,), (shape, tuple((1, 2, n) for n in x)), shape


def product(p, i, x, j, y):
    if not x or not y or len(x) > 3 or len(y) > 3 or x[-1] != y[-2 if len(y) > 1 else 0] or 0 in x + y:
        return None
    try:
        return (i, j), None, np.matmul(np.zeros(x), np.zeros(y)).shape
    except ValueError:
        return None


def affine(p, i, x, j, y):
    if not x or len(y) != 2 or x[-1] != y[1]:
        return None
    biases = [k for k, s in enumerate(p.shapes) if s == (y[0],)]
    operands = (i, j, biases[0]) if biases and p.rng.random() < 0.7 else (i, j)
    return operands, None, (*x[:-1], y[0])


def softmax(p, i, x, j, y):
    if not x or 0 in x:
        return None
    # (along another axis the result is transposed, and the libraries differ in whether a reshape of it is a view,
    # which a write would show)
    return (i,), len(x) - 1 if p.kind == "inplace" else int(p.rng.integers(len(x))), x


def entropy(p, i, x, j, y):
    if len(x) != 2 or 0 in x:
        return None
    reduction = ("mean", "sum", "none")[p.rng.integers(3)]
    return (i,), (p.rng.integers(0, x[1], x[0]), reduction), (x[0],) if reduction == "none" else ()


MAKERS = dict(
    add=pair, sub=pair, mul=pair, div=pair, neg=same, pow=power, exp=same, log=same, tanh=same, relu=same, less=pair,
    greater_equal=pair, sum=reduction, mean=reduction, reshape=reshaped, transpose=transposed, broadcast_to=repeated,
    getitem=indexed, put_slice=put, astype=same, matmul=product, linear=affine, log_softmax=softmax,
    cross_entropy=entropy, abs=same, square=same, sqrt=same, sin=same, sigmoid=same, softplus=same, gelu=same,
    silu=same, power=pair, maximum=pair, minimum=pair, where=pair, clip=same,
)
PLAIN = ("add", "sub", "neg", "tanh", "relu", "abs", "sin", "sigmoid", "maximum", "minimum")
WRITES = ("iadd", "isub", "imul", "itruediv", "setitem")
IN_PLACE = {name: getattr(operator, name) for name in WRITES[:4]}
assert set(MAKERS) <= set(ROWS)


def write(name, x, value, index):
    if name == "setitem":
        x[index] = value
    else:
        if name == "itruediv":
            value = value * value + 0.5
        assert IN_PLACE[name](x, value) is x


def in_cygrad(name, x, arguments):
    """One step on tensors. Products are scaled down, and arguments stay where the function is smooth."""
    f = ROWS[name].function
    if name in PLAIN or name in ("softplus", "gelu", "silu"): return f(*x)
    if name in ("mul", "matmul", "linear"): return f(*x) * 0.4
    if name == "div": return f(x[0], x[1] * x[1] + 0.5)
    if name == "pow": return f(cg.tanh(x[0]) + 1.5, arguments)
    if name == "power": return f(cg.sigmoid(x[0]) + 0.5, cg.tanh(x[1]))
    if name == "square": return f(x[0]) * 0.4
    if name == "sqrt": return f(x[0] * x[0] + 0.5)
    if name == "where": return f(x[0] < x[1], *x)
    if name == "clip": return f(x[0], -0.5, 1.0)
    if name == "exp": return f(cg.tanh(x[0]))
    if name == "log": return f(x[0] * x[0] + 0.5)
    if name in ("less", "greater_equal"): return x[0] * f(*x).astype("float64")
    if name in ("sum", "mean"): return f(x[0], *arguments)
    if name == "put_slice": return f(x[0], *arguments)
    if name == "cross_entropy": return f(x[0], arguments[0], reduction=arguments[1])
    if name == "astype": return f(f(x[0], "float32"), "float64")
    return f(x[0], arguments)


def in_torch(name, x, arguments):
    y = torch_step(name, x, arguments)
    return y if name in ("reshape", "transpose", "broadcast_to", "getitem") else y.contiguous()


def torch_step(name, x, arguments):
    import torch
    from torch.nn import functional as F
    t = x[0]
    if name in PLAIN: return getattr(torch, name)(*x)
    if name in ("softplus", "gelu", "silu"): return getattr(F, name)(t)
    if name == "matmul": return torch.matmul(*x) * 0.4
    if name == "linear": return F.linear(*x) * 0.4
    if name == "mul": return t * x[1] * 0.4
    if name == "div": return t / (x[1] * x[1] + 0.5)
    if name == "pow": return (torch.tanh(t) + 1.5) ** arguments
    if name == "power": return (torch.sigmoid(t) + 0.5) ** torch.tanh(x[1])
    if name == "square": return t * t * 0.4
    if name == "sqrt": return torch.sqrt(t * t + 0.5)
    if name == "where": return torch.where(t < x[1], *x)
    if name == "clip": return torch.clamp(t, -0.5, 1.0)
    if name == "exp": return torch.exp(torch.tanh(t))
    if name == "log": return torch.log(t * t + 0.5)
    if name == "less": return t * (t < x[1])
    if name == "greater_equal": return t * (t >= x[1])
    if name in ("sum", "mean"): return getattr(t, name)(arguments[0], keepdim=arguments[1])
    if name == "reshape": return t.reshape(arguments)
    if name == "transpose": return t.permute(arguments)
    if name == "broadcast_to": return t.broadcast_to(arguments)
    if name == "getitem": return t[arguments]
    if name == "put_slice":
        out = torch.zeros(arguments[0], dtype=t.dtype)
        out[tuple(slice(a, a + s * n, s) for a, s, n in arguments[1])] = t
        return out
    if name == "astype": return t.float().double()
    if name == "log_softmax": return F.log_softmax(t, arguments)
    if name == "cross_entropy": return F.cross_entropy(t, torch.tensor(arguments[0]), reduction=arguments[1])
    raise AssertionError(name)


def forward(program, values, step, stop=None):
    """Run all steps on the list `values`. Returns the sum of squares of the last four. `stop`: raise Boom before this
    step."""
    for k, (name, operands, arguments) in enumerate(program.steps):
        if k == stop:
            raise Boom(k)
        if name in WRITES:
            i, j = operands
            write(name, values[i], values[j] if isinstance(j, int) else j, arguments)
        else:
            values.append(step(name, [values[i] for i in operands], arguments))
    loss = 0.0
    for v in values[-4:]:
        loss = loss + (v * v).sum()
    return loss


def run(program):
    """The program in cygrad: (loss, gradients of the variables, None for those not reached). Raises Boom or MemoryError
    (kind "exception") or Refused (kind "inplace"), with nothing left alive."""
    try:
        return run_kind(program)
    except (cg.InplaceError, ValueError) as e:
        if program.kind != "inplace" or isinstance(e, ValueError) and "repeats its elements" not in str(e):
            raise
        raise Refused(str(e)) from None


def run_kind(program):
    variables = [cg.tensor(a).attach_grad(r) for a, r in zip(program.variables, program.grad_reqs, strict=True)]
    constants = [cg.tensor(a) for a in program.constants]
    rng = np.random.default_rng(program.seed)
    way = int(rng.integers(3)) if program.kind == "exception" else None
    with cg.record():
        stop = int(rng.integers(len(program.steps))) if way == 0 else None
        loss = forward(program, [*variables, *constants], in_cygrad, stop)
    if not isinstance(loss, cg.Tensor) or not loss.requires_grad:
        return float(loss), [None] * len(variables)
    if way is not None:                             # the n-th allocation of backward fails, and in way 2 all later ones
        try:
            core.set_failure(1 << 60, False)
            loss.backward(retain_graph=True)
            n = core.set_failure(1 + int(rng.integers(core.set_failure(0, False) or 1)), way == 2)
            loss.backward(retain_graph=bool(rng.integers(2)))
        finally:
            core.set_failure(0, False)
        return float(loss), n
    if program.kind == "create_graph":
        first = cg.autograd.grad(loss, variables, create_graph=True, allow_unused=True)
        with cg.record():
            second = loss
            for g in first:
                if g is not None:
                    second = second + (g * g).sum()
        second.backward(create_graph=bool(rng.integers(2)))
    else:
        loss.backward()
    return float(loss), [x.grad.numpy().copy() if x.fresh_grad else None for x in variables]


def reference(program):
    """The same in PyTorch, with copies of overwritten values."""
    import torch
    variables = [torch.tensor(a, requires_grad=True) for a in program.variables]
    constants = [torch.tensor(a) for a in program.constants]
    with torch.autograd.graph.allow_mutation_on_saved_tensors():
        loss = forward(program, [*variables, *constants], in_torch)
        if not torch.is_tensor(loss) or not loss.requires_grad:
            return float(loss), [None] * len(variables)
        if program.kind == "create_graph":
            first = torch.autograd.grad(loss, variables, create_graph=True, allow_unused=True)
            second = loss
            for g in first:
                if g is not None:
                    second = second + (g * g).sum()
            second.backward()
        else:
            loss.backward()
    return loss.item(), [None if x.grad is None else x.grad.numpy() for x in variables]
