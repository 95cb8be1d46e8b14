"""Layers, loaders, solvers and nets. The call of a module takes and gives what its forward does."""

from collections.abc import Iterator
from typing import Any, assert_type

import numpy as np
import numpy.typing as npt

import cygrad as cg
from cygrad import nn
from cygrad.data import DataLoader


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.hidden, self.last = nn.Linear(4, 8), nn.Linear(8, 3)

    def forward(self, x: cg.Tensor) -> cg.Tensor:
        return self.last(cg.relu(self.hidden(x)))


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(4, 8)

    def forward(self, x: cg.Tensor, name: str = "") -> tuple[cg.Tensor, str]:
        y, (h, c) = self.lstm(x)
        assert_type(y, cg.Tensor)
        assert_type(c, cg.Tensor)
        return h, name


images: npt.NDArray[np.float32] = np.ones((6, 4), "float32")
labels: npt.NDArray[np.int64] = np.zeros(6, "int64")
model, criterion = Model(), nn.CrossEntropyLoss()
solver = cg.optim.Adam(model.parameters(), lr=1e-3)
assert_type(solver.lr, float)
for x, t in DataLoader((images, labels), 3, shuffle=True, seed=0):
    assert_type(x, cg.Tensor)
    solver.zero_grad()
    with cg.record(): loss = criterion(model(x), t)
    assert_type(loss, cg.Tensor)
    loss.backward()
    solver.update()
assert_type(model(cg.ones((1, 4))), cg.Tensor)
assert_type(nn.Linear(4, 2)(cg.ones((1, 4))), cg.Tensor)
assert_type(Encoder()(cg.ones((2, 1, 4)), name="h"), tuple[cg.Tensor, str])

assert_type(DataLoader(images), DataLoader[cg.Tensor])
assert_type(iter(DataLoader(images)), Iterator[cg.Tensor])
assert_type(DataLoader({"x": images, "t": labels}, 2).next(), dict[str, cg.Tensor])


def padded(samples: list[Any]) -> tuple[cg.Tensor, int]:
    return cg.ones((len(samples), 2)), len(samples)


assert_type(DataLoader([[1], [2, 3]], 2, collate=padded).next(), tuple[cg.Tensor, int])

net = cg.graph.Net.capture(lambda y: cg.exp(y).sum(), ((3,), "float32"))
assert_type(net, cg.graph.Net)
assert_type(net.plan(), cg.graph.Plan)
assert_type(net.plan().peak_bytes, int)
assert_type(cg.func.grad(lambda y: (y * y).sum())(cg.ones(3)), Any)
