"""Bytes that one call of each operator keeps for backward, cygrad's and PyTorch's.

The inputs are results of another operation, 100x100 float32, all with gradients, so that every buffer kept counts,
once, also one that a neighbour keeps too. cygrad's figure is `saved_bytes` of a recording scope around the call;
PyTorch's the sum of the distinct storages that saved_tensors_hooks is given during it. Reductions, softmax and its kin
run along the last axis; max and min stand beside amax and amin, which share a gradient among equals as they do. Labels
are int64."""

import numpy as np

import cygrad as cg
from cygrad.ops import TABLE

SIDE = 100
SAME = ("neg abs sign floor ceil trunc round square sqrt rsqrt reciprocal exp expm1 log log1p sin cos tan asin acos "
        "atan sinh cosh tanh asinh acosh atanh erf sigmoid relu").split()
TWO = "add sub mul div maximum minimum matmul".split()
FUNCTIONAL = "softplus silu gelu".split()


def samples():
    """By row: how many arrays it takes, then a call in cygrad and one in PyTorch, each given the library, labels and
    those arrays."""
    made = {name: (1, one(name), one(name)) for name in SAME}
    made |= {name: (2, one(name), one(name)) for name in TWO}
    made |= {name: (1, one(name), functional(name)) for name in FUNCTIONAL}

    def add(name, arrays, mine, theirs=None):
        made[name] = arrays, mine, theirs or mine

    add("pow", 1, lambda m, _, x: m.pow(x, 2.5))
    add("power", 2, lambda m, _, x, y: m.power(x, y), lambda m, _, x, y: m.pow(x, y))
    add("clip", 1, lambda m, _, x: m.clip(x, 0.4, 0.7))
    add("where", 2, lambda m, _, x, y: m.where(x > y, x, y))
    for name in ("sum", "mean", "cumsum", "softmax", "log_softmax", "logsumexp", "std", "var"):
        add(name, 1, along(name, "axis"), along(name, "dim"))
    for name in ("max", "min"):
        add(name, 1, along(name, "axis"), along("a" + name, "dim"))
    add("prod", 1, along("prod", "axis"), along("prod", "dim"))
    add("norm", 1, along("norm", "axis"), lambda m, _, x: m.linalg.vector_norm(x, dim=-1))
    add("reshape", 1, lambda m, _, x: m.reshape(x, (SIDE * SIDE,)))
    add("transpose", 1, lambda m, _, x: x.T)
    add("copy", 1, lambda m, _, x: m.copy(x), lambda m, _, x: m.clone(x))
    add("permute", 1, lambda m, _, x: m.permute(x, (1, 0)))
    add("squeeze", 1, lambda m, _, x: m.squeeze(x[:1], 0))
    add("expand_dims", 1, lambda m, _, x: m.expand_dims(x, 0), lambda m, _, x: m.unsqueeze(x, 0))
    add("broadcast_to", 1, lambda m, _, x: m.broadcast_to(x, (2, SIDE, SIDE)))
    add("astype", 1, lambda m, _, x: x.astype("float64"), lambda m, _, x: x.double())
    add("split", 1, lambda m, _, x: m.split(x, 2), lambda m, _, x: m.split(x, SIDE // 2))
    add("pad", 1, lambda m, _, x: m.pad(x, 1), lambda m, _, x: m.nn.functional.pad(x, (1, 1, 1, 1)))
    add("gather", 1, lambda m, labels, x: m.gather(x, 1, labels[:, None]))
    add("scatter_add", 2, lambda m, labels, x, y: m.scatter_add(x, 1, labels[:, None], y[:, :1]))
    add("select", 1, lambda m, _, x: x[x > 0.5])
    add("flip", 1, lambda m, _, x: m.flip(x, (0,)))
    add("concat", 2, lambda m, _, x, y: m.concat([x, y]))
    add("stack", 2, lambda m, _, x, y: m.stack([x, y]))
    add("tril", 1, lambda m, _, x: m.tril(x))
    add("triu", 1, lambda m, _, x: m.triu(x))
    add("getitem", 1, lambda m, _, x: x[10:50, ::2])
    add("take", 1, lambda m, labels, x: m.take(x, labels, 0), lambda m, labels, x: m.index_select(x, 0, labels))
    add("sort", 1, lambda m, _, x: m.sort(x), lambda m, _, x: m.sort(x).values)
    add("linear", 2, lambda m, _, x, w: m.linear(x, w), lambda m, _, x, w: m.nn.functional.linear(x, w))
    add("einsum", 2, lambda m, _, x, y: m.einsum("ij,jk->ik", x, y))
    for name, theirs in (("cross_entropy", "cross_entropy"), ("nll", "nll_loss")):
        add(name, 1, lambda m, labels, x, f=name: getattr(m, f)(x, labels),
            lambda m, labels, x, f=theirs: getattr(m.nn.functional, f)(x, labels))
    for name, theirs in (("mse", "mse_loss"), ("bce_with_logits", "binary_cross_entropy_with_logits")):
        add(name, 2, one(name), lambda m, _, x, y, f=theirs: getattr(m.nn.functional, f)(x, y))
    add("gelu_tanh", 1, lambda m, _, x: m.gelu(x, approximate="tanh"),
        lambda m, _, x: m.nn.functional.gelu(x, approximate="tanh"))
    add("dropout_with", 1, lambda m, _, x: m.dropout(x, 0.5), lambda m, _, x: m.nn.functional.dropout(x, 0.5))
    return made


def left_out():
    """Rows with a gradient that are not compared: PyTorch has no such function, or they are parts of others."""
    compared = samples().keys()
    return [row.name for row in TABLE if row.operator.differentiable and row.name not in compared]


def one(name):
    return lambda module, labels, *xs: getattr(module, name)(*xs)


def functional(name):
    return lambda module, labels, *xs: getattr(module.nn.functional, name)(*xs)


def along(name, axis):
    return lambda module, labels, x: getattr(module, name)(x, **{axis: -1})


def arrays(n):
    """n inputs, and labels, in NumPy."""
    rng = np.random.default_rng(3)
    return [rng.uniform(0.2, 0.9, (SIDE, SIDE)).astype(np.float32) for _ in range(n)], rng.integers(0, SIDE, SIDE)


def cygrad_bytes(n, call):
    inputs, labels = arrays(n)
    with cg.record():
        xs = [cg.tensor(a).requires_grad_() * 1.0 for a in inputs]
        with cg.record() as tape:
            result = call(cg, cg.tensor(labels), *xs)
    kept = tape.saved_bytes
    del result                                      # with it goes the graph
    return kept


def torch_bytes(n, call):
    import torch

    inputs, labels = arrays(n)
    labels = torch.from_numpy(labels)
    xs = [torch.from_numpy(a).requires_grad_() * 1.0 for a in inputs]
    kept = []                                       # holds them, so that no two have one address
    with torch.autograd.graph.saved_tensors_hooks(lambda t: kept.append(t) or t, lambda t: t):
        call(torch, labels, *xs)
    storages = {t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in kept}
    return sum(storages.values())
