"""`python -m cygrad learn`: files, progress, time limit, exit status, and what is printed."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cygrad import __main__
from cygrad.learn import checking, command, course, folder, running
from cygrad.learn.folder import ReaderFolder

SOLUTIONS = Path(__file__).parent / "solutions"
ALL = course.exercises()
SLOPE, LINE = ALL[:2]


@pytest.fixture
def in_process(monkeypatch):
    """Checks run in this process, and their names are noted."""
    checked = []

    def run(path, exercise, seconds):
        checked.append(exercise.name)
        return checking.judge(path, exercise)

    monkeypatch.setattr(running, "run", run)
    monkeypatch.setattr(command.os, "cpu_count", lambda: 1)        # (the checks count bytes, so one after the other)
    return checked


@pytest.fixture
def learn(in_process, capsys, tmp_path, monkeypatch):
    """Runs the command in a folder of its own; returns its status and what it printed."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        in_process.clear()
        status = __main__.main(["learn", *map(str, arguments)])
        out, err = capsys.readouterr()
        return status, out + err

    return call


def solve(exercise, folder="cygrad-exercises"):
    shutil.copy(SOLUTIONS / exercise.file.name, Path(folder, exercise.file.name))


def test_the_first_call_writes_all_and_shows_the_first_task(learn, in_process):
    status, out = learn()
    there = Path("cygrad-exercises")
    assert status == 1 and in_process == ["ch01a_slope"]
    assert {p.name for p in there.iterdir()} == {e.file.name for e in ALL} | {"progress.json"}
    assert all((there / e.file.name).read_text() == e.file.read_text() for e in ALL)
    assert out.startswith(f"Wrote {len(ALL)} exercises into cygrad-exercises.\n\n"
                          "cygrad-exercises/ch01a_slope.py (chapter 1, A first gradient): not begun\n"
                          "  The slope of a curve (chapter 1).\n")
    assert out.endswith(f"\nProgress: 0 of {len(ALL)} exercises.\n") and "\033" not in out


def test_nothing_is_overwritten(learn):
    learn("mine")
    mine = Path("mine", SLOPE.file.name)
    mine.write_text("x = 1\n")
    Path("mine", LINE.file.name).unlink()
    Path("mine", LINE.file.name).symlink_to("nowhere")              # (a name is taken even if it leads nowhere)
    Path("mine", ALL[2].file.name).unlink()
    status, out = learn("mine")
    assert (status, mine.read_text()) == (1, "x = 1\n") and out.startswith("Wrote 1 exercises into mine.")
    assert Path("mine", LINE.file.name).is_symlink() and Path("mine", ALL[2].file.name).is_file()
    assert "ch01a_slope.py (chapter 1, A first gradient): wrong\n  The file has no `slope` any more" in out


def test_progress_is_kept(learn, in_process):
    learn()
    solve(SLOPE)
    status, out = learn()
    assert status == 1 and out.startswith("ch01a_slope is right.\ncygrad-exercises/ch01b_line.py")
    assert out.endswith(f"Progress: 1 of {len(ALL)} exercises.\n   1  A first gradient{' ' * 25}1 of 3  ch01a\n")
    assert in_process == ["ch01a_slope", "ch01b_line"]
    learn()
    assert in_process == ["ch01b_line"]                             # the other is as it was when it passed
    known = json.loads(Path("cygrad-exercises", "progress.json").read_text())["exercises"]
    assert known.keys() == {"ch01a_slope"} and re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00",
                                                            known["ch01a_slope"]["solved"])


def test_a_solved_file_that_is_broken_again_is_said_to_be_so(learn, in_process):
    learn()
    solve(SLOPE)
    learn()
    solved = ReaderFolder("cygrad-exercises").solved(SLOPE)
    path = Path("cygrad-exercises", SLOPE.file.name)
    path.write_text(path.read_text().replace("x.grad", "y"))
    status, out = learn()
    assert status == 1 and in_process == ["ch01a_slope"]
    assert f"which was solved on {solved[:10]}, fails again: wrong\n" in out
    assert f"Progress: 0 of {len(ALL)}" in out
    solve(SLOPE)
    assert learn()[1].startswith("ch01a_slope is right.")
    assert ReaderFolder("cygrad-exercises").solved(SLOPE) == solved       # the first time stays


def test_a_new_version_checks_again(learn, in_process, monkeypatch):
    learn()
    solve(SLOPE)
    learn()
    monkeypatch.setattr(folder, "__version__", "999")
    assert learn()[1].startswith("ch01a_slope is right.") and in_process == ["ch01a_slope", "ch01b_line"]


def test_one_chapter(learn, in_process):
    status, out = learn("--chapter", 29)
    assert status == 1 and in_process == ["ch29a_mean"] and "Many processes" in out
    for exercise in course.exercises(29): solve(exercise)
    status, out = learn("--chapter", 29)
    assert status == 0 and in_process == ["ch29a_mean", "ch29b_all_reduce"]
    assert "ch29b_all_reduce is right." in out and "29  Many processes" in out
    assert learn("--chapter", 30) == (2, "python -m cygrad learn: error: there is no chapter 30; the chapters are 1 to "
                                         "29\n")


def test_all(learn, in_process):
    learn()
    for exercise in ALL: solve(exercise)
    broken, begun = Path("cygrad-exercises", ALL[5].file.name), Path("cygrad-exercises", ALL[9].file.name)
    shutil.copy(ALL[3].file, Path("cygrad-exercises", ALL[3].file.name))
    broken.write_text("def (\n")
    begun.write_text("")
    status, out = learn("--all")
    assert status == 1 and in_process == [e.name for e in ALL]
    assert f"{ALL[3].file.name} (chapter 2, Learning digits): not begun" in out
    assert f"{broken.name} (chapter {ALL[5].chapter}, {course.TITLES[ALL[5].chapter]}): not Python\n" in out
    assert "Python cannot read line 1" in out and f"{begun.name} (chapter" in out
    assert f"Progress: {len(ALL) - 3} of {len(ALL)} exercises." in out
    for k in (3, 5, 9): solve(ALL[k])
    status, out = learn("--all")
    assert status == 0 and out.endswith("All are done.\n")
    assert learn() == (0, out[out.index("Progress"):]) and in_process == []


def test_reset_keeps_the_old_file(learn):
    learn()
    path = Path("cygrad-exercises", SLOPE.file.name)
    for n in (1, 2):
        path.write_text(f"x = {n}\n")
        status, out = learn("--reset", "ch01a")
        assert (status, out) == (0, f"Wrote {path} anew; the old file is ch01a_slope.old{n}.py.\n")
        assert path.read_text() == SLOPE.file.read_text()
        assert path.with_suffix(f".old{n}.py").read_text() == f"x = {n}\n"
    path.unlink()
    assert learn("--reset", path) == (0, f"Wrote {path} anew.\n")
    assert learn("--reset", "ch77")[0] == 2


def test_a_reset_exercise_is_not_begun(learn):
    learn()
    solve(SLOPE)
    learn()
    learn("--reset", SLOPE.name)
    status, out = learn()
    assert status == 1 and out.startswith("cygrad-exercises/ch01a_slope.py (chapter 1, A first gradient): not begun\n")
    assert "solved" not in out and f"Progress: 0 of {len(ALL)}" in out


def test_a_summary_of_a_class(learn):
    for name in ("ada", "ben", "cleo"):
        learn("--chapter", 1, f"class/{name}")
    for exercise in course.exercises(1): solve(exercise, "class/ada")
    Path("class/ben", LINE.file.name).write_text("1 / 0\n")
    before = {p: p.read_bytes() for p in Path("class").rglob("*.*")}
    status, out = learn("--summary", "--chapter", 1, "class/ada", "class/ben", "class/cleo", "class/none")
    assert status == 1
    assert out.splitlines() == ["class/ada    3 of 3", "class/ben    0 of 3; begun: ch01b (an exception)",
                                "class/cleo   0 of 3", "class/none  is not a folder"]
    assert {p: p.read_bytes() for p in Path("class").rglob("*.*")} == before and not Path("class/none").exists()
    assert learn("--summary", "--chapter", 1, "class/ada") == (0, "class/ada   3 of 3\n")
    assert learn("class/ada", "class/ben")[0] == 2


def test_json(learn):
    learn("--chapter", 1)
    solve(SLOPE)
    status, out = learn("--chapter", 1, "--json")
    [found] = json.loads(out)
    assert status == 1 and (found["folder"], found["done"], found["of"]) == ("cygrad-exercises", 1, 3)
    slope, line, _ = found["exercises"]
    assert slope["name"] == "ch01a_slope" and slope["state"] == "passed" and slope["solved"].startswith("20")
    assert line == {"name": "ch01b_line", "chapter": 1, "state": "new", "text": "", "solved": None}
    Path("other").mkdir()
    status, out = learn("--chapter", 1, "--json", "--summary", "cygrad-exercises", "other", "none")
    assert status == 1
    assert [(f["folder"], f["done"], [e["state"] for e in f["exercises"]]) for f in json.loads(out)] == [
        ("cygrad-exercises", 1, ["passed", "new", "new"]), ("other", 0, ["missing"] * 3), ("none", 0, [])]


def test_errors_are_one_line(learn):
    Path("file").write_text("")
    assert learn("file") == (2, "python -m cygrad learn: error: file is a file; give a folder\n")
    assert learn("file/below") == (2, "python -m cygrad learn: error: file/below: Not a directory\n")
    learn("mine")
    for text in ("", "[]", '{"exercises": 3}', '{"exercises": {"ch01a_slope": {"passed": 3}}}', "\0"):
        Path("mine/progress.json").write_text(text)
        status, out = learn("mine")
        assert status == 2 and out == ("python -m cygrad learn: error: mine/progress.json is not what this command has "
                                       "written; rename it, and the progress begins anew\n")


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="needs a folder that nobody can write to")
def test_no_permission(learn):
    status, out = learn("/proc/cygrad-exercises")
    assert status == 2 and re.fullmatch(r"python -m cygrad learn: error: /proc/cygrad-exercises: [\w ]+\n", out)


def test_colours_are_for_terminals(learn, monkeypatch):
    learn()
    monkeypatch.setattr(command.sys.stdout, "isatty", lambda: True)
    assert "\033[1mcygrad-exercises/ch01a_slope.py" in learn()[1]
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\033" not in learn()[1]


# ---- processes -------------------------------------------------------------------------------------------------------

def in_a_process(tmp_path, text, seconds=60):
    path = tmp_path / SLOPE.file.name
    path.write_text(text)
    return running.run(path, SLOPE, seconds)


def test_a_check_in_a_process(tmp_path):
    assert in_a_process(tmp_path, (SOLUTIONS / SLOPE.file.name).read_text()) == ("passed", "")
    (tmp_path / "mine.py").write_text("def slope(x):\n    print('I am', x)\n    return 1\n")
    state, text = in_a_process(tmp_path, "from mine import slope\nf = 1\n")
    assert state == "wrong" and re.fullmatch(r"slope\(\[-1, 0, 0.5, 2\]\) has shape .*\nIt printed:\n    I am .*", text)


def alive(pid):
    try: return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] not in "ZX"
    except OSError: return False


def test_a_loop_without_an_end_is_stopped(tmp_path):
    """Also if it has started a process of its own, which is stopped with it."""
    text = ("import os, subprocess, sys\n"
            "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
            f"open({str(tmp_path / 'child')!r}, 'w').write(str(child.pid))\n"
            "print('begun', flush=True)\nwhile True: pass\n")
    state, said = in_a_process(tmp_path, text, 2)
    assert state == "time" and said.startswith("It ran for 2 seconds and was stopped.") and said.endswith("\n    begun")
    pid = int((tmp_path / "child").read_text())
    deadline = time.monotonic() + 20
    while alive(pid) and time.monotonic() < deadline: time.sleep(0.01)      # (it was killed, and has to end)
    assert not alive(pid)


@pytest.mark.parametrize(("line", "said"), [
    ("os.kill(os.getpid(), 11)", f"Python was ended by {signal.Signals(11).name}."),
    ("os._exit(3)", "Python ended with status 3 before the check was complete."),
])
def test_a_crash_does_not_take_the_command_down(tmp_path, line, said):
    assert in_a_process(tmp_path, f"import os\n{line}\n") == ("crash", said)


@pytest.mark.parametrize(("line", "said"), [
    ("x = bytearray(8 << 30)", "MemoryError\n    line 1, in <module>: x = bytearray(8 << 30)"),
    ("while True: print('x' * 100_000)", "OSError: [Errno 27] File too large\n    line 1, in <module>: while True: "
                                         "print('x' * 100_000)\nIt printed:\n    xxx"),
])
def test_memory_and_files_are_bounded(tmp_path, line, said):
    state, text = in_a_process(tmp_path, f"{line}\n")
    assert state == "error" and text.startswith(said)


def test_the_command_in_a_process(tmp_path):
    """And `import cygrad` does not load the exercises."""
    there = tmp_path / "mine"
    run = subprocess.run([sys.executable, "-W", "error", "-m", "cygrad", "learn", "--chapter", "29", there], text=True,
                         capture_output=True, timeout=120)
    assert (run.returncode, run.stderr) == (1, "")
    assert "ch29a_mean.py (chapter 29, Many processes): not begun" in run.stdout
    loaded = "import cygrad, sys; print([m for m in sys.modules if m.startswith('cygrad.learn')])"
    assert subprocess.run([sys.executable, "-c", loaded], text=True, capture_output=True).stdout == "[]\n"
    assert os.listdir(there)


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_output_that_nobody_reads(tmp_path, unbuffered):
    """`learn | head -3` closes the pipe. The progress is kept, and nothing is said."""
    reader, writer = os.pipe()
    os.close(reader)
    run = subprocess.run([sys.executable, "-m", "cygrad", "learn", "--chapter", "29", tmp_path / "mine"], stdout=writer,
                         stderr=subprocess.PIPE, text=True, timeout=120,
                         env=os.environ | {"PYTHONUNBUFFERED": unbuffered})
    os.close(writer)
    assert (run.returncode, run.stderr) == (141, "")
    assert (tmp_path / "mine" / course.find("ch29a").file.name).is_file()
