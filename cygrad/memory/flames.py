"""The flame graph of a peak, as SVG: functions above their callers, operations on top, each as wide as its bytes."""

import html

from cygrad.memory.sizes import words

WIDTH, ROW = 1100, 19
NARROW = 0.6                # of the picture's units: what is narrower is not drawn
LETTER = 6.3                # the width of one
STYLE = """
text { font: 11px system-ui, sans-serif; fill: #222; pointer-events: none; }
rect { stroke: #fff; stroke-width: .6; } .function { fill: #e9dfc9; } .parameters { fill: #7fa5c4; }
.optimizer { fill: #7ba7cc; } .gradients { fill: #e08791; } .saved { fill: #edae49; } .workspace { fill: #66a182; }
.other { fill: #b9b9b9; }
"""


def flame(root):
    """The graph of a Branch, an <svg> that stands in a page."""
    return picture(root, "")


def standalone(root):
    """The same as a file of its own."""
    return picture(root, ' xmlns="http://www.w3.org/2000/svg"') + "\n"


def picture(root, attributes):
    deepest = depth(root)
    height = ROW * deepest + 4
    parts = [f'<svg{attributes} class="flame" viewBox="0 0 {WIDTH} {height}" role="img" '
             f'aria-label="flame graph of the peak"><style>{STYLE}</style>']
    draw(root, 0, 0, height - 2, max(root.bytes, 1), parts)
    return "".join([*parts, "</svg>"])


def depth(branch):
    """Rows of a tree."""
    level, rows = [branch], 0
    while level:
        rows += 1
        level = [b for above in level for b in above.branches.values()]
    return rows


def draw(branch, level, left, bottom, peak, parts):
    """The rectangle of a branch and those of what it called, the largest first."""
    width = branch.bytes / peak * WIDTH
    if width < NARROW: return
    top = bottom - ROW * (level + 1)
    where = f" at {branch.line}" if branch.line else f", {branch.category}" if branch.category else ""
    told = f"{branch.name}{where}: {words(branch.bytes)}, {branch.bytes / peak:.1%}"
    letters = int((width - 6) / LETTER)
    label = branch.name if len(branch.name) <= letters else branch.name[:letters - 1] + "…" if letters > 2 else ""
    text = f'<text x="{left + 4:.1f}" y="{top + 13}">{html.escape(label)}</text>' if label else ""
    parts.append(f'<g><title>{html.escape(told)}</title><rect class="{branch.category or "function"}" x="{left:.2f}" '
                 f'y="{top}" width="{width:.2f}" height="{ROW - 1}"></rect>{text}</g>')
    for b in branch.ordered():
        draw(b, level + 1, left, bottom, peak, parts)
        left += b.bytes / peak * WIDTH
