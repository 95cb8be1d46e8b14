"""The states of a solver as dicts and in files.

A file has the tensors "NAME.STATE" and "NAME.t", the number of updates of the parameter NAME, as int64. No state is
called t and no name of a state has a dot, so the names are unambiguous. The metadata has the class of the solver and
its learning rates."""

import json
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from cygrad.core.errors import described
from cygrad.core.graph.tensor import Tensor
from cygrad.core.interop.numpy import tensor
from cygrad.optim.parameters import check_names, not_negative

if TYPE_CHECKING:
    from cygrad.optim.solver import Solver

FORMAT = "cygrad.optim"


# ---- PyTorch's dicts -------------------------------------------------------------------------------------------------

def state_dict(solver: "Solver") -> dict[str, Any]:
    """As Solver.state_dict."""
    names = {id(v): name for name, v in solver.get_parameters().items()}
    groups = [{**group, "params": [names[id(v)] for v in group["params"]]} for group in solver.param_groups]
    state = {name: {**pstate, "step": t} for name, (pstate, t) in solver.get_states().items()}
    return {"state": state, "param_groups": groups, "rates": [solver.learning_rate(), *solver._rates()]}


def load_state_dict(solver: "Solver", given: Any) -> None:
    """As Solver.load_state_dict."""
    if not isinstance(given, Mapping) or not {"state", "param_groups", "rates"} <= given.keys():
        raise ValueError("load_state_dict takes what state_dict() returned, a dict with \"state\", \"param_groups\" "
                         "and \"rates\"")
    now = state_dict(solver)
    if [group["params"] for group in now["param_groups"]] != [group["params"] for group in given["param_groups"]]:
        raise ValueError("load_state_dict: the groups have other parameters than those of the solver")
    states, settings = {}, []
    for name, entry in given["state"].items():
        states[name] = ({key: v for key, v in entry.items() if key != "step"}, entry.get("step")) if isinstance(
            entry, Mapping) else entry
    for group, saved in zip(solver.param_groups, given["param_groups"], strict=True):
        settings += [(group, key, not_negative(key, saved.get(key))) for key in ("weight_decay", "wd_mult")]
    lr, *rates = check_rates(given["rates"], now["rates"])
    if states or now["state"]: solver.set_states(states)
    for group, key, value in settings: group[key] = value
    solver._set_rates(lr, rates)


def check_rates(given: Any, own: list[Any]) -> list[Any]:
    """Rates of a file or dict, checked for their form: one number, then three for each group."""
    def number(v: Any) -> bool:
        return isinstance(v, int | float) and not isinstance(v, bool) and 0 <= v <= sys.float_info.max

    n = len(own) - 1
    fits = isinstance(given, list) and len(given) == len(own) and number(given[0]) and all(
        isinstance(group, list) and len(group) == 3 and all(map(number, group)) for group in given[1:])
    if not fits: raise ValueError(f"the learning rates must be those of a solver with {n} group{'s' if n != 1 else ''}")
    return given


# ---- files -----------------------------------------------------------------------------------------------------------

def save(solver: "Solver", path: Any) -> None:
    """As Solver.save_states."""
    from cygrad import io

    tensors: dict[str, Tensor] = {}
    for name, (pstate, t) in solver.get_states().items():
        tensors |= {f"{name}.{key}": v for key, v in pstate.items()}
        tensors[f"{name}.t"] = tensor(np.int64(t))
    rates = json.dumps([solver.learning_rate(), *solver._rates()])
    io.save(path, tensors, {"format": FORMAT, "solver": type(solver).__name__, "rates": rates})


def load(solver: "Solver", path: Any) -> None:
    """As Solver.load_states."""
    from cygrad import io

    metadata, tensors = io.metadata(path), io.load(path)
    if metadata.get("format") != FORMAT:
        raise ValueError(f"load_states: {described(str(path))} is not a file of save_states()")
    kind = type(solver).__name__
    if metadata.get("solver") != kind:
        raise ValueError(f"load_states: the file has the states of {metadata.get('solver')}, not of {kind}")
    own = solver.get_states()
    check_names("the tensors of the file", {f"{name}.{key}" for name, (pstate, _) in own.items()
                                            for key in (*pstate, "t")}, tensors)
    states = {}
    for name, (pstate, _) in own.items():
        t = tensors[f"{name}.t"]
        if t.shape != () or t.dtype != np.int64:
            raise ValueError(f"load_states: '{name}.t' must be one int64, got {t.dtype} {t.shape}")
        states[name] = {key: tensors[f"{name}.{key}"] for key in pstate}, t.item()
    try: rates = json.loads(metadata.get("rates", ""))
    except (ValueError, RecursionError): rates = None
    lr, *rates = check_rates(rates, [0, *solver._rates()])
    solver.set_states(states)
    solver._set_rates(lr, rates)
