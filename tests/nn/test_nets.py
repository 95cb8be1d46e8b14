"""What all layers of convolution, pooling, normalization, recurrence and attention share: PyTorch's names, shapes and
representation, first values, copies, unknown sizes, failing allocations, and memory over many steps. The numbers are
compared in test_layers.py."""

import copy
import pickle

import numpy as np
import pytest

import cygrad as cg
from cygrad import nn
from cygrad.core.graph.waiting import is_waiting
from cygrad.core.execute.generator import Generator
from cygrad.testing import fail_allocation

pytestmark = pytest.mark.filterwarnings("ignore:enable_nested_tensor is True")      # PyTorch's TransformerEncoder


class Case:
    """A layer: its class, arguments, the shape of x, and the position of the argument that may be None. An argument
    that is a Case stands for its layer."""

    def __init__(self, name, args, shape, unknown=None, **named):
        self.name, self.args, self.shape, self.unknown, self.named = name, args, shape, unknown, named

    def __str__(self):
        return "-".join([self.name, *self.named])

    def random(self):
        """Whether the first values are random."""
        return "generator" in (getattr(nn, self.name).__init__.__kwdefaults__ or ())

    def make(self, seed=0):
        more = {"generator": Generator(seed)} if self.random() else {}
        args = [x.make(seed) if isinstance(x, Case) else x for x in self.args]
        return getattr(nn, self.name)(*args, **self.named, **more)

    def lazy(self):
        args = list(self.args)
        args[self.unknown] = None
        return getattr(nn, self.name)(*args, **self.named)

    def theirs(self):
        import torch
        args = [x.theirs() if isinstance(x, Case) else x for x in self.args]
        return getattr(torch.nn, self.name)(*args, **self.named)

    def run(self, layer, dtype="float32"):
        """A training step without an update: the value as bytes."""
        x = cg.tensor(np.linspace(-2, 3, int(np.prod(self.shape))).reshape(self.shape).astype(dtype))
        given = (x,) * INPUTS.get(self.name, 1)
        with cg.record():
            y = layer(*given)
            while isinstance(y, tuple): y = y[0]
            loss = cg.mean(cg.square(y))
        if loss.requires_grad: loss.backward()
        return y.detach().numpy().tobytes()


INPUTS = {"MultiheadAttention": 3, "TransformerDecoderLayer": 2, "TransformerDecoder": 2, "Transformer": 2}
IMAGES = {1: (3, 4, 9), 2: (3, 4, 6, 5), 3: (2, 4, 4, 3, 5)}
CASES = [
    *(Case(f"Conv{d}d", (4, 6, 3), IMAGES[d], 0, padding=1) for d in (1, 2, 3)),
    Case("Conv2d", (4, 6, (3, 2)), IMAGES[2], 0, stride=2, groups=2, bias=False, padding_mode="reflect", padding=1),
    *(Case(f"ConvTranspose{d}d", (4, 6, 3), IMAGES[d], 0, stride=2, output_padding=1) for d in (1, 2, 3)),
    Case("ConvTranspose2d", (4, 6, 3), IMAGES[2], 0, groups=2, dilation=2, bias=False),
    *(Case(f"MaxPool{d}d", (2,), IMAGES[d]) for d in (1, 2, 3)),
    *(Case(f"AvgPool{d}d", (2,), IMAGES[d]) for d in (1, 2, 3)),
    *(Case(f"LPPool{d}d", (2, 2), IMAGES[d]) for d in (1, 2, 3)),
    *(Case(f"Adaptive{kind}Pool{d}d", (2,), IMAGES[d]) for kind in ("Avg", "Max") for d in (1, 2, 3)),
    *(Case(f"{kind}Pad{d}d", (1,), IMAGES[d]) for kind in ("Zero", "Reflection", "Replication", "Circular")
      for d in (1, 2, 3)),
    *(Case(f"ConstantPad{d}d", (tuple(range(2 * d)), 1.5), IMAGES[d]) for d in (1, 2, 3)),
    Case("Unfold", (2,), IMAGES[2]), Case("Fold", ((4, 5), 2), (3, 8, 12)),
    Case("PixelShuffle", (2,), IMAGES[2]), Case("PixelUnshuffle", (2,), (3, 4, 6, 4)),
    Case("Upsample", (), IMAGES[2], scale_factor=2, mode="bilinear"), Case("Upsample", ((7, 8),), IMAGES[2]),
    *(Case(f"BatchNorm{d}d", (4,), IMAGES[d], 0) for d in (1, 2, 3)),
    Case("BatchNorm2d", (4,), IMAGES[2], 0, momentum=None, affine=False),
    Case("BatchNorm2d", (4,), IMAGES[2], 0, track_running_stats=False, bias=False),
    *(Case(f"InstanceNorm{d}d", (4,), IMAGES[d], 0, affine=True) for d in (1, 2, 3)),
    Case("InstanceNorm2d", (4,), IMAGES[2], 0, track_running_stats=True),
    Case("GroupNorm", (2, 4), IMAGES[2], 1), Case("GroupNorm", (2, 4), IMAGES[2], 1, bias=False),
    Case("LayerNorm", (9,), IMAGES[1], 0), Case("LayerNorm", ((6, 5),), IMAGES[2]),
    Case("LayerNorm", (9,), IMAGES[1], 0, bias=False), Case("LayerNorm", (9,), IMAGES[1], 0, elementwise_affine=False),
    Case("LocalResponseNorm", (3,), IMAGES[1]), Case("LocalResponseNorm", (2, 0.5, 0.6, 2.0), IMAGES[3]),
    Case("RMSNorm", (9,), IMAGES[1], 0), Case("RMSNorm", (9,), IMAGES[1], 0, elementwise_affine=False),
    *(Case(name, (9, 5), (3, 2, 9), 0) for name in ("LSTM", "GRU", "RNN")),
    *(Case(name, (9, 5), (3, 2, 9), 0, num_layers=2, bidirectional=True, batch_first=True, bias=False)
      for name in ("LSTM", "GRU", "RNN")),
    *(Case(name, (9, 5), (3, 9), 0) for name in ("LSTMCell", "GRUCell", "RNNCell")),
    Case("RNNCell", (9, 5), (3, 9), 0, bias=False, nonlinearity="relu"),
    Case("MultiheadAttention", (8, 2), (5, 2, 8)),
    Case("MultiheadAttention", (8, 2), (5, 2, 8), bias=False, kdim=8, batch_first=True),
    Case("TransformerEncoderLayer", (8, 2, 12, 0.0), (5, 2, 8)),
    Case("TransformerEncoderLayer", (8, 2, 12, 0.0), (5, 2, 8), norm_first=True, activation="gelu", bias=False),
    Case("TransformerDecoderLayer", (8, 2, 12, 0.0), (5, 2, 8)),
    Case("TransformerDecoderLayer", (8, 2, 12, 0.0), (5, 2, 8), norm_first=True, activation="gelu", bias=False),
    Case("TransformerEncoder", (Case("TransformerEncoderLayer", (8, 2, 12, 0.0), ()), 2), (5, 2, 8)),
    Case("TransformerDecoder", (Case("TransformerDecoderLayer", (8, 2, 12, 0.0), ()), 2, Case("LayerNorm", (8,), ())),
         (5, 2, 8)),
    Case("Transformer", (8, 2, 1, 2, 12, 0.0), (5, 2, 8)),
]
every_case = pytest.mark.parametrize("case", CASES, ids=str)
with_sizes = pytest.mark.parametrize("case", [c for c in CASES if c.unknown is not None], ids=str)
with_parameters = [c for c in CASES if c.random()]


def test_every_layer_of_the_families_has_a_case():
    families = ("conv", "images", "pooling", "normalization", "recurrent", "attention", "transformer")
    assert {c.name for c in CASES} == {name for f in families for name in nn._FAMILIES[f]} - {"TransformerBlock"}
    assert nn.TransformerBlock is nn.TransformerEncoderLayer


@every_case
def test_names_and_shapes_are_those_of_pytorch(case):
    ours, theirs = case.make(), case.theirs()
    assert [(name, x.shape) for name, x in ours.state_dict().items()] == [
        (name, tuple(x.shape)) for name, x in theirs.state_dict().items()]
    assert [name for name, _ in ours.named_parameters()] == [name for name, _ in theirs.named_parameters()]


REPRESENTATIONS = """
Conv2d(4, 6, kernel_size=(3, 2), stride=(2, 2), padding=(1, 1), groups=2, bias=False, padding_mode=reflect)
Conv1d(4, 6, kernel_size=(3,), stride=(1,), padding=same)
ConvTranspose1d(4, 6, kernel_size=(3,), stride=(2,), output_padding=(1,))
MaxPool2d(kernel_size=2, stride=2, padding=0, dilation=1, ceil_mode=False)
AdaptiveAvgPool2d(output_size=(1, None))
ZeroPad2d((1, 2, 3, 4))
ConstantPad1d(padding=(0, 1), value=1.5)
Upsample(size=(7, 8), mode='bilinear')
PixelShuffle(upscale_factor=2)
GroupNorm(2, 4, eps=1e-05, affine=True, bias=False)
LayerNorm((6, 5), eps=1e-05, elementwise_affine=True, bias=False)
RMSNorm((6,), eps=None, elementwise_affine=True)
LocalResponseNorm(3, alpha=0.0001, beta=0.75, k=2.0)
LSTM(9, 5, num_layers=2, bias=False, batch_first=True, dropout=0.5, bidirectional=True)
RNN(9, 5, num_layers=2)
LSTMCell(9, 5, bias=False)
"""


@pytest.mark.parametrize("text", REPRESENTATIONS.strip().split("\n"))
def test_representations_are_those_of_pytorch(text):
    """The words after the name are the arguments, in both libraries."""
    import torch
    arguments = text.replace("=same", "='same'").replace("=reflect", "='reflect'")
    assert repr(eval(arguments, vars(torch.nn))) == text
    assert repr(eval(arguments, {name: getattr(nn, name) for name in nn.__all__})).partition("  # ")[0] == text


@pytest.mark.parametrize("case", with_parameters, ids=str)
def test_first_values_depend_on_the_generator_only(case):
    a, b, other = case.make(), case.make(), case.make(seed=1)
    cg.random.seed(3)
    c = case.make()
    differing = 0
    for name, x in a.named_parameters():
        assert x.numpy().tobytes() == b.get_parameter(name).numpy().tobytes() == c.get_parameter(name).numpy().tobytes()
        differing += (x.numpy() != other.get_parameter(name).numpy()).any()
    assert differing


@pytest.mark.parametrize("case", [
    Case("Conv1d", (16, 64, 5), ()), Case("Conv2d", (16, 64, 3), (), groups=4), Case("Conv3d", (8, 64, 3), ()),
    Case("ConvTranspose1d", (64, 16, 5), ()), Case("ConvTranspose2d", (16, 64, 3), (), groups=4),
    Case("ConvTranspose3d", (64, 8, 3), ()), Case("LSTM", (20, 40), (), num_layers=2, bidirectional=True),
    Case("GRU", (20, 40), ()), Case("RNN", (20, 40), ()), Case("LSTMCell", (20, 40), ()),
    Case("MultiheadAttention", (64, 4), ()), Case("MultiheadAttention", (64, 4), (), kdim=32, vdim=16),
    Case("TransformerEncoderLayer", (64, 4, 128), ()), Case("TransformerDecoderLayer", (64, 4, 128), ()),
    Case("Transformer", (64, 4, 1, 1, 128), ()), Case("BatchNorm2d", (64,), ()), Case("GroupNorm", (4, 64), ()),
    Case("InstanceNorm1d", (64,), (), affine=True, track_running_stats=True), Case("LayerNorm", ((16, 16),), ()),
], ids=str)
def test_first_values_have_the_distributions_of_pytorch(case):
    """The largest numbers, and the quartiles in units of them, agree within what samples of these sizes vary."""
    import torch
    torch.manual_seed(0)
    ours, theirs = case.make(), dict(case.theirs().named_parameters())
    theirs |= dict(case.theirs().named_buffers())
    for name, x in [*ours.named_parameters(), *ours.named_buffers()]:
        a, b = x.numpy().ravel(), theirs[name].detach().numpy().ravel()
        top = abs(b).max()
        assert abs(a).max() == pytest.approx(top, rel=0.15 if a.size < 500 else 0.02), name
        tolerance = 4 * top / np.sqrt(a.size)
        assert abs(a.mean() - b.mean()) <= tolerance and abs(a.std() - b.std()) <= tolerance, name


@every_case
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))], ids=["deepcopy", "pickle"])
def test_copies(case, copied):
    layer = case.make()
    before = case.run(layer)
    twin = copied(layer)
    assert repr(twin) == repr(layer) and list(twin.state_dict()) == list(layer.state_dict())
    assert case.run(twin) == case.run(layer) == before
    assert not {id(x) for x in twin.parameters()} & {id(x) for x in layer.parameters()}


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))], ids=["deepcopy", "pickle"])
def test_copies_of_layers_that_wait_have_the_same_first_values(copied):
    """Two layers draw from one generator, in the order of their first calls."""
    source = Generator(5)
    net = nn.Sequential(nn.Conv1d(None, 4, 3, generator=source), nn.ConvTranspose1d(None, 2, 3, generator=source))
    twin, x = copied(net), cg.ones(2, 3, 8)
    assert net(x).numpy().tobytes() == twin(x).numpy().tobytes()
    assert [x.numpy().tobytes() for x in net.parameters()] == [x.numpy().tobytes() for x in twin.parameters()]


@with_sizes
def test_an_unknown_size_is_that_of_the_first_input_or_the_state(case):
    layer = case.make()
    for dtype in ("float32", "float64"):
        layer.astype(dtype)
        wanted = case.run(layer, dtype)
        default = cg.get_default_dtype()
        cg.set_default_dtype(dtype)
        try:
            called, loaded = case.lazy(), case.lazy()
        finally:
            cg.set_default_dtype(default)
        case.run(called, dtype)
        called.load_state_dict(case.make().astype(dtype).state_dict())
        loaded.load_state_dict(case.make().astype(dtype).state_dict())
        if layer.state_dict(): assert repr(called) == repr(loaded) == repr(layer)
        if "track_running_stats" not in case.named: assert case.run(called, dtype) == case.run(loaded, dtype) == wanted
        assert list(called.state_dict()) == list(loaded.state_dict()) == list(layer.state_dict())


def test_a_layer_that_waits_for_its_size_says_so():
    net = nn.Sequential(nn.Conv2d(None, 4, 3), nn.BatchNorm2d(None), nn.LSTM(None, 3))
    for layer, text in zip(net, ("Conv2d(None, 4, kernel_size=", "BatchNorm2d(None, ", "LSTM(None, 3)"), strict=True):
        assert repr(layer).startswith(text) and "waits for its input size" in repr(layer)
        for name, x in layer.named_parameters():
            with pytest.raises(RuntimeError, match=rf"\.{name}, of shape \(.*\), has no values yet"): x.numpy()


def fails(call, n, after=lambda: None, spare=False):
    """Whether there was an n-th allocation in call(). If it failed, call() raised MemoryError, unless it has a `spare`
    one: linear with relu works without the memory for the signs of its result. `after` runs in both cases."""
    raised = False
    with fail_allocation(n) as failure:
        try:
            call()
        except MemoryError:
            raised = True
    after()
    assert raised == failure.failed or spare and failure.failed
    return failure.failed


@every_case
def test_building_and_a_step_with_failing_allocations(case):
    n, live = 1, cg.memory.stats()["live_bytes"]
    while fails(case.make, n):
        n += 1
        assert cg.memory.stats()["live_bytes"] == live
    layer = case.make()
    made = len([x for x in (*layer.parameters(), *layer.buffers()) if x.nbytes])
    assert n - 1 == made or case.name.startswith(COMPOSED)
    with cg.train_mode():
        case.run(layer)                             # (in train mode, so buffers may move)
        layer.zero_grad()
        n, live = 1, cg.memory.stats()["live_bytes"]
        state = {name: x.numpy().tobytes() for name, x in layer.named_parameters()}
        while fails(lambda: case.run(layer), n, layer.zero_grad, case.name.startswith("Transformer")):
            n += 1
            assert cg.memory.stats()["live_bytes"] == live
    assert n > 2 and state == {name: x.numpy().tobytes() for name, x in layer.named_parameters()}


COMPOSED = "MultiheadAttention", "Transformer"      # (they replace a bias of their Linear by zeros, or copy layers)


@with_sizes
def test_the_first_call_of_an_unknown_size_with_failing_allocations(case):
    """Either nothing has happened, or the layer has its size and all parameters."""
    x, n = cg.ones(case.shape), 1
    while True:
        layer = case.lazy()
        if not fails(lambda: layer(x), n): break
        n += 1
        tensors = [getattr(layer, name) for name in (*layer._parameters, *layer._buffers)]
        assert layer._pending == any(map(is_waiting, tensors)) == all(map(is_waiting, tensors)) or not tensors
    assert n > 1 and not layer._pending


@pytest.mark.parametrize("case", [c for c in CASES if c.name.startswith("Conv")], ids=str)
def test_flops_of_convolutions_are_those_that_pytorch_counts(case):
    import torch
    from torch.utils.flop_counter import FlopCounterMode
    with FlopCounterMode(display=False) as counted: case.theirs()(torch.ones(case.shape))
    assert case.make().summary(cg.ones(case.shape)).flops == counted.get_total_flops() > 0


def test_flops_of_recurrence_and_attention():
    """2 for each element of each weight and step; for attention, projections and two products of (L, S) too."""
    x = cg.ones(5, 2, 4)
    assert nn.LSTM(4, 3).summary(x).flops == 2 * 10 * (12 * 4 + 12 * 3)
    assert nn.GRU(4, 3, 2, bidirectional=True).summary(x).flops == 2 * 10 * 2 * (9 * 4 + 9 * 3 + 9 * 6 + 9 * 3)
    assert nn.RNNCell(4, 3).summary(x[0]).flops == 2 * 2 * (3 * 4 + 3 * 3)
    attention, key, value = nn.MultiheadAttention(4, 2, kdim=6, vdim=3), cg.ones(7, 2, 6), cg.ones(7, 2, 3)
    assert attention.summary(x, key, value).flops == 2 * 4 * (10 * 4 + 14 * 6 + 14 * 3 + 10 * 4) + 4 * 4 * 2 * 5 * 7


@every_case
def test_steps_leave_the_live_bytes_flat(case):
    layer = case.make()
    with cg.train_mode():
        for _ in range(3): case.run(layer)
        stats = cg.memory.stats()
        for _ in range(10): case.run(layer)
    now = cg.memory.stats()
    assert all(now[key] == stats[key] for key in ("live_bytes", "live_buffers", "system_allocations"))
