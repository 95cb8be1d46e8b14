"""Networks as estimators of scikit-learn: Classifier and Regressor have fit, predict and score, and work in pipelines,
grid searches and ensembles. They need scikit-learn: pip install "cygrad[sklearn]"."""

try:
    from sklearn.utils.validation import validate_data as _             # which 1.6 is the first to have
except ImportError as error:
    raise ImportError("cygrad.estimators needs scikit-learn 1.6 or newer, which is not installed: pip install "
                      "\"cygrad[sklearn]\"") from error

from cygrad.estimators.classifier import Classifier
from cygrad.estimators.regressor import Regressor

__all__ = ["Classifier", "Regressor"]
