"""Chapters 5, 11, 13, 14 and 20: views, the graph of forty lines, scopes, the parts of an operator, a memory report."""

import json
import re
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

from drawing import BACKWARD, CATEGORIES, EDGE, FORWARD, GREY, box, element, line, page, svg, text

import cygrad as cg

ROOT = Path(__file__).parents[2]
WALKTHROUGH = ROOT / "docs" / "walkthrough"

# ---- chapter 11: views -----------------------------------------------------------------------------------------------

def views():
    """One buffer of six numbers, and the bytes of it that five tensors read."""
    x = cg.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    start, cell = x.numpy().ctypes.data, 52
    parts = [text(20, 22, "the buffer, with the offset of each number in bytes", weight="bold")]
    for i, value in enumerate(x.reshape(-1).tolist()):
        parts.append(box(20 + cell * i, 32, cell, 28, FORWARD, f"{value:.0f}"))
        parts.append(text(22 + cell * i, 74, f"{4 * i}", color=GREY))
    shown = (("x", x), ("x.T", x.T), ("x[:, ::2]", x[:, ::2]), ("x[:, ::-1]", x[:, ::-1]),
             ("cg.broadcast_to(x[1], (4, 3))", cg.broadcast_to(x[1], (4, 3))))
    assert cg.memory.stats()["live_bytes"] == x.nbytes
    for i, (name, view) in enumerate(shown):
        left, top, array = 20 + 230 * (i % 3), 110 + 150 * (i // 3), view.numpy()
        parts.append(text(left, top, name, weight="bold"))
        parts.append(text(left, top + 16, f"shape {view.shape}, strides {view.strides}", color=GREY))
        for row in range(array.shape[0]):
            for column in range(array.shape[1]):
                offset = array[row:, column:].ctypes.data - start
                parts.append(box(left + 40 * column, top + 24 + 24 * row, 40, 24, FORWARD, f"{offset}"))
    return svg(720, 390, parts)


def strides():
    """The page with a view of twelve numbers, whose element one selects."""
    x = cg.arange(12, dtype="float32").reshape(3, 4)
    start = x.numpy().ctypes.data
    shown = (("x", x), ("x.T", x.T), ("x[1:, 1:3]", x[1:, 1:3]), ("x[:, ::2]", x[:, ::2]),
             ("x[::-1]", x[::-1]), ("x.reshape(2, 6)", x.reshape(2, 6)),
             ("cg.broadcast_to(x[1], (3, 4))", cg.broadcast_to(x[1], (3, 4))))
    return page("strides", [{"name": name, "shape": view.shape, "strides": view.strides,
                             "offset": (view.numpy().ctypes.data - start) // x.itemsize} for name, view in shown])


# ---- chapter 5: the graph of z = x * y + x ---------------------------------------------------------------------------

def scalars():
    """The classes and functions of the chapter's listing."""
    (page,) = WALKTHROUGH.glob("05-*.md")
    names = {}
    exec(re.search(r"```python\n(.*?)```", page.read_text(), re.S)[1], names)
    return names["Scalar"]


def scalar_graph():
    """The numbers of the expression with their gradients, and the derivative on each edge."""
    Scalar = scalars()
    x, y = Scalar(3.0), Scalar(4.0)
    product = x * y
    z = product + x
    z.backward()
    places = {x: (40, 150), y: (40, 40), product: (260, 40), z: (480, 150)}
    parts = []
    for node in (product, z):
        right, below = places[node]
        for parent, derivative in node.parents:
            left, above = places[parent]
            x1, y1, x2, y2 = left + 130, above + 24, right, below + 24
            parts.append(line(x1, y1, x2, y2))
            parts.append(text((x1 + x2) / 2, (y1 + y2) / 2 - 6, f"{derivative:g}", "middle", "bold", "#b91c1c"))
    for node, name in ((x, "x"), (y, "y"), (product, "x * y"), (z, "x * y + x")):
        left, above = places[node]
        parts += [element("rect", x=left, y=above, width=130, height=48, rx=6, fill=FORWARD, stroke=EDGE),
                  text(left + 65, above + 20, f"{name} = {node.value:g}", "middle", "bold"),
                  text(left + 65, above + 38, f"gradient {node.grad:g}", "middle")]
    parts.append(text(40, 226, "made first", color=GREY))
    parts.append(text(610, 226, "made last, visited first by backward", "end", color=GREY))
    return svg(650, 240, parts)


# ---- chapter 13: scopes ----------------------------------------------------------------------------------------------

SCOPES = ((0, "record()"), (1, "pause()"), (0, "record()"), (1, "no_grad()"), (0, "record()"), (1, "predict_mode()"),
          (2, "train_mode()"), (0, "record(train_mode=False)"))


def scopes():
    """The two flags inside each scope of a program, as they are there."""
    parts = [text(20, 22, "program", weight="bold"), text(330, 22, "recording", weight="bold"),
             text(430, 22, "training", weight="bold")]
    lines, stack = [("outside", 0, cg.is_recording(), cg.is_training())], []
    for depth, scope in SCOPES:
        while len(stack) > depth: stack.pop().close()
        stack.append(ExitStack())
        stack[-1].enter_context(eval(f"cg.{scope}", {"cg": cg}))
        lines.append((f"with cg.{scope}:", depth, cg.is_recording(), cg.is_training()))
    while stack: stack.pop().close()
    lines.append(("outside", 0, cg.is_recording(), cg.is_training()))
    for i, (words, depth, *flags) in enumerate(lines):
        y = 34 + 26 * i
        parts.append(text(20 + 24 * depth, y + 17, words))
        parts += [box(330 + 100 * k, y, 90, 24, color if flag else "#f8fafc", "on" if flag else "off")
                  for k, (flag, color) in enumerate(zip(flags, (FORWARD, BACKWARD), strict=True))]
    return svg(540, 34 + 26 * len(lines) + 8, parts)


CHOICES = "pause()", "record()", "record(train_mode=False)", "no_grad()", "train_mode()", "predict_mode()"


def modes():
    """The page with three scopes to choose. A scope sets a flag if it is the same inside whatever it is outside."""
    found = {}
    for scope in CHOICES:
        seen = []
        for outside in False, True:
            with cg.autograd.set_grad_enabled(outside), cg.train_mode() if outside else cg.predict_mode():
                with eval(f"cg.{scope}", {"cg": cg}): seen.append((cg.is_recording(), cg.is_training()))
        found[scope] = [a if a == b else None for a, b in zip(*seen, strict=True)]
    return page("modes", found)


# ---- chapter 20: the parts of an operator ----------------------------------------------------------------------------

def operator():
    """What tanh declares, and what runs in forward, in backward, and in backward with create_graph."""
    row = next(row for row in cg.ops.TABLE if row.name == "tanh")
    formula = re.sub(r"\s{2,}", ",  ", type(row.operator).__doc__.partition("\n")[0])
    source = ROOT.joinpath("cygrad/ops/elementwise/functions.pyx").read_text()
    declared = re.search(r"cdef class Tanh\(.*?dx = \"(.*?)\"", source, re.S)[1]
    x = cg.tensor([0.5]).attach_grad()
    with cg.record(): y = cg.tanh(x)
    saved = y.grad_fn.saved_bytes
    (dx,) = cg.autograd.grad(y, [x], create_graph=True, retain_graph=True)
    names, waiting = [], [dx.grad_fn]
    while waiting:
        node = waiting.pop(0)
        if node.name() in ("leaf", "tanh") or node.name() in names: continue
        names.append(node.name())
        waiting += [following for following, _ in node.next_functions if following is not None]
    rows = (("the operator", formula, FORWARD), ("forward", "the kernel tanh writes y", FORWARD),
            ("the node", f"saves the output: {saved} bytes for one number", "#e2e8f0"),
            ("backward", f"the kernel {declared.split()[0]} reads g and the output, and writes dx", BACKWARD),
            ("create_graph", f"the formula is recorded as {', '.join(reversed(names))}", BACKWARD))
    parts = []
    for i, (name, what, color) in enumerate(rows):
        y = 10 + 50 * i
        parts += [text(20, y + 22, name, weight="bold"), box(140, y, 480, 34, color, what)]
        if i < 3: parts.append(line(380, y + 34, 380, y + 50))
    parts.append(element("path", d="M620,127 h20 v100 h-20", fill="none", stroke=EDGE))
    return svg(660, 260, parts)


# ---- chapter 14: a step in bytes -------------------------------------------------------------------------------------

def steps(named):
    """The events of the chapter's second step: phase, kind, operation, bytes and category, and the live bytes by
    category after it. named: the hidden values have the name h until the step returns."""
    w1, w2, w3 = (cg.ones(shape).attach_grad() for shape in ((128, 64), (128, 128), (10, 128)))
    images, labels = cg.ones((256, 64)), cg.zeros(256, "int64")
    solver = cg.optim.Adam()
    solver.set_parameters([w1, w2, w3])
    seen, buffers = [], {}

    def watch(event):
        kind, buffer, nbytes, category = event
        if kind == "allocate": buffers[buffer] = len(seen)
        seen.append([phase, kind, buffers.get(buffer), nbytes, category, cg.memory.stats()["by_category"]])

    def network():
        h = cg.relu(cg.linear(images, w1))
        return cg.linear(cg.relu(cg.linear(h, w2)), w3)

    def step():
        nonlocal phase
        phase = "forward"
        with cg.record():
            if named:
                h = cg.relu(cg.linear(images, w1))
                h = cg.relu(cg.linear(h, w2))
                loss = cg.cross_entropy(cg.linear(h, w3), labels)
            else: loss = cg.cross_entropy(network(), labels)
        phase = "backward"
        loss.backward()
        phase = "update"
        solver.update()

    phase = ""
    step()
    with cg.memory.profile() as profile, cg.memory.events(watch): step()
    with TemporaryDirectory() as folder:
        profile.save(Path(folder, "trace.json"))
        events = json.loads(Path(folder, "trace.json").read_text())["traceEvents"]
    begun = sorted((e for e in events if e["ph"] == "b"), key=lambda e: e["ts"])
    allocated = (k for k, event in enumerate(seen) if event[1] == "allocate")
    names = dict(zip(allocated, (e["name"] for e in begun), strict=True))
    for event in seen: event[2] = names.get(event[2], "")
    return seen


def stepping():
    """The page with the events of two steps, one with the name h and one without."""
    found = [[[*event[:5], [event[5][name] for name in CATEGORIES]] for event in steps(named)]
             for named in (True, False)]
    return page("report", {"colors": CATEGORIES, "steps": found})


def report():
    """The live bytes of the chapter's second step, by category, after each event."""
    seen = steps(True)
    moments, phases = [event[5] for event in seen], [event[0] for event in seen]
    sums = [sum(moment.values()) for moment in moments]
    peak, across = max(sums), 600 / len(sums)
    parts = []
    for k, moment in enumerate(moments):
        x, y = 30 + across * k, 300.0
        for category in CATEGORIES:
            height = 250 * moment[category] / peak
            if not height: continue
            y -= height
            about = f"event {k}, {category}: {moment[category]:,} bytes"
            parts.append(element("rect", element("title", about), x=x, y=y, width=across, height=height,
                                 fill=CATEGORIES[category]))
    x = 30 + across * (sums.index(peak) + 0.5)
    parts.append(line(x, 42, x, 300, stroke_dasharray="4 3"))
    parts.append(text(x, 38, f"peak {peak:,}", "middle"))
    for phase in dict.fromkeys(phases):
        first, count = phases.index(phase), phases.count(phase)
        parts.append(box(30 + across * first, 8, across * count, 18, "#f8fafc", phase, f"{phase}: {count} events"))
    for i, (category, color) in enumerate(CATEGORIES.items()):
        parts += [box(30 + 104 * i, 314, 12, 12, color, "", category), text(47 + 104 * i, 324, category)]
    return svg(660, 336, parts, 11)


FIGURES = {"views.svg": views, "strides.html": strides, "scalar-graph.svg": scalar_graph,
           "flow.html": lambda: page("flow"), "scopes.svg": scopes, "modes.html": modes, "operator.svg": operator,
           "report.svg": report, "report.html": stepping}
