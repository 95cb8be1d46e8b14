"""What the figures are drawn with: SVG documents and boxes in the colors of all chapters."""

import json
import re
from html import escape
from pathlib import Path

from cygrad.drawing.svg import element, label

HERE = Path(__file__).parent

FORWARD, BACKWARD, EDGE, GREY = "#a5c9e1", "#f0b49e", "#334155", "#475569"
CATEGORIES = {"parameters": "#c4d79b", "optimizer": "#c4b5fd", "gradients": BACKWARD, "saved": FORWARD,
              "workspace": "#fde68a", "other": "#cbd5e1"}


def svg(width, height, parts, size=12):
    """A whole drawing of this size in pixels."""
    paper = element("rect", width="100%", height="100%", fill="#fff")
    return element("svg", "\n", "\n".join([paper, *parts]), "\n", xmlns="http://www.w3.org/2000/svg",
                   viewBox=f"0 0 {width} {height}", font_family="sans-serif", font_size=size) + "\n"


def page(name, data=None):
    """A page of its own whose picture follows its controls, for an iframe: shell.html around NAME.html, which defines
    show() and calls react(). `data` replaces DATA there."""
    title, body = re.fullmatch(r"<title>(.*)</title>\n(.*)", (HERE / f"{name}.html").read_text(), re.S).groups()
    if data is not None: body = body.replace("DATA", json.dumps(data))
    return framed((HERE / "shell.html").read_text().replace("TITLE", title).replace("BODY\n", body))


def framed(html):
    """A page with the script of frame.js, which fits it into the frame that shows it."""
    return html.replace("FRAME\n", (HERE / "frame.js").read_text())


def box(x, y, width, height, color, text="", about=""):
    """A rectangle with a text, if there is room for it. `about` appears under the pointer."""
    x, y, height = float(x), float(y), float(height)
    fits = height >= 14 and width >= 6.2 * len(text) + 6
    return element("g", element("title", escape(about or text, False)),
                   element("rect", x=x, y=y, width=float(width), height=max(height, 0.5), fill=color, stroke=EDGE,
                           stroke_width="0.5"), label(x + 4, y + height / 2 + 4, text) if fits else "")


def text(x, y, what, anchor="start", weight="normal", color=""):
    """A line of text that begins, ends or is centred at x."""
    fill = {"fill": color} if color else {}
    return label(float(x), float(y), what, text_anchor=anchor, font_weight=weight, **fill)


def line(x1, y1, x2, y2, **attributes):
    """A line from one point to another."""
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, stroke=EDGE, **attributes)
