"""What Classifier and Regressor share: parameters, reading data, training and computing outputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

import cygrad as cg
from cygrad.estimators.networks import drawing, make_network, make_solver
from cygrad.estimators.training import Training, held_out_rows, settings_of, undone_on_error, weighted
from cygrad.nn import Module
from cygrad.optim import Solver

FLOATING: Any = (np.float64, np.float32)            # inputs of another dtype become float64
ROWS = 4096                                         # that predict computes at a time, which bounds its memory


@contextmanager
def learning(estimator):
    """The scope of fit and partial_fit: nothing is recorded, and after an exception the estimator is as before."""
    before = dict(vars(estimator))
    try:
        with cg.pause(): yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise


class NetworkEstimator(BaseEstimator):
    """The base of Classifier and Regressor. A subclass has `_loss`, a function of (outputs, target, weight)."""

    _loss: Any

    def __init__(
        self, *, network: Sequence[int] | Callable[[int, int], Module] = (100,),
        activation: str | type[Module] = "relu", solver: str | Callable[..., Solver] = "Adam",
        learning_rate: float | None = None, weight_decay: float | None = None, batch_size: int = 200,
        max_epochs: int = 200, tolerance: float | None = 1e-4, patience: int = 10, early_stopping: bool = False,
        validation_fraction: float = 0.1, random_state: Any = None, verbose: bool = False,
    ):
        self.network, self.activation, self.solver = network, activation, solver
        self.learning_rate, self.weight_decay = learning_rate, weight_decay
        self.batch_size, self.max_epochs, self.tolerance, self.patience = batch_size, max_epochs, tolerance, patience
        self.early_stopping, self.validation_fraction = early_stopping, validation_fraction
        self.random_state, self.verbose = random_state, verbose

    def _read(self, X, y, sample_weight, first, **checks):
        """Checked (X, y, weights); weights are float64, or None."""
        dtype = FLOATING if first else self._dtype
        X, y = validate_data(self, X, y, reset=first, dtype=dtype, **checks)
        if sample_weight is not None:
            if not np.any(np.asarray(sample_weight)):
                raise ValueError(f"{type(self).__name__}: sample_weight is zero for every row; at least one must be "
                                 f"greater than zero")
            sample_weight = _check_sample_weight(sample_weight, X, dtype=np.float64)
            if (sample_weight < 0).any():
                raise ValueError(f"{type(self).__name__}: sample_weight must not be negative; a row of weight 0 is "
                                 f"left out")
        return X, y, sample_weight

    def _start(self, X, n_outputs):
        """(network, solver, generator) of a new training."""
        seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
        generator = cg.random.Generator(int(seed))
        network = make_network(self, X, n_outputs, generator)
        return network, make_solver(self, network), generator

    def _train(self, X, target, weight, n_outputs):
        """fit: train a new network."""
        settings, data, rows = settings_of(self), weighted(X, target, weight), None
        network, solver, generator = self._start(X, n_outputs)
        if settings.fraction:
            kept, rows = held_out_rows(type(self).__name__, data.target, settings.fraction, generator)
            data, rows = data.take(kept), data.take(rows)
        training = Training(type(self).__name__, network, solver, self._loss, drawing(self, generator), settings,
                            generator)
        training.run(data, rows)
        self._dtype, self.network_, self._solver, self._generator = X.dtype, network, None, generator
        self.loss_curve_, self.validation_curve_ = training.losses, training.held_out
        self.n_iter_ = len(training.losses)

    def _train_more(self, X, target, weight, n_outputs):
        """partial_fit: train on each row once."""
        settings, first = settings_of(self), not hasattr(self, "network_")
        if first: network, solver, generator = self._start(X, n_outputs)
        else: network, solver, generator = self.network_, self._solver, self._generator
        if solver is None: solver = make_solver(self, network)
        training = Training(type(self).__name__, network, solver, self._loss, drawing(self, generator), settings,
                            generator)
        with nullcontext() if first else undone_on_error(network, solver, generator):
            loss = training.epoch(weighted(X, target, weight))
            training.finish()
        if settings.verbose: print(f"{type(self).__name__}: partial_fit, loss {loss:.6g}")
        self._dtype, self.network_, self._solver, self._generator = X.dtype, network, solver, generator
        self.loss_curve_ = [loss] if first else [*self.loss_curve_, loss]
        self.validation_curve_ = [] if first else self.validation_curve_
        self.n_iter_ = len(self.loss_curve_)

    def _outputs(self, X):
        """The outputs of the network, an array (n, n_outputs)."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=self._dtype)
        with cg.pause():
            parts = [self.network_(cg.asarray(np.ascontiguousarray(X[i:i + ROWS]))).numpy()
                     for i in range(0, len(X), ROWS)]
        return np.concatenate(parts)
