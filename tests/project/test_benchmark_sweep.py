"""The benchmark of every operator. No test depends on time."""

import json

import numpy as np
import pytest

import cygrad as cg

from benchmarks import sized, sweep, work

pytest.importorskip("torch", reason="PyTorch is not installed, so it cannot be compared with")
CASES, WITHOUT = sized.cases()


@pytest.mark.filterwarnings("ignore:reduction")     # PyTorch's kl_div
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.label)
def test_both_libraries_compute_it(case):
    """Results of 64 elements have equal shapes, and equal values unless they are those of a decomposition."""
    import torch

    def arrays(ys):
        return [y.detach().numpy() for y in (ys if isinstance(ys, tuple) else (ys,))]

    args = case.make(64)
    ours, theirs = (f(*[make(a) if isinstance(a, np.ndarray) else a for a in args], **case.kwargs) for f, make in (
        (case.ours, cg.tensor), (case.theirs, torch.from_numpy)))
    for a, b in zip(arrays(ours), arrays(theirs), strict=True):
        assert a.shape == b.shape
        if case.row not in sized.SEVERAL: np.testing.assert_allclose(a, b, rtol=2e-3, atol=2e-4)
    if case.backward:
        for run in (sweep.cygrad_run, sweep.torch_run): run(case, 64, True)[0](1)


def test_every_row_is_compared_or_has_a_reason():
    assert {case.row for case in CASES} | set(WITHOUT) >= {row.name for row in sized.TABLE}


def test_the_page(monkeypatch, tmp_path, capsys):
    ratios = {"forward": 2.0, "with backward": 0.5}
    found = [dict(label="exp", row="exp", size=n, mode=mode, threads=1, ratio=ratio, seconds=1e-6)
             for n in sweep.SIZES for mode, ratio in ratios.items()]
    monkeypatch.setattr(sweep, "sweep", lambda *args, **settings: (found, {"cbrt": "PyTorch has none"}))
    monkeypatch.setattr(sweep.machine, "cpu_name", lambda: "a CPU")
    sweep.main(["--output", str(tmp_path)])
    text = (tmp_path / "sweep.md").read_text()
    assert text in capsys.readouterr().out and "The geometric mean of 10 ratios is 1.00; 5 are below 1." in text
    assert "| 16 | forward | 1 | 1 | 2.00 | 2.00 | 0 | 0 |" in text
    assert "| exp | 0.50 | 0.50 (16, with backward, 1), 0.50 (1,024, with backward, 1)" in text
    assert "- cbrt: PyTorch has none" in text


def test_what_is_not_measured_again_stays(tmp_path, monkeypatch):
    def one(label, ratio, threads=1):
        return {"label": label, "row": label, "size": 16, "mode": "forward", "threads": threads, "ratio": ratio,
                "seconds": 1.0}

    results = iter([[one("exp", 0.5), one("log", 0.5), one("exp", 0.25, 2)], [one("exp", 2.0)], [one("log", 4.0)]])
    monkeypatch.setattr(sweep, "sweep", lambda *args, **settings: (next(results), {}))
    for arguments in ([], ["--only", "exp"]): sweep.main(["--output", str(tmp_path), *arguments])
    found = {(f["label"], f["threads"]): f["ratio"] for f in json.loads((tmp_path / "sweep.json").read_text())}
    assert found == {("exp", 1): 2.0, ("log", 1): 0.5, ("exp", 2): 0.25}
    sweep.main(["--output", str(tmp_path)])
    assert [f["label"] for f in json.loads((tmp_path / "sweep.json").read_text())] == ["log"]


def test_a_process_answers():
    """The verbs of a worker: a case is opened and run, and an error is a text."""
    number = next(i for i, case in enumerate(CASES) if case.label == "exp")
    process = sweep.Process("cygrad", 1)
    try:
        shape, calls = process.ask("open", number, 16, "with backward", 1e-5)
        assert shape == [16] and calls >= 1 and process.ask("run", 2) > 0
        with pytest.raises(RuntimeError, match="IndexError"): process.ask("open", len(CASES), 16, "forward", 1e-5)
    finally:
        process.close()
    assert work.KEPT in sweep.PEERS
