"""DataLoader: order, batches, memory, state, errors."""

import gc
import tracemalloc

import numpy as np
import pytest

import cygrad as cg
from cygrad.data import DataLoader

X, Y = np.arange(40, dtype="f4").reshape(20, 2), np.arange(20)
HOW = [{}, {"prefetch": 1}, {"prefetch": 3}, {"workers": 1}, {"workers": 3}, {"workers": 2, "prefetch": 2}]
every_way = pytest.mark.parametrize("how", HOW, ids=lambda how: " ".join(f"{k}={v}" for k, v in how.items()) or "plain")


def rows(loader):
    """The row numbers of an epoch, batch by batch. Each batch must have the right rows of both arrays."""
    found = []
    for x, y in loader:
        assert x.dtype == np.float32 and y.dtype == np.int64
        np.testing.assert_array_equal(x.numpy(), X[y.numpy()])
        found.append(y.tolist())
    return found


@every_way
def test_batches_in_order(how):
    loader = DataLoader((X, Y), 6, **how)
    for _ in range(2): assert rows(loader) == [[*range(6)], [*range(6, 12)], [*range(12, 18)], [18, 19]]
    assert len(loader) == 4 and loader.epoch == 2 and loader.position == 0
    short = DataLoader((X, Y), 6, drop_last=True, **how)
    assert rows(short) == [[*range(6)], [*range(6, 12)], [*range(12, 18)]] and len(short) == 3


def test_the_order_depends_on_seed_and_epoch_alone():
    orders = [[sum(rows(loader), []) for _ in range(3)]
              for how in HOW for loader in [DataLoader((X, Y), 6, shuffle=True, seed=3, **how)]]
    assert all(order == orders[0] for order in orders)
    assert all(sorted(epoch) == [*range(20)] for epoch in orders[0]) and len({*map(tuple, orders[0])}) == 3
    assert sum(rows(DataLoader((X, Y), 7, shuffle=True, seed=3)), []) == orders[0][0]
    assert sum(rows(DataLoader((X, Y), 6, shuffle=True, seed=4)), []) != orders[0][0]


def test_without_a_seed_the_default_generator_gives_one():
    def order():
        cg.random.seed(5)
        return rows(DataLoader((X, Y), 6, shuffle=True))

    assert order() == order() != rows(DataLoader((X, Y), 6, shuffle=True))
    state = cg.random.default_generator.state
    DataLoader((X, Y), 6)
    assert cg.random.default_generator.state == state


@every_way
def test_data_of_many_kinds(how):
    pair = {"image": X, "parts": (Y, {"weight": np.ones(20)})}
    for batch in DataLoader(pair, 20, **how):
        assert [*batch] == ["image", "parts"] and isinstance(batch["parts"], tuple)
        assert batch["parts"][1]["weight"].dtype == np.float64
        np.testing.assert_array_equal(batch["image"].numpy(), X)
    assert [b.tolist() for b in DataLoader(cg.tensor([1.0, 2.0, 3.0]), 2, **how)] == [[1, 2], [3]]
    assert [b.tolist() for b in DataLoader([1.5, 2.5, 3.5], 2, **how)] == [[1.5, 2.5], [3.5]]
    samples = [(np.full(2, k, "f4"), {"label": k}) for k in range(3)]
    (x, y), (z, _) = DataLoader(samples, 2, **how)
    assert x.tolist() == [[0, 0], [1, 1]] and y["label"].tolist() == [0, 1] and z.tolist() == [[2, 2]]
    assert [b.tolist() for b in DataLoader(np.zeros((0, 3)), 2, **how)] == []


@pytest.mark.parametrize("how", [{}, {"prefetch": 2}, {"workers": 1}], ids=str)
def test_iterables(how):
    class Stream:
        def __iter__(self): return iter([(k, k * 0.5) for k in range(5)])

    loader = DataLoader(Stream(), 2, **how)
    for _ in range(2): assert [x.tolist() for x, _ in loader] == [[0, 1], [2, 3], [4]]
    assert [x.tolist() for x, _ in DataLoader(Stream(), 2, drop_last=True, **how)] == [[0, 1], [2, 3]]
    with pytest.raises(TypeError, match="an iterable has no length"): len(loader)
    once = DataLoader(iter([1, 2, 3]), 2, **how)
    assert [x.tolist() for x in once] == [[1, 2], [3]]


def padded(samples):
    """Vectors of different lengths, with zeros at the end, and their lengths."""
    longest = max(map(len, samples))
    return np.array([s + [0] * (longest - len(s)) for s in samples]), np.array([len(s) for s in samples])


@every_way
def test_collate_pads(how):
    loader = DataLoader([[1], [2, 3], [4], [5, 6, 7]], 2, collate=padded, **how)
    for _ in range(2):
        assert [(x.tolist(), n.tolist()) for x, n in loader] == [
            ([[1, 0], [2, 3]], [1, 2]), ([[4, 0, 0], [5, 6, 7]], [1, 3])]


def address(x): return x.numpy().ctypes.data


@pytest.mark.parametrize("how", [{}, {"prefetch": 2}, {"workers": 2}, {"workers": 2, "prefetch": 3}], ids=str)
def test_batches_use_the_same_memory(how):
    loader, found = DataLoader((X, Y), 4, shuffle=True, **how), set()
    for _ in range(20):
        for x, _ in loader: found.add(address(x))
    assert len(found) <= 2 + how.get("prefetch", 0)
    del x, _
    before = cg.memory.stats()["live_bytes"]
    for batch in loader: del batch
    assert cg.memory.stats()["live_bytes"] == before
    loader.close()
    assert cg.memory.stats()["live_bytes"] == 0


def test_a_batch_that_is_released_is_written_at_once():
    loader, found = DataLoader((X, Y), 4), set()
    for batch in loader:
        found.add(address(batch[0]))
        del batch
    assert len(found) == 1


@every_way
@pytest.mark.parametrize("hold", [lambda x: x, lambda x: x[1:], lambda x: x.numpy(), lambda x: x.detach(),
                                  lambda x: memoryview(x)], ids=["tensor", "view", "array", "detach", "buffer"])
def test_what_somebody_holds_is_not_overwritten(hold, how):
    held = [(hold(x), y.tolist()) for x, y in DataLoader((X, Y), 4, shuffle=True, **how)]
    for x, y in held: np.testing.assert_array_equal(np.asarray(x)[-3:], X[y][-3:])


def test_a_graph_holds_its_batch():
    w = cg.ones(2).attach_grad("add")
    losses = []
    for x, _ in DataLoader((X, Y), 5):
        with cg.record(): losses.append((x * w).square().sum())
    for loss in losses: loss.backward()
    np.testing.assert_allclose(w.grad.numpy(), 2 * (X**2).sum(0))


def test_a_larger_batch_takes_larger_memory():
    sizes = [3, 1, 4, 2, 5]
    loader = DataLoader(sizes, 1, collate=lambda samples: np.arange(samples[0]))
    for _ in range(2): assert [x.tolist() for x in loader] == [[*range(n)] for n in sizes]


def test_a_view_with_strides_is_not_copied():
    """The windows of a text are a view of it; all of them together are 65 times as large."""
    codes = np.arange(20_000)
    views = np.lib.stride_tricks.sliding_window_view(codes, 65), np.broadcast_to(codes[:, None], (20_000, 65))[:-64]
    loader = DataLoader(views, 4, shuffle=True)
    loader.next()
    tracemalloc.start()
    try:
        x, y = loader.next()
        peak = tracemalloc.get_traced_memory()[1]
    finally: tracemalloc.stop()
    np.testing.assert_array_equal(x.numpy(), y.numpy() + np.arange(65))
    assert peak < codes.nbytes, peak


# ---- position --------------------------------------------------------------------------------------------------------

@every_way
@pytest.mark.parametrize("taken", [0, 1, 3, 4, 5, 9])
def test_a_state_resumes(taken, how):
    def make(seed=3): return DataLoader((X, Y), 6, shuffle=True, seed=seed, **how)

    whole = make()
    expected = [y.tolist() for _ in range(12) for _, y in [whole.next()]]
    first, second = make(), make(8)
    for k in range(taken): assert first.next()[1].tolist() == expected[k]
    second.load_state_dict(first.state_dict())
    assert second.state_dict() == first.state_dict()
    for k in range(taken, 12): assert second.next()[1].tolist() == expected[k]
    third = make(8)
    third.load_state_dict(first.state_dict())
    left = [y.tolist() for _, y in third]
    end = -(-max(taken, 1) // 4) * 4
    assert left == expected[taken:end] if taken % 4 else left == expected[taken:taken + 4] or taken == 4


@pytest.mark.parametrize("how", [{}, {"prefetch": 2}, {"workers": 1}], ids=str)
def test_the_state_of_a_stream_resumes(how):
    class Stream:
        def __iter__(self): return iter(range(10))

    first, second = (DataLoader(Stream(), 3, **how) for _ in range(2))
    for _ in range(2): first.next()
    second.load_state_dict(first.state_dict())
    assert [second.next().tolist() for _ in range(4)] == [[6, 7, 8], [9], [0, 1, 2], [3, 4, 5]]


def test_a_loop_that_ends_early_is_an_epoch():
    loader = DataLoader((X, Y), 6, shuffle=True, seed=1)
    y = next(iter(loader))[1]
    assert (loader.epoch, loader.position) == (0, 1)
    again = rows(loader)
    assert len(again) == 4 and again[0] != y.tolist() and loader.epoch == 2


def test_two_loops_at_once_are_refused():
    loader = DataLoader((X, Y), 6)
    first, second = iter(loader), iter(loader)
    next(second)
    with pytest.raises(RuntimeError, match="a later loop over this loader has begun"): next(first)
    assert next(second)[1].tolist() == [*range(6, 12)]
    loader.close()
    with pytest.raises(RuntimeError, match="or it was closed"): next(second)


def test_next_of_an_empty_epoch():
    with pytest.raises(ValueError, match="an epoch has no batch: there are 3 samples, and batch_size is 6 with "
                                         "drop_last=True"): DataLoader([1, 2, 3], 6, drop_last=True).next()
    once = DataLoader(iter([1, 2]), 2)
    assert once.next().tolist() == [1, 2]
    with pytest.raises(ValueError, match="is an iterator, which can be read once"): once.next()


def test_no_live_bytes_remain():
    for how in HOW:
        loader = DataLoader((X, Y), 6, **how)
        for batch in loader: del batch
        loader.next()
        del loader
    assert cg.memory.stats()["live_bytes"] == 0 and not gc.garbage


def test_a_list_may_grow_between_epochs():
    data = [0.0, 1.0, 2.0]
    loader = DataLoader(data, 2, shuffle=True, seed=0)
    x = loader.next()
    data += [3.0, 4.0]
    assert loader.next().shape == (1,) and len(loader) == 3
    assert sorted(x for batch in loader for x in batch.tolist()) == data
    del data[1:]
    assert [batch.tolist() for batch in loader] == [[0.0]]
    del x


@pytest.mark.parametrize("samples, dtype", [
    ([1, 2, 3], "int64"), ([True, False, True], "bool"), ([1.5, -0.0, float("nan")], "float32"),
    ([np.float64(1), np.float64(2), np.float64(3)], "float64"), ([np.int8(1), np.int8(2), np.int8(-3)], "int8"),
    ([np.uint16(1), np.uint16(2), np.uint16(3)], "uint16"), ([np.array(1.0)] * 3, "float64"),
    ([[1, 2], [3, 4], [5, 6]], "int64"), ([np.arange(3, dtype=">i4")] * 3, "int32"),
    ([np.arange(6.0)[::-2], np.arange(3.0), np.arange(3.0)[::-1]], "float64"),
    (lambda: [cg.ones(2), cg.zeros(2), cg.ones(2)], "float32"),
    (lambda: [np.ones(2, "float32"), cg.zeros(2), cg.ones(2)], "float32")])
def test_a_batch_of_one_type_has_its_dtype(samples, dtype):
    """Numbers of one type are converted together, and arrays that need no conversion are taken as they are."""
    if callable(samples): samples = samples()
    wanted = np.stack([np.asarray(s) for s in samples]) if not isinstance(samples[0], list) else np.array(samples)
    loader = cg.data.DataLoader([(s, k) if not isinstance(s, list) else (*s,) for k, s in enumerate(samples)],
                                batch_size=3)
    [batch] = list(loader)
    found = np.stack([b.numpy() for b in batch], 1) if isinstance(samples[0], list) else batch[0].numpy()
    assert str(batch[0].dtype) == dtype
    np.testing.assert_array_equal(found, wanted.astype(dtype))
    assert dtype == "bool" or np.array_equal(np.signbit(found), np.signbit(wanted.astype(dtype)))


@pytest.mark.parametrize("samples, what", [
    ([1, 2.5, 3], "is float32 of shape"), ([1, 2**70, 3], "is no array of numbers"), ([1, True], "is bool of shape"),
    ([np.ones(2), np.ones(2, "float32")], "is float32 of shape"),
    ([np.ones(2), np.ones(3)], "is float64 of shape \\(3,\\)"),
    ([np.ones(2), np.array(["a", "b"])], "is no array of numbers"), ([2**70, 1], "is no array of numbers")])
def test_numbers_that_do_not_agree_are_refused(samples, what):
    with pytest.raises((TypeError, ValueError), match=f"^DataLoader: a sample {what}"):
        list(cg.data.DataLoader(samples, batch_size=len(samples)))
