"""The wording of errors: solvers."""

import numpy as np

import cygrad as cg
from wrong import (
    RESULT, VARIABLE, accumulated_twice, adam, ended_in_its_pass, entered_again, fused, fused_twice, half_an_update,
    incomplete, lying_solver, other_settings, other_states, pass_before_update, scaled_with_a_graph, twice_in_a_solver,
    without_a_rule,
)


def freed_in_a_solver():
    x = VARIABLE()
    solver = cg.optim.Sgd(0.1)
    solver.set_parameters({"w": x})
    x.free()
    return solver


def changed(**entries):
    solver = adam()
    solver.load_state_dict(solver.state_dict() | entries)


def generated():
    yield


def sharing(make):
    cg.optim.Sgd(make(VARIABLE()))


def grouped(lr):
    return cg.optim.Sgd([{"params": [VARIABLE()]}, {"params": [VARIABLE()], "lr": lr}], lr=0.1)


class Foreign:
    shape, dtype, ndim = (2,), "float32", 1


CASES = [
    (lambda: cg.optim.Ftrl(lamda1=-0.5), ValueError, "lamda1 must be at least 0 and finite, got -0.5"),
    (lambda: cg.optim.Ftrl(lamda1=0.5, learning_rate=0.1), TypeError, "Ftrl takes no learning_rate: it is called lr"),
    (lambda: cg.optim.Sgd(0.1).fuse_into_backward(), RuntimeError,
     "fuse_into_backward: this solver has no parameters; call set_parameters() first"),
    (lambda: fused_twice(), RuntimeError,
     "fuse_into_backward: another solver has fused the updates of 'w'; close() what its fuse_into_backward() returned "
     "first"),
    (lambda: entered_again(), RuntimeError,
     "fuse_into_backward: these updates are closed; call fuse_into_backward() again"),
    (lambda: half_an_update(lambda solver, handle, w: solver.set_learning_rate(1)), RuntimeError,
     "set_learning_rate: the update of 'w' has begun, by accumulate() or a pass; call update() first"),
    (lambda: half_an_update(lambda solver, handle, w: pass_before_update(w)), RuntimeError,
     "fuse_into_backward: the sums of accumulate() wait for update(); call it before the next pass"),
    (lambda: ended_in_its_pass(), RuntimeError,
     "update: a backward pass has begun the update of 'w'; call it after the pass"),
    (lambda: accumulated_twice(), RuntimeError,
     "accumulate: these updates accumulate already; leave the scope around this one first"),
    (lambda: fused(lambda solver, y: solver.scale_grad(2)), RuntimeError,
     "scale_grad: the updates of this solver are fused into backward, so gradients are not stored; close() what "
     "fuse_into_backward() returned first"),
    (lambda: fused(lambda solver, y: y.backward(retain_graph=True)), RuntimeError,
     "fuse_into_backward: retain_graph=True keeps the graph, but this pass would change the parameters that it has "
     "saved; close() what fuse_into_backward() returned first"),
    (lambda: incomplete(), RuntimeError,
     "update: the gradient of 'w' is incomplete: a backward pass failed, or the gradient was zeroed or assigned by a "
     "hook, after some of its contributions had been added; call zero_grad() and run the backward pass again, or "
     "assign a gradient"),
    (lambda: without_a_rule(), NotImplementedError,
     "Nothing has no rule; a solver names its rule, a row of cygrad.ops.rules"),
    (lambda: twice_in_a_solver(), ValueError,
     "set_parameters: 'b' is the same tensor as 'a'; a tensor is updated once, so list it once"),
    (lambda: cg.optim.Sgd(lr=-0.1), ValueError,
     "lr must be at least 0 and finite, got -0.1"),
    (lambda: cg.optim.Adam("x"), TypeError,
     "alpha must be a number, got 'x'"),
    (lambda: cg.optim.Adam(0.1, lr=0.1), TypeError,
     "Adam: lr is another name for alpha; give one of them"),
    (lambda: RESULT().backward(clear_buffer=True), TypeError,
     "backward takes retain_graph, not clear_buffer: backward(gradient, retain_graph=True)"),
    (lambda: cg.optim.Adam(eps=0), ValueError,
     "eps must be greater than 0 and finite, got 0"),
    (lambda: cg.optim.Adam(beta1=1), ValueError,
     "beta1 must be at least 0 and less than 1, got 1"),
    (lambda: adam().update(3), TypeError, "update: update_pre_hook must be a function without arguments, got 3"),
    (lambda: adam().update(None, "x"), TypeError,
     "update: update_post_hook must be a function without arguments, got 'x'"),
    (lambda: adam().update(generated), TypeError,
     "update: update_pre_hook must be a function that runs when it is called, got a generator function"),
    (lambda: adam().step(3), TypeError,
     "step: closure must be a function without arguments, got 3; after a backward pass call step()"),
    (lambda: adam().remove_parameters([VARIABLE()]), TypeError,
     "remove_parameters takes names, as get_parameters() has them, got a float32 tensor of shape (2,)"),
    (lambda: adam().remove_parameters(3), TypeError,
     "remove_parameters takes names, as get_parameters() has them, got 3"),
    (lambda: adam().state, AttributeError, "'Adam' object has no attribute 'state': use get_states(), or state_dict()"),
    (lambda: adam().defaults, AttributeError,
     "'Adam' object has no attribute 'defaults': its settings are attributes, such as lr, and param_groups has those "
     "of groups"),
    (lambda: cg.optim.NAdam, AttributeError,
     "module 'cygrad.optim' has no attribute 'NAdam': the nearest is Adam, without Nesterov's step"),
    (lambda: cg.optim.AMSGrad, AttributeError, "module 'cygrad.optim' has no attribute 'AMSGrad': use AMSGRAD"),
    (lambda: cg.optim.lr_scheduler, AttributeError,
     "module 'cygrad.optim' has no attribute 'lr_scheduler': the schedules are in cygrad.optim itself, such as "
     "cygrad.optim.StepLR"),
    (lambda: freed_in_a_solver().update(), RuntimeError,
     "update: 'w' was freed, by its free() or at the end of a memory.scope(); call remove_parameters('w')"),
    (lambda: freed_in_a_solver().clip_grad_by_norm(1.0), RuntimeError,
     "clip_grad_by_norm: 'w' was freed, by its free() or at the end of a memory.scope(); call remove_parameters('w')"),
    (lambda: cg.optim.Sgd().update(), RuntimeError,
     "update: this solver has no parameters; call set_parameters() first"),
    (lambda: cg.optim.Sgd().set_parameters(3.0), TypeError,
     "set_parameters: the parameters must be a dict of names and variables, or a list of variables, got float"),
    (lambda: cg.optim.Adam(cg.nn.Sequential(cg.nn.Tanh()), lr=0.1), TypeError,
     "set_parameters: the parameters must be a dict of names and variables, or a list of variables, got Sequential; "
     "pass its parameters() or named_parameters()"),
    (lambda: cg.optim.Adam().set_parameters(cg.nn.ModuleDict()), TypeError,
     "set_parameters: the parameters must be a dict of names and variables, or a list of variables, got ModuleDict; "
     "pass its parameters() or named_parameters()"),
    (lambda: cg.optim.Sgd(cg.nn.Tanh().parameters, lr=0.1), TypeError,
     "set_parameters: the parameters must be a dict of names and variables, or a list of variables, got method; "
     "call it, with ()"),
    (lambda: cg.optim.Sgd(10**400), ValueError,
     "lr must be finite, got an int that no float64 can hold"),
    (lambda: cg.optim.Sgd().set_parameters([3.0]), TypeError,
     "set_parameters: '0' must be a tensor, got 3.0"),
    (lambda: cg.optim.Sgd().set_parameters([cg.zeros(2)]), ValueError,
     "set_parameters: '0', of shape (2,), is not a variable; call attach_grad() or requires_grad_() on it first"),
    (lambda: cg.optim.Sgd().set_parameters({"w": cg.zeros((2, 3)).T.attach_grad()}), ValueError,
     "set_parameters: 'w', of shape (3, 2), is not contiguous; use a copy()"),
    (lambda: cg.optim.Sgd().set_parameters([cg.asarray(np.frombuffer(bytes(8), "float32")).attach_grad()]), ValueError,
     "set_parameters: '0', of shape (2,), has read-only memory and cannot be updated; use a copy()"),
    (lambda: lying_solver(lambda states: states.pop("m")), ValueError,
     "the state of 'w' must have m, v, got v"),
    (lambda: lying_solver(lambda states: states.update(m=cg.zeros(3))), ValueError,
     "the state m of 'w' must be a float32 tensor of shape (2,) like the parameter, got a float32 tensor of "
     "shape (3,)"),
    (lambda: cg.optim.Adam([VARIABLE()], 0.1), TypeError,
     "Adam: pass the arguments after the parameters by name: Adam(parameters, lr=...)"),
    (lambda: cg.optim.Adam(momentum=0.9), TypeError,
     "Adam takes no momentum: use Momentum(lr, momentum), in which v contains the learning rate, SgdW, Nesterov or"
     " RMSpropGraves"),
    (lambda: cg.optim.Sgd(momentum=0.9), TypeError,
     "Sgd takes no momentum: use Momentum(lr, momentum), in which v contains the learning rate, SgdW, Nesterov or "
     "RMSpropGraves"),
    (lambda: cg.optim.Sgd(nesterov=True), TypeError,
     "Sgd takes no nesterov: use Nesterov(lr, momentum)"),
    (lambda: cg.optim.Adam(amsgrad=True), TypeError,
     "Adam takes no amsgrad: use AMSGRAD(alpha, bias_correction=True), whose eps is outside the bias correction"),
    (lambda: cg.optim.RMSprop(alpha=0.9), TypeError,
     "RMSprop takes no alpha: the learning rate is called lr, and PyTorch's alpha of RMSprop is decay"),
    (lambda: cg.optim.Adadelta(rho=0.9), TypeError,
     "Adadelta takes no rho: use decay"),
    (lambda: cg.optim.Adam(maximize=True), TypeError,
     "Adam takes no maximize: differentiate the negative loss"),
    (lambda: cg.optim.Adam(fused=True), TypeError,
     "Adam takes no fused: leave it out; every update is fused"),
    (lambda: cg.optim.Adam(parameters=3), TypeError,
     "Adam takes no parameters: pass them first, Adam(parameters, lr=0.01), or call set_parameters(parameters)"),
    (lambda: cg.optim.Sgd(betas=(1,2)), TypeError,
     "Sgd takes no betas: its rule has no beta1 and beta2"),
    (lambda: cg.optim.Adam(betas=0.9), TypeError,
     "betas must be two numbers, (beta1, beta2), got 0.9"),
    (lambda: cg.optim.Adam(betas=(.9,.99), beta1=.9), TypeError,
     "Adam: give betas, or beta1 and beta2"),
    (lambda: cg.optim.AdamW(wd=0.1, weight_decay=0.1), TypeError,
     "AdamW: weight_decay is PyTorch's, which decays by lr weight_decay w; give wd or weight_decay"),
    (lambda: cg.optim.Sgd(0.1, lr=0.2), TypeError,
     "Sgd: lr is given twice"),
    (lambda: cg.optim.Adam(0.1, alpha=0.2), TypeError,
     "Adam: alpha is given twice"),
    (lambda: cg.optim.Adam([VARIABLE()], params=[VARIABLE()]), TypeError,
     "Adam: the parameters are given twice"),
    (lambda: cg.optim.Adam(learning_rate=0.1), TypeError,
     "Adam takes no learning_rate: it is called lr"),
    (lambda: cg.optim.Adam(rho=1), TypeError,
     "Adam takes no rho; it takes alpha, lr, beta1, beta2, eps, params, weight_decay, betas"),
    (lambda: cg.optim.Adam(nothing=1), TypeError,
     "Adam takes no nothing; it takes alpha, lr, beta1, beta2, eps, params, weight_decay, betas"),
    (lambda: cg.optim.AMSGRAD(bias_correction=1), TypeError,
     "bias_correction must be True or False, got 1"),
    (lambda: cg.optim.Adam(lr=-1), ValueError,
     "lr must be at least 0 and finite, got -1"),
    (lambda: cg.optim.Adam(alpha=-1), ValueError,
     "alpha must be at least 0 and finite, got -1"),
    (lambda: cg.optim.Adam(lr=cg.ones(2)), TypeError,
     "lr must be a number, got a float32 tensor of shape (2,)"),
    (lambda: cg.optim.Adam(betas=(0.9, 1)), ValueError,
     "betas[1] must be at least 0 and less than 1, got 1"),
    (lambda: adam().save_states("states.h5"), ValueError,
     "save_states: the path must end with .safetensors or .npz, which is the format, got 'states.h5'"),
    (lambda: adam().load_states("states.h5"), ValueError,
     "load_states: the path must end with .safetensors or .npz, which is the format, got 'states.h5'"),
    (lambda: cg.optim.Adam({"w\0": VARIABLE()}).save_states("states.npz"), ValueError,
     "save_states: a name in an .npz file has at most 65,531 bytes and no zero character, got 'w\\x00.m'; rename it, "
     "or save .safetensors"),
    (lambda: cg.optim.Sgd([Foreign()]), TypeError,
     "set_parameters: '0' must be a tensor, got a float32 wordings.solvers.Foreign of shape (2,)"),
    (lambda: cg.optim.Sgd().set_parameters(Foreign()), TypeError,
     "set_parameters: the parameters must be a dict of names and variables, or a list of variables, got "
     "wordings.solvers.Foreign"),
    (lambda: cg.optim.Momentum(momentum=1.0), ValueError,
     "momentum must be at least 0 and less than 1, got 1.0"),
    (lambda: cg.optim.Adam(weight_decay=-1), ValueError,
     "weight_decay must be at least 0 and finite, got -1"),
    (lambda: cg.optim.Adam(wd=1), TypeError,
     "Adam takes no wd: use weight_decay, as in PyTorch, or call weight_decay(rate) before update()"),
    (lambda: adam().set_parameters({3: VARIABLE()}), TypeError,
     "set_parameters: the names must be strings, got 3"),
    (lambda: adam().set_parameters("w"), TypeError,
     "set_parameters: the parameters must be a dict of names and variables, or a list of variables, got str"),
    (lambda: adam().set_parameters([("a", VARIABLE()), ("a", VARIABLE())]), ValueError,
     "set_parameters: there are two parameters 'a'"),
    (lambda: adam().set_parameters([{"lr": 1.0}]), ValueError,
     'set_parameters: a group needs "params", got lr'),
    (lambda: adam().set_parameters([{"params": [VARIABLE()], "betas": (0.9, 0.99)}]), ValueError,
     "a group takes params, lr, weight_decay, lr_mult, wd_mult, got 'betas'; make a second solver for other "
     "settings"),
    (lambda: adam().set_parameters([{"params": {"a": VARIABLE()}}, {"params": {"a": VARIABLE()}}]), ValueError,
     "set_parameters: two groups have a parameter 'a'"),
    (lambda: cg.optim.Sgd(0.0).set_parameters([{"params": [VARIABLE()], "lr": 1.0}]), ValueError,
     "a group cannot have lr 1.0 in a solver whose rate is 0: set_learning_rate() keeps the ratio of the two"),
    (lambda: adam().add_param_group([VARIABLE()]), TypeError,
     'add_param_group takes a dict with "params", got list'),
    (lambda: adam().add_param_group({"params": 3}), TypeError,
     "add_param_group: the parameters must be a dict of names and variables, or a list of variables, got int"),
    (lambda: adam().add_param_group({"params": [cg.zeros(2)]}), ValueError,
     "add_param_group: '1', of shape (2,), is not a variable; call attach_grad() or requires_grad_() on it first"),
    (lambda: adam().add_param_group({"params": [VARIABLE()] * 2}), ValueError,
     "add_param_group: '2' is the same tensor as '1'; a tensor is updated once, so list it once"),
    (lambda: adam().add_param_group({"lr": 1.0}), ValueError,
     'add_param_group: a group needs "params", got lr'),
    (lambda: adam().add_param_group({"params": {"w": VARIABLE()}}), ValueError,
     "add_param_group: there is a parameter 'w' already"),
    (lambda: adam().set_parameters({"w": cg.ones(3).attach_grad()}, reset=False, retain_state=True), ValueError,
     "set_parameters: 'w' is float32 (3,), and the state to retain is float32 (2,); pass retain_state=False"),
    (lambda: adam().param_groups[0].__setitem__("betas", 1), ValueError,
     "a group has lr, weight_decay, lr_mult, wd_mult to assign, not 'betas'"),
    (lambda: other_states(fmt="other"), ValueError,
     "load_states: '<*>states.npz' is not a file of save_states()"),
    (lambda: other_states("Lion"), ValueError,
     "load_states: the file has the states of Lion, not of Adam"),
    (lambda: other_states(t=cg.zeros(2)), ValueError,
     "load_states: 'w.t' must be one int64, got float32 (2,)"),
    (lambda: adam().spam, AttributeError,
     "'Adam' object has no attribute 'spam'"),
    (lambda: other_settings(), ValueError,
     "a pickled Adam must have the settings alpha, beta1, beta2, eps; this one has alpha, beta1, beta2, rho"),
    (lambda: adam().param_groups[0].__delitem__("lr"), TypeError,
     "the settings of a group cannot be deleted"),
    (lambda: adam().clip_grad_by_norm(0), ValueError,
     "clip_norm must be greater than 0, got 0"),
    (lambda: adam().clip_grad_by_global_norm(-1), ValueError,
     "clip_norm must be greater than 0, got -1"),
    (lambda: adam().clip_grad_by_value(float("nan")), ValueError,
     "clip_value must be greater than 0, got nan"),
    (lambda: adam().scale_grad("x"), TypeError,
     "scale must be a number, got 'x'"),
    (lambda: adam().weight_decay(-0.1), ValueError,
     "rate must be at least 0 and finite, got -0.1"),
    (lambda: scaled_with_a_graph(), cg.InplaceError,
     "scale_grad: the gradient of 'w' has a graph (create_graph=True) and cannot be written; assign its detach() "
     "to .grad first"),
    (lambda: adam().set_states([]), TypeError,
     "set_states takes a dict of states by name of the parameter, got list"),
    (lambda: cg.optim.Sgd().set_states({}), RuntimeError,
     "set_states: this solver has no parameters; call set_parameters() first"),
    (lambda: adam().set_states({"v": 1}), ValueError,
     "the states must be those of the solver's parameters; missing 'w'; unknown 'v'"),
    (lambda: adam().set_states({"w": 1}), TypeError,
     "the state of 'w' must be a SolverState or a pair (states by name, number of updates), got 1"),
    (lambda: adam().set_states({"w": ({}, 1)}), ValueError,
     "the state of 'w' must have m, v, got none"),
    (lambda: adam().set_states({"w": (dict(adam().get_states()["w"].pstate), -1)}), ValueError,
     "the number of updates of 'w' must be an int of at least 0, got -1"),
    (lambda: adam().load_state_dict({}), ValueError,
     "load_state_dict takes what state_dict() returned, a dict with state, solver, settings, lr, base, param_groups; "
     "got []"),
    (lambda: changed(lr=[1]), ValueError,
     "load_state_dict: lr must be a number of at least 0, and finite, got [1]"),
    (lambda: changed(state=[1]), TypeError,
     "load_state_dict: \"state\" must be a dict of states by name of the parameter, got [1]"),
    (lambda: changed(state={"w": 1}), TypeError,
     "load_state_dict: the state of 'w' must be a dict of its states and \"step\", got 1"),
    (lambda: changed(base=3), ValueError,
     "load_state_dict: lr of base must be a number of at least 0, and finite, got None"),
    (lambda: changed(solver="Lion"), ValueError,
     "load_state_dict: the dict has the states of Lion, not of Adam"),
    (lambda: changed(settings={"eps": 1e-8}), ValueError,
     "load_state_dict: the settings of the dict must be beta1, beta2, eps, got ['eps']"),
    (lambda: changed(settings={"beta1": 0.8, "beta2": 0.999, "eps": 1e-3}), ValueError,
     "load_state_dict: other settings, with which the run would not continue as it was: beta1 is 0.8 in the dict and "
     "0.9 in the solver, eps is 0.001 in the dict and 1e-08 in the solver; create the solver with beta1=0.8, "
     "eps=0.001"),
    (lambda: changed(param_groups=[]), ValueError,
     "load_state_dict: the names in the dict must be those of the solver's parameters; missing 'w'"),
    (lambda: changed(param_groups=[3]), ValueError,
     "load_state_dict: the groups of the dict must be a list of dicts with the names of parameters, got [3]"),
    (lambda: changed(param_groups=[{"params": ["w"]}, {"params": ["w"]}]), ValueError,
     "load_state_dict: 'w' is in the groups of the dict twice"),
    (lambda: changed(param_groups=[{"params": ["w"]}, {"params": []}]), ValueError,
     "load_state_dict: the dict has 2 groups, and the solver 1; create the solver with the groups that it had when it "
     "was saved"),
    (lambda: cg.optim.Adam([{"params": {"v": VARIABLE()}}, {"params": {"w": VARIABLE()}}]).load_state_dict(
        cg.optim.Adam({"v": VARIABLE(), "w": VARIABLE()}).state_dict()), ValueError,
     "load_state_dict: the group of the dict that is param_groups[0] of the solver must have the same parameters, but "
     "is with 'w'; create the solver with the groups that it had when it was saved"),
    (lambda: sharing(lambda x: {"a": x, "b": x.detach().requires_grad_()}), ValueError,
     "set_parameters: 'b' shares memory with 'a', and an update would change it twice; list one of them, or use a "
     "copy()"),
    (lambda: grouped(lr=1e300).set_learning_rate(1e200), ValueError,
     "set_learning_rate: 1e+200 times a group's lr_mult 1e+301 is not finite"),
    (lambda: cg.optim.Sgd([{"params": [VARIABLE()], "lr": 1e300}], lr=1e-300), ValueError,
     "a group cannot have this rate: it, or its ratio to the rate of the solver, is not finite"),
    (lambda: cg.optim.AdamW([VARIABLE()], lr=1e10, weight_decay=1e300), ValueError,
     "weight_decay 1e+300 times the first rate 1e+10 is not finite; give a smaller one of them"),
    (lambda: cg.ops.ROWS["sgd_update"].function(cg.ones(2), cg.ones(3), 0.1, 1), ValueError,
     "sgd_update: w, g must have the same shape and floating dtype, lr must be one floating number and t one "
     "int64; got w float32 (2,), g float32 (3,), lr float64 (), t int64 ()"),
    (lambda: cg.ops.ROWS["sgd_update"].function(cg.ones(2), cg.ones(2), 0.1, 1.0), TypeError,
     "sgd_update: w, g must have the same shape and floating dtype, lr must be one floating number and t one "
     "int64; got w float32 (2,), g float32 (2,), lr float64 (), t float32 ()"),
    (lambda: setattr(cg.optim.Sgd(), "lr", 0.5), AttributeError,
     "the lr of a solver is not assigned: call set_learning_rate(lr)"),
]
