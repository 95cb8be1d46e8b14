"""The benchmarks' page, pictures and comparison with an earlier run."""

import json
import re
from pathlib import Path

import pytest

from benchmarks import collect, compare, limits, machine, report, stored, work
from benchmarks.__main__ import arguments, main

ROOT = Path(__file__).resolve().parents[2]
LIBRARIES = ["cygrad", "NumPy"]


def no_say(_):
    pass


def results():
    def made(row, name, unit, mine, theirs, **more):
        samples = {"cygrad": mine, "PyTorch": theirs} | more.pop("extra", {})
        return collect.judge(row, name, unit, 1, samples, more, 1, 0.0, False)

    rows = [made("A", "y * c, size 1, not recorded", "us", [0.1, 0.2], [1.0, 2.0], kind="chain"),
            made("A", "exp, size 1, recorded", "us", [0.3, 0.3], [1.0, 2.0], kind="table", operator="exp", size=1,
                 mode="recorded", extra={"cygrad multiply": [0.1, 0.1]}),
            made("B", "step", "us", [20.0, 21.0], [100.0, 110.0]),
            made("peaks", "D: 784-1024-1024-10, batch 256, Adam", "B", [25e6], [31e6], extra={work.FRESH: [23e6]},
                 cygrad={"by_category": dict(optimizer=15e6, gradients=8e6, saved=2e6, workspace=0, other=0),
                         "resident": 30e6})]
    for phase in ("forward", "backward", "free"):
        rows.append(made("J", f"x + c: {phase}", "s", [0.1], [1.0]))
    for threads in (1, 2):
        for row, name, unit, amount, limit, shown in (
                ("H", "exp, fresh result", "ms", 128e6, "copy", {}),
                ("H", "exp, forward + backward", "ms", 320e6, "copy", {}),
                ("I", "softmax, forward", "ms", 128e6, "copy", {}),
                ("I", "matmul 64", "us", 524288, "fma", {"shown": "GFLOP/s"})):
            samples = {"cygrad": [4.0, 5.0], "PyTorch": [40.0, 50.0], work.KEPT: [8.0, 10.0]}
            details = dict(limit=limit, amount=amount, **shown)
            rows.append(collect.judge(row, name, unit, threads, samples, details, 2, 0.0, False))
            rate = 134e6 if limit == "copy" else 117e9 * 0.004
            if "backward" not in name:
                rows.append(collect.judge(row, limits.NAMES[limit], "ms", threads, {work.LIMITS: [4.0]},
                                          dict(rate=limit, amount=rate, shown=limits.UNITS[limit]), 2, 0.0, False))
    limits.mark(rows)
    rows.append(made("import", "import", "ms", [12.0], [1000.0]))
    rows.append(made("J", "x + c: bytes per operation", "B", [145.0], [576.0],
                     cygrad={"node_bytes": 144, "live_bytes": 0.0}))
    return {"machine": machine.describe(), "quick": True, "seconds": 1, "load": [0.1, 0.2], "results": rows}


def test_page_says_what_was_measured():
    page = report.write(json.loads(json.dumps(results())), {"ratios": "ratios.png"})
    assert "![Speed-up over PyTorch](ratios.png)" in page
    assert f"{machine.cpu_name()}, " in page
    for name, used in machine.blas().items():
        assert re.fullmatch(r"\S*[a-zA-Z]\S* \d[\w.]+", used) and f"{used} ({name})" in page
    assert ("| y * c, size 1, not recorded | 1 | us | 0.15 (0.125..0.175) | 1.5 (1.25..1.75) | "
            "**10.00x** (10.00..10.00) | 8.6x | yes |") in page
    assert "| step | 1 | us | 20.5 (20.2..20.8) | 105 (102..108) | **5.12x** (5.06..5.18) | 15.0x | no |" in page
    assert "3.00 (over)" in page and "145 B" in page
    step = r"^\| D: 784-1024-1024-10, batch 256, Adam \|"
    assert re.search(step + r" cygrad \| 25 MB \|.*\| 30 MB \|  \|  \|$", page, re.M)
    assert re.search(step + r" cygrad \(.grad None\) \| 23 MB \|.*\| 22 MB \| no \|$", page, re.M)
    assert "`.grad` None before: 23 MB in cygrad, 31 MB in PyTorch, **1.3 times smaller**." in page
    assert "A quick run" in page and "The *goal* of" in page and "| speed-up over PyTorch | goal | reached |" in page
    assert ("| exp, fresh result | 2 | ms | 4.5 (4.25..4.75) | 45 (42.5..47.5) | 9 (8.5..9.5) | 3.82 | "
            "**10.00x** (10.00..10.00) | **2.00x** (2.00..2.00) | 6.9x | yes |") in page
    assert "| 1.3x machine limit | yes |" in page and "| 12 | 1,000 | **83.33x** | 10 ms | no |" in page
    assert "| matmul 64 | 1 | GFLOP/s | 117 (110..123) | 11.7 (11..12.3) |" in page
    assert "In this run the machine copies 64 MiB at 33.5 GB/s with 1 thread, 33.5 GB/s with 2 threads." in page


def test_a_disturbed_figure_is_not_judged():
    made = results()
    made["results"][2]["disturbed"] = True
    page = report.write(made, {})
    assert "| us | [20.5 (20.2..20.8)] | [105 (102..108)] | disturbed | 15.0x | disturbed |" in page
    assert "5.12x" not in page and "figures, in [brackets]" in page
    assert ("B", "step", 1) not in compare.entries(made)
    copies = [r for r in made["results"] if r["name"] == limits.NAMES["copy"]]
    (rate,) = [r for r in copies if (r["row"], r["threads"]) == ("H", 2)]
    rate["disturbed"] = True
    limits.mark(made["results"])
    page = report.write(made, {})
    assert "33.5 GB/s with 1 thread, [33.5] GB/s with 2 threads." in page
    assert "| [9.55] | **10.00x** (10.00..10.00) | **2.00x** (2.00..2.00) | 1.3x machine limit | disturbed |" in page


def test_the_peak_of_a_step_is_one_figure():
    """The page of times and the page of memory have the same figures, and the peaks of MLPs are their liveness bound.
    README and the summary of the benchmarks have them too."""
    folder = Path(stored.__file__).parent / "results"
    theirs = json.loads(folder.joinpath("memory", "memory.json").read_text())["peaks"]
    results = json.loads(folder.joinpath("results.json").read_text())["results"]
    mine = {r["name"].partition(": ")[2]: r["figures"] for r in results if r["row"] == "peaks"}
    both = mine.keys() & theirs.keys()
    for name in both:
        assert mine[name][work.FRESH]["median"] == theirs[name]["cygrad"] == theirs[name]["bound"], name
        assert mine[name]["PyTorch"]["median"] == theirs[name]["PyTorch"], name
    assert len(both) == 3
    (step,) = (theirs[name] for name in both if name.startswith("784-"))
    ours, other = step["cygrad"], step["PyTorch"]
    assert f"{report.size(ours)} in cygrad, {report.size(other)} in PyTorch" in (folder / "results.md").read_text()
    assert f"| {report.size(ours)} | {report.size(other)} |" in (ROOT / "README.md").read_text()
    assert f"| {ours:,} B | {other:,} B | {step['bound']:,} B |" in (ROOT / "docs" / "benchmarks.md").read_text()


def test_sizes_and_numbers():
    assert [report.size(n) for n in (12, 1500, 25.5e6, 272e6, 3e9)] == ["12 B", "1.5 kB", "25.5 MB", "272 MB", "3 GB"]
    numbers = [report.number(x) for x in (0, 0.0004, 0.123456, 12.34, 1234.5)]
    assert numbers == ["0", "0.000400", "0.123", "12.3", "1,234"]


def test_pictures_are_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    from benchmarks.pictures import draw

    made = draw(results(), tmp_path)
    assert made.keys() == {"ratios", "operations", "million", "peaks", "H", "I"}
    for name in made.values():
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")
    assert draw({"results": []}, tmp_path) == {}


@pytest.mark.parametrize("disturbed", [False, True])
def test_pictures_say_what_was_disturbed(disturbed):
    """The legend lists pale bars. In the picture of a million operations, whose shades are phases, the word follows the
    sum."""
    pytest.importorskip("matplotlib")
    from benchmarks import pictures

    rows = results()["results"]
    for r in rows: r["disturbed"] = disturbed and r["unit"] != "B"

    def legend(figure): return [text.get_text() for text in figure.legends[0].get_texts()]

    plot = pictures.plot()
    large, million = pictures.large(plot, rows), pictures.million(plot, rows)
    assert ("pale: disturbed" in legend(large)) == disturbed
    assert legend(million) == ["forward", "backward", "free"] and million.axes[0].get_title(loc="left") == "Seconds"
    assert [text.get_text() for text in million.axes[0].texts] == [
        text + ", disturbed" * disturbed for text in ("  0.30 s", "  3.00 s")]
    for figure in (large, million): plot.close(figure)


def test_compare_says_what_moved_and_only_that():
    old, new = results(), results()
    assert "nothing moved" in compare.moved(old, new)
    slower = {"cygrad": [40.0, 42.0], "PyTorch": [100.0, 110.0]}
    new["results"][2] = collect.judge("B", "step", "us", 1, slower, {}, 1, 0.0, False)
    new["results"] = [r for r in new["results"] if r["row"] != "peaks"]
    (found,) = compare.differences(old, new)
    assert found[0] == ("B", "step", 1)
    text = compare.moved(old, new)
    assert text.startswith("WORSE   B  step (1 thread): 5.119 -> 2.56 times faster than PyTorch (-50 %)")
    assert text.endswith("\nnot measured now: peaks 1")


def test_compare_says_first_what_differs_between_the_runs():
    """Products with other BLAS kernels are neither better nor worse."""
    old, new = results(), results()
    old["machine"] |= dict(core_type="SkylakeX", numpy="1.0", cores=4)
    new["machine"] |= dict(core_type=None, numpy="2.0", cores=4)
    new["quick"] = False
    new["results"][0] = collect.judge("A", "y * c, size 1, not recorded", "us", 1,
                                      {"cygrad": [1.0, 1.1], "PyTorch": [1.0, 1.1]}, {}, 1, 0.0, False)
    for i, r in enumerate(new["results"]):
        if r["name"] == "matmul 64":
            samples = {"cygrad": [8.0, 9.0], "PyTorch": [40.0, 50.0]}
            new["results"][i] = collect.judge("I", r["name"], "us", r["threads"], samples, {}, 2, 0.0, False)
    first, *moved = compare.moved(old, new).splitlines()
    assert first == "the runs differ: OPENBLAS_CORETYPE SkylakeX -> none; NumPy 1.0 -> 2.0; quick yes -> no"
    assert [line.split()[:2] for line in moved] == [["WORSE", "A"], ["other", "I"], ["other", "I"]]
    assert all(line.endswith("its products had other kernels (OPENBLAS_CORETYPE)") for line in moved[1:])
    old["machine"]["core_type"] = None
    first, *moved = compare.moved(old, new).splitlines()
    assert "CORETYPE" not in first and [line.split()[0] for line in moved] == ["WORSE"] * 3


@pytest.mark.parametrize("mine, unit, verdict", [
    ([0.14], "s", None), ([0.16], "s", "WORSE"), ([0.07], "s", None), ([0.06], "s", "better"),
    ([0.12, 0.12], "s", None), ([0.12], "B", "WORSE")])
def test_one_sample_has_to_move_further(mine, unit, verdict):
    """A time must differ by a factor of more than 1.5. Bytes are exact and need no larger factor."""
    old, new = (results() | {"results": [collect.judge("J", "x", unit, 1, {"cygrad": taken}, {}, 1, 0.0, False)]}
                for taken in ([0.1], mine))
    text = compare.moved(old, new)
    assert text.startswith(verdict or "nothing moved")
    assert text.endswith(", one sample") == (verdict is not None and unit == "s")


def test_what_cannot_be_compared_is_counted_by_row():
    old, new = results(), results()
    new["results"] = [r for r in new["results"] if r["row"] not in ("A", "peaks")]
    for r in new["results"]: r["disturbed"] = r["row"] == "B"
    for r in old["results"]: r["disturbed"] = r["row"] == "H"
    for r in new["results"]:
        if r["row"] == "import": r["ratios"] = {}
    assert compare.moved(old, new).splitlines()[1:] == [
        "not measured now: A 2, peaks 1", "measured now, but disturbed: B 1", "disturbed in the old run: H 4",
        "not comparable, one run being without PyTorch: import 1"]


def test_command_line(tmp_path, capsys):
    assert arguments(["--rows", "B,C", "--threads", "1,2", "--quick"]).threads == [1, 2]
    assert arguments([]).output.parts[0] == "out"       # must not overwrite the tracked pages
    for wrong in (["--rows", "Z"], ["--threads", "0"], ["--threads", "two"]):
        with pytest.raises(SystemExit):
            arguments(wrong)
    assert "wanted some of A, B, C, D, E, F, G, H, I, J, L, solvers, peaks, import" in capsys.readouterr().err
    (tmp_path / "results.json").write_text(json.dumps(results()))
    main(["--render", "--output", str(tmp_path), "--compare", str(tmp_path / "results.json")])
    assert "nothing moved" in capsys.readouterr().out and (tmp_path / "results.md").exists()
    with pytest.raises(SystemExit, match="measure first"):
        main(["--render", "--output", str(tmp_path / "nowhere")])


def test_what_cannot_be_read_or_written_is_told_before_measuring(tmp_path, monkeypatch):
    monkeypatch.setattr(collect, "run", lambda *_: pytest.fail("it measured"))
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "old.json"
    for text in ("{", "[]", "{}", '{"results": [{}]}', '{"results": 3}'):
        file.write_text(text)
        for argv in (["--compare", str(file)], ["--render", "--output", str(tmp_path), "--compare", str(file)]):
            with pytest.raises(SystemExit, match="old.json has no results of python -m benchmarks: "): main(argv)
    with pytest.raises(SystemExit, match="has no results"): main(["--compare", str(tmp_path)])
    with pytest.raises(SystemExit, match="there is no file"): main(["--compare", str(tmp_path / "none.json")])
    with pytest.raises(SystemExit, match="--output: nothing can be written into"): main(["--output", str(file)])


def test_one_row_from_start_to_end(monkeypatch):
    monkeypatch.setattr(collect, "QUICK", dict(rounds=2, seconds=1e-4, patience=0, processes=1, repeats=1))
    monkeypatch.setattr(work, "installed", lambda _: LIBRARIES)
    measured = collect.run(["B"], [1, 2], True, no_say)
    assert [(r["name"], r["threads"]) for r in measured] == [("step", 1), ("step", 2)]
    assert all(r["figures"].keys() == {"cygrad", work.LAYERS, "NumPy"} for r in measured)
    assert all(r["ratios"][peer]["median"] > 0 for r in measured for peer in ("NumPy", work.LAYERS))
    with pytest.raises(RuntimeError, match="ended with 1"):
        collect.ask(dict(row="none", threads=1, libraries=[], quick=True))


def test_results_in_git_have_medians_one_line_each():
    """stored.reduced() keeps the data of the page, and the files in the repository have its form."""
    made = results()
    kept = json.loads(stored.text_of(made))
    assert kept == stored.reduced(made) and report.write(kept, {}) == report.write(json.loads(json.dumps(made)), {})
    assert stored.rounded({"x": [0.123456789, 3, None]}) == {"x": [0.1234568, 3, None]}
    assert all(r["ratios"].keys() <= set(stored.COMPARED) for r in kept["results"])
    folder = Path(stored.__file__).parent / "results"
    for path in (folder / "results.json", folder / "memory" / "memory.json"):
        assert path.read_text() == stored.text_of(json.loads(path.read_text())), path
        assert path.read_text().count("\n") < 1000
