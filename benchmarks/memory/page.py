"""memory.md: the tables and the pictures."""

import importlib.util
import textwrap

from benchmarks.memory import faults, kept, liveness, overhead, peaks, varying
from benchmarks.pictures import GRID, INK, MINE, PEER, SOFT, plot, save
from benchmarks.report import number, size, table


def less(mine, theirs):
    """The ratio of the bytes that PyTorch saves to cygrad's; in words if cygrad saves none."""
    if theirs is None:
        return ""
    if mine == theirs:
        return "same"
    return f"{theirs / mine:.2f}x" if mine else "all of it"


def peaks_table(rows):
    return table(["step", "bound, bytes", "cygrad, bytes", "PyTorch, bytes", "cygrad / bound", "PyTorch / bound"],
                 [[name, *(f"{r[k]:,}" for k in ("bound", "cygrad", "PyTorch")),
                   *(f"{r[k] / r['bound']:.2f}" for k in ("cygrad", "PyTorch"))] for name, r in rows.items()])


def above_the_bound(rows):
    """The reason why the peaks of some steps are above their bound, with figures; empty if none is."""
    above = [f"{name}: {r['cygrad'] / r['bound']:.4f}, with {r['workspace']:,} bytes packed at the peak"
             for name, r in rows.items() if r["cygrad"] > r["bound"]]
    if not above: return ""
    return ("\n\nBLAS can use a matrix directly if its rows or its columns are contiguous. Any other matrix is packed "
            "first, one matrix of a batch or one strip of a linear layer's rows at a time. These bytes are live during "
            "the product. The bound counts only operands and results "
            f"({'; '.join(above)}).")


def kept_table(rows):
    return table(["operator", "cygrad, bytes", "the least", "PyTorch, bytes", "PyTorch / cygrad", "what is needed"],
                 [[name, f"{r['cygrad']:,}", f"{r['least']:,}", "" if r["PyTorch"] is None else f"{r['PyTorch']:,}",
                   less(r["cygrad"], r["PyTorch"]), r["needs"]] for name, r in rows.items()], remarks=True)


def kept_summary(rows, left_out, reasons):
    """The rows in which one library saves less, with counts, and those in which cygrad does not save the least."""
    compared = {name: r for name, r in rows.items() if r["PyTorch"] is not None}
    fewer = [name for name, r in compared.items() if r["cygrad"] < r["PyTorch"]]
    more = [name for name, r in compared.items() if r["cygrad"] > r["PyTorch"]]
    above = {}
    for name, r in rows.items():
        if r["cygrad"] > r["least"]:
            above.setdefault(reasons[name], []).append(name)
    beyond = "; ".join(f"{', '.join(names)} ({why})" for why, names in above.items())
    return (f"Of {len(compared)} rows cygrad saves less than PyTorch in {len(fewer)} ({'; '.join(fewer) or 'none'}), "
            f"more in {len(more)} ({'; '.join(more) or 'none'}), the same in the others. Not compared, because PyTorch "
            f"has no such function: {', '.join(left_out)}.\n\ncygrad saves the least in "
            f"{sum(r['cygrad'] == r['least'] for r in rows.values())} of {len(rows)} rows, and more in: "
            f"{beyond or 'none'}.")


def spread(taken):
    low, high = number(min(taken)), number(max(taken))
    return low if low == high else f"{low}..{high}"


def faults_table(rows):
    return table(["step", "cygrad, faults", "PyTorch, faults"],
                 [[name, *(spread(r[k]) for k in ("cygrad", "PyTorch"))] for name, r in rows.items()])


def varying_table(rows):
    def line(name, r):
        mine, theirs = r["cygrad"], r["PyTorch"]
        return [f"{name}, {varying.STEPS[name]:,} steps", size(mine["peak"]), size(mine["held"]),
                f"{mine['held'] / mine['peak']:.2f}", number(mine["calls"]), size(mine["resident"]),
                size(theirs["resident"]), f"{theirs['ms'] / mine['ms']:.1f}x"]

    return table(["program", "peak", "held", "held / peak", "calls", "resident", "PyTorch, resident", "speed"],
                 [line(name, r) for name, r in rows.items()])


def write(results, pictures):
    """The page. `pictures`: the file of each picture in the folder of the page, by name."""
    m = results["machine"]
    versions = f"cygrad {m['cygrad']} (commit {m['commit'] or 'unknown'}), PyTorch {m['torch']}, Python {m['python']}"
    parts = [f"# Memory\n\n{versions}; {m['cpu']}; {m['system']}; {m['date']}.\n"
             f"`make bench` writes this page.\n"]

    def section(title, module, text, picture=None):
        parts.append(f"## {title}\n\n{textwrap.dedent(module.__doc__).strip()}\n")
        if picture in pictures:
            parts.append(f"![{title}]({pictures[picture]})\n")
        parts.append(text + "\n")

    how = liveness.__doc__.strip().partition("\n\n")[2]
    text = f"The bound. {how}\n\n{peaks_table(results['peaks'])}{above_the_bound(results['peaks'])}"
    section("The peak of a step", peaks, text, "peaks")
    summary = kept_summary(results["kept"], results["left out"], results["more"])
    section("Bytes saved for backward", kept, f"{summary}\n\n{kept_table(results['kept'])}", "kept")
    section("Page faults", faults, faults_table(results["faults"]))
    if "varying" in results: section("Shapes that change", varying, varying_table(results["varying"]), "varying")
    if "overhead" in results:                       # (older results have none)
        section("What a profile costs", overhead, overhead.overhead_table(results["overhead"]))
    return "\n".join(parts)


# ---- pictures --------------------------------------------------------------------------------------------------------

def draw(results, directory):
    """Draw the pictures. Returns the file of each by name; nothing without matplotlib."""
    if importlib.util.find_spec("matplotlib") is None:
        return {}
    pyplot = plot()
    figures = {"peaks": draw_peaks(pyplot, results["peaks"]), "kept": draw_kept(pyplot, results["kept"])}
    if "varying" in results: figures["varying"] = draw_varying(pyplot, results["varying"])
    return {name: save(pyplot, figure, directory, name) for name, figure in figures.items()}


def draw_varying(pyplot, rows):
    """Held and live memory over the steps of each program, and the growth of the processes of both libraries."""
    figure, all_axes = pyplot.subplots(2, 2, figsize=(9, 5.4), layout="constrained")
    for axes, (name, r) in zip(all_axes.flat, rows.items(), strict=True):
        mine, theirs = r["cygrad"], r["PyTorch"]
        steps = [varying.STEPS[name] * i / len(mine["held over steps"]) for i in range(len(mine["held over steps"]))]
        axes.fill_between(steps, [n / 2**20 for n in mine["peak over steps"]], color=MINE, alpha=0.25, linewidth=0,
                          label="cygrad, live at the peak of steps")
        for values, colour, style, label in (
                (mine["held over steps"], MINE, "-", "cygrad, held"),
                (mine["resident over steps"], MINE, ":", "cygrad, resident"),
                (theirs["resident over steps"], PEER, ":", "PyTorch, resident")):
            axes.plot(steps, [n / 2**20 for n in values], color=colour, linestyle=style, linewidth=1.3, label=label)
        axes.set_title(name)
        axes.set_ylim(0)
        axes.set_ylabel("MiB", color=SOFT)
    all_axes[0, 0].legend(fontsize=7)
    figure.supxlabel("steps", fontsize=9)
    return figure


def pairs(axes, labels, mine, theirs, tell):
    """Two bars for each label, cygrad's above PyTorch's. tell(i, 0 or 1) is the text of a bar."""
    for which, (values, colour) in enumerate(((mine, MINE), (theirs, PEER))):
        at = [i + 0.4 * which - 0.2 for i in range(len(labels))]
        axes.barh(at, values, height=0.36, color=colour, label=("cygrad", "PyTorch")[which])
        for i, (x, y) in enumerate(zip(values, at, strict=True)):
            axes.text(x, y, f" {tell(i, which)}", va="center", fontsize=7, color=INK)
    axes.set_yticks(range(len(labels)), labels, fontsize=8)
    axes.set_ylim(len(labels) - 0.4, -0.6)


def draw_peaks(pyplot, rows):
    """Peaks as multiples of the bound."""
    figure, axes = pyplot.subplots(figsize=(8, 0.62 * len(rows) + 1))
    found = list(rows.values())
    mine, theirs = ([r[k] / r["bound"] for r in found] for k in ("cygrad", "PyTorch"))

    def tell(i, which):
        return f"{(mine, theirs)[which][i]:.2f}   {size(found[i][('cygrad', 'PyTorch')[which]])}"

    pairs(axes, list(rows), mine, theirs, tell)
    axes.axvline(1, color=INK, linewidth=1, linestyle="--")
    axes.text(1, -0.62, "liveness bound", ha="center", va="bottom", fontsize=8)
    axes.set_xlim(0, 1.18 * max(mine + theirs))
    axes.set_xlabel("peak of a training step / liveness bound", color=SOFT)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=2, fontsize=8)
    return figure


def draw_kept(pyplot, rows):
    """Bytes per number of the input, for the rows in which a library saves any."""
    some = [(name.partition(",")[0] + "*" * ("," in name), r) for name, r in rows.items()
            if r["PyTorch"] is not None and (r["cygrad"] or r["PyTorch"])]
    lines = -(-len(some) // 3)
    figure, all_axes = pyplot.subplots(1, 3, figsize=(10, 0.27 * lines + 1), sharex=True)
    n = kept.SIDE**2
    for i, axes in enumerate(all_axes):
        part = some[i * lines:(i + 1) * lines]
        mine, theirs = ([r[k] / n for _, r in part] for k in ("cygrad", "PyTorch"))
        pairs(axes, [name for name, _ in part], mine, theirs,
              lambda i, which, mine=mine, theirs=theirs: f"{(mine, theirs)[which][i]:.3g}")
        axes.grid(axis="x", color=GRID, linewidth=0.6)
        axes.set_axisbelow(True)
        axes.set_xlim(0, 14)
        axes.set_xticks([0, 4, 8, 12])
    figure.suptitle("Bytes that an operator saves for backward, per number of a 100 x 100 float32 input (*: a "
                    "special case, see the table)", x=0.02,
                    ha="left", fontweight="bold", fontsize=11)
    figure.legend(*all_axes[0].get_legend_handles_labels(), loc="lower center", ncols=2, fontsize=8)
    figure.tight_layout(rect=(0, 0.04, 1, 1))
    return figure
