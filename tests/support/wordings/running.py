"""The wording of errors: modes, threads, settings, replays and the tools of cygrad.testing."""

import numpy as np

import cygrad as cg
from cygrad import bundles
from cygrad.core.execute.replay import Replay
from cygrad.core.source import line_of
from cygrad.testing import assert_no_leak, fail_allocation, gradcheck
from wrong import counting, failing_allocation, leaking, nested_failures, of_another_thread

CASES = [
    (lambda: line_of(3, 0), TypeError, "line_of takes a code object, got int"),
    (lambda: Replay(cg.argwhere, cg.zeros(3)), RuntimeError,
     "Replay: the shape of the result of argwhere depends on values, so no memory can be planned for it; keep masks "
     "and counts outside the captured function"),
    (lambda: Replay(lambda x: x.item(), cg.ones(1)), RuntimeError,
     "Replay: reading the values of a tensor cannot be captured, because a replay runs operators on fixed memory and "
     "would not repeat it; compute it outside the captured function"),
    (lambda: Replay(of_another_thread, cg.ones(1)), RuntimeError,
     "Replay: add uses a result of another thread, which a replay would not compute again; compute it in the capturing "
     "thread"),
    (lambda: Replay(lambda x: x * 2, cg.ones(1)).outputs, RuntimeError,
     "Replay: outputs is empty before the first run(); call run() first"),
    (lambda: cg.concat([cg.zeros(1)] * 65536), ValueError,
     "concat: 65536 inputs; an operation takes at most 65535, so join them in groups"),
    (lambda: bundles.alone.load("cygrad.sums"), ModuleNotFoundError,
     "No module named 'cygrad.sums'"),
    (lambda: bundles.take("cygrad._sums"), ModuleNotFoundError,
     "no cygrad._sums for this Python (<*>) in <*>: build cygrad there (make build), or install it (pip install .); "
     "it cannot be imported from a zip file"),
    (lambda: cg.set_num_threads(0), ValueError,
     "set_num_threads: n must be an integer of at least 1, got 0"),
    (lambda: cg.record("yes"), TypeError,
     "train_mode must be True, False or None (unchanged), got 'yes'"),
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
    (lambda: Replay(lambda x: {"double": x * 2}, cg.ones(1)), TypeError,
     "Replay: the function must return a tensor or a tuple of tensors; it returned a value of type dict"),
    (lambda: Replay(lambda: None), RuntimeError,
     "Replay: the function ran no operation on tensors"),
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
