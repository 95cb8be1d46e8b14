# Written by tools/make_stubs.py; do not edit.
from typing import Any
from typing_extensions import disjoint_base

DTYPES: tuple[Any, ...]
REQUESTS: tuple[Any, ...]
@disjoint_base
class Around:
    def use_solver(self, solver: Any) -> Any: ...
def eager_reason(variables: Any, passes: Any, gradients: Any) -> Any: ...
def hook_on(variables: Any) -> Any: ...
