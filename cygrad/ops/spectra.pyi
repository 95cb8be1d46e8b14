# Written by tools/make_stubs.py; do not edit.
from typing import Any, Literal, NamedTuple, TypeAlias, final
from typing_extensions import disjoint_base
import numpy.typing as npt
from cygrad.core.graph.attributes import Attributes
from cygrad.core.graph.operator import Operator
from cygrad.core.graph.tensor import Tensor
from cygrad.ops.decompose import OfMatrices
_Data: TypeAlias = Tensor | npt.ArrayLike

OPERATORS: dict[Any, Any]
class EighResult(NamedTuple):
    eigenvalues: Tensor
    eigenvectors: Tensor
class SVDResult(NamedTuple):
    U: Tensor
    S: Tensor
    Vh: Tensor
@final
class SpectralGaps(Operator):
    def as_call(self, operands: Any, arguments: Any) -> Any: ...
@disjoint_base
class Spectrum(Attributes):
    @property
    def singular(self) -> Any: ...
    @property
    def zero(self) -> Any: ...
@final
class EigH(OfMatrices):
    pass
@final
class EigValsH(OfMatrices):
    pass
@final
class SVD(OfMatrices):
    pass
@final
class SVDVals(OfMatrices):
    pass
def eigh(x: _Data, UPLO: Literal['L', 'U'] = 'L') -> EighResult: ...
def eigvalsh(x: _Data, UPLO: Literal['L', 'U'] = 'L') -> Tensor: ...
def spectral_gaps(w: _Data, singular: bool = False, zero: bool = True) -> Tensor: ...
def svd(x: _Data, full_matrices: bool = True) -> SVDResult: ...
def svdvals(x: _Data) -> Tensor: ...
