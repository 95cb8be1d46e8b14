"""The gradients of a solver's parameters: which of them a backward pass has reached, and their decay, clipping, scaling
and checks. What can fail, copies and other allocations included, precedes the first write."""

from libc.math cimport hypot
from libc.stdint cimport int64_t
from libc.string cimport memset

from cygrad.core.graph.construct cimport copy_plain
from cygrad.core.graph.freed cimport FreedTensor
from cygrad.core.graph.gradient_slice cimport check_range
from cygrad.core.graph.tensor cimport Leaf, array_of, data_of, is_result, is_variable, node_of, ready
from cygrad.core.graph.effects cimport call_solver
from cygrad.core.graph.trace cimport is_frozen, refuse_trace, seen_leaf, touch_leaf, traces
from cygrad.core.store.buffer cimport WORKSPACE, allocate, drop
from cygrad.kernels.array cimport Array, itemsize
from cygrad.kernels.driver cimport scatter
from cygrad.kernels.grouping cimport Groups, group, group_bytes
from cygrad.kernels.update cimport run as run_rule
from cygrad.kernels.update cimport Kernel, find_inf_nan, kernel, norm, run_rows
from cygrad.optim.parameters cimport SolverParameter

from cygrad.core.errors import InplaceError


cdef list reached(dict parameters, str what, str refuses, size_t* workspace_bytes):
    """[(parameter, gradient)] for the parameters that a backward pass has reached; the gradient is a tensor or a
    GradientSlice, and contiguous. `refuses` names a solver that takes no GradientSlice. `workspace_bytes`, unless
    NULL, becomes what run_slice() needs. Raises for incomplete gradients and for those that do not fit."""
    cdef SolverParameter p
    cdef Tensor w, g
    cdef Leaf leaf
    cdef list found = []
    cdef size_t nbytes = 0
    cdef bint tracing = traces()
    for name, p in parameters.items():
        w = p.tensor
        if not is_variable(w):
            if type(w) is FreedTensor:
                raise RuntimeError(f"{what}: {name!r} was freed, by its free() or at the end of a memory.scope(); call "
                                   f"remove_parameters({name!r})")
            continue
        if tracing and is_frozen(w): continue
        leaf = seen_leaf(<Leaf>node_of(w))
        if leaf.incomplete:
            raise RuntimeError(
                f"{what}: the gradient of {name!r} is incomplete: a backward pass failed, or the gradient was zeroed "
                f"or assigned by a hook, after some of its contributions had been added; call zero_grad() and run the "
                f"backward pass again, or assign a gradient")
        if not leaf.fresh or (leaf.grad is None and leaf.rows is None): continue
        if tracing: leaf = touch_leaf(leaf)
        else: data_of(w)
        if leaf.rows is not None:
            found.append((p, rows_for(<GradientSlice>leaf.rows, w, name, what, refuses, &nbytes)))
            continue
        g = leaf.grad
        ready(g)                                    # (allocates zeros that have no memory yet)
        found.append((p, g if g.layout.dense else copy_plain(g)))
    if workspace_bytes != NULL: workspace_bytes[0] = nbytes
    return found


cdef GradientSlice rows_for(GradientSlice rows, Tensor w, name, str what, str refuses, size_t* nbytes):
    """A row-sparse gradient of `w`, contiguous. `nbytes` becomes at least what run_slice() needs. Raises TypeError if
    the solver takes none, ValueError for rows that `w` does not have."""
    if refuses is not None:
        raise TypeError(f"{what}: the gradient of {name!r} is a GradientSlice, and {refuses} takes only tensors; "
                        f"assign its to_dense(), or use embedding() with sparse=False and attach_grad() without stype")
    check_range(rows, w.layout.shape[0])
    if not rows.values.layout.dense or not rows.indices.layout.dense: rows = rows.copy()
    nbytes[0] = max(nbytes[0], group_bytes(rows.indices.layout.size))
    return rows


cdef object decayed(SolverParameter p, gradient, double rate):
    """gradient + rate wd_mult w, in new memory; the gradient can be that of others, too."""
    cdef Target t = Target.__new__(Target)
    t.p = p
    if type(gradient) is GradientSlice:
        t.rows = (<GradientSlice>gradient).deduplicate()
        t.values = t.rows.values
    else: t.values = copy_plain(<Tensor>gradient)
    run_on(t, kernel("decay"), rate * p.group.wd_mult)
    return t.rows if t.rows is not None else t.values


cdef bint is_traced(solver, dict parameters, str name, str refuses, tuple arguments) except -1:
    """During a trace, instead of a write to the gradients of the parameters, or by "update" to the parameters: let a
    program call the solver's method `name`, and return True."""
    cdef size_t workspace_bytes = 0
    cdef SolverParameter p
    if not traces(): return False
    found = [(<SolverParameter>p).tensor for p, _ in reached(parameters, name, refuses, &workspace_bytes)]
    if name == "update" and workspace_bytes: drop(allocate(workspace_bytes, WORKSPACE))
    seen = {id(x) for x in found}
    others = [p.tensor for p in parameters.values() if id(p.tensor) not in seen and is_variable(p.tensor)]
    call_solver(solver, name, arguments, found, others)
    return True


cdef int run_slice(Update* u, Tensor w, GradientSlice g, char* workspace) except -1:
    """Run an update of the rows of `w` that a gradient has. `workspace` has group_bytes() of its indices."""
    cdef Array a[3]
    a[0], a[1], a[2] = array_of(w), array_of(g.values), array_of(g.indices)
    return run_by_rows(u, a, workspace)


cdef int run_by_rows(Update* u, const Array* a, char* workspace) except -1:
    """The same for the elements of w, of the values and of the indices."""
    cdef Py_ssize_t n = a[2].layout.size
    cdef Groups groups
    if not n: return 0
    u.g = a[1].data
    group(&groups, <const int64_t*>a[2].data, n, a[0].layout.shape[0], workspace)
    run_rows(u, &groups, a[1].layout.size // n)
    return 0


# ---- writes to gradients ---------------------------------------------------------------------------------------------

cdef class Target:
    """The gradient of a parameter, to be written."""
    cdef SolverParameter p
    cdef Tensor values      # contiguous: the gradient, a copy of it, or the values of `rows`
    cdef Tensor strided     # the gradient, if `values` is a copy
    cdef GradientSlice rows     # the new gradient, in which no index repeats, or None


cdef list targets(dict parameters, str what, bint once):
    """The gradients that a backward pass has reached. With `once`, one that several parameters share occurs once."""
    cdef SolverParameter p
    cdef Target t
    cdef Leaf leaf
    cdef list out = []
    cdef set seen = set()
    cdef dict names = {id(q): name for name, q in parameters.items()}
    for p, g in reached(parameters, what, None, NULL):
        leaf = <Leaf>node_of(p.tensor)
        t = Target.__new__(Target)
        t.p = p
        if leaf.rows is not None:
            t.rows = g.deduplicate()
            t.values = t.rows.values
        else:
            if is_result(leaf.grad):
                raise InplaceError(f"{what}: the gradient of {names[id(p)]!r} has a graph (create_graph=True) and "
                                   f"cannot be written; assign its detach() to .grad first")
            if once and id(leaf.grad) in seen: continue
            seen.add(id(leaf.grad))
            t.values = <Tensor>g
            if t.values is not leaf.grad: t.strided = leaf.grad
        out.append(t)
    return out


cdef int run_on(Target t, const Kernel* k, double c) except -1:
    """Run a kernel over the values of a gradient."""
    cdef Update u
    cdef Py_ssize_t i, n = t.values.layout.size, rows = t.values.layout.shape[0] if t.rows is not None else 1
    cdef char* parameter = data_of(t.p.tensor)
    cdef char* values = data_of(t.values)
    cdef const int64_t* index = <const int64_t*>data_of(t.rows.indices) if t.rows is not None else NULL
    memset(&u, 0, sizeof(u))
    u.kernel, u.dtype, u.n, u.w, u.g, u.c[0] = k, t.values.dtype, n, values, parameter, c
    if t.rows is None: run_rule(&u)
    elif n:
        u.n = n // rows
        for i in range(rows):
            u.w, u.g = values + i * u.n * itemsize(u.dtype), parameter + index[i] * u.n * itemsize(u.dtype)
            run_rule(&u)


cdef int write(Target t, const Kernel* k, double c) except -1:
    """Run a kernel over a gradient."""
    cdef Array a
    cdef Leaf leaf = <Leaf>node_of(t.p.tensor)
    run_on(t, k, c)
    if t.strided is not None:
        a = array_of(t.strided)
        scatter(data_of(t.values), &a, 0, t.values.layout.size)
        t.strided.buffer.version += 1
    elif t.rows is None: t.values.buffer.version += 1
    else: leaf.rows = t.rows


cdef int decay(dict parameters, double rate) except -1:
    """g += rate wd_mult w"""
    cdef Target t
    cdef const Kernel* k = kernel("decay")
    for t in targets(parameters, "weight_decay", False): write(t, k, rate * t.p.group.wd_mult)


cdef int clip_by_norm(dict parameters, double bound) except -1:
    """g *= bound / max(bound, |g|)"""
    cdef Target t
    cdef const Kernel* k = kernel("scale")
    cdef double size
    for t in targets(parameters, "clip_grad_by_norm", True):
        size = norm(t.values.dtype, data_of(t.values), t.values.layout.size)
        if not size <= bound: write(t, k, bound / size)


cdef double clip_by_global_norm(dict parameters, double bound) except? -1:
    """g *= bound / max(bound, norm). Returns the norm of all gradients together."""
    cdef Target t
    cdef const Kernel* k = kernel("scale")
    cdef double size = 0
    cdef list all_targets = targets(parameters, "clip_grad_by_global_norm", True)
    for t in all_targets: size = hypot(size, norm(t.values.dtype, data_of(t.values), t.values.layout.size))
    if not size <= bound:
        for t in all_targets: write(t, k, bound / size)
    return size


cdef int clip_by_value(dict parameters, double bound) except -1:
    """g = clip(g, -bound, bound)"""
    cdef Target t
    cdef const Kernel* k = kernel("clip")
    for t in targets(parameters, "clip_grad_by_value", True): write(t, k, bound)


cdef int scale(dict parameters, double factor) except -1:
    """g *= factor"""
    cdef Target t
    cdef const Kernel* k = kernel("scale")
    for t in targets(parameters, "scale_grad", True): write(t, k, factor)


cdef tuple check(dict parameters, str what):
    """(whether a gradient has an infinite element, whether one has a NaN)"""
    cdef bint inf = False, nan = False
    refuse_trace(what + "() of a solver")
    cdef Tensor values
    for _, g in reached(parameters, what, None, NULL):
        values = g.deduplicate().values if type(g) is GradientSlice else <Tensor>g
        find_inf_nan(values.dtype, data_of(values), values.layout.size, &inf, &nan)
    return inf, nan
