# Written by tools/make_stubs.py; do not edit.
from typing_extensions import disjoint_base

@disjoint_base
class Tape:
    def __init__(self) -> None: ...
    @property
    def nodes(self) -> int: ...
    @property
    def saved_bytes(self) -> int: ...
