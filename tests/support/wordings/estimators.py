"""The wording of errors: the estimators for scikit-learn, which is imported when a case runs."""

import importlib
import sys

import numpy as np

import cygrad as cg

X = np.arange(12.0).reshape(4, 3)
LABELS = [0, 1, 0, 1]


def fit(weight=None, y=LABELS, **parameters):
    cg.estimators.Classifier(**parameters).fit(X, y, weight)


def fit_more(classes, y=LABELS, y_first=LABELS):
    c = cg.estimators.Classifier().partial_fit(X, y_first, classes=[0, 1])
    c.partial_fit(X, y, classes)


def other_outputs():
    cg.estimators.Regressor().partial_fit(X, LABELS).partial_fit(X, X[:, :2])


def diverge():
    cg.estimators.Regressor(network=(), solver="Sgd", learning_rate=1e3, tolerance=None).fit(X, LABELS)


def without_sklearn():
    ours = {name: sys.modules.pop(name) for name in list(sys.modules) if name.startswith("cygrad.estimators")}
    theirs = sys.modules.get("sklearn.utils.validation")
    sys.modules["sklearn.utils.validation"] = None
    try:
        importlib.import_module("cygrad.estimators")
    finally:
        del sys.modules["sklearn.utils.validation"]
        if theirs is not None: sys.modules["sklearn.utils.validation"] = theirs
        sys.modules.update(ours)
        if ours: cg.estimators = ours["cygrad.estimators"]


CASES = [
    (without_sklearn, ImportError,
     "cygrad.estimators needs scikit-learn 1.6 or newer, which is not installed: pip install \"cygrad[sklearn]\""),
    (lambda: fit(network=cg.nn.Tanh()), TypeError,
     "Classifier: network must be a function (n_features, n_outputs) that makes a network at each fit, got a network, "
     "a value of type cygrad.nn.activation.Tanh"),
    (lambda: fit(network=lambda n, k: None), TypeError,
     "Classifier: network(3, 2) must return an nn.Module, got None"),
    (lambda: fit(network=lambda n, k: cg.nn.Linear(n, 5)), ValueError,
     "Classifier: the network must turn (n, 3) into (n, 2); from (1, 3) it made a float64 tensor of shape (1, 5)"),
    (lambda: fit(network=100), TypeError,
     "Classifier: network must be a tuple of hidden sizes, such as (100,), or a function (n_features, n_outputs) that "
     "makes an nn.Module; got 100"),
    (lambda: fit(network=(8, 0)), ValueError,
     "Classifier: network[1] must be at least 1, got 0"),
    (lambda: fit(network=("8",)), TypeError,
     "Classifier: network[0] must be an integer, got '8'"),
    (lambda: fit(activation="swish"), ValueError,
     "Classifier: activation must be one of relu, tanh, sigmoid, gelu, silu, elu, leaky_relu, softplus, identity, or a "
     "class of modules such as nn.GELU; got 'swish'"),
    (lambda: fit(solver="lbfgs"), ValueError,
     "Classifier: solver must be one of AMSBound, AMSGRAD, AdaBelief, AdaBound, Adadelta, Adagrad, Adam, AdamW, "
     "Adamax, Ftrl, Lamb, Lars, Lion, Momentum, Nesterov, RMSprop, RMSpropGraves, Sgd, SgdW, or a class of solvers; "
     "got 'lbfgs'"),
    (lambda: fit(solver=None), TypeError,
     "Classifier: solver must be a name such as \"Adam\", a class of cygrad.optim, or a function of the parameters "
     "that makes a solver; got None"),
    (lambda: fit(network=lambda n, k: cg.nn.Linear(n, k).freeze()), ValueError,
     "Classifier: the network has no parameters to train: Linear"),
    (lambda: fit(solver=lambda parameters: parameters), TypeError,
     "Classifier: solver(parameters) must return a solver of cygrad.optim, got <*>"),
    (lambda: fit(learning_rate="0.1"), TypeError,
     "Classifier: learning_rate must be a number, got '0.1'"),
    (lambda: fit(weight_decay=-1), ValueError,
     "Classifier: weight_decay must be at least 0 and finite, got -1"),
    (lambda: fit(early_stopping="yes"), TypeError,
     "Classifier: early_stopping must be True or False, got 'yes'"),
    (lambda: fit(validation_fraction=1), ValueError,
     "Classifier: validation_fraction must be less than 1, got 1; it leaves no rows"),
    (lambda: fit(validation_fraction=0), ValueError,
     "Classifier: validation_fraction must be greater than 0 and at most 1, got 0"),
    (lambda: fit(batch_size=0), ValueError,
     "Classifier: batch_size must be at least 1, got 0"),
    (lambda: fit(max_epochs=2.5), TypeError,
     "Classifier: max_epochs must be an integer, got 2.5"),
    (lambda: fit(y=[0, 1, 2, 3], early_stopping=True), ValueError,
     "Classifier: early_stopping holds out rows, but 4 rows are too few: every class needs one to train on, and at "
     "least one must be left"),
    (diverge, ValueError,
     "Regressor: the loss of epoch <*> is not finite; scale the inputs, for example with a StandardScaler, or choose a "
     "smaller learning_rate"),
    (lambda: fit([1, 1, -1, 1]), ValueError,
     "Classifier: sample_weight must not be negative; a row of weight 0 is left out"),
    (lambda: cg.estimators.Regressor().fit(X, LABELS, [0, 0, 0, 0]), ValueError,
     "Regressor: sample_weight is zero for every row; at least one must be greater than zero"),
    (lambda: cg.estimators.Classifier().partial_fit(X, LABELS), ValueError,
     "Classifier: the first partial_fit needs classes, all labels that will come"),
    (lambda: fit_more([0, 1, 2]), ValueError,
     "Classifier: partial_fit has other classes, 3, than the 2 in classes_; leave them out after the first call"),
    (lambda: fit_more(None, [0, 1, 2, 0]), ValueError,
     "Classifier: y has labels that are not in classes_; the classes are those of fit, or of the first partial_fit"),
    (other_outputs, ValueError,
     "Regressor: y has 2 outputs, but the network was made for 1; fit makes a new one"),
]
