"""The report of a profile as one HTML file: it loads nothing from elsewhere, and reads well without JavaScript."""

import html
import json
import linecache
import re

from cygrad.core.memory import CATEGORY_NAMES
from cygrad.memory.sizes import words

ORDER = ("parameters", "optimizer", "gradients", "saved", "workspace", "other")     # from the ground up
WIDTH, HEIGHT = 1100, 320
LEFT, BOTTOM, TOP = 90, 28, 16

STYLE = """
:root { --ink: #222; --soft: #6a6a6a; --line: #ddd; --paper: #fff; --band: #f5f5f3;
  --parameters: #30638e; --optimizer: #7ba7cc; --gradients: #d1495b; --saved: #edae49; --workspace: #66a182;
  --other: #b9b9b9; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e6e6; --soft: #9a9a9a; --line: #3a3a3a; --paper: #18191b; --band: #222427; --other: #77797c; } }
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
td.n, th.n { text-align: right; white-space: nowrap; } tbody tr:hover { background: var(--band); }
tfoot td { font-weight: 600; } code { font-size: .9em; } code small { color: var(--soft); }
"""

SCRIPT = """
const data = JSON.parse(document.getElementById("data").textContent), svg = document.querySelector("svg");
const cursor = document.getElementById("cursor"), legend = document.querySelectorAll("#legend b");
const when = document.getElementById("when");
function show(k) {
  const row = data.course[k], sum = row[1].reduce((a, b) => a + b, 0);
  cursor.setAttribute("transform", `translate(${data.left + row[0] / data.end * data.width},0)`);
  legend.forEach((b, i) => { b.textContent = row[1][i].toLocaleString("en"); });
  when.textContent = `${(1e3 * row[0]).toFixed(3)} ms: ${sum.toLocaleString("en")} bytes live` +
    (k === data.peak ? ", the peak" : "");
}
svg.addEventListener("mousemove", event => {
  const box = svg.getBoundingClientRect();
  const t = ((event.clientX - box.left) / box.width * data.whole - data.left) / data.width * data.end;
  let low = 0, high = data.course.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (data.course[middle][0] <= t) low = middle; else high = middle - 1;
  }
  show(low);
});
svg.addEventListener("mouseleave", () => show(data.peak));
document.querySelectorAll("th").forEach(th => th.addEventListener("click", () => {
  const body = th.closest("table").tBodies[0], i = th.cellIndex, number = th.classList.contains("n");
  const value = row => number ? +row.cells[i].textContent.replace(/[^0-9.]/g, "") : row.cells[i].textContent;
  const rows = [...body.rows].sort((a, b) => number ? value(b) - value(a) : value(a).localeCompare(value(b)));
  body.append(...rows);
}));
show(data.peak);
document.body.dataset.ready = "yes";
"""


def page(course, peak, rows, sites):
    """The page, as text. course: [(seconds, live bytes by category)]; rows: those of the peak; sites: where memory was
    asked for."""
    stacked = [(time, [totals[CATEGORY_NAMES.index(name)] for name in ORDER]) for time, totals in course]
    at_peak = max(range(len(stacked)), key=lambda k: sum(stacked[k][1]))
    end = stacked[-1][0] or 1e-9
    data = {"course": stacked, "end": end, "peak": at_peak, "left": LEFT, "width": WIDTH - LEFT, "whole": WIDTH}
    legend = "".join(f'<span><i style="background:var(--{name})"></i>{name} <b>{stacked[at_peak][1][k]:,}</b></span>'
                     for k, name in enumerate(ORDER))
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
<p>{len(sites):,} places asked for memory {sum(s.allocations for s in sites):,} times in {1e3 * end:,.1f} ms.</p>
<h2>Live bytes over time</h2>
{picture(stacked, end, peak, at_peak)}
<div id="legend">{legend}</div>
<p id="when">{1e3 * stacked[at_peak][0]:.3f} ms: {peak:,} bytes live, the peak</p>
<h2>What was live at the peak</h2>
{peak_table(rows, peak)}
<h2>Where memory was asked for</h2>
{site_table(sites)}
<script type="application/json" id="data">{json.dumps(data).replace("<", chr(92) + "u003c")}</script>
<script>{SCRIPT}</script>
</body>
</html>
"""


def picture(stacked, end, peak, at_peak):
    """The course as SVG: an area for each category, stacked."""
    height = HEIGHT - TOP - BOTTOM
    top_of_scale = max(peak, 1) * 1.06

    def x(time): return f"{LEFT + time / end * (WIDTH - LEFT):.2f}"
    def y(nbytes): return f"{TOP + height * (1 - nbytes / top_of_scale):.2f}"

    parts = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="live bytes by category over time">']
    for k in range(5):
        at = peak * k / 4
        label = words(round(at)).partition(" (")[0]
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH}" y1="{y(at)}" y2="{y(at)}" stroke="var(--line)"/>'
                     f'<text x="{LEFT - 8}" y="{y(at)}" dy="4" text-anchor="end">{label}</text>')
    base = [0] * len(stacked)
    for k, name in enumerate(ORDER):
        over = [b + row[k] for b, (_, row) in zip(base, stacked, strict=True)]
        if over != base:
            forth = steps(stacked, over, x, y)
            back = steps(stacked, base, x, y)[::-1]
            parts.append(f'<path d="M{" ".join(forth + back)}Z" fill="var(--{name})"><title>{name}</title></path>')
        base = over
    for k in range(5):
        parts.append(f'<text x="{x(end * k / 4)}" y="{HEIGHT - 8}" text-anchor="{"start" if k == 0 else "end"}">'
                     f'{1e3 * end * k / 4:,.3g} ms</text>')
    parts.append(f'<line x1="{LEFT}" x2="{WIDTH}" y1="{y(peak)}" y2="{y(peak)}" stroke="var(--ink)" '
                 f'stroke-dasharray="4 3"/><line id="cursor" x1="0" x2="0" y1="{TOP}" y2="{TOP + height}" '
                 f'stroke="var(--ink)" transform="translate({x(stacked[at_peak][0])},0)"/></svg>')
    return "".join(parts)


def steps(stacked, values, x, y):
    """The corners of a line that keeps each value until the next."""
    out, before = [], None
    for (time, _), value in zip(stacked, values, strict=True):
        if before is not None: out.append(f"{x(time)},{before}")
        before = y(value)
        out.append(f"{x(time)},{before}")
    return out


def place(line):
    """A "file:line" with the text that stands there."""
    found = re.fullmatch(r"(.*):(\d+)", line)
    text = linecache.getline(found[1], int(found[2])).strip() if found else ""
    return f"<code>{html.escape(line)}</code><br><code><small>{html.escape(text)}</small></code>" if line else ""


def peak_table(rows, peak):
    body = "".join(
        f'<tr><td><i style="background:var(--{r.category})"></i>{r.category}</td><td>{html.escape(r.operation)}</td>'
        f'<td>{place(r.line)}</td><td class="n">{r.bytes:,}</td><td class="n">{r.bytes / max(peak, 1):.1%}</td></tr>'
        for r in rows)
    return ('<table id="peak"><thead><tr><th>category</th><th>operation</th><th>line</th><th class="n">bytes</th>'
            f'<th class="n">share</th></tr></thead><tbody>{body}</tbody><tfoot><tr><td>all</td><td></td><td></td>'
            f'<td class="n">{sum(r.bytes for r in rows):,}</td><td></td></tr></tfoot></table>')


def site_table(sites):
    body = "".join(
        f'<tr><td>{html.escape(s.operation)}</td><td>{place(s.line)}</td><td>{html.escape(s.function)}</td>'
        f'<td class="n">{s.allocations:,}</td><td class="n">{s.bytes:,}</td></tr>' for s in sites)
    return ('<table id="sites"><thead><tr><th>operation</th><th>line</th><th>function</th>'
            f'<th class="n">allocations</th><th class="n">bytes</th></tr></thead><tbody>{body}</tbody></table>')
