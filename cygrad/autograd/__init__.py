"""Scopes, variables, backward and grad."""

from cygrad.autograd.passes import GradientEdge, backward, grad
from cygrad.autograd.modes import enable_grad, no_grad, pause, predict_mode, record, train_mode
from cygrad.autograd.variables import mark_variables, stop_gradient
from cygrad.core.modes import is_recording, is_training, set_recording, set_training

__all__ = [
    "GradientEdge", "backward", "enable_grad", "grad", "is_recording", "is_training", "mark_variables", "no_grad",
    "pause", "predict_mode", "record", "set_recording", "set_training", "stop_gradient", "train_mode",
]
