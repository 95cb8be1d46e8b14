"""kill -9 at random moments of a training always leaves a checkpoint that can be loaded, and resuming gives the bits of
a training that was not killed."""

import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import cygrad as cg
from cygrad.trainers.checkpoints import found, read

PROGRAM = """
import sys
import numpy as np, cygrad as cg
from cygrad import nn
from cygrad.data import DataLoader
from cygrad.trainers import Trainer, Updater

folder, epochs = sys.argv[1], int(sys.argv[2])
cg.random.seed(0)
x = np.random.default_rng(0).normal(size=(64, 8)).astype("f4")
model = nn.Sequential(nn.Linear(8, 64), nn.Dropout(0.2), nn.Linear(64, 8))
loader = DataLoader((x,), 8, shuffle=True)
solver = cg.optim.Adam(model.named_parameters(), lr=0.01)
trainer = Trainer(Updater(solver, lambda x: (model(x) - x).square().mean(), loader.next), None, folder, epochs,
                  state={"loader": loader}, progress=False)
try: trainer.train(resume=folder)
except FileNotFoundError: trainer.train()
"""


def run(folder, epochs=10**6): return subprocess.Popen([sys.executable, "-c", PROGRAM, str(folder), str(epochs)])


def kill(folder, times, seed):
    """Train, and kill the process `times` times. The number of the last checkpoint each time."""
    chance, last = random.Random(seed), []
    for _ in range(times):
        process = run(folder)
        limit = time.monotonic() + 60
        before = max(found(folder), default=-1) if folder.exists() else -1
        while not folder.exists() or max(found(folder), default=-1) <= before:      # (it trains)
            assert process.poll() is None and time.monotonic() < limit
            time.sleep(0.01)
        time.sleep(chance.random() * 0.05)
        process.send_signal(signal.SIGKILL)
        process.wait()
        state = read(folder)
        assert state["trainer"]["iteration"] == max(found(folder)) + 1
        assert all(np.isfinite(x.numpy()).all() for x in state["parameters"].values())
        last.append(max(found(folder)))
    return last


def check(folder, times, seed):
    last = kill(folder, times, seed)
    assert last == sorted(last) and len({*last}) == times
    epochs = (last[-1] + 1) // 8 + 1
    assert run(folder, epochs).wait() == 0
    assert run(folder.parent / "whole", epochs).wait() == 0
    ours, whole = (cg.load(path / f"params_{8 * epochs - 1:06}.safetensors")
                   for path in (folder, folder.parent / "whole"))
    for name, x in whole.items(): assert ours[name].numpy().tobytes() == x.numpy().tobytes()
    assert not [*folder.glob("*.tmp")]


def test_a_few_kills(tmp_path): check(tmp_path / "run", 5, 0)


@pytest.mark.slow
def test_two_hundred_kills(tmp_path): check(tmp_path / "run", 200, 1)
