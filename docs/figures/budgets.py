"""Chapter 19: what a budget costs on a chain."""

from drawing import svg

import cygrad as cg

STEPS, SIZE = 60, 1000


def chain(x):
    """Sixty steps of a product, an exponential and a sine, of which backward needs one value each."""
    with cg.record():
        for _ in range(STEPS): x = cg.sin(cg.exp(x * 0.1))
        y = x.sum()
    y.backward()


def cost(share):
    """The recomputed share of the forward work under a budget of this share of the peak."""
    x = cg.ones(SIZE).attach_grad()
    live = cg.memory.stats()["live_bytes"]
    cg.memory.reset_peak()
    chain(x)
    peak = cg.memory.stats()["peak_bytes"]
    x.grad = None
    with cg.memory.budget(live + int(share * (peak - live))) as b: chain(x)
    return b.recomputed.share


SHARES = [0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1]
WIDTH, HEIGHT, LEFT, BOTTOM = 560, 260, 60, 40


def curve():
    """The figure of chapter 19."""
    costs = [cost(share) for share in SHARES]
    most = 2.0

    def place(share, y): return LEFT + (WIDTH - LEFT - 20) * share, HEIGHT - BOTTOM - (HEIGHT - BOTTOM - 20) * y / most

    points = [place(share, min(y, most)) for share, y in zip(SHARES, costs, strict=True)]
    lines = []
    for y in (0, 0.5, 1, 1.5, 2):
        x, height = place(0, y)
        lines.append(f'<line x1="{x:.0f}" y1="{height:.0f}" x2="{WIDTH - 20}" y2="{height:.0f}" stroke="#cbd5e1"/>'
                     f'<text x="{x - 8:.0f}" y="{height + 4:.0f}" text-anchor="end">{y:g}</text>')
    for share in (0, 0.25, 0.5, 0.75, 1):
        x, height = place(share, 0)
        lines.append(f'<text x="{x:.0f}" y="{height + 18:.0f}" text-anchor="middle">{share:.0%}</text>')
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    dots = [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="#155e75"/>' for x, y in points]
    return svg(WIDTH, HEIGHT, [
        *lines, f'<polyline points="{path}" fill="none" stroke="#155e75" stroke-width="2"/>', *dots,
        f'<text x="{WIDTH - 24}" y="34" text-anchor="end">forward work computed again, over the budget</text>'], 13)


FIGURES = {"budget.svg": curve}
