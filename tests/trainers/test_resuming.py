"""Training that resumes from the end of any epoch equals training without a stop, bit for bit, however the updates are
made: batches read ahead or by workers, gradient accumulation, loss scaling, captured nets, several updaters."""

import numpy as np
import pytest

import cygrad as cg
from cygrad import nn
from cygrad.data import DataLoader
from cygrad.graph import Net
from cygrad.trainers import DynamicLossScalingUpdater, Evaluator, Trainer, Updater

X = np.random.default_rng(0).normal(size=(24, 4)).astype("f4")
T = (X.sum(1) > 0).astype("i8")
EPOCHS = 4


def job(folder, epochs, loader=(), kind=Updater, captured=False, solver=cg.optim.Adam, twice=False, **options):
    """A Trainer, and a function that returns every bit of its training."""
    cg.random.seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.3), nn.Linear(8, 2))
    solver = solver(model.named_parameters(), lr=0.02)
    data = DataLoader((X, T), 8, shuffle=True, **dict(loader))
    schedule = cg.optim.ExponentialLR(solver, 0.9)

    def loss(x, t): return cg.cross_entropy(model(x), t)

    head = loss
    if captured:
        with cg.record(): head = Net.capture(loss, X[:8], T[:8]).head()
    updaters = [kind(solver, head, data.next, **options) for _ in range(2 if twice else 1)]
    evaluator = Evaluator(loss, DataLoader((X, T), 8).next)
    trainer = Trainer(updaters, evaluator, folder, epochs, len(data), keep=None, progress=False,
                      update_callback_on_finish=lambda i: schedule.step(),
                      state={"model": model, "data": data, "schedule": schedule})

    def bits():
        tensors = {**model.state_dict(), **{f"{name}.{key}": x for name, s in solver.get_states().items()
                                            for key, x in s.pstate.items()}}
        return ({name: x.numpy().tobytes() for name, x in tensors.items()}, solver.learning_rate(),
                cg.random.default_generator.state, [trainer.history[f"loss{k}"] for k in ("", "_2")[:len(updaters)]],
                [u.state_dict() for u in updaters if hasattr(u, "state_dict")])
    return trainer, bits, data


@pytest.mark.parametrize("options", [
    {"loader": {"prefetch": 2}}, {"loader": {"workers": 2}}, {"accum_grad": 3}, {"captured": True}, {"twice": True},
    {"kind": DynamicLossScalingUpdater, "N": 2}, {"solver": cg.optim.AMSGRAD}, {"solver": cg.optim.Lamb},
], ids=lambda options: "-".join(f"{k}" for k in options))
def test_from_any_epoch(tmp_path, options):
    whole, bits, data = job(tmp_path, EPOCHS, **options)
    whole.train()
    expected = bits()
    data.close()
    for epoch in range(1, EPOCHS):
        again, bits, data = job(None, EPOCHS, **options)
        cg.random.seed(1)
        again.train(resume=tmp_path / f"checkpoint_{3 * epoch - 1:06}.safetensors")
        assert bits() == expected and again.epoch == EPOCHS
        data.close()
