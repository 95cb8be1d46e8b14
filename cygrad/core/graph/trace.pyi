# Written by tools/make_stubs.py; do not edit.
from typing import Any
from typing_extensions import disjoint_base

@disjoint_base
class Step:
    @property
    def name(self) -> Any: ...
    @property
    def source(self) -> Any: ...
@disjoint_base
class Storage:
    @property
    def kind(self) -> Any: ...
    @property
    def number(self) -> Any: ...
@disjoint_base
class Trace:
    @property
    def purpose(self) -> Any: ...
@disjoint_base
class Written:
    pass
@disjoint_base
class GatherStep(Step):
    pass
@disjoint_base
class LeafStep(Step):
    pass
@disjoint_base
class LoopStep(Step):
    pass
@disjoint_base
class ZeroStep(Step):
    pass
