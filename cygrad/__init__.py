"""Automatic differentiation that counts and limits its memory. Tensors are like NumPy's arrays. After
`import cygrad as cg`:

    w = cg.tensor([1.0, 2.0], requires_grad=True)
    with cg.record():                   # operations are recorded only inside
        loss = (w * w).sum()
    loss.backward()
    w.grad                              # 2 w: tensor([2., 4.])

Where to look, by task:

    cg.tensor, cg.zeros, cg.arange, ...     make tensors, cg.asarray without a copy where it can
    cg.exp, cg.matmul, cg.where, ...        compute with them; most have NumPy's names and arguments
    cg.linalg                               decompositions and linear systems
    cg.random                               random tensors; cg.random.seed(n) repeats them
    cg.record, cg.pause, cg.no_grad         what is recorded; cg.train_mode and cg.predict_mode what layers do
    cg.autograd                             grad, hooks, functions with a backward of their own
    cg.func                                 derivatives as functions: grad, jvp, vmap, hessian
    cg.nn, cg.optim                         layers, solvers and schedules
    cg.data, cg.trainers, cg.estimators     batches, training loops, estimators for scikit-learn
    cg.memory                               what is live and why: stats, profile; bounds: limit, budget, offload
    cg.graph                                programs as data, with a plan of their memory
    cg.save, cg.load, cg.io                 tensors in files
    cg.comm                                 several processes, by MPI
    cg.testing                              gradient checks and leak checks
    cg.array_api, cg.ops                    the array API standard; the table of all operators

On the command line:

    python -m cygrad demo                   trains a network, shows its speed and its memory
    python -m cygrad learn                  writes exercises into a folder and checks them
    python -m cygrad profile script.py      runs a script, shows what held its memory at the peak
    python -m cygrad run NET                runs a net that was saved, on arrays in files

A name of PyTorch, NumPy, JAX, MXNet or nnabla that is missing here raises an error that says what to use."""
# ruff: noqa: E402 (what is imported below is loaded by the first call)

from cygrad import bundles

bundles.load()                  # before any other import of the package

import os as _os
import sys as _sys
from importlib import import_module as _import_module

import numpy as _np

from cygrad import autograd, memory, ops, random
from cygrad.autograd.modes import (
    enable_grad, inference_mode, no_grad, pause, predict_mode, record, set_grad_enabled, train_mode,
)
from cygrad.autograd.passes import backward
from cygrad.autograd.recomputation import checkpoint
from cygrad.autograd.scopes import GradientCollector
from cygrad.autograd.variables import mark_variables, stop_gradient
from cygrad.core.answers import of_module as _of_module
from cygrad.core.interop.creation import (
    arange, empty, empty_like, eye, full, full_like, linspace, ones, ones_like, zeros, zeros_like,
)
from cygrad.core.interop.numpy import asarray, tensor
from cygrad.core.execute import pickles as _pickles
from cygrad.core.errors import GraphFreedError, InplaceError, MemoryLimitError, PrecisionWarning
from cygrad.core.dtypes import get_default_dtype, set_default_dtype
from cygrad.core.interop.dlpack import from_dlpack
from cygrad.core.late_bound import bind as _bind
from cygrad.core.graph.gradient_slice import GradientSlice, ensure_dense
from cygrad.core.graph.tensor import Tensor
from cygrad.core.thread_state import is_recording, is_training, set_recording, set_training
from cygrad.kernels.threads import get_num_threads, set_num_threads
from cygrad.ops.layers.random import dropout
from cygrad.ops.shapes.shape import flatten, matrix_transpose, swapaxes

__version__ = "0.2.0"

array, as_tensor, from_numpy = tensor, asarray, asarray     # the names in NumPy, MXNet and PyTorch
ravel = flatten                                             # NumPy's name
is_grad_enabled = is_recording                              # PyTorch's name
nd = _sys.modules[__name__]                                 # MXNet's name for the namespace
_bind(namespace=nd)                                         # for messages that name public functions

bool = _np.dtype("bool")
int8, int16, int32, int64 = (_np.dtype(f"int{n}") for n in (8, 16, 32, 64))
uint8, uint16, uint32, uint64 = (_np.dtype(f"uint{n}") for n in (8, 16, 32, 64))
float32, float64 = _np.dtype("float32"), _np.dtype("float64")

# loaded at first use
_packages = (
    "array_api", "comm", "data", "estimators", "func", "graph", "io", "linalg", "nets", "nn", "optim", "testing",
    "trainers")
_late = {"load": ("io", "load"), "save": ("io", "save"),    # public name -> (module, function), loaded at first use
         "show_config": ("config", "show_config"),
         "c_": ("ops.shapes.joining", "c_"), "r_": ("ops.shapes.joining", "r_")}
for _row in ops.TABLE:
    for _name in (_row.name, *_row.aliases) if _row.public else ():
        if _row.late: _late[_name] = "ops." + _row.path, _row.name
        else: globals()[_name] = _row.function
for _path, _names in ops.COMPOSED.items():
    for _name in _names: _late[_name] = "ops." + _path, _name


def __getattr__(name):
    if name in _packages: return _import_module("cygrad." + name)
    if name not in _late: raise AttributeError(_of_module(name))
    family, function = _late[name]
    found = globals()[name] = getattr(_import_module("cygrad." + family), function)
    return found


def __dir__():
    from importlib.util import find_spec            # (here, because it takes 3 ms)

    names = {name for name in (*globals(), *_late, *_packages) if not name.startswith("_")} | {"__version__"}
    if find_spec("sklearn") is None: names.discard("estimators")    # help() reads every name, and that one would raise
    return sorted(names - {"bundles", "config", "core", "demo", "drawing", "kernels", "learn"})


def get_include():
    """The directory of cygrad's C headers, for extension modules that cimport cygrad."""
    here = _os.path.dirname(_os.path.abspath(__file__))
    installed = _os.path.join(here, "include")
    return installed if _os.path.isdir(installed) else _os.path.join(_os.path.dirname(here), "include")
