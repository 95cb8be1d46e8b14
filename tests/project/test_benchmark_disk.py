"""benchmarks/disk.py: its table, on a small perceptron."""

import pytest

pytest.importorskip("torch")

from benchmarks import disk


def test_the_table(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(disk, "LAYERS", 8)
    monkeypatch.setattr(disk, "WIDTH", 32)
    monkeypatch.setattr(disk, "BATCH", 1024)
    monkeypatch.setattr(disk, "SHARES", (0.5,))
    monkeypatch.setattr(disk, "ROUNDS", 1)
    monkeypatch.setattr(disk.work, "set_threads", lambda *_: None)
    monkeypatch.setattr(disk, "disk_speed", lambda _: (1e9, 1e9))
    disk.main(["--output", str(tmp_path), "--folder", str(tmp_path)])
    text = (tmp_path / "disk.md").read_text()
    assert text in capsys.readouterr().out
    peaks = {name: float(share) for name, _, share, *_ in (row[2:-2].split(" | ") for row in text.splitlines()
                                                           if row.startswith(("| cygrad", "| PyTorch")))}
    assert peaks["cygrad, budget of 50%, folder"] <= 0.5
    assert set(peaks) >= {"cygrad", "PyTorch", "PyTorch, hooks that write files", "cygrad, budget of 50%"}
