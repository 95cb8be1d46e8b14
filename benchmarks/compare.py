"""What changed between two runs: `python -m benchmarks --compare OLD.json`, or
`python -m benchmarks.compare OLD.json NEW.json`.

Times are compared by the ratio to PyTorch within each run, if there is one, because machines and days differ. Other
times, and bytes, are compared by cygrad's own figure. Disturbed figures are omitted. A figure counts as changed if it
differs by more than `least` and the quartiles of the two runs do not overlap. If a run has one sample of a time and
therefore no quartiles, the time must differ by a factor of more than 1 + `alone`. The output begins with differences
between the machines or the settings of the runs. If the BLAS used other kernels (OPENBLAS_CORETYPE), rows with matrix
products are neither better nor worse."""

import json
import sys
from collections import Counter
from pathlib import Path
from typing import NamedTuple

SETTINGS = {"cpu": "CPU", "cores": "cores", "vectors": "vectors", "core_type": "OPENBLAS_CORETYPE",
            "memory_gib": "GiB of memory", "system": "system", "python": "Python", "numpy": "NumPy", "scipy": "SciPy",
            "torch": "PyTorch", "jax": "jax", "autograd": "HIPS autograd"}


class Entry(NamedTuple):
    """A figure to compare: the unit in words, the spread, whether more is better, whether it is in bytes, whether it
    includes matrix products."""
    what: str
    spread: dict
    more_is_better: bool
    exact: bool
    products: bool


def entries(results):
    """The Entry of each undisturbed (row, name, threads)."""
    made = {}
    for r in results["results"]:
        if r["disturbed"]:
            continue
        exact, products = r["unit"] == "B", r["row"] in ("B", "C", "D", "E", "F", "G") or "matmul" in r["name"]
        key = key_of(r)
        if not exact and "PyTorch" in r["ratios"]:
            made[key] = Entry("times faster than PyTorch", r["ratios"]["PyTorch"], True, exact, products)
        elif "cygrad" in r["figures"]:
            made[key] = Entry(r["unit"], r["figures"]["cygrad"], False, exact, products)
    return made


def key_of(result):
    return result["row"], result["name"], result["threads"]


def settings(results):
    """The machine and the settings of a run, by the name that is shown."""
    machine = results["machine"]
    return {shown: machine.get(key) for key, shown in SETTINGS.items()} | {"quick": results["quick"]}


def differences(old, new, least=0.05, alone=0.5):
    """The changes: a list of (key, Entry before, Entry after), the largest first."""
    before, found = entries(old), []
    for key, entry in entries(new).items():
        then = before.get(key)
        if then is None or then.what != entry.what or then.spread["median"] <= 0:
            continue
        apart = entry.spread["q1"] > then.spread["q3"] or entry.spread["q3"] < then.spread["q1"]
        if apart and factor(then, entry) > 1 + (alone if one_sample(then, entry) else least):
            found.append((key, then, entry))
    return sorted(found, key=lambda f: -factor(*f[1:]))


def factor(before, after):
    """The factor between the medians, at least 1."""
    a, b = before.spread["median"], after.spread["median"]
    return max(b / a, a / b if b else float("inf"))


def one_sample(before, after):
    """Whether one of two times has no quartiles. Bytes need no quartiles."""
    return not after.exact and min(before.spread["n"], after.spread["n"]) == 1


def moved(old, new, least=0.05, alone=0.5):
    """The differences between the runs and the changes, one per line, and what only one run has."""
    was, now = settings(old), settings(new)
    other = [f"{name} {told(was[name])} -> {told(now[name])}" for name in was if was[name] != now[name]]
    lines = ["the runs differ: " + "; ".join(other)] if other else []
    other_kernels = was["OPENBLAS_CORETYPE"] != now["OPENBLAS_CORETYPE"]
    changes = differences(old, new, least, alone)
    for (row, name, threads), before, after in changes:
        a, b = before.spread["median"], after.spread["median"]
        verdict = "better" if (b > a) == after.more_is_better else "WORSE "
        why = ", one sample" if one_sample(before, after) else ""
        if after.products and other_kernels:
            verdict, why = "other ", why + ": its products had other kernels (OPENBLAS_CORETYPE)"
        lines.append(f"{verdict}  {row}  {name} ({threads} thread{'s' * (threads > 1)}): "
                     f"{a:.4g} -> {b:.4g} {after.what} ({100 * (b / a - 1):+.0f} %){why}")
    if not changes:
        lines.append(f"nothing moved by more than {100 * least:.0f} % beyond its quartiles, or, where a run has one "
                     f"sample, by a factor of more than {1 + alone:g}")
    return "\n".join(lines + missing(old, new))


def told(setting):
    """A setting in words."""
    if isinstance(setting, bool): return "yes" if setting else "no"
    return "none" if setting is None else str(setting)


def missing(old, new):
    """The figures that could not be compared, counted by row, with a line for each reason."""
    before, after = entries(old), entries(new)
    measured = {key_of(r) for r in new["results"]}
    reasons = {"not measured now": before.keys() - measured,
               "measured now, but disturbed": before.keys() & (measured - after.keys()),
               "disturbed in the old run": after.keys() & ({key_of(r) for r in old["results"]} - before.keys()),
               "not comparable, one run being without PyTorch":
                   {key for key in before.keys() & after.keys() if before[key].what != after[key].what}}
    return [f"{reason}: " + ", ".join(f"{row} {n}" for row, n in sorted(Counter(key[0] for key in keys).items()))
            for reason, keys in reasons.items() if keys]


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: python -m benchmarks.compare OLD.json NEW.json")
    print(moved(*(json.loads(Path(path).read_text()) for path in sys.argv[1:])))
