"""Messages contain no elements of tensors, only type, shape and dtype. (They do name an index out of range, because it
has to be corrected. NumPy names it too.)"""

import inspect

import numpy as np
import pytest

import cygrad as cg
from cygrad.core.errors import described

SENTINEL = 1234.625                                 # exact in every floating dtype
WHOLE = 1234625
TRACES = ("1234.6", "1.2346", "1234625", "1.234625")


def held():
    """Arguments that contain the sentinel, in every form in which a program might pass it."""
    a = np.full((2, 3), SENTINEL)
    x = cg.tensor(a, dtype="float32")
    yield from (x, cg.tensor(a), cg.tensor(a).attach_grad(), cg.tensor(SENTINEL), a, a[0], [x, x], (x,), [[x]], [a],
                {"x": x}, {1: a}, slice(x, x), cg.full((2,), WHOLE, "int64"), np.full(3, WHOLE), lambda: x,
                np.array([x, x]), np.array([x, None], dtype=object), Holder(x))


class Holder:
    """An object of another library whose repr shows its contents."""

    def __init__(self, x):
        self.x = x

    def __repr__(self):
        return f"Holder({self.x!r})"


def everything():
    """(name, function): everything that users can call with values."""
    for name, f in vars(cg).items():
        if inspect.isroutine(f) and name not in ("get_include", "mark_variables", "set_recording", "set_training"):
            yield name, f
    for name in ("backward", "reshape", "transpose", "permute", "sum", "astype", "copy_", "fill_", "attach_grad",
                 "requires_grad_", "register_hook", "take", "split", "norm", "clip", "squeeze", "__getitem__",
                 "swapaxes", "flatten", "__setitem__", "__add__", "__iadd__", "__pow__", "__matmul__", "__dlpack__",
                 "__array__", "__setstate__", "__format__"):
        yield f"Tensor.{name}", (lambda *args, n=name, **named: getattr(cg.ones(2, 3), n)(*args, **named))
    for name in ("normal", "uniform", "bernoulli", "integers", "permutation", "seed", "Generator"):
        yield f"random.{name}", getattr(cg.random, name)
    for name in ("grad", "GradientEdge", "saved_tensors_hooks"):
        yield f"autograd.{name}", getattr(cg.autograd, name)
    for name in ("limit", "profile", "why"):
        yield f"memory.{name}", getattr(cg.memory, name)
    for name in ("Adam", "Sgd"):
        yield f"optim.{name}", getattr(cg.optim, name)
    yield "optim.set_parameters", lambda *a, **n: cg.optim.Sgd().set_parameters(*a, **n)
    yield "optim.set_learning_rate", lambda *a, **n: cg.optim.Sgd().set_learning_rate(*a, **n)
    for name in ("Parameter", "Sequential", "ModuleList", "ModuleDict", "Linear", "Bilinear", "Embedding", "Dropout",
                 "Hardtanh", "GELU", "MSELoss", "CrossEntropyLoss"):
        yield f"nn.{name}", getattr(cg.nn, name)
    for name in ("load_state_dict", "register_parameter", "register_buffer", "register_module", "register_forward_hook",
                 "get_submodule", "get_parameter", "freeze", "unfreeze", "astype", "train", "__setattr__"):
        yield f"nn.Module.{name}", (lambda *args, n=name, **named: getattr(cg.nn.Linear(2, 3), n)(*args, **named))
    for name in ("normal_", "orthogonal_", "kaiming_uniform_", "sparse_", "calculate_gain", "dirac_"):
        yield f"nn.init.{name}", getattr(cg.nn.init, name)
    yield "testing.fail_allocation", lambda *a: cg.testing.fail_allocation(*a).__enter__()
    yield "testing.gradcheck", lambda *a, **n: cg.testing.gradcheck(cg.exp, *a, order="2")
    yield "mark_variables", lambda x: cg.mark_variables(cg.ones(2), x)
    yield "record", lambda x: cg.record(x)
    yield "zeros.grad", lambda x: setattr(cg.ones(2).attach_grad(), "grad", x)


def calls(f):
    """Calls of `f` with the sentinel as one argument or all, and plausible values for the others."""
    other = cg.ones(2, 3)
    for x in held():
        yield (x,), {}
        for fill in (other, 0, "mean"):
            yield (x, fill), {}
            yield (fill, x), {}
            yield (other, fill, x), {}
            yield (other, other, other, x), {}
        yield (x, x, x), {}
        try:
            names = list(inspect.signature(f).parameters)
        except (TypeError, ValueError):
            names = []
        for name in [*names[1:], "axis", "dim", "dtype"]:
            yield (other,), {name: x}


def texts(e):
    """All texts of an error: its message, its notes, and those of its causes."""
    seen = []
    while e is not None and e not in seen:
        seen.append(e)
        yield str(e)
        yield from getattr(e, "__notes__", ())
        e = e.__cause__ or (None if e.__suppress_context__ else e.__context__)


# Indices, labels and lengths, which are named.
NAMED = ("out of range", "is not a class", "too many elements", "a block of", "more than any machine", "does not fit",
         "holds ", "fill shape", "broadcast to shape")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name, f", [pytest.param(n, f, id=n) for n, f in everything()])
def test_no_message_has_the_elements(name, f):
    found, raised = [], 0
    threads, dtype = cg.get_num_threads(), cg.get_default_dtype()
    for args, named in calls(f):
        try:
            with cg.memory.limit(2**28):
                f(*args, **named)
        except BaseException as e:
            raised += 1
            found += [t for t in texts(e) if any(trace in t.replace(",", "") for trace in TRACES)
                      and not any(word in t for word in NAMED)]
            if not isinstance(e, Exception): raise
        cg.set_num_threads(threads)
        cg.set_default_dtype(dtype)
        cg.set_recording(False)
        cg.set_training(False)
    assert not found, f"{name}: " + "\n".join(dict.fromkeys(found))
    assert raised, f"nothing that was tried with {name} is an error"


class Size(tuple):
    __slots__ = ()

    def __repr__(self):
        return f"Size{tuple(self)}"


def test_described():
    x = cg.ones(2, 3)
    foreign = type("Tensor", (), {"__module__": "other.library", "dtype": "float32", "shape": Size((2,))})
    for value, said in (
        (1, "1"), (1.5, "1.5"), (None, "None"), ("a", "'a'"), (x, "a float32 tensor of shape (2, 3)"),
        (np.ones(2), "a float64 array of shape (2,)"), ([x, 2], "[a float32 tensor of shape (2, 3), 2]"),
        ((x,), "(a float32 tensor of shape (2, 3),)"), (np.float64(2), "a NumPy number of dtype float64"),
        ({"a": x}, "a value of type dict"), (print, "a value of type builtin_function_or_method"),
        (int, "<class 'int'>"),
        (foreign(), "a float32 other.library.Tensor of shape (2,)"),
        (slice(1, x), "slice(1, a float32 tensor of shape (2, 3), None)"), ((), "()"), ((1, 2), "(1, 2)"),
    ):
        assert described(value) == said
    assert len(described("a" * 1000)) == len(described(list(range(90)))) == 200
    assert described([1] * 101) == "[101 values]"
    x.free()
    assert described(x) == "a freed tensor"
