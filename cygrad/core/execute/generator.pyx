"""Generators of random numbers: a key and a counter. The numbers are a function of these two (kernels/random.pyx), so
the same key and counter give the same numbers again.

A draw advances the counter by the blocks that it takes. It holds the GIL, so two threads never take the same block. The
counter advances after the last allocation of the draw. The draws of a trace advance another generator, seen()."""

cimport cython

import operator
import os

import numpy as np

from libc.float cimport DBL_MAX

from cygrad.core.execute.laws cimport Sampling, cumulative, plan, weights_of
from cygrad.core.store cimport layout as lay
from cygrad.core.interop.numpy cimport check_lendable, window
from cygrad.core.dtypes cimport default_dtype
from cygrad.core.graph.tensor cimport Tensor, array_of, ensure_tensor
from cygrad.core.store.buffer cimport OTHER
from cygrad.core.thread_state cimport flags
from cygrad.core.graph.construct cimport computed, fresh, view_of
from cygrad.core.graph.calls cimport note, tensor_item
from cygrad.core.graph.steps cimport WRITES, Arrays, call, put, trace_call
from cygrad.core.graph.trace cimport positions_of, refuse_step
from cygrad.kernels.shapes cimport index as kernels
from cygrad.kernels cimport laws
from cygrad.kernels cimport random as kernel
from cygrad.kernels.array cimport BOOL, FLOAT64, INT64, UINT64, Array, is_floating, is_real
from cygrad.kernels.shapes.sort cimport order as sort_order
from cygrad.kernels.shapes.sort cimport order_room
from libc.math cimport floor, sqrt
from libc.stdint cimport int64_t, uint64_t

from cygrad.core.dtypes import DTYPES, dtype_number
from cygrad.core.errors import as_float, described

cdef object MASK = (1 << 64) - 1
FIRST = ("integers", "gamma", "poisson")            # a single number is a parameter, which has no default


cdef Generator seen(Generator g):
    """`g`, or another one that stands for it in this thread's trace."""
    cdef dict positions = positions_of(flags())
    cdef Generator p
    if positions is None: return g
    found = positions.get(<size_t><void*>g)
    if found is not None: return (<tuple>found)[0]
    p = Generator.__new__(Generator)
    p.key, p.counter = g.key, g.counter
    positions[<size_t><void*>g] = p, g
    return p


cdef uint64_t key_of(Generator g) except? 0:
    return seen(g).key


cdef uint64_t take(Generator g, uint64_t blocks) noexcept:
    cdef uint64_t first = g.counter
    g.counter += blocks
    return first


cdef uint64_t draw(Generator g, uint64_t blocks) except? -1:
    """Take the next `blocks` blocks. Returns the number of the first."""
    refuse_step("drawing these random numbers")
    return take(seen(g), blocks)


cdef struct Draw:           # the blocks that a random operator draws
    uint64_t blocks
    uint64_t* key           # fields of its attributes
    uint64_t* at


cdef int draw_again(Array* a, const void* parameters, object held) except -1:
    """A kernel: take the next blocks, for the generator and the attributes in `held`."""
    cdef const Draw* d = <const Draw*>parameters
    cdef Generator g = <Generator>(<tuple>held)[0]
    d.key[0], d.at[0] = g.key, take(g, d.blocks)


cdef int draw_for(Generator g, uint64_t blocks, object attributes, uint64_t* key, uint64_t* at) except -1:
    """Take the next `blocks` blocks. Write the generator's key and the number of the first to `key` and `at`, fields of
    an operator's attributes. A program takes blocks again whenever it runs."""
    cdef Generator p = seen(g)
    cdef Draw d
    cdef Arrays a
    key[0], at[0] = p.key, take(p, blocks)
    if p is g: return 0
    a.n, d.blocks, d.key, d.at = 0, blocks, key, at
    trace_call("draw", draw_again, &a, 0, &d, sizeof(d), (g, attributes))
    return note("draw", (g, attributes))


cdef struct Sample:
    int law
    double a, b, c


cdef int sample(Array* x, const void* parameters, object held) except -1:
    """A kernel: fill an array with random numbers of the generator `held`."""
    cdef const Sample* s = <const Sample*>parameters
    cdef Generator g = <Generator>held
    cdef uint64_t first = take(g, kernel.blocks_of(s.law, x.dtype, x.layout.size))
    kernel.sample(s.law, x.dtype, g.key, first, s.a, s.b, s.c, x.layout.size, x.data)


cdef void give_back(Generator g, uint64_t first, uint64_t blocks) noexcept:
    """Undo a draw whose numbers were not used, unless there was another draw since."""
    g = seen(g)
    if g.counter == first + blocks: g.counter = first


cdef Generator given_or_default(generator):
    """The generator that the caller passed, or the default one for None."""
    if generator is None: return <Generator>default_generator
    if isinstance(generator, Generator): return <Generator>generator
    raise TypeError(f"a generator must be a cygrad.random.Generator or None (the default one), got "
                    f"{type(generator).__name__}")


cdef uint64_t read_bits(value, str name) except? 0:
    """Check and convert an integer from 0 to 2^64 - 1. `name` is for the error."""
    try:
        n = operator.index(value)
        if isinstance(value, bool): raise TypeError
    except TypeError:
        raise TypeError(f"{name} must be an integer, got {described(value)}") from None
    if not 0 <= n <= MASK: raise ValueError(f"{name} must be an integer from 0 to 2**64 - 1, got {n}")
    return n


cdef double read_number(value, str name) except? -1:
    if isinstance(value, (bool, str)) or not hasattr(value, "__float__") or getattr(value, "size", 1) != 1:
        raise TypeError(f"{name} must be a number, got {described(value)}")
    return as_float(value, name)


cdef object number_of(given, double read):
    """The number for an error message; for a tensor, its description instead of its contents."""
    return read if given is None or isinstance(given, (int, float)) else described(given)


cdef double read_probability(value) except? -1:
    cdef double p = read_number(value, "p")
    if not 0 <= p <= 1: raise ValueError(f"p must be a probability from 0 to 1, got {described(value)}")
    return p


cdef double read_chance(str caller, str what, value) except? -1:
    """The same for an argument of another function."""
    if isinstance(value, (bool, str)) or not hasattr(value, "__float__") or not 0 <= value <= 1:
        raise ValueError(f"{caller}: {what} must be a probability from 0 to 1, got {described(value)}")
    return value


cdef bint is_sequence(v):
    return isinstance(v, (tuple, list))


cdef bint is_whole(v):
    return isinstance(v, (int, np.integer))


cdef tuple read_call(str name, tuple given, dict named, shape, size):
    """The arguments of a call as (shape, numbers in the order of `named`, None if omitted). The shape is the first
    argument, as for zeros and ones, or the last, as in NumPy, or is named. A sequence is a shape, and so is a single
    integer."""
    cdef list args = list(given)
    cdef dict numbers = dict(named)
    if size is not None:
        if shape is not None: raise TypeError(f"{name}: size is another name for shape; give one of them")
        shape = size
    if shape is not None and args and is_sequence(args[0]):
        raise TypeError(f"{name}: the shape is given twice, as {described(args[0])} and as {described(shape)}")
    if shape is None and args:
        if is_sequence(args[0]): shape = args.pop(0)
        elif is_sequence(args[-1]): shape = args.pop()
        elif len(args) > len(named):
            raise TypeError(f"{name}{described(given)}: which of the numbers is the shape? Write it as a tuple, "
                            f"({described(args[0])},) or ({described(args[-1])},), or as shape=...")
        elif len(args) == 1 and name not in FIRST and is_whole(args[0]): shape = args.pop()
        elif name == "normal" and all([is_whole(n) and n > 0 for n in args]):      # (uniform's may be its bounds)
            raise TypeError(f"normal{given}: a shape is one argument, normal(({args[0]}, {args[1]})); one number of "
                            f"mean {args[0]} and standard deviation {args[1]} is normal((), {args[0]}, {args[1]})")
    for key in named:
        if args and numbers[key] is None: numbers[key] = args.pop(0)
    if args: raise TypeError(f"{name} takes a shape and {' and '.join(named)}; {described(args[0])} is one too many")
    return () if shape is None else shape, *numbers.values()


cdef int floating(dtype) except -1:
    cdef int number = default_dtype() if dtype is None else dtype_number(dtype)
    if not is_real(number): raise TypeError(f"these random numbers must be float32 or float64, not {DTYPES[number]}")
    return number


cdef Tensor drawn(Generator g, int law, shape, int dtype, double a, double b, double c):
    cdef Tensor t = computed(lay.from_shape(shape), dtype, OTHER)
    cdef Sample s
    cdef Arrays x
    x.n, s.law, s.a, s.b, s.c = 0, law, a, b, c
    put(&x, t, WRITES)
    if call(flags(), "random", sample, &x, 0, &s, sizeof(s), g): return t
    take(seen(g), kernel.blocks_of(law, dtype, t.layout.size))
    name = "uniform" if law == kernel.UNIFORM else "normal" if law == kernel.NORMAL else "bernoulli"
    note("random", (g, name, a, b, c, tensor_item(t)))
    return t


cdef int check_counts(Sampling s, dtype) except -1:
    """Raise ValueError if a sample of poisson might not fit the integer dtype."""
    cdef double lam = np.max(window(s.held[0], False), initial=0) if s.held else s.draws.number[0]
    cdef double most = np.iinfo(dtype).max
    if s.draws.n and lam + 10 * sqrt(lam) + 30 > most:
        raise ValueError(f"poisson: lam is {lam:g}; samples of {dtype} need a lam of at most "
                         f"{floor((sqrt(most - 5) - 5) ** 2):.0f}; use a larger dtype")


cdef Tensor sampled(Generator g, str name, int form, shape, int dtype, dict parameters):
    cdef Sampling s = plan(name, <laws.Form>form, shape, dtype, parameters)
    return s.run(key_of(g), draw(g, s.blocks))


cdef int take_rows(Tensor x, Tensor y, Tensor indices, int axis) except -1:
    """y = x[indices] along `axis`"""
    cdef kernels.Places p
    cdef Array a[3]
    a[0], a[1], a[2] = array_of(x), array_of(y), array_of(indices)
    kernels.aim(&p, &a[0], &a[1], axis, 1, &a[2])
    with nogil: kernels.take(&p)


cdef int choose(Generator g, Py_ssize_t n, Tensor order, bint replace, Tensor p, Tensor sums) except -1:
    """Write random numbers from 0 to n - 1 to the vector `order`. If `p` is not None, it has their weights, and `sums`
    the cumulative sums."""
    cdef Py_ssize_t k = order.layout.size
    cdef Tensor all, room
    cdef Array a[2]
    cdef double* w
    if replace and sums is None:
        kernel.integers(key_of(g), draw(g, k), 0, max(n - 1, 0), k, <uint64_t*>order.buffer.data)
    elif replace:
        laws.categories(key_of(g), draw(g, (k + 1) // 2), <double*>sums.buffer.data, 1, n, k,
                        <int64_t*>order.buffer.data)
    elif sums is None:
        all = fresh(lay.from_shape(n), INT64, OTHER)
        kernel.permute(key_of(g), draw(g, n), n, <uint64_t*>all.buffer.data)
        window(order, True)[...] = window(all, False)[:k]
    else:
        if <Py_ssize_t>np.count_nonzero(window(p, False)) < k:
            raise ValueError(f"choice: p has fewer than {k} numbers above 0, so {k} different ones cannot be drawn")
        w = <double*>sums.buffer.data               # the sums are not needed any more
        a[0], a[1] = array_of(sums), array_of(order)
        room = fresh(lay.from_shape(order_room(&a[0], 0, False)), BOOL, OTHER)
        laws.race(key_of(g), draw(g, (n + 1) // 2), <double*>p.buffer.data, n, w)
        sort_order(&a[0], 0, False, NULL, &a[1], False, room.buffer.data)


@cython.binding(False)
@cython.embedsignature.format("clinic")
cdef class Generator:
    """A generator of random numbers: Philox4x32-10 with a 64-bit key, the seed (None: one from the system).

    The same seed gives the same numbers, for any number of threads. `state` is the complete state of a generator;
    setting it repeats the numbers that were drawn from it. A generator can be pickled and copied."""

    @cython.embedsignature.format("c")
    def __init__(self, seed=None):
        refuse_step("making a random generator")
        self.key = int.from_bytes(os.urandom(8), "little") if seed is None else read_bits(seed, "the seed")
        self.counter = 0

    @property
    def state(self):
        """The pair (key, counter): the seed, and the number of 128-bit blocks that have been drawn."""
        cdef Generator g = seen(self)
        return g.key, g.counter

    @state.setter
    def state(self, value):
        if not isinstance(value, (tuple, list)) or len(value) != 2:
            raise TypeError(f"a generator's state must be a pair (key, counter), got {described(value)}")
        cdef Generator g
        key, counter = read_bits(value[0], "the key"), read_bits(value[1], "the counter")
        refuse_step("setting the state of a random generator")
        g = seen(self)
        g.key, g.counter = key, counter

    def __setstate__(self, state):
        self.state = state

    def __reduce__(self):
        return load_generator, self.state

    def __repr__(self):
        key, counter = self.state
        return f"<generator of key {key} at counter {counter}>"

    def normal(self, *given, loc=None, scale=None, shape=None, size=None, dtype=None):
        """normal(shape, loc=0.0, scale=1.0), or in NumPy's order normal(loc, scale, shape): samples of a normal
        distribution with mean `loc` and standard deviation `scale`, float32 or float64 (None: the default dtype).
        Raises ValueError for a negative scale, and TypeError for normal(3, 4), which could be meant as a shape."""
        cdef double mean, width
        shape, loc, scale = read_call("normal", given, {"loc": loc, "scale": scale}, shape, size)
        mean = read_number(0 if loc is None else loc, "loc")
        width = read_number(1 if scale is None else scale, "scale")
        if not width >= 0: raise ValueError(f"normal: scale must be at least 0, got {described(scale)}")
        return drawn(self, kernel.NORMAL, shape, floating(dtype), mean, width, 0)

    def uniform(self, *given, low=None, high=None, shape=None, size=None, dtype=None):
        """uniform(shape, low=0.0, high=1.0), or in NumPy's order uniform(low, high, shape): samples of a uniform
        distribution over [low, high), float32 or float64 (None: the default dtype). Raises ValueError if low is above
        high, or if one of them is not finite."""
        cdef double first, last
        shape, low, high = read_call("uniform", given, {"low": low, "high": high}, shape, size)
        first, last = read_number(0 if low is None else low, "low"), read_number(1 if high is None else high, "high")
        if not 0 <= last - first <= DBL_MAX:
            raise ValueError(f"uniform: low must be at most high, and both must be finite; got {number_of(low, first)} "
                             f"and {number_of(high, last)}")
        return drawn(self, kernel.UNIFORM, shape, floating(dtype), first, last - first, last)

    def bernoulli(self, *given, p=None, shape=None, size=None, dtype="bool"):
        """bernoulli(shape, p=0.5), or bernoulli(p, shape): True with probability `p`, else False; ones and zeros for
        other dtypes. Raises ValueError if p is outside [0, 1]."""
        cdef Tensor y, bits
        cdef double chance
        cdef int number = dtype_number(dtype)
        if len(given) == 2 and is_whole(given[0]) and is_whole(given[1]) and not 0 <= given[1] <= 1:
            raise TypeError(f"bernoulli{given}: a shape is one argument, bernoulli(({given[0]}, {given[1]})), and p is "
                            f"a probability, from 0 to 1")
        if len(given) == 2 and not is_sequence(given[0]) and not is_sequence(given[1]):     # only one can be a shape
            given = ((given[0],), given[1]) if is_whole(given[0]) else (given[0], (given[1],))
        shape, p = read_call("bernoulli", given, {"p": p}, shape, size)
        chance = read_probability(0.5 if p is None else p)
        if number == BOOL: return drawn(self, kernel.BERNOULLI, shape, BOOL, chance, 0, 0)
        y = fresh(lay.from_shape(shape), number, OTHER)
        bits = drawn(self, kernel.BERNOULLI, shape, BOOL, chance, 0, 0)
        window(y, True)[...] = window(bits, False)
        return y

    def integers(self, *given, low=None, high=None, shape=None, size=None, dtype="int64", endpoint=False):
        """integers(shape, low, high), or in NumPy's order integers(low, high, shape): integers from a uniform
        distribution over [low, high), with endpoint=True over [low, high]. A single bound is `high`, and low is 0.
        Raises ValueError for an empty range, or a range that the dtype cannot represent."""
        cdef Tensor y, wide
        cdef uint64_t first
        cdef int number = dtype_number(dtype)
        shape, low, high = read_call("integers", given, {"low": low, "high": high}, shape, size)
        if high is None: low, high = 0, low
        try:
            minimum, maximum = operator.index(low), operator.index(high) - (not endpoint)
        except TypeError:
            raise TypeError(f"integers: low and high must be integers, got {described(low)} and "
                            f"{described(high)}") from None
        if is_floating(number):
            raise TypeError(f"integers: the dtype must be an integer or bool dtype, got {DTYPES[number]}")
        if maximum < minimum:
            raise ValueError(f"integers: the range is empty: from {described(low)} to {described(high)}")
        bounds = (0, 1) if number == BOOL else (np.iinfo(DTYPES[number]).min, np.iinfo(DTYPES[number]).max)
        if minimum < bounds[0] or maximum > bounds[1]:
            raise ValueError(f"integers: {DTYPES[number]} holds {bounds[0]} to {bounds[1]}, not {minimum} to {maximum}")
        y = fresh(lay.from_shape(shape), number, OTHER)
        wide = y
        if number != INT64 and number != UINT64: wide = fresh(lay.incref(y.layout), INT64, OTHER)
        first = draw(self, y.layout.size)
        kernel.integers(key_of(self), first, minimum & MASK, maximum - minimum, y.layout.size,
                        <uint64_t*>wide.buffer.data)
        if wide is not y: np.copyto(window(y, True), window(wide, False), casting="unsafe")
        return y

    def permutation(self, x):
        """A random permutation of 0 to x - 1 (int64), all equally likely. For a tensor, array or list: a copy with its
        rows (elements along the first axis) in random order. While recording, a tensor that gradients flow through
        raises RuntimeError."""
        cdef Tensor order, y, rows = None
        cdef uint64_t first
        if is_whole(x) and not isinstance(x, bool):
            if x < 0: raise ValueError(f"permutation: the number of elements must be at least 0, got {described(x)}")
        else:
            rows = ensure_tensor(x)
            check_lendable(rows, "permutation()")
            if rows.layout.ndim == 0:
                raise ValueError(f"permutation: x must be an integer, or a tensor, array or list with rows, got "
                                 f"{described(x)}")
            y = fresh(lay.dense_like(rows.layout), rows.dtype, OTHER)
            x = rows.layout.shape[0]
        order = fresh(lay.from_shape(x), INT64, OTHER)
        first = draw(self, x)
        kernel.permute(key_of(self), first, order.layout.size, <uint64_t*>order.buffer.data)
        if rows is None: return order
        take_rows(rows, y, order, 0)
        return y

    def shuffle(self, x, axis=0):
        """Put the slices of the tensor `x` along `axis` into random order, in place, all orders equally likely. While
        recording, a tensor that gradients flow through raises RuntimeError. permutation(x) returns a copy."""
        cdef Tensor t, y, order
        cdef uint64_t first
        cdef int d
        if not isinstance(x, Tensor):
            raise TypeError(f"shuffle: x must be a tensor, which is written in place, got {described(x)}; "
                            f"permutation(x) returns a copy")
        t = x
        check_lendable(t, "shuffle()")
        if t.layout.ndim == 0: raise ValueError("shuffle: a 0-d tensor has no slices")
        d = lay.read_axis(axis, t.layout.ndim)
        y = fresh(lay.dense_like(t.layout), t.dtype, OTHER)
        order = fresh(lay.from_shape(t.layout.shape[d]), INT64, OTHER)
        first = draw(self, order.layout.size)
        try:
            kernel.permute(key_of(self), first, order.layout.size, <uint64_t*>order.buffer.data)
            take_rows(t, y, order, d)
            t.copy_(y)
        except:
            give_back(self, first, order.layout.size)
            raise

    def choice(self, a, size=None, replace=True, p=None, *, shape=None):
        """Random elements of `a` in the given shape (None: one), as numpy.random.Generator.choice: numbers from 0 to
        a - 1 (int64), or slices of a tensor, array or list along its first axis. `replace` False draws none twice. `p`
        are weights; they need not sum to 1. Raises ValueError if there are not enough elements."""
        cdef Tensor rows = None, order, flat, sums = None, weights = None, y
        cdef Py_ssize_t n
        if size is not None and shape is not None:
            raise TypeError("choice: size is another name for shape; give one of them")
        wanted = () if size is None and shape is None else size if shape is None else shape
        if is_whole(a) and not isinstance(a, bool): n = lay.read_integer("choice", "a", a, 0, (1 << 63) - 1)
        else:
            rows = ensure_tensor(a)
            check_lendable(rows, "choice()")
            if rows.layout.ndim == 0:
                raise ValueError(f"choice: a must be an integer, or a tensor, array or list with rows, got "
                                 f"{described(a)}")
            n = rows.layout.shape[0]
        order = fresh(lay.from_shape(wanted), INT64, OTHER)
        if n < 0 or (n == 0 and order.layout.size):
            raise ValueError(f"choice: cannot choose from {n} elements")
        if not replace and order.layout.size > n:
            raise ValueError(f"choice: cannot choose {order.layout.size} different elements from {n}; pass "
                             f"replace=True")
        if p is not None:
            sums = cumulative("choice", "p", p, 0, False)
            if sums.layout.ndim != 1 or sums.layout.size != n:
                raise ValueError(f"choice: p has shape {sums.shape}; it must have one number for each of {n} elements")
            weights = fresh(lay.from_shape(n), FLOAT64, OTHER)
            window(weights, True)[...] = window(weights_of(p), False)
        flat = view_of(order, lay.from_shape(order.layout.size))
        if rows is None:
            choose(self, n, flat, replace, weights, sums)
            return order
        y = fresh(lay.from_shape((flat.layout.size, *rows.shape[1:])), rows.dtype, OTHER)
        choose(self, n, flat, replace, weights, sums)
        take_rows(rows, y, flat, 0)
        return y.reshape((*order.shape, *rows.shape[1:]))

    def categorical(self, logits=None, shape=None, axis=-1, *, probs=None, size=None):
        """Random categories (int64): indices along `axis` with probabilities softmax(logits), as in
        jax.random.categorical, or proportional to `probs` (at least 0; they need not sum to 1). Each of the other
        dimensions has its own probabilities. `shape` is that of the result and ends with these dimensions (None: no
        more). Draws by the cumulative sums of each row in float64. Warns if all rows of `logits` look like
        probabilities, at least 0 and with sum 1. Raises ValueError for rows without a sum."""
        cdef Tensor sums, y
        cdef uint64_t first, key
        cdef Py_ssize_t k
        if (logits is None) == (probs is None): raise TypeError("categorical: pass logits or probs, one of them")
        if size is not None:
            if shape is not None: raise TypeError("categorical: size is another name for shape; give one of them")
            shape = size
        sums = cumulative("categorical", "logits" if probs is None else "probs", logits if probs is None else probs,
                          axis, probs is None)
        batch = sums.shape[:-1]
        y = fresh(lay.from_shape(batch if shape is None else shape), INT64, OTHER)
        if batch and y.shape[-len(batch):] != batch:
            raise ValueError(f"categorical: shape {y.shape} must end with {batch}, the dimensions beside axis "
                             f"{described(axis)}")
        if y.layout.size == 0: return y
        k = sums.layout.shape[sums.layout.ndim - 1]
        first = draw(self, (y.layout.size + 1) // 2)
        key = key_of(self)
        with nogil:
            laws.categories(key, first, <double*>sums.buffer.data, sums.layout.size // k, k, y.layout.size,
                            <int64_t*>y.buffer.data)
        return y

    def exponential(self, *given, scale=None, shape=None, size=None, dtype=None):
        """exponential(shape, scale=1.0), or exponential(scale, shape): samples of an exponential distribution with mean
        `scale`, a number or a tensor: -scale log u. For a gradient of the scale, multiply a tensor by
        exponential(shape). Raises ValueError for a negative scale."""
        shape, scale = read_call("exponential", given, {"scale": scale}, shape, size)
        return sampled(self, "exponential", laws.EXPONENTIAL, shape, floating(dtype),
                       {"scale": 1.0 if scale is None else scale})

    def gumbel(self, *given, loc=None, scale=None, shape=None, size=None, dtype=None):
        """gumbel(shape, loc=0.0, scale=1.0), or gumbel(loc, scale, shape): samples of a Gumbel distribution,
        loc - scale log(-log u); numbers or tensors. For gradients, loc + scale * gumbel(shape). Raises ValueError for a
        negative scale."""
        shape, loc, scale = read_call("gumbel", given, {"loc": loc, "scale": scale}, shape, size)
        return sampled(self, "gumbel", laws.GUMBEL, shape, floating(dtype),
                       {"loc": 0.0 if loc is None else loc, "scale": 1.0 if scale is None else scale})

    def gamma(self, *given, a=None, scale=None, shape=None, size=None, dtype=None):
        """gamma(shape, a, scale=1.0), or gamma(a, scale, shape): samples of a gamma distribution with the density
        x^(a - 1) e^(-x / scale), up to a factor; numbers or tensors. By Marsaglia and Tsang, ACM TOMS 26 (2000). No
        gradient flows to a; scale * gamma(shape, a) has one to scale. Raises ValueError for negative parameters."""
        shape, a, scale = read_call("gamma", given, {"a": a, "scale": scale}, shape, size)
        return sampled(self, "gamma", laws.GAMMA, shape, floating(dtype),
                       {"a": a, "scale": 1.0 if scale is None else scale})

    def poisson(self, *given, lam=None, shape=None, size=None, dtype="int64"):
        """poisson(shape, lam), or poisson(lam, shape): samples of a Poisson distribution with mean `lam`, a number or a
        tensor. Below 10 by inversion, else by transformed rejection (Hoermann 1993). Raises ValueError for a lam
        outside of 0 to 2**62, or so large that the integer `dtype` might not hold a sample: lam + 10 sqrt(lam) + 30,
        which a sample exceeds with a probability below 1e-19, must fit."""
        cdef Tensor y = None
        cdef Sampling s
        cdef int number = dtype_number(dtype)
        shape, lam = read_call("poisson", given, {"lam": lam}, shape, size)
        if number == BOOL: raise TypeError("poisson: the dtype must hold counts, got bool")
        s = plan("poisson", laws.POISSON, shape, INT64, {"lam": lam})
        if not is_floating(number): check_counts(s, DTYPES[number])
        if number != INT64: y = fresh(lay.incref(s.y.layout), number, OTHER)
        s.run(key_of(self), draw(self, s.blocks))
        if y is None: return s.y
        np.copyto(window(y, True), window(s.y, False), casting="unsafe")
        return y

    def truncated_normal(self, shape=None, low=-2.0, high=2.0, loc=0.0, scale=1.0, *, size=None, dtype=None):
        """Samples of a normal distribution with mean `loc` and standard deviation `scale`, given that they are between
        `low` and `high`, as in torch.nn.init.trunc_normal_; numbers or tensors, of which `shape` None is the common
        shape. Exact in the tails too (Robert 1995). Raises ValueError if low is above high."""
        shape = read_call("truncated_normal", (), {}, shape, size)[0]
        return sampled(self, "truncated_normal", laws.TRUNCATED, shape, floating(dtype),
                       {"low": low, "high": high, "loc": loc, "scale": scale})


def load_generator(key, counter):
    """Make the generator of a pickle."""
    g = Generator(key)
    g.state = key, counter
    return g

load_generator.__module__ = "cygrad.core.pickling"  # the path in pickles, which never changes (pickles.py)


default_generator = Generator()
