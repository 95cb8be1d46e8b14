"""The form and the cost of a profile's reports: traces, pages, pictures and tables of long, deep and wide programs."""

import json
import re
import tracemalloc
import xml.etree.ElementTree as ET
from pathlib import Path

import browser
import matplotlib as mpl
import numpy as np
import pytest
from tests.memory.test_profiling_causes import SVG, line, lstm, page_rows, random, training, transformer, weights

import cygrad as cg
from cygrad.memory import profiling
from cygrad.drawing.page import outline
from cygrad.drawing.scales import COLORS, PHASE_COLORS

FILE = Path(__file__)


def here(text):
    """The line of this file that contains `text`, as in a report."""
    return f"tests/memory/{FILE.name}:{[i for i, s in enumerate(FILE.read_text().splitlines(), 1) if text in s][0]}"


def many(n):
    """A profile of a few more than 4 n events."""
    x = cg.ones(10)
    with cg.memory.profile() as p:
        for _ in range(n):
            y = x + 1
            y = y * 2
        del y
    return p


def told(path):
    """The data in the first line of a trace."""
    with open(path) as file: return json.loads(file.readline() + "]}")["otherData"]


# ---- long profiles ---------------------------------------------------------------------------------------------------

def test_a_trace_is_written_event_by_event(tmp_path):
    """The text of a long trace is never in memory as a whole, and a buffer takes few bytes of the file."""
    p = many(5000)
    tracemalloc.start()
    try:
        p.save(tmp_path / "t.json")
        used = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    size = (tmp_path / "t.json").stat().st_size
    assert used < 8e6 and size < 10000 * 2 * 210      # (20,000 events: as a whole 40 MB of memory, and 6 MB of file)
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    assert sum(e["ph"] == "b" for e in events) == sum(e["ph"] == "e" for e in events) == 10000
    assert sum(e["ph"] == "C" for e in events) == len(p._log) + 2 == 20002       # and those of the start and the end
    assert {key for e in events if e["ph"] == "C" for key in e["args"]} == {"other"}        # the categories with bytes
    assert {e["args"]["line"] for e in events if e["ph"] == "b"} == {here("y = x + 1"), here("y = y * 2")}


def test_a_trace_of_a_long_profile_has_fewer_counters(monkeypatch, tmp_path):
    monkeypatch.setattr(profiling, "MOST_COUNTERS", 100)
    p = many(1000)
    p.save(tmp_path / "t.json")
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    counters = [sum(e["args"].values()) for e in events if e["ph"] == "C"]
    assert 100 <= len(counters) <= 102 and max(counters) == p.peak_bytes


def test_reports_say_what_was_folded(monkeypatch, tmp_path):
    whole = many(5)
    monkeypatch.setattr(profiling, "MOST_EVENTS", 64)
    p = many(100)
    note = (f"The first {p._log.dropped:,} of {len(p._log):,} events are summarised: only their maxima "
            f"are shown, and buffers that were freed among them are missing. The peak and all sums are exact.")
    for profile, said, folded in ((p, note, p._log.dropped), (whole, "", 0)):
        profile.save(tmp_path / "t.json")
        found = told(tmp_path / "t.json")
        assert (found["events"], found["folded"], found["note"]) == (len(profile._log), folded, said)
        profile.save(tmp_path / "t.html")
        assert re.findall(r'<p id="note">(.*?)</p>', (tmp_path / "t.html").read_text()) == [said] * bool(said)
    assert p._log.dropped > 300
    with mpl.rc_context({"svg.fonttype": "none"}):
        p.plot(tmp_path / "t.svg")
    assert f"(of the first {p._log.dropped:,} events only the maxima)" in (tmp_path / "t.svg").read_text()


def test_lives_are_told_while_the_program_goes_on(monkeypatch):
    """No events are folded while a trace is written. Afterwards the log is folded again."""
    monkeypatch.setattr(profiling, "MOST_EVENTS", 64)
    x = cg.ones(10)
    with cg.memory.profile() as p:
        for _ in range(20): cg.exp(x)
        log = p._log
        expected = list(log.lives())
        lives = log.lives()
        found = [next(lives) for _ in range(5)]
        for _ in range(200): cg.exp(x)
        assert log.dropped == 0
        found += list(lives)
        assert found == expected and len(found) == 20
        cg.exp(x)
        assert log.dropped > 0
        next(log.lives())                           # (an unfinished iterator releases the log too)
        dropped = log.dropped
        for _ in range(200): cg.exp(x)
        assert log.dropped > dropped


def test_phases_are_counted_though_they_are_folded(monkeypatch):
    monkeypatch.setattr(profiling, "MOST_EVENTS", 1 << 20)
    with cg.memory.profile() as whole:
        monkeypatch.setattr(profiling, "MOST_EVENTS", 64)
        p = training(750)
    assert len(p._phases()) < 2250
    assert p._log.passes() == whole._log.passes() == [0, 750, 750, 750]


def test_a_gradient_at_a_peak_that_was_folded_away(monkeypatch):
    """The report does not guess whether it stayed live."""
    monkeypatch.setattr(profiling, "MOST_EVENTS", 64)
    x = random(1000).requires_grad_()
    with cg.memory.profile() as p:
        with cg.record():
            y = cg.exp(cg.square(x))
        y.backward(cg.ones(1000))
        big = cg.zeros(100000)
        del big, y
        for _ in range(100): cg.ones(1)
    assert p._log.dropped > p._log.peak_at
    assert {r.why for r in p.at_peak() if r.category == "gradients"} == {"a gradient"}


# ---- deep and wide tables --------------------------------------------------------------------------------------------

def deep(n):
    def f(n): return cg.ones(100) if n == 0 else g(n - 1)       # [f]
    def g(n): return f(n) + 0                       # [g]
    with cg.memory.profile() as p:
        x = f(n)
    del x
    return p


def test_recursion_is_told_once():
    """Repeated frames are shown once, with their number."""
    text = deep(40).table(by="stack").splitlines()
    f, g = here("# [f]"), here("# [g]")
    assert [re.sub(r"  [ \d,.%-]+$", "", s) for s in text[2:]] == [
        f"{g} g", "  add [other]", f"  {f} f", "    tensor [other]", "all"]     # (the rest is smaller)

    def alone(n): return cg.ones(10) if n == 0 else alone(n - 1)        # [alone]
    def pair(n): return [cg.ones(10), *(pair(n - 1) if n else [cg.ones(5)])]        # [pair]

    with cg.memory.profile() as p:
        held = [*pair(30), alone(100), cg.ones(1)]
    text = p.table(by="stack").splitlines()
    assert max(map(len, text)) <= 120 and len(text) < 16
    assert any(f"{here('# [alone]')} alone (up to 101 times)" in s for s in text)
    assert any(f"{here('# [pair]')} pair (up to 31 times)" in s for s in text)
    assert any(re.search(r"tensor \[other\] +1,260 .* 32$", s) for s in text)       # those of all depths of pair
    del held


def test_callers_that_are_too_far_out_are_marked(tmp_path):
    p = deep(200)
    text = p.table(by="stack").splitlines()
    assert len(text) < 12 and max(map(len, text)) <= 120
    assert text[2].startswith("(callers beyond 256 frames)") and "(these 2 frames up to 128 times)" in text[3]
    assert {stack[0] for r in p.at_peak() for stack in r.stacks} == {("", 0, "(callers beyond 256 frames)")}
    p.flame(tmp_path / "f.svg")
    root = ET.parse(tmp_path / "f.svg").getroot()
    assert float(root.get("height")) < 300
    assert any(t.text.startswith("(callers beyond") for t in root.iter(SVG + "title"))
    with cg.memory.profile() as p:                  # a stack of exactly the number of frames that are read is complete
        held = cg.ones(1)
    assert "beyond" not in p.table(by="stack")
    del held


def test_a_deep_tree_is_no_wider_than_the_page():
    """Forty nested calls of functions in a file with a long name."""
    names = [f"a_function_with_a_long_name_{k}" for k in range(40)]
    bodies = [f"def {name}(): return {then}()" for name, then in zip(names, [*names[1:], "made"], strict=True)]
    program = {"made": lambda: cg.ones(100)}
    exec(compile("\n".join(bodies), "/somewhere/" + "in/a/long/path/" * 9 + "file.py", "exec"), program)
    with cg.memory.profile() as p:
        held = [program[name]() for name in (names[0], "made")]
    text = p.table(by="stack").splitlines()
    assert max(map(len, text)) <= 120
    shown = [s for s in text if "a_function" in s]
    assert len(shown) == 40 and shown[-1].startswith(" " * 40 + "39: …")
    assert all(f"{name} " in s for name, s in zip(names, shown, strict=True))
    program.clear()
    del held


def test_what_is_not_known_is_no_number():
    old = cg.zeros(1000)
    with cg.memory.profile() as p:
        new = cg.zeros(10)
    for by in ("operation", "line", "stack"):
        table = p.table(by=by)
        assert re.search(r"^before .*4,000 +99.0% +-( +0 +0)?$", table, re.M) and re.search(r" 1.0% +1\b", table)
    assert re.search(r"  before  +-  +in use", p.table(by="why"))
    del old, new


# ---- pictures --------------------------------------------------------------------------------------------------------

def contrast(a, b):
    """The distance of two colours, at most 765."""
    return sum(abs(int(a[k:k + 2], 16) - int(b[k:k + 2], 16)) for k in (1, 3, 5))


def test_one_palette(tmp_path):
    """The flame graph has the colours of the picture and of the page. Neighbouring colours differ, and the bands are
    grey."""
    p = lstm(5)
    p.save(tmp_path / "p.html")
    p.flame(tmp_path / "p.svg")
    with mpl.rc_context({"svg.fonttype": "none"}):
        p.plot(tmp_path / "plot.svg")
    texts = {name: (tmp_path / name).read_text() for name in ("p.html", "p.svg", "plot.svg")}
    for name, color in COLORS.items():
        assert f"--{name}: {color};" in texts["p.html"]
        assert f".{name} {{ fill: var(--{name}, {color}); }}" in texts["p.svg"]
        assert color in texts["plot.svg"]
        assert all(contrast(color, other) > 90 for other in COLORS.values() if other != color)
    for name, grey in PHASE_COLORS.items():
        assert grey[1:3] == grey[3:5] == grey[5:] and grey not in COLORS.values()
        assert f"--{name}: {grey};" in texts["p.html"] and grey in texts["plot.svg"]


def test_bands_and_the_peak_have_labels(tmp_path):
    """The band of an update is narrow but has a label like the others. The legend has all three."""
    p = training(2)
    with mpl.rc_context({"svg.fonttype": "none"}):
        for axis in ("events", "time"): p.plot(tmp_path / f"{axis}.svg", axis=axis)
    text = (tmp_path / "events.svg").read_text()
    said = re.findall(r"<text[^>]*>([^<]*)</text>", text)
    assert [said.count(name) for name in ("forward", "backward", "update")] == [3, 3, 3]
    assert f"peak: {p.peak_bytes:,} bytes at event {p._log.peak_at:,}" in said
    assert any(s.startswith(f"peak: {p.peak_bytes:,} bytes at ") and s.endswith((" us", " ms", " s")) for s in
               re.findall(r"<text[^>]*>([^<]*)</text>", (tmp_path / "time.svg").read_text()))
    p.save(tmp_path / "p.html")
    text = (tmp_path / "p.html").read_text()
    first = text[text.index('<svg class="course"'):text.index("</svg>")]
    assert re.findall(r'<text class="phase"[^>]*>(\w+)<', first).count("update") == 2
    assert re.findall(r'<i style="background:var\(--(\w+)\)"></i>\w+</span>', text) == ["forward", "backward", "update"]


def test_a_flame_graph_by_itself(tmp_path):
    """It has a legend of colours. Boxes with the same name show their category. Long names are listed below."""
    parameters = weights((64, 64), (64, 64))
    solver = cg.optim.Adam()
    solver.set_parameters(parameters)
    x = random(16, 64)
    with cg.memory.profile() as p:
        with cg.record(): y = cg.tanh(cg.gelu(cg.linear(x, parameters[0])))
        held = [y, random(1000)]
    p.flame(tmp_path / "f.svg")
    root = ET.parse(tmp_path / "f.svg").getroot()
    legend = [(g.find(SVG + "rect").get("class"), g.find(SVG + "text").text) for g in root.iter(SVG + "g")
              if g.get("class") == "legend"]
    assert legend == [(name, name) for name in COLORS]
    boxes = {g.find(SVG + "title").text: (g.find(SVG + "text"), float(g.find(SVG + "rect").get("width")))
             for g in root.iter(SVG + "g") if g.find(SVG + "title") is not None}
    before = {title: text.text for title, (text, _) in boxes.items() if title.startswith("before")}
    assert len(before) == len(set(before.values())) == 3
    notes = [t.text for t in root.iter(SVG + "text") if t.get("class") == "note"]
    assert notes and all("…" not in (text.text if text is not None else "") for text, _ in boxes.values())
    for k, note in enumerate(notes):
        number, _, title = note.partition(": ")
        assert int(number) == k + 1 and boxes[title][0].text == number
    assert all(width < 20 for text, width in boxes.values() if text is None)
    p.save(tmp_path / "f.html")
    assert "class=\"note\"" not in (tmp_path / "f.html").read_text()
    del held, y


def test_cells_of_the_page_do_not_break(tmp_path):
    """A category and its square, and the parts of a shape, stay on one line. Stacks are shown if there are several."""
    p = transformer(64)
    page_rows(p, tmp_path / "t.html")
    text = (tmp_path / "t.html").read_text()
    table = re.search(r'<table id="peak">.*?</table>', text, re.S)[0]
    assert len(re.findall(r'<td class="whole"><i style', table)) == len(p.at_peak())
    assert '<span class="whole">(2, 4, 64, 64) float32</span>' in table and ".whole { white-space: nowrap; }" in text
    assert "stacks: 1<" not in table
    assert table.count("<summary>stacks: ") == sum(
        len({stack[-6:] for stack in r.stacks}) > 1 for r in p.at_peak()) > 0
    assert all(cells[3] for cells in page_rows(p, tmp_path / "t.html")[:-1])   # "-" where no shape is known


def test_layers_on_the_page(tmp_path):
    """Layers include those in them, as a graph and as a table; a program without layers has no such part."""
    net = cg.nn.Sequential(cg.nn.Sequential(cg.nn.Linear(8, 16), cg.nn.Tanh()), cg.nn.Linear(16, 4))
    with cg.memory.profile() as p:
        with cg.record(): y = net(cg.ones((32, 8))) * 2.0
    p.save(tmp_path / "p.html")
    text = (tmp_path / "p.html").read_text()
    table = re.search(r'<table id="layers">.*?</table>', text, re.S)[0]
    rows = {name: tuple(int(n.replace(",", "")) for n in (whole, own)) for name, whole, own in re.findall(
        r'<code>(.*?)</code></td><td class="n">(.*?)</td><td class="n">.*?</td><td class="n">(.*?)</td>', table)}
    layers = {}
    for row in p.at_peak():
        for layer, n in row.layers.items(): layers[layer] = layers.get(layer, 0) + n
    for name, (whole, own) in rows.items():
        if name.startswith("Sequential"):
            assert own == layers.get(name, 0)
            assert whole == sum(n for layer, n in layers.items() if f"{layer}.".startswith(f"{name}."))
    assert rows["Sequential.0"][0] >= 32 * 16 * 4 and "(no layer)" in rows
    assert sum(whole for name, (whole, _) in rows.items() if "." not in name) == p.peak_bytes
    assert text.count("<title>Sequential: ") == 1
    del y
    transformer(8).save(tmp_path / "t.html")
    assert "by layer" not in (tmp_path / "t.html").read_text()


def test_a_long_run_of_a_large_program_is_a_page_below_a_megabyte(tmp_path):
    """100,000 events with a thousand steps, 2,000 lines that allocate, and layers."""
    lines = "\n".join(f"    held.append(cg.ones({n % 50 + 1}))" for n in range(2000))
    space = {"cg": cg, "held": []}
    exec(compile(f"def program():\n{lines}", str(tmp_path / "program.py"), "exec"), space)
    net, solver = cg.nn.Sequential(*[cg.nn.Linear(4, 4) for _ in range(40)]), cg.optim.Sgd(0.0)
    solver.set_parameters(dict(net.named_parameters()))
    with cg.memory.profile() as p:
        space["program"]()
        for _ in range(1000):
            with cg.record(): loss = net(cg.ones((2, 4))).sum()
            loss.backward()
            solver.update()
    p.save(tmp_path / "p.html")
    assert len(p._log) > 100_000 and (tmp_path / "p.html").stat().st_size < 1_000_000
    text = (tmp_path / "p.html").read_text()
    space.clear()                                   # (a cycle, which has the tensors)
    assert f"and {len(p.allocations()) - 500:,} more" in text and f"and {len(p.at_peak()) - 500:,} more" in text


def test_the_outline_of_an_area_is_that_of_its_corners():
    """An outline with its moves in two directions has the corners of two step lines."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        n = int(rng.integers(1, 12))
        places = sorted(rng.integers(0, 8, n).tolist())
        over, base = rng.integers(0, 4, n).tolist(), rng.integers(5, 8, n).tolist()
        moves = re.findall(r"([MHV])([\d,]+)", outline([*map(str, places)], [*map(str, over)], [*map(str, base)]))
        (_, start), *moves = moves
        corners = [tuple(map(int, start.split(",")))]
        for kind, value in moves:
            x, y = corners[-1]
            corners.append((int(value), y) if kind == "H" else (x, int(value)))
        area = sum(a * d - c * b for (a, b), (c, d) in zip(corners, [*corners[1:], corners[0]], strict=True)) / 2
        assert abs(area) == sum((b - o) * (after - at) for at, after, o, b in
                                zip(places, places[1:], over, base, strict=False))


@pytest.fixture
def tab(tmp_path):
    opened = browser.Browser(tmp_path / "user")
    for domain in ("Page", "Runtime"): opened.call(f"{domain}.enable")
    yield opened
    opened.close()


def test_zoom_and_filter_in_a_browser(tab, tmp_path):
    training(2).save(tmp_path / "p.html")
    tab.open((tmp_path / "p.html").as_uri())
    wheel = """(delta, part) => {
        const svg = document.querySelector("svg.course"), box = svg.getBoundingClientRect();
        svg.dispatchEvent(new WheelEvent("wheel", { deltaY: delta, clientX: box.left + box.width * part }));
        return [...views[0], svg.querySelector(".across").style.display] }"""
    from_, to, labels = tab.run(f"({wheel})(-1, 1)")
    assert (round(from_, 6), to, labels) == (0.2, 1, "none")
    read = """() => { const svg = document.querySelector("svg.course"), box = svg.getBoundingClientRect();
        svg.dispatchEvent(new MouseEvent("mousemove", { clientX: box.left + box.width * 90 / 1100 + 1 }));
        return [+when.textContent.match(/event ([\\d,]+)/)[1].replace(",", ""), data.ends[0]] }"""
    event, end = tab.run(f"({read})()")
    assert 0.15 * end < event < 0.25 * end          # (the left edge is a fifth of the way)
    for _ in range(3): found = tab.run(f"({wheel})(1, 0.5)")
    assert found == [0, 1, ""]
    for _ in range(60): found = tab.run(f"({wheel})(-1, 0.5)")
    assert found[1] - found[0] > 0 and 0 <= found[0] < found[1] <= 1
    tab.run("document.querySelector('svg.course').dispatchEvent(new MouseEvent('dblclick'))")
    assert tab.run("views[0].join()") == "0,1"
    shown = """text => {
        const table = document.querySelector("#peak"), field = table.previousSibling;
        field.value = text;
        field.dispatchEvent(new Event("input"));
        return [...table.tBodies[0].rows].filter(r => !r.hidden).map(r => r.cells[0].textContent) }"""
    everything = tab.run(f"({shown})('')")
    saved = tab.run(f"({shown})('GRADIENTS')")
    assert 0 < len(saved) < len(everything) and set(saved) <= {"gradients"} | set(everything)
    assert tab.run(f"({shown})('nothing has this')") == []


# ---- two profiles ----------------------------------------------------------------------------------------------------

def test_compare_by_what_a_row_says(tmp_path):
    """By shape, reason or stack, with a profile or its file. The rows add up."""
    before, after = lstm(10), lstm(20)
    before.save(tmp_path / "before.json")
    for by in ("operation", "category", "line", "shape", "why", "stack"):
        found = after.compare(tmp_path / "before.json", by)
        assert found.rows == after.compare(before, by).rows
        assert sum(r.change for r in found.rows) == found.change > 0 and not found.note
        assert max(map(len, repr(found).splitlines())) <= 120
    assert after.compare(before, "shape").rows[0].name == "(16, 32) float32"
    assert "sigmoid needs its output" in after.compare(before, "why").rows[0].name
    stack = after.compare(before, "stack").rows[0].name
    assert re.search(rf":{line('[state]')} cell > tests/\S+:{line('[gate]')} gate$", stack)


def test_compare_reads_the_first_line(tmp_path):
    """compare() does not read the events of a trace, because the file may be large."""
    p = training(1)
    p.save(tmp_path / "t.json")
    head = (tmp_path / "t.json").read_text().partition("\n")[0]
    (tmp_path / "head.json").write_text(head + "\n" + "no json at all\n" * 3)
    assert p.compare(tmp_path / "head.json").change == 0
    (tmp_path / "other.json").write_text(json.dumps(json.loads((tmp_path / "t.json").read_text()), indent=1))
    assert p.compare(tmp_path / "other.json").change == 0       # rewritten by another program
    (tmp_path / "picture.json").write_bytes(b"\x89PNG\xff\xfe")
    with pytest.raises(ValueError, match="picture.json' has no peak in it; pass a .json that memory.profile's save"):
        p.compare(tmp_path / "picture.json")


def test_compare_says_when_two_did_not_do_the_same(tmp_path):
    one, three = training(1), training(3)
    one.save(tmp_path / "one.json")
    for other in (one, tmp_path / "one.json"):
        found = three.compare(other)
        assert found.note == ("the two did not run the same number of steps (backward 1 before, 3 now; update 1 "
                              "before, 3 now)")
        assert repr(found).splitlines()[1] == f"note: {found.note}"
    assert three.compare(training(3)).note == "" and "note" not in repr(three.compare(three))
    with cg.memory.profile() as p: cg.ones(1)
    assert p.compare(one).note == "only the run before was recorded for backward"
    assert one.compare(p).note == "only the run now was recorded for backward"


def test_compare_has_one_meaning_of_before():
    old = cg.zeros(1000)
    with cg.memory.profile() as p: cg.ones(10)
    del old
    with cg.memory.profile() as q: cg.ones(10)
    for by in ("operation", "line", "shape", "stack"):
        rows = {r.name: r.change for r in q.compare(p, by).rows}
        assert rows["(alive before the profile)"] == -4000 and "before" not in rows


# ---- paths -----------------------------------------------------------------------------------------------------------

def test_all_kinds_of_paths(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    p = training(1)
    for write, suffix in ((p.save, ".html"), (p.save, ".json"), (p.plot, ".svg"), (p.flame, ".SVG")):
        for kind in (str, Path, str.encode):
            name = f"{kind.__name__}{write.__name__}{suffix}"
            write(kind(name))
            assert (tmp_path / name).stat().st_size > 500
    assert p.compare(b"strsave.json").change == 0
    made = sorted(tmp_path.iterdir())
    for write, suffix in ((p.save, ".html"), (p.plot, ".png"), (p.flame, ".svg")):
        for wrong in (None, 3, 1.5, [], "", b"", tmp_path, str(tmp_path), "x", f"x{suffix}.txt"):
            message = rf"^{write.__name__}: (the path of|the (report|picture) must be)"
            with pytest.raises((TypeError, ValueError), match=message):
                write(wrong)
    assert sorted(tmp_path.iterdir()) == made       # writes no other files
