"""Names from other libraries: those with only one meaning work, and the others raise an error with cygrad's name."""

import inspect

import numpy as np
import pytest

import cygrad as cg
from cygrad.core import answers


@pytest.mark.parametrize("name", sorted(answers.TENSOR))
def test_a_name_of_others_is_answered_and_is_no_attribute(name):
    x = cg.ones(2)
    assert not hasattr(x, name) and not hasattr(cg.Tensor, name) and name not in dir(x)
    assert getattr(x, name, None) is None
    with pytest.raises(AttributeError, match=f"^a tensor has no {name}: "):
        getattr(x, name)
    with pytest.raises(AttributeError, match=f"^a tensor has no {name}: "):
        setattr(x, name, 1)
    with pytest.raises(AttributeError, match=f"^a tensor has no {name}: "):
        delattr(x, name)


def test_solvers_answer_too():
    solver = cg.optim.Sgd()
    for name, sentence in answers.SOLVERS.items():
        assert not hasattr(solver, name) and name not in dir(solver) and getattr(solver, name, None) is None
        with pytest.raises(AttributeError) as e: getattr(solver, name)
        assert str(e.value) == f"'Sgd' object has no attribute '{name}': {sentence}"
    assert {"update", "set_parameters"} <= set(dir(solver)) and {"shape", "numpy", "grad"} <= set(dir(cg.ones(2)))


class WithState(cg.optim.Sgd):
    """A solver of a user, with attributes of its own."""


def test_a_subclass_may_have_attributes_of_these_names():
    solver = WithState()
    for name in answers.SOLVERS:
        setattr(solver, name, 3)
        assert getattr(solver, name) == 3


def test_names_of_torch_optim_and_mxnet():
    for name in answers.OPTIM:
        assert not hasattr(cg.optim, name)
        with pytest.raises(AttributeError, match=f"^module 'cygrad.optim' has no attribute '{name}': "):
            getattr(cg.optim, name)
    for name, ours in (("AMSGrad", "AMSGRAD"), ("LAMB", "Lamb"), ("RMSProp", "RMSprop"), ("Adamw", "AdamW")):
        with pytest.raises(AttributeError, match=f"'{name}': use {ours}$"): getattr(cg.optim, name)


def test_every_solver_and_schedule_of_pytorch_is_here_or_answered():
    torch = pytest.importorskip("torch")
    solvers = [name for name, v in vars(torch.optim).items() if isinstance(v, type)]
    schedules = [name for name in torch.optim.lr_scheduler.__all__ if name != "__all__"]
    assert len(solvers) > 12 and len(schedules) > 12
    assert [name for name in solvers + schedules if not hasattr(cg.optim, name) and name not in answers.OPTIM] == []


def test_what_the_answers_name_exists():
    """The replacement for a keyword is a parameter of some function, and the examples are valid."""
    functions = [f for f in (getattr(cg, name) for name in dir(cg)) if inspect.isroutine(f)]
    functions += [cg.Tensor.backward, cg.Tensor.flatten]
    parameters = {name for f in functions for name in inspect.signature(f).parameters}
    parameters |= set(inspect.signature(cg.autograd.grad).parameters)
    assert {ours for names in answers.KEYWORDS.values() for ours in names} <= parameters
    assert set(answers.EXAMPLES) <= parameters
    for theirs in answers.KEYWORDS:
        assert answers.of_keyword("no_such_function", theirs) is None or theirs in answers.WITHOUT


def test_every_function_with_an_axis_answers_dim():
    for f in list(vars(cg).values()):
        if not inspect.isroutine(f) or "axis" not in inspect.signature(f).parameters:
            continue
        with pytest.raises(TypeError, match=f"^{f.__name__} takes axis, not dim: "):
            f(dim=1)


def test_shapes_as_numbers():
    for make in (cg.zeros, cg.ones, cg.empty):
        assert make(2, 3).shape == make((2, 3)).shape == make([2, 3]).shape == make(shape=(2, 3)).shape == (2, 3)
        assert make(2).shape == make(np.int64(2)).shape == (2,)
        assert make(2, "float64").dtype == make(2, dtype="float64").dtype == make((2,), np.float64).dtype == "float64"
        assert make(2, 3, "int64").dtype == make(2, 3, dtype="int64").dtype == "int64"
        assert make(2, 3, "int64").shape == (2, 3) and make(2, None).dtype == "float32"
        for wrong in ((2, 3.5, 4), ((2,), 3), (2, (3,), 4), (2, True, 4)):
            with pytest.raises(TypeError):
                make(*wrong)


def test_requires_grad_where_tensors_are_made():
    x = cg.ones(2)
    for t in (cg.zeros(2, requires_grad=True), cg.ones(2, requires_grad=True), cg.empty(2, requires_grad=True),
              cg.full(2, 1.0, requires_grad=True), cg.arange(2.0, requires_grad=True), cg.eye(2, requires_grad=True),
              cg.linspace(0, 1, 3, requires_grad=True), cg.zeros_like(x, requires_grad=True),
              cg.ones_like(x, requires_grad=True), cg.empty_like(x, requires_grad=True),
              cg.full_like(x, 2, requires_grad=True)):
        assert t.requires_grad and t.is_leaf and t.grad_req == "add" and t.grad is None
    with pytest.raises(TypeError, match="int64 tensors cannot have gradients"):
        cg.zeros(2, dtype="int64", requires_grad=True)


def test_names_with_one_meaning():
    assert cg.optim.SGD is cg.optim.Sgd and cg.optim.Adam(lr=0.5).lr == 0.5 == cg.optim.Adam(0.5).lr
    assert cg.array is cg.tensor and cg.as_tensor is cg.from_numpy is cg.asarray and cg.nd.array is cg.tensor
    a = np.arange(24.0).reshape(2, 3, 4)
    x = cg.tensor(a).attach_grad()
    assert x.cpu() is x and x.double() is x and x.float().dtype == "float32"
    assert cg.ones(3).clamp(max=0.5).tolist() == [0.5] * 3
    with cg.record():
        for y, wanted in (
            (x.mT, np.swapaxes(a, -1, -2)), (cg.matrix_transpose(x), np.swapaxes(a, -1, -2)),
            (x.swapaxes(0, -1), np.swapaxes(a, 0, -1)), (cg.swapaxes(x, 1, 1), a), (x.flatten(), a.reshape(-1)),
            (x.ravel(), a.reshape(-1)), (x.flatten(1), a.reshape(2, 12)), (x.flatten(0, 1), a.reshape(6, 4)),
            (x.flatten(-2, -2), a), (x.float(), a),
        ):
            assert y.shape == wanted.shape and y.requires_grad and np.array_equal(y.detach(), wanted)
            y.backward(np.ones(wanted.shape, y.dtype) * 2)
            assert (x.grad.numpy() == 2).all()
    w = cg.ones(2)
    w.requires_grad = True
    assert w.requires_grad and w.grad_req == "add" and w.grad is None
    w.requires_grad = False
    assert not w.requires_grad
    assert cg.tensor(3.0).flatten().tolist() == [3.0] and cg.zeros((0, 3)).flatten().shape == (0,)
    assert cg.ones(2, 3).transpose(-1, -2).shape == (3, 2)
