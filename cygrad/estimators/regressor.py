"""Regressor: a network that predicts numbers, as an estimator of scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import RegressorMixin

import cygrad as cg
from cygrad.estimators.base import NetworkEstimator, learning


def squared_error(outputs, target, weight):
    """mean(weight * mean over outputs of (output - target)^2)"""
    errors = cg.square(outputs - target).mean(axis=1)
    return errors.mean() if weight is None else (errors * weight).mean()


def standardization(y, weight):
    """Mean and standard deviation (n_outputs,) of the rows of `y` (n, n_outputs), in float64. The deviation of equal
    rows is 1."""
    y = y.astype("float64")
    mean = np.average(y, axis=0, weights=weight)
    d = np.abs(y - mean)
    largest = d.max(axis=0, where=True if weight is None else (weight > 0)[:, None], initial=0)
    varies = largest > 1e-12 * np.abs(mean)         # otherwise the differences are rounding errors
    largest[~varies] = 1
    scale = largest * np.sqrt(np.average(np.square(d / largest), axis=0, weights=weight))
    return mean, np.where(varies, scale, 1)


class Regressor(RegressorMixin, NetworkEstimator):
    """A network as a regressor of scikit-learn, of one or several outputs. It minimizes the mean squared error.

    The targets are standardized for the training: the network learns (y - mean) / deviation, where both are those of
    the rows of fit, or of the first partial_fit. So the losses are fractions of the variance, and their scale does not
    matter. predict returns the scale of y.

    The parameters are those of Classifier. A function as `network` gets (n_features, n_outputs), where n_outputs is 1
    for y (n,); its module turns (n, n_features) into (n, n_outputs). early_stopping holds out rows at random.

    After fit: network_ (the nn.Module, of standardized targets), loss_curve_ (the mean training loss of each epoch),
    validation_curve_ (the held-out loss of each epoch, if there is one), n_iter_ (the number of epochs), n_outputs_,
    n_features_in_, and feature_names_in_ for a DataFrame."""

    __init__ = NetworkEstimator.__init__
    _loss: Any = staticmethod(squared_error)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Regressor:
        """Train a new network on X (n, n_features) and targets y (n,) or (n, n_outputs). `sample_weight` (n,)
        multiplies the loss of each row; only the ratios count, and a row of weight 0 is left out. Returns the
        estimator. Raises ValueError or TypeError for data or parameters that cannot be used, ValueError if the loss
        becomes infinite or NaN."""
        with learning(self):
            X, y, weight = self._read(X, y, sample_weight, True, multi_output=True, y_numeric=True)
            target = self._standardized(X, y, weight, True)
            self._train(X, target, weight, self.n_outputs_)
        return self

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Regressor:
        """Train on each row once more, in batches. The first call makes the network; later calls continue with the
        solver's states, after fit with new ones. Returns the estimator. Raises as fit does, and ValueError for another
        number of outputs."""
        with learning(self):
            first = not hasattr(self, "network_")
            X, y, weight = self._read(X, y, sample_weight, first, multi_output=True, y_numeric=True)
            target = self._standardized(X, y, weight, first)
            self._train_more(X, target, weight, self.n_outputs_)
        return self

    def _standardized(self, X, y, weight, first):
        """The targets (n, n_outputs) of the network."""
        rows = y.reshape(len(y), -1)
        if first:
            self.n_outputs_, self._is_flat = rows.shape[1], y.ndim == 1
            self._mean, self._deviation = standardization(rows, weight)
        elif rows.shape[1] != self.n_outputs_:
            raise ValueError(f"Regressor: y has {rows.shape[1]} outputs, but the network was made for "
                             f"{self.n_outputs_}; fit makes a new one")
        return ((rows - self._mean) / self._deviation).astype(X.dtype)

    def predict(self, X: Any) -> np.ndarray[Any, Any]:
        """The targets of the rows: (n,) or (n, n_outputs), as the y of fit, in the dtype of the training."""
        y = (self._outputs(X) * self._deviation + self._mean).astype(self._dtype)
        return y.ravel() if self._is_flat else y
