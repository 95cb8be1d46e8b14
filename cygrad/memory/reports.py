"""The presentations of a profile: text tables, a picture, a page and a trace."""

import json
import os
import re
import textwrap

from cygrad.core.handles import Replacing
from cygrad.core.store.buffer import CATEGORY_NAMES
from cygrad.core.sizes import words
from cygrad.memory.page import page
from cygrad.memory.rows import ONE_SHAPE
from cygrad.memory.scales import COLORS, PHASE_COLORS, byte_unit, seconds_unit, shown, ticks

__all__ = ["page", "plot", "table", "trace", "tree_table", "why_table"]

INK = "#333333"
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


def plot(path, course, phases, peak, axis, thinned):
    """Draw the live bytes by category over events or time. The first `thinned` events are shown by their maxima."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("profile.plot needs matplotlib, which is not installed: pip install cygrad[plot]") from None
    types = FigureCanvasAgg.get_supported_filetypes()
    if os.path.splitext(path)[1][1:].lower() not in types:
        hint = "; save() writes .html and .json" if path.lower().endswith((".html", ".json")) else ""
        raise ValueError(f"plot: the picture must be .png, .svg, .pdf or another type that matplotlib writes, got "
                         f"{path!r}{hint}")
    scale, unit = byte_unit(peak)
    long, short = (1, "") if axis == "events" else seconds_unit(course[-1][1])
    at = [event if axis == "events" else seconds / long for event, seconds, _ in course]
    highest_at = max(range(len(course)), key=lambda k: sum(course[k][2]))
    at_peak = course[highest_at][2]
    figure = Figure(figsize=(10, 5), layout="constrained")
    axes = figure.subplots()
    base = [0.0] * len(course)
    for name, color in COLORS.items():
        number = CATEGORY_NAMES.index(name)
        top = [b + totals[number] / scale for b, (_, _, totals) in zip(base, course, strict=True)]
        axes.fill_between(at, base, top, step="post", color=color, lw=0, label=f"{name}  {at_peak[number]:,}")
        base = top
    axes.step(at, base, where="post", color=INK, lw=0.8)
    highest, end = max(1.2 * peak / scale, 1e-9), max(at[-1], 1e-9)
    when = at[highest_at]
    side = "left" if when < 0.5 * end else "right"
    axes.axhline(peak / scale, color=INK, lw=0.8, ls=(0, (4, 3)))
    axes.plot([when], [peak / scale], "v", color=INK, ms=7, clip_on=False)
    axes.annotate(f"peak: {peak:,} bytes at " + (f"event {when:,}" if axis == "events" else f"{when:.4g} {short}"),
                  (when, peak / scale), (8 if side == "left" else -8, 5), textcoords="offset points", weight="bold",
                  ha=side)
    label_end = -end                                # of the last label
    for name, first, last, begun, ended in phases:
        left, right = (first, last) if axis == "events" else (begun / long, ended / long)
        right = max(right, left + end / 400)
        axes.axvspan(left, right, 0.96, 1, color=PHASE_COLORS[name], lw=0)
        width = end * 0.009 * len(name)
        middle = min(max((left + right) / 2, width / 2), end - width / 2)
        if middle - width / 2 < label_end: continue
        label_end = middle + width / 2 + end * 0.005
        axes.text(middle, 0.957 * highest, name, color=INK, ha="center", va="top", size=8)
    xlabel = "memory events" if axis == "events" else short
    if thinned: xlabel += f" (of the first {thinned:,} events only the maxima)"
    axes.set(xlim=(at[0], end), ylim=(0, highest), ylabel=f"live {unit}", title="live bytes by category",
             xlabel=xlabel)
    across, up = ticks(end, axis == "events"), ticks(peak / scale, unit == "bytes")
    axes.set_xticks(across, [shown(tick) for tick in across])
    axes.set_yticks(up, [shown(tick) for tick in up])
    axes.spines[["top", "right"]].set_visible(False)
    handles, names = axes.get_legend_handles_labels()
    handles, names = handles[::-1], names[::-1]
    if phases:
        bands = {"": "none", "band at the top": "none", **PHASE_COLORS}
        handles += [axes.fill_between([], [], color=color, lw=0) for color in bands.values()]
        names += bands
    axes.legend(handles, names, title="bytes at the peak", loc="center left", bbox_to_anchor=(1, 0.5), frameon=False,
                alignment="left")
    with Replacing(path, "plot") as file:
        figure.savefig(file.name, dpi=150, format=os.path.splitext(path)[1][1:].lower())


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
