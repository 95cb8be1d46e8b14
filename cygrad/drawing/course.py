"""The live bytes of a profile as a picture, by matplotlib."""

import os

from cygrad.core.handles import Replacing
from cygrad.core.store.buffer import CATEGORY_NAMES
from cygrad.drawing.scales import COLORS, PHASE_COLORS, byte_unit, seconds_unit, shown, ticks

INK = "#333333"


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
    label_end = -end                                # where the last label ends
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
