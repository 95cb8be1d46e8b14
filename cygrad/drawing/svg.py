"""What the SVG pictures of nets and plans share: the frame with its title, texts of a known width, and the file."""

import html
import os
import unicodedata
from typing import Any

from cygrad.core.errors import cut, described
from cygrad.core.handles import Replacing
from cygrad.core.paths import file_path

LETTER = 6.8                # the width of a letter of 11 pixels in a font of fixed width, rounded up
LONGEST = 30                # letters of a label; its tooltip has all


def written(draw: Any, path: Any, who: str, example: str, fault: str) -> str:
    """The picture that draw() returns, which is also written to `path` if one is given. Raises ValueError with `fault`,
    which has a place for the path, before anything is drawn unless the path ends with .svg."""
    name = None if path is None else file_path(path, who, example)
    if name is not None and os.path.splitext(name)[1].lower() != ".svg":
        raise ValueError(f"{who}: the path must end with .svg{fault.format(cut(described(name)))}")
    text: str = draw()
    if name is not None: write(name, text, who)
    return text


def write(name: str, text: str, who: str) -> None:
    """Replace a file by a text."""
    with Replacing(name, who) as file: file.write(text.encode())


def element(kind: str, *inside: str, **attributes: object) -> str:
    """An element of SVG around others. Numbers with a fraction are shown with one digit of it. In names of attributes _
    stands for -, and the one at the end of class_ is left out."""
    shown = "".join(f' {name.rstrip("_").replace("_", "-")}="{f"{v:.1f}" if isinstance(v, float) else v}"'
                    for name, v in attributes.items())
    return f"<{kind}{shown}>{''.join(inside)}</{kind}>" if inside else f"<{kind}{shown}/>"


def label(x: float, y: float, words: object, **attributes: object) -> str:
    """A line of text that begins at x, unless text_anchor says otherwise."""
    return element("text", html.escape(f"{words}", False), x=x, y=y, **attributes)


def tooltip(words: str) -> str:
    """What appears while the pointer is over the element that this one is inside."""
    return element("title", html.escape(words))


def picture(kind: str, width: int, height: int, title: str, style: str, at: tuple[int, int], parts: list[str]) -> str:
    """A picture on paper, with a title at a place. `kind` is its class, to which its style is limited."""
    parts = [label(*at, title, class_="head"), *parts, ""]
    return element("svg", tooltip(title), element("style", style),
                   element("rect", class_="paper", width=width, height=height), "\n".join(parts),
                   xmlns="http://www.w3.org/2000/svg", class_=kind, width=width, height=height,
                   viewBox=f"0 0 {width} {height}", role="img", aria_label=html.escape(title)) + "\n"


def columns(text: str) -> int:
    """The width of a text in letters; those of East Asia are twice as wide."""
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def short(text: str) -> str:
    """A text as a label."""
    return text if len(text) <= LONGEST else text[:LONGEST - 2] + ".."


def fitted(text: str, room: int) -> str:
    """The text, or its beginning, if it fits into as many columns."""
    if columns(text) <= room: return text
    return text[:room - 2] + ".." if room >= 5 and len(text) == columns(text) else ""


def curve(x: float, y: float, to_x: float, to_y: float) -> str:
    """A curve down that begins and ends vertically."""
    middle = (y + to_y) / 2
    return f"C{x:.1f},{middle:.1f} {to_x:.1f},{middle:.1f} {to_x:.1f},{to_y:.1f}"
