"""Base classes of operators. Elementwise implements infer, forward, keeps and backward for operators that work element
by element with broadcasting. View does so for operators whose output is a view of their input."""

import math

from cython cimport no_gc
from libc.stdint cimport uint64_t, uint8_t
from libc.string cimport memset

from cygrad.core.store cimport layout as lay
from cygrad.core.store.layout cimport LocalLayout
from cygrad.core.graph.attributes cimport Attributes
from cygrad.core.interop.numpy cimport lend
from cygrad.core.backward.formula cimport Context
from cygrad.core.graph.operator cimport (
    ADDING, OUTPUT, BackwardCall, Call, Operator, Stage, add_stage, adds, input_bit, new_stage, output_bit,
    saved,
)
from cygrad.core.graph.slots cimport OWN
from cygrad.core.graph.tensor cimport Node, Tensor, edge_of, ensure_tensor
from cygrad.core.execute.run cimport apply1
from cygrad.kernels cimport driver
from cygrad.kernels.array cimport BOOL, UINT8, Array, Layout, has_gradients, itemsize
from cygrad.kernels.bits cimport where_code_is
from cygrad.kernels.by_dtype cimport put_number
from cygrad.kernels.codes cimport BIT, PAIR, packed_bytes
from cygrad.kernels.driver cimport LoopCall

from cygrad.core.dtypes import DTYPES
from cygrad.core.errors import described
from cygrad.kernels.driver import kernel_names

cdef extern from "cygrad/platform.h" nogil:
    int lowest_bit "cg_lowest_bit64"(uint64_t x)

TO_FLOATS = "to floats"

cdef enum:
    N_SHARED = 64

cdef driver.Loop* COPY_LOOP = driver.find("copy")
cdef driver.Loop* ADD_LOOP = driver.find("add")


@no_gc
cdef class Axis(Attributes):
    """The attributes of an operator along one axis, which is not negative."""

    def __cinit__(self, int axis=0):
        self.axis = axis


cdef Axis axis_number(int axis):
    """Axis(axis), without the cost of a Python call."""
    cdef Axis a = Axis.__new__(Axis)
    a.axis = axis
    return a


@no_gc
cdef class Number(Attributes):
    """The attributes of an operator that has one number."""

    def __cinit__(self, number=0):
        self.number, self.value = number, number


cdef Number number_of(number):
    """Number(number), without the cost of a Python call."""
    cdef Number n = Number.__new__(Number)
    n.number = number
    if isinstance(number, float): n.value = number
    else:
        try: n.value = number
        except OverflowError: raise OverflowError(f"the number {described(number)} does not fit float64") from None
    return n


cdef class Elementwise(Operator):
    """y = value(x, ...), with a rule for the gradient of each input. A class declares

        operands    the names of its inputs: "x" (the default), "x y", ...
        dx, dy      the rule for the gradient of each operand, "d" and its name: a kernel and what it reads in order,
                    such as "div g x". These are g (the gradient), operands, out, code and p (the number). "g" alone:
                    the gradient is g itself; "": there is none
        code        a value kernel that also computes a code of `bits` bits (1 or 2) for each element of the result.
                    Backward then keeps the packed codes instead of the inputs
        number      what the function calls its number, if it has one. The attributes are then a Number, which the value
                    kernel takes after the inputs
        integers    how bools and integers are computed: TO_FLOATS (cast to the default dtype first), None (an error),
                    or a NumPy function

    and its formula. Its value kernel has the operator's name."""
    operands = "x"
    number = ""
    integers = TO_FLOATS
    lanes, tangent = "broadcasting", "diagonal"
    code, bits = "", 1

    def __cinit__(self):
        cls = type(self)
        if hasattr(cls, "inputs"):
            raise TypeError(f"{cls.__name__}: inputs = {described(cls.inputs)} names the operands by letters; declare "
                            f"operands = {described(' '.join(cls.inputs))}")
        self.promotes = self.fused = self.differentiable = True
        if self.name in kernel_names(): self.value = driver.find(self.name)
        self.elementwise = self.value != NULL
        names = [name.rstrip("?") for name in cls.operands.split()]
        self.n_in, self.has_number = len(names), bool(cls.number)
        if cls.integers is TO_FLOATS: self.promotes_to_float, self.numpy = True, None
        self.width = cls.bits
        codes = {name: i for i, name in enumerate(names)} | {"g": G, "p": NUMBER, "out": OUT, "code": CODE}
        if cls.code: self.coder = driver.find(cls.code)
        self.diagonal = not cls.code and not self.signs         # (such formulas read what only a node has)
        for i, name in enumerate(names):
            self.derivative(&self.rules[i], [*getattr(cls, "d" + name, "").split()], codes)
            self.saved_for[i] = self.rules[i].saved | (output_bit(1) if self.rules[i].coded else 0)

    cdef tuple row_of(self, attributes):
        if not self.has_number: return Operator.row_of(self, attributes)
        return self.row, {type(self).number: attributes.number}

    cdef int derivative(self, Rule* rule, list words, dict codes) except -1:
        """Parse a rule."""
        if words == ["g"]: rule.same = True
        elif words:
            rule.loop = driver.find(words[0])
            rule.n = len(words) - 1
            for k, word in enumerate(words[1:]):
                rule.operands[k] = codes[word]
                if codes[word] >= 0 and word != "code": rule.saved |= bit_of_source(codes[word])
                if word == "code": rule.coded = True

    cdef bint needs_code(self, uint64_t wanted) noexcept nogil:
        """Whether a wanted gradient reads the codes."""
        cdef int i, k
        if self.coder == NULL: return False
        for i in range(self.n_in):
            if not (wanted >> i) & 1: continue
            for k in range(self.rules[i].n):
                if self.rules[i].operands[k] == CODE: return True
        return False

    cdef int code_bits(self, uint64_t wanted) noexcept nogil:
        """Bits per code if the gradients of these inputs are wanted."""
        return self.width

    cdef const Loop* coder_for(self, uint64_t wanted) noexcept nogil:
        """The kernel that computes these codes."""
        return self.coder

    cdef const Loop* derivative_for(self, int i, uint64_t wanted) noexcept nogil:
        """The kernel that computes the gradient of input i from these codes."""
        return self.rules[i].loop

    cdef int infer(self, Call* c) except -1 nogil:
        cdef const Layout* both
        c.y[0].dtype = c.x[c.n_in - 1].dtype        # (the first input may be a mask)
        if c.n_in == 1:
            c.y[0].layout = lay.dense_like(c.x[0].layout)
            return self.plan_code(c)
        c.y[0].layout = lay.broadcast(self.name, c.x[0].layout, c.x[1].layout)
        if c.n_in == 3:
            both = c.y[0].layout                    # (if the next line raises, the executor releases it)
            c.y[0].layout = lay.broadcast(self.name, both, c.x[2].layout)
            lay.decref(both)
        return self.plan_code(c)

    cdef int plan_code(self, Call* c) except -1 nogil:
        """Declare the codes as a hidden output if a wanted gradient reads them."""
        cdef Py_ssize_t nbytes
        if not c.wanted or not has_gradients(c.y[0].dtype) or not self.needs_code(c.wanted): return 0
        nbytes = packed_bytes(c.y[0].layout.size, self.code_bits(c.wanted))
        return hide_bytes(c, nbytes)

    cdef int forward(self, Call* c) except -1 nogil:
        cdef LoopCall l
        if self.forward_loop(c, &l): return driver.run(&l)
        with gil: return self.forward_with_gil(c)

    cdef bint forward_loop(self, const Call* c, LoopCall* l) noexcept nogil:
        """A subclass that overrides forward() overrides this too."""
        cdef int i, n = c.n_in
        if not driver.has(self.value, c.x[n - 1].dtype): return False
        l.loop, l.coded, l.bits = self.value, False, 0
        for i in range(n): operand(l, i, c.x[i], c.y[0].layout)
        if self.has_number:
            l.a[n] = number_array(&l.number, (<Number>c.attributes).value, c.y[0].dtype)
            n += 1
        l.a[n] = c.y[0]
        if c.hidden:
            l.loop, l.bits = self.coder_for(c.wanted), self.code_bits(c.wanted)
            l.codes = <uint8_t*>c.y[1].data
        return True

    cdef int forward_with_gil(self, Call* c) except -1:
        return by_numpy(self, c)

    cdef int plan_backward(self, BackwardCall* b) noexcept nogil:
        """One stage for each input. Its result may overwrite g and the saved values that no later stage reads."""
        cdef int i
        cdef Rule* rule
        cdef Stage* s
        for i in range(self.n_in):
            rule = &self.rules[i]
            if not b.want[i]: continue
            if rule.same: new_stage(b, <uint64_t>1 << i).view = True
            elif rule.loop != NULL:
                s = new_stage(b, <uint64_t>1 << i)
                s.saved = s.donated_saved = rule.saved
                if rule.coded: s.saved |= bit_of_source(self.code_source(b))
                s.donated_gradients, s.like = 1, b.y

    cdef int run_backward(self, BackwardCall* b, int stage) except -1 nogil:
        cdef LoopCall l
        self.backward_loop(b, stage, &l)
        return driver.run(&l)

    cdef bint backward_loop(self, const BackwardCall* b, int stage, LoopCall* l) noexcept nogil:
        """A subclass that overrides run_backward() overrides this too."""
        cdef int i = lowest_bit(b.stages[stage].computes), k, code
        cdef const Rule* rule = &self.rules[i]
        for k in range(rule.n):
            code = rule.operands[k]
            if code == NUMBER: l.a[k] = number_array(&l.number, (<Number>b.attributes).value, b.dtype)
            else: operand(l, k, b.g[0] if code == G else self.codes(b) if code == CODE else saved(b, code), b.y)
        l.a[rule.n] = b.dx[i]
        l.coded, l.bits = self.coder != NULL, 0
        l.loop = self.derivative_for(i, b.recorded) if l.coded else rule.loop
        return True

    cdef int code_source(self, const BackwardCall* b) noexcept nogil:
        """The source of the codes, as in BackwardCall.sources."""
        return CODE

    cdef Array codes(self, const BackwardCall* b) noexcept nogil:
        """The codes, as an operand of the gradient kernels."""
        return packed(saved(b, CODE).data, b.y, self.code_bits(b.recorded))

    cdef Tensor where_code(self, Context c, int code):
        """For formulas: a bool tensor of the shape of the result, true where the code of the element is `code`."""
        return has_code(c, c.b.node.layout, self.code_bits(recorded_inputs(c.b.node)), code)


cdef inline uint64_t bit_of_source(int source) noexcept nogil:
    """The bit for a source in the mask that keeps() returns."""
    return <uint64_t>1 << (OUTPUT + (source & ~OWN) if source & OWN else source)


cdef class Code(Attributes):
    """The attributes of has_code: the code, the bits per code, and the shape of the result."""

    def __cinit__(self, int code, int bits, tuple shape):
        self.code, self.bits, self.shape = code, bits, shape
        self.layout = lay.from_shape(shape)

    def __dealloc__(self):
        if self.layout != NULL: lay.decref(self.layout)


cdef class HasCode(Operator):
    """y = whether the code of each element is this one, a bool; no gradient

    The input is packed codes."""
    row = "code_is"

    cdef int infer(self, Call* c) except -1 nogil:
        c.y[0].layout = lay.incref((<Code>c.attributes).layout)
        c.y[0].dtype = BOOL

    cdef int forward(self, Call* c) except -1 nogil:
        where_code_is(<const uint8_t*>c.x[0].data, c.y[0].layout.size, (<Code>c.attributes).bits,
                      (<Code>c.attributes).code, <uint8_t*>c.y[0].data)


cdef Operator HAS_CODE = HasCode()
OPERATORS = {HAS_CODE.name: HAS_CODE}


def code_is(x: Data, code: int, bits: int, shape: int | Sequence[int]) -> Tensor:
    """Where a tensor of `shape` has this code, of which `x` has `bits` (1 or 2) for each element: a bool tensor."""
    cdef Tensor t = ensure_tensor(x)
    cdef tuple whole = tuple(lay.whole_sizes(shape))
    if bits not in (1, 2) or code not in range(1 << bits):
        raise ValueError(f"code_is: bits is {described(bits)} and code is {described(code)}; wanted codes of 1 or 2 "
                         f"bits")
    wanted = (math.prod(whole) * int(bits) + 7) // 8
    if t.dtype != UINT8 or t.layout.ndim != 1 or t.layout.size != wanted or not t.layout.dense:
        raise ValueError(f"code_is: x is {DTYPES[t.dtype]} of shape {t.shape}; for {bits} bits for each element of "
                         f"shape {whole} wanted dense uint8 of shape ({wanted},)")
    return apply1(HAS_CODE, t, Code(code, bits, whole))


cdef Tensor has_code(Context c, const Layout* l, int bits, int code):
    """For formulas: a bool tensor of the shape of `l`, true where the code in hidden output 1 is `code`."""
    cdef Tensor t = c.output(1).detach()
    if not t.layout.dense: t = t.copy()             # (an unpack hook returned it)
    return apply1(HAS_CODE, t, Code(code, bits, lay.shape_tuple(l)))


cdef class Truth(Elementwise):
    """y = whether ..., a bool; no gradient"""

    def __cinit__(self):
        self.fused = self.differentiable = self.promotes_to_float = False

    cdef int infer(self, Call* c) except -1 nogil:
        Elementwise.infer(self, c)
        c.y[0].dtype = BOOL


cdef Layout* shared_layouts[N_SHARED]                   # shared_layouts[n]: shape (n,), made at its first use


cdef int hide_bytes(Call* c, Py_ssize_t nbytes) except -1 nogil:
    """Declare `nbytes` of packed codes as hidden output 1."""
    c.n_out, c.hidden = 2, 1
    if nbytes >= N_SHARED: c.y[1].layout = lay.dense(1, &nbytes)
    else:
        if shared_layouts[nbytes] == NULL: shared_layouts[nbytes] = lay.dense(1, &nbytes)
        c.y[1].layout = lay.incref(shared_layouts[nbytes])
    c.y[1].dtype = UINT8


cdef uint64_t recorded_inputs(Node node) noexcept:
    """Mask of the inputs whose gradients were wanted when the node was recorded."""
    cdef uint64_t mask = 0
    cdef int i
    for i in range(node.n_in):
        if edge_of(node, i).node != NULL: mask |= input_bit(i)
    return mask


cdef Array packed(char* data, const Layout* layout, int bits) noexcept nogil:
    """Packed codes for the elements of `layout`, as an operand for the driver."""
    cdef Array a
    a.data, a.layout, a.dtype = data, layout, BIT if bits == 1 else PAIR
    return a


cdef void spread(Array* a, const Layout* target, Layout* seen, Py_ssize_t* strides) noexcept nogil:
    """Broadcast `a` to the shape of `target`, with a layout on the caller's stack. An array of one element is left to
    the driver, which broadcasts it."""
    cdef const Layout* l = a.layout
    cdef int d, i
    if l.size == 1 or l.size == target.size: return
    seen[0] = target[0]
    seen.strides = strides
    for d in range(target.ndim):
        i = d - target.ndim + l.ndim
        strides[d] = l.strides[i] if i >= 0 and l.shape[i] != 1 else 0
    seen.dense = False
    seen.offset = l.offset
    a.layout = seen


cdef inline void operand(LoopCall* l, int k, Array a, const Layout* target) noexcept nogil:
    """Set operand k of a call to `a`, broadcast to the shape of `target`."""
    l.a[k] = a
    spread(&l.a[k], target, &l.seen[k], l.strides[k])


cdef void set_coded(LoopCall* l, const Loop* loop, const uint8_t* bits, const BackwardCall* b) noexcept nogil:
    """Let `l` be a loop with the operands: a bit for each element of the result, its gradient; and the result, dx."""
    l.loop, l.coded, l.bits = loop, True, 0
    l.a[0], l.a[1], l.a[2] = packed(<char*>bits, b.y, 1), b.g[0], b.dx[0]


cdef Array number_array(double* bits, double number, int dtype) noexcept nogil:
    """An array of one element, in the caller's memory `bits`."""
    put_number(dtype, bits, 0, number)
    return Array(<char*>bits, lay.SCALAR, dtype)


cdef int by_numpy(Operator op, Call* c) except -1:
    """Compute bools and integers with NumPy, which writes to the result without a temporary array. "unsafe" casts the
    result as an assignment does: in NumPy the square of a bool is an int8. NumPy still casts the inputs safely."""
    arrays = [lend(&c.x[i], NULL, False) for i in range(c.n_in)]
    dtype = arrays[0].dtype
    if c.attributes != NULL and <object>c.attributes is not None: arrays.append((<Number>c.attributes).number)
    out = lend(&c.y[0], NULL, True)
    try:
        if op.numpy is None: raise TypeError
        op.numpy(*arrays, out=out, casting="unsafe")
    except TypeError:                               # NumPy has no loop for this dtype either
        raise TypeError(f"{op.name} is not defined for {dtype} tensors; cast with astype first") from None
    except OverflowError:
        raise OverflowError(f"the number {described(arrays[-1])} does not fit the dtype {dtype} of the other "
                            f"operand") from None


cdef class View(Operator):
    """The base of operators whose output is a view of their input. `view_layout` computes the layout of the output.
    `grad_layout` computes that of the input's gradient, which is a view of the output's gradient. Both write to a
    LocalLayout."""
    traits = "fused differentiable views gradient_is_view"
    tangent = "linear"

    cdef int view_layout(self, const Layout* x, const void* attributes, Layout* y) except -1 nogil:
        with gil: raise NotImplementedError("a subclass of View must implement view_layout")

    cdef int grad_layout(self, const Layout* g, const Layout* x, const void* attributes, Layout* y) except -1 nogil:
        with gil: raise NotImplementedError("a subclass of View must implement grad_layout")

    cdef int infer(self, Call* c) except -1 nogil:
        cdef LocalLayout l
        self.view_layout(c.x[0].layout, c.attributes, lay.local(&l))
        c.y[0].layout = lay.counted(&l.layout)
        c.y[0].dtype = c.x[0].dtype
        c.view = 0

    cdef Layout* gradient_view(self, const BackwardCall* b, int i, const Layout* g) except NULL nogil:
        cdef LocalLayout l
        self.grad_layout(g, b.x[0], b.attributes, lay.local(&l))
        return lay.counted(&l.layout)


cdef class Part(View):
    """The base of views in which each element of the input occurs at most once. The gradient is added to that part of
    the input's gradient, so that all parts of a tensor share one gradient array."""
    traits = "fused differentiable views shows_part"

    cdef int plan_backward(self, BackwardCall* b) noexcept nogil:
        add_stage(b, 1).writes = ADDING

    cdef int run_backward(self, BackwardCall* b, int stage) except -1 nogil:
        cdef Array a[3]
        cdef LocalLayout l
        cdef bint to_add = adds(b, 0)
        self.view_layout(b.dx[0].layout, b.attributes, lay.local(&l))
        if not to_add: memset(b.dx[0].data, 0, b.dx[0].layout.size * itemsize(b.dtype))
        a[0], a[1] = b.g[0], b.dx[0]
        a[1].data += (l.layout.offset - b.dx[0].layout.offset) * itemsize(b.dtype)
        a[1].layout = &l.layout
        a[2] = a[1]
        return driver.each(ADD_LOOP if to_add else COPY_LOOP, a)
