"""functional_call, and modules as arguments of transformations."""

import numpy as np
import pytest

import cygrad as cg
from cygrad import nn
from cygrad.func import functional_call, grad, jvp, vmap


def near(x, y, tol=1e-5):
    np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=tol, atol=tol)


class Tied(nn.Module):
    """w w x + b, with one weight for two layers."""

    def __init__(self):
        self.first, self.last = nn.Linear(3, 3, bias=False), nn.Linear(3, 3)
        self.last.weight = self.first.weight

    def forward(self, x): return self.last(self.first(x))


def net():
    cg.random.seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))


def test_gradients_are_those_of_a_backward_pass():
    model, x = net(), cg.random.normal((5, 3))
    parameters = dict(model.named_parameters())
    found = grad(lambda p: (functional_call(model, p, x) ** 2).mean())(parameters)
    with cg.record(): y = (model(x) ** 2).mean()
    y.backward()
    assert list(found) == list(parameters)
    for name, p in parameters.items(): near(found[name], p.grad)


def test_gradients_of_each_sample():
    model, x, y = net(), cg.random.normal((6, 3)), cg.random.normal((6, 1))
    parameters = dict(model.named_parameters())
    def loss(p, x, y): return ((functional_call(model, p, x) - y) ** 2).sum()

    each = vmap(grad(loss), (None, 0, 0))(parameters, x, y)
    for k in range(6):
        alone = grad(loss)(parameters, x[k], y[k])
        for name in parameters: near(each[name][k], alone[name])
    assert all(p.grad is None for p in parameters.values())


def test_an_ensemble():
    """Models of one form, with stacked parameters, as lanes."""
    models = [net() for _ in range(3)]
    for m in models:
        for p in m.parameters(): p.copy_(cg.random.normal(p.shape))
    stacked = {name: cg.stack([dict(m.named_parameters())[name].detach() for m in models])
               for name, _ in models[0].named_parameters()}
    x = cg.random.normal((5, 3))
    found = vmap(lambda p: functional_call(models[0], p, x))(stacked)
    for k, m in enumerate(models): near(found[k], m(x))


def test_tied_parameters_are_replaced_everywhere():
    model, x, w = Tied(), cg.ones((1, 3)), 2 * cg.eye(3)
    for name in ("first.weight", "last.weight"):
        near(functional_call(model, {name: w, "last.bias": cg.ones(3)}, x), 4 * np.ones((1, 3)) + 1)
    both = {"first.weight": w, "last.weight": w, "last.bias": cg.zeros(3)}
    near(functional_call(model, both, x), 4 * np.ones((1, 3)))
    assert model.first.weight is model.last.weight
    with pytest.raises(ValueError, match="tied to another name"):
        functional_call(model, {"first.weight": w, "last.weight": cg.eye(3)}, x)


def test_the_gradient_by_a_tied_parameter_has_both_parts():
    model, x = Tied(), cg.random.normal((4, 3))
    p = dict(model.named_parameters())
    assert list(p) == ["first.weight", "last.bias"]
    found = grad(lambda p: functional_call(model, p, x).sum())(p)
    with cg.record(): y = model(x).sum()
    y.backward()
    near(found["first.weight"], model.first.weight.grad)


def test_the_module_is_as_before():
    model, x = net(), cg.ones((2, 3))
    before = [*model.parameters()]
    with pytest.raises(ValueError, match="linear"):
        functional_call(model, {"0.bias": cg.zeros(4)}, cg.ones((2, 7)))
    functional_call(model, {"0.bias": cg.ones(4)}, x)
    assert all(p is q for p, q in zip(before, model.parameters(), strict=True))


def test_buffers_are_replaced_and_updated():
    norm, x = nn.BatchNorm1d(3), cg.random.normal((8, 3))
    buffers = {name: b.copy() for name, b in norm.named_buffers()}
    with cg.train_mode(): functional_call(norm, buffers, x)
    near(buffers["running_mean"], 0.1 * np.asarray(x).mean(0))
    near(norm.running_mean, np.zeros(3))
    near(functional_call(norm, {"running_mean": cg.ones(3)}, cg.ones((2, 3))), np.zeros((2, 3)))


@pytest.mark.parametrize("module", [
    lambda: nn.LSTM(3, 4), lambda: nn.GRUCell(3, 4), lambda: nn.ParameterList([nn.Parameter(cg.ones(2))]),
    lambda: nn.ModuleDict({"a": nn.Linear(2, 2)}), lambda: nn.TransformerDecoderLayer(4, 2),
], ids=["LSTM", "GRUCell", "ParameterList", "ModuleDict", "TransformerDecoderLayer"])
def test_every_kind_of_module_is_a_container(module):
    module = module()
    g = grad(lambda m: sum((p ** 2).sum() for p in m.parameters()))(module)
    assert type(g) is type(module)
    for (name, p), (other, d) in zip(module.named_parameters(), g.named_parameters(), strict=True):
        assert name == other
        near(d, 2 * p.detach(), 1e-6)


def test_modules_are_containers():
    model, x = net(), cg.random.normal((5, 3))
    g = grad(lambda m: (m(x) ** 2).mean())(model)
    assert type(g) is nn.Sequential and all(p.grad is None for p in model.parameters())
    by_names = grad(lambda p: (functional_call(model, p, x) ** 2).mean())(dict(model.named_parameters()))
    for name, p in g.named_parameters(): near(p, by_names[name])
    y, dy = jvp(lambda m: m(x), (model,), (g,))
    h = 1e-3
    ahead = {name: p + h * by_names[name] for name, p in model.named_parameters()}
    near(dy, (np.asarray(functional_call(model, ahead, x)) - np.asarray(y)) / h, 5e-2)
