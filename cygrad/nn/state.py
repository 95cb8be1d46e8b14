"""What Module does with all its tensors at once: state_dict and its loading, casts, freezing, and the repr. Each finds
everything that can fail before it changes anything."""

from bisect import bisect_right

import numpy as np

from cygrad.autograd.variables import stype_of, take_role
from cygrad.core.dtypes import dtype_number, read_dtype
from cygrad.core.errors import described
from cygrad.core.graph.tensor import Tensor
from cygrad.core.graph.waiting import with_dtype
from cygrad.core.interop.numpy import asarray
from cygrad.core.thread_state import set_recording
from cygrad.nn.call import CallBase, kind_of
from cygrad.nn.waiting import MAKING, Change, is_readable, is_waiting, remember_place

MOST = 10                   # the maximum number of faults of one kind that a message lists
BOTH = "_parameters", "_buffers"


def join(prefix, name):
    """The path of a name below a prefix."""
    return f"{prefix}.{name}" if prefix else name


def places(module, kinds, prefix=""):
    """Yield (module, name, path) of every tensor of these kinds, under each of its names."""
    for path, m in module.named_modules(None, prefix, False):
        for kind in kinds:
            for name in getattr(m, kind):
                if m.__dict__[name] is not None: yield m, name, join(path, name)


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
    with MAKING: return write(module, caller, values, strict)


def write(module, caller, values, strict):
    """load() of tensors, while no other thread gives sizes to layers."""
    change = Change()
    targets, missing, unsized = targets_of(module, values, change)
    names = {}                                      # id of a tensor -> its names
    for name, x in targets.items(): names.setdefault(id(x), []).append(name)
    missing += [same[0] for same in names.values() if not any(name in values for name in same)]
    known = {path for _, _, path in places(module, BOTH)}
    unexpected = [name for name in values if name not in targets and name not in known]
    blank = [name for name in targets if is_waiting(values.get(name))]
    faults = misfits({name: x for name, x in targets.items() if name not in blank}, values, names)
    faults["without values, because a layer waits for its size where the state is from"] = list(map(repr, blank))
    faults["from which a layer cannot take its input size"] = [f"{name!r} of shape {values[name].shape}"
                                                               for name in unsized]
    if strict: faults = {"missing": list(map(repr, missing)), "unexpected": list(map(described, unexpected)), **faults}
    listed = "".join(f"\n  {what}:{in_lines(found)}" for what, found in faults.items() if found)
    if listed: raise ValueError(f"{caller}: the state does not fit, and nothing was loaded.{listed}")
    values = apart({name: value for name, value in values.items() if name in targets}, targets)
    change.apply()
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


def targets_of(module, values, change):
    """(dict of paths and tensors that a state is loaded into, paths without a value that wait for it, paths of values
    from which a layer cannot take its size). `change` becomes that of the layers which take theirs from the state."""
    targets, missing, unsized = {}, [], []
    for path, m in module.named_modules(None, "", False):
        if not m._pending: continue
        own = {name: values[join(path, name)] for name in (*m._parameters, *m._buffers)
               if is_readable(values.get(join(path, name)))}
        size = m._size_in(own)
        if size is not None: change.add(m, size)
    change.create()
    for m, name, path in places(module, BOTH):
        x = change.tensor(m.__dict__[name])
        if not is_saved(m, name): continue
        if not is_waiting(x): targets[path] = x
        elif path not in values: missing.append(path)
        elif not is_waiting(values[path]): unsized.append(path)
    return targets, missing, unsized


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
    with MAKING: replace(module, dtype)


def replace(module, dtype):
    """Put tensors of another dtype in the place of all floating ones, while no other thread gives sizes to layers."""
    new = {}
    found = [(m, name, m.__dict__[name]) for m, name, _ in places(module, BOTH)]
    for _, _, x in found:
        if id(x) in new or x.dtype == dtype or x.dtype.kind != "f": continue
        y = new[id(x)] = with_dtype(x, dtype_number(dtype)) if is_waiting(x) else x.detach().astype(dtype)
        if kind_of(x) in ("variable", "frozen"): take_role(y, x)
    for m, name, x in found:
        if id(x) not in new: continue
        m.__dict__[name] = new[id(x)]
        if is_waiting(x): remember_place(new[id(x)], m, name)
    for m in module.modules():
        if m._pending: m._how = {**m._how, "dtype": dtype}


def selected(module, which, caller):
    """[(tensor, [(module, name) of each of its places])] of the parameters that names and functions select."""
    wanted = {}
    found = list(places(module, ("_parameters",)))
    for w in which or ("",):
        if isinstance(w, CallBase) or not isinstance(w, str) and not callable(w):
            got = described(w)
            if isinstance(w, CallBase): got = f"the module {type(w).__name__}; pass its path, or call its {caller}()"
            raise TypeError(f"{caller} takes names of parameters and modules, and functions of (name, parameter), got "
                            f"{got}")
        chosen = [(m, name) for m, name, path in found
                  if (path == w or w == "" or path.startswith(w + ".") if isinstance(w, str)
                      else w(path, m.__dict__[name]))]
        if w and not chosen:
            known = ", ".join(repr(path) for _, _, path in found[:MOST]) + ", ..." * (len(found) > MOST) or "none"
            fault = f"no parameter is {w!r} or below it" if isinstance(w, str) else "the function selects no parameter"
            raise ValueError(f"{caller}: {fault}; the parameters are {known}")
        for m, name in chosen: wanted[id(m.__dict__[name])] = m.__dict__[name], []
    for m, name, _ in found:
        if id(m.__dict__[name]) in wanted: wanted[id(m.__dict__[name])][1].append((m, name))
    return list(wanted.values())


def freeze(module, which):
    """See Module.freeze."""
    for x, found in selected(module, which, "freeze"):
        if kind_of(x) != "variable": continue
        for m, name in found: m._parameters[name] = x.grad_req, stype_of(x)
        x.drop_grad()


def unfreeze(module, which):
    """See Module.unfreeze."""
    changed, chosen = [], selected(module, which, "unfreeze")
    try:
        for x, found in chosen:
            if kind_of(x) == "variable": continue
            roles = [m._parameters[name] for m, name in found if m._parameters[name] is not None]
            req, stype = roles[0] if roles else ("add", "default")
            if (req, stype) == ("add", "default"): x.requires_grad_()
            else: x.attach_grad(req, stype)
            changed.append(x)
    except BaseException:
        for x in changed: x.drop_grad()
        raise


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
