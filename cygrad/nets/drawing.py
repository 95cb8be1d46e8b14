"""Drawings of nets: the language of Graphviz, and SVG without other programs.

An operator is a box over ovals, the blobs that it writes. Inputs and constants are ovals of their own, above the first
operator that reads them. An edge goes from an oval to each operator that reads the blob. An edge over more than LONG
layers would cross most of the drawing. Instead, the blob is repeated next to its reader, in an oval with a dashed line
that links to its place. Of a blob that is written several times, each oval has its version."""

import os
import zlib
from typing import TYPE_CHECKING, Any

from cygrad.core.errors import cut
from cygrad.core.paths import file_path
from cygrad.drawing.layers import Vertex, arrange, bends, longest_paths
from cygrad.drawing.svg import LETTER, columns, curve, element, label, picture, short, tooltip, write, written
from cygrad.nets.definition import shown_arguments
from cygrad.nets.printing import described_blob, described_constant

if TYPE_CHECKING:
    from cygrad.nets.net import Net

LONG = 4                    # layers that an edge may cross
LINE, OVAL, PAD, GAP, SPACE, MARGIN, HEAD = 15, 18, 9, 16, 34, 24, 34       # pixels
BEND = 6

STYLE = """
.cygrad-net { font: 11px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; }
.cygrad-net .paper { fill: #ffffff; } .cygrad-net text { fill: #222222; }
.cygrad-net .type { font-weight: bold; } .cygrad-net .head { font-size: 14px; font-weight: bold; }
.cygrad-net .soft { fill: #5f5f5f; }
.cygrad-net .edge { fill: none; stroke: #8a8a8a; stroke-width: 1.2; } .cygrad-net .arrow { fill: #8a8a8a; }
.cygrad-net .box { fill: #dbe7f3; stroke: #30638e; } .cygrad-net .box.gradient { fill: #fadfe2; stroke: #d1495b; }
.cygrad-net .oval { fill: #ffffff; stroke: #8a8a8a; } .cygrad-net .oval.constant { fill: #f7e6c4; }
.cygrad-net .oval.input { fill: #dcebe2; stroke: #3f7d5c; } .cygrad-net .oval.output { stroke-width: 2.4; }
.cygrad-net .oval.again { stroke-dasharray: 3 2; }
@media (prefers-color-scheme: dark) {
  .cygrad-net .paper { fill: #18191b; } .cygrad-net text { fill: #e6e6e6; } .cygrad-net .soft { fill: #a8a8a8; }
  .cygrad-net .box { fill: #1f3a52; stroke: #7ba7cc; } .cygrad-net .box.gradient { fill: #54242c; stroke: #e58b97; }
  .cygrad-net .oval { fill: #18191b; } .cygrad-net .oval.constant { fill: #4d3c17; }
  .cygrad-net .oval.input { fill: #1f3d2d; stroke: #66a182; }
}
"""


def draw(net: "Net", path: Any) -> None:
    """As Net.draw."""
    name = file_path(path, "Net.draw", "net.svg")
    suffix = os.path.splitext(name)[1].lower()
    if suffix not in (".svg", ".dot"):
        raise ValueError(f"Net.draw: the path must end with .svg or .dot, which is the format, got {cut(repr(name))}")
    write(name, to_svg(net) if suffix == ".svg" else to_dot(net), "Net.draw")


# ---- what is drawn ---------------------------------------------------------------------------------------------------

class Version:
    """A version of a blob: who writes it (None: it is an input or a constant) and who reads it, as positions of
    operators. `count` is the number of writes of this name, so the last version has this number."""

    __slots__ = "name", "number", "writer", "readers", "count"

    def __init__(self, name: str, number: int, writer: int | None, count: int):
        self.name, self.number, self.writer, self.count = name, number, writer, count
        self.readers: list[int] = []

    @property
    def label(self) -> str:
        """The name, with the version if there are several."""
        several = self.count > 1 or self.number < self.count
        return f"{short(self.name)} v{self.number}" if several else short(self.name)


def versions(net: "Net") -> list[Version]:
    """The versions of all blobs with their readers, in order."""
    current: dict[str, Version] = {}
    found = []
    count: dict[str, int] = {}
    for operator in net.operators:
        for name in operator.outputs: count[name] = count.get(name, 0) + 1
    for k, operator in enumerate(net.operators):
        for name in dict.fromkeys(n for n in operator.inputs if n is not None):
            if name not in current:
                current[name] = Version(name, 0, None, count.get(name, 0))
                found.append(current[name])
            current[name].readers.append(k)
        for name in operator.outputs:
            number = current[name].number + 1 if name in current else 1
            current[name] = Version(name, number, k, count[name])
            found.append(current[name])
    return found


def about(net: "Net", version: Version) -> str:
    """What a reader learns about a blob by pointing at it."""
    return (described_constant if version.name in net.constants else described_blob)(net, version.name)


# ---- DOT -------------------------------------------------------------------------------------------------------------

def quoted(text: str) -> str:
    """A string of DOT, in which a backslash is only itself."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def to_dot(net: "Net") -> str:
    """As Net.to_dot."""
    last = {*net.outputs}
    lines = [f"digraph {quoted(net.name)} {{", '  node [fontname="monospace", fontsize=10];']
    for k, o in enumerate(net.operators):
        color = "#fadfe2" if o.is_gradient else "#dbe7f3"
        label = quoted(short(o.type))[:-1] + "".join(f"\\n{quoted(short(a))[1:-1]}" for a in shown_arguments(o)) + '"'
        lines.append(f'  o{k} [shape=box, style=filled, fillcolor="{color}", label={label}, '
                     f'tooltip={quoted(cut(repr(o)))}];')
    for i, v in enumerate(versions(net)):
        color = "#dcebe2" if v.writer is None and v.name not in net.constants else (
            "#f7e6c4" if v.writer is None else "#ffffff")
        width = 2 if v.name in last and v.number == v.count else 1
        lines.append(f'  b{i} [shape=ellipse, style=filled, fillcolor="{color}", penwidth={width}, '
                     f'label={quoted(v.label)}, tooltip={quoted(about(net, v))}];')
        if v.writer is not None: lines.append(f"  o{v.writer} -> b{i};")
        lines += [f"  b{i} -> o{k};" for k in v.readers]
    return "\n".join([*lines, "}", ""])


# ---- SVG -------------------------------------------------------------------------------------------------------------

class Oval:
    """A blob in the drawing: its version, the node that has it, and its middle from the node's middle."""

    __slots__ = "version", "again", "node", "dx", "width"

    def __init__(self, version: Version, again: bool = False):
        self.version, self.again, self.dx = version, again, 0.0
        self.width = columns(version.label) * LETTER + 2 * PAD
        self.node = Vertex(self.width, 0)


class Box:
    """An operator in the drawing: its lines of text and its outputs."""

    __slots__ = "lines", "ovals", "node", "width"

    def __init__(self, operator: Any, ovals: list[Oval], layer: int):
        arguments = shown_arguments(operator)
        self.lines = [short(operator.type), *(short(a) for a in arguments[:3])]
        if len(arguments) > 3: self.lines[-1] = f"and {len(arguments) - 2} more"
        self.width, self.ovals = max(map(columns, self.lines)) * LETTER + 2 * PAD, ovals
        below = sum(o.width for o in ovals) + 6 * (len(ovals) - 1)
        x = -below / 2
        self.node = Vertex(max(self.width, below), layer)
        for oval in ovals:
            oval.node, oval.dx = self.node, x + oval.width / 2
            x += oval.width + 6

    @property
    def height(self) -> float:
        return LINE * len(self.lines) + PAD


class Sheet:
    """The nodes of a drawing and where they are."""

    def __init__(self, net: "Net"):
        self.net, self.outputs, found = net, {*net.outputs}, versions(net)
        written: list[list[Oval]] = [[] for _ in net.operators]
        reads: list[list[int]] = [[] for _ in net.operators]
        for v in found:
            if v.writer is None: continue
            written[v.writer].append(Oval(v))
            for k in v.readers: reads[k].append(v.writer)
        layers = longest_paths(reads)
        self.boxes = [Box(o, written[k], layers[k] + 1) for k, o in enumerate(net.operators)]
        self.home = {oval.version: oval for ovals in written for oval in ovals}
        self.free: list[Oval] = []                  # the ovals that are no operator's
        self.edges: list[tuple[Oval, list[Vertex], Box]] = []
        for v in found: self.add_readers(v)
        bent = [node for _, chain, _ in self.edges for node in chain]
        nodes = [b.node for b in self.boxes] + [o.node for o in self.free] + bent
        count = len(arrange(nodes, GAP))
        tall = [0.0] * count                        # the height of the boxes of each layer
        for b in self.boxes: tall[b.node.layer] = max(tall[b.node.layer], b.height)
        top = float(MARGIN + HEAD)
        self.tops: list[float] = []                 # the upper ends of the layers
        for height in tall:
            self.tops.append(top)
            top += height + OVAL + SPACE
        self.ends = [top + height + OVAL for top, height in zip(self.tops, tall, strict=True)]
        self.below = {b.node: self.tops[b.node.layer] + b.height + OVAL / 2 for b in self.boxes}
        self.width = max([n.x + n.width / 2 for n in nodes] + [columns(self.title) * 8.8]) + 2 * MARGIN
        self.height = (self.ends[-1] if self.ends else top) + MARGIN

    @property
    def title(self) -> str:
        n = len(self.net)
        return f"{short(self.net.name)}: {n:,} operator{'' if n == 1 else 's'}"

    def add_readers(self, version: Version) -> None:
        """The edges of a version, and an oval above each reader that is far below the others."""
        oval = self.home.get(version)
        for k in sorted(version.readers, key=lambda k: self.boxes[k].node.layer):
            box = self.boxes[k]
            near = oval is not None and box.node.layer - oval.node.layer <= LONG
            if not near:
                oval = Oval(version, again=version in self.home)
                oval.node.layer = box.node.layer - 1
                self.home.setdefault(version, oval)
                self.free.append(oval)
            assert oval is not None
            self.edges.append((oval, bends(oval.node, box.node, BEND), box))

    def y(self, oval: Oval) -> float:
        """The middle of an oval: below its box, or at the end of its layer."""
        return self.below.get(oval.node, self.ends[oval.node.layer] - OVAL / 2)

    def kind(self, oval: Oval) -> str:
        """The classes of an oval."""
        v = oval.version
        kind = "" if v.writer is not None else " constant" if v.name in self.net.constants else " input"
        last = " output" if v.name in self.outputs and v.number == v.count else ""
        return f"oval{kind}{last}{' again' if oval.again else ''}"


def to_svg(net: "Net", path: Any = None) -> str:
    """As Net.to_svg."""
    return written(lambda: svg(net), path, "Net.to_svg", "net.svg", ", got {}; draw(path) writes .dot too")


def svg(net: "Net") -> str:
    """The drawing, as text."""
    sheet = Sheet(net)
    key = f"n{zlib.crc32(net.text().encode()):08x}"     # the ids of several drawings on a page must differ
    parts = [edge(sheet, *e) for e in sheet.edges]
    index = {version: i for i, version in enumerate(sheet.home)}
    for k, box in enumerate(sheet.boxes):
        parts.append(drawn_box(sheet, box, net.operators[k], k))
        parts += [drawn_oval(sheet, o, f"{key}-{index[o.version]}") for o in box.ovals]
    parts += [drawn_oval(sheet, o, f"{key}-{index[o.version]}") for o in sheet.free]
    return picture("cygrad-net", round(sheet.width), round(sheet.height), sheet.title, STYLE, (MARGIN, MARGIN + 8),
                   parts)


def edge(sheet: Sheet, oval: Oval, chain: list[Vertex], box: Box) -> str:
    """A curve from the bottom of an oval through the bends to the top of a box, and an arrow. Beside the boxes of a
    layer it goes straight down."""
    x, low = MARGIN + oval.node.x + oval.dx, sheet.ends[oval.node.layer]
    path = f"M{x:.1f},{sheet.y(oval) + OVAL / 2:.1f}V{low:.1f}"
    for node in chain:
        top, at = sheet.tops[node.layer], MARGIN + node.x
        path += curve(x, low, at, top)
        x, low = at, sheet.ends[node.layer]
        path += f"V{low:.1f}"
    near = sorted(box.node.above, key=lambda n: n.x)
    place = near.index(chain[-1] if chain else oval.node)
    reach = min(box.width, 14 * len(near)) / 2      # the ends of several edges are side by side
    at, top = MARGIN + box.node.x + reach * ((2 * place + 1) / len(near) - 1), sheet.tops[box.node.layer]
    path += curve(x, low, at, top - 5)
    arrow = element("path", class_="arrow", d=f"M{at - 3:.1f},{top - 6:.1f}h6l-3,6z")
    return element("path", class_="edge", d=path) + arrow


def drawn_box(sheet: Sheet, box: Box, operator: Any, k: int) -> str:
    """The box of operator k."""
    x, y = MARGIN + box.node.x, sheet.tops[box.node.layer]
    lines = [label(x, y + LINE * (i + 1) - 1, line, class_="soft" if i else "type", text_anchor="middle")
             for i, line in enumerate(box.lines)]
    rect = element("rect", class_="box gradient" if operator.is_gradient else "box", x=x - box.width / 2, y=y,
                   width=float(box.width), height=float(box.height), rx=3)
    return element("g", tooltip(f"{k}  {cut(repr(operator))}"), rect, *lines)


def drawn_oval(sheet: Sheet, oval: Oval, key: str) -> str:
    """The oval of a blob. One that repeats a blob links to its place."""
    x, y = MARGIN + oval.node.x + oval.dx, sheet.y(oval)
    body = element("g", tooltip(about(sheet.net, oval.version)),
                   element("rect", class_=sheet.kind(oval), x=x - oval.width / 2, y=y - OVAL / 2,
                           width=float(oval.width), height=OVAL, rx=OVAL / 2),
                   label(x, y + 4, oval.version.label, text_anchor="middle"), **{} if oval.again else {"id": key})
    return element("a", body, href="#" + key) if oval.again else body
