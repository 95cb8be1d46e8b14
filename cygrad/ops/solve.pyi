# Written by tools/make_stubs.py; do not edit.
from typing import Any, NamedTuple, TypeAlias, final
from typing_extensions import disjoint_base
import numpy.typing as npt
from cygrad.core.graph.attributes import Attributes
from cygrad.core.graph.operator import Operator
from cygrad.core.graph.tensor import Tensor
from cygrad.ops.decompose import OfMatrices
_Data: TypeAlias = Tensor | npt.ArrayLike

OPERATORS: dict[Any, Any]
@disjoint_base
class Cutoff(Attributes):
    @property
    def rcond(self) -> Any: ...
@final
class LstSq(Operator):
    pass
class LstsqResult(NamedTuple):
    x: Tensor
    residuals: Tensor
    rank: Tensor
    s: Tensor
class Solver(Operator):
    pass
@disjoint_base
class System(Attributes):
    @property
    def transposed(self) -> Any: ...
    @property
    def upper(self) -> Any: ...
    @property
    def left(self) -> Any: ...
    @property
    def unit(self) -> Any: ...
@final
class Inv(OfMatrices):
    pass
@final
class PInv(OfMatrices):
    pass
@final
class Solve(Solver):
    pass
@final
class SolveTriangular(Solver):
    pass
def inv(x: _Data) -> Tensor: ...
def lstsq(x: _Data, b: _Data, rcond: float | None = None) -> LstsqResult: ...
def lstsq_parts(x: _Data, b: _Data, rcond: float | None = None) -> tuple[Tensor, Tensor, Tensor]: ...
def pinv(x: _Data, rtol: float | None = None) -> Tensor: ...
def solve(x: _Data, b: _Data) -> Tensor: ...
def solve_transposed(x: _Data, b: _Data) -> Tensor: ...
def solve_triangular(x: _Data, b: _Data, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Tensor: ...
def solve_triangular_transposed(x: _Data, b: _Data, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Tensor: ...
