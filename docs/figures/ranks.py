"""Chapter 29: ranks that exchange parts; sums during backward and the model of more ranks, from
benchmarks/results/ranks.md."""

import re
from pathlib import Path

from drawing import BACKWARD, FORWARD, box, line, page, svg, text

MEASURED = Path(__file__).parents[2] / "benchmarks" / "results" / "ranks.md"


def measured():
    """alpha in ms, bytes per ms, bytes of gradients, packs, ms of backward; and the rows of the model."""
    page = MEASURED.read_text()
    alpha, rate = re.search(r"alpha = ([\d.]+) us and 1 / beta = ([\d,]+) MB/s", page).groups()
    nbytes, packs = re.search(r"training step, ([\d,]+) bytes of gradients in (\d+) packs", page).groups()
    backward = re.search(r"backward ([\d.]+) ms", page)[1]
    rows = re.findall(r"^\| (\d+) \| ([\d.]+) ms \| ([\d.]+) ms \| ([\d.]+) \| ([\d.]+) \|$", page, re.M)
    return (float(alpha) / 1000, float(rate.replace(",", "")) * 1000, int(nbytes.replace(",", "")), int(packs),
            float(backward), [(int(n), float(after), float(during)) for n, _, _, after, during in rows])


def overlap():
    """Backward on two ranks with sums after it, and with sums of packs beside it, by the fitted line."""
    alpha, rate, nbytes, packs, backward, _ = measured()
    whole, each = 2 * alpha + nbytes / rate, 2 * alpha + nbytes / packs / rate
    across, parts = 520 / (backward + whole), []
    parts += [text(20, 24, "sums after backward", weight="bold"),
              box(20, 32, backward * across, 24, BACKWARD, "backward"),
              box(20 + backward * across, 32, whole * across, 24, FORWARD, "sum"),
              text(26 + (backward + whole) * across, 49, f"{backward + whole:.1f} ms")]
    parts += [text(20, 90, "sums during backward", weight="bold")]
    end = 0.0
    for k in range(packs):
        start, ready = backward * k / packs, backward * (k + 1) / packs
        parts.append(box(20 + start * across, 98, (ready - start) * across, 24, BACKWARD, f"pack {k + 1}"))
        begin = max(end, ready)
        end = begin + each
        parts.append(box(20 + begin * across, 124, each * across, 24, FORWARD, "sum"))
    parts.append(text(26 + end * across, 141, f"{end:.1f} ms"))
    parts.append(line(20 + backward * across, 96, 20 + backward * across, 152, stroke_dasharray="4 3"))
    return svg(640, 164, parts)


def scaling():
    """The share of one rank's speed that each of n ranks keeps, by the model."""
    rows = measured()[-1]
    parts = [text(20, 22, "ranks", weight="bold"), text(90, 22, "share of a rank's speed", weight="bold")]
    for i, (n, after, during) in enumerate(rows):
        y = 32 + 42 * i
        parts += [text(60, y + 24, f"{n}", "end"),
                  box(90, y, 400 * after, 16, BACKWARD, "after backward"),
                  text(496 + 400 * (after - 1), y + 13, f"{after:.2f}"),
                  box(90, y + 18, 400 * during, 16, FORWARD, "during backward"),
                  text(496 + 400 * (during - 1), y + 31, f"{during:.2f}")]
    return svg(560, 32 + 42 * len(rows) + 4, parts)


FIGURES = {"overlap.svg": overlap, "scaling.svg": scaling, "exchange.html": lambda: page("exchange")}
