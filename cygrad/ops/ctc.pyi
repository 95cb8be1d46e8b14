# Written by tools/make_stubs.py; do not edit.
from typing import Any, Literal, TypeAlias, final
from typing_extensions import disjoint_base
import numpy.typing as npt
from cygrad.core.graph.attributes import Attributes
from cygrad.core.graph.operator import Operator
from cygrad.core.graph.tensor import Tensor
_Data: TypeAlias = Tensor | npt.ArrayLike

DTYPES: tuple[Any, ...]
LOW: float
OPERATORS: dict[Any, Any]
@disjoint_base
class Alignment(Attributes):
    @property
    def reduction(self) -> Any: ...
    @property
    def blank(self) -> Any: ...
    @property
    def zero_infinity(self) -> Any: ...
    @property
    def longest(self) -> Any: ...
@final
class CtcLoss(Operator):
    def as_call(self, operands: Any, arguments: Any) -> Any: ...
def ctc_loss(log_probs: _Data, targets: _Data, input_lengths: _Data, target_lengths: _Data, blank: int = 0, reduction: Literal['mean', 'sum', 'none'] = 'mean', zero_infinity: bool = False) -> Tensor: ...
def ctc_loss_packed(log_probs: _Data, packed: _Data, blank: int = 0, reduction: Literal['mean', 'sum', 'none'] = 'mean', zero_infinity: bool = False, longest: int = 0) -> Tensor: ...
