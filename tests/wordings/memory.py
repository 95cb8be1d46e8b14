"""The wording of errors: reports, limits, scopes of memory and free()."""

import cygrad as cg
from wrong import (
    entered_twice,
    free_a_gradient,
    free_what_is_lent,
    freed,
    limited,
    outlived,
    profile_twice,
    profiled,
    twice,
)

CASES = [
    *[(lambda make=make: make().__exit__(), RuntimeError,
       f"memory.{make.__name__}: this scope is not open, it cannot be left")
      for make in (cg.memory.profile, cg.memory.track, cg.memory.events)],
    (lambda: cg.memory.limit(0).__exit__(), RuntimeError,
     "memory.limit: this scope is not open, it cannot be left"),
    (lambda: twice(cg.memory.track), RuntimeError,
     "this memory.track() is open already; make another one for a scope inside it"),
    (lambda: twice(cg.memory.events), RuntimeError,
     "this memory.events() is open already; make another one for a scope inside it"),
    (lambda: cg.memory.track().peak_bytes, RuntimeError,
     "this memory.track() has seen nothing yet; use it as a scope: with cygrad.memory.track() as t: ..."),
    (lambda: cg.memory.profile().at_peak(), RuntimeError,
     "this memory.profile() has seen nothing yet; use it as a scope: with cygrad.memory.profile() as p: ..."),
    (profile_twice, RuntimeError,
     "this memory.profile() is open already; make another one for a scope inside it"),
    (lambda: profiled().table(by="size"), ValueError,
     "by is one of 'operation', 'category', 'line', got 'size'"),
    (lambda: cg.memory.why([1.0]), TypeError,
     "memory.why: wanted a tensor, got list"),
    (lambda: cg.memory.limit("much"), ValueError,
     "memory.limit: a size is a number of bytes or text such as \"256MiB\" or \"1.5GB\" (kB, MB, GB, TB by 1000; KiB, "
     "MiB, GiB, TiB by 1024), got 'much'"),
    (lambda: cg.memory.limit("1.5 parsec"), ValueError,
     "memory.limit: a size is a number of bytes or text such as <*>, got '1.5 parsec'"),
    (lambda: cg.memory.limit(1.5), TypeError,
     "memory.limit: a size is a whole number of bytes or text such as \"256MiB\", got 1.5"),
    (lambda: cg.memory.limit(True), TypeError,
     "memory.limit: a size is a whole number of bytes or text such as \"256MiB\", got True"),
    (lambda: cg.memory.limit(-1), ValueError,
     "memory.limit: a size is at least 0 bytes, got -1"),
    (limited, cg.MemoryLimitError,
     "memory.limit of 0 bytes: tensor at <*> asked for 67,108,864 bytes, but 0 are live and hold <*> of the system; "
     "at most 0 would fit; free tensors (memory.why says who holds one), work on smaller pieces, or raise the limit"),
    (lambda: profiled().save("memory.txt"), ValueError,
     "save: the report is .html or .json, got 'memory.txt'; plot() draws pictures"),
    (lambda: freed().shape, RuntimeError,
     "this tensor was freed, by its free() or at the end of a memory.scope(); make a new one, or keep() it in that "
     "scope"),
    (lambda: free_a_gradient(), RuntimeError,
     "free: this tensor of shape (2,) is the gradient of a variable; assign None to that .grad"),
    (lambda: free_what_is_lent(), RuntimeError,
     "free: the memory of this tensor of shape (2,) would not come back, others hold it: 1 lent to arrays or by "
     "DLPack; let go of those first"),
    (lambda: cg.memory.scope().keep(cg.zeros(2)), RuntimeError,
     "keep: this memory.scope() is not open"),
    (lambda: cg.memory.scope().keep(3), TypeError,
     "keep wants a tensor that is alive, got int"),
    (lambda: cg.memory.scope().__exit__(), RuntimeError,
     "a memory.scope() was left that this thread has not entered"),
    (lambda: entered_twice(), RuntimeError,
     "this memory.scope() is open already; make one for each with"),
    (lambda: outlived(), RuntimeError,
     "memory.scope(capped=True): tensors made inside outlive it without keep(), 2 in all: (2, 3) float32 at <*>; (5,) "
     "int64 at <*>; they are freed now; keep() what is to stay, and del the names of the block that refer to the rest"),
]
