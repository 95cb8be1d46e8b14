"""The peak of a profile as data: its rows, their sums, and the tree of the Python stacks."""

from typing import NamedTuple

from cygrad.core.store.buffer import CATEGORY_NAMES
from cygrad.drawing.labels import BEFORE, OUTSIDE, shown_line
from cygrad.memory.log import PHASES
from cygrad.memory.sites import BEYOND

BY = ("operation", "category", "line", "layer", "shape", "why", "stack")    # the columns of compare()
ALIVE = "(alive before the profile)"                # the same in compare(), which has a column "before"
WITHOUT_A_REASON = {"parameters": "a variable", "gradients": "a gradient", "optimizer": "a solver's state",
                    "saved": "saved for backward", "workspace": "temporary workspace",
                    "other": "in use, or held by the program"}
LONGEST_CYCLE = 16          # the maximum number of frames of a repeated cycle; longer ones are listed frame by frame


class Four(NamedTuple):
    category: str
    operation: str
    line: str
    bytes: int


class PeakRow(Four):
    """Live bytes at the peak: the category, the operation that allocated them, and its line in the program
    ("file:line"). Further attributes are `buffers`, `shapes`, `kept_by`, `stacks`, `layers` and `why`
    (memory.profile.at_peak)."""

    buffers = 0

    def __init__(self, *_):
        self.shapes, self.kept_by, self.stacks, self.layers = {}, {}, {}, {}

    @property
    def why(self):
        """The most frequent reasons why the bytes are live, grouped by operation."""
        groups = {}                                 # "matmul needs its " -> {"first input": 3, "second input": 6}
        for reason, n in self.kept_by.items():
            who, its, what = reason.partition(" its ")
            add(groups.setdefault(who + its, {}), what, n)
        reasons = []
        for who, whats in sorted(groups.items(), key=lambda item: -sum(item[1].values())):
            ordered = sorted(whats, key=lambda what: -whats[what])
            numbers = [f" (of {whats[what]})" if len(ordered) > 1 and self.buffers > 1 else "" for what in ordered]
            reasons.append(who + ", its ".join(map("".join, zip(ordered, numbers, strict=True))))
        more = f" and {len(reasons) - 3} more" if len(reasons) > 3 else ""
        return "; ".join(reasons[:3]) + more

    @property
    def shape(self):
        """The shapes as text: "12 x (256, 128) float32"."""
        ordered = sorted(self.shapes, key=lambda shape: -self.shapes[shape])
        shown = [f"{self.shapes[s]} x {shown_shape(s)}" if self.shapes[s] > 1 else shown_shape(s) for s in ordered[:2]]
        return ", ".join(shown) + f" and {len(ordered) - 2} more" * (len(ordered) > 2)


class Site(NamedTuple):
    """A place that allocated memory in the scope: the number of allocations and their total bytes."""

    operation: str
    line: str
    function: str
    allocations: int
    bytes: int


class Piece(NamedTuple):
    """One buffer at the peak, or all buffers of one category from before the scope."""

    category: str
    operation: str
    line: str
    bytes: int
    buffers: int
    shape: tuple | None     # (sizes, dtype)
    reasons: list
    stack: tuple            # a tuple of (file, line, function)
    time: int               # when it was allocated, in the log's ticks; -1: before the log
    layer: str              # the path of the layer of cygrad.nn


class Branch:
    """A function of the program, with the bytes that it and its callees had live at the peak, or an operation."""

    def __init__(self, name, category="", line=""):
        self.name, self.category, self.line = name, category, line
        self.bytes = self.buffers = 0
        self.cycle = self.times = 0                 # recursion: the number of repeated frames, and of repetitions
        self.branches = {}

    @property
    def title(self):
        """The title in a report: "train.py:12 step", "gelu [saved]"."""
        if self.category: return f"{self.name} [{self.category}]"
        frames = f"these {self.cycle} frames " if self.cycle > 1 else ""
        return f"{self.line} {self.name}".lstrip() + (f" ({frames}up to {self.times} times)" if self.cycle else "")

    def below(self, name, category, line):
        """The child branch of this name, created if necessary."""
        return self.branches.setdefault((name, category, line), Branch(name, category, line))

    def ordered(self):
        return sorted(self.branches.values(), key=lambda b: (-b.bytes, b.name))


def shown_shape(shape):
    """A pair of sizes and dtype as text, "(256, 128) float32"; "" for None."""
    return f"{shape[0]} {shape[1]}" if shape else ""


def pieces(log):
    """Every Piece at the peak."""
    before, live, kept = log.state(log.peak_at)
    reasons = {site: log.reason(site) for sites in kept.values() for site in sites}
    made = {entry[0] for entry in live}
    old = [reasons[site] for buffer, sites in kept.items() if buffer not in made for site in sites]
    for category, nbytes in zip(CATEGORY_NAMES, before, strict=True):
        if nbytes: yield Piece(category, BEFORE, "", nbytes, 0, None, old if category == "saved" else [], (), -1,
                               BEFORE)
    names, staying = {}, stay(log)
    for buffer, nbytes, site, category, time in live:
        if not nbytes: continue
        if site not in names: names[site] = log.name(site)[:2], tuple(log.stack(site))
        (operation, line), stack = names[site]
        why = [reasons[site] for site in kept.get(buffer, ())]
        if CATEGORY_NAMES[category] == "gradients" and staying is not None:
            why = ["a variable's gradient" if (buffer, time) in staying else "a pending gradient"]
        yield Piece(CATEGORY_NAMES[category], operation, shown_line(line), nbytes, 1, log.shape(site), why, stack,
                    time, log.layer(site) or OUTSIDE)


def stay(log):
    """(buffer, ticks of its allocation) of the buffers that are still live when the phase after the peak's begins; None
    if the peak was folded, so that the log no longer has it."""
    if log.dropped and log.peak_at <= log.dropped: return None
    after = next((begun for _, first, begun, _, _ in log.phases() if first >= log.peak_at), log.duration())
    return {(buffer, begun) for buffer, _, _, _, begun, ended in log.lives() if ended is None or ended >= after}


def at_peak(log):
    """The rows of the peak: see memory.profile.at_peak."""
    found = {}
    for piece in pieces(log): found.setdefault(piece[:3], []).append(piece)
    rows = []
    for key, those in found.items():
        row = PeakRow(*key, sum(piece.bytes for piece in those))
        row.buffers = sum(piece.buffers for piece in those)
        for piece in those:
            if piece.shape: add(row.shapes, piece.shape, piece.buffers)
            if piece.stack: add(row.stacks, piece.stack, piece.bytes)
            add(row.layers, piece.layer, piece.bytes)
            for reason in piece.reasons or [WITHOUT_A_REASON[piece.category]]: add(row.kept_by, reason, 1)
        rows.append(row)
    return sorted(rows, key=lambda r: (-r.bytes, r[:3]))


def add(sums, key, n):
    sums[key] = sums.get(key, 0) + n


def allocations(log):
    """The places that allocated memory: see memory.profile.allocations."""
    sums = {}
    for number, (count, nbytes) in enumerate(log.sums()):
        if not count: continue
        operation, line, function = log.name(number)
        found = sums.setdefault((operation, shown_line(line), function), [0, 0])
        found[0] += count
        found[1] += nbytes
    return sorted((Site(*key, *found) for key, found in sums.items()), key=lambda s: (-s.bytes, -s.allocations, s[:3]))


def sums(log, by):
    """[bytes at the peak, buffers, bytes in all, allocations] for each operation, category, line or layer."""
    rows = {}
    for piece in pieces(log):
        row = rows.setdefault(getattr(piece, by) or piece.operation, [0, 0, 0, 0])
        row[0] += piece.bytes
        row[1] += piece.buffers
    if by == "layer":
        for number, (count, nbytes) in enumerate(log.sums()):
            if not count: continue
            row = rows.setdefault(log.layer(number) or OUTSIDE, [0, 0, 0, 0])
            row[2] += nbytes
            row[3] += count
    elif by != "category":
        for site in allocations(log):
            row = rows.setdefault(getattr(site, by) or site.operation, [0, 0, 0, 0])
            row[2] += site.bytes
            row[3] += site.allocations
    return rows


def facts(log):
    """The data of a profile for compare(), as JSON values: the bytes at the peak by name for each of BY, and the number
    of times that each phase occurred."""
    by = {column: {} for column in BY}
    stacks = {}
    for piece in pieces(log):
        made = ALIVE if piece.operation == BEFORE else piece.operation
        if piece.stack not in stacks:
            stacks[piece.stack] = " > ".join(f"{line} {name}".lstrip() for name, line, _, _ in frames(piece.stack))
        names = {"operation": made, "category": piece.category, "line": piece.line or made,
                 "layer": ALIVE if piece.operation == BEFORE else piece.layer,
                 "shape": shown_shape(piece.shape) or made, "stack": stacks[piece.stack] or made,
                 "why": "; ".join(sorted(set(piece.reasons))) or WITHOUT_A_REASON[piece.category]}
        for column in BY: add(by[column], names[column], piece.bytes)
    return {"by": by, "passes": dict(zip(PHASES[1:], log.passes()[1:], strict=True))}


def frames(stack):
    """The frames of a stack as [name, "file:line", cycle, times], the outermost first. A cycle of frames that recursion
    repeats is listed once; its first frame has the length of the cycle and the number of repetitions, other frames have
    0, 0."""
    out, k = [], 0
    while k < len(stack):
        length = next((n for n in range(1, LONGEST_CYCLE + 1)
                       if len(stack) >= k + 2 * n and stack[k:k + n] == stack[k + n:k + 2 * n]), 0)
        times = 1
        while length and stack[k + times * length:k + (times + 1) * length] == stack[k:k + length]: times += 1
        for file, line, name in stack[k:k + max(length, 1)]:
            out.append([name, shown_line(f"{file}:{line}") if file else "", 0, 0])
        if length: out[-length][2:] = length, times
        k += max(length, 1) * times
    return out


def tree(log):
    """The peak as a Branch: functions below their callers, operations below the function that called them. Outer frames
    that all stacks share are omitted, except for the last one."""
    found = list(pieces(log))
    known = {id(piece.stack): frames(piece.stack) for piece in found if piece.stack}
    cut = {key for key, steps in known.items() if steps[0][0] == BEYOND[2]}
    inner = {key: steps[key in cut:] for key, steps in known.items()}
    stacks, common = list(inner.values()), 0
    while stacks and all(len(s) > common + 1 and s[:common + 1] == stacks[0][:common + 1] for s in stacks): common += 1
    shown = {key: known[key][:key in cut] + steps[common:] for key, steps in inner.items()}
    root = Branch("all")
    for piece in found:
        way = [root]
        for name, line, cycle, times in shown.get(id(piece.stack), ()):
            way.append(way[-1].below(name, "", line))
            way[-1].cycle, way[-1].times = max(way[-1].cycle, cycle), max(way[-1].times, times)
        count(way, piece)
    return root


def count(way, piece):
    """Count a piece, below its operation, in the branches that lead to it."""
    for branch in [*way, way[-1].below(piece.operation, piece.category, "")]:
        branch.bytes += piece.bytes
        branch.buffers += piece.buffers


def layer_tree(log):
    """The peak as a Branch: layers of cygrad.nn below those that contain them, operations below their layer."""
    root = Branch("all")
    for piece in pieces(log):
        way = [root]
        for name in [] if piece.layer == BEFORE else [OUTSIDE] if piece.layer == OUTSIDE else piece.layer.split("."):
            way.append(way[-1].below(name, "", ""))
        count(way, piece)
    return root


class Recomputed(NamedTuple):
    """What a budget has cost: the calls of operators that were computed again, and their share of the work of all
    operations in the scope."""

    calls: int
    share: float
