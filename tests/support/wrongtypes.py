"""Call all compiled code with wrong arguments: python wrongtypes.py

Every function, method, property, slot and constructor of every compiled module, public or internal, is called with
wrong types, including None: as self, as each argument, and in the wrong number. A call must return or raise. A crash
ends the process, which tests/properties/test_wrongtypes.py detects. The last line has the number of calls.

Objects in a state that cygrad itself never makes are tried too: of every class, one whose __init__ has not run, one
made without arguments, and one of a subclass. Their attributes, methods without arguments and protocols are used, and
their copies and pickles."""

import copy
import faulthandler
import gc
import importlib
import inspect
import operator
import pickle
import pkgutil
import sys
import warnings
import weakref

import numpy as np

import cygrad as cg
from cygrad.comm import launch


class Odd:
    """An object without any protocol."""


def values():
    x = cg.ones((2, 2)).attach_grad()
    with cg.record():
        y = x * x
    freed = cg.zeros(2)
    freed.free()
    return [3, -1, 2**70, 1.5, "text", b"bytes", (), (1, 2), [], [None], {}, None, Odd(), object, print, cg.zeros(3),
            cg.zeros(2, dtype="int64"), x, y, y.grad_fn, y.grad_fn.next_functions[0][0], freed, float("nan")]


# Calls that, by design, end the process, wait, change it permanently, or take gigabytes of memory.
LEFT_OUT = {
    "cygrad.kernels.threads.set_num_threads", "cygrad.core.graph.running._after_fork",
    "cygrad.core.graph.release._after_fork",
    "cygrad.core.late_bound.bind", "cygrad.core.late_bound.bind_methods",
    "cygrad.core.store.buffer.set_limit", "cygrad.core.store.buffer.set_failure",
    "cygrad.core.store.buffer.set_listener",
    "cygrad.core.dtypes.set_default_dtype", "cygrad.autograd.modes.set_recording",
    "cygrad.core.thread_state.set_recording",
    "cygrad.core.thread_state.set_training", "cygrad.core.source.observe",
    "cygrad.core.backward.deposit.open_collected",
    "cygrad.kernels.linalg.blas._before_fork", "cygrad.kernels.linalg.blas._after_fork_in_parent",
    "cygrad.kernels.linalg.blas._after_fork_in_child", "cygrad.kernels.threads._after_fork",
}
SLOTS = ["__add__", "__radd__", "__sub__", "__mul__", "__matmul__", "__truediv__", "__pow__", "__and__", "__or__",
         "__xor__",
         "__iadd__", "__imul__", "__eq__", "__lt__", "__getitem__", "__setitem__", "__contains__", "__neg__", "__abs__",
         "__bool__", "__float__", "__int__", "__index__", "__len__", "__iter__", "__hash__", "__repr__", "__call__",
         "__copy__", "__deepcopy__", "__reduce_ex__", "__enter__", "__exit__", "__next__", "__array__", "__dlpack__",
         "__dlpack_device__", "__format__", "__bytes__", "__dir__", "__sizeof__", "__reduce__"]


def compiled_modules():
    for found in pkgutil.walk_packages(cg.__path__, "cygrad."):
        if found.name.endswith("__main__") or ".demo" in found.name: continue
        yield importlib.import_module(found.name)
    for module in list(sys.modules.values()):
        if getattr(module, "__name__", "").startswith("cygrad."): yield module


def callables():
    """(name, callable, self or None) of everything."""
    seen = set()
    for module in compiled_modules():
        for name, f in sorted(vars(module).items()):
            full = f"{module.__name__}.{name}"
            own = f"{getattr(f, '__module__', None)}.{getattr(f, '__name__', None)}"    # (it may be imported here)
            if id(f) in seen or full in LEFT_OUT or own in LEFT_OUT or name.startswith("__"): continue
            if inspect.isclass(f):
                if not (f.__module__ or "").startswith("cygrad"): continue
                seen.add(id(f))
                yield full, f
                for attribute, member in sorted(vars(f).items()):
                    if attribute in ("__class__", "__doc__", "__module__", "__dict__", "__weakref__"): continue
                    if inspect.isgetsetdescriptor(member) or inspect.ismemberdescriptor(member):
                        yield f"{full}.{attribute}", member.__get__
                        yield f"{full}.{attribute}", member.__set__
                    elif isinstance(member, property):
                        for g in (member.fget, member.fset, member.fdel):
                            if g is not None: yield f"{full}.{attribute}", g
                    elif callable(member) or isinstance(member, (staticmethod, classmethod)):
                        yield f"{full}.{attribute}", getattr(f, attribute)
                for slot in SLOTS:
                    if hasattr(f, slot): yield f"{full}.{slot}", getattr(f, slot)
                made = bare(f)
                if made is not None:
                    for attribute in sorted(dir(f)):
                        if attribute.startswith("__") and attribute not in SLOTS: continue
                        member = inspect.getattr_static(f, attribute, None)
                        if callable(member): g = lambda *a, m=made, n=attribute: getattr(m, n)(*a)     # noqa: E731
                        else: g = lambda *_, m=made, n=attribute: getattr(m, n)                         # noqa: E731
                        yield f"bare {full}.{attribute}", g
            elif callable(f) and (getattr(f, "__module__", "") or "").startswith("cygrad"):
                seen.add(id(f))
                yield full, f


def bare(kind):
    """An object of a class whose __init__ has not run."""
    try:
        return kind.__new__(kind)
    except BaseException:
        return None


def inherited(kind):
    """An object of a subclass, whose __init__ has not run."""
    try:
        return bare(type("Inherited", (kind,), {}))
    except BaseException:                           # (the class is final)
        return None


def called(kind):
    """An object made without arguments."""
    try:
        return kind()
    except BaseException:
        return None


def writable(made):
    return np.frombuffer(made, np.uint8).copy()


def entered(made):
    with made: pass


def pickled(protocol):
    return lambda made: use(pickle.loads(pickle.dumps(made, protocol)))


def use(made):
    """What any code may do with any object."""
    return [call(f, made) for f in (repr, bytes, len, list, hash, bool, copy.copy)]


# What Python itself does with objects, beside the attributes that dir() lists.
PROTOCOLS = [bytes, bytearray, memoryview, writable, np.asarray, np.from_dlpack, len, iter, list, next, reversed, repr,
             str, format, hash, bool, int, float, complex, operator.index, abs, operator.neg, dir, vars, entered,
             sys.getsizeof, gc.get_referents, weakref.ref, lambda made: use(copy.copy(made)),
             lambda made: use(copy.deepcopy(made)), *[pickled(n) for n in range(pickle.HIGHEST_PROTOCOL + 1)],
             lambda made: made == made, lambda made: made < made, lambda made: made + made, lambda made: made[0],
             lambda made: made[:], lambda made: 0 in made, lambda made: made()]


def uses():
    """(name, function of no arguments) for everything that can be done with an object of each class."""
    for kind in list(classes()):
        full = f"{kind.__module__}.{kind.__qualname__}"
        for make in (bare, inherited, called):
            if full in LEFT_OUT or make(kind) is None: continue
            for n, f in enumerate(PROTOCOLS):
                yield f"{make.__name__} {full}: protocol {n}", lambda f=f, m=make, k=kind: f(m(k))
            for name in sorted({*dir(kind)}):
                f = lambda n=name, m=make, k=kind: getattr(m(k), n)         # noqa: E731
                yield f"{make.__name__} {full}.{name}", f
                if f"{full}.{name}" not in LEFT_OUT and callable(getattr(kind, name, None)):
                    yield f"{make.__name__} {full}.{name}()", lambda f=f: f()()


def classes():
    """Every class of cygrad's modules, once."""
    seen = set()
    for module in compiled_modules():
        for kind in list(vars(module).values()):
            if inspect.isclass(kind) and id(kind) not in seen and (kind.__module__ or "").startswith("cygrad"):
                seen.add(id(kind))
                yield kind


def call(f, *args):
    try:
        result = f(*args)
        if inspect.isgenerator(result) or inspect.iscoroutine(result): result.close()
        return True
    except BaseException as e:
        if isinstance(e, (KeyboardInterrupt, SystemExit)) and "wrongtypes" not in str(e): pass
        return False


def restore(before):
    cg.set_recording(False)
    cg.set_training(False)


def main():
    faulthandler.enable()
    warnings.simplefilter("ignore")
    cg.set_num_threads(1)
    launch.FORWARDED = 0                            # (abort() would wait)
    said = "-v" in sys.argv or "-vv" in sys.argv
    count = 0
    threads = cg.get_num_threads()
    with cg.memory.limit("2GiB"):
        for name, f in list(callables()):
            if said: print(name, flush=True)
            vs = values()
            x, odd = vs[15], vs[12]
            for args in [(), *[(v,) for v in vs], (x, None), (x, 3), (x, odd), (x, ()), (None, x), (3, x), (odd, x),
                         (x, x), (None,) * 2, (None,) * 3, (x,) * 3, (x, None, None), (3,) * 3, (odd,) * 3, (None,) * 5,
                         (3,) * 9]:
                if "-vv" in sys.argv: print("   ", *[type(a).__name__ for a in args], flush=True)
                call(f, *args)
                count += 1
                restore(threads)
            del vs
        for name, f in uses():
            if said: print(name, flush=True)
            call(f)
            count += 1
            restore(threads)
    gc.collect()
    print(count, "calls")


if __name__ == "__main__":
    main()
