"""What the figures are drawn with: SVG documents and boxes in the colors of all chapters."""

from xml.sax.saxutils import escape

FORWARD, BACKWARD, EDGE, GREY = "#a5c9e1", "#f0b49e", "#334155", "#475569"
CATEGORIES = {"parameters": "#c4d79b", "optimizer": "#c4b5fd", "gradients": BACKWARD, "saved": FORWARD,
              "workspace": "#fde68a", "other": "#cbd5e1"}


def svg(width, height, parts, size=12):
    """A whole drawing of this size in pixels."""
    head = (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" '
            f'font-size="{size}">')
    return "\n".join([head, '<rect width="100%" height="100%" fill="#fff"/>', *parts, "</svg>", ""])


def box(x, y, width, height, color, text="", about=""):
    """A rectangle with a text, if there is room for it. `about` appears under the pointer."""
    shown = f'<text x="{x + 4:.1f}" y="{y + height / 2 + 4:.1f}">{escape(text)}</text>' \
        if height >= 14 and width >= 6.2 * len(text) + 6 else ""
    return (f'<g><title>{escape(about or text)}</title><rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" '
            f'height="{max(height, 0.5):.1f}" fill="{color}" stroke="{EDGE}" stroke-width="0.5"/>{shown}</g>')


def text(x, y, what, anchor="start", weight="normal", color=""):
    """A line of text that begins, ends or is centred at x."""
    fill = f' fill="{color}"' if color else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-weight="{weight}"{fill}>{escape(what)}</text>'
