"""Places the virtual buffers of a program in one arena. Two buffers whose lives overlap must not share an address.

The least size is at least the maximum, over time, of the bytes that are alive (the liveness bound). Finding the least
size is NP-hard. What is placed has a *skyline*: for each time, the address below which nothing more is placed. Its
lowest part, the first of several, gets a buffer that lives within it and touches one of its ends, if there is one. If
no buffer that is left lives within it, it rises to the lower one of its neighbours. (This is the best fit of Burke,
Kendall and Whitwell, Operations Research 52, 2004, which Sekiyama and others, arXiv:1804.10001, use for the memory of
nets.)

The buffer that ends highest is then the first one that goes on each part within which it lives, and all are placed
again. A run ends as soon as it needs as much memory as the best one. So buffers that are hard to place come to lie
low. The first result that reaches the bound ends the search. A run takes O(n log n) steps for n buffers."""

from cpython.mem cimport PyMem_Calloc, PyMem_Free, PyMem_Malloc
from libc.stdlib cimport qsort
from libc.string cimport memcpy


cdef enum:
    N_RULES = 4
    MOST_RUNS = 15          # with each rule,
    MOST_PLACED = 24000     # as long as they place no more buffers than so many; each rule has one at least
    NEVER = 0x7fffffff      # a time

cdef enum Rule:             # which one goes on a part: the buffer nearest to its left end, or that nearest to its right
    TOUCHING                # the one that touches an end, else the longer one
    NEAREST                 # the one that leaves less of the part free
    LEFT
    RIGHT

cdef struct Keyed:
    int first, second
    size_t third
    int number

cdef struct Part:           # of the skyline, from the time that is its index
    int end                 # the time before which it ends; -1: no part begins here
    int before              # where the part on its left begins; -1: there is none
    size_t height

cdef struct Low:            # a part that may have changed since
    size_t height
    int begin


cdef int compare(const void* a, const void* b) noexcept nogil:
    cdef const Keyed* x = <const Keyed*>a
    cdef const Keyed* y = <const Keyed*>b
    if x.first != y.first: return -1 if x.first < y.first else 1
    if x.second != y.second: return -1 if x.second > y.second else 1
    if x.third != y.third: return -1 if x.third > y.third else 1
    return x.number - y.number


cdef size_t bound(const Interval* items, int n) except? 0:
    """The maximum of the bytes that are alive at one time."""
    cdef int k, end = last_death(items, n)
    cdef size_t* change = <size_t*>PyMem_Calloc(end + 1, sizeof(size_t))    # (modulo 2^64, so it can be below 0)
    cdef size_t live = 0, peak = 0
    if change == NULL: raise MemoryError("no memory for a plan")
    for k in range(n):
        change[items[k].birth] += items[k].nbytes
        change[items[k].death] -= items[k].nbytes
    for k in range(end + 1):
        live += change[k]
        peak = max(peak, live)
    PyMem_Free(change)
    return peak


cdef int last_death(const Interval* items, int n) noexcept nogil:
    cdef int k, end = 0
    for k in range(n): end = max(end, items[k].death)
    return end


cdef size_t place(Interval* items, int n) except? 0:
    """Set the offsets. Returns the size of the arena."""
    cdef size_t least = bound(items, n), best = <size_t>-1, size
    cdef size_t* offsets
    cdef Skyline s
    cdef int k, rule, _run, runs
    if n == 0: return 0
    s = new_skyline(items, n)
    offsets = <size_t*>PyMem_Malloc(n * sizeof(size_t))     # of the best run
    if offsets == NULL: raise MemoryError("no memory for a plan")
    runs = min(<int>MOST_RUNS, max(1, MOST_PLACED // (N_RULES * n)))
    with nogil:
        for rule in range(N_RULES):
            s.n_early = 0
            for _run in range(runs):
                if best == least: break
                size = s.run(best, rule)
                if size < best:
                    best = size
                    for k in range(n): offsets[k] = items[k].offset
                s.put_first(s.highest)
        for k in range(n): items[k].offset = offsets[k]
    PyMem_Free(offsets)
    return best


cdef class Skyline:
    """Buffers that a run places. They are known from two sides, 0 and 1, of which 1 sees time backwards: for each, the
    buffers are in the order of the ends at which it sees them begin, of those with the same one the longest first."""
    cdef Interval* items
    cdef int n, end             # of items, and the last time
    cdef int n_leaves           # of the tree of a side
    cdef int* first[2]          # by time: the first position of a buffer that begins then or later
    cdef int* order[2]          # by position: the buffer
    cdef int* position[2]       # by buffer: its position
    cdef int* tree[2]           # the least of where those begin and end that are left, by position: (see first_within)
    cdef int* whole[2]          # the same when all are left
    cdef int* numbers           # the memory of all these
    cdef Part* parts
    cdef Low* heap
    cdef int n_heap
    cdef int highest            # the buffer that ends highest
    cdef int early[MOST_RUNS]   # buffers that go before all others, the first one first
    cdef int n_early

    def __dealloc__(self):
        PyMem_Free(self.numbers)
        PyMem_Free(self.parts)
        PyMem_Free(self.heap)

    cdef int begin(self, int side, int i) noexcept nogil:
        return self.items[i].birth if side == 0 else self.end - self.items[i].death

    cdef int finish(self, int side, int i) noexcept nogil:
        return self.items[i].death if side == 0 else self.end - self.items[i].birth

    cdef void sort(self, int side, Keyed* keys) noexcept nogil:
        """Set what a side knows of all buffers. `keys` is room."""
        cdef int* first = self.first[side]
        cdef int* whole = self.whole[side]
        cdef int k, i
        for i in range(self.n):
            keys[i].first, keys[i].second = self.begin(side, i), self.finish(side, i)
            keys[i].third, keys[i].number = self.items[i].nbytes, i
        qsort(keys, self.n, sizeof(Keyed), compare)
        for k in range(self.end + 1): first[k] = self.n
        for k in range(2 * self.n_leaves): whole[k] = NEVER
        for k in range(self.n - 1, -1, -1):
            i = keys[k].number
            self.order[side][k], self.position[side][i] = i, k
            first[keys[k].first], whole[self.n_leaves + k] = k, keys[k].second
        for k in range(self.end - 1, -1, -1): first[k] = min(first[k], first[k + 1])
        for k in range(self.n_leaves - 1, 0, -1): whole[k] = min(whole[2 * k], whole[2 * k + 1])

    cdef int put_first(self, int i) noexcept nogil:
        """Let buffer `i` go before all others."""
        cdef int k = 0
        while k < self.n_early and self.early[k] != i: k += 1
        if k == self.n_early: self.n_early += 1
        while k > 0:
            self.early[k] = self.early[k - 1]
            k -= 1
        self.early[0] = i
        return 0

    # ---- parts

    cdef void put(self, int begin, int end, int before, size_t height) noexcept nogil:
        """Add a part to the skyline."""
        cdef int k = self.n_heap, up
        self.parts[begin].end, self.parts[begin].before, self.parts[begin].height = end, before, height
        if end < self.end: self.parts[end].before = begin
        self.n_heap += 1
        while k > 0:
            up = (k - 1) // 2
            if not lower(height, begin, &self.heap[up]): break
            self.heap[k] = self.heap[up]
            k = up
        self.heap[k].height, self.heap[k].begin = height, begin

    cdef void drop_lowest(self) noexcept nogil:
        """Remove the first element of the heap."""
        cdef Low x
        cdef int k = 0, down = 1
        self.n_heap -= 1
        x = self.heap[self.n_heap]
        while down < self.n_heap:
            if down + 1 < self.n_heap and lower(self.heap[down + 1].height, self.heap[down + 1].begin,
                                                &self.heap[down]): down += 1
            if not lower(self.heap[down].height, self.heap[down].begin, &x): break
            self.heap[k] = self.heap[down]
            k, down = down, 2 * down + 1
        self.heap[k] = x

    cdef int lowest(self) noexcept nogil:
        """Where the lowest part of the skyline begins."""
        cdef Part* part
        while True:
            part = &self.parts[self.heap[0].begin]
            if part.end >= 0 and part.height == self.heap[0].height: return self.heap[0].begin
            self.drop_lowest()

    cdef void raise_part(self, int a) noexcept nogil:
        """Let the lowest part, which begins at `a`, rise to a neighbour."""
        cdef int left = self.parts[a].before, b = self.parts[a].end
        cdef size_t height = self.parts[b].height if b < self.end else <size_t>-1
        self.parts[a].end = -1
        if left >= 0 and self.parts[left].height <= height:
            if self.parts[left].height == height: b = self.take_part(b)
            self.parts[left].end = b
            if b < self.end: self.parts[b].before = left
        else: self.put(a, self.take_part(b), left, height)

    cdef int take_part(self, int b) noexcept nogil:
        """Remove the part that begins at `b`. Returns where it ends."""
        cdef int end = self.parts[b].end
        self.parts[b].end = -1
        return end

    cdef void cover(self, int a, const Interval* x) noexcept nogil:
        """Place buffer `x` on the part that begins at `a`."""
        cdef int left = self.parts[a].before, b = self.take_part(a), begin = x.birth, end = x.death
        cdef size_t low = self.parts[a].height, top = low + x.nbytes
        if begin > a:
            self.put(a, begin, left, low)
            left = a
        if end < b: self.put(end, b, begin, low)
        elif b < self.end and self.parts[b].height == top: end = self.take_part(b)
        if begin == a and left >= 0 and self.parts[left].height == top:
            self.parts[left].end = end
            if end < self.end: self.parts[end].before = left
        else: self.put(begin, end, left, top)

    # ---- buffers

    cdef int first_within(self, int side, int begin, int end) noexcept nogil:
        """The buffer that begins first, as `side` sees it, of those that are left and live within `begin` to `end`; the
        longest one of several. -1: there is none."""
        cdef int* tree = self.tree[side]
        cdef int k = self.first[side][begin] + self.n_leaves
        if k == self.n + self.n_leaves: return -1
        if tree[k] > end:
            while k & 1 or tree[k + 1] > end:       # up to a node with the positions that follow
                k >>= 1
                if k <= 1: return -1
            k += 1
            while k < self.n_leaves:                # and down to the first of these
                k *= 2
                if tree[k] > end: k += 1
        return self.order[side][k - self.n_leaves]

    cdef void take(self, int i) noexcept nogil:
        """Buffer `i` is not left any more."""
        cdef int* tree
        cdef int side, k, least
        for side in range(2):
            tree, k = self.tree[side], self.position[side][i] + self.n_leaves
            tree[k] = NEVER
            while k > 1:
                k >>= 1
                least = min(tree[2 * k], tree[2 * k + 1])
                if tree[k] == least: break
                tree[k] = least

    cdef int choose(self, int a, int b, int rule) noexcept nogil:
        """The buffer that goes on the part from `a` to `b`; -1: none is left that lives within it."""
        cdef int i = self.first_within(0, a, b), j, left, right, length, other
        if i < 0: return -1
        j = self.first_within(1, self.end - b, self.end - a)
        if rule == LEFT: return i
        if rule == RIGHT: return j
        left, right = self.items[i].birth - a, b - self.items[j].death      # what stays free
        length, other = self.items[i].death - self.items[i].birth, self.items[j].death - self.items[j].birth
        if left != right and (rule == NEAREST or left == 0 or right == 0): return i if left < right else j
        return i if length >= other else j

    cdef size_t run(self, size_t limit, int rule) noexcept nogil:
        """Place all buffers. Returns the size of the arena; if it is `limit` or more, some were not placed."""
        cdef int waiting[MOST_RUNS]
        cdef int n_waiting = self.n_early, left = self.n, side, a, b, i, k
        cdef size_t size = 0, top
        memcpy(waiting, self.early, n_waiting * sizeof(int))
        for side in range(2): memcpy(self.tree[side], self.whole[side], 2 * self.n_leaves * sizeof(int))
        for k in range(self.end): self.parts[k].end = -1
        self.n_heap = 0
        self.put(0, self.end, -1, 0)
        while left > 0:
            a = self.lowest()
            b, i, k = self.parts[a].end, -1, 0
            while k < n_waiting and i < 0:
                if self.items[waiting[k]].birth >= a and self.items[waiting[k]].death <= b: i = waiting[k]
                k += 1
            if i >= 0:
                n_waiting -= 1
                for k in range(k - 1, n_waiting): waiting[k] = waiting[k + 1]
            else: i = self.choose(a, b, rule)
            if i < 0:
                self.raise_part(a)
                continue
            self.items[i].offset = self.parts[a].height
            top = self.items[i].offset + self.items[i].nbytes
            if top > size: size, self.highest = top, i
            if size >= limit: break
            self.take(i)
            self.cover(a, &self.items[i])
            left -= 1
        return size


cdef inline bint lower(size_t height, int begin, const Low* x) noexcept nogil:
    return height < x.height or height == x.height and begin < x.begin


cdef Skyline new_skyline(Interval* items, int n):
    """`n` items, n > 0. A buffer adds at most two parts to the skyline, and each part that rises removes one."""
    cdef Skyline s = Skyline.__new__(Skyline)
    cdef Keyed* keys
    cdef int side
    cdef int* at
    s.items, s.n, s.end, s.n_leaves = items, n, last_death(items, n), 1
    while s.n_leaves < n: s.n_leaves *= 2
    s.numbers = <int*>PyMem_Malloc(2 * (s.end + 1 + 2 * n + 4 * <size_t>s.n_leaves) * sizeof(int))
    s.parts = <Part*>PyMem_Malloc((s.end + 1) * sizeof(Part))
    s.heap = <Low*>PyMem_Malloc((5 * <size_t>n + 2) * sizeof(Low))
    keys = <Keyed*>PyMem_Malloc(n * sizeof(Keyed))
    if s.numbers == NULL or s.parts == NULL or s.heap == NULL or keys == NULL:
        PyMem_Free(keys)
        raise MemoryError("no memory for a plan")
    at = s.numbers
    for side in range(2):
        s.first[side], at = at, at + s.end + 1
        s.order[side], at = at, at + n
        s.position[side], at = at, at + n
        s.tree[side], at = at, at + 2 * s.n_leaves
        s.whole[side], at = at, at + 2 * s.n_leaves
        s.sort(side, keys)
    PyMem_Free(keys)
    return s
