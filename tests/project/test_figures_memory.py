"""The figures of chapters 14 to 19 and 29 that react say what cygrad computes. Run with the extras docs and test:
`make docs-test`."""

import contextlib
import importlib
import io
import json
import math
import random
import re
import subprocess
import sys
import threading
import timeit
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import cygrad as cg
from cygrad.comm import sums

ROOT = Path(__file__).resolve().parents[2]
WALKTHROUGH = ROOT / "docs" / "walkthrough"

pytestmark = pytest.mark.slow


def saved():
    return cg.memory.stats()["by_category"]["saved"]


# ---- chapter 14 ------------------------------------------------------------------------------------------------------

def test_the_report_has_the_peaks_of_the_chapter(figure, browser):
    """The categories at the peak of each step are those of the chapter's profiles p and q."""
    names = {"__name__": "document"}
    chapter = WALKTHROUGH.joinpath("14-reading-the-memory-report.md").read_text()
    with contextlib.redirect_stdout(io.StringIO()):
        for code in re.findall(r"^```python\n(.*?)^```$", chapter, re.M | re.S):
            if "q" not in names: exec(code, names)
    told = figure("report")
    for k, (step, name) in enumerate({"with the name h": "p", "without it": "q"}.items()):
        profile, rows = names[name], {}
        for row in profile.at_peak(): rows[row.category] = rows.get(row.category, 0) + row.bytes
        told(step=step)
        text = told(event=browser.run(f"steps[{k}].findIndex(event => sum(event) === peaks[{k}]) + 1"))
        assert f". {profile.peak_bytes:,} bytes are live: " in text and text.endswith("This is the peak of the step.")
        assert all(f"{nbytes:,} {category}" in text for category, nbytes in rows.items()), text
    profile = None
    names.clear()


# ---- chapter 15 ------------------------------------------------------------------------------------------------------

REQUESTS = """
import json, re, sys
import cygrad as cg

blocks, states = {}, []
for freed, name, size in re.findall(r"-(\\w)|(\\w)=(\\d+)", sys.argv[1]):
    if freed: del blocks[freed]
    else: blocks[name] = cg.empty(int(size) << 20, "uint8")
    stats = cg.memory.stats()
    at = {name: x.numpy().ctypes.data for name, x in blocks.items()}
    states.append([at, stats["live_bytes"], stats["live_bytes"] + stats["cached_bytes"]])
first = min(min(at.values(), default=1 << 60) for at, *_ in states)
json.dump([[{name: x - first for name, x in at.items()}, *counts] for at, *counts in states], sys.stdout)
"""


def requests(draws):
    """Requests of up to 30 MiB at once: small blocks, of which every second is freed, then larger ones, and again."""
    live, names, text = {}, iter("abcdefghijklmnopqrstuvwxyz"), []
    for sizes in ([2, 2, 3, 4], [5, 6, 7], [2, 3, 8]):
        while sum(live.values()) + (size := draws.choice(sizes)) <= 30 and (name := next(names, "")):
            live[name] = size
            text.append(f"{name}={size}")
        for name in list(live)[draws.randint(0, 1)::2]:
            del live[name]
            text.append(f"-{name}")
    return " ".join(text)


def test_the_arena_places_blocks_as_cygrad_does(figure, browser):
    """Each program in a new process, because what was live before bounds what is decommitted."""
    told, draws, purged = figure("arena"), random.Random(0), 0
    for text in browser.run("programs") + [requests(draws) for _ in range(40)]:
        result = subprocess.run([sys.executable, "-c", REQUESTS, text], capture_output=True, text=True, check=True)
        found = browser.run(f"""run({json.dumps(text)}).map(s => [Object.fromEntries(s.spans.filter(span => span.name)
                                .map(span => [span.name, 4096 * span.at])), s.live * 2 ** 20, s.held * 2 ** 20])""")
        assert found == json.loads(result.stdout), text
        purged += browser.run(f"run({json.dumps(text)}).some(s => s.has.indexOf(0) < s.has.lastIndexOf(1))")
    assert purged > 10                      # programs that took pages from free spans
    text = told(requests="a=3 b=2 -a c=2")
    assert text.startswith("Request 4 of 4 is c=2. Live 4 MiB, held 5.1 MiB.") and text.endswith(" would hold 7 MiB.")
    assert told(step=3).startswith("Request 3 of 4 is -a. Live 2 MiB, ")


# ---- chapter 16 ------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("width, blocks, sequences, steps", [(64, 1, 1, 32), (128, 2, 8, 64), (192, 3, 2, 288)])
def test_the_account_of_a_model_is_exact(figure, browser, monkeypatch, width, blocks, sequences, steps):
    """Parameters, gradients, states and saved bytes are those of a step of the model."""
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "figures"))
    model = importlib.import_module("model").Model(width=width, layers=blocks, length=steps)
    told = figure("model")
    told(width=width, blocks=blocks, steps=steps, sequences=int(math.log2(sequences)))
    for name in "Adam", "Momentum", "Sgd":
        solver = getattr(cg.optim, name)(model.parameters(), lr=0.1)
        with cg.record() as tape: scores = model(cg.zeros((sequences, steps), "int64"))
        counted = cg.memory.stats()["by_category"]
        found = browser.run(f"account({width}, {blocks}, {sequences}, {steps}, '{name}')")
        assert found == {"parameters": counted["parameters"], "optimizer": counted["optimizer"],
                         "gradients": counted["parameters"], "saved": tape.saved_bytes}
        assert (f" with {name}, and {sequences} sequence" in told(solver=name)
                and f" {counted['optimizer']:,} bytes of states, and forward saves {tape.saved_bytes:,} " in told())
        del tape, scores, solver


# ---- chapter 17 ------------------------------------------------------------------------------------------------------

def part_of_chain(count):
    """A function of this many steps of the chapter's chain."""
    def f(x):
        for _ in range(count): x = cg.sin(cg.exp(x * 0.1))
        return x
    return f


def alive(n, k):
    """The values that are saved when backward begins on a chain of n steps in checkpoint() of k, and the most later."""
    x, seen = cg.ones(100).attach_grad(), []
    with cg.record():
        y = x
        for at in range(0, n, k): y = cg.checkpoint(part_of_chain(min(k, n - at)), y)
    first = saved()
    with cg.memory.events(lambda event: seen.append(saved())): y.backward(cg.ones(100))
    return first // x.nbytes, max(seen) // x.nbytes


@pytest.mark.parametrize("n, k", [(60, 1), (60, 7), (60, 8), (60, 10), (60, 30), (16, 3), (100, 9), (100, 40)])
def test_checkpoints_keep_what_the_figure_says(figure, browser, n, k):
    first, most = alive(n, k)
    told = figure("segments")
    text = told(steps=n, distance=k)
    assert f"begins with {first} value" in text and f" at most {most} are alive at once" in text
    assert f": {first} {'is' if first == 1 else 'are'} alive." in text
    assert max(int(re.search(r"(\d+) (is|are) alive\.", told(moment=at))[1]) for at in range(1, n + 1)) == most


# ---- chapter 18 ------------------------------------------------------------------------------------------------------

def passes(x, f, n):
    """A chain of n calls of f, and its backward."""
    x.grad = None
    with cg.record():
        y = x
        for _ in range(n): y = f(y)
        z = y.sum()
        del y
    z.backward()


def sent(x, f, n, folder):
    """The bytes that a budget of 0.4 of the chain's memory writes, the calls that it repeats, and the seconds of f."""
    cg.memory.reset_peak()
    before = cg.memory.stats()["live_bytes"]
    passes(x, f, n)
    peak = cg.memory.stats()["peak_bytes"]
    with cg.memory.budget(before + int(0.4 * (peak - before)), offload=folder) as b: passes(x, f, n)
    times = timeit.repeat(lambda: f(x), number=1, repeat=20)
    return b.written_bytes, b.recomputed.calls, sorted(times)[10]


def test_a_budget_takes_the_way_of_the_figure(figure, tmp_path):
    """What is small and cheap is computed again, and what is large and dear is written."""
    told, w = figure("copying"), cg.random.normal((512, 512)) * 0.04
    for shape, f, n in (((1000,), part_of_chain(1), 60), ((512, 512), lambda y: cg.tanh(y @ w), 20)):
        x = cg.ones(shape).attach_grad()
        written, calls, seconds = sent(x, f, n, tmp_path)
        text = told(bytes=math.log2(x.nbytes), again=math.log10(seconds))
        assert bool(written) == ("writes it to the folder" in text) == (len(shape) == 2), (text, written)
        assert bool(calls) == ("computes it again" in text), (text, calls)


def test_the_price_of_a_copy_is_that_of_the_source(figure, browser):
    """cost() of spilling.pyx, whose constants are in the page."""
    source = ROOT.joinpath("cygrad", "memory", "spilling.pyx").read_text()
    assert "return 2 * ONE + nbytes * (self.reading_time() + writing)" in source
    assert "SHARE * self.job.seconds" in source
    figure("copying")
    for nbytes, speed, waiting in ((0, 1e9, 0), (1 << 20, 2e9, 0), (3 << 20, 5e8, 0.5)):
        each = (0.125 + waiting) / speed
        assert browser.run(f"cost({nbytes}, {speed}, {waiting})") == pytest.approx(2 * 50e-6 + nbytes * (each + each))


# ---- chapter 19 ------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("rule", ["Sgd", "Momentum", "Adam", "Lamb"])
def test_gradients_take_what_the_figure_says(figure, rule):
    """The peaks of backward with fused and with stored gradients, from the pool's own counter."""
    peaks = []
    for fuse in (True, False):
        weights = [cg.ones((768, 768)).attach_grad() for _ in range(4)]
        solver = getattr(cg.optim, rule)(1e-9)
        solver.set_parameters(weights)
        if fuse: solver.fuse_into_backward()
        with cg.record():
            h = cg.ones((1, 768))
            for w in weights: h = cg.linear(h, w)
            loss = h.sum()
        del h
        cg.memory.reset_peak()
        before = cg.memory.stats()["live_bytes"]
        loss.backward()
        peaks.append(cg.memory.stats()["peak_bytes"] - before)
    told = figure("fused")
    text = told(rule=rule, gradients="fused")
    assert f" The most in this pass is {peaks[0]:,} bytes, and {peaks[1]:,} bytes with" in text
    assert told(gradients="stored").endswith(f" The most in this pass is {peaks[1]:,} bytes.")


# ---- chapter 29 ------------------------------------------------------------------------------------------------------

class ThreadChannel:
    """A channel between ranks that are threads of this process. It counts the bytes that a rank sends in each round."""

    def __init__(self, rank, size, boxes, barrier):
        self.rank, self.size, self.boxes, self.barrier, self.sent = rank, size, boxes, barrier, []

    def swap(self, sent, received):
        self.boxes[self.rank] = [x.copy() for x in sent]
        self.sent.append(sum(x.nbytes for r, x in enumerate(sent) if r != self.rank))
        self.barrier.wait(20)
        for r in range(self.size):
            if r != self.rank: received[r][...] = self.boxes[r][self.rank]
        self.barrier.wait(20)


@pytest.mark.parametrize("n, m, result", [(2, 8, "sum"), (4, 8, "mean"), (5, 8, "sum"), (6, 2, "mean"), (3, 7, "sum")])
def test_ranks_exchange_what_the_figure_says(figure, browser, n, m, result):
    """cygrad's own all_reduce, on n ranks of which rank r has r + 1 everywhere."""
    boxes, barrier = [None] * n, threading.Barrier(n)

    def run(rank):
        channel = ThreadChannel(rank, n, boxes, barrier)
        pack = sums.pack_for(channel, m, np.dtype("float32"))
        sums.all_reduce(channel, np.full(m, rank + 1, "float32"), pack, divisor=n if result == "mean" else 1)
        return channel.sent, pack.out[:m].tolist()

    with ThreadPoolExecutor(n) as pool: ranks = list(pool.map(run, range(n)))
    told = figure("exchange")
    found = browser.run(f"exchange({n}, {m}, {json.dumps(result == 'mean')})")
    assert found["sent"] == [counts for counts, _ in ranks]
    assert all(values == [found["total"]] * m for _, values in ranks)
    text, whole = told(ranks=n, numbers=m, moment=3, result=result), [sum(counts) for counts, _ in ranks]
    listed = f"each rank sends {whole[0]}" if len({*whole}) == 1 else f"the ranks send {', '.join(map(str, whole))}"
    assert f"In both rounds {listed} bytes" in text and text.endswith(f"the {result} {found['total']:g} everywhere.")
