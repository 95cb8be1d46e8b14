"""tools/formulas.py: formulas of docstrings in LaTeX."""

import importlib.util
import inspect
import re
from pathlib import Path

import pytest

import cygrad as cg

ROOT = Path(__file__).resolve().parents[2]

# Operators whose formula is not typeset: words in it stand beside symbols.
AS_CODE = set("""
    bitwise_and bitwise_not bitwise_or bitwise_xor cofactor ctc_loss det erf expm huber_loss slogdet smooth_l1_loss
    solve_triangular spectral_gaps""".split())


@pytest.fixture(scope="module")
def formulas():
    spec = importlib.util.spec_from_file_location("formulas", ROOT / "tools" / "formulas.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_formulas_of_operators_are_typeset(formulas):
    latex = formulas.latex
    known = {row.name: inspect.getdoc(type(row.operator)).partition("\n\n")[0] for row in cg.ops.TABLE}
    assert {name for name, formula in known.items() if latex(formula) is None} == AS_CODE
    translator = pytest.importorskip("math_core").LatexToMathML(fancy_error=False)
    parts = {part for formula in known.values() for part in (formula, *re.split(r" {8}|\n", formula))}
    for part in parts:
        if tex := latex(part): assert "<math" in translator.convert_with_local_state(tex, displaystyle=True)


@pytest.mark.parametrize(("text", "tex"), [
    ("y = x^2", "y = {x}^{2}"),
    ("y = a / b c / d", r"y = \frac{a}{b} \, \frac{c}{d}"),
    ("y = a / b / c", r"y = \frac{\frac{a}{b}}{c}"),
    ("y = f(x)", "y = f(x)"),
    ("y = f (x + 1)", r"y = f \, (x + 1)"),
    ("y = e^-x", "y = {e}^{-x}"),
    ("y = |x - |z||", r"y = \lvert x - \lvert z \rvert \rvert"),
    ("y = log |det x|", r"y = \log \lvert \det x \rvert"),
    ("y = x where x > 0, else p x, p a number", r"y = \begin{cases} x & \text{if } x > 0 \\ p \, x & \text{otherwise} "
                                                r"\end{cases}, \quad \text{p a number}"),
    ("w -= lr g + v", r"w \leftarrow w - (\mathrm{lr} \, g + v)"),
    ("y_k = y_k-1        dx = -g", r"\begin{aligned} y_{k} & = y_{k-1} \\ \mathrm{d}x & = -g \end{aligned}"),
    ("y = beta1 v_max", r"y = \beta_{1} \, v_{\mathrm{max}}"),
    ("y = the largest integer <= x", r"y = \;\text{the largest integer <= x}"),
    ("y = mean of -x z", r"y = \mathrm{mean}(-x \, z)"),
    ("y = (x / 2) z", r"y = \left( \frac{x}{2} \right) \, z"),
    ("dx, .., dz = parts", r"\mathrm{d}x, \ldots, \mathrm{d}z = \mathrm{parts}"),
    ("y = u + v, u = x^2", r"\begin{aligned} y & = u + v \\ u & = {x}^{2} \end{aligned}"),
    ("y = 2 x at [i, j], 0 for i = j        dx = g", r"\begin{aligned} y & = 2 \, x \text{ } \text{at [i, j]}, \quad "
                                                     r"0 \text{ } \text{for i = j} \\ \mathrm{d}x & = g \end{aligned}"),
    ("weight   (rows, columns), ones", None),
    ("solver = Adam(lr=0.1)      # PyTorch's", None),
])
def test_a_formula_in_latex(text, tex, formulas):
    assert formulas.latex(text) == tex
