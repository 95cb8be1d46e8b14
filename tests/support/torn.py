"""Memory that changes while it is used: python torn.py [CASE ...]

NumPy writes to memory that it shares with tensors, which raises no version. Each case has arrays that hold indices,
masks, lengths or what else decides where a kernel reads and writes. "between" writes them between forward and
backward: backward must raise or give the gradient of the forward pass. "meanwhile" lets a thread write them again and
again during many calls, which must return or raise, and not use what was not written. A kernel that reads or writes
outside of its memory ends the process, which tests/properties/test_torn_reads.py detects. Prints a line for each
case."""

import faulthandler
import sys
import threading
from functools import partial

import numpy as np

import cygrad as cg
from cygrad.ops.losses.ctc import ctc_loss_packed
from cygrad.ops.images.pool import pool_put, pool_take
from cygrad.ops.layers.recurrent import gru_layer, lstm_layer

ROUNDS = 12                                         # calls of each case
N = 1 << 20                                         # elements: kernels of this size run without the GIL
FEW = 1 << 17                                       # elements where a call takes longer
FAR = 1 << 42                                       # an index far outside of all memory
REFUSED = (cg.InplaceError, IndexError, ValueError)

r = np.random.default_rng(0)


def shared(good):
    """A tensor in memory of cygrad, and the array over it, through which NumPy can write."""
    t = cg.tensor(good)
    return t, t.numpy()


def external(good):
    a = good.copy()
    return cg.asarray(a), a


def places(n, size, shape=None):
    return r.integers(0, size, n if shape is None else shape)


X = np.arange(1.0, N + 1)                           # (no element is 0, as what was not written may be)


def wrong(a, fraction=0.5):
    """`a` with far indices in part of it, negative ones too."""
    b = a.copy()
    at = r.random(a.shape) < fraction
    b[at] = np.where(r.random(a.shape) < 0.5, FAR, -FAR)[at]
    return b


def from_x(y):
    assert ((y.numpy() >= 1) & (y.numpy() <= N)).all(), "what was not written was used"


class Case:
    """f(tensors of the arrays, variables) is the call; `arrays` has (good, bad) for each array. `check` is called with
    the result. follows: the gradient depends on what the arrays have by then."""

    def __init__(self, f, *arrays, variables=(), share=shared, check=None, follows=False):
        self.f, self.check, self.follows = f, check, follows
        self.variables = [cg.tensor(v) for v in variables]
        made = [share(good) for good, _ in arrays]
        self.tensors = [t for t, _ in made]
        self.arrays = [(a, good, bad) for (_, a), (good, bad) in zip(made, arrays, strict=True)]

    def write(self, bad):
        for a, good, other in self.arrays: np.copyto(a, other if bad else good)

    def forward(self):
        for v in self.variables: v.attach_grad()
        with cg.record(): return self.f(*self.tensors, *self.variables)

    def gradients(self, y):
        y.backward()
        return [v.grad.to_dense().numpy() if isinstance(v.grad, cg.GradientSlice) else v.grad.numpy().copy()
                for v in self.variables]

    def between(self):
        """What backward says if the arrays change after forward."""
        if not self.variables: return "no gradient"
        self.write(False)
        right = self.gradients(self.forward())
        y = self.forward()
        self.write(True)
        try: found = self.gradients(y)
        except REFUSED as e: return f"{type(e).__name__}: {e}"
        finally: self.write(False)
        same = all(np.array_equal(a, b, equal_nan=True) for a, b in zip(found, right, strict=True))
        assert same or self.follows, "another gradient"
        return "the gradient of the forward pass" if same else "another gradient"

    def meanwhile(self):
        """The number of calls that returned, of ROUNDS."""
        done, returned = threading.Event(), 0

        def work():
            while not done.is_set():
                for bad in (True, False): self.write(bad)

        thread = threading.Thread(target=work)
        thread.start()
        try:
            for _ in range(ROUNDS):
                try:
                    y = self.forward()
                    if self.check is not None: self.check(y)
                    if self.variables: self.gradients(y)
                    returned += 1
                except REFUSED: pass
                finally: y = None
        finally:
            done.set()
            thread.join()
        return returned


def masks():
    few, many = r.random(N) < 0.01, np.ones(N, bool)
    half = r.random(N) < 0.5
    for name, good, bad in (("few", few, many), ("many", many, few), ("half", half, ~few)):
        yield f"select {name}", Case(lambda m, x: x[m], (good, bad), variables=[X], check=from_x)
        yield f"select {name} external", Case(lambda m, x: x[m], (good, bad), variables=[X], share=external)
        yield f"select rows {name}", Case(lambda m, x: x[m], (good, bad), variables=[np.ones((N, 3))])
        yield f"mask_put {name}", Case(put_where, (good, bad), variables=[X])
        yield f"mask_put {name} external", Case(put_where, (good, bad), share=external)
        yield f"nonzero {name}", Case(cg.nonzero, (good, bad), share=external)
        yield f"masks of two dimensions {name}", Case(
            lambda m, x: x.reshape((2, N // 2))[:, m.reshape((2, N // 2))[0]], (good, bad), variables=[X])


def put_where(m, x=None):
    y = (cg.tensor(X) if x is None else x) * 1.0
    y[m] = cg.tensor(2.0 * X[:1])
    return y


def indices():
    i, rows = places(N, N), places(0, 64, (N // 64, 64))
    pair = i, wrong(i)
    yield "take", Case(lambda t, x: x[t], pair, variables=[X], check=from_x)
    yield "take external", Case(lambda t, x: x[t], pair, variables=[X], share=external, check=from_x)
    yield "take rows", Case(lambda t, x: x[t], pair, variables=[np.ones((N, 2))])
    yield "take of two", Case(lambda t, u, x: x.reshape((512, N // 512))[t, u], (places(N, 512), wrong(i)),
                              (places(N, N // 512), wrong(i)), variables=[X], check=from_x)
    yield "take of steps", Case(lambda t, x: x[t[::2]], pair, variables=[X], check=from_x)
    yield "put", Case(put_at, pair, variables=[X])
    yield "gather", Case(lambda t, x: cg.gather(x.reshape((N // 64, 64)), 1, t), (rows, wrong(rows)), variables=[X],
                         check=from_x)
    yield "gather along 0", Case(lambda t, x: cg.gather(x.reshape((64, N // 64)), 0, t.T), (rows, wrong(rows)),
                                 variables=[X], check=from_x)
    yield "scatter_add", Case(lambda t, x, s: cg.scatter_add(x, 0, t, s), pair, variables=[X, X])
    yield "index_add", Case(lambda t, x, s: cg.index_add(x, 0, t, s), pair, variables=[X, X])
    yield "one_hot", Case(lambda t: cg.one_hot(t, 8), (places(N, 8), wrong(i)))
    x = cg.tensor(X)
    yield "searchsorted", Case(lambda t: cg.searchsorted(x, x, sorter=t), pair)
    w = np.ones((1000, 4))
    short = places(FEW, 1000)
    pair = short, wrong(short)
    for sparse in (False, True):
        yield f"embedding {sparse}", Case(partial(cg.embedding, sparse=sparse), pair, variables=[w])
        for mode in ("sum", "mean"):
            yield f"embedding_bag {mode} {sparse}", Case(
                lambda t, o, w, m=mode, s=sparse: cg.embedding_bag(t, w, o, m, s), pair, offsets(), variables=[w])
    yield "embedding_bag max", Case(lambda t, o, w: cg.embedding_bag(t, w, o, "max"), pair, offsets(), variables=[w])
    yield "embedding_bag weighted", Case(
        lambda t, o, w, s: cg.embedding_bag(t, w, o, "sum", False, s), pair, offsets(), variables=[w, X[:FEW]])


def offsets():
    good = np.arange(FEW // 16) * 16
    return good, wrong(good)


def put_at(t, x):
    y = x * 1.0
    y[t] = 2.0
    return y


def labels():
    n, classes = FEW // 16, 10
    good = places(n, classes)
    pair = good, wrong(good)
    z, weight = r.normal(size=(n, classes)), cg.tensor(np.ones(classes))
    plain = np.ascontiguousarray(z.reshape(4, n // 4, classes).transpose(0, 2, 1))
    columns = good.reshape(4, n // 4), wrong(good).reshape(4, n // 4)
    for name, options in (("plain", {}), ("smooth", {"label_smoothing": 0.1}), ("weighted", {"weight": weight}),
                          ("none", {"reduction": "none"})):
        yield f"cross_entropy {name}", Case(lambda t, z, o=options: cg.cross_entropy(z, t, **o), pair, variables=[z])
        yield f"cross_entropy columns {name}", Case(
            lambda t, z, o=options: cg.cross_entropy(z, t, **o), columns, variables=[plain])
    yield "nll_loss", Case(lambda t, z: cg.nll_loss(z, t), pair, variables=[z])
    yield "nll_loss columns", Case(lambda t, z: cg.nll_loss(z, t, weight), columns, variables=[plain])
    yield "linear_cross_entropy", Case(lambda t, x, w: cg.linear_cross_entropy(x, w, t), pair,
                                       variables=[r.normal(size=(n, 3)), r.normal(size=(classes, 3))])
    steps, samples, length = 20, 64, 8
    good = np.concatenate([np.full(samples, steps), np.full(samples, length), np.arange(samples) * length,
                           1 + places(samples * length, 9)])
    yield "ctc_loss", Case(lambda t, x: ctc_loss_packed(cg.log_softmax(x, 2), t, longest=length), (good, wrong(good)),
                           variables=[r.normal(size=(steps, samples, 10))])
    good = places(64, 30) + 1
    cell = [r.normal(size=(k, 16)) for k in (64, 64)]
    zeros = [cg.zeros(64, dtype="float64")] * 2
    state = cg.zeros((64, 16), dtype="float64")
    for reverse in (False, True):
        yield f"lstm {reverse}", Case(
            lambda t, x, a, b, v=reverse: lstm_layer(x, a, b, *zeros, state, state, t, v)[0].sum(),
            (good, wrong(good)), variables=[r.normal(size=(30, 64, 16)), *cell])
        yield f"gru {reverse}", Case(
            lambda t, x, a, b, v=reverse: gru_layer(
                x, a[:48], b[:48], *[z[:48] for z in zeros], state, t, v)[0].sum(),
            (good, wrong(good)), variables=[r.normal(size=(30, 64, 16)), *cell])


def orders():
    a, b = r.normal(size=FEW) * 1e3, r.normal(size=FEW) * 1e8
    for name, share in (("", shared), (" external", external)):
        yield "sort" + name, Case(lambda t: cg.sort(t * cg.ones(1, dtype="float64")), (a, b), share=share)
        for dtype in ("float32", "float64", "int32", "int64"):
            pair = a.astype(dtype), b.astype(dtype)
            yield f"argsort {dtype}{name}", Case(checked_order, pair, share=share)
            yield f"argmax {dtype}{name}", Case(lambda t: (checked(cg.argmax(t)), checked(cg.argmin(t))), pair,
                                                share=share)
        yield "topk" + name, Case(lambda t: checked(cg.topk(t, FEW // 2)[1]), (a, b), share=share)
        yield "cummax" + name, Case(lambda t: checked(cg.cummax(t, 0)[1]), (a, b), share=share)
        yield "unique" + name, Case(lambda t: cg.unique(t, True, True, True), (np.round(a), np.round(b)), share=share)


def checked(i):
    """An index that is one of the elements."""
    assert ((i.numpy() >= 0) & (i.numpy() < FEW)).all(), "an index out of range"
    return i


def checked_order(t):
    i = cg.argsort(t)
    assert np.array_equal(np.sort(i.numpy()), np.arange(FEW)), "no permutation"
    return i


def others():
    small = places(FEW, 1000)
    values = cg.ones((FEW, 2))
    table = cg.zeros((1000, 2)).attach_grad()
    solver = cg.optim.Adam(0.1)
    solver.set_parameters({"w": table})

    def update(t):
        table.grad = cg.GradientSlice(t, values, (1000, 2))
        solver.update()

    pair = small, wrong(small)
    yield "GradientSlice", Case(lambda t: cg.GradientSlice(t, values, (1000, 2)).to_dense(), pair)
    yield "deduplicate", Case(lambda t: cg.GradientSlice(t, values, (1000, 2)).deduplicate(), pair)
    yield "update of rows", Case(update, pair)
    yield "repeat", Case(lambda t: cg.repeat(cg.ones(1000), t), (places(1000, 3), wrong(places(1000, 3))))
    window = dict(kernel=(2, 2), stride=(2, 2), padding=(0, 0), dilation=(1, 1))
    place = places(0, 4, (8, 4, 32, 32)).astype("uint8")
    pair = place, np.full_like(place, 255)
    images = np.ones((8, 4, 64, 64))
    yield "pool_take", Case(lambda p, x: pool_take(x, p, **window), pair, variables=[images], follows=True)
    yield "pool_put", Case(lambda p, y: pool_put(y, p, size=(64, 64), **window), pair,
                           variables=[images[..., ::2, ::2]], follows=True)
    g = cg.random.Generator(0)
    lam = np.full(FEW // 8, 20.0)
    yield "poisson", Case(lambda t: g.poisson(lam=t), (lam, lam * np.nan), share=external)
    low = np.zeros(FEW // 8)
    yield "truncated_normal", Case(lambda t: g.truncated_normal(low=t, high=1.0), (low, low + 5), share=external)


def cases():
    for group in (masks, indices, labels, orders, others): yield from group()


def main():
    faulthandler.enable()
    sys.setswitchinterval(1e-4)
    wanted = sys.argv[1:]
    for name, case in cases():
        if wanted and name not in wanted: continue
        print(name, end=": ", flush=True)
        print(case.between(), end="; ", flush=True)
        print(case.meanwhile(), "returned", flush=True)


if __name__ == "__main__":
    main()
