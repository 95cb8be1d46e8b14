# Written by tools/make_stubs.py; do not edit.
from typing import Any
from typing_extensions import disjoint_base
from cygrad.core.graph.attributes import Attributes

@disjoint_base
class Window(Attributes):
    @property
    def shape(self) -> Any: ...
    @property
    def strides(self) -> Any: ...
    @property
    def offset(self) -> Any: ...
def place(x: Any) -> Any: ...
