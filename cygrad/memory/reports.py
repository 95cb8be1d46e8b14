"""The presentations of a profile: text tables and a trace; with the picture and the page of cygrad.drawing."""

import json
import re
import textwrap

from cygrad.core.store.buffer import CATEGORY_NAMES
from cygrad.core.sizes import words
from cygrad.drawing.course import plot
from cygrad.drawing.labels import ONE_SHAPE
from cygrad.drawing.page import page

__all__ = ["page", "plot", "table", "trace", "tree_table", "why_table"]

SMALL = 200                 # branches of a tree below 1/SMALL of the peak are summed
WIDEST = 120                # the maximum number of columns of a text table
LEVELS = 20                 # the maximum number of indented levels of a tree; deeper ones show their number


def counted(buffers, nbytes):
    """A number of buffers, or "-" if it is unknown."""
    return f"{buffers:,}" if buffers or not nbytes else "-"


def cut(text, width):
    """Shorten a text to its end, which distinguishes one path from another."""
    return text if len(text) <= width else "…" + text[len(text) - width + 1:]


def table(by, rows, peak):
    """The table of a peak. rows: {name: [bytes, buffers, bytes in all, allocations]}."""
    width = max(len(name) for name in (*rows, by, "all"))
    in_all = any(row[3] for row in rows.values())
    lines = [f"peak: {words(peak)}",
             f"{by:<{width}}{'bytes at the peak':>19}{'share':>8}{'buffers':>9}"
             + (f"{'bytes in all':>17}{'allocations':>13}" if in_all else "")]
    ordered = sorted(rows.items(), key=lambda item: (-item[1][0], -item[1][2], item[0]))
    for name, row in [*ordered, ("all", [sum(column) for column in zip(*rows.values(), strict=True)] or [0] * 4)]:
        lines.append(f"{name:<{width}}{row[0]:>19,}{row[0] / max(peak, 1):>8.1%}{counted(*row[1::-1]):>9}"
                     + (f"{row[2]:>17,}{row[3]:>13,}" if in_all else ""))
    return "\n".join(lines)


def why_table(rows, peak):
    """The rows of a peak with shapes and reasons, wrapped if they are too wide."""
    cells = [("bytes", "share", "category", "operation", "shape", "why", "line")]
    cells += [(f"{r.bytes:,}", f"{r.bytes / max(peak, 1):.1%}", r.category, r.operation, r.shape or "-", r.why, r.line)
              for r in rows]
    cells.append((f"{sum(r.bytes for r in rows):,}", f"{1:.1%}" if rows else "", "all", "", "", "", ""))
    widths = [max(len(row[k]) for row in cells) for k in range(7)]
    for k, least in ((4, 28), (5, 22), (6, 22), (4, 14)):       # (column, least width), in the order of shrinking
        widths[k] = max(min(widths[k], least), widths[k] - max(sum(widths) + 2 * 6 - WIDEST, 0))
    lines = [f"peak: {words(peak)}"]
    for row in cells:
        wrapped = [*([cell] for cell in row[:4]), wrapped_shapes(row[4], widths[4]), textwrap.wrap(row[5], widths[5]),
                   [cut(row[6], widths[6])]]
        for k in range(max(map(len, wrapped))):
            part = [cell[k] if k < len(cell) else "" for cell in wrapped]
            lines.append((f"{part[0]:>{widths[0]}}  {part[1]:>{widths[1]}}  " + "  ".join(
                f"{cell:<{width}}" for cell, width in zip(part[2:], widths[2:], strict=True))).rstrip())
    return "\n".join(lines)


def wrapped_shapes(text, width):
    """The shapes of a row in lines of a width. A shape is not broken if it fits; its numbers are never broken."""
    def joined(found):
        head, space, dtype = found[0].rpartition(" ")
        return head.replace(" ", "\0") + (space if len(found[0]) > width else "\0") + dtype

    return [line.replace("\0", " ") for line in textwrap.wrap(re.sub(ONE_SHAPE, joined, text), width)]


def tree_table(root, peak):
    """The tree of a peak, indented. Small branches are summed."""
    lines = []
    max_width = WIDEST - 36

    def add(text, depth, nbytes, buffers):
        start = "  " * depth if depth <= LEVELS else "  " * LEVELS + f"{depth}: "
        lines.append((start + cut(text, max_width - len(start)), nbytes, buffers))

    def walk(branch, depth):
        small = [b for b in branch.ordered() if SMALL * b.bytes < peak]
        for b in branch.ordered()[:len(branch.branches) - len(small) if len(small) > 1 else None]:
            add(b.title, depth, b.bytes, b.buffers)
            walk(b, depth + 1)
        if len(small) > 1:
            add(f"{len(small)} smaller ones", depth, sum(b.bytes for b in small), sum(b.buffers for b in small))

    walk(root, 0)
    add("all", 0, root.bytes, root.buffers)
    width = max(len("stack"), *(len(name) for name, _, _ in lines))
    return "\n".join([f"peak: {words(peak)}",
                      f"{'stack':<{width}}{'bytes at the peak':>19}{'share':>8}{'buffers':>9}",
                      *(f"{name:<{width}}{nbytes:>19,}{nbytes / max(peak, 1):>8.1%}{counted(buffers, nbytes):>9}"
                        for name, nbytes, buffers in lines)])


def trace(header, course, phases, lives):
    """Yield the text of a trace in Chrome's format: a counter of live bytes by category, the phases, and a slice for
    the life of every buffer. The first line contains `header`, the only part that compare() reads; the rest comes event
    by event. lives: ((operation, line, shape, category), bytes, seconds from, to)."""
    yield json.dumps({"displayTimeUnit": "ms", "otherData": header})[:-1] + ', "traceEvents": [\n'
    yield '{"ph":"M","name":"process_name","pid":1,"args":{"name":"cygrad memory"}}'
    used = [k for k in range(len(CATEGORY_NAMES)) if any(totals[k] for _, _, totals in course)]
    for _, time, totals in course:
        counts = ",".join([f'"{CATEGORY_NAMES[k]}":{totals[k]}' for k in used])
        yield f',\n{{"ph":"C","name":"live bytes","pid":1,"ts":{1e6 * time:.3f},"args":{{{counts}}}}}'
    for name, _, _, begun, ended in phases:
        yield (f',\n{{"ph":"X","name":"{name}","cat":"phase","pid":1,"tid":2,"ts":{1e6 * begun:.3f},'
               f'"dur":{1e6 * (ended - begun):.3f}}}')
    known = {}                                      # the JSON text of each kind of buffer
    for number, (buffer, nbytes, begun, ended) in enumerate(lives):
        if buffer not in known:
            operation, line, shape, category = buffer
            known[buffer] = (f'"name":{json.dumps(operation or "tensor")},"cat":"buffer","pid":1,"tid":1,"id":',
                             f'"shape":{json.dumps(shape)},"line":{json.dumps(line)},"category":"{category}"')
        name, rest = known[buffer]
        yield (f',\n{{"ph":"b",{name}{number},"ts":{1e6 * begun:.3f},"args":{{"bytes":{nbytes},{rest}}}}},\n'
               f'{{"ph":"e",{name}{number},"ts":{1e6 * ended:.3f}}}')
    yield "\n]}\n"
