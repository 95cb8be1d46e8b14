"""The layers of cygrad.nn compared with PyTorch's modules of the same name, in float64, on PyTorch's own samples, with
copied weights: value, first and second gradients of inputs and parameters, buffers.

tests/support/layers.txt has the number of samples that are compared for each layer; `python tests/support/layers.py`
prints it. Without PyTorch these tests fail."""

import gc
from pathlib import Path

import pytest
from layers import LAYERS, WITHOUT
from layers_made import holding, layer, made
from layers_nets import NETS
from modules import compare, count, infos, samples_of
from opinfo import line

import cygrad as cg
from cygrad import nn

LINES = (Path(__file__).parents[1] / "support" / "layers.txt").read_text().splitlines()
EXPECTED = {text.partition(":")[0]: text for text in LINES}


@pytest.fixture(scope="module", autouse=True)
def no_collecting_of_pytorch():
    """PyTorch's list has very many permanent objects, which the collector should not traverse after every test."""
    infos()
    gc.collect()
    gc.freeze()


@pytest.mark.parametrize("module", [*LAYERS, *NETS], ids=lambda m: m.key)
def test_agrees_with_pytorch(module):
    compared, differentiated, skipped = count(module)
    found = line(module, compared, differentiated, skipped)
    assert found == EXPECTED.get(module.key), "layers.txt differs; python tests/support/layers.py prints it"
    assert compared == differentiated > 0


def test_every_module_of_pytorch_is_compared_or_has_a_reason():
    having = [m.key for m in (*LAYERS, *NETS)]
    assert len(set(having)) == len(having) and not set(having) & set(WITHOUT) and all(WITHOUT.values())
    assert set(having) | set(WITHOUT) == set(infos())
    assert list(EXPECTED) == having
    page = Path(__file__).parents[2].joinpath("docs", "overview.md").read_text()
    assert f"{len(having)} layers of" in page, f"docs/overview.md says how many layers are compared: {len(having)}"


class Untrained(nn.Linear):
    def forward(self, x):
        return cg.linear(x, self.weight, self.bias.detach())


@pytest.mark.parametrize("wrong, what", [
    (layer("Tanh", ours="Sigmoid"), "values 0"),
    (layer("Linear", call=lambda found, x: Untrained.forward(found, x)), "first 2"),
], ids=["value", "gradient-of-parameter"])
def test_the_comparison_can_fail(wrong, what):
    samples = samples_of(infos()[wrong.key])
    with pytest.raises(AssertionError, match=what):
        for m, args, kwargs in samples: compare(wrong, m, args, kwargs)


def test_the_comparison_uses_the_arguments_and_the_state():
    m, args, _ = next(samples_of(infos()["PReLU"]))
    found = made(m, nn.PReLU)
    assert found.weight.numpy().tolist() == m.weight.tolist() and found.training is m.training
    x = cg.ones(found.weight.shape, dtype="float64")
    assert holding(found, {"weight": x.requires_grad_()}).weight is x
