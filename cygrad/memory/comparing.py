"""memory.profile.compare: the difference between the peaks of two profiles."""

import json
import os
from typing import NamedTuple

from cygrad.core.errors import described
from cygrad.core.handles import Input
from cygrad.core.paths import file_path
from cygrad.core.sizes import words
from cygrad.memory.log import Logged
from cygrad.memory.reports import WIDEST, cut
from cygrad.memory.rows import BY, OUTSIDE, facts


class Difference(NamedTuple):
    """The live bytes at two peaks, and the second minus the first."""

    name: str
    before: int
    after: int
    change: int


class Comparison:
    """The comparison of two peaks. `before` and `after` are their bytes and `change` is the difference; `rows` divides
    it. `note` is empty unless the two did not run the same steps."""

    def __init__(self, before, after, by):
        self.by = by
        names, names_now = before["by"][by], after["by"][by]
        self.before, self.after = sum(names.values()), sum(names_now.values())
        self.change = self.after - self.before
        self.note = note(before["passes"], after["passes"])
        rows = [Difference(name, was, now, now - was) for name in {**names, **names_now}
                for was, now in [(names.get(name, 0), names_now.get(name, 0))]]
        self.rows = sorted(rows, key=lambda r: (-abs(r.change), -r.after, r.name))

    def __repr__(self):
        rows = [(cut(r.name, WIDEST - 49), *r[1:]) for r in self.rows if r.change]
        rows.append(("all", self.before, self.after, self.change))
        width = max(len(name) for name in (*(row[0] for row in rows), self.by))
        lines = [f"peak: {words(self.before)} before, {words(self.after)} now"]
        if self.note: lines.append(f"note: {self.note}")
        lines.append(f"{self.by:<{width}}{'before':>16}{'now':>16}{'change':>17}")
        lines += [f"{name:<{width}}{before:>16,}{after:>16,}{change:>+17,}" for name, before, after, change in rows]
        return "\n".join(lines)


def note(before, after):
    """A note if the steps of two runs differ in the number of times that each phase occurred, or ""."""
    if bool(before["forward"]) != bool(after["forward"]):
        return f"only the run {'before' if before['forward'] else 'now'} was recorded for backward"
    different = [phase for phase in ("backward", "update") if before[phase] != after[phase]]
    if not different: return ""
    counts = "; ".join(f"{phase} {before[phase]:,} before, {after[phase]:,} now" for phase in different)
    return f"the two did not run the same number of steps ({counts})"


def compare(before, after, by):
    if by not in BY: raise ValueError(f"by must be one of {', '.join(map(repr, BY))}, got {described(by)}")
    return Comparison(facts_of(before), facts_of(after), by)


def facts_of(given):
    """rows.facts of a profile, or of a file that save() wrote."""
    if isinstance(given, Logged): return facts(given._read())
    if not isinstance(given, (str, bytes, os.PathLike)):
        raise TypeError(f"compare takes a memory.profile(), or the path of a .json that its save() wrote, got "
                        f"{described(given)}")
    path = file_path(given, "compare", "memory.json")
    try:
        with Input(path, "compare") as file:
            text = bytearray()
            while b"\n" not in text and len(text) < file.size:      # the events follow and are not read
                text += file.read(len(text), min(file.size - len(text), 1 << 16))
            end = text.find(b"\n") + 1
            if text.endswith(b"[\n", 0, end): text[end:] = b"]}"
            else: text += file.read(len(text), file.size - len(text))
        found = json.loads(text)["otherData"]["cygrad_peak"]
        found["by"].setdefault("layer", {OUTSIDE: sum(found["by"]["operation"].values())})      # (version 0.1)
        return {"by": {by: {str(name): int(n) for name, n in found["by"][by].items()} for by in BY},
                "passes": {phase: int(found["passes"][phase]) for phase in ("forward", "backward", "update")}}
    except (ValueError, TypeError, KeyError, AttributeError):
        raise ValueError(f"compare: {path!r} has no peak in it; pass a .json that memory.profile's save() "
                         f"wrote") from None
