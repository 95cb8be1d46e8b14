"""The wording of errors: nets as ONNX models."""

import sys
import tempfile
from pathlib import Path
from unittest import mock

import cygrad as cg
from cygrad.graph import Net
from cygrad.nets.onnx_export import RULES, Model, Unknown
from cygrad.nets.plan import inferred

FOLDER = Path(tempfile.mkdtemp())


def exported(path="n.onnx", types=("relu",), **modules):
    """A function that exports a net of these operators, one after the other."""
    def f():
        net, x = Net("small"), "x"
        for type in types: x = net.add_operator(type, x)
        net.shapes["x"] = (3, 3), "float32"
        if not modules: return net.to_onnx(FOLDER / path)
        with mock.patch.dict(sys.modules, modules): net.to_onnx(FOLDER / path)
    return f


def refused(type, inputs, outputs=1, training=None, **arguments):
    """A function that applies the rule of a type to an operator; `inputs` is a dict from blob to shape."""
    def f():
        net = Net("small")
        net.add_operator(type, [*inputs], outputs, **arguments)
        net.shapes.update({name: (shape, "float32") for name, shape in inputs.items()})
        net.training = training
        RULES[type](Model(net, inferred(net, None), None), net.operators[-1])
    return f


def again():
    net = Net("small")
    net.relu(net.relu("x", "y"), "y")
    net.shapes["x"] = (3, 3), "float32"
    net.to_onnx(FOLDER / "n.onnx")


def large():
    with mock.patch("cygrad.nets.onnx_export.MOST", 8):
        Net.capture(lambda x: x * cg.tensor([1.0, 2.0]), ((2,), "float32")).to_onnx(FOLDER / "n.onnx")


IMAGE, WEIGHT = {"x": (1, 2, 5, 5)}, {"x": (1, 2, 5, 5), "w": (3, 2, 3, 3)}
LAYER = {"x": (4, 2, 3), "w": (5, 3), "r": (5, 5), "b": (5,), "c": (5,), "h": (2, 5)}
END = "; write the function with other operators"

CASES = [
    (exported("n.cg"), ValueError, "Net.to_onnx: the path must end with .onnx, got '<*>n.cg'"),
    (exported(onnx=None), ImportError,
     "Net.to_onnx needs the package onnx; install it with pip install 'cygrad[onnx]'"),
    (exported(types=("relu", "lgamma", "digamma")), ValueError,
     "Net.to_onnx: ONNX has no counterpart of operator 1, lgamma = lgamma(relu); operator 2, digamma = digamma(lgamma)"
     + END),
    (again, ValueError,
     f"Net.to_onnx: ONNX has no counterpart of operator 1, y = relu(y) (it writes over a blob){END}"),
    (large, ValueError,
     "Net.to_onnx: the constants take 8 bytes, and a file of ONNX holds less than 8; save the net with Net.save"),
    (refused("argmax", {"x": (2, 3)}, keepdims=True), Unknown, "keepdims=True is for one axis in ONNX"),
    (refused("dropout", {"x": (2, 3)}, training=True, p=0.5), Unknown,
     "it draws random numbers; capture in predict mode"),
    (refused("softplus", {"x": (2,)}, beta=2.0), Unknown, "Softplus of ONNX has beta=1"),
    (refused("concat", {"x": (2,), "y": (3,)}, axis=None), Unknown,
     "axis=None flattens, which Concat of ONNX does not"),
    (refused("getitem", {"x": (2,)}, index=((0, 1),)), Unknown, "its index has an array"),
    (refused("conv2d", WEIGHT, padding="same"), Unknown, "padding='same' has no counterpart; give the numbers"),
    (refused("max_pool2d", IMAGE, kernel_size=2, ceil_mode=True), Unknown,
     "ceil_mode=True counts other windows in ONNX"),
    (refused("avg_pool2d", IMAGE, kernel_size=2, divisor_override=3), Unknown, "divisor_override has no counterpart"),
    (refused("adaptive_avg_pool2d", IMAGE, output_size=2), Unknown, "only output_size=1 has a counterpart"),
    (refused("layer_norm", {"x": (2, 3, 4)}, axes=(1, 2)), Unknown, "its axes have no counterpart"),
    (refused("attend_with_dropout", {"q": (1, 2, 3, 4), "k": (1, 2, 3, 4), "v": (1, 2, 3, 4)}, p=0.5, seed=1), Unknown,
     "its dropout draws random numbers"),
    (refused("attend", {"q": (1, 4, 3, 4), "k": (1, 2, 3, 4), "v": (1, 2, 3, 4)}), Unknown,
     "its queries and keys differ in their first sizes"),
    (refused("rnn_layer", LAYER, 2), Unknown, "its weights are no constants"),
]
