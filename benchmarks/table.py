"""Rows of a large table: an embedding of 200,000 rows of 64 numbers, 4,096 of them in a step, float32.

One step is embedding, the mean squared error of the rows, backward and the update of plain SGD. With a dense gradient,
backward and SGD go over the whole table. With a sparse one, they touch only the rows that were read: in cygrad by
attach_grad(stype="row_sparse"), in PyTorch by sparse=True. *cygrad dense* beside the sparse step is cygrad's dense step
in the same rounds. The learning rate is 1e-6 during timing. Before timing, five steps at 100 must give equal
losses."""

from dataclasses import dataclass, replace

import numpy as np

from benchmarks.models import losses, timed_steps
from benchmarks.nets import Net, uniform
from benchmarks.work import DENSE, Case

THREADS = None
LIBRARIES = ("cygrad", "PyTorch")


@dataclass(frozen=True)
class Table(Net):
    """The table's shape and the number of rows in a step."""

    rows: int = 200_000
    width: int = 64
    batch: int = 4096

    def arrays(self):
        return [uniform(np.random.default_rng(0), (self.rows, self.width), 1)]

    def data(self):
        """Indices, some of them repeated, and the targets of their rows."""
        rng = np.random.default_rng(1)
        return rng.integers(0, self.rows, self.batch), uniform(rng, (self.batch, self.width), 1)

    def cygrad_loss(self, parameters):
        import cygrad as cg

        table, = parameters
        return lambda x, target: cg.mse(cg.embedding(x, table), target)

    def torch_loss(self, parameters):
        from torch.nn import functional as F

        table, = parameters
        return lambda x, target: F.mse_loss(F.embedding(x, table, sparse=self.sparse), target)


NET = Table("sgd", 100.0)


def cases(libraries, quick, net=NET):
    """The step with a dense and with a sparse gradient."""
    x, target = net.data()
    made = []
    for name, sparse in (("step, dense gradient", False), ("step, sparse gradient", True)):
        checked, slow = replace(net, sparse=sparse), replace(net, sparse=sparse, lr=1e-6)
        runs = {peer: timed_steps(make, x, target) for peer, make in slow.trainers(libraries).items()}
        if sparse and "cygrad" in libraries:
            runs[DENSE] = timed_steps(replace(slow, sparse=False).cygrad, x, target)
        made.append(Case(name, "ms", runs, {peer: lambda make=make: losses(make, x, target)
                                            for peer, make in checked.trainers(libraries).items()}))
    return made
