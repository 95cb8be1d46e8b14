"""Whole trainings with an Updater: the examples of nnabla, DJL and MXNet."""

import numpy as np
import pytest


import cygrad as cg
from cygrad.trainers import DynamicLossScalingUpdater, Evaluator, Trainer, Updater


@pytest.mark.parametrize("kind", [Updater, DynamicLossScalingUpdater])
def test_the_example_of_nnabla(kind):
    """The docstring's example, with what it got wrong put right: it passed the callback by position, into another
    point and under another name, and called update() without the iteration."""
    rng = np.random.default_rng(0)
    x, t = rng.normal(size=(64, 5)), rng.integers(0, 3, 64)
    x[np.arange(64), t] += 3
    w, b = cg.tensor(np.zeros((5, 3))).attach_grad(), cg.tensor(np.zeros(3)).attach_grad()
    solver, losses = cg.optim.Sgd(lr=0.5), []
    solver.set_parameters({"w": w, "b": b})

    def tdata_feeder():
        rows = rng.integers(0, 64, 16)
        return cg.tensor(x[rows]), cg.tensor(t[rows])

    def loss(x, t):
        return cg.cross_entropy(x @ w + b, t)

    def update_callback_on_finish(i):
        losses.append((i, updater.last_loss.item()))

    options = {"update_callback_on_finish": update_callback_on_finish} if kind is Updater else {}
    updater = kind(solver, loss, tdata_feeder, **options)
    if kind is Updater:
        with pytest.raises(TypeError, match="positional"): Updater(solver, loss, tdata_feeder, print)
        with pytest.raises(TypeError, match="'i'"): updater.update()
    for itr in range(100):
        updater.update(itr)
        if kind is not Updater: losses.append((itr, updater.last_loss.item()))
    assert [i for i, _ in losses] == list(range(100))
    assert losses[0][1] == pytest.approx(np.log(3)) and np.mean([v for _, v in losses[-10:]]) < 0.25
    assert np.mean(np.argmax(x @ w.numpy() + b.numpy(), 1) == t) > 0.9
    updater = None                                  # the callback refers to it: a cycle


def test_the_example_of_nnablas_trainer(tmp_path):
    """The example in the docstring of Trainer: feeders fill tensors that the graph reads, monitors are callbacks of the
    updater and of the evaluator."""
    rng = np.random.default_rng(0)
    x, t = rng.normal(size=(64, 5)), rng.integers(0, 3, 64)
    x[np.arange(64), t] += 3
    image, label = cg.zeros((16, 5), dtype="float64"), cg.zeros(16, dtype="int64")
    vimage, vlabel = cg.zeros((32, 5), dtype="float64"), cg.zeros(32, dtype="int64")
    w, b = cg.tensor(np.zeros((5, 3))).attach_grad(), cg.tensor(np.zeros(3)).attach_grad()
    solver = cg.optim.Adam()
    solver.set_parameters({"w": w, "b": b})
    solver.set_learning_rate(0.1)
    monitor_loss, monitor_verr = [], []

    def tdata_feeder():
        rows = rng.integers(0, 32, 16)
        image[...], label[...] = x[rows], t[rows]

    def vdata_feeder():
        vimage[...], vlabel[...] = x[32:], t[32:]
        return True                                 # (as nnabla's default feeders do)

    def loss(): return cg.cross_entropy(image @ w + b, label)

    def verror(): return ((vimage @ w + b).argmax(-1) != vlabel).astype("float64").mean()

    updater = Updater(solver, loss, data_feeder=tdata_feeder,
                      update_callback_on_finish=lambda i: monitor_loss.append((i, updater.last_loss.item())))
    evaluator = Evaluator(verror, data_feeder=vdata_feeder, val_iter=2,
                          callback_on_finish=lambda i, ve: monitor_verr.append((i, ve)))
    trainer = Trainer(updater, evaluator, tmp_path, max_epoch=3, iter_per_epoch=10, progress=False)
    trainer.train()
    assert [i for i, _ in monitor_loss] == list(range(30)) and [i for i, _ in monitor_verr] == [9, 19, 29]
    assert monitor_loss[0][1] == pytest.approx(np.log(3)) and monitor_verr[-1][1] <= 0.1
    saved = cg.load(tmp_path / "params_000029.safetensors")
    assert saved["w"].tolist() == w.tolist() and saved["b"].tolist() == b.tolist()
    trainer = updater = None                        # the callbacks refer to them: a cycle


@pytest.mark.parametrize("solver", [lambda: cg.optim.Sgd(lr=0.03), lambda: cg.optim.Adam(alpha=0.1)],
                         ids=["Sgd", "Adam"])
def test_the_linear_regression_of_djl(solver):
    """y = 2 x1 - 3.4 x2 + 4.2 with noise of 0.01, fitted from batches of 10 in three epochs."""
    generator = cg.random.Generator(42)
    truth = cg.tensor([2.0, -3.4])
    x = generator.normal((1000, 2))
    y = x @ truth + 4.2 + generator.normal((1000,)) * 0.01
    w, b = (generator.normal((2,)) * 0.01).attach_grad(), cg.zeros(()).attach_grad()
    solver = solver()
    solver.set_parameters({"w": w, "b": b})
    starts = iter([k for _ in range(3) for k in range(0, 1000, 10)])
    updater = Updater(solver, lambda x, y: ((x @ w + b - y) ** 2).mean() / 2,
                      lambda: (lambda k: (x[k:k + 10], y[k:k + 10]))(next(starts)))
    epochs = []
    for i in range(300):
        updater.update(i)
        if i % 100 == 99: epochs.append(((x @ w.detach() + b.detach() - y) ** 2).mean().item() / 2)
    with pytest.raises(StopIteration): updater.update(300)      # the feeder's own exception
    assert epochs[0] > epochs[-1] and epochs[-1] < 1e-3
    np.testing.assert_allclose(w.numpy(), [2, -3.4], atol=0.03)
    np.testing.assert_allclose(b.numpy(), 4.2, atol=0.03)


def test_the_trainer_of_mxnet():
    """test_trainer: x + 1 is differentiated, so x falls by the rate in each step; MXNet divides by the batch size."""
    x = cg.zeros(10).attach_grad()
    solver = cg.optim.Sgd(lr=1.0)
    solver.set_parameters({"x": x})
    updater = Updater(solver, lambda: x + 1)
    updater.update(0)
    assert x.tolist() == [-1] * 10
    solver.set_learning_rate(0.5)
    updater.update(1)
    assert x.tolist() == [-1.5] * 10 and solver.learning_rate() == 0.5


def test_a_stale_parameter_of_mxnet():
    """MXNet warned and stopped for a parameter that the backward did not reach, unless told to ignore it. Here it keeps
    its value, and one reached in only one of the passes is updated."""
    x, y, z = (cg.ones(2).attach_grad() for _ in range(3))
    solver = cg.optim.Adam(alpha=0.5)
    solver.set_parameters({"x": x, "y": y, "z": z})
    parts = iter([x, y, x, x])
    updater = Updater(solver, lambda p: (p * 2).sum(), parts.__next__, accum_grad=2)
    updater.update(0)
    moved = [v.tolist() for v in (x, y, z)]
    updater.update(1)
    assert moved[0] == moved[1] != moved[2] == z.tolist() == [1, 1]
    assert y.tolist() == moved[1] and x.tolist() < moved[0]     # Adam's states of y did not move it again


def test_clipping_between_the_reduction_and_the_update():
    """MXNet has allreduce_grads() and update() for this; here it is a callback."""
    w = cg.ones(4).attach_grad()
    solver = cg.optim.Sgd(lr=1.0)
    solver.set_parameters({"w": w})

    class Four:                                     # as if four processes had the same gradient
        def all_reduce(self, arrays, division=False, inplace=False):
            for a in arrays: a *= 4

    def average(i):
        w.grad *= 0.25

    def clip(i):
        w.grad[...] = cg.clip(w.grad, -0.5, 0.5)

    Updater(solver, lambda: (w * cg.tensor([0.1, 1.0, -3.0, 0.25])).sum(), comm=Four(), grads=[w],
            comm_callback_on_finish=(average, clip)).update(0)
    np.testing.assert_allclose(w.numpy(), [0.9, 0.5, 1.5, 0.75], 1e-6)


def test_two_networks_in_turn():
    """A generator against a critic: the solver of each moves its own parameters only, although each backward reaches
    both."""
    g, d = cg.tensor([0.5]).attach_grad(), cg.tensor([1.0]).attach_grad()
    solvers = {}
    for name, v in (("g", g), ("d", d)):
        solvers[name] = cg.optim.Sgd(lr=0.1)
        solvers[name].set_parameters({name: v})
    of_g = Updater(solvers["g"], lambda: (g * d - 2).square().sum(), accum_grad=2)
    of_d = Updater(solvers["d"], lambda: -(g * d).sum() + (d * d).sum())
    x, y = np.float32(0.5), np.float32(1.0)
    for i in range(10):
        of_g.update(i)
        x = x - np.float32(0.1) * 2 * (2 * (x * y - 2) * y)
        np.testing.assert_allclose([g.item(), d.item()], [x, y], 1e-5)
        of_d.update(i)
        y = y - np.float32(0.1) * (2 * y - x)
        np.testing.assert_allclose([g.item(), d.item()], [x, y], 1e-5)


def test_a_decay_of_a_failed_update_is_dropped():
    """A fused decay waits for the solver's update. zero_grad() drops it, as it drops what weight_decay() added to the
    gradients of other solvers."""
    results = []
    for fails in (True, False):
        w = cg.tensor([1.0, 2.0]).attach_grad()
        solver = cg.optim.AdamW(0.1)
        solver.set_parameters({"w": w})

        def decay(i, solver=solver):
            if i == 0:
                solver.weight_decay(0.5)
                raise KeyError(i)

        updater = Updater(solver, lambda w=w: (w * w).sum(), update_callback_on_start=decay)
        if fails:
            with pytest.raises(KeyError): updater.update(0)
        updater.update(1)
        results.append(w.tolist())
    assert results[0] == results[1]
