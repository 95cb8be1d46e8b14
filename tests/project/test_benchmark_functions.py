"""The benchmark of transformations."""

import pytest

pytest.importorskip("torch")

from benchmarks import functions

pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit.script:DeprecationWarning")


@pytest.mark.parametrize("name", functions.CASES)
def test_both_compute_the_same(name):
    functions.check(*functions.CASES[name]())


def test_the_table(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(functions, "CASES", {"a Hessian": functions.hessian})
    monkeypatch.setattr(functions, "ROUNDS", 1)
    monkeypatch.setattr(functions, "SECONDS", 0.001)
    functions.main(["--output", str(tmp_path)])
    text = (tmp_path / "functions.md").read_text()
    assert text in capsys.readouterr().out
    rows = [line.split("|")[1].strip() for line in text.splitlines() if line.startswith("| ")]
    assert rows == ["", "a Hessian", "jvp", *functions.TANGENTS]
