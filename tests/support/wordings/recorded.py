"""The wording of errors: nets from recorded graphs, and nets in training."""

import numpy as np

import cygrad as cg
from cygrad.graph import Net, Workspace

WHAT_TO_DO = "; use Net.capture(f, *examples), or make it a variable, if it is floating, before the recording"


def recorded(f, after=None, **named):
    """A function that makes a net of the graph of f(x)."""
    def call():
        x = cg.tensor([1.0, 2.0]).attach_grad()
        with cg.record(): y = f(x)
        if after is not None: after(y)
        Net.from_graph(y, **named)
    return call


def written():
    x, data = cg.ones(2).attach_grad(), cg.ones(2)
    with cg.record(): y = x * data
    data += 1.0
    Net.from_graph(y)


def packed():
    x = cg.ones(2).attach_grad()
    with cg.record(), cg.autograd.saved_tensors_hooks(lambda t: t.numpy().copy(), cg.tensor): y = x * np.ones(2, "f4")
    Net.from_graph(y)


class Twice(cg.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2


CASES = [
    (lambda: Net.from_graph(3), TypeError, "Net.from_graph takes a tensor or a list of tensors, got 3"),
    (lambda: Net.from_graph([]), TypeError, "Net.from_graph takes a tensor or a list of tensors, got []"),
    (recorded(cg.exp, names=["x"]), TypeError, "Net.from_graph: names must be a dict from name to tensor, got ['x']"),
    (recorded(cg.exp, names={"x": 3}), TypeError, "Net.from_graph: names['x'] must be a tensor, got 3"),
    (recorded(cg.exp, names={" x": cg.exp}), ValueError,
     "Net.from_graph: each of the names must have from 1 to 1,000 characters, no control characters and no space at "
     "its ends, got ' x'"),
    (lambda: Net.from_graph(cg.ones(2)), RuntimeError,
     "Net.from_graph: a float32 tensor of shape (2,) has no graph, because no gradient flows to it; compute it from "
     "variables inside record(), or use Net.capture(f, *examples)"),
    (recorded(lambda x: x + 1.0), RuntimeError,
     "Net.from_graph: operand 1 (y) of add is no variable, and backward does not need its value, so the graph does not "
     "have it" + WHAT_TO_DO),
    (written, RuntimeError,
     "Net.from_graph: operand 1 (y) of mul was written in place since, so the graph does not have its value"
     + WHAT_TO_DO),
    (packed, RuntimeError, "Net.from_graph: operand 1 (y) of mul is packed by saved_tensors_hooks" + WHAT_TO_DO),
    (recorded(cg.exp, lambda y: y.backward()), RuntimeError,
     "Net.from_graph: backward has freed the graph at exp; make the net before backward, or keep the graph with "
     "retain_graph=True"),
    (recorded(Twice.apply), RuntimeError,
     "Net.from_graph: Twice is an autograd.Function, whose Python code a net does not have; build the net with "
     "create_python_operator(f, inputs, outputs, grad_f)"),
]


def small():
    made = Net("small")
    made.mul(["x", "w"], "y")
    return made


def differentiated():
    made = small()
    made.add_gradient_operators(["y"])
    return made.head("y")


def two():
    made = small()
    made.exp("x", "z")
    return made.head()


def immediate():
    w = cg.ones(2).attach_grad()
    net = Net.capture(lambda x: w * x, cg.ones(2))
    with Workspace().immediate(): net.add_gradient_operators([net.outputs[0]], bind=True)


class Solver:
    def zero_grad(self): pass
    def update(self): pass


CASES += [
    (lambda: small().head("z"), ValueError, "Net.head: net small has no blob 'z'; it has x, w, y"),
    (two, ValueError, "Net.head: net small has 2 outputs, y, z; name the one that is the loss"),
    (differentiated, RuntimeError,
     "Net.head: net small has the gradient operator y_autogen_grad = ones_like(y); an Updater runs backward itself, so "
     "capture the forward pass alone"),
    (lambda: small().head()(1.0), TypeError,
     "the head 'y' of net small takes a value for each input, x, w, got 1 value"),
    (lambda: small().add_gradient_operators(["y"], bind=True), RuntimeError,
     "Net.add_gradient_operators: with bind=True, gradients go to variables, but net small binds none; capture a "
     "function that uses variables"),
    (immediate, RuntimeError,
     "Net.add_gradient_operators: with bind=True, gradients go to variables in one backward pass, which immediate mode "
     "does not run; leave its scope first"),
    (lambda: cg.trainers.Updater(Solver(), small().outputs[0]), TypeError,
     "Updater: loss must be a function that returns the loss, or the head of a net, got the name 'y'; pass "
     "net.head('y')"),
]
