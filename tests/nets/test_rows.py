"""Every row of the table in a net: values and gradients equal those of eager code bit for bit, for every sample.

New rows are tested without a change to this file, unless their sample calls the function in its own way (OTHERWISE)."""

import inspect
from collections.abc import Iterable

import numpy as np
import pytest
from net_runs import check_alone
from rows import CASES, both_dtypes, head_for, in_dtype, is_array, same_bits

import cygrad as cg
from cygrad.graph import Net, Workspace
from cygrad.ops.calls import call, operand_names, operands, parameters
from tests.samples import TABLE


# ---- samples as calls ------------------------------------------------------------------------------------------------

def joined(xs, axis=0):
    return {"xs": list(xs), "axis": axis}


def layered(*args, **kwargs):
    """The arguments of a recurrent layer. A reversed one has no public call, so it goes forward here."""
    x, *weights = args[:5]
    names = ("h0", "c0", "reverse", "lengths") if len(args) > 6 and is_array(args[6]) else ("h0", "reverse", "lengths")
    given = {**dict(zip(names, args[5:], strict=False)), **kwargs}
    given.pop("reverse", None)
    states = {name: given.pop(name)[None] for name in ("h0", "c0") if name in given}
    return {"x": x, "weights": weights, **states, **given}


# Rows whose sample calls the function in another way: the arguments of the function, by name, from those of the sample.
OTHERWISE = {
    "polygamma": lambda x, n: {"x": x, "n": n},
    "concat": lambda *xs, axis=0: joined(xs, axis),
    "stack": lambda *xs, axis=0: joined(xs, axis),
    "einsum": lambda x, y, equation: {"operands": [x, y], "equation": equation},
    "svd": lambda x: {"x": x, "full_matrices": False},
    "batch_norm": lambda x, weight=None, bias=None, eps=1e-5: {
        "x": x, "running_mean": None, "running_var": None, "weight": weight, "bias": bias, "training": True,
        "eps": eps},
    "batch_norm_predict": lambda x, mean, var, weight=None, bias=None, eps=1e-5: {
        "x": x, "running_mean": mean, "running_var": var, "weight": weight, "bias": bias, "eps": eps},
    "binary_cross_entropy_with_logits": lambda x, t, w=None, u=None, reduction="mean": {
        "x": x, "target": t, "weight": w, "pos_weight": u, "reduction": reduction},
    **dict.fromkeys(("lstm", "gru", "rnn", "rnn_relu"), layered),
}


# Operands without a gradient, although they are floating-point numbers: weights of classes, running statistics, empty
# labels and lengths.
WITHOUT = {
    **dict.fromkeys(("cross_entropy", "soft_cross_entropy", "nll_loss"), {"weight"}),
    **dict.fromkeys(("batch_norm", "batch_norm_predict"), {"running_mean", "running_var"}),
    "ctc_loss": {"targets", "input_lengths", "target_lengths"},
}


def named(row, args, kwargs):
    """The arguments of the row's function by name."""
    if row.name in OTHERWISE: return OTHERWISE[row.name](*args, **kwargs)
    bound = inspect.signature(row.tested).bind(*args, **kwargs).arguments
    options = [p.name for p in parameters(row.name).values() if p.kind is p.VAR_KEYWORD]
    found = {}
    for name, value in bound.items():
        if name in options or name == "settings": found |= value
        elif name == "args": found |= zip(operands(row.name), value, strict=False)
        else: found[name] = value
    return found


def as_operand(value):
    return np.asarray(value) if isinstance(value, list | tuple | np.generic) else value


def as_call(row, args, kwargs):
    """(inputs, arguments) of a sample, as a net has them."""
    given = named(row, args, kwargs)
    inputs = []
    for operand in operands(row.name):
        name = operand.strip("?*[]")
        if operand[0] in "*[": inputs += map(as_operand, given.pop(name))
        else: inputs.append(as_operand(given.pop(name, None)))
    while inputs and inputs[-1] is None and "[" not in "".join(operands(row.name)): inputs.pop()
    return inputs, given


# ---- a net of one row ------------------------------------------------------------------------------------------------

def flat(found):
    """The tensors of a result, which can have tuples."""
    if isinstance(found, cg.Tensor): return [found]
    return [y for part in found for y in flat(part)] if isinstance(found, Iterable) else []


def eager(row, inputs, arguments, wanted):
    """The values, their heads and the gradients of the inputs `wanted`, by eager code."""
    xs = [cg.tensor(x) if is_array(x) else x for x in inputs]
    for i in wanted: xs[i].requires_grad_()
    with cg.record(train_mode=False): ys = flat(call(row.name, xs, arguments))
    heads = {k: head_for(y, k) for k, y in enumerate(ys) if y.requires_grad}
    found = [None] * len(wanted)
    if heads:
        found = cg.autograd.grad([ys[k] for k in heads], [xs[i] for i in wanted], [*heads.values()], allow_unused=True)
    return [y.detach() for y in ys], heads, found


def net_of(row, inputs, arguments, n):
    """A net of one operator. Its inputs are x0, x1, ..., its outputs y0, y1, ..."""
    net = Net(row.name)
    names = [f"x{i}" if is_array(x) else x for i, x in enumerate(inputs)]
    net.add_operator(row.name, names, [f"y{k}" for k in range(n)], **arguments)
    return net


def floating(row, inputs):
    """(the places of the inputs that can have a gradient, those of floating-point numbers that cannot)"""
    names = dict(enumerate(operands(row.name)))
    places = [i for i, x in enumerate(inputs) if is_array(x) and x.dtype.kind == "f"]
    without = [i for i in places if names.get(i, "").strip("?*[]") in WITHOUT.get(row.name, ())]
    return [i for i in places if i not in without], without


@both_dtypes
@pytest.mark.parametrize("row, args, kwargs", CASES)
def test_a_net_of_the_row_equals_eager_code(row, args, kwargs, dtype):
    inputs, arguments = as_call(row, args, kwargs)
    inputs = in_dtype(inputs, dtype)
    wanted, without = floating(row, inputs)
    with np.errstate(all="ignore"):
        ys, heads, gradients = eager(row, inputs, arguments, wanted)
        net = net_of(row, inputs, arguments, len(ys))
        for k in heads: net.copy(f"head{k}", f"h{k}")
        found = net.add_gradient_operators({f"y{k}": f"h{k}" for k in heads})
        assert not [i for i in without if f"x{i}" in found]
        workspace = Workspace()
        for i, x in enumerate(inputs):
            if is_array(x): workspace.feed(f"x{i}", x)
        for k, head in heads.items(): workspace.feed(f"head{k}", head)
        for _ in range(2):
            workspace.run(net)
            for k, y in enumerate(ys): same_bits(workspace.fetch(f"y{k}").numpy(), y.numpy())
            for i, g in zip(wanted, gradients, strict=True):
                there = found.get(f"x{i}") in workspace
                assert there == (g is not None), f"input {i}: in the net {there}, in eager code {g is not None}"
                if there: same_bits(workspace.fetch(found[f"x{i}"]).numpy(), g.numpy())


@pytest.mark.parametrize("row, args, kwargs", CASES)
def test_the_gradient_operator_of_the_row_alone(row, args, kwargs):
    """In a net without the operator it has the same bits."""
    inputs, arguments = as_call(row, args, kwargs)
    inputs = in_dtype(inputs, "float64")
    wanted, _ = floating(row, inputs)
    with np.errstate(all="ignore"): ys, heads, gradients = eager(row, inputs, arguments, wanted)
    net = net_of(row, inputs, arguments, len(ys))
    net.add_gradient_operators({f"y{k}": f"h{k}" for k in heads})
    arrays = {f"x{i}": x for i, x in enumerate(inputs) if is_array(x)}
    n = check_alone(net, arrays | {f"h{k}": head for k, head in heads.items()})
    assert n == any(g is not None for g in gradients)


# ---- what a gradient operator reads ----------------------------------------------------------------------------------

# Rows whose functions compute the operands of their operators, and keep those: the gradient reads the inputs.
COMPUTED = {"mse", "ctc_loss", "lstm", "gru", "rnn", "rnn_relu"}
# What is kept if the shapes, or the values, allow nothing smaller, which a net does not know: by row and token.
SMALLER = {("where", "truths"): "condition", ("bce_with_logits", "hard"): "targets"}
RENAMED = {                                         # the operands that tokens mean
    "binary_cross_entropy_with_logits": {"t": "target", "w": "weight", "u": "pos_weight"}, "eigvalsh": {"sum": "x"},
    **dict.fromkeys(("cross_entropy", "soft_cross_entropy", "nll_loss"), {"weights": "weight"}),
}
LARGER = {"qr": {"x0"}}


def kept_blobs(row, args, kwargs, inputs, outputs):
    """The names of the blobs of net_of() that backward keeps for the gradients of all inputs."""
    if row.name in COMPUTED: return {f"x{i}" for i, x in enumerate(inputs) if is_array(x)}
    places = {name: f"x{i}" for i, name in enumerate(operand_names(operands(row.name), len(inputs)))
              if is_array(inputs[i])}
    if row.name == "einsum": places = {"x": "x0", "y": "x1"}
    found = set()
    for wanted, tokens in row.kept(*args, **kwargs).items():
        wanted = RENAMED.get(row.name, {}).get(wanted, wanted)
        if wanted not in places: continue
        for token in tokens.split() if isinstance(tokens, str) else tokens:
            token = SMALLER.get((row.name, token), token)
            token = RENAMED.get(row.name, {}).get(token, token)
            if token == "out": found |= outputs
            elif token in places: found.add(places[token])
    return found


@pytest.mark.parametrize("row, args, kwargs", CASES)
def test_a_gradient_operator_reads_what_the_operator_keeps(row, args, kwargs):
    """As declared in tests/samples, which test_table.py compares with the saved bytes. The names of the gradients of
    the outputs follow."""
    inputs, arguments = as_call(row, args, kwargs)
    inputs = in_dtype(inputs, "float64")
    with np.errstate(all="ignore"): ys = flat(call(row.name, [cg.tensor(x) if is_array(x) else x for x in inputs],
                                                   arguments))
    net = net_of(row, inputs, arguments, len(ys))
    found = net.add_gradient_operators([f"y{k}" for k, y in enumerate(ys) if y.dtype.kind == "f"])
    made = [o for o in net.operators if o.of is net.operators[0]]
    if not made: return                             # (it has no gradient)
    read, heads = made[0].inputs[:-len(ys)], made[0].inputs[-len(ys):]
    assert heads == tuple(found.get(f"y{k}") for k in range(len(ys)))
    assert len({*read}) == len(read)
    read = {name for name in read if name not in net.constants}
    outputs = {name for name in read if name[0] == "y"}
    wanted = kept_blobs(row, args, kwargs, inputs, outputs or {"a result"})
    assert read - LARGER.get(row.name, set()) == wanted - LARGER.get(row.name, set())


@pytest.mark.parametrize("row, args, kwargs", CASES)
def test_what_is_not_kept_can_be_overwritten(row, args, kwargs):
    """The inputs and the result, one by one: it is refused, or the gradients are as before."""
    inputs, arguments = as_call(row, args, kwargs)
    inputs = in_dtype(inputs, "float64")
    wanted, _ = floating(row, inputs)
    with np.errstate(all="ignore"):
        ys, heads, gradients = eager(row, inputs, arguments, wanted)
        if not heads or not wanted or all(g is None for g in gradients): return
        kept = {n for o in differentiated(row, inputs, arguments, ys, heads, ()).operators
                if o.of is not None and o.of.type == row.name for n in o.inputs}
        for name in (*(f"x{i}" for i in wanted), "y0"):
            try: net = differentiated(row, inputs, arguments, ys, heads, (name,))
            except RuntimeError as e:
                assert name in kept and "version" in str(e)
                continue
            assert name not in kept
            workspace = Workspace()
            for i, x in enumerate(inputs):
                if is_array(x): workspace.feed(f"x{i}", x)
            for k, head in heads.items(): workspace.feed(f"h{k}", head)
            workspace.run(net)
            for i, g in zip(wanted, gradients, strict=True):
                if g is not None: same_bits(workspace.fetch(net.gradients[f"x{i}"]).numpy(), g.numpy())


def differentiated(row, inputs, arguments, ys, heads, overwritten):
    """The differentiated net of a row, with operators after it that write over blobs."""
    net = net_of(row, inputs, arguments, len(ys))
    results = {k: net.mul([f"y{k}", 1.0], f"z{k}") for k in heads}
    for name in overwritten: net.mul([name, 0.5], name)
    net.add_gradient_operators({z: f"h{k}" for k, z in results.items()})
    return net


def test_each_row_is_tested():
    assert {row.name for row in TABLE} == {case.values[0].name for case in CASES}
