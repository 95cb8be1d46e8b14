"""Names from other libraries: those with only one meaning work, and the others raise an error with cygrad's name."""

import inspect
import operator
import pydoc
import re

import numpy as np
import pytest
from wordings import CASES

import cygrad as cg
from cygrad.core import answers
from cygrad.data import answers as data_answers
from cygrad.nn import answers as nn_answers
from cygrad.optim import answers as optim_answers


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


def test_methods_of_pytorch_that_are_functions_here_are_answered():
    """And those that write in place what a method or a function of cygrad computes."""
    torch = pytest.importorskip("torch")
    theirs = [name for name in dir(torch.Tensor) if not name.startswith("_")]
    assert len(theirs) > 500
    has = {name for name in (*dir(cg), *dir(cg.Tensor)) if callable(getattr(cg, name, getattr(cg.Tensor, name, None)))}
    missing = [name for name in theirs if name.removesuffix("_") in has and not hasattr(cg.Tensor, name)]
    assert [name for name in missing if name not in answers.TENSOR] == ["unfold"]      # (of windows of one axis there)
    assert set(answers.OVER) <= {*dir(cg.Tensor)} and {*answers.FUNCTIONS, *answers.FUNCTIONS_OVER} <= {*dir(cg)}


def test_solvers_answer_too():
    solver = cg.optim.Sgd()
    for name, sentence in optim_answers.SOLVERS.items():
        assert not hasattr(solver, name) and name not in dir(solver) and getattr(solver, name, None) is None
        with pytest.raises(AttributeError) as e: getattr(solver, name)
        assert str(e.value) == f"'Sgd' object has no attribute '{name}': {sentence}"
    assert {"update", "set_parameters"} <= set(dir(solver)) and {"shape", "numpy", "grad"} <= set(dir(cg.ones(2)))


class WithState(cg.optim.Sgd):
    """A solver of a user, with attributes of its own."""


def test_a_subclass_may_have_attributes_of_these_names():
    solver = WithState()
    for name in optim_answers.SOLVERS:
        setattr(solver, name, 3)
        assert getattr(solver, name) == 3


def test_names_of_torch_optim_and_mxnet():
    for name in optim_answers.OPTIM:
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
    known = {*optim_answers.OPTIM, *dir(cg.optim)}
    assert [name for name in solvers + schedules if name not in known] == []


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


PLACES = [cg, cg.Tensor, cg.nn, cg.nn.Module, cg.nn.init, cg.nn.Embedding, cg.optim, cg.optim.Solver,
          cg.optim.LRScheduler, cg.autograd, cg.memory, cg.random, cg.linalg, cg.GradientSlice, cg.graph, cg.graph.Net,
          cg.data, cg.trainers, cg.comm, cg.io]
# Names in an answer that are not cygrad's: of Python, of the library that is answered, and of an example.
FOREIGN = {"isinstance", "len", "d", "PyTorch", "NumPy"}


def found(name):
    """Whether a name of an answer is one of cygrad: "cygrad.nn.init" itself, "attach_grad" of some class or module."""
    if name.startswith("cygrad."): return pydoc.locate(name) is not None
    return any(hasattr(place, name) for place in PLACES)


def named(text):
    """The functions and classes that a text names: cygrad.relu, repeat(x, n), LayerNorm."""
    return {*re.findall(r"\bcygrad\.[A-Za-z_][\w.]*\w", text), *re.findall(r"(?<![\w.])[A-Za-z_]\w*(?=\()", text),
            *re.findall(r"(?<![\w.])[A-Z][a-z]+[A-Z]\w*|(?<![\w.])[A-Z][a-z]+[1-3]d\b", text)}


def test_every_name_in_an_answer_is_one_of_cygrad():
    tables = [answers.WITHOUT, answers.TENSOR, answers.MODULE, answers.AUTOGRAD, answers.RANDOM, data_answers.DATA,
              data_answers.WITHOUT_THEM, nn_answers.METHODS, nn_answers.NN,
              nn_answers.LAYER, optim_answers.SOLVER, optim_answers.SCHEDULE, optim_answers.SOLVERS,
              optim_answers.OPTIM]
    names = {name: text for table in tables for text in table.values() for name in named(text)}
    assert len(names) > 80
    assert {name: text for name, text in names.items() if name not in FOREIGN and not found(name)} == {}


def test_names_of_loaders_are_answered_by_what_works():
    """Each call and index in the answers gives batches, or the rows of some."""
    x, labels, order, indices = np.ones((8, 2), "f4"), np.zeros(8), np.arange(8)[::-1], [1, 3]
    names = {"x": x, "labels": labels, "order": order, "indices": indices, "n": 8, "batch_size": 2, "f": np.stack,
             "weights": np.ones(8), "comm": cg.comm.Communicator(), "xs": [x, x], "cygrad": cg,
             "DataLoader": cg.data.DataLoader}
    run = 0
    for sentence in (*data_answers.DATA.values(), *data_answers.WITHOUT_THEM.values()):
        for text in re.findall(r"(?:DataLoader|cygrad[.\w]+)\(.*\)|x\[[^\]]*\]", sentence):
            found = eval(text, names)
            rows = next(iter(found)) if isinstance(found, cg.data.DataLoader) else found
            assert len(rows) > 0, text
            run += 1
    assert run > 12
    for theirs, ours in data_answers.NAMES.items():
        assert ours in inspect.signature(cg.data.DataLoader).parameters
        with pytest.raises(TypeError, match=f"^DataLoader takes {ours}, not {theirs}: "):
            cg.data.DataLoader(**{theirs: None}, data=x)
    for name in data_answers.DATA: assert not hasattr(cg.data, name)
    for name in answers.RANDOM: assert not hasattr(cg.random, name)


def test_names_of_loaders_are_those_of_pytorch():
    """Every public class of torch.utils.data and argument of its DataLoader is known."""
    data = pytest.importorskip("torch.utils.data")
    ours = {*inspect.signature(cg.data.DataLoader).parameters, "self", "dataset"}       # (data is missing then)
    theirs = {name for name in inspect.signature(data.DataLoader.__init__).parameters if not name.startswith("_")}
    assert theirs - ours - {*data_answers.NAMES, *data_answers.WITHOUT_THEM} == set()
    unknown = {"DataChunk", "DFIterDataPipe", "IterDataPipe", "MapDataPipe", "argument_validation", "default_convert",
               "functional_datapipe", "guaranteed_datapipes_determinism", "non_deterministic",
               "runtime_validation", "runtime_validation_disabled"}     # of data pipes, which PyTorch has left
    named = {name for name in data.__all__ if not name.startswith("_")}
    assert named - {*data_answers.DATA, "DataLoader"} == unknown


def test_names_of_jax_and_hips_are_answered_by_what_works():
    """What an answer of the table of cygrad names, called as the answer says."""
    func, f = cg.func, lambda x: (x * x).sum()
    x = cg.tensor([1.0, 2.0])
    net = cg.graph.Net.capture(f, ((2,), "float32"))
    assert net.infer()["x"] == ((2,), "float32") and "mul" in f"{net}"                  # jit, make_jaxpr, eval_shape
    assert func.grad(lambda p: f(p["a"]) + f(p["b"][0]))({"a": x, "b": [x]})["b"][0].tolist() == [2, 4]     # tree_util
    assert func.jvp(lambda x: x * x, (x,), (cg.ones(2),))[1].tolist() == [2, 4]         # deriv
    gradient, aux = func.grad(lambda x: (f(x), "aux"), has_aux=True)(x)                 # grad_and_aux
    assert gradient.tolist() == [2, 4] and aux == "aux"
    assert [g.tolist() for g in func.grad(lambda x, y: f(x) + f(y), (0, 1))(x, x)] == [[2, 4]] * 2          # multigrad
    assert func.hvp(f, (x,), (cg.ones(2),))[0].tolist() == [2, 2]                       # hessian_tensor_product
    assert func.vjp(lambda x: x * x, x)[1](cg.ones(2))[0].tolist() == [2, 4]            # vector_jacobian_product
    assert cg.checkpoint(f, x).item() == 5                                              # remat
    x[0] = 3                                                                            # at
    assert x.tolist() == [3, 2]
    g = cg.random.Generator(0)
    assert g.normal((2,)).shape == g.uniform((2,)).shape == g.integers(0, 3, (2,)).shape == (2,)
    assert g.categorical(probs=[0.5, 0.5], shape=3).shape == (3,)
    state, first = cg.random.default_generator.state, cg.random.uniform((3,)).tolist()
    cg.random.default_generator.state = state
    assert cg.random.uniform((3,)).tolist() == first
    new = "lax pmap remat make_jaxpr eval_shape device_put deriv extend primitive".split()
    for name in new:
        with pytest.raises(AttributeError, match=f"^module 'cygrad' has no attribute '{name}': "): getattr(cg, name)
    with pytest.raises(AttributeError, match="^module 'cygrad.func' has no attribute 'jit': "): _ = cg.func.jit


def test_every_name_of_cygrad_in_an_error_exists():
    """The errors of tests/support/wordings."""
    names = {name: text for _, _, text in CASES for name in re.findall(r"\bcygrad\.[A-Za-z_][\w.]*\w", text)}
    assert len(names) > 25
    missing = {name: text for name, text in names.items() if not found(name)}
    assert {name for name, text in missing.items() if "No module named" not in text and "for this Python" not in text
            } == set()


def test_a_list_of_tensors_is_told_what_to_call():
    x = cg.tensor([[1.0, 2.0], [3.0, 5.0]]).attach_grad()
    with cg.record():
        y = cg.stack([x[0] * 2, x[1]])
        for nested in (False, True):
            with pytest.raises(RuntimeError, match=rf"or call cygrad.stack\(xs\){' with each list' * nested}, which"):
                cg.tensor([[x[0, 0], x[1, 0]]] if nested else [x[0] * 2, x[1]])
    assert y.requires_grad


def test_the_counterparts_of_numpys_functions_exist():
    for name in (*answers.NUMPY, *dir(np)):
        ours = answers.counterpart(name)
        if ours is not None: assert callable(operator.attrgetter(ours)(cg)) and name not in answers.OTHER
    assert all(answers.counterpart(name) for name in answers.NUMPY)


def test_a_module_in_code_without_a_name():
    """A class or function of such code has no __module__, or None."""
    names = {"cg": cg}
    exec("class Own(cg.nn.Module):\n"
         "    def __init__(self, n, *, bias=True): self.inner = cg.nn.Linear(n, 3, bias)\n"
         "    def forward(self, x): return self.inner(x)\n"
         "y = Own(2, bias=False)(cg.ones((1, 2)))\n"
         "class Rate(cg.optim.Sgd):\n"
         "    def __init__(self, lr, own): super().__init__(lr)\n"
         "solver = Rate(0.5, own=3)", names)
    assert names["Own"].__init__.__module__ is None and names["y"].shape == (1, 3) and names["solver"].lr == 0.5
    names.clear()                                   # (the functions of this code refer to it)
    bare = type("Bare", (), {})
    bare.__module__ = None
    with pytest.raises(TypeError, match="got a value of type Bare$"): cg.nn.Linear(bare(), 2)


class Index:
    """An integer that is known by __index__ alone."""

    def __init__(self, value): self.value = value

    def __index__(self): return self.value


def test_integers_that_have_index_only():
    i, x, image = Index, cg.ones((2, 3, 4)), cg.ones((1, 4, 6, 6))
    for f in (lambda i: cg.pad(x[0, 0], [(i(0), i(1))]), lambda i: cg.pad(x, (i(1), 2)), lambda i: cg.pad(x, i(1)),
              lambda i: cg.max_pool2d(image, i(2)), lambda i: cg.avg_pool2d(image, (i(2), 2), i(1), i(0)),
              lambda i: cg.adaptive_avg_pool2d(image, (i(2), None)), lambda i: cg.lp_pool2d(image, 2, i(2)),
              lambda i: cg.conv2d(image, cg.ones((2, 4, 3, 3)), None, i(1), i(1)), lambda i: cg.unfold(image, i(2)),
              lambda i: cg.conv_transpose2d(image, cg.ones((4, 2, 3, 3)), None, i(1), (i(0), 0)),
              lambda i: cg.fold(cg.unfold(image, 2), (i(6), i(6)), i(2)), lambda i: cg.pixel_shuffle(image, i(2)),
              lambda i: cg.interpolate(image, (i(12), 12)), lambda i: cg.nn.MaxPool2d(i(2))(image),
              lambda i: x.reshape((i(6), i(4))), lambda i: x.sum((i(0), i(2))), lambda i: cg.roll(x, i(1), i(0))):
        assert np.array_equal(f(i).numpy(), f(int).numpy())
    with pytest.raises(ValueError, match="^pad: widths is .*; it must be an integer of at least 0"): cg.pad(x, i(-1))
    with pytest.raises(ValueError, match="^pad: dimension 0 of size 2 with margins of 0 and "): cg.pad(x, (0, 2**70))


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


def test_the_answer_for_strides_is_true():
    x = cg.zeros((3, 4))
    with pytest.raises(AttributeError, match="strides, which count elements"): x.stride()
    assert x.strides == (4, 1)
