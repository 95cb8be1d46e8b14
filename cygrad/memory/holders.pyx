"""memory.why: lists what keeps a tensor's memory alive.

A buffer counts its holders and their roles, so these numbers are exact. The names of the holders are found by a search:
the nodes that save the buffer are in the rings of the tapes, and the variables whose gradient it is are inputs of those
nodes. There is no list of all tensors, so for other tensors only the number is known here (naming.py finds those that a
name leads to)."""

from cpython.object cimport PyObject
from libc.stdint cimport uintptr_t

from cygrad.core.store cimport layout as lay
from cygrad.core.store.external cimport Lender
from cygrad.core.graph.tensor cimport Leaf, Node, Tensor, edge_of, is_tracked, is_variable, node_of, slots_of
from cygrad.core.store.buffer cimport EXTERNAL, Buffer
from cygrad.core.graph.packed cimport kept_by
from cygrad.core.graph.slots cimport OWN, Slot
from cygrad.core.graph.tape cimport Tape, root

from cygrad.core.store.buffer import CATEGORY_NAMES
from cygrad.memory.log import open_logs


cdef list living_nodes():
    """Every recorded node that is alive."""
    cdef list out = []
    cdef void* t = <void*>root
    cdef void* p
    while True:
        p = (<Tape>t).head.after
        while p != <void*>(<Tape>t).head:
            out.append(<Node>p)
            p = (<Node>p).after
        t = (<Tape>t).after
        if t == <void*>root: return out


cdef str described(Tensor t):
    """The description of a tensor."""
    cdef Node node = node_of(t)
    if node is None: return f"this tensor of shape {t.shape}"
    if node.op is None:
        return f"this tensor of shape {t.shape}, " + ("a variable" if is_tracked(t) else "no longer a variable")
    return f"this tensor of shape {t.shape}, the result of {node.name()}"


cdef str source_name(int source):
    return f"output {source & ~OWN}" if source & OWN else f"input {source}"


def count_holders(Tensor t not None):
    """The number of holders of the memory of `t`: tensors, saved values, arrays."""
    return t.buffer.holders


def holders(Tensor t not None):
    """(bytes, category, type of the owner of external memory, origin, number of holders, [(count, holder)]) of the
    memory of `t`."""
    cdef Buffer* b = t.buffer
    cdef Slot* s
    cdef Node node
    cdef Leaf leaf
    cdef int i, k
    cdef Py_ssize_t left = b.holders - 1, kept = 0
    cdef dict keepers = {}
    cdef dict leaves = {}
    cdef void* p
    entries = [(1, described(t))]
    for node in living_nodes():
        s = slots_of(node)
        for k in range(node.n_slots):
            if kept_by(&s[k]) != b: continue
            who = f"saved for backward by {node.name()} (its {source_name(s[k].source)})"
            keepers[who] = keepers.get(who, 0) + 1
            kept += 1
        for i in range(node.n_in):
            p = edge_of(node, i).node
            if p != NULL and (<Node>p).op is None: leaves[<uintptr_t>p] = <Node>p
    node = node_of(t)
    if node is not None and node.op is None: leaves[<uintptr_t><void*>node] = node
    entries += [(count, who) for who, count in keepers.items()]
    if b.saved > kept: entries.append((b.saved - kept, "saved for backward by operations that are not recorded"))
    left -= <Py_ssize_t>b.saved                     # (several slots can share what keeps a value)
    if b.leases:
        entries.append((b.leases, "NumPy arrays or other objects that share it"))
        left -= b.leases
    cdef Py_ssize_t roles = b.parameters - is_variable(t)
    gradients = 0
    for node in leaves.values():
        leaf = <Leaf>node
        if leaf.grad is None or leaf.grad.buffer != b: continue
        gradients += 1
        name = f"the .grad of a variable of shape {lay.shape_tuple(leaf.layout)}"
        if leaf.grad is t: entries[0] = 1, f"{entries[0][1]}, {name}"
        else:
            entries.append((1, name))
            left -= 1
    if 0 < roles <= left:
        entries.append((roles, "other variables on this memory"))
        left -= roles
    roles = b.gradients - gradients
    if gradients == 0 and roles == 1 and left == 0: entries[0] = 1, f"{entries[0][1]}, a gradient"
    elif 0 < roles <= left:
        entries.append((roles, "gradients: in a variable's .grad, or pending"))
        left -= roles
    if 0 < b.optimizer <= left:
        entries.append((b.optimizer, "a solver's state"))
        left -= b.optimizer
    if left: entries.append((left, "other tensors (views of it, detached ones)"))
    owner = None
    if b.flags & EXTERNAL: owner = type((<Lender><PyObject*>b.link.owner).owner)
    origin = None
    for log in open_logs():
        site = log.origin(<uintptr_t>b)
        if site is not None: origin = log.name(site)[:2]
    return b.nbytes, CATEGORY_NAMES[b.category], owner, origin, b.holders, entries
