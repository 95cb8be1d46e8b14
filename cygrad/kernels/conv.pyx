"""Convolutions of one to three dimensions as matrix products of tiles.

The patches of a tile are a matrix: a row for each channel and element of the kernel, a column for each position of the
output. They are packed into the workspace of a thread, at most half a MiB at a time, or lie in X already if the kernel
has one element. Y is weights times patches. X is the sum of transposed weights times Y, added back patch by patch. V is
Y times transposed patches, summed in parts whose number does not depend on the number of threads."""

from libc.string cimport memcpy, memset

from cygrad.kernels.array cimport FLOAT32, Array, itemsize, real, view1
from cygrad.kernels.blas cimport begin_products, end_products, product
from cygrad.kernels.depthwise cimport depthwise_item
from cygrad.kernels.driver cimport gather
from cygrad.kernels.threads cimport threads_for
from cygrad.kernels.tiles cimport each_item

ctypedef void (*two_t)(char[::1], char[::1]) noexcept nogil

cdef struct Tile:
    Py_ssize_t image
    Py_ssize_t p0           # the first position,
    Py_ssize_t m            # and their number

cdef enum:
    PACKED = 512 << 10      # bytes of patches, and of Y, that are packed at a time
    ROWS = 512              # rows of patches in one product
    COLUMNS = 256           # ... and columns
    ITEMS = 8               # at least so many items, if there is enough work
    PARTIAL = 1 << 20       # bytes of all partial sums of V


# ---- the plan --------------------------------------------------------------------------------------------------------

cdef void set_planes(Planes* p, const Array* a) noexcept nogil:
    """The planes of an array (n, channels, spatial dimensions): of missing spatial dimensions the first ones have size
    1."""
    cdef const Py_ssize_t* steps = a.layout.strides
    cdef const Py_ssize_t* shape = a.layout.shape
    cdef int d, nd = a.layout.ndim - 2
    cdef Py_ssize_t whole = 1
    p.data, p.image, p.channel, p.flat = a.data, steps[0], steps[1], True
    for d in range(3): p.at[d] = 0
    for d in range(nd - 1, -1, -1):
        p.at[3 - nd + d] = steps[2 + d]
        if shape[2 + d] != 1 and steps[2 + d] != whole: p.flat = False
        whole *= shape[2 + d]
    if p.channel < whole and shape[1] > 1 or p.channel > 0x7fffffff: p.flat = False     # BLAS could not read it
    if shape[1] == 1: p.channel = whole


cdef int make_plan(Conv* v) noexcept nogil:
    """Divide the work into tiles and items. Reads the sizes and the planes, but no data. Always returns 0."""
    cdef Py_ssize_t size = itemsize(v.dtype), most = PACKED // size, whole = 1, units
    cdef int d
    v.taps = v.kernel[0] * v.kernel[1] * v.kernel[2]
    v.positions = v.out[0] * v.out[1] * v.out[2]
    v.rows = v.c * v.taps
    v.depthwise = v.c == 1 and v.groups > 1
    v.own_bytes = v.shared_bytes = v.workspace_bytes = 0
    if v.depthwise:
        v.items = v.groups if v.role == V else v.n * v.groups
        return 0
    v.direct = v.taps == 1 and (v.role == X or v.x.flat)
    for d in range(3):
        if v.stride[d] != 1 or v.low[d] != 0 or v.size[d] != v.out[d]: v.direct = False
    v.block = min(v.rows, <Py_ssize_t>ROWS)
    v.columns = min(<Py_ssize_t>COLUMNS, most // v.block)
    v.images, v.cuts, v.packs_y = 1, 1, v.role != Y and not v.y.flat
    if v.n > 1 and 2 * v.positions <= v.columns:
        v.images = max(<Py_ssize_t>1, min(v.n, min(v.columns, most // v.o) // v.positions))
    if v.images > 1:
        v.columns, v.packs_y, v.direct = v.images * v.positions, True, False
    else:
        if v.packs_y: v.columns = max(<Py_ssize_t>1, min(v.columns, most // v.o))
        if v.columns >= v.positions: v.columns = v.positions
        elif v.out[2] <= v.columns: v.columns = v.columns // v.out[2] * v.out[2]    # whole rows
        v.cuts = (v.positions + v.columns - 1) // v.columns
    units = (v.n + v.images - 1) // v.images
    v.tiles, v.channels, v.parts = units * v.cuts, v.c, 1
    if v.role == Y: v.items = v.tiles * v.groups
    elif v.role == X:
        if units * v.groups < ITEMS and units > 0:
            v.channels = max(<Py_ssize_t>1, v.c * units * v.groups // ITEMS)
        v.items = units * v.groups * ((v.c + v.channels - 1) // v.channels)
    else:
        whole = v.groups * v.o * v.rows * size
        if 2 * whole <= PARTIAL:
            v.parts = max(<Py_ssize_t>1, min(min(<Py_ssize_t>ITEMS, PARTIAL // whole), v.tiles))
            v.items = v.parts * v.groups
            if v.parts > 1: v.shared_bytes = (v.parts * whole + 63) // 64 * 64
        else:
            v.block = max(<Py_ssize_t>1, min(v.block, v.rows * v.groups // ITEMS))
            v.items = v.groups * ((v.rows + v.block - 1) // v.block)
    whole = (0 if v.direct else v.block * v.columns) + (v.o * v.columns if v.packs_y else 0)
    v.own_bytes = (whole * size + 63) // 64 * 64
    v.workspace_bytes = v.shared_bytes + v.own_bytes * threads_of(v)
    return 0


cdef int threads_of(const Conv* v) noexcept nogil:
    """The number of threads. A product of 32 terms takes as long as one exponential."""
    cdef int t = threads_for(v.n * v.positions * v.groups * v.o * v.rows // (8 if v.depthwise else 32))
    return <int>max(<Py_ssize_t>1, min(<Py_ssize_t>t, v.items))


cdef int convolve(Conv* v, char* workspace, size_t nbytes) except -1 nogil:
    """Compute V, X or Y by the plan, in `nbytes` of workspace, which a replay may have sized for fewer threads."""
    cdef int t = threads_of(v)
    cdef Py_ssize_t size = itemsize(v.dtype), whole
    if v.own_bytes: t = <int>min(<size_t>t, (nbytes - v.shared_bytes) // v.own_bytes)
    if v.depthwise:
        each_item(depthwise, v, v.items, t, NULL, 0)
        return 0
    begin_products()
    v.shared = workspace
    each_item(tile_of_y if v.role == Y else part_of_x if v.role == X else part_of_v, v, v.items, t,
              workspace + v.shared_bytes, v.own_bytes)
    end_products()
    whole = v.groups * v.o * v.rows
    if v.role == V and v.tiles == 0 and not v.adds: memset(v.v, 0, whole * size)
    elif v.role == V and v.parts > 1:
        if v.dtype == FLOAT32: add_parts[float](<float*>workspace, v.parts, whole, v.adds, <float*>v.v)
        else:                  add_parts[double](<double*>workspace, v.parts, whole, v.adds, <double*>v.v)
    return 0


cdef void add_parts(const real* parts, Py_ssize_t n, Py_ssize_t size, bint adds, real* v) noexcept nogil:
    """v = the sum of n parts of `size` elements, + v if adds"""
    cdef Py_ssize_t i, k
    if not adds: memset(v, 0, size * sizeof(real))
    for k in range(n):
        for i in range(size): v[i] += parts[k * size + i]


# ---- patches ---------------------------------------------------------------------------------------------------------

cdef void patches(const Conv* v, const Planes* x, Py_ssize_t channel, Py_ssize_t r0, Py_ssize_t r1, Py_ssize_t image,
                  Py_ssize_t p0, Py_ssize_t m, real* p, bint back) noexcept nogil:
    """p[r - r0, i] = x at tap r % taps of position p0 + i, in plane channel + r // taps; with `back`, x += p. Positions
    are counted from the start of `image` on. Outside of its planes x is 0."""
    cdef Py_ssize_t s = v.stride[2], step = v.stride[2] * x.at[2], w = v.out[2], i = p0 // w, k, r, lo, hi, ox, oy, oz
    cdef Py_ssize_t x0 = p0 % w, y0 = i % v.out[1], z0 = i // v.out[1] % v.out[0]
    cdef Py_ssize_t n0 = image + i // (v.out[1] * v.out[0]), j, y, z, n, yi, zi, column, length, first, last
    cdef const real* plane
    cdef real* row
    for r in range(r0, r1):
        k = r % v.taps
        ox = k % v.kernel[2] * v.dilation[2] - v.low[2]
        oy = k // v.kernel[2] % v.kernel[1] * v.dilation[1] - v.low[1]
        oz = k // (v.kernel[2] * v.kernel[1]) * v.dilation[0] - v.low[0]
        lo = 0 if ox >= 0 else (s - 1 - ox) // s                    # columns lo to hi - 1 are inside of x
        hi = 0 if ox >= v.size[2] else min(w, (v.size[2] - 1 - ox) // s + 1)
        plane = <const real*>x.data + (channel + r // v.taps) * x.channel
        j, y, z, n, column = x0, y0, z0, n0, 0
        while column < m:                           # one row of the output, or the part of it in the tile
            length = min(w - j, m - column)
            yi, zi = y * v.stride[1] + oy, z * v.stride[0] + oz
            if yi < 0 or yi >= v.size[1] or zi < 0 or zi >= v.size[0]: first = last = length
            else:
                first = min(max(lo - j, 0), length)
                last = min(max(hi - j, first), length)
            row = <real*>plane + n * x.image + zi * x.at[0] + yi * x.at[1] + ((j + first) * s + ox) * x.at[2]
            if back: add_run(p, row, step, last - first, first)
            else:
                for i in range(first): p[i] = 0
                if step == 1: memcpy(p + first, row, (last - first) * sizeof(real))
                else:
                    for i in range(last - first): p[first + i] = row[i * step]
                for i in range(last, length): p[i] = 0
            p += length
            column += length
            j = 0
            y += 1
            if y == v.out[1]:
                y = 0
                z += 1
                if z == v.out[0]:
                    z = 0
                    n += 1


cdef inline void add_run(const real* p, real* row, Py_ssize_t step, Py_ssize_t n, Py_ssize_t first) noexcept nogil:
    """row += p[first:first + n]"""
    cdef Py_ssize_t i
    if step == 1:
        for i in range(n): row[i] += p[first + i]
    else:
        for i in range(n): row[i * step] += p[first + i]


cdef void pack(const Conv* v, const Planes* x, Py_ssize_t channel, Py_ssize_t r0, Py_ssize_t r1, const Tile* t,
               char* p, bint back) noexcept nogil:
    """patches() of a tile, in either precision."""
    if v.dtype == FLOAT32:
        patches[float](v, x, channel, r0, r1, t.image, t.p0, t.m, <float*>p, back)
    else:
        patches[double](v, x, channel, r0, r1, t.image, t.p0, t.m, <double*>p, back)


# ---- tiles -----------------------------------------------------------------------------------------------------------

cdef Tile tile_at(const Conv* v, Py_ssize_t i) noexcept nogil:
    """Tile i: a piece of one image, or several images."""
    cdef Tile t
    t.image, t.p0 = i // v.cuts * v.images, i % v.cuts * v.columns
    t.m = min(v.columns, v.positions - t.p0) if v.images == 1 else min(v.images, v.n - t.image) * v.positions
    return t


cdef const char* rows_of_x(const Conv* v, Py_ssize_t group, Py_ssize_t r0, Py_ssize_t r1, const Tile* t,
                           char* workspace, Py_ssize_t* ld) noexcept nogil:
    """Rows r0 to r1 - 1 of the patches of a tile: in X itself, or packed into the workspace."""
    if v.direct:
        ld[0] = v.x.channel
        return v.x.data + (t.image * v.x.image + (group * v.c + r0) * v.x.channel + t.p0) * itemsize(v.dtype)
    ld[0] = t.m
    pack(v, &v.x, group * v.c, r0, r1, t, workspace, False)
    return workspace


cdef const char* rows_of_y(const Conv* v, Py_ssize_t group, const Tile* t,
                           char* workspace, Py_ssize_t* ld) noexcept nogil:
    """The rows of Y of a tile, one for each channel of the group: in Y itself, or packed into the workspace."""
    cdef Conv same
    cdef int d
    if not v.packs_y:
        ld[0] = v.y.channel
        return v.y.data + (t.image * v.y.image + group * v.o * v.y.channel + t.p0) * itemsize(v.dtype)
    same = v[0]                                     # a kernel of one element gives Y itself
    same.taps = 1
    for d in range(3):
        same.kernel[d] = same.stride[d] = same.dilation[d] = 1
        same.low[d], same.size[d] = 0, v.out[d]
    pack(&same, &v.y, group * v.o, 0, v.o, t, workspace, False)
    ld[0] = t.m
    return workspace


cdef void finish(const Conv* v, Py_ssize_t channel, Py_ssize_t n, char* y) noexcept nogil:
    """Add the bias of a channel to n elements and apply the activation."""
    cdef Py_ssize_t i
    cdef float bf
    cdef double bd
    if v.bias != NULL and v.dtype == FLOAT32:
        bf = (<const float*>v.bias)[channel * v.bias_step]
        for i in range(n): (<float*>y)[i] += bf
    elif v.bias != NULL:
        bd = (<const double*>v.bias)[channel * v.bias_step]
        for i in range(n): (<double*>y)[i] += bd
    if v.activation != NULL: (<two_t>v.activation)(view1(y, n), view1(y, n))


cdef void depthwise(void* job, Py_ssize_t i, char* workspace) noexcept nogil:
    """One item of a depthwise convolution."""
    cdef const Conv* v = <const Conv*>job
    cdef Py_ssize_t group = i % v.groups, image = i // v.groups, size = itemsize(v.dtype), k
    depthwise_item(v, i)
    if v.bias == NULL and v.activation == NULL: return
    if v.role == X:
        finish(v, group, v.size[0] * v.size[1] * v.size[2],
               v.x.data + (image * v.x.image + group * v.x.channel) * size)
        return
    for k in range(group * v.o, (group + 1) * v.o):
        finish(v, k, v.positions, v.y.data + (image * v.y.image + k * v.y.channel) * size)


cdef void tile_of_y(void* job, Py_ssize_t i, char* workspace) noexcept nogil:
    """Y of one tile and group: weights times patches."""
    cdef const Conv* v = <const Conv*>job
    cdef Py_ssize_t group = i % v.groups, size = itemsize(v.dtype), r0 = 0, r1, ld, ld_y, k, n
    cdef Tile t = tile_at(v, i // v.groups)
    cdef const char* p
    cdef const char* w = v.v + group * v.o * v.rows * size
    cdef char* y = v.y.data + (t.image * v.y.image + group * v.o * v.y.channel + t.p0) * size
    cdef char* target = y
    cdef double beta = v.adds and not v.packs_y
    ld_y = v.y.channel
    if v.packs_y: target, ld_y = workspace + v.block * v.columns * size, t.m
    while r0 < v.rows:
        r1 = min(v.rows, r0 + v.block)
        p = rows_of_x(v, group, r0, r1, &t, workspace, &ld)
        product(v.dtype, False, False, v.o, t.m, r1 - r0, w + r0 * size, v.rows, p, ld, beta if r0 == 0 else 1,
                target, ld_y)
        r0 = r1
    for k in range(v.o):
        if not v.packs_y:
            finish(v, group * v.o + k, t.m, y + k * ld_y * size)
            continue
        finish(v, group * v.o + k, t.m, target + k * t.m * size)
        for n in range(t.m // v.positions):
            move(v, target + (k * t.m + n * v.positions) * size, y + (n * v.y.image + k * v.y.channel) * size)


cdef void move(const Conv* v, const char* source, char* y) noexcept nogil:
    """Copy or add one plane of Y."""
    if not v.adds: memcpy(y, source, v.positions * itemsize(v.dtype))
    elif v.dtype == FLOAT32: add_run(<float*>source, <float*>y, 1, v.positions, 0)
    else:                    add_run(<double*>source, <double*>y, 1, v.positions, 0)


cdef void part_of_x(void* job, Py_ssize_t i, char* workspace) noexcept nogil:
    """X of some images, one group and some of its channels: the sum of transposed weights times Y, patch by patch."""
    cdef const Conv* v = <const Conv*>job
    cdef Py_ssize_t blocks = (v.c + v.channels - 1) // v.channels, c0 = i % blocks * v.channels
    cdef Py_ssize_t c1 = min(v.c, c0 + v.channels), group = i // blocks % v.groups, unit = i // blocks // v.groups
    cdef Py_ssize_t size = itemsize(v.dtype), r0, r1, ld, n, k, cut, plane = v.size[0] * v.size[1] * v.size[2]
    cdef Tile t = tile_at(v, unit * v.cuts)
    cdef const char* y
    cdef const char* w = v.v + group * v.o * v.rows * size
    cdef char* p = workspace + (v.o * v.columns * size if v.packs_y else 0)
    cdef char* x = v.x.data + (t.image * v.x.image + (group * v.c + c0) * v.x.channel) * size
    cdef Py_ssize_t images = min(v.images, v.n - t.image)
    for n in range(0 if v.adds or v.direct else images):
        memset(x + n * v.x.image * size, 0, (c1 - c0) * plane * size)
    for cut in range(v.cuts):
        t = tile_at(v, unit * v.cuts + cut)
        y = rows_of_y(v, group, &t, workspace, &ld)
        if v.direct:
            product(v.dtype, True, False, c1 - c0, t.m, v.o, w + c0 * size, v.rows, y, ld, v.adds, x + t.p0 * size,
                    v.x.channel)
            continue
        r0 = c0 * v.taps
        while r0 < c1 * v.taps:
            r1 = min(c1 * v.taps, r0 + v.block)
            product(v.dtype, True, False, r1 - r0, t.m, v.o, w + r0 * size, v.rows, y, ld, 0, p, t.m)
            pack(v, &v.x, group * v.c, r0, r1, &t, p, True)
            r0 = r1
    if v.bias == NULL and v.activation == NULL: return
    for n in range(images):
        for k in range(c0, c1):
            finish(v, group * v.c + k, plane, x + (n * v.x.image + (k - c0) * v.x.channel) * size)


cdef void part_of_v(void* job, Py_ssize_t i, char* workspace) noexcept nogil:
    """V of one group: Y times transposed patches, summed over a part of the tiles, or over all for some of its
    columns."""
    cdef const Conv* v = <const Conv*>job
    cdef Py_ssize_t group = i % v.groups, k = i // v.groups, size = itemsize(v.dtype), r0, r1, ld_x, ld_y, j
    cdef Py_ssize_t first = 0, last = v.tiles, start = 0, stop = v.rows, whole = v.groups * v.o * v.rows
    cdef char* target = v.v
    cdef const char* x
    cdef const char* y
    cdef char* p = workspace + (v.o * v.columns * size if v.packs_y else 0)
    cdef double beta = v.adds
    cdef Tile t
    if v.items == v.parts * v.groups: first, last = v.tiles * k // v.parts, v.tiles * (k + 1) // v.parts
    else: start, stop = k * v.block, min(v.rows, (k + 1) * v.block)
    if v.parts > 1: target, beta = v.shared + k * whole * size, 0
    target += group * v.o * v.rows * size
    for j in range(first, last):
        t = tile_at(v, j)
        y = rows_of_y(v, group, &t, workspace, &ld_y)
        r0 = start
        while r0 < stop:
            r1 = min(stop, r0 + v.block)
            x = rows_of_x(v, group, r0, r1, &t, p, &ld_x)
            product(v.dtype, False, True, v.o, r1 - r0, t.m, y, ld_y, x, ld_x, 1 if j > first else beta,
                    target + r0 * size, v.rows)
            r0 = r1


# ---- all patches -----------------------------------------------------------------------------------------------------

cdef struct Unfolding:
    const Conv* v
    const Array* y          # the patches: (n, channels taps, positions)
    bint back


cdef void unfold_images(Conv* v, const Array* y, char* workspace, bint back) noexcept nogil:
    """y = the patches of X; with `back`, X = the sums of y at the elements of the patches, which need `own_bytes` of
    workspace for each thread if y is not dense. Reads the sizes of X, Y and the kernel of a Conv with one group."""
    cdef Unfolding job = Unfolding(v, y, back)
    cdef Py_ssize_t items = v.n * v.c
    cdef int t = threads_for(items * v.taps * v.positions)
    if v.own_bytes: t = <int>min(<size_t>t, v.workspace_bytes // v.own_bytes)
    each_item(unfold_channel, &job, items, <int>max(<Py_ssize_t>1, min(<Py_ssize_t>t, items)), workspace, v.own_bytes)


cdef void unfold_channel(void* job, Py_ssize_t i, char* workspace) noexcept nogil:
    """The patches of one channel of one image."""
    cdef const Conv* v = (<const Unfolding*>job).v
    cdef const Array* y = (<const Unfolding*>job).y
    cdef Py_ssize_t whole = v.taps * v.positions, size = itemsize(v.dtype), channel = i % v.c
    cdef Tile t = Tile(i // v.c, 0, v.positions)
    cdef char* p = y.data + i * whole * size
    if (<const Unfolding*>job).back:
        if not y.layout.dense:
            gather(workspace, y, i * whole, whole)
            p = workspace
        memset(v.x.data + (t.image * v.x.image + channel * v.x.channel) * size, 0,
               v.size[0] * v.size[1] * v.size[2] * size)
    pack(v, &v.x, 0, channel * v.taps, (channel + 1) * v.taps, &t, p, (<const Unfolding*>job).back)
