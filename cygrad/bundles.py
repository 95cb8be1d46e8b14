"""Where cygrad's compiled modules are: in a few shared objects, each of which holds many (bundle.c, setup.py).

A file for each would be opened, mapped and linked 79 times: half of the time and half of the memory of the import. The
modules are those of the .pyx files, under their names, for `import` and `cimport` alike. Importing this takes the
bundle of all but the kernels, of which there is one for each level of instructions (kernels/__init__.py)."""

import sys
from importlib import import_module
from importlib.machinery import ModuleSpec


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


def take(name):
    """From now on the modules of the bundle with that module name are found there, before anywhere else. Raises
    ImportError when the build has none of that name."""
    sys.meta_path.insert(0, Bundle(import_module(name)))


take("cygrad._modules")
