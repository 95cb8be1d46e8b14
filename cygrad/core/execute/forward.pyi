# Written by tools/make_stubs.py; do not edit.
from typing_extensions import disjoint_base
from cygrad.core.graph.trace import Step

@disjoint_base
class ForwardStep(Step):
    pass
