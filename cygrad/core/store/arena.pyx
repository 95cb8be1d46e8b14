"""The arena: memory from the system, split and joined.

A segment is a range of addresses that the system has reserved for us; its pages cost nothing until they are committed.
Spans divide it. fit() takes the free span of committed memory that fits best, give() joins a free span with its free
neighbours, so what was freed serves any size. Where nothing fits, grow() commits pages: in the free span that needs the
fewest, or in a new segment. purge() decommits free pages: addresses are plentiful, so where free memory lies in the
wrong places it is cheaper to take pages from there and commit others here than to hold both.

Which spans are free is known by bins: eight to a power of two, and of each bin two lists, of spans that are committed
throughout and of those that are not. A search looks at a few spans of a bin, so it takes the same time however many
there are. Everything runs under the GIL."""

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
    LOOKED_AT = 32          # spans of a bin, at the most
    RESERVE = 64 << 20      # the smallest segment
    HUGE = 2 << 20          # a huge page; a large arena grows by no less

cdef size_t PAGE = cg_page()

cdef struct Bins:           # free spans by size
    Span* first[BINS]
    uint64_t some[WORDS]    # a bit for each bin that has spans

cdef Bins whole             # of spans that are committed throughout
cdef Bins partly            # of spans with bare pages
cdef Segment* segments = NULL
cdef size_t reserved = 0
cdef Span* unused = NULL    # records of spans, for the next

memset(&whole, 0, sizeof(whole))
memset(&partly, 0, sizeof(partly))
committed = 0
commits = 0


# ---- bins ------------------------------------------------------------------------------------------------------------

cdef inline int bin_of(size_t size) noexcept:
    """The bin of spans of `size` bytes: those of a higher bin are all larger."""
    cdef uint64_t grains = size // GRAIN
    cdef int top
    if grains < 16: return <int>grains
    top = cg_highest_bit(grains)                    # 4 and more
    return 8 * (top - 2) + <int>(grains >> (top - 3) & 7)


cdef inline Bins* bins_of(const Span* s) noexcept:
    return &partly if s.bare else &whole


cdef void put(Span* s) noexcept:
    """Let a free span be found."""
    cdef Bins* bins = bins_of(s)
    cdef int k = bin_of(s.size)
    s.free = True
    s.previous = NULL
    s.next = bins.first[k]
    if s.next != NULL: s.next.previous = s
    bins.first[k] = s
    bins.some[k >> 6] |= <uint64_t>1 << (k & 63)


cdef void take_out(Span* s) noexcept:
    """... and no longer."""
    cdef Bins* bins = bins_of(s)
    cdef int k = bin_of(s.size)
    s.free = False
    if s.next != NULL: s.next.previous = s.previous
    if s.previous != NULL: s.previous.next = s.next
    else:
        bins.first[k] = s.next
        if s.next == NULL: bins.some[k >> 6] &= ~(<uint64_t>1 << (k & 63))


cdef int some_bin(const Bins* bins, int k) noexcept:
    """The first bin from `k` on that has spans; -1: none."""
    cdef int w = k >> 6
    cdef uint64_t bits
    if k >= BINS: return -1
    bits = bins.some[w] & (~<uint64_t>0 << (k & 63))
    while True:
        if bits: return 64 * w + cg_lowest_bit64(bits)
        w += 1
        if w == WORDS: return -1
        bits = bins.some[w]


# ---- records of spans ------------------------------------------------------------------------------------------------

cdef Span* new_span(Segment* segment, char* data, size_t size) noexcept:
    """NULL: there was no memory for it."""
    global unused
    cdef Span* s = unused
    if s != NULL: unused = s.next
    else: s = <Span*>PyMem_RawMalloc(sizeof(Span))
    if s == NULL: return NULL
    s.segment, s.data, s.size, s.bare, s.free = segment, data, size, 0, False
    s.before = s.after = s.previous = s.next = NULL
    return s


cdef void forget_span(Span* s) noexcept:
    global unused
    s.next = unused
    unused = s


cdef bint cut(Span* s, size_t n) noexcept:
    """Let a span that is in no bin have `n` bytes; the rest is free. False: no memory for the rest's record, so that it
    has all of its bytes."""
    cdef Span* rest
    if s.size == n: return True
    rest = new_span(s.segment, s.data + n, s.size - n)
    if rest == NULL: return False
    rest.bare = s.bare
    rest.before, rest.after = s, s.after
    if rest.after != NULL: rest.after.before = rest
    s.after = rest
    s.size, s.bare = n, 0
    put(rest)
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
    """How many pages from `page` to `end` are committed."""
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
    """The page in which it begins."""
    return <size_t>(s.data - s.segment.base) // PAGE


cdef inline size_t page_after(const Span* s, size_t n) noexcept:
    """The page after its first `n` bytes."""
    return (<size_t>(s.data - s.segment.base) + n + PAGE - 1) // PAGE


cdef size_t lacking(const Span* s, size_t n) noexcept:
    """Bytes to be committed before the first `n` of a free span can be used."""
    cdef size_t page = first_page(s), end = page_after(s, n)
    return (end - page - pages_between(s.segment, page, end)) * PAGE if s.bare else 0


cdef size_t decommit(Span* s, size_t most) noexcept:
    """Decommit whole pages of a free span that is in no bin, the last ones first, `most` bytes or a little more.
    Returns how many."""
    global committed
    cdef Segment* g = s.segment
    cdef size_t at = s.data - g.base, begin = (at + PAGE - 1) // PAGE, end = (at + s.size) // PAGE
    cdef size_t page = end, freed = 0
    while page > begin and freed < most:
        page -= 1
        if page & 63 == 63 and page - 63 >= begin and g.has[page >> 6] == 0: page -= 63
        elif has_page(g, page): freed += PAGE
    if freed == 0 or not cg_decommit(g.base + page * PAGE, (end - page) * PAGE): return 0
    set_pages(g, page, end, False)
    s.bare += freed
    committed -= freed
    return freed


cdef bint commit(Span* s, size_t n, size_t most) noexcept:
    """Commit what the first `n` bytes of a free span need, and some of what follows while that leaves no more than
    `most` committed: a large arena grows by huge pages. False: the system refused. The span is in no bin."""
    global committed, commits
    cdef Segment* g = s.segment
    cdef size_t page = first_page(s), end = page_after(s, n), need = lacking(s, n)
    cdef size_t last = (<size_t>(s.data - g.base) + s.size) // PAGE
    cdef size_t step = min(<size_t>HUGE, committed // 16) // PAGE, further = end
    if need == 0: return True
    while has_page(g, page): page += 1
    while step and further % step and further < last and not has_page(g, further): further += 1
    if committed + need + (further - end) * PAGE > most: further = end
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
    """A new segment for at least `n` bytes, as one free span; NULL: the system has no addresses. Each is as large as
    all before it, which keeps them few; but where addresses are scarce (RLIMIT_AS) it is as large as it must be."""
    global segments, reserved
    cdef size_t least = (n + HUGE - 1) // HUGE * HUGE
    cdef size_t size = max(least, max(<size_t>RESERVE, reserved))
    cdef char* base = cg_reserve(size)
    cdef Segment* g
    cdef Span* s
    if base == NULL:
        size = least
        base = cg_reserve(size)
        if base == NULL: return NULL
    g = <Segment*>PyMem_RawMalloc(sizeof(Segment))
    s = new_span(g, base, size)
    if g != NULL: g.has = <uint64_t*>PyMem_RawCalloc((size // PAGE + 63) // 64, 8)
    if g == NULL or s == NULL or g.has == NULL:
        if g != NULL: PyMem_RawFree(g.has)
        PyMem_RawFree(g)
        if s != NULL: forget_span(s)
        cg_unreserve(base, size)
        return NULL
    g.base, g.size = base, size
    g.following = segments
    segments = g
    reserved += size
    s.bare = size
    put(s)
    return s


cdef void unreserve(Span* s) noexcept:
    """Give a segment back whose one span `s` is free."""
    global segments, reserved, committed
    cdef Segment* g = s.segment
    cdef Segment** link = &segments
    committed -= s.size - s.bare                    # these pages go with the addresses
    while link[0] != g: link = &link[0].following
    link[0] = g.following
    reserved -= g.size
    CG_UNPOISON(g.base, g.size)
    cg_unreserve(g.base, g.size)
    PyMem_RawFree(g.has)
    PyMem_RawFree(g)
    forget_span(s)


# ---- taking and giving -----------------------------------------------------------------------------------------------

cdef Span* best(const Bins* bins, size_t n) noexcept:
    """The smallest span that holds `n` bytes, as far as a short look tells; NULL: none does."""
    cdef int k = bin_of(n), looked
    cdef Span* s
    cdef Span* found = NULL
    while True:
        k = some_bin(bins, k)
        if k < 0: return NULL
        s, looked = bins.first[k], 0
        while s != NULL and looked < LOOKED_AT:
            if s.size >= n and (found == NULL or s.size < found.size):
                found = s
                if s.size == n: return s
            s = s.next
            looked += 1
        if found != NULL: return found
        k += 1


cdef Span* fit(size_t n) noexcept:
    """`n` bytes, a multiple of GRAIN, of memory that is committed and free; NULL: none is."""
    cdef Span* s = best(&whole, n)
    if s == NULL: return NULL
    take_out(s)
    if not cut(s, n):
        put(s)
        return NULL
    return s


cdef Span* cheapest(size_t n) noexcept:
    """The free span that holds `n` bytes and needs the fewest committed."""
    cdef int k = bin_of(n), looked
    cdef Span* s
    cdef Span* found = NULL
    cdef size_t need, least = 0
    while True:
        k = some_bin(&partly, k)
        if k < 0: return found
        s, looked = partly.first[k], 0
        while s != NULL and looked < LOOKED_AT:
            if s.size >= n:
                need = lacking(s, n)
                if found == NULL or need < least: found, least = s, need
            s = s.next
            looked += 1
        k += 1


cdef Span* grow(size_t n, size_t most) noexcept:
    """`n` bytes where nothing fits: commit pages, and decommit others where more than `most` bytes would be committed.
    NULL: that cannot be, or the system refuses."""
    cdef Span* s = cheapest(n)
    cdef size_t need
    if s == NULL:
        s = reserve(n)
        if s == NULL: return NULL
    need = lacking(s, n)
    take_out(s)
    if need <= most and committed > most - need: purge(max(committed - (most - need), committed // 64))
    if need > most or committed > most - need or not commit(s, n, most) or not cut(s, n):
        put(s)
        return NULL
    return s


cdef void give(Span* s) noexcept:
    """A span is free: join it with its neighbours where these are."""
    cdef Span* b = s.before
    cdef Span* a = s.after
    if b != NULL and b.free:
        take_out(b)
        b.size += s.size
        b.after = a
        if a != NULL: a.before = b
        b.bare += s.bare
        forget_span(s)
        s = b
    if a != NULL and a.free:
        take_out(a)
        s.size += a.size
        s.bare += a.bare
        s.after = a.after
        if s.after != NULL: s.after.before = s
        forget_span(a)
    put(s)


cdef size_t purge(size_t n) noexcept:
    """Decommit at least `n` bytes of free pages, of the largest spans first, or all there are; how many were."""
    cdef size_t freed = 0
    cdef int which, k
    cdef Span* s
    cdef Span* following
    cdef Bins* bins
    for k in range(BINS - 1, bin_of(PAGE) - 1, -1):
        for which in range(2):
            bins = &whole if which == 0 else &partly
            if not bins.some[k >> 6] >> (k & 63) & 1: continue
            s = bins.first[k]
            while s != NULL and freed < n:
                following = s.next
                if s.size - s.bare >= PAGE:
                    take_out(s)
                    freed += decommit(s, n - freed)
                    put(s)                          # (met again, it has no more pages, or enough are decommitted)
                s = following
            if freed >= n: return freed
    return freed


cdef void give_back() noexcept:
    """Give every free page to the system, and the addresses of segments that nobody uses."""
    cdef Span* s
    cdef int which, k
    purge(<size_t>-1)
    for which in range(2):
        for k in range(bin_of(HUGE), BINS):
            s = (&whole if which == 0 else &partly).first[k]
            while s != NULL:
                if s.size == s.segment.size:
                    take_out(s)
                    unreserve(s)
                    s = (&whole if which == 0 else &partly).first[k]
                else: s = s.next


cdef size_t largest(size_t capacity) noexcept:
    """The largest piece that can be had by committing no more than `room` bytes, of what is free or new addresses."""
    cdef size_t found = capacity // PAGE * PAGE, page, end, left
    cdef char* stop
    cdef int which, k
    cdef Span* s
    for which in range(2):
        for k in range(BINS):
            s = (&whole if which == 0 else &partly).first[k]
            while s != NULL:
                page, end, left = first_page(s), page_after(s, s.size), capacity // PAGE
                while page < end and (left or has_page(s.segment, page)):
                    left -= not has_page(s.segment, page)
                    page += 1
                stop = s.segment.base + page * PAGE
                found = max(found, min(s.size, <size_t>(stop - s.data)))
                s = s.next
    return found // GRAIN * GRAIN


cdef bint owns(const char* p) noexcept:
    """Whether `p` points into one of the segments. (There are few: each is as large as all before it.)"""
    cdef const Segment* g = segments
    while g != NULL:
        if g.base <= p < g.base + g.size: return True
        g = g.following
    return False
