"""Timing: calibrated, interleaved, on a machine as quiet as possible, and summarized by medians and quartiles."""

import gc
import os
import statistics
from pathlib import Path
from time import perf_counter, process_time, sleep

UNDISTURBED = 0.98  # the least share of a sample's time that its process, with one thread, must have had a processor
SPARE = 0.25        # processors that others may use beyond those that the timed threads leave free


def calibrate(run, seconds):
    """How often `run(n)` must repeat its work to last `seconds`. The first call, which may load a library or make a
    solver's states, is not counted; the rest warms up for about as long as three samples."""
    run(1)
    n = 1
    while True:
        start = perf_counter()
        run(n)
        took = perf_counter() - start
        if took >= seconds or n >= 1 << 24:
            return max(1, round(n * seconds / max(took, 1e-9)))
        n *= 2


def interleave(runs, rounds, seconds, threads=1):
    """Time `runs`, a dict of name and function f(n) that does its work n times, one after the other, `rounds` times
    over; each round starts with another one. A sample lasts about `seconds`, after half as much untimed. Returns a
    dict of name and the samples in seconds for one piece of work (samples of the same round belong together), and the
    share of rounds that were undisturbed.

    With one thread, a round in which somebody else had our processor is taken again, up to three times as many rounds
    in all; then the least disturbed are kept."""
    counts = {name: calibrate(run, seconds) for name, run in runs.items()}
    taken, names = [], list(runs)
    gc.collect()
    gc.freeze()  # what stands since the imports is nobody's garbage
    try:
        for i in range(3 * rounds):
            k = i % len(names)
            samples, had = {}, 1.0
            for name in names[k:] + names[:k]:
                n, run = counts[name], runs[name]
                run((n + 1) // 2)  # untimed: what ran before has left the caches cold, PyTorch by up to 1.6x
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
    """Processor seconds that the whole machine has worked since it started; None where the system does not say."""
    path = Path("/proc/stat")
    if not path.exists():
        return None
    user, nice, system, _, _, irq, soft, steal = map(int, path.read_text().split("\n", 1)[0].split()[1:9])
    return (user + nice + system + irq + soft + steal) / os.sysconf("SC_CLK_TCK")


class Others:
    """A scope that says how many processors others than this process used while it was open: `.processors`, a float, or
    None where it cannot be known."""

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
    """Whether others who use so many processors leave enough for `threads` threads."""
    return processors is None or processors <= os.cpu_count() - threads + SPARE


def wait_for_quiet(threads, deadline):
    """Wait until others leave the processors that `threads` threads need, or until `deadline` on the performance
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
    """above / below, sample by sample, where below is not zero: both were taken in the same rounds."""
    return [a / b for a, b in zip(above, below, strict=True) if b > 0]


def repeat(step):
    """A function f(n) that calls `step()` n times."""

    def run(n):
        for _ in range(n):
            step()

    return run
