"""The nets of rows F, G and L: each is written once and trained by cygrad and by PyTorch from the same arrays."""

from dataclasses import dataclass

import numpy as np

from benchmarks.parts import Trainer
from benchmarks.work import LAYERS


@dataclass(frozen=True)
class Net:
    """A loss with parameters and a solver, "sgd" or "adam". The subclasses have `arrays()`, the initial parameters,
    `data()`, a batch and its target, and for each library a function `<library>_loss(parameters)`, which returns a
    function of the batch and the target. `sparse`: the parameters have row-sparse gradients."""

    solver: str
    lr: float
    sparse: bool = False

    def cygrad(self, fresh_gradients=False):
        """cygrad's. fresh_gradients: set every .grad to None before a step instead of overwriting it."""
        import cygrad as cg

        stype = "row_sparse" if self.sparse else None
        parameters = [cg.tensor(a).attach_grad(stype=stype) for a in self.arrays()]
        solver = cg.optim.Sgd(self.lr) if self.solver == "sgd" else cg.optim.Adam(self.lr)
        solver.set_parameters(parameters)
        loss_of = self.cygrad_loss(parameters)

        def step(x, target):
            if fresh_gradients:
                for p in parameters: p.grad = None
            with cg.record(): loss = loss_of(x, target)
            loss.backward()
            solver.update()
            return loss

        return Trainer(step, cg.tensor, lambda loss: loss.item())

    def torch(self, **options):
        """PyTorch's. `options` are those of its optimizer (foreach, fused)."""
        import torch

        parameters = [torch.nn.Parameter(torch.from_numpy(a)) for a in self.arrays()]
        make = torch.optim.SGD if self.solver == "sgd" else torch.optim.Adam
        optimizer = make(parameters, lr=self.lr, **options)
        loss_of = self.torch_loss(parameters)

        def step(x, target):
            optimizer.zero_grad()
            loss = loss_of(x, target)
            loss.backward()
            optimizer.step()
            return loss

        return Trainer(step, torch.tensor, lambda loss: loss.item())

    def trainers(self, libraries, variants=()):
        """By peer, a function that makes a new trainer: for both libraries, for cygrad's layers, and for PyTorch's
        `variants` (name, options)."""
        made = {}
        if "cygrad" in libraries:
            from benchmarks.layers import layers_trainer

            made["cygrad"] = self.cygrad
            made[LAYERS] = lambda: layers_trainer(self)
        if "PyTorch" in libraries:
            made["PyTorch"] = self.torch
            for name, options in variants:
                made[f"PyTorch {name}"] = lambda options=options: self.torch(**options)
        return made

    def parameter_bytes(self):
        return sum(a.nbytes for a in self.arrays())


def uniform(rng, shape, bound):
    return rng.uniform(-bound, bound, shape).astype(np.float32)
