# Written by tools/make_stubs.py; do not edit.
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias, final
from typing_extensions import disjoint_base
import numpy.typing as npt
from cygrad.core.graph.attributes import Attributes
from cygrad.core.graph.operator import Operator
from cygrad.core.graph.tensor import Tensor
_Data: TypeAlias = Tensor | npt.ArrayLike

DTYPES: tuple[Any, ...]
OPERATORS: dict[Any, Any]
@disjoint_base
class Direction(Attributes):
    def arguments(self) -> Any: ...
    @property
    def reverse(self) -> Any: ...
    @property
    def has_lengths(self) -> Any: ...
@disjoint_base
class Recurrent(Operator):
    def as_call(self, operands: Any, arguments: Any) -> Any: ...
@final
class Gru(Recurrent):
    pass
@final
class Lstm(Recurrent):
    pass
@final
class Rnn(Recurrent):
    pass
@final
class RnnRelu(Recurrent):
    pass
def gru(x: _Data, weights: Sequence[_Data], h0: _Data | None = None, *, num_layers: int = 1, bidirectional: bool = False, batch_first: bool = False, lengths: _Data | None = None, dropout: float = 0.0) -> tuple[Tensor, Tensor]: ...
def gru_layer(x: _Data, w_ih: _Data, w_hh: _Data, b_ih: _Data, b_hh: _Data, h0: _Data, lengths: _Data | None = None, reverse: bool = False) -> tuple[Tensor, ...]: ...
def lstm(x: _Data, weights: Sequence[_Data], h0: _Data | None = None, c0: _Data | None = None, *, num_layers: int = 1, bidirectional: bool = False, batch_first: bool = False, lengths: _Data | None = None, dropout: float = 0.0, proj_size: int = 0) -> tuple[Tensor, tuple[Tensor, Tensor]]: ...
def lstm_layer(x: _Data, w_ih: _Data, w_hh: _Data, b_ih: _Data, b_hh: _Data, h0: _Data, c0: _Data, lengths: _Data | None = None, reverse: bool = False) -> tuple[Tensor, ...]: ...
def rnn(x: _Data, weights: Sequence[_Data], h0: _Data | None = None, *, num_layers: int = 1, bidirectional: bool = False, batch_first: bool = False, lengths: _Data | None = None, dropout: float = 0.0, nonlinearity: Literal['tanh', 'relu'] = 'tanh') -> tuple[Tensor, Tensor]: ...
def rnn_layer(x: _Data, w_ih: _Data, w_hh: _Data, b_ih: _Data, b_hh: _Data, h0: _Data, lengths: _Data | None = None, reverse: bool = False) -> tuple[Tensor, ...]: ...
def rnn_relu(x: _Data, weights: Sequence[_Data], h0: _Data | None = None, **options: Any) -> tuple[Tensor, Tensor]: ...
def rnn_relu_layer(x: _Data, w_ih: _Data, w_hh: _Data, b_ih: _Data, b_hh: _Data, h0: _Data, lengths: _Data | None = None, reverse: bool = False) -> tuple[Tensor, ...]: ...
