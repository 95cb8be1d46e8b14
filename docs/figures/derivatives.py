"""Chapter 9: the peak of live bytes of a gradient and of a tangent, by the depth of the function; a Jacobian."""

from drawing import page, svg

import cygrad as cg
from cygrad.drawing.svg import element, label

DEPTHS, SIZE = range(1, 17), 4096


def peak(derivative, depth):
    """Peak bytes above the arguments."""
    x = cg.ones(SIZE)

    def f(x):
        for _ in range(depth): x = cg.sin(x) * x
        return x.sum()

    derivative(f, x)                                # loads what is loaded at first use
    with cg.memory.track() as tracked: derivative(f, x)
    return tracked.peak_bytes


WIDTH, HEIGHT, LEFT, BOTTOM = 560, 260, 80, 44


def peaks():
    """The figure of chapter 9."""
    ways = (("#b45309", "grad", lambda f, x: cg.func.grad(f)(x)),
            ("#155e75", "jvp", lambda f, x: cg.func.jvp(f, (x,), (x,))))
    courses = [[peak(way, n) for n in DEPTHS] for _, _, way in ways]
    most = max(map(max, courses))
    parts = []
    for k in range(4):
        y = HEIGHT - BOTTOM - (HEIGHT - BOTTOM - 20) * k / 3
        parts += [element("line", x1=LEFT, y1=round(y, 1), x2=WIDTH - 20, y2=round(y, 1), stroke="#cbd5e1"),
                  label(LEFT - 8, round(y + 4, 1), f"{most * k // 3 // 1024} KiB", text_anchor="end")]
    for (colour, text, _), course in zip(ways, courses, strict=True):
        points = [(round(LEFT + (WIDTH - LEFT - 20) * i / (len(course) - 1), 1),
                   round(HEIGHT - BOTTOM - (HEIGHT - BOTTOM - 20) * y / most, 1)) for i, y in enumerate(course)]
        parts.append(element("polyline", points=" ".join(f"{x},{y}" for x, y in points), fill="none", stroke=colour,
                             stroke_width=2))
        parts.append(label(WIDTH - 24, points[-1][1] - 8, text, fill=colour, text_anchor="end"))
    for n in (1, 4, 8, 12, 16):
        x = LEFT + (WIDTH - LEFT - 20) * (n - 1) / (len(DEPTHS) - 1)
        parts.append(label(round(x, 1), HEIGHT - BOTTOM + 16, str(n), text_anchor="middle"))
    parts.append(label(WIDTH - 20, HEIGHT - 8, "steps of the function, each x := sin(x) x", text_anchor="end"))
    return svg(WIDTH, HEIGHT, parts, 13)


FIGURES = {"derivatives.svg": peaks, "jacobian.html": lambda: page("jacobian")}
