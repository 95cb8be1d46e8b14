"""The wording of errors: modes, threads, settings, programs and the tools of cygrad.testing."""

import sys
from importlib.util import module_from_spec
from unittest.mock import patch

import numpy as np

import cygrad as cg
from cygrad import bundles
from cygrad.core.execute.program import Program
from cygrad.core.graph.planning import planning
from cygrad.core.source import line_of
from cygrad.testing import assert_no_leak, fail_allocation, gradcheck
from wrong import counting, failing_allocation, leaking, nested_failures

PAIR = ((2,), "float32")


def DOUBLE():
    return Program(lambda x: x * 2, PAIR)


def WRITER():
    return Program(lambda x, y: x.__iadd__(y), PAIR, PAIR)


def without_gil():
    with patch.object(sys, "_is_gil_enabled", lambda: False, create=True): bundles.require_gil()


def traced():
    left = []
    cg.memory.plan(lambda: left.append(cg.ones(2) * 2))
    return left[0]


def with_gradient(change, argument=lambda w: cg.ones((2, 2))):
    """Run a program that computes the gradient of `w`, after a change of w.grad."""
    w = cg.ones((2, 2)).attach_grad()

    def f(x):
        with cg.record(): y = (w * x).sum()
        y.backward()

    program = Program(f, ((2, 2), "float32"))
    change(w)
    program.run(argument(w))


def rows_as_gradient(w):
    w.grad = cg.GradientSlice([0], [[1.0, 2.0]])


def strided_gradient(w):
    w.grad = cg.zeros((2, 2)).T


CASES = [
    (lambda: line_of(3, 0), TypeError, "line_of takes a code object, got int"),
    (lambda: Program(cg.argwhere, cg.zeros(3)), RuntimeError,
     "capture: a result whose shape depends on values, that of argwhere, cannot be captured, because a net runs "
     "operators in planned memory and would not repeat it; keep it outside the captured function"),
    (lambda: cg.memory.plan(lambda: cg.ones(1).item()), RuntimeError,
     "memory.plan: reading the values of a tensor needs values, and a plan computes none; keep it outside the planned "
     "function"),
    (lambda: cg.memory.plan(3), TypeError,
     "memory.plan takes a function and its arguments, got 3; a net has a plan() of its own"),
    (lambda: cg.memory.plan(lambda: cg.memory.plan(cg.ones, 1)), RuntimeError,
     "a program is being traced in this thread already: memory.plan and captures do not nest"),
    (lambda: planning().__exit__(), RuntimeError,
     "memory.plan: this scope is not open, so it cannot be closed"),
    (lambda: traced() + 1, RuntimeError,
     "this tensor has no values: it stands for each slice inside of vmap(), or it was made while a program was traced "
     "(by memory.plan, or to capture a net); use only operations there, and read results after it"),
    (lambda: Program(lambda x: x * 2, cg.ones(1)).outputs, RuntimeError,
     "outputs is empty before the first run(); call run() first"),
    (lambda: DOUBLE().__init__(cg.exp, PAIR), RuntimeError,
     "Program: __init__ was called before; make another program"),
    (lambda: DOUBLE().run(), TypeError, "run: the program takes 1 tensors, got 0"),
    (lambda: DOUBLE().run(cg.ones(3)), ValueError, "run: argument 0 has shape (3,); the program takes (2,)"),
    (lambda: DOUBLE().run(cg.ones(2, dtype="int64")), TypeError,
     "run: argument 0 is int64; the program takes float32"),
    (lambda: WRITER().run([1.0, 2.0], cg.ones(2)), TypeError,
     "run: the program writes to argument 0, which must be a tensor, got [1.0, 2.0]"),
    (lambda: WRITER().run(cg.zeros((2, 2)).T[0], cg.ones(2)), ValueError,
     "run: the program writes to argument 0, which must be contiguous; pass a copy()"),
    (lambda: (lambda x: WRITER().run(x, x))(cg.zeros(2)), ValueError,
     "run: arguments 0 and 1 share memory, and the program writes to one of them; pass a copy()"),
    (lambda: with_gradient(lambda w: None, lambda w: w.grad), ValueError,
     "run: argument 0 shares memory with a tensor outside that the program uses, and a step writes to it; pass a "
     "copy()"),
    (lambda: with_gradient(rows_as_gradient), RuntimeError,
     "run: the gradient of a variable of shape (2, 2) is a GradientSlice; assign None to its .grad"),
    (lambda: with_gradient(strided_gradient), RuntimeError,
     "run: the .grad of a variable of shape (2, 2) is not contiguous; assign a copy()"),
    (lambda: cg.concat([cg.zeros(1)] * 65536), ValueError,
     "concat: 65536 inputs; an operation takes at most 65535, so join them in groups"),
    (lambda: bundles.Pending(module_from_spec(cg.core.errors.__spec__))("sums"), AttributeError,
     "module 'cygrad.core.errors' has no attribute 'sums'"),
    (lambda: bundles.take("cygrad._sums"), ModuleNotFoundError,
     "no cygrad._sums for this Python (<*>) in <*>: build cygrad there (make build), or install it (pip install .); "
     "it cannot be imported from a zip file"),
    (without_gil, ImportError,
     "cygrad needs the GIL, and this Python runs without it: start it without PYTHON_GIL=0 and -X gil=0, or use a "
     "build of Python that has the GIL"),
    (lambda: cg.set_num_threads(0), ValueError,
     "set_num_threads: n must be an integer of at least 1, got 0"),
    (lambda: cg.record("yes"), TypeError,
     "train_mode must be True, False or None (unchanged), got 'yes'"),
    (lambda: cg.set_grad_enabled(None), TypeError, "set_grad_enabled: mode must be True or False, got None"),
    (lambda: cg.inference_mode(1), TypeError, "inference_mode: mode must be True or False, got 1"),
    (lambda: cg.no_grad(3), TypeError,
     "a scope can decorate only functions, got 3"),
    (lambda: cg.no_grad().__exit__(), RuntimeError,
     "this thread exits a scope that it has not entered"),
    (lambda: cg.autograd.detect_anomaly().__exit__(), RuntimeError,
     "detect_anomaly: this scope is not open, so it cannot be closed"),
    (lambda: fail_allocation(1).__exit__(), RuntimeError,
     "fail_allocation: this scope is not open, so it cannot be closed"),
    (lambda: assert_no_leak().__exit__(), RuntimeError,
     "assert_no_leak: this scope is not open, so it cannot be closed"),
    (lambda: Program(lambda x: 3, cg.ones(1)), TypeError,
     "a captured function returns tensors, or tuples, lists or dicts of them, or None; this one returned 3"),
    (lambda: failing_allocation(), MemoryError,
     "allocation 1 of 8 bytes fails on request (testing.fail_allocation)"),
    (lambda: fail_allocation(0).__enter__(), ValueError,
     "fail_allocation: n must be an int of at least 1, got 0"),
    (lambda: nested_failures(), RuntimeError,
     "fail_allocation: another such scope is open; they do not nest"),
    (lambda: gradcheck(cg.exp, [1.0]), TypeError,
     "gradcheck: no input is a floating tensor or array; there is nothing to differentiate"),
    (lambda: gradcheck(lambda x: 3, np.ones(2)), TypeError,
     "gradcheck: output 0 of f must be a tensor, got int"),
    (lambda: gradcheck(cg.exp, np.ones(2), order=0), ValueError,
     "gradcheck: order must be an int of at least 1, got 0"),
    (lambda: gradcheck(lambda x: x.detach(), np.ones(2)), RuntimeError,
     "gradcheck: no output of f depends on an input through recorded operations"),
    (lambda: gradcheck(cg.log, -np.ones(2)), AssertionError,
     "gradcheck: f is nan at the inputs; choose them inside its domain"),
    (lambda: gradcheck(counting(), np.ones(2)), AssertionError,
     "gradcheck: f returns different values when it is called again with the same inputs"),
    (lambda: gradcheck(lambda x: x.detach() + x * 0, np.array([2.0])), AssertionError,
     "gradcheck: derivative 1 for input 0, of shape (1,), is wrong at element (0,): backward gives 0, finite "
     "differences give <*>"),
    (lambda: leaking(), AssertionError,
     "assert_no_leak: the scope ends with +8 live bytes in +1 buffers (other +8) compared to its start"),
    (lambda: cg.show_config("json"), ValueError,
     "show_config: mode must be \"stdout\" or \"dicts\", got 'json'"),
]
