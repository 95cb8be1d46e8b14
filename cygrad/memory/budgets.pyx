"""memory.budget(), as a scope."""

cimport cython

from cygrad.core.execute.budget cimport Budget
from cygrad.memory.spilling cimport DiskSpiller

from cygrad.core.paths import folder_path
from cygrad.core.sizes import read_size


@cython.binding(False)
@cython.embedsignature.format("clinic")
cdef class budget:
    """A scope in which the live bytes of the whole process stay at or under `bytes`, an int or a string such as
    "256MiB": parameters, gradients, workspace, and what lived before are included; external memory is not. (With a
    memory.limit() of a little more around it, the memory that the process holds is bounded, too.)

        with cg.memory.budget("64MiB") as b:
            with cg.record(): loss = model(x).sum()
            loss.backward()

    Before an allocation that would exceed it, values that are kept for backward only are evicted. When backward needs
    one of them, its recipe makes it again: the operations that this thread has recorded in the scope, in forward and
    backward, give the same results bit for bit as without a budget. What a Python name, a view or another object refers
    to is not evicted, nor are results of an autograd.Function, draws from generators that are no operators, values from
    NumPy, and what was computed from memory that is shared with NumPy (asarray(), numpy()). Scopes nest, and the
    smallest applies. `.floor_bytes` are the most bytes so far that could not have been evicted: a smaller budget fails.
    `.recomputed` is (calls, share): the operations that were computed again, and their work as a share of all other
    work, forward and backward.

    The first step evicts what is cheap, large and was not used for long. A later step that calls the same, on the same
    sizes, evicts what was planned from what an earlier one did, as long as it agrees; `.planned` are the calls that its
    plan repeats, or None if no plan costs less. A scope around all steps, scopes of one handle, and scopes that one
    line of the program opens in each step know the steps before.

    With `offload`, a folder, what is evicted is written to a file there if that costs less than to compute it again, by
    the measured time of both, and so is what cannot be computed again: `.floor_bytes` are lower. A thread writes what
    will be evicted next before memory is short, and reads ahead in backward while there is room. Steps follow no plan
    then. The file has no name, so nothing is left of it after a crash, and is closed when the handle and the graphs
    that need it are gone. `.written_bytes`, `.read_bytes` and `.file_bytes`, its largest size, count, and
    `.waited_seconds` is how long the program has waited for the disk. If a write fails, the scope writes nothing more
    and evicts what can be computed again.

    Raises MemoryLimitError, a MemoryError, before an allocation for which too little can be evicted, with what was
    asked, by which operation and line, and what is live, and when the scope begins if more is live already. OSError
    if no file can be made in `offload`; in backward, RuntimeError for what cannot be read or has changed. TypeError or
    ValueError for what is no size or no folder. RuntimeError when it is closed in another thread, or opened twice."""
    cdef Budget made
    cdef bint is_open

    @cython.embedsignature.format("c")
    def __init__(self, bytes, offload=None):
        if self.is_open: raise RuntimeError("this memory.budget() is open, so it cannot be set up again")
        nbytes = min(read_size(bytes, "memory.budget"), 1 << 62)
        folder = folder_path(offload, "memory.budget", "spill") if offload is not None else None
        self.made = Budget(nbytes, DiskSpiller(folder) if folder is not None else None)

    def __enter__(self):
        if self.is_open or self.made is None:
            raise RuntimeError("this memory.budget() is already open; make another one for a scope inside it")
        self.made.open()
        self.is_open = True
        return self

    def __exit__(self, kind=None, value=None, traceback=None):
        if not self.is_open: raise RuntimeError("memory.budget: this scope is not open, so it cannot be closed")
        self.made.close()
        self.is_open = False

    def __dealloc__(self):
        if self.is_open and self.made is not None: self.made.leave()

    @property
    def floor_bytes(self):
        """The most bytes so far that could not have been evicted."""
        return self.made.floor if self.made is not None else 0

    @property
    def recomputed(self):
        """(calls, share) of the operations that were computed again."""
        from cygrad.memory.rows import Recomputed
        return Recomputed(*(self.made.recomputed if self.made is not None else (0, 0.0)))

    @property
    def planned(self):
        """The calls that a step like the last one repeats by its plan; None: it has none."""
        return self.made.planned if self.made is not None else None

    @property
    def written_bytes(self):
        """The bytes that were written to the file."""
        return self.file().written if self.has_file() else 0

    @property
    def read_bytes(self):
        """The bytes that were read from the file."""
        return self.file().read if self.has_file() else 0

    @property
    def file_bytes(self):
        """The most bytes that the file has had."""
        return self.file().spill.most if self.has_file() else 0

    @property
    def waited_seconds(self):
        """How long the program has waited for the disk."""
        return self.file().spill.waited if self.has_file() else 0.0

    cdef bint has_file(self):
        return self.made is not None and self.made.spiller is not None

    cdef DiskSpiller file(self):
        (<DiskSpiller>self.made.spiller).settle()
        return <DiskSpiller>self.made.spiller
