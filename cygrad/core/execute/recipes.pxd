"""Recipes: how the values in the memory of buffers were made, so that they can be dropped and made again.

While a region is open in a thread, each operation leaves a Recipe: its operator, its attributes (a random operator has
the position of its generator there) and, for each operand, the Value that was in its memory, at the version that this
had. A slot that would save a Value of a region holds the Value instead of the buffer, and does not keep its memory
alive. When backward needs the slot and the memory is gone, the recipes make the value again, each at most once, with
the same kernels, so its bits are the same. Outside of regions there are no recipes."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t

from cygrad.core.execute.executor cimport Execution
from cygrad.core.execute.operands cimport Operand
from cygrad.core.graph.operator cimport MAX_OUTPUTS, Operator
from cygrad.core.graph.packed cimport Packed, Packing
from cygrad.core.graph.tensor cimport Tensor
from cygrad.core.store.buffer cimport Buffer
from cygrad.kernels.array cimport Layout


cdef struct Read:           # how a recipe reads an operand
    const Layout* layout    # a reference
    double number           # of an operand that is a Python number, in the bits of `dtype`
    uint8_t dtype


cdef class RecipeScope(Packing):
    """A region: the part of a program whose values can be made again, such as one call of checkpoint()."""
    cdef RecipeScope outer           # the region around it, or None
    cdef dict values            # address of a buffer -> the Value in it now; shared with `outer`
    cdef readonly object keep   # the names of the operators whose results are kept
    cdef readonly bint hashed   # what is made again is compared with its checksum

    cdef Value read(self, Buffer* b)
    cdef Value known(self, Buffer* b)
    cdef Value new_value(self, Buffer* b)
    cdef bint is_around(self, RecipeScope r) noexcept
    cdef int made(self, Buffer* b, Recipe r, int nr) except -1


cdef class Value(Packed):
    """What was in the memory of a buffer at one version."""
    cdef uint32_t version       # that of the buffer
    cdef Recipe recipe          # what made it; None: it is an operand from outside of recipes, or was made again
    cdef int nr                 # as this output
    cdef RecipeScope region          # in this region
    cdef Buffer* held           # memory that has it and is kept alive, or NULL
    cdef uint32_t held_version
    cdef bytes checksum         # or None

    cdef Buffer* memory(self) noexcept
    cdef int keep(self, Buffer* b) except -1
    cdef void drop(self) noexcept


cdef class Recipe:
    """One execution of an operator."""
    cdef Operator op
    cdef object attributes
    cdef uint64_t wanted, number        # Call.wanted; the place in the order of recipes
    cdef list values            # a Value for each operand; None: a number
    cdef Read* reads
    cdef void* outputs[MAX_OUTPUTS]     # borrowed: the Values that it makes; NULL: nothing needs that output

    cdef int execute(self) except -1


cdef Recipe begin_recipe(Execution* e, Operator op, const Operand* x, object attributes)
cdef int finish_recipe(Recipe r, Execution* e) except -1
cdef int finish_recipe_over(Recipe r, Execution* e, Tensor target) except -1
