"""Every row compared with PyTorch on the row's own samples: value and gradients. (test_opinfo.py has PyTorch's
samples.)"""

import warnings

import numpy as np
import pytest

import cygrad as cg
from in_torch import has_negative_step, torch_counterparts
from rows import DIFFERENTIABLE, close, every_case, floating_places, is_array, is_floating, rounding


@pytest.fixture(scope="module")
def torch():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch = pytest.importorskip("torch", reason="PyTorch is not installed, so it cannot be compared with")
        pytest.importorskip("torch._dynamo")        # otherwise imported in backward, where it keeps frames alive
        return torch


def derivatives(xs, y, grad, variable):
    """First and second gradients of sum(y * head) and sum(dx * direction)."""
    head, directions = variable(y, 7), [variable(x, 11 + i) for i, x in enumerate(xs)]
    first = grad([y], xs, [head], True)
    pairs = [(dx, v) for dx, v in zip(first, directions, strict=True) if dx is not None and dx.requires_grad]
    second = grad([dx for dx, _ in pairs], xs, [v for _, v in pairs], False) if pairs else [None] * len(xs)
    return [*first, *second]


# Their gradients depend on the values and are piecewise constant. PyTorch does not record some of these gradients. In
# cygrad the next derivative is zeros.
PIECEWISE = {*(f"{kind}_pool{d}d" for kind in ("max", "adaptive_max") for d in (1, 2, 3)),
            "relu_gradient", "maximum", "minimum", "clip", "where", "max", "min", "sort"}


def kinds(xs, y, grad):
    """The kind of the next derivative for each gradient and each input: "values", "zeros" or "none". For a gradient
    that is not recorded, all are "none"."""
    found = []
    for dx in grad([y], xs, True):
        further = grad([dx], xs, False) if dx is not None and dx.requires_grad else [None] * len(xs)
        found.append(["none" if d is None else "values" if d.detach().numpy(**forced(d)).any() else "zeros"
                      for d in further])
    return found


def forced(t):
    return {} if isinstance(t, cg.Tensor) else {"force": True}     # PyTorch's ZeroTensors


@pytest.mark.parametrize("row, args, kwargs", [case for case in DIFFERENTIABLE if floating_places(case.values[1])])
def test_further_derivatives_exist_where_they_do_in_torch(row, args, kwargs, torch):
    like = torch_counterparts(torch).get(row.name)
    if like is None and row.name not in PIECEWISE:
        pytest.skip(f"PyTorch has no counterpart of {row.name}")
    if row.name == "getitem" and has_negative_step(args[1]):
        pytest.skip("PyTorch has no negative steps")
    if row.name.startswith("conv") and args[0].size == 0:
        pytest.skip("PyTorch does not record the gradients of convolutions of no images")
    if "avg_pool" in row.name:
        pytest.skip("PyTorch gives zeros for what does not depend on the input")
    places = floating_places(args)
    ours = [cg.tensor(a, requires_grad=is_floating(a)) if is_array(a) else a for a in args]
    with cg.record():
        y = row.tested(*ours, **kwargs)
        found = kinds([ours[i] for i in places], y, lambda ys, xs, graph: cg.autograd.grad(
            ys, xs, retain_graph=True, create_graph=graph, allow_unused=True))
    if row.name in PIECEWISE or kwargs.get("mode") == "max":
        assert found == [["zeros"] * len(places)] * len(places)
        return
    theirs = [torch.tensor(a, requires_grad=is_floating(a)) if is_array(a) else
              torch.tensor(float(a), dtype=torch.float64) if i == 0 else a for i, a in enumerate(args)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")             # PyTorch's variance of nothing
        y = like(*theirs, **kwargs)
    wanted = kinds([theirs[i] for i in places], y, lambda ys, xs, graph: torch.autograd.grad(
        ys, xs, [torch.ones_like(y) for y in ys], retain_graph=True, create_graph=graph, allow_unused=True))
    assert [[kind == "none" for kind in of] for of in found] == [[kind == "none" for kind in of] for of in wanted]


@every_case
def test_agrees_with_torch(row, args, kwargs, torch):
    like = torch_counterparts(torch).get(row.name)
    if like is None:
        pytest.skip(f"PyTorch has no counterpart of {row.name}")
    places = floating_places(args)
    theirs = [torch.tensor(a, requires_grad=is_floating(a)) if is_array(a) else
              torch.tensor(float(a), dtype=torch.float64) if i == 0 else a for i, a in enumerate(args)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")             # PyTorch's variance of nothing
        wanted = like(*theirs, **kwargs)
    if wanted is None:
        pytest.skip("PyTorch has no negative steps")
    if row.name.startswith("adaptive") and wanted.numel() == 0:
        pytest.skip("PyTorch has no backward of pooling into no parts")
    ours = [cg.tensor(a, requires_grad=is_floating(a)) if is_array(a) else a for a in args]
    with cg.record():
        y = row.tested(*ours, **kwargs)
    scale = rounding(row, args)
    close(y.detach().numpy() / scale, wanted.detach().numpy() / scale, str(y.dtype))
    if not row.operator.differentiable or not places:
        return

    def numbers(t, seed):
        return np.random.default_rng(seed).uniform(-1, 1, tuple(t.shape))

    def our_grad(ys, xs, heads, create_graph):
        with cg.record():
            return cg.autograd.grad(ys, xs, heads, create_graph=create_graph, allow_unused=True)

    def their_grad(ys, xs, heads, create_graph):
        return torch.autograd.grad(ys, xs, heads, create_graph=create_graph, allow_unused=True)

    found = derivatives([ours[i] for i in places], y, our_grad,
                        lambda t, seed: cg.tensor(numbers(t, seed), dtype=t.dtype))
    expected = derivatives([theirs[i] for i in places], wanted, their_grad,
                           lambda t, seed: torch.tensor(numbers(t, seed), dtype=t.dtype))
    for a, b in zip(found, expected, strict=True):
        a = None if a is None else a.detach().numpy()
        b = np.zeros_like(a) if b is None and a is not None else None if b is None else b.numpy(force=True)
        if a is None:
            assert b is None or not b.any()
        else:
            rtol, atol = (1e-5, 1e-6) if y.dtype == "float32" else (1e-11, 1e-12)
            np.testing.assert_allclose(a, b, rtol=rtol, atol=atol)
