# Written by tools/make_stubs.py; do not edit.

from cygrad.autograd.function import Function as Function
from cygrad.autograd.function import FunctionContext as FunctionContext
from cygrad.autograd.scopes import GradientCollector as GradientCollector
from cygrad.autograd.passes import GradientEdge as GradientEdge
from cygrad.autograd.passes import backward as backward
from cygrad.autograd.recomputation import checkpoint as checkpoint
from cygrad.autograd.scopes import detect_anomaly as detect_anomaly
from cygrad.autograd.scopes import disable_saved_tensors_hooks as disable_saved_tensors_hooks
from cygrad.autograd.modes import enable_grad as enable_grad
from cygrad.autograd.passes import grad as grad
from cygrad.func.jacobians import hessian as hessian
from cygrad.autograd.modes import inference_mode as inference_mode
from cygrad.core.thread_state import is_recording as is_grad_enabled
from cygrad.core.thread_state import is_recording as is_recording
from cygrad.core.thread_state import is_training as is_training
from cygrad.func.jacobians import jacobian as jacobian
from cygrad.func.forward import jvp as jvp
from cygrad.autograd.variables import mark_variables as mark_variables
from cygrad.autograd.modes import no_grad as no_grad
from cygrad.autograd.modes import pause as pause
from cygrad.autograd.modes import predict_mode as predict_mode
from cygrad.autograd.modes import record as record
from cygrad.autograd.hooks import register_multi_grad_hook as register_multi_grad_hook
from cygrad.autograd.scopes import saved_tensors_hooks as saved_tensors_hooks
from cygrad.autograd.modes import set_grad_enabled as set_grad_enabled
from cygrad.core.thread_state import set_recording as set_recording
from cygrad.core.thread_state import set_training as set_training
from cygrad.autograd.variables import stop_gradient as stop_gradient
from cygrad.autograd.modes import train_mode as train_mode
from cygrad.func.derivatives import vjp as vjp
__all__ = ['Function', 'FunctionContext', 'GradientCollector', 'GradientEdge', 'backward', 'checkpoint', 'detect_anomaly', 'disable_saved_tensors_hooks', 'enable_grad', 'grad', 'hessian', 'inference_mode', 'is_grad_enabled', 'is_recording', 'is_training', 'jacobian', 'jvp', 'mark_variables', 'no_grad', 'pause', 'predict_mode', 'record', 'register_multi_grad_hook', 'saved_tensors_hooks', 'set_grad_enabled', 'set_recording', 'set_training', 'stop_gradient', 'train_mode', 'vjp']
