"""The wording of every error: what was expected, what was passed and what to do. The cases are in wordings/.

`test_every_raise_is_tested` reads the raise statements of all files, so an error without a case there fails."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from wordings import CASES

import cygrad as cg

# Errors that no caller can cause: a machine without memory (or with very much), a mistake inside cygrad.
UNREACHABLE = [
    "this memory.profile.. is incomplete: there was no memory left for its events",
    "no memory for .*",
    ".* reads memory in backward that it did not declare.*",
    ".* has no (infer|forward|run_backward|gradient_view|gradient|factor|step_rows|refuse)",
    "a subclass of View must implement .*",
    ".* reads a value in (backward|its formula) that it did not save",
    "the formula of .* gave .*",
    ".* does not write in place",
    "Net.from_graph: .* cannot be an operator of a net: .*",       # (every operator that is recorded has a row)
    ".*: input 0 is .* but input .* is .*; the shapes must be equal",
    "capture: the gradient of .* cannot be captured, because the operators do not show how the heads depend on it",
    "the table of (kernels|losses) is full.*",
    "there is no kernel named .*",
    ".* has the inputs .*, got .*",
    "this tensor is read-only.*",         # Python's own readers have other messages
]
# Tested in separate processes: test_threads_in_the_environment, test_cpu.py, test_packaging.py, test_own_products.py.
# What needs a write of NumPy or of another thread at one moment: test_torn_reads.py.
ELSEWHERE = ["run: this program is running already; .*", "CYGRAD_NUM_THREADS is .*", "CYGRAD_LEVEL is .*",
             "CYGRAD_BLAS is .*",
             "profile.plot needs matplotlib, .*",
             ".* needs .* for its tensors, which the system cannot provide; .*", ".*: no address space to map its .*",
             "there is already a kernel named .*; .*",
             "attach_grad: .* variables share the memory of .*", "the C stack is exhausted: .*",     # test_run, _depth
             ".* at .* saved a tensor of shape .* for backward, and its memory has been written since, .*",
             ".*another thread modified .*; pass a copy..",
             ".*: the length .* it was modified since forward; pass a copy.."]


@pytest.mark.parametrize("f, error, wording", CASES, ids=[wording[:50] for _, _, wording in CASES])
def test_wording(f, error, wording):
    pattern = "^" + ".*".join(map(re.escape, wording.split("<*>"))) + "$"
    with pytest.raises(error) as caught:
        f()
    assert re.search(pattern, str(caught.value)), str(caught.value)     # (match= would search its notes too)
    assert type(caught.value) is error
    del caught


def test_threads_in_the_environment():
    for asked in ("0", "two", "-1", "²"):
        run = subprocess.run([sys.executable, "-c", "import cygrad"], env={**os.environ, "CYGRAD_NUM_THREADS": asked},
                             capture_output=True, text=True)
        assert f"ValueError: CYGRAD_NUM_THREADS is '{asked}'; it must be an integer of at least 1" in run.stderr


def raised(path):
    """(line, pattern) of each raise statement with a message: its literal text, with .* for inserted values."""
    source = path.read_text()
    for found in re.finditer(r"\braise [A-Za-z_.]+(\(\w+\))?\(", source):
        depth, end = 1, found.end()
        while depth:
            depth += {"(": 1, ")": -1}.get(source[end], 0)
            end += 1
        literals = re.findall(r'f?"((?:[^"\\]|\\.)*)"', source[found.end():end])
        text = "".join(literals).replace('\\"', '"')
        pieces = re.split(r"\{[^{}]*\}", text)
        if text:
            yield source.count("\n", 0, found.start()) + 1, ".*".join(map(re.escape, pieces))


def test_every_raise_is_tested():
    package = Path(cg.__file__).parent
    known = [wording.replace("<*>", "x") for _, _, wording in CASES]
    missing = []
    for path in sorted([*package.rglob("*.py"), *package.rglob("*.pyx")]):
        if path.relative_to(package).parts[0] in ("demo", "__main__.py"):
            continue                                # errors of a command line: test_demo.py runs the commands
        for line, pattern in raised(path):
            said = pattern.replace("\\", "").replace(".*", "x")
            if any(re.fullmatch(pattern, k, re.DOTALL) for k in known):
                continue
            if any(re.fullmatch(p, said) for p in UNREACHABLE + ELSEWHERE):
                continue
            missing.append(f"{path.relative_to(package)}:{line}: {said}")
    assert not missing, "no test has the wording of\n" + "\n".join(missing)
