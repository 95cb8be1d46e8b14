"""Chapter 8: the paths of solvers in a valley."""

from inspect import signature

from drawing import element, label, page, svg

import cygrad as cg


def valley(w):
    """(w0^2 + 25 w1^2) / 2: 25 times as steep across as along."""
    return (w * w * cg.asarray([1.0, 25.0], dtype="float64")).sum() / 2


def path(solver, steps=40):
    """The points that a solver visits in the valley from (-9, 2) on."""
    w = cg.tensor([-9.0, 2.0], "float64", requires_grad=True)
    solver.set_parameters([w])
    points = [w.tolist()]
    for _ in range(steps):
        solver.zero_grad()
        with cg.record(): height = valley(w)
        height.backward()
        solver.update()
        points.append(w.tolist())
    return points


SOLVERS = (
    ("Sgd, lr 0.07", "#b91c1c", cg.optim.Sgd, 0.07), ("Momentum, lr 0.01", "#155e75", cg.optim.Momentum, 0.01),
    ("Adam, lr 0.5", "#4d7c0f", cg.optim.Adam, 0.5),
)
WIDTH, HEIGHT, ACROSS, ALONG = 640, 170, 34, 46      # of a panel in pixels, and pixels for a unit of w1 and of w0


def panel(title, color, points, top):
    """The SVG of one path over contours of the valley."""
    def place(w0, w1): return f"{(w0 + 10) * ALONG:.1f},{top + HEIGHT / 2 - w1 * ACROSS:.1f}"

    x, y = place(0, 0).split(",")
    levels = ((2 * h) ** 0.5 for h in (0.5, 4, 12, 25, 45, 70))
    contours = [element("ellipse", cx=x, cy=y, rx=r * ALONG, ry=r / 5 * ACROSS) for r in levels]
    dots = [element("circle", cx=x, cy=y, r=2) for x, y in (place(*w).split(",") for w in points)]
    return element(
        "svg", element("g", *contours, fill="none", stroke="#cbd5e1"),
        element("polyline", points=" ".join(place(*w) for w in points), fill="none", stroke=color),
        element("g", *dots, label(632, top + 18, title, text_anchor="end"), fill=color),
        y=top, height=HEIGHT - 4, viewBox=f"0 {top} {WIDTH} {HEIGHT - 4}")


def paths():
    """The figure of chapter 8."""
    panels = [panel(title, color, path(make(lr)), i * HEIGHT) for i, (title, color, make, lr) in enumerate(SOLVERS)]
    return svg(WIDTH, HEIGHT * len(panels), panels, 14)


def rates():
    """The page with the path of a solver by its rate. Its rules are those of cygrad.optim, with their defaults."""
    defaults = {name: p.default for make in (cg.optim.Momentum, cg.optim.Adam)
                for name, p in signature(make).parameters.items()}
    return page("rates", {name: defaults[name] for name in ("momentum", "beta1", "beta2", "eps")})


FIGURES = {"paths.svg": paths, "rates.html": rates}
