"""A long short-term memory over sequences: hidden 128, 128 inputs, 100 steps, batch 32, float32, made-up data.

One step is forward, mean squared error of all states, backward and the update of plain SGD. *step*: cygrad's lstm and
PyTorch's nn.LSTM, which take the whole sequence. *step, cells*: a cell written in elementary operations, the same in
both libraries, called once for each of the 100 steps. The learning rate is 1e-6 during timing. Before timing, five
steps at 0.1 must give equal losses."""

from dataclasses import dataclass, replace

import numpy as np

from benchmarks.models import losses, timed_steps
from benchmarks.nets import Net, uniform
from benchmarks.parts import over_steps
from benchmarks.work import Case

THREADS = None
LIBRARIES = ("cygrad", "PyTorch")


@dataclass(frozen=True)
class Lstm(Net):
    """The sizes. cells: by one cell a step instead of the library's layer."""

    cells: bool = False
    width: int = 128
    hidden: int = 128
    steps: int = 100
    batch: int = 32

    def arrays(self):
        """The parameters of nn.LSTM in its order, as it initializes them: w_ih, w_hh, b_ih, b_hh, with gates i, f, g,
        o."""
        rng, n = np.random.default_rng(0), 4 * self.hidden
        return [uniform(rng, shape, self.hidden**-0.5)
                for shape in ((n, self.width), (n, self.hidden), (n,), (n,))]

    def data(self):
        """Inputs and targets, (steps, batch, width or hidden)."""
        rng = np.random.default_rng(1)
        return tuple(rng.normal(0, 1, (self.steps, self.batch, n)).astype(np.float32)
                     for n in (self.width, self.hidden))

    def cygrad_loss(self, parameters):
        import cygrad as cg

        def cells(x):
            h = c = cg.zeros((self.batch, self.hidden))
            return over_steps(cg, gates(cg.linear, lambda z: cg.split(z, 4, 1), parameters), x, h, c)

        def layer(x): return cg.lstm(x, parameters)[0]

        states = cells if self.cells else layer
        return lambda x, target: cg.mse(states(x), target)

    def torch_loss(self, parameters):
        import torch
        from torch.nn import functional as F

        def cells(x):
            h = c = torch.zeros((self.batch, self.hidden))
            return over_steps(torch, gates(F.linear, lambda z: torch.chunk(z, 4, 1), parameters), x, h, c)

        layer = torch.nn.LSTM(self.width, self.hidden, device="meta")
        names = [name for name, _ in layer.named_parameters()]
        layer.load_state_dict(dict(zip(names, parameters, strict=True)), assign=True)
        states = cells if self.cells else lambda x: layer(x)[0]
        return lambda x, target: F.mse_loss(states(x), target)


def gates(linear, split, parameters):
    """A function of an input and the state before that returns i, f, g and o before their activations."""
    w_ih, w_hh, b_ih, b_hh = parameters
    return lambda x, h: split(linear(x, w_ih, b_ih) + linear(h, w_hh, b_hh))


NET = Lstm("sgd", 0.1)


def cases(libraries, quick, net=NET):
    """The step of the layer and, if not quick, that of cells."""
    x, target = net.data()
    made = []
    for name, cells in (("step", False), ("step, cells", True))[: 1 if quick else 2]:
        checked, slow = replace(net, cells=cells), replace(net, cells=cells, lr=1e-6)
        made.append(Case(name, "ms", {peer: timed_steps(make, x, target)
                                      for peer, make in slow.trainers(libraries).items()},
                         {peer: lambda make=make: losses(make, x, target)
                          for peer, make in checked.trainers(libraries).items()}))
    return made
