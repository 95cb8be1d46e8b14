"""docs/gallery.md shows every program of examples/ that draws a picture, with its docstring of today."""

import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def gallery(monkeypatch):
    """tools/make_gallery.py."""
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    return importlib.import_module("make_gallery")


def test_the_gallery_shows_every_program(gallery):
    page, programs = gallery.PAGE.read_text(), gallery.programs()
    assert len(programs) >= 10 and page.count("\n## ") == len(programs)
    for path in programs:
        assert all(text in page for text in gallery.paragraphs(path)), f"{path.name}: run make gallery"
        assert f"](_static/gallery/{path.stem}.png)" in page and f"](../examples/{path.name})" in page
        assert (gallery.PICTURES / f"{path.stem}.png").read_bytes().startswith(b"\x89PNG")


def test_an_entry_has_the_words_and_the_output_of_a_program(gallery, tmp_path):
    program = tmp_path / "line.py"
    program.write_text('"""A line: a fit.\n\n    python examples/line.py\n\nIt has two\nnumbers:"""\n')
    assert gallery.title(program) == "A line"
    said = gallery.entry(program, "slope 2\nwritten to out/line: picture.png\n")
    assert "\n\nA line: a fit.\n\nIt has two numbers.\n\n" in said and "```text\nslope 2\n```" in said
