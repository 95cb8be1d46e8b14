"""The instruction levels of the kernels: all give the same results."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from rows import CASES, DTYPES, ELEMENTWISE, gradients, in_dtype

import cygrad as cg
from cygrad.kernels import cpu

TESTS = Path(__file__).parents[1]
POSSIBLE = cpu.LEVELS[:cpu.LEVELS.index(cpu.best_level()) + 1]
BUILT = [level for level in POSSIBLE if importlib.util.find_spec(f"cygrad.kernels._{level}")]
SIZE = 1000                                         # more than a strip, and not a multiple of a vector


def longer(row, args):
    """The same case with more elements, if the operator is elementwise: whole vectors, and a remainder."""
    shapes = {a.shape for a in args if isinstance(a, np.ndarray)}
    if row.family not in ELEMENTWISE or len(shapes) > 1 or 0 in max(shapes): return args
    return [np.resize(a, SIZE) if isinstance(a, np.ndarray) else a for a in args]


def everything():
    """Values and gradients of every row, as a list of (name, array)."""
    found = []
    for dtype in DTYPES:
        for case in CASES:
            row, args, kwargs = case.values
            args = in_dtype(longer(row, args), dtype)
            if row.operator.differentiable:
                value, grads = gradients(row, args, kwargs)
                found += [(f"{case.id}, {dtype}, gradient {i}", g) for i, g in enumerate(grads) if g is not None]
            else:
                value = row.tested(*[cg.tensor(a) if isinstance(a, np.ndarray) else a for a in args], **kwargs).numpy()
            found.append((f"{case.id}, {dtype}", value))
    return found


def run(code, **environment):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120,
                          cwd=TESTS.parent, env=os.environ | environment | {"PYTHONPATH": str(TESTS / "support")})


@pytest.mark.parametrize("level", BUILT)
def test_levels_agree(level, tmp_path):
    code = f"""
import numpy as np
from tests.kernels import test_cpu
from cygrad.kernels import driver
assert driver.level() == {level!r}, driver.level()
np.savez({str(tmp_path / "found.npz")!r}, *[a for _, a in test_cpu.everything()])
"""
    result = run(code, CYGRAD_LEVEL=level)
    assert result.returncode == 0, result.stderr
    theirs = np.load(tmp_path / "found.npz")
    ours = everything()
    assert len(ours) == len(theirs.files) > 1000
    for k, (name, a) in enumerate(ours):
        b = theirs[f"arr_{k}"]
        if a.dtype.kind == "f":
            scale = max(1.0, float(np.abs(a[np.isfinite(a)]).max(initial=0)))
            rtol, atol = (4e-6, 2e-6) if a.dtype == np.float32 else (1e-13, 1e-13)
            np.testing.assert_allclose(b, a, rtol=rtol, atol=atol * scale, err_msg=name)
        else:
            np.testing.assert_array_equal(b, a, err_msg=name)


def test_the_best_level_is_taken():
    result = run("from cygrad.kernels import driver; print(driver.level())", CYGRAD_LEVEL="")
    assert result.stdout.strip() == BUILT[-1]


@pytest.mark.parametrize("asked", ["avx1024", "1", "AVX2"])
def test_wording_of_a_level_that_is_none(asked):
    said = run("import cygrad", CYGRAD_LEVEL=asked).stderr
    assert f"ValueError: CYGRAD_LEVEL is {asked!r}; this machine supports {', '.join(POSSIBLE)}" in said
