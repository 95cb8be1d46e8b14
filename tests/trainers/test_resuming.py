"""Training that resumes from the end of any epoch equals training without a stop, bit for bit, however the updates are
made: batches read ahead or by workers, gradient accumulation, loss scaling, captured nets, several updaters."""

import numpy as np
import pytest

import cygrad as cg
from cygrad import nn
from cygrad.data import DataLoader
from cygrad.graph import Net
from cygrad.trainers import DynamicLossScalingUpdater, Evaluator, NaiveClassificationTrainer, Trainer, Updater

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
    evaluator = Evaluator(loss, DataLoader((X, T), 8, shuffle=True, seed=5).next, 2, names=["valid"])
    trainer = Trainer(updaters, evaluator, folder, epochs, len(data), keep=None, progress=False,
                      update_callback_on_finish=lambda i: schedule.step(),
                      state={"model": model, "schedule": schedule})

    columns = ("valid", "loss", "loss_2")[:len(updaters) + 1]

    def bits():
        tensors = {**model.state_dict(), **{f"{name}.{key}": x for name, s in solver.get_states().items()
                                            for key, x in s.pstate.items()}}
        return ({name: x.numpy().tobytes() for name, x in tensors.items()}, solver.learning_rate(),
                cg.random.default_generator.state, [trainer.history[name] for name in columns],
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


@pytest.mark.parametrize("more", [{}, {"state": {"tdata": None}}, {"state": {}}], ids=("none", "own", "empty"))
def test_naive(tmp_path, more):
    def made(epochs):
        cg.random.seed(0)
        model = nn.Linear(4, 2)
        data, valid = (DataLoader((X, T), 8, shuffle=True, seed=k) for k in (1, 2))
        options = {"state": dict.fromkeys(more["state"], data)} if more else {}
        return model, NaiveClassificationTrainer(
            cg.optim.Adam(model.named_parameters(), lr=0.02), tpred=model, tdata=data, vpred=model, vdata=valid,
            model_save_path=tmp_path, max_epoch=epochs, iter_per_epoch=2, val_iter=1, progress=False, **options)

    whole, trainer = made(4)
    expected = trainer.train()["valid_loss"]
    made(2)[1].train()                              # (its checkpoints take the place of the later ones)
    assert sorted(p.name for p in tmp_path.glob("checkpoint*")) == [f"checkpoint_00000{i}.safetensors" for i in (1, 3)]
    again, trainer = made(4)
    assert trainer.train(resume=tmp_path)["valid_loss"] == expected
    assert all((a == b).all() for a, b in zip(again.parameters(), whole.parameters(), strict=True))


def test_loaders_are_saved_once():
    """A loader of two updaters, and one that `state` names, have one entry."""
    w = cg.tensor([1.0], requires_grad=True)
    train, valid, other = (DataLoader(X, 8) for _ in range(3))
    updaters = [Updater(cg.optim.Sgd([w]), lambda x: (w * x).sum(), train.next) for _ in range(2)]
    evaluators = [Evaluator(lambda x: 0.0, feeder) for feeder in (valid.next, train.next, other.next)]
    evaluators.append(Evaluator(lambda: 0.0, lambda: None, 1))
    trainer = Trainer(updaters, evaluators, state={"other": other})
    assert [*trainer._parts()["loaders"].values()] == [train, valid]
    assert trainer._saved()["loaders"] == {"0": train.state_dict(), "1": valid.state_dict()}
