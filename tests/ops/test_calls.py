"""Operator calls as data: each execution converts to (type, arguments), and the call executes the same again.

New rows are tested without a change to this file: the executions are those of the samples and of their gradients."""

import copy
import json
import random
from collections import defaultdict
from functools import cache

import numpy as np
import pytest

import cygrad as cg
from cygrad.core.dtypes import DTYPES
from cygrad.core.execute.program import Program
from cygrad.core.execute.run import apply
from cygrad.ops import ROWS
from cygrad.ops.calls import arguments_of, call, decode, encode, operands, parameters
from cygrad.ops.table import TABLE as PUBLIC
from tests.samples import TABLE
from rows import both_dtypes, every_case, every_gradient, floating_places, head_for, in_dtype, same_bits, tensors

# Rows that no execution converts to, because their function runs several operators, or another one by the arguments.
# A net writes what they run.
NEVER = {
    "prelu": "reshapes the weight, then prelu_broadcast",
    "cummax": "cummax_places and gather_ranked",
    "cummin": "cummin_places and gather_ranked",
    "split": "split_part for each part",
    "topk": "topk_places and gather_ranked",
    "lstsq": "lstsq_parts, then the residuals",
    "batch_norm": "batch_norm_with_statistics, then writes the running statistics; or batch_norm_predict",
    "scaled_dot_product_attention": "attend, after the strides of the query decide whether the heads come last",
    "attention_with_dropout": "attend_with_dropout, likewise",
    "lstm": "lstm_layer for each layer and direction",
    "gru": "gru_layer for each layer and direction",
    "rnn": "rnn_layer for each layer and direction",
    "rnn_relu": "rnn_relu_layer for each layer and direction",
    "mse": "sub, then mean_square",
    "ctc_loss": "packs labels and lengths into one array, then ctc_loss_packed",
}


# Rows whose shapes depend on values, so no trace has them.
BY_VALUE = {"argwhere", "kept_mask", "select"}


def is_tensor(v):
    return isinstance(v, cg.Tensor)


def executed(f, *args, **kwargs):
    """The operations that f executes: a list of (operator, attributes, inputs, outputs). f is traced, and then each
    operation is executed. Arrays that no operator computes are ones, or zeros of integers. Empty if f cannot be traced,
    because a shape depends on values."""
    calls, values, done = [], {}, []
    try: Program(lambda: (f(*args, **kwargs), None)[1], _calls=calls, _formulas=True)
    except RuntimeError as e:
        assert "whose shape depends on values" in str(e) or "where a mask is true" in str(e)
        return []

    def value(item):
        if not isinstance(item, tuple): return item
        if item[5] is not None: return item[5].detach()
        if item[:4] in values: return values[item[:4]]
        return cg.full(item[2], DTYPES[item[1]].kind == "f", dtype=DTYPES[item[1]].name)

    with np.errstate(all="ignore"):
        for kind, *call in calls:
            if kind != "operator": continue
            op, attributes, inputs, outputs = call[:4]
            xs = [value(item) for item in inputs]
            ys = apply(op, *[x.copy() if is_tensor(x) and call[4] else x for x in xs], attributes=attributes)
            ys = ys if isinstance(ys, tuple) else (ys,)
            values |= {item[:4]: y for item, y in zip(outputs, ys, strict=False)}
            done.append((op, attributes, xs, ys))
    return done


def convert(op, attributes, inputs):
    """(type, arguments) after a trip through text."""
    type_, arguments = arguments_of(op, attributes, len(inputs))
    text = json.dumps(encode(arguments), allow_nan=False)
    again = decode(json.loads(text))
    assert repr(again) == repr(arguments)           # (nan is not equal to itself, and 1 is equal to True)
    return type_, again


def check_again(done):
    """Each execution of the list, converted and called, is the same execution. Returns the types."""
    types = set()
    for op, attributes, inputs, outputs in done:
        type_, arguments = convert(op, attributes, inputs)
        (op_again, attributes_again, inputs_again, outputs_again), = executed(call, type_, inputs, arguments)
        assert op_again is op and repr(attributes_again) == repr(attributes)
        assert len(inputs_again) == len(inputs)
        for y, z in zip(outputs, outputs_again, strict=False):     # (more are hidden, or for the formula, if recorded)
            same_bits(y.numpy(), z.numpy())
        types.add(type_)
    return types


def value_of(row, args, kwargs):
    return executed(row.tested, *tensors(args), **kwargs)


def second_gradient_of(row, args, kwargs):
    """The operations of the value and of first and second gradients, by formulas."""
    def f():
        xs = tensors(args)
        leaves = [xs[i].requires_grad_() for i in floating_places(args)]
        with cg.record():
            y = row.tested(*xs, **kwargs)
            for g in gradients_of(y, leaves):
                gradients_of(g, leaves)

    try: return executed(f)
    except np.linalg.LinAlgError: return []         # there is no second derivative there


def gradients_of(y, leaves):
    if y.grad_fn is None: return []
    found = cg.autograd.grad(y, leaves, head_for(y), create_graph=True, allow_unused=True)
    return [g for g in found if g is not None]


def writes():
    """The operations of recorded writes in place, by value and gradient."""
    x, v = cg.tensor(np.arange(12.0).reshape(4, 3)).attach_grad(), cg.tensor(np.ones((2, 3))).attach_grad()

    def f():
        with cg.record():
            y, z = x * 2, x * 3
            y[1:3] = v
            z[np.array([0, 3])] = v
            y += z
            return cg.autograd.grad(y, [x, v], cg.ones(y.shape, dtype=y.dtype), create_graph=True)

    return executed(f)


# ---- each execution --------------------------------------------------------------------------------------------------

@both_dtypes
@every_case
def test_each_execution_is_called_again(row, args, kwargs, dtype):
    check_again(value_of(row, in_dtype(args, dtype), kwargs))


@both_dtypes
@every_gradient
def test_each_execution_of_a_formula_is_called_again(row, args, kwargs, dtype):
    check_again(second_gradient_of(row, in_dtype(args, dtype), kwargs))


def test_in_place_operations_are_called_into_new_memory():
    found = writes()
    calls = [convert(op, attributes, inputs) for op, attributes, inputs, _ in found]
    assert {"assign", "put", "add"} <= {type_ for type_, _ in calls}
    x, v = cg.tensor(np.zeros((3, 2))), cg.tensor(np.ones(2))
    y = call("assign", [x, v], {"index": (1,)})
    assert y.tolist() == [[0, 0], [1, 1], [0, 0]] and x.tolist() == [[0, 0]] * 3


def test_random_operators():
    x = cg.tensor(np.ones((4, 5)))
    q = cg.tensor(np.ones((2, 3, 4)))
    with cg.train_mode():
        for done in (executed(cg.dropout, x, 0.5), executed(cg.scaled_dot_product_attention, q, q, q, None, 0.5)):
            assert check_again(done) <= {"dropout_with", "attend_with_dropout"} and done


@cache
def reached():
    """The types of all executions."""
    types = set()
    for row in TABLE:
        for args, kwargs in row.tries:
            for of in (value_of, second_gradient_of) if row.operator.differentiable else (value_of,):
                for op, attributes, inputs, _ in of(row, in_dtype(args, "float64"), kwargs):
                    types.add(arguments_of(op, attributes, len(inputs))[0])
    return types | {arguments_of(op, a, len(inputs))[0] for op, a, inputs, _ in writes()}


def test_every_row_is_reached():
    """`NEVER` is exact, and all parts of rows are needed."""
    assert set(ROWS) - reached() == {*NEVER, *BY_VALUE}


def test_rows_whose_shapes_depend_on_values():
    x, mask, v = cg.tensor([[1.0, 0.0], [2.0, 3.0]]), cg.tensor([True, False]), cg.tensor([[5.0, 6.0]])
    for type_, inputs, wanted in (
        ("argwhere", [x], [[0, 0], [1, 0], [1, 1]]), ("select", [x, mask], [[1, 0]]),
        ("mask_put", [x, v, mask], [[5, 6], [2, 3]]),
    ):
        assert arguments_of(ROWS[type_].operator, None, len(inputs)) == (type_, {})
        assert call(type_, inputs, {}).tolist() == wanted


def test_rows_of_parts():
    names, parts = [row.name for row in PUBLIC], [row for row in ROWS.values() if row not in PUBLIC]
    assert not {row.name for row in parts} & {*names} and len(ROWS) == len(PUBLIC) + len(parts)
    assert len(parts) == sum(len(row.parts) for row in PUBLIC)
    for row in parts:
        assert row.operator in row.module.OPERATORS.values() and row.function.__doc__
        assert not row.public and not row.methods and not row.aliases


def test_operands_are_parameters():
    for name in ROWS:
        wanted = [operand.strip("?*[]") for operand in operands(name)]
        assert len(set(wanted)) == len(wanted)
        known = parameters(name)
        assert "options" in known or set(wanted) <= set(known), name
    assert operands("conv2d") == ("x", "weight", "bias?") and operands("concat") == ("[]xs",)
    assert operands("adam_update") == ("w", "g", "lr", "t", "m", "v") and operands("relu") == ("x",)


# ---- calls -----------------------------------------------------------------------------------------------------------

def test_calls_of_public_functions():
    x, w, b = (cg.tensor(np.random.default_rng(0).normal(size=s)) for s in ((1, 2, 5, 5), (3, 2, 3, 3), 3))
    same_bits(call("conv2d", [x, w, b], {"stride": 2, "padding": 1}).numpy(), cg.conv2d(x, w, b, 2, 1).numpy())
    same_bits(call("conv2d", [x, w, None], {}).numpy(), cg.conv2d(x, w).numpy())
    same_bits(call("concat", [x, x], {"axis": 1}).numpy(), cg.concat([x, x], 1).numpy())
    same_bits(call("einsum", [b, b], {"equation": "i,j->ij"}).numpy(), cg.einsum("i,j->ij", b, b).numpy())
    same_bits(call("reshape", [x], {"shape": (5, 10)}).numpy(), cg.reshape(x, 5, 10).numpy())
    same_bits(call("clip", [x, None, 0.5], {}).numpy(), cg.clip(x, None, 0.5).numpy())
    same_bits(call("getitem", [x], {"index": (0, ..., slice(None, None, -2))}).numpy(), x[0, ..., ::-2].numpy())
    same_bits(call("linear_cross_entropy", [cg.tensor([1]), x[0, 0, :1], x[0, 0]], {}).numpy(),
              cg.linear_cross_entropy(x[0, 0, :1], x[0, 0], cg.tensor([1])).numpy())
    mean, var = cg.zeros(2, dtype="float64"), cg.ones(2, dtype="float64")
    same_bits(call("batch_norm", [x, mean, var], {"training": False}).numpy(),
              cg.batch_norm(x, mean, var, training=False).numpy())
    weights = [cg.tensor(np.ones(s)) for s in ((8, 5), (8, 2), 8, 8)]
    y, (h, _) = call("lstm", [x[0], *weights, None, None, None], {"num_layers": 1})
    same_bits(y.numpy(), cg.lstm(x[0], weights)[0].numpy())
    call("topk", [x], {"k": 2})
    assert call("add", [x, 1], {}).shape == x.shape


def test_arguments_read_like_code():
    x, w = cg.tensor(np.ones((1, 2, 6, 6))), cg.tensor(np.ones((3, 2, 3, 3)))
    for f, wanted in (
        (lambda: cg.conv2d(x, w, stride=2, padding=1),
         ("conv2d", {"stride": (2, 2), "padding": (1, 1), "dilation": (1, 1), "groups": 1, "activation": None})),
        (lambda: cg.sum(x, -1), ("sum", {"axis": 3, "keepdims": False})),
        (lambda: cg.astype(x, "int64"), ("astype", {"dtype": "int64"})),
        (lambda: x[0, ..., 1:], ("getitem", {"index": (0, ..., slice(1, None))})),
        (lambda: cg.max_pool2d(x, 4, 3, ceil_mode=True), ("max_pool2d", {
            "kernel_size": (4, 4), "stride": (3, 3), "padding": (0, 0), "dilation": (1, 1), "ceil_mode": True})),
        (lambda: cg.softplus(x, np.float64(2)), ("softplus", {"beta": 2.0})),
    ):
        (op, attributes, inputs, _), = executed(f)
        assert repr(arguments_of(op, attributes, len(inputs))) == repr(wanted)


def test_an_operator_without_a_row():
    other = type(ROWS["exp"].operator)()            # its name alone is not enough
    with pytest.raises(ValueError, match="^arguments_of: the operator exp is not in the table of operators"):
        arguments_of(other, None, 1)


# ---- text ------------------------------------------------------------------------------------------------------------

def test_values_of_arguments():
    given = {"a": (1, (2.5, None)), "b": slice(None, -3, 2), "c": ..., "d": float("-inf"), "e": -0.0, "f": True,
             "g": 10**30, "h": "x", "i": float("nan"), "j": (), "k": (slice(1, 2), ..., None, 0)}
    assert repr(decode(json.loads(json.dumps(encode(given), allow_nan=False)))) == repr(given)
    assert encode({"dtype": np.dtype("int8"), "n": np.int32(3), "l": [1]}) == {"dtype": "int8", "n": 3, "l": [1]}


@pytest.mark.parametrize("json_", [
    [], None, {1: 2}, {"a b": 1}, {"": 1}, {"a": {}}, {"a": {"slice": [1, 2]}}, {"a": {"slice": [1, 2, 0.5]}},
    {"a": {"slice": [True, None, None]}}, {"a": {"float": "1"}}, {"a": {"float": 1}}, {"a": {"ellipsis": 1}},
    {"a": {"slice": [1, 2, 3], "float": "nan"}}, {"a": float("nan")}, {"a": float("inf")}, {"a": (1,)}, {"a": b""},
    {"a": [[[[[[[[[1]]]]]]]]]}, {"a": np.float64(1)}, {"a": object()}, {"a": slice(1)}, {"a": {"dtype": "int8"}},
])
def test_decode_is_strict(json_):
    with pytest.raises(ValueError, match="^decode: the argument"):
        decode(json_)


def test_deep_nesting_is_refused():
    deep = ()
    for _ in range(100_000): deep = (deep,)
    for refused in (lambda: call("sum", [cg.ones(2)], {"axis": deep}), lambda: encode({"axis": deep}),
                    lambda: decode({"axis": json.loads("[" * 500 + "]" * 500)})):
        with pytest.raises(ValueError, match="levels"): refused()
    while deep: deep, = deep                        # (to release it all at once takes a frame for each level)


# ---- hostile arguments -----------------------------------------------------------------------------------------------

ODD = [None, True, False, 0, 1, -1, 2, 7, 100, 2**31 - 1, 2**31, -2**31, 2**32, 2**48, 2**62, 2**63 - 1, -2**63, 2**63,
       2**64, 10**30, -10**30, 0.0, -0.0, 0.5, 1e300, 1e-320, {"float": "nan"}, {"float": "inf"}, {"float": "-inf"}, "",
       "mean", "float32", "bool", "a,b->ab", [], [0], [1, 1], [[1, 2], [3, 4]], [[[[1]]]],
       {"slice": [None, None, None]}, {"slice": [2**62, -5, -3]}, {"slice": [None, None, 0]}, {"ellipsis": None}]


def mutated(value, dice):
    """Another argument: a part of a list, a near or far integer, or something else entirely."""
    what = dice.random()
    if isinstance(value, list) and value and what < 0.7:
        value, i = list(value), dice.randrange(len(value))
        if what < 0.5: value[i] = mutated(value[i], dice)
        elif what < 0.6: del value[i]
        else: value.insert(i, copy.deepcopy(value[i]))
        return value
    if type(value) is int and what < 0.5:
        return dice.choice([value + 1, value - 1, -value, 2 * value, 1000 * value, value + 2**31, -1 - value])
    if type(value) is float and what < 0.4: return dice.choice([-value, value * 1e300, value + 1, 7])
    return copy.deepcopy(dice.choice(ODD))


def mutated_input(x, dice):
    """Another operand: another dtype, another shape, other values, or a number."""
    if not is_tensor(x): return dice.choice([0, 1.5, True, -1, 2**70, cg.ones((2, 2))])
    a, what = x.numpy(), dice.randrange(6)
    if what == 0: return cg.tensor(a.astype(dice.choice(["bool", "int8", "int64", "uint8", "float32", "uint64"])))
    if what == 1 and a.ndim: return cg.tensor(np.concatenate([a, a], dice.randrange(a.ndim)))
    if what == 2 and a.ndim: return cg.tensor(a[:len(a) // 2])
    if what == 3 and a.ndim < 16: return cg.tensor(a[None])
    if what == 4: return cg.tensor(a.T.copy())
    return cg.tensor(np.full(a.shape, dice.choice([-1, 7, 100, 0])).astype(a.dtype))


def called_after(fill, type_, inputs, arguments):
    """The bytes of the results, where memory that was used before has bytes `fill`, and some around it still is."""
    used = [cg.tensor(np.full(n, fill, "uint8")) for n in (8, 16, 48, 64, 128, 256, 512, 2048) * 4]
    guards = used[::2]
    del used
    ys = call(type_, [cg.tensor(x.numpy()) if is_tensor(x) else x for x in inputs], arguments)
    assert all((guard.numpy() == fill).all() for guard in guards)
    return [content(y.numpy()) for y in (ys if isinstance(ys, tuple) else (ys,))]


def content(a):
    """The shape and the bytes of an array, without elements that a broadcast repeats: there can be any number."""
    return a.shape, a[(*[slice(1) if step == 0 else slice(None) for step in a.strides], ...)].tobytes()


def sample_calls():
    """For each type calls as data, with inputs of their own."""
    calls, seen = defaultdict(list), set()
    for row in TABLE:
        for args, kwargs in row.tries:
            args = in_dtype(args, "float64")
            done = second_gradient_of(row, args, kwargs) if row.operator.differentiable else ()
            for op, attributes, inputs, _ in (*value_of(row, args, kwargs), *done):
                type_, arguments = arguments_of(op, attributes, len(inputs))
                key = type_, repr(arguments), tuple(getattr(x, "shape", None) for x in inputs)
                if key in seen or len(calls[type_]) > 20: continue
                seen.add(key)
                calls[type_].append(([x.copy() if is_tensor(x) else x for x in inputs], encode(arguments)))
    return calls


@pytest.mark.parametrize("seed", range(2))
def test_hostile_arguments_only_raise(seed):
    """2,000 mutations of arguments and 1,000 of arguments and inputs work, or raise errors of bad input. A result of
    2^40 numbers is a MemoryError. What works depends on nothing but the inputs, and writes nowhere else."""
    dice, calls = random.Random(seed), sample_calls()
    types, worked = sorted(calls), 0
    with cg.memory.limit(1 << 26), np.errstate(all="ignore"):
        for turn in range(3000):
            type_ = dice.choice(types)
            inputs, arguments = map(copy.copy, dice.choice(calls[type_]))
            for _ in range(dice.choice([1, 1, 2, 3])):
                if turn >= 2000 and inputs and dice.random() < 0.6:
                    i = dice.randrange(len(inputs))
                    inputs[i] = mutated_input(inputs[i], dice)
                elif arguments:
                    name = dice.choice([*arguments])
                    arguments[name] = mutated(arguments[name], dice)
                    if dice.random() < 0.03: arguments["unknown"] = 1
            try:
                given = decode(json.loads(json.dumps(arguments)))
                first, second = [called_after(fill, type_, inputs, given) for fill in (0x5a, 0xff)]
            except (ValueError, TypeError, IndexError, OverflowError, MemoryError):
                continue
            worked += 1
            assert first == second, f"{type_} reads memory that is not of its inputs: {given}"
    assert worked > 600
