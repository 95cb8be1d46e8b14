"""The benchmarks' arithmetic, tables and pictures, on tiny inputs. Nothing here depends on how long anything takes."""

import json

import numpy as np
import pytest

from benchmarks import collect, compare, machine, report, timing, work, worker
from benchmarks.__main__ import arguments, main
from benchmarks.goals import GOALS, Goal
from benchmarks.memory import faults, kept, liveness
from benchmarks.memory import page as memory_page
from benchmarks.memory import peaks as memory_peaks
from benchmarks.models import Problem, losses, trainers
from cygrad.ops import ROWS

LIBRARIES = ["cygrad", "NumPy"]


def no_say(_):
    pass


# ---- arithmetic ------------------------------------------------------------------------------------------------------

def test_spread_is_median_and_quartiles():
    assert timing.spread([5.0, 1.0, 3.0, 2.0, 4.0]) == {"median": 3.0, "q1": 2.0, "q3": 4.0, "n": 5}
    assert timing.spread([7.0]) == {"median": 7.0, "q1": 7.0, "q3": 7.0, "n": 1}
    with pytest.raises(ValueError, match="no samples"):
        timing.spread([])


def test_ratios_are_taken_in_pairs_and_leave_zeros_out():
    assert timing.ratios([6.0, 9.0, 1.0], [2.0, 3.0, 0.0]) == [3.0, 3.0]
    with pytest.raises(ValueError):
        timing.ratios([1.0], [1.0, 2.0])


def test_interleave_gives_every_peer_the_same_rounds():
    order = []
    runs = {name: lambda n, name=name: order.append(name) for name in "ab"}
    runs = {name: lambda n, name=name: [order.append(name) for _ in range(n)] for name in runs}
    samples, clean = timing.interleave(runs, 4, 1e-6)
    assert {name: len(s) for name, s in samples.items()} == {"a": 4, "b": 4}
    assert all(s > 0 for taken in samples.values() for s in taken)
    assert 0 <= clean <= 1


def test_quiet_counts_the_processors_left(monkeypatch):
    monkeypatch.setattr(timing.os, "cpu_count", lambda: 4)
    assert timing.quiet(3.0, 1) and not timing.quiet(3.0, 2)
    assert timing.quiet(None, 4)


def test_companions_are_taken_off():
    samples = {"cygrad": [3.0, 4.0], "cygrad companion": [2.0, 9.0], "cygrad multiply": [1.0, 1.0]}
    assert worker.without_companions(samples) == {"cygrad": [4.0, 0.0], "cygrad multiply": [1.0, 1.0]}


def test_judge_relates_peers_to_cygrad():
    samples = {"cygrad": [2.0, 4.0], "PyTorch": [6.0, 12.0], "cygrad multiply": [1.0, 2.0]}
    result = collect.judge("A", "x", "us", 1, samples, {}, 1, 0.123, True)
    assert result["ratios"].keys() == {"PyTorch"} and result["ratios"]["PyTorch"]["median"] == 3.0
    assert result["to_multiply"]["median"] == 2.0
    assert result["disturbed"] and result["others"] == 0.12
    assert not collect.judge("J", "x", "B", 1, samples, {}, 1, 2.0, True)["disturbed"]  # bytes are not disturbed


def test_merge_pairs_the_medians_of_processes():
    def process(peer, taken, value, disturbed):
        return [{"name": "step", "unit": "us", "tolerance": 1e-4, "details": {}, "others": 0.1, "disturbed": disturbed,
                 "samples": {peer: taken}, "values": {peer: [[value]]}}]

    answers = [process("cygrad", [1, 2, 3], 1.0, False), process("NumPy", [4, 5, 60], 1.0, False),
               process("NumPy", [7, 8, 9], 1.0, True), process("cygrad", [3, 4, 5], 1.0, False)]
    (case,) = collect.merge(answers)
    assert case["samples"] == {"cygrad": [2, 4], "NumPy": [5, 8]} and case["disturbed"]
    with pytest.raises(ValueError, match="do not do the same work"):
        collect.merge([process("cygrad", [1], 1.0, False), process("NumPy", [1], 1.1, False)])


def test_agree_names_who_differs():
    work.agree("x", {"cygrad": [np.ones(2)], "NumPy": [np.ones(2)]}, 1e-6)
    with pytest.raises(ValueError, match="cygrad and NumPy differ in array 0 by up to 0.5"):
        work.agree("x", {"cygrad": [np.ones(2)], "NumPy": [np.full(2, 1.5)]}, 1e-6)
    with pytest.raises(ValueError, match="shape"):
        work.agree("x", {"cygrad": [np.ones(2)], "NumPy": [np.ones(3)]}, 1e-6)


def test_goals_are_judged_by_ratio_or_by_figure():
    assert Goal(45, 8).reached(1.0, 8.0) and not Goal(45, 8).reached(1.0, 7.9)
    assert Goal(160).reached(160, None) and not Goal(160).reached(161, 99.0)
    assert Goal(45, 8).reached(1.0, None) is None


# ---- the work --------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("loss", ["mse", "cross_entropy"])
@pytest.mark.parametrize("solver", ["sgd", "adam"])
def test_libraries_train_alike(loss, solver):
    problem = Problem((3, 5, 4), 7, loss, solver, 0.01)
    made = trainers(work.installed(), problem)
    work.agree(f"{loss}, {solver}", {peer: losses(make, *problem.data()) for peer, make in made.items()}, 1e-4)
    (mine,) = losses(made["cygrad"], *problem.data())
    assert mine[-1] != mine[0]


def test_every_goal_has_its_workload():
    named = {("peaks", name) for name in work.module("peaks").PROBLEMS}
    pytest.importorskip("sklearn")
    named |= {("J", f"{chain}: {what}") for chain in work.module("J").CHAINS
              for what in ("forward", "backward", "free", "bytes an operation")}
    for row in "ABC":
        named |= {(row, case.name) for case in work.module(row).cases(["cygrad"], False)}
    assert GOALS.keys() <= named


def test_every_elementwise_operator_has_chains_that_agree():
    operations = work.module("A")
    operations_cases = [c for c in operations.cases(LIBRARIES, True) if c.details.get("mode") == "not recorded"]
    names = {c.details["operator"] for c in operations_cases if c.details["kind"] == "table"}
    assert names == {row.name for row in operations.TABLE if row.family in operations.FAMILIES}
    for case in operations_cases:
        values = {peer: compute() for peer, compute in case.values.items()}
        work.agree(case.name, values, case.tolerance)
        assert all(np.isfinite(a).all() for a in values["cygrad"]), case.name


def test_a_chain_of_operations_keeps_what_it_says():
    million = work.module("J")
    figures, values = million.measure_cygrad("x * w", 50, False, True)
    assert figures["x * w: bytes an operation"]["details"]["live_bytes"] == pytest.approx(4.0, abs=0.2)
    assert values == [[1.0, 1.0, 1e6]]


def test_the_peak_is_the_counters_peak():
    peaks = work.module("peaks")
    problem = Problem((4, 8, 3), 5, "cross_entropy", "adam", 1e-3)
    parameters = sum(w.nbytes + b.nbytes for w, b in problem.layers())
    peak, details, values = peaks.cygrad_peak(problem, False, parameters)
    assert sum(details["by_category"].values()) == peak
    assert details["by_category"]["optimizer"] == 2 * parameters
    assert peak >= 3 * parameters and len(values) == peaks.STEPS
    assert peaks.cygrad_peak(problem, True, parameters)[0] <= peak


# ---- memory ----------------------------------------------------------------------------------------------------------

def test_a_step_peaks_at_its_liveness_bound():
    """Not a byte more, and not one less, which would be a bound that is wrong."""
    for sizes in [(3, 1), (3, 4), (4, 8, 3), (20, 5, 30, 2), (6,) * 9]:
        for loss, solver in [("mse", "sgd"), ("cross_entropy", "adam"), ("cross_entropy", "sgd")]:
            problem = Problem(sizes, 7, loss, solver, 1e-3)
            assert memory_peaks.cygrad_peak(problem) == liveness.bound(problem), problem


def test_the_bound_by_hand():
    """One layer 3 -> 2, batch 5: outputs y, d, s of 40 bytes each, dw 24, db 8, the loss and its gradient 4 each."""
    problem = Problem((3, 2), 5, "mse", "sgd", 1e-3)
    assert liveness.parameter_bytes(problem) == 32
    assert liveness.bound(problem) == 4 + 4 + 40 + 40   # loss, head, the gradient of s, d
    adam = Problem((3, 2), 5, "mse", "adam", 1e-3)
    assert liveness.bound(adam) == liveness.bound(problem) + 64


def test_pytorch_peaks_above_the_bound():
    pytest.importorskip("torch")
    name = "64-128-64-10, batch 64, Adam"
    assert memory_peaks.torch_peak(memory_peaks.PROBLEMS[name]) > liveness.bound(memory_peaks.PROBLEMS[name]) == 255_356


def test_bytes_kept_beside_pytorch():
    """What both keep is known for these; and no operator of the table is forgotten without a word."""
    pytest.importorskip("torch")
    samples = kept.samples()
    wanted = {"add": (0, 0), "relu": (40_000, 40_000), "mul": (80_000, 80_000), "max": (1250, 40_400),
              "sort": (40_000, 80_000), "mse": (40_000, 80_000), "gather": (800, 40_800), "dropout_with": (0, 40_000),
              "cross_entropy": (41_200, 40_804)}
    for name, (mine, theirs) in wanted.items():
        n, ours, pytorchs = samples[name]
        assert (kept.cygrad_bytes(n, ours), kept.torch_bytes(n, pytorchs)) == (mine, theirs), name
    assert samples.keys() <= ROWS.keys() and "mask_put" in kept.left_out()


def test_no_page_faults_once_memory_has_settled():
    assert faults.count("cygrad", Problem((64, 32, 10), 64, "mse", "sgd", 1e-3)) <= 50


def test_page_of_memory(tmp_path):
    made = {"machine": machine.describe(), "left out": ["put"], "faults": {"step": dict(cygrad=[0, 0], PyTorch=[7, 9])},
            "peaks": {"step": dict(bound=100, cygrad=100, PyTorch=150)},
            "kept": {"mul": dict(cygrad=8, PyTorch=8), "max": dict(cygrad=2, PyTorch=5),
                     "sum": dict(cygrad=0, PyTorch=4), "nll": dict(cygrad=3, PyTorch=2)}}
    text = memory_page.write(made, {"peaks": "peaks.png"})
    for line in ("| step | 100 | 100 | 150 | 1.00 | 1.50 |", "| mul | 8 | 8 | same |", "| max | 2 | 5 | 2.50x |",
                 "| sum | 0 | 4 | all of it |", "| step | 0 | 7..9 |", "![The peak of a step](peaks.png)",
                 "Of 4 operators cygrad keeps less in 2 (max, sum), more in 1 (nll), the same in the others."):
        assert line in text
    pytest.importorskip("matplotlib")
    for name in memory_page.draw(made, tmp_path).values():
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")


# ---- the page, the pictures, the comparison --------------------------------------------------------------------------

def results():
    def made(row, name, unit, mine, theirs, **more):
        samples = {"cygrad": mine, "PyTorch": theirs} | more.pop("extra", {})
        return collect.judge(row, name, unit, 1, samples, more, 1, 0.0, False)

    rows = [made("A", "y * c, size 1, not recorded", "us", [0.1, 0.2], [1.0, 2.0], kind="chain"),
            made("A", "exp, size 1, recorded", "us", [0.3, 0.3], [1.0, 2.0], kind="table", operator="exp", size=1,
                 mode="recorded", extra={"cygrad multiply": [0.1, 0.1]}),
            made("B", "step", "us", [20.0, 21.0], [100.0, 110.0]),
            made("peaks", "D: 784-1024-1024-10, batch 256, Adam", "B", [25e6], [31e6],
                 cygrad={"by_category": dict(optimizer=15e6, gradients=8e6, saved=2e6, workspace=0, other=0),
                         "resident": 30e6})]
    for phase in ("forward", "backward", "free"):
        rows.append(made("J", f"x + c: {phase}", "s", [0.1], [1.0]))
    rows.append(made("J", "x + c: bytes an operation", "B", [145.0], [576.0],
                     cygrad={"node_bytes": 144, "live_bytes": 0.0}))
    return {"machine": machine.describe(), "quick": True, "seconds": 1, "load": [0.1, 0.2], "results": rows}


def test_page_says_what_was_measured():
    page = report.write(json.loads(json.dumps(results())), {"ratios": "ratios.png"})
    assert "![How many times faster than PyTorch](ratios.png)" in page
    assert ("| y * c, size 1, not recorded | 1 | us | 0.15 (0.125..0.175) | 1.5 (1.25..1.75) | "
            "**10.00x** (10.00..10.00) | 8.6x | yes |") in page
    assert "| step | 1 | us | 20.5 (20.2..20.8) | 105 (102..108) | **5.12x** (5.06..5.18) | 8.0x | no |" in page
    assert "3.00 (over)" in page and "145 B" in page and "25 MB" in page and "22 MB | no |" in page
    assert "A quick run" in page


def test_a_disturbed_figure_is_not_judged():
    made = results()
    made["results"][2]["disturbed"] = True
    page = report.write(made, {})
    assert "disturbed | 8.0x | disturbed |" in page and "5.12x" not in page
    assert ("B", "step", 1) not in compare.entries(made)


def test_sizes_and_numbers():
    assert [report.size(n) for n in (12, 1500, 25.5e6, 272e6, 3e9)] == ["12 B", "1.5 kB", "25.5 MB", "272 MB", "3 GB"]
    numbers = [report.number(x) for x in (0, 0.0004, 0.123456, 12.34, 1234.5)]
    assert numbers == ["0", "0.000400", "0.123", "12.3", "1,234"]


def test_pictures_are_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    from benchmarks.pictures import draw

    made = draw(results(), tmp_path)
    assert made.keys() == {"ratios", "operations", "million", "peaks"}
    for name in made.values():
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")
    assert draw({"results": []}, tmp_path) == {}


def test_compare_says_what_moved_and_only_that():
    old, new = results(), results()
    assert "nothing moved" in compare.moved(old, new)
    slower = {"cygrad": [40.0, 42.0], "PyTorch": [100.0, 110.0]}
    new["results"][2] = collect.judge("B", "step", "us", 1, slower, {}, 1, 0.0, False)
    new["results"] = [r for r in new["results"] if r["row"] != "peaks"]
    (found,) = compare.differences(old, new)
    assert found[0] == ("B", "step", 1) and not found[4]
    text = compare.moved(old, new)
    assert text.startswith("WORSE   B  step (1 thread): 5.119 -> 2.56 times faster than PyTorch (-50 %)")
    assert "not measured now: ('peaks'" in text


def test_command_line(tmp_path, capsys):
    assert arguments(["--rows", "B,C", "--threads", "1,2", "--quick"]).threads == [1, 2]
    for wrong in (["--rows", "Z"], ["--threads", "0"], ["--threads", "two"]):
        with pytest.raises(SystemExit):
            arguments(wrong)
    assert "wanted some of A, B, C, J, peaks" in capsys.readouterr().err
    (tmp_path / "results.json").write_text(json.dumps(results()))
    main(["--render", "--output", str(tmp_path), "--compare", str(tmp_path / "results.json")])
    assert "nothing moved" in capsys.readouterr().out and (tmp_path / "results.md").exists()
    with pytest.raises(SystemExit, match="measure first"):
        main(["--render", "--output", str(tmp_path / "nowhere")])


def test_one_row_from_start_to_end(monkeypatch):
    monkeypatch.setattr(collect, "QUICK", dict(rounds=2, seconds=1e-4, patience=0, processes=1, repeats=1))
    monkeypatch.setattr(work, "installed", lambda: LIBRARIES)
    measured = collect.run(["B"], [1, 2], True, no_say)
    assert [(r["name"], r["threads"]) for r in measured] == [("step", 1), ("step", 2)]
    assert all(r["figures"].keys() == {"cygrad", "NumPy"} and r["ratios"]["NumPy"]["median"] > 0 for r in measured)
    with pytest.raises(RuntimeError, match="ended with 1"):
        collect.ask(dict(row="none", threads=1, libraries=[], quick=True))
