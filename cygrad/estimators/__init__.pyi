# Written by tools/make_stubs.py; do not edit.

from cygrad.estimators.classifier import Classifier as Classifier
from cygrad.estimators.regressor import Regressor as Regressor
__all__ = ['Classifier', 'Regressor']
