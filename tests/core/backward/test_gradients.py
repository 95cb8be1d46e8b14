"""How a gradient arrives in .grad with "write": if nothing else holds either memory, the two buffers are swapped;
otherwise the gradient is copied. The two ways differ only in time."""

import gc
import weakref

import numpy as np
import pytest
from tests.properties.test_threads import in_threads

import cygrad as cg

N = 4097                                            # a strip, its vectors and one more
KEYS = "live_bytes", "live_buffers", "by_category"
DTYPES = ["float32", "float64"]


def numbers(seed, dtype="float32", shape=N):
    a = np.random.default_rng(seed).standard_normal(shape).astype(dtype)
    a.flat[:4] = 0.0, -0.0, np.inf, np.nan
    return a


def variable(dtype="float32"):
    """A variable that a backward has reached once, and whose .grad has no other holder."""
    x = cg.tensor(numbers(0, dtype)).attach_grad()
    arrive(x, numbers(1, dtype))
    return x


def arrive(x, gradient):
    """One backward that passes `gradient` to x, in memory without another holder."""
    one = cg.ones(x.shape, dtype=x.dtype)
    with cg.record():
        y = x * cg.asarray(gradient)
    y.backward(one)


def address(x):
    return x.detach().numpy().ctypes.data


@pytest.fixture
def held():
    """A function that returns the bytes of gradients, minus those from before the test."""
    def count():
        return cg.memory.stats()["by_category"]["gradients"]

    before = count()
    return lambda: count() - before


def same(x, a):
    """To the last bit, signs of zeros and NaNs too."""
    return np.asarray(x.detach()).tobytes() == a.tobytes()


# ---- swapped buffers -------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("dtype", DTYPES)
def test_places_are_changed_where_nobody_looks(dtype, held):
    x = variable(dtype)
    before, version, grad = address(x.grad), x.grad.version, weakref.ref(x.grad)
    stats = cg.memory.stats()
    for k in range(2, 5):
        arrive(x, numbers(k, dtype))
        assert address(x.grad) != before and same(x.grad, numbers(k, dtype))
        assert x.grad is grad() and x.grad.version == version + k - 1
        before = address(x.grad)
    now = cg.memory.stats()
    assert {key: now[key] for key in KEYS} == {key: stats[key] for key in KEYS}
    assert held() == x.nbytes


def test_the_new_memory_is_as_good_as_the_old(held):
    """It can be written, recorded, viewed, exported, saved for backward and freed."""
    x = variable()
    arrive(x, numbers(2))
    g = x.grad
    view = g[4:]
    g += 1
    np.testing.assert_array_equal(g.numpy(), numbers(2) + 1)
    np.testing.assert_array_equal(view.numpy(), numbers(2)[4:] + 1)
    w = cg.ones(N).attach_grad()
    with cg.record():
        y = w * g
    y.backward(cg.ones(N))
    assert same(w.grad, numbers(2) + 1)
    x.grad = None
    del view, y
    g.free()
    assert held() == w.nbytes


def test_a_pass_without_a_scope_of_memory_may_follow_one_within():
    """The tensor belongs to x, and keeps the memory that it received inside the scope."""
    x = variable()
    with cg.memory.scope():
        arrive(x, numbers(2))
    assert same(x.grad, numbers(2))
    arrive(x, numbers(3))
    assert same(x.grad, numbers(3))


# ---- copies into memory with other holders ---------------------------------------------------------------------------

HOLDERS = {
    "the tensor": lambda g: g,
    "detach()": lambda g: g.detach(),
    "a view of all": lambda g: g[:],
    "a view of a part": lambda g: g[1:],
    "a view of it turned round": lambda g: g[::-1],
    "numpy()": lambda g: g.numpy(),
    "a part of numpy()": lambda g: g.numpy()[5:7],
    "memoryview": memoryview,
    "DLPack": np.from_dlpack,
    "a capsule nobody has opened": lambda g: g.__dlpack__(),
    "a capsule of version 1": lambda g: g.__dlpack__(max_version=(1, 0)),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", HOLDERS)
def test_what_others_hold_is_written_into(name, dtype):
    x, hold = variable(dtype), HOLDERS[name]
    before, version, grad = address(x.grad), x.grad.version, weakref.ref(x.grad)
    other = hold(x.grad)
    a, b = numbers(2, dtype), numbers(3, dtype)
    arrive(x, a)
    assert address(x.grad) == before and same(x.grad, a)
    assert x.grad is grad() and x.grad.version == version + 1
    if "dltensor" not in repr(other):
        wanted = hold(cg.tensor(a))                 # the holder sees the new gradient
        np.testing.assert_array_equal(np.asarray(other), np.asarray(wanted))
        del wanted
    del other
    arrive(x, b)        # without other holders, buffers are swapped again, unless it was ever the base of a view
    assert same(x.grad, b) and (address(x.grad) == before) == ("view of" in name)


def test_an_array_of_the_gradient_stays_the_gradient():
    """It shows the gradient of each step, and writes through it change .grad."""
    x = variable()
    a = x.grad.numpy()
    for k in range(2, 5):
        arrive(x, numbers(k))
        assert a.tobytes() == numbers(k).tobytes() and np.shares_memory(a, x.grad.numpy())
    a[:] = 7
    assert (x.grad == 7).all()


def test_the_callers_own_memory_is_written_into():
    """mark_variables: a tensor that the caller holds, and one over an array of the caller."""
    x, w, b = cg.ones(N), cg.ones(N), np.zeros(N, np.float32)
    a = cg.zeros(N)
    at = address(a)
    cg.mark_variables([x, w], [a, cg.asarray(b)])
    for k in range(1, 3):
        arrive(x, numbers(k))
        arrive(w, numbers(k + 5))
        assert x.grad is a and address(a) == at and same(a, numbers(k))
        assert b.tobytes() == numbers(k + 5).tobytes()


def test_the_head_stays_the_callers():
    """The gradient of x is in the head's memory, so .grad does not take it."""
    x = variable()
    head = cg.tensor(numbers(2))
    with cg.record():
        y = x + 1
    y.backward(head)
    assert same(x.grad, numbers(2)) and address(x.grad) != address(head)
    head += 1
    assert same(x.grad, numbers(2))


@pytest.mark.parametrize("to_x", [lambda x: x + 0, lambda x: x.reshape(N, 1).reshape(N)], ids=["add", "views"])
def test_the_gradient_itself_as_head(to_x, held):
    x = variable()
    with cg.record():
        y = to_x(x)
    y.backward(x.grad)
    assert same(x.grad, numbers(1)) and held() == x.nbytes


def test_what_a_hook_keeps_is_its_own():
    x, seen = variable(), []
    x.register_hook(seen.append)
    arrive(x, numbers(2))
    assert same(x.grad, numbers(2)) and address(x.grad) != address(seen[0])
    x.grad.fill_(3.0)
    assert same(seen[0], numbers(2))


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_gradient_of_other_strides_is_copied(dtype):
    """Only a gradient with the same strides can replace it."""
    x = cg.tensor(numbers(0, dtype, (3, 5))).attach_grad()
    a = numbers(1, dtype, (5, 3))
    for _ in range(2):
        before = address(x.grad)
        with cg.record():
            y = x.T * cg.asarray(a)
        y.backward(cg.ones((5, 3), dtype=dtype))
        assert same(x.grad, np.ascontiguousarray(a.T)) and x.grad.numpy().flags.c_contiguous
        assert address(x.grad) == before


# ---- gradients that the graph saves ----------------------------------------------------------------------------------

def test_what_backward_keeps_of_the_gradient_is_missed():
    """An operation on .grad saved it. Overwriting .grad is a write, which the backward of the operation detects."""
    x, w = variable(), cg.ones(N).attach_grad()
    with cg.record():
        z = w * x.grad
    arrive(x, numbers(2))
    assert same(x.grad, numbers(2))
    with pytest.raises(cg.InplaceError, match=r"mul saved a tensor of shape \(4097,\) for backward at version 1, but"):
        z.backward(cg.ones(N))
    assert same(w.grad, np.zeros(N, np.float32))


def test_a_gradient_that_is_a_variable_is_left_alone():
    """It has a graph of its own, so another tensor replaces it."""
    x = variable()
    g = x.grad
    g.attach_grad()
    arrive(x, numbers(2))
    assert x.grad is not g and same(g, numbers(1)) and same(x.grad, numbers(2))
    assert not x.grad.requires_grad and g.requires_grad


# ---- one tensor, several variables -----------------------------------------------------------------------------------

def test_one_tensor_is_the_gradient_of_two_variables(held):
    """Both receive each pass, and the counters change when the memory is not a gradient any more."""
    x, w, g = cg.ones(N).attach_grad(), cg.ones(N).attach_grad(), cg.zeros(N)
    x.grad = w.grad = g
    del g
    arrive(x, numbers(1))
    assert x.grad is w.grad and same(w.grad, numbers(1))
    arrive(w, numbers(2))
    assert x.grad is w.grad and same(x.grad, numbers(2))
    g = x.grad
    assert held() == g.nbytes
    x.grad = None
    assert held() == g.nbytes
    w.grad = None
    assert held() == 0
    g.free()


# ---- in the order of a pass ------------------------------------------------------------------------------------------

@pytest.mark.parametrize("dtype", DTYPES)
def test_branches_are_summed_and_passes_are_not(dtype):
    x = variable(dtype)
    a, b = (np.random.default_rng(k).standard_normal(N).astype(dtype) for k in (5, 6))
    one = cg.ones(N, dtype=dtype)
    for _ in range(2):
        with cg.record():
            y = x * cg.asarray(a) + x * cg.asarray(b)
        y.backward(one, retain_graph=True)
        y.backward(one)
        assert same(x.grad, a + b)


def test_adding_never_changes_places():
    x = cg.ones(N).attach_grad("add")
    at = address(x.grad)
    for k in range(1, 4):
        arrive(x, np.full(N, float(k), np.float32))
        assert address(x.grad) == at
    assert (x.grad == 6).all()


# ---- threads ---------------------------------------------------------------------------------------------------------

def test_memory_that_another_thread_computes_with_stays():
    """Kernels run without the GIL. While one reads or writes x.grad, a pass that overwrites it must not release the old
    memory, because other data could use it before the kernel ends."""
    n = 1 << 19
    x, w, one = cg.full(n, 5.0).attach_grad(), cg.ones(n).attach_grad(), cg.ones(n)
    arrive(x, np.ones(n, np.float32))
    stop, seen = [], set()

    def body(k):
        if k == 0:
            try:
                for _ in range(150):
                    with cg.record():
                        y = x * 1.0                 # 5 everywhere: would overwrite the old memory if it were released
                    y.backward(one)
            finally:
                stop.append(True)
            return
        while not stop:
            with cg.record():
                z = w * x.grad
            try:
                z.backward(one)
            except cg.InplaceError:                 # another pass ran in between
                continue
            seen.update(np.unique(w.grad.numpy()))

    w.grad.fill_(1)                                 # (zeros would have no memory)
    before = cg.memory.stats()
    in_threads(2, body)
    gc.collect()
    assert seen <= {1.0}
    now = cg.memory.stats()
    assert {key: now[key] for key in KEYS} == {key: before[key] for key in KEYS}
