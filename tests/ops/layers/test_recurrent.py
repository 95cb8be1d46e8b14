"""lstm, gru and rnn: against PyTorch's modules, lengths, memory, threads."""

import warnings

import numpy as np
import pytest

import cygrad as cg
from rows import gradients, head_for, same_bits
from tests.samples import SAMPLED
from tests.samples.recurrent import layer_like

KINDS = ("lstm", "gru", "rnn", "rnn_relu")


@pytest.fixture(scope="module")
def torch():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("torch", reason="PyTorch is not installed, so it cannot be compared with")


def module(torch, kind, *args, **kwargs):
    if kind == "rnn_relu": kwargs["nonlinearity"] = "relu"
    torch.manual_seed(0)
    return {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU}.get(kind, torch.nn.RNN)(*args, dtype=torch.float64, **kwargs)


def run(kind, x, weights, h0, c0, **kwargs):
    out = cg.ops.ROWS[kind].function(x, weights, *([h0, c0] if kind == "lstm" else [h0]), **kwargs)
    return (out[0], *out[1]) if kind == "lstm" else out


def parts(r, *shapes):
    return [r.uniform(-1, 1, s) for s in shapes]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("layers, both, first, bias, lengths", [
    (1, False, False, True, None), (2, True, True, True, None), (3, False, False, False, None),
    (1, True, False, False, [3, 5, 1, 5]), (2, True, True, True, [5, 2, 4, 1]), (2, False, False, True, [1, 2, 3, 4]),
])
def test_agrees_with_torch_in_value_and_gradients(kind, layers, both, first, bias, lengths, torch):
    """Layers, directions, batch_first, biases, first states and lengths: value, first and second gradients."""
    steps, batch, width, hidden = 5, 4, 3, 2
    net = module(torch, kind, width, hidden, layers, bias=bias, batch_first=first, bidirectional=both)
    r = np.random.default_rng(1)
    state = (layers * (1 + both), batch, hidden)
    arrays = parts(r, (batch, steps, width) if first else (steps, batch, width), state, state)
    theirs = [torch.tensor(a, requires_grad=True) for a in arrays]
    ours = [cg.tensor(a).attach_grad() for a in arrays]
    weights = [cg.tensor(p.detach().numpy()).attach_grad() for p in net.parameters()]

    def torch_net():
        x, *states = theirs
        if lengths is not None:
            x = torch.nn.utils.rnn.pack_padded_sequence(x, torch.tensor(lengths), first, enforce_sorted=False)
        y, last = net(x, tuple(states) if kind == "lstm" else states[0])
        if lengths is not None:
            y, _ = torch.nn.utils.rnn.pad_packed_sequence(y, first, total_length=steps)
        return (y, *last) if kind == "lstm" else (y, last)

    wanted = torch_net()
    xs = [*theirs[:3 if kind == "lstm" else 2], *net.parameters()]
    leaves = [*ours[:3 if kind == "lstm" else 2], *weights]
    heads = [r.uniform(-1, 1, tuple(y.shape)) for y in wanted]
    directions = [r.uniform(-1, 1, tuple(x.shape)) for x in xs]
    options = dict(num_layers=layers, bidirectional=both, batch_first=first, lengths=lengths)
    with cg.record():
        found = run(kind, ours[0], weights, ours[1], ours[2], **options)
        plain = cg.autograd.grad(list(found), leaves, [cg.tensor(h) for h in heads], retain_graph=True)
        graph = cg.autograd.grad(list(found), leaves, [cg.tensor(h) for h in heads], create_graph=True)
        scalar = sum((g * v).sum() for g, v in zip(graph, directions, strict=True))
        second = cg.autograd.grad(scalar, leaves, allow_unused=True)
    expected = torch.autograd.grad(wanted, xs, [torch.tensor(h) for h in heads], create_graph=True)
    scalar = sum((g * torch.tensor(v)).sum() for g, v in zip(expected, directions, strict=True))
    further = torch.autograd.grad(scalar, xs, allow_unused=True)
    for a, b in zip([*found, *plain, *graph], [*wanted, *expected, *expected], strict=True):
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-10, atol=1e-12)
    for a, b in zip(second, further, strict=True):
        zero = np.zeros(1)
        np.testing.assert_allclose(zero if a is None else a.numpy(), zero if b is None else b.numpy(), rtol=1e-9,
                                   atol=1e-11)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("steps, batch, width, hidden", [(1, 1, 7, 8), (9, 5, 15, 17), (2, 3, 1, 33), (70, 33, 64, 65)])
def test_sizes(kind, steps, batch, width, hidden):
    """Around the widths of vectors, and more than one chunk of steps; strided x, weights and states."""
    r = np.random.default_rng(0)
    factor = {"lstm": 4, "gru": 3}.get(kind, 1)
    x, w_ih, w_hh, h0, c0 = parts(r, (batch, steps, width), (width, factor * hidden), (hidden, factor * hidden),
                                  (hidden, batch), (hidden, batch))
    b_ih, b_hh = parts(r, (factor * hidden,), (factor * hidden,))
    w_ih, w_hh = w_ih / width ** 0.5, w_hh / hidden ** 0.5
    wanted = layer_like(kind, x.swapaxes(0, 1), w_ih.T, w_hh.T, b_ih, b_hh, h0.T, c0.T if kind == "lstm" else None)
    t = [cg.tensor(a) for a in (x, w_ih, w_hh, h0, c0)]
    leaf = t[1].attach_grad()
    for recorded in (False, True):
        with cg.record() if recorded else cg.pause():
            found = run(kind, t[0].transpose((1, 0, 2)), [leaf.T, t[2].T, b_ih, b_hh], cg.expand_dims(t[3].T, 0),
                        cg.expand_dims(t[4].T, 0))
        assert (found[0].grad_fn is not None) == recorded
        for a, b in zip(found, wanted, strict=False):
            np.testing.assert_allclose(a.detach().numpy().reshape(b.shape), b, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_threads_agree(kind, two_threads):
    """Each thread takes some sequences, or rows of a gradient: the same bits."""
    r = np.random.default_rng(0)
    factor = {"lstm": 4, "gru": 3}.get(kind, 1)
    args = parts(r, (20, 24, 64), (factor * 64, 64), (factor * 64, 64), (factor * 64,), (factor * 64,), (24, 64),
                 (24, 64))
    args[1:3] = [a / 8 for a in args[1:3]]
    found = []
    for threads in (1, 2, 2):
        cg.set_num_threads(threads)
        value, dxs = gradients(SAMPLED[kind], args[:7 if kind == "lstm" else 6], {})
        found.append([value, *dxs])
    for one, two, again in zip(*found, strict=True):
        same_bits(one, two)
        same_bits(two, again)


def test_memory_of_an_lstm():
    """Recorded: 4 gates, a cell and a result for each step and hidden number. Not recorded: results and a chunk."""
    steps, batch, n = 200, 16, 64
    x = cg.zeros((steps, batch, n))
    weights = [cg.zeros(s).attach_grad() for s in ((4 * n, n), (4 * n, n), (4 * n,), (4 * n,))]
    with cg.record() as tape:
        y, _ = cg.lstm(x, weights)
    assert tape.saved_bytes == 4 * batch * (steps * n * (4 + 1 + 1) + n + n) + x.nbytes
    cg.memory.reset_peak()
    before = cg.memory.stats()["peak_bytes"]
    y.backward(cg.ones(y.shape))
    del y
    assert cg.memory.stats()["peak_bytes"] - before < 2 * x.nbytes      # the gradients of the gates are over the gates
    cg.memory.reset_peak()
    before = cg.memory.stats()["peak_bytes"]
    cg.lstm(x, weights)
    assert cg.memory.stats()["peak_bytes"] - before < x.nbytes + 1.6e6


def test_dropout_is_between_layers_in_train_mode():
    r = np.random.default_rng(0)
    weights = [cg.tensor(w) for w in parts(r, *[(8, 2), (8, 2), (8,), (8,)] * 2)]
    x = cg.tensor(parts(r, (3, 4, 2))[0])
    plain = cg.lstm(x, weights, num_layers=2)[0].numpy()
    assert (cg.lstm(x, weights, num_layers=2, dropout=0.5)[0].numpy() == plain).all()
    with cg.train_mode():
        one = cg.lstm(x, weights[:4])[0]
        assert (cg.lstm(x, weights[:4], dropout=0.5)[0].numpy() == one.numpy()).all()
        cg.random.seed(1)
        found = cg.lstm(x, weights, num_layers=2, dropout=0.5)[0]
        cg.random.seed(1)
        wanted = cg.lstm(cg.dropout(one, 0.5), weights[4:])[0]
    assert (found.numpy() == wanted.numpy()).all() and not (found.numpy() == plain).all()


def test_lengths_are_copied_from_external_memory():
    lengths = np.array([2, 1])
    w = [cg.tensor(a).attach_grad() for a in parts(np.random.default_rng(0), (2, 2), (2, 2))]
    x = cg.ones((2, 2, 2), dtype="float64")
    with cg.record():
        y, _ = cg.rnn(x, w, lengths=lengths)
    lengths[:] = 99
    y.backward(head_for(y))
    assert np.isfinite(w[0].grad.numpy()).all() and y.detach().numpy()[1, 1].tolist() == [0, 0]
