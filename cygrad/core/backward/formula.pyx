"""Gradients by formula: an operator's `formula` computes them from tensors. create_graph records this computation."""

cimport cython

from libc.string cimport memcpy

from cygrad.core.late_bound cimport late_bound
from cygrad.core.store cimport layout as lay
from cygrad.core.execute.composed cimport rename
from cygrad.core.graph.gradient_slice cimport GradientSlice, check_rows
from cygrad.core.graph.provenance cimport check_slot
from cygrad.core.graph.tensor cimport Edge, Node, Tensor, attach, edge_of, output_layout, slot_from
from cygrad.core.backward.gradients cimport DENSE, Gradient, as_tensor, flowing_in, set_rows, set_tensor, share_tensor
from cygrad.core.store.buffer cimport OTHER, hold
from cygrad.core.graph.slots cimport OWN, Slot, buffer_in, elements, has_elements, sign_bits
from cygrad.core.graph.construct cimport computed, fresh, new_tensor
from cygrad.core.graph.signs cimport unpack
from cygrad.core.backward.turn cimport Turn
from cygrad.kernels.array cimport itemsize

from cygrad.core.interop.creation import zeros
from cygrad.core.dtypes import DTYPES


@cython.binding(False)
@cython.embedsignature.format("clinic")
cdef class Context:
    """The context of a formula: the attributes, the saved values, the shapes of the inputs."""

    def __cinit__(self, Turn b not None):
        self.b = b

    @property
    def attributes(self):
        """The operation's arguments other than its inputs, as the operator stores them."""
        return self.b.node.attributes

    def shape(self, int i):
        """The shape of input i, whose gradient must be wanted."""
        return lay.shape_tuple(self.b.input_layout(i))

    def dtype(self, int i):
        """The dtype of input i, whose gradient must be wanted."""
        return DTYPES[(<Node>edge_of(self.b.node, i).node).dtype]

    @property
    def create_graph(self):
        """Whether create_graph records the formula, whose results are then tensors. Else a gradient may be a
        GradientSlice."""
        return bool(self.b.graph)

    def wants(self, int i):
        """Whether the gradient of input i is wanted."""
        return self.b.want[i] != 0

    def input(self, int i):
        """Input i, which the operator must have saved. Under create_graph it is connected to its node."""
        cdef Tensor t = self.tensor(slot_from(self.b.node, i))
        cdef Edge e
        if self.b.graph:
            e = edge_of(self.b.node, i)
            if e.node != NULL: attach(t, <Node>e.node, e.output_nr)
        return t

    def output(self, int k):
        """Output k, which the operator must have saved. Under create_graph it is connected to its node. If the operator
        saves only signs, the elements are 1 where the output was positive and 0 elsewhere."""
        cdef Tensor t = self.tensor(slot_from(self.b.node, OWN | k))
        if self.b.graph: attach(t, self.b.node, k)
        return t

    def locally_constant(self, z):
        """`z`, a gradient that depends on the inputs only through piecewise constant factors, such as a sign or a mask.
        Under create_graph it is connected to the inputs, with derivatives of zero."""
        cdef list places = []
        cdef Edge e
        cdef int i
        if not self.b.graph: return z
        for i in range(self.b.node.n_in):
            e = edge_of(self.b.node, i)
            if e.node != NULL: places.append(place_of(<Node>e.node, e.output_nr))
        return late_bound.locally_constant(z, places)

    cdef Tensor tensor(self, Slot* s):
        """The value that a slot saves, as a tensor without a graph."""
        cdef Tensor t
        if s == NULL or not has_elements(s):
            raise RuntimeError(f"{self.b.node.name()} reads a value in its formula that it did not save")
        check_slot(self.b.node, s)
        if sign_bits(s) != NULL:                    # ones where the output was positive, zeros elsewhere
            t = computed(lay.dense_like(s.layout), s.dtype, OTHER)
            unpack(buffer_in(s), t)
        elif buffer_in(s) == NULL:                  # a number
            t = fresh(lay.incref(lay.SCALAR), s.dtype, OTHER)
            memcpy(t.buffer.data, elements(s).data, itemsize(s.dtype))
        else:
            hold(buffer_in(s))
            t = new_tensor(buffer_in(s), lay.incref(s.layout), s.dtype)
        return t


cdef bint flows_on(Tensor t, Node node, Turn b) noexcept:
    """Whether `t` shares the memory of a gradient of the node's outputs."""
    cdef int k
    for k in range(node.n_out):
        if b.g[k].kind == DENSE and b.g[k].held.buffer == t.buffer: return True
    return False


cdef Tensor place_of(Node node, int k):
    """A scalar that is connected to output k of a node, without its value."""
    cdef Tensor t = fresh(lay.incref(lay.SCALAR), node.dtype, OTHER)
    attach(t, node, k)
    return t


cdef int zeros_for(Node node, int k, bint graph, list captures, Gradient* g) except -1:
    """Zeros as the gradient of output k of a node. Under create_graph they are connected to the wanted results
    `captures` (a list of (node, output number, ...); None: to the output itself), so further derivatives are zeros."""
    z = zeros(lay.shape_tuple(output_layout(node, k)), DTYPES[node.dtype])
    if not graph: return share_tensor(<Tensor>z, g)
    set_tensor(g, <Tensor>late_bound.locally_constant(
        z, [place_of(n, nr) for n, nr, _ in captures or ((node, k, 0),)]))


cdef object formula(Node node, Context c, int i, g):
    """The operator's formula. Its errors name the operator, not the one inside the formula that raised them."""
    try: return node.op.formula(c, i, g)
    except Exception as e:
        if type(node.op).__module__.startswith("cygrad.ops."):      # (not a user's)
            rename(e, "backward of " + node.op.name, node.op.name)
        raise


cdef int by_formula(Node node, Turn b) except -1:
    """Compute the gradients of the inputs by the operator's formula. Only create_graph records this."""
    cdef int i
    cdef Tensor t
    cdef Context c = Context.__new__(Context, b)
    if node.n_out == 1:
        g = as_tensor(&b.g[0])
    else:
        g = tuple([as_tensor(&b.g[i]) for i in range(node.n_out)])
    results = formula(node, c, -1, g) if node.op.joint_formula else None
    for i in range(node.n_in):
        if not b.want[i]: continue
        result = formula(node, c, i, g) if results is None else results[i]
        if result is None: continue
        if type(result) is GradientSlice and not b.graph:
            check_rows(<GradientSlice>result, b.input_layout(i), (<Node>edge_of(node, i).node).dtype, "the formula's")
            set_rows(&b.dx[i], <GradientSlice>result)
            continue
        if not isinstance(result, Tensor):
            raise TypeError(f"the formula of {node.name()} gave {type(result).__name__} for input {i}; it must return "
                            f"a Tensor or None")
        if not lay.same_shape((<Tensor>result).layout, b.input_layout(i)):
            result = late_bound.sum_to(result, c.shape(i))
        t = <Tensor>result
        if b.graph: set_tensor(&b.dx[i], t)
        else:
            if node.op.joint_formula and not flows_on(t, node, b): t = flowing_in(t)    # made by a user's Function
            share_tensor(t, &b.dx[i])
    return 0
