"""What cygrad shows, read from the running package: modules, the names in them, signatures and docstrings. The stubs
and the generated pages of docs/ are written from this."""

import functools
import importlib
import inspect
import re
import sys
import types
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import cygrad  # noqa: E402  the tree's own package, whatever else is installed
from cygrad.core.answers import Answer  # noqa: E402, F401

if Path(cygrad.__file__).resolve().parent.parent != ROOT:
    sys.exit(f"cygrad was found in {cygrad.__file__}, not in {ROOT}")



def modules():
    """Every module of the package that can be imported without starting something, by name. The demo is a program: it
    has no names for others, and needs packages that cygrad does not."""
    sources = [*(ROOT / "cygrad").rglob("*.py"), *(ROOT / "cygrad").rglob("*.pyx")]
    names = {".".join(s.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__") for s in sources}
    names = {name for name in names if "._" not in name and not f"{name}.".startswith("cygrad.demo.")}
    return {name: importlib.import_module(name) for name in sorted(names)}


def is_compiled(module):
    return not module.__file__.endswith(".py")


def is_function(value):
    return inspect.isroutine(value) and not inspect.isclass(value)


ATTRIBUTES = (property, functools.cached_property, types.GetSetDescriptorType, types.MemberDescriptorType)
# Imported, but not to be used.
NOT_SHOWN = {f"cygrad.{name}" for name in ("bundles", "config", "core", "demo", "kernels")}


def is_attribute(value):
    return isinstance(value, ATTRIBUTES)


def public(module):
    """The names that a module offers: its __all__ or what does not start with an underscore; of modules, those of ours
    that are meant for users."""
    names = getattr(module, "__all__", None) or [n for n in vars(module) if not n.startswith("_")]
    found = {}
    for name in sorted(names):
        value = getattr(module, name)
        ours = getattr(value, "__name__", "").startswith("cygrad.") and value.__name__ not in NOT_SHOWN
        if inspect.ismodule(value) and not ours: continue
        found[name] = value
    return found


def own(module):
    """The public names that are made in a module, with those constants that say nothing of where they come from."""
    return {name: value for name, value in vars(module).items()
            if not name.startswith("_") and not inspect.ismodule(value)
            and getattr(value, "__module__", None) in (module.__name__, None)}


def public_packages():
    """cygrad itself and the packages that it shows."""
    return [cygrad, *(value for value in public(cygrad).values() if inspect.ismodule(value))]


def text(value):
    """The docstring without the signature that Cython puts before it."""
    doc = inspect.getdoc(value) or ""
    name = re.escape(getattr(value, "__name__", "") or "")
    doc = re.sub(rf"\A(\w+\.)*_?{name}\([^\n]*\)( -> [^\n]*)?(\n|\Z)", "", doc) if name else doc
    return inspect.cleandoc(doc)


def first_line(value):
    return text(value).partition("\n")[0]


def first_sentence(value):
    """The first sentence of a docstring, or its first paragraph where that comes sooner."""
    paragraph = " ".join(text(value).partition("\n\n")[0].split())
    return re.split(r"(?<=[.:]) (?=[A-Z])", paragraph)[0]


def constructor(cls):
    """The parameters of a class, self left out, as inspect.Parameters; None where it has no constructor of its own."""
    if isinstance(vars(cls).get("__new__"), staticmethod):
        return list(inspect.signature(vars(cls)["__new__"].__func__).parameters.values())[1:]
    if "__init__" not in vars(cls): return None
    if inspect.isfunction(vars(cls)["__init__"]) or hasattr(vars(cls)["__init__"], "func_code"):
        return list(inspect.signature(vars(cls)["__init__"]).parameters.values())[1:]
    # A compiled class: Cython wrote the signature into the docstring, with C's types.
    head = (cls.__doc__ or "").partition("\n")[0]
    match = re.fullmatch(rf"{cls.__name__}\((.*)\)", head)
    if match is None:
        return [inspect.Parameter("args", inspect.Parameter.VAR_POSITIONAL),
                inspect.Parameter("kwargs", inspect.Parameter.VAR_KEYWORD)]
    cleaned = re.sub(r"(\A|, |\*)(?:[\w.]+ )+(?=\w+(?:=|,|\Z))", r"\1", match[1])      # `, double lr` is `, lr`
    scope = {}
    exec(f"def f({cleaned}): pass", {"__builtins__": __builtins__}, scope)
    return list(inspect.signature(scope["f"]).parameters.values())


def signature(value, method=False):
    """(x, axis=None) of a function, a method or a class, without self; empty for what has none."""
    try:
        parameters = constructor(value) if inspect.isclass(value) else [*inspect.signature(value).parameters.values()]
    except (TypeError, ValueError):                 # a property
        return ""
    if parameters is None or [p.name for p in parameters] == ["_", "__"]: return ""     # not to be called by users
    plain = [p.replace(annotation=p.empty) for p in parameters]     # types would make the headings of pages too long
    return str(inspect.Signature(plain[1:] if method else plain))


def write(files, check):
    """Write `files`, texts by path (None: there should be no such file); with `check` only say which of them are not as
    they would be written, and end the process with status 1 if there are any."""
    stale = [path for path, new in files.items() if (path.read_text() if path.exists() else None) != new]
    for path in stale:
        print(f"{path.relative_to(ROOT)}" + (" is out of date: run `make stubs pages`" if check else ""))
        if check: continue
        if files[path] is None: path.unlink()
        else: path.write_text(files[path])
    if check and stale: sys.exit(1)
