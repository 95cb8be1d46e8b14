"""Layers whose parameters wait for a size, such as Linear(None, 7). Such a layer registers the names of the parameters
and buffers that it will have with None, then sets _pending, and has
    _how                a dict of what they are made with; astype() changes its "dtype"
    _size_of(*args)     the missing size, from the arguments of the first call
    _size_in(state)     the missing size, from a dict of its own names and tensors; None if they do not have it
    _plan(size)         {name: (shape, function that makes a tensor of a shape)}; it changes nothing
    _set_size(size)     stores the size
A call, a state_dict or an assigned tensor gives the size. What was assigned before stays. The note in _parameters is
set for a parameter that is to be frozen."""

from threading import RLock

from cygrad.core.errors import described
from cygrad.core.graph.tensor import Tensor

MAKING = RLock()            # held while a layer makes the parameters that wait for a size


def assigned(module):
    """The parameters and buffers that a module has, by name."""
    return {name: module.__dict__[name] for name in (*module._parameters, *module._buffers)
            if module.__dict__[name] is not None}


def make(module, size, found=None):
    """The tensors that a module lacks, for a size; nothing changes. Raises ValueError if one of `found`, which it has,
    does not have the shape for this size."""
    if found is None: found = assigned(module)
    plan = module._plan(size)
    for name, x in found.items():
        if name in plan and x.shape != plan[name][0]:
            raise ValueError(f"{type(module).__name__}.{name} must be {plan[name][0]}, got {described(x)}")
    made = {}
    for name, (shape, create) in plan.items():
        if name in found or name not in module._parameters and name not in module._buffers: continue
        made[name] = create(shape)
        if module._parameters.get(name) is not None: made[name].drop_grad()
    return made


def decided(module, name, value):
    """(the tensors that it lacks, size) if the assignment of `value` to a name of a waiting module decides the size, or
    None."""
    if not isinstance(value, Tensor): return None
    found = {**assigned(module), name: value}
    size = module._size_in(found)
    return None if size is None else (make(module, size, found), size)


def registered_again(module, name, value):
    """Whether `name` is that of a parameter or buffer of a waiting module, which then has become `value`."""
    for registry, note in ((module._parameters, None), (module._buffers, module._buffers.get(name))):
        if name in registry:
            module._register(registry, name, value, note)
            return True
    return False


def do_without(module, name):
    """Make a waiting module one without the parameter `name`, which can only be its bias: for another one, None is
    probably the value of a layer that waits too."""
    if name != "bias":
        raise ValueError(f"{type(module).__name__}.{name} waits for its size, so it cannot become None, and cannot be "
                         f"tied to one that waits too; call the layer that it is tied to once, or make that with its "
                         f"size, first")
    module.__dict__[name] = None
    module._parameters.pop(name, None)


def has_bias(module):
    """Whether a layer has a bias, or will have one."""
    return "bias" in module._parameters and (module._pending or module.bias is not None)


def raise_pending(path, module):
    at = f" at {path!r}" if path else ""
    raise RuntimeError(f"{type(module).__name__}({module.extra_repr()}){at} has no parameters yet, because its input "
                       f"size is unknown; call the model once on an example, or load a state_dict, first")
