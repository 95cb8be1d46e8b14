"""The benchmark of idleness. No test depends on time."""

import pytest

from benchmarks import busy, idle, work
from benchmarks.separate import ask

LIBRARIES = ["cygrad", "PyTorch", "NumPy"]


def found():
    """NumPy takes 1 ms, PyTorch and cygrad 3 and 2 ms for a first call after 300 ms. On the busy machine a third round
    has a first call of 10 ms, and one call of 40 ms that follows."""
    def rounds(name, mode):
        first = {"cygrad": 2e-3, "PyTorch": 3e-3, "NumPy": 1e-3}[name]
        return [[first, 0.02, 20], [first, 0.02, 20], [first, 0.02, 20] if mode == idle.ALONE else [10e-3, 0.04, 1]]

    return {"kernels": ["SkylakeX", "Zen"],
            "calls": {mode: {name: {key: {"0": rounds("NumPy", mode), "300": rounds(name, mode)} for key in idle.WORKS}
                             for name in LIBRARIES} for mode in (idle.ALONE, idle.BESIDE)}}


def test_figures_are_medians_alone_and_means_beside_others():
    alone, beside = (idle.figures(found(), mode) for mode in (idle.ALONE, idle.BESIDE))
    assert list(alone) == list(idle.WORKS) and alone["matmul 512"]["300"]["cygrad"] == pytest.approx((2e-3, 1e-3))
    assert beside["matmul 512"]["300"]["NumPy"] == pytest.approx((4e-3, 0.08 / 41))
    assert beside["matmul 512"]["300"]["cygrad"] == pytest.approx((14e-3 / 3, 0.08 / 41))


def test_the_page(monkeypatch, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(idle, "measure", lambda spec, processes: (found(), 0.0))
    monkeypatch.setattr(idle.machine, "cpu_name", lambda: "a CPU")
    monkeypatch.setattr(idle.machine, "blas", lambda: {"NumPy": "a BLAS"})
    idle.main(["--output", str(tmp_path)])
    text = (tmp_path / "idle.md").read_text()
    assert text in capsys.readouterr().out and text.startswith("# After idleness\n\nMeasured on a CPU, ")
    assert "BLAS: a BLAS (NumPy); kernels of OpenBLAS: SkylakeX, Zen.\n" in text
    line = ("| 300 ms | 2,000.0 us | 1,000.0 us | 3,000.0 us | 1,000.0 us | 1,000.0 us | 1,000.0 us | "
            "2.00 | 1.00 | 1.5 | no |")
    assert text.count(line) == len(idle.WORKS) and text.count("| 1.00 | 1.00 | 1.5 | yes |") == 2 * len(idle.WORKS)
    assert text.count("| 1.17 | 1.00 | 1.5 | yes |") == len(idle.WORKS)       # on the busy machine
    assert text.count("\n## ") == 2 and "Other programs" not in text
    assert "Other programs used 1.5 CPUs meanwhile" in idle.tables(found(), 1.5)
    assert (tmp_path / "idle.svg").read_text().count("<svg") == 1


def test_libraries_take_turns_in_both_modes(monkeypatch):
    asked = []

    def answer(module, spec, environment):
        asked.append(spec["library"])
        assert environment["CYGRAD_NUM_THREADS"] == environment["OPENBLAS_NUM_THREADS"] == "2"
        return {"kernels": [module], "calls": {key: {str(ms): [[1.0, 2.0, 3]] for ms in spec["idle"]}
                                               for key in idle.WORKS}}

    monkeypatch.setattr(idle.work, "installed", lambda _: ["cygrad", "NumPy"])
    monkeypatch.setattr(idle, "ask", answer)
    made, others = idle.measure({"idle": [0, 1], "rounds": 1, "seconds": 0}, 2)
    assert asked == 4 * ["cygrad", "NumPy"] and made["kernels"] == ["benchmarks.idle"]
    assert [*made["calls"]] == [idle.ALONE, idle.BESIDE] and (others is None or others >= 0)
    assert made["calls"][idle.BESIDE]["NumPy"]["matmul 512"] == {"0": 2 * [[1.0, 2.0, 3]], "1": 2 * [[1.0, 2.0, 3]]}
    assert set(idle.WORKS) <= busy.works("NumPy").keys() and {*made["calls"]} <= busy.SPINNERS.keys()


@pytest.mark.parametrize("name", ["cygrad", "NumPy"])
def test_a_library_is_measured(name):
    spec = {"idle": [0, 1], "rounds": 2, "seconds": 0, "library": name}
    calls = ask("benchmarks.idle", spec, work.environment(busy.THREADS))["calls"]
    assert {*calls} == {*idle.WORKS}
    for times in calls.values():
        assert {*times} == {"0", "1"}
        assert all(len(rounds) == 2 and min(map(min, rounds)) > 0 for rounds in times.values())
