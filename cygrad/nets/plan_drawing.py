"""A drawing of a plan as SVG: the buffers of the arena over the steps of a run, and below them the bytes in use."""

from functools import partial
from typing import TYPE_CHECKING, Any

from cygrad.drawing.scales import byte_unit, shown, ticks
from cygrad.drawing.svg import LETTER, columns, element, fitted, label, picture, short, tooltip, written

if TYPE_CHECKING:
    from cygrad.nets.plan import Plan, PlanRow

WIDTH, LEFT, RIGHT, TOP = 960, 76, 20, 74           # pixels: the drawing, and the margins of its panels
ARENA, STRIP, CURVE, SPACE = 380, 10, 130, 46       # heights: addresses, kinds of steps, bytes in use, between them
TALL = 13                                           # the least height of a rectangle with a label
KINDS = "forward", "gradient", "recomputed", "other"
soft = partial(label, class_="soft")

STYLE = """
.cygrad-plan { font: 11px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; }
.cygrad-plan .paper { fill: #ffffff; } .cygrad-plan text { fill: #222222; }
.cygrad-plan .head { font-size: 14px; font-weight: bold; } .cygrad-plan .soft { fill: #5f5f5f; }
.cygrad-plan .axis { stroke: #8a8a8a; fill: none; } .cygrad-plan .grid { stroke: #e3e3e3; }
.cygrad-plan .buffer { stroke-width: 1; } .cygrad-plan .gap { fill: #f4f4f4; }
.cygrad-plan .forward { fill: #b9d2e8; stroke: #30638e; } .cygrad-plan .gradient { fill: #f4bcc3; stroke: #d1495b; }
.cygrad-plan .other { fill: #d9d9d9; stroke: #7d7d7d; } .cygrad-plan .recomputed { fill: #cfe3d6; stroke: #3f7d5c; }
.cygrad-plan .curve { fill: #edae49; fill-opacity: 0.35; stroke: #b97a14; }
.cygrad-plan .bound { stroke: #222222; stroke-dasharray: 5 3; } .cygrad-plan .peak { stroke: #3f7d5c; }
@media (prefers-color-scheme: dark) {
  .cygrad-plan .paper { fill: #18191b; } .cygrad-plan text { fill: #e6e6e6; } .cygrad-plan .soft { fill: #a8a8a8; }
  .cygrad-plan .grid { stroke: #34363a; } .cygrad-plan .gap { fill: #202225; }
  .cygrad-plan .forward { fill: #1f3a52; stroke: #7ba7cc; } .cygrad-plan .gradient { fill: #54242c; stroke: #e58b97; }
  .cygrad-plan .other { fill: #3a3a3a; stroke: #9a9a9a; } .cygrad-plan .recomputed { fill: #23402f; stroke: #66a182; }
  .cygrad-plan .bound { stroke: #e6e6e6; }
  .cygrad-plan .curve { stroke: #edae49; } .cygrad-plan .peak { stroke: #66a182; }
}
"""


def plot(plan: "Plan", path: Any) -> str:
    """As Plan.plot."""
    return written(Picture(plan).svg, path, "Plan.plot", "plan.svg", ", which is the format, got {}")


class Picture:
    """The scales of a drawing: x from steps, y from addresses and from bytes in use."""

    def __init__(self, plan: "Plan"):
        self.plan, self.live, self.at = plan, plan.live(), plan.peak_step()
        self.steps, self.top = max(len(plan.steps), 1), max(plan.peak_bytes, 1)
        self.size, self.unit = byte_unit(self.top)
        self.below = TOP + ARENA + STRIP + SPACE    # where the lower panel begins
        self.height = self.below + CURVE + SPACE

    def x(self, step: float) -> float:
        return LEFT + step / self.steps * (WIDTH - LEFT - RIGHT)

    def y(self, address: float) -> float:
        return TOP + ARENA * (1 - address / self.top)

    def bytes_y(self, nbytes: float) -> float:
        return self.below + CURVE * (1 - nbytes / self.top)

    def svg(self) -> str:
        plan = self.plan
        title = (f"{short(plan.name)}: {plan.peak_bytes:,} bytes for {len(plan.rows):,} buffers (dashed: the bound, "
                 f"{plan.bound_bytes:,})")
        parts = [self.legend(), *self.axes(), *map(self.buffer, plan.rows)]
        parts += [self.strip(k, step) for k, step in enumerate(plan.steps)]
        parts += [self.curve(), *self.marks()]
        return picture("cygrad-plan", WIDTH, self.height, title, STYLE, (LEFT, 28), parts)

    def legend(self) -> str:
        """The kinds of operators with their colours."""
        parts, x = [], float(LEFT)
        for kind in KINDS:
            nbytes = sum(row.nbytes for row in self.plan.rows if row.kind == kind)
            count = sum(row.kind == kind for row in self.plan.rows)
            words = f"{kind}: {count:,} buffers, {nbytes:,} bytes"
            parts += [element("rect", class_=kind, x=x, y=41, width=11, height=11), soft(x + 16, 50, words)]
            x += 34 + columns(words) * LETTER
        return "".join(parts)

    def axes(self) -> list[str]:
        """The frames of the panels, with ticks."""
        end, foot = WIDTH - RIGHT, TOP + ARENA + STRIP
        parts = [element("rect", class_="gap", x=LEFT, y=TOP, width=end - LEFT, height=ARENA)]
        for tick in ticks(self.top / self.size):
            for y in (self.y(tick * self.size), self.bytes_y(tick * self.size)):
                parts += [element("path", class_="grid", d=f"M{LEFT},{y:.1f}H{end}"),
                          soft(LEFT - 6, y + 4, shown(tick), text_anchor="end")]
        for tick in ticks(len(self.plan.steps), whole=True, at_most=12):
            if tick >= self.steps: continue
            parts.append(soft(self.x(tick + 0.5), foot + 14, shown(tick), text_anchor="middle"))
        return [*parts, soft(LEFT, TOP - 8, f"address in {self.unit}"),
                soft(LEFT, self.below - 8, f"in use in {self.unit}"), soft(end, foot + 28, "step", text_anchor="end")]

    def buffer(self, row: "PlanRow") -> str:
        """A rectangle, with a label where there is room."""
        x, y = self.x(row.first), self.y(row.offset + row.nbytes)
        w, h = self.x(row.last + 1) - x, self.y(row.offset) - y
        name = row.blob or row.operator
        about = (f"{name}: {row.nbytes:,} bytes at {row.offset:,}, written by {row.operator}, steps {row.first} to "
                 f"{row.last}")
        words = fitted(name, int((w - 6) / LETTER)) if h >= TALL else ""
        return element("g", tooltip(about),
                       element("rect", class_=f"buffer {row.kind}", x=x, y=y, width=w, height=max(h, 0.8)),
                       label(x + w / 2, y + h / 2 + 4, words, text_anchor="middle") if words else "")

    def strip(self, k: int, step: str) -> str:
        """The mark of a step below the addresses, with its name."""
        x = self.x(k)
        return element("rect", tooltip(f"step {k}: {step}, {self.live[k]:,} bytes in use"), class_=self.plan.kinds[k],
                       x=x, y=TOP + ARENA, width=self.x(k + 1) - x, height=STRIP)

    def curve(self) -> str:
        """The bytes in use at each step."""
        path = f"M{self.x(0):.1f},{self.bytes_y(0):.1f}"
        for k, nbytes in enumerate(self.live): path += f"V{self.bytes_y(nbytes):.1f}H{self.x(k + 1):.1f}"
        return element("path", class_="curve", d=f"{path}V{self.bytes_y(0):.1f}Z")

    def marks(self) -> list[str]:
        """The bound as a line in both panels, and the step of the peak."""
        plan, end, x = self.plan, WIDTH - RIGHT, self.x(self.at + 0.5)
        bound = plan.bound_bytes
        parts = [element("path", tooltip(f"bound: {bound:,} bytes"), class_="bound", d=f"M{LEFT},{y:.1f}H{end}")
                 for y in (self.y(bound), self.bytes_y(bound))]
        if not plan.steps: return parts
        words = f"peak at step {self.at}, {plan.steps[self.at]}: {plan.bound_bytes:,} bytes in use (bound)"
        width = columns(words) * LETTER
        at = min(max(x, LEFT + width / 2), end - width / 2)
        foot = self.below + CURVE
        return [*parts, element("path", class_="peak", d=f"M{x:.1f},{TOP}V{foot + 6}"),
                label(at, foot + 20, words, text_anchor="middle")]
