"""States of solvers: get_states and set_states, dicts, files and pickles, and runs that resume from them."""

import copy
import json
import pickle

import numpy as np
import pytest

import cygrad as cg
from tests.optim.test_solvers import DEFAULTS, NAMES, push, variable
from tests.optim.test_surface import trained, velocity


# ---- states, dicts, pickles and files --------------------------------------------------------------------------------

RESUMED = [lambda p: cg.optim.Adam(p, lr=0.1, weight_decay=0.1), lambda p: cg.optim.AdamW(p, lr=0.1, wd=0.01),
           lambda p: cg.optim.AMSBound(p, lr=0.1), lambda p: cg.optim.AdaBelief(p, lr=0.1, amsgrad=True, rectify=True),
           lambda p: cg.optim.Sgd(p, lr=0.1), lambda p: cg.optim.Lamb(p, lr=0.1),
           lambda p: cg.optim.RMSpropGraves([{"params": p, "lr": 0.5}], lr=0.1)]


def by_states(solver, other):
    other.set_states(copy.deepcopy(solver.get_states()))
    other.set_learning_rate(solver.learning_rate())


def by_dict(solver, other):
    other.load_state_dict(pickle.loads(pickle.dumps(solver.state_dict())))


@pytest.mark.parametrize("make", RESUMED)
@pytest.mark.parametrize("resume", [by_states, by_dict])
def test_resuming_is_bit_identical(make, resume):
    gradients = np.random.default_rng(0).normal(size=(6, 4))
    x = variable([1.0, 2.0, 3.0, 4.0], "float32")
    solver = make({"x.y": x})
    for t, g in enumerate(gradients[:3]):
        solver.set_learning_rate(0.1 / (t + 1))
        push(x, g)
        solver.update()
    y = variable(x.numpy(), "float32")
    twin = make({"x.y": y})
    resume(solver, twin)
    for t, g in enumerate(gradients[3:], 3):
        for s, v in ((solver, x), (twin, y)):
            push(v, g)
            s.update()
            s.set_learning_rate(0.1 / (t + 1))
        assert x.numpy().tobytes() == y.numpy().tobytes()


def test_states_that_do_not_fit_change_nothing():
    solver, _ = trained("a", "b")
    good = copy.deepcopy(solver.get_states())
    bad = {"a": ({"v": cg.ones(3, dtype="float64")}, 5), "b": good["b"]}
    for states, error, text in (
            ({"a": good["a"]}, ValueError, "the states must be those of the solver's parameters; missing 'b'"),
            (good | {"c": good["a"]}, ValueError, "unknown 'c'"), ([good], TypeError, "set_states takes a dict"),
            (bad, ValueError, r"the state v of 'a' must be a float64 tensor of shape \(2,\) like the parameter"),
            (good | {"b": 3}, TypeError, "the state of 'b' must be a SolverState or a pair"),
            (good | {"b": ({"v": good["b"].pstate["v"]}, True)}, ValueError, "must be an int of at least 0, got True"),
            (good | {"b": ({}, 1)}, ValueError, "the state of 'b' must have v, got none")):
        with pytest.raises(error, match=text): solver.set_states(states)
        assert velocity(solver, "a") == velocity(solver, "b") == ([0.1, 0.1], 1)
    with pytest.raises(RuntimeError, match="set_states: this solver has no parameters"):
        cg.optim.Momentum().set_states(good)
    state = solver.state_dict()
    for change, text in ((dict(lr=[0.1]), "lr must be a number of at least 0"), (dict(base=3), "lr of base must be a"),
                         (dict(param_groups=[]), "missing 'a', 'b'"), (dict(param_groups=3), "groups of the dict must"),
                         (dict(param_groups=[state["param_groups"][0] | {"wd_mult": -1}]), "wd_mult of param_groups"),
                         (dict(settings={}), "the settings of the dict must be momentum, got"),
                         (dict(settings={"momentum": True}), "momentum is True in the dict and 0.9 in the solver"),
                         (dict(state={}), "missing 'a', 'b'")):
        with pytest.raises(ValueError, match=text): solver.load_state_dict(state | change)
        assert velocity(solver, "a") == ([0.1, 0.1], 1) and solver.learning_rate() == 0.1
    with pytest.raises(ValueError, match="takes what state_dict"): solver.load_state_dict({})


@pytest.mark.parametrize("again", [copy.deepcopy, lambda v: pickle.loads(pickle.dumps(v))])
def test_groups_and_a_pending_decay_are_in_the_pickle(again):
    x, y = variable([1.0]), variable([2.0])
    solver = cg.optim.AdamW([{"params": [x], "lr": 0.5}, {"params": [y], "wd_mult": 2}], lr=0.25, wd=0.125)
    push(x, [1.0])
    solver.weight_decay(0.5)
    model, twin = again(([x, y], solver))
    assert twin.state_dict()["param_groups"] == solver.state_dict()["param_groups"] and twin.wd == 0.125
    for s, v in ((solver, x), (twin, model[0])):
        push(v, [1.0])
        s.update()
    assert x.item() == model[0].item() and x.item() < 0.5


@pytest.mark.parametrize("suffix", [".safetensors", ".npz"])
@pytest.mark.parametrize("make", RESUMED)
def test_files(make, suffix, tmp_path):
    """Resuming from a file, and files that do not fit."""
    x, path = variable([1.0, 2.0], "float32"), tmp_path / ("states" + suffix)
    solver = make({"w": x})
    for g in (1.0, 2.0):
        push(x, [g, -g])
        solver.update()
    solver.set_learning_rate(0.05)
    solver.save_states(path)
    y = variable(x.numpy(), "float32")
    twin = make({"w": y})
    twin.load_states(path)
    push(x, [1.0, 3.0]), push(y, [1.0, 3.0])
    solver.update(), twin.update()
    assert x.numpy().tobytes() == y.numpy().tobytes() and twin.learning_rate() == 0.05
    for other, text in ((make({"w2": y}), "missing 'w2"), (make({"w": y, "w2": x}), "missing 'w2"),
                        (cg.optim.Lion({"w": y}), "not of Lion")):
        with pytest.raises(ValueError, match=text): other.load_states(path)
        assert all(s.t == 0 for s in other.get_states().values())
    if len(solver.get_states()["w"].pstate):
        short = make({"w": variable([1.0], "float32")})
        with pytest.raises(ValueError, match="like the parameter"): short.load_states(path)
    with pytest.raises(ValueError): solver.save_states(tmp_path / "states.h5")
    cg.io.save(path, {"w.t": cg.tensor(np.int64(3))})
    with pytest.raises(ValueError, match="is not a file of save_states"): twin.load_states(path)


# ---- runs that resume ------------------------------------------------------------------------------------------------

CHANGED = {"momentum": 0.8, "wd": 0.02, "eps": 1e-3, "decay": 0.7, "beta1": 0.8, "beta2": 0.95, "bias_correction": True,
           "final_lr": 0.05, "gamma": 0.01, "amsgrad": True, "weight_decouple": True, "fixed_decay": True,
           "rectify": True, "gamma_l": 0.5, "gamma_u": 3.0, "coefficient": 0.1,
           "lamda1": 0.02, "beta": 0.5}
SETTINGS = {name: {key: CHANGED[key] for key in list(DEFAULTS[name])[1:]} for name in NAMES}


def model(values=None):
    r = np.random.default_rng(1)
    return {key: variable(r.normal(size=(3, 2)) if values is None else values[key].numpy(), "float32")
            for key in ("a", "b.c", "d")}


def grouped(name, parameters, **settings):
    """A solver with two groups; "d" comes later, without one."""
    a, b, _ = parameters.items()
    return getattr(cg.optim, name)([{"params": dict([a]), "wd_mult": 0.5}, {"params": dict([b]), "lr": 0.03}],
                                   **{"lr": 0.01, **settings})


def run(solver, parameters, steps):
    for t in steps:
        r = np.random.default_rng(t)
        for x in parameters.values():
            if t % 3 or x is not parameters["a"]: push(x, r.normal(size=(3, 2)))
        solver.update()
        solver.set_learning_rate(0.01 * 0.9**t)


def by_file(suffix):
    def resume(solver, twin, where):
        solver.save_states(where / ("states" + suffix))
        twin.load_states(where / ("states" + suffix))

    return resume


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("resume", [by_file(".safetensors"), by_file(".npz"), lambda a, b, where: by_dict(a, b)],
                         ids=["safetensors", "npz", "dict"])
def test_a_run_with_groups_resumes_bit_for_bit(name, resume, tmp_path):
    """All settings differ from the defaults. Rates, decays and their factors are assigned on the way; the solver that
    resumes has other ones."""
    x = model()
    solver = grouped(name, x, **SETTINGS[name])
    run(solver, x, range(2))
    solver.param_groups[0]["weight_decay"], solver.param_groups[1]["lr_mult"] = 0.037, 1.7
    solver.param_groups[1]["wd_mult"] = 0.3
    run(solver, x, range(2, 4))
    y, other = model(x), {key: v for key, v in SETTINGS[name].items() if key != "wd"}
    twin = grouped(name, y, **other, lr=0.7, **{"weight_decay": 0.5} if name != "AdaBelief" else {"wd": 0.5})
    resume(solver, twin, tmp_path)
    assert twin._saved() == solver._saved() and twin.learning_rate() == 0.01 * 0.9**3
    for each, parameters in ((solver, x), (twin, y)):
        run(each, parameters, range(4, 6))
        each.set_parameters({"d": parameters["d"]}, reset=False)    # with the rate and decay of no group
        run(each, parameters, range(6, 9))
    assert [v.numpy().tobytes() for v in x.values()] == [v.numpy().tobytes() for v in y.values()]


@pytest.mark.parametrize("name, settings", [("AdamW", {}), ("SgdW", {}), ("AdaBelief", {"weight_decouple": True}), (
    "AdaBelief", {"weight_decouple": True, "fixed_decay": True})])
def test_a_decay_resumes_in_a_solver_made_with_another_rate(name, settings, tmp_path):
    """Zero gradients leave the decay: w - lr weight_decay w, where lr is the current rate and not the first one."""
    def decayed(load=None, lr=0.01):
        w = variable([1.0])
        solver = getattr(cg.optim, name)({"w": w}, lr=lr, weight_decay=0.5, **settings)
        if load is None: solver.set_learning_rate(0.01)
        else: load(solver)
        push(w, [0.0])
        if load is None: saved.append(solver.state_dict()), solver.save_states(tmp_path / "states.npz")
        solver.update()
        return w.item()

    saved = []
    expected = 0.95 if "fixed_decay" in settings else 0.995         # fixed_decay: the first rate, 0.1
    first = decayed(lr=0.1)
    assert first == pytest.approx(expected, rel=1e-12)
    for load in (lambda s: s.load_state_dict(saved[0]), lambda s: s.load_states(tmp_path / "states.npz")):
        assert decayed(load) == first


@pytest.mark.parametrize("name", [name for name in NAMES if SETTINGS[name].keys() - {"wd"}])
def test_a_solver_with_other_settings_is_refused(name, tmp_path):
    x = model()
    solver = grouped(name, x, **SETTINGS[name])
    run(solver, x, range(2))
    solver.save_states(tmp_path / "states.npz")
    for key in SETTINGS[name].keys() - {"wd"}:
        twin = grouped(name, model(), **SETTINGS[name] | {key: DEFAULTS[name][key]})
        before = twin._saved()
        for load, noun, given in ((twin.load_states, "file", tmp_path / "states.npz"),
                                  (twin.load_state_dict, "dict", solver.state_dict())):
            if key == "amsgrad" and noun == "dict": assert twin.get_states()["a"].pstate.keys() == {"m", "v"}
            with pytest.raises(ValueError, match=f"{key} is {CHANGED[key]} in the {noun} and {DEFAULTS[name][key]} in "
                                                 f"the solver; create the solver with {key}={CHANGED[key]}$"):
                load(given)
            assert twin._saved() == before and {state.t for state in twin.get_states().values()} == {0}


def test_a_decay_that_waits_is_not_part_of_the_saved_run(tmp_path):
    (x, y), path = (model(), model()), tmp_path / "states.npz"
    solver, twin = grouped("AdamW", x), grouped("AdamW", y)
    solver.save_states(path)
    twin.weight_decay(0.5)
    twin.load_states(path)
    run(solver, x, range(2)), run(twin, y, range(2))
    assert x["a"].tolist() == y["a"].tolist()


def test_groups_with_other_parameters_are_refused(tmp_path):
    x, path = model(), tmp_path / "states.npz"
    grouped("Adam", x).save_states(path)
    twin = cg.optim.Adam({name: x[name] for name in ("a", "b.c")}, lr=0.5)
    with pytest.raises(ValueError, match=r"that is param_groups\[0\] of the solver must have the same parameters, but "
                       "is without 'b.c'; create the solver with the groups that it had when it was saved"):
        twin.load_states(path)
    assert twin.learning_rate() == 0.5


@pytest.mark.parametrize("through", ["npz", "safetensors", "dict"])
def test_names_and_groups_may_come_in_another_order(through, tmp_path):
    """Parameters are matched by name: the states, and the rates of the groups."""
    def made(x, swap):
        groups = [{"params": {k: x[k] for k in ("p", "q")}, "lr": 0.1}, {"params": {"r": x["r"]}, "lr": 0.01}]
        if swap: groups = [groups[1], {"params": {k: x[k] for k in ("q", "p")}, "lr": 0.5}]
        return cg.optim.Momentum(groups, lr=0.5)

    def step(solver, x, k):
        for i, name in enumerate("pqr"): push(x[name], [1.0 + i, 2.0 + k])
        solver.update()

    x, y = ({name: variable([1.0, 2.0]) for name in "pqr"} for _ in range(2))
    solver, twin = made(x, False), made(y, True)
    step(solver, x, 0)
    for name in y: y[name].copy_(x[name].detach())
    if through == "dict": twin.load_state_dict(solver.state_dict())
    else:
        solver.save_states(tmp_path / f"states.{through}")
        twin.load_states(tmp_path / f"states.{through}")
    assert [g["lr"] for g in twin.param_groups] == [0.01, 0.1]
    for k in (1, 2): step(solver, x, k), step(twin, y, k)
    for name in x: assert x[name].tolist() == y[name].tolist()
    assert [*twin.get_parameters()] == ["r", "q", "p"]


@pytest.mark.parametrize("names, text", [
    (("a", "b"), "missing 'b'$"), (("a", "b", "d"), "missing 'b', 'd'; unknown 'c'$"), (("a",), "unknown 'c'$")])
def test_names_that_are_missing_or_too_many_are_listed(names, text, tmp_path):
    saved = ("a", "c") if "b" not in names or len(names) == 3 else ("a",)
    cg.optim.Momentum({name: variable([1.0]) for name in saved}).save_states(tmp_path / "states.npz")
    solver = cg.optim.Momentum({name: variable([1.0]) for name in names})
    with pytest.raises(ValueError, match="^load_states: the names in the file must be those of the solver's "
                                         f"parameters; {text}"):
        solver.load_states(tmp_path / "states.npz")


def test_a_solver_without_parameters_saves_its_rate(tmp_path):
    solver, twin = cg.optim.Adam(0.25), cg.optim.Adam(0.5)
    solver.save_states(tmp_path / "states.npz")
    twin.load_states(tmp_path / "states.npz")
    assert twin.learning_rate() == 0.25
    twin.load_state_dict(cg.optim.Adam(0.125).state_dict())
    assert twin.learning_rate() == 0.125


HUGE = "1" + "0" * 400
NUMBERS = {"lr": 0.1, "first_lr": 0.1, "lr_mult": 1.0, "decay": 0.0, "weight_decay": 0.0, "wd_mult": 1.0}


def group(**change):
    return json.dumps([{"params": ["w"], **NUMBERS, **change}])


@pytest.mark.parametrize("change, text", [
    ({"lr": HUGE}, "lr must be a number"), ({"lr": "true"}, "lr must be a number of at least 0, and finite, got True"),
    ({"lr": "NaN"}, "lr must be a number"), ({"lr": "-0.1"}, "got -0.1"), ({"lr": "[" * 100_000}, "got None"),
    ({"lr": "9" * 5000}, "got None"), ({"lr": ""}, "got None"), ({"lr": "Infinity"}, "got inf"),
    ({"param_groups": group(lr=-1)}, r"lr of param_groups\[0\] must be a number of at least 0, and finite, got -1"),
    ({"param_groups": group(first_lr="1")}, "first_lr of param_groups"), ({"param_groups": "{}"}, "must be a list"),
    ({"param_groups": group(decay=[])}, "decay of param_groups"), ({"param_groups": "[3]"}, r"got \[3\]"),
    ({"param_groups": group(wd_mult=None)}, "wd_mult of param_groups"), ({"param_groups": "[]"}, "missing 'w'"),
    ({"param_groups": group(params=["v"])}, "missing 'w'; unknown 'v'"), ({"param_groups": "nothing"}, "got None"),
    ({"param_groups": group(params=[["w"]])}, "must be a list"), ({"param_groups": group(params="w")}, "must be a"),
    ({"param_groups": json.dumps([json.loads(group())[0]] * 2)}, "'w' is in the groups of the file twice"),
    ({"base": "[]"}, "lr of base must be"), ({"base": json.dumps(NUMBERS | {"lr_mult": -1})}, "lr_mult of base"),
    ({"settings": "3"}, "the settings of the file must be momentum, wd, got 3"),
    ({"settings": '{"momentum": 0.9}'}, r"the settings of the file must be momentum, wd, got \['momentum'\]"),
    ({"settings": '{"momentum": NaN, "wd": 0}'}, "momentum is nan in the file and 0.9 in the solver"),
    ({"settings": '{"momentum": [0.9], "wd": 0}'}, r"momentum is \[0.9\] in the file"),
    ({"settings": '{"momentum": 0.9, "wd": -1}'}, "wd must be a number of at least 0"),
    ({"solver": "Momentum"}, "the file has the states of Momentum, not of SgdW"),
])
def test_hostile_metadata_changes_nothing(change, text, tmp_path):
    x, path = variable([1.0, 2.0], "float32"), tmp_path / "states.safetensors"
    solver = cg.optim.SgdW({"w": x}, lr=0.1)
    push(x, [1.0, 2.0])
    solver.update()
    before = solver._saved()
    good = {"format": "cygrad.optim", "solver": "SgdW", "settings": json.dumps(before["settings"]), "lr": "0.05",
            "base": json.dumps(NUMBERS), "param_groups": group()}
    cg.io.save(path, {"w.v": cg.ones(2), "w.t": cg.tensor(np.int64(9))}, good | change)
    with pytest.raises(ValueError, match=f"^load_states: .*{text}"): solver.load_states(path)
    (state,) = solver.get_states().values()
    assert state.t == 1 and state.pstate["v"].tolist() != [1.0, 1.0] and solver._saved() == before
    cg.io.save(path, {"w.v": cg.ones(2), "w.t": cg.tensor(np.int64(9))}, good)
    solver.load_states(path)
    assert solver.get_states()["w"].t == 9 and solver.learning_rate() == 0.05
