# Written by tools/make_stubs.py; do not edit.
from cygrad.core.graph.tensor import Tensor

class why:
    bytes: int
    category: str
    holders: int
    entries: list[tuple[int, str]]
    made_by: str
    line: str
    def __init__(self, t: Tensor) -> None: ...
