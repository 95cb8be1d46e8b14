"""The states of a solver as dicts and in files.

A file has the tensors "NAME.STATE" and "NAME.t", the number of updates of the parameter NAME, as int64. No state is
called t and no name of a state has a dot, so the names are unambiguous. The metadata has the class of the solver, and
as JSON the other entries of state_dict(): its settings, rates and groups. Parameters are matched by name, in any order.

What can be assigned to a solver later, rates and decays, is restored. The settings of the constructor cannot be
assigned, so they must be equal: with other betas the next update would be another one."""

import json
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from cygrad.core.errors import described
from cygrad.core.graph.tensor import Tensor
from cygrad.core.interop.numpy import tensor
from cygrad.optim.parameters import NUMBERS, check_names

if TYPE_CHECKING:
    from cygrad.optim.solver import Solver

FORMAT = "cygrad.optim"
KEYS = ("solver", "settings", "lr", "base", "param_groups")     # the keys of a state_dict(), besides "state"


# ---- PyTorch's dicts -------------------------------------------------------------------------------------------------

def state_dict(solver: "Solver") -> dict[str, Any]:
    """As Solver.state_dict."""
    state = {name: {**pstate, "step": t} for name, (pstate, t) in solver.get_states().items()}
    return {"state": state, **saved(solver)}


def saved(solver: "Solver") -> dict[str, Any]:
    """The entries of state_dict() besides the states."""
    names = {id(v): name for name, v in solver.get_parameters().items()}
    entries = solver._saved()
    groups = [{"params": [names[id(v)] for v in group["params"]], **numbers}
              for group, numbers in zip(solver.param_groups, entries.pop("groups"), strict=True)]
    return {"solver": type(solver).__name__, **entries, "param_groups": groups}


def load_state_dict(solver: "Solver", given: Any) -> None:
    """As Solver.load_state_dict."""
    keys = ("state", *KEYS)
    if not isinstance(given, Mapping) or not {*keys} <= given.keys():
        raise ValueError(f"load_state_dict takes what state_dict() returned, a dict with {', '.join(keys)}; got "
                         f"{described([*map(str, given)]) if isinstance(given, Mapping) else described(given)}")
    checked = check("load_state_dict", "dict", solver, given)
    if not isinstance(given["state"], Mapping):
        raise TypeError(f"load_state_dict: \"state\" must be a dict of states by name of the parameter, got "
                        f"{described(given['state'])}")
    states = {}
    for name, entry in given["state"].items():
        if not isinstance(entry, Mapping):
            raise TypeError(f"load_state_dict: the state of {name!r} must be a dict of its states and \"step\", got "
                            f"{described(entry)}")
        states[name] = {key: v for key, v in entry.items() if key != "step"}, entry.get("step")
    if states or solver.get_parameters(): solver.set_states(states)
    solver._assign(*checked)


def check(what: str, source: str, solver: "Solver", given: Mapping[str, Any]) -> tuple[Any, ...]:
    """The entries of saved() in a dict or file, checked, as the arguments of Solver._assign(). Raises ValueError."""
    own, kind = saved(solver), type(solver).__name__
    if given["solver"] != kind:
        raise ValueError(f"{what}: the {source} has the states of {said(given['solver'])}, not of {kind}")
    settings = check_settings(what, source, own["settings"], given["settings"])
    groups = given["param_groups"]
    if not isinstance(groups, list) or not all(map(is_group, groups)):
        raise ValueError(f"{what}: the groups of the {source} must be a list of dicts with the names of parameters, "
                         f"got {described(groups)}")
    groups = matched(what, source, own["param_groups"], groups)
    lr = checked(f"{what}: lr", given["lr"])
    base, *numbers = ([checked(f"{what}: {key} of {place}", entry.get(key)) for key in NUMBERS] for place, entry in [
        ("base", given["base"] if isinstance(given["base"], Mapping) else {}),
        *((f"param_groups[{k}]", group) for k, group in enumerate(groups))])
    return lr, base, numbers, settings


def matched(what: str, source: str, own: list[dict[str, Any]], given: list[Mapping[str, Any]]) -> list[Any]:
    """The groups of a dict or file in the order of the solver's groups, which have the same names in any order."""
    names = [name for group in given for name in group["params"]]
    check_names(f"{what}: the names in the {source}", [name for group in own for name in group["params"]], names)
    if len({*names}) < len(names):
        raise ValueError(f"{what}: {described(next(name for name in names if names.count(name) > 1))} is in the groups "
                         f"of the {source} twice")
    left, found = [*given], []
    for k, group in enumerate(own):
        mine = {*group["params"]}
        at = next((i for i, g in enumerate(left) if mine & {*g["params"]} or not mine and not g["params"]), None)
        other = {"params": ()} if at is None else left.pop(at)
        theirs = {*other["params"]}
        if mine != theirs:
            said = [f"{label} {', '.join(map(repr, sorted(some)))}" for label, some in (
                ("without", mine - theirs), ("with", theirs - mine)) if some]
            raise ValueError(f"{what}: the group of the {source} that is param_groups[{k}] of the solver must have the "
                             f"same parameters, but is {' and '.join(said)}; create the solver with the groups that it "
                             f"had when it was saved")
        found.append(other)
    if left:
        raise ValueError(f"{what}: the {source} has {len(given)} groups, and the solver {len(own)}; create the solver "
                         f"with the groups that it had when it was saved")
    return found


def is_group(group: Any) -> bool:
    names = group.get("params") if isinstance(group, Mapping) else None
    return isinstance(names, list) and all(isinstance(name, str) for name in names)


def check_settings(what: str, source: str, own: dict[str, Any], given: Any) -> dict[str, Any]:
    """The settings of a solver with the saved wd, which can be assigned, as a group's weight_decay."""
    if not isinstance(given, Mapping) or given.keys() != own.keys():
        got = [*map(str, given)] if isinstance(given, Mapping) else given
        raise ValueError(f"{what}: the settings of the {source} must be {', '.join(own) or 'empty'}, got "
                         f"{described(got)}")
    other = {key: v for key, v in own.items() if key != "wd" and not same(given[key], v)}
    if other:
        found = ", ".join(f"{key} is {said(given[key])} in the {source} and {v} in the solver"
                          for key, v in other.items())
        wanted = ", ".join(f"{key}={said(given[key])}" for key in other)
        raise ValueError(f"{what}: other settings, with which the run would not continue as it was: {found}; create "
                         f"the solver with {wanted}")
    return own if "wd" not in own else own | {"wd": checked(f"{what}: wd", given["wd"])}


def same(v: Any, own: float | bool) -> bool:
    return isinstance(v, int | float) and isinstance(v, bool) == isinstance(own, bool) and v == own


def said(v: Any) -> str:
    return str(v) if isinstance(v, str) and v.isidentifier() and len(v) < 100 else described(v)


def checked(name: str, v: Any) -> float:
    """A number of at least 0 as a float."""
    if isinstance(v, bool) or not isinstance(v, int | float) or not 0 <= v <= sys.float_info.max:
        raise ValueError(f"{name} must be a number of at least 0, and finite, got {described(v)}")
    return float(v)


# ---- files -----------------------------------------------------------------------------------------------------------

def save(solver: "Solver", path: Any) -> None:
    """As Solver.save_states."""
    from cygrad.io import saving

    tensors: dict[str, Tensor] = {}
    for name, (pstate, t) in solver.get_states().items():
        tensors |= {f"{name}.{key}": v for key, v in pstate.items()}
        tensors[f"{name}.t"] = tensor(np.int64(t))
    metadata = {key: v if isinstance(v, str) else json.dumps(v) for key, v in saved(solver).items()}
    saving.write(path, tensors, {"format": FORMAT, **metadata}, "save_states")


def load(solver: "Solver", path: Any) -> None:
    """As Solver.load_states."""
    from cygrad.io import saving

    metadata, tensors = saving.read_metadata(path, "load_states"), saving.read(path, "load_states")
    if metadata.get("format") != FORMAT:
        raise ValueError(f"load_states: {described(str(path))} is not a file of save_states()")
    given: dict[str, Any] = {"solver": metadata.get("solver")}
    for key in KEYS[1:]:
        try: given[key] = json.loads(metadata.get(key, ""))
        except (ValueError, RecursionError):
            given[key] = None                       # (which no check takes)
    new = check("load_states", "file", solver, given)
    own = solver.get_states()
    check_names("the tensors of the file", {f"{name}.{key}" for name, (pstate, _) in own.items()
                                            for key in (*pstate, "t")}, tensors)
    states = {}
    for name, (pstate, _) in own.items():
        t = tensors[f"{name}.t"]
        if t.shape != () or t.dtype != np.int64:
            raise ValueError(f"load_states: '{name}.t' must be one int64, got {t.dtype} {t.shape}")
        states[name] = {key: tensors[f"{name}.{key}"] for key in pstate}, t.item()
    if states: solver.set_states(states)
    solver._assign(*new)
