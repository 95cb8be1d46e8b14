"""memory.profile: what every byte is used for at the peak, by category, operation and line of the program."""

import os

from cygrad.core.errors import described
from cygrad.core.handles import Replacing
from cygrad.core.store.buffer import CATEGORY_NAMES
from cygrad.core.paths import file_path
from cygrad.memory.log import PHASES, Logged

MOST_EVENTS = 1 << 20       # the maximum number of events in memory, 32 bytes each; older ones are folded
MOST_COUNTERS = 1 << 16     # the maximum number of counters of a trace; beyond, each is the maximum of an interval
COLUMNS = ("operation", "category", "line", "layer", "stack", "why")
AXES = ("events", "time")


def reports():
    """The module memory.reports, imported on first use, because few programs need it."""
    from cygrad.memory import reports

    return reports


def rows():
    """The module memory.rows, imported on first use."""
    from cygrad.memory import rows

    return rows


class profile(Logged):
    """A scope that records every allocation and every release of tensor data in any thread, with the operation and the
    line of the program that caused it:

        with cg.memory.profile() as p:
            train_step()
        print(p.table(by="why"))
        p.save("memory.html")

    `.peak_bytes` is the maximum of the live bytes. `.at_peak()` lists what they were used for, to the byte, and why
    they were live; `.table(by=...)` is the same as text, `.flame(path)` as a picture of the Python stacks. `.advice()`
    lists changes that would lower the peak, `.growth()` what each step leaves to the next, and `.compare(other)` the
    differences between two profiles. `.plot(path)`
    draws the live bytes; `.save(path)` writes a page for the browser (.html) or a trace for Perfetto (.json). All of
    them also work while the scope is open. A file is replaced atomically, as by cygrad.save. Scopes nest. Outside of
    them profiling costs nothing."""

    def __init__(self):
        super().__init__(MOST_EVENTS)

    def _read(self):
        if self._log is None:
            raise RuntimeError("this memory.profile() has recorded nothing yet; use it as a scope: with "
                               "cygrad.memory.profile() as p: ...")
        if self._log.lost:
            raise MemoryError("this memory.profile() is incomplete: there was no memory left for its events")
        return self._log

    @property
    def peak_bytes(self):
        """The maximum of the live bytes in the scope, including those allocated before it."""
        return self._read().peak

    def at_peak(self):
        """The buffers that were live at the peak (the first moment at which the live bytes are at their maximum), as a
        list of PeakRow (category, operation, line, bytes), the largest first. The bytes add up to `.peak_bytes`
        exactly. Buffers allocated before the scope have the operation "before" and no line.

        A row has further attributes: `buffers`, their number (0: unknown, because they were allocated before the
        scope); `shapes`, a dict from (shape, dtype) to a number of buffers; `kept_by`, a dict from reasons such as
        "gelu needs its input" to the number of times that they apply; `stacks`, a dict from Python stacks to bytes,
        where a stack is a tuple of (file, line, function), the outermost first; `layers`, a dict from paths of layers
        of cygrad.nn to bytes; `why`, the reasons as text. If a stack
        has more than 256 frames, the innermost 256 are listed after ("", 0, "(callers beyond 256 frames)")."""
        return rows().at_peak(self._read())

    def allocations(self):
        """All allocations in the scope, whether live at the peak or not, as a list of Site (operation, line, function,
        allocations, bytes), the most bytes first."""
        return rows().allocations(self._read())

    def table(self, by="operation"):
        """The peak as a text table. With by="operation", "category", "line" or "layer", a row has the bytes and the
        share at the peak, the number of buffers ("-": unknown, allocated before the scope), and the allocations in the
        whole scope. A layer is the path of a module of cygrad.nn in the outermost one that was called, such as
        "Net.encoder.0", and "Net#2.encoder.0" in the second model of the class; what backward allocates belongs to the
        layer that recorded the node.
        With "why" the rows are those of at_peak() with shapes and reasons. With "stack" they are Python functions, each
        below its caller; frames that recursion repeats are listed once with their number. Raises ValueError for another
        `by`."""
        if by not in COLUMNS:
            raise ValueError(f"by must be one of {', '.join(map(repr, COLUMNS))}, got {described(by)}")
        log = self._read()
        if by == "stack": return reports().tree_table(rows().tree(log), log.peak)
        if by == "why": return reports().why_table(self.at_peak(), log.peak)
        return reports().table(by, rows().sums(log, by), log.peak)

    def advice(self):
        """Changes that would lower the peak, as a list of Advice (bytes, text), the largest saving first; advice that
        changes the training comes last. The bytes are the saving at this peak; another moment may become the new peak.
        For zero_grad(), checkpoint_() and fuse_into_backward() other moments are considered. In tests, following the
        advice on linear_cross_entropy lowers the peak by the bytes within 1 %, on checkpoint_() and
        fuse_into_backward() within 15 %, and on zero_grad() within 25 %. The list is empty if no rule applies."""
        from cygrad.memory.advising import advice

        return advice(self._read())

    def growth(self):
        """What each step leaves to the next ones, as a list of Growth (bytes of a step, operation, line, why, buffers,
        total), the most bytes first. A step begins with the first recorded operation after a backward pass or an
        update. It takes a profile of four steps or more. What only a first step leaves is not listed, and neither is
        what keeps a constant number of values. memory.why names what holds such a tensor."""
        from cygrad.memory.growing import growth

        return growth(self._read())

    def compare(self, other, by="operation"):
        """Compare this peak with the peak of `other`, an earlier profile or the path of a .json that save() wrote.
        Returns a Comparison, whose `rows` are Difference (name, before, after, change) for each "operation",
        "category", "line", "layer", "shape", "why" or "stack", the largest change first. The changes add up to the
        change of the peak. Its `note` is empty unless the two ran different numbers of steps. It prints as a table.
        Raises TypeError or ValueError if `other` is not a profile."""
        from cygrad.memory.comparing import compare

        return compare(other, self, by)

    def plot(self, path, axis="events"):
        """Draw the live bytes by category, with the peak and the phases of the step (forward, backward, update), to a
        file of any type that matplotlib writes. axis: "events" gives every memory event the same width, so that idle
        time is not shown; "time" uses seconds. In a long profile each interval of events is drawn as its maximum.
        Raises TypeError or ValueError if `path` is not the path of a picture, ImportError without matplotlib."""
        path = file_path(path, "plot", "memory.png")
        if axis not in AXES: raise ValueError(f"plot: axis must be 'events' or 'time', got {described(axis)}")
        reports().plot(path, self._course(), self._phases(), self.peak_bytes, axis, self._log.dropped)

    def flame(self, path):
        """Draw the peak as a flame graph, an .svg file for the browser. Each Python function is above its caller, and
        its width shows the bytes that it and its callees had live; the operations are on top, in the colours of their
        categories. Raises TypeError or ValueError for another type of file."""
        from cygrad.drawing.flames import standalone

        path = file_path(path, "flame", "peak.svg")
        if os.path.splitext(path)[1].lower() != ".svg":
            raise ValueError(f"flame: the picture must be .svg, got {path!r}")
        text = standalone(rows().tree(self._read()))
        with Replacing(path, "flame") as file: file.write(text.encode())

    def save(self, path):
        """Write the report to `path`: a page for the browser (.html: the live bytes over time, the peak with its flame
        graphs by layer and by stack, advice, allocations by place), or a trace for ui.perfetto.dev and
        chrome://tracing (.json), which compare() also reads.

        A profile has at most 2**20 events in memory. If there are more, the older half is folded into sums. The peak,
        its rows and all sums stay exact. Of the folded events, the page and the trace show only some hundred maxima,
        and the trace has no slices for buffers that were allocated and freed among them. A note on the page reports
        this, and "otherData" of the trace does, with "events", "folded" and "note". The trace has a counter for every
        event up to 65,536 events; with more, each counter is the maximum of an interval. Raises TypeError or ValueError
        for another type of file."""
        path = file_path(path, "save", "memory.html")
        suffix = os.path.splitext(path)[1].lower()
        if suffix not in (".html", ".json"):
            raise ValueError(f"save: the report must be .html or .json, got {path!r}; plot() draws pictures")
        if suffix == ".html":
            text = self._page()
            with Replacing(path, "save") as file: file.write(text.encode())
            return
        log, note = self._read(), self._note()
        header = {"cygrad_peak": rows().facts(log), "events": len(log), "folded": log.dropped, "note": note}
        course, phases = self._course(MOST_COUNTERS), self._phases()
        with Replacing(path, "save") as file:
            for text in reports().trace(header, course, phases, self._lives()): file.write(text.encode())

    def _repr_html_(self):
        """The page that save() writes, in a frame, for Jupyter. None if there is nothing to show, before the scope is
        entered."""
        if self._log is None or self._log.lost: return None
        from cygrad.core.notebook import framed

        return framed(self._page(), "memory.profile")

    def _page(self):
        """The page for the browser, as text."""
        log = self._read()
        return reports().page(self._course(), self._phases(), self.peak_bytes, self.at_peak(), self.advice(),
                              self.growth(), rows().tree(log), rows().layer_tree(log), self.allocations(), self._note())

    def _note(self):
        """A note on the folded events, or ""."""
        log = self._read()
        if not log.dropped: return ""
        return (f"The first {log.dropped:,} of {len(log):,} events are summarised: only their maxima are shown, and "
                f"buffers that were freed among them are missing. The peak and all sums are exact.")

    def _course(self, points=1500):
        """[(event, seconds, live bytes by category)]; the last entry is now, or the end of the scope."""
        log = self._read()
        rate = log.rate()
        samples = [(event, rate * ticks, totals) for event, ticks, totals in log.course(points)]
        return [*samples, (len(log), rate * log.duration(), log.totals())]

    def _phases(self):
        """[(phase, its first event, the one after its last, seconds from, to)]."""
        log = self._read()
        rate = log.rate()
        return [(PHASES[phase], first, last, rate * begun, rate * ended)
                for phase, first, begun, last, ended in log.phases()]

    def _lives(self):
        """Yield ((operation, line, shape, category), bytes, seconds from, to) of every buffer allocated in the
        scope."""
        log = self._read()
        rate, end = log.rate(), log.duration()
        known = {}                                  # by site
        for _, nbytes, site, category, begun, ended in log.lives():
            found = known.get((site, category))
            if found is None:
                operation, line, _ = log.name(site)
                found = known[site, category] = (operation, rows().shown_line(line),
                                                 rows().shown_shape(log.shape(site)), CATEGORY_NAMES[category])
            yield found, nbytes, rate * begun, rate * (end if ended is None else ended)
