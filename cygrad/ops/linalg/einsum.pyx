"""einsum: sums of products, given by an equation.

Parsed equations are cached. Operands are contracted two at a time, in the order that opt_einsum finds if it is
installed, else from left to right. Before that, a label that occurs twice in one operand selects its diagonal, a view,
and a label that neither the result nor another operand has is summed. The contraction of two operands is a batched
matrix product over groups of their dimensions, or an elementwise product if nothing is summed. Its gradients are
contractions too."""

cimport cython

import operator
from functools import lru_cache

import numpy as np

from cygrad.core.store cimport layout as lay
from cygrad.core.store.layout cimport LocalLayout
from cygrad.core.graph.attributes cimport Attributes
from cygrad.core.interop.numpy cimport lend
from cygrad.core.graph.operator cimport Call, Operator
from cygrad.core.graph.tensor cimport Tensor, ensure_tensor
from cygrad.core.execute.run cimport apply2
from cygrad.kernels cimport driver
from cygrad.kernels.shapes cimport index as kernel
from cygrad.kernels.array cimport MAX_NDIM, Array, Layout, is_real, itemsize
from cygrad.kernels.linalg.blas cimport check_sizes
from cygrad.kernels.driver cimport gather
from cygrad.kernels.reductions.rows cimport dots
from cygrad.ops.linalg.linalg cimport capacity, products
from cygrad.ops.shapes.shape cimport permuted

from cygrad.core.dtypes import DTYPES
from cygrad.core.errors import described
from cygrad.ops.linalg.diagonal import diagonal
from cygrad.ops.reductions.reduce import sum
from cygrad.ops.shapes.shape import astype, permute, reshape

cdef driver.Loop* MUL_LOOP = driver.find("mul")


# ---- two operands ----------------------------------------------------------------------------------------------------

@cython.no_gc
cdef class Contraction(Attributes):
    """The attributes of einsum: the labels of x, y and z, one string for each. A label is in one of four groups: batch
    (in all three), rows (in x and z), columns (in y and z) or inner (in x and y)."""
    cdef readonly str x
    cdef readonly str y
    cdef readonly str z
    cdef int ndim                                   # the rank of z
    cdef int batch                                  # the number of labels in each group
    cdef int rows
    cdef int columns
    cdef int inner
    cdef int x_order[MAX_NDIM]                      # the dimensions of x as batch, rows, inner,
    cdef int y_order[MAX_NDIM]                      # ... of y as batch, inner, columns,
    cdef int z_order[MAX_NDIM]                      # ... of z as batch, rows, columns
    cdef int from_x[MAX_NDIM]                       # for each dimension of z the dimension of x; -1: none
    cdef int from_y[MAX_NDIM]
    cdef bint in_order                              # the labels of z are in that order
    cdef bint dots                                  # x and y are both (batch, inner): z is a batch of dot products

    def __cinit__(self, str x, str y, str z):
        cdef int d
        batch, rows = "".join([a for a in z if a in x and a in y]), "".join([a for a in z if a not in y])
        columns, inner = "".join([a for a in z if a not in x]), "".join([a for a in x if a not in z])
        if len(z) > MAX_NDIM or len(batch) > MAX_NDIM - 2:
            raise ValueError(f"einsum: a tensor has at most {MAX_NDIM} dimensions, this step would give {len(z)}; "
                             f"reorder the operands or sum first")
        self.x, self.y, self.z, self.ndim = x, y, z, <int>len(z)
        self.batch, self.rows, self.columns, self.inner = len(batch), len(rows), len(columns), len(inner)
        for d, a in enumerate(batch + rows + inner): self.x_order[d] = x.index(a)
        for d, a in enumerate(batch + inner + columns): self.y_order[d] = y.index(a)
        for d, a in enumerate(batch + rows + columns): self.z_order[d] = z.index(a)
        for d, a in enumerate(z): self.from_x[d], self.from_y[d] = x.find(a), y.find(a)
        self.in_order = z == batch + rows + columns
        self.dots = batch and not rows and not columns and x == y == batch + inner


plan = lru_cache(1024)(Contraction)


cdef void group(const Layout* l, int batch, int rows, Layout* y) noexcept nogil:
    """Write to y the dense layout of `l`, whose dimensions are in order, as matrices (batch.., rows, columns)."""
    cdef Py_ssize_t step = 1
    y.ndim, y.offset, y.shape[batch], y.shape[batch + 1] = batch + 2, 0, 1, 1
    for d in range(l.ndim):
        if d < batch: y.shape[d] = l.shape[d]
        else: y.shape[batch + (d >= batch + rows)] *= l.shape[d]
    for d in range(y.ndim - 1, -1, -1):
        y.strides[d] = step
        if y.shape[d]: step *= y.shape[d]
    lay.finish(y)


cdef bint grouped(const Layout* x, const int* order, int batch, int rows, Layout* y) noexcept nogil:
    """Write to y the layout of `x` as matrices (batch.., rows, columns). Returns False if the strides of x do not allow
    that; y is then the layout of a packed copy."""
    cdef LocalLayout l
    permuted(x, order, lay.local(&l))
    group(&l.layout, batch, rows, y)
    if l.layout.size == 0: return True
    if not lay.reshape_strides(&l.layout, y.ndim, y.shape, y.strides):
        group(&l.layout, batch, rows, y)            # (reshape_strides may have written some strides)
        return False
    lay.finish(y)
    return True


cdef size_t packing(const Array* x, const int* order, int batch, int rows) noexcept nogil:
    """Bytes of workspace that matrices() needs for `x`, and products() for the matrices."""
    cdef LocalLayout l
    cdef Array a = x[0]
    if not grouped(x.layout, order, batch, rows, lay.local(&l)): return x.layout.size * itemsize(x.dtype)
    a.layout = &l.layout
    return capacity(&a)


cdef Array matrices(const Array* x, const int* order, int batch, int rows, char** workspace,
                    LocalLayout* l) noexcept nogil:
    """`x` as matrices (batch.., rows, columns), packed into the workspace if its strides do not allow a view."""
    cdef LocalLayout ordered
    cdef Array a = x[0], y = x[0]
    if not grouped(x.layout, order, batch, rows, lay.local(l)):
        permuted(x.layout, order, lay.local(&ordered))
        a.layout, y.data = &ordered.layout, workspace[0]
        gather(y.data, &a, 0, x.layout.size)
        workspace[0] += x.layout.size * itemsize(x.dtype)
    y.layout = &l.layout
    return y


cdef class Einsum(Operator):
    """z = sum of x y over the labels not in z        dx = sum of g y        dy = sum of g x        (likewise)"""
    lanes, tangent, traits = "contracting", "bilinear", "promotes differentiable"
    row, operands, functions = "contract", "x y", {"einsum": "*operands"}
    reads = {"x": "y", "y": "x"}

    cdef tuple row_of(self, attributes):
        """Labels of an ellipsis are no letters."""
        labels = attributes.x, attributes.y, attributes.z
        if not "".join(labels).isascii(): return "contract", {"labels": labels}
        return "einsum", {"equation": f"{labels[0]},{labels[1]}->{labels[2]}"}

    cdef int infer(self, Call* c) except -1 nogil:
        cdef Py_ssize_t shape[MAX_NDIM]
        cdef const int* from_x = (<Contraction>c.attributes).from_x
        cdef const int* from_y = (<Contraction>c.attributes).from_y
        cdef int d, ndim = (<Contraction>c.attributes).ndim, batch = (<Contraction>c.attributes).batch
        cdef int rows = (<Contraction>c.attributes).rows, inner = (<Contraction>c.attributes).inner
        for d in range(ndim):
            shape[d] = c.x[0].layout.shape[from_x[d]] if from_x[d] >= 0 else c.x[1].layout.shape[from_y[d]]
        c.y[0].layout = lay.dense(ndim, shape)
        c.y[0].dtype = c.x[0].dtype
        if inner and is_real(c.y[0].dtype):
            c.workspace_bytes = (packing(&c.x[0], (<Contraction>c.attributes).x_order, batch, rows)
                                 + packing(&c.x[1], (<Contraction>c.attributes).y_order, batch, inner))
            if not (<Contraction>c.attributes).in_order:
                c.workspace_bytes += c.y[0].layout.size * itemsize(c.y[0].dtype)

    cdef int forward(self, Call* c) except -1 nogil:
        cdef LocalLayout ordered, lx, ly, lz
        cdef Array x, y, z = c.y[0]
        cdef char* workspace = c.workspace
        cdef int batch = (<Contraction>c.attributes).batch, rows = (<Contraction>c.attributes).rows
        cdef int inner = (<Contraction>c.attributes).inner
        if not is_real(c.y[0].dtype): return Operator.forward(self, c)
        if not inner: return multiply(c)
        if (<Contraction>c.attributes).dots and z.layout.size and c.x[0].layout.dense and c.x[1].layout.dense:
            dots(z.dtype, z.layout.size, c.x[0].layout.size // z.layout.size, c.x[0].data, c.x[1].data, z.data)
            return 0
        if not (<Contraction>c.attributes).in_order:
            z.data = workspace
            workspace += c.y[0].layout.size * itemsize(z.dtype)
        permuted(c.y[0].layout, (<Contraction>c.attributes).z_order, lay.local(&ordered))
        group(&ordered.layout, batch, rows, lay.local(&lz))
        z.layout = &lz.layout
        x = matrices(&c.x[0], (<Contraction>c.attributes).x_order, batch, rows, &workspace, &lx)
        y = matrices(&c.x[1], (<Contraction>c.attributes).y_order, batch, inner, &workspace, &ly)
        check_sizes(z.layout.shape[batch], z.layout.shape[batch + 1], x.layout.shape[batch + 1])
        products(&x, False, &y, False, &z, 1, 0, workspace)
        if z.data != c.y[0].data: reorder(&z, &c.y[0], &ordered.layout)

    cdef int forward_with_gil(self, Call* c) except -1:
        """Compute bools and integers with NumPy."""
        cdef Contraction k = <Contraction>c.attributes
        numbers = {a: i for i, a in enumerate(dict.fromkeys(k.x + k.y))}
        x, y, z = [[numbers[a] for a in labels] for labels in (k.x, k.y, k.z)]
        np.einsum(lend(&c.x[0], NULL, False), x, lend(&c.x[1], NULL, False), y, z, out=lend(&c.y[0], NULL, True))

    cdef tuple call_of(self, operands, arguments):
        return range(2) if len(operands) == 2 else None, None

    cdef object formula(self, c, int i, g):
        cdef Contraction k = c.attributes
        return apply2(EINSUM, g, c.input(1 - i), plan(k.z, k.y, k.x) if i == 0 else plan(k.z, k.x, k.y))


cdef void reorder(const Array* packed, const Array* z, const Layout* ordered) noexcept nogil:
    """Copy the packed result to z. `ordered` is the layout of z in the order batch, rows, columns."""
    cdef LocalLayout dense
    cdef Layout* l = lay.local(&dense)
    cdef Array a = packed[0], b = z[0]
    cdef Py_ssize_t step = 1
    l.ndim = ordered.ndim
    for d in range(l.ndim - 1, -1, -1):
        l.shape[d], l.strides[d] = ordered.shape[d], step
        step *= ordered.shape[d]
    a.layout, b.layout = lay.finish(l), ordered
    kernel.copy(&a, &b)


cdef int multiply(Call* c) except -1 nogil:
    """z = x y elementwise, if nothing is summed. x and y are broadcast to the dimensions of z."""
    cdef Array a[3]
    cdef Layout seen[2]
    cdef Py_ssize_t steps[2][MAX_NDIM]
    cdef const int* source = (<Contraction>c.attributes).from_x
    for i in range(2):
        if i == 1: source = (<Contraction>c.attributes).from_y
        seen[i] = c.y[0].layout[0]
        seen[i].strides = steps[i]
        seen[i].dense = False
        for d in range(seen[i].ndim): steps[i][d] = c.x[i].layout.strides[source[d]] if source[d] >= 0 else 0
        a[i] = c.x[i]
        a[i].layout = &seen[i]
    a[2] = c.y[0]
    return driver.each(MUL_LOOP, a)


cdef Operator EINSUM = Einsum()
OPERATORS = {o.name: o for o in (EINSUM,)}


# ---- the equation ----------------------------------------------------------------------------------------------------

@lru_cache(1024)
def parse(equation, ndims):
    """The labels of each operand and of the result, one string for each, for operands of `ndims` dimensions. The
    dimensions of an ellipsis get their own labels, counted from the last. Raises ValueError if the equation is wrong or
    does not fit the operands."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(ndims):
        raise ValueError(f"einsum: {equation!r} describes {len(terms)} operands, got {len(ndims)}")
    operands, max_ = [], 0
    for i, (term, ndim) in enumerate(zip(terms, ndims)):
        free = ndim - len(term.replace("...", ""))
        if free < 0 or free and "..." not in term:
            raise ValueError(f"einsum: {term!r} in {equation!r} does not match the {ndim} dimensions of operand {i}; "
                             f"give each a letter, or use an ellipsis (...)")
        max_ = max(max_, free)
        operands.append(term.replace("...", free_labels(free)))
    counts = "".join(operands)
    if not arrow: right = "..." + "".join(sorted([a for a in set(counts) if counts.count(a) == 1 and a.isascii()]))
    if max_ and "..." not in right:
        raise ValueError(f"einsum: the ellipsis in {equation!r} stands for {max_} dimensions; the result needs an "
                         f"ellipsis too")
    result = right.replace("...", free_labels(max_))
    for term in (*terms, right):
        letters = term.replace("...", "", 1)
        if not all([a.isascii() and a.isalpha() for a in letters]):
            raise ValueError(f"einsum: {term!r} in {equation!r} may contain only letters and one ellipsis (...)")
    for a in result:
        if a not in counts or result.count(a) > 1:
            raise ValueError(f"einsum: {a!r} in the result {right!r} of {equation!r} must be a letter of an operand, "
                             f"and occur only once")
    return operands, result


def free_labels(n):
    """Labels for the `n` dimensions of an ellipsis."""
    return "".join([chr(0x100 + k) for k in range(n - 1, -1, -1)])


cdef tuple on_diagonals(x, str labels):
    """`x` and its labels without repetition: for a label that occurs several times, the diagonal of its dimensions, a
    view."""
    cdef Py_ssize_t i, j
    for a in dict.fromkeys(labels):
        while labels.count(a) > 1:
            i = labels.index(a)
            j = labels.index(a, i + 1)
            x, labels = diagonal(x, 0, i, j), labels[:i] + labels[i + 1:j] + labels[j + 1:] + a
    return x, labels


cdef tuple without(Tensor x, str labels, str needed):
    """`x` summed over the labels that are not in `needed`, and its remaining labels."""
    axes = tuple([d for d in range(len(labels)) if labels[d] not in needed])
    if not axes: return x, labels
    return astype(sum(x, axes), DTYPES[x.dtype]), "".join([a for a in labels if a in needed])


@lru_cache(1024)
def path_of(terms, result, sizes):
    """The order of contractions: pairs of places in the list of the remaining operands, to whose end each result goes.
    Three operands or more are ordered by opt_einsum if it is installed, else from left to right."""
    last = len(terms) - 1
    if last > 1:
        try:
            from opt_einsum import contract_path
        except ImportError: pass
        else:
            size = dict(sizes)
            shapes = [tuple([size[a] for a in term]) for term in terms]
            path = contract_path(",".join(terms) + "->" + result, *shapes, shapes=True)[0]
            if all([len(pair) == 2 for pair in path]): return path
    return [(0, 1)] * (last > 0) + [(last - i, 0) for i in range(1, last)]


cdef str label_of(a):
    """The letter of an axis label of the form with lists: the numbers 0 to 51 are A to Z, then a to z."""
    if a is Ellipsis: return "..."
    n = operator.index(a)
    if not 0 <= n < 52: raise ValueError(f"einsum: axis labels are integers from 0 to 51 or ..., got {n}")
    return chr(ord("A") + n if n < 26 else ord("a") + n - 26)


cdef tuple read_lists(tuple given):
    """(the equation, the operands) of einsum(x, labels of x, y, labels of y, ..., labels of the result)."""
    n = len(given) // 2
    try: terms = ["".join([label_of(a) for a in labels]) for labels in (*given[1:2 * n:2], *given[2 * n:])]
    except TypeError: terms = []
    if len(given) < 2 or not terms:
        raise TypeError(f"einsum: the first argument must be the equation, a string, or each operand be followed by a "
                        f"list of axis labels; got {', '.join([type(x).__name__ for x in given])}")
    return ",".join(terms[:n]) + "->" * (len(terms) > n) + "".join(terms[n:]), given[:2 * n:2]


def einsum(equation: str | Data, *operands: Data) -> Tensor:
    """Sums of products, as in numpy.einsum. Letters name the dimensions of the operands and, after "->", of the result;
    dimensions that the result does not name are summed. An ellipsis stands for dimensions that broadcast. Operands are
    contracted two at a time: three or more in the order that opt_einsum finds if it is installed, else from left to
    right. einsum(x, [0, 1], y, [1, 2], [0, 2]) has lists of integers from 0 to 51, or ..., in place of letters. Raises
    ValueError if the equation does not fit the operands."""
    cdef list tensors
    cdef Tensor t
    if not isinstance(equation, str): equation, operands = read_lists((equation, *operands))
    tensors = [ensure_tensor(x) for x in operands]
    labels, result = parse(equation, tuple([t.layout.ndim for t in tensors]))
    size, terms = {}, []
    for i, t in enumerate(tensors):
        for a, n in zip(labels[i], t.shape):
            if size.setdefault(a, n) != n and n != 1:
                if size[a] != 1:
                    raise ValueError(f"einsum: in {equation!r} the same dimension has size {size[a]} and, in operand "
                                     f"{i} of shape {t.shape}, size {n}; the sizes must be equal")
                size[a] = n
    for i, t in enumerate(tensors):                 # drop dimensions of size 1 that broadcast
        named = list(zip(labels[i], t.shape))
        if any([n != size[a] for a, n in named]):
            t = reshape(t, tuple([n for a, n in named if n == size[a]]))
        terms.append(on_diagonals(t, "".join([a for a, n in named if n == size[a]])))
    for i, j in path_of(tuple([at for _, at in terms]), result, tuple(size.items())):
        (x, at), (y, to) = terms[i], terms[j]
        terms = [term for n, term in enumerate(terms) if n not in (i, j)]
        needed = result + "".join([term[1] for term in terms])
        x, at = without(x, at, needed + to)
        y, to = without(y, to, needed + at)
        both = [a for a in dict.fromkeys(at + to) if a in needed]
        target = "".join([a for a in both if a in at and a in to] + [a for a in both if a not in to]
                         + [a for a in both if a not in at]) if terms else result
        terms.append((apply2(EINSUM, x, y, plan(at, to, target)), target))
    x, at = terms[0]
    x, at = without(x, at, result)
    return x if at == result and len(tensors) > 1 else permute(x, [at.index(a) for a in result])


def contract(x: Data, y: Data, labels: Sequence[str]) -> Tensor:
    """einsum() of two operands, where `labels` are those of x, of y and of the result, with any characters. No operand
    has a label twice, and each label is in two of the three."""
    cdef Tensor s = ensure_tensor(x), t = ensure_tensor(y)
    if not isinstance(labels, (tuple, list)) or [type(a) for a in labels] != [str, str, str]:
        raise TypeError(f"contract: labels must be three strings, for x, y and the result; got {described(labels)}")
    size = {}
    for a, n in (*zip(labels[0], s.shape), *zip(labels[1], t.shape)):
        if size.setdefault(a, n) != n: size = None
        if size is None: break
    fits = size is not None and (len(labels[0]), len(labels[1])) == (s.layout.ndim, t.layout.ndim)
    counts = "".join(labels)
    if not fits or any([len(set(a)) != len(a) for a in labels]) or any([counts.count(a) < 2 for a in counts]):
        raise ValueError(f"contract: labels {described(tuple(labels))} do not fit x of shape {s.shape} and y of shape "
                         f"{t.shape}; wanted a label for each dimension, each in two of the three, with one size")
    return apply2(EINSUM, s, t, plan(*labels))
