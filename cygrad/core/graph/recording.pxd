"""Makes nodes: edges, slots, outputs, and the position in the tape. core/execute makes the nodes of operators,
core/graph/views.pyx those of views, autograd/function.pyx those of Functions. Each fills the arrays that it takes here
and then calls append_to_tape()."""

from cpython.mem cimport PyMem_Malloc
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from libc.string cimport memset

from cygrad.core.graph cimport checksums
from cygrad.core.graph.provenance cimport remember_line
from cygrad.core.graph.tensor cimport TRAINING, Edge, Node, PyObject_GC_Track, collected, next_number, slots_of
from cygrad.core.thread_state cimport ANOMALIES, Flags
from cygrad.core.graph.slots cimport Slot, slot_saved
from cygrad.core.graph.tape cimport link
from cygrad.kernels.array cimport Layout


cdef inline Node new_node():
    """A new node, registered with the garbage collector only if a cycle through it is possible."""
    cdef Node node = Node.__new__(Node)
    if collected: PyObject_GC_Track(<PyObject*>node)
    return node

cdef inline int take_edges(Node node, int n) except -1:
    """Allocate `n` edges, all empty: no input needs a gradient yet."""
    if n > 2:
        node.edge[0] = PyMem_Malloc(n * sizeof(Edge))
        if node.edge[0] == NULL: raise MemoryError("no memory for the edges of a node")
        memset(node.edge[0], 0, n * sizeof(Edge))
    node.n_in = n
    return 0

cdef inline void set_edge(Node node, int i, Node to, int output_nr) noexcept:
    """Connect input i to output `output_nr` of `to`."""
    Py_INCREF(to)
    if node.n_in > 2:
        (<Edge*>node.edge[0])[i].node = <void*>to
        (<Edge*>node.edge[0])[i].output_nr = output_nr
    else:
        node.edge[i] = <void*>to
        node.nr[i] = output_nr

cdef inline Slot* take_slots(Node node, int count) except NULL:
    """Allocate `count` empty slots."""
    cdef Slot* s = &node.slot[0]
    if count > 2:
        s = <Slot*>PyMem_Malloc(count * sizeof(Slot))
        if s == NULL: raise MemoryError("no memory for the slots of a node")
        memset(s, 0, count * sizeof(Slot))
        node.slot[0].layout = <Layout*>s
    node.n_slots = count
    return s

cdef inline Layout** take_outputs(Node node, int n) except NULL:
    """Allocate the layouts of `n` outputs, which the caller fills at once."""
    cdef Layout** layouts = &node.layout
    if n > 1:
        layouts = <Layout**>PyMem_Malloc(n * sizeof(Layout*))
        if layouts == NULL: raise MemoryError("no memory for the outputs of a node")
        node.layout = <Layout*>layouts
    node.n_out = n
    return layouts

cdef inline int append_to_tape(Node node, Flags* f) except -1:
    """Complete a node: store how it was recorded and append it to the thread's tape."""
    cdef int k
    if f.training: node.flags |= TRAINING
    node.seq = next_number()
    if checksums.checking: checksums.remember(node)
    if f.inspecting & ANOMALIES: remember_line(node)
    if slot_saved != NULL:
        slot_saved(<void*>node, NULL)               # (the node itself)
        for k in range(node.n_slots): slot_saved(<void*>node, &slots_of(node)[k])
    link(node, f)
    return 0
