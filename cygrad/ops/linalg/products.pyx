"""Products as NumPy has them, made of operators: outer, inner, kron, cross, tensordot, vecdot."""

from cygrad.core.store cimport layout as lay
from cygrad.core.execute.composed cimport check_broadcast
from cygrad.core.graph.tensor cimport Tensor, ensure_tensor
from cygrad.kernels.array cimport MAX_NDIM

from cygrad.core.errors import described
from cygrad.core.execute.composed import composed
from cygrad.ops.linalg.einsum import einsum
from cygrad.ops.shapes.join import stack
from cygrad.ops.shapes.shape import permute, reshape


@composed
def outer(x: Data, y: Data) -> Tensor:
    """x[i] y[j] for all elements of two tensors, which are flattened: (m, n)."""
    cdef Tensor a = ensure_tensor(x), b = ensure_tensor(y)
    return reshape(a, (-1, 1) if a.layout.size else (0, 1)) * reshape(b, (1, -1) if b.layout.size else (1, 0))


@composed
def inner(x: Data, y: Data) -> Tensor:
    """The sums of products over the last axes of `x` (..., k) and `y` (..., k), as in NumPy: the shape is that of x and
    then that of y, without k. A tensor without dimensions multiplies the other one."""
    cdef Tensor a = ensure_tensor(x), b = ensure_tensor(y)
    if not a.layout.ndim or not b.layout.ndim: return a * b
    if a.shape[-1] != b.shape[-1]:
        raise ValueError(f"inner: x is {a.shape} and y is {b.shape}; the last sizes {a.shape[-1]} and {b.shape[-1]} "
                         f"must agree")
    return tensordot(a, b, ((-1,), (-1,)))


@composed
def kron(x: Data, y: Data) -> Tensor:
    """The Kronecker product: `y` in place of each element of `x`, multiplied by it. The sizes are multiplied; the
    tensor with fewer dimensions gets leading ones of size 1."""
    cdef Tensor a = ensure_tensor(x), b = ensure_tensor(y)
    n = max(a.layout.ndim, b.layout.ndim)
    left, right = (1,) * (n - a.layout.ndim) + a.shape, (1,) * (n - b.layout.ndim) + b.shape
    if 2 * n > MAX_NDIM:
        raise ValueError(f"kron: x is {a.shape} and y is {b.shape}; wanted at most {MAX_NDIM // 2} dimensions each")
    pairs = list(zip(left, right))
    z = (reshape(a, tuple([s for i, _ in pairs for s in (i, 1)]))
         * reshape(b, tuple([s for _, j in pairs for s in (1, j)])))
    return reshape(z, tuple([i * j for i, j in pairs]))


@composed
def cross(x: Data, y: Data, axis: int = -1) -> Tensor:
    """The cross product of vectors of three elements along `axis`, an axis of both; the others broadcast. Backward
    saves x and y. Raises ValueError for other sizes of the axis."""
    cdef Tensor a = ensure_tensor(x), b = ensure_tensor(y)
    cdef int d = lay.read_axis(axis, max(a.layout.ndim, b.layout.ndim)) - max(a.layout.ndim, b.layout.ndim)
    if -d > min(a.layout.ndim, b.layout.ndim) or a.shape[d] != 3 or b.shape[d] != 3:
        raise ValueError(f"cross: x is {a.shape} and y is {b.shape}; both must have size 3 along axis {axis}")
    check_broadcast("cross", a, b)
    rest = (slice(None),) * (-d - 1)
    (x0, x1, x2), (y0, y1, y2) = [[t[(..., i, *rest)] for i in range(3)] for t in (a, b)]
    return stack([x1 * y2 - x2 * y1, x2 * y0 - x0 * y2, x0 * y1 - x1 * y0], d)


LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


@composed
def tensordot(x: Data, y: Data, axes: int | Sequence[int | Sequence[int]] = 2) -> Tensor:
    """The sums of products over `axes`: the last ones of `x` with as many first ones of `y`, or the axes of x and those
    of y as two sequences. The shape is that of x and then that of y, without these. Raises ValueError if the sizes
    differ."""
    cdef Tensor a = ensure_tensor(x), b = ensure_tensor(y)
    cdef int m = a.layout.ndim, n = b.layout.ndim
    if hasattr(axes, "__iter__"):
        pair = [tuple(v) if hasattr(v, "__iter__") else (v,) for v in axes]
        if len(pair) != 2 or len(pair[0]) != len(pair[1]):
            raise ValueError(f"tensordot: axes must be a number or two sequences of the same length, got "
                             f"{described(axes)}")
    else:
        k = lay.read_integer("tensordot", "axes", axes)
        if not 0 <= k <= min(m, n):
            raise ValueError(f"tensordot: axes is {k}, but x is {a.shape} and y is {b.shape}")
        pair = [tuple(range(m - k, m)), tuple(range(k))]
    of_x, of_y = [lay.read_axis(d, m) for d in pair[0]], [lay.read_axis(d, n) for d in pair[1]]
    if len(set(of_x)) < len(of_x) or len(set(of_y)) < len(of_y):
        raise ValueError(f"tensordot: an axis occurs twice in {described(axes)}")
    left, right = list(LETTERS[:m]), list(LETTERS[m:m + n])
    for i, j in zip(of_x, of_y):
        if a.shape[i] != b.shape[j]:
            raise ValueError(f"tensordot: x is {a.shape} and y is {b.shape}; the size {a.shape[i]} of axis {i} of x "
                             f"and the size {b.shape[j]} of axis {j} of y must agree")
        right[j] = left[i]
    result = [v for d, v in enumerate(left) if d not in of_x] + [v for d, v in enumerate(right) if d not in of_y]
    return einsum(f"{''.join(left)},{''.join(right)}->{''.join(result)}", a, b)


@composed
def vecdot(x: Data, y: Data, axis: int = -1) -> Tensor:
    """The sums of products along `axis`, an axis of both of the same size; the others broadcast. Raises ValueError if
    the sizes differ."""
    cdef Tensor a = ensure_tensor(x), b = ensure_tensor(y)
    cdef int d = lay.read_axis(axis, max(a.layout.ndim, b.layout.ndim)) - max(a.layout.ndim, b.layout.ndim)
    if -d > min(a.layout.ndim, b.layout.ndim) or a.shape[d] != b.shape[d]:
        raise ValueError(f"vecdot: x is {a.shape} and y is {b.shape}; both must have axis {axis}, with the same size")
    check_broadcast("vecdot", a, b)
    return einsum("...a,...a->...", last(a, d), last(b, d))


cdef object last(Tensor x, int d):
    """`x` with axis `d`, which is negative, as its last."""
    cdef int n = x.layout.ndim
    return x if d == -1 else permute(x, [i for i in range(n) if i != n + d] + [n + d])
