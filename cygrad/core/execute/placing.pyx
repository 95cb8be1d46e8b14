"""Places the virtual buffers of a program in one arena. Two buffers whose lives overlap must not share an address.

The least size is at least the maximum, over time, of the bytes that are alive (the liveness bound). Finding the least
size is NP-hard. Each order below is greedy: a buffer goes to the smallest gap between those placed before it that are
alive at the same time, at the lowest offset. From the best of the orders others are made: a buffer at the end of the
arena is placed first. The best result is used; the first that reaches the bound ends the search."""

from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.stdlib cimport qsort
from libc.string cimport memcpy, memmove


cdef enum:
    MOST_TRIES = 400        # most tries to improve the best order

cdef struct Keyed:
    double first, second
    int number


cdef int compare(const void* a, const void* b) noexcept nogil:
    cdef const Keyed* x = <const Keyed*>a
    cdef const Keyed* y = <const Keyed*>b
    if x.first != y.first: return -1 if x.first < y.first else 1
    if x.second != y.second: return -1 if x.second < y.second else 1
    return x.number - y.number


cdef size_t bound(const Interval* items, int n) except? 0:
    """The maximum of the bytes that are alive at one time."""
    cdef Keyed* events = <Keyed*>PyMem_Malloc(max(2 * n, 1) * sizeof(Keyed))
    cdef size_t live = 0, peak = 0
    cdef int k
    if events == NULL: raise MemoryError("no memory for a plan")
    with nogil:
        for k in range(n):
            events[2 * k].first, events[2 * k].second, events[2 * k].number = items[k].birth, 1, k
            events[2 * k + 1].first, events[2 * k + 1].second, events[2 * k + 1].number = items[k].death, 0, k
        qsort(events, 2 * n, sizeof(Keyed), compare)        # (deaths before births at the same time)
        for k in range(2 * n):
            if events[k].second == 1:
                live += items[events[k].number].nbytes
                peak = max(peak, live)
            else: live -= items[events[k].number].nbytes
    PyMem_Free(events)
    return peak


cdef void set_key(Keyed* key, const Interval* x, int order) noexcept nogil:
    if order == 0: key.first, key.second = -<double>x.nbytes, x.birth
    elif order == 1: key.first, key.second = x.birth, -<double>x.nbytes
    elif order == 2: key.first, key.second = -<double>x.nbytes * (x.death - x.birth), x.birth
    elif order == 3: key.first, key.second = -(x.death - x.birth), -<double>x.nbytes
    else: key.first, key.second = -x.death, -<double>x.nbytes


cdef size_t place(Interval* items, int n, double work) except? 0:
    """Set the offsets. Returns the size of the arena. `work`: the most pairs of buffers that improvements compare."""
    cdef Keyed* keys = <Keyed*>PyMem_Malloc(max(n, 1) * sizeof(Keyed))
    cdef Keyed* best_keys = <Keyed*>PyMem_Malloc(max(n, 1) * sizeof(Keyed))
    cdef Interval** sorted = <Interval**>PyMem_Malloc(max(n, 1) * sizeof(void*))
    cdef size_t* best_offsets = <size_t*>PyMem_Malloc(max(n, 1) * sizeof(size_t))
    cdef size_t least, best = <size_t>-1, size
    cdef int k, order, tries
    if keys == NULL or best_keys == NULL or sorted == NULL or best_offsets == NULL:
        PyMem_Free(keys)
        PyMem_Free(best_keys)
        PyMem_Free(sorted)
        PyMem_Free(best_offsets)
        raise MemoryError("no memory for a plan")
    try:
        least = bound(items, n)
        with nogil:
            for order in range(5):
                for k in range(n):
                    set_key(&keys[k], &items[k], order)
                    keys[k].number = k
                qsort(keys, n, sizeof(Keyed), compare)
                size = place_in_order(items, keys, n, sorted)
                if size < best:
                    best = size
                    for k in range(n): best_offsets[k] = items[k].offset
                    memcpy(best_keys, keys, n * sizeof(Keyed))
                if best == least: break
            tries = <int>min(<double>MOST_TRIES, work / (<double>n * n + 1)) if n else 0
            for k in range(n): items[k].offset = best_offsets[k]
            size = best
            while best > least and tries > 0 and last_first(items, best_keys, n, size):
                size = place_in_order(items, best_keys, n, sorted)
                tries -= 1
                if size >= best: continue
                best = size
                for k in range(n): best_offsets[k] = items[k].offset
        for k in range(n): items[k].offset = best_offsets[k]
        return best if n else 0
    finally:
        PyMem_Free(keys)
        PyMem_Free(best_keys)
        PyMem_Free(sorted)
        PyMem_Free(best_offsets)


cdef bint last_first(const Interval* items, Keyed* keys, int n, size_t size) noexcept nogil:
    """Move a buffer that ends at the end of the arena to the front of the order. False: it is there already."""
    cdef Keyed key
    cdef int k = n - 1
    while k > 0 and items[keys[k].number].offset + items[keys[k].number].nbytes < size: k -= 1
    if k == 0: return False
    key = keys[k]
    memmove(keys + 1, keys, k * sizeof(Keyed))
    keys[0] = key
    return True


cdef size_t place_in_order(Interval* items, const Keyed* keys, int n, Interval** placed) noexcept nogil:
    """Place the items in the order of `keys`. `placed` becomes the items by offset."""
    cdef size_t end = 0, low, gap, best_gap, best
    cdef Interval* x
    cdef int k, j, at, best_at
    for k in range(n):
        x = &items[keys[k].number]
        low, best, best_gap, best_at, at = 0, 0, <size_t>-1, -1, 0
        for j in range(k):
            if placed[j].birth >= x.death or placed[j].death <= x.birth: continue
            if placed[j].offset > low:
                gap = placed[j].offset - low
                if gap >= x.nbytes and gap < best_gap: best, best_gap, best_at = low, gap, j
            low = max(low, placed[j].offset + placed[j].nbytes)
        x.offset = low if best_at < 0 else best
        end = max(end, x.offset + x.nbytes)
        at = k                                      # insert by offset
        while at > 0 and placed[at - 1].offset > x.offset:
            placed[at] = placed[at - 1]
            at -= 1
        placed[at] = x
    return end
