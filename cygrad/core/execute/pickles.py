"""The paths that pickles name. They never change, wherever what they name is defined: the loaders are those of
cygrad.core.pickling, and generators pickled by version 0.1 name a class of cygrad.core.generator. Both are modules
without a file, which exist as soon as cygrad is imported."""

import sys
from types import ModuleType

from cygrad.core.execute.generator import Generator, load_generator
from cygrad.core.graph.gradient_slice import load_gradient_slice
from cygrad.core.interop.pickling import load_tensor, load_waiting

for path, named in (("cygrad.core.pickling", (load_generator, load_gradient_slice, load_tensor, load_waiting)),
                    ("cygrad.core.generator", (Generator,))):
    sys.modules[path] = module = ModuleType(path, __doc__)
    for value in named: setattr(module, value.__name__, value)
