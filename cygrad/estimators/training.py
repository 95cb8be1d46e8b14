"""The training loop of the estimators: epochs of batches, and when to stop."""

import math
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

import cygrad as cg
from cygrad.core.errors import described
from cygrad.optim.settings import count, number


class TrainingSettings(NamedTuple):
    """The checked parameters of a training. `fraction` is that of the rows that are held out, 0 for none."""

    batch_size: int
    max_epochs: int
    tolerance: float | None
    patience: int
    fraction: float
    verbose: bool


class Data(NamedTuple):
    """Rows of inputs (n, n_features), targets (n,) or (n, n_outputs), and weights (n,), whose mean is 1, or None."""

    x: Any
    target: Any
    weight: Any

    def take(self, rows):
        """Some of the rows, copied."""
        return Data(*(None if a is None else a[rows] for a in self))


def settings_of(estimator):
    """The TrainingSettings of an estimator. Raises TypeError or ValueError for parameters that cannot be used."""
    owner, e = type(estimator).__name__, estimator
    for name, value in (("early_stopping", e.early_stopping), ("verbose", e.verbose)):
        if not isinstance(value, (bool, int, np.bool_)):
            raise TypeError(f"{owner}: {name} must be True or False, got {described(value)}")
    fraction = number(owner, "validation_fraction", e.validation_fraction, above=0, high=1)
    if fraction == 1: raise ValueError(f"{owner}: validation_fraction must be less than 1, got 1; it leaves no rows")
    return TrainingSettings(
        count(owner, "batch_size", e.batch_size), count(owner, "max_epochs", e.max_epochs),
        None if e.tolerance is None else number(owner, "tolerance", e.tolerance),
        count(owner, "patience", e.patience), fraction if e.early_stopping else 0.0, bool(e.verbose))


def weighted(x, target, weight):
    """Data of the rows whose weight is not zero. Weights that are all equal are None."""
    if weight is not None:
        rows = np.flatnonzero(weight)
        x, target, weight = x[rows], target[rows], weight[rows]
        weight = None if (weight == weight[0]).all() else weight / weight.max()
        if weight is not None: weight = (weight / weight.mean()).astype(x.dtype)
    return Data(x, target, weight)


class Training:
    """Trains a network with a solver. `loss` is a function of (outputs, target, weight) that returns a number, `draws`
    makes the scope of a forward pass, and `owner` is the class that errors name."""

    def __init__(self, owner, network, solver, loss, draws, settings, generator):
        def compute(x, target, weight):
            with draws(): outputs = network(cg.asarray(x))
            return loss(outputs, cg.asarray(target), None if weight is None else cg.asarray(weight))

        self.owner, self.network, self.settings, self.generator = owner, network, settings, generator
        self.solver, self.compute = solver, compute
        self.losses, self.held_out = [], []         # one an epoch

    def epoch(self, data):
        """Train on each row once. Returns the mean loss. The sizes of batches differ by one at most, because a last
        batch of a single row has no variance for batch normalization. One batch of all rows is not shuffled: the order
        of a sum does not matter."""
        n = len(data.x)
        n_batches = -(-n // self.settings.batch_size)
        if n_batches == 1: batches = [data]
        else:
            order = self.generator.permutation(n).numpy()
            batches = (data.take(rows) for rows in np.array_split(order, n_batches))
        feed = iter(batches).__next__
        updater = cg.trainers.Updater(self.solver, self.compute, lambda: tuple(feed()))
        total = 0.0
        for i in range(n_batches):
            rows = n // n_batches + (i < n % n_batches)
            updater.update(i)
            total += updater.last_loss.item() * rows
        self.check(total)
        self.losses.append(total / n)
        return total / n

    def check(self, loss):
        """Raise ValueError for a loss that is not finite."""
        if math.isfinite(loss): return
        raise ValueError(f"{self.owner}: the loss of epoch {len(self.losses) + 1} is not finite; scale the inputs, for "
                         f"example with a StandardScaler, or choose a smaller learning_rate")

    def evaluate(self, data):
        """The mean loss of held-out rows, in predict mode."""
        total, rows = 0.0, self.settings.batch_size
        for i in range(0, len(data.x), rows):
            batch = data.take(slice(i, i + rows))
            total += self.compute(*batch).item() * len(batch.x)
        self.check(total)
        self.held_out.append(total / len(data.x))
        return total / len(data.x)

    def run(self, data, held_out=None):
        """Train until the loss stops falling or max_epochs are over. With held-out rows it is their loss that counts,
        and the network ends with the parameters and buffers of its best epoch."""
        best, kept, since = math.inf, None, 0
        for i in range(self.settings.max_epochs):
            loss = self.epoch(data)
            said = f"{self.owner}: epoch {i + 1}, loss {loss:.6g}"
            if held_out is not None:
                loss = self.evaluate(held_out)
                said += f", held-out loss {loss:.6g}"
                if loss < min(self.held_out[:-1], default=math.inf):
                    kept = {name: x.copy() for name, x in self.network.state_dict().items()}
            if self.settings.verbose: print(said)
            tolerance = self.settings.tolerance
            if tolerance is None: continue
            if loss < best - tolerance: best, since = loss, 0
            else: since += 1
            if since >= self.settings.patience: break
        if kept is not None: self.network.load_state_dict(kept)
        self.finish()

    def finish(self):
        """Free the gradients. Raises ValueError if a parameter is not finite."""
        self.network.zero_grad()
        for x in self.network.parameters():
            if not np.isfinite(x.detach().numpy()).all(): self.check(math.nan)


@contextmanager
def undone_on_error(network, solver, generator):
    """A scope in which a network trains: an exception restores its parameters and buffers, the states of the solver and
    the generator."""
    values = {name: x.copy() for name, x in network.state_dict().items()}
    states = {name: ({key: x.copy() for key, x in s.pstate.items()}, s.t) for name, s in solver.get_states().items()}
    state = generator.state
    try: yield
    except BaseException:
        network.zero_grad()
        network.load_state_dict(values)
        solver.set_states(states)
        generator.state = state
        raise


def held_out_rows(owner, target, fraction, generator):
    """Two arrays of row numbers: to train on, and to hold out. Of labels (n,), integers, each class keeps a row to
    train on, and the others are held out in proportion."""
    n = len(target)
    order = generator.permutation(n).numpy().copy()
    if target.dtype.kind in "iu":
        order = order[np.argsort(target[order], kind="stable")]
        first = np.unique(target[order], return_index=True)[1]
        free = np.delete(order, first)
    else: free = order[1:]
    m = min(max(1, round(fraction * n)), len(free))
    if not m:
        raise ValueError(f"{owner}: early_stopping holds out rows, but {n} rows are too few: every class needs one to "
                         f"train on, and at least one must be left")
    out = free[((np.arange(m) + 0.5) * len(free) / m).astype(np.intp)]
    return np.setdiff1d(np.arange(n), out), out
