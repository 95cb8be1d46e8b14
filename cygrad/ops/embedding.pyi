# Written by tools/make_stubs.py; do not edit.
from typing import Any, Literal, TypeAlias, final
from typing_extensions import disjoint_base
import numpy.typing as npt
from cygrad.core.graph.attributes import Attributes
from cygrad.core.graph.operator import Operator
from cygrad.core.graph.tensor import Tensor
_Data: TypeAlias = Tensor | npt.ArrayLike

DTYPES: tuple[Any, ...]
MODES: tuple[Any, ...]
OPERATORS: dict[Any, Any]
@disjoint_base
class Bagged(Attributes):
    def arguments(self) -> Any: ...
    @property
    def mode(self) -> Any: ...
    @property
    def offsets(self) -> Any: ...
    @property
    def weighted(self) -> Any: ...
    @property
    def padding_idx(self) -> Any: ...
    @property
    def sparse(self) -> Any: ...
@final
class Embedding(Operator):
    pass
@final
class EmbeddingBag(Operator):
    def as_call(self, operands: Any, arguments: Any) -> Any: ...
@disjoint_base
class Lookup(Attributes):
    @property
    def padding_idx(self) -> Any: ...
    @property
    def sparse(self) -> Any: ...
def embedding(indices: _Data, weight: _Data, padding_idx: int | None = None, sparse: bool = False) -> Tensor: ...
def embedding_bag(indices: _Data, weight: _Data, offsets: _Data | None = None, mode: Literal['sum', 'mean', 'max'] = 'mean', sparse: bool = False, per_sample_weights: _Data | None = None, padding_idx: int | None = None) -> Tensor: ...
def embedding_bag_weighted(indices: _Data, weight: _Data, per_sample_weights: _Data, mode: str = 'sum', sparse: bool = False, padding_idx: int | None = None) -> Tensor: ...
