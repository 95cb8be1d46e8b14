"""The wording of errors: variables, backward and grad."""

import numpy as np

import cygrad as cg
from wrong import (
    RESULT, VARIABLE, backward_twice, closed_collector, collector_of_another_thread, from_a_gradient,
    graph_into_a_given_buffer, in_two_passes_at_once, marked_on_its_way, nan, other_mode, own_gradient,
    returned_and_written, set_grad, two_collectors, written_after_it_was_kept,
    written_argument, written_by_numpy,
)

class Foreign:
    """A value of another library."""


CASES = [
    (lambda: VARIABLE().attach_grad("plus"), ValueError,
     "grad_req must be \"write\", \"add\" or \"null\", got 'plus'"),
    (lambda: cg.zeros(2, dtype="int64").attach_grad(), TypeError,
     "int64 tensors cannot have gradients; only float32 and float64 can: cast it with astype first"),
    (lambda: cg.mark_variables([cg.zeros(2)], []), ValueError,
     "mark_variables: 1 variables, 0 gradients and 1 grad_reqs; there must be one of each for every variable"),
    (lambda: cg.mark_variables([cg.zeros(2)], [3.0]), TypeError,
     "mark_variables: variable and gradient 0 must be tensors, got Tensor and float"),
    (lambda: cg.mark_variables(cg.zeros(2), cg.zeros(3)), ValueError,
     "mark_variables: gradient 0 is float32 of shape (3,); the tensor is float32 of shape (2,), and they must "
     "agree"),
    (lambda: set_grad(VARIABLE(), 3.0), TypeError,
     "grad must be a tensor, a GradientSlice or None, got float"),
    (lambda: set_grad(VARIABLE(), cg.zeros(2, dtype="float64")), ValueError,
     "the assigned gradient is float64 of shape (2,); the tensor is float32 of shape (2,), and they must agree"),
    (lambda: own_gradient(), ValueError,
     "the assigned gradient shares memory with its tensor, which backward would overwrite; pass a copy()"),
    (lambda: set_grad(VARIABLE(), cg.asarray(np.frombuffer(bytes(8), "float32"))), ValueError,
     "the assigned gradient has read-only memory, but backward writes to it; pass a copy()"),
    (lambda: set_grad(VARIABLE(), cg.zeros(1).broadcast_to(2)), ValueError,
     "the assigned gradient, of shape (2,), repeats its elements (stride 0 in dimension 0), but backward writes to "
     "each; pass a copy()"),
    (lambda: set_grad(cg.zeros(2), cg.zeros(2)), RuntimeError,
     "this tensor is not a variable; call attach_grad() or requires_grad_() first"),
    (lambda: setattr(cg.zeros(2), "fresh_grad", True), RuntimeError,
     "this tensor is not a variable; call attach_grad() or requires_grad_() first"),
    (lambda: cg.backward([]), ValueError,
     "backward: got no outputs; pass a tensor or a list of tensors"),
    (lambda: cg.backward([RESULT()], []), ValueError,
     "backward: got 1 outputs but 0 gradients; pass one tensor, array, number or None for each output"),
    (lambda: cg.backward([3.0]), TypeError,
     "backward: output 0 must be a tensor, got float"),
    (lambda: cg.backward(Foreign()), TypeError,
     "backward: output 0 must be a tensor, got wordings.variables.Foreign"),
    (lambda: set_grad(VARIABLE(), Foreign()), TypeError,
     "grad must be a tensor, a GradientSlice or None, got wordings.variables.Foreign"),
    (lambda: cg.backward(1), TypeError,
     "backward: output 0 must be a tensor, got int"),
    (lambda: cg.backward(cg.zeros(2)), RuntimeError,
     "backward: output 0, of shape (2,), was not recorded; compute it from a variable (attach_grad() or "
     "requires_grad_()) inside `with cygrad.record():`"),
    *[(lambda how=how: from_a_gradient(how), RuntimeError,
       f"{'grad' if how == 'grad' else 'backward'}: output 0, of shape {(2,) if how == 'grad' else ()}, was not "
       f"recorded; compute it from a variable (attach_grad() or requires_grad_()) inside `with cygrad.record():`; it "
       f"comes from a gradient without a graph: pass create_graph=True to the grad() or backward() that computed it, "
       f"unless you did: then it does not depend on a variable, and its derivative is zero")
      for how in ("sum", "grad", ".grad")],
    (lambda: cg.backward(RESULT(), ["3"]), TypeError,
     "backward: gradient 0 must be a tensor, a NumPy array, a number or None, got str"),
    (lambda: RESULT().backward(True), TypeError,
     "backward: gradient 0 must be a tensor, a NumPy array, a number or None, got bool"),
    (lambda: RESULT().backward(np.ones(2)), ValueError,
     "backward: gradient 0 is float64 of shape (2,); output 0 is float32 of shape (2,), and they must agree"),
    (lambda: cg.backward(RESULT(), cg.zeros(3)), ValueError,
     "backward: gradient 0 is float32 of shape (3,); output 0 is float32 of shape (2,), and they must agree"),
    (lambda: RESULT().backward(train_mode=3), TypeError,
     "backward: train_mode must be True, False or None (the mode of the forward pass), got 3"),
    (lambda: RESULT().backward(None, None, True), TypeError,
     "backward takes train_mode by keyword only: backward(outputs, gradients, retain_graph, train_mode=...)"),
    (lambda: RESULT().backward(inputs=[]), RuntimeError,
     "backward: inputs is empty; list the variables that are to receive gradients, or omit inputs"),
    (lambda: RESULT().backward(inputs=[cg.zeros(2)]), RuntimeError,
     "backward: input 0 has no .grad; call attach_grad() or requires_grad_() to make it a variable, or retain_grad() "
     "on a recorded result"),
    (lambda: cg.autograd.grad(RESULT(), VARIABLE(), None, None, True), TypeError,
     "grad takes create_graph, allow_unused and train_mode by keyword only"),
    (lambda: cg.autograd.grad(RESULT(), []), ValueError,
     "grad: got no inputs; pass a tensor or a list of tensors"),
    (lambda: cg.autograd.grad(RESULT(), 3.0), TypeError,
     "grad: input 0 must be a tensor or a GradientEdge, got float"),
    (lambda: cg.autograd.grad(RESULT(), [3.0]), TypeError,
     "grad: input 0 must be a tensor or a GradientEdge, got float"),
    (lambda: cg.autograd.GradientEdge(VARIABLE()), TypeError,
     "GradientEdge takes a node, which is a tensor's grad_fn or one of its next_functions, got Tensor"),
    (lambda: cg.autograd.GradientEdge(RESULT().grad_fn, 1), ValueError,
     "GradientEdge: output 1 of mul; its outputs are numbered from 0, and it has 1"),
    (lambda: cg.autograd.grad(RESULT(), cg.zeros(2)), RuntimeError,
     "grad: input 0, of shape (2,), is neither a variable nor a recorded result; call attach_grad() on it before the "
     "forward pass, or pass allow_unused=True"),
    (lambda: cg.autograd.grad(RESULT(), VARIABLE()), RuntimeError,
     "grad: input 0 is not reachable from the outputs; pass allow_unused=True to get None for it"),
    (lambda: graph_into_a_given_buffer(), RuntimeError,
     "create_graph=True would replace the gradient that was given to mark_variables for a variable of shape (2,); use "
     "autograd.grad, or attach_grad()"),
    (lambda: marked_on_its_way(), RuntimeError,
     "mark_variables: a running backward pass may still read the memory of gradient 0, which would be overwritten; "
     "pass a copy()"),
    (lambda: returned_and_written(), cg.InplaceError,
     "this result of Same, of shape (2,), shares memory with a tensor that was written in place after it was recorded, "
     "so its gradient would not match its value; return a copy() of the input from the Function, or write to a copy()"),
    (lambda: backward_twice(), cg.GraphFreedError,
     "backward through mul a second time: the first pass freed what it had saved; call the first with "
     "retain_graph=True; a tensor that carries over from one step to the next must begin the step without its graph: x "
     "= x.detach()"),
    (lambda: written_after_it_was_kept(), cg.InplaceError,
     "mul saved a tensor of shape (2,) for backward at version 0, but it has been written in place since and is "
     "at version 2; write to a copy(), or compute what uses it before the write"),
    (lambda: cg.zeros(2).retain_grad(), RuntimeError,
     "retain_grad: no gradient flows to this tensor of shape (2,); compute it from a variable inside record()"),
    (lambda: RESULT().requires_grad_(False), RuntimeError,
     "requires_grad_(False): this result of mul, of shape (2,), is part of a graph; use its detach()"),
    (lambda: nan(), RuntimeError,
     "the backward of pow, recorded at <*>, produced the first NaN: its incoming gradients had none"),
    (lambda: other_mode(), RuntimeError,
     "backward was called in predict mode, but dropout was recorded in train mode; omit train_mode, or record the "
     "graph again"),
    (lambda: cg.checkpoint(3), TypeError, "checkpoint takes a function and its arguments, got 3"),
    (lambda: cg.checkpoint(abs, determinism_check="none"), ValueError,
     "checkpoint: determinism_check must be \"metadata\" or \"hash\", got 'none'"),
    (lambda: cg.checkpoint(abs, keep=7), TypeError,
     "checkpoint: keep must be the name of an operator or a list of names, got 7"),
    (lambda: cg.checkpoint(abs, keep=["linear", "conv"]), ValueError,
     "checkpoint: keep names 'conv', which is no operator; the operators are the rows of cygrad.ops.ROWS, such as "
     "\"linear\", \"matmul\" and \"conv2d\""),
    (lambda: written_argument(), cg.InplaceError,
     "add cannot be computed again for backward, because a tensor of 8 bytes that it depends on was written in place "
     "since; with checkpoint() and memory.budget(), write to a copy(), or after backward"),
    (lambda: written_by_numpy(), RuntimeError,
     "checkpoint: add, computed again, gave other values than before; an array that it reads was written through "
     "NumPy, the number of threads is another one, or the operator is not deterministic: keep its results with "
     "keep=['add']"),
    (lambda: two_collectors(), RuntimeError,
     "GradientCollector: another one is open in this thread; close it first, or call its backward several times"),
    (lambda: collector_of_another_thread(), RuntimeError,
     "GradientCollector: it was opened in another thread, and only that thread can close it"),
    (lambda: closed_collector(), RuntimeError,
     "GradientCollector.backward: not open in this thread; call it inside the with block"),
    (lambda: in_two_passes_at_once(), RuntimeError,
     "a backward pass is already running in this graph (at mul), in another thread or in one of its own hooks; wait "
     "for it, or record the graph again"),
]
