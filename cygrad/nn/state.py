"""What Module does with all its tensors at once: state_dict and its loading, casts, freezing, and the repr. Each finds
everything that can fail before it changes anything."""

from bisect import bisect_right

import numpy as np

from cygrad.autograd.variables import stype_of, take_role
from cygrad.core.dtypes import read_dtype
from cygrad.core.errors import described
from cygrad.core.graph.tensor import Tensor
from cygrad.core.interop.numpy import asarray
from cygrad.core.thread_state import set_recording
from cygrad.nn.call import kind_of
from cygrad.nn.module import Module, join
from cygrad.nn.waiting import make, raise_pending

MOST = 10                   # the maximum number of faults of one kind that a message lists
BOTH = "_parameters", "_buffers"


def places(module, kinds, prefix="", waiting=False):
    """Yield (module, name, path) of every tensor of these kinds, under each of its names; with `waiting` also those
    that do not exist yet."""
    for path, m in module.named_modules(None, prefix, False):
        if m._pending and not waiting: raise_pending(path, m)
        for kind in kinds:
            for name in getattr(m, kind):
                if m._pending or m.__dict__[name] is not None: yield m, name, join(path, name)


def is_saved(module, name):
    """Whether a parameter or buffer is part of the state_dict."""
    return module._buffers.get(name, True)


def state_of(module, prefix):
    """See Module.state_dict."""
    shared, state = {}, {}
    for m, name, path in places(module, BOTH, prefix):
        if not is_saved(m, name): continue
        x = m.__dict__[name]
        if id(x) not in shared: shared[id(x)] = x.detach()
        state[path] = shared[id(x)]
    return state


def children_first(module, seen):
    """Yield all modules below `module`, children first, and it, each once."""
    if id(module) in seen: return
    seen.add(id(module))
    for child in module.children(): yield from children_first(child, seen)
    yield module


# ---- load_state_dict -------------------------------------------------------------------------------------------------

def load(module, state, strict):
    """See Module.load_state_dict. Returns (missing, unexpected)."""
    caller = f"load_state_dict of {type(module).__name__}"
    if not hasattr(state, "items"):
        raise TypeError(f"{caller} takes a dict of names and arrays, got {described(state)}")
    values = {name: value_of(caller, name, value) for name, value in state.items()}
    targets, missing, made, unsized = targets_of(module, values)
    names = {}                                      # id of a tensor -> its names
    for name, x in targets.items(): names.setdefault(id(x), []).append(name)
    missing += [same[0] for same in names.values() if not any(name in values for name in same)]
    unexpected = [name for name in values if name not in targets and name not in unsized]
    faults = misfits(targets, values, names)
    faults["from which a layer cannot take its input size"] = [f"{name!r} of shape {values[name].shape}"
                                                               for name in unsized]
    if strict: faults = {"missing": list(map(repr, missing)), "unexpected": list(map(described, unexpected)), **faults}
    listed = "".join(f"\n  {what}:{in_lines(found)}" for what, found in faults.items() if found)
    if listed: raise ValueError(f"{caller}: the state does not fit, and nothing was loaded.{listed}")
    values = apart({name: value for name, value in values.items() if name in targets}, targets)
    for m, tensors, size in made: m._take(tensors, size)
    recording = set_recording(False)                # (while recording, variables cannot be written)
    try:
        for name, value in values.items(): targets[name].detach().copy_(value)
    finally:
        set_recording(recording)
    return missing, unexpected


def in_lines(found):
    """Faults as text: names in one line, sentences one a line; the first ones, and the number of the others."""
    more = f"and {len(found) - MOST} more"
    if len(found) == 1 or " " not in found[0]: return " " + ", ".join(found[:MOST]) + f" {more}" * (len(found) > MOST)
    return "".join("\n    " + fault for fault in [*found[:MOST], *[more] * (len(found) > MOST)])


def value_of(caller, name, value):
    """A value of a state as a tensor."""
    if isinstance(value, Tensor): return value.detach()
    if not hasattr(value, "shape") or not hasattr(value, "dtype"):
        raise TypeError(f"{caller}: the value of {described(name)} must be a tensor or an array, got "
                        f"{described(value)}")
    try: return asarray(value.detach() if hasattr(value, "detach") else value)       # (PyTorch's has)
    except (TypeError, ValueError, BufferError) as e:
        raise type(e)(f"{caller}: the value of {described(name)} cannot be read: {e}") from None


def targets_of(module, values):
    """(dict of paths and tensors that a state is loaded into, paths without a tensor, [(layer, its new parameters,
    size)] of layers that take their sizes from the state, paths of values that do not have the size)."""
    targets, missing, made, unsized = {}, [], [], []
    for path, m in module.named_modules(None, "", False):
        tensors = m.__dict__
        if m._pending:
            own = {name: values[join(path, name)] for name in (*m._parameters, *m._buffers)
                   if join(path, name) in values}
            size = m._size_in(own)
            if size is None:
                lacking = [name for name in (*m._parameters, *m._buffers) if tensors[name] is None]
                missing += [join(path, name) for name in lacking if name not in own]
                unsized += [join(path, name) for name in lacking if name in own]
            else:
                found = [tensors for other, tensors, _ in made if other is m]   # (a layer with two paths)
                made += [] if found else [(m, make(m, size), size)]
                tensors = {**tensors, **(found[0] if found else made[-1][1])}
        for name in (*m._parameters, *m._buffers):
            if tensors[name] is not None and is_saved(m, name): targets[join(path, name)] = tensors[name]
    return targets, missing, made, unsized


def misfits(targets, values, names):
    """The faults of values, as a dict of headings and lists."""
    shapes, dtypes, differing, readonly = [], [], [], []
    for name, x in targets.items():
        value = values.get(name)
        if value is None: continue
        if value.shape != x.shape: shapes.append(f"{name!r} is {x.shape} in the module and {value.shape} in the state")
        elif value.dtype != x.dtype:
            dtypes.append(f"{name!r} is {x.dtype} in the module and {value.dtype} in the state")
        if not x.detach().numpy().flags.writeable: readonly.append(repr(name))
    for same in names.values():
        given = [name for name in same if name in values]
        if any(not np.array_equal(values[given[0]].numpy(), values[name].numpy(), equal_nan=True)
               for name in given[1:] if values[name].shape == values[given[0]].shape):
            differing.append(" and ".join(map(repr, given)))
    return {"another shape": shapes, "another dtype (convert the module or the state with astype)": dtypes,
            "different values of one tied parameter": differing, "read-only memory in the module": readonly}


def apart(values, targets):
    """The values, of which those that begin in the memory of another target are copied, because it may be written
    first."""
    spans = sorted((*span(x), id(x)) for x in {id(x): x for x in targets.values()}.values())
    starts, found = [first for first, _, _ in spans], {}
    for name, value in values.items():
        begin = span(value)[0]
        at = bisect_right(starts, begin) - 1
        inside = at >= 0 and begin < spans[at][1] and spans[at][2] != id(targets[name])
        found[name] = value.copy() if inside else value
    return found


def span(x):
    """The first address of a contiguous tensor, and the one after its end."""
    a = x.detach().numpy()
    first = a.__array_interface__["data"][0]
    return first, first + a.nbytes


# ---- casts and freezing ----------------------------------------------------------------------------------------------

def cast(module, dtype):
    """See Module.astype."""
    dtype = np.dtype(read_dtype(dtype))
    if dtype.kind != "f":
        raise TypeError(f"astype: a module can be float32 or float64, got {dtype}")
    new = {}
    found = [(m, name, m.__dict__[name]) for m, name, _ in places(module, BOTH, waiting=True)]
    for _, _, x in found:
        if x is None or id(x) in new or x.dtype == dtype or x.dtype.kind != "f": continue
        y = new[id(x)] = x.detach().astype(dtype)
        if kind_of(x) in ("variable", "frozen"): take_role(y, x)
    for m, name, x in found:
        if id(x) in new: m.__dict__[name] = new[id(x)]
    for m in module.modules():
        if m._pending: m._how = {**m._how, "dtype": dtype}


def selected(module, which, caller):
    """[(tensor, or None for one that waits for its size; [(module, name) of each of its places])] of the parameters
    that names and functions select."""
    wanted = {}
    found = list(places(module, ("_parameters",), waiting=True))
    for w in which or ("",):
        if isinstance(w, Module) or not isinstance(w, str) and not callable(w):
            got = described(w)
            if isinstance(w, Module): got = f"the module {type(w).__name__}; pass its path, or call its {caller}()"
            raise TypeError(f"{caller} takes names of parameters and modules, and functions of (name, parameter), got "
                            f"{got}")
        if not isinstance(w, str):
            for m, name, path in found:             # (a function needs the parameter)
                if m.__dict__[name] is None: raise_pending(path.rpartition(".")[0], m)
        chosen = [(m, name) for m, name, path in found
                  if (path == w or w == "" or path.startswith(w + ".") if isinstance(w, str)
                      else w(path, m.__dict__[name]))]
        if w and not chosen:
            known = ", ".join(repr(path) for _, _, path in found[:MOST]) + ", ..." * (len(found) > MOST) or "none"
            fault = f"no parameter is {w!r} or below it" if isinstance(w, str) else "the function selects no parameter"
            raise ValueError(f"{caller}: {fault}; the parameters are {known}")
        for m, name in chosen: wanted[identity(m, name)] = m.__dict__[name], []
    for m, name, _ in found:
        if identity(m, name) in wanted: wanted[identity(m, name)][1].append((m, name))
    return list(wanted.values())


def identity(module, name):
    """A key that the places of a tied parameter share."""
    x = module.__dict__[name]
    return (id(module), name) if x is None else id(x)


def freeze(module, which):
    """See Module.freeze."""
    for x, found in selected(module, which, "freeze"):
        if x is not None and kind_of(x) != "variable": continue
        for m, name in found: m._parameters[name] = ("add", "default") if x is None else (x.grad_req, stype_of(x))
        if x is not None: x.drop_grad()


def unfreeze(module, which):
    """See Module.unfreeze."""
    changed, chosen = [], selected(module, which, "unfreeze")
    try:
        for x, found in chosen:
            if x is None or kind_of(x) == "variable": continue
            roles = [m._parameters[name] for m, name in found if m._parameters[name] is not None]
            req, stype = roles[0] if roles else ("add", "default")
            if (req, stype) == ("add", "default"): x.requires_grad_()
            else: x.attach_grad(req, stype)
            changed.append(x)
    except BaseException:
        for x in changed: x.drop_grad()
        raise
    for x, found in chosen:
        if x is None: found[0][0]._parameters[found[0][1]] = None


# ---- repr ------------------------------------------------------------------------------------------------------------

def text(module):
    """See Module.__repr__."""
    extra = module.extra_repr()
    lines = [line for name, child in module._modules.items() for line in f"({name}): {child!r}".split("\n")]
    if lines and extra: lines, extra = [extra, *lines], ""
    waiting = any(m._pending for m in module.modules())
    found = [] if waiting else list(module.parameters())
    size = ""
    if waiting: size = "  # waits for its input size"
    elif found: size = f"  # {sum(x.size for x in found):,} parameters, {sum(x.nbytes for x in found):,} bytes"
    if not lines: return f"{type(module).__name__}({extra}){size}"
    return "\n".join([f"{type(module).__name__}({extra}{size}", *("  " + line for line in lines), ")"])
