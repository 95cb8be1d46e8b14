"""The checks that a backward pass makes on each node before it changes anything."""

from cygrad.core.graph cimport checksums
from cygrad.core.graph.provenance cimport check_slot
from cygrad.core.graph.tensor cimport FREED, TRAINING, Node, slots_of
from cygrad.core.graph.packed cimport check_packed
from cygrad.core.graph.slots cimport Slot

from cygrad.core.errors import GraphFreedError


cdef int check_node(Node node, int mode) except -1:
    """Check that a node can run: it was not freed, it was recorded in train mode `mode` (-1: any), and its saved values
    have not been written to since."""
    cdef Slot* s = slots_of(node)
    cdef int k
    if node.state == FREED:
        raise GraphFreedError(
            f"backward through {node.name()} a second time: the first pass freed what it had saved; call the first "
            f"with retain_graph=True; a tensor that carries over from one step to the next must begin the step without "
            f"its graph: x = x.detach()")
    if mode >= 0 and node.op.mode_dependent and mode != (node.flags & TRAINING):
        was, wanted = ("train", "predict") if node.flags & TRAINING else ("predict", "train")
        raise RuntimeError(f"backward was called in {wanted} mode, but {node.name()} was recorded in {was} mode; omit "
                           f"train_mode, or record the graph again")
    for k in range(node.n_slots):
        check_slot(node, &s[k])
        check_packed(node, &s[k])
    if checksums.checking: checksums.compare(node)
    return 0
