"""The nineteen solvers: against NumPy references of their rules, against PyTorch, with row-sparse gradients, and with
several threads. tests/samples/rules.py has the references."""

import inspect
import re

import numpy as np
import pytest

import cygrad as cg
from cygrad.testing import fail_allocation
from tests.samples.rules import REFERENCES

NAMES = ["Sgd", "SgdW", "Momentum", "Nesterov", "Adagrad", "Ftrl", "Adadelta", "RMSprop", "RMSpropGraves", "Adam",
         "AdamW", "Adamax", "AMSGRAD", "AdaBound", "AMSBound", "AdaBelief", "Lamb", "Lars", "Lion"]
FUSED = {"SgdW", "AdamW", "Lamb", "Lars", "Lion", "Ftrl"}
SPARSE = {"Sgd", "Momentum", "Adagrad", "Adam", "Ftrl"}
OTHERS = {                                          # settings to test in addition to the defaults
    "AMSGRAD": [dict(bias_correction=True)], "AMSBound": [dict(bias_correction=True, final_lr=1e-3, gamma=0.5)],
    "AdaBound": [dict(final_lr=1e-3, gamma=0.5)],
    "AdaBelief": [dict(eps=0.1), dict(amsgrad=True, eps=0.1), dict(weight_decouple=True, wd=0.01, rectify=True),
                  dict(weight_decouple=True, fixed_decay=True, wd=0.01, amsgrad=True, rectify=True, beta2=0.9)],
    "Lamb": [dict(bias_correction=True, gamma_l=0.5, gamma_u=2.0)], "Lars": [dict(coefficient=0.5)],
    "Ftrl": [dict(lamda1=0.5, beta=0.25)],
    "SgdW": [dict(momentum=0.5, wd=0.01)], "Adam": [dict(beta1=0.5, beta2=0.75, eps=1e-3)],
}
CASES = [(name, settings) for name in NAMES for settings in ({}, *OTHERS.get(name, []))]
DEFAULTS = {                                        # contract 7 and nnabla's documentation
    "Sgd": dict(lr=1e-3), "SgdW": dict(lr=1e-3, momentum=0.9, wd=1e-4), "Momentum": dict(lr=1e-3, momentum=0.9),
    "Nesterov": dict(lr=1e-3, momentum=0.9), "Adagrad": dict(lr=1e-2, eps=1e-8),
    "Adadelta": dict(lr=1.0, decay=0.95, eps=1e-6), "RMSprop": dict(lr=1e-3, decay=0.9, eps=1e-8),
    "RMSpropGraves": dict(lr=1e-4, decay=0.95, momentum=0.9, eps=1e-4),
    "Adam": dict(alpha=1e-3, beta1=0.9, beta2=0.999, eps=1e-8),
    "AdamW": dict(alpha=1e-3, beta1=0.9, beta2=0.999, eps=1e-8, wd=1e-4),
    "Adamax": dict(alpha=2e-3, beta1=0.9, beta2=0.999, eps=1e-8),
    "AMSGRAD": dict(alpha=1e-3, beta1=0.9, beta2=0.999, eps=1e-8, bias_correction=False),
    "AdaBound": dict(alpha=1e-3, beta1=0.9, beta2=0.999, eps=1e-8, final_lr=0.1, gamma=0.001),
    "AMSBound": dict(alpha=1e-3, beta1=0.9, beta2=0.999, eps=1e-8, final_lr=0.1, gamma=0.001, bias_correction=False),
    "AdaBelief": dict(alpha=1e-3, beta1=0.9, beta2=0.999, eps=1e-8, wd=0.0, amsgrad=False, weight_decouple=False,
                      fixed_decay=False, rectify=False),
    "Lamb": dict(eta=1e-3, beta1=0.9, beta2=0.999, gamma_l=0.0, gamma_u=10.0, eps=1e-6, bias_correction=False),
    "Lars": dict(lr=1e-3, momentum=0.9, coefficient=0.001, eps=1e-6), "Lion": dict(lr=1e-4, beta1=0.9, beta2=0.99),
    "Ftrl": dict(lr=0.1, lamda1=0.01, beta=1.0),    # (MXNet's)
}


def variable(a, dtype="float64"):
    return cg.tensor(np.asarray(a, dtype)).attach_grad()


def push(x, g):
    """Run a backward that gives x the gradient g."""
    with cg.record():
        y = x * cg.tensor(np.asarray(g, x.dtype))
    y.backward()


def sparse_push(table, indices, rows):
    """Run a backward that gives a table row-sparse gradients."""
    with cg.record():
        y = cg.embedding(np.asarray(indices), table, sparse=True) * cg.tensor(np.asarray(rows, table.dtype))
    y.backward()


def fused(name, settings):
    return name in FUSED or settings.get("weight_decouple", False)


def reference(name, settings):
    """(rule of tests/samples/rules.py, its settings) for a solver."""
    words = re.sub("([a-z])([A-Z])", r"\1_\2", name).lower()       # (PowerSign has the rule power_sign)
    rule = next(rule for rule in ("adabelief_max" if settings.get("amsgrad") else words, words.replace("_", ""))
                if rule + "_update" in REFERENCES)
    given = {**DEFAULTS[name], **settings}
    if not given.get("weight_decouple", True): given["wd"] = 0
    taken = inspect.signature(REFERENCES["adabelief_max_update" if "belief" in rule else rule + "_update"]).parameters
    return REFERENCES[rule + "_update"], {key: v for key, v in given.items() if key in taken and key != "lr"}


@pytest.mark.parametrize("name", NAMES)
def test_defaults_and_documentation(name):
    make, defaults = getattr(cg.optim, name), DEFAULTS[name]
    rate = next(iter(defaults))
    solver = make()
    assert solver.learning_rate() == solver.lr == defaults[rate] and make.settings == tuple(defaults)
    for key in list(defaults)[1:]:
        assert getattr(solver, key) == defaults[key]
        with pytest.raises(AttributeError): setattr(solver, key, defaults[key])
    assert make(*defaults.values()).__getstate__() == solver.__getstate__() == make(**defaults).__getstate__()
    assert "=" in make.__doc__.splitlines()[0] and make.weight_decay_is_fused(solver) == (name in FUSED)
    doc = " ".join(make.__doc__.split())
    assert make.row_sparse == (name in SPARSE) == ("Of a GradientSlice, only the rows that are present" in doc)
    assert (name in SPARSE) != ("Row-sparse gradients (GradientSlice) are refused: update() raises TypeError" in doc)


@pytest.mark.parametrize("name", NAMES)
def test_the_documentation_shows_both_calls(name):
    doc, x = inspect.getdoc(getattr(cg.optim, name)), variable([1.0])
    calls = r"^Calls: (.+) and set_parameters\(parameters\), or, as in PyTorch,\n(.+), where\nthe decay is an example\."
    first, second = re.search(calls, doc, re.M).groups()
    solver, twin = (eval(call, {name: getattr(cg.optim, name), "parameters": [x]}) for call in (first, second))
    solver.set_parameters([x])
    assert solver.__getstate__()["settings"].keys() == set(DEFAULTS[name])
    assert solver.__getstate__()["settings"] == twin.__getstate__()["settings"] | ({
        "wd": DEFAULTS[name]["wd"]} if "wd" in DEFAULTS[name] else {})
    assert ("betas" in second) == ("beta1" in DEFAULTS[name]) and twin.param_groups[0]["weight_decay"] == 0.01
    assert twin.get_parameters()["0"] is x is solver.get_parameters()["0"]


@pytest.mark.parametrize("where", [cg.optim, cg.optim.Solver])
def test_the_general_documentation_shows_both_spellings(where):
    w, model = variable([1.0]), cg.nn.Linear(2, 3)
    names = {"cg": cg, **{name: getattr(cg.optim, name) for name in NAMES}, "model": model, "w": w, "parameters": [w],
             "some": [w], "others": model.parameters()}
    made, lines = [], [line for line in inspect.getdoc(where).splitlines() if line.startswith("    ")]
    for line in lines:
        exec(line.strip(), names)
        made.append(names["solver"])
    (adam, same, other, sgd), n = made, len([w] if where is cg.optim.Solver else [*model.parameters()])
    assert adam is same and len(adam.get_parameters()) == n == len(other.get_parameters())
    assert other.param_groups[0]["weight_decay"] == 0.01 and [g["lr"] for g in sgd.param_groups] == [0.01, 0.1]


@pytest.mark.parametrize("name, settings", CASES)
@pytest.mark.parametrize("dtype, rtol", [("float64", 1e-11), ("float32", 3e-4)])
def test_twenty_steps_by_numpy(name, settings, dtype, rtol):
    """With a changing rate, scaling, clipping by norm, by all norms and by value, and decay."""
    r = np.random.default_rng(5)
    start = r.normal(size=(3, 7)).astype(dtype)
    x, w = variable(start, dtype), start.astype("float64")
    solver = getattr(cg.optim, name)(0.02, **settings)
    solver.set_parameters({"x": x})
    like, given = reference(name, settings)
    if "first_lr" in inspect.signature(like).parameters: given["first_lr"] = 0.02
    states = [np.zeros_like(w) for _ in solver.get_states()["x"].pstate]
    for t in range(1, 21):
        g, lr, decay, now = r.normal(size=w.shape), 0.02 * 0.9**t, 0.05 * (t % 3), dict(given)
        solver.set_learning_rate(lr)
        push(x, g)
        solver.scale_grad(3.0)
        g = 3 * g.astype(dtype).astype("float64")
        if t % 4 == 1: solver.clip_grad_by_norm(2.0)
        if t % 4 == 2: solver.clip_grad_by_global_norm(2.0)
        if t % 4 in (1, 2): g = g * min(1, 2 / np.linalg.norm(g))
        if t % 4 == 3:
            solver.clip_grad_by_value(0.5)
            g = np.clip(g, -0.5, 0.5)
        if decay:
            solver.weight_decay(decay)
            if fused(name, settings): now["wd"] = decay
            else: g = g + decay * w
        w, *states = like(w, g, lr, t, *states, **now)
        solver.update()
    np.testing.assert_allclose(x.numpy(), w, rtol, rtol)
    for found, wanted in zip(solver.get_states()["x"].pstate.values(), states, strict=True):
        np.testing.assert_allclose(found.numpy(), wanted, rtol, rtol)


@pytest.mark.parametrize("amsgrad", [False, True])
def test_eps_stays_in_the_state_of_adabelief(amsgrad):
    """As in nnabla: three updates by hand, with an eps that makes a difference."""
    x = variable([1.0])
    solver = cg.optim.AdaBelief({"x": x}, lr=0.01, eps=0.1, amsgrad=amsgrad)
    w, m, v, top = 1.0, 0.0, 0.0, 0.0
    for t, g in enumerate((0.5, -1.0, 2.0), 1):
        push(x, [g])
        solver.update()
        m = 0.9 * m + 0.1 * g
        v = 0.999 * v + 0.001 * (g - m)**2 + (0 if amsgrad else 0.1)
        top = max(top, v) + (0.1 if amsgrad else 0)
        w -= 0.01 * m / (1 - 0.9**t) / ((top / (1 - 0.999**t))**0.5 + 0.1)
    assert x.item() == pytest.approx(w, rel=1e-12)
    assert solver.get_states()["x"].pstate["v"].item() == pytest.approx(v, rel=1e-12)
    if not amsgrad: assert x.item() == pytest.approx(0.999245, abs=1e-6)


# ---- PyTorch ---------------------------------------------------------------------------------------------------------

TINY = 1e-30                                        # an eps that makes no difference, wherever it stands
TORCH = {
    "Sgd": ("SGD", {}, {}), "Momentum": ("SGD", {}, dict(momentum=0.9)),
    "Nesterov": ("SGD", {}, dict(momentum=0.9, nesterov=True)), "Adagrad": ("Adagrad", {}, dict(eps=1e-8)),
    "Adadelta": ("Adadelta", {}, dict(rho=0.95)), "RMSprop": ("RMSprop", {}, dict(alpha=0.9)),
    "RMSpropGraves": ("RMSprop", dict(eps=TINY), dict(alpha=0.95, eps=TINY, centered=True, momentum=0.9)),
    "Adam": ("Adam", dict(eps=TINY), dict(eps=TINY)), "AdamW": ("AdamW", dict(eps=TINY), dict(eps=TINY)),
    "Adamax": ("Adamax", dict(eps=TINY), dict(eps=TINY)),
    "AMSGRAD": ("Adam", dict(eps=TINY, bias_correction=True), dict(eps=TINY, amsgrad=True)),
}


@pytest.mark.parametrize("name", TORCH)
@pytest.mark.parametrize("weight_decay", [0.0, 0.05])
def test_against_pytorch(name, weight_decay):
    """Also weight_decay in PyTorch's spelling, and, where the rules agree, a changing rate."""
    torch = pytest.importorskip("torch")
    counterpart, ours, theirs = TORCH[name]
    gradients, start = np.random.default_rng(1).normal(size=(20, 4, 5)), np.random.default_rng(2).normal(size=(4, 5))
    rates = [0.01 if name in ("Momentum", "Nesterov", "RMSpropGraves") else 0.01 * 0.9**t for t in range(20)]

    def in_pytorch():
        p = torch.tensor(start, requires_grad=True)
        solver = getattr(torch.optim, counterpart)([p], lr=rates[0], weight_decay=weight_decay, **theirs)
        for g, lr in zip(gradients, rates, strict=True):
            solver.param_groups[0]["lr"] = lr
            p.grad = torch.tensor(g)
            solver.step()
        return p.detach().numpy()

    def in_cygrad():
        x = variable(start)
        solver = getattr(cg.optim, name)([x], lr=rates[0], weight_decay=weight_decay, **ours)
        for g, lr in zip(gradients, rates, strict=True):
            solver.param_groups[0]["lr"] = lr
            push(x, g)
            solver.step()
        return x.numpy().copy()

    np.testing.assert_allclose(in_cygrad(), in_pytorch(), 1e-11)


def test_the_order_of_djl():
    """DJL rescales, clips to [-c, c], adds the decay, and then applies the rule; its first gradients are ones."""
    x = variable(np.ones(3))
    solver = cg.optim.Momentum([x], lr=0.1, momentum=0.5)
    w, v = np.ones(3), np.zeros(3)
    for g in ([1.0, 1, 1], [4.0, -8, 0.5]):
        push(x, g)
        solver.scale_grad(0.5), solver.clip_grad_by_value(1.0), solver.weight_decay(0.25), solver.update()
        v = 0.5 * v + 0.1 * (np.clip(0.5 * np.array(g), -1, 1) + 0.25 * w)
        w = w - v
    np.testing.assert_allclose(x.numpy(), w, 1e-15)


def test_the_trainer_of_mxnet():
    """The sequence of MXNet's test of its trainer: two gradients of ones are summed, then lr_mult is halved, and a
    parameter whose gradients are "null" is left alone."""
    x, y = variable(np.zeros(10), "float32"), variable(np.zeros(10), "float32")
    solver = cg.optim.Momentum({"x": x, "y": y}, lr=1.0, momentum=0.5)
    for wanted in (-2, -4):
        push(x, np.full(10, 2))
        if wanted == -2: push(y, np.full(10, 2))
        solver.step()
        assert (x.numpy() == wanted).all()
        solver.param_groups[0]["lr_mult"] = 0.5
        y.attach_grad("null")
    assert (y.numpy() == -2).all() and solver.learning_rate() == 1.0


# ---- row-sparse gradients --------------------------------------------------------------------------------------------

@pytest.mark.parametrize("name", sorted(SPARSE))
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("width", [1, 3, 600])
def test_rows_that_are_present_are_updated_as_by_a_dense_gradient(name, dtype, width):
    """Indices repeat. Decay and clipping touch only the rows that are present; the other rows keep their states."""
    r = np.random.default_rng(0)
    start = r.normal(size=(6, width))
    present = [4, 0, 3]
    x, y = variable(start, dtype), variable(start[present], dtype)      # y has only the rows that are present
    x.grad = None
    solver, dense = (getattr(cg.optim, name)({"x": v}, lr=0.1, weight_decay=0.25) for v in (x, y))
    for _ in range(3):
        rows = r.normal(size=(5, width)).astype(dtype)
        sparse_push(x, [4, 0, 4, 3, 0], rows)
        push(y, np.stack([rows[0] + rows[2], rows[1] + rows[4], rows[3]]))
        for s in (solver, dense): s.scale_grad(0.5), s.weight_decay(0.1), s.clip_grad_by_norm(1.0)
        assert isinstance(x.grad, cg.GradientSlice)
        if width == 3: assert solver.clip_grad_by_global_norm(0.5) == pytest.approx(dense.clip_grad_by_global_norm(0.5))
        for s in (solver, dense): s.clip_grad_by_value(0.75), s.update()
    tolerance = dict(rtol=1e-5, atol=1e-6) if dtype == "float32" else dict(rtol=1e-13)
    if name == "Ftrl" and dtype == "float64": tolerance["atol"] = 1e-17         # (w is z less lamda1, which is 0.01)
    np.testing.assert_allclose(x.numpy()[present], y.numpy(), **tolerance)
    assert (x.numpy()[[1, 2, 5]] == start.astype(dtype)[[1, 2, 5]]).all()
    for a, b in zip(solver.get_states()["x"].pstate.values(), dense.get_states()["x"].pstate.values(), strict=True):
        np.testing.assert_allclose(a.numpy()[present], b.numpy(), **tolerance)
        assert not a.numpy()[[1, 2, 5]].any()


@pytest.mark.parametrize("name", [name for name in NAMES if name not in SPARSE])
def test_other_solvers_refuse_row_sparse_gradients(name):
    x = variable(np.ones((3, 2)))
    x.grad = None
    solver = getattr(cg.optim, name)([x])
    sparse_push(x, [0, 2], np.ones((2, 2)))
    with pytest.raises(TypeError, match=f"update: the gradient of '0' is a GradientSlice, and {name} takes only"):
        solver.update()
    assert x.numpy().all() == 1 and solver.get_states()["0"].t == 0 and x.version == 0
    x.grad = x.grad.to_dense()
    solver.update()
    assert solver.get_states()["0"].t == 1


def test_checks_sum_the_rows_of_equal_indices():
    x = variable(np.ones((3, 1)), "float32")
    x.grad = None
    solver = cg.optim.Sgd([x])
    sparse_push(x, [1, 1], [[3e38], [3e38]])
    assert solver.check_inf_grad() and not solver.check_nan_grad() and solver.check_inf_or_nan_grad()


# ---- threads, memory -------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_threads_agree_bit_for_bit(name, dtype, two_threads):
    found = []
    start, g = np.random.default_rng(0).normal(size=(2, 300, 511))
    for threads in (1, 2):
        cg.set_num_threads(threads)
        x = variable(start, dtype)
        solver = getattr(cg.optim, name)([x])
        for _ in range(2):
            push(x, g)
            solver.clip_grad_by_norm(10.0), solver.weight_decay(0.01), solver.update()
        found.append([x.numpy().tobytes(), *[s.numpy().tobytes() for s in solver.get_states()["0"].pstate.values()]])
    assert found[0] == found[1]


@pytest.mark.parametrize("name, settings", CASES)
def test_steps_allocate_nothing(name, settings):
    x, y = variable(np.ones((5, 40)), "float32"), variable(np.ones(3), "float32")
    solver = getattr(cg.optim, name)([x, y], **settings)
    states = len(solver.get_states()["0"].pstate)
    assert cg.memory.stats()["by_category"]["optimizer"] == states * 4 * 203
    for step in range(3):
        push(x, np.ones((5, 40))), push(y, np.ones(3))
        with cg.memory.events() as log:
            solver.scale_grad(0.5), solver.clip_grad_by_norm(1.0), solver.clip_grad_by_global_norm(1.0)
            solver.weight_decay(0.1), solver.check_inf_or_nan_grad(), solver.set_learning_rate(0.1 / (1 + step))
            solver.update()
        assert log == []


@pytest.mark.parametrize("name", NAMES)
def test_failing_allocations_change_nothing(name):
    """Every allocation of set_parameters, of the gradient functions and of an update fails once."""
    x, y, z = variable(np.ones((3, 4))), variable(np.ones(2)), variable(np.ones((4, 3)))
    x.grad = None
    z.grad = cg.tensor(np.ones((3, 4))).T           # not contiguous: copied
    push(y, [1.0, 2.0])
    if name in SPARSE: sparse_push(x, [2, 0, 2], np.ones((3, 4)))
    else: push(x, np.ones((3, 4)))
    solver = getattr(cg.optim, name)(0.1)
    states = name != "Sgd"

    def state():
        return [[v.numpy().tobytes() for v in (x, y, z)], [v.version for v in (x, y, z)], list(solver.get_parameters()),
                [(*(v.numpy().tobytes() for v in s.pstate.values()), s.t) for s in solver.get_states().values()],
                [cg.ensure_dense(v.grad).numpy().tobytes() for v in (x, y, z)], cg.memory.stats()["live_bytes"]]

    for call in (lambda: solver.set_parameters({"x": x, "y": y, "z": z}), lambda: solver.scale_grad(2.0),
                 lambda: solver.clip_grad_by_norm(0.5), lambda: solver.weight_decay(0.5), solver.update):
        before, n = state(), 0
        while True:
            n += 1
            with fail_allocation(n) as failure:
                try: call()
                except MemoryError: pass
            if not failure.failed: break
            assert state() == before
        assert n > 1 or not states
    assert solver.get_states()["x"].t == 1


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype, size", [("float32", 1e30), ("float64", 1e200), ("float32", 1e-30)])
def test_gradients_whose_square_overflows_give_no_nan(name, dtype, size):
    x = variable(np.ones(9), dtype)
    solver = getattr(cg.optim, name)({"x": x})
    for t, g in enumerate((size, -size, size, 1.0, -1.0)):
        push(x, np.full(9, g))
        solver.update()
        assert np.isfinite(x.numpy()).all()
        if name == "RMSpropGraves" and size > 1: assert t > 2 or x.tolist() == [1.0] * 9      # g / sqrt(inf)
    x.grad = cg.tensor(np.full(9, np.nan, dtype))
    solver.update()
    assert np.isnan(x.numpy()).all() or name == "Lion"      # whose step is a sign


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_variance_that_rounding_makes_negative_is_zero(dtype):
    """PyTorch's centered RMSprop gives NaN where v < m^2, as rounding makes it for gradients without variance."""
    x = variable([0.0], dtype)
    solver = cg.optim.RMSpropGraves({"x": x}, lr=1e-4, decay=0.5, momentum=0.0, eps=1e-2)
    states = {key: cg.tensor([value], dtype=dtype) for key, value in (("v", 999_999), ("m", 1000), ("d", 0))}
    solver.set_states({"x": (states, 7)})
    push(x, [1000.0])                               # v - m^2 becomes -0.5
    solver.update()
    assert solver.get_states()["x"].pstate["v"].item() == 999_999.5
    np.testing.assert_allclose(x.item(), -1e-4 * 1000 / 1e-1, 1e-6)
