# Written by tools/make_stubs.py; do not edit.
import numpy as np

from cygrad.core.errors import GraphFreedError as GraphFreedError
from cygrad.core.errors import InplaceError as InplaceError
from cygrad.core.errors import MemoryLimitError as MemoryLimitError
from cygrad.core.graph import Tensor as Tensor
from cygrad.ops.elementwise import add as add
from cygrad.core.bridge import arange as arange
from cygrad.core.bridge import asarray as asarray
from cygrad.ops.shape import astype as astype
from cygrad import autograd as autograd
from cygrad.autograd.passes import backward as backward
from cygrad.ops.shape import broadcast_to as broadcast_to
from cygrad.ops.loss import cross_entropy as cross_entropy
from cygrad.ops.elementwise import div as div
from cygrad.core.bridge import empty as empty
from cygrad.core.bridge import empty_like as empty_like
from cygrad.autograd.modes import enable_grad as enable_grad
from cygrad.ops.elementwise import equal as equal
from cygrad.ops.elementwise import exp as exp
from cygrad.core.bridge import eye as eye
from cygrad.core.bridge import full as full
from cygrad.core.bridge import full_like as full_like
from cygrad.core.dtypes import get_default_dtype as get_default_dtype
from cygrad.kernels.driver import get_num_threads as get_num_threads
from cygrad.ops.elementwise import greater as greater
from cygrad.ops.elementwise import greater_equal as greater_equal
from cygrad.core.modes import is_recording as is_recording
from cygrad.core.modes import is_training as is_training
from cygrad.ops.elementwise import less as less
from cygrad.ops.elementwise import less_equal as less_equal
from cygrad.ops.linalg import linear as linear
from cygrad.core.bridge import linspace as linspace
from cygrad.ops.elementwise import log as log
from cygrad.ops.loss import log_softmax as log_softmax
from cygrad.autograd.variables import mark_variables as mark_variables
from cygrad.ops.linalg import matmul as matmul
from cygrad.ops.reduce import mean as mean
from cygrad import memory as memory
from cygrad.ops.elementwise import mul as mul
from cygrad.ops.elementwise import neg as neg
from cygrad.autograd.modes import no_grad as no_grad
from cygrad.ops.elementwise import not_equal as not_equal
from cygrad.core.bridge import ones as ones
from cygrad.core.bridge import ones_like as ones_like
from cygrad import ops as ops
from cygrad import optim as optim
from cygrad.autograd.modes import pause as pause
from cygrad.ops.elementwise import pow as pow
from cygrad.autograd.modes import predict_mode as predict_mode
from cygrad.autograd.modes import record as record
from cygrad.ops.elementwise import relu as relu
from cygrad.ops.shape import reshape as reshape
from cygrad.core.dtypes import set_default_dtype as set_default_dtype
from cygrad.kernels.driver import set_num_threads as set_num_threads
from cygrad.core.modes import set_recording as set_recording
from cygrad.core.modes import set_training as set_training
from cygrad.config import show_config as show_config
from cygrad.autograd.variables import stop_gradient as stop_gradient
from cygrad.ops.elementwise import sub as sub
from cygrad.ops.reduce import sum as sum
from cygrad.ops.elementwise import tanh as tanh
from cygrad.core.bridge import tensor as tensor
from cygrad import testing as testing
from cygrad.autograd.modes import train_mode as train_mode
from cygrad.ops.shape import transpose as transpose
from cygrad.core.bridge import zeros as zeros
from cygrad.core.bridge import zeros_like as zeros_like

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

__version__: str
