"""Two passes over the steps of a program: what nobody reads is not computed, and an elementwise result is written over
an operand that is read for the last time. Both keep the bits of all results. Then all buffers are placed."""

from cygrad.core.execute.chaining cimport chain_in, chain_steps, reuse_in_chain, undo_chains
from cygrad.core.execute.forward cimport ForwardStep
from cygrad.core.execute.schedule cimport in_arena
from cygrad.core.graph.steps cimport WRITES, Pointer, Step
from cygrad.core.store cimport layout as lay
from cygrad.kernels.array cimport has_gradients


cdef bint is_elementwise(Step step) noexcept:
    """Whether a step computes elements one by one. Such a step cannot fail."""
    return (type(step) is ForwardStep and (<ForwardStep>step).op.elementwise
            and has_gradients((<ForwardStep>step).call.y[0].dtype))


cdef int drop_unused(ProgramSchedule s) except -1:
    """Remove the elementwise steps whose results no step reads and that the end does not need. Others stay, because
    they may raise an error, as eager code does."""
    cdef list kept = []
    cdef Step step
    cdef Pointer* p
    cdef int at, k
    cdef bint used
    read = set()                                    # the buffers that later steps use
    for at in range(len(s.steps) - 1, -1, -1):
        step, used = s.steps[at], False
        for k in range(step.n_pointers):
            p = &step.pointers[k]
            if p.access & WRITES: used |= not in_arena(s, p.life) or s.lives[p.life].kept or p.life in read
        if not used and is_elementwise(step):
            if at < s.split: s.split -= 1
            continue
        for k in range(step.n_pointers): read.add(step.pointers[k].life)
        kept.append(step)
    if len(kept) == len(s.steps): return 0
    s.steps = kept[::-1]
    return s.find_lives()


cdef int reuse(ProgramSchedule s) except -1:
    """Place elementwise results over operands that no later step reads."""
    cdef Step step
    cdef int at, x, y
    for at in range(len(s.steps)):
        step = <Step>s.steps[at]
        if chain_in(step) is not None: reuse_in_chain(s, step, at)
        if not is_elementwise(step): continue
        y = result_of(s, <ForwardStep>step, at)
        if y < 0: continue
        x = last_read(s, <ForwardStep>step, y, at)
        if x >= 0: s.lives[y].over = x
    return 0


cdef int result_of(ProgramSchedule s, ForwardStep step, int at) noexcept:
    """The buffer of the result, if that is new; else -1."""
    cdef int k, y
    for k in range(step.n_pointers):
        y = step.pointers[k].life
        if step.pointers[k].at != &step.call.y[0].data or not in_arena(s, y): continue
        return y if s.lives[y].birth == at and not step.pointers[k].offset and step.call.y[0].layout.dense else -1
    return -1


cdef int last_read(ProgramSchedule s, ForwardStep step, int y, int at) noexcept:
    """The buffer of an operand that has the layout of the result and that this step reads last; -1: there is none."""
    cdef int i, k, n, x, found
    for i in range(step.call.n_in):
        if step.call.x[i].dtype != step.call.y[0].dtype: continue
        if not step.call.x[i].layout.dense or not lay.same_shape(step.call.x[i].layout, step.call.y[0].layout): continue
        found, n = -1, 0
        for k in range(step.n_pointers):
            if step.pointers[k].at != &step.call.x[i].data: continue
            x = step.pointers[k].life
            if in_arena(s, x) and x != y and s.lives[x].death == at + 1 and not step.pointers[k].offset: found = x
        for k in range(step.n_pointers): n += step.pointers[k].life == found
        if found >= 0 and n == 1 and s.lives[found].nbytes == s.lives[y].nbytes: return found
    return -1


cdef int place_in(ProgramSchedule s, size_t most) except -1:
    """Place all buffers, with chains if the arena is not larger with them. `most`: the bytes in which they fit."""
    cdef size_t size = place_steps(s, most)
    if not chain_steps(s) or place_steps(s, most) <= size: return 0
    undo_chains(s)
    place_steps(s, most)
    return 0


cdef size_t place_steps(ProgramSchedule s, size_t most) except? 0:
    """The same for the steps as they are. Returns the size of the arena."""
    reuse(s)
    if s.place_all() > most:
        s.find_lives()                              # (places without reuse() were small enough)
        s.place_all()
    return s.size
