"""What a solver does with its parameters, groups, hooks and arguments. The rules are in test_solvers.py, the states in
test_states.py."""

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


# ---- parameters ------------------------------------------------------------------------------------------------------

def trained(*names):
    """A Momentum with an update of each parameter behind it, and its variables."""
    model = {name: variable([1.0, 2.0]) for name in names}
    solver = cg.optim.Momentum(0.1)
    solver.set_parameters(model)
    for x in model.values(): push(x, [1.0, 1.0])
    solver.update()
    return solver, model


def velocity(solver, name):
    pstate, t = solver.get_states()[name]
    return pstate["v"].tolist(), t


def test_parameters_are_added_replaced_and_retained():
    solver, model = trained("a", "b")
    used, new = ([0.1, 0.1], 1), ([0.0, 0.0], 0)
    other = variable([5.0, 6.0])
    solver.set_parameters({"b": other}, reset=False, retain_state=True)
    assert solver.get_parameters() == {"a": model["a"], "b": other}
    assert velocity(solver, "a") == velocity(solver, "b") == used
    solver.set_parameters({"a": other, "b": model["b"]}, reset=False)
    assert solver.get_parameters() == {"a": other, "b": model["b"]}
    assert velocity(solver, "a") == velocity(solver, "b") == new
    solver.set_parameters({"c": model["a"]}, reset=False)
    assert list(solver.get_parameters()) == ["a", "b", "c"]
    solver.set_parameters({"c": model["a"]})
    assert list(solver.get_parameters()) == ["c"]
    solver.set_parameters({"c": model["a"]}, retain_state=True)         # (nothing is retained with reset)
    assert velocity(solver, "c") == new


def test_retained_states_must_fit():
    solver, model = trained("a", "b")
    for v, text in ((variable([1.0, 2.0, 3.0]), r"float64 \(3,\)"),
                    (variable([1.0, 2.0], "float32"), r"float32 \(2,\)")):
        with pytest.raises(ValueError, match=rf"'a' is {text}, and the state to retain is float64 \(2,\)"):
            solver.set_parameters({"c": variable([1.0]), "a": v}, reset=False, retain_state=True)
    with pytest.raises(ValueError, match="'c' is the same tensor as 'a'"):
        solver.set_parameters({"c": model["a"]}, reset=False)
    assert solver.get_parameters() == model and velocity(solver, "a") == ([0.1, 0.1], 1)


def test_parameters_are_removed():
    solver, model = trained("a", "b", "c")
    solver.remove_parameters(["a", "no such name"])
    assert solver.get_parameters() == {"b": model["b"], "c": model["c"]} and velocity(solver, "b")[1] == 1
    solver.remove_parameters("c")
    assert list(solver.get_parameters()) == ["b"]
    solver.clear_parameters()
    assert solver.get_parameters() == solver.get_states() == {} and cg.memory.stats()["by_category"]["optimizer"] == 0


def test_names():
    a, b = variable([1.0]), variable([2.0])
    solver = cg.optim.Sgd()
    for given, names in (([a, b], ["0", "1"]), ((v for v in (a, b)), ["0", "1"]), ([("x", a), ("y", b)], ["x", "y"]),
                         ({"x": a}, ["x"]), (a, ["0"]), ([], [])):
        solver.set_parameters(given)
        assert list(solver.get_parameters()) == names
    solver.set_parameters([a])
    solver.set_parameters([b], reset=False)
    assert solver.get_parameters() == {"0": a, "1": b}


def test_parameters_that_share_memory_are_refused():
    """One memory would be updated twice. Views of one storage that do not overlap are fine."""
    array = np.arange(12.0)
    whole, first, last, empty = (cg.asarray(v).attach_grad() for v in (array, array[:6], array[6:], array[3:3]))
    other, row = variable([1.0]), cg.asarray(array).reshape(3, 4)[1].attach_grad()
    solver = cg.optim.Adam({"first": first, "last": last, "empty": empty})
    solver.add_param_group({"params": {"other": other}})
    kept = solver.get_parameters()

    def refused(text, change, who="set_parameters"):
        with pytest.raises(ValueError, match=f"^{who}: {text}"): change()
        assert solver.get_parameters() == kept and len(solver.param_groups) == 2

    refused("'b' shares memory with 'a'", lambda: solver.set_parameters({"a": whole, "b": cg.asarray(array[-1:]
                                                                                                     ).attach_grad()}))
    refused("'b' shares memory with 'a'", lambda: solver.set_parameters({"a": row, "x": other, "b": whole}))
    refused("'a' shares memory with 'first'", lambda: solver.set_parameters({"a": row}, reset=False))
    refused("'a' shares memory with 'last'", lambda: solver.add_param_group({"params": {"a": cg.asarray(
        array[7:]).attach_grad()}}), "add_param_group")
    refused("'1' shares memory with '0'", lambda: solver.set_parameters([{"params": [row]}, {"params": [first]}]))
    refused("'1' shares memory with '0'", lambda: solver.set_parameters([other, other.detach().requires_grad_()]))
    with pytest.raises(ValueError, match="'1' shares memory with '0'"): cg.optim.Sgd([whole, last], lr=0.1)
    solver.set_parameters({"last": last}, reset=False)
    push(first, np.ones(6)), push(last, np.ones(6))
    solver.update()
    assert solver.get_states()["first"].t == 1 and (array < np.arange(12)).all()


# ---- groups and PyTorch's arguments ----------------------------------------------------------------------------------

def test_parameters_in_the_constructor():
    x = variable([1.0])
    for solver in (cg.optim.Adam([x], lr=0.5), cg.optim.Adam({"0": x}, alpha=0.5), cg.optim.Adam(params=[x], lr=0.5),
                   cg.optim.Adam(0.5, params=x), cg.optim.Adam(x, lr=0.5), cg.optim.Adam([("0", x)], lr=0.5),
                   cg.optim.Adam([x], lr=0.5, betas=(0.9, 0.999)), cg.optim.Adam([x], lr=0.5, weight_decay=0)):
        assert solver.lr == 0.5 and solver.get_parameters() == {"0": x} and solver.beta2 == 0.999
    assert cg.optim.Adam([x]).lr == 1e-3 and cg.optim.Lamb([x]).lr == 1e-3 and cg.optim.Lion([x]).lr == 1e-4
    assert cg.optim.Lion([x], betas=(0.5, 0.25)).beta2 == 0.25


def test_groups():
    x, y, z = (variable([1.0]) for _ in range(3))
    solver = cg.optim.Sgd([{"params": [x]}, {"params": {"y": y}, "lr": 0.5, "weight_decay": 0.1}], lr=0.25,
                          weight_decay=0.2)
    assert list(solver.get_parameters()) == ["0", "y"]
    solver.add_param_group({"params": z, "lr_mult": 4, "wd_mult": 0.5})
    assert [dict(group) for group in solver.param_groups] == [
        {"params": [x], "lr": 0.25, "lr_mult": 1, "weight_decay": 0.2, "wd_mult": 1},
        {"params": [y], "lr": 0.5, "lr_mult": 2, "weight_decay": 0.1, "wd_mult": 1},
        {"params": [z], "lr": 1.0, "lr_mult": 4, "weight_decay": 0.2, "wd_mult": 0.5}]
    for v in (x, y, z): push(v, [1.0])
    solver.step()
    np.testing.assert_allclose([x.item(), y.item(), z.item()], [1 - 0.25 * 1.2, 1 - 0.5 * 1.1, 1 - 1.1])
    solver.set_learning_rate(0.5)
    assert [group["lr"] for group in solver.param_groups] == [0.5, 1.0, 2.0]
    solver.param_groups[1]["lr"] = 0.125
    solver.param_groups[0]["weight_decay"] = 0.0
    for v in (x, y, z):
        v[...] = 1.0
        push(v, [1.0])
    solver.weight_decay(1.0)                        # g += rate wd_mult w, beside the decay of each group
    solver.update()
    np.testing.assert_allclose([x.item(), y.item(), z.item()], [1 - 0.5 * 2, 1 - 0.125 * 2.1, 1 - 2 * 1.6])
    with pytest.raises(ValueError, match="a group has lr, weight_decay, lr_mult, wd_mult to assign, not 'betas'"):
        solver.param_groups[0]["betas"] = (0.9, 0.99)
    with pytest.raises(ValueError, match="lr must be at least 0"):
        solver.param_groups[0]["lr"] = -1
    solver.set_parameters([x])
    assert [dict(group) for group in solver.param_groups] == [
        {"params": [x], "lr": 0.5, "lr_mult": 1, "weight_decay": 0.2, "wd_mult": 1}]


@pytest.mark.parametrize("change", [{"params": []}, {"lr": 1.0}, {"params": [3]}, {"params": "twice"},
                                    {"params": "new", "lr": -1}, {"params": "new", "betas": (0.5, 0.5)}])
def test_groups_that_do_not_fit_change_nothing(change):
    x = variable([1.0])
    solver = cg.optim.Adam([x])
    if change.get("params") == "twice": change = {"params": [x]}
    if change.get("params") == "new": change = change | {"params": [variable([2.0])]}
    if change == {"params": []}:
        solver.add_param_group(change)
        assert len(solver.param_groups) == 2 and solver.param_groups[1]["params"] == []
        return
    with pytest.raises((TypeError, ValueError)): solver.add_param_group(change)
    with pytest.raises((TypeError, ValueError)): solver.set_parameters([change, {"params": x}])
    assert solver.get_parameters() == {"0": x} and len(solver.param_groups) == 1


def test_decay_and_the_first_rate():
    """nnabla's wd is PyTorch's weight_decay times the first rate; a rate of 0 is not a first rate."""
    x = variable([1.0])
    solver = cg.optim.SgdW([x], lr=0.5, momentum=0.0, weight_decay=0.1)
    assert solver.wd == 0.05
    solver.set_learning_rate(0.25)
    push(x, [0.0])
    solver.step()
    np.testing.assert_allclose(x.item(), 1 - 0.25 * 0.1)
    warming = cg.optim.SgdW([variable([1.0])], lr=0.0, momentum=0.0, wd=0.5)
    for rate, wanted in ((0.0, 1.0), (0.1, 0.5), (0.05, 0.375)):
        warming.set_learning_rate(rate)
        push(warming.get_parameters()["0"], [0.0])
        warming.update()
        np.testing.assert_allclose(warming.get_parameters()["0"].item(), wanted)


@pytest.mark.parametrize("name", ["SgdW", "AdamW", "Lamb", "Lars", "Lion", "Ftrl"])
def test_a_fused_decay_holds_for_one_update(name):
    g = [0.5, -1.0]
    make = getattr(cg.optim, name)
    x, y = variable([1.0, 2.0]), variable([1.0, 2.0])
    solver, plain = make([x], lr=0.1), make([y], lr=0.1)
    for rate in (0.5, None):
        push(x, g), push(y, g)
        if rate is not None: solver.weight_decay(rate)
        assert x.grad.tolist() == g
        solver.update(), plain.update()
        assert (x.tolist() == y.tolist()) == (rate is None)
        x.copy_(y)
        solver.set_states(plain.get_states())


# ---- hooks and errors ------------------------------------------------------------------------------------------------

def test_hooks_are_called_before_and_after_each_update():
    x, y, z = variable([1.0]), variable([1.0]), variable([1.0])
    solver, seen = cg.optim.Sgd([x, y, z], lr=0.5), []
    push(x, [1.0]), push(z, [1.0])
    solver.update(lambda: seen.append((x.item(), z.item())), lambda: seen.append((x.item(), z.item())))
    assert seen == [(1.0, 1.0), (0.5, 1.0), (0.5, 1.0), (0.5, 0.5)]


@pytest.mark.parametrize("before", [True, False])
def test_what_a_hook_raises_arrives_as_itself(before):
    x, y, z = (variable([1.0]) for _ in range(3))
    solver, calls = cg.optim.Adam({"x": x, "y": y, "z": z}), []

    def hook():
        calls.append(1)
        if len(calls) == 2: raise KeyError("mine")

    for v in (x, y, z): push(v, [1.0])
    try: solver.update(*(hook,) if before else (None, hook))
    except KeyError as e: args, notes = e.args, e.__notes__
    done = "'x'" if before else "'x', 'y'"
    assert args == ("mine",)
    assert notes == [f"update: a hook failed, or a check after it; updated before: {done}"]
    assert [s.t for s in solver.get_states().values()] == [1, 0 if before else 1, 0]
    assert [v.fresh_grad for v in (x, y, z)] == [False, before, True]
    solver.update()
    assert [s.t for s in solver.get_states().values()] == [1, 1, 1]


def test_a_hook_may_change_what_comes_after_it():
    x, y, z = (variable([1.0]) for _ in range(3))
    solver = cg.optim.Sgd({"x": x, "y": y, "z": z}, lr=0.5)
    for v in (x, y, z): push(v, [1.0])
    hooks = [lambda: solver.set_learning_rate(0.25), lambda: y.zero_grad(), lambda: solver.remove_parameters("z")]
    solver.update(lambda: hooks.pop(0)())
    assert [v.item() for v in (x, y, z)] == [0.75, 1.0, 1.0]


def test_step_calls_its_closure():
    x = variable([2.0])
    solver = cg.optim.Sgd([x], lr=0.5)

    def closure():
        solver.zero_grad()
        with cg.record():
            loss = (x * x).sum()
        loss.backward()
        return loss.item()

    assert solver.step(closure) == 4.0 and x.item() == 0.0


CHANGES = {
    "scale_grad": (2.0,), "clip_grad_by_norm": (0.5,), "clip_grad_by_global_norm": (0.5,), "clip_grad_by_value": (0.5,),
    "weight_decay": (0.5,), "update": (), "check_inf_grad": (), "check_nan_grad": (), "check_inf_or_nan_grad": (),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_no_backward_reached_is_left_alone(name):
    x, y = variable([np.inf, 1.0]), variable([1.0, 1.0])
    solver = cg.optim.Sgd({"x": x, "y": y})
    push(x, [np.inf, np.nan]), push(y, [3.0, 4.0])
    x.fresh_grad = False
    assert not getattr(solver, name)(*CHANGES[name]) or name == "clip_grad_by_global_norm"
    assert x.grad.tolist()[0] == np.inf and x.version == 0 and x.tolist() == [np.inf, 1.0]
    assert (y.grad.tolist() == [3.0, 4.0]) == (name == "update" or name.startswith("check"))


@pytest.mark.parametrize("name", CHANGES)
def test_incomplete_gradients_are_refused(name):
    x, y = variable([1.0, 2.0]), variable([1.0, 2.0])
    solver = cg.optim.Sgd({"y": y, "x": x})
    push(y, [3.0, 4.0])

    class Fails(cg.autograd.Function):
        @staticmethod
        def forward(ctx, v):
            return v * 1

        @staticmethod
        def backward(ctx, g):
            raise ArithmeticError

    with cg.record():
        z = Fails.apply(x) + x * 2
    with pytest.raises(ArithmeticError): z.backward()
    with pytest.raises(RuntimeError, match=f"^{name}: the gradient of 'x' is incomplete"):
        getattr(solver, name)(*CHANGES[name])
    assert y.grad.tolist() == [3.0, 4.0] and y.tolist() == [1.0, 2.0]


@pytest.mark.parametrize("name", [name for name in CHANGES if "check" not in name and name != "update"])
def test_gradients_with_a_graph_are_refused(name):
    x = variable([1.0, 2.0])
    solver = cg.optim.Sgd({"x": x})
    with cg.record():
        y = (x * x * x).sum()
        y.backward(create_graph=True)
    with pytest.raises(cg.InplaceError, match=f"^{name}: the gradient of 'x' has a graph"):
        getattr(solver, name)(*CHANGES[name])
    assert x.grad.tolist() == [3.0, 12.0]
    x.grad = x.grad.detach()
    getattr(solver, name)(*CHANGES[name])
    x.grad = None


def test_clipping_and_checks():
    x, y = variable([1.0]), variable([1.0, 1.0], "float32")
    solver = cg.optim.Sgd([x, y])
    push(x, [3.0]), push(y, [0.0, 4.0])
    before = x.grad.version
    assert solver.clip_grad_by_global_norm(10) == 5.0 and x.grad.version == before
    assert solver.clip_grad_by_global_norm(2.5) == 5.0 and x.grad.version == before + 1
    assert x.grad.tolist() == [1.5] and y.grad.tolist() == [0.0, 2.0]
    solver.clip_grad_by_norm(1.75)
    assert x.grad.tolist() == [1.5] and y.grad.tolist() == [0.0, 1.75]
    solver.clip_grad_by_value(float("inf"))
    assert x.grad.tolist() == [1.5]
    for g, found in (([1.0, 2.0], (False, False, False)), ([np.inf, 2.0], (True, False, True)),
                     ([1.0, np.nan], (False, True, True)), ([-np.inf, np.nan], (True, True, True))):
        push(y, g)
        assert (solver.check_inf_grad(), solver.check_nan_grad(), solver.check_inf_or_nan_grad()) == found
    for function in (solver.clip_grad_by_norm, solver.clip_grad_by_global_norm, solver.clip_grad_by_value):
        for bad in (0, -1, float("nan")):
            with pytest.raises(ValueError, match="must be greater than 0"): function(bad)
        with pytest.raises(TypeError, match="must be a number"): function("1")


def test_norms_of_far_numbers():
    for size in (1e200, 1e-200, 5e-324):
        x = variable([3 * size, 4 * size])
        solver = cg.optim.Sgd([x])
        push(x, [3 * size, 4 * size])
        assert solver.clip_grad_by_global_norm(float("inf")) == pytest.approx(5 * size)
        solver.clip_grad_by_norm(1.0)
        if size == 1e200: np.testing.assert_allclose(x.grad.numpy(), [0.6, 0.8])
    push(x, [np.inf, 1.0])
    assert solver.clip_grad_by_global_norm(1.0) == np.inf
    push(x, [np.nan, np.inf])
    assert np.isnan(solver.clip_grad_by_global_norm(1.0))


def test_the_rate_of_the_only_group_is_that_of_the_solver():
    solver = cg.optim.Sgd([variable([1.0])], lr=0.5)
    solver.param_groups[0]["lr"] = 0.25
    assert solver.learning_rate() == 0.25 and dict(solver.param_groups[0])["lr_mult"] == 1
    solver.set_learning_rate(0.125)
    assert solver.param_groups[0]["lr"] == 0.125


def test_a_shared_and_a_strided_gradient_is_scaled_once():
    x, y = variable(np.ones((2, 3))), variable(np.ones((2, 3)))
    g = cg.tensor(np.full((3, 2), 4.0)).T
    x.grad = y.grad = g
    solver = cg.optim.Sgd([x, y], lr=1.0)
    solver.scale_grad(0.5)
    assert (g.numpy() == 2).all() and g.version == 1
    solver.update()
    assert (x.numpy() == -1).all() and (y.numpy() == -1).all()


# ---- reprs -----------------------------------------------------------------------------------------------------------

def test_reprs_of_solvers():
    x, y = variable([1.0]), variable([2.0])
    for solver, text in (
            (cg.optim.Adam(), "<Adam: alpha=0.001, beta1=0.9, beta2=0.999, eps=1e-08, 0 parameters>"),
            (cg.optim.SgdW([x], lr=0.5), "<SgdW: lr=0.5, momentum=0.9, wd=0.0001, 1 parameter>"),
            (cg.optim.Sgd([x, y], lr=0.5, weight_decay=0.1), "<Sgd: lr=0.5, weight_decay=0.1, 2 parameters>"),
            (cg.optim.Sgd([{"params": x}, {"params": y, "weight_decay": 0.25}], lr=0.5),
             "<Sgd: lr=0.5, weight_decay=[0.0, 0.25], 2 parameters in 2 groups>")):
        assert repr(solver) == text
    solver.set_learning_rate(0.125)
    solver.remove_parameters("0")
    assert repr(solver) == "<Sgd: lr=0.125, weight_decay=[0.0, 0.25], 1 parameter in 2 groups>"
    assert repr(cg.optim.Adam.__new__(cg.optim.Adam)) == "<Adam: alpha=0.0, 0 parameters>"
