"""The wording of errors: solvers."""

import numpy as np

import cygrad as cg
from wrong import RESULT, incomplete, lying_solver, twice_in_a_solver, without_a_rule

CASES = [
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
    (lambda: cg.optim.Sgd().update(), RuntimeError,
     "update: this solver has no parameters; call set_parameters() first"),
    (lambda: cg.optim.Sgd().set_parameters(3.0), TypeError,
     "set_parameters takes a dict of names and variables, or a list of variables, got float"),
    (lambda: cg.optim.Sgd().set_parameters([3.0]), TypeError,
     "set_parameters: '0' must be a tensor, got float"),
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
]
