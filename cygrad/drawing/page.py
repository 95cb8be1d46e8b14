"""The report of a profile as one HTML file. It loads no other files and is readable without JavaScript."""

import html
import json
import linecache
import re

from cygrad.core.store.buffer import CATEGORY_NAMES
from cygrad.core.sizes import words
from cygrad.drawing.flames import flame
from cygrad.drawing.labels import ONE_SHAPE, OUTSIDE, shown_line
from cygrad.drawing.scales import COLORS, PHASE_COLORS, byte_unit, seconds_unit, shown, ticks
from cygrad.drawing.svg import element, tooltip

ORDER = tuple(COLORS)       # from the bottom up
WIDTH, HEIGHT = 1100, 330
LEFT, BOTTOM, TOP = 90, 28, 40
MOST_ROWS = 500             # of a table; the others are counted
MOST_STACKS = 50            # rows with a list of stacks
LETTER = 6.5                # the width of a letter in a label above the bands

STYLE = """
:root { --ink: #222; --soft: #6a6a6a; --line: #ddd; --paper: #fff; --band: #f5f5f3;
  PALETTE }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e6e6; --soft: #9a9a9a; --line: #3a3a3a; --paper: #18191b; --band: #222427; --other: #77797c;
    --forward: #4a4a4a; --backward: #8a8a8a; --update: #f0f0f0; } }
body { margin: 2rem auto; max-width: 1140px; padding: 0 1rem; color: var(--ink); background: var(--paper);
  font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.4rem; margin: 0; } h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; }
p, caption { color: var(--soft); margin: .2rem 0 .6rem; text-align: left; }
svg { width: 100%; height: auto; display: block; } svg text { fill: var(--soft); font-size: 12px; }
#legend span { display: inline-block; margin: 0 1.2rem .3rem 0; white-space: nowrap; }
#legend i, td i { display: inline-block; width: .8em; height: .8em; border-radius: 2px; margin-right: .4em; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .6rem; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
th { cursor: pointer; color: var(--soft); font-weight: 600; white-space: nowrap; }
td.n, th.n { text-align: right; white-space: nowrap; } .whole { white-space: nowrap; }
td.why { min-width: 11rem; } td.line { min-width: 16rem; } td code { overflow-wrap: anywhere; }
tbody tr:hover { background: var(--band); }
tfoot td { font-weight: 600; } code { font-size: .9em; } code small { color: var(--soft); }
summary { color: var(--soft); cursor: pointer; } li { margin: .3rem 0; } svg .phase { font-size: 11px; }
""".replace("PALETTE", " ".join(f"--{name}: {color};" for name, color in {**COLORS, **PHASE_COLORS}.items()))

SCRIPT = """
const data = JSON.parse(document.getElementById("data").textContent);
const legend = document.querySelectorAll("#legend b"), when = document.getElementById("when");
const pictures = [...document.querySelectorAll("svg.course")];
const views = pictures.map(() => [0, 1]);       // the part of the events or of the time that each picture shows
function show(k) {
  const row = data.course[k], sum = row[2].reduce((a, b) => a + b, 0);
  pictures.forEach((svg, axis) => {
    const [from, to] = views[axis], at = (row[axis] / data.ends[axis] - from) / (to - from);
    svg.querySelector(".cursor").setAttribute("transform",
      `translate(${at < 0 || at > 1 ? -9 : data.left + at * data.width},0)`);
  });
  legend.forEach((b, i) => { b.textContent = row[2][i].toLocaleString("en"); });
  when.textContent = `event ${row[0].toLocaleString("en")}, ${(1e3 * row[1]).toFixed(3)} ms: ` +
    `${sum.toLocaleString("en")} bytes live` + (k === data.peak ? ", the peak" : "");
}
function zoom(axis, from, to) {
  views[axis] = [from, to];
  const scale = 1 / (to - from), svg = pictures[axis];
  svg.querySelector(".moving").setAttribute("transform",
    `matrix(${scale},0,0,1,${data.left - scale * (data.left + from * data.width)},0)`);
  svg.querySelector(".across").style.display = scale > 1 ? "none" : "";
  show(data.peak);
}
pictures.forEach((svg, axis) => {
  const place = event => {
    const box = svg.getBoundingClientRect();
    return ((event.clientX - box.left) / box.width * data.whole - data.left) / data.width;
  };
  svg.addEventListener("mousemove", event => {
    const [from, to] = views[axis], at = (from + place(event) * (to - from)) * data.ends[axis];
    let low = 0, high = data.course.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (data.course[middle][axis] <= at) low = middle; else high = middle - 1;
    }
    show(low);
  });
  svg.addEventListener("wheel", event => {
    event.preventDefault();
    const [from, to] = views[axis], at = Math.min(Math.max(place(event), 0), 1);
    const wide = Math.min(1, Math.max(1e-4, (to - from) * (event.deltaY < 0 ? 0.8 : 1.25)));
    const start = Math.min(Math.max(from + at * (to - from - wide), 0), 1 - wide);
    zoom(axis, start, start + wide);
  }, { passive: false });
  svg.addEventListener("dblclick", () => zoom(axis, 0, 1));
  svg.addEventListener("mouseleave", () => show(data.peak));
});
document.querySelectorAll("table").forEach(table => {
  const field = Object.assign(document.createElement("input"), { type: "search", placeholder: "rows with" });
  field.addEventListener("input", () => {
    const wanted = field.value.toLowerCase();
    for (const row of table.tBodies[0].rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
  });
  table.before(field);
});
document.querySelectorAll("th").forEach(th => th.addEventListener("click", () => {
  const body = th.closest("table").tBodies[0], i = th.cellIndex, number = th.classList.contains("n");
  const value = row => number ? +row.cells[i].textContent.replace(/[^0-9.]/g, "") : row.cells[i].textContent;
  const rows = [...body.rows].sort((a, b) => number ? value(b) - value(a) : value(a).localeCompare(value(b)));
  body.append(...rows);
}));
show(data.peak);
document.body.dataset.ready = "yes";
"""


def page(course, phases, peak, rows, advice, growth, tree, layers, sites, note):
    """The page, as text. course: [(event, seconds, live bytes by category)]; phases: [(name, first event, last, seconds
    from, to)]; rows: the rows of the peak; growth: what steps leave behind; tree: the stacks of the peak; layers: its
    layers; sites: the places that allocated memory; note: which events are summarised, or ""."""
    stacked = [(event, time, [totals[CATEGORY_NAMES.index(name)] for name in ORDER]) for event, time, totals in course]
    at_peak = max(range(len(stacked)), key=lambda k: sum(stacked[k][2]))
    ends = stacked[-1][0] or 1, stacked[-1][1] or 1e-9
    data = {"course": stacked, "ends": ends, "peak": at_peak, "left": LEFT, "width": WIDTH - LEFT, "whole": WIDTH}
    legend = "".join(f'<span><i style="background:var(--{name})"></i>{name} <b>{stacked[at_peak][2][k]:,}</b></span>'
                     for k, name in enumerate(ORDER))
    if phases:
        legend += "<br>" + "".join(f'<span><i style="background:var(--{name})"></i>{name}</span>'
                                   for name in PHASE_COLORS)
    lower = "".join(f"<li><b>{html.escape(words(a.bytes))}</b>: {html.escape(a.text)}</li>" for a in advice)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>cygrad memory report: peak {html.escape(words(peak))}</title>
<style>{STYLE}</style>
</head>
<body>
<h1>Peak: {html.escape(words(peak))}</h1>
<p>{sum(s.allocations for s in sites):,} allocations at {len(sites):,} places in {1e3 * ends[1]:,.1f} ms.</p>
<h2>Live bytes, event by event</h2>
<p>Point at a moment to read it. The wheel zooms, a double click shows all.</p>
{f'<p id="note">{html.escape(note)}</p>' if note else ""}
{picture(stacked, phases, 0, ends[0], peak, at_peak)}
<div id="legend">{legend}</div>
<p id="when">event {stacked[at_peak][0]:,}, {1e3 * stacked[at_peak][1]:.3f} ms: {peak:,} bytes live, the peak</p>
<details><summary>Live bytes over time</summary>
{picture(stacked, phases, 1, ends[1], peak, at_peak)}
</details>
<h2>Live bytes at the peak</h2>
{peak_table(rows, peak)}
<h2>How to lower the peak</h2>
<ul id="advice">{lower or "<li>No rule applies.</li>"}</ul>
{growth_part(growth)}
{layer_part(layers, peak)}
<h2>The peak by Python stack</h2>
<p>Each function is above its caller, and operations are on top. The width shows the bytes. Point at a box to see its
line.</p>
{flame(tree)}
<h2>Allocations by place</h2>
{site_table(sites)}
<script type="application/json" id="data">{json.dumps(data).replace("<", chr(92) + "u003c")}</script>
<script>{SCRIPT}</script>
</body>
</html>
"""


def growth_part(growth):
    """What each step leaves to the next, as a list; "" if that is nothing."""
    if not growth: return ""
    first, more = growth[:MOST_ROWS], len(growth) - MOST_ROWS
    listed = "".join(f"<li>{html.escape(g.text)}</li>" for g in first) + (f"<li>and {more:,} more</li>" * (more > 0))
    return f'<h2>What each step leaves to the next</h2>\n<ul id="growth">{listed}</ul>'


def layer_part(root, peak):
    """The peak by layer, as a graph and a table in which a layer includes those that it contains; "" without layers."""
    if all(branch.category or branch.name == OUTSIDE for branch in root.branches.values()): return ""
    lines, more = shortened(list(layer_lines(root, "")), 4)
    body = "".join(f'<tr><td><code>{html.escape(name)}</code></td><td class="n">{branch.bytes:,}</td>'
                   f'<td class="n">{branch.bytes / max(peak, 1):.1%}</td><td class="n">{own:,}</td></tr>'
                   for name, branch, own in lines)
    return (f'<h2>The peak by layer</h2>\n<p>Each layer is above the one that contains it, and operations are on top. '
            f'The bytes of backward belong to the layer that recorded the operation.</p>\n{flame(root)}\n'
            f'<details><summary>Table</summary><table id="layers"><thead><tr><th>layer</th><th class="n">bytes</th>'
            f'<th class="n">share</th><th class="n">without the layers in it</th></tr></thead><tbody>{body}{more}'
            f'</tbody></table></details>')


def layer_lines(root, path):
    """(path, Branch, bytes without the layers in it) of each layer below a branch; what belongs to none is one of
    them, as the operation "before"."""
    for branch in root.ordered():
        if branch.category and path: continue
        name = f"{path}.{branch.name}" if path else branch.title
        yield name, branch, branch.bytes - sum(b.bytes for b in branch.branches.values() if not b.category)
        yield from layer_lines(branch, name)


def picture(stacked, phases, axis, end, peak, at_peak):
    """The live bytes as SVG: stacked areas, one for each category, over events (axis 0) or seconds (axis 1), below
    bands for the phases."""
    height = HEIGHT - TOP - BOTTOM
    top_of_scale = max(peak, 1) * 1.06
    size, unit = byte_unit(peak)
    long, short = (1, "") if axis == 0 else seconds_unit(end)

    def x(at): return f"{LEFT + at / end * (WIDTH - LEFT):.1f}"
    def y(nbytes): return f"{TOP + height * (1 - nbytes / top_of_scale):.1f}"

    lines, moving, across, labels = [], [], [], []
    narrow, drawn, label_end = end / 400, -end, 0   # label_end: where the last label ends
    for name, first, last, begun, ended in phases:
        left, right = (first, last) if axis == 0 else (begun, ended)
        if right - left < narrow and left < drawn + narrow: continue    # (a band that the previous one covers)
        drawn = left
        right = max(right, left + narrow)
        moving.append(element("rect", tooltip(name), x=x(left), width=f"{(right - left) / end * (WIDTH - LEFT):.2f}",
                              y=16, height=10, fill=f"var(--{name})"))
        half = LETTER * len(name) / 2
        middle = min(float(x((left + right) / 2)), WIDTH - half)
        if middle - half < label_end: continue
        label_end = middle + half + 4
        across.append(element("text", name, class_="phase", x=f"{middle:.2f}", y=12, text_anchor="middle"))
    for tick in ticks(peak / size, unit == "bytes"):
        at = y(tick * size)
        lines.append(element("line", x1=LEFT, x2=WIDTH, y1=at, y2=at, stroke="var(--line)"))
        labels.append(element("text", f"{shown(tick)} {unit}", class_="tick", x=LEFT - 8, y=at, dy=4,
                              text_anchor="end"))
    base = [0] * len(stacked)
    for k, name in enumerate(ORDER):
        over = [b + row[2][k] for b, row in zip(base, stacked, strict=True)]
        if over != base:
            area = outline([x(row[axis]) for row in stacked], [*map(y, over)], [*map(y, base)])
            moving.append(element("path", tooltip(name), d=area, fill=f"var(--{name})"))
        base = over
    for tick in ticks(end / long, axis == 0):
        anchor = "start" if tick == 0 else "end" if tick * long > 0.97 * end else "middle"
        across.append(element("text", f"{shown(tick)} {short or ('events' if tick == 0 else '')}",
                              class_="tick", x=x(tick * long), y=HEIGHT - 8, text_anchor=anchor))
    margin = element("rect", x=0, y=0, width=LEFT, height=HEIGHT, fill="var(--paper)")     # hides what a zoom moves out
    parts = [*lines, element("g", *moving, class_="moving"), margin, element("g", *across, class_="across"), *labels,
             element("line", x1=LEFT, x2=WIDTH, y1=y(peak), y2=y(peak), stroke="var(--ink)", stroke_dasharray="4 3"),
             element("line", class_="cursor", x1=0, x2=0, y1=TOP, y2=TOP + height, stroke="var(--ink)",
                     transform=f"translate({x(stacked[at_peak][axis])},0)")]
    return element("svg", *parts, class_="course", viewBox=f"0 0 {WIDTH} {HEIGHT}", role="img",
                   aria_label=f"live bytes by category over {('memory events', 'time')[axis]}")


def outline(places, over, base):
    """The path around the area between two step lines, which keep each value until the next place. Moves that change
    nothing are left out."""
    moves = [("M", f"{places[0]},{over[0]}")]
    for at, value in zip(places[1:], over[1:], strict=True): moves += [("H", at), ("V", value)]
    moves.append(("V", base[-1]))
    for at, value in zip(places[-2::-1], base[-2::-1], strict=True): moves += [("V", value), ("H", at)]
    now = {"H": places[0], "V": over[0]}
    out = []
    for kind, value in moves:
        if now.get(kind) == value: continue
        now[kind] = value
        if out and out[-1][0] == kind: out[-1] = kind, value     # (a longer step in the same direction)
        else: out.append((kind, value))
    return "".join(map("".join, out)) + "Z"


def place(line):
    """A "file:line" with the source text of that line."""
    found = re.fullmatch(r"(.*):(\d+)", line)
    text = linecache.getline(found[1], int(found[2])).strip() if found else ""
    return f"<code>{html.escape(line)}</code><br><code><small>{html.escape(text)}</small></code>" if line else ""


def callers(row):
    """The chains of functions that called the line of a row, the most bytes first."""
    chains = {}
    for stack, nbytes in row.stacks.items():
        chain = tuple(shown_line(f"{file}:{line}") + f" {function}" for file, line, function in stack[-6:])
        chains[chain] = chains.get(chain, 0) + nbytes
    if len(chains) < 2: return ""
    listed = "".join(f"<li>{nbytes:,}: {html.escape(' › '.join(chain))}</li>"
                     for chain, nbytes in sorted(chains.items(), key=lambda item: -item[1])[:20])
    return f"<details><summary>stacks: {len(chains)}</summary><ul>{listed}</ul></details>"


def shapes(row):
    """The shapes of a row, each without a line break; "-" if none is known."""
    return re.sub(ONE_SHAPE, r'<span class="whole">\g<0></span>', html.escape(row.shape)) or "-"


def shortened(rows, columns):
    """The first rows of a table, and a row that counts the others."""
    more = f'<tr><td colspan="{columns}">and {len(rows) - MOST_ROWS:,} more</td></tr>' if len(rows) > MOST_ROWS else ""
    return rows[:MOST_ROWS], more


def peak_table(rows, peak):
    first, more = shortened(rows, 7)
    body = "".join(
        f'<tr><td class="whole"><i style="background:var(--{r.category})"></i>{r.category}</td>'
        f'<td class="whole">{html.escape(r.operation)}</td><td class="line">{place(r.line)}'
        f'{callers(r) if k < MOST_STACKS else ""}</td>'
        f'<td>{shapes(r)}</td><td class="why">{html.escape(r.why)}</td>'
        f'<td class="n">{r.bytes:,}</td><td class="n">{r.bytes / max(peak, 1):.1%}</td></tr>'
        for k, r in enumerate(first))
    return ('<table id="peak"><thead><tr><th>category</th><th>operation</th><th>line</th><th>shape</th><th>why</th>'
            f'<th class="n">bytes</th><th class="n">share</th></tr></thead><tbody>{body}{more}</tbody><tfoot><tr>'
            f'<td>all</td><td></td><td></td><td></td><td></td><td class="n">{sum(r.bytes for r in rows):,}</td>'
            f'<td></td></tr></tfoot></table>')


def site_table(sites):
    first, more = shortened(sites, 5)
    body = "".join(
        f'<tr><td>{html.escape(s.operation)}</td><td>{place(s.line)}</td><td>{html.escape(s.function)}</td>'
        f'<td class="n">{s.allocations:,}</td><td class="n">{s.bytes:,}</td></tr>' for s in first)
    return ('<table id="sites"><thead><tr><th>operation</th><th>line</th><th>function</th>'
            f'<th class="n">allocations</th><th class="n">bytes</th></tr></thead><tbody>{body}{more}</tbody></table>')
