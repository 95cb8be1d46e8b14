"""The programs of examples/ as notebooks run from the first cell to the last. Run with the extras docs and test:
`make docs-test`."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

nbclient = pytest.importorskip("nbclient")

import make_notebooks  # noqa: E402

SHORT = {"digits_cnn": ["--epochs", "1"], "fixed_point": ["--epochs", "1"], "vae": ["--epochs", "1"],
         "physics_informed": ["--steps", "10"], "gaussian_process": ["--steps", "10"], "pendulum": ["--steps", "2"],
         "tiny_gpt": ["--steps", "10"], "tabular": [], "character_lstm": ["--quick"],
         "character_transformer": ["--quick"]}

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("path", make_notebooks.programs(), ids=lambda path: path.stem)
def test_a_notebook_runs(path, tmp_path):
    book = make_notebooks.run(make_notebooks.notebook(path, tmp_path, *SHORT[path.stem]), tmp_path)
    kinds = [cell.cell_type for cell in book.cells]
    assert kinds[0] == "markdown" and book.cells[0].source.startswith("# ") and kinds.count("code") > 6
    assert "image/png" in book.cells[-1].outputs[-1]["data"] and (tmp_path / "out" / "picture.png").exists()
    printed = "".join(out.get("text", "") for cell in book.cells if cell.cell_type == "code" for out in cell.outputs)
    assert "written to out: " in printed


def test_a_cell_that_fails_is_an_error(tmp_path):
    book = make_notebooks.notebook(ROOT / "examples" / "digits_cnn.py", tmp_path, "--epochs", "1")
    book.cells[2].source += "\nnothing_of_that_name"
    with pytest.raises(nbclient.exceptions.CellExecutionError, match="nothing_of_that_name"):
        make_notebooks.run(book, tmp_path)
