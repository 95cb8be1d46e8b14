"""Write docs/operators.md, docs/api.md and docs/api/, and in other pages the lists of the pages beside them and the
ends of chapters: python tools/make_docs.py [--build | --check]

--build leaves out the lists and the ends, which are in git. --check writes nothing.

A page has a list between `<!-- titles: PATTERN; ... -->` and `<!-- end of titles -->`: the number, the title and a link
of each page of its folder whose name has the pattern, from their first lines, `# 7. Title` or `# 0007 Title`. Chapters
are listed by their parts, which the quotes below their titles name. Below `<!-- neighbours -->` a chapter ends with
links to the chapters before and after it.

The operator page has a row for each row of the operator table. The reference has every public name on one page for each
package and one for the tensor; its pages ask Sphinx's autodoc for each entry, in sections, and tools/reference.py tells
autodoc what stands in it."""

import ast
import functools
import inspect
import re
import sys
import textwrap

import formulas
import surface
from reference import Reference

sys.path.insert(0, str(surface.ROOT / "tests"))

from tests import samples
from tests.samples.saved import CALLS, CASES, SAVED

WRITTEN = "<!-- Written by tools/make_docs.py; do not edit. -->"
ABOUT = """\
This page lists every operator of cygrad. It is generated from the operator table (`cygrad/ops/table.py`). A formula
gives the value first and then the gradient of each input; `g` is the gradient of the result. The column "saved" says
what a recorded operation saves for backward, for each input that needs a gradient; an input that it does not name needs
nothing. A saved input or result is not a copy. It adds its bytes only if nothing else holds it: no variable, no other
operation and no name of the program. Of relu and leaky_relu, also of relu as an `activation`, a result that nothing
else holds becomes 1 bit for each element, from 64 elements on. Indices and labels in external memory are copied. A
number has the dtype of the result, and bits are packed. The column "NumPy" has the expression that a test compares the
value with; a name that ends in `_like` is a short function in `tests/samples`."""

REFERENCE = """\
Every public name and what it is for. Its entry has the parameters with their types, the result, the exceptions, the
formula and an example. `import cygrad as cg` makes all of them available."""


def table(head, rows):
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


# ---- the operator page -----------------------------------------------------------------------------------------------

@functools.cache
def lambdas(module):
    """The expressions of the lambdas in a module's source, by their line and their arguments."""
    return {(n.lineno, *(a.arg for a in n.args.args)): ast.unparse(n.body)
            for n in ast.walk(ast.parse(inspect.getsource(sys.modules[module]))) if isinstance(n, ast.Lambda)}


def in_numpy(row):
    """The NumPy expression that a test compares the row's value with."""
    f = row.like
    if f.__name__ == "<lambda>":
        code = f.__code__
        return f"`{lambdas(f.__module__)[code.co_firstlineno, *code.co_varnames[:code.co_argcount]]}`"
    file = f.__module__.replace(".", "/")
    return f"`{f.__name__}` in `{file}.py`" if file.startswith("tests/") else f"`numpy.{f.__name__}`"


def formula(row):
    """The first paragraph of the operator's docstring: the value and the gradient of each input."""
    text = surface.text(type(row.operator)).partition("\n\n")[0]
    return typeset(text) or "<br>".join(typeset(part) or f"`{' '.join(part.split())}`"
                                        for part in re.split(r" {8}|\n", text) if part.strip())


def typeset(text):
    """A formula as mathematics; None if there are many words in it, which would not wrap."""
    tex = formulas.latex(text)
    words = re.findall(r"(?:\\text\{[^}]*\}(?:, \\quad| )*)+", tex or "")
    return f"${tex}$" if tex and all(len(run) < 50 for run in words) else None


def keeps(row):
    """In words, what the operator saves for the gradient of each input. Rows that share the function `keeps` share
    their sample calls here."""
    calls = [(given(r, args, kwargs), r.kept(*args, **kwargs)) for r in samples.TABLE
             if r is row or callable(row.keeps) and r.keeps is row.keeps for args, kwargs in r.tries]
    found = {}
    for x in dict.fromkeys(x for _, kept in calls for x in kept):
        mine = [(values, kept.get(x, "").split()) for values, kept in calls if values[x] is not None]
        tokens = dict.fromkeys(token for _, kept in mine for token in kept)
        found[x] = tuple(sorted((saved(row, token, mine) for token in tokens), key=lambda s: s.endswith("(otherwise)")))
    first = min(found.values(), key=len, default=())
    common = [words for words in first if all(words in others for others in found.values())]
    if len(set(found.values())) < 3 or len(common) < 2: common, lines = [], []
    else: lines = ["all inputs: " + "; ".join(common)]
    for values in dict.fromkeys(found.values()):
        more = [words for words in values if words not in common]
        inputs = ", ".join(f"`{x}`" for x in found if found[x] == values)
        if more: lines.append(inputs + " also" * bool(common) + ": " + "; ".join(more))
    nothing = "nothing" if row.operator.differentiable else "no gradient"
    return "<br>".join(lines) or CALLS.get(row.name, nothing)


def given(row, args, kwargs):
    """The arguments of a sample call by name, with defaults; "an array" for each array."""
    bound = inspect.signature(row.tested).bind(*args, **kwargs)
    bound.apply_defaults()
    return {name: "an array" if hasattr(value, "shape") else value for name, value in bound.arguments.items()}


def saved(row, token, calls):
    """What a token of `keeps` means, and when it is saved: the arguments and tokens of each call are in `calls`."""
    defaults = {p.name: p.default for p in inspect.signature(row.tested).parameters.values()}
    if token not in SAVED and token not in defaults:
        raise KeyError(f"{row.name} saves {token!r}; describe it in tests/samples/saved.py")
    words = SAVED.get(token) or f"`{token}`"
    if (row.name, token) in CASES: return f"{words} ({CASES[row.name, token]})"
    if token in defaults and defaults[token] is None: return f"{words} (if given)"
    if all(token in kept for _, kept in calls): return words
    return f"{words} ({condition(row, token, calls, defaults)})"


def condition(row, token, calls, defaults):
    """The argument that decides whether the token is saved."""
    for name, default in defaults.items():
        there, absent = ({repr(values.get(name)) for values, kept in calls if (token in kept) is found}
                         for found in (True, False))
        if there & absent: continue
        if len(there) == 1: return f"with `{name}={there.pop()}`"
        if absent == {repr(default)}: return f"with `{name}`"
        return f"unless `{name}` is {' or '.join(sorted(absent))}"
    raise KeyError(f"{row.name}: when is {token!r} saved? Add the case to tests/samples/saved.py")


def call(row):
    """The call of the operator, linked to its entry in the reference, with the anchor of its row."""
    shown = f"`{row.name}{surface.signature(row.function)}`"
    return f'<a id="{anchor(row)}"></a>' + (f"[{shown}](api/cygrad.md#cygrad.{row.name})" if row.public
                                            else f"{shown} (internal)")


def anchor(row):
    """The anchor of a row, with hyphens as in Sphinx."""
    return f"op-{row.name.replace('_', '-')}"


def operators():
    """The operator page. In a family, public operators precede internal ones; families without public ones come
    last."""
    families = {}
    for row in samples.TABLE: families.setdefault(row.family, []).append(row)
    for members in families.values(): members.sort(key=lambda row: not row.public)
    families = dict(sorted(families.items(), key=lambda item: not item[1][0].public))
    text = ["# Operators", WRITTEN, "", ABOUT, ""]
    text += [f"- [{family}](#{family}): " + ", ".join(f"[{row.name}](#{anchor(row)})" for row in members)
             for family, members in families.items()]
    for family, members in families.items():
        text += ["", f"## {family}", ""]
        text += [table(["operator", "value, gradients", "saved for the gradient of", "description", "NumPy"],
                       [[call(row), formula(row), keeps(row), escaped(surface.first_sentence(row.function)),
                         in_numpy(row)] for row in members])]
    text += ["", "An internal operator has no public name. Syntax such as `x[1:3]` calls it, or the gradient of "
             "another operator."]
    return "\n".join(text) + "\n"


# ---- the reference ---------------------------------------------------------------------------------------------------

def escaped(words):
    """Escape text outside code, so that Markdown shows every character as it is."""
    return re.sub(r"([*<>\[\]\\$]|\b_|_\b)", r"\\\1", words)


def rst(lines):
    """Lines of reStructuredText in Markdown."""
    return ["~~~{eval-rst}", *lines, "~~~", ""]


def asked(entry, same):
    """The directive that makes the entry: one of autodoc's, except for values and other names of an entry."""
    kind = entry.kind
    if alias := same.get(entry.full): lines = ["", f"   The same as :py:obj:`{alias}`."]
    elif kind == "data": lines = ["", f"   {entry.words.replace('`', '``')}"]
    else:
        members = ", ".join(e.full.rpartition(".")[2] for e in entry.members)
        return [f".. auto{kind}:: {entry.full}{entry.signature}", *([f"   :members: {members}"] if members else []), ""]
    module, _, name = entry.full.rpartition(".")
    return [f".. py:{kind}:: {name}{entry.signature if alias else ''}", f"   :module: {module}", *lines, ""]


def reference_pages():
    """The pages of the reference and its index."""
    reference = Reference()
    first, *others = reference.pages
    pages = " ".join(f"api/{page}" for page in [first, "tensor", *others])
    index = ["# Reference", WRITTEN, f"<!-- toctree: {pages} -->", "", REFERENCE, ""]
    files = {}
    for page, (module, entries) in reference.pages.items():
        text = [f"# {module.__name__}", WRITTEN, "", *rst([f".. automodule:: {module.__name__}"])]
        index += [f"## [{module.__name__}](api/{page}.md)", "", escaped(surface.first_sentence(module)), ""]
        for name, members in reference.sections(entries).items():
            here = [e for e in members if e.full != "cygrad.Tensor"]
            text += [f"## {name}", "", *rst([line for e in here for line in asked(e, reference.same)])]
            listed = [f"   ~{e.full}" for e in here if e.kind != "data" and e.full not in reference.same]
            if listed: index += [f"### {name}", "", *rst([".. autosummary::", "   :nosignatures:", "", *listed])]
        files[f"api/{page}.md"] = text
    files["api/tensor.md"] = ["# The tensor", WRITTEN, "", *rst(asked(reference.entries["cygrad.Tensor"], {}))]
    files["api.md"] = index
    return {name: "\n".join(lines).rstrip("\n") + "\n" for name, lines in files.items()}


# ---- lists of pages --------------------------------------------------------------------------------------------------

LIST = re.compile(r"^(<!-- titles: (\S+); .*-->\n)(.*?)^<!-- end of titles -->$", re.M | re.S)
TITLE = re.compile(r"# 0*(\d+)\.? (.+)\n")
HEAD = re.compile(r"> \*\*(\w+)\.\*\* You need (.+?)\. It takes about (\d+) minutes\. You can then (.+)\.")
NEIGHBOURS = re.compile(r"^<!-- neighbours -->\n.*\Z", re.M | re.S)


def head(text):
    """What a chapter says of itself below its title, or None: its part, what it needs, its minutes, what it teaches."""
    quote = re.match(r"# .+\n\n((?:> .+\n)+)", text)
    found = quote and HEAD.fullmatch(re.sub(r"\n> ", " ", quote[1].strip()))
    return found and found.groups()


def listing(page):
    """The text of the page with its list as it must be."""
    def listed(match):
        lines, last = [match[1]], None
        for other in sorted(page.parent.glob(match[2])):
            text = other.read_text()
            number, title = TITLE.match(text).groups()
            part, _, minutes, can = head(text) or (None,) * 4
            if part != last: lines.append(f"{chr(10) if last else ''}**{part}**\n\n")
            lines.append(f"{number}. [{title}]({other.name})" + "\\" * bool(part) + "\n")
            about = f"{minutes} minutes. You can then {can}."
            if part: lines.append(textwrap.indent(textwrap.fill(about, 114), " " * 4) + "\n")
            last = part
        return "".join([*lines, "<!-- end of titles -->"])

    return LIST.sub(listed, page.read_text())


def chapters(folder):
    """The chapters by path, with links to the one before and the one after at their ends."""
    pages = [page for page in sorted(folder.glob("[0-9]*.md")) if head(page.read_text())]
    links = [f"[{TITLE.match(page.read_text())[2]}]({page.name})" for page in pages]
    found = {}
    for k, page in enumerate(pages):
        learn = f"`python -m cygrad learn --chapter {k + 1}` has [exercises as files](../learn.md)."
        lines = ["<!-- neighbours -->", learn, ""]
        if k: lines.append(f"Previous: {links[k - 1]}.")
        if k + 1 < len(pages): lines.append(f"Next: {links[k + 1]}.")
        found[page] = NEIGHBOURS.sub(lambda _, lines=lines: "\n".join(lines) + "\n", page.read_text())
    return found


def lists(docs):
    """The pages that have a list, and the chapters, by path, as they must be."""
    pages = {page: listing(page) for page in sorted(docs.rglob("*.md")) if LIST.search(page.read_text())}
    return pages | chapters(docs / "walkthrough")


if __name__ == "__main__":
    docs = surface.ROOT / "docs"
    (docs / "api").mkdir(parents=True, exist_ok=True)
    texts = {"operators.md": operators(), **reference_pages()}
    old = {f"api/{path.name}": None for path in (docs / "api").glob("*.md")}
    files = {docs / name: text for name, text in (old | texts).items()}
    if "--build" not in sys.argv[1:]: files |= lists(docs)
    surface.write(files, "--check" in sys.argv[1:])
