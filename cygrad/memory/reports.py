"""What a profile looks like: text, picture, page, trace."""

import json

from cygrad.core.memory import CATEGORY_NAMES
from cygrad.memory.page import page
from cygrad.memory.scales import byte_unit, seconds_unit, shown, ticks
from cygrad.memory.sizes import words

__all__ = ["COLORS", "page", "plot", "table", "trace", "tree_table", "why_table"]

# from the ground up: what stays through a step, then what comes and goes
COLORS = {"parameters": "#30638e", "optimizer": "#7ba7cc", "gradients": "#d1495b", "saved": "#edae49",
          "workspace": "#66a182", "other": "#b9b9b9"}
PHASE_COLORS = {"forward": "#30638e", "backward": "#d1495b", "update": "#66a182"}
INK = "#333333"
SMALL = 200                 # a part of a tree below one in so many of the peak is summed up with its neighbours


def table(by, rows, peak):
    """The table of a peak; rows are {name: [bytes, buffers, bytes in all, allocations]}."""
    width = max(len(name) for name in (*rows, by, "all"))
    in_all = any(row[3] for row in rows.values())
    lines = [f"peak: {words(peak)}",
             f"{by:<{width}}{'bytes at the peak':>19}{'share':>8}{'buffers':>9}"
             + (f"{'bytes in all':>17}{'allocations':>13}" if in_all else "")]
    ordered = sorted(rows.items(), key=lambda item: (-item[1][0], -item[1][2], item[0]))
    for name, row in [*ordered, ("all", [sum(column) for column in zip(*rows.values(), strict=True)] or [0] * 4)]:
        lines.append(f"{name:<{width}}{row[0]:>19,}{row[0] / max(peak, 1):>8.1%}{row[1]:>9,}"
                     + (f"{row[2]:>17,}{row[3]:>13,}" if in_all else ""))
    return "\n".join(lines)


def why_table(rows, peak):
    """The rows of a peak with their shapes and why they are live."""
    cells = [("bytes at the peak", "share", "category", "operation", "shape", "why", "line")]
    cells += [(f"{r.bytes:,}", f"{r.bytes / max(peak, 1):.1%}", r.category, r.operation, r.shape, r.why, r.line)
              for r in rows]
    cells.append((f"{sum(r.bytes for r in rows):,}", f"{1:.1%}" if rows else "", "all", "", "", "", ""))
    widths = [max(len(row[k]) for row in cells) for k in range(7)]
    lines = [f"{row[0]:>{widths[0]}}  {row[1]:>{widths[1]}}  "
             + "  ".join(f"{cell:<{width}}" for cell, width in zip(row[2:], widths[2:], strict=True)) for row in cells]
    return "\n".join([f"peak: {words(peak)}", *(line.rstrip() for line in lines)])


def tree_table(root, peak):
    """The tree of a peak, indented; what is small is summed up."""
    lines = []

    def walk(branch, depth):
        small = [b for b in branch.ordered() if SMALL * b.bytes < peak]
        for b in branch.ordered()[:len(branch.branches) - len(small) if len(small) > 1 else None]:
            name = f"{b.line} {b.name}" if b.line else f"{b.name} [{b.category}]"
            lines.append(("  " * depth + name, b.bytes, b.buffers))
            walk(b, depth + 1)
        if len(small) > 1:
            lines.append((f"{'  ' * depth}{len(small)} smaller ones", sum(b.bytes for b in small),
                          sum(b.buffers for b in small)))

    walk(root, 0)
    lines.append(("all", root.bytes, root.buffers))
    width = max(len("stack"), *(len(name) for name, _, _ in lines))
    return "\n".join([f"peak: {words(peak)}",
                      f"{'stack':<{width}}{'bytes at the peak':>19}{'share':>8}{'buffers':>9}",
                      *(f"{name:<{width}}{nbytes:>19,}{nbytes / max(peak, 1):>8.1%}{buffers:>9,}"
                        for name, nbytes, buffers in lines)])


def plot(path, course, phases, peak, axis):
    """A picture of the course: live bytes by category over events or time."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("profile.plot needs matplotlib, which is not installed: pip install cygrad[plot]") from None
    scale, unit = byte_unit(peak)
    long, short = (1, "") if axis == "events" else seconds_unit(course[-1][1])
    at = [event if axis == "events" else seconds / long for event, seconds, _ in course]
    at_peak = max((totals for _, _, totals in course), key=sum)
    figure = Figure(figsize=(10, 5), layout="constrained")
    axes = figure.subplots()
    base = [0.0] * len(course)
    for name, color in COLORS.items():
        number = CATEGORY_NAMES.index(name)
        top = [b + totals[number] / scale for b, (_, _, totals) in zip(base, course, strict=True)]
        axes.fill_between(at, base, top, step="post", color=color, lw=0, label=f"{name}  {at_peak[number]:,}")
        base = top
    axes.step(at, base, where="post", color=INK, lw=0.8)
    axes.axhline(peak / scale, color=INK, lw=0.8, ls=(0, (4, 3)))
    axes.annotate(f"peak: {peak:,} bytes", (at[0], peak / scale), (5, 5), textcoords="offset points", weight="bold")
    highest, end = max(1.2 * peak / scale, 1e-9), max(at[-1], 1e-9)
    for name, first, last, begun, ended in phases:
        left, right = (first, last) if axis == "events" else (begun / long, ended / long)
        right = max(right, left + end / 400)
        axes.axvspan(left, right, 0.95, 1, color=PHASE_COLORS[name], lw=0)
        if right - left > end / 12:
            axes.text((left + right) / 2, 0.974 * highest, name, color="white", ha="center", va="center", size=8)
    axes.set(xlim=(at[0], end), ylim=(0, highest), ylabel=f"live {unit}", title="live bytes by what they are for",
             xlabel="memory events" if axis == "events" else short)
    across, up = ticks(end, axis == "events"), ticks(peak / scale, unit == "bytes")
    axes.set_xticks(across, [shown(tick) for tick in across])
    axes.set_yticks(up, [shown(tick) for tick in up])
    axes.spines[["top", "right"]].set_visible(False)
    handles, names = axes.get_legend_handles_labels()
    axes.legend(handles[::-1], names[::-1], title="bytes at the peak", loc="center left", bbox_to_anchor=(1, 0.5),
                frameon=False, alignment="left")
    figure.savefig(path, dpi=150)


def trace(course, phases, lives, rows):
    """A trace in Chrome's format: a counter of live bytes by category, the phases, and a slice for the life of every
    buffer. The rows of the peak are there for memory.profile.compare."""
    events = [{"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "cygrad memory"}}]
    for _, time, totals in course:
        events.append({"ph": "C", "name": "live bytes", "pid": 1, "ts": 1e6 * time,
                       "args": dict(zip(CATEGORY_NAMES, totals, strict=True))})
    for name, _, _, begun, ended in phases:
        events.append({"ph": "X", "name": name, "cat": "phase", "pid": 1, "tid": 2, "ts": 1e6 * begun,
                       "dur": 1e6 * (ended - begun)})
    for number, (buffer, nbytes, operation, line, shape, category, begun, ended) in enumerate(lives):
        both = {"name": operation or "tensor", "cat": "buffer", "pid": 1, "tid": 1, "id": number}
        events.append({**both, "ph": "b", "ts": 1e6 * begun,
                       "args": {"bytes": nbytes, "shape": shape, "line": line, "category": category,
                                "buffer": hex(buffer)}})
        events.append({**both, "ph": "e", "ts": 1e6 * ended})
    return json.dumps({"displayTimeUnit": "ms", "otherData": {"cygrad_peak": rows}, "traceEvents": events})
