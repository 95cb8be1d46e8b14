"""memory.profile: where every byte is at the peak, by category, operation and line of the program."""

import os

from cygrad.core.errors import described
from cygrad.core.store.buffer import CATEGORY_NAMES
from cygrad.memory.log import PHASES, Logged
from cygrad.memory.paths import file_path

MOST_EVENTS = 1 << 20       # in memory, 32 bytes each; older ones are folded together
MOST_COUNTERS = 1 << 16     # of a trace: beyond, the highest moment of each of so many stretches of events
COLUMNS = ("operation", "category", "line", "stack", "why")
AXES = ("events", "time")


def reports():
    """What a profile looks like: a module that few programs need, imported for those that do."""
    from cygrad.memory import reports

    return reports


def rows():
    """... and what it says of the peak."""
    from cygrad.memory import rows

    return rows


class profile(Logged):
    """A scope that writes down every byte of tensor data that any thread takes or gives back in it, with the operation
    and the line of the program that asked:

        with cg.memory.profile() as p:
            train_step()
        print(p.table(by="why"))
        p.save("memory.html")

    `.peak_bytes` is the most that was live at once. `.at_peak()` says whose it was, to the byte, and why it was kept;
    `.table(by=...)` is that as text, `.flame(path)` as a picture of the Python stacks. `.advice()` lists what would
    lower the peak, and `.compare(other)` says what has changed between two profiles. `.plot(path)` draws the live
    bytes; `.save(path)` writes a page for the browser (.html) or a trace for Perfetto (.json). All of them can be asked
    for while the scope is open, too. Scopes nest; outside of them profiling costs nothing."""

    def __init__(self):
        super().__init__(MOST_EVENTS)

    def _read(self):
        if self._log is None:
            raise RuntimeError("this memory.profile() has seen nothing yet; use it as a scope: with "
                               "cygrad.memory.profile() as p: ...")
        if self._log.lost:
            raise MemoryError("there was no memory left to write down what this memory.profile() saw")
        return self._log

    @property
    def peak_bytes(self):
        """The most bytes that were live at once in the scope, those from before it included."""
        return self._read().peak

    def at_peak(self):
        """What was live at the peak (the first moment when as much was live as ever in the scope): a list of PeakRow
        (category, operation, line, bytes), the largest first. The bytes add up to `.peak_bytes`, exactly. What was made
        before the scope has the operation "before" and no line.

        A row has more than these four: `buffers`, how many there are (0: not known, from before the scope); `shapes`, a
        dict of (shape, dtype) and how many have it; `kept_by`, a dict of reasons such as "gelu needs its input" and how
        often each holds; `stacks`, a dict of Python stacks and their bytes, a stack being a tuple of (file, line,
        function), the outermost first; `why`, the reasons as text. Of a stack of more than 256 frames the innermost 256
        are there, and ("", 0, "(callers beyond 256 frames)") before them."""
        return rows().at_peak(self._read())

    def allocations(self):
        """What was asked for in the scope, whether it was still live at the peak or not: a list of Site (operation,
        line, function, allocations, bytes), the most bytes first."""
        return rows().allocations(self._read())

    def table(self, by="operation"):
        """The peak as text. By "operation", "category" or "line" each has a row: bytes and share at the peak, how many
        buffers ("-": not known, from before the scope), and what was asked for in the whole scope. By "why" the rows
        are those of at_peak() with their shapes and reasons. By "stack" they are the Python functions, each below its
        caller; frames that recursion repeats are there once, with how often they were."""
        if by not in COLUMNS:
            raise ValueError(f"by is one of {', '.join(map(repr, COLUMNS))}, got {described(by)}")
        log = self._read()
        if by == "stack": return reports().tree_table(rows().tree(log), log.peak)
        if by == "why": return reports().why_table(self.at_peak(), log.peak)
        return reports().table(by, rows().sums(log, by), log.peak)

    def advice(self):
        """What would lower the peak: a list of Advice (bytes, text), the one that saves the most first, and last what
        would train differently. The bytes are what it takes from this peak; another moment may then be the highest.
        Empty where no rule applies."""
        from cygrad.memory.advising import advice

        return advice(self._read())

    def compare(self, other, by="operation"):
        """What has changed in the peak from `other`, a profile or the path of a .json that save() wrote, to this one:
        a Comparison, whose `rows` are Difference (name, before, after, change) for each "operation", "category",
        "line", "shape", "why" or "stack", the largest change first. The changes add up to that of the peak. Its `note`
        says if the two did not run the same number of steps. Printed, it is a table. Raises TypeError or ValueError for
        what is no profile."""
        from cygrad.memory.comparing import compare

        return compare(other, self, by)

    def plot(self, path, axis="events"):
        """Draw the live bytes by category, with the peak and the phases of the step (forward, backward, update), to a
        file of any type that matplotlib writes. axis: "events", each memory event as wide as any other, so that waiting
        takes no room; or "time". Of a long profile each stretch of events is drawn as its highest moment. Raises
        TypeError or ValueError for what is no path of a picture."""
        path = file_path(path, "plot", "memory.png")
        if axis not in AXES: raise ValueError(f"plot: axis is 'events' or 'time', got {described(axis)}")
        reports().plot(path, self._course(), self._phases(), self.peak_bytes, axis, self._log.dropped)

    def flame(self, path):
        """Draw the peak as a flame graph, an .svg that any browser shows: each Python function above its caller, as
        wide as what it and those that it called had live, and on top the operations in the colours of their
        categories. Raises TypeError or ValueError for other types of files."""
        from cygrad.memory.flames import standalone

        path = file_path(path, "flame", "peak.svg")
        if os.path.splitext(path)[1].lower() != ".svg": raise ValueError(f"flame: the picture is .svg, got {path!r}")
        text = standalone(rows().tree(self._read()))
        with open(path, "w", encoding="utf-8") as file: file.write(text)

    def save(self, path):
        """Write the report to `path`: .html, a page of its own (the course of the live bytes, the peak with its flame
        graph, what would lower it, where memory was asked for), or .json, a trace for ui.perfetto.dev or
        chrome://tracing, which compare() takes, too.

        A profile has a million events (2**20) in memory. When there are more, the older half is folded into what it
        adds up to. The peak, its rows and all sums stay exact. The course of the folded half is told by its highest
        moments, some hundreds, in the page and in the trace; and the trace has no slices for buffers that were made
        and freed in it. The page says so in a line, the trace in its "otherData", which has "events", "folded" and
        "note". The trace's counters are at every event up to 65,536, and beyond at the highest moment of each of so
        many stretches. Raises TypeError or ValueError for what is neither."""
        path = file_path(path, "save", "memory.html")
        suffix = os.path.splitext(path)[1].lower()
        if suffix not in (".html", ".json"):
            raise ValueError(f"save: the report is .html or .json, got {path!r}; plot() draws pictures")
        log, note = self._read(), self._note()
        if suffix == ".html":
            text = reports().page(self._course(), self._phases(), self.peak_bytes, self.at_peak(), self.advice(),
                                  rows().tree(log), self.allocations(), note)
            with open(path, "w", encoding="utf-8") as file: file.write(text)
            return
        told = {"cygrad_peak": rows().facts(log), "events": len(log), "folded": log.dropped, "note": note}
        course, phases = self._course(MOST_COUNTERS), self._phases()
        with open(path, "w", encoding="utf-8") as file: reports().trace(file, told, course, phases, self._lives())

    def _note(self):
        """What is not told event by event."""
        log = self._read()
        if not log.dropped: return ""
        return (f"The first {log.dropped:,} of {len(log):,} events are folded together: of them there are the highest "
                f"moments, and no buffers that were freed among them. The peak and all sums are exact.")

    def _course(self, points=1500):
        """[(event, seconds, live bytes by category)], the last of them now, or when the scope was left."""
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
        """((operation, line, shape, category), bytes, seconds from, to) of every buffer made in the scope."""
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
