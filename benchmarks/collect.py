"""Start the processes, and turn samples into figures and ratios.

With one thread, all libraries run interleaved in one process, and each sample gives a ratio. With several threads, each
library has several processes of its own, which take turns with those of the others, because PyTorch's speed varies from
process to process and waiting threads of one library disturb another. Then the ratio is that of the medians of two
processes. The same holds with one thread if a library needs environment variables of its own."""

import json
import os
import statistics
import subprocess
import sys

from benchmarks import limits, work
from benchmarks.timing import ratios, spread

# Samples of about `seconds`; `patience`: seconds to wait for a quiet machine, for each row and thread count.
QUICK = dict(rounds=5, seconds=0.002, patience=2, processes=1, repeats=1)
FULL = dict(rounds=21, seconds=0.005, patience=45, processes=5, repeats=3)


def ask(spec):
    """Run one worker. Raises RuntimeError with the end of what it wrote if it fails."""
    env = os.environ | work.environment(spec["threads"])
    for library in spec.get("libraries", ()):
        env |= work.ENVIRONMENTS.get(library, {})
    command = [sys.executable, "-X", "faulthandler", "-m", "benchmarks.worker", json.dumps(spec)]
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"benchmarks: the process for {spec} ended with {done.returncode}:\n{done.stderr[-3000:]}")
    return json.loads(done.stdout)


def judge(row, name, unit, threads, samples, details, processes, others, disturbed):
    """One result: the spread of each peer's samples, of the ratios to cygrad, and of cygrad's ratio to multiply.
    `others` is the number of CPUs that other programs used meanwhile, `disturbed` whether that was too many."""
    result = {"row": row, "name": name, "unit": unit, "threads": threads, "processes": processes, "details": details,
              "others": round(others, 2), "disturbed": unit != "B" and disturbed,
              "figures": {peer: spread(taken) for peer, taken in samples.items()}, "ratios": {}}
    mine = samples.get("cygrad")
    if mine is None:
        return result
    for peer, taken in samples.items():
        if peer == "cygrad multiply":
            result["to_multiply"] = spread(ratios(mine, taken))
        elif (peer in (work.DENSE, work.LAYERS) or work.library(peer) != "cygrad") and any(mine):
            result["ratios"][peer] = spread(ratios(taken, mine))
    return result


def merge(answers):
    """Merge the answers of several processes with the same cases: the samples are the medians of the processes. The
    values that the peers computed are compared across processes."""
    merged = {}
    for cases in answers:
        for case in cases:
            into = merged.setdefault(case["name"], dict(case, samples={}, values={}))
            into["others"] = max(into["others"], case["others"])
            into["disturbed"] |= case["disturbed"]
            for peer, taken in case["samples"].items():
                into["samples"].setdefault(peer, []).append(statistics.median(taken))
            into["values"].update(case["values"])
    for name, case in merged.items():
        work.agree(name, case["values"], case["tolerance"])
    return list(merged.values())


def timed_row(row, libraries, threads, quick, say):
    """The results of a row of cases."""
    module = work.module(row)
    how = (QUICK if quick else FULL) | getattr(module, "QUICK" if quick else "FULL", {})
    spec = dict(row=row, threads=threads, quick=quick, **{key: how[key] for key in ("rounds", "seconds", "patience")})
    if threads == 1 and not getattr(module, "SEPARATE", False):
        say(f"{row}: one thread, {', '.join(libraries)} in one process")
        cases, processes = ask(spec | dict(libraries=libraries)), 1
    else:
        processes, answers = how["processes"], []
        spec["patience"] /= processes * len(libraries)
        for i in range(processes):
            say(f"{row}: {threads} thread{'s' * (threads > 1)}, process {i + 1} of {processes} for each of "
                f"{', '.join(libraries)}")
            order = libraries[i % len(libraries):] + libraries[: i % len(libraries)]
            answers += [ask(spec | dict(libraries=[library])) for library in order]
        cases = merge(answers)
    return [judge(row, c["name"], c["unit"], threads, c["samples"], c["details"], processes, c["others"],
                  c["disturbed"]) for c in cases]


def parted_row(row, libraries, threads, quick, say):
    """The results of a row in which each figure has a process of its own."""
    module = work.module(row)
    how = QUICK if quick else FULL
    repeats = how["repeats"] if row == "J" else 1
    samples, units, details, values = {}, {}, {}, {}
    others, disturbed = {}, {}
    for i in range(repeats):
        for peer, part in module.parts(libraries, quick):
            say(f"{row}: {part}, {peer}" + (f", {i + 1} of {repeats}" if repeats > 1 else ""))
            spec = dict(row=row, threads=threads, quick=quick, peer=peer, part=part, patience=how["patience"] / 15)
            got = ask(spec)
            if got["disturbed"] and row == "J":
                got = ask(spec)
            for name, entry in got["figures"].items():
                samples.setdefault(name, {}).setdefault(peer, []).append(entry["figure"])
                units[name] = entry["unit"]
                others[name] = max(others.get(name, 0.0), got["others"])
                disturbed[name] = disturbed.get(name, False) or got["disturbed"]
                if entry.get("details"):
                    details.setdefault(name, {})[peer] = entry["details"]
            values.setdefault(part, {})[peer] = got["values"]
    for part, computed in values.items():
        work.agree(part, computed, 1e-3)
    return [judge(row, name, units[name], threads, taken, details.get(name, {}), repeats, others[name],
                  disturbed[name]) for name, taken in samples.items()]


def gathered_row(row, libraries, threads, quick, say):
    """The results of a row that starts its own processes."""
    return [judge(row, g.name, g.unit, threads, g.samples, g.details, len(next(iter(g.samples.values()))), 0.0,
                  g.disturbed) for g in work.module(row).gather(libraries, quick, say)]


def run(rows, threads, quick, say):
    """Measure each of `rows` with each thread count that makes sense for it. Returns a list of results."""
    results = []
    for row in rows:
        module = work.module(row)
        libraries = work.installed(module.LIBRARIES)
        if quick and hasattr(module, "cases"):
            libraries = [name for name in libraries if name not in work.LEFT_OUT_QUICKLY]
        measure = parted_row if hasattr(module, "parts") else gathered_row if hasattr(module, "gather") else timed_row
        for count in [t for t in threads if module.THREADS in (None, t)]:
            results += measure(row, libraries, count, quick, say)
    limits.mark(results)
    return results
