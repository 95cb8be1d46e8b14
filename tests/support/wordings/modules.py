"""The wording of errors: modules and containers."""

import numpy as np

import cygrad as cg
from cygrad import nn
from cygrad.core.graph.waiting import shaped, waiting


def layer(n=2):
    """A module with the parameter `w` and the buffer `b`."""
    m = nn.Module()
    m.w = nn.Parameter(cg.ones(n))
    m.register_buffer("b", cg.zeros((), dtype="int64"))
    return m


def net():
    return nn.Sequential(layer(), layer(3))


def state(**changes):
    """The state of net() with changes: _0_w is "0.w", and None removes a name."""
    found = {**net().state_dict(), **{name.replace("_", "", 1).replace("_", "."): v for name, v in changes.items()}}
    return {name: v for name, v in found.items() if v is not None}


def tied():
    m = net()
    m[1].w = m[0].w
    return m


def result():
    with cg.record():
        return nn.Parameter(cg.ones(2)) * 2


def backward_hooked(hook, tracked=True):
    module = nn.Identity() if tracked else nn.Linear(2, 2)
    module.register_full_backward_hook(hook)
    x = cg.ones((1, 2))
    if tracked: x.attach_grad()
    with cg.record(): y = module(x).sum()
    y.backward()


def pre_hooked(hook):
    module = nn.Identity()
    module.register_forward_pre_hook(hook, with_kwargs=True)
    module(cg.ones(2))


def filled_while_recording():
    with cg.record(): nn.Linear(None, 7).weight.fill_(1)


def tied_of_two_shapes():
    a, b = nn.Conv1d(None, 2, 1), nn.ConvTranspose1d(None, 2, 1)
    a.weight = b.weight                             # (2, in, 1) and (in, 2, 1)
    b(cg.ones((1, 3, 4)))


LOAD = "load_state_dict of Sequential: the state does not fit, and nothing was loaded."

CASES = [
    (lambda: layer().checkpoint_("no"), TypeError, "checkpoint_: on must be True or False, got 'no'"),
    (lambda: setattr(layer(), "w", cg.ones(2)), TypeError,
     "Module.w is a parameter and cannot become a float32 tensor of shape (2,); assign nn.Parameter(data) or None, "
     "write into it with w.detach().copy_(value), or delete it first"),
    (lambda: setattr(layer(), "b", 3), TypeError,
     "Module.b is a buffer and cannot become 3; assign a tensor or None, or delete it first"),
    (lambda: setattr(nn.Sequential(layer()), "0", "relu"), TypeError,
     "Sequential.0 is a module and cannot become 'relu'; assign a module or None, or delete it first"),
    (lambda: setattr(nn.Linear(None, 7), "weight", nn.Linear(None, 8).weight), ValueError,
     "Linear.weight must be (7, ?), got Linear.weight of shape (8, ?), float32, requires_grad=True, which waits for "
     "its size"),
    (lambda: setattr(nn.Linear(4, 7), "weight", nn.Linear(None, 7).weight), ValueError,
     "Linear.weight must be a tensor that some layer gives its values, got Linear.weight of shape (7, ?), float32, "
     "requires_grad=True, which waits for its size, whose layer no longer exists; keep that layer"),
    (tied_of_two_shapes, ValueError,
     "Conv1d(None, 2, kernel_size=(1,), stride=(1,)).weight must be (2, 2, 1), but ConvTranspose1d(None, 2, "
     "kernel_size=(1,), stride=(1,)).weight, which is the same parameter, must be (3, 2, 1); tie parameters of one "
     "shape"),
    (filled_while_recording, cg.InplaceError,
     "a leaf variable, Linear.weight, cannot be written in place while recording; write inside pause() or no_grad(), "
     "or make a new tensor"),
    (lambda: shaped([(nn.Linear(None, 7).weight, cg.ones((7, 4), dtype="float64"))]), TypeError,
     "Linear.weight waits for a contiguous float32 tensor, got float64"),
    (lambda: nn.Linear(None, 7).weight.numpy(), RuntimeError,
     "Linear.weight, of shape (7, ?), has no values yet, because the input size of its layer is unknown; call the "
     "model once on an example, or load a state_dict, first"),
    (lambda: setattr(nn.Linear(None, 7), "weight", nn.Parameter(cg.ones((5, 4)))), ValueError,
     "Linear.weight must be (7, 4), got a float32 tensor of shape (5, 4)"),
    (lambda: net().freeze(net()[0]), TypeError,
     "freeze takes names of parameters and modules, and functions of (name, parameter), got the module "
     "Module; pass its path, or call its freeze()"),
    (lambda: net().unfreeze(lambda name, x: False), ValueError,
     "unfreeze: the function selects no parameter; the parameters are '0.w', '1.w'"),
    (lambda: layer().register_parameter("a.b", None), ValueError,
     "Module: the name of a parameter, buffer or module must be a string without dots, got 'a.b'"),
    (lambda: setattr(layer(), "forward", nn.Module()), ValueError,
     "Module.forward is a method or a property of the class, so it cannot be the name of a parameter, buffer or "
     "module; choose another name"),
    (lambda: layer().register_parameter("v", np.ones(2)), TypeError,
     "register_parameter: 'v' must be a variable or None, got a float64 array of shape (2,); make one with "
     "nn.Parameter(data)"),
    (lambda: layer().register_parameter("v", result()), TypeError,
     "register_parameter: 'v' must be a variable or None, got a recorded result; make one with nn.Parameter(data)"),
    (lambda: layer().register_parameter("v", cg.zeros(2, dtype="int64")), TypeError,
     "register_parameter: 'v' must be a variable or None, got a int64 tensor of shape (2,); use register_buffer"),
    (lambda: layer().register_buffer("_mode", cg.ones(2)), ValueError,
     "Module._mode is a method or a property of the class, so it cannot be the name of a parameter, buffer or module; "
     "choose another name"),
    (lambda: layer().register_buffer("v", 1.5), TypeError,
     "register_buffer: 'v' must be a tensor or None, got 1.5"),
    (lambda: layer().register_module("v", cg.ones(2)), TypeError,
     "register_module: 'v' must be a module or None, got a float32 tensor of shape (2,)"),
    (lambda: net().get_submodule("1.x"), AttributeError,
     "get_submodule('1.x'): Module has no child 'x'; its children are none"),
    (lambda: net().get_parameter(3), TypeError,
     "get_parameter: the path must be a string such as \"encoder.0\", got 3"),
    (lambda: net().get_submodule("2"), AttributeError,
     "get_submodule('2'): Sequential has no child '2'; its children are '0', '1'"),
    (lambda: net().get_parameter("0.v"), AttributeError,
     "get_parameter('0.v'): Module has no parameter 'v'; it has 'w'"),
    (lambda: net().get_buffer("0.w"), AttributeError,
     "get_buffer('0.w'): Module has no buffer 'w'; it has 'b'"),
    (lambda: net().astype("int64"), TypeError, "astype: a module can be float32 or float64, got int64"),
    (lambda: nn.Sequential(*(layer() for _ in range(12))).load_state_dict({}), ValueError,
     LOAD + "\n  missing: " + ", ".join(f"'{i}.{x}'" for i in range(5) for x in "wb") + " and 14 more"),
    (lambda: nn.Sequential(*(layer() for _ in range(12))).load_state_dict(
        {f"{i}.{x}": v.astype("float64") for i in range(12) for x, v in layer().state_dict().items()}), ValueError,
     LOAD + "\n  another dtype (convert the module or the state with astype):"
     + "".join(f"\n    '{i}.{x}' is {t} in the module and float64 in the state"
               for i in range(5) for x, t in (("w", "float32"), ("b", "int64"))) + "\n    and 14 more"),
    (lambda: net().freeze("2"), ValueError,
     "freeze: no parameter is '2' or below it; the parameters are '0.w', '1.w'"),
    (lambda: net().unfreeze(3), TypeError,
     "unfreeze takes names of parameters and modules, and functions of (name, parameter), got 3"),
    (lambda: net().train(1), TypeError, "train: mode must be True, False or None, got 1"),
    (lambda: layer().train()._training(), RuntimeError,
     "Module: train() was called on this module, but the thread is in predict mode; call it inside `with "
     "cygrad.train_mode():`, or call train(None), after which it follows the thread"),
    (lambda: net().register_forward_hook(3), TypeError, "register_forward_hook takes a function, got 3"),
    (lambda: net().register_forward_pre_hook(None), TypeError, "register_forward_pre_hook takes a function, got None"),
    (lambda: net().register_full_backward_hook(3), TypeError, "register_full_backward_hook takes a function, got 3"),
    (lambda: backward_hooked(lambda *_: (None, None)), ValueError,
     "a full backward hook of Identity returned 2 values; it may return None, or a tuple of 1 tensors or None"),
    (lambda: backward_hooked(lambda *_: (cg.ones(2),), False), ValueError,
     "a full backward hook of Linear returned a gradient, but none flows to the arguments of this call; it may return "
     "None"),
    (lambda: pre_hooked(lambda module, args, kwargs: 3), TypeError,
     "a forward pre-hook with kwargs of Identity returned 3; it may return None or (args, kwargs)"),
    (lambda: nn.Module()(1), NotImplementedError,
     "Module has no forward; implement forward(self, ...) in the class"),
    (lambda: nn.Sequential(nn.Linear(3, 2)).load_state_dict(nn.Sequential(nn.Linear(None, 2)).state_dict()), ValueError,
     LOAD + "\n  without values, because a layer waits for its size where the state is from: '0.weight', '0.bias'"),
    (lambda: layer().to("cuda"), AttributeError, "a Module has no to: use astype(dtype); all memory is the CPU's"),

    (lambda: net().load_state_dict([1]), TypeError,
     "load_state_dict of Sequential takes a dict of names and arrays, got [1]"),
    (lambda: net().load_state_dict(state(_0_w=[1.0, 2.0])), TypeError,
     "load_state_dict of Sequential: the value of '0.w' must be a tensor or an array, got [1.0, 2.0]"),
    (lambda: net().load_state_dict(state(_0_w=np.zeros(2, "complex64"))), TypeError,
     "load_state_dict of Sequential: the value of '0.w' cannot be read: a tensor holds numbers, but this ndarray has "
     "dtype complex64; cygrad has bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float32, float64"),
    (lambda: net().load_state_dict(state(_0_b=None, _2_w=cg.ones(1))), ValueError,
     LOAD + "\n  missing: '0.b'\n  unexpected: '2.w'"),
    (lambda: net().load_state_dict(state(_0_w=cg.ones(2, 1), _1_w=np.ones(3)), strict=False), ValueError,
     LOAD + "\n  another shape: '0.w' is (2,) in the module and (2, 1) in the state"
     "\n  another dtype (convert the module or the state with astype): '1.w' is float32 in the module and float64 in "
     "the state"),
    (lambda: tied().load_state_dict(state(_0_w=cg.ones(2), _1_w=cg.zeros(2))), ValueError,
     LOAD + "\n  different values of one tied parameter: '0.w' and '1.w'"),

    (lambda: nn.Sequential(layer(), cg.tanh), TypeError, "Sequential takes modules, got a value of type <*>"),
    (lambda: nn.ModuleList().append(None), TypeError, "ModuleList.append takes modules, got None"),
    (lambda: nn.ModuleList(nn.Tanh()), TypeError, "ModuleList takes an iterable of modules, got a value of type <*>"),
    (lambda: nn.ModuleDict({"a": 1}), TypeError, "ModuleDict takes modules, got 1"),
    (lambda: nn.ParameterList([np.ones(2)]), TypeError,
     "ParameterList.extend takes parameters, got a float64 array of shape (2,); make one with nn.Parameter(data)"),
    (lambda: nn.ParameterList(3), TypeError, "ParameterList takes an iterable of parameters, got 3"),
    (lambda: nn.ParameterList()[0], IndexError, "ParameterList: index 0 is out of range for 0 parameters"),
    (lambda: nn.ParameterDict(3), TypeError, "ParameterDict takes a dict of names and parameters, got 3"),
    (lambda: nn.ParameterDict({"a": None}), TypeError,
     "ParameterDict takes parameters, got None; make one with nn.Parameter(data)"),
    (lambda: nn.ModuleDict(3), TypeError, "ModuleDict takes a dict of names and modules, got 3"),
    (lambda: nn.ModuleDict({"keys": layer()}), ValueError,
     "ModuleDict.keys is a method or a property of the class, so it cannot be the name of a parameter, buffer or "
     "module; choose another name"),
    (lambda: net().insert("0", layer()), TypeError, "Sequential.insert: the index must be an int, got '0'"),
    (lambda: net()[2], IndexError, "Sequential: index 2 is out of range for 2 modules"),
    (lambda: net()["0"], TypeError, "Sequential: the index must be an int, got '0'"),
    (lambda: waiting(cg.ones(2)), TypeError, "wanted a tensor that waits for its shape, got <*>"),
]
