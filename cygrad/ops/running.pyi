# Written by tools/make_stubs.py; do not edit.
from typing import Any
from typing_extensions import disjoint_base
from cygrad.core.graph.trace import Step

@disjoint_base
class RunningStep(Step):
    pass
def move_statistics(average: Any, var: Any, stats: Any, factor: Any) -> Any: ...
