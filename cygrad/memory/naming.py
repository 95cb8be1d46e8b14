"""memory.why: the variables, attributes and containers that lead to a tensor.

The search begins at the containers of the tensors on a buffer and climbs, one level at a time, from containers to what
refers to them, until it reaches names: those of modules, and the local variables of functions that run or wait."""

import json
import sys
from collections import deque
from types import (
    AsyncGeneratorType, CellType, CoroutineType, FrameType, FunctionType, GeneratorType, MemberDescriptorType,
    TracebackType,
)

from cygrad.core.errors import type_name
from cygrad.core.graph.tensor import Leaf, Tensor
from cygrad.memory.referrers import containers, referrers, shares, variables

HIGHEST = 16                # the maximum number of levels to climb
MOST = 4096                 # the maximum number of objects from which to climb
OPTIMIZED = 1               # the flag of code whose local variables are in its frame, not in a dict
PLAIN = (int, float, bool, type(None))              # types of keys that are shown, beside str
KNOWN = {FunctionType: ["__defaults__", "__kwdefaults__"], TracebackType: ["tb_frame", "tb_next"],
         BaseException: ["__traceback__", "__context__", "__cause__"]}
FRAMES = {GeneratorType: "gi_frame", CoroutineType: "cr_frame", AsyncGeneratorType: "ag_frame"}


def short(code):
    """The name of a function in its module, or in the function around it."""
    return code.co_qualname.rpartition("<locals>.")[2]


def held(frame, value):
    """The names of the local variables of a frame that have a value."""
    return [name for name, found in variables(frame) if found is value]


def in_closure(o, child):
    """Whether `child` has the cells of a function `o`."""
    return type(o) is FunctionType and o.__closure__ is not None and child is o.__closure__


class Roots:
    """Where a way can begin: the names of modules, and the local variables of functions. Frames of the files `without`
    are left out. The names of the caller's module and of the program are shown without that of the module."""

    def __init__(self, without):
        self.spaces = {}            # id of a dict of names -> the text before and after each name
        self.locals = {}            # id of the value of a local variable -> [value, (name, text after the way), ...]
        for name, module in list(sys.modules.items()):
            space = getattr(module, "__dict__", None)
            if space is not None: self.spaces.setdefault(id(space), (f"{name}.", ""))
        frame = sys._getframe()
        while frame.f_code.co_filename in without and frame.f_back is not None: frame = frame.f_back
        for space in (sys.modules["__main__"].__dict__, frame.f_globals): self.spaces[id(space)] = "", ""
        for frame in sys._current_frames().values():
            while frame is not None:
                if frame.f_code.co_filename not in without: self.add(frame)
                frame = frame.f_back

    def add(self, frame):
        self.spaces.setdefault(id(frame.f_globals), (f"{frame.f_globals.get('__name__')}.", ""))
        after = f" in {short(frame.f_code)}"
        if frame.f_code.co_flags & OPTIMIZED:
            for name, value in variables(frame): self.locals.setdefault(id(value), [value]).append((name, after))
        else: self.spaces.setdefault(id(frame.f_locals), ("", after))

    def names(self, chain):
        """[(name, text after the way, number of objects that the name covers)] if a chain of objects, each of which
        refers to the next one, begins with a name; otherwise []."""
        o, child = chain[0], chain[1] if len(chain) > 1 else None
        if id(o) in self.spaces:
            before, after = self.spaces[id(o)]
            return [(f"{before}{name}", after, 2) for name, value in list(o.items()) if value is child]
        if in_closure(o, child):
            return [(name, f" in the closure of {short(o.__code__)}", 4)
                    for name, cell in zip(o.__code__.co_freevars, child, strict=True) if cell is chain[2]]
        frame = getattr(o, FRAMES[type(o)]) if type(o) in FRAMES else None
        if frame is not None: return [(name, f" in {short(frame.f_code)}", 2) for name in held(frame, child)]
        if id(o) in self.locals: return [(*name, 1) for name in self.locals[id(o)][1:]]
        return []

    def final(self, chain):
        """Whether the first name of a chain cannot be gone before the program ends or forgets it."""
        return id(chain[0]) in self.spaces or in_closure(*chain[:2])


class Ways:
    """The ways from names to the tensors on the memory of `t`."""

    def __init__(self, t, objects, without):
        self.roots = Roots(without)
        self.parents = {}           # id of an object -> the objects that refer to it
        self.tensor = t
        self.ends = referrers(objects, t)
        self.climb(objects, [container for container, _ in self.ends])

    def climb(self, objects, level):
        """Find what refers to the containers, level by level, until there is a way from a module to each of them."""
        for _ in range(HIGHEST):
            for o in level: self.parents.setdefault(id(o), [])
            higher = {}
            for o, child in referrers(objects, level):
                self.parents[id(child)].append(o)
                if id(o) not in self.parents and id(o) not in self.roots.spaces: higher[id(o)] = o
            level = list(higher.values())
            if not level or len(self.parents) > MOST or all(self.chains(*end)[1] for end in self.ends): return

    def chains(self, *end):
        """The shortest chain of objects to a container and its tensor that begins with a local variable, or at an
        object to which nothing refers; and the shortest that begins in a module. Each is None if there is none."""
        queue, known, local, top = [list(end)], set(), None, None
        for chain in queue:
            o = chain[0]
            if self.roots.names(chain):
                if self.roots.final(chain): return local, chain
                local = local or chain
            above = [p for p in self.parents.get(id(o), ()) if id(p) not in known]
            passed = isinstance(o, (tuple, dict, CellType))     # what carries the arguments of a call, perhaps
            if not above and not passed: top = top or chain
            known.update(map(id, above))
            queue += [[p, *chain] for p in above]
        return local or top, None

    def texts(self):
        """{the text of a way: the tensor to which it leads}"""
        found = {}
        for value, *names in self.roots.locals.values():
            if shares(value, self.tensor): found |= {name + after: value for name, after in names}
        for end in self.ends:
            for chain in filter(None, self.chains(*end)):
                for name, after, covered in self.roots.names(chain) or [(f"<{type_name(chain[0])}>", "", 1)]:
                    found[name + steps(chain[covered - 1:]) + after] = end[1]
        return found


def steps(chain):
    """The text of a chain after its first object: '.cache["k"][0]'."""
    text, k = "", 0
    while k + 1 < len(chain):
        o, child = chain[k:k + 2]
        names = attributes(o)
        if names is child or isinstance(o, type) and isinstance(child, dict):   # the dict of its attributes
            k += 1
            child = chain[k + 1]
        text += step(o, child, names)
        k += 1
    return text


def attributes(o):
    """The dict of the attributes of an object; None if it has none."""
    try: return o.__dict__
    except Exception: return None                   # (a property of the program may raise anything)


def shown(key):
    """A key of a dict as text: "k" in double quotes, numbers, and the type of anything else."""
    if type(key) is str: return json.dumps(key, ensure_ascii=False)
    return repr(key) if type(key) in PLAIN else f"<{type_name(key)}>"


def step(o, child, names):
    """The text of the step from an object, whose attributes are `names`, to one to which it refers."""
    if isinstance(o, (Tensor, CellType)): return ""                     # (a variable refers to its leaf)
    if isinstance(o, Leaf): return ".grad"
    if isinstance(o, dict):
        for key, value in list(o.items()):
            if value is child: return f"[{shown(key)}]"
    elif isinstance(o, (list, tuple, deque)):
        for k, value in enumerate(o):
            if value is child: return f".{o._fields[k]}" if hasattr(o, "_fields") else f"[{k}]"
    for name, value in list((names or {}).items()):
        if value is child: return f".{name}" if name.isidentifier() else f"[{name}]"    # ("0" of a Sequential)
    for kind in type(o).__mro__:
        fields = [name for name, field in vars(kind).items() if isinstance(field, MemberDescriptorType)]    # __slots__
        for name in fields + KNOWN.get(kind, []):
            try: value = object.__getattribute__(o, name)
            except AttributeError: continue
            if value is child: return f".{name}"
    frame = o if type(o) is FrameType else getattr(o, FRAMES[type(o)]) if type(o) in FRAMES else None
    if frame is not None:
        before = ".f_locals" if frame is o else f".{FRAMES[type(o)]}.f_locals"
        return before + "".join(f'["{name}"]' for name in held(frame, child)[:1])
    return f".<{type_name(child)}>"


def names_of(t, without):
    """The ways to the tensors on the memory of `t`, as text; those to `t` first. Frames of functions in the files
    `without` are not read."""
    found = Ways(t, containers(), (*without, __file__)).texts()
    ordered = sorted(found, key=lambda text: (found[text] is not t, len(text), text))
    return [text if found[text] is t else f"{text}, of shape {found[text].shape}" for text in ordered]
