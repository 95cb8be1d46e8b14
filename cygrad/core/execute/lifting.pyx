"""Operations on tensors that have lifts (lifting.pxd). The innermost level of any operand comes first: its rule
executes the operation, and others, with this level out of sight. What the levels below have to do follows from these.
"""

cimport cython

from cygrad.core.graph.lifts cimport LANES, Lift, attach_lift, is_lifted, lift_below
from cygrad.core.graph.operator cimport Operator
from cygrad.core.graph.tensor cimport Tensor
from cygrad.core.late_bound cimport late_bound, run_lifted_t
from cygrad.core.store cimport layout as lay
from cygrad.core.thread_state cimport Flags, flags
from cygrad.kernels.array cimport has_gradients

from cygrad.core.dtypes import DTYPES
from cygrad.core.interop.creation import full


cdef bint reads_lifted(const Operand* x, int n, int depth):
    """Whether an operand has a lift of one of the first `depth` levels."""
    cdef int i
    for i in range(n):
        if x[i].buffer != NULL and is_lifted(<Tensor>x[i].tensor, depth): return True
    return False


cdef list operand_list(const Operand* x, int n):
    return [<object>x[i].tensor for i in range(n)]


cdef object run_lifted(Operator op, list operands, object attributes, Tensor target):
    """Execute an operation, of which an operand or the `target` (None: the result is new) has a lift that this thread
    sees."""
    cdef Flags* f = flags()
    cdef int depth = f.lifting
    cdef Lift top = None, lift
    for x in (*operands, target):
        if not isinstance(x, Tensor) or not (<Tensor>x).lifted: continue
        lift = lift_below(<Tensor>x, depth)
        if lift is not None and (top is None or lift.level.depth > top.level.depth): top = lift
    f.lifting = top.level.depth - 1
    try:
        if target is not None: return write(op, operands, attributes, target, top)
        if top.level.kind == LANES: return on_lanes(op, operands, attributes, top)
        return with_tangents(op, operands, attributes, top)
    finally:
        f.lifting = depth


cdef object on_lanes(Operator op, list operands, object attributes, Lift top):
    """Execute an operation for all lanes. The result stands for its lanes."""
    cdef list every = [], mapped = []
    for x in operands:
        all_of = top.level.value(x) if isinstance(x, Tensor) else None
        every.append(x if all_of is None else all_of)
        mapped.append(all_of is not None)
    y = late_bound.map_lanes(op, every, mapped, attributes, top.level.lanes)
    if isinstance(y, tuple): return tuple([top.level.stand_in(z) for z in y])
    return top.level.stand_in(y)


cdef object with_tangents(Operator op, list operands, object attributes, Lift top):
    """Execute an operation, and compute the tangents of its results."""
    cdef list tangents = []
    y = executed(op, operands, attributes)
    results = y if isinstance(y, tuple) else (y,)
    if not op.differentiable or not has_gradients((<Tensor>results[0]).dtype): return y
    for x in operands: tangents.append(top.level.value(x) if isinstance(x, Tensor) else None)
    if op.diagonal:
        found = diagonal(op, operands, tangents, attributes, <Tensor>y)
        if found is not None: attach_lift(<Tensor>y, top.level, <Tensor>found)
        return y
    for z, tangent in zip(results, late_bound.tangents_of(op, operands, tangents, attributes, results), strict=True):
        if tangent is not None: attach_lift(<Tensor>z, top.level, <Tensor>tangent)
    return y


cdef inline object executed(Operator op, list operands, object attributes):
    if len(operands) == 1: return late_bound.apply1(op, operands[0], attributes)
    if len(operands) == 2: return late_bound.apply2(op, operands[0], operands[1], attributes)
    return late_bound.apply_list(op, operands, attributes)


@cython.binding(False)
@cython.embedsignature.format("clinic")
cdef class Executed:
    """The context of a formula (core/backward/formula.Context) of an operation that has run and has no node."""
    cdef list operands
    cdef readonly object attributes
    cdef Tensor result
    create_graph = True

    def input(self, int i):
        """Input i."""
        x = self.operands[i]
        return x if isinstance(x, Tensor) else full((), x, dtype=DTYPES[self.result.dtype])

    def output(self, int k):
        """The result."""
        return self.result

    def shape(self, int i):
        """The shape of input i."""
        x = self.operands[i]
        return (<Tensor>x).shape if isinstance(x, Tensor) else ()

    def dtype(self, int i):
        """The dtype of the operation."""
        return DTYPES[self.result.dtype]

    def wants(self, int i):
        """Whether the formula computes the part of input i."""
        return True

    def locally_constant(self, z):
        """`z`, which has no node to be connected to."""
        return z


cdef object diagonal(Operator op, list operands, list tangents, object attributes, Tensor y):
    """The tangent of an elementwise operation, or None: its Jacobian is diagonal, so the formula of a gradient is that
    of a tangent too."""
    cdef Executed context = Executed.__new__(Executed)
    cdef int i
    context.operands, context.attributes, context.result = operands, attributes, y
    total = None
    for i in range(len(operands)):
        if tangents[i] is None: continue
        part = op.formula(context, i, tangents[i])
        if part is not None: total = part if total is None else total + part
    if total is None or lay.same_shape((<Tensor>total).layout, y.layout): return total
    return late_bound.broadcast_to(total, y.shape)


cdef object write(Operator op, list operands, object attributes, Tensor target, Lift top):
    """Execute an operation that writes to `target`."""
    cdef Tensor all_of
    if top.level.kind == LANES:
        all_of = top.level.value(target)
        if all_of is None:
            raise RuntimeError(f"vmap: {op.name} in place would write values that differ from lane to lane to a tensor "
                               f"of shape {target.shape} that all lanes share; compute a new tensor instead")
        y = on_lanes(op, operands, attributes, top)
        all_of.copy_(top.level.value(y))
        return target
    if target.base is not None:
        raise RuntimeError(f"jvp: {op.name} in place would write to a tensor of shape {target.shape} that is a view, "
                           f"or has views, whose tangents would not follow; compute a new tensor instead")
    y = with_tangents(op, operands, attributes, top)
    tangent = top.level.value(y)
    target.copy_(y)
    if tangent is None: tangent = late_bound.zeros_like(target)
    attach_lift(target, top.level, tangent)
    return target


late_bound.run_lifted = <run_lifted_t>run_lifted
