"""Recipes: how the values in the memory of buffers were made, so that they can be dropped and made again.

While a region is open in a thread, each operation leaves a Recipe: its operator, its attributes (a random operator has
the position of its generator there) and, for each operand, the Value that was in its memory, at the version that this
had. A slot that would save a Value of a region holds the Value instead of the buffer. When backward needs the slot and
the memory is gone, the recipes make the value again, with the same kernels, so its bits are the same. Outside of
regions there are no recipes.

In the region of a checkpoint() Values do not keep their memory alive, and recipes keep alive what no recipe has made:
the arguments. In that of a memory.budget() it is the reverse: the Values that slots hold keep their memory until it is
evicted or the last slot is emptied, and what a recipe reads is kept only once a value that depends on it was evicted.
"""

from libc.stdint cimport uint8_t, uint32_t, uint64_t

from cygrad.core.execute.executor cimport Execution
from cygrad.core.execute.operands cimport Operand
from cygrad.core.graph.operator cimport MAX_OUTPUTS, Operator
from cygrad.core.graph.packed cimport Packed, Packing, Watch
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
    cdef bint strong            # the Values that slots hold keep their memory: the region of a budget
    cdef uint64_t epoch         # backward passes that had begun when values were last forgotten
    cdef double work            # that of all recipes so far, in elements of an elementwise operation

    cdef Value read(self, Buffer* b)
    cdef Value known(self, Buffer* b)
    cdef Value new_value(self, Buffer* b)
    cdef bint is_around(self, RecipeScope r) noexcept
    cdef int made(self, Buffer* b, Recipe r, int nr) except -1
    cdef void forget_older(self) noexcept


cdef class Value:
    """What was in the memory of a buffer at one version."""
    cdef Watch watch            # of the buffer
    cdef uint32_t version
    cdef Recipe recipe          # what made it; None: it is an operand from outside of recipes, or was made again
    cdef int nr                 # as this output
    cdef RecipeScope region          # in this region
    cdef Buffer* held           # memory that has it and is kept alive, or NULL
    cdef uint32_t held_version
    cdef bytes checksum         # or None
    cdef int slots              # the slots that hold it
    cdef bint secured           # it can be made again, also if all that is not kept now is gone
    cdef bint stuck             # it cannot
    cdef int pins               # operations that are about to read it
    cdef int place              # among the candidates for eviction, from 1 on; 0: it is none
    cdef uint64_t epoch         # backward passes that had begun when it was made
    cdef uint64_t used          # next_number() when it was last made, read or unpacked

    cdef Buffer* memory(self) noexcept
    cdef int keep(self, Buffer* b) except -1
    cdef void drop(self) noexcept
    cdef void forget(self) noexcept


cdef class SlotValue(Packed):
    """A slot that holds a Value."""
    cdef Value value


cdef class Recipe:
    """One execution of an operator."""
    cdef Operator op
    cdef object attributes
    cdef uint64_t wanted, number        # Call.wanted; the place in the order of recipes
    cdef double work
    cdef list values            # a Value for each operand; None: a number
    cdef Read* reads
    cdef void* outputs[MAX_OUTPUTS]     # borrowed: the Values that it makes; NULL: nothing needs that output

    cdef int execute(self) except -1


cdef void** candidates      # borrowed: the Values that keep memory and have recipes
cdef int n_candidates
cdef uint64_t executed      # recipes, in all threads
cdef double executed_work   # theirs, in elements of an elementwise operation,
cdef double backward_work   # and that of all stages of backward passes

cdef void count_stage(double work) noexcept

cdef bint secure(Value v) except -1
cdef Recipe begin_recipe(Execution* e, Operator op, const Operand* x, object attributes)
cdef int finish_recipe(Recipe r, Execution* e) except -1
cdef int finish_recipe_over(Recipe r, Execution* e, Tensor target) except -1
