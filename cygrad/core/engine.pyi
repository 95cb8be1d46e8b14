# Written by tools/make_stubs.py; do not edit.
from typing import Any
from typing_extensions import disjoint_base

@disjoint_base
class Pass:
    pass
def run_pass(roots: Any, numbers: Any, gradients: Any, retain: Any, graph: Any, captures: Any, strict: Any = None) -> Any: ...
