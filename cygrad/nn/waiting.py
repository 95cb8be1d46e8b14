"""Layers whose parameters wait for a size, such as Linear(None, 7). Such a layer registers the names of the parameters
and buffers that it will have with None, then calls wait(), which puts a tensor without memory in the place of each
(core/graph/waiting.pyx), and has
    _how                a dict of what they are made with; astype() changes its "dtype"
    _size_of(*args)     the missing size, from the arguments of the first call
    _size_in(state)     the missing size, from a dict of its own names and tensors; None if they do not have it
    _plan(size)         {name: (shape, function that makes a tensor of a shape)}; it changes nothing
    _set_size(size)     stores the size
A call, a state_dict or an assigned tensor gives the size. Then the waiting tensors get their memory and values: they
remain the same objects. What was assigned before stays, and None is what the layer does without."""

from __future__ import annotations

from os import register_at_fork
from threading import RLock
from typing import Any, NamedTuple
from weakref import ref

from cygrad.core.dtypes import dtype_number
from cygrad.core.errors import described
from cygrad.core.graph.tensor import Tensor
from cygrad.core.graph.waiting import give_shapes, is_waiting, new_waiting, outside_trace, shaped, waiting
from cygrad.core.thread_state import set_recording

MAKING = RLock()            # held by what gives sizes to waiting tensors, and by what is done to several at once
register_at_fork(before=MAKING.acquire, after_in_parent=MAKING.release, after_in_child=MAKING.release)


def tensors_of(module):
    """(name, tensor) of the parameters and buffers that a module has."""
    return [(name, module.__dict__[name]) for name in (*module._parameters, *module._buffers)
            if module.__dict__[name] is not None]


def make(module, size):
    """Make all parameters and buffers of a layer whose size is given."""
    registered = {*module._parameters, *module._buffers}
    made = {name: create(shape) for name, (shape, create) in module._plan(size).items() if name in registered}
    module.__dict__.update(made)
    module._set_size(size)


def wait(module, one, other):
    """Give a layer parameters and buffers that wait for a size. `one` and `other` are two sizes that it could have: the
    sizes in which their plans differ are unknown."""
    made, others = {}, module._plan(other)
    for name, (shape, _) in module._plan(one).items():
        if name not in module._parameters and name not in module._buffers: continue
        known = tuple(m if m == n else None for m, n in zip(shape, others[name][0], strict=True))
        x = new_waiting(f"{type(module).__name__}.{name}", known, dtype_number(module._dtype_of(name)))
        made[name] = outside_trace(x.requires_grad_) if name in module._parameters else x
    module.__dict__.update(made)
    for name, x in made.items(): remember_place(x, module, name)
    module._pending = True


def remember_place(x, module, name):
    """Let a waiting tensor know a module that has it, which gets its size with it."""
    places = waiting(x).places
    places[:] = [place for place in places if place[0]() is not None]
    places.append((ref(module), name))


class KnownShape(NamedTuple):
    """The shape that a waiting tensor gets, for _size_in()."""

    shape: tuple[int, ...]

    @property
    def ndim(self) -> int:
        return len(self.shape)


class Made(NamedTuple):
    """What a waiting tensor becomes. `layer` is the one that needs this shape; `create` is None until one makes it."""

    x: Any
    shape: tuple[int, ...]
    create: Any
    layer: Any
    name: str


class Change:
    """Sizes that become known at once: layers that share a waiting parameter get theirs together. create() does all
    that can fail, apply() the rest."""

    def __init__(self):
        self.sizes, self.made = {}, {}      # id of a module -> (module, size); id of a waiting tensor -> Made
        self.found, self.tensors = [], {}

    def add(self, module, size, given=()):
        """Note the size of a layer, and of all that get theirs from it. `given` has tensors that are assigned to it
        now, by name. Raises ValueError if one that the layer has does not have the shape for this size."""
        if id(module) in self.sizes: return
        self.sizes[id(module)] = module, size
        plan, has = module._plan(size), {**dict(tensors_of(module)), **dict(given)}
        for name, (shape, create) in plan.items():
            x = has.get(name)
            if is_waiting(x): self.note(Made(x, shape, create, module, name))
            elif x is not None and x.shape != shape:
                raise ValueError(f"{type(module).__name__}.{name} must be {shape}, got {described(x)}")

    def note(self, made):
        """Note the shape of a waiting tensor, and the sizes of the layers that have it."""
        known = self.made.get(id(made.x))
        if known is not None and known.shape != made.shape:
            raise ValueError(f"{said(made)} must be {made.shape}, but {said(known)}, which is the same parameter, must "
                             f"be {known.shape}; tie parameters of one shape")
        if known is None or known.create is None: self.made[id(made.x)] = made
        if known is not None: return
        for place, name in waiting(made.x).places:
            layer = place()
            if layer is None or not layer._pending or layer.__dict__.get(name) is not made.x: continue
            size = layer._size_in({name: KnownShape(made.shape)})
            if size is not None: self.add(layer, size)

    def create(self):
        """Make the tensors: first the layers draw their values, in the order of their parameters, then what was to be
        written to the waiting ones is written, in the order in which it was asked for."""
        recording = set_recording(False)
        try: outside_trace(self._create)
        finally: set_recording(recording)

    def _create(self):
        pairs = [(made.x, made.create(made.shape)) for made in self.made.values() if made.create is not None]
        self.found = shaped(pairs)
        self.tensors = {id(x): y for x, y in pairs}

    def tensor(self, x):
        """The tensor that has the values of `x`: another one if `x` waits and gets its shape now."""
        return self.tensors.get(id(x), x)

    def apply(self):
        """Give the waiting tensors their shapes, and the layers their sizes."""
        give_shapes(self.found)
        for module, size in self.sizes.values(): module._set_size(size)
        for module, _ in self.sizes.values(): module._pending = False       # last: another thread may look at it


def said(made):
    return f"{type(made.layer).__name__}({made.layer.extra_repr()}).{made.name}"


def first_call(module, args, kwargs):
    """Give a layer its size, from the arguments of its first call."""
    change = Change()
    change.add(module, module._size_of(*args, **kwargs))
    change.create()
    change.apply()


def assignment(module, name, value):
    """The Change that the assignment of `value` to a parameter or buffer makes, or None. Raises ValueError if a tensor
    does not have the shape that a waiting one will have."""
    old, change = module.__dict__.get(name), Change()
    if value is old or value is None: return None
    if is_waiting(value):
        if isinstance(old, Tensor) and not is_waiting(old):     # the new one gets the shape of the one that it replaces
            check_fits(waiting(value).shape, old.shape, value, module, name)
            if not any(place() is not None for place, _ in waiting(value).places):
                raise ValueError(f"{type(module).__name__}.{name} must be a tensor that some layer gives its values, "
                                 f"got {described(value)}, whose layer no longer exists; keep that layer")
            change.note(Made(value, old.shape, None, module, name))
    elif module._pending:
        given = {name: x for name, x in tensors_of(module) if not is_waiting(x)} | {name: value}
        size = module._size_in(given)
        if size is not None: change.add(module, size, given)
    if is_waiting(old):
        got = waiting(value) if is_waiting(value) else value
        check_fits(waiting(old).shape, got.shape, value, module, name)
        if is_waiting(value) and value.dtype != old.dtype:
            raise ValueError(f"{type(module).__name__}.{name} must be {old.dtype}, got {described(value)}")
    if not change.sizes: return None
    change.create()
    return change


def check_fits(wanted, shape, value, module, name):
    """Raise ValueError if two shapes, whose unknown sizes are None, cannot be those of one tensor."""
    if len(wanted) == len(shape) and all(m == n or m is None or n is None for m, n in zip(wanted, shape, strict=True)):
        return
    known = is_waiting(value) and not is_waiting(module.__dict__.get(name))     # (then `shape` is that of the old one)
    text = str(tuple(shape if known else wanted)).replace("None", "?")
    raise ValueError(f"{type(module).__name__}.{name} must be {text}, got {described(value)}")


def registered_again(module, name, value):
    """Whether `name` is that of a parameter or buffer of a waiting module, which then has become the tensor `value`."""
    if value is None: return False
    for registry, note in ((module._parameters, None), (module._buffers, module._buffers.get(name))):
        if name in registry:
            module._register(registry, name, value, note)
            return True
    return False


def has_bias(module):
    """Whether a layer has a bias, or will have one."""
    return "bias" in module._parameters and module.bias is not None


def is_readable(x: Any) -> bool:
    """Whether `x` is a tensor with values, not None and not one that waits."""
    return x is not None and not is_waiting(x)
