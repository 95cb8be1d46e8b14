"""Timing: calibrated, interleaved, on a machine as quiet as possible, and summarized by medians and quartiles."""

import gc
import os
import statistics
from pathlib import Path
from time import perf_counter, process_time, sleep

UNDISTURBED = 0.98  # the least share of a sample's time during which its process (one thread) must have had a CPU
SPARE = 0.25        # CPUs that others may use in addition to those that the timed threads leave free


def calibrate(run, seconds):
    """The n for which `run(n)` takes `seconds`. The first call does not count, because it may load a library or make
    the states of a solver. The rest warms up for about as long as three samples."""
    run(1)
    n = 1
    while True:
        start = perf_counter()
        run(n)
        took = perf_counter() - start
        if took >= seconds or n >= 1 << 24:
            return max(1, round(n * seconds / max(took, 1e-9)))
        n *= 2


def interleave(runs, rounds, seconds, threads=1, rest=0):
    """Time `runs` in turn, `rounds` times. `runs` is a dict from names to functions f(n) that do their work n times.
    Each round starts with another function. A sample takes about `seconds`, after half as much untimed work. Returns a
    dict from names to samples in seconds per piece of work (samples with the same index are from the same round), and
    the share of undisturbed rounds. Before it all the process sleeps for `rest` seconds, so that threads which the
    function before it has left spinning do not take a CPU from it.

    With one thread, a round in which another program used our CPU is repeated, up to three times `rounds` in all. Then
    the least disturbed rounds count."""
    counts, taken, names = {}, [], list(runs)
    for name, run in runs.items():
        sleep(rest)
        counts[name] = calibrate(run, seconds)
    gc.collect()
    gc.freeze()  # what exists since the imports is not garbage
    try:
        for i in range(3 * rounds):
            k = i % len(names)
            samples, had = {}, 1.0
            for name in names[k:] + names[:k]:
                n, run = counts[name], runs[name]
                sleep(rest)
                run((n + 1) // 2)  # untimed: the caches are cold after another run, which costs PyTorch up to 1.6x
                used, start = process_time(), perf_counter()
                run(n)
                took = perf_counter() - start
                used = process_time() - used
                samples[name] = took / n
                had = min(had, used / took) if threads == 1 and took > 0 else had
            taken.append((had, samples))
            if sum(share >= UNDISTURBED for share, _ in taken) == rounds:
                break
    finally:
        gc.unfreeze()
    kept = sorted(taken, key=lambda pair: -min(pair[0], UNDISTURBED))[:rounds]
    clean = sum(share >= UNDISTURBED for share, _ in kept) / rounds
    return {name: [samples[name] for _, samples in kept] for name in names}, clean


# ---- others on the machine -------------------------------------------------------------------------------------------

def busy_seconds():
    """CPU seconds that the whole machine has worked since its start. None if the system does not report them."""
    path = Path("/proc/stat")
    if not path.exists():
        return None
    user, nice, system, _, _, irq, soft, steal = map(int, path.read_text().split("\n", 1)[0].split()[1:9])
    return (user + nice + system + irq + soft + steal) / os.sysconf("SC_CLK_TCK")


class Others:
    """A scope that measures how many CPUs other processes use meanwhile: `.processors`, a float, or None if the system
    does not report it."""

    def __enter__(self):
        self._start = perf_counter(), process_time(), busy_seconds()
        self.processors = None
        return self

    def __exit__(self, *_):
        start, used, busy = self._start
        if busy is not None:
            took = max(perf_counter() - start, 1e-9)
            self.processors = max(0.0, (busy_seconds() - busy - (process_time() - used)) / took)


def quiet(processors, threads):
    """Whether other programs that use this number of CPUs leave enough for `threads` threads."""
    return processors is None or processors <= os.cpu_count() - threads + SPARE


def wait_for_quiet(threads, deadline):
    """Wait until other programs leave enough CPUs for `threads` threads, or until `deadline` on the performance
    clock."""
    while perf_counter() < deadline:
        with Others() as others:
            sleep(0.3)
        if quiet(others.processors, threads):
            return


def spread(samples):
    """The median, the quartiles and the number of samples, as a dict."""
    samples = sorted(samples)
    if not samples:
        raise ValueError("spread: no samples were given")
    if len(samples) == 1:
        q1 = q3 = samples[0]
    else:
        q1, _, q3 = statistics.quantiles(samples, n=4, method="inclusive")
    return {"median": statistics.median(samples), "q1": q1, "q3": q3, "n": len(samples)}


def ratios(above, below):
    """above / below, sample by sample, except where below is zero. Both were taken in the same rounds."""
    return [a / b for a, b in zip(above, below, strict=True) if b > 0]


def repeat(step):
    """A function f(n) that calls `step()` n times."""

    def run(n):
        for _ in range(n):
            step()

    return run
