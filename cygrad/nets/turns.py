"""Locks of workspaces and nets, which the end of a thread or an interrupt cannot leave behind."""

from threading import get_ident
from typing import Any, Self
from weakref import ref

Lock = dict[str, ref[Any]]          # {"now": the LockUse that goes on}; empty, or with one that was freed: none does


class LockUse:
    """The use of locks by a thread, until its scope is left, or else until this object is freed. `others` are the turns
    that have one of the locks already, and their locks.

    (dict.setdefault is atomic. An interrupt between any two lines leaves no lock behind, because the LockUse is freed
    with the frame that made it.)"""

    __slots__ = "__weakref__", "locks", "mine", "others", "thread"

    others: "tuple[tuple[Lock, LockUse], ...]"

    def __init__(self, *locks: Lock):
        self.locks, self.thread, self.others = locks, get_ident(), ()
        mine = self.mine = ref(self)
        for lock in locks:
            found = lock.setdefault("now", mine)
            if found is mine: continue
            other = found()
            if other is None: lock["now"] = mine        # (that turn was freed)
            else: self.others = *self.others, (lock, other)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for lock in self.locks:
            if lock.get("now") is self.mine: del lock["now"]


def other_thread(lock: Lock) -> bool:
    """Whether another thread has the lock."""
    found = lock.get("now")
    turn = None if found is None else found()
    return turn is not None and turn.thread != get_ident()
