"""Evaluator: means over batches and processes, modes, callbacks."""

import numpy as np
import pytest

import cygrad as cg
from cygrad import nn
from cygrad.data import DataLoader
from cygrad.graph import Net
from cygrad.trainers import Evaluator


def test_the_mean_over_the_batches():
    calls = []
    batches = iter([1.0, 2.0, 6.0])
    evaluator = Evaluator(lambda x: x * 2, batches.__next__, 3, lambda i, v: calls.append(("start", i, v)),
                          lambda i, v: calls.append(("finish", i, v)))
    assert evaluator.evaluate(7) == 6 and calls == [("start", 7, 0.0), ("finish", 7, 6.0)]
    assert evaluator.values == {"value": 6.0}


def test_several_roots_see_the_same_batches():
    def first(x, y): return (x * y).sum()

    def second(x, y): return x

    loader = DataLoader((np.arange(6.0).reshape(3, 2), np.ones((3, 2))), 1)
    means = []
    evaluator = Evaluator([first, second], loader.next, callback_on_finish=[lambda i, v: means.append(v)] * 2)
    assert evaluator.val_iter == 3
    loss, mean = evaluator.evaluate(0)
    assert loss == 5 and mean.tolist() == [[2, 3]] and means[0] == 5 and means[1].tolist() == [[2, 3]]
    assert [*evaluator.values] == ["first", "second"]
    assert repr(evaluator) == "<Evaluator: roots=['first', 'second'], val_iter=3>"


def test_it_runs_in_predict_mode_without_a_graph():
    w, seen = cg.ones(3).attach_grad(), []

    def root():
        seen.append((cg.is_recording(), cg.is_training(), (w * 2).requires_grad))
        return w.sum()

    with cg.record():
        Evaluator(root, None, 1).evaluate(0)
        assert cg.is_recording() and cg.is_training()
    assert seen == [(False, False, False)]


def test_flags_are_restored_after_an_exception():
    with pytest.raises(ZeroDivisionError): Evaluator(lambda: 1 / 0, None, 1).evaluate(0)
    assert not cg.is_recording() and not cg.is_training()


def test_a_blob_of_a_net():
    w = cg.tensor([1.0, 2.0]).attach_grad()
    net = Net.capture(lambda x: (w * x).sum(), cg.ones(2), names={"w": w})
    values = iter([np.array([1, 1], "f4"), np.array([3, 5], "f4")])
    assert Evaluator(net.head(), values.__next__, 2).evaluate(0) == (3 + 13) / 2


@pytest.mark.parametrize("layer", [lambda: nn.BatchNorm1d(2), lambda: nn.Dropout(0.5)], ids=["statistics", "dropout"])
def test_a_net_that_trains_is_refused(layer):
    """It wrote the running statistics, and dropped values."""
    x, layer, y = cg.tensor([[1.0, 2.0], [3.0, 5.0]]), layer(), nn.Linear(2, 1)
    with cg.record(): net = Net.capture(lambda x: y(layer(x)).mean(), x)
    kind = "move_running" if net.operators[0].type.startswith("batch_norm") else "dropout"
    with pytest.raises(ValueError, match=f"captured in train mode, in which {kind} acts as in training"):
        Evaluator(net.head(), lambda: x, 1)
    with cg.predict_mode(): net = Net.capture(lambda x: y(layer(x)).mean(), x)
    assert Evaluator(net.head(), lambda: x, 1).evaluate(0) == y(layer(x)).mean().item()
    with cg.record(): net = Net.capture(lambda x: y(x).mean(), x)           # (the same in both modes)
    assert Evaluator(net.head(), lambda: x, 1).evaluate(0) == y(x).mean().item()


class Comm:
    """Another process, whose sums are 10 and whose batches are 3."""

    rank, size = 0, 2

    def all_reduce(self, arrays, division, inplace):
        assert not division
        for x, other in zip(arrays, (10.0, 3.0), strict=True): x += other


def test_the_mean_is_over_all_processes():
    assert Evaluator(lambda: 2.0, None, 1, comm=Comm()).evaluate(0) == (2 + 10) / 4


def test_names():
    def loss(): return 1.0

    assert Evaluator([loss, loss, lambda: 2.0], None, 1).names == ("loss", "loss_2", "value")
    assert Evaluator(loss, None, 1, names="error").names == ("error",)
