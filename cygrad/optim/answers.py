"""Names of torch.optim and mxnet.optimizer, and of arguments and attributes of their solvers and schedules, that
cygrad.optim does not have, each with a sentence that names the replacement (cygrad/core/answers.py)."""

import inspect

from cygrad.core.errors import described

# Arguments of solvers in PyTorch and MXNet.
FUSED = "leave it out; every update is fused"
SOLVER = {
    "parameters": "pass them first, {0}(parameters, lr=0.01), or call set_parameters(parameters)",
    "betas": "its rule has no beta1 and beta2",
    "momentum": "use Momentum(lr, momentum), in which v contains the learning rate, SgdW, Nesterov or RMSpropGraves",
    "nesterov": "use Nesterov(lr, momentum)",
    "dampening": "there is none; use Momentum(lr, momentum)",
    "amsgrad": "use AMSGRAD(alpha, bias_correction=True), whose eps is outside the bias correction",
    "rho": "use decay",
    "alpha": "the learning rate is called lr, and PyTorch's alpha of RMSprop is decay",
    "centered": "use RMSpropGraves",
    "lr_decay": "call set_learning_rate(lr) before update()",
    "initial_accumulator_value": "set the states with set_states()",
    "maximize": "differentiate the negative loss",
    "foreach": FUSED, "fused": FUSED, "capturable": FUSED,
    "differentiable": "updates are not recorded",
    "wd": "use weight_decay, as in PyTorch, or call weight_decay(rate) before update()",
    "learning_rate": "it is called lr",
    "rescale_grad": "call scale_grad(scale) before update()",
    "clip_gradient": "call clip_grad_by_value(clip_value) before update()",
    "lr_scheduler": "create a schedule, such as StepLR(solver, 30), and call its step()",
}
# Arguments of learning-rate schedules in PyTorch.
SCHEDULE = {
    "last_epoch": "call step(epoch) on the schedule, or load_state_dict(state) to resume",
    "verbose": "print get_last_lr() after step()", "optimizer": "pass the solver first, or as solver=",
    "base_momentum": "the momentum of a solver is fixed", "max_momentum": "the momentum of a solver is fixed",
    "scale_fn": "use LambdaLR", "scale_mode": "use LambdaLR",
}
# Attributes of solvers. They are no descriptors, since a subclass in Python may have attributes of these names.
SOLVERS = {
    "setup": "use set_parameters()", "set_learning_rates": "use set_learning_rate(rate)",
    "state": "use get_states(), or state_dict()",
    "defaults": "its settings are attributes, such as lr, and param_groups has those of groups",
    "params": "use get_parameters()", "parameters": "use get_parameters()",
    "register_step_pre_hook": "pass update(update_pre_hook)", "register_step_post_hook": "pass update(None, hook)",
    "create_state": "set_parameters() creates the states",
    **{name: SOLVER[name] for name in ("lr_scheduler", "rescale_grad", "clip_gradient")},
}
# Names of torch.optim and mxnet.optimizer.
OPTIM = {
    "lr_scheduler": "the schedules are in cygrad.optim itself, such as cygrad.optim.StepLR",
    "Optimizer": "the base class is Solver", "_LRScheduler": "use LRScheduler",
    "NAdam": "the nearest is Adam, without Nesterov's step",
    "RAdam": "the nearest is AdaBelief(rectify=True), which has its rectification, or Adam with LinearLR",
    "SparseAdam": "use Adam, which takes row-sparse gradients",
    "LBFGS": "no solver has a line search; the nearest is scipy.optimize.minimize, with gradients from cygrad",
    "ASGD": "the nearest is Sgd; average the parameters yourself", "Rprop": "the nearest is RMSprop",
    "Adafactor": "the nearest is Adam, or Lion with one state", "Muon": "the nearest is Nesterov",
    "swa_utils": "average the parameters yourself, with copy_()",
    "NAG": "use Nesterov", "Signum": "the nearest is Lion", "SGLD": "the nearest is Sgd",
    "FTML": "the nearest is Adam", "DCASGD": "the nearest is Momentum",
    "LANS": "the nearest is Lamb",
}


def of_optim(name, names):
    """The message for an attribute that cygrad.optim does not have. `names` are those that it has."""
    other = {known.lower(): advice for known, advice in OPTIM.items()} | {ours.lower(): f"use {ours}" for ours in names}
    advice = other.get(name.lower())                # (Nadam, AMSGrad, LAMB)
    return f"module 'cygrad.optim' has no attribute {described(name)}" + (f": {advice}" if advice else "")


def of_solver(cls, given, named):
    """The message for wrong arguments of a solver, or None if there are none."""
    rate, *settings = cls.settings
    name, names = cls.__name__, [*dict.fromkeys((rate, "lr")), *settings, "params", "weight_decay"]
    if "beta1" in settings: names.append("betas")
    listed = given and (callable(given[0]) or hasattr(given[0], "__iter__") and getattr(given[0], "ndim", 1))
    first = {"params"} if listed else {rate}        # (a module and a method are meant as parameters)
    if "params" in first and len(given) > 1:
        return f"{name}: pass the arguments after the parameters by name: {name}(parameters, lr=...)"
    for key in named:
        if key in names: continue
        known = key in SOLVER and ("decay" in settings or not SOLVER[key].endswith("decay"))
        if known: return f"{name} takes no {key}: {SOLVER[key].format(name)}"
        return f"{name} takes no {key}; it takes {', '.join(names)}"
    if "params" in first and "params" in named and given: return f"{name}: the parameters are given twice"
    if rate != "lr" and "lr" in named and (rate in named or given and "params" not in first):
        return f"{name}: lr is another name for {rate}; give one of them"
    if rate == "lr" and "lr" in named and given and "params" not in first: return f"{name}: lr is given twice"
    if rate != "lr" and rate in named and given and "params" not in first: return f"{name}: {rate} is given twice"
    if "betas" in named and {"beta1", "beta2"} & {*named}: return f"{name}: give betas, or beta1 and beta2"
    if named.get("weight_decay") is not None and "wd" in settings and "wd" in named:
        return f"{name}: weight_decay is PyTorch's, which decays by lr weight_decay w; give wd or weight_decay"
    return None


def of_schedule(cls, given, named):
    """The message for wrong arguments of the schedule `cls`, or None if there are none."""
    code = getattr(cls.__init__, "__code__", None)
    if code is None or code.co_flags & (inspect.CO_VARKEYWORDS | inspect.CO_VARARGS): return None
    names = code.co_varnames[1:code.co_argcount + code.co_kwonlyargcount]
    for key in named:
        if key in names: continue
        return f"{cls.__name__} takes no {key}" + (f": {SCHEDULE[key]}" if key in SCHEDULE else
                                                   f"; it takes {', '.join(names)}")
    if len(given) < code.co_argcount: return None
    return (f"{cls.__name__} takes {', '.join(names)}, got {len(given)} arguments; for last_epoch "
            f"{SCHEDULE['last_epoch']}")
