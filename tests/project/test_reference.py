"""The reference: every public name has its signature, its parameters with types and words, its exceptions, its formula
and an example. Parameters without words are counted, by package, and the counts must be exact: they can only fall."""

import importlib
import re
import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# Classes that users do not create: most exceptions, and the bases that refuse to be called.
NOT_CREATED = {
    "cygrad.GraphFreedError", "cygrad.InplaceError", "cygrad.PrecisionWarning", "cygrad.linalg.LinAlgError",
    "cygrad.Tensor", "cygrad.autograd.Function",
}

# Parameters that the docstring of their function does not name, nor that of the function to which it refers.
UNNAMED = {
    "cygrad": 141, "cygrad.array_api": 35, "cygrad.autograd": 7, "cygrad.comm": 11, "cygrad.estimators": 10,
    "cygrad.io": 1, "cygrad.linalg": 4, "cygrad.memory": 2, "cygrad.nets": 18, "cygrad.nn": 271, "cygrad.optim": 32,
    "cygrad.random": 59, "cygrad.trainers": 22,
}


@pytest.fixture(scope="module")
def tools():
    """The modules of tools/ that read the package."""
    sys.path.insert(0, str(ROOT / "tools"))
    try: yield {name: importlib.import_module(name) for name in ("reference", "surface", "formulas")}
    finally: sys.path.remove(str(ROOT / "tools"))


@pytest.fixture(scope="module")
def entries(tools):
    """Every public name that is not another name of an entry."""
    known = tools["reference"].reference()
    return {name: entry for name, entry in known.entries.items() if name not in known.same}


def by_package(names):
    return dict(sorted(Counter(".".join(name.split(".")[:2]) if name.count(".") > 1 and name.split(".")[1].islower()
                               else "cygrad" for name in names).items()))


def test_every_name_has_its_signature(entries, tools):
    """A layer without a constructor of its own has that of its base. Of a name of another library there is no entry."""
    bare = {name for name, e in entries.items() if e.arguments is None and e.kind not in ("data", "property")}
    assert len(entries) > 1100 and bare == NOT_CREATED
    assert entries["cygrad.nn.ReLU"].signature == "()" and "cygrad.nn.Module.to" not in entries
    assert len(entries["cygrad.nn.MaxPool2d"].arguments) > 3
    assert entries["cygrad.Tensor.backward"].signature == (
        "(gradient=None, retain_graph=None, *, create_graph=False, inputs=None, train_mode=None)")


def test_every_parameter_and_result_has_its_type(entries):
    for name, e in entries.items():
        missing = [p.name for p in e.arguments or () if p.name not in e.types]
        assert not missing, f"{name}: {missing}"
        if e.kind in ("function", "method", "property"): assert e.types.get("return"), name
    assert entries["cygrad.exp"].types == {"x": "Tensor | ArrayLike", "return": "Tensor"}
    assert entries["cygrad.nn.AvgPool1d"].types["stride"] == "int | Sequence[int] | None"
    assert entries["cygrad.autograd.grad"].types["return"].startswith("Tensor | tuple[Tensor, ...] | None")


def test_parameters_without_words_are_counted(entries, tools):
    known = tools["reference"].reference()
    unnamed = [name for name, e in entries.items() for p in e.arguments or ()
               if not known.described(e, p.name) and not re.search(rf"\b{p.name}\b", e.words)]
    assert by_package(unnamed) == UNNAMED


def test_every_name_has_an_example(entries, tools):
    known = tools["reference"].reference()
    assert {*known.examples} <= {*known.entries}, "examples of names that are not public"
    assert not [name for name, e in entries.items()
                if name not in known.examples and not e.words.startswith("The same as ")]


def test_every_exception_of_a_docstring_is_in_its_section(entries):
    told = 0
    for name, e in entries.items():
        text = " ".join(" ".join(e.parts["text"]).split())
        assert not re.search(r"[.;] Raises \w+Error", text), name
        told += len(e.parts["raises"])
        for exception, when in e.parts["raises"]: assert when, f"{name}: {exception}"
    assert told > 380
    assert entries["cygrad.log_softmax"].parts["raises"] == [["IndexError", "if the axis is out of range"]]
    assert [kind for kind, _ in entries["cygrad.GradientSlice"].parts["raises"]] == [
        "TypeError", "ValueError", "IndexError"]


def test_no_word_of_a_docstring_is_lost(entries, tools):
    """Except in formulas, and "Raises" and its conjunctions."""
    known, columns = tools["reference"].reference(), tools["reference"].COLUMNS
    modules = [tools["reference"].Entry(module.__name__, module) for module, _ in known.pages.values()]
    for entry in [*modules, *(e for e in entries.values() if e.kind != "data")]:
        prose = " ".join(block for block in entry.words.split("\n\n") if not columns.search(block))
        said, shown = (set(re.findall("[a-z0-9]{2,}", text.lower()))
                       for text in (prose, "\n".join(known.lines(entry)).replace("\\", "")))
        assert said - shown <= {"raises", "returns", "it", "they", "and", "or"}, entry.full


def test_sentences_stand_where_they_belong(entries, tools):
    known = tools["reference"].reference()
    parts = entries["cygrad.func.vmap"].parts
    assert {*parts["parameters"]} == {"in_axes", "out_axes"} and "in the same way" in parts["parameters"]["out_axes"]
    assert "Klambauer" in " ".join(entries["cygrad.nn.AlphaDropout"].parts["text"])
    assert entries["cygrad.elu"].parts["source"] == ["Clevert and others, https://arxiv.org/abs/1511.07289"]
    assert known.described(entries["cygrad.nn.AvgPool1d"], "ceil_mode").startswith("With `ceil_mode`")
    lines = "\n".join(known.lines(entries["cygrad.log_softmax"]))
    for part in (":param axis:", ":rtype:", ":raises:", ".. rubric:: Notes", ".. math::", "op-log-softmax"):
        assert part in lines, part


def test_layers_show_the_formula_of_their_operator(entries):
    rows = {name: e.formula_row.name for name, e in entries.items() if name.startswith("cygrad.nn.") and e.formula_row}
    assert len(rows) == 75
    for layer, row in (("AvgPool1d", "avg_pool1d"), ("BatchNorm3d", "batch_norm"), ("LeakyReLU", "leaky_relu"),
                       ("MSELoss", "mse"), ("Upsample", "interpolate"), ("GRUCell", "gru")):
        assert rows[f"cygrad.nn.{layer}"] == row
