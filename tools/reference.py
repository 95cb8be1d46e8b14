"""The reference: what stands in the entry of each public name. The names, signatures and docstrings are those of the
running package, the types those of the stubs, the examples those of docs/examples.

docs/conf.py connects `signature` and `docstring` to Sphinx's autodoc, which makes the entries; tools/make_docs.py
writes the pages that ask for them. A docstring is prose. Sentences that begin with a parameter (`name`: ..., With
`name` ...) or name no other describe it, those that begin with "Raises" list exceptions, and "Returns" tells the
result. Columns are formulas or tables. The rest stays as it is."""

import ast
import functools
import inspect
import re
import textwrap
import typing

import doc_examples
import formulas
import surface
from make_stubs import ALIASES, WHOLE, Stub
from surface import cygrad

EXCEPTION = r"(?:numpy\.linalg\.)?[A-Z]\w*(?:Error|Interrupt|Warning)"
RAISED = re.compile(rf"(?:\A|(?<=[,;] )|(?<= and )|(?<= or ))({EXCEPTION}(?:(?:, | or |, or ){EXCEPTION})*)")
SENTENCE = re.compile(r"(?<!\b[A-Z]\.)(?<!\bal\.)(?<!\be\.g\.)(?<!\bi\.e\.)(?<!\.\.\.)(?<=[.?])\s+")
SOURCE = re.compile(r"https?://|^(?:Gradient: )?[A-Z].*\((?:19|20)\d\d\)")
REFERS = re.compile("(?:It|They|This|These|Then|Both|Else)\\b")
COMMON = {                  # parameters that mean the same wherever they occur, and that few docstrings repeat
    "device": 'None or "cpu": all tensors are in CPU memory.',
    "generator": "Where the random numbers come from; None: the default generator.",
    "keepdims": "Whether the axes that are reduced stay, with size 1.",
    "options": "Settings in PyTorch's spelling, which take the place of the others.",
    "reduction": "What becomes of the losses: their mean, their sum, or none: one result for each.",
    "requires_grad": "Whether the result is a variable.",
}
COLUMNS = re.compile(r"\S {3,}\S|\A\w+ -?= [^.]+\Z")


class Entry:
    """A public name: `full` includes its package, and the entry has its kind, signature and docstring."""

    def __init__(self, full, value, cls=None):
        self.full, self.value, self.cls = full, value, cls
        raw = value.__func__ if isinstance(value, (staticmethod, classmethod)) else value
        self.words, self.members, self.raw = surface.text(raw), [], raw
        self.arguments = surface.arguments(raw, cls is not None and not isinstance(value, staticmethod))
        if inspect.isclass(value):
            self.kind = "exception" if issubclass(value, BaseException) else "class"
            self.members = [Entry(f"{full}.{name}", v, value) for name, v in vars(value).items() if member(name, v)]
        elif surface.is_attribute(value): self.kind = "property"
        elif surface.is_function(value) or isinstance(value, (staticmethod, classmethod)):
            self.kind = "method" if cls else "function"
        else:
            self.kind = "data"
            if inspect.ismodule(value): return
            size = f" of {len(value)}" if hasattr(value, "__len__") else ""
            ours = not type(value).__module__.startswith("numpy")
            self.words = f"A {type(value).__name__}{size}." if ours else f"NumPy's dtype: `numpy.{value}`."

    @property
    def signature(self):
        return "" if self.arguments is None else surface.shown(self.arguments)

    @property
    def row(self):
        """The table row if the value is an operator, under any of its names, else None."""
        row = cygrad.ops.ROWS.get(getattr(self.value, "__name__", None))
        return row if row and row.function is self.value else None

    @property
    def formula_row(self):
        """The row whose formula the entry shows: its own; of a layer that of the operator that it runs, which has its
        name, or to which its docstring refers."""
        if self.cls or not (inspect.isclass(self.value) and issubclass(self.value, cygrad.nn.Module)): return self.row
        rows = {name.replace("_", ""): row for name, row in cygrad.ops.ROWS.items()}
        name = self.value.__name__.lower()
        run = getattr(getattr(self.value, "operator", None), "__name__", "")
        referred = re.findall(r"[Ss]ee (?:cygrad\.)?([a-z]\w*)", self.words)
        tried = [run, name, name.removesuffix("loss"), re.sub(r"\dd\Z", "", name), *referred]
        return next((rows[n] for n in (n.replace("_", "") for n in tried) if n in rows), None)

    @property
    def section(self):
        """The section of the page that contains this entry."""
        if self.kind != "function": return {"class": "Classes", "exception": "Exceptions", "data": "Values"}[self.kind]
        return f"Operators: {self.row.family}" if self.row else "Functions"

    @property
    def near(self):
        """The modules and classes in which names of its text are looked up."""
        outer = self.full.rpartition(".")[0]
        return [self.full, outer, outer.rpartition(".")[0]] if self.cls else [self.full, outer]

    @functools.cached_property
    def types(self):
        """The types of the arguments by name, and of the result as "return", as in the stubs."""
        name = getattr(self.raw, "__name__", None) or self.full.rpartition(".")[2]
        whole = WHOLE.get(name) if self.kind == "function" and not self.full.startswith("cygrad.func.") else None
        if whole: return overloaded(whole)
        module = inspect.getmodule(self.cls or self.raw) or cygrad
        stub, key = Stub(module, set(), []), f"{self.cls.__name__}.{name}" if self.cls else name
        found = {p.name: stub.parameter_type(name, p, True) for p in self.arguments or ()}
        if self.kind in ("function", "method", "property"):
            f = getattr(self.raw, "fget", None) or getattr(self.raw, "func", None) or self.raw
            try: given = inspect.signature(f)
            except (TypeError, ValueError): given = None
            found["return"] = stub.result(key, True, given)
        classes = (self.cls or self.raw).__mro__ if inspect.isclass(self.cls or self.raw) else ()
        modules = [module, *filter(None, map(inspect.getmodule, classes))]

        def definition(match):                      # of a name of the module for a type, such as Sizes
            value = next((vars(m)[match[0]] for m in modules if match[0] in vars(m)), None)
            if typing.is_typeddict(value): return ", ".join(value.__annotations__)
            return stub.annotated(value) if typing.get_origin(value) else match[0]

        found = {key: re.sub(r"(?<![\w.])[A-Z]\w*", definition, kind) for key, kind in found.items()}
        return {key: spelled(re.sub(r"Unpack\[(.*)\]", r"\1", kind)) for key, kind in found.items()}

    @functools.cached_property
    def parts(self):
        """The docstring in parts: paragraphs, and what belongs to a section of its own."""
        names = [p.name for p in self.arguments or ()]
        parts = {"text": [], "parameters": {}, "returns": [], "raises": [], "source": []}
        for block in self.words.split("\n\n"):
            if COLUMNS.search(block) or block.startswith("    "):
                rows = dict(table(block))
                if rows and {*rows} <= {*names}: parts["parameters"] |= rows
                elif block.startswith("    ") and parts["text"] and parts["text"][-1].startswith("    "):
                    parts["text"][-1] += f"\n\n{block}"       # a program with a blank line
                else: parts["text"].append(block)
                continue
            placed, found, moved = [], sentences(block, names), None
            for k, sentence in enumerate(found):
                first = not k and not parts["text"]
                if isinstance(moved, list) and REFERS.match(sentence):      # it goes with what it refers to
                    for name in moved: describe(parts, name, sentence)
                elif moved == "raises" and re.match("It raises these|These|Then", sentence):
                    parts["raises"][-1][1] += f". {sentence.rstrip('.')}"
                else:
                    referred = bool(REFERS.match((found[k + 1:] or [""])[0]))
                    moved = None if first else self.sort(sentence, names, parts, referred)
                placed.append((sentence, moved))
            # Sentences about parameters stay between others too, which may refer to them.
            if any(where is None for _, where in placed):
                parts["text"].append(" ".join(s for s, where in placed if where is None or isinstance(where, list)))
        return parts

    def sort(self, sentence, names, parts, referred):
        """Put a sentence where it belongs, and return that: the names of the parameters that it describes, "raises" or
        "notes"; None if it stays in the text. If the next sentence refers to it, only the form `name: ...` counts."""
        if found := re.match(r"`?(\w+)`?(?:, `?(\w+)`?)?: (.+)", sentence):
            described = [name for name in found.groups()[:2] if name]
            if {*described} <= {*names}:
                for name in described: describe(parts, name, found[3])
                return described
        if re.match(rf"(?:It |They )?[Rr]aises? {EXCEPTION}", sentence):
            parts["raises"] += raised(sentence)
            return "raises"
        if sentence.startswith("Returns ") or SOURCE.search(sentence):
            returned = sentence.startswith("Returns ")
            parts["returns" if returned else "source"].append(sentence.removeprefix("Returns "))
            return "notes"
        if referred: return None
        found = re.match(r"(?:With |Without |The )?(?:`(\w+)`|(\w+)(?: None| is| are| may|=))", sentence)
        several = re.match(r"(?:`\w+`(?: \([^)]*\))?(?:, | and | or )?){2,}", sentence)
        named = {name for name in re.findall(r"`(\w+)`", sentence) if name in names}
        described = re.findall(r"`(\w+)`", several[0]) if several else [found[1] or found[2]] if found else []
        if not described or not {*described} <= {*names}:
            early = len(named) == 1 and re.match(rf"(?!It |This ).{{,30}}`{min(named)}`", sentence)
            described = [*named] if early else []
        for name in described: describe(parts, name, sentence)
        return described or None


def describe(parts, name, words):
    said = parts["parameters"].get(name)
    parts["parameters"][name] = f"{said} {words}" if said else words


def member(name, value):
    if isinstance(value, surface.NoSuch): return False                  # a name of another library, which raises
    if type(value).__module__.startswith("sklearn."): return False      # set_fit_request and others, which it adds
    return not name.startswith("_") and (surface.is_function(value) or surface.is_attribute(value)
                                         or isinstance(value, (staticmethod, classmethod)))


def overloaded(stub):
    """The types of a function with several signatures: each that an argument or the result can have."""
    found = {}
    for f in ast.parse(stub).body:
        arguments = [a for a in (*f.args.posonlyargs, *f.args.args, *f.args.kwonlyargs) if a.annotation]
        for name, node in [*((a.arg, a.annotation) for a in arguments), ("return", f.returns)]:
            text = ast.unparse(node)
            if text != "_F": found.setdefault(name, []).append(spelled(text))
    return {name: " | ".join(dict.fromkeys(k for text in texts for k in formulas.pieces(text, r" \| ")))
            for name, texts in found.items()}


def spelled(kind):
    """A type with the definitions of the stubs' own names."""
    def definition(match):
        known = ALIASES.get(match[0], "").partition("TypeAlias = ")[2]
        return known.strip("()") if known else match[0].lstrip("_")

    for _ in range(2): kind = re.sub(r"\b_[A-Z]\w*", definition, kind)       # (some have others in them)
    return re.sub(r"\bnpt\.|ForwardRef\('(\w+)'\)", lambda m: m[1] or "", kind)


def table(block):
    """The rows of a block of two columns: (name, words), where words may go on in the lines below."""
    rows = []
    for line in block.splitlines():
        if found := re.match(r"(\w[^ ]*(?: [^ ]+)*) {2,}(\S.*)", line): rows.append([found[1], found[2]])
        elif rows and line.startswith("   "): rows[-1][1] += " " + line.strip()
        else: return []
    return rows


def sentences(block, names):
    """The sentences of a paragraph. Those in parentheses stay together; `a: ...; b: ...` are two."""
    found = []
    for piece in SENTENCE.split(" ".join(block.split())):
        if found and found[-1].count("(") > found[-1].count(")"): found[-1] += " " + piece
        else: found.append(piece)
    divided = rf"; (?=`?(?:{'|'.join(map(re.escape, names)) or '(?!)'})`?: )"
    return [part for piece in found for part in re.split(divided, piece)]


def raised(sentence):
    """(exception, when) for each exception of a sentence such as "Raises TypeError for floats, IndexError if ..."."""
    pieces = RAISED.split(re.sub(r"^\w* ?[Rr]aises? ", "", sentence).rstrip("."))[1:]
    found = []
    for kinds, when in zip(pieces[::2], pieces[1::2], strict=True):
        when = re.sub(r"(?:[,;] and|[,;]| and| or|, or)\s*\Z", "", when).strip()
        found += [[kind, when] for kind in re.findall(EXCEPTION, kinds)]
    return found


class Reference:
    """The entries of all packages: `pages` has them by page, `entries` by name, with members. `same` has the name of
    the first entry for each alias."""

    def __init__(self):
        self.pages, self.same, seen = {}, {}, {}
        for module in surface.public_packages():
            entries = [Entry(f"{module.__name__}.{name}", value)
                       for name, value in surface.public(module).items() if not inspect.ismodule(value)]
            for entry in sorted(entries, key=lambda e: not e.full.endswith(f".{getattr(e.value, '__name__', '')}")):
                if entry.kind == "data": continue
                first = seen.setdefault(id(entry.value), entry)
                if first is not entry: self.same[entry.full] = first.full       # an alias, or shown already
            self.pages[module.__name__.rpartition(".")[2]] = module, entries
        self.entries = {e.full: e for _, entries in self.pages.values() for entry in entries
                        for e in [entry, *(entry.members if entry.full not in self.same else ())]}
        self.modules = {module.__name__ for module, _ in self.pages.values()}
        classes = {name.rpartition(".")[2] for name, e in self.entries.items()
                   if e.kind == "class" and name.count(".") == 1} - {"bool"}
        self.classes = re.compile(rf"(?<![\w.])({'|'.join(sorted(classes))})\b")
        self.examples = {name: text for names, text in doc_examples.entries() for name in names}

    def sections(self, entries):
        """The entries by section, in the order of the operator table."""
        families = dict.fromkeys(f"Operators: {row.family}" for row in cygrad.ops.TABLE)
        found = {name: [] for name in ["Classes", "Functions", *families, "Exceptions", "Values"]}
        for entry in entries: found[entry.section].append(entry)
        return {name: members for name, members in found.items() if members}

    # ---- reStructuredText, as autodoc reads it -----------------------------------------------------------------------

    def link(self, name, shown, near=(), otherwise=None):
        """A link to the entry `name`, which is looked up in the modules and classes `near` first."""
        for full in (f"{prefix}{name}" for prefix in [*(f"{n}." for n in near), "", "cygrad."]):
            if full in self.modules: return inline(f":py:mod:`{shown} <{full}>`")
            if full in self.entries: return inline(f":py:obj:`{shown} <{full}>`")
        return otherwise or inline(f"``{shown}``")

    def prose(self, text, near=(), names=()):
        """A paragraph, with links for names of entries, unless they are arguments."""
        def part(match):
            shown, url, dotted = match.groups()
            if url: return inline(f"`{url} <{url}>`__")
            if dotted: return self.link(dotted, dotted, otherwise=escaped(dotted))
            name = shown.removesuffix("()")
            plain = name in names or not re.fullmatch(r"\w+(\.\w+)*", name)
            return inline(f"``{shown}``") if plain else self.link(name, shown, near)

        out, end = ["\\ "], 0
        text = " ".join(text.split())
        for match in re.finditer(r"`([^`]+)`|(https?://[^\s,;)]*[^\s,;).])|\b(cygrad(?:\.\w+)+)", text):
            out += [escaped(text[end:match.start()]), part(match)]
            end = match.end()
        return "".join([*out, escaped(text[end:])])

    def described(self, entry, name, depth=3):
        """What is said of a parameter: in the entry, in another one to which it refers (See X), or of all such."""
        if words := entry.parts["parameters"].get(name): return words
        for other in re.findall(r"\b(?:[Ss]ee|of|as|as in) `?([\w.]*\w)", entry.words) if depth else ():
            for full in (f"{prefix}{other}" for prefix in (*(f"{n}." for n in entry.near), "", "cygrad.")):
                if (there := self.entries.get(full)) and there is not entry and name in [
                        p.name for p in there.arguments or ()]:
                    if words := self.described(there, name, depth - 1): return words
        return COMMON.get(name, "")

    def kind(self, text):
        """A type, with links to classes of cygrad."""
        pieces = self.classes.split(text)
        return "".join(self.link(piece, piece) if k % 2 else
                       re.sub(r"\S.*\S|\S", lambda m: inline(f"``{m[0]}``"), piece) for k, piece in enumerate(pieces))

    def blocks(self, entry):
        """The paragraphs of the text, with columns as formulas where they are some. An entry that begins with one gets
        a sentence before it, which is also what the index shows."""
        texts = entry.parts["text"]
        if texts and COLUMNS.search(texts[0]) and not texts[0].startswith("    "):
            solver = inspect.isclass(entry.value) and issubclass(entry.value, cygrad.optim.Solver)
            source = re.search(r"\([A-Z][^()]*\d{4}[^()]*\)", texts[0])
            head = "The update of" if solver else "The formula of"
            said = f"{head} {entry.full.rpartition('.')[2]} {source[0] if source else ''}".rstrip()
            yield from [self.prose(f"{said}."), ""]
        for block in texts:
            if block.startswith("    ") and program(block):
                yield from directive("code-block:: python", textwrap.dedent(block))
            elif block.startswith("    ") and not COLUMNS.search(block):
                yield from directive("code-block:: text", textwrap.dedent(block))
            elif COLUMNS.search(block):
                if tex := formulas.latex(inspect.cleandoc(block)): yield from directive("math::", tex)
                elif rows := table(textwrap.dedent(block)):
                    yield from (f"* ``{name}``: {self.prose(words, entry.near, entry.types)}" for name, words in rows)
                    yield ""
                else: yield from directive("code-block:: text", inspect.cleandoc(block))
            else: yield from [self.prose(block, entry.near, entry.types), ""]

    def fields(self, entry):
        """Parameters, result and exceptions."""
        parts, lines = entry.parts, []
        for p in entry.arguments or ():
            star = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
            words = self.described(entry, p.name)
            default = "" if p.default is p.empty or isinstance(p.default, type) else f"Default: ``{p.default!r}``."
            said = " ".join([*([self.prose(words, entry.near, entry.types)] if words else []), default]).strip()
            lines += [f":param {escaped(star)}{p.name}: {said}".rstrip(),
                      f":type {escaped(star)}{p.name}: {self.kind(entry.types[p.name])}"]
        result = entry.types.get("return")
        returns = " ".join(parts["returns"])
        if returns: lines.append(f":returns: {self.prose(returns, entry.near, entry.types)}")
        if result and result != "None": lines.append(f":rtype: {self.kind(result)}")
        for name, when in parts["raises"]:
            shown = self.link(name, name, entry.near)
            lines.append(f":raises: {shown} {self.prose(when, entry.near, entry.types)}")
        return [*lines, ""]

    def lines(self, entry):
        """The entry below its signature."""
        out = [*self.blocks(entry), *self.fields(entry)]
        notes = []
        if row := None if entry.cls else entry.formula_row:
            text = surface.text(type(row.operator)).partition("\n\n")[0]
            tex = formulas.latex(text)
            notes += directive("math::", tex) if tex else directive("code-block:: text", text)
            anchor = f"../operators.html#op-{row.name.replace('_', '-')}"
            notes += [f"`What backward saves, and the formula in NumPy <{anchor}>`__.", ""]
        notes += [line for sentence in entry.parts["source"] for line in (self.prose(sentence, entry.near), "")]
        if notes: out += [".. rubric:: Notes", "", *notes]
        if example := self.examples.get(entry.full):
            out += [".. rubric:: Examples", "", *directive("code-block:: pycon", example)]
        return out


def program(block):
    """Whether the block is Python."""
    try: return bool(ast.parse(textwrap.dedent(block)))
    except SyntaxError: return False


def escaped(words):
    """Text in which no character has a meaning for docutils, which would make a link of file:line, too."""
    return re.sub(r"[\\*`|_@]|(?<=\w):(?=\w)", r"\\\g<0>", words)


def inline(markup):
    """Markup that may touch letters."""
    return f"\\ {markup}\\ "


def directive(head, text):
    return [f".. {head}", "", *("   " + line for line in text.rstrip("\n").splitlines()), ""]


# ---- what autodoc calls ----------------------------------------------------------------------------------------------

reference = functools.cache(Reference)


def signature(app, what, name, value, options, args, result):
    entry = reference().entries.get(name)           # (autodoc fails if one is given to what has none for it)
    return (entry.signature or None, None) if entry and args is not None else None


def docstring(app, what, name, value, options, lines):
    known = reference()
    entry = Entry(name, value) if what == "module" else known.entries.get(name)
    if entry: lines[:] = known.lines(entry)
