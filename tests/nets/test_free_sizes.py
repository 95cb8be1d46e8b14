"""Sizes of captured nets that are free: one that was captured with a batch of 4 runs with others."""

import numpy as np
import pytest

import cygrad as cg
from cygrad import nn
from cygrad.graph import Net, Workspace, load


class Steps(nn.Module):
    """The last step of two recurrent layers."""

    def __init__(self, layer):
        self.first, self.second = layer(3, 5, num_layers=2, bidirectional=True), nn.GRU(10, 4)
        self.head = nn.Linear(4, 2)

    def forward(self, x):
        return self.head(self.second(self.first(x)[0])[0][-1])


class Cells(nn.Module):
    """An LSTM of cells."""

    def __init__(self): self.cell, self.head = nn.LSTMCell(3, 5), nn.Linear(5, 2)

    def forward(self, x):
        state = None
        for k in range(x.shape[1]): state = self.cell(x[:, k], state)
        return self.head(state[0]), state[1]


class Attending(nn.Module):
    """Attention between an embedding and a head, without the last step."""

    def __init__(self):
        self.embedding, self.head = nn.Embedding(11, 8), nn.Linear(8, 3)
        self.block = nn.TransformerBlock(8, 2, 16, batch_first=True)
        self.place = nn.Parameter(cg.random.normal((6, 8)))

    def forward(self, tokens):
        return self.head(self.block(self.embedding(tokens) + self.place))[:, :-1]


class Vector(nn.Module):
    """A product with a vector, parts of whole axes, and a shape with -1."""

    def __init__(self): self.w = nn.Parameter(cg.random.normal((3,)))

    def forward(self, x):
        y = x.reshape(-1, 2, 3)
        return y @ self.w, y[..., ::-1], y[:, 1], y[1:, None], cg.concat([y[:-1], y[1:]], 1)


def convolutions():
    return nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                         nn.Dropout(0.5), nn.Linear(16, 3))


MODELS = {                                          # the module, and an example of a batch
    "mlp": (lambda: nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 2)), lambda n: np.ones((n, 6), "f4")),
    "convolutions": (convolutions, lambda n: np.arange(n * 36, dtype="f4").reshape(n, 1, 6, 6) / 36),
    "lstm": (lambda: Steps(nn.LSTM), lambda n: np.linspace(-1, 1, 4 * n * 3, dtype="f4").reshape(4, n, 3)),
    "rnn": (lambda: Steps(nn.RNN), lambda n: np.linspace(-1, 1, 4 * n * 3, dtype="f4").reshape(4, n, 3)),
    "cells": (Cells, lambda n: np.linspace(-1, 1, n * 4 * 3, dtype="f4").reshape(n, 4, 3)),
    "attention": (Attending, lambda n: np.arange(n * 6).reshape(n, 6) % 11),
    "vector": (Vector, lambda n: np.arange(n * 6, dtype="f4").reshape(n, 6)),
}


def bits(ys):
    return [(y.shape, str(y.dtype), y.detach().numpy().tobytes()) for y in (ys if isinstance(ys, tuple) else (ys,))]


@pytest.mark.parametrize("name", MODELS)
def test_a_loaded_net_gives_the_bits_of_the_module_for_every_batch(tmp_path, name):
    make, example = MODELS[name]
    cg.random.seed(3)
    model = make()
    model.eval()
    Net.capture(model, example(4)).save(tmp_path / "net.cg", weights=True)
    net = load(tmp_path / "net.cg")
    assert not net.bindings and len(net.inputs) == 1
    states = {key: x.detach().numpy().tobytes() for key, x in model.state_dict().items()}
    held = {key: x.numpy().tobytes() for key, x in net.constants.items() if isinstance(x, cg.Tensor) and key in states}
    assert held.keys() >= {key for key, _ in model.named_parameters()}
    assert all(states[key] == held[key] for key in held)
    for n in (4, 7, 2, 4):
        assert bits(net(example(n))) == bits(model(cg.tensor(example(n))))
        assert net.plan({net.inputs[0]: example(n)}).peak_bytes > 0


def test_rows_stay_rows(tmp_path):
    """flatten is captured as a reshape that keeps rows: an image of twice the size is not two images."""
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 10)).eval()
    net = Net.capture(model, ((1, 8, 8), "float32"))
    net.save(tmp_path / "net.cg")
    for captured in (net, load(tmp_path / "net.cg")):
        given = {} if captured is net else {"1.weight": model[1].weight, "1.bias": model[1].bias}
        assert captured(x=np.zeros((3, 8, 8), "float32"), **given).shape == (3, 10)
        with pytest.raises(ValueError, match="^reshape: a tensor of shape .4, 16, 8. does not fit .8, 64. row by row"):
            captured(x=np.zeros((4, 16, 8), "float32"), **given)


def test_captured_nets_are_as_before_in_a_workspace():
    model = nn.LSTM(3, 5)
    x = np.linspace(-1, 1, 24, dtype="f4").reshape(4, 2, 3)
    net, workspace = Net.capture(model, x), Workspace()
    workspace.feed("input" if "input" in net.inputs else net.inputs[0], x)
    workspace.run(net)
    y, (h, c) = model(cg.tensor(x))
    assert bits(tuple(workspace.fetch(name) for name in net.outputs)) == bits((y, h, c))
