"""Chapters 25 to 28: nets, buffers in an arena, addresses and times, a program and a loop."""

from pathlib import Path
from xml.sax.saxutils import escape

from drawing import BACKWARD, EDGE, FORWARD, GREY, box, element, label, page, svg

import cygrad as cg
from cygrad.demo.training import cnn, mlp
from cygrad.graph import Net, Workspace

MEASURED = Path(__file__).parents[2] / "benchmarks" / "results" / "nets.md"

def first():
    """The first net of the chapter, with its gradients."""
    net = Net("first")
    net.sum(net.square(net.linear(["x", "w", "b"])), "loss")
    net.add_gradient_operators(["loss"])
    return net


def branches():
    """A net in which two operators read one blob, with its gradients."""
    net = Net("branches")
    net.add([net.square("x"), net.exp("x")], "y")
    net.sum("y", "loss")
    net.add_gradient_operators(["loss"])
    return net


NEAR = 1e-4

def roots(turns=6):
    """Newton's iteration for the square roots of x, until all are near, and the gradient of their sum."""
    far, turn = Net("far"), Net("turn")
    far.any([far.greater([far.abs(far.sub([far.mul(["y", "y"]), "x"])), NEAR])], "some")
    turn.mul([turn.add(["y", turn.div(["x", "y"])]), 0.5], "next")
    for net in (far, turn): net.inputs = ["y", "x"]
    net = Net("roots")
    net.add_operator("While", ["x", "x"], "root", condition=far, body=turn, turns=turns)
    net.sum("root", "loss")
    net.add_gradient_operators(["loss"])
    return net


def product_with_exponential():
    """x x e^x: a net in which x is read three times, with its gradients."""
    net = Net("three readers")
    net.sum(net.mul([net.mul(["x", "x"], "p"), net.exp("x", "e")], "y"), "loss")
    net.add_gradient_operators(["loss"])
    return net


WALKED = {"linear, square, sum": first, "two readers of x": branches, "three readers of x": product_with_exponential}


def walked(net):
    """The operators of a net and its gradient operators, each of these with the place of the operator it belongs to."""
    forward = [o for o in net.operators if not o.is_gradient]
    backward, at = [], len(forward)
    for o in net.operators[len(forward):]:
        stem = o.type.removesuffix("_gradient")
        if stem != o.type: at = next(i for i in range(at - 1, -1, -1) if forward[i].type == stem)
        backward.append({"text": str(o), "inputs": o.inputs, "outputs": o.outputs,
                         "of": at if stem != o.type else None})
    return {"forward": [{"text": str(o), "inputs": o.inputs} for o in forward], "backward": backward}


def walk():
    """The page where the gradient operators of a net are written one by one."""
    return page("walk", {name: walked(make()) for name, make in WALKED.items()})


EXAMPLE = {"a": (2, 0, 1), "b": (2, 1, 3), "c": (3, 2, 3)}      # units of memory, first step, last step


def placements():
    """The buffers of EXAMPLE, placed in the order of their first step, and the largest first."""
    parts = []
    for left, title, offsets in ((30, "first step first: 7 units", {"a": 0, "b": 2, "c": 4}),
                                 (350, "largest first: 5 units", {"a": 0, "b": 3, "c": 0})):
        parts.append(label(left, 20, title, font_weight="bold"))
        for name, (units, begin, end) in EXAMPLE.items():
            top = 200 - 24 * (offsets[name] + units)
            parts.append(box(left + 60 * begin, top, 60 * (end + 1 - begin), 24 * units, FORWARD, f"{name}: {units}"))
        parts += [label(left + 60 * step + 10, 218, f"step {step}", fill=GREY) for step in range(4)]
    return svg(620, 228, parts)


def taken(r): return -(-r.nbytes // 64) * 64      # bytes of a row of a plan in the arena, where places are aligned


def fitted(rows):
    """The places of the buffers in this order: each as low as those before it allow that are live with it."""
    done = []
    for r in rows:
        offset = 0
        for other, place in sorted(((o, p) for o, p in done if o.first <= r.last and r.first <= o.last),
                                   key=lambda found: found[1]):
            if offset + taken(r) <= place: break
            offset = max(offset, place + taken(other))
        done.append((r, offset))
    return done


def packing():
    """The page where the buffers of a step of the convolutional net are placed one by one."""
    plan = training_net(cnn(), (64, 1, 8, 8)).plan()
    by_step = sorted(plan.rows, key=lambda r: r.first)
    most = max(place + taken(r) for r, place in fitted(by_step))
    return page("packing", {"buffers": [{"operator": r.operator, "nbytes": taken(r), "first": r.first, "last": r.last,
                                         "offset": r.offset} for r in plan.rows],
                            "bound": plan.bound_bytes, "most": max(most, plan.peak_bytes)})


def arena(model):
    """The plan of a training step: the buffers of the arena over the steps, in the form of rectangles."""
    plan = training_net(model, (64, 1, 8, 8)).plan()
    first, last = min(r.first for r in plan.rows), max(r.last for r in plan.rows)
    across, up = 600 / (last + 1 - first), 300 / plan.peak_bytes
    parts = [label(30, 20, f"{plan.peak_bytes:,} bytes, bound {plan.bound_bytes:,}", font_weight="bold"),
             element("rect", x=30, y=30, width=600, height=300, fill="none", stroke=GREY)]
    for r in plan.rows:
        about = f"{r.operator}: {r.nbytes:,} bytes at {r.offset:,}, steps {r.first} to {r.last}"
        parts.append(box(30 + (r.first - first) * across, 330 - (r.offset + r.nbytes) * up,
                         (r.last + 1 - r.first) * across, r.nbytes * up,
                         BACKWARD if "(backward)" in r.operator else FORWARD, r.operator, about))
    parts.append(label(30, 348, f"steps {first} to {last}", fill=GREY))
    return svg(660, 360, parts, 11)


def training_net(model, shape):
    """A captured training step of a model with Adam, on a batch of this shape with ten classes."""
    solver = cg.optim.Adam(model.parameters())

    def step(x, target):
        solver.zero_grad()
        with cg.record(): loss = cg.cross_entropy(model(x), target)
        loss.backward()
        solver.update()
        return loss

    return Net.capture(step, (shape, "float32"), ((shape[0],), "int64"))


def dropping():
    """A training step of a small net with dropout, for 16 rows."""
    cg.random.seed(0)
    nn = cg.nn
    return training_net(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 2)), (16, 4))


def program(net, rows):
    """The steps of its program for this many rows, the buffers in its arena, and how many numbers a run draws."""
    workspace = Workspace()
    workspace.feed("x", cg.ones((rows, 4)))
    workspace.feed("target", cg.zeros(rows, "int64"))
    plan, before = net.plan({"x": ((rows, 4), "float32"), "target": ((rows,), "int64")}), drawn()
    workspace.run(net)
    buffers = [{"operator": r.operator, "nbytes": r.nbytes, "offset": r.offset, "first": r.first, "last": r.last}
               for r in plan.rows]
    return {"steps": plan.steps, "buffers": buffers, "bytes": plan.peak_bytes, "drawn": drawn() - before}


def drawn(): return cg.random.default_generator.state[1]


def replay():
    """The page where a program runs step by step, for batches of two sizes."""
    net, position = dropping(), drawn()
    return page("replay", {"programs": {f"{rows} rows": program(net, rows) for rows in (16, 5)}, "position": position})


COLORS = {"input": "#cbd5e1", "parameter": "#c4d79b", ".grad": "#f0b49e", "arena": "#a5c9e1"}


def addresses():
    """Which memory each operator of a small training step reads (ring) and writes (disc)."""
    net = training_net(cg.nn.Sequential(cg.nn.Linear(4, 3), cg.nn.ReLU(), cg.nn.Linear(3, 10)), (8, 4))
    bound = {f"{name}_grad" for name in net.bindings}
    operators = [o for o in net.operators if o.type != "zero_grad"]
    kinds = {name: "input" if name in net.inputs and name not in net.bindings else "parameter" if name in net.bindings
             else ".grad" if name in bound else "arena" for o in operators for name in (*o.inputs, *o.outputs)}
    columns = [name for kind in COLORS for name in kinds if kinds[name] == kind]
    place = {name: 190 + 26 * k for k, name in enumerate(columns)}
    bottom = 40 + 24 * len(operators)
    parts = [element("rect", x=x - 12, y=28, width=24, height=bottom - 28, fill=COLORS[kinds[name]], opacity=0.5)
             + element("text", escape(name), transform=f"translate({x + 4},{bottom + 8}) rotate(90)")
             for name, x in place.items()]
    for kind in COLORS:
        x = min(place[name] for name in columns if kinds[name] == kind)
        parts.append(label(x - 12, 20, kind, font_weight="bold"))
    for k, o in enumerate(operators):
        y = 44 + 24 * k
        parts.append(label(8, y + 4, o.type))
        for n in dict.fromkeys(o.inputs):
            parts.append(element("circle", cx=place[n], cy=y, r=8, fill="none", stroke=EDGE))
        parts += [element("circle", cx=place[n], cy=y, r=4, fill=EDGE) for n in o.outputs]
    return svg(200 + 26 * len(columns), bottom + 160, parts)


LONGEST = 2.0               # ratio


def times():
    """The ratios of the first table in nets.md as bars, which end at LONGEST."""
    head, _, *lines = MEASURED.read_text().split("\n\n")[0].splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in (head, *lines)]
    parts, y = [], 10
    for name, *ratios in rows[1:]:
        parts.append(label(10, y + 12, name, font_weight="bold"))
        for peer, ratio in zip(rows[0][1:], ratios, strict=True):
            if not ratio: continue
            y += 22
            width = 180 * min(float(ratio), LONGEST)
            parts += [label(10, y + 12, peer), box(225, y, width, 15, FORWARD), label(230 + width, y + 12, ratio)]
        y += 34
    return svg(640, y, parts)


FIGURES = {
    "first-net.svg": lambda: first().to_svg(), "branches.svg": lambda: branches().to_svg(),
    "placements.svg": placements, "packing.html": packing,
    "arena-mlp.svg": lambda: arena(mlp()), "arena-cnn.svg": lambda: arena(cnn()),
    "addresses.svg": addresses, "times.svg": times, "roots.svg": lambda: roots().to_svg(),
    "walk.html": walk, "replay.html": replay, "loop.html": lambda: page("loop", NEAR),
    "roots-plan.svg": lambda: roots().plan({"x": ((1000,), "float64")}).plot(),
}
