"""The result files in git: medians and quartiles, with the digits that pages and pictures need. Each result is one
line, so a diff of two commits shows which results changed."""

import json

from benchmarks.work import DENSE, KEPT, LAYERS

DIGITS = 7                  # significant digits; pages show four at most
POINTS = 60                 # of a curve over many steps
COMPARED = ("PyTorch", KEPT, DENSE, LAYERS)     # ratios to others are not shown


def rounded(value):
    """`value` with its floats rounded, at any depth."""
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, dict):
        return {key: rounded(v) for key, v in value.items()}
    return [rounded(v) for v in value] if isinstance(value, list) else value


def reduced(results):
    """The part of the results of `python -m benchmarks` or `python -m benchmarks.memory` that is stored."""
    kept = rounded(results)
    for r in kept.get("results", ()):
        r["ratios"] = {peer: spread for peer, spread in r["ratios"].items() if peer in COMPARED}
    for peers in kept.get("varying", {}).values():
        for figures in peers.values():
            for name, curve in figures.items():
                if isinstance(curve, list) and len(curve) > POINTS:
                    figures[name] = curve[::-(-len(curve) // POINTS)]
    return kept


def text_of(results):
    """JSON with one line for each entry of a section."""
    parts = []
    for key, section in reduced(results).items():
        if isinstance(section, dict):
            lines = [f" {json.dumps(name)}: {json.dumps(value)}" for name, value in section.items()]
            body = "{\n" + ",\n".join(lines) + "\n}"
        elif isinstance(section, list) and section and isinstance(section[0], dict):
            body = "[\n" + ",\n".join(" " + json.dumps(value) for value in section) + "\n]"
        else:
            body = json.dumps(section)
        parts.append(f"{json.dumps(key)}: {body}")
    return "{\n" + ",\n".join(parts) + "\n}\n"
