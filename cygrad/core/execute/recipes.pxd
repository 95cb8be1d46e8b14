"""Recipes: how the values in the memory of buffers were made, so that they can be dropped and made again.

While a region is open in a thread, each operation leaves a Recipe: its operator, its attributes (a random operator has
the position of its generator there) and, for each operand, the Value that was in its memory, at the version that this
had. A slot that would save a Value of a region holds the Value instead of the buffer. When backward needs the slot and
the memory is gone, the recipes make the value again, with the same kernels, so its bits are the same. Outside of
regions there are no recipes.

In the region of a checkpoint() Values do not keep their memory alive, and recipes keep alive what no recipe has made:
the arguments. In that of a memory.budget() it is the reverse: the Values that slots hold keep their memory until it is
evicted or the last slot is emptied, and what a recipe reads is kept only once a value that depends on it was evicted.
With a Spiller, slots hold Values of such a region that no recipe has made, too, and what is evicted can be spilled: it
is written somewhere else, and read again.
"""

from libc.stdint cimport uint8_t, uint32_t, uint64_t

from cygrad.core.execute.executor cimport Execution
from cygrad.core.execute.operands cimport Operand
from cygrad.core.execute.spills cimport Spilled, Spiller
from cygrad.core.graph.operator cimport MAX_OUTPUTS, Operator
from cygrad.core.graph.packed cimport Packed, Packing, Watch
from cygrad.core.graph.signs cimport can_shrink
from cygrad.core.graph.tensor cimport Tensor
from cygrad.core.store.buffer cimport EXTERNAL, VIRTUAL, Buffer
from cygrad.kernels.array cimport Layout


cdef struct Read:           # how a recipe reads an operand
    const Layout* layout    # a reference
    double number           # of an operand that is a Python number, in the bits of `dtype`
    uint8_t dtype


cdef enum Change:           # of a Value that an Observer has seen
    KEPT                    # it keeps its memory,
    DROPPED                 # and does no more
    STUCK                   # it cannot be made again
    GONE                    # nothing refers to it


cdef class Observer:
    """Sees what happens to the values of a region (following.pxd)."""

    cdef Py_ssize_t sample(self, Py_ssize_t nbytes) except -1
    cdef int evict_planned(self, Py_ssize_t nbytes, Py_ssize_t bound) except -1
    cdef int called(self, Recipe r, const Execution* e) except -1
    cdef int reads(self, Value v) except -1
    cdef bint keeps(self, Value v) noexcept
    cdef void saw(self, Value v, Change what) noexcept


cdef class RecipeScope(Packing):
    """A region: the part of a program whose values can be made again, such as one call of checkpoint()."""
    cdef RecipeScope outer           # the region around it, or None
    cdef dict values            # address of a buffer -> the Value in it now; shared with `outer`
    cdef readonly object keep   # the names of the operators whose results are kept
    cdef readonly bint hashed   # what is made again is compared with its checksum
    cdef bint strong            # the Values that slots hold keep their memory: the region of a budget
    cdef uint64_t epoch         # backward passes that had begun when values were last forgotten
    cdef double work            # that of all recipes so far, in elements of an elementwise operation
    cdef size_t repeated        # recipes of its values that were executed, also after its end,
    cdef double repeated_work   # and their work
    cdef Observer observer      # or None
    cdef Spiller spiller        # or None

    cdef void count(self, Recipe r) noexcept
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
    cdef Observer observer      # that has seen it, or None,
    cdef uint64_t sequence      # in this sequence,
    cdef int item               # as this content of it
    cdef uint64_t number        # next_number() when it was made
    cdef Spilled spilled        # a copy of it that is written or will be; or None

    cdef Buffer* memory(self) noexcept
    cdef int keep(self, Buffer* b) except -1
    cdef void drop(self) noexcept
    cdef void forget(self) noexcept
    cdef bint is_elsewhere(self) noexcept
    cdef bint can_spill(self) noexcept
    cdef int begin_to_spill(self) except -1
    cdef int spill(self) except -1
    cdef int read_again(self) except -1


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


cdef int executing          # calls of make_again()
cdef void** candidates      # borrowed: the Values that keep memory and have recipes
cdef int n_candidates
cdef double executed_work   # that of the recipes that were executed, in elements of an elementwise operation,
cdef double executed_seconds        # and time,
cdef double backward_work   # and that of all stages of backward passes

cdef void count_stage(double work) noexcept

cdef int evict(Value v, bint spills) except -1
cdef Recipe begin_recipe(Execution* e, Operator op, const Operand* x, object attributes)
cdef int finish_recipe(Recipe r, Execution* e) except -1
cdef int finish_recipe_over(Recipe r, Execution* e, Tensor target) except -1


cdef inline bint is_evictable(Value v) noexcept:
    """Whether only slots keep the memory of a Value. (One that needs the signs alone shrinks it, if it still can.)"""
    cdef Buffer* b = v.held
    return (b != NULL and v.pins == 0 and not v.stuck and b.holders == 1 + b.signs
            and not b.flags & (EXTERNAL | VIRTUAL) and (not b.signs or can_shrink(b)))
