"""backward and grad: check the arguments and run the engine."""

import numpy as np

from cygrad.core.interop.creation cimport head_full
from cygrad.core.backward.engine cimport run_pass
from cygrad.core.graph.tensor cimport Leaf, Node, Tensor, is_tracked, ready
from cygrad.core.graph.calls cimport calls_of, tensor_item
from cygrad.core.graph.unreadable cimport check_readable
from cygrad.core.graph.effects cimport changed_leaves
from cygrad.core.graph.trace cimport Trace, lists_calls, refuse_trace, trace_of, traces
from cygrad.core.store.layout cimport same_shape
from cygrad.core.store.buffer cimport GRAPHLESS
from cygrad.core.thread_state cimport flags

from cygrad.core.interop.numpy import tensor
from cygrad.core.dtypes import DTYPES
from cygrad.core.errors import described, type_name
from cygrad.core.late_bound import bind_methods
from cygrad.core.graph.views import place
from cygrad.autograd.variables import keeps_grad


class GradientEdge(tuple):
    """A position in the graph: output `output_nr` of `node`. `grad` accepts one instead of a tensor. Raises TypeError
    if `node` is not a node, ValueError if it has no such output."""

    __slots__ = ()

    def __new__(cls, node, output_nr=0):
        if not isinstance(node, Node):
            raise TypeError(f"GradientEdge takes a node, which is a tensor's grad_fn or one of its next_functions, got "
                            f"{type_name(node)}")
        if not isinstance(output_nr, int) or not 0 <= output_nr < (<Node>node).n_out:
            raise ValueError(f"GradientEdge: output {described(output_nr)} of {node.name()}; its outputs are numbered "
                             f"from 0, and it has {(<Node>node).n_out}")
        return super().__new__(cls, (node, output_nr))

    node = property(lambda self: self[0], doc="The node: a tensor's grad_fn, or one of its next_functions.")
    output_nr = property(lambda self: self[1], doc="The number of the node's output, from 0.")


def _listed(given):
    """One argument or several, as a list. An argument of a wrong type becomes an entry too: the caller checks types."""
    one = isinstance(given, (Tensor, GradientEdge, np.ndarray)) or not hasattr(given, "__iter__")
    return [given] if one else list(given)


cdef Tensor head_of(Tensor y, g, int i, str what):
    """The head gradient of output `i`: None means ones, a number fills the shape, an array is copied."""
    if g is None: return head_full(y, 1)
    if isinstance(g, (int, float, np.integer, np.floating)) and not isinstance(g, bool): return head_full(y, g)
    if not isinstance(g, (Tensor, np.ndarray)):
        raise TypeError(f"{what}: gradient {i} must be a tensor, a NumPy array, a number or None, got "
                        f"{type_name(g)}")
    if isinstance(g, Tensor): check_readable(<Tensor>g)
    if g.shape != y.shape or g.dtype != DTYPES[y.dtype]:
        raise ValueError(f"{what}: gradient {i} is {g.dtype} of shape {g.shape}; output {i} is {DTYPES[y.dtype]} of "
                         f"shape {y.shape}, and they must agree")
    return g if isinstance(g, Tensor) else tensor(g)

cdef str without_graph(Tensor y):
    """The advice for an output that was computed from a gradient without a graph, or an empty string."""
    if not y.buffer.flags & GRAPHLESS and not y.buffer.gradients: return ""
    return ("; it comes from a gradient without a graph: pass create_graph=True to the grad() or backward() that "
            "computed it, unless you did: then it does not depend on a variable, and its derivative is zero")


cdef str of_input():
    """More advice in a capture, whose inputs cannot become variables."""
    if not lists_calls(): return ""
    return ("; an input of a captured function takes no gradient: capture the function that computes the output, and "
            "call add_gradient_operators() of that net")


def _heads(outputs, gradients, what):
    """The roots of a pass: nodes, output numbers and head gradients."""
    outputs = _listed(outputs)
    if not outputs:
        raise ValueError(f"{what}: got no outputs; pass a tensor or a list of tensors")
    if gradients is None:
        gradients = [None] * len(outputs)
    else:
        gradients = _listed(gradients)
    if len(gradients) != len(outputs):
        raise ValueError(f"{what}: got {len(outputs)} outputs but {len(gradients)} gradients; pass one tensor, array, "
                         f"number or None for each output")
    nodes, numbers, heads = [], [], []
    for i, (y, g) in enumerate(zip(outputs, gradients, strict=True)):
        if not isinstance(y, Tensor):
            raise TypeError(f"{what}: output {i} must be a tensor, got {type_name(y)}")
        check_readable(<Tensor>y)
        if not y.requires_grad:
            raise RuntimeError(
                f"{what}: output {i}, of shape {y.shape}, was not recorded; compute it from a variable (attach_grad() "
                f"or requires_grad_()) inside `with cygrad.record():`{without_graph(y)}{of_input()}"
            )
        ready(<Tensor>y)                            # (raises for one that another thread traces)
        g = head_of(y, g, i, what)
        node, number = place(y)
        nodes.append(node)
        numbers.append(number)
        heads.append(g)
    return nodes, numbers, heads


def _check_mode(train_mode, what):
    if train_mode is not None and train_mode is not True and train_mode is not False:
        raise TypeError(f"{what}: train_mode must be True, False or None (the mode of the forward pass), got "
                        f"{described(train_mode)}")


cdef list note_pass(list calls, str kind, outputs, gradients, inputs, tuple arguments):
    """run_pass() during a trace that lists what is called: (kind, items of the outputs, of the head gradients or None,
    retain_graph, create_graph, items of the inputs or None, items of the results, items of the gradients of
    variables as pairs). What the pass itself calls is not listed, unless Trace.formulas is set."""
    cdef Trace t = trace_of(flags())
    cdef list results
    if flags().collector != NULL: refuse_trace("a backward pass in a GradientCollector")
    ys = [tensor_item(y) for y in _listed(outputs)]
    wanted = None if inputs is None else [tensor_item(x) if isinstance(x, Tensor) else None for x in inputs]
    if wanted is not None and None in wanted: refuse_trace("grad() of a GradientEdge")
    nodes, numbers, given, retain, graph, captures, strict, mode = arguments
    heads = [None] * len(ys)
    if gradients is not None:                       # (a number has become a tensor)
        heads = [None if g is None else tensor_item(h) for g, h in zip(_listed(gradients), given, strict=True)]
    if not t.formulas: t.calls = None
    try: results = run_pass(nodes, numbers, given, retain, graph, captures, strict, mode)
    finally: t.calls = calls
    calls.append((kind, ys, heads, bool(retain), bool(graph), wanted,
                  [tensor_item(g) if isinstance(g, Tensor) else None for g in results or ()], gradients_of(t)))
    return results


cdef list gradients_of(Trace t):
    """(variable, item of its gradient) for each variable whose gradient has changed; None for one that the program has
    made."""
    cdef Leaf leaf
    found = [(<Tensor>leaf.tensor, tensor_item(leaf.grad)) for leaf in changed_leaves(t) if leaf.grad is not None]
    return found + [(None, tensor_item(leaf.grad)) for leaf in t.inside if leaf.grad is not None]


cdef int _mode(train_mode) except? -2:
    return -1 if train_mode is None else <bint>train_mode


def backward(outputs: Tensor | Sequence[Tensor], gradients: Head | Sequence[Head] | None = None,
             retain_graph: bool | None = None, *args, create_graph: bool = False,
             inputs: Tensor | Sequence[Tensor] | None = None, train_mode: bool | None = None) -> None:
    """Compute the gradients of `outputs` (a tensor or a list) for all variables that they were computed from.

    gradients: the gradient of each output, of its shape and dtype; None means ones. retain_graph: keep the saved
    tensors for another pass (None: the value of create_graph). create_graph: record the computation of the gradients,
    so that they can be differentiated. inputs: only these variables receive gradients, and only the part of the graph
    that leads to them runs. train_mode: the mode of the backward pass (None: the mode of the forward pass).

    Raises ValueError for wrong counts, shapes or dtypes, RuntimeError for outputs that were not recorded,
    GraphFreedError for a graph that an earlier pass freed, InplaceError if a saved tensor was overwritten. It raises
    these before it changes anything.
    """
    if args:
        raise TypeError(
            "backward takes train_mode by keyword only: backward(outputs, gradients, retain_graph, train_mode=...)"
        )
    refuse_levels("backward")
    _check_mode(train_mode, "backward")
    nodes, numbers, heads = _heads(outputs, gradients, "backward")
    captures = None
    if inputs is not None:
        inputs = _listed(inputs)
        if not inputs:
            raise RuntimeError("backward: inputs is empty; list the variables that are to receive gradients, or omit "
                               "inputs")
        captures = []
        for i, x in enumerate(inputs):
            if not isinstance(x, Tensor) or not keeps_grad(x):
                raise RuntimeError(f"backward: input {i} has no .grad; call attach_grad() or requires_grad_() to "
                                   f"make it a variable, or retain_grad() on a recorded result")
            captures.append((*place(x), -1))
    retain = create_graph if retain_graph is None else retain_graph
    calls = calls_of(flags())
    if calls is None: run_pass(nodes, numbers, heads, retain, create_graph, captures, None, _mode(train_mode))
    else:
        arguments = nodes, numbers, heads, retain, create_graph, captures, None, _mode(train_mode)
        note_pass(calls, "backward", outputs, gradients, inputs, arguments)


def grad(
    outputs, inputs, gradients=None, retain_graph=None, *args, create_graph=False, allow_unused=False, train_mode=None
):
    """Return the gradients of `outputs` for `inputs`, as a tuple, or as a tensor if `inputs` is a single tensor or
    GradientEdge. No .grad changes.

    inputs: recorded tensors, variables or GradientEdges. Each gradient has the shape and dtype of its input;
    where embedding() makes a row-sparse gradient of a variable, it is a GradientSlice. Raises RuntimeError with the
    position of an input on which no output depends; with allow_unused=True its gradient is None instead. The other
    arguments and errors are those of backward().
    """
    if args:
        raise TypeError("grad takes create_graph, allow_unused and train_mode by keyword only")
    refuse_levels("autograd.grad")
    return grad_at_levels(outputs, inputs, gradients, retain_graph, create_graph, allow_unused, train_mode)


cdef int refuse_levels(str what) except -1:
    """Raise RuntimeError inside of jvp() and vmap(), because tangents and lanes would not follow."""
    if flags().lifting == 0: return 0
    raise RuntimeError(f"{what}: inside of func.jvp or func.vmap the gradients would ignore tangents and slices; use "
                       f"func.grad or func.vjp there")


def grad_at_levels(outputs, inputs, gradients, retain_graph, create_graph, allow_unused, train_mode=None):
    """grad(), also inside of the transformations of cygrad.func."""
    _check_mode(train_mode, "grad")
    bare = isinstance(inputs, (Tensor, GradientEdge))
    inputs = _listed(inputs)
    if not inputs:
        raise ValueError("grad: got no inputs; pass a tensor or a list of tensors")
    nodes, numbers, heads = _heads(outputs, gradients, "grad")
    captures = []
    for i, x in enumerate(inputs):
        if isinstance(x, GradientEdge):
            captures.append((x.node, x.output_nr, i))
        elif not isinstance(x, Tensor):
            raise TypeError(f"grad: input {i} must be a tensor or a GradientEdge, got {type_name(x)}")
        elif x.requires_grad:
            if not allow_unused: check_readable(<Tensor>x)
            captures.append((*place(x), i))
        elif not allow_unused:
            raise RuntimeError(f"grad: input {i}, of shape {x.shape}, is neither a variable nor a recorded "
                               f"result; call attach_grad() on it before the forward pass, or pass allow_unused=True")
    retain = create_graph if retain_graph is None else retain_graph
    strict = None if allow_unused else "grad"
    calls = calls_of(flags())
    if calls is None:
        results = run_pass(nodes, numbers, heads, retain, create_graph, captures, strict, _mode(train_mode))
    else:
        arguments = nodes, numbers, heads, retain, create_graph, captures, strict, _mode(train_mode)
        results = note_pass(calls, "grad", outputs, gradients, inputs, arguments)
    for g in results:
        if isinstance(g, Tensor) and not is_tracked(<Tensor>g): (<Tensor>g).buffer.flags |= GRAPHLESS
    results += [None] * (len(inputs) - len(results))
    return results[0] if bare else tuple(results)


def _backward(Tensor self, gradient=None, retain_graph=None, *args, create_graph=False, inputs=None, train_mode=None):
    """Compute the gradients of this tensor. See cygrad.backward."""
    cdef Tensor y = self, g = None
    if inputs is None and train_mode is None and not args and is_tracked(y) and not traces() and not flags().lifting:
        ready(y)
        if gradient is None: g = head_full(y, 1)
        elif type(gradient) is Tensor:
            g = gradient
            if g.dtype != y.dtype or not same_shape(g.layout, y.layout): g = None
        if g is not None:
            gradients = [g]
            g = None                                # (`gradients` is the only holder: the head may be overwritten)
            run_pass([y._node], [y._output_nr], gradients, create_graph if retain_graph is None else retain_graph,
                     create_graph, None, None, -1)
            return
    backward(self, gradient, retain_graph, *args, create_graph=create_graph, inputs=inputs, train_mode=train_mode)


_backward.__name__ = "backward"
bind_methods(Tensor, backward=_backward)
