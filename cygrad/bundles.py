"""Loads cygrad's compiled modules, which are in a few shared objects with many modules each (bundle.c, setup.py).

When cygrad had 79 modules in one file each, opening, mapping and linking them took a quarter of the time and of the
memory of the import. Each .pyx file is a module of its own name, for both `import` and `cimport`. Importing this module
opens the bundle of everything except the kernels. The kernels have one bundle for each instruction level
(kernels/__init__.py)."""

import os
import sys
from importlib import _bootstrap, import_module
from importlib.machinery import ModuleSpec
from importlib.util import module_from_spec
from threading import RLock, get_ident


class Bundle:
    """Finds and loads the modules of one shared object; `names` are their names."""

    def __init__(self, library):
        self.names = frozenset(library.names())
        self.file = library.__file__
        self.create_module = library.create_module
        self.exec_module = library.exec_module

    def find_spec(self, name, path=None, target=None):
        if name not in self.names: return None
        spec = ModuleSpec(name, self, origin=self.file)
        spec.has_location = True                    # gives the module a __file__
        return spec

    def get_source(self, name):
        """Return None, as for any compiled module: there is no Python source."""
        return None

    get_code = get_source                           # `python -m` then reports that there is no code


def take(*names):
    """Open the first of these bundles that was built. Its modules are found there before anywhere else. Raises
    ModuleNotFoundError if none was built."""
    for name in names:
        try: library = import_module(name)
        except ModuleNotFoundError: continue
        sys.meta_path.insert(alone.open, Bundle(library))       # (after the scope below, if it is open)
        return
    raise ModuleNotFoundError(f"no {name} for this Python ({sys.implementation.cache_tag}) in "
                              f"{os.path.dirname(__file__)}: build cygrad there (make build), or install it (pip "
                              f"install .); it cannot be imported from a zip file", name=name)


class LoadedLoader:
    """A loader for a module that is already in sys.modules."""

    def __init__(self, spec):
        self.spec = spec

    def create_module(self, spec):
        return sys.modules[spec.name]

    def exec_module(self, module):
        module.__spec__ = self.spec                 # Python has replaced it


class Alone:
    """A scope in which one thread imports the whole package while others wait.

    Python has a lock for each module. A thread that imports a submodule takes the lock of the submodule first and then
    imports the package. If another thread is importing the package, each of the two waits for a lock that the other one
    holds, and one of them gets an error. Inside this scope the importing thread therefore takes no module locks of the
    package: it finds and executes the modules itself. Other threads that need one of them wait without holding a lock
    that it needs.

    A thread that began to import a submodule before the scope was open waits too, either when it looks for the
    submodule or at its first line, which imports cygrad.bundles and therefore the package. Its module object then
    receives the contents of the module that was loaded here.

    If importlib does not have the two private functions that this scope replaces, the scope does nothing."""

    def __init__(self):
        self.lock, self.loaded, self.open, self.thread = RLock(), {}, False, None

    def __enter__(self):
        self.lock.acquire()
        self.loaded.clear()
        self.found = getattr(_bootstrap, "_find_and_load", None), getattr(_bootstrap, "_lock_unlock_module", None)
        if None not in self.found:
            self.open, self.thread = True, get_ident()
            sys.meta_path.insert(0, self)
            _bootstrap._find_and_load, _bootstrap._lock_unlock_module = self.find_and_load, self.wait

    def __exit__(self, kind=None, value=None, traceback=None):
        if self.open:
            _bootstrap._find_and_load, _bootstrap._lock_unlock_module = self.found
            self.open, self.thread = False, None
            sys.meta_path.remove(self)
            sys.modules.update(self.loaded)
        self.lock.release()

    def find_spec(self, name, path=None, target=None):
        """Called by Python for a module that is not in sys.modules, while it holds the lock of that module."""
        if not name.startswith("cygrad."): return None
        with self.lock:
            if self.open or name not in sys.modules: return None
        return ModuleSpec(name, LoadedLoader(sys.modules[name].__spec__))

    def find_and_load(self, name, import_):
        """Called by Python for a module that is not in sys.modules or not fully initialized."""
        if name.startswith("cygrad."):
            with self.lock:
                if self.open: return self.loaded.get(name) or self.load(name)
        return self.found[0](name, import_)

    def wait(self, name):
        """Called by Python for a module that is in sys.modules but not fully initialized."""
        if name == "cygrad" and self.thread == get_ident(): return None     # most calls: the package's own imports
        if name.partition(".")[0] != "cygrad": return self.found[1](name)
        with self.lock:
            if not self.open: return self.found[1](name)
            if name == "cygrad" or sys.modules.get(name) is self.loaded.get(name): return None
            partial = sys.modules[name]             # import begun by another thread
            partial.__dict__.update((self.loaded.get(name) or self.load(name)).__dict__)
            sys.modules[name] = self.loaded[name]

    def load(self, name):
        """Import a module without taking its lock."""
        parent, _, child = name.rpartition(".")
        package = self.loaded.get(parent) or import_module(parent)
        found = (finder.find_spec(name, package.__path__) for finder in sys.meta_path if finder is not self)
        spec = next(filter(None, found), None)
        if spec is None: raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        module = self.loaded[name] = sys.modules[name] = module_from_spec(spec)
        spec._initializing = True
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del self.loaded[name]
            sys.modules.pop(name, None)
            raise
        finally:
            spec._initializing = False
        sys.modules[name] = module
        setattr(package, child, module)
        return module


alone = Alone()
take("cygrad._modules")
