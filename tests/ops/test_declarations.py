"""What operators declare (core/graph/operator.pyx): rows, operands, results and views agree with what they do."""

import ast
from collections import Counter
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import cygrad as cg
from cygrad.core.execute.program import Program
from cygrad.ops import ROWS
from cygrad.ops.elementwise.base import Elementwise
from cygrad.ops.calls import arguments_of, fits, operands
from rows import every_case, in_dtype, tensors

PACKAGE = Path(cg.__file__).parent
OPERATORS = [o for path in dict.fromkeys(row.path for row in ROWS.values())
             for o in {id(o): o for o in import_module(f"cygrad.ops.{path}").OPERATORS.values()}.values()]


def rows_of(operator):
    return [operator.row, *operator.functions]


def test_each_row_is_declared_by_one_operator():
    """Of searchsorted there are two, one for each side."""
    count = Counter(name for o in OPERATORS for name in rows_of(o))
    assert set(count) == set(ROWS)
    assert {name for name, n in count.items() if n > 1} == {"searchsorted"}
    for o in OPERATORS:
        assert all(type(ROWS[name].operator) is type(o) for name in rows_of(o))


def test_operands_without_gradient_are_operands():
    for o in OPERATORS:
        names = {name.strip("?*[]") for row in rows_of(o) for name in operands(row)}
        assert {*o.no_gradient.split()} <= names, o
        assert not o.no_gradient or o.differentiable


def test_flags_of_views():
    for o in OPERATORS:
        if o.alias or o.in_order or o.may_copy: assert o.views or o is ROWS["reshape"].operator, o
        if o.alias: assert o.in_order and not o.may_copy
        if o.selects: assert not o.differentiable and o.functions


def test_traits_are_flags():
    for o in OPERATORS:
        for trait in o.traits.split(): assert getattr(o, trait) is True, (o, trait)


def declared_reads(o, name):
    """What the class says that the gradient of an operand reads: by `reads`, or by the text of the rule."""
    if o.reads: return (o.reads if isinstance(o.reads, str) else o.reads.get(name, "")).split()
    text = getattr(type(o), f"d{name}", "").split()
    return [word for word in text[1:] if word not in ("g", "p")]


def test_results_that_may_change_are_read():
    """By the gradient of an operand that could do without."""
    found = {o.row for o in OPERATORS if o.result_may_change}
    reading = {o.row for o in OPERATORS for name in o.operands.split() if "out" in declared_reads(o, name)}
    assert found == {"div", "softplus", "leaky_relu", "elu", "selu", "celu", "softsign", "logsigmoid"} <= reading


@pytest.mark.parametrize("o", [o for o in OPERATORS if o.reads or isinstance(o, Elementwise)], ids=lambda o: o.row)
def test_what_is_kept_follows_from_what_gradients_read(o):
    """With all operands, and without those that may be missing. Of where the shapes decide, of pow the number."""
    results = {name: k for k, name in enumerate(f"{o.outputs} {o.hidden}".split())} | {"out": 0, "code": 1}
    words, arguments = o.operands.split(), {"p": 3}
    for given in (words, [word for word in words if word[-1] != "?"]):
        names = [word.strip("?*") for word in given]
        for i, name in enumerate(names):
            reads = set(declared_reads(o, name))
            if o.row == "where": reads = {"condition"}
            inputs, outputs = o.kept(tuple(names), arguments, [i])
            assert inputs == [k for k, other in enumerate(names) if other in reads]
            assert outputs == sorted({results[word] for word in reads - {word.strip("?*") for word in words}})


@every_case
def test_inputs_and_results_of_each_execution(row, args, kwargs):
    calls = []
    with np.errstate(all="ignore"):
        try: Program(lambda: (row.tested(*tensors(in_dtype(args, "float64")), **kwargs), None)[1], _calls=calls)
        except RuntimeError as e: assert "whose shape depends on values" in str(e) or "where a mask is true" in str(e)
    for kind, *call in calls:
        if kind != "operator": continue
        op, attributes, inputs, outputs = call[:4]
        type_, _ = arguments_of(op, attributes, len(inputs))
        assert type_ in rows_of(op) and fits(operands(type_), len(inputs))
        assert len(outputs) == len(op.outputs.split()), op


OF_NETS = [path for path in sorted((PACKAGE / "nets").glob("*.py")) if path.name != "onnx_export.py"]


@pytest.mark.parametrize("path", [*OF_NETS, PACKAGE / "ops/calls.py"], ids=lambda p: p.name)
def test_nets_know_no_operator_by_its_name(path):
    """What they need of an operator, it declares. "sum" and "mean" also say how repeated rows are merged. The table of
    onnx_export.py is about ONNX's operators: it says by which of them ours are computed."""
    text = [n.value for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.Constant)]
    assert not [s for s in text if isinstance(s, str) and s in ROWS and s not in ("sum", "mean")]
