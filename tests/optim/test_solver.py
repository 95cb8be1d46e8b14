"""Sgd and Adam, compared with NumPy and PyTorch."""

import copy
import pickle

import numpy as np
import pytest

import cygrad as cg


def variable(a, dtype="float64"):
    return cg.tensor(np.asarray(a, dtype)).attach_grad()


def push(x, g):
    """Run a backward that gives x the gradient g."""
    with cg.record():
        y = x * cg.tensor(np.asarray(g, x.dtype))
    y.backward()


GRADIENTS = np.random.default_rng(3).normal(size=(12, 3, 5)) * np.logspace(-6, 2, 12)[:, None, None]
START = np.random.default_rng(4).normal(size=(3, 5))


@pytest.mark.parametrize("dtype, rtol", [("float64", 1e-12), ("float32", 2e-5)])
def test_sgd_by_numpy(dtype, rtol):
    x, w = variable(START, dtype), START.copy()
    solver = cg.optim.Sgd(lr=0.05)
    solver.set_parameters({"x": x})
    for g in GRADIENTS:
        push(x, g)
        solver.update()
        w -= 0.05 * g
    np.testing.assert_allclose(x.numpy(), w, rtol, 1e-6 if dtype == "float32" else 0)
    assert x.version == len(GRADIENTS)


def adam(w, gradients, alpha, beta1, beta2, eps):
    m = v = np.zeros_like(w)
    for t, g in enumerate(gradients, 1):
        m = beta1 * m + (1 - beta1) * g
        v = beta2 * v + (1 - beta2) * g * g
        w = w - alpha * np.sqrt(1 - beta2**t) / (1 - beta1**t) * m / (np.sqrt(v) + eps)
    return w


@pytest.mark.parametrize("settings", [(1e-3, 0.9, 0.999, 1e-8), (0.1, 0.5, 0.9, 1e-3), (0.01, 0.0, 0.0, 1e-8)])
@pytest.mark.parametrize("dtype, rtol", [("float64", 1e-12), ("float32", 1e-4)])
def test_adam_by_numpy(settings, dtype, rtol):
    x = variable(START, dtype)
    solver = cg.optim.Adam(*settings)
    solver.set_parameters([x])
    for g in GRADIENTS:
        push(x, g)
        solver.update()
    np.testing.assert_allclose(x.numpy(), adam(START, GRADIENTS, *settings), rtol, 1e-5 if dtype == "float32" else 0)


def test_adam_against_pytorch():
    """PyTorch divides by sqrt(v) / sqrt(1 - beta2^t) + eps. cygrad, like nnabla and the faster form of the paper,
    divides by sqrt(v) + eps and corrects the learning rate instead. PyTorch's eps in step t is cygrad's divided by
    sqrt(1 - beta2^t). With this eps both agree up to rounding; with equal ones they differ only by eps."""
    torch = pytest.importorskip("torch")
    beta2, eps, gradients = 0.99, 1e-4, GRADIENTS[4:]

    def theirs(eps_of):
        p = torch.tensor(START, requires_grad=True)
        solver = torch.optim.Adam([p], 0.01, (0.9, beta2), eps)
        for t, g in enumerate(gradients, 1):
            solver.param_groups[0]["eps"] = eps_of(t)
            p.grad = torch.tensor(g)
            solver.step()
        return p.detach().numpy()

    def ours():                                     # (a separate frame, because PyTorch's cycles keep the frame alive)
        x = variable(START)
        solver = cg.optim.Adam(0.01, 0.9, beta2, eps)
        solver.set_parameters([x])
        for g in gradients:
            push(x, g)
            solver.update()
        return x.numpy().copy()

    np.testing.assert_allclose(ours(), theirs(lambda t: eps / np.sqrt(1 - beta2**t)), 1e-12)
    assert 1e-9 < np.abs(ours() - theirs(lambda t: eps)).max() < 1e-2


@pytest.mark.parametrize("make", [cg.optim.Sgd, cg.optim.Adam])
def test_parameters_that_no_backward_reached_are_left_alone(make):
    x, y = variable([1.0, 2.0]), variable([3.0])
    solver = make(0.1)
    solver.set_parameters([x, y])
    idle = (r"^update: no backward pass has reached a parameter since the last update or zero_grad\(\), so nothing has "
            r"changed; if you wrote to a gradient in place, set fresh_grad = True on its variable$")
    with pytest.warns(UserWarning, match=idle) as warned: solver.update()
    assert warned[0].filename == __file__
    push(x, [1.0, 1.0])
    assert x.fresh_grad and not y.fresh_grad
    solver.update()
    moved = x.tolist()
    assert moved != [1.0, 2.0] and y.tolist() == [3.0] and (x.version, y.version) == (1, 0)
    assert not x.fresh_grad
    with pytest.warns(UserWarning, match=idle): solver.update()     # the gradient is used already
    assert x.tolist() == moved
    x.grad.fill_(1)
    with pytest.warns(UserWarning, match=idle): solver.update()     # written by hand
    assert x.tolist() == moved
    push(x, [1.0, 1.0])
    solver.zero_grad()
    assert x.grad.tolist() == [0.0, 0.0]
    with pytest.warns(UserWarning, match=idle): solver.update()
    assert x.tolist() == moved
    x.grad = None
    solver.zero_grad()
    with pytest.warns(UserWarning, match=idle): solver.update()
    assert x.tolist() == moved


@pytest.mark.parametrize("grad_req", ["write", "add"])
def test_an_assigned_gradient_is_used_once(grad_req):
    x, table = variable([1.0, 2.0]), variable(np.ones((3, 2)))
    solver = cg.optim.Sgd({"x": x.attach_grad(grad_req), "table": table}, lr=1.0)
    x.grad, table.grad = cg.tensor([0.5, 1.0], "float64"), cg.GradientSlice([1], np.ones((1, 2)))
    solver.weight_decay(0.5)                        # (decay and clipping take it too)
    solver.update()
    assert x.tolist() == [0, 0] and table.tolist() == [[1, 1], [-0.5, -0.5], [1, 1]]
    with pytest.warns(UserWarning, match="^update: no backward pass has reached"): solver.update()
    assert x.tolist() == [0, 0]
    x.grad = None
    with pytest.warns(UserWarning, match="^update: no backward pass has reached"): solver.update()


def test_a_gradient_of_zero_is_a_gradient():
    x = variable([1.0])
    solver = cg.optim.Adam(0.1)
    solver.set_parameters([x])
    push(x, [1.0])
    solver.update()
    before = x.item()
    push(x, [0.0])
    solver.update()                                 # the old mean continues
    assert x.item() < before


def test_a_gradient_that_is_not_contiguous():
    x = variable(START)
    solver = cg.optim.Sgd(0.5)
    solver.set_parameters([x])
    x.grad = cg.tensor(np.ascontiguousarray(GRADIENTS[0].T)).T
    solver.update()
    np.testing.assert_allclose(x.numpy(), START - 0.5 * GRADIENTS[0], 1e-15)


def test_update_allocates_nothing_and_a_new_set_starts_anew():
    x = variable(np.ones(1000))
    solver = cg.optim.Adam(0.1)
    solver.set_parameters({"a": x})
    assert cg.memory.stats()["by_category"]["optimizer"] == 16000
    push(x, np.ones(1000))
    with cg.memory.events() as log:
        solver.update()
    assert log == []
    first = x.numpy().copy()
    solver.set_parameters({"a": x})
    x[...] = 1.0
    push(x, np.ones(1000))
    solver.update()
    assert (x.numpy() == first).all()
    assert list(solver.get_parameters()) == ["a"] and solver.get_parameters()["a"] is x


def test_learning_rate():
    solver = cg.optim.Sgd(0.5)
    x = variable([1.0])
    solver.set_parameters([x])
    solver.set_learning_rate(0.25)
    push(x, [1.0])
    solver.update()
    assert x.item() == 0.75 and solver.learning_rate() == 0.25


@pytest.mark.parametrize("change", [lambda s: s.set_learning_rate(1e200),
                                    lambda s: s.param_groups[0].__setitem__("lr", 1e200)])
def test_a_first_rate_that_is_too_large_for_the_decay_changes_nothing(change):
    solver = cg.optim.AdamW([{"params": [cg.ones(2, requires_grad=True)]}], lr=0.0, weight_decay=1e200)
    with pytest.raises(ValueError, match="weight_decay 1e.200 times the first rate 1e.200 is not finite"):
        change(solver)
    assert solver.learning_rate() == solver.param_groups[0]["lr"] == 0
    solver.set_learning_rate(0.5)
    assert solver.state_dict()["param_groups"][0]["decay"] == 0.5e200


def test_one_parameter_needs_no_list_and_a_rate_may_be_zero():
    x = variable([1.0, 2.0])
    solver = cg.optim.Sgd(0)                        # the end of a schedule
    solver.set_parameters(x)
    assert solver.get_parameters() == {"0": x}
    for rate, wanted in ((0, [1.0, 2.0]), (1, [0.5, 1.5])):
        solver.set_learning_rate(rate)
        push(x, [0.5, 0.5])
        solver.update()
        assert x.tolist() == wanted


def test_wrong_arguments_say_so_and_change_nothing():
    for make, text in ((lambda: cg.optim.Sgd(-0.5), "lr must be at least 0 and finite, got -0.5"),
                       (lambda: cg.optim.Adam(-1.0), "alpha must be at least 0"),
                       (lambda: cg.optim.Adam(beta1=1.0), "beta1 must be at least 0 and less than 1, got 1.0"),
                       (lambda: cg.optim.Adam(beta2=float("nan")), "beta2 must be at least 0"),
                       (lambda: cg.optim.Adam(eps=0.0), "eps must be greater than 0")):
        with pytest.raises(ValueError, match=text):
            make()
    x = variable([1.0, 2.0])
    solver = cg.optim.Sgd(0.1)
    solver.set_parameters({"x": x})
    with pytest.raises(ValueError, match="lr must be"):
        solver.set_learning_rate(float("nan"))
    plain, strided = cg.ones(3), cg.ones((2, 3)).T.attach_grad()
    with cg.record():
        made = x * 2.0
    for bad, error, text in (([np.ones(3)], TypeError, "'0' must be a tensor, got a float64 array of shape"),
                             ({"w": plain}, ValueError, r"'w', of shape \(3,\), is not a variable; call attach_grad"),
                             ({"w": made}, ValueError, "is not a variable"),
                             ({"w": strided}, ValueError, "is not contiguous")):
        with pytest.raises(error, match=text):
            solver.set_parameters(bad)
    assert list(solver.get_parameters()) == ["x"] and solver.learning_rate() == 0.1


# ---- pickles and copies ----------------------------------------------------------------------------------------------

SOLVERS = [lambda: cg.optim.Sgd(0.25), lambda: cg.optim.Adam(0.01, 0.8, 0.95, 1e-6)]
COPIES = [*(lambda v, p=p: pickle.loads(pickle.dumps(v, p)) for p in range(pickle.HIGHEST_PROTOCOL + 1)), copy.deepcopy]


@pytest.mark.parametrize("again", COPIES)
@pytest.mark.parametrize("make", SOLVERS)
def test_a_solver_goes_on_where_its_pickle_was_made(make, again):
    model = {"w": variable(START), "b": variable(START[0], "float32")}
    solver = make()
    solver.set_parameters(model)
    for g in GRADIENTS[:3]:
        push(model["w"], g)
        if g is not GRADIENTS[1]: push(model["b"], g[0])        # (so that their step counts differ)
        solver.update()
    solver.zero_grad()
    loaded, twin = again((model, solver))
    assert type(twin) is type(solver) and twin.learning_rate() == solver.learning_rate()
    assert list(twin.get_parameters()) == ["w", "b"]
    assert all(twin.get_parameters()[name] is loaded[name] is not model[name] for name in model)
    for g in GRADIENTS[3:6]:
        for v in (model, loaded):
            push(v["w"], g), push(v["b"], g[0])
        solver.update(), twin.update()
        assert all(v.numpy().tobytes() == loaded[name].numpy().tobytes() for name, v in model.items())


@pytest.mark.parametrize("again", [*COPIES, copy.copy])
def test_a_solver_without_parameters_pickles_its_settings(again):
    solver = again(cg.optim.Adam(0.01, 0.8, 0.95, 1e-6))
    assert (solver.lr, solver.beta1, solver.beta2, solver.eps) == (0.01, 0.8, 0.95, 1e-6)
    assert solver.get_parameters() == {} and again(cg.optim.Sgd(0.5)).lr == 0.5
    with pytest.raises(RuntimeError, match="this solver has no parameters"):
        solver.update()


def test_a_copied_solver_shares_the_parameters_and_not_the_states():
    x = variable([1.0])
    solver = cg.optim.Adam(0.1)
    solver.set_parameters([x])
    before = cg.memory.stats()["by_category"]["optimizer"]
    twin = copy.copy(solver)
    assert twin.get_parameters()["0"] is x and cg.memory.stats()["by_category"]["optimizer"] == 2 * before == 32


class Decaying(cg.optim.Sgd):
    """A solver written in Python."""


def test_attributes_of_a_subclass_are_in_the_pickle():
    solver = Decaying(0.1)
    solver.decay = 0.5
    twin = pickle.loads(pickle.dumps(solver))
    assert type(twin) is Decaying and (twin.decay, twin.lr) == (0.5, 0.1)


def test_pickles_of_solvers_that_lie():
    def tampered(change):
        solver = cg.optim.Adam(0.1)
        solver.set_parameters([variable([1.0, 2.0])])
        state = solver.__getstate__()
        change(state, state["parameters"]["0"])
        twin = cg.optim.Adam.__new__(cg.optim.Adam)
        try: twin.__setstate__(state)
        finally: assert twin.get_parameters() == {}

    def states(**given):
        return lambda state, p: p[1].update(given)

    for change, error, words in [
            (states(m=cg.zeros(3, "float64")), ValueError, r"the state m of '0' must be a "
             r"float64 tensor of shape \(2,\) like the parameter, got a float64 tensor of shape \(3,\)"),
            (states(v=cg.zeros(2)), ValueError, "got a float32 tensor"),
            (states(v=[1, 2]), ValueError, r"got \[1, 2\]"),
            (states(u=cg.zeros(2)), ValueError, "the state of '0' must have m, v, got m, v, u"),
            (lambda state, p: state["settings"].update(beta1=2), ValueError, "beta1 must be at least 0"),
            (lambda state, p: state["parameters"].update(w=(cg.ones(2), {}, 0)), ValueError, "is not a variable"),
            (lambda state, p: state["parameters"].update(w=(3, {}, 0)), TypeError, "'w' must be a tensor"),
            (lambda state, p: state["parameters"].update(w=(variable([1.0, 2.0]), p[1], -1)), ValueError,
             "the number of updates of 'w' must be an int of at least 0, got -1"),
            (lambda state, p: state["settings"].pop("eps"), ValueError, "must have the settings alpha, beta1, beta2, "
             "eps; this one has alpha, beta1, beta2")]:
        with pytest.raises(error, match=words):
            tampered(change)


def test_a_solver_without_a_rule_says_so():
    class Nothing(cg.optim.Solver):
        pass

    x, solver = cg.ones(3).attach_grad(), Nothing()
    solver.set_parameters([x])
    with cg.record():
        y = (x * x).sum()
    y.backward()
    with pytest.raises(NotImplementedError, match="Nothing has no rule; a solver names its rule"):
        solver.update()
    assert x.tolist() == [1, 1, 1]
