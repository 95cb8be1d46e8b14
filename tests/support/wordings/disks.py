"""The wording of errors: memory.offload(), and memory.budget() with a folder."""

import errno

import cygrad as cg
from disks import (
    budget_of_a_full_disk,
    changed,
    full_disk,
    offload_nowhere,
    offload_of_another_thread,
    offload_set_up_again,
    offload_without_a_thread,
    open_offload,
    read_in_a_fork,
    unreadable,
    unreadable_budget,
)

CASES = [
    (lambda: cg.memory.offload(3), TypeError,
     "memory.offload: the path of a folder is required, such as 'spill'; got 3"),
    (lambda: cg.memory.offload(__file__), ValueError,
     "memory.offload: the path of a folder is required, got the file <*>; name another one"),
    (lambda: cg.memory.offload("/tmp", smallest="much"), ValueError,
     "memory.offload: a size must be a number of bytes or text such as \"256MiB\" or \"1.5GB\" (kB, MB, GB, TB by "
     "1000; KiB, MiB, GiB, TiB by 1024), got 'much'"),
    (lambda: cg.memory.offload("/tmp").__exit__(), RuntimeError,
     "memory.offload: this scope is not open, so it cannot be closed"),
    (open_offload, RuntimeError,
     "this memory.offload() is already open; make another one for a scope inside it"),
    (offload_set_up_again, RuntimeError,
     "this memory.offload() is open, so it cannot be set up again"),
    (offload_of_another_thread, RuntimeError,
     "memory.offload: it was opened in another thread, and only that thread can close it"),
    (offload_nowhere, FileNotFoundError,
     "[Errno 2] memory.offload: no file can be made in '/nowhere/at/all' (No such file or directory); pass a folder on "
     "a disk that can be written"),
    (offload_without_a_thread, BlockingIOError,
     "[Errno 11] memory.offload: the system cannot begin a thread that writes (Resource temporarily unavailable); pass "
     "a folder on a disk that can be written"),
    (lambda: full_disk(errno.ENOSPC), OSError,
     "[Errno 28] memory.offload: 400 bytes could not be written in <*> (No space left on device), beside 0 bytes "
     "that its file has; nothing is lost: what is not in the file stays in memory, and backward works; this scope "
     "writes no more; make room, or pass another folder"),
    (lambda: unreadable(errno.EIO), RuntimeError,
     "sin: the file of memory.offload() in <*> cannot be read (Input/output error), and with it 400 bytes that "
     "backward needs; run the step again, in another folder if it happens again"),
    (lambda: unreadable(0), RuntimeError,
     "sin: the file of memory.offload() in <*> is shorter than what was written, and with it 400 bytes that backward "
     "needs; run the step again, in another folder if it happens again"),
    (changed, RuntimeError,
     "sin: the file of memory.offload() in <*> has changed since it was written, and with it 400 bytes that backward "
     "needs; run the step again, in another folder if it happens again"),
    (read_in_a_fork, RuntimeError,
     "sin: a value that backward needs is in the file of memory.offload() in process <*>, and this is a fork of it; "
     "run backward there, or record in this process"),
    (lambda: cg.memory.budget(10, offload=3), TypeError,
     "memory.budget: the path of a folder is required, such as 'spill'; got 3"),
    (lambda: cg.memory.budget(10, offload="/nowhere/at/all"), FileNotFoundError,
     "[Errno 2] memory.budget: no file can be made in '/nowhere/at/all' (No such file or directory); pass a folder on "
     "a disk that can be written"),
    (budget_of_a_full_disk, cg.MemoryLimitError,
     "memory.budget of 600,000 bytes: mul at <*> requested 200,000 bytes, but <*> are live that cannot be evicted (<*>"
     "): parameters, gradients, what Python names refer to, and what the running operation reads; the budget must be "
     "at least <*> bytes here; nothing more can be written to <*> (No space left on device)"),
    (unreadable_budget, RuntimeError,
     "mul: the file of memory.budget() in <*> cannot be read (Input/output error), and with it 200,000 bytes that "
     "backward needs; run the step again, in another folder if it happens again"),
]
