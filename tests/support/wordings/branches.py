"""The wording of errors: If and While."""

import numpy as np

import cygrad as cg
from cygrad.core.execute.control import repeat
from cygrad.graph import Net, Operator, Workspace


def made(kind="relu", inputs=("x",), outputs=("y",)):
    """A net of one operator."""
    net = Net(kind)
    net.add_operator(kind, list(inputs), list(outputs))
    return net


def choice(then, otherwise, inputs=("c", "x"), outputs="y", **more):
    """A net with an If."""
    net = Net("outer")
    net.add_operator("If", list(inputs), outputs, then=then, otherwise=otherwise, **more)
    return net


def loop(condition, body, inputs=("x",), outputs=("y",), **more):
    """A net with a While."""
    net = Net("outer")
    net.add_operator("While", list(inputs), list(outputs), condition=condition, body=body, **more)
    return net


def run(net, **blobs):
    workspace = Workspace()
    for name, x in blobs.items(): workspace.feed(name, x)
    workspace.run(net)


def assigned(*names):
    """A net whose inputs are set to these."""
    net = made("add", ["x", "y"], ["z"])
    net.add_constant(1.0, "k")
    net.inputs = list(names)


def with_steps():
    net = made()
    net.sum("y", "loss")
    net.add_gradient_operators(["loss"])
    return net


def with_solver():
    x = cg.ones(3).attach_grad()
    solver = cg.optim.Sgd()
    solver.set_parameters({"x": x})
    return Net.capture(lambda t: (solver.update(), t * 1.0)[1], ((3,), "float32"))


def in_place():
    net = Net("in place")
    net.add_operator("add", ["x", 1.0], "x", inplace=True)
    net.outputs = "x"
    return net


def number():
    net = Net("number")
    net.neg("x", "y")
    net.add_constant(2.0, "two")
    net.outputs = "two"
    return net


def doubled():
    """A net of nets, each of which has the one before it twice."""
    net = made()
    for _ in range(20):
        around = Net("doubled")
        around.add_operator("If", [1, "x"], "y", then=net, otherwise=net)
        around.add_operator("If", [1, "y"], "z", then=net, otherwise=net)
        net = around
    return net


def always():
    net = Net("always")
    net.less(["x", 9.0], "c")
    return net


X = np.ones((2, 3), np.float32)

CASES = [
    (lambda: repeat("While", (), [], 1, False), RuntimeError,
     "While is a step of a program, and none is being made here; run it in a net"),
    (lambda: choice(made(), None), TypeError,
     "Net.add_operator: If: otherwise must be a Net, got None; add the operator with add_operator('If', inputs, "
     "outputs, otherwise=net)"),
    (lambda: choice(made(), made("add", ["x", "z"])), ValueError,
     "Net.add_operator: If gives 1 input to otherwise, the net add, which takes 2: x, z; inputs are matched by their "
     "positions; assign net.inputs, which can have names that no operator reads"),
    (lambda: choice(made(), made("max", outputs=["v", "i"])), ValueError,
     "Net.add_operator: If: otherwise, the net max, has 2 outputs, v, i, but If has 1; assign net.outputs"),
    (lambda: loop(made("max", outputs=["v", "i"]), made()), ValueError,
     "Net.add_operator: While: condition, the net max, has 2 outputs, v, i, but a condition has one output; assign "
     "net.outputs"),
    (lambda: loop(made(), made(), outputs=["y", "z"]), ValueError,
     "Net.add_operator: While has 2 outputs, but only 1 input; each output is the last value of an input, the first "
     "output that of the first input"),
    (lambda: loop(made(), made(), turns=0), ValueError,
     "Net.add_operator: While: turns must be None or an int from 1 to 2,147,483,647, got 0"),
    (lambda: Net("n").add_operator("If", ["c", "x"], "y", then=made()), TypeError,
     "Net.add_operator: If: the argument 'otherwise' is missing; pass it by keyword"),
    (lambda: choice(made(), made(), more=1), TypeError,
     "Net.add_operator: If has no argument 'more'; its arguments are then, otherwise"),
    (lambda: Operator("If", ["c", "x"], ["y"], {"then": made()}), TypeError,
     "Operator If: then must be the net of an operator, got a Net, which can change; add the operator with "
     "net.add_operator('If', inputs, outputs, then=net)"),

    (lambda: choice(with_steps(), made()), ValueError,
     "Net.add_operator: then: operator 2 of net relu, loss_autogen_grad = ones_like(loss), is an operator of a "
     "backward pass, which a branch or a loop cannot do; differentiate the net around it"),
    (lambda: choice(with_solver(), made()), ValueError,
     "Net.add_operator: then: operator 0 of net <*>, which a branch or a loop cannot do; update variables after it"),
    (lambda: choice(made(), in_place()), ValueError,
     "Net.add_operator: otherwise: operator 0 of net in place, x = add(x, constant, inplace=True), writes over an "
     "input, which a branch or a loop cannot do, such as running statistics in train mode; write to a copy, and make "
     "it an output"),
    (doubled, ValueError,
     "Net.add_operator: then: net doubled has <*> operators, with those of the nets inside it, which are <*> deep; a "
     "net of a branch or a loop can have 100,000, 16 deep"),
    (lambda: choice(made(), number()), ValueError,
     "Net.add_operator: otherwise: the output 'two' of net number is a Python number; add a tensor with "
     "add_constant()"),

    (lambda: assigned("x", "x"), ValueError, "Net.inputs: each input must be named once, got ['x', 'x']"),
    (lambda: assigned("x", "k"), ValueError, "Net.inputs: 'k' is a constant; name blobs that are fed"),
    (lambda: assigned("z"), ValueError, "Net.inputs: 'z' is written before it is read; name blobs that are fed"),

    (lambda: run(choice(made(), made()), c=[True, False], x=X), ValueError,
     "If: the condition must have one element, got a bool tensor of shape (2,); reduce it with any() or all()"),
    (lambda: run(choice(made(), made("sum")), c=True, x=X), ValueError,
     "If: for 'y', then gives float32 (2, 3) and otherwise float32 (); both must have the same shape and dtype"),
    (lambda: run(loop(always(), made("sum")), x=X[0, :1]), ValueError,
     "While: for 'y', the body gives float32 (), and a turn began with float32 (1,); the shape and the dtype "
     "must stay"),
    (lambda: run(loop(always(), made(), turns=1), x=X[0, :1]), RuntimeError,
     "While: the condition is still true after 1 turn, the most that turns=1 allows; state a larger bound, or change "
     "the condition"),
    (lambda: run(loop(always(), made(), turns=2000), x=X[0, :1]), RuntimeError,
     "While: the condition is still true after 2,000 turns, the most that turns=2000 allows; state a larger bound, or "
     "change the condition"),
]
