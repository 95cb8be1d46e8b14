"""Containers of modules: Sequential, ModuleList and ModuleDict."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from cygrad.core.errors import described
from cygrad.nn.module import Module


def check_module(caller, module):
    if not isinstance(module, Module): raise TypeError(f"{caller} takes modules, got {described(module)}")


def check_index(caller, index):
    if not hasattr(index, "__index__"): raise TypeError(f"{caller}: the index must be an int, got {described(index)}")


def position(caller, index, n):
    """The position of a module, for an index that may be negative."""
    check_index(caller, index)
    i = index.__index__()
    if not -n <= i < n: raise IndexError(f"{caller}: index {i} is out of range for {n} modules")
    return i % n


class Listed(Module):
    """Modules in an order, under names."""

    _part: Callable[[list[tuple[str, Module]]], Any]        # a container of some of the modules

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return iter(self._modules.values())

    def _name_at(self, index):
        return list(self._modules)[position(type(self).__name__, index, len(self))]

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice): return self._part(list(self._modules.items())[index])
        return self._modules[self._name_at(index)]

    def __setitem__(self, index: int, module: Module) -> None:
        check_module(type(self).__name__, module)
        setattr(self, self._name_at(index), module)

    def __delitem__(self, index: int | slice) -> None:
        names = list(self._modules)
        gone = names[index] if isinstance(index, slice) else [self._name_at(index)]
        self._replace([(name, module) for name, module in self._modules.items() if name not in gone])

    def _replace(self, named):
        """Replace all modules. Names that are numbers become the positions."""
        named = [(str(i) if name.isdecimal() else name, module) for i, (name, module) in enumerate(named)]
        for name in list(self._modules): delattr(self, name)
        for name, module in named: setattr(self, name, module)

    def append(self, module: Module) -> Any:
        """Add a module at the end. Returns the container."""
        check_module(f"{type(self).__name__}.append", module)
        n = len(self)                               # (the numbers in a slice of a Sequential do not begin with 0)
        while str(n) in self._modules: n += 1
        setattr(self, str(n), module)
        return self

    def extend(self, modules: Iterable[Module]) -> Any:
        """Add modules at the end. Returns the container."""
        if not hasattr(modules, "__iter__"):
            raise TypeError(f"{type(self).__name__} takes an iterable of modules, got {described(modules)}")
        modules = list(modules)
        for module in modules: check_module(f"{type(self).__name__}.extend", module)
        for module in modules: self.append(module)
        return self

    def insert(self, index: int, module: Module) -> Any:
        """Put a module before the one at `index`; the names of those behind it change. Returns the container."""
        check_module(f"{type(self).__name__}.insert", module)
        check_index(f"{type(self).__name__}.insert", index)
        named = list(self._modules.items())
        named.insert(index, ("0", module))
        self._replace(named)
        return self

    def pop(self, index: int = -1) -> Module:
        """Remove a module and return it; the names of those behind it change."""
        module = self._modules[self._name_at(index)]
        del self[index]
        return module

    def __iadd__(self, modules: Iterable[Module]) -> Any:
        return self.extend(modules)

    def __add__(self, modules: Iterable[Module]) -> Any:
        """A new container of these modules and `modules`, which are named by position."""
        if not hasattr(modules, "__iter__"): return NotImplemented
        modules = [*self, *modules]
        for module in modules: check_module(type(self).__name__, module)
        return self._part([(str(i), module) for i, module in enumerate(modules)])


class Sequential(Listed):
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


class ModuleList(Listed):
    """A list of modules, which are registered under their positions. It has no forward: the model that contains it
    calls the modules."""

    def __init__(self, modules: Iterable[Module] = ()):
        self.extend(modules)

    def _part(self, named):
        return ModuleList(module for _, module in named)


class ModuleDict(Module):
    """A dict of modules by name, in the order of insertion. It has no forward: the model that contains it calls the
    modules."""

    def __init__(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]] = ()):
        self.update(modules)

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, name: object) -> bool:
        return name in self._modules

    def __getitem__(self, name: str) -> Module:
        return self._modules[name]

    def __setitem__(self, name: str, module: Module) -> None:
        check_module("ModuleDict", module)
        self.register_module(name, module)

    def __delitem__(self, name: str) -> None:
        if name not in self._modules: raise KeyError(name)
        delattr(self, name)

    def keys(self) -> Iterable[str]:
        """The names."""
        return self._modules.keys()

    def values(self) -> Iterable[Module]:
        """The modules."""
        return self._modules.values()

    def items(self) -> Iterable[tuple[str, Module]]:
        """Pairs of name and module."""
        return self._modules.items()

    def update(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]]) -> None:
        """Add or replace modules by name. Raises TypeError or ValueError for a module or a name that cannot be added;
        then nothing has changed."""
        if not isinstance(modules, Mapping | Iterable):
            raise TypeError(f"ModuleDict takes a dict of names and modules, got {described(modules)}")
        found = dict(modules)
        for name, module in found.items():
            check_module("ModuleDict", module)
            self._check_name(name)
        for name, module in found.items(): self.register_module(name, module)

    def pop(self, name: str) -> Module:
        """Remove a module and return it. Raises KeyError for an unknown name."""
        module = self._modules[name]
        del self[name]
        return module

    def clear(self) -> None:
        """Remove all modules."""
        for name in list(self._modules): del self[name]
