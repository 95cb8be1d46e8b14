"""memory.profile: every byte of the peak has a category, an operation and a line, in all reports."""

import gc
import html.parser
import json
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import browser
import numpy as np
import pytest
from programs import Boom, Program, Refused, run
from shadow import Shadow
from tests.properties.test_shadow import loss_of, mlp

import cygrad as cg
from cygrad.memory import profiling
from cygrad.memory.log import EventLog
from cygrad.memory.profiling import COLUMNS
from cygrad.core.sizes import words

HERE = os.path.relpath(__file__)


def line(text, nth=0):
    """"file:line" of the nth line of this file that contains `text`, as in a report."""
    source = Path(__file__).read_text().splitlines()
    return f"{HERE}:{[i for i, s in enumerate(source, 1) if text in s][nth]}"


def rows(p):
    return {(r.category, r.operation, r.line): r.bytes for r in p.at_peak()}


def test_the_peak_to_the_byte():
    old = cg.zeros(10)
    with cg.memory.profile() as p:
        x = cg.ones(1000).attach_grad()             # a: 4,000, and none for the zero gradient
        with cg.record():
            h = cg.exp(x)                           # b: saved by exp
            y = (h * 2.0).sum()                     # c: the product is freed at once
            del h
        y.backward()                                # d: the product's gradient, and the head
    assert rows(p) == {
        ("other", "before", ""): 40,
        ("parameters", "tensor", line("# a:")): 4000,
        ("saved", "exp", line("# b:")): 4000,
        ("other", "sum", line("# c:")): 4,
        ("gradients", "head gradient", line("# d:")): 4,
        ("gradients", "mul (backward)", line("# d:")): 4000,
    }
    assert p.peak_bytes == 12048 == sum(r.bytes for r in p.at_peak())
    assert [r.bytes for r in p.at_peak()] == [4000] * 3 + [40, 4, 4]
    category, operation, where, nbytes = p.at_peak()[3]
    assert (category, operation, where, nbytes) == ("other", "before", "", 40)
    assert {(s.operation, s.line): (s.allocations, s.bytes) for s in p.allocations()} == {
        ("tensor", line("# a:")): (1, 4000), ("exp", line("# b:")): (1, 4000), ("mul", line("# c:")): (1, 4000),
        ("sum", line("# c:")): (1, 4), ("head gradient", line("# d:")): (1, 4),
        ("mul (backward)", line("# d:")): (1, 4000),
    }
    del x, y, old


def test_backward_by_formula_belongs_to_its_operation():
    x = cg.tensor(np.linspace(1, 2, 100)).attach_grad()
    with cg.record():
        y = cg.tanh(x)
    with cg.memory.profile() as p:
        y.backward(create_graph=True)
    assert {s.operation for s in p.allocations()} <= {"head gradient", "tanh (backward)", ".grad"}
    x.grad = None


def test_solver_states_and_gradients_have_names():
    x = cg.ones(50).requires_grad_()
    with cg.memory.profile() as p:
        solver = cg.optim.Adam()
        solver.set_parameters([x])
        with cg.record():
            y = x.broadcast_to((3, 50))
        y.backward(cg.ones((3, 50)))
    assert ("optimizer", "solver state") in {(r.category, r.operation) for r in p.at_peak()}
    assert p.peak_bytes >= 200 + 400 + 600 + 200
    del solver, y


@pytest.mark.parametrize("seed", range(40))
def test_random_programs_add_up(seed):
    """The rows add up to the peak of the counters, and the shadow allocator finds no error."""
    with Shadow():
        with cg.memory.track() as track, cg.memory.profile() as p:
            try:
                run(Program(seed))
            except (Boom, MemoryError, Refused):
                pass
        assert p.peak_bytes == track.peak_bytes == sum(r.bytes for r in p.at_peak())
        for r in p.at_peak():
            assert r.bytes > 0 and r.operation and (r.operation == "before") == (r.line == ""), r
        assert {r.category for r in p.at_peak()} <= set(profiling.CATEGORY_NAMES)


def training(steps=3):
    parameters, x, labels = mlp()
    solver = cg.optim.Adam()
    solver.set_parameters(parameters)
    for _ in range(steps):
        with cg.record():
            loss = loss_of(parameters, x, labels)
        loss.backward()
        solver.update()


def test_old_events_are_folded_and_nothing_is_lost(monkeypatch):
    """A profile that keeps 100 events gives the same report as one that keeps all, wherever the peak is."""
    def late():
        training(8)
        return cg.zeros(10000)

    def early():
        cg.zeros(10000)
        training(8)

    for program in (training, late, early):
        monkeypatch.setattr(profiling, "MOST_EVENTS", 1 << 20)
        with cg.memory.profile() as all_of_it:
            monkeypatch.setattr(profiling, "MOST_EVENTS", 100)
            with cg.memory.profile() as some:
                program()
        assert len(all_of_it._log) == len(some._log) > 150
        assert some.peak_bytes == all_of_it.peak_bytes and some.at_peak() == all_of_it.at_peak()
        assert some.allocations() == all_of_it.allocations()
        assert some.table() == all_of_it.table()
        assert max(sum(totals) for _, _, totals in some._course()) == some.peak_bytes
    monkeypatch.setattr(profiling, "MOST_EVENTS", 8)
    with cg.memory.profile() as tiny:
        training(300)
    assert len(tiny._course()) < 4500 and max(sum(t) for _, _, t in tiny._course()) == tiny.peak_bytes


def test_a_collection_in_the_middle_of_an_allocation():
    """The collector frees garbage with tensors and may start at any time."""
    class Cycle:
        def __init__(self):
            self.tensor, self.me = cg.zeros(100), self

    gc.enable()
    threshold = gc.get_threshold()
    gc.set_threshold(3)
    try:
        with cg.memory.track() as track, cg.memory.profile() as p:
            for _ in range(50):
                Cycle()
            gc.collect()
        assert p.peak_bytes == track.peak_bytes == sum(r.bytes for r in p.at_peak())
    finally:
        gc.set_threshold(*threshold)
        gc.disable()


def test_scopes_nest_and_end_with_exceptions():
    with cg.memory.profile() as outer:
        a = cg.zeros(100)
        with pytest.raises(ZeroDivisionError), cg.memory.profile() as inner:
            b = cg.zeros(200)
            1 / 0                                   # noqa: B018
        c = cg.zeros(300)
        assert outer.peak_bytes == 2400             # while it is open, too
    d = cg.zeros(400)
    assert inner.peak_bytes == 1200 and {r.bytes for r in inner.at_peak()} == {400, 800}
    assert outer.peak_bytes == 2400 and len(outer.at_peak()) == 3
    with outer:                                     # again, from the start
        pass
    assert rows(outer) == {("other", "before", ""): 4000}
    with outer, pytest.raises(RuntimeError, match="already open"):
        outer.__enter__()
    del a, b, c, d
    with cg.memory.profile() as p:
        pass
    assert p.peak_bytes == 0 and p.at_peak() == [] and "100" not in p.table()


def test_all_threads_are_seen():
    held = []

    def work():
        held.append(cg.zeros(1000))                 # in a thread

    with cg.memory.profile() as p:
        threads = [threading.Thread(target=work) for _ in range(4)]
        for t in threads: t.start()
        for t in threads: t.join()
    assert rows(p) == {("other", "tensor", line("# in a thread")): 16000}
    held.clear()


def test_off_nothing_is_written_down():
    log = EventLog(100)
    log.start()
    log.stop()
    cg.zeros(10)
    assert len(log) == 0


def test_it_runs_beside_a_listener():
    with cg.memory.events() as events, cg.memory.profile() as p:
        cg.zeros(10)
    assert [e[0] for e in events] == ["allocate", "free"] and p.peak_bytes == 40


# ---- what it looks like ----------------------------------------------------------------------------------------------

@pytest.fixture
def profiled():
    with cg.memory.profile() as p:
        training()
    return p


def test_tables(profiled):
    for by in ("operation", "category", "line"):
        table = profiled.table(by=by).splitlines()
        numbers = [int(s.split("%")[0].split()[-2].replace(",", "")) for s in table[2:]]
        assert sum(numbers[:-1]) == numbers[-1] == profiled.peak_bytes and numbers[:-1] == sorted(numbers[:-1])[::-1]
        assert table[0] == f"peak: {words(profiled.peak_bytes)}" and table[1].startswith(by)
        assert len({len(s) for s in table[1:]}) == 1
    assert re.search(r"^linear \(backward\) .* [\d,]+ +\d+$", profiled.table(), re.M)
    with pytest.raises(ValueError, match="by must be one of 'operation', .*'stack', 'why', got 'size'"):
        profiled.table(by="size")


def test_picture(profiled, tmp_path):
    profiled.plot(tmp_path / "memory.png")
    assert (tmp_path / "memory.png").read_bytes()[:4] == b"\x89PNG"
    profiled.plot(str(tmp_path / "memory.svg"))
    assert "<svg" in (tmp_path / "memory.svg").read_text()


def test_picture_without_matplotlib(profiled, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"profile.plot needs matplotlib, .*: pip install cygrad\[plot\]"):
        profiled.plot(tmp_path / "memory.png")


def test_trace(profiled, tmp_path):
    """The counters are the live bytes at every event, and the slices are the lifetimes of the buffers."""
    profiled.save(tmp_path / "memory.json")
    events = json.loads((tmp_path / "memory.json").read_text())["traceEvents"]
    counters = [e for e in events if e["ph"] == "C"]
    assert max(sum(e["args"].values()) for e in counters) == profiled.peak_bytes
    assert [e["ts"] for e in counters] == sorted(e["ts"] for e in counters)
    assert sum(counters[-1]["args"].values()) == 0
    begun = {e["id"]: e for e in events if e["ph"] == "b"}
    ended = {e["id"]: e for e in events if e["ph"] == "e"}
    assert len(begun) == len(ended) == sum(s.allocations for s in profiled.allocations())
    assert all(begun[k]["ts"] <= ended[k]["ts"] for k in begun)
    peak = max(counters, key=lambda e: sum(e["args"].values()))["ts"]
    live = sum(e["args"]["bytes"] for k, e in begun.items() if e["ts"] <= peak < ended[k]["ts"])
    assert live == profiled.peak_bytes
    assert {e["name"] for e in begun.values()} >= {"linear", "linear (backward)", "solver state", "head gradient"}


class Page(html.parser.HTMLParser):
    """The parts of a page: its tags, the files that it would load, the cells of its tables, its data."""

    def __init__(self, text):
        super().__init__()
        self.open, self.loads, self.tables, self.ids, self.data = [], [], {}, set(), ""
        self.feed(text)
        assert not self.open, f"never closed: {self.open}"

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.loads += [v for k, v in attributes.items() if k in ("src", "href", "srcset", "data", "action")]
        self.ids.add(attributes.get("id"))
        if tag in ("meta", "br", "line"): return
        self.open.append(tag)
        if tag == "table": self.tables[attributes["id"]] = []
        if tag == "tr": self.tables[list(self.tables)[-1]].append([])
        if tag in ("td", "th"): self.tables[list(self.tables)[-1]][-1].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_startendtag(self, tag, attributes):
        self.loads += [v for k, v in attributes if k in ("src", "href")]

    def handle_data(self, text):
        if "td" in self.open or "th" in self.open: self.tables[list(self.tables)[-1]][-1][-1] += text
        if self.open and self.open[-1] == "script": self.data = self.data or text


def number(text): return int(text.replace(",", ""))


def test_page_by_itself(profiled, tmp_path):
    """The page is one well-formed file that loads nothing, and its tables are those of the profile."""
    profiled.save(tmp_path / "memory.html")
    text = (tmp_path / "memory.html").read_text()
    page = Page(text)
    assert page.loads == [] and not re.search(r"https?:|@import|url\(|fetch|XMLHttp", text)
    table = page.tables["peak"][1:]
    assert sum(number(row[5]) for row in table[:-1]) == number(table[-1][5]) == profiled.peak_bytes
    assert [(r[0], r[1], r[3], r[4], number(r[5])) for r in table[:-1]] == [
        (r.category, r.operation, r.shape, r.why, r.bytes) for r in profiled.at_peak()]
    sites = page.tables["sites"][1:]
    assert [(s[0], number(s[3]), number(s[4])) for s in sites] == [(s.operation, s.allocations, s.bytes)
                                                                  for s in profiled.allocations()]
    assert any("loss.backward()" in s[1] for s in sites)        # the text of the line
    data = json.loads(page.data)
    assert max(sum(totals) for _, _, totals in data["course"]) == profiled.peak_bytes
    with pytest.raises(ValueError, match=r"save: the report must be .html or .json, got '.*txt'; plot\(\) draws"):
        profiled.save(tmp_path / "memory.txt")


def test_names_cannot_write_the_page(tmp_path):
    """A file name is inserted as text, whatever characters it has."""
    script = tmp_path / "<script>alert(1)<" / "a&b.py"
    script.parent.mkdir()
    script.write_text("import cygrad as cg\nx = cg.zeros(10) if 1 < 2 else '<b>'\n")
    with cg.memory.profile() as p:
        exec(compile(script.read_text(), str(script), "exec"), {})
    p.save(tmp_path / "memory.html")
    assert str(script) in Page((tmp_path / "memory.html").read_text()).tables["sites"][1][1]


def test_page_in_a_browser(profiled, tmp_path):
    """The page opens, its script runs without an error, and the picture is drawn."""
    path = tmp_path / "memory.html"
    profiled.save(path)
    result = subprocess.run(
        [browser.find(), *browser.FLAGS, "--enable-logging=stderr", "--v=0", "--window-size=1200,1400",
         f"--user-data-dir={tmp_path / 'user'}", "--dump-dom", path.as_uri()],
        capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr[-2000:]
    assert 'data-ready="yes"' in result.stdout                  # the last statement of the script
    assert "Uncaught" not in result.stderr and "SEVERE" not in result.stderr
    assert f"{profiled.peak_bytes:,} bytes live, the peak" in result.stdout
    assert result.stdout.count("<path") >= 8 and result.stdout.count('class="cursor"') == 2


# ---- python -m cygrad profile ----------------------------------------------------------------------------------------

SCRIPT = """
import sys
import cygrad as cg
print("arguments", sys.argv[1:], __name__)
x = cg.zeros(1000)
if "--fail" in sys.argv: raise ValueError("as asked")
if "--exit" in sys.argv: sys.exit("bye")
if "--three" in sys.argv: sys.exit(3)
"""


@pytest.fixture
def command(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)

    def run(*arguments):
        return subprocess.run([sys.executable, "-W", "error", "-m", "cygrad", "profile", *arguments], cwd=tmp_path,
                              text=True, capture_output=True, timeout=120)
    return run


def test_command(command, tmp_path):
    result = command("--by", "line", "script.py", "7", "--epochs", "3", "--html", "a.html", "--trace=a.json")
    assert result.returncode == 0 and result.stderr == ""
    assert "arguments ['7', '--epochs', '3'] __main__" in result.stdout
    assert re.search(r"^script.py:5 +4,000 +100.0%", result.stdout, re.M)
    assert Page((tmp_path / "a.html").read_text()).tables["sites"][1][0] == "tensor"
    assert json.loads((tmp_path / "a.json").read_text())["traceEvents"]
    assert "arguments ['--by', 'x', '--html'] __main__" in command("script.py", "--", "--by", "x", "--html").stdout


@pytest.mark.parametrize("by", COLUMNS)
def test_command_takes_what_table_takes(command, by):
    result = command("script.py", "--by", by)
    assert (result.returncode, result.stderr) == (0, ""), result.stderr
    assert re.search(r"(?m)^ *total +4,000|4,000 +100\.0%", result.stdout), result.stdout


def test_command_compares_two_runs(command, tmp_path):
    assert command("script.py", "--trace", "a.json").returncode == 0
    (tmp_path / "script.py").write_text("import cygrad as cg\nx = cg.ones((10, 10), dtype='float64')\n")
    result = command("--compare", "a.json", "--by", "why", "script.py")
    assert result.returncode == 0 and result.stderr == ""
    assert re.search(r"^ +800  100.0%  other +tensor +\(10, 10\) float64 +in use, or held .* script.py:2$",
                     result.stdout, re.M)
    assert "\n400 bytes less: compute in float32" in result.stdout
    assert "\npeak: 4,000 bytes before, 800 bytes now\n" in result.stdout
    (tmp_path / "b.json").write_text("{}")
    result = command("script.py", "--compare", "b.json")
    assert result.returncode == 2 and "has no peak in it; pass a .json" in result.stderr


def test_command_when_the_script_fails(command):
    failed = command("script.py", "--fail")
    assert failed.returncode == 1 and re.search(r"^tensor +4,000", failed.stdout, re.M)
    assert failed.stderr.startswith('Traceback (most recent call last):\n  File "script.py", line 6')
    assert failed.stderr.endswith("ValueError: as asked\n")
    left = command("script.py", "--exit")
    assert left.returncode == 1 and left.stderr == "bye\n" and "peak: 4000" not in left.stdout
    assert command("script.py", "--three").returncode == 3


@pytest.mark.parametrize("arguments, error", [
    (["none.py"], "none.py is not a file"),
    (["script.py", "--by", "size"], "argument --by: invalid choice: 'size'"),
    (["script.py", "--compare", "none.json"], "argument --compare: 'none.json' is not a file"),
    (["--html", "a.txt", "script.py"], "argument --html: must be a file named *.html, got 'a.txt'"),
    (["script.py", "--trace", "no/where/a.json"],
     "'no/where/a.json' cannot be written: 'no/where' is not a writable directory"),
    ([], "the following arguments are required: script"),
])
def test_command_says_what_is_wrong_before_it_starts(command, arguments, error):
    result = command(*arguments)
    assert result.returncode == 2 and result.stdout == ""
    assert error in result.stderr and result.stderr.count("\n") == 1
