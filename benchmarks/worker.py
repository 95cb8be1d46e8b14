"""The process that measures: `python -m benchmarks.worker SPEC`. SPEC and the answer on standard output are JSON.

{"row", "libraries", "threads", "quick", "rounds", "seconds", "patience"} times the cases of a row and waits for a quiet
machine for `patience` seconds in all. {"row", "peer", "part", ...} measures one part of a row that needs a process for
each."""

import json
import sys
from time import perf_counter, process_time

import numpy as np

from benchmarks import work
from benchmarks.timing import Others, interleave, quiet, wait_for_quiet

ATTEMPTS = 3  # to measure a case that is disturbed
MOST = 0.7    # the least share of undisturbed rounds, with one thread
PART = 0.95   # the least share of its time during which a part must have had a CPU, with one thread


def measure_case(case, rounds, seconds, threads, deadline):
    """Check that all peers compute the same, then time them. If other programs disturb, try a few times and use the
    quietest attempt. Waiting for quiet ends at `deadline`. Returns a dict with the samples in the case's unit, for one
    operation."""
    values = {peer: compute() for peer, compute in case.values.items()}
    work.agree(case.name, values, case.tolerance)
    least = None
    for _ in range(ATTEMPTS):
        wait_for_quiet(threads, deadline)
        with Others() as others:
            samples, clean = interleave(case.runs, rounds, seconds, threads)
        now = others.processors or 0.0
        disturbed = clean < MOST or not quiet(now, threads)
        if least is None or (disturbed, now) < least[:2]:
            least = disturbed, now, samples
        if not disturbed or perf_counter() > deadline:
            break
    disturbed, others, samples = least
    scale = work.SCALES[case.unit] / case.per
    samples = {peer: [s * scale for s in taken] for peer, taken in samples.items()}
    return {"name": case.name, "unit": case.unit, "tolerance": case.tolerance, "details": case.details,
            "others": others, "disturbed": disturbed, "samples": without_companions(samples),
            "values": {peer: [np.asarray(a, np.float64).tolist() for a in arrays] for peer, arrays in values.items()}}


def without_companions(samples):
    """For a chain that alternates with a companion: twice its time minus the companion's in the same round."""
    plain = {}
    for peer, taken in samples.items():
        if peer.endswith(" companion"):
            continue
        other = samples.get(f"{peer} companion")
        plain[peer] = taken if other is None else [max(2 * a - b, 0.0) for a, b in zip(taken, other, strict=True)]
    return plain


def answer(spec):
    """The answer to a specification."""
    row = work.module(spec["row"])
    if "part" in spec:
        work.set_threads([work.library(spec["peer"])], spec["threads"])
        wait_for_quiet(spec["threads"], perf_counter() + spec["patience"])
        used, start = process_time(), perf_counter()
        with Others() as others:
            figures, values = row.measure(spec["peer"], spec["part"], spec["quick"])
        had = (process_time() - used) / (perf_counter() - start)
        disturbed = spec["threads"] == 1 and had < PART or not quiet(others.processors, spec["threads"])
        return {"figures": figures, "values": values, "others": others.processors or 0.0, "disturbed": disturbed}
    work.set_threads(spec["libraries"], spec["threads"])
    how = spec["rounds"], spec["seconds"], spec["threads"], perf_counter() + spec["patience"]
    return [measure_case(case, *how) for case in row.cases(spec["libraries"], spec["quick"]) if case.runs]


if __name__ == "__main__":
    json.dump(answer(json.loads(sys.argv[1])), sys.stdout)
