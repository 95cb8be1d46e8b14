# Written by tools/make_stubs.py; do not edit.
from typing import Any, final
from typing_extensions import disjoint_base
from cygrad.core.graph.tensor import Operator

TO_FLOATS: str
@disjoint_base
class Elementwise(Operator):
    inputs: str
    number: bool
    integers: Any
    code: str
    bits: int
@final
class HasCode(Operator):
    pass
class View(Operator):
    pass
class Part(View):
    pass
class Truth(Elementwise):
    pass
