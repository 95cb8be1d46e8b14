"""TransformerDecoderLayer, TransformerEncoder, TransformerDecoder and Transformer beyond PyTorch's samples: masks in
both modes, stacks, generators, recomputation. test_layers.py compares the samples, test_nets.py has what all layers
share."""

import numpy as np
import pytest

import cygrad as cg
from cygrad import nn
from cygrad.core.execute.generator import Generator

pytestmark = pytest.mark.filterwarnings("ignore:enable_nested_tensor is True", "ignore:Support for mismatched")

STEPS, KEYS, BATCH, SIZE = 5, 4, 3, 8
HIDDEN = np.triu(np.ones((STEPS, STEPS), bool), 1)
CROSS = np.arange(KEYS) > np.arange(STEPS)[:, None] + 1
PADDED, PADDED_KEYS = (np.arange(n) >= np.array([[n], [n - 2], [n - 1]]) for n in (STEPS, KEYS))
MASKS = {
    "none": {}, "causal": {"tgt_mask": HIDDEN}, "memory": {"memory_mask": CROSS},
    "numbers": {"tgt_mask": np.where(HIDDEN, -np.inf, 0.25), "memory_mask": np.where(CROSS, -np.inf, 0.5)},
    "padding": {"tgt_key_padding_mask": PADDED, "memory_key_padding_mask": PADDED_KEYS},
    "all": {"tgt_mask": HIDDEN, "memory_mask": CROSS, "tgt_key_padding_mask": PADDED,
            "memory_key_padding_mask": PADDED_KEYS},
}


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def moved(theirs):
    """PyTorch's module, whose parameters of ones and zeros have other numbers."""
    import torch
    with torch.no_grad():
        for p in theirs.parameters(): p += torch.rand_like(p) / 4
    return theirs


def loaded(ours, theirs):
    assert list(ours.state_dict()) == list(theirs.state_dict())
    ours.load_state_dict({name: x.numpy() for name, x in theirs.state_dict().items()})
    return ours


def compare(ours, theirs, arrays, masks, training):
    """The value, and the gradients of the inputs and of all parameters, with the masks by name. PyTorch is in train
    mode in both cases: without dropout it computes the same, and its fast path of predictions has no gradients."""
    import torch
    xs = [cg.tensor(a).requires_grad_() for a in arrays]
    ts = [torch.tensor(a, requires_grad=True) for a in arrays]
    with cg.record(train_mode=training): y = ours(*xs, **masks)
    z = theirs(*ts, **{name: torch.tensor(mask) for name, mask in masks.items()})
    np.testing.assert_allclose(y.detach().numpy(), z.detach().numpy(), rtol=0, atol=1e-12)
    g = numbers(*y.shape, seed=5)
    y.backward(cg.tensor(g))
    z.backward(torch.tensor(g))
    for x, t in zip(xs, ts, strict=True): np.testing.assert_allclose(x.grad.numpy(), t.grad.numpy(), rtol=0, atol=1e-11)
    for name, p in theirs.named_parameters():
        np.testing.assert_allclose(ours.get_parameter(name).grad.numpy(), p.grad.numpy(), rtol=0, atol=1e-10)


def inputs(batch_first):
    tgt, memory = numbers(STEPS, BATCH, SIZE), numbers(KEYS, BATCH, SIZE, seed=1)
    return [np.ascontiguousarray(x.swapaxes(0, 1)) for x in (tgt, memory)] if batch_first else [tgt, memory]


@pytest.mark.parametrize("training", (True, False), ids=["train", "predict"])
@pytest.mark.parametrize("batch_first", (False, True), ids=["steps", "batch"])
@pytest.mark.parametrize("norm_first", (False, True), ids=["post", "pre"])
@pytest.mark.parametrize("masks", MASKS.values(), ids=MASKS)
def test_a_decoder_layer(masks, norm_first, batch_first, training):
    import torch
    torch.manual_seed(0)
    how = {"norm_first": norm_first, "batch_first": batch_first}
    theirs = moved(torch.nn.TransformerDecoderLayer(SIZE, 2, 12, 0.0, "gelu", **how).double())
    ours = loaded(nn.TransformerDecoderLayer(SIZE, 2, 12, 0.0, "gelu", dtype="float64", **how), theirs)
    compare(ours, theirs, inputs(batch_first), masks, training)


@pytest.mark.parametrize("training", (True, False), ids=["train", "predict"])
@pytest.mark.parametrize("norm_first", (False, True), ids=["post", "pre"])
@pytest.mark.parametrize("masks", MASKS.values(), ids=MASKS)
def test_a_decoder(masks, norm_first, training):
    import torch
    torch.manual_seed(0)
    theirs = torch.nn.TransformerDecoder(torch.nn.TransformerDecoderLayer(SIZE, 2, 12, 0.0, norm_first=norm_first), 3,
                                         torch.nn.LayerNorm(SIZE)).double()
    ours = nn.TransformerDecoder(nn.TransformerDecoderLayer(SIZE, 2, 12, 0.0, norm_first=norm_first, dtype="float64"),
                                 3, nn.LayerNorm(SIZE, dtype="float64"))
    compare(loaded(ours, moved(theirs)), theirs, inputs(False), masks, training)


@pytest.mark.parametrize("training", (True, False), ids=["train", "predict"])
@pytest.mark.parametrize("norm", (False, True), ids=["bare", "norm"])
@pytest.mark.parametrize("masks", [{}, {"mask": HIDDEN}, {"src_key_padding_mask": PADDED},
                                   {"mask": HIDDEN, "src_key_padding_mask": PADDED}],
                         ids=["none", "causal", "padding", "both"])
def test_an_encoder(masks, norm, training):
    import torch
    torch.manual_seed(0)
    theirs = torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(SIZE, 2, 12, 0.0, batch_first=True), 3,
                                         torch.nn.LayerNorm(SIZE) if norm else None).double()
    ours = nn.TransformerEncoder(nn.TransformerEncoderLayer(SIZE, 2, 12, 0.0, batch_first=True, dtype="float64"), 3,
                                 nn.LayerNorm(SIZE, dtype="float64") if norm else None)
    compare(loaded(ours, moved(theirs)), theirs, inputs(True)[:1], masks, training)


@pytest.mark.parametrize("alone", (False, True), ids=["batch", "alone"])
@pytest.mark.parametrize("norm_first", (False, True), ids=["post", "pre"])
def test_a_causal_flag_is_the_causal_mask(norm_first, alone):
    """In every layer and stack, as the argument of the call and of the layer; PyTorch needs the mask too."""
    x, memory = (cg.tensor(a[:, 0] if alone else a) for a in inputs(False))
    how = {"norm_first": norm_first, "dtype": "float64"}
    layer, stack = nn.TransformerDecoderLayer(SIZE, 2, 12, **how), nn.TransformerBlock(SIZE, 2, 12, **how)
    always = nn.TransformerDecoderLayer(SIZE, 2, 12, causal=True, **how)
    always.load_state_dict(layer.state_dict())
    decoder, encoder = nn.TransformerDecoder(layer, 2), nn.TransformerEncoder(stack, 2)
    both = nn.Transformer(SIZE, 2, 1, 1, 12, **how)
    wanted = layer(x, memory, tgt_mask=HIDDEN).numpy()
    assert np.array_equal(layer(x, memory, tgt_is_causal=True), wanted) and np.array_equal(always(x, memory), wanted)
    assert (wanted[0] != layer(x, memory).numpy()[0]).any()
    assert np.array_equal(decoder(x, memory, tgt_is_causal=True), decoder(x, memory, tgt_mask=HIDDEN))
    assert np.array_equal(decoder(x, memory, tgt_is_causal=None), decoder(x, memory))
    assert np.array_equal(encoder(x, is_causal=True), encoder(x, mask=HIDDEN))
    assert np.array_equal(decoder(x, memory, memory_is_causal=True),
                          decoder(x, memory, memory_mask=np.triu(np.ones((STEPS, KEYS), bool), 1)))
    mask = nn.Transformer.generate_square_subsequent_mask(STEPS, dtype="float64")
    assert np.array_equal(mask, np.where(HIDDEN, -np.inf, 0)) and mask.dtype == "float64"
    assert np.array_equal(both(memory, x, tgt_is_causal=True), both(memory, x, tgt_mask=mask))
    assert np.array_equal(both(memory, x), both.decoder(x, both.encoder(memory)))


def test_custom_parts_of_a_transformer():
    encoder = nn.TransformerEncoder(nn.TransformerBlock(SIZE, 2, 12), 1)
    net = nn.Transformer(SIZE, 2, 1, 1, 12, custom_encoder=encoder)
    assert net.encoder is encoder and net.decoder.num_layers == 1 and (net.d_model, net.nhead) == (SIZE, 2)


def test_copies_of_a_layer_draw_from_one_generator():
    """They do not drop the same elements: a copy of the generator in each layer would. Their parameters are equal."""
    source = Generator(3)
    layer = nn.TransformerBlock(SIZE, 2, 12, 0.5, generator=source)
    net = nn.TransformerEncoder(layer, 2)
    assert {id(m.generator) for m in net.modules() if hasattr(m, "generator")} == {id(source)}
    assert not {id(p) for p in net.parameters()} & {id(p) for p in layer.parameters()}
    assert [p.numpy().tobytes() for p in net.layers[0].parameters()] == [
        p.numpy().tobytes() for p in net.layers[1].parameters()] == [p.numpy().tobytes() for p in layer.parameters()]
    x, seen = cg.ones((STEPS, 1, SIZE)), []
    hooks = [block.dropout.register_forward_hook(lambda m, args, y: seen.append(y.numpy() == 0))
             for block in net.layers]
    for block in net.layers: block.linear1.weight.detach().fill_(0)     # so that only dropout makes zeros
    for block in net.layers: block.linear1.bias.detach().fill_(1)
    source.state = start = 3, 0
    with cg.train_mode(): first = net(x).numpy()
    assert (seen[0] != seen[1]).any() and 0.2 < np.mean(seen) < 0.8 and source.state[1] > 0
    end, source.state = source.state, start
    with cg.train_mode(): assert net(x).numpy().tobytes() == first.tobytes() and source.state == end
    assert (net(x).numpy() != first).any()          # (in predict mode)
    for hook in hooks: hook.remove()


def test_layers_that_are_computed_again_draw_the_same():
    """checkpoint_() of each layer changes neither the gradients nor what is drawn, and saves memory."""
    found = []
    for again in (False, True):
        source = Generator(7)
        net = nn.TransformerDecoder(nn.TransformerDecoderLayer(SIZE, 2, 64, 0.25, generator=source), 3)
        if again:
            for layer in net.layers: layer.checkpoint_()
        x, memory = (cg.tensor(a.astype("float32")) for a in inputs(False))
        with cg.record(): y = net(x, memory)
        live = cg.memory.stats()["live_bytes"]
        y.backward(cg.ones(y.shape))
        found.append((y.detach().numpy().tobytes(), source.state, live,
                      *(p.grad.numpy().tobytes() for p in net.parameters())))
    (_, _, much, *_), (_, _, less, *_) = found
    assert [a for i, a in enumerate(found[0]) if i != 2] == [a for i, a in enumerate(found[1]) if i != 2]
    assert less < much / 2


def test_a_budget_and_a_captured_step_have_the_same_bits():
    """With dropout, whose elements are drawn again where values are computed again."""
    src, tgt = (np.concatenate([a.astype("float32")] * 6) for a in inputs(False))

    def model():
        cg.random.seed(3)
        return nn.Transformer(SIZE, 2, 2, 2, 64, 0.1, generator=Generator(5))

    def step(net, x, y):
        with cg.record(): loss = cg.square(net(x, y, tgt_is_causal=True)).sum()
        loss.backward()
        return loss

    def gradients(net):
        return [p.grad.numpy().tobytes() for p in net.parameters()]

    x, y, net = cg.tensor(src), cg.tensor(tgt), model()
    before = cg.memory.stats()["live_bytes"]
    with cg.memory.track() as tracked: step(net, x, y)
    wanted, need = gradients(net), tracked.peak_bytes - before
    del net
    net = model()
    with cg.memory.budget(cg.memory.stats()["live_bytes"] + need * 4 // 5) as budget: step(net, x, y)
    assert gradients(net) == wanted and budget.recomputed.calls > 0
    net = model()
    captured, workspace = cg.graph.Net.capture(lambda x, y: step(net, x, y), src, tgt), cg.graph.Workspace()
    for name, a in zip(captured.inputs, (src, tgt), strict=True): workspace.feed(name, a)
    workspace.run(captured)
    assert gradients(net) == wanted
