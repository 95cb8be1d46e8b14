"""MultiheadAttention and TransformerBlock beyond PyTorch's samples: masks, the weights, memory, the mode.
test_layers.py compares the samples, test_nets.py has what all layers share."""

import numpy as np
import pytest

import cygrad as cg
from cygrad import nn
from cygrad.core.execute.generator import Generator


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def pair(cls, *args, **named):
    """Our layer and PyTorch's, in float64, with the same random parameters."""
    import torch
    torch.manual_seed(0)
    theirs = getattr(torch.nn, cls)(*args, **named).double()
    with torch.no_grad():
        for p in theirs.parameters(): p += torch.rand_like(p) / 4
    ours = getattr(nn, cls)(*args, dtype="float64", **named)
    ours.load_state_dict({name: t.numpy() for name, t in theirs.state_dict().items()})
    return ours, theirs


def compare(ours, theirs, arrays, call, call_theirs):
    """Values, and gradients of the arrays and of all parameters."""
    import torch
    xs = [cg.tensor(x).requires_grad_() for x in arrays]
    ts = [torch.tensor(x, requires_grad=True) for x in arrays]
    with cg.record(): ys = call(*xs)
    zs = call_theirs(*ts)
    for y, z in zip(ys, zs, strict=True): np.testing.assert_allclose(y.numpy(), z.detach().numpy(), atol=1e-12)
    heads = [numbers(*y.shape, seed=5) for y in ys]
    cg.backward(ys, [cg.tensor(g) for g in heads])
    torch.autograd.backward(zs, [torch.tensor(g) for g in heads])
    for x, t in zip(xs, ts, strict=True): np.testing.assert_allclose(x.grad.numpy(), t.grad.numpy(), atol=1e-11)
    for name, p in theirs.named_parameters():
        np.testing.assert_allclose(ours.get_parameter(name).grad.numpy(), p.grad.numpy(), atol=1e-10)


PADDING = np.array([[False, False, True, False, False], [False, True, True, False, True]])
MASKS = {
    "none": {}, "padding": {"key_padding_mask": PADDING},
    "hidden": {"attn_mask": np.triu(np.ones((4, 5), bool), 2)},
    "added": {"attn_mask": numbers(4, 5, seed=3)},
    "heads": {"attn_mask": numbers(2 * 2, 4, 5, seed=3)},
    "bool-and-padding": {"attn_mask": np.triu(np.ones((4, 5), bool), 2), "key_padding_mask": PADDING},
    "added-and-padding": {"attn_mask": numbers(4, 5, seed=3), "key_padding_mask": np.where(PADDING, -np.inf, 0.0)},
    "added-and-bool": {"attn_mask": numbers(4, 5, seed=3), "key_padding_mask": PADDING},
    "bool-and-added": {"attn_mask": np.triu(np.ones((4, 5), bool), 2), "key_padding_mask": numbers(2, 5, seed=4)},
}


@pytest.mark.filterwarnings("ignore:Support for mismatched")
@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
@pytest.mark.parametrize("weights", (False, True), ids=["without", "weights"])
@pytest.mark.parametrize("sizes", [{}, {"kdim": 6, "vdim": 3}], ids=["joint", "kdim"])
def test_masks(mask, weights, sizes):
    """Three different operands, with and without the matrix of weights."""
    import torch
    ours, theirs = pair("MultiheadAttention", 8, 2, batch_first=True, **sizes)
    shapes = (2, 4, 8), (2, 5, sizes.get("kdim", 8)), (2, 5, sizes.get("vdim", 8))
    arrays = [numbers(*shape, seed=i) for i, shape in enumerate(shapes)]

    def call(*xs):
        y, w = ours(*xs, need_weights=weights, average_attn_weights=False, **mask)
        return [y, w] if weights else [y]

    def call_theirs(*ts):
        given = {name: torch.tensor(m) for name, m in mask.items()}
        y, w = theirs(*ts, need_weights=weights, average_attn_weights=False, **given)
        return [y, w] if weights else [y]
    compare(ours, theirs, arrays, call, call_theirs)


@pytest.mark.parametrize("batch_first", (False, True))
@pytest.mark.parametrize("operands", ("self", "cross", "all"))
def test_operands_that_are_the_same(operands, batch_first):
    """One product for self-attention, two if key and value are the same, else three: equal results and gradients."""
    ours, theirs = pair("MultiheadAttention", 8, 2, batch_first=batch_first)
    n = {"self": 1, "cross": 2, "all": 3}[operands]
    arrays = [numbers(5, 5, 8, seed=i) for i in range(n)]

    def given(xs): return (*xs, *[xs[-1]] * (3 - n))
    compare(ours, theirs, arrays, lambda *xs: [ours(*given(xs))[0]], lambda *xs: [theirs(*given(xs))[0]])


def test_is_causal_needs_no_mask():
    import torch
    ours, theirs = pair("MultiheadAttention", 8, 2)
    hidden = np.triu(np.ones((5, 5), bool), 1)
    x = numbers(5, 3, 8)
    wanted, w = theirs(*[torch.tensor(x)] * 3, attn_mask=torch.tensor(hidden))
    for need in (False, True):
        y, found = ours(x, x, x, is_causal=True, need_weights=need)
        np.testing.assert_allclose(y.numpy(), wanted.detach().numpy(), atol=1e-12)
    np.testing.assert_allclose(found.numpy(), w.detach().numpy(), atol=1e-12)
    padding = np.zeros((3, 5), bool)
    padding[:, 0] = True                            # query 0 sees nothing
    for need in (False, True):
        y, _ = ours(x, x, x, padding, need, is_causal=True)
        np.testing.assert_allclose(y.numpy()[0], np.broadcast_to(ours.out_proj.bias.numpy(), (3, 8)))
        assert np.isfinite(y.numpy()).all()
        result = theirs(*[torch.tensor(x)] * 3, torch.tensor(padding), need, torch.tensor(hidden))[0].detach().numpy()
        if need: assert np.isnan(result[0]).all()   # (the difference that the docstring states)
        else: np.testing.assert_allclose(y.numpy(), result, atol=1e-12)


def test_the_matrix_of_weights_is_only_made_if_it_is_wanted():
    """512 steps, 4 heads: the matrix would take 4 MiB. The layer takes as many allocations as its operators."""
    layer, x, peaks = nn.MultiheadAttention(16, 4, batch_first=True), cg.ones(1, 512, 16), []
    for need in (False, True):
        with cg.memory.track() as tracked:
            with cg.record(): y, w = layer(x, x, x, need_weights=need)
            y.backward(cg.ones_like(y))
            assert (w is None) == (not need)
            y = w = None
            layer.zero_grad()
        peaks.append(tracked.peak_bytes)
        assert tracked.leaked_bytes == 0
    assert peaks[0] < 1 << 20 < 1 << 22 < peaks[1]


def test_dropout_and_the_mode():
    layer = nn.MultiheadAttention(8, 2, dropout=0.5, generator=Generator(0))
    x = numbers(5, 3, 8).astype("f4")
    plain = layer(x, x, x)[0].numpy()
    assert (layer(x, x, x)[0].numpy() == plain).all()
    with cg.train_mode():
        assert (layer(x, x, x)[0].numpy() != plain).any()
        _, w = layer(x, x, x, need_weights=True, average_attn_weights=False)
        assert 0.2 < (w.numpy() == 0).mean() < 0.8
        with pytest.raises(RuntimeError, match="MultiheadAttention: eval"): layer.eval()(x, x, x)
    with pytest.raises(RuntimeError, match="MultiheadAttention: train"): layer.train()(x, x, x)
    with cg.train_mode():
        nn.TransformerBlock(8, 2, 16, dropout=0.0).eval()(x)      # which does not depend on the mode
        with pytest.raises(RuntimeError, match="eval"): nn.TransformerBlock(8, 2, 16, dropout=0.5).eval()(x)


@pytest.mark.parametrize("norm_first", (False, True))
@pytest.mark.parametrize("activation", ("relu", "gelu", "tanh"))
def test_a_causal_block(norm_first, activation):
    """causal=True is PyTorch's layer with a causal mask, in train mode without dropout."""
    import torch
    function = {"tanh": torch.tanh}.get(activation, activation)
    torch.manual_seed(0)
    theirs = torch.nn.TransformerEncoderLayer(8, 2, 16, 0.0, function, norm_first=norm_first, batch_first=True).double()
    ours = nn.TransformerBlock(8, 2, 16, 0.0, cg.tanh if activation == "tanh" else activation, norm_first=norm_first,
                               batch_first=True, causal=True, dtype="float64")
    ours.load_state_dict({name: t.numpy() for name, t in theirs.state_dict().items()})
    hidden = torch.ones(5, 5).triu(1).bool()
    with cg.train_mode():
        compare(ours, theirs, [numbers(3, 5, 8)], lambda x: [ours(x)], lambda t: [theirs(t, hidden)])


@pytest.mark.parametrize("activation", ("relu", "gelu"))
def test_a_block_takes_the_memory_of_its_operators(activation):
    """A step of a block and one of bare operators: equal allocations, equal peak, nothing left."""
    block = nn.TransformerBlock(16, 4, 32, 0.0, activation, batch_first=True, norm_first=True)
    x, g, p, counts = cg.ones(3, 9, 16), cg.ones(3, 9, 16), dict(block.named_parameters()), []

    def heads(x): return x.reshape((3, 9, 4, 4)).permute((0, 2, 1, 3))

    def bare(x):
        n = cg.layer_norm(x, p["norm1.weight"], p["norm1.bias"])
        q, k, v = cg.split(cg.linear(n, p["self_attn.in_proj_weight"], p["self_attn.in_proj_bias"]), 3, -1)
        a = cg.scaled_dot_product_attention(heads(q), heads(k), heads(v)).permute((0, 2, 1, 3)).reshape((3, 9, 16))
        x = x + cg.linear(a, p["self_attn.out_proj.weight"], p["self_attn.out_proj.bias"])
        n = cg.layer_norm(x, p["norm2.weight"], p["norm2.bias"])
        if activation == "relu": n = cg.linear(n, p["linear1.weight"], p["linear1.bias"], activation="relu")
        else: n = cg.gelu(cg.linear(n, p["linear1.weight"], p["linear1.bias"]))
        return x + cg.linear(n, p["linear2.weight"], p["linear2.bias"])
    for f in (block, bare):
        with cg.testing.fail_allocation(1 << 40) as counted, cg.memory.track() as tracked:
            with cg.record(): y = f(x)
            y.backward(g)
            y = None
            block.zero_grad()
        counts.append((counted.allocations, tracked.peak_bytes, tracked.leaked_bytes))
    assert counts[0] == counts[1] and counts[0][2] == 0


def test_hooks_of_the_first_linear_layer_run():
    """Without hooks, linear1 and relu are one operation; the result is the same."""
    block, x, seen = nn.TransformerBlock(8, 2, 16), numbers(5, 3, 8).astype("f4"), []
    plain = block(x).numpy()
    with block.linear1.register_forward_hook(lambda m, args, y: seen.append(y.shape)):
        assert (block(x).numpy() == plain).all()
    assert seen == [(5, 3, 16)]
    with cg.memory.profile() as p, cg.record():
        y = block(x)
    layers = str(p.table(by="layer"))
    assert y.shape == (5, 3, 8) and all(name in layers for name in (".linear1", ".self_attn.out_proj", ".norm2"))


def test_the_block_is_made_from_one_generator():
    a, b = (nn.TransformerBlock(8, 2, 16, generator=Generator(3)) for _ in range(2))
    x = numbers(5, 3, 8).astype("f4")
    with cg.train_mode(): assert (a(x).numpy() == b(x).numpy()).all()
    assert (a(x).numpy() == b(x).numpy()).all()
