"""The figures of chapters 1 to 4 and 6 that react say what cygrad computes. Run with the extras docs and test:
`make docs-test`."""

import re

import numpy as np
import pytest

import cygrad as cg

pytestmark = pytest.mark.slow

SHAPES = "(3, 4)", "(3, 1)", "(1, 4)", "(4,)", "()"



def test_the_slope_is_the_gradient(figure):
    told = figure("slope")
    for k in range(0, 61, 7):
        x = cg.tensor(k / 10 - 1, "float64").attach_grad()
        with cg.record(): f = x * x - 4 * x
        f.backward()
        assert told(x=k).startswith(f"At x = {x.item():.1f}, f is {f.item():.2f}, and backward returns "
                                    f"{x.grad.item():.1f}. ".replace(" -0.0", " 0.0"))


def test_the_network_learns_the_digits(figure, browser):
    told = figure("learning")
    right = [int(re.search(r"(\d+) of 360", told(epoch=k))[1]) for k in range(13)]
    assert right[0] < 90 and right[12] > 335
    assert all(not told(epoch=12, image=k).endswith("is wrong.") for k in range(1, 5))
    assert all(95 <= sum(p) <= 105 for row in browser.run("chances") for p in row)


def test_a_training_resumed_with_its_state_has_the_same_losses(figure, browser):
    told = figure("resume")
    for k in range(1, 8): assert f"all {8 - k} losses after it are those of the training without" in told(epoch=k)
    assert all(a[0] != whole for a, whole in zip(browser.run("weights"), browser.run("whole.slice(1)"), strict=True))


def test_the_ways_that_survive(figure):
    told, both = figure("nan"), "logaddexp(x, 0), softplus(x)."
    for k in (0, 3, 20, 24):
        x = cg.tensor(10.0 * k - 120).attach_grad()
        with cg.record(): y = cg.log1p(cg.exp(x))
        y.backward()
        assert (told(x=k).endswith(f": {both}")) == (not np.isfinite(x.grad.item())), k
    assert told(x=13).endswith(f": log(1 + exp(x)), log1p(exp(x)), {both}")
    assert told(x=11).startswith("At x = -10, the value is 4.54e-5 and the gradient is 4.54e-5.")


@pytest.mark.parametrize("y", SHAPES)
@pytest.mark.parametrize("x", SHAPES)
def test_the_gradient_of_a_broadcast(x, y, figure, browser):
    told = figure("broadcast")
    a, b = cg.ones(eval(x)).attach_grad(), cg.ones(eval(y))
    with cg.record(): z = a + b
    z.backward()
    for at in {0, a.size - 1}:
        text = told(x=x, y=y, at=at)
        assert f"x + y is {z.shape}" in text
        assert f"is used in {int(a.grad.reshape(-1)[at].item())} element" in text
        assert ("summed over" in text) == (a.shape != z.shape)
    index = np.broadcast_to(np.arange(a.size).reshape(a.shape), z.shape).reshape(-1).tolist()
    assert browser.run(f"{list(range(z.size))}.map(k => used({list(a.shape)}, {list(z.shape)}, k))") == index
