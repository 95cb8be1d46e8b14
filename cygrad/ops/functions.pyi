# Written by tools/make_stubs.py; do not edit.
from typing import Any, Literal, TypeAlias, final
import numpy.typing as npt
from cygrad.core.graph.tensor import Tensor
from cygrad.ops.base import Elementwise
_Data: TypeAlias = Tensor | npt.ArrayLike

OPERATORS: dict[Any, Any]
@final
class Acos(Elementwise):
    dx: str
@final
class Acosh(Elementwise):
    dx: str
@final
class Asin(Elementwise):
    dx: str
@final
class Asinh(Elementwise):
    dx: str
@final
class Atan(Elementwise):
    dx: str
@final
class Atanh(Elementwise):
    dx: str
@final
class Cos(Elementwise):
    dx: str
@final
class Cosh(Elementwise):
    dx: str
@final
class Erf(Elementwise):
    dx: str
@final
class Exp(Elementwise):
    dx: str
@final
class Expm1(Elementwise):
    dx: str
@final
class Gelu(Elementwise):
    dx: str
@final
class GeluTanh(Elementwise):
    dx: str
@final
class Log(Elementwise):
    dx: str
@final
class Log1p(Elementwise):
    dx: str
@final
class Relu(Elementwise):
    integers: Any
    dx: str
@final
class ReluGradient(Elementwise):
    inputs: str
    integers: Any
    code: str
    dx: str
    dy: str
@final
class Sigmoid(Elementwise):
    dx: str
@final
class Silu(Elementwise):
    dx: str
@final
class Sin(Elementwise):
    dx: str
@final
class Sinh(Elementwise):
    dx: str
@final
class Softplus(Elementwise):
    number: bool
    dx: str
@final
class Tan(Elementwise):
    dx: str
@final
class Tanh(Elementwise):
    dx: str
def acos(x: _Data) -> Tensor: ...
def acosh(x: _Data) -> Tensor: ...
def asin(x: _Data) -> Tensor: ...
def asinh(x: _Data) -> Tensor: ...
def atan(x: _Data) -> Tensor: ...
def atanh(x: _Data) -> Tensor: ...
def cos(x: _Data) -> Tensor: ...
def cosh(x: _Data) -> Tensor: ...
def erf(x: _Data) -> Tensor: ...
def exp(x: _Data) -> Tensor: ...
def expm1(x: _Data) -> Tensor: ...
def gelu(x: _Data, approximate: Literal['none', 'tanh'] = 'none') -> Tensor: ...
def gelu_tanh(x: _Data) -> Tensor: ...
def log(x: _Data) -> Tensor: ...
def log1p(x: _Data) -> Tensor: ...
def relu(x: _Data) -> Tensor: ...
def relu_gradient(g: _Data, y: _Data) -> Tensor: ...
def sigmoid(x: _Data) -> Tensor: ...
def silu(x: _Data) -> Tensor: ...
def sin(x: _Data) -> Tensor: ...
def sinh(x: _Data) -> Tensor: ...
def softplus(x: _Data, beta: float = 1.0) -> Tensor: ...
def tan(x: _Data) -> Tensor: ...
def tanh(x: _Data) -> Tensor: ...
