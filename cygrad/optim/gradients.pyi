# Written by tools/make_stubs.py; do not edit.
from typing_extensions import disjoint_base

@disjoint_base
class Target:
    pass
