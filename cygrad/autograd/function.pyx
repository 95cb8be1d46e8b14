"""Function: an operation written in Python, with its gradient."""

cimport cython

from libc.stdint cimport uint8_t, uint32_t

from cygrad.core.store cimport layout as lay
from cygrad.core.backward.formula cimport Context
from cygrad.core.graph.calls cimport calls_of
from cygrad.core.graph.lifts cimport is_lifted
from cygrad.core.graph.trace cimport is_frozen, refuse_trace, writes_of
from cygrad.core.graph.operator cimport Operator
from cygrad.core.graph.tensor cimport Node, Tensor, attach, is_tracked, node_of, output_layout, ready, slots_of
from cygrad.core.backward.hooks cimport call_watched
from cygrad.core.execute.inplace cimport check_family, check_writable, follow
from cygrad.core.late_bound cimport late_bound
from cygrad.core.thread_state cimport RECIPES, Flags, flags
from cygrad.core.graph.recording cimport append_to_tape, new_node, set_edge, take_edges, take_outputs, take_slots
from cygrad.core.graph.packing cimport pack
from cygrad.core.graph.running cimport check_stack
from cygrad.core.graph.slots cimport OWN, Slot, save_buffer
from cygrad.core.graph.tape cimport expect_cycles
from cygrad.core.graph.construct cimport view_of
from cygrad.core.graph.unreadable cimport check_readable
from cygrad.core.graph.views cimport put_node, written
from cygrad.kernels.array cimport Layout, has_gradients

from cygrad.core.interop.creation import zeros
from cygrad.core.dtypes import DTYPES
from cygrad.core.errors import GraphFreedError, InplaceError

cdef enum:
    ELSEWHERE = 0x7F        # Slot.source of a tensor that is neither an input nor an output
    MAX_TENSORS = 100       # most inputs, outputs and saved tensors each: their numbers fit in Slot.source


@cython.binding(False)
@cython.embedsignature.format("clinic")
cdef class FunctionContext:
    """The context that forward and backward of a Function share. Set any attributes on it. Save tensors for backward
    with save_for_backward, so that their memory is counted, freed after backward and protected against in-place
    writes."""
    cdef Node node                  # while backward runs
    cdef Context context
    cdef list saved                 # the saved tensors, until apply() has made the node
    cdef list order                 # for each saved tensor: the number of its slot, or None
    cdef readonly tuple needs_input_grad
    cdef bint materialize
    cdef set non_differentiable     # ids of outputs that have no gradient
    cdef set dirty                  # ids of inputs that forward has written to
    # for each output: its number at the node, (shape, dtype) of a tensor without a gradient, or None
    cdef list places
    cdef dict __dict__

    @cython.embedsignature.format("c")
    def __init__(self):                             # (without it Cython takes any arguments)
        pass

    def save_for_backward(self, *tensors):
        """Save tensors (or None) for backward, which reads them from `saved_tensors`. Call it once, in forward or in
        setup_context. Raises TypeError for an argument that is neither a tensor nor None, ValueError for more than
        100."""
        for i, t in enumerate(tensors):
            if t is not None and not isinstance(t, Tensor):
                raise TypeError(f"save_for_backward: argument {i} is {type(t).__name__}; it saves tensors and None; "
                                f"store anything else as an attribute of ctx")
        if len(tensors) > MAX_TENSORS:
            raise ValueError(f"save_for_backward: at most {MAX_TENSORS} tensors, got {len(tensors)}")
        self.saved = [t for t in tensors]            # (list(tensors) leaks it in CPython 3.11 if memory is short)

    def mark_non_differentiable(self, *outputs):
        """Mark outputs as having no gradient. backward still receives one gradient for each output: zeros for these."""
        self.non_differentiable = {id(y) for y in outputs}

    def mark_dirty(self, *inputs):
        """Mark inputs that forward has written in place. forward must return them. While recording, none of them may be
        a variable or a view of one. Raises TypeError for an argument that is not a tensor."""
        for i, x in enumerate(inputs):
            if not isinstance(x, Tensor):
                raise TypeError(f"mark_dirty: argument {i} is {type(x).__name__}; it takes inputs of forward")
        self.dirty = {id(x) for x in inputs}

    def set_materialize_grads(self, bint value):
        """Set whether backward receives zeros (the default) or None for an output that no gradient has reached."""
        self.materialize = value

    @property
    def saved_tensors(self):
        """The tensors that were passed to save_for_backward; readable in backward. Raises GraphFreedError if they have
        been freed."""
        if self.node is None:
            if self.saved is not None: return tuple(self.saved)
            raise GraphFreedError("saved_tensors can be read only in backward, and is freed after it; call backward "
                                  "with retain_graph=True to run it again")
        return tuple([None if k is None else self.tensor(k) for k in self.order])

    cdef object tensor(self, int k):
        cdef Slot* s = &slots_of(self.node)[k]
        if s.source & OWN: return self.context.output(s.source & ~OWN)
        return self.context.input(s.source) if s.source != ELSEWHERE else self.context.tensor(s)


cdef class FunctionOperator(Operator):
    """The operator of a Function subclass."""
    cdef object function

    def __cinit__(self, function):
        self.function = function
        self.name = function.__name__
        self.differentiable = self.joint_formula = True

    cdef object formula(self, c, int i, g):
        cdef Context context = c
        cdef Node node = context.b.node
        cdef FunctionContext ctx = node.attributes
        cdef list grads = []
        given = g if node.n_out > 1 else (g,)
        for place in ctx.places:
            grad = given[place] if isinstance(place, int) else None
            if grad is None and ctx.materialize and place is not None:
                grad = zeros(*place) if isinstance(place, tuple) else zeros(
                    lay.shape_tuple(output_layout(node, place)), DTYPES[node.dtype])
            grads.append(grad)
        given = g = grad = None
        ctx.node, ctx.context = node, context
        try:
            results = call_watched(self.function.backward, (ctx, *grads), context.b.graph, self.name + ".backward")
        finally:
            ctx.node = ctx.context = None
        return self.check(context, node, results if isinstance(results, (tuple, list)) else (results,))

    cdef list check(self, Context context, Node node, results):
        """Check the gradients that backward returned and convert them to the dtypes of the inputs."""
        cdef int k
        cdef Tensor t
        cdef list out = []
        if len(results) != node.n_in:
            raise ValueError(f"{self.name}.backward returned {len(results)} gradients, but forward takes "
                             f"{node.n_in} inputs; return one for each, None for an input without a gradient")
        for k in range(node.n_in):
            value = results[k]
            if value is None or not context.b.want[k]:
                out.append(None)
                continue
            if not isinstance(value, Tensor):
                raise TypeError(f"{self.name}.backward returned {type(value).__name__} as gradient {k}; it must be a "
                                f"tensor or None")
            t = <Tensor>value
            if not lay.same_shape(t.layout, context.b.input_layout(k)):
                raise ValueError(f"{self.name}.backward returned a gradient of shape {t.shape} for input {k} of shape "
                                 f"{context.shape(k)}; they must agree")
            out.append(t if DTYPES[t.dtype] == context.dtype(k) else t.astype(context.dtype(k)))
        return out


cdef Node function_node(Operator op, FunctionContext ctx, tuple inputs, list outputs, list nr, Flags* f):
    """The node of a Function call: edges to the nodes of its inputs, and slots for the saved tensors."""
    cdef Node node
    cdef int i, k, count = 0
    cdef Slot* s
    cdef Tensor t
    cdef Layout** layouts
    cdef list tensors = ctx.saved or []
    expect_cycles()                                 # ctx may refer to any object
    node = new_node()
    take_edges(node, len(inputs))
    for i, x in enumerate(inputs):
        if isinstance(x, Tensor) and is_tracked(<Tensor>x):
            set_edge(node, i, (<Tensor>x)._node, (<Tensor>x)._output_nr)
    node.op, node.attributes, node.dtype = op, ctx, (<Tensor>outputs[nr[0]]).dtype
    layouts = take_outputs(node, len(nr))
    for k in range(len(nr)): layouts[k] = lay.incref((<Tensor>outputs[nr[k]]).layout)
    ctx.order = []
    for value in tensors:
        if value is not None and type(value) is not Tensor:
            raise RuntimeError(f"save_for_backward: a tensor that {op.name}.forward saved was freed in it; do not "
                               f"free it, or save another tensor")
        if value is not None: ready(<Tensor>value)
        ctx.order.append(None if value is None else count)
        count += value is not None
    s = take_slots(node, count)
    k = 0
    for value in tensors:
        if value is None: continue
        t = <Tensor>value
        save_buffer(&s[k], source_of(t, inputs, outputs, nr), t.buffer, t.layout, t.dtype)
        k += 1
    append_to_tape(node, f)
    if f.pack != NULL: pack(node, f)
    return node


cdef uint8_t source_of(Tensor t, tuple inputs, list outputs, list nr):
    """The Slot.source of a saved tensor. A tensor that is input and output was written in place: it counts as
    output."""
    for i in range(len(nr)):
        if outputs[nr[i]] is t: return OWN | i
    for i in range(len(inputs)):
        if inputs[i] is t: return i
    return ELSEWHERE


class Function:
    """The base class of operations written in Python. A subclass defines two static methods,

        forward(ctx, *inputs)       returns one output or a tuple of outputs; outputs that are not tensors pass through
        backward(ctx, *grads)       returns the gradient of each input, or None, from the gradients of all outputs

    and is called by `Cls.apply(*inputs)`. forward runs with recording off. ctx.save_for_backward saves tensors for
    backward, and ctx.needs_input_grad tells which inputs need a gradient. Alternatively, forward(*inputs) takes no ctx,
    and a third static method, setup_context(ctx, inputs, output), is called after it; its inputs contain the defaults
    of forward(x, p=3). With create_graph=True the operations of backward are recorded, so a backward that uses
    operators is itself differentiable.

    cg.func.vmap calls forward for one slice after another. cg.func.jvp computes tangents by backward, which must use
    operators for that."""

    def __init__(self, *_, **__):
        raise RuntimeError(f"{type(self).__name__} is not instantiated; call {type(self).__name__}.apply(...)")

    @staticmethod
    def forward(ctx, *inputs):
        """Compute the outputs. The subclass defines it."""
        raise NotImplementedError("a Function needs a static method forward(ctx, *inputs)")

    @staticmethod
    def setup_context(ctx, inputs, output):
        """Save what backward needs, given the inputs (a tuple) and the return value of forward. A subclass that defines
        this has a forward without ctx."""

    @staticmethod
    def backward(ctx, *grads):
        """Compute the gradients of the inputs. The subclass defines it."""
        raise NotImplementedError("a Function needs a static method backward(ctx, *grads)")

    @classmethod
    def apply(cls, *inputs, **named):
        """Run forward on `inputs`. The call is recorded if the thread is recording and an input is part of a graph. An
        input that is given by name becomes one by position. With setup_context, so does the default of an input that is
        not given: setup_context sees it, and backward returns a gradient (None) for it. Raises TypeError for inputs
        that forward does not take."""
        return run_function(cls, positioned(cls, inputs, named))


cdef int check_dirty(cls, set dirty, tuple inputs, list versions, list outputs, Flags* f) except -1:
    """Check that every input that forward has written is marked, is returned, and may be written."""
    cdef Tensor t
    for i, x in enumerate(inputs):
        if id(x) not in dirty:
            if versions[i] is not None and writes_of((<Tensor>x).buffer) != <uint32_t>versions[i]:
                raise InplaceError(f"{cls.__name__}.forward wrote in place to input {i} of shape {x.shape}; mark_dirty "
                                   f"it and return it, or write to a copy()")
            continue
        t = <Tensor>x
        if not any([y is x for y in outputs]):
            raise RuntimeError(f"{cls.__name__}.forward marked input {i} of shape {x.shape} as dirty, but did not "
                               f"return it; an input that is written in place must be an output")
        check_writable(t, f)
        check_family(t, 0)
    return 0


cdef tuple positioned(cls, tuple inputs, dict named):
    """All inputs of a Function by position: those that are named, and the defaults that setup_context is to see."""
    cdef bint with_context = cls.setup_context is Function.setup_context
    forward = cls.forward
    if not named and (with_context or not (getattr(forward, "__defaults__", None) or hasattr(forward, "__wrapped__"))):
        return inputs
    from inspect import signature                   # takes 14 ms, so only these need it

    bound = signature(forward).bind(*((None,) * with_context + inputs), **named)
    if bound.kwargs:
        raise TypeError(f"{cls.__name__}.apply: forward takes {', '.join(bound.kwargs)} by name only; an input of a "
                        f"Function has a place, so that backward can return its gradient")
    if not with_context: bound.apply_defaults()
    return bound.args[with_context:]


cdef object run_function(cls, tuple inputs):
    cdef FunctionContext ctx = FunctionContext.__new__(FunctionContext)
    cdef Flags* f = flags()
    if calls_of(f) is not None: refuse_trace(f"the autograd.Function {cls.__name__}")
    cdef int recording = f.recording
    cdef bint tracked = False
    cdef void* outer = f.inputs
    cdef void* packing = f.pack
    cdef int k
    cdef list needs = [], versions = []
    if len(inputs) > MAX_TENSORS:
        raise ValueError(f"{cls.__name__}.apply: at most {MAX_TENSORS} inputs, got {len(inputs)}")
    check_stack()
    if f.lifting:
        for x in inputs:
            if type(x) is Tensor and is_lifted(<Tensor>x, f.lifting): return late_bound.function_at_levels(cls, inputs)
    for x in inputs:
        if isinstance(x, Tensor): check_readable(<Tensor>x)
        needs.append(type(x) is Tensor and is_tracked(<Tensor>x) and not is_frozen(<Tensor>x))
        versions.append(writes_of((<Tensor>x).buffer) if needs[-1] and recording else None)
        tracked |= <bint>needs[-1]
    ctx.needs_input_grad = tuple(needs)
    ctx.materialize = True
    f.recording = False
    if recording: f.inputs = <void*>inputs          # forward may write to these in place
    if f.inspecting >= RECIPES: f.pack = NULL       # what Python code computes is not computed again
    try:
        if cls.setup_context is Function.setup_context: result = cls.forward(ctx, *inputs)
        else:
            result = cls.forward(*inputs)
            cls.setup_context(ctx, inputs, result)
    finally:
        f.recording, f.inputs, f.pack = recording, outer, packing
    several = isinstance(result, (tuple, list))
    outputs = list(result) if several else [result]
    dirty = ctx.dirty or set()
    if recording and tracked:
        check_dirty(cls, dirty, inputs, versions, outputs, f)
        outputs = record_function(cls, ctx, inputs, outputs, dirty, f)
    else:
        outputs = [detach_duplicate(y, inputs, outputs, k, dirty) for k, y in enumerate(outputs)]
    ctx.saved = None
    return tuple(outputs) if several else outputs[0]


cdef object detach_duplicate(y, tuple inputs, list outputs, int k, set dirty):
    """Output `k`, as a new tensor on the same memory if it is an unwritten input, an earlier output or already part of
    the graph, so that each tensor has one graph position."""
    cdef Tensor t
    if type(y) is not Tensor or id(y) in dirty: return y
    cdef bint seen = node_of(<Tensor>y) is not None or any([y is x for x in inputs])
    if not seen and not any([y is outputs[i] for i in range(k)]): return y
    t = view_of(<Tensor>y, lay.incref((<Tensor>y).layout))
    t.detached = True
    return t


cdef list record_function(cls, FunctionContext ctx, tuple inputs, list outputs, set dirty, Flags* f):
    """Record the call: attach the outputs to a new node. Returns them unchanged if none has a gradient."""
    cdef Node node
    cdef Tensor t
    cdef int k
    cdef list nr = [], puts = []
    non_differentiable = ctx.non_differentiable or ()
    ctx.places = []
    for k, y in enumerate(outputs):
        if isinstance(y, Tensor) and type(y) is not Tensor:
            raise RuntimeError(f"{cls.__name__}.forward returned a tensor, output {k}, that was freed in it")
        if type(y) is Tensor and has_gradients((<Tensor>y).dtype) and id(y) not in non_differentiable:
            ctx.places.append(len(nr))
            nr.append(k)
        else:
            ctx.places.append((y.shape, y.dtype) if type(y) is Tensor else None)
    numbers = {id(y): k for k, y in enumerate(outputs)}
    outputs = [detach_duplicate(y, inputs, outputs, k, dirty) for k, y in enumerate(outputs)]
    if ctx.saved is not None:                        # replace a saved output by its tensor at the node
        ctx.saved = [outputs[numbers[id(t)]]
                     if t is not None and id(t) in numbers and not any([t is x for x in inputs]) else t
                     for t in ctx.saved]
    if len(nr) > MAX_TENSORS:
        raise ValueError(f"{cls.__name__}.forward returned {len(nr)} outputs; at most {MAX_TENSORS}")
    if not nr: return outputs
    for k in nr:
        if (<Tensor>outputs[k]).dtype != (<Tensor>outputs[nr[0]]).dtype:
            raise TypeError(f"{cls.__name__}.forward returned outputs of dtypes {outputs[nr[0]].dtype} and "
                            f"{outputs[k].dtype}; those with a gradient must have the same dtype")
    if "_operator" not in cls.__dict__: cls._operator = FunctionOperator(cls)
    node = function_node(cls._operator, ctx, inputs, outputs, nr, f)
    ctx.saved = None                                # otherwise ctx would hold its own outputs from now on
    for k in range(len(nr)):                        # everything that can fail runs before the first tensor is attached
        t = <Tensor>outputs[nr[k]]
        puts.append(put_node(t) if id(t) in dirty else None)
        if id(t) in dirty and puts[-1] is None: follow(t, node, k)
    for k in range(len(nr)):
        t = <Tensor>outputs[nr[k]]
        if id(t) in dirty: written(t, node, k, puts[k])
        else: attach(t, node, k)
    return outputs
