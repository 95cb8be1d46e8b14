"""Translate the formulas of docstrings, such as `y = log(x)        dx = g / x`, into LaTeX.

Names are separated by spaces where they are multiplied; `f(x)` is a call, `f (x)` a product. `^` is a power, `'` a
prime, `|x|` an absolute value, `x where c, y where d, else z` a case distinction. What is not a formula, such as
"the largest integer <= x", is set as words. Libraries that translate formulas read programs, which have no products by
juxtaposition (latexify), or take a name of several letters for a product (AsciiMath)."""

import re

TOKEN = re.compile(r"\s*(?:(\d+(?:\.\d+)?)|([A-Za-z]\w*)|(<=|>=|==|[-+]=|<<|>>|\.\.|[-+/^()\[\]|,.=<>']))")
GREEK = {name: f"\\{name}" for name in "alpha beta gamma delta eta mu nu sigma theta pi tau phi".split()} | {
    "eps": r"\varepsilon", "lamda": r"\lambda", "inf": r"\infty"}
FUNCTIONS = {name: f"\\{name}" for name in "sin cos tan sinh cosh tanh log exp det max min".split()} | {
    "asin": r"\arcsin", "acos": r"\arccos", "atan": r"\arctan", "sum": r"\sum", "product": r"\prod"}
WORDS = set("erf floor sign diag clip mean sigmoid softmax gamma digamma polygamma skew sym tril fold unfold asinh "
            "acosh atanh onehot cofactor relu diagonal root trace".split())
RELATIONS = {"<=": r"\le", ">=": r"\ge"}
FENCES = {"(": ")", "[": "]"}


PROSE = set("the of in with is and to at not from its over each along another which whether by also into them it no "
            "nor or that there this these than an as for until up on are only all any one without if else where when "
            "put back so".split())
AFTER = re.compile(r"(.+?),? ((?:over|along|at|in|on|without|with|from|to|joined|sorted|reversed|repeated|summed|"
                   r"broadcast|put back|copied|another|also|for|which|by|until|up|its|if|where|convolved)\b.*)")


class NotAFormula(Exception):
    """The text does not have the form of a formula."""


class Formula:
    """A recursive descent over the tokens of a formula; each method returns LaTeX."""

    def __init__(self, text):
        self.tokens, end = [], 0
        while end < len(text.rstrip()):
            found = TOKEN.match(text, end)
            if not found: raise NotAFormula(text)
            number, name, sign = found.groups()
            if name in PROSE: raise NotAFormula(text)
            self.tokens.append((number or name or sign, "number" if number else "name" if name else "sign",
                                found.start(found.lastindex) > end or not end))     # after a space
            end = found.end()
        self.tokens.append(("", "end", True))
        self.k = 0

    def __getattr__(self, name):
        if name in ("text", "kind", "apart"): return self.tokens[self.k][("text", "kind", "apart").index(name)]
        raise AttributeError(name)

    def take(self, text=None):
        if text is not None and self.text != text: raise NotAFormula(self.text)
        self.k += 1
        return self.tokens[self.k - 1][0]

    def relation(self):
        out = self.sum()
        while self.text in ("=", "<", ">", "-=", "+=", *RELATIONS):
            sign = self.take()
            if sign in ("-=", "+="): out += rf" \leftarrow {out} {sign[0]} {self.single()}"
            else: out += f" {RELATIONS.get(sign, sign)} {self.sum()}"
        return out

    def single(self):
        """A sum that is subtracted or added as a whole."""
        out = self.product() if self.text not in ("-", "+") else ""
        if out and self.text not in ("-", "+"): return out
        while self.text in ("+", "-"): out += f" {self.take()} {self.product()}"
        return fence("(", out, ")")

    def whole(self):
        """The formula, which must have no rest."""
        out = self.relation()
        if self.kind != "end": raise NotAFormula(self.text)
        return out

    def sum(self):
        out = ""
        if self.text in ("-", "+"): out = self.take()
        out += self.product()
        while self.text in ("+", "-"): out += f" {self.take()} {self.product()}"
        return out

    def product(self):
        """Factors side by side. What follows a quotient is beside it: a / b c / d is (a / b) (c / d)."""
        done, factors = [], [self.power()]
        while True:
            if self.text == "/":
                self.take()
                above = bare(r" \, ".join(factors)) if factors else done.pop()
                done.append(rf"\frac{{{above}}}{{{bare(self.power())}}}")
                factors = []
            elif self.text == "." and self.apart:
                self.take()
                factors.append(rf"\cdot \, {self.power()}")
            elif self.kind in ("number", "name") or self.text in FENCES or self.text == "|" and not self.within:
                factors.append(self.power())
            else: return r" \, ".join(done + factors)

    within = 0                                      # the open bars of absolute values

    def power(self):
        out = self.atom()
        while self.text in ("^", "'", "["):
            if self.text == "^":
                self.take()
                out = f"{{{out}}}^{{{self.exponent()}}}"
            elif self.text == "'": out = f"{{{out}}}{self.take()}"
            elif self.apart: break
            else: out += rf"[{self.fenced()}]"
        return out

    def exponent(self):
        sign = self.take() if self.text in ("-", "+") else ""
        if sign == "+" and (self.apart or self.kind == "sign"): return "+"
        if self.text == "T":
            self.take()
            return sign + r"\top"
        return sign + bare(self.atom())

    def fenced(self):
        """What stands between brackets, which may be several expressions."""
        end, out = FENCES[self.take()], []
        while self.text != end:
            out.append(self.take() if self.text == ".." else self.relation())
            if self.text == ",": self.take()
            elif self.text != end: raise NotAFormula(self.text)
        self.take(end)
        return ", ".join(r"\ldots" if part == ".." else part for part in out)

    def atom(self):
        if self.kind == "number": return self.take()
        if self.text in ("(", "["):
            left, right = self.text, FENCES[self.text]
            return fence(left, self.fenced(), right)
        if self.text == "|":
            self.take()
            self.within += 1
            inside = self.sum()
            self.within -= 1
            self.take("|")
            return rf"\lvert {inside} \rvert"
        if self.kind != "name": raise NotAFormula(self.text)
        return self.name()

    def name(self):
        name = self.take()
        call = self.text == "(" and not self.apart
        if name == "sqrt": return rf"\sqrt{{{bare(self.power() if not call else self.atom())}}}"
        if name in FUNCTIONS:
            return rf"{FUNCTIONS[name]} {self.atom() if call else self.power()}"
        if name in WORDS and not call and self.kind == "name":
            return rf"{symbol(name)} \, {self.power()}"
        if name in WORDS and self.text == "-" and not self.tokens[self.k + 1][2]:       # the mean of -x
            return symbol(name) + fence("(", self.sum(), ")")
        if call: return rf"{symbol(name)}{self.atom()}"
        out = symbol(name)
        if "_" in name and self.text in ("+", "-") and not self.apart:      # y_k-1
            sign, more = self.take(), self.take()
            return out[:-1] + sign + more + "}"
        return out


def symbol(name):
    """The name of a variable: v_max, beta1, dx."""
    head, _, index = name.partition("_")
    if not index and (found := re.fullmatch(r"([A-Za-z]+?)(\d+)", name)): head, index = found.groups()
    shown = GREEK.get(head) or (head if len(head) == 1 else None)
    if shown is None and re.fullmatch(r"d[A-Za-z]", head): shown = rf"\mathrm{{d}}{head[1]}"
    if shown is None: return rf"\mathrm{{{name}}}".replace("_", r"\_")
    if not index: return shown
    return f"{shown}_{{{index if len(index) == 1 else chr(92) + f'mathrm{{{index}}}'.replace('_', chr(92) + '_')}}}"


def fence(left, inside, right):
    """Brackets, which grow only with what is higher than a letter."""
    if re.search(r"\\(frac|sum|prod|begin|left)", inside): return rf"\left{left} {inside} \right{right}"
    return f"{left}{inside}{right}"


def bare(tex):
    """An expression without the parentheses around all of it."""
    found = re.fullmatch(r"\\left\( (.*) \\right\)|\((.*)\)", tex)
    inside = found and (found[1] or found[2])
    if not inside: return tex
    depth = 0
    for sign in re.findall(r"[()]", inside):
        depth += 1 if sign == "(" else -1
        if depth < 0: return tex
    return inside


def words(text):
    """The text as words, unless a character of it means something in LaTeX."""
    if re.search(r"[\\{}$%#&~^]", text): raise NotAFormula(text)
    return r"\text{" + text.replace("_", r"\_") + "}"


def pieces(text, separator):
    """The parts of the text between separators that are not in parentheses or brackets."""
    found, depth = [""], 0
    for part in re.split(f"({separator}|[()\\[\\]])", text):
        depth += (part in ("(", "[")) - (part in (")", "]"))
        if not depth and re.fullmatch(separator, part): found.append("")
        else: found[-1] += part
    return found


def cases(text):
    """A case distinction: [y =] x where c, y where d, else z, and what is said after it."""
    head, _, rest = text.rpartition(" = ") if text.count(" = ") == 1 else ("", "", text)
    if head: head = Formula(head).whole() + " = "
    rows, after = [], []
    for case in pieces(rest, ", (?=else )|, |; "):
        value, _, condition = case.partition(" where " if " where " in case else " if ")
        if rows and not condition and not value.startswith("else "): after.append(part(value))
        else:
            shown = rf"\text{{if }} {phrase(condition)}" if condition else r"\text{otherwise}"
            rows.append(rf"{Formula(value.removeprefix('else ')).whole()} & {shown}")
    return [head + r"\begin{cases} " + r" \\ ".join(rows) + r" \end{cases}", *after]


def phrase(text):
    """A formula, or words."""
    try: return Formula(text).whole()
    except NotAFormula: return words(text)


def part(text):
    """A formula, a formula and words after it, or words after a sign of equality."""
    if re.fullmatch(r"[A-Za-z]{3,}( [A-Za-z]+)*|(\w (>= 0 )?)?an? [a-z]{3,}.*", text): return words(text)
    if found := re.fullmatch(r"(with|where) (.* [-+]?= .*)", text): return rf"\text{{{found[1]} }} {part(found[2])}"
    plain = re.sub(r"\b(sum|mean|product) of (?=\S)", r"\1 ", text)
    try: return Formula(plain).whole()
    except NotAFormula: pass
    if (found := AFTER.fullmatch(plain)) and not found[1].endswith("="):
        try: return rf"{Formula(found[1]).whole()} \text{{ }} {words(found[2])}"
        except NotAFormula: pass
    if not (found := re.fullmatch(r"([^=]+) = (.+)", text)): return words(text)
    return rf"{Formula(found[1]).whole()} = \;{words(found[2])}"


NOTE = re.compile(r"\([A-Z].*\d{4}.*\)|\((?:a|ea|li|over|0|in)\w* ?[^=]*\)|no gradient|with .*|where .*")


def column(text):
    """The formulas between commas, and what is said after them."""
    if NOTE.fullmatch(text): return [words(text)]
    if re.search("[^,] (where|if) ", text):
        try: return cases(text)
        except NotAFormula: pass
    out = []
    for piece in pieces(text, ", |; "):
        try: out.append(part(piece))
        except NotAFormula:
            if not out: raise
            out.append(words(piece))
    if r"\text{..}" in out: return [", ".join(out).replace(r"\text{..}", r"\ldots")]
    return out


def latex(text):
    """A block of formulas as LaTeX, one line for each; None if one of them is not a formula."""
    if "bit by bit" in text or "#" in text: return None
    columns = [part.strip() for line in text.splitlines() for part in re.split(r" {3,}", line) if part.strip()]
    if not all(re.search("[-+]?= ", c) or NOTE.fullmatch(c) or not k and re.search(r" [-+/] ", c)
               for k, c in enumerate(columns)): return None
    try: rows = [column(text.strip(" ,")) for text in columns]
    except NotAFormula: return None
    joined = []
    for row in rows:
        for k, shown in enumerate(row):             # an equation has its line; what is no equation goes on in it
            if relation(shown) >= 0 or not joined or not k and not shown.startswith(r"\text{"): joined.append(shown)
            else: joined[-1] += (r", \quad " if k else r" \quad ") + shown
    if len(joined) == 1: return joined[0]
    return r"\begin{aligned} " + r" \\ ".join(aligned(row) for row in joined) + r" \end{aligned}"


def relation(tex):
    """Where the first sign of equality outside of words is, or -1."""
    found = re.search(r" (=|\\leftarrow) ", re.sub(r"\\text\{[^}]*\}", lambda m: "-" * len(m[0]), tex))
    return found.start() if found else -1


def aligned(row):
    """A row with its first relation as the place of alignment."""
    k = relation(row)
    return row if k < 0 else f"{row[:k]} &{row[k:]}"
