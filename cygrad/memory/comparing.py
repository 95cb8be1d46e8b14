"""memory.profile.compare: what has changed in the peak between two profiles."""

import json
import os
from typing import NamedTuple

from cygrad.core.errors import described
from cygrad.memory import profiling
from cygrad.memory.sizes import words

COLUMNS = ("operation", "category", "line")


class Difference(NamedTuple):
    """Live bytes at the two peaks, and how many more there are at the second."""

    name: str
    before: int
    after: int
    change: int


class Comparison:
    """Two peaks beside each other: `before` and `after` are their bytes, `change` is the difference, and `rows` says
    where it comes from."""

    def __init__(self, before, after, by):
        self.by = by
        self.before, self.after = sum(before.values()), sum(after.values())
        self.change = self.after - self.before
        rows = [Difference(name, before.get(name, 0), after.get(name, 0), after.get(name, 0) - before.get(name, 0))
                for name in {**before, **after}]
        self.rows = sorted(rows, key=lambda r: (-abs(r.change), -r.after, r.name))

    def __repr__(self):
        width = max(len(name) for name in (*(r.name for r in self.rows), self.by, "all"))
        lines = [f"peak: {words(self.before)} before, {words(self.after)} now",
                 f"{self.by:<{width}}{'before':>16}{'now':>16}{'change':>17}"]
        rows = [r for r in self.rows if r.change] + [("all", self.before, self.after, self.change)]
        lines += [f"{name:<{width}}{before:>16,}{after:>16,}{change:>+17,}" for name, before, after, change in rows]
        return "\n".join(lines)


def compare(before, after, by):
    if by not in COLUMNS: raise ValueError(f"by is one of {', '.join(map(repr, COLUMNS))}, got {described(by)}")
    return Comparison(sums(before, by), sums(after, by), by)


def sums(given, by):
    """Bytes at the peak by name, of a profile or of a file that save() wrote."""
    if isinstance(given, profiling.profile): rows = given.at_peak()
    elif isinstance(given, (str, os.PathLike)): rows = read(given)
    else:
        raise TypeError(f"compare wants a memory.profile(), or the path of a .json that its save() wrote, got "
                        f"{type(given).__name__}")
    found = {}
    for category, operation, line, nbytes in rows:
        name = {"operation": operation, "category": category, "line": line or operation}[by]
        found[name] = found.get(name, 0) + nbytes
    return found


def read(path):
    """The rows of the peak in a file."""
    with open(path, encoding="utf-8") as file: text = file.read()
    try:
        rows = [(str(category), str(operation), str(line), int(nbytes))
                for category, operation, line, nbytes in json.loads(text)["otherData"]["cygrad_peak"]]
    except (ValueError, TypeError, KeyError):
        raise ValueError(f"compare: {os.fspath(path)!r} holds no peak; wanted a .json that memory.profile's save() "
                         f"wrote") from None
    return rows
