"""memory.profile: where every byte is at the peak, by category, operation and line of the program."""

import os

from cygrad.core.errors import described
from cygrad.core.memory import CATEGORY_NAMES
from cygrad.memory.log import Logged

MOST_EVENTS = 1 << 20       # in memory, 40 bytes each; older ones are folded together
COLUMNS = ("operation", "category", "line")
BEFORE = "before"         # the operation of what was alive when the scope was entered


def reports():
    """What a profile looks like: a module that few programs need, imported for those that do."""
    from cygrad.memory import reports

    return reports


def shown_line(line):
    """"file:line" with the file relative to where the program runs, if it lies below."""
    below = os.path.join(os.getcwd(), "")
    return line[len(below):] if line.startswith(below) else line


class profile(Logged):
    """A scope that writes down every byte of tensor data that any thread takes or gives back in it, with the operation
    and the line of the program that asked:

        with cg.memory.profile() as p:
            train_step()
        print(p.table())
        p.save("memory.html")

    `.peak_bytes` is the most that was live at once, `.at_peak()` says whose it was, to the byte; `.table(by=...)` is
    that as text, `.plot(path)` a picture, `.save(path)` a page for the browser (.html) or a trace for Perfetto (.json).
    All of them can be asked for while the scope is open, too. Scopes nest; outside of them profiling costs nothing."""

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
        before the scope has the operation "before" and no line."""
        row, rows = reports().PeakRow, {}
        for category, operation, line, nbytes, _ in self._buffers():
            rows[category, operation, line] = rows.get((category, operation, line), 0) + nbytes
        return sorted((row(*key, nbytes) for key, nbytes in rows.items()), key=lambda r: (-r.bytes, r[:3]))

    def _buffers(self):
        """(category, operation, line, bytes, buffers) at the peak: each buffer by itself, those from before together,
        by category."""
        log = self._read()
        before, live = log.state(log.peak_at)
        names = {}
        for category, nbytes in zip(CATEGORY_NAMES, before, strict=True):
            if nbytes: yield category, BEFORE, "", nbytes, 0
        for nbytes, category, site in live.values():
            if not nbytes: continue
            if site not in names: names[site] = log.name(site)
            operation, line, _ = names[site]
            yield CATEGORY_NAMES[category], operation, shown_line(line), nbytes, 1

    def allocations(self):
        """What was asked for in the scope, whether it was still live at the peak or not: a list of Site (operation,
        line, function, allocations, bytes), the most bytes first."""
        log = self._read()
        sums = {}
        for number, (count, nbytes) in enumerate(log.sums()):
            if not count: continue
            operation, line, function = log.name(number)
            found = sums.setdefault((operation, shown_line(line), function), [0, 0])
            found[0] += count
            found[1] += nbytes
        site = reports().Site
        sites = [site(*key, *found) for key, found in sums.items()]
        return sorted(sites, key=lambda s: (-s.bytes, -s.allocations, s[:3]))

    def table(self, by="operation"):
        """The peak as text, one row for each "operation", "category" or "line": bytes and share at the peak, how many
        buffers, and what was asked for in the whole scope."""
        if by not in COLUMNS:
            raise ValueError(f"by is one of {', '.join(map(repr, COLUMNS))}, got {described(by)}")
        column = ("category", "operation", "line").index(by)
        rows = {}                                   # name -> [bytes at the peak, buffers, bytes in all, allocations]
        for buffer in self._buffers():
            row = rows.setdefault(buffer[column] or buffer[1], [0, 0, 0, 0])
            row[0] += buffer[3]
            row[1] += buffer[4]
        if by != "category":
            for site in self.allocations():
                row = rows.setdefault(site.operation if by == "operation" else site.line, [0, 0, 0, 0])
                row[2] += site.bytes
                row[3] += site.allocations
        return reports().table(by, rows, self.peak_bytes)

    def plot(self, path):
        """Draw the live bytes by category over time, with the peak, to a file of any type that matplotlib writes."""
        reports().plot(path, self._course(), self.peak_bytes)

    def save(self, path):
        """Write the report to `path`: .html, a page of its own (the course of the live bytes, the peak, where memory
        was asked for), or .json, a trace for ui.perfetto.dev or chrome://tracing. Raises ValueError for others."""
        suffix = os.path.splitext(path)[1].lower()
        if suffix not in (".html", ".json"):
            raise ValueError(f"save: the report is .html or .json, got {os.fspath(path)!r}; plot() draws pictures")
        if suffix == ".html":
            text = reports().page(self._course(), self.peak_bytes, self.at_peak(), self.allocations())
        else:
            text = reports().trace(self._course(1 << 30), self._lives())
        with open(path, "w", encoding="utf-8") as file: file.write(text)

    def _course(self, points=1500):
        """[(seconds, live bytes by category)], the last of them now, or when the scope was left."""
        log = self._read()
        samples = [(time / 1e9, totals) for time, totals in log.course(points)]
        return [*samples, (log.duration() / 1e9, self._last())]

    def _last(self):
        log = self._read()
        before, live = log.state(len(log))
        totals = list(before)
        for nbytes, category, _ in live.values(): totals[category] += nbytes
        return tuple(totals)

    def _lives(self):
        """(buffer, bytes, operation, line, category, seconds from, to) of every buffer made in the scope."""
        log = self._read()
        end = log.duration()
        for buffer, nbytes, site, category, begun, ended in log.lives():
            operation, line, _ = log.name(site)
            yield (buffer, nbytes, operation, shown_line(line), CATEGORY_NAMES[category], begun / 1e9,
                   (end if ended is None else ended) / 1e9)
