# Written by tools/make_stubs.py; do not edit.
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Never, TypeAlias
import numpy.typing as npt
from cygrad.core.graph.tensor import Operator
_Call: TypeAlias = tuple[tuple[Any, ...], dict[str, Any]]

C: dict[Any, Any]
E: dict[Any, Any]
F: dict[Any, Any]
G: dict[Any, Any]
I: dict[Any, Any]
J: dict[Any, Any]
K: dict[Any, Any]
L: dict[Any, Any]
LABELS: npt.NDArray[Any]
M: dict[Any, Any]
MASK: npt.NDArray[Any]
N: dict[Any, Any]
O: dict[Any, Any]
P: dict[Any, Any]
R: dict[Any, Any]
ROWS: dict[str, Row]
S: dict[Any, Any]
SLICES: dict[Any, Any]
SORT: dict[Any, Any]
TABLE: list[Row]
W: dict[Any, Any]
WINDOW: dict[Any, Any]
X: dict[Any, Any]
Z: dict[Any, Any]
class Row:
    function: Callable[..., Any]
    operator: Operator
    like: Callable[..., Any]
    samples: Callable[[], list[_Call]]
    keeps: dict[str, str] | Callable[..., dict[str, str]]
    methods: tuple[str, ...]
    ties: tuple[Any, ...]
    public: bool
    aliases: tuple[str, ...]
    own_gradient: bool
    tested: Callable[..., Any]
    def __init__(self, function: Callable[..., Any], operator: Operator, like: Callable[..., Any], samples: Callable[[], list[_Call]], keeps: Mapping[str, str] | Iterable[tuple[str, str]] | Callable[..., dict[str, str]] = ..., methods: tuple[str, ...] = ..., ties: tuple[Any, ...] = ..., public: bool = True, aliases: tuple[str, ...] = ..., own_gradient: bool = False, tested: Callable[..., Any] | None = None) -> None: ...
    def kept(self, *args: Never, **kwargs: Any) -> dict[str, str]: ...
    @property
    def name(self) -> str: ...
    @property
    def family(self) -> str: ...
    @property
    def tries(self) -> list[_Call]: ...
