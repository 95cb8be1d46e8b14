"""Where cygrad's compiled modules are: in a few shared objects, each of which holds many (bundle.c, setup.py).

A file for each would be opened, mapped and linked, 79 times: a quarter of the time and of the memory of the import. The
modules are those of the .pyx files, under their names, for `import` and `cimport` alike. Importing this takes the
bundle of all but the kernels, of which there is one for each level of instructions (kernels/__init__.py)."""

import os
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
        sys.meta_path.insert(0, Bundle(held))
        return
    raise ModuleNotFoundError(f"no {name} for this Python ({sys.implementation.cache_tag}) in "
                              f"{os.path.dirname(__file__)}: build cygrad there (make build), or install it (pip "
                              f"install .); from a zip file it cannot be imported", name=name)


take("cygrad._modules")
