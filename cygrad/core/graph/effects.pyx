"""What a traced program does to the gradients of variables (effects.pxd): fresh_grad, a .grad that becomes None, the
memory in which each run leaves the gradient, and the calls of solvers."""

from cygrad.core.graph.calls cimport note, tensor_item
from cygrad.core.graph.extras cimport consumer_in
from cygrad.core.graph.gradient_slice cimport GradientSlice
from cygrad.core.graph.steps cimport (
    READS, WRITES, Arrays, copy_elements, elements_in, emit, fill_zeros, new_step, put_array, trace_loop,
)
from cygrad.core.graph.tensor cimport Tensor, fill, node_of, put_grad, shell
from cygrad.core.graph.trace cimport PREPARING, Storage, is_outside, preparing, raise_version, refuse_trace, trace_of
from cygrad.core.graph.undo cimport Twin, keep_role, made_by_traces
from cygrad.core.store cimport layout as lay
from cygrad.core.store.buffer cimport OTHER, VIRTUAL, ZEROS, Buffer, Life, life_of, new_virtual
from cygrad.core.thread_state cimport flags
from cygrad.kernels cimport driver
from cygrad.kernels.array cimport Array, itemsize

cdef driver.Loop* copy_loop = driver.find("copy")


cdef int change_gradient(Array* a, const void* parameters, object held) except -1:
    """A kernel: something has happened to the gradient of the variable whose accumulator is `held`."""
    cdef Leaf leaf = <Leaf>held
    cdef const Change* c = <const Change*>parameters
    if c.none: put_grad(leaf, None)
    if c.what == ADDED: leaf.fresh = not leaf.incomplete
    elif c.what == MARKED or c.what == UNMARKED: leaf.fresh = c.what == MARKED
    else:
        if c.what != ASSIGNED_NONE: leaf.fresh = c.what == OVERWRITTEN
        leaf.incomplete = False
    if leaf.grad is not None: leaf.grad.buffer.version += 1
    return 0


cdef const Change* change_in(Step s) noexcept:
    """What a step does to the gradient of the variable whose accumulator is s.held, beside its memory, or NULL."""
    return <const Change*>s.parameters if s.kernel == change_gradient else NULL


cdef int trace_change(Leaf leaf, int what, bint none) except -1:
    """Let a program change what it knows of a gradient. `none`: the .grad becomes None."""
    cdef Trace t = preparing(flags())
    cdef bint fresh = what == OVERWRITTEN or what == ADDED or what == MARKED
    cdef Change c
    cdef Arrays x
    if t is None or not t.has_outside(leaf): return 0
    leaf = t.outside(leaf)
    if fresh and <size_t><void*>leaf in t.early:
        refuse_trace("a method of a solver that precedes the backward pass of its gradients")
    if fresh: (<Storage>t.storages[t.gradient_storage(leaf)]).in_use = True
    x.n, c.what, c.none = 0, what, none
    return emit(t, new_step(t, ".grad", change_gradient, &x, &c, sizeof(c), leaf))


cdef int trace_leaf(Leaf leaf, int what) except -1:
    """leaf_step() during a trace, which also lists it."""
    cdef str kind = "zeros" if what == ZEROED else "removed" if what == REMOVED else "none"
    cdef bint listed = what == ZEROED or what == REMOVED or what == ASSIGNED_NONE
    if listed and leaf.tensor != NULL and (what == ZEROED or is_outside(<Tensor>leaf.tensor)):
        note("zero_grad", ([<Tensor>leaf.tensor], kind, None))
    return trace_change(leaf, what, False)


# ---- the memory of gradients -----------------------------------------------------------------------------------------

cdef int settle(Trace t, Leaf leaf) except -1:
    """Make the gradient of a variable be in the memory of its .grad when the program is here."""
    cdef Tensor grad = leaf.grad
    cdef Storage s
    cdef Life* life
    cdef Buffer* b
    cdef Arrays x
    cdef int number
    if t.purpose != PREPARING or not t.has_outside(leaf): return 0
    step = t.empty_rows.pop(<size_t><void*>leaf, None)
    if leaf.rows is not None: return 0 if step is None else emit(t, step)
    if grad is not None and <size_t><void*>leaf in t.with_rows:
        refuse_trace("a .grad that is first a GradientSlice and then a tensor")
    if grad is None:
        return trace_change(leaf, ASSIGNED_NONE, True)  # (what it was before, an earlier step has set)
    b = grad.buffer
    if b.flags & ZEROS and consumer_in(t.outside(leaf)) is not None:    # (its .grad may have no memory, and needs none)
        x.n = 0
        return emit(t, new_step(t, "zero_grad", zero_outside, &x, NULL, 0, t.outside(leaf)))
    number = t.gradient_storage(leaf)
    s = t.storages[number]
    if b.flags & ZEROS:
        emit(t, zero_step(t, number, leaf))
        return 0
    life = life_of(b)
    if life == NULL: return 0
    if life.storage == number: return 0
    if (life.storage < 0 and grad.layout.dense and grad.layout.offset == 0
            and life.nbytes == <size_t>(leaf.layout.size * itemsize(leaf.dtype)) and t.is_free(s, life)):
        life.storage = number
        s.lives.append(life.number)
        return 0
    return emit(t, copy_to(t, number, leaf, grad))


cdef int zero_outside(Array* a, const void* parameters, object held) except -1:
    """A kernel: zero the .grad of the variable whose accumulator is `held`."""
    cdef Leaf leaf = <Leaf>held
    if leaf.tensor != NULL: (<Tensor>leaf.tensor).zero_grad()
    return 0


cdef Step zero_step(Trace t, int number, Leaf leaf):
    """A step that fills the .grad of a variable with zeros."""
    cdef Arrays x
    cdef Array a
    cdef Step s
    x.n = 0
    a.data, a.layout, a.dtype = NULL, leaf.layout, leaf.dtype
    put_array(&x, a, NULL, WRITES)
    s = new_step(t, "zero_grad", fill_zeros, &x, NULL, 0, None)
    s.point_to_storage(t, &s.arrays[0].data, number)
    return s


cdef Step copy_to(Trace t, int number, Leaf leaf, Tensor grad):
    """A step that copies a gradient to the .grad of its variable."""
    cdef Arrays x
    cdef Array a
    cdef Step s
    x.n = 0
    a.data, a.layout, a.dtype = NULL, leaf.layout, leaf.dtype
    put_array(&x, elements_in(grad), grad.buffer, READS)
    put_array(&x, a, NULL, WRITES)
    s = new_step(t, ".grad", copy_elements, &x, NULL, 0, None)
    s.point_to_storage(t, &s.arrays[1].data, number)
    return s


cdef int take_back(Trace t, Leaf leaf) except -1:
    """After a step that writes to a .grad: if settle() has copied the gradient there, copy it back."""
    cdef Tensor grad = leaf.grad, y
    cdef Arrays x
    cdef Life* life
    cdef int number = t.gradient_storage(leaf)
    life = NULL if grad is None else life_of(grad.buffer)
    if life == NULL or life.storage == number: return 0
    life = t.new_life(leaf.layout.size * itemsize(leaf.dtype))
    life.storage = number
    (<Storage>t.storages[number]).lives.append(life.number)
    y = shell()
    fill(y, new_virtual(life, OTHER), lay.dense_like(leaf.layout), leaf.dtype)
    x.n = 0
    put_array(&x, elements_in(y), y.buffer, READS)
    put_array(&x, elements_in(grad), grad.buffer, WRITES)
    return trace_loop(".grad", copy_loop, &x)


cdef list changed_leaves(Trace t):
    """The accumulators of variables from outside whose gradients have changed, as the program sees them."""
    cdef Twin u
    return [u.state for u in t.undo if u.state is not None and t.has_outside(u.leaf)]


cdef int finish(Trace t) except -1:
    """After the last step: put each gradient into its .grad."""
    cdef Twin u
    for u in t.undo:
        if u.state is not None: settle(t, u.state)
        elif u.leaf.tensor != NULL: refuse_trace("attach_grad() or requires_grad_() of a tensor from outside")
    return 0 if t.around is None else t.around.finish()


cdef Tensor grad_for_rows(Leaf leaf, bint overwrite):
    """The tensor in .grad to which a pass adds rows, or None; what stands for a .grad of None is none. Raises
    RuntimeError if a program would add rows to those of an earlier run, because their number would grow."""
    cdef Trace t = preparing(flags())
    cdef Tensor grad = leaf.grad
    cdef GradientSlice rows = <GradientSlice>leaf.rows
    cdef Life* life
    if t is None: return grad
    life = NULL if grad is None else life_of(grad.buffer)
    stands = (life != NULL and not grad.buffer.version and t.of_none.get(<size_t><void*>leaf) == life.number)
    note_kind(t, leaf, overwrite, stands)
    before = rows is not None and rows.values.layout.size and not rows.values.buffer.flags & VIRTUAL
    if not overwrite and (stands or before):
        refuse_trace("adding a row-sparse gradient to the .grad of an earlier run")
    return None if stands else grad


cdef int note_kind(Trace t, Leaf leaf, bint overwrite, bint stands) except -1:
    """If what happens to the rows depends on the kind of .grad from outside, a program compares that at each run."""
    cdef object found = t.twins.get(<size_t><void*>leaf)
    cdef Twin u
    if found is None or (overwrite and leaf.sparse and not leaf.given): return 0
    u = found
    if u.grad is not None: outside = leaf.grad is not None and u.grad() is leaf.grad
    else: outside = stands or (leaf.rows is not None and leaf.rows is u.rows)
    if outside: t.around.rows.append((u.leaf, u.grad is not None))
    return 0


# ---- roles -----------------------------------------------------------------------------------------------------------

cdef int refuse_role(Tensor x) except -1:
    """Raise RuntimeError if a program that becomes a net changes the role of a tensor from outside."""
    cdef Trace t = trace_of(flags())
    if t is None or t.calls is None or not t.is_outside(x): return 0
    return refuse_trace("attach_grad(), requires_grad_() or drop_grad() of a tensor from outside")


cdef bint has_own_role(Tensor x, Leaf leaf, bint made) except -1:
    """Before a change of the role of `x`: whether this thread traces and has an accumulator of its own for `x`, in
    which alone the role changes. `made`: `x` has just got `leaf`, whose gradient is then the program's own."""
    cdef Trace t = trace_of(flags())
    cdef Twin u
    if t is None:
        if made_by_traces: keep_role(leaf)
        return False
    leaf = t.outside(leaf)
    key = <size_t><void*>leaf
    if t.is_outside(x) and key not in t.roles:
        u = Twin.__new__(Twin)
        u.leaf, u.made = leaf, made
        t.roles[key] = made
        t.undo.append(u)
        if made: made_by_traces[key] = u
    return t.has_outside(leaf)


# ---- solvers ---------------------------------------------------------------------------------------------------------

cdef int use_solver(solver) except -1:
    """A call of a method of a solver: a program compares its parameters at each run."""
    cdef Trace t = preparing(flags())
    if t is not None: t.around.use_solver(solver)
    return 0


cdef int call_method(Array* a, const void* parameters, object held) except -1:
    """A kernel: call a method of a solver. Ctrl-C arrives before or after it. The gradients of some variables are None
    for it, though they are set to None only at the end of the program."""
    cdef Leaf leaf
    cdef list fresh = []
    method, arguments, absent = held
    for leaf in absent:
        if leaf.fresh: fresh.append(leaf)
        leaf.fresh = False
    try: method(*arguments)
    finally:
        for leaf in fresh: leaf.fresh = True
    return 0


cdef object gradient_item(Leaf leaf):
    return None if leaf.grad is None else tensor_item(leaf.grad)


cdef int call_solver(solver, str name, tuple arguments, list found, list others) except -1:
    """During a trace, instead of a call of the solver's method `name`, which writes to the gradients of the variables
    `found`, or to these if it is "update": register the writes, and let a program call it. `others` are the other
    parameters that are variables."""
    cdef Trace t = trace_of(flags())
    cdef bint updates = name == "update"
    cdef Arrays a
    cdef Step step
    cdef Tensor x
    cdef Leaf leaf
    for x in found:
        leaf = t.seen(<Leaf>node_of(x))
        if not t.has_outside(leaf): refuse_trace(name + "() of a solver for a parameter that the function makes")
        if not updates and leaf.rows is not None: refuse_trace(name + "() of row-sparse gradients")
        leaf = t.state_of(leaf)
        settle(t, leaf)
        if updates: t.before_write(x.buffer)
        elif leaf.grad is not None: t.before_write(leaf.grad.buffer)
    absent = settle_others(t, others, updates)
    note("solver", (solver, name, arguments, [(x, gradient_item(t.seen(<Leaf>node_of(x)))) for x in found]))
    if t.purpose == PREPARING:
        use_solver(solver)
        for x in found: t.use_gradient(t.seen(<Leaf>node_of(x)))
        a.n = 0
        step = new_step(t, name, call_method, &a, NULL, 0, (getattr(solver, name), arguments, absent))
        step.writes_unseen = True
        emit(t, step)
        if not updates:
            for x in found: take_back(t, t.seen(<Leaf>node_of(x)))
    for x in found:
        leaf = t.seen(<Leaf>node_of(x))
        if updates:
            raise_version(flags(), x.buffer)
            leaf.fresh = False
        elif leaf.grad is not None: raise_version(flags(), leaf.grad.buffer)
    return 0


cdef list settle_others(Trace t, list others, bint updates):
    """Before a call of a solver, for the parameters that no pass has reached: when the program runs, they may be fresh
    from before. Returns those whose .grad the program has set to None: the call must skip them. A pass must not reach
    the others later, since their gradients would be there at the next run."""
    cdef Tensor x
    cdef Leaf leaf, state
    cdef list absent = []
    for x in others:
        leaf = <Leaf>node_of(x)
        if <size_t><void*>leaf not in t.twins:
            t.early.add(<size_t><void*>leaf)
            continue
        state = t.seen(leaf)
        if state.grad is None and state.rows is None: absent.append(leaf)
        elif state.grad is not None and not state.grad.buffer.flags & ZEROS:    # (zeroed ones are not fresh)
            settle(t, state)
            t.use_gradient(state)
            t.may_write(x.buffer if updates else state.grad.buffer)
    return absent
