# Written by tools/make_stubs.py; do not edit.
from typing import Any, TypeAlias, final
import numpy.typing as npt
from cygrad.core.graph.operator import Operator
from cygrad.core.graph.tensor import Tensor
from cygrad.ops.base import Elementwise
_Data: TypeAlias = Tensor | npt.ArrayLike

OPERATORS: dict[Any, Any]
@final
class Glu(Operator):
    pass
@final
class Celu(Elementwise):
    number: bool
    dx: str
@final
class Elu(Elementwise):
    number: bool
    dx: str
@final
class Hardsigmoid(Elementwise):
    code: str
    dx: str
@final
class Hardswish(Elementwise):
    dx: str
@final
class Hardtanh(Elementwise):
    inputs: str
    code: str
    dx: str
@final
class LeakyRelu(Elementwise):
    number: bool
    dx: str
@final
class Logsigmoid(Elementwise):
    dx: str
@final
class Mish(Elementwise):
    dx: str
@final
class Prelu(Elementwise):
    inputs: str
    dx: str
    dy: str
@final
class Selu(Elementwise):
    dx: str
@final
class Softsign(Elementwise):
    dx: str
@final
class Threshold(Elementwise):
    inputs: str
    code: str
    dx: str
def celu(x: _Data, alpha: float = 1.0) -> Tensor: ...
def elu(x: _Data, alpha: float = 1.0) -> Tensor: ...
def glu(x: _Data, axis: int = -1) -> Tensor: ...
def hardsigmoid(x: _Data) -> Tensor: ...
def hardswish(x: _Data) -> Tensor: ...
def hardtanh(x: _Data, min_val: float = -1.0, max_val: float = 1.0) -> Tensor: ...
def leaky_relu(x: _Data, negative_slope: float = 0.01) -> Tensor: ...
def logsigmoid(x: _Data) -> Tensor: ...
def mish(x: _Data) -> Tensor: ...
def prelu(x: _Data, weight: _Data) -> Tensor: ...
def prelu_broadcast(x: _Data, weight: _Data) -> Tensor: ...
def selu(x: _Data) -> Tensor: ...
def softsign(x: _Data) -> Tensor: ...
def threshold(x: _Data, threshold: float, value: float) -> Tensor: ...
