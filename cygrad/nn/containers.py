"""Containers of modules, Sequential, ModuleList and ModuleDict, and of parameters, ParameterList and ParameterDict."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Generic, TypeVar

from cygrad.core.errors import described
from cygrad.core.graph.tensor import Tensor
from cygrad.nn.call import kind_of
from cygrad.nn.module import Module
from cygrad.nn.parameter import Parameter

Part = TypeVar("Part")
Default = TypeVar("Default")


def check_module(caller, module):
    if not isinstance(module, Module): raise TypeError(f"{caller} takes modules, got {described(module)}")


def check_parameter(caller, x):
    """Raise TypeError unless x is a parameter, or a tensor that can become one."""
    kind = kind_of(x)
    if kind in ("variable", "frozen") or kind == "plain" and x.dtype.kind == "f": return
    what = "a recorded result" if kind == "result" else described(x)
    raise TypeError(f"{caller} takes parameters, got {what}; make one with nn.Parameter(data)")


def check_index(caller, index):
    if not hasattr(index, "__index__"): raise TypeError(f"{caller}: the index must be an int, got {described(index)}")


def position(caller, index, n, noun):
    """The position of a part, for an index that may be negative."""
    check_index(caller, index)
    i = index.__index__()
    if not -n <= i < n: raise IndexError(f"{caller}: index {i} is out of range for {n} {noun}")
    return i % n


class Container(Module, Generic[Part]):
    """The base of containers: parts under names, in an order. These are modules, unless a subclass says otherwise."""

    _noun = "modules"
    _check_part: Callable[[str, object], None] = staticmethod(check_module)     # (the caller, a part)

    def _parts(self) -> dict[str, Part]:
        """The parts by name."""
        return self._modules

    def _put_part(self, name, part):
        setattr(self, name, part)

    def __len__(self) -> int:
        return len(self._parts())


class OfParameters(Container[Tensor]):
    """The base of containers of parameters. A tensor of floats becomes one, as by nn.Parameter."""

    _noun = "parameters"
    _check_part: Callable[[str, object], None] = staticmethod(check_parameter)

    def _parts(self) -> dict[str, Tensor]:
        return {name: vars(self)[name] for name in self._parameters}

    def _put_part(self, name, part):
        self.register_parameter(name, Parameter(part) if kind_of(part) == "plain" else part)

    def extra_repr(self) -> str:
        """The name, the shape and the dtype of each parameter."""
        return ", ".join(f"({name}): {x.shape} {x.dtype}" for name, x in self._parts().items())


class Listed(Container[Part]):
    """Parts in an order, under names."""

    _part: Callable[[list[tuple[str, Part]]], Any]          # a container of some of the parts

    def __iter__(self) -> Iterator[Part]:
        return iter(self._parts().values())

    def _name_at(self, index):
        return list(self._parts())[position(type(self).__name__, index, len(self), self._noun)]

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice): return self._part(list(self._parts().items())[index])
        return self._parts()[self._name_at(index)]

    def __setitem__(self, index: int, part: Part) -> None:
        self._check_part(type(self).__name__, part)
        self._put_part(self._name_at(index), part)

    def __delitem__(self, index: int | slice) -> None:
        names = list(self._parts())
        gone = names[index] if isinstance(index, slice) else [self._name_at(index)]
        self._replace([(name, part) for name, part in self._parts().items() if name not in gone])

    def _replace(self, named):
        """Replace all parts. Names that are numbers become the positions."""
        named = [(str(i) if name.isdecimal() else name, part) for i, (name, part) in enumerate(named)]
        for name in list(self._parts()): delattr(self, name)
        for name, part in named: self._put_part(name, part)

    def append(self, part: Part) -> Any:
        """Add a part at the end. Returns the container."""
        self._check_part(f"{type(self).__name__}.append", part)
        names, n = self._parts(), len(self)         # (the numbers in a slice of a Sequential do not begin with 0)
        while str(n) in names: n += 1
        self._put_part(str(n), part)
        return self

    def extend(self, parts: Iterable[Part]) -> Any:
        """Add parts at the end. Returns the container."""
        if not hasattr(parts, "__iter__"):
            raise TypeError(f"{type(self).__name__} takes an iterable of {self._noun}, got {described(parts)}")
        parts = list(parts)
        for part in parts: self._check_part(f"{type(self).__name__}.extend", part)
        for part in parts: self.append(part)
        return self

    def insert(self, index: int, part: Part) -> Any:
        """Put a part before the one at `index`; the names of those behind it change. Returns the container."""
        self._check_part(f"{type(self).__name__}.insert", part)
        check_index(f"{type(self).__name__}.insert", index)
        named = list(self._parts().items())
        named.insert(index, ("0", part))
        self._replace(named)
        return self

    def pop(self, index: int = -1) -> Part:
        """Remove a part and return it; the names of those behind it change."""
        part = self._parts()[self._name_at(index)]
        del self[index]
        return part

    def __iadd__(self, parts: Iterable[Part]) -> Any:
        return self.extend(parts)

    def __add__(self, parts: Iterable[Part]) -> Any:
        """A new container of these parts and `parts`, which are named by position."""
        if not hasattr(parts, "__iter__"): return NotImplemented
        parts = [*self, *parts]
        for part in parts: self._check_part(type(self).__name__, part)
        return self._part([(str(i), part) for i, part in enumerate(parts)])


class Sequential(Listed[Module]):
    """Calls modules one after the other, each with the result of the previous one: Sequential(a, b)(x) is b(a(x)).

    The modules are named by position, or by the keys of one dict or the names of keyword arguments:
    Sequential(hidden=nn.Linear(2, 16), act=nn.Tanh()). Indexing gives a module, slicing a Sequential of the same
    modules. The input may be of any shape that the first module takes."""

    def __init__(self, *modules: Module | Mapping[str, Module], **named: Module):
        parts: dict[str, Any] = {str(i): module for i, module in enumerate(modules)}
        if len(modules) == 1 and isinstance(modules[0], Mapping): parts = dict(modules[0])
        parts |= named
        for module in parts.values(): check_module("Sequential", module)
        for name, module in parts.items(): setattr(self, name, module)

    def forward(self, x):
        """The result of the last module."""
        for layer in self._modules.values(): x = layer(x)
        return x

    def _part(self, named):
        return Sequential(dict(named))


class ModuleList(Listed[Module]):
    """A list of modules, which are registered under their positions. It has no forward: the model that contains it
    calls the modules."""

    def __init__(self, modules: Iterable[Module] = ()):
        self.extend(modules)

    def _part(self, named):
        return ModuleList(module for _, module in named)


class ParameterList(OfParameters, Listed[Tensor]):
    """A list of parameters, which are registered under their positions: self.w = ParameterList([a, b]) has the
    parameters w.0 and w.1. It has no forward: the model that contains it reads the parameters.

    A tensor of floats becomes a parameter, as by nn.Parameter. Raises TypeError for a recorded result and for
    everything else, which PyTorch would keep beside the parameters."""

    def __init__(self, values: Iterable[Tensor] = ()):
        self.extend(values)

    def _part(self, named):
        return ParameterList(x for _, x in named)


class Named(Container[Part]):
    """Parts by name, in the order of insertion."""

    def __iter__(self) -> Iterator[str]:
        return iter(self._parts())

    def __contains__(self, name: object) -> bool:
        return name in self._parts()

    def __getitem__(self, name: str) -> Part:
        return self._parts()[name]

    def __setitem__(self, name: str, part: Part) -> None:
        self._check_part(type(self).__name__, part)
        self._check_name(name)
        self._put_part(name, part)

    def __delitem__(self, name: str) -> None:
        if name not in self._parts(): raise KeyError(name)
        delattr(self, name)

    def keys(self) -> Iterable[str]:
        """The names."""
        return self._parts().keys()

    def values(self) -> Iterable[Part]:
        """The parts."""
        return self._parts().values()

    def items(self) -> Iterable[tuple[str, Part]]:
        """Pairs of name and part."""
        return self._parts().items()

    def get(self, name: str, default: Default | None = None) -> Part | Default | None:
        """The part of this name, or `default`."""
        return self._parts().get(name, default)

    def update(self, parts: Mapping[str, Part] | Iterable[tuple[str, Part]]) -> None:
        """Add or replace parts by name. Raises TypeError or ValueError for a part or a name that cannot be added; then
        nothing has changed."""
        if not isinstance(parts, Mapping | Iterable):
            raise TypeError(f"{type(self).__name__} takes a dict of names and {self._noun}, got {described(parts)}")
        found = dict(parts)
        for name, part in found.items():
            self._check_part(type(self).__name__, part)
            self._check_name(name)
        for name, part in found.items(): self._put_part(name, part)

    def pop(self, name: str) -> Part:
        """Remove a part and return it. Raises KeyError for an unknown name."""
        part = self._parts()[name]
        del self[name]
        return part

    def clear(self) -> None:
        """Remove all parts."""
        for name in list(self._parts()): del self[name]


class ModuleDict(Named[Module]):
    """A dict of modules by name, in the order of insertion. It has no forward: the model that contains it calls the
    modules."""

    def __init__(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]] = ()):
        self.update(modules)


class ParameterDict(OfParameters, Named[Tensor]):
    """A dict of parameters by name, in the order of insertion: self.w = ParameterDict({"a": x}) has the parameter w.a.
    It has no forward: the model that contains it reads the parameters. What becomes a parameter is the same as in a
    ParameterList."""

    def __init__(self, parameters: Mapping[str, Tensor] | Iterable[tuple[str, Tensor]] = ()):
        self.update(parameters)
