"""The documentation site, as `make docs` builds it: no warnings, every link and anchor has a target, nothing is loaded
from other hosts. In a browser, with the sizes of a phone and a screen, in light and dark, each page is legible.

Run with the extras docs and test: `make docs-test`."""

import functools
import html.parser
import http.server
import importlib
import subprocess
import sys
import threading
import urllib.parse
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from browser import Browser

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    built = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "-n", "--keep-going", "-d", built / "doctrees",
               ROOT / "docs", built / "html"]
    result = subprocess.run(command, text=True, capture_output=True, timeout=240)
    assert result.returncode == 0, result.stdout + result.stderr
    return built / "html"


class Page(html.parser.HTMLParser):
    """The anchors, the links and the loaded files of a page."""

    def __init__(self, path):
        super().__init__()
        self.ids, self.links, self.loads = set(), set(), set()
        self.feed(path.read_text())

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        assert given.get("id") is None or given["id"] not in self.ids, f"two of {given['id']}"
        if given.get("id"): self.ids.add(given["id"])
        if tag == "a" and given.get("href"): self.links.add(given["href"])
        for key in ("src", "srcset", "data", "poster"):
            if tag != "a" and given.get(key): self.loads.add(given[key])
        if tag == "link" and given.get("rel") not in ("index", "search", "next", "prev"): self.loads.add(given["href"])

    handle_startendtag = handle_starttag


def dead(site, pages):
    """The links and loads of the pages without a target, and loads from other hosts: (page, link)."""
    found = []
    for path, page in pages.items():
        for link in page.links | page.loads:
            to = urllib.parse.urlsplit(link)
            if to.scheme or to.netloc:
                if link in page.loads and to.scheme != "data": found.append((path, link))
                continue
            there = (path.parent / urllib.parse.unquote(to.path)).resolve() if to.path else path
            anchor = urllib.parse.unquote(to.fragment)
            wrong = not there.is_file() or not there.is_relative_to(site)
            if wrong or (anchor and there.suffix == ".html" and anchor not in pages[there].ids):
                found.append((path, link))
    return [(str(path.relative_to(site)), link) for path, link in sorted(found)]


@pytest.fixture(scope="module")
def pages(site):
    return {path: Page(path) for path in sorted(site.rglob("*.html"))}


def test_every_link_and_anchor_leads_somewhere(site, pages):
    assert dead(site, pages) == []
    for path, page in pages.items():                # to another page, on any machine
        assert not [link for link in page.links if link.startswith(("file:", "/", "http://"))], path
    assert all((site / name).is_file() for name in ("objects.inv", "searchindex.js", "_static/cygrad.svg"))


def test_dead_links_are_found(tmp_path):
    (tmp_path / "b.html").write_text('<p id="here">')
    (tmp_path / "a.html").write_text('<a href="b.html#here"><a href="b.html#gone"><a href="c.html"><img src="d.png">'
                                     '<a href="https://x.org/"><script src="https://x.org/y.js"></script>')
    pages = {path: Page(path) for path in tmp_path.glob("*.html")}
    assert [link for _, link in dead(tmp_path, pages)] == ["b.html#gone", "c.html", "d.png", "https://x.org/y.js"]


def test_every_document_is_a_page(site, pages):
    """The Markdown pages of docs/, the rows of operators, the entries of public names."""
    import cygrad as cg
    for document in (ROOT / "docs").rglob("*.md"):
        assert site / document.relative_to(ROOT / "docs").with_suffix(".html") in pages, document
    assert {f"op-{row.name.replace('_', '-')}" for row in cg.ops.TABLE} <= pages[site / "operators.html"].ids
    public = {f"cygrad.{name}" for name, value in vars(cg).items()
              if not name.startswith("_") and type(value).__name__ != "module" and name != "Tensor"}
    assert public <= pages[site / "api" / "cygrad.html"].ids
    assert {"cygrad.Tensor", "cygrad.Tensor.backward"} <= pages[site / "api" / "tensor.html"].ids


# ---- in a browser ----------------------------------------------------------------------------------------------------

class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args): pass


@pytest.fixture(scope="module")
def served(site):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=site))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    browser = Browser(tmp_path_factory.mktemp("browser"))
    for domain in ("Page", "Network", "Runtime", "Log"): browser.call(f"{domain}.enable")
    yield browser
    browser.close()


def look(browser, width, scheme):
    browser.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 800)
    browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])


def complaints(browser, served):
    """The browser's reports about the page: errors, exceptions, failed loads, and requests to other hosts."""
    found = []
    for event in browser.events:
        told = event.get("params", {})
        match event["method"]:
            case "Runtime.exceptionThrown": found.append(told["exceptionDetails"]["text"])
            case "Runtime.consoleAPICalled" if told["type"] in ("error", "warning"): found.append(told["args"])
            case "Log.entryAdded" if told["entry"]["level"] in ("error", "warning"): found.append(told["entry"]["text"])
            case "Network.loadingFailed": found.append(told["errorText"])
            case "Network.responseReceived" if told["response"]["status"] >= 400: found.append(told["response"]["url"])
            case "Network.requestWillBeSent" if not told["request"]["url"].startswith((served, "data:")):
                found.append(told["request"]["url"])
    return found


# Elements that are wider than the page, or extend beyond it outside a scrolling box of the article. (That furo's frame
# around the article could scroll sideways does not count.)
WIDE = """(() => {
  const page = document.documentElement, wide = [];
  if (page.scrollWidth > page.clientWidth) wide.push(`the page: ${page.scrollWidth} of ${page.clientWidth}`);
  for (const e of document.querySelectorAll("article *")) {
    let box = e.parentElement;
    while (box.tagName !== "ARTICLE" && !["auto", "scroll"].includes(getComputedStyle(box).overflowX))
      box = box.parentElement;
    if (box.tagName === "ARTICLE" && e.getBoundingClientRect().right > page.clientWidth + 1)
      wide.push(`${e.tagName} ${e.className} ${e.textContent.slice(0, 60)}`);
  }
  return wide;
})()"""

# Code that is cut off, and a list of the page's headings that is not in view.
CUT = """(() => {
  const cut = [...document.querySelectorAll("article pre")].filter(e => e.scrollWidth > e.clientWidth + 1);
  const list = document.querySelector(".toc-drawer:not(.no-toc)"), page = document.documentElement;
  const there = !list || innerWidth < 1152 || list.getBoundingClientRect().right <= page.clientWidth + 1;
  return [...cut.map(e => e.textContent.slice(0, 60)), ...(there ? [] : ["On this page"])];
})()"""

# Pictures that failed to load. Those further down load only after scrolling, unless requested.
BLANK = """Promise.all([...document.images].map(i => { i.loading = "eager"; return i.decode().catch(() => 0); }))
  .then(() => [...document.images].filter(i => !i.naturalWidth).map(i => i.src))"""

# Text whose contrast to its background is below 4.5 to 1, the minimum of WCAG 2 for text of this size.
FAINT = """(() => {
  const parts = c => c.match(/[\\d.]+/g).map(Number);
  const linear = v => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const light = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  const faint = {};
  for (const e of document.querySelectorAll("article *")) {
    if (![...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim()) || !e.checkVisibility()) continue;
    let behind = e;
    while (behind && (parts(getComputedStyle(behind).backgroundColor)[3] ?? 1) === 0) behind = behind.parentElement;
    const a = light(parts(getComputedStyle(e).color));
    const b = light(behind ? parts(getComputedStyle(behind).backgroundColor) : [255, 255, 255]);
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < 4.5) faint[`${e.tagName}.${e.className}`] = [contrast.toFixed(2), e.textContent.slice(0, 40)];
  }
  return faint;
})()"""

BACKGROUND = "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).slice(0, 3).map(Number)"


def test_pages_in_a_browser(site, pages, served, browser):
    wrong = []
    for path in pages:
        name = str(path.relative_to(site))
        look(browser, 1280, "light")
        browser.open(served + name)
        for scheme in ("light", "dark"):
            for width in (1280, 400):
                look(browser, width, scheme)
                wrong += [(name, width, "wide", what) for what in browser.run(WIDE)[:3]]
                wrong += [(name, width, "cut", what) for what in browser.run(CUT)[:3]]
            browser.run("document.getAnimations().forEach(a => a.finish())")       # colours change gradually
            assert (sum(browser.run(BACKGROUND)) > 384) == (scheme == "light"), name
            wrong += [(name, scheme, "faint", *what) for what in browser.run(FAINT).items()]
        wrong += [(name, "blank", src) for src in browser.run(BLANK)]
        wrong += [(name, "told", what) for what in complaints(browser, served)]
    assert not wrong, "\n".join(map(str, wrong))


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


REACTIVE = "strides", "flow", "rates", "packing", "tiles"


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


def test_the_search_finds_names_and_words(served, browser):
    look(browser, 1280, "light")
    for query, expected in (("GradientCollector", "api/cygrad.html#cygrad.GradientCollector"),
                            ("Philox", "api/random.html")):
        browser.open(f"{served}search.html?q={query}")
        found = browser.run(f"""new Promise(done => {{ const look = tries => {{
            const links = [...document.querySelectorAll("#search-results li a")].map(a => a.getAttribute("href"));
            links.includes("{expected}") || !tries ? done(links) : setTimeout(look, 50, tries - 1); }};
            look(200); }})""")
        assert expected in found, (query, found)
        assert complaints(browser, served) == []


def test_the_checks_of_a_page_can_fail(tmp_path, served, browser):
    page = tmp_path / "page.html"
    page.write_text('<article style="background: #fff"><p style="width: 3000px">wide<p style="color: #bbb">faint</p>'
                    '<pre style="overflow-x: auto; width: 9px">code that is cut off</pre><img src="none.png"></article>'
                    '<aside class="toc-drawer" style="position: fixed; left: 1280px">headings</aside>'
                    '<script>nothing()</script>')
    look(browser, 1280, "light")
    browser.open(page.as_uri())
    assert browser.run(CUT) == ["code that is cut off", "On this page"]
    assert len(browser.run(WIDE)) == 2 and len(browser.run(FAINT)) == 1 and len(browser.run(BLANK)) == 1
    told = complaints(browser, served)
    assert "Uncaught" in told and "net::ERR_FILE_NOT_FOUND" in told and page.as_uri() in told
