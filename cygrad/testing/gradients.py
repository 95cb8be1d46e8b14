"""gradcheck: compares gradients with finite differences."""

import numpy as np

from cygrad.autograd.modes import enable_grad, no_grad
from cygrad.autograd.passes import grad
from cygrad.core.interop.numpy import tensor
from cygrad.core.errors import described, type_name
from cygrad.core.graph.gradient_slice import ensure_dense
from cygrad.core.graph.tensor import Tensor


def gradcheck(f, *inputs, order=1, eps=1e-6, rtol=1e-5, atol=1e-7, seed=0):
    """Check the gradients of `f` against central finite differences, up to the order-th derivative. Returns True.

    f: takes the inputs as separate arguments and returns a tensor or a tuple of tensors; it must return the same values
    for the same inputs.
    inputs: one or more inputs, or one list of them. Floating tensors and arrays are copied as float64 and
    differentiated; other inputs (integer tensors, numbers) are passed unchanged.
    eps: the step; it is multiplied by |x| where |x| > 1. rtol, atol: the relative and absolute tolerance.
    seed: the seed of random weights. The outputs are multiplied by the weights and summed, so each element of each
    input costs two calls of f. Order 2 checks the gradient function in the same way; the weights are then further
    inputs.

    Raises AssertionError with the order, the input, the element and both numbers if a gradient is wrong; TypeError if f
    does not return tensors or no input is floating; ValueError if order is less than 1; RuntimeError if no output
    depends on an input.
    """
    if isinstance(order, bool) or not isinstance(order, int) or order < 1:
        raise ValueError(f"gradcheck: order must be an int of at least 1, got {described(order)}")
    given = list(inputs[0] if len(inputs) == 1 and isinstance(inputs[0], (list, tuple)) else inputs)
    places = [i for i, x in enumerate(given) if _is_floating(x)]
    if not places:
        raise TypeError("gradcheck: no input is a floating tensor or array; there is nothing to differentiate")
    xs = [tensor(given[i], dtype="float64") for i in places]
    names = [f"input {i}" for i in places]

    def of_floats(*floats):
        args = list(given)
        for i, x in zip(places, floats, strict=True):
            args[i] = x
        return f(*args)

    random = np.random.default_rng(seed)
    for at in range(1, order + 1):
        try:
            heads = _check(of_floats, xs, names, at, eps, rtol, atol, random)
        except Exception as e:
            if "derivative" not in str(e): e.add_note(f"gradcheck: at derivative {at} of {order}")
            raise
        of_floats = _gradient_of(of_floats, len(xs))
        xs += heads
        names += [f"output {k}'s gradient" for k in range(len(heads))]
    return True


def _is_floating(x):
    return isinstance(x, (Tensor, np.ndarray, np.floating)) and x.dtype.kind == "f"


def _outputs(f, xs):
    """The outputs of f, as a list of tensors."""
    ys = f(*xs)
    ys = list(ys) if isinstance(ys, (tuple, list)) else [ys]
    for k, y in enumerate(ys):
        if not isinstance(y, Tensor):
            raise TypeError(f"gradcheck: output {k} of f must be a tensor, got {type_name(y)}")
    return ys


def _gradient_of(f, n):
    """The gradients of f for its n inputs, as a function of the inputs and of the outputs' gradients."""

    def gradient(*args):
        xs, heads = args[:n], args[n:]
        with enable_grad():
            ys = _outputs(f, xs)
            pairs = [(y, g) for y, g in zip(ys, heads, strict=True) if y.requires_grad]
            dxs = grad([y for y, _ in pairs], xs, [g for _, g in pairs], create_graph=True, allow_unused=True)
        return [dx for dx in dxs if dx is not None]

    return gradient


def _check(f, xs, names, order, eps, rtol, atol, random):
    """Compare the gradients of f at xs with finite differences. Returns the weights of the outputs."""
    xs = [x.detach().copy().requires_grad_() for x in xs]
    with enable_grad():
        ys = _outputs(f, xs)
    heads = [tensor(random.uniform(0.5, 1.5, y.shape) * random.choice([-1, 1], y.shape), dtype=y.dtype) for y in ys]
    recorded = [(y, g) for y, g in zip(ys, heads, strict=True) if y.requires_grad]
    if not recorded:
        raise RuntimeError("gradcheck: no output of f depends on an input through recorded operations")
    found = grad([y for y, _ in recorded], xs, [g for _, g in recorded], allow_unused=True)
    found = [ensure_dense(dx) for dx in found]
    del recorded, ys
    weights = [g.numpy().astype(np.float64) for g in heads]

    def value():
        # The inputs stay variables, because the gradient function of a lower order records inside f.
        with no_grad():
            ys = _outputs(f, xs)
        with np.errstate(all="ignore"):
            return sum(float((w * y.detach().numpy()).sum()) for w, y in zip(weights, ys, strict=True))

    if value() != value():
        with no_grad():
            finite = all(np.isfinite(y.detach().numpy()).all() for y in _outputs(f, xs))
        if finite:
            raise AssertionError("gradcheck: f returns different values when it is called again with the same inputs")
        raise AssertionError("gradcheck: f is nan at the inputs; choose them inside its domain")
    for x, dx, name in zip(xs, found, names, strict=True):
        elements = x.detach().numpy()
        computed = np.zeros(x.shape) if dx is None else dx.detach().numpy()
        for at in np.ndindex(x.shape):
            here = elements[at]
            step = eps * max(1.0, abs(here))
            elements[at] = here + step
            above, high = value(), elements[at]
            elements[at] = here - step
            below, low = value(), elements[at]
            elements[at] = here
            measured = (above - below) / (float(high) - float(low))
            if not abs(computed[at] - measured) <= atol + rtol * abs(measured):
                raise AssertionError(
                    f"gradcheck: derivative {order} for {name}, of shape {x.shape}, is wrong at element {at}: backward "
                    f"gives {computed[at]:.10g}, finite differences give {measured:.10g}"
                )
    return heads
