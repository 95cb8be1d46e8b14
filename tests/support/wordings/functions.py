"""The wording of errors: derivatives as functions, and lanes of vmap."""

import warnings

import numpy as np

import cygrad as cg
from cygrad.core.errors import PerformanceWarning
from cygrad.core.graph.lifts import Level
from cygrad.func import functional_call, grad, jacobian, jvp, scipy, value_and_grad, vjp, vmap


def linear():
    return cg.nn.Linear(2, 3)


def tied():
    net = cg.nn.Sequential(cg.nn.Linear(2, 2), cg.nn.Linear(2, 2))
    net[1].bias = net[0].bias
    return net


class Doubled(cg.autograd.Function):
    """x := 2 x."""

    @staticmethod
    def forward(ctx, x):
        x *= 2
        ctx.mark_dirty(x)
        return x


class Largest(cg.autograd.Function):
    """The largest element, as a number of Python."""

    @staticmethod
    def forward(ctx, x): return float(x.max())


def one_number_each():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PerformanceWarning)
        vmap(Largest.apply)(cg.arange(4, dtype="float32").reshape(2, 2))


def shared_write(x):
    y = cg.zeros(2)
    return vmap(lambda x: y.copy_(x))(x)


def write_to_view(x):
    y = x * 1
    y[0].copy_(y[1])
    return y


def pass_inside(x):
    w = cg.ones(2).attach_grad()
    with cg.record(): y = (w * x).sum()
    y.backward()
    return w.grad


def stood():
    level = Level(2)
    try: return level.stand_in(cg.zeros(()))
    finally: level.close()


def statistics_of_lanes():
    with cg.train_mode(): return vmap(cg.nn.BatchNorm1d(3))(cg.zeros((2, 4, 3)))


CASES = [
    (stood, ValueError,
     "stand_in: the level must be open and have lanes, and all of them one dimension more; got a tensor of shape ()"),
    (lambda: jvp(pass_inside, (cg.ones(2),), (cg.ones(2),)), RuntimeError,
     "backward: inside of func.jvp or func.vmap the gradients would ignore tangents and slices; use func.grad or "
     "func.vjp there"),
    (lambda: cg.autograd.spam, AttributeError, "module 'cygrad.autograd' has no attribute 'spam'"),
    (lambda: cg.autograd.make_jvp, AttributeError,
     "module 'cygrad.autograd' has no attribute 'make_jvp': use func.jvp"),
    (lambda: cg.func.jacfwd, AttributeError,
     "module 'cygrad.func' has no attribute 'jacfwd': use func.jacobian(f, mode=\"forward\")"),
    (lambda: vmap(lambda x: x.item())(cg.zeros(2)), RuntimeError,
     "this tensor has no values: it stands for each slice inside of vmap(), or it was made while a program was traced "
     "(by memory.plan, or to capture a net); use only operations there, and read results after it"),
    (lambda: shared_write(cg.zeros((3, 2))), RuntimeError,
     "vmap: assign in place would write values that differ from lane to lane to a tensor of shape (2,) that all lanes "
     "share; compute a new tensor instead"),
    (statistics_of_lanes, RuntimeError,
     "batch_norm: inside of vmap the batch of each slice would move running_mean and running_var, which all slices "
     "share; call freeze_statistics() of the layer, which then uses them as they are, or pass no running statistics"),
    (lambda: jvp(write_to_view, (cg.zeros((2, 2)),), (cg.zeros((2, 2)),)), RuntimeError,
     "jvp: assign in place would write to a tensor of shape (2,) that is a view, or has views, whose tangents would "
     "not follow; compute a new tensor instead"),
    (lambda: jvp(lambda x: x * x.numpy(), (cg.zeros(2),), (cg.zeros(2),)), RuntimeError,
     "numpy() of a tensor of shape (2,) that has a tangent, inside of func.jvp: the tangent would be lost silently; "
     "use detach() first"),
    (lambda: jvp(lambda x: Doubled.apply(x * 1), (cg.zeros(2),), (cg.zeros(2),)), RuntimeError,
     "jvp: Doubled.forward wrote in place to input 0 of shape (2,), whose tangent would not follow; write to a copy()"),
    (one_number_each, RuntimeError,
     "vmap: Largest.forward returned 1.0 for one slice and another value for others; return a tensor"),
    (lambda: grad(cg.sum, "x")(cg.zeros(2)), TypeError,
     "grad: argnums must be the position of an argument, or a tuple of some, got 'x'"),
    (lambda: grad(cg.sum, 1)(cg.zeros(2)), ValueError,
     "grad: argnums has 1, but the function was called with 1 positional argument; they are numbered from 0"),
    (lambda: grad(cg.sum, (0, -1))(cg.zeros(2)), ValueError,
     "grad: argnums (0, -1) names an argument twice"),
    (lambda: grad(lambda p: p["a"].sum())({"a": cg.arange(3)}), TypeError,
     "grad: argument 0['a'] is int64, and only floats have derivatives; cast it with astype(\"float32\"), or "
     "differentiate another argument"),
    (lambda: grad(cg.sum, has_aux=True)(cg.zeros(2)), TypeError,
     "grad: with has_aux the function must return a pair (result, auxiliary data), got <*>"),
    (lambda: value_and_grad(lambda x: (x, x))(cg.zeros(())), TypeError,
     "value_and_grad: the function must return a tensor of one number, got <*>; for a pair with auxiliary data pass "
     "has_aux=True"),
    (lambda: grad(lambda x: x)(cg.zeros(2)), ValueError,
     "grad: the function must return a number (a tensor of floats of shape ()), got float32 of shape (2,); "
     "sum it, or use jacobian() or vjp()"),
    (lambda: vjp(cg.exp, cg.zeros(2))[1]((cg.zeros(2), cg.zeros(2))), ValueError,
     "vjp: got 2 cotangents for 1 results; give one of the same form for each"),
    (lambda: jvp(lambda p: p["a"], ({"a": cg.zeros(2)},), ({"b": cg.zeros(2)},)), ValueError,
     "jvp: tangent 0 is at [0]['b'], and its primal at [0]['a']; give a container of the same form"),
    (lambda: vjp(cg.exp, cg.zeros(2))[1]((cg.zeros(2),)), ValueError,
     "vjp: cotangent 0 is at [0], and its result at no path; give a container of the same form"),
    (lambda: jvp(cg.exp, (cg.zeros(2),), (cg.zeros(3),)), ValueError,
     "jvp: tangent 0 is float32 of shape (3,), and its primal float32 of shape (2,); they must agree"),
    (lambda: scipy(cg.sum, cg.zeros((2, 3))).value([1.0]), ValueError,
     "scipy: x has shape (1,), and the parameters have 6 elements: wanted (6,)"),
    (lambda: jvp(cg.exp, cg.zeros(2), cg.zeros(2)), TypeError,
     "jvp: primals and tangents must be tuples, one entry for each argument of the function; for one argument write "
     "(x,)"),
    (lambda: jacobian(lambda x: {"y": np.zeros(2)})(cg.zeros(2)), TypeError,
     "jacobian: the result['y'] is a NumPy array, through which no gradient flows; make a tensor of the parts, as "
     "numpy.stack does of tensors, or write them into numpy.zeros_like(x) of a tensor x"),
    (lambda: jacobian(cg.exp, mode="back"), ValueError,
     "jacobian: mode must be \"forward\", \"reverse\" or None, got 'back'"),
    (lambda: vmap(cg.argwhere)(cg.zeros((2, 2))), RuntimeError,
     "vmap: the shape of the result of argwhere depends on values, so its lanes could have different shapes; call it "
     "outside of vmap, or compute with a mask"),
    (lambda: vmap(cg.exp, ("x",))(cg.zeros(2)), ValueError,
     "vmap: in_axes must be an axis, None, or a container like that of the arguments with an axis or None for each "
     "part, got 'x' for <*>"),
    (lambda: vmap(cg.exp, (0, 0))(cg.zeros(2)), ValueError,
     "vmap: in_axes has 2 entries for 1 positional arguments; give one for each"),
    (lambda: vmap(cg.exp, 1)(cg.zeros(2)), ValueError,
     "vmap: in_axes maps axis 1 of input 0, which has shape (2,); pass None for what all calls share"),
    (lambda: vmap(cg.exp, None)(cg.zeros(2)), ValueError,
     "vmap: no argument is mapped; give an axis for at least one in in_axes"),
    (lambda: vmap(cg.add)(cg.zeros(2), cg.zeros(3)), ValueError,
     "vmap: input 0 has 2 slices along its axis, and input 1 has 3; they must agree"),
    (lambda: vmap(cg.exp)(cg.zeros((0, 2))), ValueError,
     "vmap: the mapped axis has size 0; the shapes of results need at least one slice"),
    (lambda: vmap(cg.exp, 0, 2)(cg.zeros((3, 2))), ValueError,
     "vmap: out_axes has 2 for a result of shape (2,); the new axis can be at -2 to 1"),
    (lambda: vmap(cg.exp, 0, None)(cg.zeros(2)), ValueError,
     "vmap: out_axes has None for a result that differs from slice to slice; give the place of the new axis"),
    (lambda: functional_call(linear(), [], cg.zeros(2)), TypeError,
     "functional_call: parameters must be a dict from names to tensors, got []"),
    (lambda: functional_call(linear(), {"w": cg.zeros(2)}, cg.zeros(2)), ValueError,
     "functional_call: Linear has no parameter or buffer 'w'; see named_parameters()"),
    (lambda: functional_call(tied(), {"0.bias": cg.zeros(2), "1.bias": cg.ones(2)}, cg.zeros(2)), ValueError,
     "functional_call: 1.bias is tied to another name in parameters, whose tensor is not the same; give one of them, "
     "or the same tensor for both"),
    (lambda: functional_call(linear(), {"bias": 1}, cg.zeros(2)), TypeError,
     "functional_call: bias must be a tensor, got 1"),
    (lambda: functional_call(linear(), {"bias": cg.zeros(2)}, cg.zeros(2)), ValueError,
     "functional_call: bias has shape (3,), got (2,)"),
]
