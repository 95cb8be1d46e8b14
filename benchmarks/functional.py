"""The perceptron of models.py in libraries that differentiate functions: jax, with the whole step compiled by jax.jit,
and HIPS autograd, which traces NumPy. Parameters and solver states are arguments and results. Both libraries write the
losses out in the same way."""

import numpy as np


def loss_of(problem, xp):
    """The loss as a function of the layers (a list of (w, b)), the inputs and the targets. xp: a numpy module."""

    def loss(layers, x, target):
        for i, (w, b) in enumerate(layers):
            x = xp.dot(x, w.T) + b
            if i < len(layers) - 1:
                x = xp.maximum(x, 0)
        if problem.loss == "mse":
            d = x - target
            return xp.mean(d * d)
        x = x - xp.max(x, axis=1, keepdims=True)
        return xp.mean(xp.log(xp.sum(xp.exp(x), axis=1)) - x[xp.arange(problem.batch), target])

    return loss


def start(problem):
    """The layers, and the solver's states: a step count and, for Adam, two moments of each parameter."""
    layers = [list(layer) for layer in problem.layers()]
    if problem.solver == "sgd":
        return layers, (np.float32(0),)
    return layers, (np.float32(0), *([[np.zeros_like(p) for p in layer] for layer in layers] for _ in range(2)))


def updated(problem, xp, layers, gradients, states):
    """New layers and states, by the rules of models.numpy_trainer."""

    def each(f, *trees):
        return [[f(*leaves) for leaves in zip(*rows, strict=True)] for rows in zip(*trees, strict=True)]

    if problem.solver == "sgd":
        return each(lambda p, g: p - np.float32(problem.lr) * g, layers, gradients), states
    count, m, v = states
    count = count + np.float32(1)
    beta1, beta2, eps = np.float32(0.9), np.float32(0.999), np.float32(1e-8)
    m = each(lambda m, g: beta1 * m + (1 - beta1) * g, m, gradients)
    v = each(lambda v, g: beta2 * v + (1 - beta2) * (g * g), v, gradients)
    rate = np.float32(problem.lr) * xp.sqrt(1 - beta2**count) / (1 - beta1**count)
    return each(lambda p, m, v: p - rate * m / (xp.sqrt(v) + eps), layers, m, v), (count, m, v)


def jax_step(problem):
    """step(x, target) trains once and returns the loss, which jax may still compute; and jax's asarray."""
    import jax
    from jax import numpy as jnp

    value_and_grad = jax.value_and_grad(loss_of(problem, jnp))
    state = jax.tree.map(jnp.asarray, start(problem))

    def compiled(state, x, target):
        layers, states = state
        loss, gradients = value_and_grad(layers, x, target)
        return updated(problem, jnp, layers, gradients, states), loss

    compiled = jax.jit(compiled, donate_argnums=0)  # overwrite the parameters, as the others do

    def step(x, target):
        nonlocal state
        state, loss = compiled(state, x, target)
        return loss

    return step, jnp.asarray


def hips_step(problem):
    """The same for HIPS autograd."""
    import autograd
    from autograd import numpy as anp

    value_and_grad = autograd.value_and_grad(loss_of(problem, anp))
    layers, states = start(problem)

    def step(x, target):
        nonlocal layers, states
        loss, gradients = value_and_grad(layers, x, target)
        layers, states = updated(problem, np, layers, gradients, states)
        return loss

    return step, np.array
