"""scaled_dot_product_attention: blocks, threads, queries that see nothing, dropout, memory."""

import numpy as np
import pytest

import cygrad as cg
from cygrad.ops import ROWS
from rows import close, gradients, head_for, same_bits
from tests.samples import SAMPLED
from tests.samples.attention import three
from tests.samples.random import philox

ROW = SAMPLED["scaled_dot_product_attention"]
DROPPING = SAMPLED["attention_with_dropout"]


def against_formula(row, args, **kwargs):
    wanted = row.like(*args, **kwargs)
    value, by_formula = gradients(row, args, kwargs, "graph")
    same, by_kernel = gradients(row, args, kwargs)
    close(value, wanted, "float64")
    same_bits(value, same)
    for a, b in zip(by_formula, by_kernel, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-12 * max(1, np.abs(a).max(initial=0)))


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("queries, keys", [(7, 9), (8, 8), (15, 17), (16, 16), (63, 65), (64, 64), (65, 63), (129, 130),
                                           (3, 511), (5, 512), (66, 513), (600, 600), (520, 3), (1, 1030)])
def test_sizes_around_blocks(queries, keys, causal):
    against_formula(ROW, three((2,), queries, keys, 3, 5), is_causal=causal)


@pytest.mark.parametrize("kind", ["bool", "added", "row of bools", "row of numbers"])
def test_masks_over_several_blocks(kind):
    shape = (1, 530) if "row" in kind else (3, 70, 530)
    r = np.random.default_rng(0)
    mask = r.random(shape) < 0.3 if "bool" in kind else r.normal(size=shape)
    against_formula(ROW, [*three((3,), 70, 530, 4, 4), mask])


def test_dropout_over_several_blocks():
    against_formula(DROPPING, three((2,), 67, 515, 3, 3), p=0.4, seed=5, counter=2)


def heads_beside(rows, heads, width, seed):
    """(2, heads, rows, width), whose memory is that of (2, rows, heads, width)."""
    base = np.random.default_rng(seed).normal(size=(2, rows, heads, width))
    return cg.tensor(base).attach_grad(), base.transpose(0, 2, 1, 3)


@pytest.mark.parametrize("masked, causal, key_heads, p", [(False, True, 4, 0), (True, False, 2, 0),
                                                          (False, False, 4, 0.4), (False, True, 1, 0)])
@pytest.mark.parametrize("queries, keys", [(5, 7), (70, 530), (2, 1)])
def test_heads_side_by_side_in_memory(masked, causal, key_heads, p, queries, keys):
    """The same result and gradients as from (..., heads, rows, columns), by the kernel and by the formula."""
    parts = [heads_beside(queries, 4, 3, 0), heads_beside(keys, key_heads, 3, 1), heads_beside(keys, key_heads, 2, 2)]
    head = np.random.default_rng(3).normal(size=(2, 4, queries, 2))
    mask = np.random.default_rng(4).normal(size=(4, queries, keys)) if masked else None

    def attend(*qkv):
        return cg.scaled_dot_product_attention(*qkv, mask, p, causal, enable_gqa=key_heads != 4,
                                               generator=cg.random.Generator(1))

    dense = [cg.tensor(np.ascontiguousarray(a)).attach_grad() for _, a in parts]
    with cg.record():
        wanted = attend(*dense)
        y = attend(*[t.permute((0, 2, 1, 3)) for t, _ in parts])
    assert y.strides[1] == y.strides[2] // 4 and wanted.strides[2] < wanted.strides[1]
    bases = [t for t, _ in parts]
    by_formula = cg.autograd.grad(y, bases, cg.tensor(head), create_graph=True)
    by_kernel = cg.autograd.grad(y, bases, cg.tensor(head), retain_graph=True)
    of_dense = cg.autograd.grad(wanted, dense, cg.tensor(head))
    np.testing.assert_allclose(y.numpy(), wanted.numpy(), atol=1e-13)
    for a, b, c in zip(by_formula, by_kernel, of_dense, strict=True):
        np.testing.assert_allclose(b.numpy(), c.numpy().transpose(0, 2, 1, 3), atol=1e-12)
        np.testing.assert_allclose(a.numpy(), b.numpy(), atol=1e-12)


def test_joining_the_heads_again_copies_nothing():
    """Between projections of float32, 2 x 64 x 4 x 8: forward takes the memory of the result and of the statistics."""
    x = cg.tensor(np.ones((2, 64, 3 * 4 * 8), "float32")).attach_grad()
    with cg.record():
        before = cg.memory.stats()["live_bytes"]
        q, k, v = [part.reshape((2, 64, 4, 8)).permute((0, 2, 1, 3)) for part in cg.split(x, 3, -1)]
        y = cg.scaled_dot_product_attention(q, k, v, is_causal=True).permute((0, 2, 1, 3)).reshape((2, 64, 32))
        assert cg.memory.stats()["live_bytes"] - before == 4 * 2 * 64 * (4 * 8 + 4)
    y.backward(cg.ones(y.shape))
    np.testing.assert_allclose(x.grad.numpy()[..., 64:].sum(), y.size, rtol=1e-5)


@pytest.mark.parametrize("lead, group", [((6,), 1), ((1,), 1), ((1, 6), 3), ((1, 2), 2)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_threads_agree_bit_for_bit(lead, group, dtype, two_threads):
    """With many heads a thread has whole heads; with few it has blocks of queries or keys."""
    args = [np.asarray(a, dtype) for a in three(lead, 150, 1100, 32, 16)]
    args[1:] = [a[..., ::group, :, :] if group > 1 else a for a in args[1:]]
    args.append(np.asarray(np.random.default_rng(1).normal(size=(150, 1100)), dtype))
    found = []
    for threads in (1, 2, 2):
        cg.set_num_threads(threads)
        value, dxs = gradients(ROW, args, {"is_causal": True, "enable_gqa": group > 1})
        found.append([value, *dxs])
    for one, two, again in zip(*found, strict=True):
        same_bits(one, two)
        same_bits(one, again)


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("added", [False, True])
def test_a_query_that_sees_nothing_gives_zeros(added, create_graph):
    mask = np.array([[True, True], [False, False], [False, True]])
    mask = np.where(mask, 0.0, -np.inf) if added else mask
    q, k, v = (cg.tensor(a).attach_grad() for a in three((), 3, 2, 4, 3))
    with cg.record():
        y = cg.scaled_dot_product_attention(q, k, v, mask)
        dq, dk, dv = cg.autograd.grad(y, [q, k, v], head_for(y), create_graph=create_graph)
    assert y.detach().numpy()[1].tolist() == [0, 0, 0] and y.detach().numpy()[[0, 2]].all()
    assert dq.detach().numpy()[1].tolist() == [0, 0, 0, 0]
    assert np.isfinite(dk.detach().numpy()).all() and np.isfinite(dv.detach().numpy()).all()
    y = cg.scaled_dot_product_attention(q, cg.zeros((0, 4), dtype="float64"), cg.zeros((0, 3), dtype="float64"))
    assert y.tolist() == np.zeros((3, 3)).tolist()


def test_nan_in_a_score_reaches_its_query_alone():
    q, k, v = three((), 3, 4, 2, 2)
    q[1, 0] = np.nan
    y = cg.scaled_dot_product_attention(cg.tensor(q), cg.tensor(k), cg.tensor(v)).numpy()
    assert np.isnan(y[1]).all() and np.isfinite(y[[0, 2]]).all()


def test_large_scores():
    q, k, v = three((2,), 5, 9, 4, 3)
    close(cg.scaled_dot_product_attention(cg.tensor(1e4 * q), k, v).numpy(), ROW.like(1e4 * q, k, v), "float64")


def test_no_matrix_of_weights_in_memory():
    """2,000 queries and keys: their weights would take 16 MB for each head."""
    q, k, v = (cg.tensor(np.zeros((4, 2000, 8), "float32")).attach_grad() for _ in range(3))
    head = cg.ones((4, 2000, 8))

    def peak_of(f):
        cg.memory.reset_peak()
        before = cg.memory.stats()["peak_bytes"]
        f()
        return cg.memory.stats()["peak_bytes"] - before

    def forward():
        with cg.record():
            return cg.scaled_dot_product_attention(q, k, v, is_causal=True)

    y = forward()
    assert peak_of(forward) < 1e6
    assert peak_of(lambda: y.backward(head)) < 2e6


def test_heads_of_a_packed_projection_are_read_in_place():
    """(batch, T, 3, heads, width), as GPT makes it: no copy of query, key or value."""
    x = cg.tensor(np.random.default_rng(0).normal(size=(2, 50, 3, 4, 8)))
    q, k, v = (x[:, :, i].transpose((0, 2, 1, 3)) for i in range(3))
    dense = [a.copy() for a in (q, k, v)]
    with cg.memory.events() as strided: a = cg.scaled_dot_product_attention(q, k, v)
    with cg.memory.events() as packed: b = cg.scaled_dot_product_attention(*dense)
    assert len(strided) == len(packed)
    assert [n for kind, _, n, _ in strided if kind == "allocate"] == [
        n for kind, _, n, _ in packed if kind == "allocate"]
    same_bits(a.numpy(), b.numpy())


def test_dropout_draws_in_train_mode():
    q, k, v = (cg.tensor(a) for a in three((2,), 6, 7, 4, 3))
    g = cg.random.Generator(3)
    plain = cg.scaled_dot_product_attention(q, k, v).numpy()
    assert (cg.scaled_dot_product_attention(q, k, v, dropout_p=0.5, generator=g).numpy() == plain).all()
    assert g.state == (3, 0)
    with cg.train_mode():
        y = cg.scaled_dot_product_attention(q, k, v, dropout_p=0.5, generator=g)
    assert g.state == (3, 2 * 6 * 2)                # two blocks of random numbers for a row of 7
    same_bits(y.numpy(), ROWS["attention_with_dropout"].function(q, k, v, 0.5, 3, 0).numpy())
    assert len(philox(3, 0, 8)) == 8 and not (y.numpy() == plain).any()


def test_backward_detects_another_mode():
    q, k, v = (cg.tensor(a).attach_grad() for a in three((), 3, 3, 2, 2))
    with cg.record(train_mode=True):
        y = cg.scaled_dot_product_attention(q, k, v, dropout_p=0.5)
    with pytest.raises(RuntimeError, match="mode"):
        y.backward(head_for(y), train_mode=False)
