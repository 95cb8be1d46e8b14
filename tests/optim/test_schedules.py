"""Learning-rate schedules: nnabla's formulas, PyTorch's classes over 200 steps, combinations, saving and resuming."""

import copy
import json
import math
import pickle

import numpy as np
import pytest

import cygrad as cg
from cygrad.optim import schedules as sch

STEPS = 200


class Grouped:
    """A solver with two groups, the second of which has half the rate of the solver."""

    def __init__(self, lr=0.1):
        self.lr = lr
        self.param_groups = [{"lr": lr}, {"lr": lr / 2}]

    def learning_rate(self):
        return self.lr

    def set_learning_rate(self, lr):
        assert 0 <= lr < math.inf
        for g in self.param_groups: g["lr"] = lr if g is self.param_groups[0] else lr / 2
        self.lr = lr


def solver_of(kind, lr=0.1):
    return Grouped(lr) if kind == "groups" else cg.optim.Sgd(lr=lr)


def at_iteration(schedule, n=STEPS):
    return [schedule.get_learning_rate(i) for i in range(n)]


# ---- nnabla's

NNABLA = [
    (sch.PolynomialScheduler, (0.1, 200, 2.5), lambda i: 0.1 * (1.0 - i / 200) ** 2.5),
    (sch.PolynomialScheduler, (0.1, 200, 1), lambda i: 0.1 * (1.0 - i / 200)),
    (sch.CosineScheduler, (0.1, 150), lambda i: 0.1 * (math.cos(i / 150 * math.pi) + 1.0) * 0.5),
    (sch.ExponentialScheduler, (0.1, 0.9), lambda i: 0.1 * 0.9**i),
    (sch.ExponentialScheduler, (0.1, 0.9, 7), lambda i: 0.1 * 0.9 ** (i // 7)),
    (sch.StepScheduler, (0.1, 0.5, [150, 30, 90]), lambda i: 0.1 * 0.5 ** ((i >= 30) + (i >= 90) + (i >= 150))),
]


@pytest.mark.parametrize("made, arguments, formula", NNABLA)
def test_nnabla_s_formulas(made, arguments, formula):
    schedule = made(*arguments)
    np.testing.assert_allclose(at_iteration(schedule), [formula(i) for i in range(STEPS)], 1e-13)
    assert at_iteration(pickle.loads(pickle.dumps(schedule))) == at_iteration(schedule)
    warm = sch.LinearWarmupScheduler(schedule, 20)
    np.testing.assert_allclose(at_iteration(warm), [formula(i) * min((i + 1) / 20, 1) for i in range(STEPS)], 1e-13)
    assert at_iteration(warm)[20:] == at_iteration(schedule)[20:]


def test_a_polynomial_ends_at_zero():
    """nnabla's is negative after max_iter, or complex if the power is not an integer."""
    assert [sch.PolynomialScheduler(0.1, 10, 0.5).get_learning_rate(i) for i in (10, 11, 100)] == [0, 0, 0]


def test_a_warm_up_of_one_of_pytorch_s():
    linear = sch.LinearWarmupScheduler(sch.StepLR(cg.optim.Sgd(lr=1.0), 4, 0.5), 2)
    assert at_iteration(linear, 6) == [0.5, 1, 1, 1, 0.5, 0.5]


# ---- PyTorch's

def lambdas(t):
    return 0.95**t


def multiplied(t):
    return 0.9 if t % 7 else 1.5


PYTORCH = {
    "step": lambda m, s: m.StepLR(s, 30, 0.5),
    "step default": lambda m, s: m.StepLR(s, 60),
    "multi-step": lambda m, s: m.MultiStepLR(s, [40, 90, 90, 160], 0.3),
    "exponential": lambda m, s: m.ExponentialLR(s, 0.97),
    "constant": lambda m, s: m.ConstantLR(s, 0.25, 17),
    "linear": lambda m, s: m.LinearLR(s, 0.1, 0.7, 33),
    "linear default": lambda m, s: m.LinearLR(s),
    "polynomial": lambda m, s: m.PolynomialLR(s, 150, 1.7),
    "polynomial default": lambda m, s: m.PolynomialLR(s),
    "cosine": lambda m, s: m.CosineAnnealingLR(s, 60, 0.01),
    "cosine to zero": lambda m, s: m.CosineAnnealingLR(s, 199),
    "restarts": lambda m, s: m.CosineAnnealingWarmRestarts(s, 23, 1, 0.001),
    "growing restarts": lambda m, s: m.CosineAnnealingWarmRestarts(s, 10, 2, 0.02),
    "one cycle": lambda m, s: m.OneCycleLR(s, 0.5, STEPS, cycle_momentum=False),
    "one cycle linear": lambda m, s: m.OneCycleLR(s, [0.5, 0.2], epochs=20, steps_per_epoch=10, pct_start=0.1,
                                                  anneal_strategy="linear", cycle_momentum=False, div_factor=10,
                                                  final_div_factor=50),
    "one cycle of three": lambda m, s: m.OneCycleLR(s, 0.5, STEPS, pct_start=0.37, three_phase=True,
                                                    cycle_momentum=False),
    "one cycle down": lambda m, s: m.OneCycleLR(s, 0.5, STEPS, pct_start=0.0, cycle_momentum=False),
    "one cycle up": lambda m, s: m.OneCycleLR(s, 0.5, STEPS, pct_start=1.0, cycle_momentum=False),
    "lambda": lambda m, s: m.LambdaLR(s, lambdas),
    "lambda list": lambda m, s: m.LambdaLR(s, [lambdas, lambda t: 1 / (t + 1)]),
    "multiplicative": lambda m, s: m.MultiplicativeLR(s, multiplied),
    "multiplicative list": lambda m, s: m.MultiplicativeLR(s, [multiplied, lambda t: 0.98]),
    "cyclic": lambda m, s: m.CyclicLR(s, 0.01, 0.3, 17, cycle_momentum=False),
    "cyclic, skewed": lambda m, s: m.CyclicLR(s, [0.01, 0.02], [0.3, 0.1], 7, 23, "triangular2",
                                              cycle_momentum=False),
    "cyclic, shrinking": lambda m, s: m.CyclicLR(s, 0.01, 0.3, 9, 4, "exp_range", 0.97, cycle_momentum=False),
    "chain with a product": lambda m, s: m.ChainedScheduler([m.MultiplicativeLR(s, multiplied),
                                                             m.StepLR(s, 30, 0.5)]),
    "sequence": lambda m, s: m.SequentialLR(s, [m.LinearLR(s, 0.1, 1, 20), m.CosineAnnealingLR(s, 100, 0.001),
                                                m.ExponentialLR(s, 0.95)], [20, 120]),
    "sequence created backwards": lambda m, s: m.SequentialLR(
        s, [m.ExponentialLR(s, 0.9), m.ConstantLR(s, 0.1, 9)][::-1], [20]),
    "chain": lambda m, s: m.ChainedScheduler([m.ConstantLR(s, 0.1, 20), m.ExponentialLR(s, 0.98),
                                              m.CosineAnnealingLR(s, 250)]),
    "chain in a sequence": lambda m, s: m.SequentialLR(
        s, [m.LinearLR(s, 0.5, 1, 9), m.MultiStepLR(s, [50, 70])], [10]),
}
LISTS = ("one cycle linear", "lambda list", "multiplicative list", "cyclic, skewed")   # for two groups
named = pytest.mark.parametrize("name", PYTORCH)


def ours(name, n=STEPS, kind="groups"):
    """The rates of the groups over n steps, and the schedule."""
    solver = solver_of(kind)
    schedule, rates = PYTORCH[name](sch, solver), []
    for i in range(n):
        rates.append(schedule.get_last_lr())
        if i < n - 1: schedule.step()
    return rates, schedule


@named
def test_pytorch_s_rates_over_200_steps(name):
    """Up to the rounding of PyTorch, which multiplies the rate in each step."""
    torch = pytest.importorskip("torch")
    w, v = (torch.zeros(2, requires_grad=True) for _ in range(2))
    solver = torch.optim.SGD([{"params": [w]}, {"params": [v], "lr": 0.05}], lr=0.1)
    schedule, rates = PYTORCH[name](torch.optim.lr_scheduler, solver), []
    for i in range(STEPS):
        rates.append([g["lr"] for g in solver.param_groups])
        solver.step()
        if i < STEPS - 1: schedule.step()
    assert np.ptp(np.asarray(rates)[:, 0]) > 0
    np.testing.assert_allclose(ours(name)[0], rates, 1e-10, 1e-16)


@pytest.mark.parametrize("name", [name for name in PYTORCH if name not in LISTS])
def test_a_solver_without_groups(name):
    rates, schedule = ours(name, kind="solver")
    assert [r for r, in rates] == [r for r, _ in ours(name)[0]]
    assert schedule.solver.learning_rate() == rates[-1][0] == schedule.get_last_lr()[0]
    assert [r for r, in rates] == at_iteration(schedule)


@named
def test_steps_may_be_named(name):
    """step(i) sets the rate of step i, whatever came before. Updater's callbacks use this."""
    rates, schedule = ours(name)
    for i in (3, 150, 77, 0, 199):
        schedule.step(i)
        assert schedule.get_last_lr() == rates[i] and schedule.last_epoch == i


def test_a_step_between_two():
    torch = pytest.importorskip("torch")
    theirs = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1)
    solver = cg.optim.Sgd(lr=0.1)
    a, b = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(theirs, 3, 2), sch.CosineAnnealingWarmRestarts(
        solver, 3, 2)
    theirs.step()
    for i in range(200):
        a.step(i / 8)
        b.step(i / 8)
        np.testing.assert_allclose(solver.learning_rate(), theirs.param_groups[0]["lr"], 1e-10, 1e-15)
    b.step()
    assert b.last_epoch == 199 / 8 + 1


@named
@pytest.mark.parametrize("kept", [0, 1, 60])
def test_resuming_is_exact(name, kept):
    """From a state that JSON has carried, into a schedule with other settings, and from a pickle with its solver."""
    rates, _ = ours(name)
    _, saved = ours(name, kept + 1)
    state = json.loads(json.dumps(saved.state_dict()))
    solver = Grouped(0.7)
    resumed = PYTORCH[name](sch, solver)
    resumed.load_state_dict(state)
    assert resumed.get_last_lr() == rates[kept] and resumed.state_dict() == saved.state_dict()
    resumes = [resumed]
    if "list" not in name: resumes.append(pickle.loads(pickle.dumps(saved)))     # (pickle refuses lambdas)
    resumes.append(copy.deepcopy(saved))
    for each in resumes:
        assert each.solver is not saved.solver
        for i in range(kept + 1, STEPS):
            each.step()
            assert each.get_last_lr() == rates[i]


def test_a_state_replaces_the_settings():
    a, b = sch.StepLR(cg.optim.Sgd(lr=0.1), 30, 0.5), sch.StepLR(cg.optim.Sgd(lr=0.9), 10, 0.1)
    b.load_state_dict(a.state_dict())
    assert (b.step_size, b.gamma, b.base_lrs, b.solver.learning_rate()) == (30, 0.5, [0.1], 0.1)


@pytest.mark.parametrize("change", [
    {"schedule": "ExponentialLR"}, {"settings": {"step_size": 3}}, {"settings": {"step_size": 0, "gamma": 0.1}},
    {"base_lrs": [0.1, 0.2]}, {"base_lrs": [-1.0]}, {"last_lrs": ["x"]}, {"last_lr": None}, {"last_epoch": -1},
    {"counters": {"best": 3}}, {"more": 1},
])
def test_a_wrong_state_changes_nothing(change):
    schedule = sch.StepLR(cg.optim.Sgd(lr=0.1), 2, 0.5)
    for _ in range(5): schedule.step()
    before = schedule.state_dict()
    with pytest.raises((ValueError, TypeError), match="^StepLR: "): schedule.load_state_dict({**before, **change})
    assert schedule.state_dict() == before


def test_a_wrong_state_inside_a_combination_changes_nothing():
    _, schedule = ours("sequence", 40)
    before = schedule.state_dict()
    states = copy.deepcopy(before["counters"]["states"])
    states[2]["settings"]["gamma"] = -1.0
    with pytest.raises(ValueError, match="^ExponentialLR: gamma"):
        schedule.load_state_dict({**before, "counters": {"states": states}})
    assert schedule.state_dict() == before


def test_the_rates_of_groups_keep_their_own_bounds():
    """eta_min is a bound for each group, not a factor."""
    solver = Grouped(0.1)
    schedule = sch.CosineAnnealingLR(solver, 10, 0.04)
    schedule.step(10)
    np.testing.assert_allclose(schedule.get_last_lr(), [0.04, 0.04], 1e-15)
    schedule.step(20)
    np.testing.assert_allclose(schedule.get_last_lr(), [0.1, 0.05], 1e-15)


@named
def test_real_groups(name):
    """With the groups of cygrad's own solvers."""
    w, v = (cg.zeros(2).attach_grad() for _ in range(2))
    solver = cg.optim.Sgd([{"params": [w]}, {"params": [v], "lr": 0.05}], lr=0.1)
    schedule, expected = PYTORCH[name](sch, solver), ours(name)[0]
    for i, rates in enumerate(expected):
        assert [g["lr"] for g in solver.param_groups] == pytest.approx(rates, 1e-12, 1e-18) == schedule.get_last_lr()
        if i < STEPS - 1: schedule.step()


def test_a_group_that_was_added_later_is_refused():
    solver = Grouped()
    for schedule in (sch.StepLR(solver, 1, 0.5), sch.ReduceLROnPlateau(solver)):
        solver.param_groups.append({"lr": 0.3})
        arguments = (1.0,) if isinstance(schedule, sch.ReduceLROnPlateau) else ()
        with pytest.raises(RuntimeError, match="the solver is 3, and it was 2"): schedule.step(*arguments)
        solver.param_groups.pop()
    assert [g["lr"] for g in solver.param_groups] == [0.1, 0.05]


def test_the_end_of_a_cycle():
    """PyTorch computes a rate beyond the end for step total_steps."""
    for anneal in ("cos", "linear"):
        schedule = sch.OneCycleLR(cg.optim.Sgd(lr=0.1), 0.5, 10, anneal_strategy=anneal)
        for _ in range(10): schedule.step()
        np.testing.assert_allclose(schedule.get_last_lr(), [0.5 / 25 / 1e4], 1e-9)
        with pytest.raises(ValueError, match="OneCycleLR: step 11 of a cycle of 10 steps"): schedule.step()
        assert schedule.last_epoch == 10


@pytest.mark.parametrize("total", [1, 2, 3, 10])
@pytest.mark.parametrize("pct", [0.0, 0.1, 0.5, 1.0])
def test_short_cycles_have_no_division_by_zero(total, pct):
    for three in (False, True):
        schedule = sch.OneCycleLR(cg.optim.Sgd(lr=0.1), 0.5, total, pct_start=pct, three_phase=three)
        assert all(0 < r <= 0.5 for r in at_iteration(schedule, total))


@pytest.mark.parametrize("settings", [
    {}, {"patience": 2}, {"mode": "max", "patience": 3, "factor": 0.5}, {"threshold": 0.05, "patience": 1},
    {"threshold_mode": "abs", "threshold": 0.3, "cooldown": 4, "patience": 1, "factor": 0.7},
    {"mode": "max", "threshold_mode": "abs", "patience": 0, "min_lr": [0.001, 0.02], "factor": 0.6},
    {"patience": 0, "factor": 0.3, "eps": 1e-3}, {"patience": 0, "factor": 0.0, "min_lr": 1e-4},
])
def test_on_plateau_against_pytorch(settings):
    torch = pytest.importorskip("torch")
    w, v = (torch.zeros(1, requires_grad=True) for _ in range(2))
    theirs = torch.optim.SGD([{"params": [w]}, {"params": [v], "lr": 0.05}], lr=0.1)
    solver = Grouped(0.1)
    a, b = torch.optim.lr_scheduler.ReduceLROnPlateau(theirs, **settings), sch.ReduceLROnPlateau(solver, **settings)
    rng = np.random.default_rng(3)
    metrics = np.exp(-np.arange(STEPS) / 60) + 0.1 * rng.normal(size=STEPS)
    metrics[[50, 51]] = float("nan")
    for i, m in enumerate(metrics):
        a.step(float(m))
        b.step(cg.tensor(m) if i % 2 else m)
        assert [g["lr"] for g in solver.param_groups] == pytest.approx([g["lr"] for g in theirs.param_groups], 1e-12)
        if i % 40 == 7:                             # saved and resumed on the way
            state = json.loads(json.dumps(b.state_dict()))
            solver = Grouped(0.9)
            b = sch.ReduceLROnPlateau(solver, mode="max" if i > 100 else "min")
            b.load_state_dict(state)
            assert b.state_dict() == state
            b = pickle.loads(pickle.dumps(b))
            solver = b.solver
    assert a.num_bad_epochs == b.num_bad_epochs


def test_a_product_calls_its_function_once_for_each_step():
    calls = []
    schedule = sch.MultiplicativeLR(cg.optim.Sgd(lr=1.0), lambda t: calls.append(t) or 0.5)
    for _ in range(4): schedule.step()
    assert calls == [1, 2, 3, 4] and schedule.get_last_lr() == [0.5**4]
    assert schedule.get_learning_rate(2) == 0.25 and calls[4:] == [1, 2]
    schedule.step(2.5)
    assert schedule.get_last_lr() == [0.25] and calls[6:] == []


@pytest.mark.parametrize("name, make", [
    ("StepLR", lambda s: sch.StepLR(s, 1, 1.5)), ("ExponentialLR", lambda s: sch.ExponentialLR(s, 1.5)),
    ("MultiStepLR", lambda s: sch.MultiStepLR(s, list(range(10_000)), 1.5)),
    ("LambdaLR", lambda s: sch.LambdaLR(s, lambda t: 1e308 if t > 99 else 1)),
    ("CyclicLR", lambda s: sch.CyclicLR(s, 0.01, 0.1, 1, 2, "exp_range", 1.5)),
    ("CyclicLR", lambda s: sch.CyclicLR(s, 0.1, 0.09, 1, 2, "exp_range", 1.5)),       # negative
    ("MultiplicativeLR", lambda s: sch.MultiplicativeLR(s, lambda t: 1.5)),
    ("SequentialLR", lambda s: sch.SequentialLR(s, [sch.StepLR(s, 1), sch.ExponentialLR(s, 1.5)], [3])),
    ("ChainedScheduler", lambda s: sch.ChainedScheduler([sch.StepLR(s, 1, 0), sch.ExponentialLR(s, 1.5)])),     # 0 inf
])
def test_a_rate_that_is_not_finite_is_an_error(name, make):
    w, v = (cg.zeros(2).attach_grad() for _ in range(2))
    solver = cg.optim.Sgd([{"params": [w]}, {"params": [v], "lr": 50}], lr=10.0)
    schedule = make(solver)
    schedule.step(3)
    before = schedule.state_dict()
    for call in (schedule.step, schedule.get_learning_rate):
        with pytest.raises(ValueError, match=f"^{name}: the rate at step 10000 must be at least 0 and finite, got "):
            call(10_000)
        assert schedule.state_dict() == before
    for call in (schedule.step, schedule.get_learning_rate):
        with pytest.raises(ValueError, match=f"^{name}: the step must be at least 0 and finite"): call(10**400)
    schedule.step()
    assert schedule.last_epoch == 4


@pytest.mark.parametrize("schedule", [sch.ExponentialScheduler(0.1, 1.5), sch.StepScheduler(0.1, 9.0, [1] * 9999),
                                      sch.LinearWarmupScheduler(sch.ExponentialScheduler(0.1, 1.5), 3)])
def test_a_rate_of_nnabla_s_that_is_not_finite_is_an_error(schedule):
    with pytest.raises(ValueError, match="Scheduler: the rate at step 10000 must be at least 0 and finite, got inf"):
        schedule.get_learning_rate(10_000)


@pytest.mark.parametrize("name", [name for name in cg.optim._SCHEDULES if name.endswith(("LR", "Restarts", "Plateau"))])
def test_arguments_of_pytorch_that_a_schedule_does_not_take(name):
    if name == "LRScheduler": return                # (the base, whose subclasses may take them)
    make, solver = getattr(sch, name), cg.optim.Sgd()
    for key, text in (("last_epoch", "call step(epoch) on the schedule, or load_state_dict(state) to resume"),
                      ("verbose", "print get_last_lr() after step()")):
        with pytest.raises(TypeError) as e: make(solver, **{key: -1})
        assert str(e.value) == f"{name} takes no {key}: {text}"


class OwnArguments(sch.LRScheduler):
    """A schedule of a user, whose arguments are its own."""

    def __init__(self, solver, last_epoch):
        self.first = last_epoch
        super().__init__(solver)

    def _rate(self, t, base, k):
        return base + t + self.first


def test_a_schedule_of_a_user_takes_what_it_likes():
    schedule = OwnArguments(cg.optim.Sgd(lr=1.0), last_epoch=3)
    schedule.step()
    assert schedule.get_last_lr() == [5.0] and pickle.loads(pickle.dumps(schedule)).first == 3


def test_the_rates_reach_the_update():
    """MXNet's test_trainer_lr_sched: the rate after each second step, with the schedule as a callback of an Updater."""
    w = cg.zeros(1).attach_grad()
    solver = cg.optim.Sgd(lr=1.0)
    solver.set_parameters([w])
    schedule = sch.StepLR(solver, 2, 0.1)
    updater = cg.trainers.Updater(solver, lambda: w.sum(), update_callback_on_start=schedule.step)
    moved = []
    for i in range(6):
        before = w.item()
        updater.update(i)
        moved.append(round(before - w.item(), 6))
        assert solver.learning_rate() == pytest.approx(0.1 ** (i // 2))
    assert moved == [1, 1, 0.1, 0.1, 0.01, 0.01]


def test_schedules_are_exported():
    assert cg.optim.StepLR is sch.StepLR and cg.optim.schedules is sch and "OneCycleLR" in dir(cg.optim)


def test_reprs():
    """Settings, the step and the rates; of a schedule in another one, the class."""
    x, y = (cg.zeros(1).requires_grad_() for _ in range(2))
    solver = cg.optim.Sgd([{"params": x}, {"params": y, "lr": 0.25}], lr=0.5)
    parts = cg.optim.StepLR(solver, 2), cg.optim.ExponentialLR(solver, 0.5)
    parts[0].step()
    assert repr(parts[0]) == "<StepLR: step_size=2, gamma=0.1, last_epoch=1, lr=[0.5, 0.25]>"
    assert repr(cg.optim.SequentialLR(solver, parts, [3])) == (
        "<SequentialLR: milestones=[3], schedulers=[StepLR, ExponentialLR], last_epoch=0, lr=[0.5, 0.25]>")
    solver = cg.optim.Sgd([x], lr=0.5)
    assert repr(cg.optim.LambdaLR(solver, lambda t: 0.5)) == "<LambdaLR: last_epoch=0, lr=0.25>"
    plateau = cg.optim.ReduceLROnPlateau(solver)
    assert repr(plateau) == (
        "<ReduceLROnPlateau: mode='min', factor=0.1, patience=10, threshold=0.0001, threshold_mode='rel', cooldown=0, "
        "min_lr=[0.0], eps=1e-08, last_epoch=0, lr=0.25>")
    assert repr(cg.optim.StepLR.__new__(cg.optim.StepLR)) == "<StepLR>"         # __init__ has not run
    warm = cg.optim.LinearWarmupScheduler(cg.optim.PolynomialScheduler(0.1, 10, 2), 3)
    assert repr(warm) == "<LinearWarmupScheduler: scheduler=PolynomialScheduler, warmup_iter=3>"
    assert repr(warm.scheduler) == "<PolynomialScheduler: init_lr=0.1, max_iter=10, power=2.0>"
