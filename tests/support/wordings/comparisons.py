"""The wording of errors: gradient checks of nets, comparisons of nets, and drawings of plans."""

import numpy as np

import cygrad as cg
from cygrad.graph import Net
from cygrad.testing import check_gradients, compare_nets

X = np.ones(2)


def net(type="square", *arguments, **named):
    made = Net("small")
    made.add_operator(type, *(arguments or ("x", "y")), **named)
    return made


def differentiated():
    made = net()
    made.add_gradient_operators(["y"])
    return made


def solved():
    w = cg.ones(2).attach_grad()
    solver = cg.optim.Sgd(0.1)
    solver.set_parameters({"w": w})

    def step(x):
        with cg.record(): y = w * x
        y.backward()
        solver.update()
        return y

    return Net.capture(step, cg.ones(2))


def counted():
    calls = []

    def f(x):
        calls.append(x)
        return x.numpy() * len(calls)

    made = Net("small")
    made.create_python_operator(f, "x", "y", lambda xs, ys, gs: gs[0])
    return made


def product():
    made = Net("small")
    made.mul(["x", "w"], "y")
    return made


CASES = [
    (lambda: net().plan({"x": (3,)}).plot("plan.png"), ValueError,
     "Plan.plot: the path must end with .svg, which is the format, got 'plan.png'"),
    (lambda: net().plan({"x": (3,)}).plot(3), TypeError, "Plan.plot<*>got 3<*>"),
    (lambda: check_gradients("net", {"x": X}), TypeError,
     "check_gradients takes a Net or an Operator, got 'net'"),
    (lambda: check_gradients(solved(), {"x": X}), RuntimeError,
     "check_gradients: net step updates variables; check a net of the forward pass alone"),
    (lambda: check_gradients(net(), [X]), TypeError,
     "check_gradients: the inputs must be a dict from blob to array, got <*>"),
    (lambda: check_gradients(net(), {"x": "one"}), TypeError,
     "check_gradients: the value of the blob 'x' must be numbers, got 'one'"),
    (lambda: check_gradients(net(), {"x": X, "z": X}), ValueError,
     "check_gradients: net small has no blob 'z'; its inputs are x"),
    (lambda: check_gradients(product(), {"x": X}), ValueError,
     "check_gradients: the input 'w' of net small has no value; add it to the inputs"),
    (lambda: check_gradients(net(), {"x": X}, 3), TypeError,
     "check_gradients: outputs must be a list of names of blobs, got 3"),
    (lambda: check_gradients(net(), {"x": X}, ["z"]), ValueError,
     "check_gradients: net small has no blob 'z'; it has x, y"),
    (lambda: check_gradients(net(), {"x": X}, wrt=["y"]), ValueError,
     "check_gradients: 'y' is no floating input of net small, so it has no finite differences"),
    (lambda: check_gradients(net(), {"x": X}, head={"x": X}), ValueError,
     "check_gradients: head has 'x', which is no output; they are y"),
    (lambda: check_gradients(net(), {"x": X}, head={"y": 1.0}), ValueError,
     "check_gradients: the head of 'y' must have its shape, (2,), got ()"),
    (lambda: check_gradients(differentiated(), {"x": X}, "y"), ValueError,
     "check_gradients: net small has gradient operators, which have their outputs and heads; leave out outputs and "
     "head, or check a net without gradient operators"),
    (lambda: check_gradients(net("argmax"), {"x": X}), RuntimeError,
     "check_gradients: no output of net small depends on a floating input through operators that have gradients"),
    (lambda: check_gradients(net("log"), {"x": -X}), AssertionError,
     "check_gradients: the output 'y' is not finite at the inputs; choose them inside the domain of the net"),
    (lambda: check_gradients(counted(), {"x": X}), AssertionError,
     "check_gradients: the output 'y' has different values when the net runs again with the same inputs"),
    (lambda: check_gradients(net("stop_gradient"), {"x": X}, wrt=[]), RuntimeError,
     "check_gradients: no output of net small depends on a floating input through operators that have gradients"),
    (lambda: compare_nets(net(), {"x": X}, ["y"]), TypeError,
     "compare_nets: nets must be a list of two or more nets or functions, got <*>"),
    (lambda: compare_nets([net(), 3], {"x": X}, ["y"]), TypeError,
     "compare_nets: each of the nets must be a Net or a function, got 3"),
    (lambda: compare_nets([net(), net()], {"x": X}, []), TypeError,
     "compare_nets: outputs must be a list of names, or for each net a list of names, got []"),
    (lambda: compare_nets([net(), net()], {"x": X}, [["y"]]), ValueError,
     "compare_nets: outputs must be one list of names, or one for each of the 2 nets, got <*>"),
    (lambda: compare_nets([net(), net()], {"x": X}, [["y"], ["x", "y"]]), ValueError,
     "compare_nets: the lists of outputs must have the same length, got 1, 2"),
    (lambda: compare_nets([net(), net()], {}, ["y"]), ValueError,
     "compare_nets: the input 'x' of net small has no value; add it to the inputs"),
    (lambda: compare_nets([net(), net()], {"x": X}, ["y"], gradients_of=["w"]), ValueError,
     "compare_nets: gradients_of has 'w', which is no floating input; they are x"),
    (lambda: compare_nets([net(), differentiated()], {"x": X}, ["y"], gradients_of=["x"]), ValueError,
     "compare_nets: net small has gradient operators; list their blobs in outputs, and leave out gradients_of"),
    (lambda: compare_nets([net(), lambda x: 3], {"x": X}, ["y"]), TypeError,
     "compare_nets: the function <lambda> must return 1 tensors, as many as there are outputs, got <*>"),
    (lambda: compare_nets([lambda x: x, lambda x: x[:1]], {"x": X}, ["y"]), AssertionError,
     "compare_nets: the output 'y' of net 1 (<lambda>) differs from that of net 0 (<lambda>): its shape is (1,), not "
     "(2,)"),
    (lambda: compare_nets([lambda x: x, lambda x: x.astype("float32")], {"x": X}, ["y"]), AssertionError,
     "compare_nets: the output 'y' of net 1 (<lambda>) differs from that of net 0 (<lambda>): its dtype is float32, "
     "not float64"),
]
