"""Classifier and Regressor: networks as estimators of scikit-learn, with fit, predict and score, for its pipelines,
grid searches and ensembles. They need scikit-learn 1.6 or newer: `pip install "cygrad[sklearn]"`."""

try:
    from sklearn.utils.validation import validate_data  # noqa: F401  1.6 is the first version that has it
except ImportError as error:
    raise ImportError("cygrad.estimators needs scikit-learn 1.6 or newer, which is not installed: pip install "
                      "\"cygrad[sklearn]\"") from error

from cygrad.estimators.classifier import Classifier
from cygrad.estimators.regressor import Regressor

__all__ = ["Classifier", "Regressor"]


def __dir__(): return __all__
