"""Chapter 19: live memory of a step whose gradients are stored, and of one whose gradients are not."""

from drawing import page, svg

import cygrad as cg
from cygrad.drawing.svg import element, label

LAYERS, SIZE, BATCH = 8, 128, 64


def step(fuse):
    """The live bytes above parameters and solver, at each event of a second training step."""
    cg.random.seed(0)
    weights = [(cg.random.normal((SIZE, SIZE)) * 0.1).attach_grad() for _ in range(LAYERS)]
    solver = cg.optim.Momentum(0.01)
    solver.set_parameters(weights)
    if fuse: solver.fuse_into_backward()
    x, course = cg.random.normal((BATCH, SIZE)), []

    def run():
        for w in weights: w.grad = None
        with cg.record():
            h = x
            for w in weights: h = cg.linear(h, w, activation="tanh")
            loss = (h * h).sum()
        del h
        loss.backward()
        solver.update()

    run()
    for w in weights: w.grad = None
    before = cg.memory.stats()["live_bytes"]
    with cg.memory.events(lambda _: course.append(cg.memory.stats()["live_bytes"] - before)): run()
    return course


WIDTH, HEIGHT, LEFT, BOTTOM = 560, 260, 80, 30


def courses():
    """The figure of chapter 19."""
    stored, fused = step(False), step(True)
    most = max(stored)
    parts = []
    for k in range(4):
        y = HEIGHT - BOTTOM - (HEIGHT - BOTTOM - 20) * k / 3
        parts += [element("line", x1=LEFT, y1=round(y, 1), x2=WIDTH - 20, y2=round(y, 1), stroke="#cbd5e1"),
                  label(LEFT - 8, round(y + 4, 1), f"{most * k // 3 // 1024} KiB", text_anchor="end")]
    for k, (colour, text, course) in enumerate((("#b45309", "gradients are stored", stored),
                                                ("#155e75", "fused: they are never stored", fused))):
        points = [(round(LEFT + (WIDTH - LEFT - 20) * i / (len(course) - 1), 1),
                   round(HEIGHT - BOTTOM - (HEIGHT - BOTTOM - 20) * y / most, 1)) for i, y in enumerate(course)]
        path = " ".join(f"{x},{y}" for x, y in points)
        parts.append(element("polyline", points=path, fill="none", stroke=colour, stroke_width=2))
        parts.append(label(LEFT + 12, 34 + 20 * k, text, fill=colour))
    parts.append(label(WIDTH - 20, HEIGHT - 8, "a training step: forward, backward, update", text_anchor="end"))
    return svg(WIDTH, HEIGHT, parts, 13)


def course(rule, fuse, layers=4, size=768):
    """The events of backward and update: what happened, bytes, category, and the live bytes more than before."""
    weights = [cg.ones((size, size)).attach_grad() for _ in range(layers)]
    solver = getattr(cg.optim, rule)(1e-9)
    solver.set_parameters(weights)
    if fuse: solver.fuse_into_backward()
    seen = []

    def run(watch):
        for w in weights: w.grad = None
        with cg.record():
            h = cg.ones((1, size))
            for w in weights: h = cg.linear(h, w)
            loss = h.sum()
        del h
        before = cg.memory.stats()["live_bytes"]

        def look(event): seen.append([event[0], *event[2:], cg.memory.stats()["live_bytes"] - before])
        with cg.memory.events(look if watch else lambda event: None):
            loss.backward()
            solver.update()

    run(False)
    run(True)
    return seen


def coming():
    """The page with the events of a step by rule, with stored gradients and fused."""
    found = {rule: {"stored": course(rule, False), "fused": course(rule, True)}
             for rule in ("Sgd", "Momentum", "Adam", "Lamb")}
    return page("fused", {"courses": found, "weight": 4 * 768 * 768, "layers": 4})


FIGURES = {"fused.svg": courses, "fused.html": coming}
