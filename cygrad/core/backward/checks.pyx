"""The checks of a backward pass on each node, which raise before anything has changed."""

from cygrad.core.graph cimport checksums
from cygrad.core.graph.provenance cimport check_slot
from cygrad.core.graph.tensor cimport FREED, TRAINING, Node, slots_of
from cygrad.core.graph.packing cimport check_packed
from cygrad.core.graph.slots cimport Slot

from cygrad.core.errors import GraphFreedError


cdef int check_node(Node node, int mode) except -1:
    """Check that a node can run: it was not freed, it was recorded in train mode `mode` (-1: any), and nothing that it
    saves was written to since."""
    cdef Slot* s = slots_of(node)
    cdef int k
    if node.state == FREED:
        raise GraphFreedError(
            f"backward through {node.name()} a second time: what it kept was freed by the pass that ran first; "
            f"call that one with retain_graph=True to keep it; a tensor that is written again in each step must begin "
            f"the step without its graph: x = x.detach()")
    if mode >= 0 and node.op.mode_dependent and mode != (node.flags & TRAINING):
        was, wanted = ("train", "predict") if node.flags & TRAINING else ("predict", "train")
        raise RuntimeError(f"backward was asked for in {wanted} mode, but {node.name()} was recorded in {was} mode; "
                           f"leave train_mode out, or record the graph anew")
    for k in range(node.n_slots):
        check_slot(node, &s[k])
        check_packed(node, &s[k])
    if checksums.checking: checksums.compare(node)
    return 0
