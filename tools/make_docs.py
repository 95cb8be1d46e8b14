"""Write docs/operators.md, docs/api.md and docs/api/, and in other pages the lists of the pages beside them:
python tools/make_docs.py [--build | --check]

--build leaves out the lists, which are in git. --check writes nothing.

A page has a list between `<!-- titles: PATTERN; ... -->` and `<!-- end of titles -->`: the number, the title and a link
of each page of its folder whose name has the pattern, from their first lines, `# 7. Title` or `# 0007 Title`.

The operator page has a row for each row of the operator table. The reference has every public name with its signature
and its docstring, on one page for each package and one for the tensor. The pages are plain Markdown with `<a id>` as
anchors, readable without the site; docs/conf.py turns the entries into Python objects when it builds the site."""

import ast
import functools
import inspect
import re
import sys
import textwrap

import surface
from surface import cygrad

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
Every public name, with its signature and its docstring. `import cygrad as cg` makes all of them available."""


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
    parts = re.split(r" {8}|\n", surface.text(type(row.operator)).partition("\n\n")[0])
    return "<br>".join(f"`{' '.join(part.split())}`" for part in parts if part.strip())


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
    return re.sub(r"([*<>\[\]\\]|\b_|_\b)", r"\\\1", words)


class Entry:
    """A public name: `full` includes its package, and the entry has its kind, signature and docstring."""

    def __init__(self, full, value, cls=None):
        self.full, self.value, self.cls = full, value, cls
        raw = value.__func__ if isinstance(value, (staticmethod, classmethod)) else value
        self.words, self.members = surface.text(raw), []
        self.signature = surface.signature(raw, cls is not None and not isinstance(value, staticmethod))
        if inspect.isclass(value):
            self.kind = "exception " if issubclass(value, BaseException) else "class "
            self.members = [Entry(f"{full}.{name}", v, value) for name, v in vars(value).items() if member(name, v)]
            self.members.sort(key=lambda e: (e.kind != "property ", e.full))
        elif isinstance(value, (staticmethod, classmethod)): self.kind = f"{type(value).__name__} "
        elif surface.is_attribute(value): self.kind = "property "
        elif surface.is_function(value): self.kind = ""
        else:
            self.kind = "data "
            size = f" of {len(value)}" if hasattr(value, "__len__") else ""
            ours = not type(value).__module__.startswith("numpy")
            self.words = f"A {type(value).__name__}{size}." if ours else f"NumPy's dtype: `numpy.{value}`."

    @property
    def name(self):
        """The name in the heading: for a member, the class and the name."""
        return ".".join(self.full.split(".")[-2:]) if self.cls else self.full

    @property
    def row(self):
        """The table row if the value is an operator, under any of its names, else None."""
        row = cygrad.ops.ROWS.get(getattr(self.value, "__name__", None))
        return row if row and row.function is self.value else None

    @property
    def section(self):
        """The section of the page that contains this entry."""
        if self.kind: return {"class": "Classes", "exception": "Exceptions", "data": "Values"}[self.kind.strip()]
        return f"Operators: {self.row.family}" if self.row else "Functions"

    @property
    def near(self):
        """The modules and classes in which names of its text are looked up."""
        outer = self.full.rpartition(".")[0]
        return [self.full, outer, outer.rpartition(".")[0]] if self.cls else [self.full, outer]


def member(name, value):
    if isinstance(value, surface.NoSuch): return False                  # a name of another library, which raises
    if type(value).__module__.startswith("sklearn."): return False      # set_fit_request and others, which it adds
    return not name.startswith("_") and (surface.is_function(value) or surface.is_attribute(value)
                                         or isinstance(value, (staticmethod, classmethod)))


class Reference:
    """The pages of the reference, docs/api/*.md, by name: the module and the entries of each."""

    def __init__(self):
        self.pages, self.same, seen = {}, {}, {}
        for module in surface.public_packages():
            page = module.__name__.rpartition(".")[2]
            entries = [Entry(f"{module.__name__}.{name}", value)
                       for name, value in surface.public(module).items() if not inspect.ismodule(value)]
            for entry in sorted(entries, key=lambda e: not e.full.endswith(f".{getattr(e.value, '__name__', '')}")):
                if entry.kind == "data ": continue
                first = seen.setdefault(id(entry.value), entry)
                if first is not entry: self.same[entry.full] = first.full       # an alias, or shown already
            self.pages[page] = module, entries
        self.page_of = {e.full: page for page, (_, entries) in self.pages.items()
                        for entry in entries for e in [entry, *entry.members]}
        for entry in self.pages["cygrad"][1]:
            if entry.full == "cygrad.Tensor":
                for e in [entry, *entry.members]: self.page_of[e.full] = "tensor"
        self.page_of |= {module.__name__: page for page, (module, _) in self.pages.items()}

    def link(self, name, shown, folder="", near=()):
        """`shown` as a link to the entry `name`, which is looked up in the modules and classes `near` first."""
        for full in (f"{prefix}{name}" for prefix in [*(f"{n}." for n in near), "", "cygrad."]):
            if page := self.page_of.get(full): return f"[{shown}]({folder}{page}.md#{full})"
        return shown

    def prose(self, text, near=(), parameters=()):
        """A docstring in Markdown. Aligned text stays aligned, and names of entries become links unless they are
        `parameters`."""
        def code(match):
            name = match[1].removesuffix("()")
            known = name not in parameters and re.fullmatch(r"\w+(\.\w+)*", name)
            return self.link(name, match[0], near=near) if known else match[0]

        def words(s):
            return re.sub(r"\bcygrad(\.\w+)+", lambda m: self.link(m[0], m[0]), escaped(s))

        blocks = []
        for block in text.split("\n\n"):
            if re.search(r"\S {3,}\S", block) or re.fullmatch(r"\w+ -?= [^.]+", block):      # columns, a formula
                blocks.append(f"```text\n{inspect.cleandoc(block)}\n```")
            elif block.startswith("    "):          # a program
                blocks.append(block)
            else:
                parts = re.split(r"(`[^`]+`)", block)
                blocks.append("".join(re.sub(r"`([^`]+)`", code, p) if p.startswith("`") else words(p) for p in parts))
        return "\n\n".join(blocks)

    def entry(self, entry, level):
        if entry.full == "cygrad.Tensor" and level == 3:
            return [self.link(entry.full, f"`{entry.full}`") + f": {escaped(surface.first_line(entry.value))}", ""]
        text = [f'{"#" * level} <a id="{entry.full}"></a>{entry.kind}`{entry.name}{entry.signature}`', ""]
        if entry.full in self.same:
            same = self.same[entry.full]
            return [*text, f"The same as {self.link(same, f'`{same}`')}.", ""]
        if entry.words: text += [self.prose(entry.words, entry.near, re.findall(r"\w+", entry.signature)), ""]
        if entry.row and not entry.cls:
            text += [f"[Formula, gradient, saved tensors](../operators.md#{anchor(entry.row)}).", ""]
        for e in entry.members: text += self.entry(e, level + 1)
        return text

    def sections(self, entries):
        """The entries by section, in the order of the operator table."""
        families = dict.fromkeys(f"Operators: {row.family}" for row in cygrad.ops.TABLE)
        found = {name: [] for name in ["Classes", "Functions", *families, "Exceptions", "Values"]}
        for entry in entries: found[entry.section].append(entry)
        return {name: members for name, members in found.items() if members}

    def page(self, module, entries):
        text = [f'# <a id="{module.__name__}"></a>`{module.__name__}`', WRITTEN, "",
                self.prose(surface.text(module), [module.__name__]), ""]
        sections = self.sections(entries)
        for name, members in sections.items():
            if len(sections) > 1: text += [f"## {name}", ""]
            for entry in sorted(members, key=lambda e: e.full != "cygrad.Tensor"): text += self.entry(entry, 3)
        return text

    def index(self):
        first, *others = self.pages
        pages = " ".join(f"api/{page}" for page in [first, "tensor", *others])
        text = ["# Reference", WRITTEN, f"<!-- toctree: {pages} -->", "", REFERENCE, ""]
        for page, (module, entries) in self.pages.items():
            text += [f"## [{module.__name__}](api/{page}.md)", "", self.prose(surface.first_sentence(module)), ""]
            for name, members in self.sections(entries).items():
                names = [self.link(e.full, e.full.removeprefix(f"{module.__name__}."), "api/") for e in members]
                text += [f"- {name}: " + ", ".join(names)]
            text += [""]
        return text

    def files(self):
        tensor = next(e for e in self.pages["cygrad"][1] if e.full == "cygrad.Tensor")
        texts = {"api.md": self.index(), "api/tensor.md": ["# The tensor", WRITTEN, "", *self.entry(tensor, 2)]}
        texts |= {f"api/{page}.md": self.page(*contents) for page, contents in self.pages.items()}
        return {name: "\n".join(lines).rstrip("\n") + "\n" for name, lines in texts.items()}


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
        lines = ["<!-- neighbours -->"]
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
    texts = {"operators.md": operators(), **Reference().files()}
    old = {f"api/{path.name}": None for path in (docs / "api").glob("*.md")}
    files = {docs / name: text for name, text in (old | texts).items()}
    if "--build" not in sys.argv[1:]: files |= lists(docs)
    surface.write(files, "--check" in sys.argv[1:])
