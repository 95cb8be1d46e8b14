"""Scopes, variables, backward and grad."""

from importlib import import_module

import cygrad.bundles  # noqa: F401 (before anything compiled)
from cygrad.autograd.function import Function, FunctionContext
from cygrad.autograd.hooks import register_multi_grad_hook
from cygrad.autograd.passes import GradientEdge, backward, grad
from cygrad.autograd.recomputation import checkpoint
from cygrad.autograd.scopes import (
    GradientCollector, detect_anomaly, disable_saved_tensors_hooks, saved_tensors_hooks,
)
from cygrad.autograd.modes import (
    enable_grad, inference_mode, no_grad, pause, predict_mode, record, set_grad_enabled, train_mode,
)
from cygrad.autograd.variables import mark_variables, stop_gradient
from cygrad.core.answers import of_module
from cygrad.core.thread_state import is_recording, is_training, set_recording, set_training

is_grad_enabled = is_recording                      # PyTorch's name

__all__ = [
    "Function", "FunctionContext", "GradientCollector", "GradientEdge", "backward", "checkpoint", "detect_anomaly",
    "disable_saved_tensors_hooks", "enable_grad", "grad", "hessian", "inference_mode", "is_grad_enabled",
    "is_recording", "is_training", "jacobian", "jvp", "mark_variables", "no_grad", "pause", "predict_mode", "record",
    "register_multi_grad_hook", "saved_tensors_hooks", "set_grad_enabled", "set_recording", "set_training",
    "stop_gradient", "train_mode", "vjp",
]


def __getattr__(name):              # functions of cygrad.func, which is loaded at their first use
    if name not in ("hessian", "jacobian", "jvp", "vjp"):
        raise AttributeError(of_module(name, __name__))
    return getattr(import_module("cygrad.func"), name)


def __dir__(): return __all__
