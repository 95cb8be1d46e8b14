# Written by tools/make_stubs.py; do not edit.
from typing import Any, TypeAlias, final
from typing_extensions import disjoint_base
import numpy.typing as npt
from cygrad.core.execute.generator import Generator
from cygrad.core.graph.attributes import Attributes
from cygrad.core.graph.operator import Operator
from cygrad.core.graph.tensor import Tensor
_Data: TypeAlias = Tensor | npt.ArrayLike

DTYPES: tuple[Any, ...]
OPERATORS: dict[Any, Any]
class Attend(Operator):
    pass
@disjoint_base
class Attending(Attributes):
    @property
    def is_causal(self) -> Any: ...
    @property
    def masked(self) -> Any: ...
    @property
    def scale(self) -> Any: ...
    @property
    def p(self) -> Any: ...
    @property
    def key(self) -> Any: ...
    @property
    def counter(self) -> Any: ...
    @property
    def heads_last(self) -> Any: ...
@final
class AttentionWithDropout(Attend):
    pass
@final
class ScaledDotProductAttention(Attend):
    pass
def attend(query: _Data, key: _Data, value: _Data, attn_mask: _Data | None = None, is_causal: bool = False, scale: float | None = None, heads_last: bool = False) -> Tensor: ...
def attend_with_dropout(query: _Data, key: _Data, value: _Data, attn_mask: _Data | None = None, *, p: float, seed: int | Generator, counter: int = 0, is_causal: bool = False, scale: float | None = None, heads_last: bool = False) -> Tensor: ...
def attention_with_dropout(query: _Data, key: _Data, value: _Data, p: float, seed: int, counter: int, is_causal: bool = False) -> Tensor: ...
def scaled_dot_product_attention(query: _Data, key: _Data, value: _Data, attn_mask: _Data | None = None, dropout_p: float = 0.0, is_causal: bool = False, scale: float | None = None, enable_gqa: bool = False, *, generator: Generator | None = None) -> Tensor: ...
