"""results.md: the tables."""

import textwrap

from benchmarks import work
from benchmarks.goals import GOALS, TO_MULTIPLY

PEERS = ("PyTorch", "PyTorch foreach", "PyTorch fused", "NumPy")
TITLES = {"A": "A. One operation", "B": "B. A small perceptron", "C": "C. Handwritten digits",
          "J": "J. A million operations", "peaks": "The peak of a step"}


def number(x):
    """Three significant digits, without an exponent."""
    if x >= 100:
        return f"{x:,.0f}"
    return f"{x:.3g}" if x >= 0.001 or x == 0 else f"{x:.6f}"


def size(nbytes):
    """Bytes in the unit that suits them (powers of ten, as the goals are)."""
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if nbytes >= scale:
            return f"{nbytes / scale:.3g} {unit}" if nbytes < 100 * scale else f"{nbytes / scale:.0f} {unit}"
    return f"{nbytes:.0f} B"


def figure(result, peer):
    """A peer's figure with its quartiles, or nothing."""
    s = result["figures"].get(peer)
    if s is None:
        return ""
    if result["unit"] == "B":
        return size(s["median"])
    return number(s["median"]) if s["n"] == 1 else f"{number(s['median'])} ({number(s['q1'])}..{number(s['q3'])})"


def ratio(result, peer="PyTorch"):
    s = result["ratios"].get(peer)
    if s is None:
        return ""
    if result["disturbed"]:
        return "disturbed"
    return f"**{s['median']:.2f}x**" if s["n"] == 1 else f"**{s['median']:.2f}x** ({s['q1']:.2f}..{s['q3']:.2f})"


def goal_text(wanted):
    return f"{wanted.ratio:.1f}x" if wanted.ratio else size(wanted.figure)


def goal(result):
    """The goal and whether it was reached, two cells."""
    wanted = GOALS.get((result["row"], result["name"]))
    if wanted is None:
        return "", ""
    if result["disturbed"]:
        return goal_text(wanted), "disturbed"
    mine, against = result["figures"].get("cygrad"), result["ratios"].get("PyTorch")
    reached = wanted.reached(mine and mine["median"], against and against["median"])
    return goal_text(wanted), "" if reached is None else "yes" if reached else "no"


def table(head, rows):
    """A Markdown table; the first column is text, the others are numbers."""
    lines = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def present(results, peers):
    return [peer for peer in peers if any(peer in r["figures"] for r in results)]


def plain_table(results):
    """Workloads down, peers across, then the ratio to PyTorch and the goal."""
    peers = present(results, PEERS)
    head = ["", "threads", "unit", "cygrad", *peers, "PyTorch / cygrad", "goal", "reached"]
    return table(head, [[r["name"], str(r["threads"]), r["unit"], figure(r, "cygrad"), *(figure(r, p) for p in peers),
                         ratio(r), *goal(r)] for r in results])


def operations_table(results):
    """Operators down: microseconds of one operation in each mode, the ratio to PyTorch, the ratio to multiply."""
    rows = []
    for r in results:
        s = r.get("to_multiply")
        multiply = "" if s is None else f"{s['median']:.2f}" + (" (over)" if s["median"] > TO_MULTIPLY else "")
        if r["disturbed"]:
            multiply = "disturbed"
        d = r["details"]
        rows.append([d["operator"], str(d["size"]), d["mode"], *(figure(r, p) for p in ("cygrad", "PyTorch", "NumPy")),
                     ratio(r), multiply])
    return table(["operator", "size", "mode", "cygrad us", "PyTorch us", "NumPy us", "PyTorch / cygrad",
                  f"to multiply (goal {TO_MULTIPLY})"], rows)


def million_table(results):
    """Chains and phases down."""
    text = plain_table(results)
    notes = [f"{r['name'].partition(':')[0]}: node {d['node_bytes']} B, live tensor data {d['live_bytes']:.1f} B"
             for r in results for d in [r["details"].get("cygrad")] if d]
    return text + ("\n\ncygrad, an operation, exactly: " + "; ".join(notes) + "." if notes else "")


def peaks_table(results):
    """Models and peers down, categories across."""
    from benchmarks.peaks import CATEGORIES

    rows = []
    for r in results:
        for peer, s in r["figures"].items():
            d = r["details"].get(peer, {})
            categories = [size(d["by_category"][c]) if "by_category" in d else "" for c in CATEGORIES]
            least = min(f["median"] for f in r["figures"].values())
            cells = goal(r) if peer == "cygrad" else ("", "")
            resident = d.get("resident")
            rows.append([r["name"], peer, size(s["median"]), f"{s['median'] / least:.2f}", *categories,
                         "" if resident is None else size(resident), *cells])
    return table(["step", "", "peak", "to the least", *CATEGORIES, "resident", "goal", "reached"], rows)


def description(row):
    """What the row does: its module's docstring."""
    return textwrap.dedent(work.module(row).__doc__).strip()


def heading(results):
    m = results["machine"]
    packages = {"Python": "python", "NumPy": "numpy", "SciPy": "scipy", "PyTorch": "torch"}
    versions = ", ".join(f"{name} {m[key]}" for name, key in packages.items() if m.get(key))
    loads = results["load"]
    quick = " **A quick run**: few rounds, some work reduced." if results["quick"] else ""
    return textwrap.dedent(f"""\
        # Benchmarks

        cygrad {m['cygrad']} (commit {m['commit'] or 'unknown'}), {m['date']}. {m['cpu']}, {m['cores']} cores,
        {m['vectors']}, {m['memory_gib']} GiB; {m['system']}; {versions}.
        The run took {results['seconds']} s; the load average was {loads[0]} before and {loads[1]} after it.{quick}

        Figures are medians with the quartiles behind them. PyTorch / cygrad says how many times faster (or leaner)
        cygrad is, from samples taken side by side. With one thread the libraries run interleaved in one process; with
        more, each has processes of its own in turn with the others'. *Disturbed*: other programs were in the way, also
        when it was tried again; such a figure says nothing. `python -m benchmarks` makes this page anew.
        """)


def write(results, pictures):
    """The page. `pictures`: by name, the file of each picture that was drawn, beside the page."""
    parts = [heading(results)]

    def show(name, text):
        if name in pictures:
            parts.append(f"![{text}]({pictures[name]})\n")

    show("ratios", "How many times faster than PyTorch")
    for row, title in TITLES.items():
        mine = [r for r in results["results"] if r["row"] == row]
        if not mine:
            continue
        parts.append(f"## {title}\n\n{description(row)}\n")
        if row == "A":
            parts.append(plain_table([r for r in mine if r["details"].get("kind") == "chain"]) + "\n")
            show("operations", "Every elementwise operator against multiply")
            parts.append(operations_table([r for r in mine if r["details"].get("kind") == "table"]) + "\n")
        elif row == "J":
            parts.append(million_table(mine) + "\n")
            show("million", "A million operations")
        elif row == "peaks":
            parts.append(peaks_table(mine) + "\n")
            show("peaks", "Bytes at the peak of a step")
        else:
            parts.append(plain_table(mine) + "\n")
    return "\n".join(parts)
