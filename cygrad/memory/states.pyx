"""The state after a log's events: the live buffers, their categories, and the slots of nodes that save them. It is
compiled, because a long log is folded while the program runs."""

from cpython.mem cimport PyMem_RawCalloc, PyMem_RawFree
from libc.string cimport memcpy, memset

from cygrad.core.store.buffer cimport ALLOCATED, FREED


cdef inline size_t home(uintptr_t key, size_t places) noexcept:
    """The preferred index of an address in a table."""
    return ((<size_t>key >> 3) * <size_t>0x9E3779B97F4A7C15 >> 24) & (places - 1)


cdef class Table:
    """A hash table by address, with open addressing."""

    def __cinit__(self, size_t places=256):
        self.entry = <Entry*>PyMem_RawCalloc(places, sizeof(Entry))
        if self.entry == NULL: raise MemoryError("no memory for a profile")
        self.places = places

    def __dealloc__(self):
        PyMem_RawFree(self.entry)

    cdef Entry* find(self, uintptr_t key) noexcept:
        """The entry of an address, or NULL."""
        cdef size_t at = home(key, self.places)
        while self.entry[at].key != key:
            if self.entry[at].key == 0: return NULL
            at = (at + 1) & (self.places - 1)
        return &self.entry[at]

    cdef Entry* put(self, uintptr_t key) noexcept:
        """The entry of an address, created if necessary; NULL if there is no memory for it."""
        cdef size_t at
        if 2 * self.taken >= self.places and self.widen() < 0: return NULL
        at = home(key, self.places)
        while self.entry[at].key != key:
            if self.entry[at].key == 0:
                self.entry[at].key = key
                self.taken += 1
                break
            at = (at + 1) & (self.places - 1)
        return &self.entry[at]

    cdef void drop(self, Entry* e) noexcept:
        """Remove an entry, and move up the entries after it that collided with it."""
        cdef size_t hole = e - self.entry, at = hole, wanted
        cdef size_t mask = self.places - 1
        self.taken -= 1
        while True:
            at = (at + 1) & mask
            if self.entry[at].key == 0: break
            wanted = home(self.entry[at].key, self.places)
            if (at - wanted & mask) < (at - hole & mask): continue
            self.entry[hole] = self.entry[at]
            hole = at
        self.entry[hole].key = 0

    cdef int widen(self) noexcept:
        cdef Entry* before = self.entry
        cdef size_t places = self.places, i, at
        cdef Entry* more = <Entry*>PyMem_RawCalloc(2 * places, sizeof(Entry))
        if more == NULL: return -1
        self.entry, self.places = more, 2 * places
        for i in range(places):
            if before[i].key == 0: continue
            at = home(before[i].key, self.places)
            while more[at].key: at = (at + 1) & (self.places - 1)
            more[at] = before[i]
        PyMem_RawFree(before)
        return 0

    cdef Table copy(self):
        cdef Table other = Table(self.places)
        memcpy(other.entry, self.entry, self.places * sizeof(Entry))
        other.taken = self.taken
        return other

    cdef list listed(self):
        """(address, bytes, site, category, time) of each entry, sorted by time."""
        cdef list out = []
        cdef size_t i
        cdef Entry* e
        for i in range(self.places):
            e = &self.entry[i]
            if e.key: out.append((e.time, (e.key, e.nbytes, e.site, e.category, e.time)))
        out.sort()
        return [entry for _, entry in out]


cdef class MemoryState:
    """The live buffers and the filled slots after some events."""

    def __cinit__(self):
        memset(self.before, 0, sizeof(self.before))
        memset(self.totals, 0, sizeof(self.totals))
        self.live, self.slots = Table(), Table()

    cdef void play(self, const Event* e) noexcept:
        """Apply one event."""
        cdef Entry* found
        if e.kind == ALLOCATED:
            self.totals[e.category] += e.nbytes
            found = self.live.put(e.buffer)
            if found == NULL: self.lost = True
            else:
                found.nbytes, found.time, found.site, found.category = e.nbytes, e.time, e.site, e.category
        elif e.kind == SLOT_SAVED:
            found = self.slots.put(e.nbytes)
            if found == NULL: self.lost = True
            else: found.nbytes, found.site, found.time = e.buffer, e.site, e.time
        elif e.kind == SLOT_RELEASED:
            found = self.slots.find(e.nbytes)
            if found != NULL: self.slots.drop(found)
        elif e.kind <= MOVED:
            self.totals[e.before] -= e.nbytes
            found = self.live.find(e.buffer)
            if found == NULL: self.before[e.before] -= e.nbytes
            if e.kind == FREED:
                if found != NULL: self.live.drop(found)
                return
            self.totals[e.category] += e.nbytes
            if found == NULL: self.before[e.category] += e.nbytes
            else: found.category = e.category

    cdef MemoryState copy(self):
        cdef MemoryState other = MemoryState()
        memcpy(other.before, self.before, sizeof(self.before))
        memcpy(other.totals, self.totals, sizeof(self.totals))
        other.live, other.slots, other.lost = self.live.copy(), self.slots.copy(), self.lost
        return other

    cdef tuple shown(self):
        """(bytes from before the log by category, [(buffer, bytes, site, category, time)] of those made since,
        {buffer: [site of each slot that saves it]})."""
        cdef dict kept = {}
        for _, buffer, site, _, _ in self.slots.listed(): kept.setdefault(buffer, []).append(site)
        return [self.before[c] for c in range(<int>CATEGORIES)], self.live.listed(), kept
