"""Other libraries compute with tensors. docs/array-api.md lists what works."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MODULES = {"scikit-learn": "sklearn", "scipy": "scipy", "array-api-compat": "array_api_compat",
           "array-api-extra": "array_api_extra", "einops": "einops", "opt_einsum": "opt_einsum"}


def listed():
    """Library -> the names in its row of the table."""
    rows = re.findall(r"^\| ([\w-]+) \| (`.*) \|$", (ROOT / "docs" / "array-api.md").read_text(), re.MULTILINE)
    return {library: re.findall(r"`([\w.]+)`", names) for library, names in rows}


@pytest.mark.parametrize("library", MODULES)
def test_what_the_page_lists_works(library):
    """Each function gives tensors with the values that it gives for arrays."""
    pytest.importorskip(MODULES[library])
    done = subprocess.run([sys.executable, ROOT / "tests" / "support" / "consumers.py", library], cwd=ROOT,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout)
    assert {name: said for name, said in found.items() if said} == {}
    assert listed()[library] == list(found)


def test_the_table_has_every_library():
    assert sorted(listed()) == sorted(MODULES) and sum(map(len, listed().values())) > 100
