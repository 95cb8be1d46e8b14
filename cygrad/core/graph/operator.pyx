"""The base of all operators (operator.pxd)."""

cimport cython

from libc.stdint cimport uint64_t
from libc.string cimport memset

from cygrad.core.store.layout cimport dense_like, incref
from cygrad.kernels.array cimport Layout

import re

SIGNS_ALONE = <uint64_t>1 << 63
EVERY_INPUT = (<uint64_t>1 << (REST + 1)) - 1
cdef set CLASSES = set()    # those of which there is an operator; they have no subclasses


cdef class Operator:
    """The base of all operators; operator.pxd has the contract. Beside its methods, a class declares

        called          the name of the operator, if it is not that of the class in snake_case
        traits          the flags of operator.pxd that it sets: "fused differentiable"
        integers        the NumPy function that computes bools and integers
        operands        the names of the inputs, in order: "x weight? bias?". "?": may be missing; "*": all that remain,
                        one by one; "[]": these as one list
        no_gradient     those that never have a gradient: integers, masks, lengths, weights of classes, running
                        statistics
        outputs         the names of the results; the operator can have more for its formula
        hidden          the names of the outputs that are saved for backward and not returned
        reads           the operands, results and hidden outputs that gradients read, "x y"; where the gradients of
                        operands differ, a dict of these by operand: {"x": "y", "y": "x"}
        result_may_change       whether a later write to the result is allowed although gradients read it, because the
                        operands alone would do too: the result takes no memory of its own until then, and is copied
                        before the write
        row             the name of its row in the table, if it is not that of the operator
        functions       further rows whose functions run it, and their operands. Such a function may run other operators
                        too, or the attributes may decide which row it is (row_of)
        selects         whether these functions gather values at the places that it computes: they have a gradient,
                        although it has none
        sparse          whether with the argument `sparse` the gradient is a GradientSlice
        alias           whether the view that it gives is that of all elements of its input, in the same shape,
        in_order        or in any shape, in the same order,
        may_copy        and whether it gives a copy instead if they are not in row-major order
        lanes           the rule by which it computes all lanes of cg.func.vmap (cygrad/func/lanes.py); "": lane by lane
        tangent         the rule for the tangents of its results (cygrad/func/forward.py); "": double reverse

    The table, nets, their files and the operator page read this."""
    called = traits = no_gradient = hidden = reads = lanes = tangent = ""
    integers = None
    selects = sparse = alias = in_order = may_copy = result_may_change = False

    def __cinit__(self):
        cls = type(self)
        if cls.__base__ in CLASSES:
            raise TypeError(f"{cls.__name__}: {cls.__base__.__name__} has its operator; subclass its base")
        CLASSES.add(cls)
        reads, traits = cls.reads, cls.traits.split()
        self.name = cls.called or re.sub("(?<=[a-z0-9])(?=[A-Z])", "_", cls.__name__).lower()
        self.promotes, self.promotes_to_float = "promotes" in traits, "promotes_to_float" in traits
        self.fused, self.differentiable = "fused" in traits, "differentiable" in traits
        self.mode_dependent, self.joint_formula = "mode_dependent" in traits, "joint_formula" in traits
        self.views, self.shows_part = "views" in traits, "shows_part" in traits
        self.data_dependent_shape, self.signs = "data_dependent_shape" in traits, "signs" in traits
        self.zero_derivative, self.numpy = "zero_derivative" in traits, cls.integers
        self.gradient_is_view, self.overwrites_gradient = "gradient_is_view" in traits, "overwrites_gradient" in traits
        if not reads: return
        names = self.operands.split()
        bits = {name: output_bit(k) for k, name in enumerate(f"{self.outputs} {self.hidden}".split())}
        for i, name in enumerate(names):
            bits[name.strip("?*")] = input_bit(i) if name[0] != "*" else EVERY_INPUT >> i << i
        for i, name in enumerate(names):
            of = reads if isinstance(reads, str) else reads.get(name.strip("?*"), "")
            for word in of.split(): self.saved_for[i] |= bits[word]

    @property
    def operands(self):
        return "x"

    @property
    def outputs(self):
        return "y"

    @property
    def row(self):
        return self.name

    @property
    def functions(self):
        return {}

    cdef int infer(self, Call* c) except -1 nogil:
        """Write the layouts and dtypes of the outputs, or the input that output 0 views, and the bytes of workspace. By
        default the output has the shape and dtype of input 0, or is a view of all of it."""
        c.y[0].dtype = c.x[0].dtype
        if self.views: c.y[0].layout, c.view = incref(c.x[0].layout), 0
        else: c.y[0].layout = dense_like(c.x[0].layout)

    cdef int forward(self, Call* c) except -1 nogil:
        """Compute the outputs, whose memory is allocated. A view has the memory of its input; it computes nothing."""
        if self.views: return 0
        with gil: return self.forward_with_gil(c)

    cdef int forward_with_gil(self, Call* c) except -1:
        """forward() of an operator that computes with NumPy or Python."""
        raise NotImplementedError(f"{self.name} has no forward")

    cdef bint forward_loop(self, const Call* c, LoopCall* l) noexcept nogil:
        """Whether forward() is one call of a loop, which is then written to `l`. (A program can run several together.)
        """
        return False

    cdef uint64_t keeps(self, const Call* c, uint64_t wanted) noexcept nogil:
        """The mask of the inputs and outputs that backward needs if the gradients of the inputs `wanted` are wanted. An
        operator overrides this if its attributes or the shapes decide it."""
        return declared(self.saved_for, wanted, c.n_in)

    cdef int plan_backward(self, BackwardCall* b) noexcept nogil:
        """Declare the stages of backward with add_stage(). If there is none, formula() computes the gradients. By
        default a fused operator has one stage, which computes the gradient of input 0."""
        cdef Stage* s
        if not self.fused or not b.want[0]: return 0
        s = add_stage(b, 1)
        s.view, s.donated_gradients = self.gradient_is_view, self.overwrites_gradient

    cdef int run_backward(self, BackwardCall* b, int stage) except -1 nogil:
        """Compute the gradients (b.dx) and temporaries (b.temporaries) that a stage declares."""
        raise NotImplementedError("an operator that plans a backward has no run_backward")

    cdef bint backward_loop(self, const BackwardCall* b, int stage, LoopCall* l) noexcept nogil:
        """The same for run_backward()."""
        return False

    cdef Layout* gradient_view(self, const BackwardCall* b, int i, const Layout* g) except NULL nogil:
        """The layout of the gradient of input i as a view of what a stage reads, which has the layout `g`. By default
        the same."""
        return incref(g)

    cdef object formula(self, c, int i, g):
        """The gradient of input `i` as a tensor, or as a GradientSlice unless c.create_graph. It is computed from the
        gradient `g` of the output (a tuple, if there are several) and from the context `c`: c.input(i), c.output(k),
        c.attributes, c.shape(i)."""
        raise RuntimeError(f"{self.name} has no gradient")

    cdef tuple row_of(self, attributes):
        return self.row, {} if attributes is None else attributes.arguments()

    @cython.binding(False)
    @cython.embedsignature.format("clinic")
    def as_row(self, attributes):
        """(row, arguments): the row whose function executes the operator with these attributes, and the arguments of
        the function. It can be given more arguments than it has. An operator overrides row_of."""
        return self.row_of(attributes)

    cdef tuple call_of(self, operands, arguments):
        """(places, attributes): how the function of a row of the table executes the operator, as far as keeps() reads
        it. `operands` are the row's names of the operands, None for one that is absent, and `arguments` the other
        arguments. `places` are the operands that are the inputs; None if the inputs are computed from them. An operator
        overrides this if keeps() reads its attributes, or if its inputs are not all operands of a row."""
        return range(len(operands)), None

    @cython.binding(False)
    @cython.embedsignature.format("clinic")
    def kept(self, operands, arguments, wanted):
        """(operands, outputs): the numbers of those that a call keeps for the gradients of the operands `wanted`, with
        hidden outputs. The call is one of call_of(). Its shapes and values are not known: where they decide, the
        operands are kept and not what replaces them."""
        cdef Call c
        cdef uint64_t mask = 0
        places, attributes = self.call_of(operands, arguments)
        if places is None: return [i for i, name in enumerate(operands) if name is not None], []
        memset(&c, 0, sizeof(Call))
        c.n_in, c.n_out, c.attributes = <int>len(places), 1, <void*>attributes
        for i, place in enumerate(places):
            if place in wanted: mask |= input_bit(i)
        mask = self.keeps(&c, mask)
        inputs = [place for i, place in enumerate(places) if mask & input_bit(i) and operands[place] is not None]
        return inputs, [k for k in range(MAX_OUTPUTS) if mask & output_bit(k)]

    def __repr__(self):
        return f"<operator {self.name}>"
