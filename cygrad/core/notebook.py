"""HTML for Jupyter: what `_repr_html_` of tensors, tapes, nets, plans, profiles and histories is made of. Every text is
escaped. There are no colours, so what is shown has those of the page, which may be light or dark."""

from collections.abc import Iterable
from typing import Any


def escaped(text: object) -> str:
    from html import escape         # few programs need it

    return escape(f"{text}")


def titled(title: str, facts: str, body: str = "") -> str:
    """A line, which begins with a bold title, above HTML."""
    return f"<div><b>{escaped(title)}</b> {escaped(facts)}</div>{body}"


def block(text: str) -> str:
    """Lines of text in a font of fixed width."""
    return f'<pre style="margin:.3em 0">{escaped(text)}</pre>'


def table(columns: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    """A table; numbers are on the right."""
    def cell(value: Any) -> str:
        if isinstance(value, bool) or not isinstance(value, (int, float)): return f"<td>{escaped(value)}</td>"
        return f'<td style="text-align:right">{f"{value:,}" if isinstance(value, int) else f"{value:.6g}"}</td>'

    head = "".join(f"<th>{escaped(name)}</th>" for name in columns)
    body = "".join(f"<tr>{''.join(map(cell, row))}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def scrolled(drawing: str) -> str:
    """A drawing, which scrolls if it is wider than the page."""
    return f'<div style="overflow:auto">{drawing}</div>'


def framed(page: str, title: str) -> str:
    """A whole page in a frame of its own. Its styles and scripts stay inside, and it reads nothing of the notebook."""
    return (f'<iframe title="{escaped(title)}" srcdoc="{escaped(page)}" sandbox="allow-scripts" '
            f'style="width:100%;height:640px;border:0"></iframe>')
