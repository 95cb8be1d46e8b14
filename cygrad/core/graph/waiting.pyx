"""Tensors that wait for their shape: the parameters and buffers of layers whose sizes the first call decides.

Such a tensor has a role from the start: it is a variable or not, has a grad_req and hooks, and can be in a solver. It
has no memory and cannot be read (unreadable.pyx). When its shape is known, it becomes an ordinary tensor in place, so
everything that refers to it remains valid.

Its buffer is external and empty, and the buffer's owner is a Waiting, which knows what is to happen then: the tensors
that share the buffer (detach()) become ordinary ones with it, its gradient and the states of solvers, which follow it,
become zeros of its shape, and what was to be written to it (fill_(), nn.init) is written, in the order of the calls."""

cimport cython
from cpython.object cimport PyObject_GenericGetAttr, PyObject_GenericSetAttr
from cpython.weakref cimport PyWeakref_NewRef
from libc.string cimport memset

from cygrad.core.graph.construct cimport computed, new_tensor, zeros_like
from cygrad.core.graph.tensor cimport Leaf, Tensor, is_variable, put_grad
from cygrad.core.graph.trace cimport set_trace
from cygrad.core.graph.unreadable cimport EMPTY, Py_SET_TYPE, Unreadable, refuse
from cygrad.core.store cimport layout as lay
from cygrad.core.store.buffer cimport OPTIMIZER, OTHER, Buffer, adopt, drop, hold, recategorise
from cygrad.core.thread_state cimport flags
from cygrad.kernels.array cimport itemsize

from math import prod
from operator import itemgetter, methodcaller

from cygrad.core.dtypes import DTYPES
from cygrad.core.errors import InplaceError, described
from cygrad.core.late_bound import bind_methods

cdef char nowhere                                   # a valid address; no byte of it is read
cdef object last_write = 0                          # the number of the last deferred write: they are done in this order


@cython.no_gc
cdef class Waiting:
    """The memory that a tensor will have."""


cdef str shape_text(tuple shape):
    """A shape whose unknown sizes are question marks."""
    inner = ", ".join(["?" if n is None else str(n) for n in shape])
    return f"({inner},)" if len(shape) == 1 else f"({inner})"


@cython.binding(False)
@cython.embedsignature.format("clinic")
@cython.no_gc
cdef class WaitingTensor(Unreadable):
    """A tensor that waits for its shape. What concerns its role works, and what reads its elements raises."""

    allowed = frozenset("""
        __class__ __copy__ __deepcopy__ __dir__ __doc__ __module__ __reduce__ __reduce_ex__ attach_grad detach drop_grad
        dtype fill_ fresh_grad grad grad_fn grad_req is_leaf itemsize nbytes ndim register_hook
        register_post_accumulate_grad_hook requires_grad requires_grad_ retain_grad shape size version zero_grad
        """.split())

    @staticmethod
    def reason(Tensor x):
        """Why it cannot be read, and what to do."""
        cdef Waiting w = waiting_of(x)
        return (f"{w.name}, of shape {shape_text(w.shape)}, has no values yet, because the input size of its layer is "
                f"unknown; call the model once on an example, or load a state_dict, first")

    def __getattribute__(self, name):
        if name not in WaitingTensor.allowed and hasattr(Tensor, name): refuse(self)
        return PyObject_GenericGetAttr(self, name)

    def __setattr__(self, name, value):
        if name != "requires_grad" and (name != "grad" or value is not None): refuse(self)
        PyObject_GenericSetAttr(self, name, value)

    def __delattr__(self, name):
        if name != "grad": refuse(self)
        self.grad = None

    def __dir__(self):
        return sorted(WaitingTensor.allowed)

    def __repr__(self):
        cdef Waiting w = waiting_of(self)
        more = ", requires_grad=True" if is_variable(self) else ""
        return f"<{w.name} of shape {shape_text(w.shape)}, {DTYPES[self.dtype]}{more}, which waits for its size>"

    def __format__(self, spec):
        return repr(self)

    def __setitem__(self, index, value):
        if index is not Ellipsis and index != slice(None) or not isinstance(value, (int, float)): refuse(self)
        self.fill_(value)

    @property
    def shape(self):
        """The sizes of the dimensions, if they are all known."""
        cdef Waiting w = waiting_of(self)
        return refuse(self) if None in w.shape else w.shape

    @property
    def ndim(self):
        """The number of dimensions."""
        return len(waiting_of(self).shape)

    @property
    def size(self):
        """The number of elements, if all sizes are known."""
        return prod(self.shape)

    @property
    def nbytes(self):
        """The bytes that the elements will have, if all sizes are known."""
        return prod(self.shape) * itemsize(self.dtype)

    def fill_(self, value):
        """Set all elements to the number `value` when the shape is known. Returns the tensor."""
        if type(self) is not WaitingTensor: return Tensor.fill_(self, value)    # (another thread gave it its shape)
        if not isinstance(value, (int, float)): raise TypeError(f"fill_ takes a number, got {type(value).__name__}")
        if flags().recording and is_variable(self):
            raise InplaceError(f"a leaf variable, {waiting_of(self).name}, cannot be written in place while recording; "
                               f"write inside pause() or no_grad(), or make a new tensor")
        write_later(self, methodcaller("fill_", value))
        return self

    def detach(self):
        """A tensor that will be on the same memory."""
        if type(self) is not WaitingTensor: return Tensor.detach(self)
        hold(self.buffer)
        cdef Tensor t = waiting_on(self.buffer, self.dtype)
        t.detached = True
        return t


bind_methods(WaitingTensor, __new__=staticmethod(Tensor.__new__))    # which raises


cdef Waiting waiting_of(Tensor x):
    """What a tensor waits on. Raises TypeError if it does not wait."""
    if type(x) is not WaitingTensor: raise TypeError(f"wanted a tensor that waits for its shape, got {described(x)}")
    return <Waiting><object>x.buffer.link.owner


cdef Tensor waiting_on(Buffer* b, int dtype):
    """A tensor on an empty buffer that a Waiting owns. It takes over one holder of the buffer."""
    cdef Tensor t = new_tensor(b, lay.incref(EMPTY), dtype)
    Py_SET_TYPE(<void*>t, <void*>WaitingTensor)     # it has the same size, and is static as Tensor is
    cdef Waiting w = waiting_of(t)
    w.tensors = [ref for ref in w.tensors if ref() is not None]
    w.tensors.append(PyWeakref_NewRef(t, None))
    return t


cpdef Tensor new_waiting(str name, tuple shape, int dtype):
    """A plain tensor that waits for the sizes that are None in `shape`. `name` is what messages call it."""
    cdef Waiting w = Waiting.__new__(Waiting)
    w.name, w.shape, w.category = name, shape, OTHER
    w.writes, w.places, w.tensors, w.followers = [], [], [], []
    return waiting_on(adopt(&nowhere, 0, w, False), dtype)


cdef Tensor zeros_of(Tensor x, int category):
    """Zeros of the shape and dtype of `x`, whose memory is allocated when they are first read or written. If `x` waits
    for its shape, they do too."""
    if type(x) is not WaitingTensor: return zeros_like(x, category)
    cdef Waiting w = waiting_of(x)
    what = "a solver's state" if category == OPTIMIZER else "the gradient"
    cdef Tensor t = new_waiting(f"{what} of {w.name}", w.shape, x.dtype)
    waiting_of(t).category = category
    w.followers = [ref for ref in w.followers if ref() is not None]
    w.followers.append(PyWeakref_NewRef(waiting_of(t), None))
    return t


cdef Tensor twin_of(Tensor x, int dtype, list writes):
    """Another tensor that waits, with the same name and shape, for a copy."""
    cdef Waiting w = waiting_of(x)
    cdef Tensor t = new_waiting(w.name, w.shape, dtype)
    waiting_of(t).writes.extend(writes)
    return t


def is_waiting(x):
    """Whether `x` is a tensor that waits for its shape."""
    return type(x) is WaitingTensor


def waiting(Tensor x):
    """The Waiting of a tensor that waits for its shape: its name, shape and places."""
    return waiting_of(x)


def with_dtype(Tensor x, int dtype):
    """A plain tensor that waits as `x` does, of another dtype, with the writes that `x` waits for."""
    return twin_of(x, dtype, waiting_of(x).writes)


def write_later(Tensor x, f):
    """Call f(x) when `x` has its shape, after the calls that were asked for before, of other tensors too."""
    global last_write
    last_write += 1
    waiting_of(x).writes.append((last_write, f))


def restore_writes(Tensor x, list writes):
    """Set the deferred writes of a pickle. Later ones come after them."""
    global last_write
    for number, _ in writes: last_write = max(last_write, number)
    waiting_of(x).writes.extend(writes)


def outside_trace(f):
    """f(), which computes real values, also while this thread traces a program."""
    cdef void* trace = set_trace(NULL)
    try: return f()
    finally: set_trace(trace)


# ---- when the shape is known -----------------------------------------------------------------------------------------

def shaped(list pairs):
    """Everything that give_shapes() needs to turn each waiting tensor of the pairs (waiting tensor, ordinary one with
    its values) into an ordinary one: all that can fail. Nothing changes but the values of the given ones."""
    cdef list found = []
    cdef list writes = []
    cdef Waiting w, follower
    cdef Tensor x, y, z
    for x, y in pairs:
        w = waiting_of(x)
        if x.dtype != y.dtype or not y.layout.dense or y.layout.offset:
            raise TypeError(f"{w.name} waits for a contiguous {DTYPES[x.dtype]} tensor, got {DTYPES[y.dtype]}")
        found.append((w, y))
    for w, y in found:                              # (which grows)
        for number, f in w.writes: writes.append((number, f, y))
        for ref in w.followers:
            follower = ref()
            if follower is not None: found.append((follower, new_zeros(y, follower.category)))
    writes.sort(key=itemgetter(0))
    for _, f, z in writes: f(z.detach())
    return found


cdef Tensor new_zeros(Tensor like, int category):
    """Zeros of a gradient, or of the state of a solver, which has memory from the start (optim/parameters.pyx)."""
    cdef Tensor t
    if category != OPTIMIZER: return zeros_like(like, category)
    t = computed(lay.dense_like(like.layout), like.dtype, category)
    memset(t.buffer.data, 0, t.buffer.nbytes)
    return t


def give_shapes(list found):
    """Turn waiting tensors into ordinary ones, as shaped() has prepared it."""
    cdef list gradients = []
    cdef Waiting w
    cdef Tensor y, t
    cdef Leaf leaf
    for w, _ in found:
        for ref in w.tensors:
            t = ref()
            if t is None or type(t) is not WaitingTensor: continue
            leaf = <Leaf>t._node if t._node is not None else None
            if leaf is not None and leaf.grad is not None:      # (counted in the buffer that the gradient leaves)
                gradients.append((leaf, leaf.grad))
                put_grad(leaf, None)
    for w, y in found:
        for ref in w.tensors:
            t = ref()
            if t is not None and type(t) is WaitingTensor: move(t, y)
    for leaf, t in gradients: put_grad(leaf, t)


cdef int move(Tensor t, Tensor y) except -1:
    """Turn a waiting tensor into one on the memory of `y`."""
    cdef Buffer* old = t.buffer
    cdef Leaf leaf = <Leaf>t._node if t._node is not None else None
    if leaf is not None:
        lay.decref(leaf.layout)
        leaf.layout = lay.incref(y.layout)
    hold(y.buffer)
    t.buffer, t.layout, t.rewrites = y.buffer, lay.incref(y.layout), y.buffer.rewrites      # (EMPTY is never freed)
    if t._tracked:
        old.parameters -= 1
        y.buffer.parameters += 1
        recategorise(y.buffer)
    Py_SET_TYPE(<void*>t, <void*>Tensor)
    lay.decref(EMPTY)
    drop(old)
    return 0
