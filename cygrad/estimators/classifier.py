"""Classifier: a network that predicts classes, as an estimator of scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets

import cygrad as cg
from cygrad.estimators.base import NetworkEstimator, learning


def cross_entropy(scores, labels, weight):
    """mean(weight * -log softmax(scores)[label])"""
    if weight is None: return cg.cross_entropy(scores, labels)
    return (cg.cross_entropy(scores, labels, reduction="none") * weight).mean()


class Classifier(ClassifierMixin, NetworkEstimator):
    """A network as a classifier of scikit-learn. It minimizes the cross-entropy of softmax(network(x)).

    network: the sizes of the hidden layers of an MLP, such as (100,), with `activation` between them; () is logistic
    regression. Or a function (n_features, n_outputs) that makes a new nn.Module at each fit; the module turns
    (n, n_features) into scores (n, n_outputs), one for each class. Layers may leave sizes to the first call.
    activation: relu, tanh, sigmoid, gelu, silu, elu, leaky_relu, softplus, identity, or a class of modules. It is for
    an MLP only.
    solver: the name of a class of cygrad.optim, the class, or a function such as
    functools.partial(cg.optim.Momentum, momentum=0.95). learning_rate, weight_decay: None for those of the solver.
    batch_size: the most rows of one update. Batches are shuffled, and of nearly equal sizes. max_epochs: the most
    passes over the rows. tolerance, patience: training stops after `patience` epochs in which the loss has not fallen
    by more than `tolerance` below its best; None for the tolerance trains for max_epochs.
    early_stopping: hold out `validation_fraction` of the rows, in proportion to the classes. Their loss then decides
    when to stop, and the network of the best epoch is kept.
    random_state: an int, a RandomState of NumPy or None. The same int gives the same network, whatever else draws
    random numbers; cygrad's default generator does not move. While a function as `network` makes a network, or the
    network runs in training, the default generator has the estimator's state, which other threads see.
    verbose: whether to print the loss of each epoch.

    Inputs of float32 are trained in float32, all others in float64. Scale them, for example with a StandardScaler in a
    pipeline. Nothing is recorded for the caller, even inside record(). If fit or partial_fit raises, the estimator is
    as it was.

    After fit: classes_ (n_classes,), network_ (the nn.Module), loss_curve_ (the mean training loss of each epoch),
    validation_curve_ (the held-out loss of each epoch, if there is one), n_iter_ (the number of epochs),
    n_features_in_, and feature_names_in_ for a DataFrame."""

    __init__ = NetworkEstimator.__init__
    _loss: Any = staticmethod(cross_entropy)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Classifier:
        """Train a new network on X (n, n_features) and labels y (n,) of any kind. `sample_weight` (n,) multiplies the
        loss of each row; only the ratios count, and a row of weight 0 is left out. Returns the estimator. Raises
        ValueError or TypeError for data or parameters that cannot be used, ValueError if the loss becomes infinite or
        NaN."""
        with learning(self):
            X, y, weight = self._read(X, y, sample_weight, True)
            check_classification_targets(y)
            self.classes_, labels = np.unique(y, return_inverse=True)
            self._train(X, labels, weight, len(self.classes_))
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Classifier:
        """Train on each row once more, in batches. The first call makes the network and needs `classes`, all labels
        that will come; later calls continue with the solver's states, after fit with new ones. Returns the estimator.
        Raises as fit does, and ValueError for labels that are not in classes_."""
        with learning(self):
            first = not hasattr(self, "network_")
            X, y, weight = self._read(X, y, sample_weight, first)
            check_classification_targets(y)
            if classes is None and first:
                raise ValueError("Classifier: the first partial_fit needs classes, all labels that will come")
            if classes is not None:
                classes = np.unique(np.asarray(classes))
                if first: self.classes_ = classes
                elif not np.array_equal(classes, self.classes_):
                    raise ValueError(f"Classifier: partial_fit has other classes, {len(classes)}, than the "
                                     f"{len(self.classes_)} in classes_; leave them out after the first call")
            if not np.isin(y, self.classes_).all():
                raise ValueError("Classifier: y has labels that are not in classes_; the classes are those of fit, or "
                                 "of the first partial_fit")
            self._train_more(X, np.searchsorted(self.classes_, y), weight, len(self.classes_))
        return self

    def decision_function(self, X: Any) -> np.ndarray[Any, Any]:
        """The scores of the classes, (n, n_classes). Of two classes, the score of the second less that of the first,
        (n,)."""
        scores = self._outputs(X)
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    def predict(self, X: Any) -> np.ndarray[Any, Any]:
        """The most probable class of each row, (n,), with the dtype of classes_."""
        best = self._outputs(X).argmax(axis=1)      # (raises NotFittedError where there are no classes_)
        return self.classes_[best]

    def predict_proba(self, X: Any) -> np.ndarray[Any, Any]:
        """The probabilities of the classes, (n, n_classes), in the order of classes_."""
        return np.exp(self.predict_log_proba(X))

    def predict_log_proba(self, X: Any) -> np.ndarray[Any, Any]:
        """The logarithms of the probabilities, (n, n_classes)."""
        scores = self._outputs(X)
        with cg.pause(): return cg.log_softmax(cg.asarray(scores), axis=1).numpy().copy()
