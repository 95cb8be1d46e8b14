"""A strict reader of the text in the headers of files. It accepts exactly what the formats allow, so nothing is
evaluated, nothing nests, and memory stays in proportion to the text."""

import json
import re

from cygrad.core.errors import described
from cygrad.io.files import AGAIN

MAX_DIMS = 16               # as in kernels/array.pxd

SPACE = re.compile(r"[ \t\n\r]*+")
STRING = re.compile(r'"[^"\\\x00-\x1f]*+(?:\\[^\x00-\x1f][^"\\\x00-\x1f]*+)*+"')
QUOTED = re.compile(r"'[^'\\\n]*+'|\"[^\"\\\n]*+\"")        # a string of Python, without escapes
INTEGER = re.compile(r"(?:0|[1-9][0-9]{0,19})(?![0-9.eE])")
FLAG = re.compile(r"True|False")


class Text:
    """Text that is read from left to right. `at` is the file, for messages."""

    def __init__(self, text, at):
        self.text, self.at, self.i = text, at, 0

    def next(self, pattern):
        """The text that `pattern` (a regular expression, or one character) matches here, after space; "" if none."""
        self.i = SPACE.match(self.text, self.i).end()
        if isinstance(pattern, str):
            found = pattern if self.text.startswith(pattern, self.i) else ""
        else:
            match = pattern.match(self.text, self.i)
            found = match[0] if match else ""
        self.i += len(found)
        return found

    def need(self, pattern, wanted):
        """As next(), but ValueError, which says what was `wanted`, if nothing matches."""
        found = self.next(pattern)
        if found: return found
        here = described(self.text[self.i:self.i + 20]) if self.i < len(self.text) else "its end"
        raise ValueError(f"{self.at} has a malformed header: {wanted} must be at character {self.i}, got {here}; "
                         f"{AGAIN}")

    def end(self):
        """Only space may follow."""
        self.i = SPACE.match(self.text, self.i).end()
        if self.i < len(self.text): self.need("\0", "its end")

    def string(self, wanted):
        """A string of JSON."""
        begin, literal = self.i, self.need(STRING, wanted)
        try:
            found = json.loads(literal)
            found.encode()                          # half a surrogate pair is not a character
        except ValueError:
            raise ValueError(f"{self.at} has a malformed header: the string at character {begin} has an invalid "
                             f"escape; {AGAIN}") from None
        return found

    def integers(self, what, close, most=MAX_DIMS):
        """Integers with a comma between them, up to the character `close`; a comma may follow the last in a tuple."""
        found = []
        while not self.next(close):
            if found:
                self.need(",", f"',' or {close!r}")
                if close == ")" and self.next(close): break
            if len(found) == most:
                raise ValueError(f"{self.at} has a malformed header: {what} must have at most {most} integers, got "
                                 f"more; {AGAIN}")
            found.append(int(self.need(INTEGER, f"a non-negative integer in {what}")))
        return tuple(found)

    def object(self, key, value, trailing=False):
        """A dict: {k: v, ...}. `key()` reads a key and `value(k)` its value; a comma may be `trailing`."""
        found = {}
        self.need("{", "'{'")
        while not self.next("}"):
            if found:
                self.need(",", "',' or '}'")
                if trailing and self.next("}"): break
            k = key()
            if k in found:
                raise ValueError(f"{self.at} has a malformed header: {described(k)} is in it twice; {AGAIN}")
            self.need(":", "':'")
            found[k] = value(k)
        return found

    def strings(self):
        """A JSON object whose values are strings."""
        return self.object(lambda: self.string("a name"), lambda k: self.string(f"a string for {described(k)}"))


def decoded(data, at):
    """The Text of UTF-8 bytes."""
    try:
        return Text(str(data, "utf-8"), at)
    except UnicodeDecodeError as e:
        raise ValueError(f"{at} has a malformed header: it must be UTF-8, got another byte at {e.start}; {AGAIN}"
                         ) from None
