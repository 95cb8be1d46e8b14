"""einsum: sums of products, said by an equation.

The equation is read once. Operands are contracted from left to right, two at a time: what one operand alone has is
summed before, a label that stands twice in one is its diagonal. A contraction of two is a batched matrix product over
their dimensions in groups, and its gradients are contractions again."""

from functools import lru_cache

import numpy as np

from cython cimport final
from libc.stdint cimport uint64_t

from cygrad.core.store cimport layout as lay
from cygrad.core.interop.numpy cimport lend
from cygrad.core.graph.operator cimport Call, Operator
from cygrad.core.graph.tensor cimport Tensor, ensure_tensor
from cygrad.core.execute.run cimport apply2, apply_list
from cygrad.kernels cimport driver
from cygrad.kernels cimport index as kernel
from cygrad.kernels.array cimport MAX_NDIM, Array, Layout, is_real, itemsize
from cygrad.kernels.blas cimport check_sizes
from cygrad.kernels.driver cimport gather
from cygrad.kernels.rows cimport dots
from cygrad.ops.linalg cimport products, capacity
from cygrad.ops.shape cimport permuted, reshaped

from cygrad.core.interop.creation import arange
from cygrad.core.dtypes import DTYPES
from cygrad.ops.index import OPERATORS as BY_INDEX
from cygrad.ops.reduce import sum
from cygrad.ops.shape import astype, permute, reshape

cdef driver.Loop* MUL_LOOP = driver.find("mul")


# ---- two operands ----------------------------------------------------------------------------------------------------

@lru_cache(1024)
def plan(x, y, z):
    """The attributes of a contraction of labels `x` and `y` to `z`: (x, y, z, batch, rows, columns, inner), the last
    four being the labels of all three, of x and z, of y and z, of x and y."""
    return (x, y, z, "".join([a for a in z if a in x and a in y]), "".join([a for a in z if a not in y]),
            "".join([a for a in z if a not in x]), "".join([a for a in x if a not in z]))


cdef Layout* ordered(const Layout* x, str labels, str order) except NULL:
    return permuted(x, tuple([labels.index(a) for a in order]))


cdef Layout* grouped(const Layout* x, str labels, str batch, str rows, str columns) except? NULL:
    """`x` as matrices (batch.., rows, columns); NULL without an error where its strides do not allow it."""
    cdef Py_ssize_t shape[MAX_NDIM + 2]
    cdef Layout* l = ordered(x, labels, batch + rows + columns)
    cdef int n = len(batch)
    try:
        sizes(l, n, len(rows), shape)
        return reshaped(l, n + 2, shape)
    finally:
        lay.decref(l)


cdef void sizes(const Layout* l, int batch, int rows, Py_ssize_t* shape) noexcept:
    """The shape that the groups of an ordered layout have together."""
    cdef int d
    shape[batch] = shape[batch + 1] = 1
    for d in range(l.ndim):
        if d < batch: shape[d] = l.shape[d]
        else: shape[batch + (d >= batch + rows)] *= l.shape[d]


cdef size_t packing(const Array* x, str labels, str batch, str rows, str columns) except? 0:
    """Bytes of workspace that matrices() needs, and what products() does with its result."""
    cdef Layout* l = grouped(x.layout, labels, batch, rows, columns)
    cdef Array a = x[0]
    if l == NULL: return x.layout.size * itemsize(x.dtype)
    a.layout = l
    cdef size_t bytes = capacity(&a)
    lay.decref(l)
    return bytes


cdef int matrices(const Array* x, str labels, str batch, str rows, str columns, char** workspace,
                  Array* out) except -1:
    """`x` as matrices (batch.., rows, columns), packed into the workspace where that must be. The caller forgets the
    layout."""
    cdef Py_ssize_t shape[MAX_NDIM + 2]
    cdef Layout* l = grouped(x.layout, labels, batch, rows, columns)
    cdef Layout* whole
    cdef Array a = x[0]
    out[0] = x[0]
    if l == NULL:
        whole = ordered(x.layout, labels, batch + rows + columns)
        a.layout = whole
        gather(workspace[0], &a, 0, whole.size)
        sizes(whole, len(batch), len(rows), shape)
        lay.decref(whole)
        l = lay.dense(len(batch) + 2, shape)
        out.data = workspace[0]
        workspace[0] += x.layout.size * itemsize(x.dtype)
    out.layout = l
    return 0


@final
cdef class Einsum(Operator):
    """z = sum of x y over the labels that z has not        dx = sum of g y        dy = sum of g x        (as z is)

    The attributes are those of plan(). Each label stands once in two of the three at least."""

    def __cinit__(self):
        self.name, self.promotes, self.differentiable = "einsum", True, True

    cdef int infer_with_gil(self, Call* c) except -1:
        cdef Py_ssize_t shape[MAX_NDIM]
        cdef const Layout* x = c.x[0].layout
        cdef const Layout* y = c.x[1].layout
        cdef int d
        lx, ly, lz, batch, rows, columns, inner = <tuple>c.attributes
        if len(lz) > MAX_NDIM or len(batch) > MAX_NDIM - 2:
            raise ValueError(f"einsum: a tensor has at most {MAX_NDIM} dimensions, this step would give {len(lz)}; sum "
                             f"in another order")
        for d in range(len(lz)): shape[d] = x.shape[lx.index(lz[d])] if lz[d] in lx else y.shape[ly.index(lz[d])]
        c.y[0].layout = lay.dense(len(lz), shape)
        c.y[0].dtype = c.x[0].dtype
        if inner and is_real(c.y[0].dtype):
            c.workspace_bytes = (packing(&c.x[0], lx, batch, rows, inner) + packing(&c.x[1], ly, batch, inner, columns))
            if lz != batch + rows + columns: c.workspace_bytes += c.y[0].layout.size * itemsize(c.y[0].dtype)
        return 0

    cdef int forward_with_gil(self, Call* c) except -1:
        cdef Array x, y, z = c.y[0]
        cdef char* workspace = c.workspace
        cdef Py_ssize_t shape[MAX_NDIM + 2]
        cdef Layout* l
        lx, ly, lz, batch, rows, columns, inner = <tuple>c.attributes
        if not is_real(c.y[0].dtype): return by_numpy(c, lx, ly, lz)
        if not inner: return multiply(c, lx, ly, lz)
        if dots_fit(c, lx, ly, batch, rows, columns, inner):
            with nogil: dots(z.dtype, z.layout.size, c.x[0].layout.size // max(z.layout.size, 1), c.x[0].data,
                             c.x[1].data, z.data)
            return 0
        x.layout = y.layout = z.layout = NULL
        try:
            if lz != batch + rows + columns:
                z.data = workspace
                workspace += c.y[0].layout.size * itemsize(z.dtype)
            l = ordered(c.y[0].layout, lz, batch + rows + columns)
            sizes(l, len(batch), len(rows), shape)
            lay.decref(l)
            z.layout = lay.dense(len(batch) + 2, shape)
            matrices(&c.x[0], lx, batch, rows, inner, &workspace, &x)
            matrices(&c.x[1], ly, batch, inner, columns, &workspace, &y)
            check_sizes(shape[<int>len(batch)], shape[<int>len(batch) + 1], x.layout.shape[<int>len(batch) + 1])
            products(&x, False, &y, False, &z, 0, workspace)
            if z.data != c.y[0].data: reorder(&z, &c.y[0], lz, batch + rows + columns)
        finally:
            if x.layout != NULL: lay.decref(x.layout)
            if y.layout != NULL: lay.decref(y.layout)
            if z.layout != NULL: lay.decref(z.layout)
        return 0

    cdef uint64_t keeps(self, const Call* c, uint64_t wanted) noexcept nogil:
        return (2 if wanted & 1 else 0) | (1 if wanted & 2 else 0)

    cdef object formula(self, c, int i, g):
        x, y, z, *_ = c.attributes
        return apply2(EINSUM, g, c.input(1 - i), plan(z, y, x) if i == 0 else plan(z, x, y))


cdef int reorder(const Array* packed, const Array* z, str labels, str order) except -1:
    """z = the packed result, whose labels are in another order."""
    cdef Layout* seen = ordered(z.layout, labels, order)
    cdef Array a = packed[0], b = z[0]
    cdef Layout* dense = NULL
    try:
        dense = lay.dense(seen.ndim, seen.shape)
        a.layout, b.layout = dense, seen
        kernel.copy(&a, &b)
    finally:
        lay.decref(seen)
        if dense != NULL: lay.decref(dense)
    return 0


cdef bint dots_fit(Call* c, str lx, str ly, str batch, str rows, str columns, str inner) except -1:
    """Whether z is a dot product for each of the batch, with x and y dense in this order."""
    if rows or columns or lx != batch + inner or ly != lx or not batch or c.y[0].layout.size == 0: return False
    return c.x[0].layout.dense and c.x[1].layout.dense


cdef int multiply(Call* c, str lx, str ly, str lz) except -1:
    """Nothing is summed: z = x y, each seen in the dimensions of z."""
    cdef Array a[3]
    cdef Layout seen[2]
    cdef Py_ssize_t steps[2][MAX_NDIM]
    cdef int i, d
    for i, labels in enumerate((lx, ly)):
        seen[i] = c.y[0].layout[0]
        seen[i].strides = steps[i]
        seen[i].dense = False
        for d in range(len(lz)): steps[i][d] = c.x[i].layout.strides[<int>labels.index(lz[d])] if lz[d] in labels else 0
        a[i] = c.x[i]
        a[i].layout = &seen[i]
    a[2] = c.y[0]
    return driver.each(MUL_LOOP, a)


cdef int by_numpy(Call* c, str lx, str ly, str lz) except -1:
    numbers = {a: i for i, a in enumerate(dict.fromkeys(lx + ly))}
    x, y, z = [[numbers[a] for a in labels] for labels in (lx, ly, lz)]
    np.einsum(lend(&c.x[0], NULL, False), x, lend(&c.x[1], NULL, False), y, z, out=lend(&c.y[0], NULL, True))
    return 0


cdef Operator EINSUM = Einsum(), TAKE = BY_INDEX["take"]
OPERATORS = {o.name: o for o in (EINSUM,)}


# ---- the equation ----------------------------------------------------------------------------------------------------

@lru_cache(1024)
def parse(equation, ndims):
    """The labels of each operand and of the result, a string each, for operands of so many dimensions. What an ellipsis
    stands for gets labels of its own, counted from the last. Raises ValueError."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(ndims):
        raise ValueError(f"einsum: {equation!r} speaks of {len(terms)} operands, but {len(ndims)} were given")
    operands, max_ = [], 0
    for i, (term, ndim) in enumerate(zip(terms, ndims)):
        free = ndim - len(term.replace("...", ""))
        if free < 0 or free and "..." not in term:
            raise ValueError(f"einsum: {term!r} in {equation!r} does not name the {ndim} dimensions of operand {i}")
        max_ = max(max_, free)
        operands.append(term.replace("...", free_labels(free)))
    counts = "".join(operands)
    if not arrow: right = "..." + "".join(sorted([a for a in set(counts) if counts.count(a) == 1 and a.isascii()]))
    if max_ and "..." not in right:
        raise ValueError(f"einsum: {equation!r} has an ellipsis of {max_} dimensions on the left; the result needs one "
                         f"too")
    result = right.replace("...", free_labels(max_))
    for term in (*terms, right):
        letters = term.replace("...", "", 1)
        if not all([a.isascii() and a.isalpha() for a in letters]):
            raise ValueError(f"einsum: {term!r} in {equation!r} has other things than letters and one ellipsis (...)")
    for a in result:
        if a not in counts or result.count(a) > 1:
            raise ValueError(f"einsum: the result {right!r} of {equation!r} names {a!r}; wanted letters of the "
                             f"operands, each once")
    return operands, result


def free_labels(n):
    """Labels for the `n` dimensions of an ellipsis."""
    return "".join([chr(0x100 + k) for k in range(n - 1, -1, -1)])


cdef tuple diagonal(Tensor x, str labels):
    """A tensor and labels of which none stands twice."""
    for a in dict.fromkeys(labels):
        if labels.count(a) == 1: continue
        at = [d for d in range(len(labels)) if labels[d] == a]
        x = permute(x, (*at, *[d for d in range(len(labels)) if d not in at]))
        places = arange(x.shape[0])
        x = apply_list(TAKE, [x] + [places] * len(at), (0, len(at)))
        labels = a + labels.replace(a, "")
    return x, labels


cdef tuple without(Tensor x, str labels, str needed):
    """`x` summed over the labels that nobody else needs."""
    axes = tuple([d for d in range(len(labels)) if labels[d] not in needed])
    if not axes: return x, labels
    return astype(sum(x, axes), DTYPES[x.dtype]), "".join([a for a in labels if a in needed])


def einsum(equation, *operands):
    """Sums of products, as numpy.einsum: letters name the dimensions of the operands and, after "->", of the result;
    what the result does not name is summed. An ellipsis stands for dimensions that broadcast. Operands are contracted
    from left to right. Raises ValueError for an equation that does not fit."""
    cdef list tensors
    cdef Tensor t
    if not isinstance(equation, str):
        raise TypeError(f"einsum: the equation comes first and is a string, got {type(equation).__name__}")
    tensors = [ensure_tensor(x) for x in operands]
    labels, result = parse(equation, tuple([t.layout.ndim for t in tensors]))
    size, terms = {}, []
    for i, t in enumerate(tensors):
        for a, n in zip(labels[i], t.shape):
            if size.setdefault(a, n) != n and n != 1:
                if size[a] != 1:
                    raise ValueError(f"einsum: in {equation!r} a dimension has size {size[a]}, and again, in operand "
                                     f"{i} of shape {t.shape}, size {n}; they must be equal")
                size[a] = n
    for i, t in enumerate(tensors):                 # a size of 1 that broadcasts is no dimension of its operand
        named = list(zip(labels[i], t.shape))
        if any([n != size[a] for a, n in named]):
            t = reshape(t, tuple([n for a, n in named if n == size[a]]))
        terms.append(diagonal(t, "".join([a for a, n in named if n == size[a]])))
    x, at = terms[0]
    for i in range(1, len(terms)):
        y, to = terms[i]
        needed = result + "".join([term[1] for term in terms[i + 1:]])
        x, at = without(x, at, needed + to)
        y, to = without(y, to, needed + at)
        both = [a for a in dict.fromkeys(at + to) if a in needed]
        target = result if i == len(terms) - 1 else "".join([a for a in both if a in at and a in to] + [
            a for a in both if a not in to] + [a for a in both if a not in at])
        x, at = apply2(EINSUM, x, y, plan(at, to, target)), target
    x, at = without(x, at, result)
    return x if at == result and len(terms) > 1 else permute(x, [at.index(a) for a in result])
