"""Recurrent layers and cells beyond PyTorch's samples: lengths, first states, dropout and the mode, cells as layers of
one step. test_layers.py compares the samples, test_nets.py has what all layers share."""

import numpy as np
import pytest

import cygrad as cg
from cygrad import nn
from cygrad.core.execute.generator import Generator

LAYERS = ("LSTM", "GRU", "RNN")
every_layer = pytest.mark.parametrize("name", LAYERS)


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def states_of(last):
    return list(last) if isinstance(last, tuple) else [last]


@every_layer
@pytest.mark.parametrize("bidirectional", (False, True))
@pytest.mark.parametrize("batch_first", (False, True))
def test_lengths_are_packed_sequences(name, bidirectional, batch_first):
    """Values, last states and all gradients against PyTorch's module on a PackedSequence; lengths in any order."""
    import torch
    from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
    named = {"num_layers": 2, "bidirectional": bidirectional, "batch_first": batch_first}
    theirs = getattr(torch.nn, name)(4, 3, **named).double()
    ours = getattr(nn, name)(4, 3, dtype="float64", **named)
    ours.load_state_dict({n: t.numpy() for n, t in theirs.state_dict().items()})
    lengths, x = [3, 6, 1, 4], numbers(6, 4, 4)
    if batch_first: x = x.swapaxes(0, 1).copy()
    h = numbers(4 if bidirectional else 2, 4, 3, seed=1)
    a, b = cg.tensor(x).requires_grad_(), torch.tensor(x, requires_grad=True)
    first = (cg.tensor(h), cg.tensor(h + 1)) if name == "LSTM" else cg.tensor(h)
    with cg.record():
        y, last = ours(a, first, lengths=lengths)
    packed = pack_padded_sequence(b, lengths, batch_first, enforce_sorted=False)
    first = (torch.tensor(h), torch.tensor(h + 1)) if name == "LSTM" else torch.tensor(h)
    z, theirs_last = theirs(packed, first)
    z, _ = pad_packed_sequence(z, batch_first)
    found, wanted = [y, *states_of(last)], [z, *states_of(theirs_last)]
    for u, v in zip(found, wanted, strict=True): np.testing.assert_allclose(u.numpy(), v.detach().numpy(), atol=1e-12)
    heads = [numbers(*u.shape, seed=2) for u in found]
    cg.backward(found, [cg.tensor(g) for g in heads])
    torch.autograd.backward(wanted, [torch.tensor(g) for g in heads])
    np.testing.assert_allclose(a.grad.numpy(), b.grad.numpy(), atol=1e-11)
    for n, p in theirs.named_parameters():
        np.testing.assert_allclose(ours.get_parameter(n).grad.numpy(), p.grad.numpy(), atol=1e-11)


@every_layer
def test_a_cell_is_a_layer_of_one_step(name):
    layer, cell = getattr(nn, name)(4, 3), getattr(nn, name + "Cell")(4, 3)
    cell.load_state_dict({n.removesuffix("_l0"): x for n, x in layer.state_dict().items()})
    x = cg.tensor(numbers(5, 2, 4).astype("f4"))
    y, last = layer(x)
    h = None
    for t in range(5): h = cell(x[t], h)
    for a, b in zip(states_of(h), states_of(last), strict=True):
        np.testing.assert_allclose(a.numpy(), b[0].numpy(), rtol=1e-5, atol=1e-6)
    one = cell(x[0, 0])                             # a sample without a batch
    for a, b in zip(states_of(one), states_of(cell(x[0])), strict=True):
        assert a.shape == (3,)
        np.testing.assert_allclose(a.numpy(), b[0].numpy(), rtol=1e-5, atol=1e-6)


@every_layer
def test_one_sequence_without_a_batch(name):
    for batch_first in (False, True):
        layer = getattr(nn, name)(4, 3, 2, batch_first=batch_first, bidirectional=True)
        x = numbers(5, 4).astype("f4")
        y, last = layer(x)
        batch, states = layer(x[None] if batch_first else x[:, None])
        np.testing.assert_allclose(y.numpy(), (batch[0] if batch_first else batch[:, 0]).numpy(), rtol=1e-5, atol=1e-6)
        for a, b in zip(states_of(last), states_of(states), strict=True):
            assert a.shape == (4, 3)
            np.testing.assert_allclose(a.numpy(), b[:, 0].numpy(), rtol=1e-5, atol=1e-6)


@every_layer
def test_dropout_is_between_layers_in_train_mode(name):
    layer, x = getattr(nn, name)(4, 3, 2, dropout=0.5), numbers(5, 2, 4).astype("f4")
    plain = layer(x)[0].numpy()
    assert (layer(x)[0].numpy() == plain).all()
    with cg.train_mode():
        cg.random.seed(0)
        a = layer(x)[0].numpy()
        assert (a != layer(x)[0].numpy()).any() and (a != plain).any()
        cg.random.seed(0)
        assert (layer(x)[0].numpy() == a).all()
        with pytest.raises(RuntimeError, match=f"{name}: eval"): layer.eval()(x)
    with pytest.raises(RuntimeError, match=f"{name}: train"): layer.train()(x)
    with cg.train_mode():                           # one layer has no dropout, so it does not depend on the mode
        getattr(nn, name)(4, 3, 1, dropout=0.5).eval()(x)
    layer.dropout = 0.0                             # an attribute is read at each call
    assert (layer.eval()(x)[0].numpy() == plain).all()


@every_layer
def test_all_weights_come_from_one_generator_in_the_order_of_their_names(name):
    layer = getattr(nn, name)(4, 3, 2, bidirectional=True, generator=Generator(7))
    source = Generator(7)
    k = 3 ** -0.5
    for x in layer.parameters():
        assert (source.uniform(x.shape, -k, k).numpy() == x.numpy()).all()


@every_layer
def test_unknown_width(name):
    layer = getattr(nn, name)(None, 3, 2, bidirectional=True)
    assert layer(cg.ones(5, 2, 4))[0].shape == (5, 2, 6) and layer.input_size == 4
    loaded = getattr(nn, name)(None, 3, 2, bidirectional=True)
    loaded.load_state_dict(layer.state_dict())
    assert (loaded(cg.ones(5, 2, 4))[0].numpy() == layer(cg.ones(5, 2, 4))[0].numpy()).all()
    cell = getattr(nn, name + "Cell")(None, 3)
    assert states_of(cell(cg.ones(4)))[0].shape == (3,) and cell.weight_ih.shape[1] == 4


@every_layer
def test_a_step_allocates_what_the_operator_does(name):
    layer, x, counts = getattr(nn, name)(4, 3), cg.ones(5, 2, 4), []
    operator = getattr(cg, name.lower())
    for f in (layer, lambda x: operator(x, list(layer.parameters()))):
        with cg.testing.fail_allocation(1 << 40) as counted, cg.memory.track() as tracked:
            with cg.record(): y = f(x)[0]
            y.backward(cg.ones_like(y))
            y = None
            layer.zero_grad()
        counts.append((counted.allocations, tracked.peak_bytes, tracked.leaked_bytes))
    assert counts[0] == counts[1] and counts[0][2] == 0
