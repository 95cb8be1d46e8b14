"""The figures of the walkthrough that react: each control changes the text, the text can be read on a phone and a
screen, in light and dark, and it says what cygrad computes. Run with the extras docs and test: `make docs-test`."""

import importlib
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from browser import BACKGROUND, complaints, look

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.slow


def test_the_timeline_shows_each_event(served, browser):
    look(browser, 700, "light")
    browser.open(served + "_static/timeline.html")
    title, states = 'document.getElementById("event").textContent', browser.run("states.length")
    bars = 'document.querySelectorAll(".moment").length'
    assert browser.run(title) == "Before backward" and browser.run(bars) == states
    for k in range(1, states):
        browser.run('document.getElementById("forward").click()')
        assert browser.run(title).startswith(f"Event {k} of {states - 1}. ")
    assert browser.run('document.getElementById("forward").disabled')
    browser.run('document.dispatchEvent(new KeyboardEvent("keydown", {key: "ArrowLeft"}))')
    assert browser.run(title).startswith(f"Event {states - 2} of ")
    browser.run('document.querySelectorAll(".moment")[3].dispatchEvent(new Event("click"))')
    assert browser.run(title).startswith("Event 3 of ") and complaints(browser, served) == []


CHAPTERS = sorted((ROOT / "docs" / "walkthrough").glob("[0-9]*.md"))
FIGURES = [name for page in CHAPTERS for name in re.findall(r'<iframe src="../_static/(\w+).html"', page.read_text())]
REACTIVE = sorted({*FIGURES} - {"timeline"})


@pytest.mark.parametrize("name", REACTIVE)
def test_a_figure_reacts(name, served, browser):
    """Each control changes the text. The page fits, and its text can be read, in light and dark."""
    browser.open(f"{served}_static/{name}.html")
    for width in (700, 390):
        for scheme in ("light", "dark"):
            look(browser, width, scheme)
            assert browser.run("document.documentElement.scrollWidth") <= width
            paper, ink = browser.run(f"[{BACKGROUND}, {BACKGROUND.replace('backgroundColor', 'color')}]")
            assert (sum(paper) > 384) == (scheme == "light") and abs(sum(paper) - sum(ink)) > 450
    for control in browser.run("[...document.querySelectorAll('input, select')].map(e => e.id)"):
        before = browser.run("input('text').textContent")
        browser.run(f"""(() => {{ const e = input("{control}");
            if (e.tagName === "SELECT") e.selectedIndex = 1; else e.value = e.value === e.min ? e.max : e.min;
            e.dispatchEvent(new Event("input")); }})()""")
        assert browser.run("input('text').textContent") != before, control
    assert complaints(browser, served) == []


def test_figures_compute_what_cygrad_does(served, browser, monkeypatch):
    """The paths of solvers, the gradients of x * y + x, the places of elements and of buffers."""
    import cygrad as cg
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "figures"))
    solvers = importlib.import_module("solvers")
    browser.open(f"{served}_static/rates.html")
    for _, _, make, rate in solvers.SOLVERS:
        found = browser.run(f"path('{make.__name__}', {rate}, 40)")
        assert np.allclose(found, solvers.path(make(rate)), rtol=1e-9, atol=1e-9)
    browser.open(f"{served}_static/flow.html")
    x, y = cg.tensor(-1.5, requires_grad=True), cg.tensor(2.0, requires_grad=True)
    with cg.record(): z = x * y + x
    z.backward()
    last = browser.run("known(-1.5, 2, 5)")
    assert last["values"]["z"] == z.item() and last["grads"] == {"z": 1, "p": 1, "x": x.grad.item(), "y": y.grad.item()}
    browser.open(f"{served}_static/strides.html")
    x = cg.arange(12).reshape(3, 4)
    for k, view in enumerate(browser.run("views")):
        elements = eval(view["name"], {"x": x, "cg": cg}).tolist()
        rows, columns = view["shape"]
        places = browser.run(f"Array.from({{length: {rows}}}, (_, i) => Array.from({{length: {columns}}}, "
                             f"(_, j) => place(views[{k}], i, j)))")
        assert places == elements, view
    nets = importlib.import_module("nets")
    browser.open(f"{served}_static/packing.html")
    rows = [SimpleNamespace(**buffer) for buffer in browser.run("buffers")]
    for order, key in (("first step first", lambda r: r.first), ("largest first", lambda r: -nets.taken(r))):
        found = browser.run(f"packed('{order}').map(b => [b.operator, b.offset])")
        assert found == [[r.operator, place] for r, place in nets.fitted(sorted(rows, key=key))]
