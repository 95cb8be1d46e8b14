"""The wording of errors: learning-rate schedules."""

import cygrad as cg
from cygrad.optim import schedules as sch


def solver():
    return cg.optim.Sgd(lr=0.1)


def step():
    return sch.StepLR(solver(), 2)


def loaded(**changes):
    schedule = step()
    schedule.load_state_dict({**schedule.state_dict(), **changes})


def grown():
    s = solver()
    schedule = sch.StepLR(s, 2)
    schedule.base_lrs = [0.1, 0.2]
    schedule.step()


def combined(kind, *arguments):
    s = solver()
    return kind(s, [sch.StepLR(s, 2), sch.ExponentialLR(s, 0.9)], *arguments)


def chained(make):
    s = solver()
    return sch.ChainedScheduler([sch.ExponentialLR(s, 0.9), make(s)])


def sequence_loaded(states):
    schedule = combined(sch.SequentialLR, [2])
    schedule.load_state_dict({**schedule.state_dict(), "counters": {"states": states}})


CASES = [
    (lambda: sch.CosineScheduler("x", 3), TypeError, "CosineScheduler: init_lr must be a number, got 'x'"),
    (lambda: sch.CosineScheduler(-1, 3), ValueError,
     "CosineScheduler: init_lr must be at least 0 and finite, got -1"),
    (lambda: sch.CosineScheduler(10**400, 10), ValueError,
     "CosineScheduler: init_lr must be at least 0 and finite, got <*>"),
    (lambda: sch.PolynomialScheduler(0.1, 0, 1), ValueError, "PolynomialScheduler: max_iter must be at least 1, got 0"),
    (lambda: sch.ExponentialScheduler(0.1, 0.9, 1.5), TypeError,
     "ExponentialScheduler: iter_interval must be an integer, got 1.5"),
    (lambda: sch.StepScheduler(0.1, float("nan"), [1]), ValueError,
     "StepScheduler: gamma must be at least 0 and finite, got nan"),
    (lambda: sch.StepScheduler(0.1, 0.1, 30), TypeError,
     "StepScheduler: iter_steps must be a list of integers, got 30"),
    (lambda: sch.LinearWarmupScheduler(0.1, 3), TypeError,
     "LinearWarmupScheduler: scheduler must have get_learning_rate(iter), got 0.1"),
    (lambda: sch.Schedule().get_learning_rate(0), NotImplementedError, "Schedule has no _rate"),
    (lambda: sch.CosineScheduler(0.1, 3).get_learning_rate(-1), ValueError,
     "CosineScheduler: iter must be at least 0 and finite, got -1"),
    (lambda: sch.LRScheduler(solver()), NotImplementedError, "LRScheduler has no _rate"),
    (lambda: sch.StepLR(3, 2), TypeError,
     "StepLR: solver must have learning_rate() and set_learning_rate(rate), as the solvers of cygrad.optim have; got "
     "3"),
    (lambda: sch.StepLR(cg.optim.Sgd, 2), TypeError,
     "StepLR: solver must be an instance, got the class Sgd; create one, Sgd(...)"),
    (lambda: sch.SequentialLR(cg.optim.Sgd, [step()], []), TypeError,
     "SequentialLR: solver must be an instance, got the class Sgd; create one, Sgd(...)"),
    (lambda: sch.LinearWarmupScheduler(sch.StepLR, 2), TypeError,
     "LinearWarmupScheduler: scheduler must be an instance, got the class StepLR; create one, StepLR(...)"),
    (lambda: sch.StepLR(solver(), 2, last_epoch=3), TypeError,
     "StepLR takes no last_epoch: call step(epoch) on the schedule, or load_state_dict(state) to resume"),
    (lambda: sch.StepLR(solver(), 2, 0.1, 3), TypeError,
     "StepLR takes solver, step_size, gamma, got 4 arguments; for last_epoch call step(epoch) on the schedule, or "
     "load_state_dict(state) to resume"),
    (lambda: sch.StepLR(solver(), 2, verbose=True), TypeError,
     "StepLR takes no verbose: print get_last_lr() after step()"),
    (lambda: sch.StepLR(optimizer=solver(), step_size=2), TypeError,
     "StepLR takes no optimizer: pass the solver first, or as solver="),
    (lambda: sch.CyclicLR(solver(), 0.1, 0.2, scale_fn=abs), TypeError, "CyclicLR takes no scale_fn: use LambdaLR"),
    (lambda: sch.CyclicLR(solver(), 0.1, 0.2, cycle_momentum=True), ValueError,
     "CyclicLR: the momentum of a solver is fixed, so cycle_momentum must be False"),
    (lambda: sch.StepLR(solver(), 2, spam=1), TypeError, "StepLR takes no spam; it takes solver, step_size, gamma"),
    (lambda: sch.ExponentialLR(solver(), 1.5).step(10**6), ValueError,
     "ExponentialLR: the rate at step 1000000 must be at least 0 and finite, got inf"),
    (lambda: sch.ExponentialLR(solver(), 0.5).step(10**400), ValueError,
     "ExponentialLR: the step must be at least 0 and finite, got an integer of 1329 bits"),
    (lambda: sch.StepLR(solver(), 0), ValueError, "StepLR: step_size must be at least 1, got 0"),
    (lambda: sch.MultiStepLR(solver(), [3, -1]), ValueError,
     "MultiStepLR: milestones[1] must be at least 0, got -1"),
    (lambda: sch.LinearLR(solver(), 2.0), ValueError,
     "LinearLR: start_factor must be at least 0 and at most 1, got 2.0"),
    (lambda: sch.CosineAnnealingLR(solver(), 5, True), TypeError,
     "CosineAnnealingLR: eta_min must be a number, got True"),
    (lambda: sch.OneCycleLR(solver(), 0.1), ValueError,
     "OneCycleLR: give total_steps, or epochs and steps_per_epoch"),
    (lambda: sch.OneCycleLR(solver(), 0.1, 10, cycle_momentum=True), ValueError,
     "OneCycleLR: the momentum of a solver is fixed, so cycle_momentum must be False"),
    (lambda: sch.OneCycleLR(solver(), [0.1, 0.2], 10), ValueError,
     "OneCycleLR: max_lr must be one value or a list with one for each group of the solver (1), got 2"),
    (lambda: sch.OneCycleLR(solver(), 0.1, 10, anneal_strategy="exp"), ValueError,
     "OneCycleLR: anneal_strategy must be 'cos' or 'linear', got 'exp'"),
    (lambda: sch.OneCycleLR(solver(), 0.1, 10, div_factor=0), ValueError,
     "OneCycleLR: div_factor must be greater than 0 and finite, got 0"),
    (lambda: sch.OneCycleLR(solver(), 0.1, 10).step(12), ValueError,
     "OneCycleLR: step 12 of a cycle of 10 steps; create a new schedule, or one with a larger total_steps"),
    (lambda: sch.LambdaLR(solver(), 0.5), TypeError, "LambdaLR: lr_lambda must be a function of the step, got 0.5"),
    (lambda: sch.LambdaLR(solver(), lambda t: -1), ValueError,
     "LambdaLR: the value of lr_lambda(0) must be at least 0 and finite, got -1"),
    (lambda: cg.optim.NoLR, AttributeError, "module 'cygrad.optim' has no attribute 'NoLR'"),
    (lambda: step().step(-1), ValueError, "StepLR: the step must be at least 0, got -1"),
    (lambda: step().step("a"), TypeError, "StepLR: the step must be a number, got 'a'"),
    (lambda: grown(), RuntimeError,
     "StepLR: the number of groups of the solver is 1, and it was 2 when the schedule was created; create the schedule "
     "after the groups"),
    (lambda: step().load_state_dict(3), ValueError,
     "StepLR: a state must be a dict with schedule, last_epoch, base_lr, base_lrs, last_lr, last_lrs, settings, "
     "counters, as state_dict() returns, got 3"),
    (lambda: step().load_state_dict({"last_epoch": 3}), ValueError,
     "StepLR: a state must be a dict with schedule, last_epoch, base_lr, base_lrs, last_lr, last_lrs, settings, "
     "counters, as state_dict() returns, got ['last_epoch']"),
    (lambda: loaded(schedule="LinearLR"), ValueError, "StepLR: this is the state of 'LinearLR'"),
    (lambda: loaded(settings={"gamma": 0.1}), ValueError,
     "StepLR: the settings of a state must be step_size, gamma, got a value of type dict"),
    (lambda: loaded(counters=3), ValueError, "StepLR: the counters of a state must be empty, got 3"),
    (lambda: loaded(base_lrs=[0.1, 0.2]), ValueError,
     "StepLR: base_lrs of a state must be a list with a rate for each group of the solver (1), got [0.1, 0.2]"),
    (lambda: sch.SequentialLR(solver(), 3, []), TypeError,
     "SequentialLR: schedulers must be a list of schedules, got 3"),
    (lambda: sch.ChainedScheduler([]), ValueError, "ChainedScheduler: schedulers is empty"),
    (lambda: sch.SequentialLR(solver(), [sch.ReduceLROnPlateau(solver())], []), TypeError,
     "SequentialLR: schedulers[0] must be a schedule whose rate is a function of the step, such as StepLR, got a value "
     "of type cygrad.optim.schedules.ReduceLROnPlateau"),
    (lambda: sch.SequentialLR(solver(), [step()], []), ValueError,
     "SequentialLR: schedulers[0], a StepLR, belongs to another solver"),
    (lambda: combined(sch.SequentialLR, [1, 2]), ValueError,
     "SequentialLR: milestones must be one less than the 2 schedules, got 2"),
    (lambda: combined(sch.SequentialLR, [2, 2]), ValueError, "SequentialLR: milestones must increase, got [2, 2]"),
    (lambda: sequence_loaded([1]), ValueError,
     "SequentialLR: the states must be a list of 2, one for each schedule, got [1]"),
    (lambda: chained(lambda s: sch.LambdaLR(s, lambda t: 1.0)), ValueError,
     "ChainedScheduler: schedulers[1], a LambdaLR, sets the rate and does not multiply it by a factor, so it cannot be "
     "chained; use SequentialLR, or eta_min=0 for CosineAnnealingLR"),
    (lambda: sch.ReduceLROnPlateau(solver(), factor=1.0), ValueError,
     "ReduceLROnPlateau: factor must be less than 1, got 1.0"),
    (lambda: sch.ReduceLROnPlateau(solver(), "least"), ValueError,
     "ReduceLROnPlateau: mode must be 'min' or 'max', got 'least'"),
    (lambda: sch.ReduceLROnPlateau(solver()).step(cg.ones(2)), TypeError,
     "ReduceLROnPlateau: the metric must be a number or a tensor of one element, got a float32 tensor of shape (2,)"),
    (lambda: sch.ReduceLROnPlateau(solver())._read_counters("ReduceLROnPlateau", None, 0, 0), TypeError,
     "ReduceLROnPlateau: best must be a number, got None"),
]
