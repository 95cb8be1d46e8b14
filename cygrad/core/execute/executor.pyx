"""Recording an operation (executor.pxd)."""

from cygrad.core.graph.operator cimport OUTPUT, SIGNS_ALONE
from cygrad.core.graph.recording cimport append_to_tape, new_node, set_edge, take_edges, take_outputs, take_slots
from cygrad.core.graph.trace cimport is_frozen
from cygrad.core.graph.slots cimport OWN, Slot, claim_signs, save_buffer, save_number
from cygrad.core.store cimport layout as lay
from cygrad.kernels.array cimport Layout

cdef extern from "cygrad/platform.h":
    int lowest_bit "cg_lowest_bit64"(uint64_t mask)


cdef Node record(Execution* e, Operator op, const Operand* x, object attributes, uint64_t wanted):
    """Make the node of an operation whose results are placed: edges to the nodes of its inputs, slots for backward."""
    cdef Call* c = &e.call
    cdef Node node = new_node()
    cdef Slot* s
    cdef Layout** layouts
    cdef uint64_t rest, mask = op.keeps(c, wanted)
    cdef bint signs = op.signs or (mask & SIGNS_ALONE) != 0
    cdef int i, k, count = 0
    mask &= ~SIGNS_ALONE
    take_edges(node, c.n_in)
    for i in range(c.n_in):
        if x[i].buffer == NULL or not (<Tensor>x[i].tensor)._tracked: continue     # (current since wanted_inputs)
        if e.thread.trace != NULL and is_frozen(<Tensor>x[i].tensor): continue
        set_edge(node, i, (<Tensor>x[i].tensor)._node, (<Tensor>x[i].tensor)._output_nr)
    if mask:
        rest = mask
        while rest:
            count += 1
            rest &= rest - 1
        s = take_slots(node, count)
        k = 0
        while mask:
            i = lowest_bit(mask)
            mask &= mask - 1
            if i >= OUTPUT:
                i -= OUTPUT
                save_buffer(&s[k], OWN | i, e.buffers[i], c.y[i].layout, c.y[i].dtype)
                if signs and not e.buffers[i].signs and c.y[i].layout.dense and c.y[i].layout.offset == 0:
                    claim_signs(&s[k], <void*>node)
            elif x[i].buffer == NULL: save_number(&s[k], i, x[i].number, c.x[i].layout, c.x[i].dtype)
            else: save_buffer(&s[k], i, x[i].buffer, c.x[i].layout, c.x[i].dtype)
            k += 1
    node.op = op
    node.attributes = attributes
    node.dtype = c.y[0].dtype
    layouts = take_outputs(node, c.n_out - c.hidden)
    for i in range(c.n_out - c.hidden): layouts[i] = lay.incref(c.y[i].layout)
    append_to_tape(node, e.thread)
    return node
