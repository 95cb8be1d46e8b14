"""The wording of errors: capturing nets, and operators that only captured nets have."""

import numpy as np

import cygrad as cg
from cygrad.graph import Net, Operator, Workspace, register_gradient
from cygrad.nets.capture import Reader
from cygrad.ops import ROWS
from cygrad.ops.layers.running import move_statistics
from cygrad.testing import check_gradients, compare_nets

X = np.array([1.0, 2.0])


def capture(f, *arrays):
    return lambda: Net.capture(f, *(arrays or (cg.ones(3),)))


def variable():
    return cg.tensor([1.0, 2.0, 3.0]).attach_grad()


def by_solver():
    solver = cg.optim.Sgd(0.1)
    solver.set_parameters([w := variable()])

    def step(x):
        with cg.record(): loss = (x * w).sum()
        loss.backward()
        solver.update(lambda: None)

    Net.capture(step, cg.ones(3))


def with_a_pass(x):
    with cg.record(): loss = (x * VARIABLE).sum()
    loss.backward()


def without_solver():
    net = Net("small")
    net.add_operator("solver", ["x"], "x", solver="solver", method="scale_grad", arguments=(1.0,))
    workspace = Workspace()
    workspace.feed("x", X)
    workspace.run(net)


def with_law(law):
    net = Net("small")
    net.add_operator("random", [], "y", law=law, shape=(3,), numbers=(0.5,), dtype="float32")
    Workspace().run(net)


def masked(x):
    x[x > 0] = x[:1]


def of_inside(x):
    v = x.detach().requires_grad_()
    with cg.record(): y = v.tanh().sum()
    y.backward()
    return v.grad


def with_a_head_twice(x):
    with cg.record(): y = x * VARIABLE
    cg.backward([y, y], [x, x])


def no_longer_a_variable():
    net, workspace = Net.capture(lambda x: x * VARIABLE, cg.ones(3)), Workspace()
    workspace.feed("x", cg.ones(3))
    VARIABLE.drop_grad()
    workspace.run(net)


def with_rows(x):
    with cg.record(): y = cg.embedding(INDEX, TABLE, sparse=True).sum() * x.sum()
    y.backward()


def registered_as(gradient):
    """check_gradients() of a net with a gradient that is registered meanwhile."""
    def f():
        register_gradient("square")(gradient)
        try:
            net = Net("small")
            net.square("x", "y")
            check_gradients(net, {"x": X})
        finally: register_gradient("square")(None)
    return f


def head_alone(operator, gradients):
    return [Operator("mul", [operator.inputs[0], gradients[0]], "dx")], ["dx"]


def moved(*shapes, dtype="float32"):
    return lambda: move_statistics(*[cg.zeros(s, dtype=dtype) for s in shapes], 0.1)


VARIABLE, TABLE, INDEX = None, None, None


def with_globals(f):
    """A case whose variables live no longer than it."""
    def case():
        global VARIABLE, TABLE, INDEX
        VARIABLE, TABLE, INDEX = variable(), cg.ones((3, 2)).attach_grad(), cg.tensor([0, 2])
        try: f()
        finally: VARIABLE = TABLE = INDEX = None
    return case


CASES = [
    (capture(lambda x: cg.autograd.grad(cg.sum(x), x)), RuntimeError,
     "grad: output 0, of shape (), was not recorded; compute it from a variable (attach_grad() or requires_grad_()) "
     "inside `with cygrad.record():`; an input of a captured function takes no gradient: capture the function that "
     "computes the output, and call add_gradient_operators() of that net"),
    (lambda: Net.capture(3), TypeError, "Net.capture takes a function and its arguments, got 3"),
    (capture(lambda x: [x, 3]), TypeError,
     "Net.capture: a captured function returns tensors, or tuples, lists or dicts of them, or None; this one returned "
     "3"),
    (lambda: Net.capture(lambda x: x * 2, cg.ones(3), names={"w": 3}), TypeError,
     "Net.capture: names['w'] must be a tensor, got 3"),
    (lambda: Net.capture(lambda x: x, cg.ones(3), names=[cg.ones(3)]), TypeError,
     "Net.capture: names must be a dict from name to tensor, such as dict(model.named_parameters()), got <*>"),
    (capture(masked), RuntimeError,
     "capture: reading the values of a tensor, here by an operation such as an assignment to the elements of a mask, "
     "cannot be captured; use where() or keep it outside the captured function"),
    (lambda: Net.capture(lambda x: x * 2, cg.ones(3)).head("constant"), ValueError,
     "Net.head: no operator of net net writes 'constant'; name its loss"),
    (capture(lambda x: of_inside(x)), RuntimeError,
     "capture: an array of shape (3,) that no captured operator computed cannot be captured, such as the .grad of a "
     "variable that the function makes; use cygrad.autograd.grad() for such a gradient"),
    (with_globals(lambda: Net.capture(lambda x: VARIABLE.grad * x, cg.ones(3))), RuntimeError,
     "capture: an array of shape (3,) that no captured operator computed cannot be captured, such as a .grad from "
     "before the call, or the .grad of a variable that the function makes; use cygrad.autograd.grad() for such a "
     "gradient"),
    (with_globals(lambda: Net.capture(with_a_head_twice, cg.ones(3))), RuntimeError,
     "capture: a backward pass with the head 'mul' twice cannot be captured; pass it once, with the sum of its "
     "gradients"),
    (with_globals(lambda: Net.capture(lambda x: cg.backward([VARIABLE], [x]), cg.ones(3))), RuntimeError,
     "capture: a backward pass whose heads are variables cannot be captured; compute the heads from the variables"),
    (with_globals(lambda: no_longer_a_variable()), RuntimeError,
     "Workspace.run: 'parameter', a tensor outside of net net, is no variable and was one at the capture; change it "
     "back, or capture again"),
    (lambda: Reader(Net("small"), [], {}).call_of(type(ROWS["exp"].operator)(), None, 1), RuntimeError,
     "capture: exp cannot be captured: arguments_of: the operator exp is not in the table of operators, so no net can "
     "name it"),
    (with_globals(lambda: Net.capture(with_a_pass, cg.ones(3)).insert_operator(1, "cos", "x", "y")), RuntimeError,
     "Net.insert_operator: the backward pass that begins at operator 2 of net with_a_pass writes .grad, and is for all "
     "operators before it as they are; change the function and capture it again, or change the net before "
     "add_gradient_operators()"),
    (by_solver, RuntimeError, "capture: update() of a solver with hooks cannot be captured"),
    (with_globals(lambda: Net.capture(with_rows, cg.ones(3))), RuntimeError,
     "capture: the row-sparse gradient of parameter cannot be captured"),
    (without_solver, RuntimeError,
     "the net has no 'solver': a file of a net holds no solvers and generators; capture the function again"),
    (lambda: with_law("poisson"), ValueError,
     "random: law must be one of normal, uniform, bernoulli, with its numbers, got 'poisson' and (0.5,)"),
    (moved(2, 3, (2, 2)), ValueError,
     "move_running: the statistics are (2, 2), running_mean (2,) and running_var (3,); wanted (2, channels) and "
     "(channels,)"),
    (moved(2, 2, (2, 2), dtype="int64"), TypeError,
     "move_running: running_mean, running_var and the statistics must be floating"),
    (registered_as(head_alone), AssertionError,
     "check_gradients: the gradient of 'x', of shape (2,), is wrong at element <*>: net small gives <*>, finite "
     "differences give <*>; at a kink or a step, as of relu at 0, choose other inputs"),
    (lambda: check_gradients(Operator("square", "x", "y"), {"x": X}, eps=0), ValueError,
     "check_gradients: eps must be a positive number, got 0"),
    (lambda: compare_nets([lambda x: x, lambda x: x + 1.0], {"x": X}, ["y"]), AssertionError,
     "compare_nets: the output 'y' of net 1 (<lambda>) differs from that of net 0 (<lambda>) at 2 of 2 elements, first "
     "at (0,): 2.0 and 1.0"),
]
