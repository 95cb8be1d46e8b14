"""The wording of errors: nets, their files and their drawings."""

import copy
import json
import tempfile
from pathlib import Path
from unittest import mock

import numpy as np
from crafted import safetensors

import cygrad as cg
from cygrad.graph import GradientSlice, Net, Operator
from cygrad.nets.files import decode, distinct, unknown

AGAIN = "; the file is damaged, or was made to look like what it is not; get it again from its source"
NAME = "must have from 1 to 1,000 characters, no control characters and no space at its ends"


def net():
    """x -> relu -> h, (h, 0.5) -> mul -> y"""
    made = Net("small")
    made.mul([made.relu("x", "h"), 0.5], "y")
    return made


def put(target, name, value):
    return lambda: setattr(target(), name, value)


def changed(attribute, value, call):
    """A function that sets an attribute of a net and then calls a method of it."""
    def f():
        made = net()
        setattr(made, attribute, value)
        call(made)
    return f


def made_with(type, inputs, outputs, **named):
    """net() with one more operator."""
    made = net()
    made.add_operator(type, inputs, outputs, **named)
    return made


def differentiated():
    made = net()
    made.add_gradient_operators(["y"])
    made.unlink("h")


def path(name="n.safetensors"):
    return str(Path(tempfile.mkdtemp(), name))


def arguments(**named):
    return lambda: net().add_operator("f", "x", **named)


BUILDING = [
    (lambda: Net(3), TypeError, "Net: the name must be a str, got 3"),
    (lambda: Net(""), ValueError, f"Net: the name {NAME}, got ''"),
    (lambda: Net(" x" * 200), ValueError, f"Net: the name {NAME}, got ' x<*> ..."),
    (lambda: net().add_operator(5, "x"), TypeError, "Net.add_operator: the type must be a str, got 5"),
    (lambda: net().mul(["x", "y", "z"]), ValueError,
     "Net.mul: mul takes the inputs x, y; got 3 inputs: x, y, z; pass those that it takes in one list, and its other "
     "arguments by keyword"),
    (lambda: net().add_operator("linear", "x"), ValueError,
     "Net.add_operator: linear takes the inputs x, w, b (optional); got 1 input: x; pass those that it takes in one "
     "list, and its other arguments by keyword"),
    (lambda: net().mul(["x", None]), ValueError,
     "Net.mul: mul takes the inputs x, y; got None for y; pass a blob or a number"),
    (lambda: net().sum("x", axes=1), TypeError,
     "Net.sum: sum has no argument 'axes'; its arguments are axis, keepdims"),
    (lambda: net().clip("x", min=0.0), TypeError,
     "Net.clip: clip has no argument 'min'; it is an input, so pass it in the list of inputs: x, min, max"),
    (lambda: net().topk("x"), TypeError, "Net.topk: topk: the argument 'k' is missing; pass it by keyword"),
    (lambda: net().add_operator("a\nb"), ValueError, f"Net.add_operator: the type {NAME}, got 'a\\nb'"),
    (lambda: net().relu({"x": 1}), TypeError,
     "Net.relu: the inputs must be a name, a number, None or a list of them, got a value of type dict"),
    (lambda: net().add(["x", np.ones(2)]), TypeError,
     "Net.add: each input must be the name of a blob, a Python number or None, got a float64 array of shape (2,); name "
     "an array or tensor with add_constant(value)"),
    (lambda: net().relu("x "), ValueError, f"Net.relu: each input that is a str {NAME}, got 'x '"),
    (lambda: net().add(["x", 1 << 64]), ValueError,
     "Net.add: each input that is an int must fit int64 or uint64, got 18446744073709551616"),
    (lambda: net().relu("x", 2.0), TypeError,
     "Net.relu: the outputs must be a name, a list of names, a number of fresh names or None, got 2.0"),
    (lambda: net().relu("x", -1), ValueError, "Net.relu: the number of outputs must be from 0 to 10,000, got -1"),
    (lambda: net().relu("x", ["y", 3]), TypeError, "Net.relu: each of the outputs must be a str, got 3"),
    (lambda: net().relu("x", "constant"), ValueError,
     "Net.relu: 'constant' is a constant, which no operator can write; choose another output"),
    (lambda: net().add_operator("python", "x"), ValueError,
     "Net.add_operator: add an operator of type \"python\" with create_python_operator(f, inputs, outputs)"),
    (lambda: net().add_operator(net().operators[0], "x"), TypeError,
     "Net.add_operator: an Operator has its inputs, outputs and arguments; pass it alone, or change it with replace()"),
    (lambda: net().insert_operator("0", "relu", "x"), TypeError,
     "Net.insert_operator: the index must be an int, got '0'"),
    (lambda: net().insert_operator(3, "relu", "x"), ValueError,
     "Net.insert_operator: the index must be from 0 to 2, the number of operators, got 3"),
    (lambda: net().create_python_operator("f", "x"), TypeError,
     "Net.create_python_operator: f must be a function, got 'f'"),
    (lambda: net().create_python_operator(abs, "x", grad_f=3), TypeError,
     "Net.create_python_operator: grad_f must be a function or None, got 3"),
    (lambda: net().add_constant(1, "y"), ValueError,
     "Net.add_constant: 'y' is an output of an operator already; choose another name"),
    (lambda: net().add_constant(1, "constant"), ValueError,
     "Net.add_constant: 'constant' is a constant already; choose another name"),
    (lambda: net().add_constant(1 << 70), ValueError,
     "Net.add_constant: the value must fit int64 or uint64, got 118<*>"),
    (lambda: net().add_constant("text"), TypeError,
     "Net.add_constant: the value must be a number, an array or a tensor: <*>"),
    (lambda: net().linear("x", "w", "b"), TypeError,
     "Net.linear takes the inputs as one list: net.linear([\"x\", \"y\"], outputs), got 3 arguments"),
    (lambda: net().no_such_row, AttributeError,
     "Net has no attribute and the operator table has no row 'no_such_row'; add an operator of an unknown type with "
     "add_operator('no_such_row', inputs, outputs)"),
    (lambda: net().__array__, AttributeError, "Net has no attribute and the operator table has no row '__array__'"),
]

CHANGES = [
    (put(net, "training", 1), TypeError, "Net.training must be True, False or None, got 1"),
    (put(net, "outputs", ["y", "y"]), ValueError, "Net.outputs: each output must be named once, got ['y', 'y']"),
    (put(net, "outputs", ["z"]), ValueError,
     "Net.outputs: net small has no blob 'z'; it has x, h, constant, y"),
    (put(net, "outputs", 3), TypeError, "Net.outputs: the outputs must be a name or a list of names, got 3"),
    (lambda: Net().versions("z"), ValueError, "Net.versions: net net has no blob 'z'; it has none"),
    (lambda: net().readers(3), TypeError, "Net.readers: the name of a blob must be a str, got 3"),
    (lambda: net().writers("z"), ValueError, "Net.writers: net small has no blob 'z'; it has x, h, constant, y"),
    (lambda: net().rename("x", "y"), ValueError, "Net.rename: net small has a blob 'y' already; choose another name"),
    (lambda: net().rename("x", 3), TypeError, "Net.rename: the new name must be a str, got 3"),
    (lambda: net().remove_operator("relu"), TypeError,
     "Net.remove_operator takes an operator of net.operators, got 'relu'"),
    (lambda: net().remove_operator(Operator("exp", "x", "h")), ValueError,
     "Net.remove_operator: net small does not have the operator h = exp(x)"),
    (changed("outputs", "y", lambda n: n.remove_operator(n.operators[1])), ValueError,
     "Net.remove_operator: the output 'y' would no longer exist; insert another operator that writes it first, or "
     "assign net.outputs"),
    (lambda: net().unlink("x"), ValueError,
     "Net.unlink: no operator writes 'x' of net small; wanted a blob that one operator writes"),
    (lambda: made_with("relu", "y", "h").unlink("h"), ValueError,
     "Net.unlink: 2 operators write 'h' of net small; wanted a blob that one operator writes"),
    (lambda: made_with("split", "y", ["a", "b"], sections=2).unlink("a"), ValueError,
     "Net.unlink: the operator a, b = split(y, sections=2) has other outputs, so it cannot be removed; "
     "unlink or rewire a blob that is the only output"),
    (changed("outputs", "y", lambda n: n.unlink("y")), ValueError,
     "Net.unlink: 'y' is an assigned output, which would no longer exist; assign net.outputs first"),
    (lambda: net().rewire("h", on="z"), ValueError, "Net.rewire: net small has no blob 'z'; it has x, h, constant, y"),
    (lambda: net().rewire("h", on="y"), ValueError,
     "Net.rewire: 'y' is written by operator 1, after operator 1 reads 'h'; add the operators of 'y' first, with "
     "insert_operator()"),
    (lambda: net().rewire("y", on="x"), ValueError,
     "Net.rewire: no operator reads 'y'; wanted a blob that operators read"),
    (changed("outputs", ["h", "y"], lambda n: n.rewire("h", on="x")), ValueError,
     "Net.rewire: 'h' is an assigned output, which would no longer exist; assign net.outputs first"),
    (differentiated, RuntimeError,
     "Net.unlink: net small has the gradient operator <*>, which is for the connections as they are; change them "
     "before add_gradient_operators()"),
    (lambda: net().deduplicate("h"), TypeError,
     "Net.deduplicate takes a GradientSlice, got 'h'; a dense gradient has each row once"),
    (lambda: net().deduplicate(GradientSlice("x", "h"), "max"), ValueError,
     "Net.deduplicate: op must be \"sum\" or \"mean\", got 'max'"),
]


def deep(n):
    found = ()
    for _ in range(n): found = (found,)
    return found


OPERATORS = [
    (arguments(p=object()), TypeError,
     "Net.add_operator: the argument p must be None, a bool, an int, a float, a str, a slice, Ellipsis or a tuple of "
     "these, got a value of type object"),
    (lambda: net().relu("x", p=cg.ones(2)), TypeError,
     "Net.relu: the argument p must be <*>a float32 tensor of shape (2,)"),
    (arguments(p=[1, 1 << 65]), ValueError, "Net.add_operator: the argument p must fit int64 or uint64, got 3689<*>"),
    (arguments(p="\ud800"), ValueError, "Net.add_operator: the argument p must be valid Unicode, got '\\ud800'"),
    (arguments(p=deep(17)), ValueError,
     "Net.add_operator: the argument p must have at most 16 tuples inside each other, got more"),
    (arguments(p=slice("a", 2)), TypeError,
     "Net.add_operator: the argument p must be a slice of ints and None, got slice('a', 2, None)"),
    (arguments(**{"a b": 1}), ValueError,
     "Net.add_operator: the name of an argument must be an identifier, such as 'axis', got 'a b'"),
    (lambda: Operator("f", "x", "y", [1]), TypeError, "Operator f: the arguments must be a dict, got [1]"),
    (lambda: Operator("f", 3), TypeError, "Operator f: the inputs must be a name or a list of names, got 3"),
    (lambda: Operator("f", ["x", 3]), TypeError, "Operator f: each of the inputs must be a str, got 3"),
    (lambda: Operator("f", "x", None), TypeError,
     "Operator f: the outputs must be a name or a list of names, got None"),
    (lambda: Operator("f", "x", ["y", "y"]), ValueError,
     "Operator f: the outputs must have different names, got ['y', 'y']"),
    (lambda: Operator("f", "x", "y", None, 3), TypeError, "Operator f: its label must be a str, got 3"),
    (lambda: Operator("f", "x", "y", is_gradient=1), TypeError, "Operator f: is_gradient must be a bool, got 1"),
    (lambda: Operator("python", "x", "y"), ValueError,
     "Operator python: an operator of type \"python\", and no other, has a function; add it with "
     "net.create_python_operator(f, inputs, outputs)"),
    (lambda: Operator("python", "x", "y", function=abs), TypeError,
     "Operator python: function must be a tuple (f, grad_f) of functions, grad_f or None, got a value of type "
     "builtin_function_or_method"),
    (lambda: Operator("f", of=3), TypeError, "Operator f: of must be an Operator or None, got 3"),
    (put(lambda: Operator("f"), "inputs", ()), AttributeError,
     "an Operator cannot be changed; make another one with replace(inputs=...)"),
    (lambda: delattr(Operator("f"), "inputs"), AttributeError,
     "an Operator cannot be changed; make another one with replace()"),
]


# ---- files -----------------------------------------------------------------------------------------------------------

def python_net():
    made = net()
    made.create_python_operator(abs, "y")
    return made


def patched(target, value, call):
    def f():
        with mock.patch(target, value): call()
    return f


def saved():
    where = path()
    net().save(where)
    return where


SAVING = [
    (lambda: net().save(3), TypeError,
     "Net.save: the path of a file is required, such as 'net.safetensors'; got 3"),
    (lambda: net().save("n.npz"), ValueError,
     "Net.save: the path of a net must end with .cg or .safetensors, got 'n.npz'"),
    (lambda: Net.load("n"), ValueError, "Net.load: the path of a net must end with .cg or .safetensors, got 'n'"),
    (lambda: python_net().save(path()), ValueError,
     "Net.save: operator 2 (python) calls abs, and a file holds no functions; save a net without it"),
    (patched("cygrad.nets.files.MOST", 9, lambda: net().save(path())), ValueError,
     "Net.save: the definitions of a net take at most 16,000,000 characters and 9 values, got 3<*> and about <*>; save "
     "several nets"),
    (changed("shapes", {"x": 3}, lambda n: n.save(path())), ValueError,
     "Net.save: shapes must have (shape, name of the dtype) for each blob, got 3 for 'x'"),
    (changed("shapes", {"x": ((2,), "float16")}, lambda n: n.save(path())), ValueError,
     "Net.save: shapes must have (shape, name of the dtype) for each blob, got ((2,), 'float16') for 'x'"),
    (patched("cygrad.nets.files.saving.read", lambda *_: {"other": None}, lambda: Net.load(saved())), ValueError,
     "Net.load: <*> changed while it was read; load it when nothing writes it"),
    (lambda: decode(float("inf")), ValueError,
     "a number must be finite; others are written as {\"float\": \"inf\"}"),
    (lambda: decode(json.loads("[" * 17 + "]" * 17)), ValueError, "at most 16 lists can be inside each other"),
    (lambda: decode({"x": 1}), ValueError,
     "an object must be {\"float\": \"inf\"}, {\"slice\": [start, stop, step]} or {\"ellipsis\": true}, got one with "
     "the keys ['x']"),
    (lambda: distinct([("a", 1), ("a", 2)]), ValueError, "an object has the key 'a' twice"),
    (lambda: unknown("NaN"), ValueError, "NaN is not a number of JSON"),
]

DEFINITIONS = {
    "name": "small", "training": None, "inputs": ["x"], "outputs": None, "shapes": {}, "passes": [],
    "constants": [{"name": "constant", "value": 0.5}, {"name": "w"}],
    "operators": [
        {"type": "relu", "inputs": ["x"], "outputs": ["h"], "arguments": {}, "name": "", "is_gradient": False,
         "of": None},
        {"type": "mul", "inputs": ["h", "constant"], "outputs": ["y"], "arguments": {"p": 1}, "name": "",
         "is_gradient": False, "of": None},
    ],
}
W = {"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}


def loaded(text, tensors=W, **metadata):
    """A function that loads a file of these definitions, a dict or the text of it."""
    def f():
        where = Path(path())
        given = text if isinstance(text, str) else json.dumps(text)
        about = {"format": "cygrad.graph", "version": "1", "net": given, **metadata}
        where.write_bytes(safetensors({"__metadata__": about, **tensors}, b"\0" * 8 * len(tensors)))
        Net.load(where)
    return f


def fault(wording, *place, **changes):
    """A case: the definitions with other fields at a place, of which None is left out."""
    found = copy.deepcopy(DEFINITIONS)
    target = found
    for key in place: target = target[key]
    for key, value in changes.items():
        if value is ...: del target[key]
        else: target[key] = value
    return loaded(found), ValueError, f"Net.load: <*>{wording}{AGAIN}"


def relu(wording, **changes):
    return fault(f": operator 0 (relu): {wording}", "operators", 0, **changes)


def mul(wording, **changes):
    return fault(f": operator 1 (mul): {wording}", "operators", 1, **changes)


LOADING = [
    (loaded({}, format="pt"), ValueError,
     "Net.load: <*> is not a net: its metadata must have \"format\": 'cygrad.graph', got 'pt'; load tensors with "
     "cygrad.load"),
    (loaded({}, version="2"), ValueError,
     "Net.load: <*> has the version '2' of the format of nets; this version of cygrad reads '1'; load it with the "
     "version that wrote it"),
    (loaded({}, other=""), ValueError,
     f"Net.load: <*>: its metadata must have format, version and net, got <*>{AGAIN}"),
    (loaded("[" * 100_000), ValueError, f"Net.load: <*>: its definitions are not JSON: too deeply nested{AGAIN}"),
    (loaded("[NaN]"), ValueError, f"Net.load: <*>: its definitions are not JSON: NaN is not a number of JSON{AGAIN}"),
    (loaded("{\"a\": 1, \"a\": 2}"), ValueError,
     f"Net.load: <*>: its definitions are not JSON: an object has the key 'a' twice{AGAIN}"),
    (loaded("9" * 5000), ValueError, "Net.load: <*>: its definitions are not JSON: Exceeds <*>"),
    (loaded("," * 1_000_001), ValueError,
     f"Net.load: <*>: its definitions have 1,000,001 characters and about 1,000,001 values, more than 16,000,000 and "
     f"1,000,000{AGAIN}"),
    (loaded([]), ValueError, f"Net.load: <*>: the net must be an object, got []{AGAIN}"),
    fault(": the net has no field 'inputs'", inputs=...),
    fault(": the net has the unknown field 'more'", more=1),
    fault(f": name: a name {NAME}, got ' '", name=" "),
    fault(": name: a name must be a str, got 3", name=3),
    fault(": training must be true, false or null, got 1", training=1),
    fault(": inputs must be a list of names, got 'x'", inputs="x"),
    fault(": inputs must have different names", inputs=["x", "x"]),
    fault(": inputs must be the blobs that are read before they are written, in order, without the constants",
          inputs=["x", "z"]),
    fault(": outputs: no operator has 'z'", outputs=["z"]),
    fault(": outputs must have different names", outputs=["y", "y"]),
    fault(": constants must be a list, got 3", constants=3),
    (loaded({**DEFINITIONS, "constants": ["w"]}), ValueError,
     f"Net.load: <*>: constant 0: it must be an object, got 'w'{AGAIN}"),
    fault(": constant 0: it has the unknown field 'type'", "constants", 0, type="x"),
    fault(": constant 0: it has no field 'name'", "constants", 0, name=...),
    fault(": the constant 'w' is there twice", "constants", 0, name="w"),
    fault(": the constant 'constant' must be a number, got 'x'", "constants", 0, value="x"),
    (loaded(json.dumps(DEFINITIONS).replace("0.5", "1e999")), ValueError,
     f"Net.load: <*>: the constant 'constant': a number must be finite; others are written as {{\"float\": \"inf\"}}"
     f"{AGAIN}"),
    fault(": the tensors of the file must be the constants without a value, but 'v' is only one of the two",
          "constants", 1, name="v"),
    fault(": operators must be a list, got 'relu'", operators="relu"),
    fault(": operator 0: it must be an object, got 3", operators=[3]),
    fault(": operator 0 ('<b>'): it has no field 'inputs'", operators=[{"type": "<b>"}]),
    fault(": operator 0: type: a name must be a str, got None", "operators", 0, type=None),
    fault(": operator 0 (python): type \"python\" needs functions, which no file holds", "operators", 0, type="python"),
    relu("it has the unknown field 'code'", code="import os"),
    relu("inputs must be a list of names, got 'x'", inputs="x"),
    relu("inputs: a name must be a str, got 3", inputs=[3]),
    relu(f"outputs: a name {NAME}, got 'h\\n'", outputs=["h\n"]),
    relu("outputs: a name must be a str, got None", outputs=[None]),
    relu("outputs must have different names", outputs=["h", "h"]),
    relu("arguments must be an object, got []", arguments=[]),
    relu("arguments must have identifiers as keys, got '1'", arguments={"1": 1}),
    relu("arguments, p: an int must fit int64 or uint64, got 1180591620717411303424", arguments={"p": 1 << 70}),
    relu("arguments, p: an int of a slice must fit int64 or uint64, got 1180591620717411303424",
         arguments={"p": {"slice": [None, 1 << 70, None]}}),
    relu("arguments, p: an object must be <*>, got one with the keys ['eval']", arguments={"p": {"eval": "1"}}),
    relu("Operator relu: the argument p must be valid Unicode, got '\\ud800'", arguments={"p": "\ud800"}),
    relu("name must be a string, got 3", name=3),
    relu("is_gradient must be true or false, got 0", is_gradient=0),
    relu("outputs: 'constant' is a constant", outputs=["constant"]),
    relu("outputs: 'x' is an input of the net, which must be read before it is written", inputs=[], outputs=["x"]),
    mul("inputs: 'z' is not an input of the net, not a constant, and no operator before writes it", inputs=["h", "z"]),
    mul("inputs: 'y' is not an input of the net, not a constant, and no operator before writes it", inputs=["y"]),
    relu("of must be the number of an operator before it, or null, got 0", of=0),
    mul("of must be the number of an operator before it, or null, got True", of=True),
    fault(": passes must be a list, got 3", passes=3),
    fault(": pass 0: it must be an object, got 3", passes=[3]),
    fault(": pass 0: it has no field 'ys'", passes=[{"first": 2, "skip": 0, "own": True}]),
    fault(": pass 0: ys must be an object, got []",
          passes=[{"first": 2, "skip": 0, "ys": [], "frozen": [], "own": True}]),
    fault(": pass 0: first and skip must be numbers of operators, skip the lower one, got 2 and 3",
          passes=[{"first": 2, "skip": 3, "ys": {}, "frozen": [], "own": True}]),
    fault(": pass 0: its operators have no gradient: Net.load: there is no blob 'z'; the blobs are constant, h, w, x, "
          "y",
          passes=[{"first": 2, "skip": 0, "ys": {"z": None}, "frozen": [], "own": True}]),
    fault(": pass 0: own must be true or false, got 1",
          passes=[{"first": 2, "skip": 0, "ys": {}, "frozen": [], "own": 1}]),
    fault(": shapes must be an object, got []", shapes=[]),
    fault(": shapes: the net has no blob 'z'", shapes={"z": [[], "float32"]}),
    fault(": shapes: 'x' must have [shape, dtype], got [[2], 'float16']", shapes={"x": [[2], "float16"]}),
    fault(": shapes: 'x' must have [shape, dtype], got [[-1], 'int8']", shapes={"x": [[-1], "int8"]}),
]

DRAWING = [
    (lambda: net().draw("n.png"), ValueError,
     "Net.draw: the path must end with .svg or .dot, which is the format, got 'n.png'"),
    (lambda: net().draw(3), TypeError, "Net.draw: the path of a file is required, such as 'net.svg'; got 3"),
    (lambda: net().to_svg("n.dot"), ValueError,
     "Net.to_svg: the path must end with .svg, got 'n.dot'; draw(path) writes .dot too"),
]

CASES = BUILDING + CHANGES + OPERATORS + SAVING + LOADING + DRAWING
