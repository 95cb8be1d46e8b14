"""What a user passes as parameters, and the groups that a solver shows."""

from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from typing import Any, NamedTuple, TypeAlias

from cygrad.core.errors import described, type_name
from cygrad.core.graph.tensor import Tensor
from cygrad.optim.settings import shown

Parameters: TypeAlias = (
    Tensor | Mapping[str, Tensor] | Iterable[Tensor] | Iterable[tuple[str, Tensor]] | Iterable[dict[str, Any]]
)


class SolverState(NamedTuple):
    """The states of a parameter by name, and the number of its updates."""

    pstate: dict[str, Tensor]
    t: int


class ParameterGroup(MutableMapping[str, Any]):
    """A group of a solver's parameters: "params", a list, which cannot be assigned; "lr", "lr_mult", "weight_decay" and
    "wd_mult", which can."""

    def __init__(self, solver: Any, group: Any, names: list[str]):
        self._solver, self._group, self._names = solver, group, names

    def __getitem__(self, key: str) -> Any:
        return self._dict()[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self._solver._write_group(self._group, key, value)

    def __delitem__(self, key: str) -> None:
        raise TypeError("the settings of a group cannot be deleted")

    def __iter__(self) -> Iterator[str]:
        return iter(self._dict())

    def __len__(self) -> int:
        return len(self._dict())

    def _dict(self) -> dict[str, Any]:
        parameters = self._solver.get_parameters()
        return {"params": [parameters[name] for name in self._names if name in parameters],
                **self._solver._read_group(self._group)}

    def __repr__(self) -> str:
        settings = ", ".join(f"{key}={value}" for key, value in self.items() if key != "params")
        return f"ParameterGroup(params=[{', '.join(self._names)}], {settings})"


def solver_text(solver: Any, settings: dict[str, Any]) -> str:
    """The repr of a solver: its rate and settings, and how many parameters and groups it has."""
    groups = solver.param_groups
    entries = {(*solver.settings, "lr")[0]: solver.learning_rate(), **settings}
    decays = [group["weight_decay"] for group in groups]
    if any(decays) and "wd" not in settings: entries["weight_decay"] = decays[0] if len({*decays}) == 1 else decays
    n, parts = len(solver.get_parameters()), len(groups)
    return shown(solver, entries, f"{n} parameter{'s' * (n != 1)}" + (f" in {parts} groups" if parts > 1 else ""))


def is_parameters(v: Any) -> bool:
    """Whether the first argument of a solver is its parameters, and not a learning rate. A module and a method are
    meant as parameters, and named() refuses them."""
    if isinstance(v, Tensor): return v.ndim > 0 or v.requires_grad
    if callable(v): return True
    return hasattr(v, "__iter__") and not isinstance(v, str) and getattr(v, "ndim", 1) > 0


def advice(v: Any) -> str:
    """What to pass instead of a module or a method, for a message."""
    if hasattr(v, "named_parameters"): return "; pass its parameters() or named_parameters()"
    return "; call it, with ()" if callable(v) else ""


def named(who: str, parameters: Any, start: int) -> dict[str, Any]:
    """Parameters by name. Those without a name are named by position, from `start` on. `who` is the method that an
    error names."""
    if isinstance(parameters, Tensor): parameters = [parameters]
    module = hasattr(parameters, "named_parameters")        # (Sequential can be iterated, over modules)
    if module or isinstance(parameters, str) or not hasattr(parameters, "__iter__"):
        raise TypeError(f"{who}: the parameters must be a dict of names and variables, or a list of variables, got "
                        f"{type_name(parameters)}{advice(parameters)}")
    if hasattr(parameters, "items"): return dict(parameters.items())
    made: dict[str, Any] = {}
    for i, v in enumerate(parameters, start):
        name, v = v if isinstance(v, tuple) and len(v) == 2 and isinstance(v[0], str) else (str(i), v)
        if name in made: raise ValueError(f"{who}: there are two parameters {name!r}")
        made[name] = v
    return made


def removed(keys: Any) -> set[str]:
    """The names that remove_parameters() takes, one or an iterable."""
    names = [keys] if isinstance(keys, str | Tensor) or not hasattr(keys, "__iter__") else [*keys]
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"remove_parameters takes names, as get_parameters() has them, got {described(name)}")
    return {*names}


def each_group(who: str, parameters: Any, start: int) -> list[tuple[dict[str, Any], dict[str, Any] | None]]:
    """[(parameters by name, the settings of the group, or None if no groups are given)]"""
    listed = hasattr(parameters, "__iter__") and not hasattr(parameters, "items")
    if hasattr(parameters, "named_parameters"): listed = False      # (a module, which named() refuses)
    if listed and not isinstance(parameters, Tensor | str):
        if not isinstance(parameters, list | tuple): parameters = [*parameters]
        if parameters and all(isinstance(group, dict) for group in parameters):
            made: list[tuple[dict[str, Any], dict[str, Any] | None]] = []
            for group in parameters:
                if "params" not in group:
                    got = ", ".join(map(str, group)) or "an empty dict"
                    raise ValueError(f"{who}: a group needs \"params\", got {got}")
                names = named(who, group["params"], start)
                start += len(names)
                made.append((names, {key: value for key, value in group.items() if key != "params"}))
            return made
    return [(named(who, parameters, start), None)]
