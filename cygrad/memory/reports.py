"""What a profile looks like: text, picture, page, trace."""

import json
from typing import NamedTuple

from cygrad.core.memory import CATEGORY_NAMES
from cygrad.memory.page import page
from cygrad.memory.sizes import words

__all__ = ["COLORS", "page", "plot", "table", "trace"]

# from the ground up: what stays through a step, then what comes and goes
COLORS = {"parameters": "#30638e", "optimizer": "#7ba7cc", "gradients": "#d1495b", "saved": "#edae49",
          "workspace": "#66a182", "other": "#b9b9b9"}
INK = "#333333"


class PeakRow(NamedTuple):
    """Live bytes at the peak: what for, made by which operation at which line of the program ("file:line")."""

    category: str
    operation: str
    line: str
    bytes: int


class Site(NamedTuple):
    """Where memory was asked for in the scope: how often, and how many bytes in all."""

    operation: str
    line: str
    function: str
    allocations: int
    bytes: int


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


def plot(path, course, peak):
    """A picture of the course: live bytes by category over time."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("profile.plot needs matplotlib, which is not installed: pip install cygrad[plot]") from None
    times = [1e3 * time for time, _ in course]
    at_peak = max((totals for _, totals in course), key=sum)
    scale, unit = next((s, u) for s, u in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "bytes"))
                       if peak >= 2 * s or s == 1)
    figure = Figure(figsize=(10, 5), layout="constrained")
    axes = figure.subplots()
    base = [0.0] * len(course)
    for name, color in COLORS.items():
        number = CATEGORY_NAMES.index(name)
        top = [b + totals[number] / scale for b, (_, totals) in zip(base, course, strict=True)]
        axes.fill_between(times, base, top, step="post", color=color, lw=0, label=f"{name}  {at_peak[number]:,}")
        base = top
    axes.step(times, base, where="post", color=INK, lw=0.8)
    axes.axhline(peak / scale, color=INK, lw=0.8, ls=(0, (4, 3)))
    axes.annotate(f"peak: {peak:,} bytes", (times[0], peak / scale), (5, 5), textcoords="offset points", weight="bold")
    axes.set(xlim=(times[0], times[-1]), ylim=(0, max(1.12 * peak / scale, 1e-9)), xlabel="milliseconds",
             ylabel=f"live {unit}", title="live bytes by what they are for")
    axes.spines[["top", "right"]].set_visible(False)
    handles, names = axes.get_legend_handles_labels()
    axes.legend(handles[::-1], names[::-1], title="bytes at the peak", loc="center left", bbox_to_anchor=(1, 0.5),
                frameon=False, alignment="left")
    figure.savefig(path, dpi=150)


def trace(course, lives):
    """A trace in Chrome's format: a counter of live bytes by category, and a slice for the life of every buffer."""
    events = [{"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "cygrad memory"}}]
    for time, totals in course:
        events.append({"ph": "C", "name": "live bytes", "pid": 1, "ts": 1e6 * time,
                       "args": dict(zip(CATEGORY_NAMES, totals, strict=True))})
    for number, (buffer, nbytes, operation, line, category, begun, ended) in enumerate(lives):
        both = {"name": operation or "tensor", "cat": "buffer", "pid": 1, "tid": 1, "id": number}
        events.append({**both, "ph": "b", "ts": 1e6 * begun,
                       "args": {"bytes": nbytes, "line": line, "category": category, "buffer": hex(buffer)}})
        events.append({**both, "ph": "e", "ts": 1e6 * ended})
    return json.dumps({"displayTimeUnit": "ms", "traceEvents": events})
