"""Nets of cygrad.nn that learn something, with cygrad.optim: images, sequences, and positions in sequences."""

import numpy as np
import pytest

import cygrad as cg
from cygrad import nn
from cygrad.core.execute.generator import Generator


def trained(net, loss, batches, rate):
    """Train with Adam on batches of (arguments, target). Returns the loss of the last batch."""
    solver = cg.optim.Adam(rate)
    with cg.train_mode(): net(*next(batches)[0])    # sizes that are not known yet
    solver.set_parameters(dict(net.named_parameters()))
    for args, target in batches:
        solver.zero_grad()
        with cg.record():
            value = loss(net(*args), target)
        value.backward()
        solver.update()
    return value.item()


NETS = {
    "cnn": (lambda: nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                                  nn.Linear(8, 3)), (4, 1, 6, 6)),
    "lstm": (lambda: Recurrent(nn.LSTM), (2, 5, 1)),
    "transformer": (lambda: nn.TransformerBlock(8, 2, 8, batch_first=True), (2, 4, 8)),
}


@pytest.mark.parametrize("name", NETS)
def test_memory_of_ten_thousand_steps_is_flat(name):
    make, shape = NETS[name]
    net, solver, x = make(), cg.optim.Adam(1e-3), cg.random.normal(shape)
    solver.set_parameters(dict(net.named_parameters()))
    before = None
    for i in range(10_100):
        if i == 100: before = cg.memory.stats()
        solver.zero_grad()
        with cg.record():
            value = cg.mean(cg.square(net(x)))
        value.backward()
        solver.update()
    after = cg.memory.stats()
    assert all(after[what] == before[what] for what in ("live_bytes", "live_buffers", "system_allocations"))


def test_a_small_cnn_learns_digits():
    """scikit-learn's digits, 8 x 8: with lazy sizes, batch normalization and dropout, 96 % of unseen images in 3
    epochs."""
    digits = pytest.importorskip("sklearn.datasets").load_digits()
    x, labels = (digits.images / 16).astype("f4")[:, None], digits.target
    order = np.random.default_rng(0).permutation(len(x))
    train, test = order[:1400], order[1400:]
    cg.random.seed(0)
    net = nn.Sequential(
        nn.Conv2d(None, 16, 3, padding=1), nn.BatchNorm2d(None), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(None, 32, 3, padding=1), nn.BatchNorm2d(None), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(),
        nn.Dropout(0.1), nn.Linear(None, 10))

    def batches():
        rng = np.random.default_rng(1)
        for _ in range(3):
            for rows in np.array_split(rng.permutation(train), 44): yield (x[rows],), labels[rows]

    trained(net, nn.CrossEntropyLoss(), batches(), 5e-3)
    assert net[1].num_batches_tracked.item() == 132
    found = net(x[test]).numpy().argmax(1)          # in predict mode
    assert (found == labels[test]).mean() >= 0.96


class Recurrent(nn.Module):
    def __init__(self, cls):
        self.layer = cls(1, 16, batch_first=True, generator=Generator(0))
        self.last = nn.Linear(16, 1, generator=Generator(1))

    def forward(self, x, lengths=None):
        return self.last(self.layer(x, lengths=lengths)[0])


@pytest.mark.parametrize("name", ("LSTM", "GRU"))
def test_a_recurrent_net_learns_parity(name):
    """The parity of the bits so far, in sequences of different lengths; then on longer ones than it has seen."""
    rng = np.random.default_rng(0)

    def sample(n, steps):
        bits = rng.integers(0, 2, (n, steps, 1))
        return bits.astype("f4"), (bits.cumsum(1) % 2).astype("f4")

    def batches():
        for _ in range(400):
            bits, parity = sample(32, 8)
            lengths = rng.integers(1, 9, 32)
            seen = (np.arange(8)[None, :, None] < lengths[:, None, None]).astype("f4")
            yield (bits, lengths), (parity, seen)

    def loss(y, target):
        return nn.BCEWithLogitsLoss(target[1])(y, target[0])

    net = Recurrent(getattr(nn, name))
    assert trained(net, loss, batches(), 2e-2) < 0.05
    bits, parity = sample(50, 20)
    assert ((net(bits, None).numpy() > 0) == parity).mean() > 0.98


class Reversing(nn.Module):
    def __init__(self, steps, symbols, norm_first, width=32):
        self.tokens, self.positions = nn.Embedding(symbols, width), nn.Embedding(steps, width)
        self.blocks = nn.Sequential(*(nn.TransformerBlock(width, 4, 64, 0.0, batch_first=True, norm_first=norm_first)
                                      for _ in range(2)), nn.Linear(width, symbols))

    def forward(self, x):
        return self.blocks(self.tokens(x) + self.positions(np.arange(x.shape[1])))


@pytest.mark.parametrize("norm_first", (False, True))
def test_a_transformer_learns_to_reverse(norm_first):
    """The symbols of a sequence in reverse order, by two blocks."""
    cg.random.seed(0)
    steps, symbols = 8, 10
    net, rng = Reversing(steps, symbols, norm_first), np.random.default_rng(0)

    def batches():
        for _ in range(200):
            x = rng.integers(0, symbols, (32, steps))
            yield (x,), x[:, ::-1].reshape(-1)

    trained(net, lambda y, target: nn.CrossEntropyLoss()(y.reshape(-1, symbols), target), batches(), 5e-3)
    x = rng.integers(0, symbols, (50, steps))
    assert (net(x).numpy().argmax(-1) == x[:, ::-1]).mean() > 0.98


def test_a_causal_transformer_learns_the_next_symbol_and_does_not_look_ahead():
    """Repeated pairs: after the first two symbols the rest is known. The result at a step depends on earlier steps
    only."""
    cg.random.seed(0)
    steps, symbols, width = 8, 6, 32
    net = nn.Sequential(nn.Linear(symbols + steps, width),
                        *(nn.TransformerBlock(width, 4, 64, 0.0, norm_first=True, batch_first=True, causal=True)
                          for _ in range(2)), nn.Linear(width, symbols))
    rng, one, where = np.random.default_rng(0), np.eye(symbols, dtype="f4"), np.eye(steps, dtype="f4")

    def sample(n):
        x = np.tile(rng.integers(0, symbols, (n, 2)), (1, steps // 2 + 1))
        return np.concatenate([one[x[:, :-2]], np.broadcast_to(where, (n, steps, steps))], -1), x[:, 1:-1]

    def batches():
        for _ in range(150):
            x, target = sample(32)
            yield (x,), target[:, 1:].reshape(-1)

    trained(net, lambda y, target: nn.CrossEntropyLoss()(y[:, 1:].reshape(-1, symbols), target), batches(), 5e-3)
    x, target = sample(50)
    y = net(x).numpy()
    assert (y.argmax(-1)[:, 1:] == target[:, 1:]).mean() > 0.98
    x[:, 4:] = 0
    np.testing.assert_allclose(net(x).numpy()[:, :4], y[:, :4], atol=1e-5)
