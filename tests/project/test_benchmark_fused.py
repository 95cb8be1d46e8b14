"""The benchmark of gradients that are never stored."""

import pytest

from benchmarks import fused


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(fused, "WIDTH", 640)        # (1.6 MB: more than what other rules take at once)


@pytest.mark.parametrize("rule", [*fused.RULES])
def test_growth_is_that_of_gradients(rule):
    activations = 2 * fused.LAYERS * fused.WIDTH * 4 / (fused.LAYERS * fused.WIDTH ** 2 * 4)
    assert 1 <= fused.growth_of(rule, "stored") <= 1 + activations
    part = (1 << 20) / (fused.LAYERS * fused.WIDTH ** 2 * 4)
    assert fused.growth_of(rule, "fused") <= activations + (part if rule == "AdamW" else 0)
    assert (fused.growth_of(rule, "four passes") <= activations) == (rule == "momentum")


def test_losses_of_both_heads_agree(monkeypatch):
    for name in ("GPT", "WITH_HEAD"):
        net = type(getattr(fused, name))("sgd", 1e-2, layers=1, width=8, heads=2, length=4, batch=2, vocabulary=16)
        monkeypatch.setattr(fused, name, net)
    plain, head = fused.cygrad_step(fused.GPT, False), fused.cygrad_step(fused.WITH_HEAD, True)
    for _ in range(3): assert plain() == pytest.approx(head(), rel=1e-5)
