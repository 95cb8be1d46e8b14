"""results.md: the tables."""

import textwrap

from benchmarks import work
from benchmarks.goals import GOALS, LAYERS, TO_MULTIPLY
from benchmarks.work import FRESH

SPEED_UP = "speed-up over"         # for times and rates; for bytes, how many times fewer
PEERS = (work.LAYERS, "PyTorch", "PyTorch foreach", "PyTorch fused", work.KEPT, "NumPy", "jax.jit", "jax",
         "HIPS autograd", work.DENSE)
TITLES = {row: f"{row}: {name}" for row, name in work.NAMES.items()} | {
    "solvers": "The update of a solver", "peaks": "Peak memory of a training step", "import": "Import",
    "busy": "On a busy machine"}


def number(x):
    """Three significant digits, without an exponent."""
    if x >= 100:
        return f"{x:,.0f}"
    return f"{x:.3g}" if x >= 0.001 or x == 0 else f"{x:.6f}"


def size(nbytes):
    """Bytes in a suitable unit (powers of ten, as in the goals)."""
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if nbytes >= scale:
            return f"{nbytes / scale:.3g} {unit}" if nbytes < 100 * scale else f"{nbytes / scale:.0f} {unit}"
    return f"{nbytes:.0f} B"


def unit(result):
    """The unit of the page: GFLOP/s or GB/s if the result names one."""
    return result["details"].get("shown", result["unit"])


def value(result, figure):
    """A figure in the unit that is shown."""
    if "shown" not in result["details"]:
        return figure
    return result["details"]["amount"] / (figure / work.SCALES[result["unit"]]) / 1e9


def bracketed(text, disturbed):
    """The text of a figure, in brackets if it was disturbed."""
    return f"[{text}]" if disturbed else text


def figure(result, peer):
    """A peer's figure with its quartiles, or an empty text."""
    s = result["figures"].get(peer)
    if s is None:
        return ""
    if result["unit"] == "B":
        return size(s["median"])
    low, middle, high = (value(result, s[key]) for key in ("q1", "median", "q3"))
    low, high = sorted((low, high))
    text = number(middle) if s["n"] == 1 else f"{number(middle)} ({number(low)}..{number(high)})"
    return bracketed(text, result["disturbed"])


def limit(result):
    """The machine's limit, or an empty text."""
    s = result.get("limit")
    return "" if s is None else bracketed(number(value(result, s["figure"])), s["disturbed"])


def ratio(result, peer="PyTorch"):
    s = result["ratios"].get(peer)
    if s is None:
        return ""
    if result["disturbed"]:
        return "disturbed"
    return f"**{s['median']:.2f}x**" if s["n"] == 1 else f"**{s['median']:.2f}x** ({s['q1']:.2f}..{s['q3']:.2f})"


def of_layers(result):
    """The cost of layers, as a multiple of the bare operators', and whether it is over its goal."""
    s, most = result["ratios"].get(work.LAYERS), LAYERS.get(result["row"])
    text = ratio(result, work.LAYERS)
    over = s and most and not result["disturbed"] and s["median"] > most
    return text + f" (over {most})" * bool(over)


def goal_text(wanted, unit):
    if wanted.limit:
        return f"{wanted.limit:.1f}x machine limit"
    if wanted.dense:
        return f"{wanted.ratio:.2f}x, {wanted.dense:.0f}x of dense"
    if wanted.ratio:
        return f"{wanted.ratio:.1f}x" if wanted.ratio >= 2 else f"{wanted.ratio:.2f}x"
    return size(wanted.figure) if unit == "B" else f"{number(wanted.figure)} {unit}"


def goal(result):
    """The goal and whether it was reached, two cells."""
    wanted = GOALS.get((result["row"], result["name"]))
    if wanted is None:
        return "", ""
    wanted = wanted.at(result["threads"])
    text, machine = goal_text(wanted, result["unit"]), result.get("limit")
    if result["disturbed"] or wanted.limit and machine and machine["disturbed"]:
        return text, "disturbed"
    mine, *ratios = (s and s["median"] for s in (result["figures"].get("cygrad"), result["ratios"].get("PyTorch"),
                                                 result["ratios"].get(work.KEPT), result["ratios"].get(work.DENSE)))
    reached = wanted.reached(mine, ratios[0], machine and machine["figure"], ratios[1], ratios[2])
    return text, "" if reached is None else "yes" if reached else "no"


def table(head, rows, remarks=False):
    """A Markdown table. The first column is text, and so is the last with `remarks`. The others are numbers."""
    lines = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1 - remarks) + "---|" * remarks]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def present(results, peers):
    return [peer for peer in peers if any(peer in r["figures"] for r in results)]


def plain_table(results):
    """A line for each workload: the peers, the machine's limit, the ratios to PyTorch, and the goal."""
    limits, results = [r for r in results if "rate" in r["details"]], [r for r in results if "rate" not in r["details"]]
    peers = present(results, PEERS)
    compared = [p for p in ("PyTorch", work.KEPT, work.DENSE) if p in peers] or ["PyTorch"]
    limited = any("limit" in r for r in results)
    layered = work.LAYERS in peers
    head = ["", "threads", "unit", "cygrad", *peers, *["machine limit"] * limited,
            *(f"{SPEED_UP} {p}" for p in compared), "goal", "reached", *[f"{work.LAYERS} / cygrad"] * layered]
    text = table(head, [[r["name"], str(r["threads"]), unit(r), figure(r, "cygrad"), *(figure(r, p) for p in peers),
                         *[limit(r)] * limited, *(ratio(r, p) for p in compared), *goal(r),
                         *[of_layers(r)] * layered] for r in results])
    notes = {}
    for r in limits:
        with_threads = f"with {r['threads']} thread{'s' * (r['threads'] > 1)}"
        notes.setdefault(r["name"], []).append(f"{figure(r, work.LIMITS)} {unit(r)} {with_threads}")
    rates = "; ".join(f"{name} at {', '.join(figures)}" for name, figures in notes.items())
    return text + (f"\n\nIn this run {rates}." if rates else "")


def operations_table(results):
    """A line for each operator and mode: microseconds of one operation, the ratio to PyTorch, the ratio to multiply."""
    rows = []
    for r in results:
        s = r.get("to_multiply")
        multiply = "" if s is None else f"{s['median']:.2f}" + (" (over)" if s["median"] > TO_MULTIPLY else "")
        if r["disturbed"]:
            multiply = "disturbed"
        d = r["details"]
        rows.append([d["operator"], str(d["size"]), d["mode"], *(figure(r, p) for p in ("cygrad", "PyTorch", "NumPy")),
                     ratio(r), multiply])
    return table(["operator", "size", "mode", "cygrad us", "PyTorch us", "NumPy us", f"{SPEED_UP} PyTorch",
                  f"ratio to multiply (goal {TO_MULTIPLY})"], rows)


def solvers_table(results):
    """A line for each solver and size: its time as a multiple of the machine's for copying as many bytes."""
    rows = []
    for r in results:
        mine, copy, d = r["figures"].get("cygrad"), r.get("limit"), r["details"]
        to_copy = f"**{mine['median'] / copy['figure']:.2f}x**" if mine and copy and not r["disturbed"] else ""
        rows.append([d["solver"], f"{d['elements']:,}", str(r["threads"]), figure(r, "cygrad"), limit(r), to_copy,
                     figure(r, "PyTorch"), d["kind"], ratio(r), *goal(r)])
    return table(["solver", "elements", "threads", "cygrad us", "copy us", "cygrad / copy", "PyTorch us", "its kind",
                  f"{SPEED_UP} PyTorch", "goal", "reached"], rows)


def million_table(results):
    """A line for each chain and phase."""
    text = plain_table(results)
    notes = [f"{r['name'].partition(':')[0]}: node {d['node_bytes']} B, live tensor data {d['live_bytes']:.1f} B"
             for r in results for d in [r["details"].get("cygrad")] if d]
    return text + ("\n\nIn cygrad, one operation takes exactly: " + "; ".join(notes) + "." if notes else "")


def peak_goal(result, peer):
    """The goal and whether it was reached, two cells, at the line of .grad None, because that is the peak (peaks.py).
    The peak of layers must not be above that."""
    if peer == work.LAYERS:
        mine, bare = (result["figures"].get(p) for p in (peer, FRESH))
        return "that of .grad None", "" if bare is None else "yes" if mine["median"] <= bare["median"] else "no"
    wanted = GOALS.get((result["row"], result["name"]))
    if wanted is None or peer != FRESH:
        return "", ""
    reached = wanted.reached(result["figures"][peer]["median"], fewer(result, peer))
    text = f"{wanted.ratio:.2f}x PyTorch" if wanted.ratio else goal_text(wanted, result["unit"])
    return text, "" if reached is None else "yes" if reached else "no"


def fewer(result, peer):
    """PyTorch's bytes divided by the peer's; None without PyTorch."""
    theirs = result["figures"].get("PyTorch")
    return theirs and theirs["median"] / result["figures"][peer]["median"]


def peaks_table(results):
    """A line for each model and peer, a column for each category."""
    from benchmarks.peaks import CATEGORIES

    rows = []
    for r in results:
        for peer, s in r["figures"].items():
            d = r["details"].get(peer, {})
            categories = [size(d["by_category"][c]) if "by_category" in d else "" for c in CATEGORIES]
            least = min(f["median"] for f in r["figures"].values())
            cells = peak_goal(r, peer)
            resident = d.get("resident")
            rows.append([r["name"], peer, size(s["median"]), f"{s['median'] / least:.2f}", *categories,
                         "" if resident is None else size(resident), *cells])
    return table(["step", "", "peak", "ratio to the smallest", *CATEGORIES, "resident", "goal", "reached"], rows)


def busy_table(results):
    """A line for each workload and number of spinning processes: each peer's figure and its ratio to the time alone."""
    peers = [p for p in ("cygrad", "cygrad one thread", *PEERS) if any(p in r["figures"] for r in results)]
    rows = [[r["name"], *(f"{figure(r, p)} **{r['details']['times alone'][p]:.2g}x**" if p in r["figures"] else ""
                          for p in peers)] for r in results]
    return table(["us, and slow-down compared with an idle machine", *peers], rows)


def description(row):
    """The description of a row: the docstring of its module."""
    return textwrap.dedent(work.module(row).__doc__).strip()


HEADLINES = [("A", "y * c, size 1, forward + backward", "One operation on one number, forward and backward"),
             ("C", "step", "A training step of the handwritten digits"),
             ("peaks", "D: 784-1024-1024-10, batch 256, Adam", "Peak of an Adam step of an MLP 784-1024-1024-10, batch "
              "256, above data and parameters, with `.grad` None before")]


def headline(results):
    """The three figures at the start of the page, if they were measured undisturbed. A peak is that of .grad None."""
    found = {(r["row"], r["name"]): r for r in results if r["threads"] == 1 and not r["disturbed"]}
    lines = []
    for row, name, text in HEADLINES:
        r = found.get((row, name))
        mine, is_size = ("cygrad", False) if r is None or r["unit"] != "B" else (FRESH, True)
        if r and {mine, "PyTorch"} <= r["figures"].keys():
            shown = [size(f) if is_size else f"{number(f)} {r['unit']}"
                     for f in (r["figures"][peer]["median"] for peer in (mine, "PyTorch"))]
            times = fewer(r, mine) if is_size else r["ratios"]["PyTorch"]["median"]
            better = "smaller" if is_size else "faster"
            lines.append(f"- {text}: {shown[0]} in cygrad, {shown[1]} in PyTorch, **{times:.1f} times {better}**.")
    return "\n".join(lines)


def heading(results, headline):
    m = results["machine"]
    packages = {"Python": "python", "NumPy": "numpy", "SciPy": "scipy", "PyTorch": "torch", "jax": "jax",
                "HIPS autograd": "autograd"}
    versions = ", ".join(f"{name} {m[key]}" for name, key in packages.items() if m.get(key))
    loads = results["load"]
    products = ", ".join(f"{used} ({name})" for name, used in m.get("blas", {}).items()) or "not noted"
    told = m.get("core_type")
    told = f"OpenBLAS used its kernels for {told}" if told else "OpenBLAS selected its own kernels"
    quick = " **A quick run**: few rounds, some work reduced." if results["quick"] else ""
    return textwrap.dedent(f"""\
        # Times and peaks

        HEADLINE
        cygrad {m['cygrad']} (commit {m['commit'] or 'unknown'}), {m['date']}. {m['cpu']}, {m['cores']} cores,
        {m['vectors']}, {m['memory_gib']} GiB; {m['system']}; {versions}.
        BLAS: {products}.
        {told} for the products of NumPy.
        The run took {results['seconds']} s; the load average was {loads[0]} before and {loads[1]} after it.{quick}

        Figures are medians, followed by the quartiles. The *speed-up* over PyTorch is PyTorch's time divided by
        cygrad's, from samples taken in the same rounds; below 1x, PyTorch is faster. For bytes it is PyTorch's bytes
        divided by cygrad's. With one thread the libraries run interleaved in one process. With several threads, each
        library runs in its own processes, which take turns.

        The *goal* of a time is a speed-up (*8.6x*), or a multiple of the time that the machine needs to move the memory
        (*1.3x machine limit*). Both are measured in the same run, because machines and days differ. Goals of bytes and
        imports are figures. Where PyTorch is also run with an allocator that keeps memory, the goal includes being
        faster than that. *Disturbed* figures, in [brackets], were measured while other programs used the CPU, also on a
        second try. They are not comparable; pictures omit them, draw them pale or mark them. `make bench` writes this
        page.

        *cygrad.nn* is the same model in layers, with the same operations and losses; *cygrad.nn / cygrad* is its time
        divided by that of bare operators, at most 1.15 in row B and 1.03 in rows C, E, F, G and L.
        """).replace("HEADLINE\n", f"{headline}\n\n" if headline else "")


def write(results, pictures):
    """The page. `pictures`: the file of each picture in the folder of the page, by name."""
    parts = [heading(results, headline(results["results"]))]

    def show(name, text):
        if name in pictures:
            parts.append(f"![{text}]({pictures[name]})\n")

    show("ratios", "Speed-up over PyTorch")
    for row, title in TITLES.items():
        mine = [r for r in results["results"] if r["row"] == row]
        if not mine:
            continue
        parts.append(f"## {title}\n\n{description(row)}\n")
        if row == "A":
            parts.append(plain_table([r for r in mine if r["details"].get("kind") == "chain"]) + "\n")
            show("operations", "Speed-up of elementwise operators over PyTorch")
            parts.append(operations_table([r for r in mine if r["details"].get("kind") == "table"]) + "\n")
        elif row == "J":
            parts.append(million_table(mine) + "\n")
            show("million", "A million operations")
        elif row in ("H", "I"):
            parts.append(plain_table(mine) + "\n")
            show(row, title[3:])
        elif row == "solvers":
            parts.append(solvers_table(mine) + "\n")
        elif row == "busy":
            parts.append(busy_table(mine) + "\n")
        elif row == "peaks":
            parts.append(peaks_table(mine) + "\n")
            show("peaks", "Bytes at the peak of a step")
        else:
            parts.append(plain_table(mine) + "\n")
    return "\n".join(parts)
