"""What moved between two runs: `python -m benchmarks --compare OLD.json`, or
`python -m benchmarks.compare OLD.json NEW.json`.

Times are compared by the ratio to PyTorch within each run where there is one, because machines and days differ; else
and for bytes by cygrad's own figure. Disturbed figures are left out. Something moved if it differs by more than `least`
and the quartiles of the two runs do not touch."""

import json
import sys
from pathlib import Path


def entries(results):
    """By (row, name, threads): what is compared, its spread, and whether more is better."""
    made = {}
    for r in results["results"]:
        if r["disturbed"]:
            continue
        key = r["row"], r["name"], r["threads"]
        if r["unit"] != "B" and "PyTorch" in r["ratios"]:
            made[key] = "times faster than PyTorch", r["ratios"]["PyTorch"], True
        elif "cygrad" in r["figures"]:
            made[key] = r["unit"], r["figures"]["cygrad"], False
    return made


def differences(old, new, least=0.05):
    """What moved: a list of (key, what, before, after, better), the largest change first."""
    before, found = entries(old), []
    for key, (what, after, more_is_better) in entries(new).items():
        if key not in before or before[key][0] != what:
            continue
        then = before[key][1]
        a, b = then["median"], after["median"]
        apart = after["q1"] > then["q3"] or after["q3"] < then["q1"]
        if apart and a > 0 and abs(b / a - 1) > least:
            found.append((key, what, a, b, (b > a) == more_is_better))
    return sorted(found, key=lambda f: -max(f[3] / f[2], f[2] / f[3] if f[3] else float("inf")))


def moved(old, new, least=0.05):
    """The differences as text, one a line, and what only one of the runs has."""
    lines = []
    for (row, name, threads), what, a, b, better in differences(old, new, least):
        lines.append(f"{'better' if better else 'WORSE '}  {row}  {name} ({threads} thread{'s' * (threads > 1)}): "
                     f"{a:.4g} -> {b:.4g} {what} ({100 * (b / a - 1):+.0f} %)")
    if not lines:
        lines.append(f"nothing moved by more than {100 * least:.0f} % beyond its quartiles")
    gone = sorted(map(str, entries(old).keys() - entries(new).keys()))
    if gone:
        lines.append("not measured now: " + "; ".join(gone))
    return "\n".join(lines)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: python -m benchmarks.compare OLD.json NEW.json")
    print(moved(*(json.loads(Path(path).read_text()) for path in sys.argv[1:])))
