"""A Trainer with a DataLoader that reads ahead, and the memory of the process: python steady_trainer.py [STEPS]

Prints a line after some updates: their number, resident memory, live bytes."""

import sys

import numpy as np
from steady import resident

import cygrad as cg
from cygrad import nn
from cygrad.data import DataLoader
from cygrad.trainers import Evaluator, Trainer, Updater

EPOCHS = 20


def run(steps, say):
    x = np.random.default_rng(0).normal(size=(8 * steps // EPOCHS, 4)).astype("f4")
    model = nn.Sequential(nn.Linear(4, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 1))
    solver = cg.optim.Adam(model.parameters())
    data = DataLoader((x, x.sum(1, keepdims=True)), 8, shuffle=True, prefetch=2)
    schedule = cg.optim.CosineAnnealingLR(solver, steps)
    updater = Updater(solver, lambda x, t: cg.square(model(x) - t).mean(), data.next,
                      update_callback_on_finish=lambda i: schedule.step())
    evaluator = Evaluator(lambda: 0.0, val_iter=1,
                          callback_on_finish=lambda i, v: say(i + 1, resident(), cg.memory.stats()["live_bytes"]))
    Trainer(updater, evaluator, None, EPOCHS, progress=False, state={"data": data}).train()
    data.close()


if __name__ == "__main__":
    run(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000, lambda *figures: print(*figures, flush=True))
