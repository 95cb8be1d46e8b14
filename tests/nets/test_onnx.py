"""Net.to_onnx: ONNX Runtime computes what the module does. The wordings of errors are in
tests/support/wordings/onnx.py."""

import numpy as np
import pytest

import cygrad as cg
from cygrad import nn
from cygrad.graph import Net, load
from cygrad.nets.onnx_export import RULES

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")


class Gpt(nn.Module):
    """A causal decoder of two blocks, with positions that are learned."""

    def __init__(self):
        self.embedding, self.places = nn.Embedding(17, 8), nn.Parameter(cg.random.normal((6, 8)))
        self.blocks = nn.Sequential(*[nn.TransformerBlock(8, 2, 32, activation=a, batch_first=True, norm_first=True,
                                                          causal=True) for a in ("gelu", "relu")])
        self.norm, self.head = nn.LayerNorm(8), nn.Linear(8, 17, bias=False)

    def forward(self, tokens): return self.head(self.norm(self.blocks(self.embedding(tokens) + self.places)))


class Last(nn.Module):
    """The last step of recurrent layers in both directions."""

    def __init__(self, layer, **options):
        self.layer, self.head = layer(3, 5, num_layers=2, bidirectional=True, **options), nn.Linear(10, 2)

    def forward(self, x):
        y, last = self.layer(x)
        return self.head(y[-1]), *(last if isinstance(last, tuple) else (last,))


def lenet():
    return nn.Sequential(nn.Conv2d(1, 6, 5, padding=2), nn.Tanh(), nn.AvgPool2d(2), nn.Conv2d(6, 16, 5),
                         nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(400, 120),
                         nn.Sigmoid(), nn.Dropout(0.5), nn.Linear(120, 10))


def steps(n): return np.random.default_rng(n).standard_normal((4, n, 3)).astype("f4")


MODELS = {
    "lenet": (lenet, lambda n: np.random.default_rng(n).standard_normal((n, 1, 28, 28)).astype("f4")),
    "gpt": (Gpt, lambda n: np.random.default_rng(n).integers(0, 17, (n, 6))),
    "lstm": (lambda: Last(nn.LSTM), steps),
    "gru": (lambda: Last(nn.GRU), steps),
    "rnn": (lambda: Last(nn.RNN), steps),
    "rnn without biases": (lambda: Last(nn.RNN, bias=False, nonlinearity="relu"), steps),
}


def run(path, *xs):
    """What ONNX Runtime computes."""
    session = runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return session.run(None, {x.name: np.asarray(value) for x, value in zip(session.get_inputs(), xs, strict=True)})


def compare(found, wanted):
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    assert len(found) == len(wanted)
    for a, b in zip(found, wanted, strict=True):
        b = b.detach().numpy()
        assert a.dtype == b.dtype and a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("name", MODELS)
def test_models(tmp_path, name):
    make, example = MODELS[name]
    cg.random.seed(5)
    model = make()
    model.eval()
    net = Net.capture(model, example(4))
    net.save(tmp_path / "n.cg", weights=True)
    for k, known in enumerate((net, load(tmp_path / "n.cg"))):
        known.to_onnx(tmp_path / f"{k}.onnx")
        for n in (4, 7): compare(run(tmp_path / f"{k}.onnx", example(n)), model(cg.tensor(example(n))))
    assert (tmp_path / "0.onnx").read_bytes() == (tmp_path / "1.onnx").read_bytes() or name != "lenet"
    names = {x.name for x in onnx.load(tmp_path / "0.onnx").graph.initializer}
    assert name != "lenet" or names >= {"0.weight", "0.bias", "4.running_mean", "8.weight"}


X, Y = np.linspace(-2, 3, 24, dtype="f4").reshape(2, 3, 4), np.linspace(1, 2, 12, dtype="f4").reshape(3, 4)
I = np.arange(24).reshape(2, 3, 4)

FUNCTIONS = {                                       # of X and Y, or of X alone
    "arithmetic": lambda x, y: ((x + y) * 2.0 - 1, x / y, 2.0 / y, -x, abs(x), cg.maximum(x, y), cg.minimum(x, 0.5)),
    "powers": lambda x, y: (x ** 2, y ** 0.5, y ** 1.5, cg.power(y, y), cg.square(x), cg.sqrt(y), cg.rsqrt(y)),
    "functions": lambda x, y: tuple(getattr(cg, name)(x) for name in (
        "exp", "floor", "ceil", "round", "sign", "erf", "sin", "cos", "tan", "atan", "sinh", "cosh", "asinh", "tanh",
        "sigmoid", "relu", "silu", "gelu", "elu", "celu", "softplus", "softsign", "mish", "hardswish", "leaky_relu")),
    "of positive numbers": lambda x, y: (cg.log(y), cg.reciprocal(y), cg.acosh(y), cg.gelu(x, "tanh")),
    "of small numbers": lambda x, y: (cg.asin(x / 4), cg.acos(x / 4), cg.atanh(x / 4)),
    "comparisons": lambda x, y: (x > y, x >= 0, x < y, x <= 1, x == y, x != y, cg.isnan(x), cg.isinf(x)),
    "logic": lambda x, y: (cg.logical_and(x > 0, y > 1.5), cg.logical_or(x > 0, y > 1), cg.logical_not(x > 0),
                           cg.logical_xor(x > 0, y > 1.5), cg.where(x > 0, x, y), cg.where(x > 0, x, 0.0)),
    "clip": lambda x, y: (cg.clip(x, -1.0, 1.0), cg.clip(x, 0.0), cg.clip(x, None, 0.5)),
    "reductions": lambda x, y: (x.sum(), x.sum(1), x.mean((0, 2), keepdims=True), x.max(2), x.min(), y.prod(0),
                                cg.logsumexp(x, 1), x.argmax(1), x.argmin(), x.argmax(0, keepdims=True)),
    "softmax": lambda x, y: (cg.softmax(x), cg.softmax(x, 1), cg.log_softmax(x, 0)),
    "shapes": lambda x, y: (x.reshape(-1, 4), x.reshape(3, 8), x.T, x.permute(1, 2, 0), cg.expand_dims(y, (0, 2)),
                            cg.squeeze(y[None], 0), cg.broadcast_to(y, (5, 3, 4)), cg.flip(x), cg.flip(x, 1)),
    "joining": lambda x, y: (cg.concat([x, x * 2], 1), cg.stack([y, y + 1], -1), *cg.split(x, 2, -1),
                             *cg.split(y, [1, 2])),
    "indices": lambda x, y: (x[0], x[:, -1], x[..., 1:3], x[:, None, ::-2], x[1, :, 2], x[-1:, 1:, None, 0], y[:, 3]),
    "rows": lambda x, y: (cg.layer_norm(x), cg.layer_norm(x, y[0], y[1]), cg.rms_norm(x), cg.rms_norm(x, y[0])),
    "products": lambda x, y: (x @ y.T, y[0] @ y.T, cg.linear(x, y, activation="relu"), cg.linear(y, y, y[:, 0])),
    "dtypes": lambda x, y: (x.astype("int64"), x.astype("float64") * 2, (x > 0).astype("float32"), (x > 0) * y,
                            (x > 0).sum(), x.astype("int64") / 2, x.astype("int32").mean()),
    "copies": lambda x, y: (x.copy(), cg.stop_gradient(x) + 1, cg.zeros((2, 3)) + y[:2, :3]),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(tmp_path, name):
    net = Net.capture(lambda x, y: FUNCTIONS[name](x, y), X, Y)
    net.to_onnx(tmp_path / "n.onnx")
    used = [value for blob, value in (("x", X), ("y", Y)) if blob in net.inputs]
    compare(run(tmp_path / "n.onnx", *used), FUNCTIONS[name](cg.tensor(X), cg.tensor(Y)))


def test_integers(tmp_path):
    def f(i, w): return cg.take(w, i, 0), cg.gather(w, 1, i[0, :, :1]), i + 1, i * 2, cg.take(w, i)

    w = np.linspace(0, 1, 96, dtype="f4").reshape(24, 4)
    net = Net.capture(f, np.minimum(I, 3), w)
    net.to_onnx(tmp_path / "n.onnx")
    compare(run(tmp_path / "n.onnx", np.minimum(I, 3), w), f(cg.tensor(np.minimum(I, 3)), cg.tensor(w)))


def test_operators_that_a_capture_writes_in_another_way(tmp_path):
    net = Net("n")
    net.outputs = [*net.split(["x"], 3, sections=3, axis=1), net.stop_gradient(net.dropout("y", p=0.5)),
                   net.dropout_identity("y")]
    net.shapes.update(x=((2, 3, 4), "float32"), y=((3, 4), "float32"))
    net.training = False
    net.to_onnx(tmp_path / "n.onnx")
    compare(run(tmp_path / "n.onnx", X, Y), net(X, Y))


IMAGES = {
    "strides": lambda x, w: cg.conv2d(x, w, stride=(2, 1), padding=(1, 2), dilation=(1, 2)),
    "groups": lambda x, w: cg.conv2d(cg.concat([x, x], 1), w, groups=2, activation="relu"),
    "transposed": lambda x, w: cg.conv_transpose2d(x, w.permute(1, 0, 2, 3), stride=2, padding=1, output_padding=1),
    "max": lambda x, w: cg.max_pool2d(x, 3, 2, 1),
    "mean": lambda x, w: (cg.avg_pool2d(x, 2, 2, 1), cg.avg_pool2d(x, 2, 2, 1, count_include_pad=False)),
    "whole": lambda x, w: cg.adaptive_avg_pool2d(x, 1),
}


@pytest.mark.parametrize("name", IMAGES)
def test_images(tmp_path, name):
    r = np.random.default_rng(2)
    x, w = r.standard_normal((2, 3, 8, 9)).astype("f4"), r.standard_normal((4, 3, 3, 3)).astype("f4")
    net = Net.capture(lambda x, w: IMAGES[name](x, w), x, w)
    net.to_onnx(tmp_path / "n.onnx")
    compare(run(tmp_path / "n.onnx", x, w), IMAGES[name](cg.tensor(x), cg.tensor(w)))


@pytest.mark.parametrize("how", ["bools", "numbers", "causal", "hidden"])
def test_attention(tmp_path, how):
    r = np.random.default_rng(4)
    q, k, v = (r.standard_normal((2, 3, n, 4)).astype("f4") for n in (5, 6, 6))
    mask = r.random((5, 6)) > 0.4 if how == "bools" else r.standard_normal((5, 6)).astype("f4")
    if how == "hidden":
        mask = np.ones((5, 6), bool)
        mask[2] = False                             # this query sees no key
    def f(q, k, v, mask):
        if how == "causal": return cg.scaled_dot_product_attention(q, k, v, is_causal=True)
        return cg.scaled_dot_product_attention(q, k, v, mask)

    net = Net.capture(f, q, k, v, mask)
    net.to_onnx(tmp_path / "n.onnx")
    compare(run(tmp_path / "n.onnx", q, k, v, mask), f(*map(cg.tensor, (q, k, v, mask))))


def test_every_rule_is_tried():
    """The types in the nets of this file, beside those of one more axis or one less."""
    found = set()
    for f in FUNCTIONS.values(): found |= {o.type for o in Net.capture(lambda x, y, f=f: f(x, y), X, Y)}
    x, w = ((2, 3, 8, 9), "float32"), ((4, 3, 3, 3), "float32")
    for f in IMAGES.values(): found |= {o.type for o in Net.capture(lambda x, w, f=f: f(x, w), x, w)}
    for make, example in MODELS.values():
        model = make()
        model.eval()
        found |= {o.type for o in Net.capture(model, example(2))}
    found |= {"take", "gather", "attend", "split", "stop_gradient"}     # of the other tests
    rest = {f"{kind}{n}d" for kind in ("conv", "conv_transpose", "max_pool", "avg_pool", "adaptive_avg_pool")
            for n in (1, 3)}
    assert RULES.keys() - found - rest <= {"dropout", "dropout_identity", "attend_with_dropout"}     # (these too)


def test_nothing_is_written_if_an_operator_has_no_counterpart(tmp_path):
    net = Net.capture(lambda x: cg.linalg.det(cg.lgamma(x)), ((3, 3), "float32"))
    with pytest.raises(ValueError, match=r"operator 0, lgamma = lgamma\(x\); operator 1, det = det\(lgamma\)"):
        net.to_onnx(tmp_path / "n.onnx")
    assert not [*tmp_path.iterdir()]
