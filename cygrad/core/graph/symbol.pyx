"""What Net.from_graph() reads of a recorded graph: nodes with their operands, and variables."""

import numpy as np

from cpython.bytes cimport PyBytes_FromStringAndSize

from cygrad.core.graph.slots cimport BITS, CONSTANT, EMPTY, PACKED, Slot, buffer_in, elements, was_written
from cygrad.core.graph.tensor cimport (
    FREED, TRAINING, Edge, Leaf, Node, Tensor, edge_of, fill, node_of, output_layout, shell, slot_from,
)
from cygrad.core.store cimport layout as lay
from cygrad.core.store.buffer cimport hold
from cygrad.kernels.array cimport itemsize

from cygrad.core.dtypes import DTYPES


def place_of(Tensor t not None):
    """(node, output number) of a tensor in the graph; the node of a variable is its leaf, and None if no gradient
    flows to the tensor."""
    cdef Node node = node_of(t)
    return (node, t._output_nr) if t._tracked else (None, 0)


def place(x):
    """(node, output number) of a value in the graph; None if no gradient flows to it, or if it is no tensor."""
    if not isinstance(x, Tensor): return None
    cdef Node node = node_of(<Tensor>x)
    return (node, (<Tensor>x)._output_nr) if node is not None and (<Tensor>x)._tracked else None


def described_node(Node node not None):
    """(operator, attributes, number of outputs, whether it was recorded in train mode, whether backward has freed it,
    its number in the order of recording). The operator of a leaf is None."""
    return node.op, node.attributes, node.n_out, (node.flags & TRAINING) != 0, node.state == FREED, node.seq


def operands_of(Node node not None):
    """The operands of a node: ("node", node, output number), ("value", tensor), ("number", number), or (why, None) for
    one whose value the node does not have: "not saved", "written", "signs", "packed"."""
    cdef Edge e
    cdef int i
    cdef list found = []
    for i in range(node.n_in):
        e = edge_of(node, i)
        found.append(saved_operand(slot_from(node, i)) if e.node == NULL else ("node", <Node>e.node, e.output_nr))
    return found


cdef tuple saved_operand(Slot* s):
    """An operand to which no gradient flows."""
    cdef Tensor t
    if s == NULL or s.kind == EMPTY: return "not saved", None
    if s.kind == PACKED: return "packed", None
    if s.kind == CONSTANT: return "number", np.frombuffer(
        PyBytes_FromStringAndSize(elements(s).data, itemsize(s.dtype)), DTYPES[s.dtype])[0].item()
    if s.need == BITS: return "signs", None
    if was_written(s): return "written", None
    t = shell()
    hold(buffer_in(s))
    fill(t, buffer_in(s), lay.incref(s.layout), s.dtype)
    return "value", t


def described_leaf(Leaf leaf not None):
    """(shape, dtype) of a variable."""
    return lay.shape_tuple(output_layout(leaf, 0)), DTYPES[leaf.dtype]
