# Written by tools/make_stubs.py; do not edit.
from typing_extensions import disjoint_base
from cygrad.core.graph import Operator

@disjoint_base
class Elementwise(Operator):
    pass
