"""Memory that operations take from malloc and not from the pool. `python tests/support/unseen.py` prints a line of JSON
for each case, [name, dtype, {"forward": bytes, "backward": bytes, "graph": bytes}]. The preloaded library of `build()`
counts every block of malloc in the process. Tensors do not count, because the pool uses mmap. Each case is called once
before, so that one-time allocations do not count."""

import ctypes
import inspect
import json
import shlex
import subprocess
import sys
import sysconfig

import numpy as np

import cygrad as cg
from cygrad.core.interop.numpy import tensor
from cygrad.ops.shapes import index, masks, slices, sort, window
from cygrad.ops.reductions import scan
from tests.samples import TABLE

SOURCE = r"""
#include <malloc.h>
#include <stdatomic.h>
#include <stddef.h>
extern void* __libc_malloc(size_t);
extern void* __libc_calloc(size_t, size_t);
extern void* __libc_realloc(void*, size_t);
extern void* __libc_memalign(size_t, size_t);
extern void __libc_free(void*);
static atomic_long live, peak;
static void* count(void* p) {
    if (p) {
        long now = atomic_fetch_add(&live, (long)malloc_usable_size(p)) + (long)malloc_usable_size(p);
        long most = atomic_load(&peak);
        while (now > most && !atomic_compare_exchange_weak(&peak, &most, now)) {}
    }
    return p;
}
void* malloc(size_t n) { return count(__libc_malloc(n)); }
void* calloc(size_t n, size_t m) { return count(__libc_calloc(n, m)); }
void* memalign(size_t a, size_t n) { return count(__libc_memalign(a, n)); }
void* aligned_alloc(size_t a, size_t n) { return count(__libc_memalign(a, n)); }
int posix_memalign(void** p, size_t a, size_t n) { *p = count(__libc_memalign(a, n)); return *p ? 0 : 12; }
void free(void* p) {
    if (p) atomic_fetch_sub(&live, (long)malloc_usable_size(p));
    __libc_free(p);
}
void* realloc(void* p, size_t n) {
    long before = p ? (long)malloc_usable_size(p) : 0;
    void* q = __libc_realloc(p, n);
    if (q || n == 0) atomic_fetch_sub(&live, before);
    return count(q);
}
void unseen_begin(void) { atomic_store(&peak, atomic_load(&live)); }
long unseen_peak(void) { return atomic_load(&peak); }
long unseen_live(void) { return atomic_load(&live); }
"""

SIDE = 512
N = SIDE * SIDE
WHOLE = ("bool", "int8", "int32", "int64", "uint16")
REALS = ("float32", "float64")
EVERY = WHOLE + REALS
rng = np.random.default_rng(0)


def build(path):
    """Compile the counter. Returns None, or the reason why that is impossible."""
    if sys.platform != "linux":
        return "the counter is for glibc"
    compiler = shlex.split(sysconfig.get_config_var("CC") or "cc")
    result = subprocess.run([*compiler, "-O1", "-shared", "-fPIC", "-xc", "-", "-o", path], input=SOURCE, text=True,
                            capture_output=True)
    return None if result.returncode == 0 else result.stderr


# ---- the cases -------------------------------------------------------------------------------------------------------

def numbers(*shape, dtype="float32"):
    """Small numbers, many of them equal."""
    a = rng.integers(-100, 100, shape)
    return (a > 0) if dtype == "bool" else (a % 100 if dtype.startswith("u") else a).astype(dtype)


def places(*shape, below):
    return cg.tensor(rng.integers(0, below, shape))


class Case:
    """`f(*tensors)` for tensors of these shapes, in each of the dtypes. `like`: arrays whose values are repeated to
    fill a matrix. `backward`: whether to compute gradients too."""

    def __init__(self, name, f, *shapes, dtypes=EVERY, like=None, backward=True):
        self.name, self.f, self.shapes, self.dtypes, self.like = name, f, shapes, dtypes, like
        self.backward = backward

    def tensors(self, dtype):
        if self.like is not None:
            return [cg.tensor(np.resize(a, (SIDE, SIDE)).astype(a.dtype if a.dtype == bool else dtype))
                    for a in self.like]
        return [cg.tensor(numbers(*shape, dtype=dtype)) for shape in self.shapes]


S = (SIDE, SIDE)
FLAT = (N,)
CUBE = (64, 64, 64)


def prepare():
    """Make the tensors that cases share. (An import of this file makes none.)"""
    global LABELS, ROWS, ALONG, BITS, MASK, HALF, DIAGONAL, RAMP, CORNERS
    LABELS, ROWS, ALONG = places(SIDE, below=SIDE), places(SIDE, below=SIDE), places(SIDE, SIDE, below=SIDE)
    BITS, MASK = places(N, below=2), cg.tensor(rng.integers(0, 2, S).astype(bool))
    HALF = cg.tensor(np.arange(N).reshape(S) % 2 == 0)
    DIAGONAL = cg.tensor(np.diag(np.linspace(1, 2, SIDE)))
    RAMP = cg.tensor(np.arange(SIDE, dtype="float32"))
    CORNERS = cg.tensor(rng.integers(0, 4, (8, 8, 64, 64)).astype("uint8"))



def elementwise():
    for row in TABLE:
        if row.family not in ("elementwise", "functions", "special", "compare"):
            continue
        args, kwargs = row.tries[0]
        at = [i for i, a in enumerate(args) if isinstance(a, np.ndarray)]

        def call(*xs, row=row, args=args, kwargs=kwargs, at=at):
            given = list(args)
            for i, x in zip(at, xs, strict=True):
                given[i] = x
            return row.tested(*given, **kwargs)

        like = [args[i] for i in at]
        bits = row.name.startswith("bitwise")
        if bits:
            like = [a.astype(int) for a in like]
        yield Case(row.name, call, dtypes=WHOLE if bits else EVERY, like=like)
        if row.name in ("add", "where", "maximum", "neg"):
            yield Case(f"{row.name} of transposed", lambda *xs, call=call: call(*[x.T for x in xs]), like=like)


def along_axes(row, dtypes=EVERY, several=True):
    f = row.function
    yield Case(row.name, lambda x: f(x), S, dtypes=dtypes)
    yield Case(f"{row.name} of rows", lambda x: f(x, axis=1), (64, N // 64), dtypes=dtypes)
    yield Case(f"{row.name} of columns", lambda x: f(x, axis=0), (64, N // 64), dtypes=dtypes)
    yield Case(f"{row.name} of columns, transposed", lambda x: f(x.T, axis=0), (N // 64, 64), dtypes=dtypes)
    if several:
        yield Case(f"{row.name} of two axes", lambda x: f(x, axis=(0, 2)), CUBE, dtypes=dtypes)


def running_statistics():
    return cg.ones(SIDE), cg.ones(SIDE)


def tables():
    """Cases of the rows of the table. Names start with the row's name."""
    row = {r.name: r for r in TABLE}
    yield from elementwise()
    yield Case("prod of odd rows", lambda x: cg.prod(x, 1), (N // 3, 3))
    for name in ("sum", "mean", "prod", "any", "all", "var", "std", "norm", "max", "min", "logsumexp"):
        yield from along_axes(row[name])
    for p in (0, 1, 3, float("inf"), -float("inf")):
        yield Case(f"norm of order {p}", lambda x, p=p: cg.norm(x, p, 1), S, dtypes=REALS)
    for name in ("argmax", "argmin"):
        yield from along_axes(row[name], several=False)
    for axis in (0, 1, None):
        yield Case(f"cumsum along {axis}", lambda x, axis=axis: cg.cumsum(x, axis), S)
        yield Case(f"cumprod along {axis}", lambda x, axis=axis: cg.cumprod(x, axis), S)
        yield Case(f"cumprod of transposed along {axis}", lambda x, axis=axis: cg.cumprod(x.T, axis), S)
        yield Case(f"cummax along {axis}", lambda x, axis=axis: cg.cummax(x, axis)[0], S)
        yield Case(f"cummin of transposed along {axis}", lambda x, axis=axis: cg.cummin(x.T, axis)[0], S)
    yield Case("recurrence", lambda x, a: scan.recurrence(x, a.T, 0), (SIDE, SIDE), (SIDE, SIDE), dtypes=REALS)
    yield Case("nextafter", cg.nextafter, S, S, dtypes=REALS)
    yield Case("signbit", cg.signbit, S, dtypes=REALS)
    for name in ("bitwise_left_shift", "bitwise_right_shift"):
        yield Case(name, row[name].function, S, S, dtypes=("int32", "int64"))
    yield Case("searchsorted", lambda x, v: cg.searchsorted(x[::2], v), FLAT, S)
    yield Case("reshape", lambda x: x.reshape(FLAT), S)
    yield Case("reshape of transposed", lambda x: x.T.reshape(FLAT), S)
    for name in ("transpose", "squeeze", "flip", "copy", "tril", "triu"):
        yield Case(name, row[name].function, S)
    yield Case("copy of transposed", lambda x: x.T.copy(), S)
    yield Case("permute", lambda x: cg.permute(x, (1, 0)), S)
    yield Case("expand_dims", lambda x: cg.expand_dims(x, 0), S)
    yield Case("broadcast_to", lambda x: cg.broadcast_to(x, (4, *S)), S)
    for dtype in EVERY:
        yield Case(f"astype {dtype}", lambda x, dtype=dtype: x.astype(dtype), S)
        yield Case(f"astype {dtype} of transposed", lambda x, dtype=dtype: x.T.astype(dtype), S)
    yield Case("concat", lambda x, y: cg.concat([x, y], 1), S, S)
    yield Case("stack", lambda x, y: cg.stack([x, y], 1), S, S)
    yield Case("split", lambda x: cg.split(x, 2)[1], S)
    yield Case("pad", lambda x: cg.pad(x, 3), S)
    yield Case("pad with a number", lambda x: cg.pad(x, 3, value=1), S)
    for mode in ("edge", "reflect", "symmetric", "wrap"):
        yield Case(f"pad with {mode}", lambda x, mode=mode: cg.pad(x, (N // 2, 7), mode), FLAT)
    yield Case("getitem", lambda x: slices.getitem(x, (slice(1, None, 2), slice(3, 90))), S)
    yield Case("put_slice", lambda x: slices.put_slice(x, (SIDE + 2, SIDE), ((1, 1, SIDE), (0, 1, SIDE))), S)
    yield Case("as_view", lambda x: window.as_view(x, (SIDE, 100), (SIDE, 1), 5), S)
    yield Case("put_view", lambda x, v: window.put_view(x, v, (SIDE, 1), 5), S, (SIDE, 100))
    yield Case("put", lambda x, v: slices.put(x, v, ROWS.reshape((1, SIDE)), (((0, 1, SIDE), (0, 1, SIDE)), None, 0)),
               S, S)
    yield Case("take", lambda x: cg.take(x, ROWS, 0), S)
    yield Case("take along 1", lambda x: cg.take(x, ROWS, 1), S)
    yield Case("add_at", lambda x, v: index.add_at(x, 0, v, ROWS), S, S, dtypes=EVERY[1:])
    yield Case("gather", lambda x: cg.gather(x, 1, ALONG), S)
    yield Case("scatter_add", lambda x, v: cg.scatter_add(x, 1, ALONG, v), S, S, dtypes=EVERY[1:])
    yield Case("select", lambda x: masks.select(x, MASK), S)
    yield Case("mask_put", lambda x, v: masks.mask_put(x, v, HALF), S, (N // 2,))
    yield Case("argwhere", cg.argwhere, S)
    yield Case("argwhere of transposed", lambda x: cg.argwhere(x.T), S)
    yield Case("one_hot", lambda x: cg.one_hot(BITS, 2, x.dtype), (1,))
    for descending in (False, True):
        down = " down" * descending
        yield Case(f"sort{down}", lambda x, d=descending: cg.sort(x, descending=d), FLAT)
        yield Case(f"sort of columns{down}", lambda x, d=descending: cg.sort(x, 0, d), S)
        yield Case(f"sort of two columns{down}", lambda x, d=descending: cg.sort(x, 0, d), (N // 2, 2))
        yield Case(f"sort of transposed{down}", lambda x, d=descending: cg.sort(x.T, 1, d), (N // 2, 2))
        yield Case(f"argsort of two columns{down}", lambda x, d=descending: cg.argsort(x, 0, d), (N // 2, 2))
        yield Case(f"argsort{down}", lambda x, d=descending: cg.argsort(x, descending=d), FLAT)
        yield Case(f"argsort of columns{down}", lambda x, d=descending: cg.argsort(x, 0, d), S)
    yield Case("argsort of transposed", lambda x: cg.argsort(x.T, 1), S)
    yield Case("topk", lambda x: cg.topk(x, 5, 0)[0], S)
    yield Case("topk of a long row", lambda x: cg.topk(x, 100)[0], FLAT)
    yield Case("topk of many", lambda x: sort.topk(x, 200, 0, False)[0], S)
    yield Case("matmul", cg.matmul, S, S)
    yield Case("matmul of vectors", cg.matmul, FLAT, FLAT)
    yield Case("matmul of transposed", lambda x, y: x.T @ y, S, S)
    yield Case("linear", lambda x, w: cg.linear(x, w), S, S, dtypes=REALS)
    for equation in ("ij,jk->ik", "ij,ij->ij", "ij,ij->i", "ij,ij->", "ij,ij->ji"):
        yield Case(f"einsum {equation}", lambda x, y, e=equation: cg.einsum(e, x, y), S, S)
    yield Case("einsum abc,acb->a", lambda x, y: cg.einsum("abc,acb->a", x, y), CUBE, CUBE)
    yield Case("einsum ii->i", lambda x: cg.einsum("ii->i", x), S)
    for name in ("log_softmax", "softmax"):
        yield Case(name, row[name].function, S)
        yield Case(f"{name} of columns", lambda x, f=row[name].function: f(x, axis=0), S)
    for name in ("leaky_relu", "hardtanh", "hardsigmoid", "hardswish", "elu", "selu", "celu", "softsign", "logsigmoid",
                 "mish"):
        yield Case(name, row[name].function, S, dtypes=REALS)
    yield Case("prelu", cg.prelu, S, (SIDE,), dtypes=REALS)
    yield Case("threshold", lambda x: cg.threshold(x, 2, 1), S, dtypes=REALS)
    yield Case("glu", cg.glu, S, dtypes=REALS)
    yield Case("glu of transposed", lambda x: cg.glu(x.T, 0), S, dtypes=REALS)
    yield Case("diagonal", lambda x: cg.diagonal(x, 1), S)
    yield Case("diag", cg.diag, (SIDE,))
    yield from decompositions()
    yield from images()
    yield Case("layer_norm", cg.layer_norm, S, (SIDE,), (SIDE,), dtypes=REALS)
    yield Case("layer_norm of columns", lambda x: cg.layer_norm(x, axes=0), S, dtypes=REALS)
    yield Case("rms_norm", cg.rms_norm, S, (SIDE,), dtypes=REALS)
    for how, shape in (("", S), (" of columns", (4, SIDE, N // SIDE // 4))):
        yield Case(f"group_norm{how}", lambda x, w, b: cg.group_norm(x, 4, w, b), shape, (SIDE,), (SIDE,), dtypes=REALS)
        for name, train in (("batch_norm", True), ("batch_norm_predict", False)):
            yield Case(f"{name}{how}", lambda x, w, b, t=train: cg.batch_norm(x, *running_statistics(), w, b, t), shape,
                       (SIDE,), (SIDE,), dtypes=REALS)
    yield Case("instance_norm", cg.instance_norm, (4, SIDE, N // SIDE // 4), (SIDE,), (SIDE,), dtypes=REALS)
    yield Case("embedding", lambda w: cg.embedding(ROWS, w), S)
    yield Case("embedding with a slice", lambda w: cg.embedding(ROWS, w, 1, True), S, dtypes=REALS)
    for mode in ("sum", "mean", "max"):
        yield Case(f"embedding_bag {mode}", lambda w, m=mode: cg.embedding_bag(ROWS[:, None], w, None, m), S,
                   dtypes=REALS)
    for name, n in (("lstm", 4), ("gru", 3), ("rnn", 1), ("rnn_relu", 1)):
        yield Case(name, lambda x, *w, f=row[name].function: f(x, w)[0], (64, 32, 64), (64 * n, 64), (64 * n, 64),
                   dtypes=REALS)
    attention, dropping = cg.scaled_dot_product_attention, row["attention_with_dropout"].function
    yield Case("scaled_dot_product_attention", attention, S, S, S, dtypes=REALS)
    yield Case("scaled_dot_product_attention of triangles", lambda *x: attention(*x, is_causal=True), S, S, S,
               dtypes=REALS)
    yield Case("scaled_dot_product_attention of one query", attention, (1, SIDE), S, S, dtypes=REALS)
    yield Case("scaled_dot_product_attention of transposed", lambda x, y, z: attention(x.T, y.T, z), S, S, S,
               dtypes=REALS)
    yield Case("attention_with_dropout", lambda *x: dropping(*x, 0.5, 1, 2), S, S, S, dtypes=REALS)
    for how in ("mean", "none"):
        yield Case(f"cross_entropy {how}", lambda x, how=how: cg.cross_entropy(x, LABELS, reduction=how), S,
                   dtypes=REALS)
        yield Case(f"cross_entropy {how} of columns", lambda x, how=how: cg.cross_entropy(
            x.reshape((1, SIDE, SIDE)), LABELS[None], reduction=how, label_smoothing=0.1), S, dtypes=REALS)
        yield Case(f"soft_cross_entropy {how}", lambda x, y, how=how: cg.cross_entropy(x, y, reduction=how), S, S,
                   dtypes=REALS)
        yield Case(f"linear_cross_entropy {how}", lambda x, w, b, how=how: cg.linear_cross_entropy(
            x, w, LABELS, b, reduction=how, chunk=33), S, S, (SIDE,), dtypes=REALS)
        yield Case(f"ctc_loss {how}", lambda x, how=how: cg.ctc_loss(
            x.reshape((SIDE // 8, 8, SIDE)), LABELS[:160].reshape((8, 20)), [SIDE // 8] * 8, [20] * 8, blank=SIDE - 1,
            reduction=how), S, dtypes=REALS)
        yield Case(f"nll_loss {how}", lambda x, how=how: cg.nll_loss(x, LABELS, reduction=how), S, dtypes=REALS)
        yield Case(f"mse {how}", lambda x, y, how=how: cg.mse(x, y, how), S, S)
        yield Case(f"bce_with_logits {how}", lambda x, y, how=how: cg.bce_with_logits(x, y, how), S, S, dtypes=REALS)
    for name in ("l1_loss", "smooth_l1_loss", "huber_loss", "kl_div", "poisson_nll_loss", "soft_margin_loss",
                 "hinge_embedding_loss"):
        for how in ("mean", "none"):
            yield Case(f"{name} {how}", lambda x, y, name=name, how=how: getattr(cg, name)(x, y, reduction=how), S, S,
                       dtypes=REALS)
    yield Case("gaussian_nll_loss", lambda x, y, v: cg.gaussian_nll_loss(x, y, v * v), S, S, S, dtypes=REALS)
    yield Case("binary_cross_entropy", lambda x, y, w: cg.binary_cross_entropy(cg.sigmoid(x), y, w), S, S, S,
               dtypes=REALS)
    yield Case("binary_cross_entropy_with_logits", lambda x, y, w, u: cg.binary_cross_entropy_with_logits(
        x, y, w, pos_weight=u), S, S, S, S, dtypes=REALS)
    yield Case("dropout", lambda x: cg.train_mode()(cg.dropout)(x, 0.5), S, dtypes=REALS)
    yield Case("stop_gradient", cg.stop_gradient, S)
    yield Case("scale_gradient", lambda x: cg.scale_gradient(x, 0.5), S)


def decompositions():
    def near(x):                                    # well-conditioned: no pivot is zero, all singular values differ
        return x * (0.002 / SIDE) + DIAGONAL.astype(x.dtype)

    def upright(x):
        return near(x) + near(x).mT

    for name, f in (("solve", cg.solve), ("lstsq", lambda x, b: cg.lstsq(x, b).x)):
        yield Case(name, lambda x, b, f=f: f(near(x), b), S, (SIDE, 8), dtypes=REALS)
    yield Case("solve_triangular", lambda x, b: cg.solve_triangular(near(x), b, upper=True), S, S, dtypes=REALS)
    yield Case("solve_triangular of transposed", lambda x, b: cg.solve_triangular(near(x).mT, b, upper=True), S, S,
               dtypes=REALS)
    for name, f in (("inv", cg.inv), ("pinv", cg.pinv), ("det", cg.det), ("slogdet", lambda x: cg.slogdet(x)[1]),
                    ("cofactor", cg.ops.ROWS["cofactor"].function), ("svdvals", cg.svdvals)):
        yield Case(name, lambda x, f=f: f(near(x)), S, dtypes=REALS)
    for k in range(2):
        yield Case(f"qr {k}", lambda x, k=k: cg.qr(near(x))[k], S, dtypes=REALS)
        yield Case(f"eigh {k}", lambda x, k=k: cg.eigh(upright(x))[k], S, dtypes=REALS)
        yield Case(f"svd {k}", lambda x, k=k: cg.svd(near(x))[k], S, dtypes=REALS)
    for name in ("eigvals", "expm", "logm", "sqrtm"):
        yield Case(name, lambda x, name=name: getattr(cg.linalg, name)(near(x)), S, dtypes=REALS)
    for k in range(2): yield Case(f"eig {k}", lambda x, k=k: cg.eig(near(x))[k], S, dtypes=REALS)
    yield Case("cholesky", lambda x: cg.cholesky(upright(x)), S, dtypes=REALS)
    yield Case("eigvalsh", lambda x: cg.eigvalsh(upright(x)), S, dtypes=REALS)
    gaps = cg.ops.ROWS["spectral_gaps"].function
    yield Case("spectral_gaps", lambda x: gaps(near(x)[0].cumsum() + RAMP.astype(x.dtype)), S, dtypes=REALS)


def images():
    rows = cg.ops.ROWS
    for nd, shape in ((1, (8, 16, N // 128)), (2, (8, 8, 64, 64)), (3, (4, 4, 16, 32, 32))):
        kernel, half = (3,) * nd, (*shape[:2], *[n // 2 for n in shape[2:]])
        for name in (f"conv{nd}d", f"conv_transpose{nd}d"):
            f = getattr(cg, name)
            yield Case(name, lambda x, w, b, f=f: f(x, w, b, 1, 1), shape, (*[shape[1]] * 2, *kernel), shape[1:2],
                       dtypes=REALS)
            yield Case(f"{name} with strides", lambda x, w, f=f: f(x, w, None, 2), half, (*[shape[1]] * 2, *kernel),
                       dtypes=REALS)
            yield Case(f"{name} by channel", lambda x, w, f=f, n=shape[1]: f(x, w, groups=n), shape,
                       (shape[1], 1, *kernel), dtypes=REALS)
        for name in ("max_pool", "avg_pool"):
            f, adaptive = getattr(cg, f"{name}{nd}d"), getattr(cg, f"adaptive_{name}{nd}d")
            yield Case(f"{name}{nd}d", lambda x, f=f: f(x, 3, 2, 1), shape, dtypes=REALS)
            yield Case(f"adaptive_{name}{nd}d", lambda x, f=adaptive: f(x, 5), shape, dtypes=REALS)
    many = (8, 8, 64, 64)
    for mode in ("nearest", "bilinear", "bicubic"):
        yield Case(f"interpolate {mode}", lambda x, m=mode: cg.interpolate(x, scale_factor=1.5, mode=m), many,
                   dtypes=REALS)
    back, put, take, spread, weight = (rows[name].function for name in (
        "interpolate_back", "pool_put", "pool_take", "avg_spread", "conv_weight"))
    yield Case("interpolate_back", lambda y: back(y, (32, 32), "bicubic"), many, dtypes=REALS)
    place = {"kernel": (2, 2), "stride": (2, 2), "padding": (0, 0), "dilation": (1, 1)}
    yield Case("pool_put", lambda y: put(y, CORNERS, **place, size=(128, 128)), many, dtypes=REALS)
    yield Case("pool_take", lambda x: take(x, CORNERS, **place), (8, 8, 128, 128), dtypes=REALS)
    yield Case("avg_spread", lambda y: spread(y, (2, 2), (2, 2), (0, 0), (128, 128)), many, dtypes=REALS)
    yield Case("conv_weight", lambda x, y: weight(x, y, (3, 3), (1, 1), (1, 1), (1, 1)), many, many, dtypes=REALS)
    yield Case("unfold", lambda x: cg.unfold(x, 3, padding=1), (8, 8, 32, 32), dtypes=REALS)
    yield Case("fold", lambda x: cg.fold(x, (32, 32), 3, padding=1), (8, 72, 1024), dtypes=REALS)


def written(f):
    """An in-place write as a function that returns a tensor."""
    def g(x, *rest):
        x = x * 1 if x.dtype.kind == "f" else x.copy()
        f(x, *rest)
        return x
    return g


def assign(at):
    return written(lambda x, v: x.__setitem__(at(), v))


def others():
    """Cases without a row: indexing, in-place writes, creation, random numbers."""
    yield Case("x[mask]", lambda x: x[MASK], S)
    yield Case("x[rows, columns]", lambda x: x[ALONG, ROWS], S)
    yield Case("x[mask, 3]", lambda x: x[MASK[0], 3], S)
    yield Case("x[rows] = v", assign(lambda: ROWS), S, S)
    yield Case("x[rows, columns] = v", assign(lambda: (ALONG, ROWS)), S, S)
    yield Case("x[mask] = 0", written(lambda x: x.__setitem__(MASK, 0)), S)
    yield Case("x[half] = v", assign(lambda: HALF), S, (N // 2,))
    yield Case("x[...] = v", assign(lambda: ...), S, S)
    yield Case("x[...] = number", written(lambda x: x.fill_(1)), S)
    yield Case("x[1:] += x[:-1]", written(lambda x: x[1:].__iadd__(x[:-1])), S, dtypes=EVERY[1:])
    yield Case("x += v", written(lambda x, v: x.__iadd__(v)), S, S)
    yield Case("x *= number", written(lambda x: x.__imul__(2)), S, dtypes=EVERY[1:])
    yield Case("number - x", lambda x: 1 - x, S, dtypes=EVERY[1:])
    yield Case("x + y of two dtypes", lambda x, y: x + y.astype("int16"), S, S)
    yield Case("x < number", lambda x: x < 3, S)
    yield Case("clip below", lambda x: cg.clip(x, min=1), S)
    yield Case("zeros_like", cg.zeros_like, S)
    yield Case("ones_like", cg.ones_like, S)
    yield Case("full_like", lambda x: cg.full_like(x, 3), S, dtypes=EVERY[1:])
    yield Case("tensor of a tensor", lambda x: tensor(x), S)
    yield Case("tensor of a tensor in float64", lambda x: tensor(x, "float64"), S)
    yield Case("arange", lambda x: cg.arange(3, N, dtype=x.dtype), (1,), dtypes=EVERY[3:], backward=False)
    yield Case("arange by steps", lambda x: cg.arange(0.5, N / 4, 0.25, dtype=x.dtype), (1,), dtypes=REALS,
               backward=False)
    yield Case("arange of the default dtype", lambda x: cg.arange(0.0, N), (1,), dtypes=REALS, backward=False)
    yield Case("linspace of one number", lambda x: cg.linspace(3, 3, N, dtype=x.dtype), (1,), dtypes=REALS,
               backward=False)
    yield Case("linspace", lambda x: cg.linspace(0, 7, N, dtype=x.dtype), (1,), dtypes=EVERY[1:], backward=False)
    yield Case("eye", lambda x: cg.eye(SIDE, dtype=x.dtype), (1,), backward=False)
    yield Case("random.normal", lambda x: cg.random.normal(S, dtype=x.dtype), (1,), dtypes=REALS, backward=False)
    yield Case("random.integers", lambda x: cg.random.integers(S, 0, 1, dtype=x.dtype, endpoint=True), (1,),
               dtypes=WHOLE, backward=False)
    yield Case("random.bernoulli", lambda x: cg.random.bernoulli(S, dtype=x.dtype), (1,), backward=False)
    yield Case("random.permutation", lambda x: cg.random.permutation(N), (1,), dtypes=("int64",), backward=False)
    yield Case("random.permutation of rows", lambda x: cg.random.permutation(x), S, backward=False)
    yield Case("random.permutation of numbers", lambda x: cg.random.permutation(x), FLAT, backward=False)


def updates():
    """Each rule of a solver, on parameters, gradients and states of one size."""
    for row in (row for row in TABLE if row.name.endswith("_update")):
        def f(w, g, *states, row=row): return row.function(w, g, cg.tensor(0.1, "float64"), cg.tensor(1), *states)
        n = sum(x.default is x.empty for x in inspect.signature(row.function).parameters.values()) - 2
        yield Case(row.name, f, *[(SIDE, SIDE)] * n, dtypes=REALS, backward=False)


CASES = [*tables(), *updates(), *others()]


# ---- measuring -------------------------------------------------------------------------------------------------------

def measured(counter, f):
    """The result of f(), and its peak of malloc bytes above those before."""
    counter.unseen_begin()
    before = counter.unseen_live()
    result = f()
    return result, counter.unseen_peak() - before


def differentiate(case, xs, how, counter):
    with cg.record():
        y, recorded = measured(counter, lambda: case.f(*xs))
        if isinstance(y, tuple):
            y = y[0]
    if how == "recorded" or not y.requires_grad:
        return recorded
    given = [x for x in xs if x.requires_grad]
    head = cg.ones(y.shape, y.dtype)
    if how == "backward":
        return measured(counter, lambda: cg.autograd.grad(y, given, head, allow_unused=True))[1]
    head.requires_grad_()
    return measured(counter, lambda: cg.autograd.grad(y, given, head, create_graph=True, allow_unused=True))[1]


def measure(case, dtype, counter):
    counts = {}
    xs = case.tensors(dtype)
    try:
        case.f(*xs)
    except TypeError:                               # not defined for integers
        assert dtype in WHOLE
        return counts
    counts["forward"] = measured(counter, lambda: case.f(*xs))[1]
    if dtype in REALS and case.backward:
        xs = [x.requires_grad_() if x.dtype == dtype else x for x in xs]
        for how in ("recorded", "backward", "graph"):
            for _ in range(2):
                counts[how] = differentiate(case, xs, how, counter)
    return counts


def main():
    prepare()
    counter = ctypes.CDLL(None)
    counter.unseen_peak.restype = counter.unseen_live.restype = ctypes.c_long
    for case in CASES:
        for dtype in case.dtypes:
            print(json.dumps([case.name, dtype, measure(case, dtype, counter)]), flush=True)


if __name__ == "__main__":
    main()
