"""The arena: takes memory from the system, splits it into spans and joins free ones.

A segment is a range of addresses that is reserved from the system. A page of it costs nothing until it is committed.
A segment is divided into spans. fit() returns the free span of committed memory with the best fit. give() joins a freed
span with its free neighbours, so that the memory can serve any size. If nothing fits, grow() commits pages: in the free
span that needs the fewest, or in a new segment. purge() decommits free pages. Addresses are plentiful. So if the free
memory is fragmented, it is cheaper to decommit pages there and to commit others here than to hold both.

Bins index the free spans by size, eight bins for each power of two. Each bin has two lists: spans that are fully
committed, and spans with uncommitted pages. A search examines a bounded number of spans of a bin, so its time does not
depend on how many there are. Everything runs under the GIL."""

from cpython.mem cimport PyMem_RawCalloc, PyMem_RawFree, PyMem_RawMalloc
from libc.stdint cimport uint64_t
from libc.string cimport memset

cdef extern from "cygrad/platform.h" nogil:
    size_t cg_page()
    char* cg_reserve(size_t nbytes)
    bint cg_commit(char* p, size_t nbytes)
    bint cg_decommit(char* p, size_t nbytes)
    void cg_unreserve(char* p, size_t nbytes)
    int cg_highest_bit(uint64_t x)
    int cg_lowest_bit64(uint64_t x)
    int cg_count_bits(uint64_t x)
    void CG_UNPOISON(void* p, size_t n)

cdef enum:
    BINS = 8 * 48           # spans of up to 2^56 bytes
    WORDS = BINS // 64
    MAX_EXAMINED = 32       # a search examines at most this many spans of a bin
    RESERVE = 64 << 20      # the smallest segment
    HUGE = 2 << 20          # a huge page; a large arena grows by at least this

cdef size_t PAGE = cg_page()

cdef struct Bins:           # free spans by size
    Span* first[BINS]
    uint64_t occupied[WORDS]    # a bit for each bin that has spans

cdef Bins full_bins         # spans that are fully committed
cdef Bins partial_bins      # spans with uncommitted pages
cdef Segment* segments = NULL
cdef size_t reserved = 0
cdef Span* unused = NULL    # a list of span records for reuse

memset(&full_bins, 0, sizeof(full_bins))
memset(&partial_bins, 0, sizeof(partial_bins))
committed = 0
commits = 0


# ---- bins ------------------------------------------------------------------------------------------------------------

cdef inline int bin_of(size_t size) noexcept:
    """The bin of spans of `size` bytes. All spans of a higher bin are larger."""
    cdef uint64_t grains = size // GRAIN
    cdef int top
    if grains < 16: return <int>grains
    top = cg_highest_bit(grains)                    # at least 4
    return 8 * (top - 2) + <int>(grains >> (top - 3) & 7)


cdef inline Bins* bins_of(const Span* s) noexcept:
    return &partial_bins if s.bare else &full_bins


cdef void insert(Span* s) noexcept:
    """Insert a free span into its bin."""
    cdef Bins* bins = bins_of(s)
    cdef int k = bin_of(s.size)
    s.free = True
    s.previous = NULL
    s.next = bins.first[k]
    if s.next != NULL: s.next.previous = s
    bins.first[k] = s
    bins.occupied[k >> 6] |= <uint64_t>1 << (k & 63)


cdef void remove(Span* s) noexcept:
    """Remove a span from its bin."""
    cdef Bins* bins = bins_of(s)
    cdef int k = bin_of(s.size)
    s.free = False
    if s.next != NULL: s.next.previous = s.previous
    if s.previous != NULL: s.previous.next = s.next
    else:
        bins.first[k] = s.next
        if s.next == NULL: bins.occupied[k >> 6] &= ~(<uint64_t>1 << (k & 63))


cdef int next_bin(const Bins* bins, int k) noexcept:
    """The first bin from `k` on that has spans, or -1."""
    cdef int w = k >> 6
    cdef uint64_t bits
    if k >= BINS: return -1
    bits = bins.occupied[w] & (~<uint64_t>0 << (k & 63))
    while True:
        if bits: return 64 * w + cg_lowest_bit64(bits)
        w += 1
        if w == WORDS: return -1
        bits = bins.occupied[w]


# ---- records of spans ------------------------------------------------------------------------------------------------

cdef Span* new_span(Segment* segment, char* data, size_t size) noexcept:
    """A span record, or NULL if there is no memory for it."""
    global unused
    cdef Span* s = unused
    if s != NULL: unused = s.next
    else: s = <Span*>PyMem_RawMalloc(sizeof(Span))
    if s == NULL: return NULL
    s.segment, s.data, s.size, s.bare, s.free = segment, data, size, 0, False
    s.before = s.after = s.previous = s.next = NULL
    return s


cdef void recycle_span(Span* s) noexcept:
    """Put a span record on the list for reuse."""
    global unused
    s.next = unused
    unused = s


cdef bint split(Span* s, size_t n) noexcept:
    """Shorten a span that is in no bin to `n` bytes and free the rest. False if there is no memory for the record of
    the rest; the span is then unchanged."""
    cdef Span* rest
    if s.size == n: return True
    rest = new_span(s.segment, s.data + n, s.size - n)
    if rest == NULL: return False
    rest.bare = s.bare
    rest.before, rest.after = s, s.after
    if rest.after != NULL: rest.after.before = rest
    s.after = rest
    s.size, s.bare = n, 0
    insert(rest)
    return True


# ---- pages -----------------------------------------------------------------------------------------------------------

cdef inline bint has_page(const Segment* g, size_t page) noexcept:
    return g.has[page >> 6] >> (page & 63) & 1


cdef inline void set_pages(Segment* g, size_t page, size_t end, bint has) noexcept:
    cdef size_t k
    for k in range(page, end):
        if has: g.has[k >> 6] |= <uint64_t>1 << (k & 63)
        else: g.has[k >> 6] &= ~(<uint64_t>1 << (k & 63))


cdef size_t pages_between(const Segment* g, size_t page, size_t end) noexcept:
    """The number of committed pages from `page` to `end`."""
    cdef size_t count = 0
    while page < end:
        if page & 63 == 0 and page + 64 <= end:
            count += cg_count_bits(g.has[page >> 6])
            page += 64
        else:
            count += has_page(g, page)
            page += 1
    return count


cdef inline size_t first_page(const Span* s) noexcept:
    """The page in which a span begins."""
    return <size_t>(s.data - s.segment.base) // PAGE


cdef inline size_t page_after(const Span* s, size_t n) noexcept:
    """The page after the first `n` bytes of a span."""
    return (<size_t>(s.data - s.segment.base) + n + PAGE - 1) // PAGE


cdef size_t uncommitted(const Span* s, size_t n) noexcept:
    """The number of bytes that must be committed before the first `n` bytes of a free span can be used."""
    cdef size_t page = first_page(s), end = page_after(s, n)
    return (end - page - pages_between(s.segment, page, end)) * PAGE if s.bare else 0


cdef size_t decommit(Span* s, size_t max_bytes) noexcept:
    """Decommit whole pages of a free span that is in no bin, from its end, until at least `max_bytes` bytes are
    decommitted or no page is left. Returns the number of bytes."""
    global committed
    cdef Segment* g = s.segment
    cdef size_t at = s.data - g.base, begin = (at + PAGE - 1) // PAGE, end = (at + s.size) // PAGE
    cdef size_t page = end, freed = 0
    while page > begin and freed < max_bytes:
        page -= 1
        if page & 63 == 63 and page - 63 >= begin and g.has[page >> 6] == 0: page -= 63
        elif has_page(g, page): freed += PAGE
    if freed == 0 or not cg_decommit(g.base + page * PAGE, (end - page) * PAGE): return 0
    set_pages(g, page, end, False)
    s.bare += freed
    committed -= freed
    return freed


cdef bint commit(Span* s, size_t n, size_t max_bytes) noexcept:
    """Commit the pages that the first `n` bytes of a free span need. A large arena grows by huge pages, so this commits
    some of the following pages too, as long as at most `max_bytes` bytes are committed in total. False if the system
    has no memory. The span is in no bin."""
    global committed, commits
    cdef Segment* g = s.segment
    cdef size_t page = first_page(s), end = page_after(s, n), need = uncommitted(s, n)
    cdef size_t last = (<size_t>(s.data - g.base) + s.size) // PAGE
    cdef size_t step = min(<size_t>HUGE, committed // 16) // PAGE, further = end
    if need == 0: return True
    while has_page(g, page): page += 1
    while step and further % step and further < last and not has_page(g, further): further += 1
    if committed + need + (further - end) * PAGE > max_bytes: further = end
    if not cg_commit(g.base + page * PAGE, (further - page) * PAGE):
        if further == end or not cg_commit(g.base + page * PAGE, (end - page) * PAGE): return False
        further = end
    set_pages(g, page, further, True)
    need += (further - end) * PAGE
    s.bare -= need
    committed += need
    commits += 1
    return True


# ---- segments --------------------------------------------------------------------------------------------------------

cdef Span* reserve(size_t n) noexcept:
    """A new segment of at least `n` bytes, as one free span, or NULL if the system has no addresses. Each segment is as
    large as all earlier ones together, which keeps their number small. If addresses are scarce (RLIMIT_AS), the segment
    is only as large as `n` needs."""
    global segments, reserved
    cdef size_t minimum = (n + HUGE - 1) // HUGE * HUGE
    cdef size_t size = max(minimum, max(<size_t>RESERVE, reserved))
    cdef char* base = cg_reserve(size)
    cdef Segment* g
    cdef Span* s
    if base == NULL:
        size = minimum
        base = cg_reserve(size)
        if base == NULL: return NULL
    g = <Segment*>PyMem_RawMalloc(sizeof(Segment))
    s = new_span(g, base, size)
    if g != NULL: g.has = <uint64_t*>PyMem_RawCalloc((size // PAGE + 63) // 64, 8)
    if g == NULL or s == NULL or g.has == NULL:
        if g != NULL: PyMem_RawFree(g.has)
        PyMem_RawFree(g)
        if s != NULL: recycle_span(s)
        cg_unreserve(base, size)
        return NULL
    g.base, g.size = base, size
    g.following = segments
    segments = g
    reserved += size
    s.bare = size
    insert(s)
    return s


cdef void unreserve(Span* s) noexcept:
    """Return a segment to the system. Its only span is `s`, which is free and in no bin."""
    global segments, reserved, committed
    cdef Segment* g = s.segment
    cdef Segment** link = &segments
    committed -= s.size - s.bare                    # unreserving decommits these pages
    while link[0] != g: link = &link[0].following
    link[0] = g.following
    reserved -= g.size
    CG_UNPOISON(g.base, g.size)
    cg_unreserve(g.base, g.size)
    PyMem_RawFree(g.has)
    PyMem_RawFree(g)
    recycle_span(s)


# ---- allocation ------------------------------------------------------------------------------------------------------

cdef Span* best_fit(const Bins* bins, size_t n) noexcept:
    """The smallest span of at least `n` bytes among those examined, or NULL if there is none."""
    cdef int k = bin_of(n), examined
    cdef Span* s
    cdef Span* found = NULL
    while True:
        k = next_bin(bins, k)
        if k < 0: return NULL
        s, examined = bins.first[k], 0
        while s != NULL and examined < MAX_EXAMINED:
            if s.size >= n and (found == NULL or s.size < found.size):
                found = s
                if s.size == n: return s
            s = s.next
            examined += 1
        if found != NULL: return found
        k += 1


cdef Span* fit(size_t n) noexcept:
    """A span of `n` bytes, a multiple of GRAIN, of committed free memory, or NULL if there is none."""
    cdef Span* s = best_fit(&full_bins, n)
    if s == NULL: return NULL
    remove(s)
    if not split(s, n):
        insert(s)
        return NULL
    return s


cdef Span* cheapest(size_t n) noexcept:
    """The free span of at least `n` bytes that needs the fewest bytes committed, or NULL."""
    cdef int k = bin_of(n), examined
    cdef Span* s
    cdef Span* found = NULL
    cdef size_t need, fewest = 0
    while True:
        k = next_bin(&partial_bins, k)
        if k < 0: return found
        s, examined = partial_bins.first[k], 0
        while s != NULL and examined < MAX_EXAMINED:
            if s.size >= n:
                need = uncommitted(s, n)
                if found == NULL or need < fewest: found, fewest = s, need
            s = s.next
            examined += 1
        k += 1


cdef Span* grow(size_t n, size_t max_bytes) noexcept:
    """A span of `n` bytes when no free span fits: commit pages, and decommit others if more than `max_bytes` bytes
    would be committed otherwise. NULL if that is not possible or if the system has no memory."""
    cdef Span* s = cheapest(n)
    cdef size_t need
    if s == NULL:
        s = reserve(n) if n <= max_bytes else NULL
        if s == NULL: return NULL
    need = uncommitted(s, n)
    remove(s)
    if need <= max_bytes and committed > max_bytes - need: purge(max(committed - (max_bytes - need), committed // 64))
    if need > max_bytes or committed > max_bytes - need or not commit(s, n, max_bytes) or not split(s, n):
        insert(s)
        return NULL
    return s


cdef void give(Span* s) noexcept:
    """Free a span and join it with its free neighbours."""
    cdef Span* b = s.before
    cdef Span* a = s.after
    if b != NULL and b.free:
        remove(b)
        b.size += s.size
        b.after = a
        if a != NULL: a.before = b
        b.bare += s.bare
        recycle_span(s)
        s = b
    if a != NULL and a.free:
        remove(a)
        s.size += a.size
        s.bare += a.bare
        s.after = a.after
        if s.after != NULL: s.after.before = s
        recycle_span(a)
    insert(s)


cdef size_t purge(size_t n) noexcept:
    """Decommit at least `n` bytes of free pages, the largest spans first, or all of them if there are fewer. Returns
    the number of bytes."""
    cdef size_t freed = 0
    cdef int which, k
    cdef Span* s
    cdef Span* following
    cdef Bins* bins
    for k in range(BINS - 1, bin_of(PAGE) - 1, -1):
        for which in range(2):
            bins = &full_bins if which == 0 else &partial_bins
            if not bins.occupied[k >> 6] >> (k & 63) & 1: continue
            s = bins.first[k]
            while s != NULL and freed < n:
                following = s.next
                if s.size - s.bare >= PAGE:
                    remove(s)
                    freed += decommit(s, n - freed)
                    insert(s)                       # (the loop may see it again, without committed pages)
                s = following
            if freed >= n: return freed
    return freed


cdef void release_all() noexcept:
    """Return every free page to the system, and the addresses of segments without a span in use."""
    cdef Span* s
    purge(<size_t>-1)
    for which in range(2):
        for k in range(bin_of(HUGE), BINS):
            s = (&full_bins if which == 0 else &partial_bins).first[k]
            while s != NULL:
                if s.size == s.segment.size:
                    remove(s)
                    unreserve(s)
                    s = (&full_bins if which == 0 else &partial_bins).first[k]
                else: s = s.next


cdef size_t largest(size_t capacity) noexcept:
    """The size of the largest span that committing at most `capacity` bytes can make, from free spans or new
    addresses."""
    cdef size_t found = capacity // PAGE * PAGE, page, end, left
    cdef char* stop
    cdef Span* s
    for which in range(2):
        for k in range(BINS):
            s = (&full_bins if which == 0 else &partial_bins).first[k]
            while s != NULL:
                page, end, left = first_page(s), page_after(s, s.size), capacity // PAGE
                while page < end and (left or has_page(s.segment, page)):
                    left -= not has_page(s.segment, page)
                    page += 1
                stop = s.segment.base + page * PAGE
                found = max(found, min(s.size, <size_t>(stop - s.data)))
                s = s.next
    return found // GRAIN * GRAIN


def in_pages(size_t n):
    """The most bytes that must be committed for a span of `n` bytes if `n` may be committed: whole pages. (A span that
    begins within a page begins behind one in use, so that page is committed.)"""
    return (n + PAGE - 1) // PAGE * PAGE


cdef bint owns(const char* p) noexcept:
    """Whether `p` points into one of the segments. (There are few: each is as large as all earlier ones together.)"""
    cdef const Segment* g = segments
    while g != NULL:
        if g.base <= p < g.base + g.size: return True
        g = g.following
    return False
