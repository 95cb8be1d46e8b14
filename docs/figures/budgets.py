"""Chapters 17 and 18: what a budget costs on a chain, and what a copy in a file costs."""

import re
from pathlib import Path

from drawing import page, svg

import cygrad as cg
from cygrad.drawing.svg import element, label
from cygrad.graph import Net

STEPS, SIZE = 60, 1000


def chain(x):
    """Sixty steps of a product, an exponential and a sine, of which backward needs one value each."""
    with cg.record():
        for _ in range(STEPS): x = cg.sin(cg.exp(x * 0.1))
        y = x.sum()
    y.backward()


def cost(share):
    """The share of a step's work that is computed again under a budget of this share of the peak."""
    x = cg.ones(SIZE).attach_grad()
    live = cg.memory.stats()["live_bytes"]
    cg.memory.reset_peak()
    chain(x)
    peak = cg.memory.stats()["peak_bytes"]
    x.grad = None
    with cg.memory.budget(live + int(share * (peak - live))) as b: chain(x)
    return b.recomputed.share


def planned_cost(share):
    """The same for a captured step, whose plan has this share of its bytes."""
    x = cg.ones(SIZE).attach_grad()
    net = Net.capture(lambda: chain(x))
    plan = net.plan(budget=int(share * net.plan().peak_bytes))
    return plan.recomputed.share


SHARES = [0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1]
WIDTH, HEIGHT, LEFT, BOTTOM, MOST = 560, 260, 60, 40, 1.0


def place(share, cost):
    """Where a budget and its cost are in the figure."""
    return (round(LEFT + (WIDTH - LEFT - 20) * share, 1),
            round(HEIGHT - BOTTOM - (HEIGHT - BOTTOM - 20) * min(cost, MOST) / MOST, 1))


def curve():
    """The figure of chapter 17."""
    parts = []
    for y in (0, 0.25, 0.5, 0.75, 1):
        at, height = place(0, y)
        parts += [element("line", x1=at, y1=height, x2=WIDTH - 20, y2=height, stroke="#cbd5e1"),
                  label(at - 8, height + 4, f"{y:g}", text_anchor="end")]
    for share in (0, 0.25, 0.5, 0.75, 1):
        at, height = place(share, 0)
        parts.append(label(at, height + 18, f"{share:.0%}", text_anchor="middle"))
    for k, (colour, text, of) in enumerate((("#155e75", "eager: decided as it runs", cost),
                                            ("#b45309", "captured: decided before", planned_cost))):
        points = [place(share, of(share)) for share in SHARES]
        path = " ".join(f"{x},{y}" for x, y in points)
        parts.append(element("polyline", points=path, fill="none", stroke=colour, stroke_width=2))
        parts += [element("circle", cx=x, cy=y, r=3, fill=colour) for x, y in points]
        parts.append(label(WIDTH - 24, 54 + 20 * k, text, text_anchor="end", fill=colour))
    parts.append(label(WIDTH - 24, 34, "work of a step that is computed again, over the budget", text_anchor="end"))
    return svg(WIDTH, HEIGHT, parts, 13)


SPILLING = Path(__file__).parents[2] / "cygrad" / "memory" / "spilling.pyx"


def copying():
    """The page with the price of a copy, by the formula and the constants of spilling.pyx."""
    constants = dict(re.findall(r"^cdef double (ONE|SHARE) = (\S+)", SPILLING.read_text(), re.M))
    return page("copying", {"once": float(constants["ONE"]), "share": float(constants["SHARE"])})


FIGURES = {"budget.svg": curve, "segments.html": lambda: page("segments"), "copying.html": copying}
