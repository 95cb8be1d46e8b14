# Written by tools/make_stubs.py; do not edit.
from typing import Any
import numpy as np

from cygrad.autograd.scopes import GradientCollector as GradientCollector
from cygrad.core.errors import GraphFreedError as GraphFreedError
from cygrad.core.errors import InplaceError as InplaceError
from cygrad.core.errors import MemoryLimitError as MemoryLimitError
from cygrad.core.errors import PrecisionWarning as PrecisionWarning
from cygrad.core.graph.tensor import Tensor as Tensor
from cygrad.ops.elementwise import abs as abs
from cygrad.ops.elementwise import abs as absolute
from cygrad.ops.functions import acos as acos
from cygrad.ops.functions import acosh as acosh
from cygrad.ops.elementwise import add as add
from cygrad.ops.reduce import all as all
from cygrad.ops.reduce import any as any
from cygrad.core.interop.creation import arange as arange
from cygrad.ops.functions import acos as arccos
from cygrad.ops.functions import acosh as arccosh
from cygrad.ops.functions import asin as arcsin
from cygrad.ops.functions import asinh as arcsinh
from cygrad.ops.functions import atan as arctan
from cygrad.ops.functions import atanh as arctanh
from cygrad.ops.minmax import argmax as argmax
from cygrad.ops.minmax import argmin as argmin
from cygrad.ops.sort import argsort as argsort
from cygrad.ops.index import argwhere as argwhere
from cygrad.core.interop.numpy import tensor as array
from cygrad.core.interop.numpy import asarray as as_tensor
from cygrad.core.interop.numpy import asarray as asarray
from cygrad.ops.functions import asin as asin
from cygrad.ops.functions import asinh as asinh
from cygrad.ops.shape import astype as astype
from cygrad.ops.functions import atan as atan
from cygrad.ops.functions import atanh as atanh
from cygrad import autograd as autograd
from cygrad.autograd.passes import backward as backward
from cygrad.ops.loss import bce_with_logits as bce_with_logits
from cygrad.ops.compare import bitwise_and as bitwise_and
from cygrad.ops.compare import bitwise_not as bitwise_not
from cygrad.ops.compare import bitwise_or as bitwise_or
from cygrad.ops.compare import bitwise_xor as bitwise_xor
from cygrad.ops.shape import broadcast_to as broadcast_to
from cygrad.ops.join import concat as cat
from cygrad.ops.elementwise import ceil as ceil
from cygrad.ops.compare import clip as clamp
from cygrad.ops.compare import clip as clip
from cygrad.ops.join import concat as concat
from cygrad.ops.join import concat as concatenate
from cygrad.ops.shape import copy as copy
from cygrad.ops.functions import cos as cos
from cygrad.ops.functions import cosh as cosh
from cygrad.ops.loss import cross_entropy as cross_entropy
from cygrad.ops.scan import cumsum as cumsum
from cygrad.ops.elementwise import div as div
from cygrad.ops.elementwise import div as divide
from cygrad.ops.random import dropout as dropout
from cygrad.ops.einsum import einsum as einsum
from cygrad.core.interop.creation import empty as empty
from cygrad.core.interop.creation import empty_like as empty_like
from cygrad.autograd.modes import enable_grad as enable_grad
from cygrad.ops.compare import equal as equal
from cygrad.ops.functions import erf as erf
from cygrad.ops.functions import exp as exp
from cygrad.ops.shape import expand_dims as expand_dims
from cygrad.ops.functions import expm1 as expm1
from cygrad.core.interop.creation import eye as eye
from cygrad.ops.shape import flatten as flatten
from cygrad.ops.shape import flip as flip
from cygrad.ops.elementwise import floor as floor
from cygrad.core.interop.dlpack import from_dlpack as from_dlpack
from cygrad.core.interop.numpy import asarray as from_numpy
from cygrad.core.interop.creation import full as full
from cygrad.core.interop.creation import full_like as full_like
from cygrad.ops.index import gather as gather
from cygrad.ops.functions import gelu as gelu
from cygrad.core.dtypes import get_default_dtype as get_default_dtype
from cygrad.kernels.threads import get_num_threads as get_num_threads
from cygrad.ops.compare import greater as greater
from cygrad.ops.compare import greater_equal as greater_equal
from cygrad.core.thread_state import is_recording as is_recording
from cygrad.core.thread_state import is_training as is_training
from cygrad.ops.compare import isfinite as isfinite
from cygrad.ops.compare import isinf as isinf
from cygrad.ops.compare import isnan as isnan
from cygrad.ops.normalize import layer_norm as layer_norm
from cygrad.ops.compare import less as less
from cygrad.ops.compare import less_equal as less_equal
from cygrad.ops.linalg import linear as linear
from cygrad.core.interop.creation import linspace as linspace
from cygrad.ops.functions import log as log
from cygrad.ops.functions import log1p as log1p
from cygrad.ops.softmax import log_softmax as log_softmax
from cygrad.ops.compare import logical_and as logical_and
from cygrad.ops.compare import logical_not as logical_not
from cygrad.ops.compare import logical_or as logical_or
from cygrad.ops.compare import logical_xor as logical_xor
from cygrad.ops.softmax import logsumexp as logsumexp
from cygrad.autograd.variables import mark_variables as mark_variables
from cygrad.ops.linalg import matmul as matmul
from cygrad.ops.shape import matrix_transpose as matrix_transpose
from cygrad.ops.minmax import max as max
from cygrad.ops.compare import maximum as maximum
from cygrad.ops.reduce import mean as mean
from cygrad import memory as memory
from cygrad.ops.minmax import min as min
from cygrad.ops.compare import minimum as minimum
from cygrad.ops.loss import mse as mse
from cygrad.ops.elementwise import mul as mul
from cygrad.ops.elementwise import mul as multiply
from cygrad.ops.elementwise import neg as neg
from cygrad.ops.elementwise import neg as negative
from cygrad.ops.loss import nll as nll
from cygrad.autograd.modes import no_grad as no_grad
from cygrad.ops.statistics import norm as norm
from cygrad.ops.compare import not_equal as not_equal
from cygrad.ops.index import one_hot as one_hot
from cygrad.core.interop.creation import ones as ones
from cygrad.core.interop.creation import ones_like as ones_like
from cygrad import ops as ops
from cygrad import optim as optim
from cygrad.ops.join import pad as pad
from cygrad.autograd.modes import pause as pause
from cygrad.ops.shape import permute as permute
from cygrad.ops.shape import permute as permute_dims
from cygrad.ops.elementwise import pow as pow
from cygrad.ops.elementwise import power as power
from cygrad.autograd.modes import predict_mode as predict_mode
from cygrad.ops.reduce import prod as prod
from cygrad import random as random
from cygrad.ops.elementwise import reciprocal as reciprocal
from cygrad.autograd.modes import record as record
from cygrad.ops.functions import relu as relu
from cygrad.ops.shape import reshape as reshape
from cygrad.ops.elementwise import round as round
from cygrad.ops.elementwise import rsqrt as rsqrt
from cygrad.ops.gradient import scale_gradient as scale_gradient
from cygrad.ops.index import scatter_add as scatter_add
from cygrad.core.dtypes import set_default_dtype as set_default_dtype
from cygrad.kernels.threads import set_num_threads as set_num_threads
from cygrad.core.thread_state import set_recording as set_recording
from cygrad.core.thread_state import set_training as set_training
from cygrad.config import show_config as show_config
from cygrad.ops.functions import sigmoid as sigmoid
from cygrad.ops.elementwise import sign as sign
from cygrad.ops.functions import silu as silu
from cygrad.ops.functions import sin as sin
from cygrad.ops.functions import sinh as sinh
from cygrad.ops.softmax import softmax as softmax
from cygrad.ops.functions import softplus as softplus
from cygrad.ops.sort import sort as sort
from cygrad.ops.join import split as split
from cygrad.ops.elementwise import sqrt as sqrt
from cygrad.ops.elementwise import square as square
from cygrad.ops.shape import squeeze as squeeze
from cygrad.ops.join import stack as stack
from cygrad.ops.statistics import std as std
from cygrad.autograd.variables import stop_gradient as stop_gradient
from cygrad.ops.elementwise import sub as sub
from cygrad.ops.elementwise import sub as subtract
from cygrad.ops.reduce import sum as sum
from cygrad.ops.shape import swapaxes as swapaxes
from cygrad.ops.index import take as take
from cygrad.ops.functions import tan as tan
from cygrad.ops.functions import tanh as tanh
from cygrad.core.interop.numpy import tensor as tensor
from cygrad import testing as testing
from cygrad.ops.sort import topk as topk
from cygrad.autograd.modes import train_mode as train_mode
from cygrad.ops.shape import transpose as transpose
from cygrad.ops.join import tril as tril
from cygrad.ops.join import triu as triu
from cygrad.ops.elementwise import trunc as trunc
from cygrad.ops.shape import expand_dims as unsqueeze
from cygrad.ops.statistics import var as var
from cygrad.ops.compare import where as where
from cygrad.core.interop.creation import zeros as zeros
from cygrad.core.interop.creation import zeros_like as zeros_like

bool: np.dtype[np.bool_]
float32: np.dtype[np.float32]
float64: np.dtype[np.float64]
def get_include() -> str: ...
int16: np.dtype[np.int16]
int32: np.dtype[np.int32]
int64: np.dtype[np.int64]
int8: np.dtype[np.int8]
uint16: np.dtype[np.uint16]
uint32: np.dtype[np.uint32]
uint64: np.dtype[np.uint64]
uint8: np.dtype[np.uint8]
nd: Any

__version__: str
