"""What operators share. Elementwise: infer, forward, keeps and backward of every operator that works element by element
with broadcasting. View: of those that look at their input's memory otherwise."""

import re

from cython cimport final
from libc.stdint cimport uint8_t, uint32_t
from libc.string cimport memset

from cygrad.core cimport layout as lay
from cygrad.core.bridge cimport lend
from cygrad.core.formula cimport Context
from cygrad.core.graph cimport (
    OUTPUT, Backward, Call, Gradient, Node, Operator, Tensor, array_of, drop_gradient, edge_of,
)
from cygrad.core.memory cimport OTHER
from cygrad.core.run cimport apply1
from cygrad.core.tensors cimport fresh
from cygrad.kernels cimport driver
from cygrad.kernels.array cimport BOOL, FLOAT32, MAX_NDIM, MAX_OPERANDS, UINT8, Array, Layout, itemsize
from cygrad.kernels.bits cimport where_code_is
from cygrad.kernels.codes cimport BIT, PAIR, packed_bytes
from cygrad.kernels.driver cimport gather
from cygrad.kernels.reduce cimport sum_to

from cygrad.core.errors import described
from cygrad.kernels.driver import kernel_names

TO_FLOATS = "to floats"

cdef enum:
    FEW_BYTES = 64

cdef driver.Loop* COPY_LOOP = driver.find("copy")
cdef driver.Loop* ADD_LOOP = driver.find("add")


cdef class Elementwise(Operator):
    """y = value(x, ...), with a rule for the gradient of each input. A class says no more than

        inputs      a letter for each input: "x" (the default), "xy", ...
        dx, dy      for each input the rule of its gradient: a kernel and what it reads, in the kernel's order, such as
                    "div g x": g (the gradient), inputs, out, code, p (the number); "g" alone: it passes as it is; "":
                    none
        code        a kernel of the value that makes a code of `bits` bits (1 or 2) too for each element of the result:
                    all that the gradients need, and kept, packed, in the place of the inputs
        number      whether the operator has a number for an attribute, which the value kernel takes after the inputs
        integers    how bools and integers are computed: TO_FLOATS (the default dtype, first), None (not at all), or by
                    a NumPy function

    and its formula. The operator's name is the class's in small letters; its value is the kernel of that name."""
    inputs = "x"
    number = False
    integers = TO_FLOATS
    code, bits = "", 1

    def __cinit__(self):
        cls = type(self)
        self.promotes = self.fused = self.differentiable = True
        self.name = re.sub("(?<=[a-z])(?=[A-Z])", "_", cls.__name__).lower()
        if self.name in kernel_names(): self.value = driver.find(self.name)
        self.n_in = len(cls.inputs)
        self.has_number = cls.number
        if cls.integers is TO_FLOATS: self.floats = True
        else: self.numpy = cls.integers
        self.width = cls.bits
        codes = {letter: i for i, letter in enumerate(cls.inputs)} | {"g": G, "p": NUMBER, "out": OUT, "code": CODE}
        if cls.code: self.coder = driver.find(cls.code)
        for i, letter in enumerate(cls.inputs):
            self.slope(&self.rules[i], [*getattr(cls, "d" + letter, "").split()], codes)

    cdef int slope(self, Rule* rule, list words, dict codes) except -1:
        """Read a rule."""
        if words == ["g"]: rule.same = True
        elif words:
            rule.loop = driver.find(words[0])
            rule.n = len(words) - 1
            for k, word in enumerate(words[1:]): rule.operands[k] = codes[word]
        return 0

    cdef bint needs_code(self, uint32_t wanted) noexcept:
        """Whether a gradient that is wanted reads the codes."""
        cdef int i, k
        if self.coder == NULL: return False
        for i in range(self.n_in):
            if not (wanted >> i) & 1: continue
            for k in range(self.rules[i].n):
                if self.rules[i].operands[k] == CODE: return True
        return False

    cdef int code_bits(self, uint32_t wanted) noexcept:
        """How many bits a code has where the gradients of these inputs are wanted."""
        return self.width

    cdef const Loop* coder_for(self, uint32_t wanted) noexcept:
        """The kernel that makes these codes."""
        return self.coder

    cdef const Loop* slope_for(self, int i, uint32_t wanted) noexcept:
        """The kernel of the gradient of input i that reads them."""
        return self.rules[i].loop

    cdef int infer(self, Call* c) except -1:
        cdef Layout* l
        cdef Layout* wider
        c.y[0].dtype = c.x[c.n_in - 1].dtype        # before it may be a mask
        if c.n_in == 1:
            c.y[0].layout = lay.dense_like(c.x[0].layout)
            return self.plan_code(c)
        l = lay.broadcast(self.name, c.x[0].layout, c.x[1].layout)
        if c.n_in == 3:
            try:
                wider = lay.broadcast(self.name, l, c.x[2].layout)
            finally:
                lay.forget(l)
            l = wider
        c.y[0].layout = l
        return self.plan_code(c)

    cdef int plan_code(self, Call* c) except -1:
        """The codes are a hidden output."""
        cdef Py_ssize_t nbytes
        if not c.wanted or c.y[0].dtype < FLOAT32 or not self.needs_code(c.wanted): return 0
        nbytes = packed_bytes(c.y[0].layout.size, self.code_bits(c.wanted))
        return hide_bytes(c, nbytes)

    cdef int forward(self, Call* c) except -1:
        cdef Array a[MAX_OPERANDS]
        cdef Layout seen[3]
        cdef Py_ssize_t strides[3][MAX_NDIM]
        cdef double bits
        cdef int i, n = c.n_in
        if not driver.has(self.value, c.x[n - 1].dtype): return by_numpy(self, c)
        for i in range(n):
            a[i] = c.x[i]
            spread(&a[i], c.y[0].layout, &seen[i], strides[i])
        if self.has_number:
            put_number(&a[n], &bits, <object>c.attributes, c.y[0].dtype)
            n += 1
        a[n] = c.y[0]
        if not c.hidden: return driver.each(self.value, a)
        return driver.each_with_codes(self.coder_for(c.wanted), a, self.code_bits(c.wanted), <uint8_t*>c.y[1].data)

    cdef uint32_t keeps(self, const Call* c, uint32_t wanted) noexcept:
        cdef uint32_t mask = 0
        cdef int i, k, code
        for i in range(self.n_in):
            if not (wanted >> i) & 1: continue
            for k in range(self.rules[i].n):
                code = self.rules[i].operands[k]
                if code == OUT: mask |= <uint32_t>1 << OUTPUT
                elif code == CODE: mask |= <uint32_t>2 << OUTPUT
                elif code >= 0: mask |= <uint32_t>1 << code
        return mask

    cdef bint later(self, Backward b, int i, int source) noexcept:
        """Whether the gradient of an input after i reads `source` too."""
        cdef int j, k
        for j in range(i + 1, self.n_in):
            if not b.want[j]: continue
            if source == G and (self.rules[j].same or self.rules[j].loop != NULL): return True
            for k in range(self.rules[j].n):
                if self.rules[j].operands[k] == source: return True
        return False

    cdef int backward(self, Backward b) except -1:
        cdef Array a[MAX_OPERANDS]
        cdef Layout seen[4]
        cdef Py_ssize_t strides[4][MAX_NDIM]
        cdef double bits
        cdef Rule* rule
        cdef Tensor _kept = None
        cdef uint32_t recorded = recorded_inputs(b.node) if self.coder != NULL else 0
        cdef int i, k, code
        cdef bint last, written
        for i in range(self.n_in):
            if not b.want[i]: continue
            rule = &self.rules[i]
            last = not self.later(b, i, G)
            if rule.same:
                b.same_gradient(i, last)
            elif rule.loop != NULL:
                for k in range(rule.n):
                    code = rule.operands[k]
                    if code == G: a[k] = b.gradient(0)
                    elif code == NUMBER: put_number(&a[k], &bits, b.node.attributes, b.node.dtype)
                    elif code == CODE: _kept = self.read_code(b, recorded, &a[k])
                    else: a[k] = b.kept(code)
                    spread(&a[k], b.node.layout, &seen[k], strides[k])
                written = False                     # over what is read here for the last time, or into new memory
                for k in range(rule.n):
                    code = rule.operands[k]
                    if code >= 0 and code != CODE and not written and not self.later(b, i, code) \
                            and lay.same_shape(b.kept(code).layout, b.node.layout):
                        written = b.over(i, code, &a[rule.n])
                if last and not written: written = b.over_gradient(i, &a[rule.n])
                if not written: a[rule.n] = b.make(i, b.node.layout, b.node.dtype)
                if self.coder == NULL: driver.each(rule.loop, a)
                else: driver.each_coded(self.slope_for(i, recorded), a)
                for k in range(rule.n):
                    code = rule.operands[k]
                    if code >= 0 and not self.later(b, i, code): b.done(code)
                if last: b.done_gradient(0)
            if not lay.same_shape(b.input_layout(i), b.node.layout): narrow(b, i)
        return 0

    cdef Tensor read_code(self, Backward b, uint32_t recorded, Array* out):
        """The codes for the kernels of the gradients. Returns who owns them, None where it is the node."""
        cdef Tensor owner = None
        out[0] = b.kept(CODE)
        if not out.layout.dense: owner = dense_kept(b, CODE, out)
        out.layout, out.dtype = b.node.layout, BIT if self.code_bits(recorded) == 1 else PAIR
        return owner

    cdef Tensor where_code(self, Context c, int code):
        """For formulas: a bool tensor of the shape of the result, true where an element has this code."""
        return has_code(c, c.b.node.layout, self.code_bits(recorded_inputs(c.b.node)), code)


@final
cdef class HasCode(Operator):
    """y = whether each element has a code, a bool; no gradient

    The input is packed codes, the attributes are (code, bits, shape)."""

    def __cinit__(self):
        self.name = "has_code"

    cdef int infer(self, Call* c) except -1:
        c.y[0].layout = lay.from_shape((<tuple>c.attributes)[2])
        c.y[0].dtype = BOOL
        return 0

    cdef int forward(self, Call* c) except -1:
        cdef int code = (<tuple>c.attributes)[0], bits = (<tuple>c.attributes)[1]
        with nogil: where_code_is(<const uint8_t*>c.x[0].data, c.y[0].layout.size, bits, code, <uint8_t*>c.y[0].data)
        return 0


cdef Operator HAS_CODE = HasCode()


cdef Tensor has_code(Context c, const Layout* l, int bits, int code):
    """For formulas: a bool tensor of this shape, true where the code in the hidden output 1 is this one."""
    cdef Tensor t = c.output(1).detach()
    if not t.layout.dense: t = t.copy()             # what an unpack hook gave
    return apply1(HAS_CODE, t, (code, bits, lay.shape_tuple(l)))


cdef class Truth(Elementwise):
    """y = whether ..., a bool; no gradient"""

    def __cinit__(self):
        self.fused = self.differentiable = self.floats = False

    cdef int infer(self, Call* c) except -1:
        Elementwise.infer(self, c)
        c.y[0].dtype = BOOL
        return 0


cdef Layout* few_bytes[FEW_BYTES]                   # the layouts of so many bytes, made when they are needed first


cdef int hide_bytes(Call* c, Py_ssize_t nbytes) except -1:
    """Let packed codes of so many bytes be the hidden output 1."""
    if nbytes >= FEW_BYTES: c.y[1].layout = lay.dense(1, &nbytes)
    else:
        if few_bytes[nbytes] == NULL: few_bytes[nbytes] = lay.dense(1, &nbytes)
        c.y[1].layout = lay.share(few_bytes[nbytes])
    c.y[1].dtype = UINT8
    c.n_out, c.hidden = 2, 1
    return 0


cdef uint32_t recorded_inputs(Node node) noexcept:
    """The inputs whose gradients were wanted when a node was made, as bits."""
    cdef uint32_t mask = 0
    cdef int i
    for i in range(node.n_in):
        if edge_of(node, i).node != NULL: mask |= <uint32_t>1 << i
    return mask


cdef Tensor dense_kept(Backward b, int source, Array* out):
    """What is kept from `source` as one run of memory; what an unpack hook gave may be strided. Returns who owns it,
    None where it is the node."""
    cdef Tensor t
    out[0] = b.kept(source)
    if out.layout.dense: return None
    t = fresh(lay.dense_like(out.layout), out.dtype, OTHER)
    gather(t.buffer.data, out, 0, out.layout.size)
    out[0] = array_of(t)
    return t


cdef Array packed(char* data, const Layout* layout, int bits) noexcept:
    """Packed codes of elements of a layout, as the driver reads and writes them."""
    cdef Array a
    a.data, a.layout, a.dtype = data, layout, BIT if bits == 1 else PAIR
    return a


cdef int narrow(Backward b, int i) except -1:
    """Gradient i, of the shape of the output, summed over what broadcasting had repeated."""
    cdef Gradient wide = b.dx[i]
    cdef Array x, y
    b.dx[i].buffer = NULL
    try:
        y = b.make(i, b.input_layout(i), b.node.dtype)
        x.layout, x.dtype = wide.layout, b.node.dtype
        x.data = wide.buffer.data + wide.layout.offset * itemsize(x.dtype)
        sum_to(&x, &y)
    finally:
        drop_gradient(&wide)
    return 0


cdef void spread(Array* a, const Layout* target, Layout* seen, Py_ssize_t* strides) noexcept:
    """Let `a` be seen in the shape of `target`, by a layout on the caller's stack; one element needs none."""
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


cdef inline void put_number(Array* a, double* bits, object number, int dtype) except *:
    """An array of one element, the number, on the caller's stack."""
    if dtype == FLOAT32: (<float*>bits)[0] = <float>number
    else: bits[0] = number
    a.data = <char*>bits
    a.layout = lay.SCALAR
    a.dtype = dtype


cdef int by_numpy(Operator op, Call* c) except -1:
    """Bools and integers are NumPy's work, written straight into the result: there is no temporary array. ("unsafe" is
    how an assignment casts, as to NumPy the square of a bool is an int8. Inputs are cast safely even so.)"""
    cdef int i
    arrays = [lend(&c.x[i], NULL, False) for i in range(c.n_in)]
    dtype = arrays[0].dtype
    if c.attributes != NULL and <object>c.attributes is not None: arrays.append(<object>c.attributes)
    out = lend(&c.y[0], NULL, True)
    try:
        if op.numpy is None: raise TypeError
        op.numpy(*arrays, out=out, casting="unsafe")
    except TypeError:                               # NumPy has none of it for them either
        raise TypeError(f"{op.name} has no meaning for {dtype} tensors; cast with astype first") from None
    except OverflowError:
        raise OverflowError(f"the number {described(arrays[-1])} does not fit the dtype {dtype} of the other "
                            f"operand") from None
    return 0


cdef class View(Operator):
    """The base of operators whose output is their input's memory seen otherwise. `see` makes the layout; the gradient
    is the output's gradient seen the other way round."""

    def __cinit__(self):
        self.fused = self.differentiable = self.views = True

    cdef Layout* see(self, const Layout* x, attributes) except NULL:
        raise NotImplementedError

    cdef Layout* see_back(self, const Layout* g, const Layout* x, attributes) except NULL:
        raise NotImplementedError

    cdef int infer(self, Call* c) except -1:
        c.y[0].layout = self.see(c.x[0].layout, <object>c.attributes)
        c.y[0].dtype = c.x[0].dtype
        c.view = 0
        return 0

    cdef int forward(self, Call* c) except -1:
        return 0

    cdef int backward(self, Backward b) except -1:
        cdef Layout* l = self.see_back(b.g[0].layout, b.input_layout(0), b.node.attributes)
        b.same_gradient(0, True)
        lay.forget(b.dx[0].layout)
        b.dx[0].layout = l
        return 0


cdef class Part(View):
    """The base of views that show each element of a part of their input once: the gradient goes to that part, added to
    what other parts have contributed, so that several make no array of zeros for each."""

    cdef int backward(self, Backward b) except -1:
        cdef Array a[3]
        cdef bint first = False, lent = False, so_far = b.sum_so_far(0, &a[1])
        cdef Layout* l
        if not so_far:
            lent = b.target(0, &a[1], &first)
            if not lent: a[1], first = b.make(0, b.input_layout(0), b.node.dtype), True
            if first: memset(a[1].data, 0, a[1].layout.size * itemsize(a[1].dtype))
        l = self.see(a[1].layout, b.node.attributes)
        a[0] = b.gradient(0)
        a[1].data += (l.offset - a[1].layout.offset) * itemsize(a[1].dtype)
        a[1].layout = l
        a[2] = a[1]
        try: driver.each(COPY_LOOP if first else ADD_LOOP, a)
        finally: lay.forget(l)
        if so_far: b.added(0)
        if lent: b.wrote(0)
        return 0
