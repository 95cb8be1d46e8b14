"""The documentation site: `make docs` builds it into out/docs. The pages are the Markdown of this directory, which is
also read as it is, on a code host or in an editor; what only the site can do is made of it here, as it is read:

- links between files of the repository become links between pages of the site, or downloads where there is no page;
- `<!-- toctree: PAGE ... -->` becomes the list of the pages below this one;
- an excerpt below `<!-- path -->` takes the path as its caption;
- `$...$` and `$$...$$` become MathML, which browsers draw by themselves, without a script or a download;
- `<a id="name"></a>` becomes a target.

The entries of the reference are made by autodoc, from what tools/reference.py reads. They are Python objects: with an
index, found by name in the search, and in the inventory that other projects link to."""

import os
import re
import sys
from pathlib import Path

import math_core
from docutils import nodes
from sphinx.util import logging

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path.insert(0, str(ROOT / "tools"))
import reference  # noqa: E402

project = "cygrad"
author = copyright = "the cygrad developers"
version = release = re.search(r'^__version__ = "(.+)"', (ROOT / "cygrad" / "__init__.py").read_text(), re.M)[1]

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx_copybutton"]
autodoc_default_options = {"undoc-members": True}
autodoc_member_order, autodoc_typehints = "groupwise", "none"       # tools/reference.py has the types
autosummary_generate = False                        # tools/make_docs.py has written the pages
copybutton_prompt_text, copybutton_prompt_is_regexp = r">>> |\.\.\. |\$ ", True      # not copied, nor what they print
myst_enable_extensions = ["attrs_inline", "colon_fence", "dollarmath"]
myst_dmath_double_inline = True
html_math_renderer, myst_update_mathjax = "mathml", False
myst_heading_anchors = 3
exclude_patterns = ["_static"]
toc_object_entries_show_parents = "hide"
smartquotes_action = "D"                            # dashes; "write" is a value that one types

html_theme = "furo"
html_title = f"cygrad {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "_static/cygrad.svg"
html_copy_source = html_show_sourcelink = False
html_show_copyright = False
html_theme_options = {
    "light_logo": "cygrad.svg", "dark_logo": "cygrad.svg", "navigation_with_keys": True,
    "light_css_variables": {"color-brand-primary": "#155e75", "color-brand-content": "#0e7490",
                            "color-api-background": "#f1f5f9", "color-api-name": "#155e75",
                            "color-api-pre-name": "#155e75"},
    "dark_css_variables": {"color-brand-primary": "#67e8f9", "color-brand-content": "#67e8f9",
                           "color-api-background": "#1c2229", "color-api-name": "#67e8f9",
                           "color-api-pre-name": "#67e8f9"},
}

# Files outside of this directory that the site has as a page; of a file in pieces, the pages of some of its headings.
PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "benchmarks/results/results.md": "time-benchmarks.md",
    "benchmarks/results/memory/memory.md": "memory-benchmarks.md",
    "benchmarks/results/products.md": "product-benchmarks.md",
    "benchmarks/results/sweep.md": "operator-benchmarks.md",
    "examples/README.md": "gallery.md",
    "examples/cython_operator/README.md": "cython-operator.md",
    "docs/reference.md#operators": "operators.md",      # (a page of git, which has no generated pages)
    "docs/reference.md#reference": "api.md",
}


def linked(text, source, page):
    """The text of the file `source` with its links as they must be in `page`, both paths."""
    def link(match):
        target, _, anchor = match[1].partition("#")
        there = (source.parent / target).resolve()
        if not target or not there.is_relative_to(ROOT) or not there.exists(): return match[0]
        if (there / "README.md").exists(): there /= "README.md"
        if there.parent == HERE / "api" and anchor: return f"](#{anchor})"
        path = str(there.relative_to(ROOT))
        found = PAGES.get(f"{path}#{anchor}") or PAGES.get(path)
        to = os.path.relpath(HERE / found if found else there, page.parent)
        return f"]({to}{anchor and '#' + anchor})"

    return re.sub(r"\]\(([^)\s:]+)\)", link, text)


def captioned(text):
    """Excerpts with the file they are from."""
    return re.sub(r"^<!-- (\S+) -->\n```(\w+)\n(.*?)^```$", r"```{code-block} \2\n:caption: `\1`\n\n\3```", text,
                  flags=re.M | re.S)


def on_source(app, docname, content):
    page = HERE / f"{docname}.md"
    text = captioned(linked(content[0], page, page))
    text = re.sub(r"^<!-- toctree: (.+) -->$", lambda m: "\n".join([
        ":::{toctree}", ":hidden:", ":glob:", "", *m[1].split(), ":::"]), text, flags=re.M)
    content[0] = re.sub(r'<a id="([\w.-]+)"></a>', r"[]{#\1}", text)


def on_include(app, path, parent, content):
    page = HERE / f"{app.env.docname}.md"
    content[0] = captioned(linked(content[0], (HERE / path).resolve(), page))


def mathml(in_line):
    """A visitor that writes a formula as MathML, in the line or in a box. An unknown command is a warning."""
    translator = math_core.LatexToMathML(fancy_error=False)

    def visit(self, node):
        try: formula = translator.convert_with_local_state(node.astext(), displaystyle=not in_line)
        except math_core.LatexError as error:
            logging.getLogger(__name__).warning("formula: %s", error, location=node)
            formula = ""
        tag = "span" if in_line else "div"
        self.body.append(self.starttag(node, tag, "", CLASS="math") + f"{formula}</{tag}>")
        raise nodes.SkipNode
    return visit


def setup(app):
    app.add_html_math_renderer("mathml", (mathml(True), None), (mathml(False), None))
    app.connect("autodoc-process-signature", reference.signature)
    app.connect("autodoc-process-docstring", reference.docstring)
    app.connect("source-read", on_source)
    app.connect("include-read", on_include)
    return {"parallel_read_safe": True}
