"""The pictures, drawn with matplotlib. Without matplotlib there are none."""

import importlib.util

from benchmarks.goals import GOALS
from benchmarks.peaks import CATEGORIES
from benchmarks.report import number, size, unit, value
from benchmarks.work import KEPT, NAMES

INK, SOFT, GRID = "#22272e", "#6b7280", "#e5e7eb"
MINE, PEER, REFERENCE = "#0f766e", "#c2703d", "#9ca3af"
SECOND = "#5eada5"
PALE = 0.45                     # the opacity of disturbed figures
SHOWN = 10                      # operators at each end of the picture of operations
PEERS = {"cygrad": MINE, "PyTorch": PEER, KEPT: "#e6b58e", "NumPy": "#8a94a6", "jax.jit": "#7c6bb0"}
COLOURS = {"optimizer": "#475569", "gradients": "#c2703d", "saved": "#0f766e", "workspace": "#d4a72c",
           "other": "#b8bfc9"}


def plot():
    """matplotlib, set up to draw without a window."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    pyplot.rcParams.update({
        "font.size": 9, "axes.edgecolor": SOFT, "axes.labelcolor": INK, "text.color": INK, "xtick.color": SOFT,
        "ytick.color": INK, "axes.spines.top": False, "axes.spines.right": False, "axes.spines.left": False,
        "ytick.major.size": 0, "axes.titlesize": 10, "axes.titleweight": "bold", "axes.titlelocation": "left",
        "legend.frameon": False, "figure.facecolor": "white", "savefig.dpi": 160, "svg.hashsalt": "cygrad",
    })
    return pyplot


def save(pyplot, figure, directory, name):
    directory.mkdir(parents=True, exist_ok=True)
    figure.savefig(directory / f"{name}.png", bbox_inches="tight", metadata={"Software": None})
    pyplot.close(figure)
    return f"{name}.png"


def draw(results, directory):
    """Draw the pictures for which there are results. Returns the file of each picture by name."""
    if importlib.util.find_spec("matplotlib") is None:
        return {}
    pyplot, rows, made = plot(), results["results"], {}
    for name, picture in (("ratios", ratios), ("operations", operations), ("million", million), ("peaks", peaks),
                          ("H", large), ("I", matrices)):
        figure = picture(pyplot, rows)
        if figure is not None:
            made[name] = save(pyplot, figure, directory, name)
    return made


def ratios(pyplot, rows):
    """The speed-up over PyTorch with default settings, by workload. A tick marks the goal, and a line the quartiles."""
    wanted = [r for r in rows if r["unit"] != "B" and "PyTorch" in r["ratios"] and r["details"].get("kind") != "table"
              and not r["disturbed"] and r["row"] in "ABCDFGJL"]
    if not wanted:
        return None
    figure, axes = pyplot.subplots(figsize=(8, 0.9 + 0.27 * len(wanted)))
    labels = []
    for i, r in enumerate(wanted):
        s, goal = r["ratios"]["PyTorch"], GOALS.get((r["row"], r["name"]))
        goal = goal and goal.at(r["threads"])
        axes.barh(i, s["median"], color=MINE if r["threads"] == 1 else SECOND, height=0.68)
        axes.plot([s["q1"], s["q3"]], [i, i], color=INK, linewidth=1.2, solid_capstyle="butt")
        axes.text(max(s["q3"], s["median"]) * 1.04, i, f"{s['median']:.1f}x", va="center", color=INK, fontsize=8)
        if goal and goal.ratio:
            axes.plot([goal.ratio] * 2, [i - 0.4, i + 0.4], color=PEER, linewidth=2)
        threads = f", {r['threads']} threads" if r["threads"] > 1 else ""
        labels.append(f"{r['row']}: {NAMES[r['row']]}: {r['name']}{threads}")
    axes.set_yticks(range(len(wanted)), labels)
    axes.invert_yaxis()
    speed_up_axis(axes, [r["ratios"]["PyTorch"]["median"] for r in wanted])
    axes.set_title("Speed-up over PyTorch (log scale; orange: the goal)")
    return figure


def operations(pyplot, rows):
    """The SHOWN largest and smallest speed-ups of elementwise operators over PyTorch, at size 1."""
    wanted = [r for r in rows if r["details"].get("kind") == "table" and r["details"]["size"] == 1
              and "PyTorch" in r["ratios"] and not r["disturbed"]]
    modes = [r["details"]["mode"] for r in wanted]
    mode = next((m for m in ("forward + backward", "recorded", "not recorded") if m in modes), None)
    wanted = [r for r in wanted if r["details"]["mode"] == mode]
    wanted.sort(key=lambda r: -r["ratios"]["PyTorch"]["median"])
    if not wanted:
        return None
    shown, omitted = wanted, max(0, len(wanted) - 2 * SHOWN)
    if omitted:
        shown = wanted[:SHOWN] + wanted[-SHOWN:]
    figure, axes = pyplot.subplots(figsize=(8, 0.9 + 0.29 * (len(shown) + bool(omitted))))
    places = [i + (omitted > 0 and i >= SHOWN) for i in range(len(shown))]
    for i, r in zip(places, shown, strict=True):
        times = r["ratios"]["PyTorch"]["median"]
        axes.barh(i, times, color=MINE if times >= 1 else PEER, height=0.7)
        axes.text(times * 1.03, i, f"{times:.1f}x   {number(r['figures']['cygrad']['median'])} us", va="center",
                  fontsize=9)
    if omitted:
        axes.text(1.03, SHOWN, f"... {omitted} operators in between ...", va="center", fontsize=9, color=SOFT)
    speed_up_axis(axes, [r["ratios"]["PyTorch"]["median"] for r in shown])
    axes.set_yticks(places, [r["details"]["operator"] for r in shown], fontsize=10)
    axes.invert_yaxis()
    axes.set_title(f"A: one operation, {mode}: speed-up over PyTorch (log scale)")
    return figure


def speed_up_axis(axes, values):
    """A logarithmic axis of speed-ups."""
    axes.set_xscale("log")
    axes.set_xlim(min(1, 0.7 * min(values)), max(20, 1.8 * max(values)))
    ticks = [t for t in (0.5, 1, 2, 5, 10, 20, 50, 100) if axes.get_xlim()[0] <= t <= axes.get_xlim()[1]]
    axes.set_xticks(ticks, [f"{t:g}x" for t in ticks])
    axes.set_xticks([], minor=True)
    axes.axvline(1, color=SOFT, linewidth=0.8)
    axes.grid(axis="x", color=GRID, linewidth=0.6)
    axes.set_axisbelow(True)


def million(pyplot, rows):
    """Seconds of the phases and bytes per operation of each chain, for cygrad and PyTorch."""
    wanted = [r for r in rows if r["row"] == "J"]
    if not wanted:
        return None
    kinds = list(dict.fromkeys(r["name"].partition(":")[0] for r in wanted))
    by_name = {r["name"]: r for r in wanted}
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(9, 1.2 + 0.72 * len(kinds)))
    peers = [p for p in ("cygrad", "PyTorch") if any(p in r["figures"] for r in wanted)]
    shades = {"forward": 1.0, "backward": 0.65, "free": 0.35}
    labels = []
    for i, (kind, peer) in enumerate((k, p) for k in kinds for p in peers):
        colour, at = (MINE if peer == "cygrad" else PEER), i + 0.35 * (i // len(peers))
        start, disturbed = 0.0, False
        for phase, shade in shades.items():
            result = by_name[f"{kind}: {phase}"]
            seconds, disturbed = result["figures"][peer]["median"], disturbed or result["disturbed"]
            left.barh(at, seconds, left=start, color=colour, alpha=shade, height=0.8)
            start += seconds
        left.text(start, at, f"  {start:.2f} s{', disturbed' * disturbed}", va="center", fontsize=8)
        nbytes = by_name[f"{kind}: bytes per operation"]["figures"][peer]["median"]
        right.barh(at, nbytes, color=colour, height=0.8)
        right.text(nbytes, at, f"  {nbytes:.0f}", va="center", fontsize=8)
        labels.append((at, f"{kind}   {peer}"))
    for axes in (left, right):
        axes.set_yticks([at for at, _ in labels], [text for _, text in labels] if axes is left else [""] * len(labels))
        axes.invert_yaxis()
        axes.margins(x=0.15)
        axes.grid(axis="x", color=GRID, linewidth=0.6)
        axes.set_axisbelow(True)
        if any(r["disturbed"] for r in wanted) and axes is left: axes.margins(x=0.35)
    left.set_title("Seconds")
    right.set_title("Bytes per operation")
    handles = [pyplot.Rectangle((0, 0), 1, 1, facecolor=INK, alpha=shade) for shade in shades.values()]
    figure.legend(handles, list(shades), loc="lower left", ncols=len(handles), fontsize=8)
    figure.suptitle("J: a million scalar operations in one graph", x=0.02, ha="left", fontweight="bold", fontsize=11)
    figure.tight_layout(rect=(0, 0.3 / figure.get_figheight(), 1, 1))
    return figure


def peaks(pyplot, rows):
    """Bytes at the peak of a step above data and parameters: cygrad's by category, and PyTorch's total."""
    wanted = [r for r in rows if r["row"] == "peaks"]
    if not wanted:
        return None
    columns = 2 if len(wanted) > 1 else 1
    lines = -(-len(wanted) // columns)
    figure, all_axes = pyplot.subplots(lines, columns, figsize=(4.8 * columns, 1.65 * lines + 0.7), squeeze=False)
    for axes, r in zip(all_axes.flat, wanted, strict=False):
        peers = list(r["figures"])
        for i, peer in enumerate(peers):
            total, start = r["figures"][peer]["median"], 0
            categories = r["details"].get(peer, {}).get("by_category")
            if categories:
                for name in CATEGORIES:
                    axes.barh(i, categories[name], left=start, color=COLOURS[name], height=0.7)
                    start += categories[name]
            else:
                axes.barh(i, total, color="white", edgecolor=SOFT, hatch="////", linewidth=0.8, height=0.7)
            axes.text(total, i, f"  {size(total)}", va="center", fontsize=8)
        axes.set_yticks(range(len(peers)), peers, fontsize=8)
        axes.set_xticks([])
        axes.spines["bottom"].set_visible(False)
        axes.invert_yaxis()
        axes.margins(x=0.22)
        axes.set_title(r["name"], fontsize=9)
    for axes in list(all_axes.flat)[len(wanted):]:
        axes.axis("off")
    handles = [pyplot.Rectangle((0, 0), 1, 1, color=COLOURS[name]) for name in CATEGORIES]
    handles.append(pyplot.Rectangle((0, 0), 1, 1, facecolor="white", edgecolor=SOFT, hatch="////"))
    figure.legend(handles, [*CATEGORIES, "total only"], loc="lower center", ncols=len(handles), fontsize=8)
    figure.suptitle("Bytes at the peak of a training step, above data and parameters", x=0.02, ha="left",
                    fontweight="bold", fontsize=11)
    figure.tight_layout(rect=(0, 0.06, 1, 1))
    return figure


# ---- bars against the peers and the machine --------------------------------------------------------------------------

def large(pyplot, rows):
    """Milliseconds for 16 million numbers: one column for each mode, one line for each thread count."""
    wanted = [r for r in rows if r["row"] == "H" and "rate" not in r["details"]]
    modes = list(dict.fromkeys(r["name"].partition(", ")[2] for r in wanted))
    panels = [(mode, [(r["name"].partition(", ")[0], r) for r in wanted if r["name"].endswith(mode)]) for mode in modes]
    return panelled(pyplot, panels, "H: 16,777,216 float32 numbers")


def matrices(pyplot, rows):
    """Milliseconds of rows and sums, GFLOP/s of products: one column for each kind, one line for each thread count."""
    wanted = [r for r in rows if r["row"] == "I" and "rate" not in r["details"]]
    products = [r for r in wanted if r["name"].startswith("matmul")]
    sums = [r for r in wanted if "axis" in r["name"]]
    others = [r for r in wanted if r not in products and r not in sums]
    panels = [("softmax, logsumexp of 4096 x 4096", [(r["name"].replace(", ", "\n"), r) for r in others]),
              ("sum and mean of 4096 x 4096", [(r["name"], r) for r in sums]),
              ("products", [(r["name"], r) for r in products])]
    return panelled(pyplot, panels, "I: rows, sums and products of float32 matrices")


def panelled(pyplot, panels, title):
    """A figure of panels, with a line for each thread count. panels: (title, (label, result)s)."""
    panels = [(name, entries) for name, entries in panels if entries]
    if not panels:
        return None
    threads = sorted({r["threads"] for _, entries in panels for _, r in entries})
    peers = [p for p in PEERS if any(p in r["figures"] for _, entries in panels for _, r in entries)]
    most = max(sum(r["threads"] == t for _, r in entries) for t in threads for _, entries in panels)
    figure, all_axes = pyplot.subplots(len(threads), len(panels), squeeze=False, figsize=(
        4.6 * len(panels), len(threads) * (0.6 + 0.15 * most * (len(peers) + 1)) + 0.9))
    for line, count in zip(all_axes, threads, strict=True):
        for axes, (name, entries) in zip(line, panels, strict=True):
            bars(axes, [(label, r) for label, r in entries if r["threads"] == count], peers)
            shown = unit(entries[0][1])
            more = "higher is better" if "/s" in shown else "lower is better"
            axes.set_title(f"{name}, {count} thread{'s' * (count > 1)}\n{shown}, {more}", fontsize=9)
    handles = [pyplot.Rectangle((0, 0), 1, 1, color=PEERS[peer]) for peer in peers]
    handles.append(pyplot.Line2D([], [], color=INK, linewidth=1.6))
    labels = [*peers, "the machine's limit"]
    if any(r["disturbed"] for _, entries in panels for _, r in entries):
        handles.append(pyplot.Rectangle((0, 0), 1, 1, facecolor=PEERS[peers[0]], alpha=PALE))
        labels.append("pale: disturbed")
    figure.legend(handles, labels, loc="lower center", ncols=len(handles), fontsize=8)
    figure.suptitle(title, x=0.02, ha="left", fontweight="bold", fontsize=11)
    figure.tight_layout(rect=(0, 0.6 / figure.get_figheight(), 1, 1))
    return figure


def bars(axes, entries, peers):
    """A group of bars for each (label, result), with the machine's limit across the group and the figure after each
    bar. Disturbed figures are pale."""
    at, places = 0.0, []
    ends = [value(r, s["median"]) for _, r in entries for p, s in r["figures"].items() if p in peers]
    ends += [value(r, r["limit"]["figure"]) for _, r in entries if "limit" in r]
    pad = 0.012 * max(ends)
    for label, r in entries:
        start, limit = at, value(r, r["limit"]["figure"]) if "limit" in r else None
        for peer in peers:
            if peer not in r["figures"]:
                continue
            figure = value(r, r["figures"][peer]["median"])
            axes.barh(at, figure, color=PEERS[peer], height=0.86, alpha=PALE if r["disturbed"] else 1)
            crossed = limit is not None and -pad < limit - figure < 10 * pad    # write the figure after the limit
            axes.text((limit if crossed else figure) + pad, at, number(figure), va="center", fontsize=7, color=INK,
                      fontweight="bold" if peer == "cygrad" else "normal")
            at += 1
        if limit is not None:
            axes.plot([limit] * 2, [start - 0.5, at - 0.5], color=INK, linewidth=1.6)
        places.append(((start + at - 1) / 2, label))
        at += 0.8
    axes.set_yticks([place for place, _ in places], [label for _, label in places], fontsize=8)
    axes.set_xlim(0, 1.14 * max(ends))
    axes.invert_yaxis()
    axes.grid(axis="x", color=GRID, linewidth=0.6)
    axes.set_axisbelow(True)
