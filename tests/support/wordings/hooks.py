"""The wording of errors: hooks, Function and packed saved tensors."""

import cygrad as cg
from wrong import (
    RESULT, VARIABLE, freed, function, gradient_written, hooked, hooks_in, leaf_hooked, node_hooked, packed,
    save_and_free, saved_outside, two_dtypes,
)

CASES = [
    (lambda: cg.autograd.saved_tensors_hooks(id, id).__exit__(None, None, None), RuntimeError,
     "saved_tensors_hooks: this scope is not open, so it cannot be closed"),
    (lambda: hooked(1.0), TypeError,
     "a hook on a variable returned float; it may return None or a tensor that replaces the gradient"),
    (lambda: gradient_written("hook"), cg.InplaceError,
     "a hook on a result of mul wrote in place to a gradient of shape (2,) that it shares with others; return a new "
     "tensor instead"),
    (lambda: gradient_written("function"), cg.InplaceError,
     "WritesItsGradient.backward wrote in place to a gradient of shape (2,) that it shares with others; return a new "
     "tensor instead"),
    (lambda: hooked(cg.zeros(3)), ValueError,
     "a hook on a variable returned a float32 tensor of shape (3,); the gradient is float32 of shape (2,), and they "
     "must agree"),
    (lambda: node_hooked(True, (None, None)), ValueError,
     "a pre-hook of mul returned 2 values; it may return None, or a tuple of 1 tensors or None"),
    (lambda: node_hooked(False, 1.0), ValueError,
     "a hook of mul returned float; it may return None, or a tuple of 2 tensors or None"),
    (lambda: VARIABLE().register_hook(1), TypeError, "register_hook takes a function, got int"),
    (lambda: cg.zeros(2).register_hook(print), RuntimeError,
     "register_hook: no gradient flows to this tensor of shape (2,); call attach_grad() on it, or record the "
     "operation that computes it"),
    (lambda: RESULT().register_post_accumulate_grad_hook(print), RuntimeError,
     "register_post_accumulate_grad_hook: this tensor of shape (2,) is not a variable; call attach_grad() or "
     "requires_grad_() on it"),
    (lambda: cg.autograd.register_multi_grad_hook(VARIABLE(), print), TypeError,
     "register_multi_grad_hook takes a list of tensors, got a float32 tensor of shape (2,)"),
    (lambda: cg.autograd.register_multi_grad_hook([VARIABLE(), 3.0], print), TypeError,
     "register_multi_grad_hook: tensor 1 must be a tensor, got 3.0"),
    (lambda: cg.autograd.register_multi_grad_hook([VARIABLE(), cg.zeros(2)], print), RuntimeError,
     "register_multi_grad_hook: no gradient flows to tensor 1, of shape (2,); call attach_grad() on it, record the "
     "operation that computes it, or leave it out"),
    (lambda: cg.autograd.register_multi_grad_hook([VARIABLE()], print, "some"), ValueError,
     "register_multi_grad_hook: mode must be 'all' or 'any', got 'some'"),
    (lambda: cg.autograd.disable_saved_tensors_hooks(3), TypeError,
     "disable_saved_tensors_hooks takes the message of an error, got 3"),
    (lambda: cg.autograd.disable_saved_tensors_hooks("no").__exit__(None, None, None), RuntimeError,
     "disable_saved_tensors_hooks: this scope is not open, so it cannot be closed"),
    (lambda: hooks_in(cg.autograd.disable_saved_tensors_hooks("not here")), RuntimeError, "not here"),
    (lambda: function(lambda ctx, x, *, p=1: x * p, None, VARIABLE(), p=2), TypeError,
     "Own.apply: forward takes p by name only; an input of a Function has a place, so that backward can return its "
     "gradient"),
    (lambda: cg.autograd.save_on_cpu, AttributeError,
     "module 'cygrad.autograd' has no attribute 'save_on_cpu': all memory is the CPU's; cygrad.memory.offload(folder) "
     "keeps what backward needs in a file, cygrad.memory.budget(bytes) bounds the memory, and cygrad.checkpoint(f, x) "
     "computes again"),
    (lambda: leaf_hooked((None,)), ValueError,
     "a hook of a variable's node returned 1 values; it may return None, or a tuple of 0 tensors or None"),
    (lambda: cg.autograd.Function(), RuntimeError,
     "Function is not instantiated; call Function.apply(...)"),
    (lambda: function(), NotImplementedError, "a Function needs a static method forward(ctx, *inputs)"),
    (lambda: function(lambda ctx, x: x * 1), NotImplementedError,
     "a Function needs a static method backward(ctx, *grads)"),
    (lambda: function(lambda ctx, x: ctx.mark_dirty(3.0)), TypeError,
     "mark_dirty: argument 0 is float; it takes inputs of forward"),
    (lambda: function(lambda ctx, x: x.fill_(1) * 2, None, RESULT()), cg.InplaceError,
     "Own.forward wrote in place to input 0 of shape (2,); mark_dirty it and return it, or write to a copy()"),
    (lambda: function(lambda ctx, x: [ctx.mark_dirty(x), x * 2][1], None, RESULT()), RuntimeError,
     "Own.forward marked input 0 of shape (2,) as dirty, but did not return it; an input that is written in place "
     "must be an output"),
    (lambda: function(lambda ctx, x: freed()), RuntimeError,
     "Own.forward returned a tensor, output 0, that was freed in it"),
    (lambda: function(two_dtypes), TypeError,
     "Own.forward returned outputs of dtypes float32 and float64; those with a gradient must have the same dtype"),
    (lambda: function(lambda ctx, x: ctx.save_for_backward(3.0)), TypeError,
     "save_for_backward: argument 0 is float; it saves tensors and None; store anything else as an attribute of ctx"),
    (lambda: function(lambda ctx, x: ctx.save_for_backward(*[x] * 101)), ValueError,
     "save_for_backward: at most 100 tensors, got 101"),
    (lambda: function(save_and_free), RuntimeError,
     "save_for_backward: a tensor that Own.forward saved was freed in it; do not free it, or save another tensor"),
    (lambda: function(lambda ctx, *xs: xs[0] * 1, None, *[VARIABLE()] * 101), ValueError,
     "Own.apply: at most 100 inputs, got 101"),
    (lambda: function(lambda ctx, x: (x * 1,) * 101), ValueError,
     "Own.forward returned 101 outputs; at most 100"),
    (lambda: function(lambda ctx, x: x * 1, lambda ctx, g: (g, g)), ValueError,
     "Own.backward returned 2 gradients, but forward takes 1 inputs; return one for each, None for an input without a "
     "gradient"),
    (lambda: function(lambda ctx, x: x * 1, lambda ctx, g: 3.0), TypeError,
     "Own.backward returned float as gradient 0; it must be a tensor or None"),
    (lambda: function(lambda ctx, x: x * 1, lambda ctx, g: g.reshape(1, 2)), ValueError,
     "Own.backward returned a gradient of shape (1, 2) for input 0 of shape (2,); they must agree"),
    (lambda: saved_outside(), cg.GraphFreedError,
     "saved_tensors can be read only in backward, and is freed after it; call backward with retain_graph=True to run "
     "it again"),
    (lambda: cg.autograd.saved_tensors_hooks(1, print), TypeError,
     "saved_tensors_hooks takes two functions, pack and unpack, got int and <*>"),
    (lambda: packed(lambda t: t, lambda t: 3.0), TypeError,
     "saved_tensors_hooks: unpack returned float; it must return the tensor that was passed to pack"),
    (lambda: packed(lambda t: t, lambda t: cg.zeros(3)), ValueError,
     "saved_tensors_hooks: unpack returned a float32 tensor of shape (3,); pack got a float32 tensor of shape "
     "(2,), and they must agree"),
]
