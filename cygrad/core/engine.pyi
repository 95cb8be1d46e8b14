# Written by tools/make_stubs.py; do not edit.
from typing import Any
from typing_extensions import disjoint_base

@disjoint_base
class Collected:
    @property
    def leaves(self) -> Any: ...
@disjoint_base
class Pass:
    pass
def open_collected(c: Any) -> Any: ...
def run_pass(roots: Any, numbers: Any, gradients: Any, retain: Any, graph: Any, captures: Any, strict: Any = None, train_mode: Any = None) -> Any: ...
