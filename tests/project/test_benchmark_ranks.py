"""The benchmark of ranks. No test depends on time."""

import re

import pytest
from ranks import needs_mpi

from benchmarks import ranks

STEPS = {"took": {ranks.ALONE: 0.003, ranks.AFTER: 0.005, ranks.DURING: 0.004}, "forward": 0.001, "backward": 0.002,
         "update": 1e-4, "bytes": 4_000_000, "packs": 4}


def figures(alpha=1e-5, beta=1e-9):
    sums = {str(n): 2 * alpha + beta * n for n in (4, 4096, 1 << 20)}
    return {"1": {"sums": sums, "steps": STEPS}, "2": {"sums": sums, "steps": STEPS},
            "ends": {"exception": [0.5, 0.25, 4.0]}}


def test_the_fit():
    alpha, beta = ranks.fit(figures()["2"]["sums"])
    assert alpha == pytest.approx(1e-5) and beta == pytest.approx(1e-9)
    assert ranks.fit({"4": 1.0, "4096": 0.5})[1] == 0.0         # not below 0


def test_the_model():
    """One rank sends nothing; a sum during backward hides all but its last pack, if the sums are fast enough."""
    alone = 0.0031
    assert ranks.step(1, STEPS, 1e-5, 1e-9) == pytest.approx((alone, alone))
    after, during = ranks.step(2, STEPS, 0.0, 1e-10)
    assert after == pytest.approx(alone + 4e-4) and during == pytest.approx(alone + 1e-4)
    after, during = ranks.step(2, STEPS, 0.0, 1e-8)             # slow sums: they end long after backward
    assert after == pytest.approx(alone + 0.04) and during == pytest.approx(alone + 0.04 - 0.002 * 3 / 4)
    assert ranks.ring(4, 8.0, 1.0, 0.5) == 6 * (1 + 1)


def test_the_page(monkeypatch, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(ranks, "measure", lambda spec: (figures(), 0.0))
    monkeypatch.setattr(ranks.machine, "cpu_name", lambda: "a CPU")
    ranks.main(["--output", str(tmp_path)])
    text = (tmp_path / "ranks.md").read_text()
    assert text in capsys.readouterr().out and text.startswith("# Ranks\n\nMeasured on a CPU, ")
    assert "| 1,048,576 bytes | 1,068.6 us | 981.3 MB/s | 1,068.6 us |" in text
    assert "alpha = 10.0 us and 1 / beta = 1,000 MB/s" in text and "| sums during backward | 4,000.0 us |" in text
    assert [int(n) for n in re.findall(r"^\| (\d+) \|", text, re.MULTILINE)] == [*ranks.RANKS]
    assert "to the end of the job: exception 0.50 s (0.25 .. 4.00)." in text
    assert "More than two ranks are not measured" in text and "Other programs" not in text
    assert "Other programs used 1.5 CPUs meanwhile" in ranks.tables(figures(), 1.5)
    assert (tmp_path / "ranks.svg").read_text().count("<svg") == 1


@needs_mpi
def test_failing_ranks_are_timed():
    assert all(ranks.failed(how) >= 0 for how in ranks.ENDS)


@needs_mpi
def test_two_ranks_are_measured():
    spec = {"bytes": [4, 4096], "rounds": 1, "calls": 2, "hidden": 8, "batch": 4, "pack": 4000}
    found = ranks.ask(2, spec)
    assert [*found["sums"]] == ["4", "4096"] and min(found["sums"].values()) > 0
    assert min(found["steps"]["took"].values()) > 0 and found["steps"]["bytes"] == 4 * (785 * 8 + 9 * 8 + 9 * 10)
    assert found["steps"]["packs"] == 2
    with pytest.raises(RuntimeError, match="(?s)2 ranks ended with .*KeyError"): ranks.ask(2, {})
