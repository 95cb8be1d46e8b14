"""The documentation site, as `make docs` builds it: no warnings, every link and anchor has a target, nothing is loaded
from other hosts. In a browser, with the sizes of a phone and a screen, in light and dark, each page is legible.

Run with the extras docs and test: `make docs-test`."""

import base64
import html.parser
import importlib
import io
import os
import re
import subprocess
import sys
import urllib.parse
from pathlib import Path

import pytest
from browser import BACKGROUND, complaints, look, serving

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    if made := os.environ.get("CYGRAD_SITE"): return Path(made)         # .ci/run has just built it
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
    """The Markdown pages of docs/, with their formulas as MathML, and the rows of operators."""
    import cygrad as cg
    for document in (ROOT / "docs").rglob("*.md"):
        page = site / document.relative_to(ROOT / "docs").with_suffix(".html")
        assert page in pages, document
        formulas = re.sub(r"```.*?```|`[^`]*`", "", document.read_text(), flags=re.S).count("$$") / 2
        assert page.parent.name == "api" or page.read_text().count('<math display="block"') == formulas, document
    assert {f"op-{row.name.replace('_', '-')}" for row in cg.ops.TABLE} <= pages[site / "operators.html"].ids


def test_every_public_name_is_an_entry(site, pages, monkeypatch):
    """With its parameters, exceptions and example, its formula as MathML, and nothing that docutils misread."""
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    known = importlib.import_module("reference").reference()
    names = {name for page in (site / "api").glob("*.html") for name in pages[page].ids}
    assert {*known.entries} | {f"module-{name}" for name in known.modules} <= names
    text = {page.stem: page.read_text() for page in (site / "api").glob("*.html")}
    assert not [page for page, html in text.items() if "system-message" in html or 'class="problematic"' in html]
    entry = text["cygrad"].partition('id="cygrad.log_softmax"')[2].partition('<dl class="py')[0]
    for part in ("Parameters<", "Return type<", "Raises<", "IndexError", "<math", "operators.html#op-log-softmax",
                 "Examples<", "&gt;&gt;&gt; "):
        assert part in entry, part
    assert sum(html.count("<math") for html in text.values()) > 200


def test_formulas_are_mathml(tmp_path):
    """In the line and below it, drawn by the browser: nothing is loaded, and no script runs for them."""
    page = "# Page\n\nThe slope $\\frac{dy}{dx}$ of\n\n$$\ny = \\sqrt{x} < 1\n$$\n\n`a$b$`\n"
    (tmp_path / "index.md").write_text(page)
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "-n", "-c", ROOT / "docs", tmp_path, tmp_path / "html"]
    result = subprocess.run(command, text=True, capture_output=True, timeout=120)
    assert result.returncode == 0, result.stdout + result.stderr
    text = (tmp_path / "html" / "index.html").read_text()
    assert text.count("<math") == 2 and "<mfrac><mrow><mi>d</mi><mi>y</mi>" in text and "a$b$" in text
    assert text.count('display="block"') == 1 and "<msqrt>" in text and "<mo>&lt;</mo>" in text
    assert "mathjax" not in text.lower()
    (tmp_path / "index.md").write_text("# Page\n\nThis is $\\wrong{x}$.\n")
    result = subprocess.run(command, text=True, capture_output=True, timeout=120)
    assert result.returncode and 'index.md:3: WARNING: formula: 0: Unknown command "\\wrong"' in result.stderr
    (tmp_path / "index.md").write_text("# Page\n\nThis is $\\wrong{x}$.\n")
    result = subprocess.run(command, text=True, capture_output=True, timeout=120)
    assert result.returncode and 'index.md:3: WARNING: formula: 0: Unknown command "\\wrong"' in result.stderr


# ---- in a browser ----------------------------------------------------------------------------------------------------

@pytest.fixture(scope="module")
def served(site):
    with serving(site) as address: yield address


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


@pytest.mark.parametrize("scheme, theme", [("light", "auto"), ("dark", "auto"), ("light", "dark"), ("dark", "light")])
def test_pictures_follow_the_dark_mode(scheme, theme, served, browser):
    """That of the system, or the one that the reader has chosen. A corner of a picture is as dark as the page."""
    Image = pytest.importorskip("PIL.Image")
    dark = theme == "dark" or theme == "auto" and scheme == "dark"
    look(browser, 1280, scheme)
    browser.open(f"{served}walkthrough/28-nets-that-decide.html")
    browser.run(f"document.body.dataset.theme = '{theme}'")
    browser.run("document.querySelectorAll('article img').forEach(i => { i.loading = 'eager'; })")
    corners = browser.run("""Promise.all([...document.querySelectorAll("article img")].map(i => i.decode())).then(() =>
        [...document.querySelectorAll("article img")].map(i => i.getBoundingClientRect())
            .map(r => [r.left + scrollX, r.top + scrollY]))""")
    assert corners
    for x, y in corners:
        clip = {"x": x + 8, "y": y + 2, "width": 4, "height": 4, "scale": 1}
        shot = browser.call("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)["data"]
        pixel = Image.open(io.BytesIO(base64.b64decode(shot))).convert("L").getpixel((2, 2))
        assert pixel < 48 if dark else pixel > 240


def test_a_frame_has_the_colours_and_the_height_of_its_page(served, browser):
    look(browser, 1280, "light")
    browser.open(f"{served}walkthrough/05-a-scalar-autograd.html")
    frame = 'document.querySelector("iframe")'
    paper = f"getComputedStyle({frame}.contentDocument.body).backgroundColor"
    for theme, colour in (("dark", "rgb(19, 20, 22)"), ("light", "rgb(255, 255, 255)"), ("auto", "rgb(255, 255, 255)")):
        browser.run(f'document.body.dataset.theme = "{theme}"')
        assert browser.run(paper) == colour
    assert 0 <= browser.run(f"{frame}.clientHeight - {frame}.contentDocument.body.scrollHeight") < 20


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
