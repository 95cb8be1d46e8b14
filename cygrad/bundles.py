"""Where cygrad's compiled modules are: in a few shared objects, each of which holds many (bundle.c, setup.py).

A file for each would be opened, mapped and linked, 79 times: a quarter of the time and of the memory of the import. The
modules are those of the .pyx files, under their names, for `import` and `cimport` alike. Importing this takes the
bundle of all but the kernels, of which there is one for each level of instructions (kernels/__init__.py)."""

import os
import sys
import threading
from importlib import _bootstrap, import_module
from importlib.machinery import ModuleSpec
from importlib.util import module_from_spec


class Bundle:
    """Finds and loads the modules that one shared object holds; `names` are theirs."""

    def __init__(self, held):
        self.names = frozenset(held.names())
        self.file = held.__file__
        self.create_module = held.create_module
        self.exec_module = held.exec_module

    def find_spec(self, name, path=None, target=None):
        if name not in self.names: return None
        spec = ModuleSpec(name, self, origin=self.file)
        spec.has_location = True                    # so that the module has a __file__
        return spec

    def get_source(self, name):
        """None, as of a module that is a file of its own: there is nothing in Python."""
        return None

    get_code = get_source                           # for `python -m`, which then says that there is none


def take(*names):
    """From now on the modules of a bundle are found there, before anywhere else: of the first of these names that the
    build has. Raises ModuleNotFoundError when it has none."""
    for name in names:
        try: held = import_module(name)
        except ModuleNotFoundError: continue
        sys.meta_path.insert(alone.open, Bundle(held))          # (behind the scope below, where that is open)
        return
    raise ModuleNotFoundError(f"no {name} for this Python ({sys.implementation.cache_tag}) in "
                              f"{os.path.dirname(__file__)}: build cygrad there (make build), or install it (pip "
                              f"install .); from a zip file it cannot be imported", name=name)


class Whole:
    """A loader that has nothing to do: the module is there."""

    def __init__(self, spec):
        self.spec = spec

    def create_module(self, spec):
        return sys.modules[spec.name]

    def exec_module(self, module):
        module.__spec__ = self.spec                 # (Python has put another there)


class Alone:
    """A scope in which one thread imports the whole package and others wait for it.

    Python has a lock for each module, and takes that of a part before it imports the whole: a thread that imports a
    part holds what the thread at the whole needs, and waits for it. One of the two then gets an error. So the thread
    at the whole takes none of the package's locks here. It finds and runs the modules itself, and whoever wants one
    meanwhile waits, holding nothing that is needed. A thread that had begun with a part before this scope was open
    waits too: as it looks for the part, or at the first line of that, which imports cygrad.bundles and thereby the
    whole; its module gets the names of ours. Where Python has not the functions that this takes the place of, it does
    nothing."""

    def __init__(self):
        self.lock, self.ours, self.open = threading.RLock(), {}, False

    def __enter__(self):
        self.lock.acquire()
        self.ours.clear()
        self.found = getattr(_bootstrap, "_find_and_load", None), getattr(_bootstrap, "_lock_unlock_module", None)
        if None not in self.found:
            self.open = True
            sys.meta_path.insert(0, self)
            _bootstrap._find_and_load, _bootstrap._lock_unlock_module = self.find_and_load, self.wait

    def __exit__(self, kind=None, value=None, traceback=None):
        if self.open:
            _bootstrap._find_and_load, _bootstrap._lock_unlock_module = self.found
            self.open = False
            sys.meta_path.remove(self)
            sys.modules.update(self.ours)
        self.lock.release()

    def find_spec(self, name, path=None, target=None):
        """What Python calls for a module that it does not have, where it holds that module's lock."""
        if not name.startswith("cygrad."): return None
        with self.lock:
            if self.open or name not in sys.modules: return None
        return ModuleSpec(name, Whole(sys.modules[name].__spec__))

    def find_and_load(self, name, import_):
        """What Python calls for a module that is not in sys.modules, or not whole."""
        if name.startswith("cygrad."):
            with self.lock:
                if self.open: return self.ours.get(name) or self.load(name)
        return self.found[0](name, import_)

    def wait(self, name):
        """What Python calls for a module that is in sys.modules, but not whole."""
        if name.partition(".")[0] != "cygrad": return self.found[1](name)
        with self.lock:
            if not self.open: return self.found[1](name)
            if name == "cygrad" or sys.modules.get(name) is self.ours.get(name): return None
            begun = sys.modules[name]               # by another thread
            begun.__dict__.update((self.ours.get(name) or self.load(name)).__dict__)
            sys.modules[name] = self.ours[name]

    def load(self, name):
        """Import a module without its lock."""
        parent, _, child = name.rpartition(".")
        package = import_module(parent)
        found = (finder.find_spec(name, package.__path__) for finder in sys.meta_path)
        spec = next(filter(None, found), None)
        if spec is None: raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        module = self.ours[name] = sys.modules[name] = module_from_spec(spec)
        spec._initializing = True
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del self.ours[name]
            sys.modules.pop(name, None)
            raise
        finally:
            spec._initializing = False
        sys.modules[name] = module
        setattr(package, child, module)
        return module


alone = Alone()
take("cygrad._modules")
