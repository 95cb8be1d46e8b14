"""The causes in memory.profile: stacks, shapes, what holds a buffer and why, phases; and the comparison of two runs."""

import gc
import json
import re
import time
import weakref
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest

import cygrad as cg
from cygrad.memory import profiling
from cygrad.drawing.page import picture
from cygrad.drawing.scales import byte_unit, seconds_unit, ticks

FILE = Path(__file__)
SVG = "{http://www.w3.org/2000/svg}"


def line(text, nth=0):
    """The number of the nth line of this file that contains `text`."""
    return [i for i, s in enumerate(FILE.read_text().splitlines(), 1) if text in s][nth]


def row(p, operation, category=None, mark=None):
    """The row of the peak with an operation and the line with a mark."""
    found = [r for r in p.at_peak() if r.operation == operation and category in (None, r.category)
             and (mark is None or r.line.endswith(f":{line(mark)}"))]
    assert len(found) == 1, found
    return found[0]


def random(*shape):
    return cg.tensor(np.random.default_rng(0).normal(0, 0.1, shape).astype("f4"))


def weights(*shapes):
    return [random(*shape).attach_grad() for shape in shapes]


# ---- two nets --------------------------------------------------------------------------------------------------------

def project(x, w):
    return cg.linear(x, w)                          # [project]


def attention(x, wq, wk, wv):
    q, k, v = (cg.permute(cg.reshape(project(x, w), (*x.shape[:2], 4, -1)), (0, 2, 1, 3)) for w in (wq, wk, wv))
    scores = cg.softmax(q @ cg.swapaxes(k, -1, -2))     # [scores]
    return cg.reshape(cg.permute(scores @ v, (0, 2, 1, 3)), x.shape)


def block(x, wq, wk, wv, up, down, g, b):
    x = x + attention(cg.layer_norm(x, g, b), wq, wk, wv)
    return x + project(cg.gelu(project(cg.layer_norm(x, g, b), up)), down)


def transformer(length, wide=4):
    parameters = weights((32, 32), (32, 32), (32, 32), (32 * wide, 32), (32, 32 * wide), (32,), (32,))
    x = random(2, length, 32)
    with cg.memory.profile() as p:
        with cg.record():
            loss = block(x, *parameters).mean()
        loss.backward()
    return p


def gate(f, z):
    return f(z)                                     # [gate]


def cell(x, h, c, wx, wh):
    i, f, g, o = cg.split(cg.linear(x, wx) + cg.linear(h, wh), 4, axis=-1)
    c = gate(cg.sigmoid, f) * c + gate(cg.sigmoid, i) * gate(cg.tanh, g)    # [state]
    return gate(cg.sigmoid, o) * cg.tanh(c), c      # [out]


def lstm(steps):
    parameters = weights((128, 32), (128, 32))
    xs = [random(16, 32) for _ in range(steps)]
    with cg.memory.profile() as p:
        with cg.record():
            h = c = cg.zeros((16, 32))
            for x in xs: h, c = cell(x, h, c, *parameters)
            loss = h.mean()
        loss.backward()
    return p


def page_rows(p, path):
    """The cells of the first table of the page."""
    p.save(path)
    table = re.search(r'<table id="peak">.*?</table>', path.read_text(), re.S)[0]
    found = re.findall(r"<tr>(.*?)</tr>", table)[1:]
    return [[re.sub("<[^>]*>", " ", cell).strip() for cell in re.findall(r"<td[^>]*>(.*?)</td>", r)] for r in found]


def test_a_transformer_with_long_sequences(tmp_path):
    """The scores grow with the square of the length, so the first two rows are the scores and their gradient."""
    p = transformer(256)
    first, second = p.at_peak()[:2]
    assert (first.operation, second.operation) == ("matmul (backward)", "softmax")
    assert first.why == "a pending gradient" and first.shapes[(2, 4, 256, 256), "float32"] == 1
    assert (second.category, second.line) == ("saved", f"tests/memory/{FILE.name}:{line('[scores]')}")
    assert second.shape == "(2, 4, 256, 256) float32" and second.why == "softmax needs its output"
    assert first.bytes + second.bytes > 0.75 * p.peak_bytes
    assert [f[2] for f in next(iter(second.stacks))[-2:]] == ["block", "attention"]
    cells = page_rows(p, tmp_path / "t.html")[1]
    assert cells[1] == "softmax" and cells[4] == "softmax needs its output" and "scores = cg.softmax(" in cells[2]
    assert "at tests/" in p.advice()[0].text and "by softmax at" in p.advice()[0].text


def test_a_transformer_with_a_wide_network(tmp_path):
    """Short sequences and a hidden layer 32 times as wide: the input of gelu, which a helper made, and its output."""
    p = transformer(16, wide=32)
    saved = [r for r in p.at_peak() if r.category == "saved"][:2]
    assert {r.operation for r in saved} == {"linear", "gelu"}
    inner = next(r for r in saved if r.operation == "linear")
    assert "gelu needs its input" in inner.kept_by and inner.kept_by["gelu needs its input"] == 1
    assert inner.shapes[(2, 16, 1024), "float32"] == 1 and inner.buffers == 4
    table = p.table(by="why").splitlines()
    assert max(map(len, table)) <= 120              # long text is wrapped
    first = next(k for k, text in enumerate(table) if " linear " in text and f":{line('[project]')}" in text)
    last = next(k for k in range(first + 1, len(table)) if re.match(" *[0-9,]+  ", table[k]))
    shape, why, end = (table[1].index(name) for name in ("shape", "why", "line"))
    cells = [" ".join(text[left:right].strip() for text in table[first:last]).strip()
             for left, right in ((shape, why), (why, end))]
    assert cells == [inner.shape, inner.why] and "gelu needs its input" in inner.why
    assert "matmul needs its second input (of 2), its first input (of 1)" in inner.why
    callers = {stack[-2][2]: nbytes for stack, nbytes in inner.stacks.items()}     # the helper hides no caller
    assert callers["block"] == 2 * 16 * 1024 * 4 and sum(callers.values()) <= inner.bytes


def test_an_lstm(tmp_path):
    """Every step saves its gates. The first row names them, with their number, reason and line."""
    p = lstm(50)
    first = p.at_peak()[0]
    assert (first.category, first.operation) == ("saved", "sigmoid") and first.line.endswith(f":{line('[gate]')}")
    assert first.buffers == 3 * 49 and first.shape == "147 x (16, 32) float32"
    assert first.why == "sigmoid needs its output; mul needs its first input"
    assert {stack[-2][1:]: nbytes for stack, nbytes in first.stacks.items()} == {
        (line("[state]"), "cell"): 2 * 49 * 2048, (line("[out]"), "cell"): 49 * 2048}
    cells = page_rows(p, tmp_path / "l.html")[0]
    assert cells[1] == "sigmoid" and cells[3] == "147 x (16, 32) float32" and "return f(z)" in cells[2]
    tree = p.table(by="stack")
    assert re.search(rf":{line('[state]')} cell +[\d,]+ .*\n    tests/\S+:{line('[gate]')} gate .*\n"
                     rf"      sigmoid \[saved\]", tree)


# ---- stacks ----------------------------------------------------------------------------------------------------------

def make(n):
    return cg.ones(n)                               # [make]


def twice(n):
    return make(n), make(n)                         # [twice]


def numbers_of(text):
    """Depth and bytes of each line of a tree."""
    return [((len(s) - len(s.lstrip())) // 2, int(re.search(r"([\d,]+) +[\d.]+%", s)[1].replace(",", "")))
            for s in text.splitlines()[2:]]


def test_stacks_add_up():
    with cg.memory.profile() as p:
        a = make(10)                                # [a]
        b = twice(100)                              # [b]
        c = (lambda: make(1000))()                  # [c]
    made = row(p, "tensor")
    assert made.bytes == p.peak_bytes == 4 * (10 + 200 + 1000) and sum(made.stacks.values()) == made.bytes
    ends = {tuple(f[2] for f in stack[-3:]) for stack in made.stacks}
    assert {(line("[a]"), 40), (line("[b]"), 800), (line("[c]"), 4000)} <= {
        (frame[1], nbytes) for stack, nbytes in made.stacks.items() for frame in stack} and len(made.stacks) == 3
    assert ("test_stacks_add_up", "twice", "make") in ends and ("test_stacks_add_up", "<lambda>", "make") in ends
    found = numbers_of(p.table(by="stack"))
    assert sum(n for depth, n in found[:-1] if depth == 0) == found[-1][1] == p.peak_bytes
    for k, (depth, n) in enumerate(found[:-1]):     # a function's bytes are those of its callees
        below = []
        for d, m in found[k + 1:-1]:
            if d <= depth: break
            if d == depth + 1: below.append(m)
        assert not below or sum(below) == n
    del a, b, c


def test_the_same_function_from_the_same_line_through_different_callers():
    """Frames reuse the same addresses, and the callers distinguish them."""
    def one(n): return make(n)                      # [one]
    def two(n): return make(n)                      # [two]
    with cg.memory.profile() as p:
        held = [f(n) for n, f in ((1, one), (10, two), (100, one), (1000, two))]
    found = {}
    for stack, nbytes in row(p, "tensor").stacks.items(): found[stack[-2][2]] = nbytes
    assert found == {"one": 4 * 101, "two": 4 * 1010}
    del held


def test_deep_generators_and_threads():
    def deep(n, f): return deep(n - 1, f) if n else f()

    def generated():
        yield make(1)
        yield make(10)

    with cg.memory.profile() as p:
        held = [deep(300, lambda: make(100)), *generated()]         # more frames than are read
    stacks = {nbytes: [f[2] for f in stack] for stack, nbytes in row(p, "tensor").stacks.items()}
    assert len(stacks[400]) == 257 and stacks[400][0] == "(callers beyond 256 frames)"
    assert stacks[400][-3:] == ["deep", "<lambda>", "make"]
    assert stacks[4][-2:] == stacks[40][-2:] == ["generated", "make"]
    del held


def test_a_profile_keeps_no_frame():
    class Local:
        pass

    def work():
        local = Local()
        gone.append(weakref.ref(local))
        return make(10)

    gone = []
    with cg.memory.profile() as p:
        work()
        assert gone[0]() is None
    p.at_peak()
    assert gone[0]() is None


def test_flame_graph(tmp_path):
    p = lstm(10)
    p.flame(tmp_path / "peak.svg")
    text = (tmp_path / "peak.svg").read_text()
    assert not re.search(r"(?<!xmlns=.)https?:|url\(|@import|<script", text)
    root = ET.fromstring(text)
    rects = [(r.get("class"), float(r.get("x")), float(r.get("y")), float(r.get("width")))
             for g in root.iter(SVG + "g") if g.find(SVG + "title") is not None for r in g.iter(SVG + "rect")]
    lowest = max(y for _, _, y, _ in rects)
    assert [w for _, _, y, w in rects if y == lowest] == [1100]
    tops = [(c, w) for c, _, _, w in rects if c != "function"]
    by_category = {}
    for c, w in tops: by_category[c] = by_category.get(c, 0) + w / 1100 * p.peak_bytes
    for r in p.at_peak(): by_category[r.category] = by_category.get(r.category, 0) - r.bytes
    assert all(abs(left) < 0.02 * p.peak_bytes for left in by_category.values())
    for y in {y for _, _, y, _ in rects}:           # no boxes overlap in a row
        spans = sorted((x, x + w) for _, x, at, w in rects if at == y)
        assert all(a[1] <= b[0] + 0.02 for a, b in zip(spans, spans[1:], strict=False))
    titles = [t.text for t in root.iter(SVG + "title")]
    assert any(re.match(rf"tests/\S+:{line('[gate]')} gate: .* bytes", t) for t in titles)


def test_names_cannot_write_the_flame_graph(tmp_path):
    script = tmp_path / "<b>&.py"
    script.write_text("import cygrad as cg\ndef f(): return cg.zeros(10)\nx = f()\n")
    names = {}
    with cg.memory.profile() as p:
        exec(compile(script.read_text(), str(script), "exec"), names)
    names.clear()                                   # (the function and its globals are a cycle)
    p.flame(tmp_path / "f.svg")
    titles = [t.text for t in ET.parse(tmp_path / "f.svg").getroot().iter("{http://www.w3.org/2000/svg}title")]
    assert any(str(script) in t for t in titles)


# ---- shapes, counts, reasons -----------------------------------------------------------------------------------------

def test_shapes_and_counts():
    with cg.memory.profile() as p:
        held = [cg.zeros((2, n % 3)) for n in range(6)] + [cg.zeros(4, dtype="int64"), cg.tensor(1.0)]     # [held]
        y = cg.sort(cg.ones((3, 4)))
    made = row(p, "tensor", mark="[held]")
    assert made.shapes == {((2, 1), "float32"): 2, ((2, 2), "float32"): 2, ((4,), "int64"): 1, ((), "float32"): 1}
    assert made.buffers == 6 and made.shape == "2 x (2, 1) float32, 2 x (2, 2) float32 and 2 more"
    del held, y


KEEPS = {                   # a computation on x: the operation that made the saved value, and the reasons
    "gelu needs its input": ("exp", lambda x: cg.gelu(cg.exp(x))),
    "exp needs its output": ("exp", lambda x: cg.exp(x)),
    "mul needs its second input": ("exp", lambda x: cg.zeros(64).requires_grad_() * cg.exp(x)),
    "relu needs the signs of its output": ("relu", lambda x: cg.sum(cg.relu(x))),
}


@pytest.mark.parametrize("reason", KEEPS)
def test_reasons(reason):
    operation, f = KEEPS[reason]
    x = cg.linspace(-1, 1, 64).requires_grad_()
    with cg.memory.profile() as p:
        with cg.record():
            y = f(x)
        big = cg.zeros(10000)
    found = row(p, operation, "saved")
    assert reason in found.kept_by and reason in found.why
    del y, big


def test_who_has_let_go_is_not_named():
    """Two operations save each operand. At the peak, which is in backward, one of them has run."""
    x = cg.linspace(-1, 1, 1000).requires_grad_()
    held = []
    with cg.memory.profile() as p:
        with cg.record():
            y = cg.exp(x)                           # saved by exp (output), gelu and square (input)
            z = cg.gelu(y)
            w = cg.square(y)
        w.backward()
        held.append(cg.zeros(100000))
    assert row(p, "exp").kept_by == {"gelu needs its input": 1}     # exp itself and square have run
    del y, z, w, held


def test_reasons_are_those_of_the_graph():
    """At any moment the slots of memory.why are those of the profile."""
    def count(t):
        return sum(n for n, who in cg.memory.why(t).entries if who.startswith("saved for backward"))

    x = random(8, 8).requires_grad_()
    for retain in (False, True):
        with cg.memory.profile() as p:
            with cg.record():
                a = cg.exp(x)
                b = cg.tanh(a)
                c = a * b
                d = cg.softmax(c @ a)
            cg.backward(b, retain_graph=retain)
            big = cg.zeros(100000)
            expected = {"exp": count(a), "tanh": count(b), "mul": count(c), "softmax": count(d)}
        for operation, n in expected.items():
            found = row(p, operation)
            assert sum(k for r, k in found.kept_by.items() if " needs " in r) == n, (retain, operation)
        assert sum(expected.values()) == 7 if retain else sum(expected.values()) < 7
        x.grad = None
        del a, b, c, d, big


def test_what_hooks_pack_is_kept_by_nobody():
    x = random(100).requires_grad_()
    with cg.memory.profile() as p:
        with cg.autograd.saved_tensors_hooks(lambda t: t.numpy().copy(), cg.tensor), cg.record():
            y = cg.exp(x)
        big = cg.zeros(1000)
    assert row(p, "exp").kept_by == {"in use, or held by the program": 1}
    del y, big


def test_gradients_stay_or_are_on_their_way():
    x = random(1000).requires_grad_()
    with cg.memory.profile() as p:
        with cg.record():
            y = cg.exp(cg.square(x) + 1.0)
        y.backward(cg.ones(1000))
        big = cg.zeros(100000)
    assert {r.why for r in p.at_peak() if r.category == "gradients"} == {"a variable's gradient"}
    (x,), held = weights((10,)), []
    with cg.memory.profile() as p:
        with cg.record():
            y = x * cg.ones((100, 10))
            z = y * 2.0
        y.register_hook(lambda g: held.append(cg.zeros(100000)))
        z.backward()
    assert {r.operation: r.why for r in p.at_peak() if r.category == "gradients" and r.operation != "before"} == {
        "head gradient": "a pending gradient"}   # (which mul overwrites)
    held.clear()
    del y, z, big


def test_folded_logs_know_the_same(monkeypatch):
    monkeypatch.setattr(profiling, "MOST_EVENTS", 1 << 20)
    with cg.memory.profile() as all_of_it:
        monkeypatch.setattr(profiling, "MOST_EVENTS", 64)
        with cg.memory.profile() as some:
            lstm(12)
            lstm(4)

    def told(p):
        return [(r, r.buffers, r.shapes, {k: n for k, n in r.kept_by.items() if "gradient" not in k}, r.stacks)
                for r in p.at_peak()]

    assert told(some) == told(all_of_it)
    assert [f[:3] for f in some._phases()] == [f[:3] for f in all_of_it._phases()]
    assert some.table(by="stack") == all_of_it.table(by="stack")


# ---- phases and axes -------------------------------------------------------------------------------------------------

def training(steps, pause=0.0):
    x, (w,) = random(64, 32), weights((32, 32))
    solver = cg.optim.Adam()
    solver.set_parameters([w])
    with cg.memory.profile() as p:
        for _ in range(steps):
            with cg.record():
                loss = (cg.gelu(x @ w) ** 2).mean()
            loss.backward()
            time.sleep(pause)
            solver.update()
    return p


def test_phases():
    p = training(3)
    phases = p._phases()
    assert [name for name, *_ in phases] == ["forward", "backward", "update"] * 3
    assert all(first < last and begun <= ended for _, first, last, begun, ended in phases)
    assert all(a[2] <= b[1] and a[4] <= b[3] for a, b in zip(phases, phases[1:], strict=False))
    assert sum(last - first for _, first, last, _, _ in phases) >= 0.9 * len(p._log)
    with cg.memory.profile() as p:
        cg.zeros(10)
    assert p._phases() == []


def test_idle_time_takes_no_room(tmp_path):
    """Two runs of one program, of which one waits, have the same pictures by events."""
    drawn = []
    for pause in (0, 0.03):
        p = training(2, pause)
        stacked = [(event, seconds, list(totals)) for event, seconds, totals in p._course()]
        drawn.append([picture(stacked, p._phases(), axis, stacked[-1][axis], p.peak_bytes, 3) for axis in (0, 1)])
    assert drawn[0][0] == drawn[1][0] and drawn[0][1] != drawn[1][1]
    assert all(drawn[0][0].count(f">{name}</title>") == 2 for name in ("forward", "backward", "update"))
    for axis in ("events", "time"):
        p.plot(tmp_path / f"{axis}.svg", axis=axis)
    assert (tmp_path / "events.svg").read_text() != (tmp_path / "time.svg").read_text()


@pytest.mark.parametrize("most", [0, 1, 3, 7, 10, 19.9, 47, 123, 999, 1000, 4.7e6, 0.034, 1 << 40])
def test_ticks_are_round(most):
    found = ticks(most)
    assert found[0] == 0 and len(found) <= 7 and (len(found) >= 3 or most == 0) and found[-1] <= most * 1.001
    if len(found) > 1:
        step = found[1] - found[0]
        assert f"{step:.3e}"[0] in "125" and f"{step:.3e}"[1:5] == ".000"
        assert np.allclose(np.diff(found), step)
    assert all(tick == int(tick) for tick in ticks(most, whole=True))


def test_units():
    assert [byte_unit(n)[1] for n in (0, 2047, 2048, 3 << 20, 5 << 30, 9 << 40)] == [
        "bytes", "bytes", "KiB", "MiB", "GiB", "TiB"]
    assert [seconds_unit(s)[1] for s in (0, 1e-6, 1.9e-3, 2e-3, 1.5, 3)] == ["us", "us", "us", "ms", "ms", "s"]


def test_labels_of_the_page_are_round(tmp_path):
    p = transformer(64)
    p.save(tmp_path / "t.html")
    labels = re.findall(r'<text class="tick"[^>]*>([\d,.]+) (KiB|MiB|events|ms|us|)</text>',
                        (tmp_path / "t.html").read_text())
    assert len(labels) >= 9 and all(len(n.replace(",", "").replace(".", "").strip("0")) <= 2 for n, _ in labels)


# ---- two profiles ----------------------------------------------------------------------------------------------------

def test_compare(tmp_path):
    before, after = lstm(10), lstm(20)
    before.save(tmp_path / "before.json")
    for other in (before, tmp_path / "before.json", str(tmp_path / "before.json")):
        for by in ("operation", "category", "line"):
            found = after.compare(other, by=by)
            assert (found.before, found.after) == (before.peak_bytes, after.peak_bytes)
            assert found.change == sum(r.change for r in found.rows) == found.after - found.before
            assert [abs(r.change) for r in found.rows] == sorted((abs(r.change) for r in found.rows), reverse=True)
    found = after.compare(before)
    assert found.rows[0] == ("sigmoid", found.rows[0].before, found.rows[0].before + 30 * 2048, 30 * 2048)
    text = repr(found).splitlines()
    assert text[1].split() == ["operation", "before", "now", "change"] and text[2].startswith("sigmoid")
    assert text[-1].split()[0] == "all" and int(text[-1].split()[-1].replace(",", "")) == found.change
    assert repr(before.compare(before)).splitlines()[2].startswith("all")


def test_trace_has_phases_and_shapes(tmp_path):
    p = training(2)
    p.save(tmp_path / "t.json")
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    assert [e["name"] for e in events if e.get("cat") == "phase"] == ["forward", "backward", "update"] * 2
    shapes = {e["args"]["shape"] for e in events if e["ph"] == "b"}
    assert {"(64, 32) float32", "() float32"} <= shapes


def test_the_collector_does_not_run_for_a_profile():
    """Reading stacks makes no objects that the collector counts."""
    if not hasattr(gc, "get_count"): pytest.skip("no counts")
    with cg.memory.profile():
        twice(1)
        gc.collect()
        before = gc.get_count()[0]
        for _ in range(200): twice(1)
        assert gc.get_count()[0] - before < 50
