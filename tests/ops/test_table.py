"""Every row of the table: value, gradients, saved bytes, strides, sizes of 0, kinks, threads.

New rows are tested without a change to this file."""

import itertools
import re
import warnings

import numpy as np
import pytest

import cygrad as cg
from cygrad.core.execute.program import Program
from cygrad.testing import assert_no_leak, gradcheck
from tests.samples import SAMPLED, TABLE
from tests.samples.saved import SAVED
from rows import (
    COPIED, ELEMENTWISE, HIDDEN, ROWS, both_dtypes, close, every_case, every_gradient, floating_places, gradients,
    head_for, in_dtype, is_array, is_floating, parameters, rounding, same_bits, tensors,
)


# ---- the row itself --------------------------------------------------------------------------------------------------

def test_every_row_has_a_sample():
    assert [sampled.row for sampled in TABLE] == cg.ops.TABLE


def test_names_are_unique():
    names = [row.name for row in TABLE]
    assert sorted(set(names)) == sorted(names)
    operators = [row.operator.name for row in TABLE]
    assert sorted(set(operators)) == sorted(operators)


@pytest.mark.parametrize("row", ROWS)
def test_row_is_documented(row):
    assert row.function.__doc__ and row.function.__doc__[0] != " "
    formula = type(row.operator).__doc__.split("\n\n")[0]
    assert re.match(r"\w[\w ()]* = ", formula), "the class docstring starts with the formula"
    if row.operator.differentiable:
        assert re.search(r"\bd\w+ = ", formula), "and goes on with the gradient"
    else:
        assert "no gradient" in formula


@pytest.mark.parametrize("row", ROWS)
def test_row_is_plugged_in(row):
    assert hasattr(cg, row.name) == row.public or row.name in dir(cg.Tensor)
    if row.public:
        assert getattr(cg, row.name) is row.function
    for name in row.methods:
        assert getattr(cg.Tensor, name) is row.function
    for name in row.aliases:
        assert getattr(cg, name) is row.function
    names = parameters(row)
    for args, kwargs in row.tries:
        for key, kept in row.kept(*args, **kwargs).items():
            assert key in names
            for token in kept.split():
                assert token in names or token in HIDDEN


def test_the_operator_page_has_words_for_saved_values():
    assert SAVED.keys() == HIDDEN.keys()


@pytest.mark.parametrize("row", ROWS)
def test_row_tries_size_zero(row):
    inputs = [a for args, _ in row.tries for a in args if is_array(a)]
    assert any(a.size == 0 for a in inputs)


# ---- value -----------------------------------------------------------------------------------------------------------

@both_dtypes
@every_case
def test_value(row, args, kwargs, dtype):
    args = in_dtype(args, dtype)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")             # NumPy's mean of nothing
        wanted = np.asarray(row.like(*args, **kwargs))
    xs = tensors(args)
    y = row.tested(*xs, **kwargs)
    assert y.shape == wanted.shape
    assert y.dtype == wanted.dtype
    if wanted.dtype.kind == "f":
        scale = rounding(row, args)
        close(y.numpy() / scale, wanted / scale, dtype)
    else:
        assert np.array_equal(y.numpy(), wanted)
    for x, a in zip(xs, args, strict=True):
        if is_array(a):
            assert np.array_equal(x.numpy(), a) and x.version == 0
    assert not y.requires_grad and y.is_leaf


@pytest.mark.parametrize("name", [row.name for row in TABLE if row.family in (*ELEMENTWISE, "activations")
                                  and row.public and not row.name.startswith("bitwise")])
@both_dtypes
def test_value_at_special_numbers(name, dtype):
    """NaN, infinities, signed zeros, the largest, the smallest and denormal numbers give the same as in NumPy."""
    row = SAMPLED[name]
    info = np.finfo(dtype)
    specials = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, info.max, -info.max, info.tiny, info.smallest_subnormal,
                -info.smallest_subnormal, 88.0, -104.0, 700.0, -745.0]
    numbers = np.array(specials, dtype)
    inputs = sum(is_array(a) for a in row.tries[0][0])
    pairs = [([a.ravel() for a in np.meshgrid(*[numbers] * min(inputs, 2))], ())]
    if name == "pow":
        pairs = [([numbers], (p,)) for p in (0, 1, 2, 3, -1, -2, 0.5, -0.5, 2.5)]
    elif name == "clip":
        pairs = [([numbers], bounds) for bounds in ((-1, 1), (None, 0.5), (np.inf, -np.inf), (np.nan, 1), (1, -1))]
    elif name == "prelu":
        pairs = [([numbers, np.array([w], dtype)], ()) for w in (0.25, 0, -0.5, np.inf, np.nan)]
    elif name == "threshold":
        pairs = [([numbers], (t, 2.5)) for t in (0, -0.0, 1, -np.inf, np.inf, np.nan)]
    elif name == "glu":
        pairs = [([a.ravel() for a in [np.stack(np.meshgrid(numbers, numbers))]], ())]
    elif name == "where":
        pairs = [([np.arange(len(a)) % 3 == 0, *pairs[0][0]], ()) for a in pairs[0][0][:1]]
    for given, attributes in pairs:
        with np.errstate(all="ignore"):
            wanted = row.like(*given, *attributes)
        found = row.tested(*map(cg.tensor, given), *attributes).numpy()
        assert found.dtype == wanted.dtype
        if wanted.dtype == bool:
            assert np.array_equal(found, wanted)
            continue
        assert np.array_equal(np.isnan(found), np.isnan(wanted))
        known = ~np.isnan(wanted)
        np.testing.assert_allclose(found[known], wanted[known], rtol=3e-6 if dtype == "float32" else 1e-13)
        assert np.array_equal(np.signbit(found[known]), np.signbit(wanted[known]))


@pytest.mark.parametrize("row", [row for row in TABLE if row.operator.numpy is not None], ids=lambda row: row.name)
def test_value_of_integers(row):
    for args, kwargs in row.tries:
        if not all(is_array(a) or isinstance(a, int) for a in args):
            continue
        args = [np.rint(4 * a).astype("int64") if is_array(a) else a for a in args]
        wanted = np.asarray(row.like(*args, **kwargs))
        y = row.tested(*tensors(args), **kwargs)
        assert y.dtype == wanted.dtype and np.array_equal(y.numpy(), wanted)


# ---- gradients -------------------------------------------------------------------------------------------------------

@every_gradient
def test_gradient_and_second_gradient(row, args, kwargs):
    narrow = row.name == "astype" and args[1] == "float32"      # its output has seven digits, which needs large steps
    tolerances = dict(eps=1e-2, rtol=1e-4, atol=1e-4) if narrow else dict(rtol=2e-5, atol=2e-7)

    def f(*xs):
        return row.tested(*xs, **kwargs)

    if not floating_places(args):
        pytest.skip("no floating input")
    if row.own_gradient and args[1] != 1:
        pytest.skip("its gradient is not the derivative of its value")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if np.isnan(row.like(*args, **kwargs)).any():
            pytest.skip("the value is nan, as in NumPy")
    with assert_no_leak():
        assert gradcheck(f, [cg.tensor(a) if is_array(a) else a for a in args], order=2, **tolerances)


@both_dtypes
@every_gradient
def test_formula_is_kernel(row, args, kwargs, dtype):
    """The formula over tensors, the kernel over buffers, and the kernel when it may overwrite its operands."""
    args = in_dtype(args, dtype)
    value, by_formula = gradients(row, args, kwargs, "graph")
    through_copies = dict(through=lambda x: x * 1.0)            # intermediates that only the graph holds
    for how in (dict(), dict(how="retain"), through_copies, dict(how="retain", **through_copies)):
        same_value, by_kernel = gradients(row, args, kwargs, **how)
        same_bits(value, same_value)
        for a, b in zip(by_formula, by_kernel, strict=True):
            assert (a is None) == (b is None)
            if a is not None:
                close(a, b, dtype)
                assert a.dtype == b.dtype == dtype


@pytest.mark.parametrize("row", [row for row in TABLE if row.ties], ids=lambda row: row.name)
@both_dtypes
def test_ties(row, dtype):
    at, wanted = (ties if isinstance(ties, tuple) else (ties,) for ties in row.ties)
    zero = np.zeros(4, dtype)                       # added, because the signs of zeros do not matter here
    for how in ("plain", "graph"):
        y, found = gradients(row, [np.full(4, x, dtype) for x in at], {}, how)
        for dx, slope in zip(found, wanted, strict=True):
            same_bits(dx + zero, np.asarray(slope, dtype) * head_for(cg.tensor(y)).numpy() + zero)


def test_kinks_are_in_the_table():
    """Rows that compare their input with something must define the gradient where the two are equal."""
    rows = {row.name for row in TABLE if row.ties}
    assert rows == {"relu", "abs", "sign", "maximum", "minimum", "clip", "floor", "ceil", "trunc", "round", "max",
                    "min", "var", "std", "norm", "leaky_relu", "hardtanh", "hardsigmoid", "hardswish", "selu",
                    "floor_divide", "remainder", "fmax", "fmin", "hypot", "atan2", "copysign"}


# ---- strides ---------------------------------------------------------------------------------------------------------

def transposed(a):
    return a.copy("F")


def backwards(a):
    reverse = (..., *[slice(None, None, -1)] * a.ndim)
    return a[reverse].copy()[reverse]


def spaced(a):
    wide = np.full([2 * n + 1 for n in a.shape] + [2], 9.0, a.dtype)
    inner = wide[(..., *[slice(1, None, 2)] * a.ndim, 1)]
    inner[...] = a
    return inner


@pytest.mark.parametrize("stride", [transposed, backwards, spaced])
@both_dtypes
@every_case
def test_strided_inputs(row, args, kwargs, dtype, stride):
    args = in_dtype(args, dtype)
    scale = rounding(row, args)
    if row.operator.differentiable:
        value, plain = gradients(row, args, kwargs)
        for how in ("plain", "graph"):
            strided_value, strided = gradients(row, args, kwargs, how, stride)
            close(value / scale, strided_value / scale, dtype)
            for a, b in zip(plain, strided, strict=True):
                assert (a is None) == (b is None)
                if a is not None:
                    close(a, b, dtype)
    else:
        strided = [cg.asarray(stride(a)) if is_floating(a) else cg.tensor(a) if is_array(a) else a for a in args]
        assert np.array_equal(row.tested(*tensors(args), **kwargs).numpy(), row.tested(*strided, **kwargs).numpy())


@both_dtypes
@every_gradient
def test_strided_views_and_heads(row, args, kwargs, dtype):
    """Inputs that are recorded views of larger tensors, and a strided head gradient."""
    args = in_dtype(args, dtype)
    value, plain = gradients(row, args, kwargs)
    places = floating_places(args)
    leaves, xs = [], tensors(args)
    for i in places:
        leaves.append(cg.tensor(np.stack([args[i], args[i] + 1])).attach_grad())
    with cg.record():
        for i, leaf in zip(places, leaves, strict=True):
            xs[i] = leaf.T.T[0]
        y = row.tested(*xs, **kwargs)
        del xs
    head = cg.asarray(spaced(head_for(y).numpy()))
    y.backward(head)
    for leaf, dx in zip(leaves, plain, strict=True):
        close(leaf.grad.numpy()[0], np.zeros(leaf.shape[1:]) if dx is None else dx, dtype)
        assert not leaf.grad.numpy()[1].any()
    close(head.numpy(), head_for(y).numpy(), dtype)


# ---- saved bytes -----------------------------------------------------------------------------------------------------

def patterns(args):
    places = floating_places(args)
    for chosen in itertools.product([False, True], repeat=len(places)):
        yield [i for i, wanted in zip(places, chosen, strict=True) if wanted]


def declared(row, args, kwargs, wanted):
    """The declared saved values of the row if gradients of the inputs `wanted` are requested."""
    kept = row.kept(*args, **kwargs)
    tokens = {token for i in wanted if kept for token in kept.get(parameters(row)[i], "").split()}
    return {"targets" if token == "hard" and wanted != [0] else token for token in tokens}


def declared_bytes(row, args, kwargs, xs, y, wanted):
    """Bytes of its distinct buffers."""
    names = parameters(row)
    total = 0
    for token in declared(row, args, kwargs, wanted):
        if token in HIDDEN:
            total += HIDDEN[token](args, y, wanted)
        else:
            x = dict(zip(names, xs, strict=False)).get(token)      # none: the default
            total += x.nbytes if isinstance(x, cg.Tensor) else 0
    return total


@both_dtypes
@every_gradient
def test_bytes_kept(row, args, kwargs, dtype):
    args = in_dtype(args, dtype)
    if row.name == "astype" and args[1] == dtype:
        pytest.skip("a cast to the same dtype is the tensor itself")
    for wanted in patterns(args):
        xs = tensors(args)
        leaves = [cg.tensor(args[i]).attach_grad() for i in wanted]
        with cg.record():
            for i, leaf in zip(wanted, leaves, strict=True):
                xs[i] = leaf * 1.0                  # an intermediate that counts; its own node saves a constant
            with cg.record() as tape:
                y = row.tested(*xs, **kwargs)
        assert tape.saved_bytes == declared_bytes(row, args, kwargs, xs, y, wanted)
        assert (tape.nodes > 0) == bool(wanted) == y.requires_grad
        if not wanted:
            assert y.grad_fn is None
        before = cg.memory.stats()["by_category"]["saved"]
        assert before == tape.saved_bytes           # nothing else is saved in this test


@both_dtypes
@every_gradient
def test_leaves_and_external_memory_count_nothing(row, args, kwargs, dtype):
    args = in_dtype(args, dtype)
    if row.name == "astype" and args[1] == dtype:
        pytest.skip("a cast to the same dtype is the tensor itself")
    for wanted in patterns(args):
        if not wanted:
            continue
        xs = [cg.asarray(a) if is_array(a) else a for a in args]
        for i in wanted:
            xs[i] = cg.tensor(args[i]).attach_grad()
        names = parameters(row)
        tokens = declared(row, args, kwargs, wanted)
        with cg.record() as tape:
            y = row.tested(*xs, **kwargs)
        least = declared_bytes(row, args, kwargs, [None] * len(args), y, wanted) if tokens & {*HIDDEN} else 0
        for token in tokens & COPIED:
            given = np.asarray(args[names.index(token)])
            if given.dtype.kind in "iu": least += given.nbytes
        assert tape.saved_bytes == least


def test_one_buffer_counts_once():
    x = cg.tensor(np.ones((3, 3))).attach_grad()
    with cg.record():
        y = x * 1.0
        with cg.record() as tape:
            a = y * y
            b = cg.matmul(y, y.T)
    assert tape.saved_bytes == y.nbytes == 72
    assert a.requires_grad and b.requires_grad


@every_case
def test_no_node_without_need(row, args, kwargs):
    """While paused, or without a variable among the inputs, there is no node and nothing is saved."""
    variables = [cg.tensor(a).attach_grad() if is_floating(a) else cg.tensor(a) if is_array(a) else a for a in args]
    with cg.record() as tape, cg.pause():
        y = row.tested(*variables, **kwargs)
    if not (row.name == "astype" and y is variables[0]):
        assert y.grad_fn is None and not y.requires_grad
    with cg.record() as other:
        z = row.tested(*tensors(args), **kwargs)
    assert z.grad_fn is None and not z.requires_grad
    assert tape.nodes == other.nodes == 0 and tape.saved_bytes == other.saved_bytes == 0
    assert cg.memory.stats()["by_category"]["saved"] == 0


# ---- threads ---------------------------------------------------------------------------------------------------------

N = 2 * 32768 + 777                                 # more than the grain of two threads, and not a multiple of a strip
LARGE = {
    "add": lambda r: [r.normal(size=N), r.normal(size=N)],
    "mul": lambda r: [r.normal(size=(3, N)), r.normal(size=N)],
    "div": lambda r: [r.normal(size=(N, 3)), 1.5 + r.random((N, 1))],
    "exp": lambda r: [r.normal(size=(N,))],
    "tanh": lambda r: [r.normal(size=(2, N)).T],
    "relu": lambda r: [r.normal(size=N)[::-1]],
    "gelu": lambda r: [r.normal(size=N)],
    "maximum": lambda r: [r.normal(size=(3, N)), r.normal(size=N)],
    "where": lambda r: [r.random((N, 3)) < 0.5, r.normal(size=(N, 1)), r.normal(size=(3, N)).T],
    "clip": lambda r: [r.normal(size=(3, N)), r.normal(size=N), 0.5 + r.random((3, 1))],
    "sum": lambda r: [r.normal(size=(N // 16, 33)), 0],
    "mean": lambda r: [r.normal(size=(33, N // 16)), 1],
    "log_softmax": lambda r: [r.normal(size=(N // 32, 50))],
    "embedding": lambda r: [r.integers(-500, 500, N // 16), r.normal(size=(500, 33))],
    "embedding_bag": lambda r: [r.integers(-500, 500, (N // 64, 4)), r.normal(size=(500, 33))],
    "cross_entropy": lambda r: [r.normal(size=(N // 8, 10)), r.integers(0, 10, N // 8)],
}


# With two threads, BLAS uses row panels of other heights and may round differently: equal up to rounding only.
PRODUCTS = {
    "matmul": lambda r: [r.normal(size=(129, 300)), r.normal(size=(300, 257))],
    "linear": lambda r: [r.normal(size=(400, 65)), r.normal(size=(130, 65)), r.normal(size=130)],
}


@pytest.mark.parametrize("name", LARGE)
@both_dtypes
def test_threads_agree_bit_for_bit(name, dtype, two_threads):
    row = SAMPLED[name]
    args = in_dtype(LARGE[name](np.random.default_rng(0)), dtype)
    args, kwargs = [a for a in args if is_array(a)], {"axis": args[1]} if name in ("sum", "mean") else {}
    cg.set_num_threads(1)
    value, single = gradients(row, args, kwargs)
    cg.set_num_threads(2)
    double_value, double = gradients(row, args, kwargs)
    same_bits(value, double_value)
    for a, b in zip(single, double, strict=True):
        if a is not None:
            same_bits(a, b)


@pytest.mark.parametrize("name", PRODUCTS)
@both_dtypes
def test_threads_agree_on_products(name, dtype, two_threads):
    row = SAMPLED[name]
    args = in_dtype(PRODUCTS[name](np.random.default_rng(0)), dtype)
    found = []
    for threads in (1, 2, 2):
        cg.set_num_threads(threads)
        value, dxs = gradients(row, args, {})
        found.append([value, *dxs])
    for one, two, again in zip(*found, strict=True):
        np.testing.assert_allclose(one, two, rtol=0, atol=abs(one).max() * (1e-6 if dtype == "float32" else 1e-14))
        same_bits(two, again)


# ---- programs --------------------------------------------------------------------------------------------------------

SHAPE = "capture: a result whose shape depends on values, that of {}, cannot be captured"


@both_dtypes
@every_case
def test_program(row, args, kwargs, dtype):
    """Forward into planned memory: 100 times the bits of eager code, without an allocation."""
    args = in_dtype(args, dtype)
    xs = tensors(args)
    if row.operator.data_dependent_shape:
        with pytest.raises(RuntimeError, match=SHAPE.format(row.operator.name)):
            Program(lambda: row.tested(*xs, **kwargs))
        return
    program = Program(lambda: row.tested(*xs, **kwargs))
    arrays = [x.numpy() for x, a in zip(xs, args, strict=True) if is_floating(a)]
    scratch = program.run().numpy()
    row.tested(*xs, **kwargs)                       # (then the pool has what eager code takes beside the program)
    own = not any(np.shares_memory(scratch, a) for a in arrays)
    system = cg.memory.stats()["system_allocations"]
    for turn in range(2):
        for a in arrays:
            a *= 1 + turn                           # the inputs change before each run
        if own and scratch.flags.writeable:
            scratch[...] = 1                        # the old contents do not matter
        with cg.memory.events() as log:
            for _ in range(100 - 99 * turn):
                y = program.run()
        assert log == []
        assert y is program.outputs
        same_bits(y.numpy(), row.tested(*xs, **kwargs).numpy())
    assert cg.memory.stats()["system_allocations"] == system


def called(row, args, kwargs, leaves):
    """A function of the arrays among `args`: the value, and the gradients of `leaves` by a backward pass."""
    at = [i for i, a in enumerate(args) if is_array(a)]

    def f(*xs):
        given = list(args)
        for i, x in zip(at, xs, strict=True): given[i] = x
        for i, leaf in leaves.items(): given[i] = leaf
        with cg.record(): y = row.tested(*given, **kwargs)
        if not leaves: return y
        with cg.record(): loss = (y * y).sum()
        loss.backward()
        return (y, *[leaf.grad for leaf in leaves.values()])

    return f, [args[i] for i in at]


@both_dtypes
@every_case
def test_program_of_arguments(row, args, kwargs, dtype):
    """The arguments are given to run(): the values may differ from run to run."""
    args = in_dtype(args, dtype)
    if row.operator.data_dependent_shape: return
    f, arrays = called(row, args, kwargs, {})
    try: program = Program(f, *[(a.shape, a.dtype) for a in arrays])
    except RuntimeError as e:
        assert re.match("capture: (reading the values|a write to the elements where)", str(e)), e
        return
    for turn in (1, 2):
        given = [a * a.dtype.type(turn) if is_floating(a) else a for a in arrays]
        same_bits(program.run(*given).numpy(), f(*tensors(given)).numpy())


@both_dtypes
@every_gradient
def test_program_of_gradients(row, args, kwargs, dtype):
    """Kernels of backward in planned memory: .grad of variables, bit for bit."""
    args = in_dtype(args, dtype)
    leaves = {i: cg.tensor(args[i]).attach_grad() for i in floating_places(args)}
    f, arrays = called(row, args, kwargs, leaves)
    try: program = Program(f, *arrays)
    except RuntimeError as e:
        assert re.match("capture: (reading the values|a write to the elements where|a result whose shape|the gradient "
                        "of .* reads)", str(e)), e
        return
    for turn in (1, 0.875):
        for x in leaves.values(): x.copy_(x * turn)
        ours = [y.numpy().copy() for y in program.run(*arrays)]
        for a, b in zip(ours, f(*tensors(arrays)), strict=True): same_bits(a, b.detach().numpy())
