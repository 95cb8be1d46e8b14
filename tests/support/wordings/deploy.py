"""The wording of errors: nets as functions, weights in files, the command line of a net."""

import tempfile
from pathlib import Path

import numpy as np

import cygrad as cg
from cygrad import nn
from cygrad.graph import Net
from cygrad.nets import command

FOLDER = Path(tempfile.mkdtemp())


def net():
    made = Net("small")
    made.mul(["a", "b"], "y")
    return made


def captured():
    return Net.capture(lambda x: x * 2.0, ((4, 3), "float32"), name="small")


def recorded():
    x = cg.tensor([[1.0, 2.0, 3.0]]).attach_grad()
    with cg.record(): captured()(x)


def saved(f, **names):
    return lambda: Net.capture(f, ((4, 3), "float32"), names=names).save(FOLDER / "n.cg", weights=True)


def training():
    w = cg.ones(3).attach_grad()

    def f(x):
        with cg.record(): loss = (x * w).sum()
        loss.backward()
        return loss

    saved(f, w=w)()


def updating():
    w = cg.ones(3).attach_grad()
    solver = cg.optim.Sgd(lr=0.1)
    solver.set_parameters({"w": w})

    def f(x):
        solver.zero_grad()
        return x * w

    saved(f, w=w)()


def writing():
    state = cg.ones((4, 3))

    def f(x):
        state[0] = x[0]
        return state + x

    saved(f, state=state)()


def statistics():
    model = nn.BatchNorm1d(3)

    def f(x):
        with cg.train_mode(): return model(x)

    saved(f, **dict(model.named_buffers()))()


def arrays(name="a.npy", **more):
    """The path of a file with two arrays, or one."""
    np.savez(FOLDER / "two.npz", a=np.ones(2), b=np.ones(2))
    (FOLDER / "two.npz").rename(FOLDER / "two.npy")
    np.save(FOLDER / "a.npy", np.ones(2))
    (FOLDER / "text.npy").write_text("text")
    net().save(FOLDER / "net.cg")
    return str(FOLDER / name)


def on(inputs, outputs=()):
    return lambda: command.run(str(FOLDER / (arrays() and "net.cg")), [*inputs], [*outputs])


def of(name):
    return lambda: command.run(str(FOLDER / "net.cg"), [f"a={arrays(name)}", f"b={arrays()}"], [])


KEEP = ("with weights=True these are constants of the file; capture the forward pass alone, in predict mode, or pass "
        "weights=False")

CASES = [
    (lambda: net()([1.0], [2.0], [3.0]), TypeError, "net small takes 2 inputs, a, b, got 3"),
    (lambda: net()([1.0], c=[2.0]), TypeError, "net small has no input 'c'; its inputs are a, b"),
    (lambda: net()([1.0], a=[2.0]), TypeError, "net small: the input 'a' is given twice; pass it once"),
    (lambda: net()([1.0]), TypeError, "net small: the input 'b' is missing; its inputs are a, b"),
    (lambda: captured()("text"), TypeError, "net small: the input 'x' must be a number, an array or a tensor: <*>"),
    (recorded, RuntimeError,
     "net small: runs of a net are not recorded, so the gradient of 'x' would be lost; call it outside of record(), or "
     "train it by net.head()"),
    (lambda: captured()(np.ones((4, 3))), TypeError,
     "net small: the input 'x' must be float32, as its example, got float64; cast it with astype('float32')"),
    (lambda: captured()(np.ones(3, "f4")), ValueError,
     "net small: the input 'x' must have 2 axes, as its example of shape (4, 3), got shape (3,)"),
    (lambda: net().save(FOLDER / "n.cg", weights=1), TypeError, "Net.save: weights must be a bool, got 1"),
    (training, ValueError, f"Net.save: operator 2, <*>, begins a backward pass into .grad; {KEEP}"),
    (updating, ValueError, f"Net.save: operator 0, zero_grad(<*>), changes parameters; {KEEP}"),
    (writing, ValueError, f"Net.save: operator 1, <*>, writes 'state', a tensor outside; {KEEP}"),
    (statistics, ValueError, f"Net.save: operator 1, <*>, writes 'running_mean', a tensor outside; {KEEP}"),
    (on([], ["y.txt"]), ValueError, "an output must be a file named *.npy, got 'y.txt'"),
    (on([], ["/nowhere/y.npy"]), ValueError, "'/nowhere/y.npy': there is no directory '/nowhere'"),
    (on(["c=none.npy"]), ValueError,
     "net small has the inputs a, b; no one of them is left for 'c=none.npy'; write input NAME=PATH, each name once"),
    (on(["a=1.npy", "a=2.npy"]), ValueError, "the input 'a' is given twice; give each input one file"),
    (of("two.npy"), ValueError, "'<*>two.npy' has several arrays; write each with numpy.save"),
    (of("text.npy"), ValueError, "'<*>text.npy' is no .npy file of numbers: <*>; write it with numpy.save"),
    (lambda: axis_of_zeros(), ValueError, "zeros: axis must be one of the 1 axes of the input, got 1"),
]


def axis_of_zeros():
    made = Net("small")
    made.add_operator("zeros", "x", "y", shape=(-1,), dtype="float32", axis=1)
    made([1.0])
