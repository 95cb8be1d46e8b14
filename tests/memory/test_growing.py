"""memory.profile.growth: what each step leaves to the next is found, with its line, and nothing else is."""

import subprocess
import sys
from pathlib import Path

import numpy as np

import cygrad as cg

FILE = Path(__file__)


def line(text):
    """The line of this file that contains a text, as in a report."""
    numbers = [i for i, s in enumerate(FILE.read_text().splitlines(), 1) if text in s]
    return f"tests/memory/{FILE.name}:{numbers[0]}"


class Training:
    """A step with a solver; `keep` gets its hidden values and its loss."""

    def __init__(self, keep=lambda h, loss: None):
        self.w, self.keep = cg.ones((32, 16)).attach_grad(), keep
        self.solver = cg.optim.Adam()
        self.solver.set_parameters([self.w])

    def __call__(self):
        with cg.record():
            h = cg.tanh(cg.linear(cg.ones((8, 16)), self.w))        # what is kept
            loss = cg.mean(cg.square(h))                            # the loss
        loss.backward()
        self.solver.update()
        self.keep(h, loss)


def grown(step, times=20):
    with cg.memory.profile() as p:
        for _ in range(times): step()
    return p.growth()


def test_a_step_that_leaves_nothing():
    assert grown(Training()) == []
    w = cg.ones((16, 16)).requires_grad_()          # whose gradients are added up

    def step():
        with cg.record(): loss = cg.square(w).sum()
        loss.backward()

    assert grown(step) == []


def test_values_in_a_list():
    kept = []
    found, = grown(Training(lambda h, loss: kept.append(h.detach())))
    assert found[:4] == (8 * 32 * 4, "tanh", line("# what is kept"), "in use, or held by the program")
    assert (found.buffers, found.total) == (18, 18 * 8 * 32 * 4)    # (all but the first and the last)
    assert found.text == (f"1,024 bytes more after each step: tanh at {found.line}, in use, or held by the "
                          f"program; 18 buffers, 18 KiB (18,432 bytes), so far")
    assert str(found).replace("\n   ", "") == found.text and max(map(len, str(found).splitlines())) <= 120


def test_graphs_that_losses_hold():
    """A loss that was not differentiated holds what its graph saves; the reasons say so."""
    losses, w = [], cg.ones((32, 16)).attach_grad()

    def step():
        x = cg.ones((8, 16))
        with cg.record(): losses.append(cg.mean(cg.square(cg.tanh(cg.linear(x, w)))))
        with cg.record(): (w * 2.0).sum().backward()

    found = {g.operation: g for g in grown(step)}
    assert found["tanh"].bytes == 8 * 32 * 4 and found["mean"].bytes == 4
    assert "square needs its input" in found["tanh"].why and "tanh needs its output" in found["tanh"].why
    assert found["tensor"].why == "linear needs its first input"


def test_a_program_without_backward():
    losses = []
    w = cg.ones((32, 16)).attach_grad()

    def step():
        x = cg.ones((8, 16))
        with cg.record(): losses.append(cg.tanh(cg.linear(x, w)))

    assert {g.operation for g in grown(step)} == {"tensor", "tanh"}


def test_what_is_constant_is_no_growth():
    """The last five, a cache that is filled in the first steps, and one value of every third step are held."""
    recent, cache, some = [], {}, []

    def keep(h, loss):
        recent.append(h.detach())
        del recent[:-5]
        if len(cache) < 3: cache[len(cache)] = loss.detach()
        some.append(0)
        if len(some) % 5 == 0: some[-1] = cg.ones(3)

    assert grown(Training(keep)) == []
    assert len(recent) == 5 and len(cache) == 3


def test_varying_sizes_are_summed_by_line():
    kept, rng = [], np.random.default_rng(0)
    found, = grown(Training(lambda h, loss: kept.append(cg.ones(int(rng.integers(100, 200))))))     # of varying size
    assert found.operation == "tensor" and found.line == line("# of varying size")
    assert 400 <= found.bytes <= 800 and found.buffers == 18


def test_few_steps_and_a_folded_log():
    kept = []
    step = Training(lambda h, loss: kept.append(h.detach()))
    assert grown(step, 3) == [] and grown(step, 4)
    from cygrad.memory import profiling

    most, profiling.MOST_EVENTS = profiling.MOST_EVENTS, 256
    try:
        with cg.memory.profile() as p:
            for _ in range(60): step()
    finally:
        profiling.MOST_EVENTS = most
    assert p._log.dropped
    found, = p.growth()
    assert found.bytes == 8 * 32 * 4 and found.line == line("# what is kept")


def test_on_the_page_and_the_command_line(tmp_path):
    kept = []
    with cg.memory.profile() as p:
        for _ in range(5): Training(lambda h, loss: kept.append(h.detach()))()
    p.save(tmp_path / "p.html")
    assert "What each step leaves to the next" in (tmp_path / "p.html").read_text()
    script = tmp_path / "leaks.py"
    script.write_text("import cygrad as cg\nkept, w = [], cg.ones(100).attach_grad()\nfor _ in range(6):\n"
                      "    with cg.record(): y = w * 2; z = y.sum()\n    z.backward()\n    kept.append(y.detach())\n")
    shown = subprocess.run([sys.executable, "-m", "cygrad", "profile", script], capture_output=True, text=True,
                           check=True).stdout.split()
    shown = " ".join(shown)
    assert "400 bytes more after each step: mul at " in shown and "leaks.py:4, in use, or held by the program" in shown
    with cg.memory.profile() as p: Training()()
    p.save(tmp_path / "p.html")
    assert "leaves to the next" not in (tmp_path / "p.html").read_text()
