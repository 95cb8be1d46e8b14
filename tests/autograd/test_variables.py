"""Variables, contract 3: how gradients are requested, where they arrive, and the attributes of tensors."""

import itertools

import numpy as np
import pytest

import cygrad as cg


def variable(numbers=(1.0, 2.0), req="write"):
    return cg.tensor(list(numbers)).attach_grad(req)


def run(f, *args, **kwargs):
    """f's sum in record(), and its backward."""
    with cg.record():
        y = f(*args)
    y.backward(**kwargs)


# ---- attach_grad -----------------------------------------------------------------------------------------------------

def test_attach_grad_returns_the_tensor_with_zeros():
    x = cg.tensor([1.0, 2.0])
    assert (x.requires_grad, x.is_leaf, x.grad_req, x.grad, x.grad_fn) == (False, True, "null", None, None)
    assert x.attach_grad() is x
    assert x.grad.tolist() == [0.0, 0.0] and x.grad.dtype == x.dtype
    assert (x.requires_grad, x.is_leaf, x.grad_req, x.grad_fn) == (True, True, "write", None)
    assert not x.fresh_grad


def test_write_overwrites_and_sums_branches():
    x = variable()
    for _ in range(2):
        run(lambda: x * x + x)
        assert x.grad.tolist() == [3.0, 5.0]


def test_add_accumulates():
    x = variable(req="add")
    for n in (1, 2, 3):
        run(lambda: x * x + x)
        assert x.grad.tolist() == [3.0 * n, 5.0 * n]


def test_null_wants_none():
    x, y = variable(req="null"), variable()
    assert x.grad is None and not x.requires_grad and x.grad_req == "null"
    run(lambda: x * y)
    assert x.grad is None and y.grad.tolist() == [1.0, 2.0]


@pytest.mark.parametrize("reqs", list(itertools.product(["write", "add", "null"], repeat=3)))
def test_all_mixtures(reqs):
    """One operation of each kind with each mixture of requests, twice."""
    xs = [variable(req=req) for req in reqs]
    for turn in (1, 2):
        with cg.record():
            z = xs[0] * xs[1] + xs[2] * xs[0] - xs[1]
        if reqs == ("null",) * 3:
            assert not z.requires_grad
            continue
        z.backward()
        wanted = [[2.0, 4.0], [0.0, 1.0], [1.0, 2.0]]
        for x, req, numbers in zip(xs, reqs, wanted, strict=True):
            if req == "null":
                assert x.grad is None
            else:
                assert x.grad.tolist() == [n * (turn if req == "add" else 1) for n in numbers]


@pytest.mark.parametrize("req", ["write", "add"])
def test_gradients_go_into_the_same_tensor(req):
    """For every way in which a gradient arrives: from an elementwise kernel, a product, a broadcast sum."""
    w, b = cg.tensor(np.ones((2, 3), "float32")).attach_grad(req), cg.tensor([0.0, 0.0]).attach_grad(req)
    x = cg.tensor(np.ones((4, 3), "float32"))
    gradients = w.grad, b.grad
    arrays = [g.numpy() for g in gradients]
    for turn in (1, 2):
        versions = [g.version for g in gradients]
        with cg.record():
            y = cg.linear(x, w, b) * 1.0
        y.backward()
        del y
        assert w.grad is gradients[0] and b.grad is gradients[1]
        n = turn if req == "add" else 1
        assert (arrays[0] == 4 * n).all() and (arrays[1] == 4 * n).all()
        assert all(g.version > v for g, v in zip(gradients, versions, strict=True))


@pytest.mark.parametrize("names", [None, "Write", "", 3, ["write"]])
def test_unknown_requests(names):
    x = cg.tensor([1.0])
    with pytest.raises(ValueError, match='grad_req must be "write", "add" or "null", got '):
        x.attach_grad(names)
    assert not x.requires_grad


@pytest.mark.parametrize("dtype", ["bool", "int8", "int64", "uint16"])
def test_integers_have_no_gradient(dtype):
    x = cg.tensor([1, 0], dtype=dtype)
    for ask in (x.attach_grad, x.requires_grad_, lambda: cg.mark_variables(x, x), lambda: cg.tensor([1], dtype=dtype,
                                                                                                   requires_grad=True)):
        with pytest.raises(TypeError, match=f"{dtype} tensors cannot have gradients; only float32 and float64"):
            ask()
    assert not x.requires_grad


def test_attaching_again_changes_how_it_takes_gradients():
    """Graphs that were recorded before still reach it."""
    x = variable()
    with cg.record():
        y = x * 3
    gradient = x.grad
    x.attach_grad("add")
    assert x.grad is gradient and x.grad_req == "add"
    y.backward(retain_graph=True)
    y.backward(retain_graph=True)
    assert x.grad.tolist() == [6.0, 6.0]
    x.attach_grad("null")
    assert x.grad is None
    y.backward(retain_graph=True)
    assert x.grad is None
    x.attach_grad("write")
    y.backward()
    assert x.grad.tolist() == [3.0, 3.0]


# ---- requires_grad ---------------------------------------------------------------------------------------------------

def test_the_pytorch_habit():
    for x in (cg.tensor([1.0, 2.0], requires_grad=True), cg.tensor([1.0, 2.0]).requires_grad_()):
        assert (x.requires_grad, x.grad_req, x.grad) == (True, "add", None)
        for n in (1, 2):
            run(lambda x=x: x * x)
            assert x.grad.tolist() == [2.0 * n, 4.0 * n]
        assert x.requires_grad_(False) is x
        assert not x.requires_grad and x.grad_req == "null"


def test_none_then_a_gradient_of_its_own():
    """The first gradient must not share memory with the head or with another variable's gradient."""
    x, y = cg.tensor([1.0, 2.0], requires_grad=True), cg.tensor([1.0, 2.0], requires_grad=True)
    head = cg.tensor([5.0, 6.0])
    with cg.record():
        z = x + y
    z.backward(head)
    x.grad.numpy()[...] = 0
    assert y.grad.tolist() == [5.0, 6.0] and head.tolist() == [5.0, 6.0]


# ---- mark_variables --------------------------------------------------------------------------------------------------

def test_mark_variables_writes_into_the_callers_buffers():
    xs = [cg.tensor([1.0, 2.0]) for _ in range(3)]
    gs = [cg.tensor([7.0, 7.0]) for _ in range(3)]
    cg.mark_variables(xs, gs, ["write", "add", "null"])
    assert [x.grad_req for x in xs] == ["write", "add", "null"]
    assert xs[0].grad is gs[0] and xs[1].grad is gs[1]
    run(lambda: xs[0] * xs[1] * xs[2])
    assert [g.tolist() for g in gs] == [[1.0, 4.0], [8.0, 11.0], [7.0, 7.0]]


def test_mark_variables_takes_one():
    x, g = cg.tensor([1.0, 2.0]), cg.zeros(2)
    cg.mark_variables(x, g)
    run(lambda: x * x)
    assert g.tolist() == [2.0, 4.0] and x.grad is g


def test_mark_variables_into_numpy_memory():
    a = np.zeros((2, 4), "float32")
    x = cg.tensor([1.0, 2.0])
    cg.mark_variables(x, cg.asarray(a)[:, 1])
    run(lambda: x * x)
    assert a[:, 1].tolist() == [2.0, 4.0] and not a[:, [0, 2, 3]].any()


@pytest.mark.parametrize("variables, gradients, reqs, error, match", [
    (2, 1, "write", ValueError, "2 variables, 1 gradients and 2 grad_reqs; there must be one of each"),
    (2, 2, ["write"], ValueError, "2 variables, 2 gradients and 1 grad_reqs"),
    (2, 2, ["write", "plus"], ValueError, 'grad_req must be "write", "add" or "null", got \'plus\''),
    (2, "shape", "write", ValueError, r"gradient 1 is float32 of shape \(3,\); the tensor is float32 of shape \(2,\)"),
    (2, "dtype", "write", ValueError, r"mark_variables: gradient 1 is float64 of shape \(2,\); the tensor is float32"),
    (2, "array", "write", TypeError, "variable and gradient 1 must be tensors, got Tensor and numpy.ndarray"),
])
def test_mark_variables_checks_before_it_changes(variables, gradients, reqs, error, match):
    xs = [cg.tensor([1.0, 2.0]) for _ in range(variables)]
    odd = {"shape": cg.zeros(3), "dtype": cg.zeros(2, dtype="float64"), "array": np.zeros(2, "float32")}
    gs = [cg.zeros(2), odd[gradients]] if isinstance(gradients, str) else [cg.zeros(2) for _ in range(gradients)]
    with pytest.raises(error, match=match):
        cg.mark_variables(xs, gs, reqs)
    assert not any(x.requires_grad for x in xs)


# ---- .grad -----------------------------------------------------------------------------------------------------------

def test_grad_can_be_assigned():
    x = variable(req="add")
    x.grad = None
    assert x.grad is None
    run(lambda: x * x)
    assert x.grad.tolist() == [2.0, 4.0]
    g = cg.tensor([10.0, 10.0])
    x.grad = g
    assert x.grad is g
    run(lambda: x * x)
    assert g.tolist() == [12.0, 14.0]


def test_a_gradient_is_not_the_variable_s_own_memory():
    """Backward would write the gradient over the variable."""
    array = np.ones(4)
    flat = cg.zeros(4, dtype="float64")
    for x, wrong in ((variable(), lambda x: x), (variable(), lambda x: x.detach()),
                     (variable(), lambda x: x.detach()[::-1]), (flat[:2].attach_grad(), lambda x: flat[1:3]),
                     (cg.asarray(array)[:2].attach_grad(), lambda x: cg.asarray(array)[1:3])):
        with pytest.raises(ValueError, match="the assigned gradient shares memory with its tensor"):
            x.grad = wrong(x)
        with pytest.raises(ValueError, match="mark_variables: gradient 0 shares memory with its tensor"):
            cg.mark_variables([x], [wrong(x)])
    x = flat[::2].attach_grad()
    x.grad = flat[1::2]                             # two parts of one buffer
    run(lambda: x * 3)
    assert flat.tolist() == [0.0, 3.0, 0.0, 3.0]


def test_grad_refuses():
    x = variable()
    for wrong, match in ((cg.zeros(3), r"assigned gradient is float32 of shape \(3,\); the tensor is float32 of shape"),
                         (cg.zeros(2, dtype="float64"), "the assigned gradient is float64")):
        with pytest.raises(ValueError, match=match):
            x.grad = wrong
    with pytest.raises(TypeError, match="grad must be a tensor, a GradientSlice or None, got list"):
        x.grad = [0.0, 0.0]
    with pytest.raises(RuntimeError, match="this tensor is not a variable"):
        cg.zeros(2).grad = cg.zeros(2)
    assert x.grad.tolist() == [0.0, 0.0]


def test_zero_grad():
    x = variable()
    x.grad = cg.tensor([float("nan"), float("inf")])
    g = x.grad
    x.zero_grad()
    assert x.grad is g and g.tolist() == [0.0, 0.0]
    x.grad = None
    x.zero_grad()
    assert x.grad is None
    cg.zeros(2).zero_grad()


def test_drop_grad():
    x = variable()
    with cg.record():
        y = x * x
    assert x.drop_grad() is x
    assert (x.grad, x.requires_grad, x.grad_req) == (None, False, "null")
    with cg.record():
        assert not (x * x).requires_grad
    y.backward()
    assert x.grad is None


def test_categories_follow():
    x = cg.tensor([1.0, 2.0])

    def count():
        found = cg.memory.stats()["by_category"]
        return found["parameters"], found["gradients"], found["other"]

    assert count() == (0, 0, 8)
    x.attach_grad()
    assert count() == (8, 0, 0)                     # (zeros have no memory)
    x.grad.fill_(1)
    assert count() == (8, 8, 0)
    x.drop_grad()
    assert count() == (0, 0, 8)
    x.requires_grad_()
    assert count() == (8, 0, 0)
    run(lambda: x * x)
    assert count() == (8, 8, 0)


# ---- fresh_grad ------------------------------------------------------------------------------------------------------

def test_fresh_grad():
    x, y = variable(), variable()
    assert not x.fresh_grad
    run(lambda: x * 0)
    assert x.fresh_grad and not y.fresh_grad and x.grad.tolist() == [0.0, 0.0]
    x.zero_grad()
    assert not x.fresh_grad
    run(lambda: x * y)
    assert x.fresh_grad and y.fresh_grad
    x.fresh_grad = False
    assert not x.fresh_grad
    assert not cg.zeros(1).fresh_grad
    with pytest.raises(RuntimeError, match="this tensor is not a variable"):
        cg.zeros(1).fresh_grad = True


@pytest.mark.parametrize("grad_req", ["write", "add"])
@pytest.mark.parametrize("assign, fresh", [
    (lambda x: setattr(x, "grad", cg.ones(2)), True), (lambda x: setattr(x, "grad", x.grad * 2), True),
    (lambda x: setattr(x, "grad", x.grad), True),
    (lambda x: setattr(x, "grad", cg.GradientSlice([1], np.ones(1, "float32"))), True),
    (lambda x: setattr(x, "grad", None), False), (lambda x: delattr(x, "grad"), False),
    (lambda x: x.grad.fill_(1), False), (lambda x: x.grad.__setitem__(0, 1), False)])
def test_an_assigned_gradient_is_fresh(grad_req, assign, fresh):
    """A write in place is no assignment."""
    x = variable(req=grad_req)
    assign(x)
    assert x.fresh_grad == fresh
    x.zero_grad()
    assert not x.fresh_grad


def test_operators_that_assign_a_gradient():
    """x.grad += 1 ends with an assignment to x.grad."""
    x = variable()
    x.grad += 1
    assert x.fresh_grad and x.grad.tolist() == [1, 1]
    cg.optim.Sgd([x], lr=1.0).update()
    assert not x.fresh_grad
    x.grad *= 2
    assert x.fresh_grad and x.grad.tolist() == [2, 2]


def test_an_assignment_during_a_pass_completes_nothing():
    """A hook of a node assigns the gradient of a variable, to which the pass has added one of two contributions."""
    x, seen = variable(req="add"), []

    def assign(g):
        for value in (cg.ones(2), x.grad):
            x.grad = value
            seen.append(x.fresh_grad)

    with cg.record():
        y = x * 2
        y.register_hook(assign)
        z = (y * 3).sum() + (x * x).sum()           # x * x contributes first
    z.backward()
    assert seen == [False, False] and not x.fresh_grad
    with pytest.raises(RuntimeError, match="the gradient of 'x' is incomplete"): cg.optim.Sgd({"x": x}).update()
    x.grad = cg.ones(2)
    assert x.fresh_grad


def test_solvers_skip_what_was_not_reached():
    x, y = variable(), variable()
    solver = cg.optim.Sgd(lr=0.5)
    solver.set_parameters({"x": x, "y": y})
    run(lambda: x * 2)
    solver.update()
    assert x.tolist() == [0.0, 1.0] and y.tolist() == [1.0, 2.0]
    with pytest.warns(UserWarning, match="update: no backward pass has reached a parameter"): solver.update()
    assert x.tolist() == [0.0, 1.0]


# ---- detach ----------------------------------------------------------------------------------------------------------

def test_detach_shares_memory_and_version():
    x = variable()
    d = x.detach()
    assert not d.requires_grad and d.is_leaf and d.grad is None
    with cg.no_grad():
        d += 1
    assert x.tolist() == [2.0, 3.0] and x.version == d.version == 1


def test_stop_gradient():
    x = variable()
    run(lambda: cg.stop_gradient(x) * x)
    assert x.grad.tolist() == [1.0, 2.0]
    with cg.record():
        assert not (x.detach() * 2).requires_grad and not cg.stop_gradient(x * 2).requires_grad


# ---- the graph seen from a tensor ------------------------------------------------------------------------------------

def test_grad_fn():
    x, y = variable(), cg.tensor([1.0, 2.0])
    with cg.record():
        z = x * y
        w = z + x
    assert w.grad_fn.name() == "add" and not w.is_leaf and w.requires_grad and w.grad_req == "null"
    (first, nr), (second, other) = w.grad_fn.next_functions
    assert first is z.grad_fn and second.name() == "leaf" and (nr, other) == (0, 0)
    assert z.grad_fn.next_functions == ((second, 0), (None, 0))
    assert w.grad is None
    assert repr(z.grad_fn) == "<mul node>"


def test_a_variable_that_dies_takes_its_gradient_along():
    with cg.record():
        y = cg.tensor([1.0, 2.0]).attach_grad() * 3
    y.backward()
    del y
    assert cg.memory.stats()["live_bytes"] == 0


def test_create_graph_never_replaces_a_buffer_of_the_callers():
    x, g = cg.tensor([1.0, 2.0]), cg.zeros(2)
    cg.mark_variables(x, g)
    with cg.record():
        y = x * x
    with pytest.raises(RuntimeError, match="mark_variables"):
        y.backward(create_graph=True)
    assert x.grad is g and g.tolist() == [0, 0]
    (d,) = cg.autograd.grad(y, [x], create_graph=True)
    assert d.tolist() == [2, 4]
    x.drop_grad()


def test_del_grad():
    x = cg.tensor([1.0, 2.0]).attach_grad()
    del x.grad
    assert x.grad is None and x.requires_grad and cg.memory.stats()["by_category"]["gradients"] == 0
    del x.grad
    with cg.record():
        y = x * 2
    y.backward()
    assert x.grad.tolist() == [2.0, 2.0]
    plain = cg.ones(2)
    del plain.grad
    assert plain.grad is None
