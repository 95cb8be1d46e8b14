"""memory.profile.growth: what each step of a program leaves to the next, by line.

A step begins with the first operation that is recorded after a backward pass or an update; in a program that has
neither, with each scope that records. What a first step leaves is not counted: gradients, states of solvers and caches
are made there once. Neither is what holds a constant number of values, such as the last ten losses: more bytes must be
live when the last step begins than half of the steps before."""

import textwrap
from bisect import bisect_right
from typing import NamedTuple

from cygrad.core.sizes import words
from cygrad.core.store.buffer import CATEGORY_NAMES
from cygrad.memory.log import PHASES
from cygrad.memory.reports import WIDEST
from cygrad.memory.rows import WITHOUT_A_REASON, shown_line

FEWEST = 4                  # the number of steps from which on growth can be told from a beginning


class Growth(NamedTuple):
    """Memory that a step leaves to the next ones: the bytes of one step, the operation that allocated them, its line,
    why they are live, and the number of buffers and of bytes that have come together."""

    bytes: int
    operation: str
    line: str
    why: str
    buffers: int
    total: int

    @property
    def text(self):
        """The same as a sentence."""
        return f"{words(self.bytes)} more after each step: {self.operation} at {self.line}, {self.why}; " \
               f"{self.buffers:,} buffers, {words(self.total)}, so far"

    def __str__(self):
        return textwrap.fill(self.text, WIDEST, subsequent_indent="    ")


def growth(log):
    """The Growth of each operation and line, the most bytes first."""
    events, begins = steps(log)
    if len(begins) < FEWEST: return []
    middle, last = begins[len(begins) // 2], begins[-1]
    _, _, kept = log.state(events[-1]) if events[-1] > log.dropped else (0, 0, {})      # (when the last step begins)
    names, groups = {}, {}
    for buffer, nbytes, site, category, begun, ended in log.lives():
        if not begins[1] <= begun < last or not nbytes: continue
        if site not in names: names[site] = log.name(site)[:2]
        stays = ended is None or ended >= last
        why = {log.reason(keeper) for keeper in kept.get(buffer, ())} if stays else ()
        groups.setdefault(names[site], []).append(
            (begun, ended, nbytes, stays, why, WITHOUT_A_REASON[CATEGORY_NAMES[category]]))
    found = []
    for (operation, line), made in groups.items():
        left = [entry for entry in made if entry[3]]
        if len({bisect_right(begins, begun) for begun, *_ in left}) * 2 < len(begins) - 2: continue
        after = sum(nbytes for _, _, nbytes, *_ in left)
        before = sum(nbytes for begun, ended, nbytes, *_ in made
                     if begun < middle and (ended is None or ended >= middle))
        if after <= before: continue
        per_step = (after - before) // (len(begins) - 1 - len(begins) // 2)
        whys = dict.fromkeys(reason for *_, why, _ in left for reason in sorted(why)) or [left[0][-1]]
        found.append(Growth(per_step, operation, shown_line(line), "; ".join(list(whys)[:3]), len(left), after))
    return sorted(found, key=lambda g: (-g.bytes, g.operation, g.line))


def steps(log):
    """The events and the ticks with which each step begins."""
    phases = [(PHASES[phase], event, begun) for phase, event, begun, _, _ in log.phases()]
    learns = any(name != "forward" for name, _, _ in phases)
    before, events, begins = "", [], []
    for name, event, begun in phases:
        if name == "forward" and not (learns and before == "forward"):
            events.append(event)
            begins.append(begun)
        before = name
    return events, begins
