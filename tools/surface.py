"""Read the public API from the running package: modules, names, signatures and docstrings. The stubs and the generated
pages of docs/ are written from it."""

import functools
import importlib
import inspect
import os
import re
import sys
import types
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILT = Path(os.environ.get("CYGRAD_BUILT", ROOT)).resolve()      # where the package is; setup.py: a wheel's files
sys.path.insert(0, str(BUILT))

import cygrad  # noqa: E402  the package of this tree, even if another one is installed
from cygrad.core.answers import Answer, NoSuch  # noqa: E402, F401

if Path(cygrad.__file__).resolve().parent.parent != BUILT:
    sys.exit(f"cygrad was imported from {cygrad.__file__}, not from {BUILT}")


OPTIONAL = "cygrad.demo.", "cygrad.learn.", "cygrad.array_api.einops."    # programs, and what needs other libraries


def modules():
    """Every module of the package by name, except for the demo and the exercises, which are programs, and the
    backend of einops. The name cygrad.graph stands for cygrad.nets here too."""
    sources = [*(ROOT / "cygrad").rglob("*.py"), *(ROOT / "cygrad").rglob("*.pyx")]
    names = {".".join(s.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__") for s in sources}
    names = {name for name in names if "._" not in name and not f"{name}.".startswith(OPTIONAL)}
    return {name: module for name in sorted(names) if (module := found(importlib.import_module, name))}


def found(load, *names):
    """What `load` returns; None for a module whose optional libraries the build of a wheel does not have."""
    try: return load(*names)
    except ImportError:
        if BUILT == ROOT: raise


def is_compiled(module):
    return not module.__file__.endswith(".py")


def is_function(value):
    return inspect.isroutine(value) and not inspect.isclass(value)


ATTRIBUTES = (property, functools.cached_property, types.GetSetDescriptorType, types.MemberDescriptorType)


def is_attribute(value):
    return isinstance(value, ATTRIBUTES)


def public(module):
    """The public names of a module: its __all__, or the names without a leading underscore. Modules are included only
    if they are public modules of cygrad."""
    names = getattr(module, "__all__", None) or [n for n in dir(module) if not n.startswith("_")]
    values = {}
    for name in sorted(names):
        value = found(getattr, module, name)
        if value is None or inspect.ismodule(value) and not value.__name__.startswith("cygrad."): continue
        values[name] = value
    return values


def own(module):
    """The public names that a module defines, including constants whose module is unknown, and functions that have
    the path of pickles (core/execute/pickles.py)."""
    return {name: value for name, value in vars(module).items()
            if not name.startswith("_") and not inspect.ismodule(value)
            and getattr(value, "__module__", None) in (module.__name__, None, "cygrad.core.pickling")}


def public_packages():
    """cygrad itself and its public packages."""
    return [cygrad, *{id(value): value for value in public(cygrad).values() if inspect.ismodule(value)}.values()]


def text(value):
    """The docstring without the signature that Cython inserts before it."""
    doc = inspect.getdoc(value) or ""
    name = re.escape(getattr(value, "__name__", "") or "")
    doc = re.sub(rf"\A(\w+\.)*_?{name}\([^\n]*\)( -> [^\n]*)?(\n|\Z)", "", doc) if name else doc
    return inspect.cleandoc(doc)


def first_line(value):
    return text(value).partition("\n")[0]


def first_sentence(value):
    """The first sentence of a docstring, or its first paragraph if that is shorter."""
    paragraph = " ".join(text(value).partition("\n\n")[0].split())
    return re.split(r"(?<=[.:]) (?=[A-Z])", paragraph)[0]


def embedded(cls):
    """The parameters of a compiled class's constructor, as text, from the call in the first line of its docstring; None
    if there is none. Cython writes that line for `__init__`, with C types. For `__cinit__` the source has it."""
    head = re.fullmatch(rf"{cls.__name__}\((.*)\)", (vars(cls).get("__doc__") or "").partition("\n")[0])
    return head and re.sub(r"(\A|, |\*)(?:[\w.]+ )+(?=\w+(?:=|,|\Z))", r"\1", head[1])     # `, double lr` is `, lr`


def constructor(cls):
    """The parameters of a class's constructor without self, as inspect.Parameters. A class that has none of its own has
    that of its base. None if the base is one of Python's, such as RuntimeError, other than object."""
    made = next(c for c in cls.__mro__ if c.__module__ == "builtins" or "__init__" in vars(c)
                or isinstance(vars(c).get("__new__"), staticmethod) or embedded(c) is not None)
    if made.__module__ == "builtins": return [] if made is object else None
    if isinstance(vars(made).get("__new__"), staticmethod):
        return list(inspect.signature(vars(made)["__new__"].__func__).parameters.values())[1:]
    init = vars(made).get("__init__")
    if inspect.isfunction(init) or hasattr(init, "func_code"):
        return list(inspect.signature(init).parameters.values())[1:]
    scope = {}
    given = embedded(made)
    exec(f"def f({'*args, **kwargs' if given is None else given}): pass", {"__builtins__": __builtins__}, scope)
    return list(inspect.signature(scope["f"]).parameters.values())


def arguments(value, method=False):
    """The parameters of a function, a method or a class without self, as inspect.Parameters, and without those that
    exist only to raise a helpful error. None for what users do not call."""
    try:
        parameters = constructor(value) if inspect.isclass(value) else [*inspect.signature(value).parameters.values()]
    except (TypeError, ValueError):                 # a property
        return None
    if parameters is None or [p.name for p in parameters] == ["_", "__"]: return None
    return [p for p in parameters[1 if method else 0:] if p.name not in ("_", "__")
            and not (p.name == "args" and p.kind is p.VAR_POSITIONAL and p.annotation is p.empty)]


def shown(parameters):
    """Parameters as text without types, which would make the headings of pages too long."""
    return str(inspect.Signature([p.replace(annotation=p.empty) for p in parameters]))


def signature(value, method=False):
    """The signature of a function, a method or a class without self, such as (x, axis=None); empty if there is none."""
    found = arguments(value, method)
    return "" if found is None else shown(found)


def write(files, check):
    """Write `files`, a dict of texts by path, where they differ; None deletes the file. With `check`, write nothing,
    print the files that are out of date, and exit with status 1 if there are any."""
    stale = [path for path, new in files.items() if (path.read_text() if path.exists() else None) != new]
    for path in stale:
        if check: print(f"{path.relative_to(ROOT)} is out of date: run `make stubs pages`")
        elif files[path] is None: path.unlink()
        else: path.write_text(files[path])
    if check and stale: sys.exit(1)
