from cygrad.nets import *
from cygrad.nets import __all__ as __all__
