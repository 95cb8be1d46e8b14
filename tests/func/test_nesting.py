"""Random nestings of grad, jvp, vmap and jacobian, against the same derivatives computed one number at a time."""

import os

import numpy as np
import pytest

import cygrad as cg
from cygrad.func import grad, jacobian, jvp, vjp, vmap

NESTINGS = int(os.environ.get("CYGRAD_NESTINGS", 200))
UNARY = (cg.sin, cg.exp, cg.tanh, lambda x: x * x, lambda x: 1 / (2 + x * x), lambda x: cg.sqrt(x * x + 1),
         lambda x: x.reshape(1).sum(), lambda x: cg.stack([x, x * 2]).mean(), lambda x: cg.softplus(x),
         lambda x: cg.relu(x + 5))
BINARY = (lambda x, y: x * y, lambda x, y: x + 2 * y, lambda x, y: x / (3 + y * y), lambda x, y: cg.atan2(x, y + 3),
          lambda x, y: cg.logaddexp(x, y))


def random_function(rng):
    """A smooth function of a number and of a constant of the surrounding function."""
    steps = [(rng.integers(3), rng.integers(len(UNARY)), rng.integers(len(BINARY))) for _ in range(rng.integers(1, 4))]

    def f(x, c):
        y = x
        for kind, u, b in steps: y = UNARY[u](y) if kind == 0 else BINARY[b](y, c if kind == 1 else x)
        return y

    return f


# Derivatives of a function of (x, c) by x, each as another such function.
WAYS = {
    "grad": lambda f: lambda x, c: grad(f)(x, c),
    "jvp": lambda f: lambda x, c: jvp(lambda z: f(z, c), (x,), (cg.ones_like(x),))[1],
    "vjp": lambda f: lambda x, c: vjp(lambda z: f(z, c), x)[1](cg.ones_like(x))[0],
    "forward": lambda f: lambda x, c: jacobian(f, mode="forward")(x, c),
    "reverse": lambda f: lambda x, c: jacobian(f, mode="reverse")(x, c),
    "lanes": lambda f: lambda x, c: vmap(grad(f), (0, None))(cg.stack([x, x + 1]), c)[0],
    "sum of lanes": lambda f: lambda x, c: grad(lambda x, c: vmap(f, (None, 0))(x, cg.stack([c, c])).mean())(x, c),
    "lanes of tangents": lambda f: lambda x, c: vmap(
        lambda t: jvp(lambda z: f(z, c), (x,), (t,))[1])(cg.stack([cg.ones_like(x), 2 * x]))[0],
}


@pytest.mark.parametrize("seed", range(NESTINGS))
def test_nestings_agree(seed):
    """All ways to the same derivative of order 1 to 3 agree, with the derivative by the constant around them."""
    rng = np.random.default_rng(seed)
    f = random_function(rng)
    order = rng.integers(1, 4)
    x, c = (cg.tensor(rng.uniform(0.5, 1.5)).astype("float64") for _ in range(2))
    plain = f
    for _ in range(order): plain = WAYS["grad"](plain)
    mixed = f
    names = rng.choice(list(WAYS), order)
    for name in names: mixed = WAYS[name](mixed)
    assert float(mixed(x, c)) == pytest.approx(float(plain(x, c)), 1e-8, 1e-10), names
    one, other = (grad(lambda c, g=g: cg.sin(x * c) * g(x, c))(c) for g in (plain, mixed))
    assert float(one) == pytest.approx(float(other), 1e-8, 1e-10), names
    h = 1e-5
    lower = f
    for _ in range(order - 1): lower = WAYS["grad"](lower)
    slope = (float(lower(x + h, c)) - float(lower(x - h, c))) / (2 * h)
    assert float(plain(x, c)) == pytest.approx(slope, 1e-4, 1e-6)
