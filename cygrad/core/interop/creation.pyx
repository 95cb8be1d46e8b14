"""Creating tensors of zeros, ones, one value or a range of numbers."""

import math

import numpy as np

from libc.stdint cimport int64_t

from cygrad.core.store cimport layout as lay
from cygrad.core.dtypes cimport default_dtype
from cygrad.core.graph.construct cimport computed, fresh
from cygrad.core.graph.tensor cimport Tensor
from cygrad.core.graph.calls cimport note, tensor_item
from cygrad.core.graph.steps cimport WRITES, Arrays, call, fill_with_zeros, put
from cygrad.core.graph.trace cimport lists_calls
from cygrad.core.interop.numpy cimport as_array, copy_in, window
from cygrad.core.store.buffer cimport OTHER
from cygrad.core.thread_state cimport Flags, flags
from cygrad.kernels cimport by_dtype, driver
from cygrad.kernels.array cimport INT64, Array, Layout, is_real, real
from cygrad.kernels.by_dtype cimport put_number

from cygrad.core.dtypes import DTYPES, dtype_number
from cygrad.core.errors import as_float, described
from cygrad.core.interop.numpy import asarray
from cygrad.core.store.layout import check_size

cdef enum:
    BLOCK = 8192            # arange and linspace compute this many elements at a time

cdef driver.Loop* COPY = driver.find("copy")
cdef Py_ssize_t ZERO = 0, ONE = 1

HEAD = "head gradient"
cdef str HEAD_STEP = HEAD + " (backward)"


cdef Tensor new_dense(shape, dtype):
    """An uninitialised tensor; dtype None is the default dtype."""
    return fresh(lay.from_shape(shape), default_dtype() if dtype is None else dtype_number(dtype), OTHER)


cdef inline bint is_integer(v) noexcept:
    return isinstance(v, (int, np.integer)) and not isinstance(v, bool)


cdef tuple read_sizes(str name, shape, tuple more, dtype):
    """The shape and the dtype in the calls name(shape, dtype) and name(2, 3, dtype)."""
    if dtype is None and not is_integer(more[-1]): dtype, more = more[-1], more[:-1]
    if more:
        shape = (shape, *more)
        for n in shape:
            if not is_integer(n):
                raise TypeError(f"{name} takes a shape (a tuple or integers) and then a dtype; got {described(shape)}")
    return shape, dtype


cdef inline object finish(Tensor t, bint requires_grad):
    """`t`, made a variable if requires_grad."""
    return t.requires_grad_() if requires_grad else t


def empty(shape: int | Sequence[int], *more: Any, dtype: npt.DTypeLike | None = None,
          requires_grad: bool = False) -> Tensor:
    """An uninitialised tensor. The shape is a tuple or integers, empty(2, 3); dtype None is the default dtype."""
    if more: shape, dtype = read_sizes("empty", shape, more, dtype)
    return finish(new_dense(shape, dtype), requires_grad)


def zeros(shape: int | Sequence[int], *more: Any, dtype: npt.DTypeLike | None = None,
          requires_grad: bool = False) -> Tensor:
    """A tensor of zeros. The shape is a tuple or integers, zeros(2, 3); dtype None is the default dtype."""
    cdef Tensor t
    if more: shape, dtype = read_sizes("zeros", shape, more, dtype)
    t = computed(lay.from_shape(shape), default_dtype() if dtype is None else dtype_number(dtype), OTHER)
    fill_with_zeros(t)
    if lists_calls(): note("zeros", (tensor_item(t),))
    return finish(t, requires_grad)


def zeros_beside(Tensor x, shape: tuple[int, ...], place: int, axis: int) -> Tensor:
    """Zeros in the dtype of `x`. Size `place` of the shape is that of an axis of `x`, from which a captured net takes
    it for each x that it is given."""
    cdef Tensor t = computed(lay.from_shape(shape), x.dtype, OTHER)
    fill_with_zeros(t)
    if lists_calls(): note("zeros", (tensor_item(t), tensor_item(x), place, axis))
    return t


def full(shape: int | Sequence[int], value: float, dtype: npt.DTypeLike | None = None, *,
         requires_grad: bool = False) -> Tensor:
    """A tensor filled with `value`; dtype None is the dtype of tensor(value)."""
    cdef Tensor t
    if dtype is None: dtype = as_array(value, None).dtype
    t = new_dense(shape, dtype)
    if is_real(t.dtype) and isinstance(value, (int, float)):
        fill(t.buffer.data, t.layout.size, t.dtype, as_float(value, "full: value"))
    else:
        with np.errstate(all="ignore"): window(t, True)[...] = value
    return finish(t, requires_grad)


cdef void fill(char* data, Py_ssize_t n, int dtype, double value) noexcept:
    """Fill the memory of `n` floating elements with `value`: copies of an array whose stride is 0."""
    cdef Layout whole = Layout(1, 1, True, n, 0, &n, &ONE), repeated = Layout(1, 1, False, n, 0, &n, &ZERO)
    cdef Array a[2]
    cdef double number
    put_number(dtype, &number, 0, value)
    a[0], a[1] = Array(<char*>&number, &repeated, dtype), Array(data, &whole, dtype)
    driver.each(COPY, a)


cdef int fill_kernel(Array* a, const void* parameters, object held) except -1:
    """A kernel: fill a dense array with a number."""
    fill(a.data, a.layout.size, a.dtype, (<const double*>parameters)[0])


cdef Tensor head_full(Tensor y, double value):
    """A head gradient filled with `value`, in the shape and dtype of the output `y`. A net that is captured has a
    constant for a number that the caller gave, so that needs real memory; a program has planned memory."""
    cdef Flags* f = flags()
    cdef void* caller = f.op
    cdef bint listed = lists_calls()
    cdef Arrays a
    cdef Tensor t
    f.op = <void*>HEAD
    try:
        t = (fresh if listed else computed)(lay.dense_like(y.layout), y.dtype, OTHER)
    finally:
        f.op = caller
    if listed: fill(t.buffer.data, t.layout.size, t.dtype, value)
    else:
        a.n = 0
        put(&a, t, WRITES)
        call(f, HEAD_STEP, fill_kernel, &a, 0, &value, sizeof(value), None)
    return t


def head_ones(x):
    """Ones like `x`, as backward makes them for an output."""
    t = asarray(x)
    return head_full(<Tensor>t, 1) if is_real((<Tensor>t).dtype) else ones_like(t)


def ones(shape: int | Sequence[int], *more: Any, dtype: npt.DTypeLike | None = None,
         requires_grad: bool = False) -> Tensor:
    """A tensor of ones. The shape is a tuple or integers, ones(2, 3); dtype None is the default dtype."""
    if more: shape, dtype = read_sizes("ones", shape, more, dtype)
    return full(shape, 1, DTYPES[default_dtype()] if dtype is None else dtype, requires_grad=requires_grad)


def zeros_like(x: Data, dtype: npt.DTypeLike | None = None, *, requires_grad: bool = False) -> Tensor:
    """A tensor of zeros with the shape of `x` and, if dtype is None, its dtype."""
    x = asarray(x)
    return zeros(x.shape, dtype=x.dtype if dtype is None else dtype, requires_grad=requires_grad)

def ones_like(x: Data, dtype: npt.DTypeLike | None = None, *, requires_grad: bool = False) -> Tensor:
    """A tensor of ones with the shape of `x` and, if dtype is None, its dtype."""
    x = asarray(x)
    return ones(x.shape, dtype=x.dtype if dtype is None else dtype, requires_grad=requires_grad)

def empty_like(x: Data, dtype: npt.DTypeLike | None = None, *, requires_grad: bool = False) -> Tensor:
    """An uninitialised tensor with the shape of `x` and, if dtype is None, its dtype."""
    x = asarray(x)
    return empty(x.shape, dtype=x.dtype if dtype is None else dtype, requires_grad=requires_grad)

def full_like(x: Data, value: float, dtype: npt.DTypeLike | None = None, *, requires_grad: bool = False) -> Tensor:
    """A tensor filled with `value`, with the shape of `x` and, if dtype is None, its dtype."""
    x = asarray(x)
    return full(x.shape, value, x.dtype if dtype is None else dtype, requires_grad=requires_grad)


cdef object from_array(a, dtype):
    """A tensor with the elements of `a` and the dtype that number_for() selects."""
    return copy_in(a, number_for(a.dtype, dtype))


cdef int number_for(given, dtype) except -1:
    """The number of `dtype`. None means the default dtype if `given` is floating, else `given`."""
    if dtype is not None: return dtype_number(dtype)
    return default_dtype() if given.kind == "f" else dtype_number(given)


cdef void integers(int64_t* y, Py_ssize_t n, int64_t first, int64_t step) noexcept:
    cdef Py_ssize_t i
    for i in range(n): y[i] = first + i * step

cdef void floats(real* y, Py_ssize_t n, double first, double step) noexcept:
    cdef Py_ssize_t i
    for i in range(n): y[i] = <real>(first + i * step)


cdef Tensor spaced(Py_ssize_t n, given, int dtype, first, second, step):
    """`n` numbers of `dtype`: first + i step, computed as in NumPy in the dtype `given`, by blocks of NumPy's if it is
    another one than the loops above have. Element 1 is `second`, unless that is None."""
    cdef Tensor t = fresh(lay.dense(1, &n), dtype, OTHER)
    if given == np.int64 and dtype == INT64:
        integers(<int64_t*>t.buffer.data, n, first, step)
        return t
    target = window(t, True)
    if given == np.float64 and is_real(dtype):
        by_dtype.call(dtype, floats[float], floats[double], <void*>t.buffer.data, n, <double>first, <double>step)
        with np.errstate(all="ignore"):
            if n > 1 and second is not None: target[1:2] = np.array([second])
        return t
    places = np.arange(min(n, BLOCK), dtype=given)
    block = np.empty_like(places)
    with np.errstate(all="ignore"):
        for start in range(0, n, BLOCK):
            part = block[:min(<Py_ssize_t>BLOCK, n - start)]
            np.add(places[:len(part)], start, out=part, casting="unsafe")
            part *= step
            part += first
            if start == 0 and n > 1 and second is not None: part[1] = second
            target[start:start + len(part)] = part
    return t


cdef enum:
    FEW = 1 << 20           # sizes that need no check

cdef object INTEGERS = np.dtype("int64")


def arange(start: float, stop: float | None = None, step: float = 1, dtype: npt.DTypeLike | None = None, *,
           requires_grad: bool = False) -> Tensor:
    """Numbers from `start` up to but not including `stop` in steps of `step`. A single argument is `stop`, and `start`
    is 0. Raises ValueError for a step of 0 or an endless range."""
    if step == 0: raise ValueError("arange: step must not be 0")
    if stop is None: start, stop = 0, start
    if type(start) is int and type(stop) is int and type(step) is int:
        n = -((start - stop) // step)
        if 0 < n < FEW and -FEW < start < FEW and -FEW < step < FEW:        # no check is needed
            return finish(spaced(n, INTEGERS, number_for(INTEGERS, dtype), start, None, step), requires_grad)
    check_range(start, stop, step)
    if all([isinstance(v, (int, float, np.integer, np.floating)) for v in (start, stop, step)]):
        given = np.array([start, stop, step]).dtype
        first, last, each = [v.item() if isinstance(v, np.generic) else v for v in (start, stop, step)]
        ratio = (last - first) / each if given == np.int64 or given == np.float64 else 0
        if ratio != 0:
            n, second = max(math.ceil(ratio), 0), None
            if given == np.float64:                 # NumPy's step is the rounded second number minus the first
                first, second = float(first), float(first + each)
                each = second - first
            return finish(spaced(n, given, number_for(given, dtype), first, second, each), requires_grad)
    try: a = np.arange(start, stop, step)           # empty, or a small dtype
    except TypeError:
        raise TypeError(f"arange: start, stop and step must be numbers, got {described((start, stop, step))}") from None
    return finish(from_array(a, dtype), requires_grad)


cdef int check_range(start, stop, step) except -1:
    """Raise ValueError for a range that is endless or longer than a tensor can be. NumPy rejects other types."""
    if not all([isinstance(v, (int, float, np.integer, np.floating)) for v in (start, stop, step)]): return 0
    start, stop, step = [int(v) if isinstance(v, (int, np.integer)) else float(v) for v in (start, stop, step)]
    try:
        n = -((start - stop) // step)               # rounded up
    except OverflowError:                           # a float and an integer too large for a float
        n = math.inf
    if n != n: raise ValueError(f"arange: from {start} up to {stop} by {step} is not a range; give finite numbers")
    check_size(n, f"arange: from {start} up to {stop} by {step} there are {'endless' if n == math.inf else n} numbers")


cdef double number(str name, str what, value) except? -1:
    if isinstance(value, str) or not hasattr(value, "__float__"):
        raise TypeError(f"{name}: {what} must be a number, got {described(value)}")
    return as_float(value, f"{name}: {what}")


def linspace(start: float, stop: float, num: int, dtype: npt.DTypeLike | None = None, endpoint: bool = True, *,
             requires_grad: bool = False) -> Tensor:
    """`num` evenly spaced numbers from `start` to `stop`, which is the last one unless endpoint is False."""
    cdef Tensor t
    cdef double first = number("linspace", "start", start), last = number("linspace", "stop", stop), step
    cdef Py_ssize_t n
    num = lay.read_integer("linspace", "num", num, 0)
    check_size(num, f"linspace: {described(num)} numbers")
    n = num
    step = (last - first) / (n - bool(endpoint)) if n > 1 else 0
    if n < 2 or step == 0 and first != last:        # no step, or a step that underflows
        with np.errstate(all="ignore"): a = np.linspace(first, last, num, endpoint=endpoint)
        return finish(from_array(a, dtype), requires_grad)
    t = spaced(n, np.dtype(np.float64), number_for(np.dtype(np.float64), dtype), first, None, step)
    if endpoint:
        with np.errstate(all="ignore"): window(t, True)[-1:] = np.array([last])
    return finish(t, requires_grad)


def eye(n_rows: int, n_cols: int | None = None, k: int = 0, dtype: npt.DTypeLike | None = None, *,
        requires_grad: bool = False) -> Tensor:
    """A matrix with ones on the k-th diagonal and zeros elsewhere."""
    rows = lay.read_integer("eye", "n_rows", n_rows)
    columns = rows if n_cols is None else lay.read_integer("eye", "n_cols", n_cols)
    if not (0 <= rows < FEW and 0 <= columns < FEW):
        what = f"eye: {rows} rows of {columns} are {rows * columns} numbers"
        for n in (rows, columns, rows * columns): check_size(n, what)
    cdef Tensor t = full((rows, columns), 0, DTYPES[default_dtype()] if dtype is None else dtype)
    k = max(-rows, min(lay.read_integer("eye", "k", k), columns))
    first, n = (k, min(rows, columns - k)) if k >= 0 else (-k * columns, min(rows + k, columns))
    if n > 0: window(t, True).reshape(-1)[first:first + (n - 1) * (columns + 1) + 1:columns + 1] = 1
    return finish(t, requires_grad)
