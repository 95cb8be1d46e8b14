"""Convolutions of one to three dimensions as matrix products of tiles, without a matrix of patches.

The images of a tile are packed with the zeros around them into the workspace of a thread, once. Element (c, k) of all
patches is then packed channel c from the place of k on: a row of the matrix of patches is the same memory from another
place on. A table has the places (Step in microproduct.pxd). The product also computes positions between the rows of
an image, one fewer for each row than the kernel is wide; nothing reads them. If the stride is s, columns 0, s, 2 s ...
are packed side by side, then columns 1, s + 1 ...; rows likewise.

Y is weights times patches of X. X is weights times patches of Y, with the kernel reversed. If the stride is s, X is
divided into squares of s x s elements, and element (i, j) of all squares is one product with the elements of the kernel
that meet it. V is patches of X times Y, summed over parts of the images whose number does not depend on the number of
threads.

If one channel is packed for at most two results (depthwise convolutions), a product of so few rows waits for its sums,
and copying takes longer. Then rows are computed where they belong (include/cygrad/depthwise.h), and an item is a tile
of one image and several groups."""

from libc.string cimport memset

from cygrad.kernels.array cimport itemsize, real, view1
from cygrad.kernels.by_dtype cimport call, element
from cygrad.kernels.linalg.microproduct cimport (
    Lines, Product, Step, multiply, multiply_lines, multiply_packed, whole_vectors,
)
from cygrad.kernels.images.planes cimport (
    Planes, Tile, V, Window, X, Y, copy, floor_of, pack_planes, place_of, places, row_of, tile_at, up,
)
from cygrad.kernels.threads cimport threads_for
from cygrad.kernels.images.tiles cimport each_item

cdef extern from "cygrad/depthwise.h" nogil:
    bint CG_PLANES          # whether there are the functions for one channel
    void cg_plane_f(Py_ssize_t rows, Py_ssize_t columns, Py_ssize_t tall, Py_ssize_t wide, const float* w,
                    const Step* steps, const float* x, Py_ssize_t pitch, float* y, Py_ssize_t ldy)
    void cg_plane_d(Py_ssize_t rows, Py_ssize_t columns, Py_ssize_t tall, Py_ssize_t wide, const double* w,
                    const Step* steps, const double* x, Py_ssize_t pitch, double* y, Py_ssize_t ldy)

ctypedef void (*two_t)(char[::1], char[::1]) noexcept nogil

cdef struct Sums:           # sums of one item if V is computed: m channels of X, n of Y
    const Conv* v
    const Tile* t
    Py_ssize_t m
    Py_ssize_t n
    Py_ssize_t ld           # n, rounded up as in width_of()
    char* x                 # packed,
    char* y                 # packed
    char* steps
    char* total

cdef enum:
    POSITIONS = 512         # most positions of a tile
    PLANE = 4096            # ... of which one channel is packed
    PLANES = 64             # items of a convolution of single channels, if it has more of them
    NARROW = 16             # bytes of the narrowest row that is written as it is computed
    FEW = 96                # images are put together into a tile up to so many
    PACKED = 256 << 10      # bytes of packed images, if one channel fits
    CHANNELS = 128          # results of one item, at most
    ITEMS = 8               # at least so many items, if there is enough work
    SUMS = 256 << 10        # bytes of the sums of V in one item
    PARTIAL = 1 << 20       # bytes of all partial sums of V


# ---- the plan --------------------------------------------------------------------------------------------------------

cdef int make_plan(Conv* v) noexcept nogil:
    """Divide the work into tiles and items. Reads the sizes, but no data. Always returns 0."""
    cdef Py_ssize_t size = itemsize(v.dtype), most = PLANE if v.c * v.o <= 2 else POSITIONS, elements, n
    cdef bint one = v.c * v.o <= 2 and v.role != V and (v.c if v.role == Y else v.o) == 1
    cdef int d
    v.taps = v.kernel[0] * v.kernel[1] * v.kernel[2]
    v.positions = v.out[0] * v.out[1] * v.out[2]
    v.rows = v.c * v.taps
    v.terms, v.results = (v.o, v.c) if v.role == X else (v.c, v.o)
    v.grid[0] = v.n
    for d in range(3):
        v.source[d], v.target[d], v.square[d] = v.size[d], v.out[d], 1
        n = v.dilation[d] * (v.kernel[d] - 1)
        if v.role == X:
            v.source[d], v.target[d], v.square[d] = v.out[d], v.size[d], v.stride[d]
            v.grid[1 + d], v.step[d], v.split[d] = up(v.size[d], v.stride[d]), 1, 1
            v.first[d] = -floor_of(n - v.low[d], v.stride[d])
            v.span[d] = floor_of(v.stride[d] - 1 + v.low[d], v.stride[d]) - v.first[d]
        else:
            v.grid[1 + d], v.step[d], v.first[d], v.span[d] = v.out[d], v.stride[d], -v.low[d], n // v.stride[d]
            v.split[d] = 1 if v.kernel[d] == 1 else v.stride[d]
    while True:
        elements = divide(v, most, 1 if one else FEW)
        if most <= 32 or elements * size <= PACKED: break
        most //= 2
    v.channels = up(v.results, up(v.results, CHANNELS))
    v.direct = CG_PLANES and one and v.square[0] * v.square[1] * v.square[2] == 1
    v.direct = v.direct and (v.x.at[2] if v.role == X else v.y.at[2]) == 1
    v.direct = v.direct and (v.grid[3] - (v.cuts[3] - 1) * v.part[3]) * size >= NARROW
    v.dots = v.role == V and 2 * v.channels <= whole_vectors(1, size)
    n = PACKED // (elements * size)
    if v.role == V: n = min(n, SUMS // (v.taps * width_of(v) * size))
    n = max(<Py_ssize_t>1, min(min(n, v.terms), 0x7fffffff // (v.rows if v.role == X else v.taps)))
    v.block = up(v.terms, up(v.terms, n))
    v.parts, v.shared_bytes, v.together = 1, 0, 1
    if v.role == V: plan_sums(v)
    elif v.direct:
        v.together = max(<Py_ssize_t>1, v.tiles * v.groups // PLANES)
        v.items = v.tiles * up(v.groups, v.together)
    else:
        while up(v.results, v.channels) * v.tiles * v.groups < ITEMS and v.channels > 16:
            v.channels = up(v.channels, 16) * 8
        v.items = up(v.results, v.channels) * v.tiles * v.groups
    v.packed_bytes = up((v.block * elements + whole_vectors(1, size)) * size, 64) * 64
    n = v.part[0] * v.part[1] * v.part[2]
    if v.role != V:
        v.steps_bytes = v.block * v.taps * sizeof(Step)
        n = v.part[0] - 1                           # columns of the largest tile
        for d in range(3): n = n * (v.part[1 + d] + v.span[d]) + v.part[1 + d] - 1
        n = v.channels * whole_vectors(n + 1, size)
    elif v.dots:
        v.steps_bytes = (n + v.block * v.taps) * sizeof(int)
        n = v.channels * (n * whole_vectors(v.part[3], size) + v.block * v.taps)
    else:
        v.steps_bytes = n * v.part[3] * sizeof(Step)
        n = (n * v.part[3] + v.block * v.taps) * width_of(v)
    v.steps_bytes = up(v.steps_bytes, 64) * 64
    v.own_bytes = v.packed_bytes + v.steps_bytes + up(n * size, 64) * 64
    v.workspace_bytes = v.shared_bytes + v.own_bytes * threads_of(v)
    return 0


cdef inline Py_ssize_t width_of(const Conv* v) noexcept nogil:
    """Channels of Y that V is computed for at a time, rounded up to whole vectors if they are columns of a product."""
    return v.channels if v.dots else whole_vectors(v.channels, itemsize(v.dtype))


cdef Py_ssize_t divide(Conv* v, Py_ssize_t most, Py_ssize_t images) noexcept nogil:
    """Divide the images into tiles of about `most` positions, and of at most so many images. Returns the packed
    elements of a channel."""
    cdef Py_ssize_t elements = v.split[0] * v.split[1] * v.split[2], n = 1
    cdef bint whole = True                          # the dimensions inside of this one are not divided
    cdef int d
    v.tiles = 1
    for d in range(3, -1, -1):
        v.part[d] = 1
        if whole and v.grid[d] > 1:
            v.part[d] = min(v.grid[d], max(<Py_ssize_t>1, (most if d else min(most, images)) // n))
            v.part[d] = up(v.grid[d], up(v.grid[d], v.part[d]))
        whole = whole and v.part[d] == v.grid[d]
        v.cuts[d] = up(v.grid[d], v.part[d])
        v.tiles *= v.cuts[d]
        n *= v.part[d]
        elements *= v.part[d] + (v.span[d - 1] if d else 0)
    return elements


cdef void plan_sums(Conv* v) noexcept nogil:
    """The items if V is computed: some channels of Y, a block of those of X and a part of the tiles."""
    cdef Py_ssize_t size = itemsize(v.dtype), whole = v.groups * v.o * v.rows * size
    cdef Py_ssize_t blocks = up(v.terms, v.block) * up(v.results, v.channels) * v.groups
    if blocks < ITEMS and 2 * whole <= PARTIAL:
        v.parts = max(<Py_ssize_t>1, min(min(<Py_ssize_t>ITEMS, PARTIAL // whole), v.tiles))
        if v.parts > 1: v.shared_bytes = up(v.parts * whole, 64) * 64
    else:
        while up(v.terms, v.block) * up(v.results, v.channels) * v.groups < ITEMS and v.block > 1:
            v.block = up(v.block, 2)
    v.items = v.parts * up(v.terms, v.block) * up(v.results, v.channels) * v.groups


cdef int threads_of(const Conv* v) noexcept nogil:
    """The number of threads. A product of 32 terms takes as long as one exponential."""
    cdef int t = threads_for(v.n * v.positions * v.groups * v.o * v.rows // 32)
    return <int>max(<Py_ssize_t>1, min(<Py_ssize_t>t, v.items))


cdef int convolve(Conv* v, char* workspace, size_t nbytes) except -1 nogil:
    """Compute V, X or Y by the plan, in `nbytes` of workspace, which a replay may have sized for fewer threads."""
    cdef int t = <int>min(<size_t>threads_of(v), (nbytes - v.shared_bytes) // v.own_bytes)
    cdef Py_ssize_t whole = v.groups * v.o * v.rows
    v.shared = workspace
    if v.role == V and v.tiles == 0:
        if not v.adds: memset(v.v, 0, whole * itemsize(v.dtype))
        return 0
    each_item(sums if v.role == V else single if v.direct else results, v, v.items, t, workspace + v.shared_bytes,
              v.own_bytes)
    if v.parts == 1: return 0
    call(v.dtype, add_parts[float], add_parts[double], <void*>workspace, v.parts, whole, v.factor, v.adds, <void*>v.v)


cdef void add_parts(const real* parts, Py_ssize_t n, Py_ssize_t size, double factor, bint adds, real* v) noexcept nogil:
    """v = factor times the sum of n parts of `size` elements, + v if adds"""
    cdef real alpha = <real>factor
    cdef Py_ssize_t i, k
    if not adds: memset(v, 0, size * sizeof(real))
    for k in range(n):
        for i in range(size): v[i] += alpha * parts[k * size + i]


# ---- X and Y ---------------------------------------------------------------------------------------------------------

cdef void results(void* job, Py_ssize_t i, char* workspace) noexcept nogil:
    """Some channels of X or Y of one tile and group."""
    cdef const Conv* v = <const Conv*>job
    cdef Py_ssize_t blocks = up(v.results, v.channels), c0 = i % blocks * v.channels, group = i // blocks % v.groups
    cdef Py_ssize_t size = itemsize(v.dtype), j, k, terms
    cdef Py_ssize_t r[3]
    cdef Py_ssize_t elements[3]
    cdef Tile t = tile_at(v, i // blocks // v.groups)
    cdef Window w = Window(v, &t, &v.x, group * v.terms)
    cdef Step* steps = <Step*>(workspace + v.packed_bytes)
    cdef Product p
    if v.role == X: w.planes = &v.y
    p.dtype, p.m, p.n = v.dtype, min(v.channels, v.results - c0), t.columns
    p.units, p.block, p.pack, p.context, p.b, p.steps = v.terms, v.block, pack_planes, &w, workspace, steps
    if v.role == X: p.ai, p.a_unit = v.taps, v.rows
    else: p.ai, p.a_unit = v.rows, v.taps
    p.a = v.v + (group * v.o * v.rows + c0 * p.ai) * size
    p.c, p.ldc = workspace + v.packed_bytes + v.steps_bytes, whole_vectors(t.columns, size)
    for j in range(3): elements[j] = min(v.square[j], v.target[j])
    for r[0] in range(elements[0]):
        for r[1] in range(elements[1]):
            for r[2] in range(elements[2]):
                p.terms = terms = places(v, &t, r, steps)
                for j in range(1, v.block):
                    for k in range(terms):
                        steps[j * terms + k].a = <int>(steps[k].a + j * p.a_unit)
                        steps[j * terms + k].b = <int>(steps[k].b + j * t.channel)
                multiply_packed(&p)
                if v.block == v.terms: p.pack = NULL            # the next product finds all of them packed
                finish(v, group * v.results + c0, p.m, t.columns, p.ldc, p.c)
                call(v.dtype, store[float], store[double], v, &t, r, group * v.results + c0, p.m, <void*>p.c, p.ldc)


cdef void single(void* job, Py_ssize_t i, char* workspace) noexcept nogil:
    """X or Y of one tile and some groups, of which one channel is packed."""
    cdef const Conv* v = <const Conv*>job
    cdef Py_ssize_t items = up(v.groups, v.together), first = i % items * v.together, group, channel, terms
    cdef Py_ssize_t r[3]
    cdef Tile t = tile_at(v, i // items)
    cdef Window w = Window(v, &t, &v.x, 0)
    cdef Step* steps = <Step*>(workspace + v.packed_bytes)
    if v.role == X: w.planes = &v.y
    r[0] = r[1] = r[2] = 0
    terms = places(v, &t, r, steps)
    for group in range(first, min(first + v.together, v.groups)):
        pack_planes(&w, group, group + 1, workspace)
        for channel in range(group * v.results, (group + 1) * v.results):
            plane(v, &t, channel, terms, v.v + channel * v.taps * itemsize(v.dtype), steps, workspace,
                  workspace + v.packed_bytes + v.steps_bytes)


cdef void plane(const Conv* v, const Tile* t, Py_ssize_t channel, Py_ssize_t terms, const char* w, const Step* steps,
                const char* packed, char* added) noexcept nogil:
    """One channel of X or Y, written where it belongs, or to `added` if it is added to what is there."""
    cdef const Planes* planes = &v.x if v.role == X else &v.y
    cdef Py_ssize_t size = itemsize(v.dtype), image, z, y, rows = t.size[2], columns = t.size[3], ld
    cdef char* place
    cdef char* to
    for image in range(t.size[0]):
        for z in range(t.size[1]):
            place = planes.data + ((t.at[0] + image) * planes.image + channel * planes.channel
                                   + (t.at[1] + z) * planes.at[0] + t.at[2] * planes.at[1] + t.at[3]) * size
            to, ld = (added, columns) if v.adds else (place, planes.at[1])
            call(v.dtype, cg_plane_f, cg_plane_d, rows, columns, terms // v.kernel[2], v.kernel[2], <void*>w, steps,
                 <void*>(packed + (image * t.packed[1] + z) * t.packed[2] * t.packed[3] * size), t.packed[3], <void*>to,
                 ld)
            if v.bias != NULL or v.activation != NULL:
                for y in range(rows): finish(v, channel, 1, columns, 0, to + y * ld * size)
            if not v.adds: continue
            for y in range(rows):
                call(v.dtype, add_row[float], add_row[double], <void*>(added + y * columns * size), columns,
                     <void*>(place + y * planes.at[1] * size))


cdef void add_row(const real* x, Py_ssize_t n, real* y) noexcept nogil:
    for i in range(n): y[i] += x[i]


cdef void add_bias(const real* b, Py_ssize_t n, real* y) noexcept nogil:
    for i in range(n): y[i] += b[0]


cdef void finish(const Conv* v, Py_ssize_t channel, Py_ssize_t m, Py_ssize_t n, Py_ssize_t ld, char* y) noexcept nogil:
    """Add the bias to the rows of m channels and apply the activation."""
    cdef Py_ssize_t k, size = itemsize(v.dtype)
    if v.bias == NULL and v.activation == NULL: return
    for k in range(channel, channel + m):
        if v.bias != NULL:
            call(v.dtype, add_bias[float], add_bias[double], element(v.dtype, v.bias, k * v.bias_step), n, <void*>y)
        if v.activation != NULL: (<two_t>v.activation)(view1(y, n), view1(y, n))
        y += ld * size


cdef void store(const Conv* v, const Tile* t, const Py_ssize_t* r, Py_ssize_t channel, Py_ssize_t m, const real* rows,
                Py_ssize_t ld) noexcept nogil:
    """Store or add what belongs to the planes of X or Y: element r of each square, from the rows of a product."""
    cdef const Planes* planes = &v.y
    cdef const Py_ssize_t* size = &v.target[0]
    cdef const Py_ssize_t* s = &v.square[0]
    cdef Py_ssize_t step, x0, length, k, image, z, y, zi, yi, i
    cdef const real* row
    cdef real* to
    if v.role == X: planes = &v.x
    step, x0 = s[2] * planes.at[2], t.at[3] * s[2] + r[2]
    length = min(t.size[3], up(size[2] - x0, s[2]))
    for k in range(m):
        for image in range(t.size[0]):
            for z in range(t.size[1]):
                zi = (t.at[1] + z) * s[0] + r[0]
                if zi >= size[0]: break
                for y in range(t.size[2]):
                    yi = (t.at[2] + y) * s[1] + r[1]
                    if yi >= size[1]: break
                    row = rows + k * ld + ((image * t.packed[1] + z) * t.packed[2] + y) * t.packed[3]
                    to = <real*>planes.data + (t.at[0] + image) * planes.image + (channel + k) * planes.channel
                    to += zi * planes.at[0] + yi * planes.at[1] + x0 * planes.at[2]
                    if v.adds:
                        for i in range(length): to[i * step] += row[i]
                    elif step == 1: copy(row, 1, to, length)
                    else:
                        for i in range(length): to[i * step] = row[i]


# ---- V ---------------------------------------------------------------------------------------------------------------

cdef void sums(void* job, Py_ssize_t i, char* workspace) noexcept nogil:
    """V of one group, some channels of Y and a block of channels of X, summed over a part of the tiles."""
    cdef const Conv* v = <const Conv*>job
    cdef Py_ssize_t ys = up(v.results, v.channels), xs = up(v.terms, v.block), size = itemsize(v.dtype)
    cdef Py_ssize_t o0 = i % ys * v.channels, c0 = i // ys % xs * v.block, group = i // (ys * xs) % v.groups
    cdef Py_ssize_t part = i // (ys * xs * v.groups), j, first = v.tiles * part // v.parts
    cdef Sums s
    cdef char* target = v.v if v.parts == 1 else v.shared + part * v.groups * v.o * v.rows * size
    cdef Tile t
    cdef Window w = Window(v, &t, &v.x, group * v.c)
    s.v, s.t, s.m, s.n = v, &t, min(v.block, v.terms - c0), min(v.channels, v.results - o0)
    s.ld, s.x, s.steps = width_of(v), workspace, workspace + v.packed_bytes
    s.total = s.steps + v.steps_bytes
    s.y = s.total + v.block * v.taps * s.ld * size
    for j in range(first, v.tiles * (part + 1) // v.parts):
        t = tile_at(v, j)
        pack_planes(&w, c0, c0 + s.m, workspace)
        call(v.dtype, pack_y[float], pack_y[double], &s, group * v.o + o0, <void*>s.y)
        if v.dots: add_dots(&s, j > first)
        else: add_tile(&s, j > first)
    target += ((group * v.o + o0) * v.rows + c0 * v.taps) * size
    call(v.dtype, write[float], write[double], &s, <void*>s.total, <void*>target)


cdef void pack_y(const Sums* s, Py_ssize_t channel, real* p) noexcept nogil:
    """Pack Y of a tile, from plane `channel` on: as p[position, o] with 0 for n <= o < ld; or for dots as p[o, row, x],
    with zeros up to whole vectors."""
    cdef const Conv* v = s.v
    cdef const Tile* t = s.t
    cdef Py_ssize_t at = v.y.at[2], next = v.y.channel, image, z, y, x, o
    cdef Py_ssize_t pitch = whole_vectors(t.size[3], sizeof(real)), whole = t.size[0] * t.size[1] * t.size[2] * pitch
    cdef const real* row
    for image in range(t.size[0]):
        for z in range(t.size[1]):
            for y in range(t.size[2]):
                row = <const real*>v.y.data + (t.at[0] + image) * v.y.image + channel * next
                row += (t.at[1] + z) * v.y.at[0] + (t.at[2] + y) * v.y.at[1] + t.at[3] * at
                if not v.dots:
                    transpose(row, next, at, s.n, t.size[3], p, s.ld)
                    p += t.size[3] * s.ld
                    continue
                for o in range(s.n):
                    for x in range(t.size[3]): p[o * whole + x] = row[o * next + x * at]
                    for x in range(t.size[3], pitch): p[o * whole + x] = 0
                p += pitch


cdef void transpose(const real* x, Py_ssize_t row, Py_ssize_t column, Py_ssize_t m, Py_ssize_t n, real* p,
                    Py_ssize_t ld) noexcept nogil:
    """p[j, i] = x[i, j] for i < m and j < n, and 0 for m <= i < ld. Eight rows at a time, because more do not
    fit into the L1 cache if their distance is a large power of two."""
    cdef Py_ssize_t i = 0, j, k
    while i + 8 <= m:
        for j in range(n):
            for k in range(8): p[j * ld + i + k] = x[(i + k) * row + j * column]
        i += 8
    for k in range(i, m):
        for j in range(n): p[j * ld + k] = x[k * row + j * column]
    if m == ld: return
    for j in range(n): memset(p + j * ld + m, 0, (ld - m) * sizeof(real))


cdef void add_tile(const Sums* s, bint adds) noexcept nogil:
    """total[k, c, o] = the sum of packed X at element k of the kernel times Y over the positions of a tile. Rows of a
    product are channels, or elements along the last dimension of the kernel if there are more of them."""
    cdef const Conv* v = s.v
    cdef const Tile* t = s.t
    cdef Step* steps = <Step*>s.steps
    cdef Py_ssize_t size = itemsize(v.dtype), i, x, k = 0, c, at, count = 0, ld = s.ld
    for i in range(t.size[0] * t.size[1] * t.size[2]):
        at = row_of(t, i)
        for x in range(t.size[3]):
            steps[count].a, steps[count].b = <int>(at + x), <int>(count * ld)
            count += 1
    while k < v.taps:
        at = place_of(v, t, k)
        if s.m >= v.kernel[2] or v.stride[2] > 1:
            multiply(v.dtype, s.m, s.n, count, s.x + at * size, t.channel, steps, s.y, s.total + k * s.m * ld * size,
                     ld, 1, adds)
            k += 1
            continue
        for c in range(s.m):
            multiply(v.dtype, v.kernel[2], s.n, count, s.x + (c * t.channel + at) * size, v.dilation[2], steps, s.y,
                     s.total + (k * s.m + c) * ld * size, s.m * ld, 1, adds)
        k += v.kernel[2]


cdef void add_dots(const Sums* s, bint adds) noexcept nogil:
    """total[o, c, k] = the same sums."""
    cdef const Conv* v = s.v
    cdef const Tile* t = s.t
    cdef Py_ssize_t i, c, k, rows = t.size[0] * t.size[1] * t.size[2]
    cdef int* starts = <int*>s.steps
    cdef int* at = starts + rows
    cdef Lines lines = Lines(rows, t.size[3], whole_vectors(t.size[3], itemsize(v.dtype)), starts)
    for i in range(rows): starts[i] = <int>row_of(t, i)
    for k in range(v.taps):
        for c in range(s.m): at[c * v.taps + k] = <int>(c * t.channel + place_of(v, t, k))
    multiply_lines(v.dtype, s.n, s.m * v.taps, &lines, s.y, rows * lines.pitch, s.x, at, s.total, s.m * v.taps,
                   <char*>s.total if adds else NULL, s.m * v.taps)


cdef void write(const Sums* s, const real* total, real* to) noexcept nogil:
    """to[o, c, k] = factor total[k, c, o], of dots total[o, c, k]; + `to` if v.adds. Partial sums are neither
    multiplied nor added to."""
    cdef const Conv* v = s.v
    cdef real factor = <real>v.factor if v.parts == 1 else 1
    cdef Py_ssize_t o, c, k, place
    cdef real* at
    cdef bint adds = v.adds and v.parts == 1
    for o in range(s.n):
        for c in range(s.m):
            for k in range(v.taps):
                place = (o * s.m + c) * v.taps + k if v.dots else (k * s.m + c) * s.ld + o
                at = to + o * v.rows + c * v.taps + k
                at[0] = factor * total[place] + (at[0] if adds else 0)
