"""Loads cygrad's compiled modules, which are in a few shared objects with many modules each (bundle.c, setup.py), and
all modules that `import cygrad` needs.

When cygrad had 79 modules in one file each, opening, mapping and linking them took a quarter of the time and of the
memory of the import. Each .pyx file is a module of its own name, for both `import` and `cimport`. Importing this module
opens the bundle of everything except the kernels. The kernels have one bundle for each instruction level."""

import gc
import os
import sys
from _thread import RLock, get_ident
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder

HERE = os.path.dirname(os.path.abspath(__file__))
lock = RLock()
loading: int | None = get_ident()   # the thread that opens bundles or runs load()
pending: dict[str, "Pending"] = {}


def wait():
    """Wait if another thread imports the package."""
    import cygrad.bundles
    with lock: pass             # (if load() runs now, the import has not waited)
    import cygrad.bundles  # noqa: F401, F811


class Postponed:
    """Loads what a thread looks for while another one opens a bundle or runs load(): it waits for the package, and then
    it imports the module."""

    def create_module(self, spec):
        wait()
        module = import_module(spec.name)
        self.spec = module.__spec__
        return module

    def exec_module(self, module):
        module.__spec__ = self.spec                 # Python has replaced it


class Bundle:
    """Loads the modules of one shared object. The class itself finds them, in all bundles that are open. (Python calls
    find_spec with a global lock, so it must not wait.)"""

    of: dict[str, "Bundle"] = {}                                         # module: its bundle

    def __init__(self, library):
        self.library = library

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if not name.startswith("cygrad."): return None
        if loading not in (None, get_ident()): return ModuleSpec(name, Postponed())
        if name not in cls.of: return None
        spec = ModuleSpec(name, cls.of[name], origin=cls.of[name].library.__file__)
        spec.has_location = True                    # gives the module a __file__
        return spec

    def create_module(self, spec):
        if loading != get_ident(): wait()
        return self.library.create_module(spec)

    def exec_module(self, module):
        self.library.exec_module(module)

    def get_source(self, name):
        """Return None, as for any compiled module: there is no Python source."""
        return None

    get_code = get_source                           # `python -m` then reports that there is no code


sys.meta_path.insert(0, Bundle)                     # other threads wait from here on

from importlib.util import module_from_spec  # noqa: E402 (this import takes 1 ms)


def take(*names):
    """Open the first of these bundles that was built. Its modules are found there before anywhere else. Raises
    ModuleNotFoundError if none was built."""
    for name in names:
        spec = PathFinder.find_spec(name, [os.path.join(HERE, *name.split(".")[1:-1])])
        if spec is None: continue
        library = sys.modules[name] = module_from_spec(spec)
        spec.loader.exec_module(library)
        Bundle.of.update(dict.fromkeys(library.names(), Bundle(library)))
        return library
    raise ModuleNotFoundError(f"no {name} for this Python ({sys.implementation.cache_tag}) in {HERE}: build cygrad "
                              f"there (make build), or install it (pip install .); it cannot be imported from a zip "
                              f"file", name=name)


def require_gil():
    """Raise ImportError if this Python runs without the GIL, which is the lock of cygrad's memory (decision 0038)."""
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        raise ImportError("cygrad needs the GIL, and this Python runs without it: start it without PYTHON_GIL=0 and "
                          "-X gil=0, or use a build of Python that has the GIL")


def take_kernels(cpu):
    """Open the kernels of the instruction level that the module cygrad.kernels.cpu selects, or of the next lower level
    that was built (CYGRAD_LEVELS, setup.py)."""
    if "cygrad.kernels.driver" in Bundle.of: return
    take(*(f"cygrad.kernels._{level}" for level in reversed(cpu.LEVELS[:cpu.LEVELS.index(cpu.wanted_level()) + 1])))


class Pending:
    """A module in sys.modules that load() has not executed yet. This object is its __getattr__ until then: if an
    attribute is missing, the thread that imports the package executes the module, and another thread waits."""

    def __init__(self, module, begun=False):
        self.module, self.begun, self.ended = module, begun, False
        self.loader, module.__spec__.loader = module.__spec__.loader, Postponed()   # (for threads that look for it now)
        module.__getattr__ = self

    def __call__(self, attribute):
        if loading != get_ident(): wait()
        self.execute()
        if vars(self.module).get("__getattr__") is not self: return getattr(self.module, attribute)
        raise AttributeError(f"module {self.module.__name__!r} has no attribute {attribute!r}")     # (it is executing)

    def execute(self):
        if self.begun: return
        self.begun = True
        self.loader.exec_module(self.module)
        self.ended = True
        self.close()

    def close(self):
        self.begun, self.module.__spec__.loader = True, self.loader
        if vars(self.module).get("__getattr__") is self: del self.module.__getattr__


class Folder:
    """Makes a package without code, such as cygrad.ops.losses, whose docstring the build has read. To find and read its
    file would take 64 us."""

    def __init__(self, doc):
        self.doc = doc

    def spec(self, name, package):
        spec = ModuleSpec(name, self, origin=os.path.join(package.__path__[0], name.rpartition(".")[2], "__init__.py"),
                          is_package=True)
        spec.submodule_search_locations.append(os.path.dirname(spec.origin))
        spec.has_location = True
        return spec

    def create_module(self, spec):
        return None                                 # as Python makes it

    def exec_module(self, module):
        module.__doc__ = self.doc


def make(names, docs=()):
    """Put a Pending module into sys.modules for each name that is found. `docs` has docstrings of packages without
    code."""
    docs = dict(zip(names, docs, strict=False))
    for name in sorted(names):                      # packages before their modules
        package, _, child = name.rpartition(".")
        package = pending[package].module if package in pending else sys.modules[package]
        if name not in pending:
            if docs.get(name): spec = Folder(docs[name]).spec(name, package)
            else: spec = Bundle.find_spec(name) or PathFinder.find_spec(name, package.__path__)
            if spec is None: continue
            pending[name] = Pending(module_from_spec(spec))
        sys.modules[name] = pending[name].module
        setattr(package, child, pending[name].module)


def load():
    """Load what `import cygrad` needs: the modules that setup.py lists, each after those that it imports.

    Python has a lock for each module. A thread that imports a submodule takes the lock of the submodule and then
    imports the package. If the thread that imports the package then needed that lock, each of the two would wait for
    the other one, and one of them would get an error. Therefore all these modules are in sys.modules before the first
    one is executed: an import takes no lock for a module that is there. The other thread, which has waited for the
    package, looks there again.

    Meanwhile the package has a spec that does not say that it is imported: else each of two thousand imports would take
    the lock of the package, 1 us. Another thread that reads an attribute of the package waits.

    The garbage collector pauses, because what an import makes stays: to traverse it again and again takes 2 ms. In the
    end Linux forgets the pages that the modules' initialization has mapped, sixteen around each that it read."""
    global loading
    package, order = sys.modules["cygrad"], library.order()
    spec = package.__spec__
    with lock:
        loading, collects = get_ident(), gc.isenabled()
        package.__spec__ = ModuleSpec("cygrad", spec.loader, origin=spec.origin, is_package=True)
        imported = Pending(package, True)
        try:
            gc.disable()
            make(("cygrad._cyutility", "cygrad.kernels", "cygrad.kernels.cpu"))
            pending["cygrad.kernels.cpu"].execute()
            take_kernels(pending["cygrad.kernels.cpu"].module)
            make(order, library.docs())
            for name in order:
                if name in pending: pending[name].execute()
            for bundle in {*Bundle.of.values()}: bundle.library.forget()
        except BaseException:
            for name in [name for name, one in pending.items() if not one.ended]:
                pending.pop(name).close()
                sys.modules.pop(name, None)
            raise
        finally:
            imported.close()
            package.__spec__ = spec
            loading = None
            if collects: gc.enable()


try:
    library = take("cygrad._modules")
    require_gil()               # (opening it switches the GIL on, unless the user has forbidden that)
finally: loading = None
