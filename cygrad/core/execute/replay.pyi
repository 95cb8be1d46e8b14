# Written by tools/make_stubs.py; do not edit.
from typing import Any, Never
from typing_extensions import disjoint_base

@disjoint_base
class Replay:
    def __init__(self, f: Any, *args: Never, **kwargs: Any) -> None: ...
    def run(self) -> Any: ...
    @property
    def outputs(self) -> Any: ...
@disjoint_base
class Step:
    pass
