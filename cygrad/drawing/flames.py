"""The flame graph of a peak, as SVG: functions above their callers, operations on top. The width shows the bytes."""

import html

from cygrad.core.sizes import words
from cygrad.drawing.labels import BEFORE
from cygrad.drawing.scales import COLORS, DARK
from cygrad.drawing.svg import element, label, tooltip

WIDTH, ROW = 1100, 19
NARROW = 0.6                # boxes of less width, in units of the picture, are not drawn
LETTER = 6.3                # the width of a letter
FEWEST = 4                  # a name cut to fewer letters is omitted
MOST_NOTES = 40             # the maximum number of boxes whose names are listed below the picture
STYLE = """
.flame text { font: 11px system-ui, sans-serif; fill: #222; pointer-events: none; } .flame .light { fill: #fff; }
.flame rect { stroke: #fff; stroke-width: .6; } .flame .function { fill: #e9dfc9; }
""" + "\n".join(f".flame .{name} {{ fill: var(--{name}, {color}); }}" for name, color in COLORS.items()) + "\n"


def flame(root):
    """The graph of a Branch as an element of a page, which has the legend of the colours."""
    height = ROW * depth(root) + 4
    parts = []
    draw(root, 0, 0, height - 2, max(root.bytes, 1), parts, None)
    return framed(parts, height)


def framed(parts, tall, **attributes):
    """A picture of this height."""
    return element("svg", element("style", STYLE), *parts, **attributes, class_="flame",
                   viewBox=f"0 0 {WIDTH} {tall}", role="img", aria_label="flame graph of the peak")


def standalone(root):
    """The same as a separate file, with a legend and with a list of the boxes that are too narrow for a name."""
    bottom = ROW * (depth(root) + 1) + 12
    parts, notes = [], []
    draw(root, 0, 0, bottom - 2, max(root.bytes, 1), parts, notes)
    height = bottom + 4 + ROW * len(notes)
    for k, note in enumerate(notes):
        parts.append(element("text", f"{k + 1}: {html.escape(note)}", class_="note", x=4, y=bottom + ROW * (k + 1) - 4))
    left = 4
    for name in COLORS:
        parts.append(element("g", element("rect", class_=name, x=left, y=4, width=12, height=12),
                             label(left + 17, 14, name), class_="legend"))
        left += 17 + LETTER * len(name) + 20
    paper = element("rect", x=0, y=0, width=WIDTH, height=height, style="fill: #fff")
    return framed([paper, *parts], height, xmlns="http://www.w3.org/2000/svg", width=WIDTH, height=height) + "\n"


def depth(branch):
    """The number of levels of a tree."""
    level, rows = [branch], 0
    while level:
        rows += 1
        level = [b for above in level for b in above.branches.values()]
    return rows


def draw(branch, level, left, bottom, peak, parts, notes):
    """Draw the rectangle of a branch and those of its callees, the largest first. Names that do not fit are appended to
    `notes` if that is a list, and are cut otherwise."""
    width = branch.bytes / peak * WIDTH
    if width < NARROW: return
    top = bottom - ROW * (level + 1)
    description = f"{branch.title}: {words(branch.bytes)}, {branch.bytes / peak:.1%}"
    names = [branch.title[len(branch.line):].strip(), branch.category if branch.name == BEFORE else branch.name]
    letters = int((width - 6) / LETTER)
    name = min(names, key=len) if len(names[0]) > letters else names[0]
    if len(name) > letters:
        if notes is not None and len(notes) < MOST_NOTES and letters >= len(str(len(notes) + 1)):
            notes.append(description)
            name = str(len(notes))
        else: name = name[:letters - 1] + "…" if letters >= FEWEST else ""
    light = {"class_": "light"} if branch.category in DARK else {}
    parts.append(element(
        "g", tooltip(description), element("rect", class_=branch.category or "function", x=f"{left:.2f}", y=top,
                                           width=f"{width:.2f}", height=ROW - 1),
        element("text", html.escape(name), **light, x=left + 4.0, y=top + 13) if name else ""))
    for b in branch.ordered():
        draw(b, level + 1, left, bottom, peak, parts, notes)
        left += b.bytes / peak * WIDTH
