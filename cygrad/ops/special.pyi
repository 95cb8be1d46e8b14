# Written by tools/make_stubs.py; do not edit.
from typing import Any, TypeAlias, final
import numpy.typing as npt
from cygrad.core.graph.tensor import Tensor
from cygrad.ops.base import Elementwise
_Data: TypeAlias = Tensor | npt.ArrayLike

OPERATORS: dict[Any, Any]
@final
class Atan2(Elementwise):
    inputs: str
    dx: str
    dy: str
@final
class Cbrt(Elementwise):
    dx: str
@final
class Copysign(Elementwise):
    inputs: str
    code: str
    bits: int
    dx: str
    dy: str
@final
class Digamma(Elementwise):
    dx: str
@final
class Erfc(Elementwise):
    dx: str
@final
class Exp2(Elementwise):
    dx: str
@final
class Fmax(Elementwise):
    inputs: str
    code: str
    bits: int
    dx: str
    dy: str
@final
class Fmin(Elementwise):
    inputs: str
    code: str
    bits: int
    dx: str
    dy: str
@final
class Hypot(Elementwise):
    inputs: str
    dx: str
    dy: str
@final
class Lgamma(Elementwise):
    dx: str
@final
class Log10(Elementwise):
    dx: str
@final
class Log2(Elementwise):
    dx: str
@final
class Logaddexp(Elementwise):
    inputs: str
    dx: str
    dy: str
@final
class Polygamma(Elementwise):
    number: bool
    dx: str
@final
class Sinc(Elementwise):
    dx: str
@final
class SincDerivative(Elementwise):
    number: bool
    dx: str
@final
class Xlogy(Elementwise):
    inputs: str
    dx: str
    dy: str
def atan2(x: _Data, y: _Data) -> Tensor: ...
def cbrt(x: _Data) -> Tensor: ...
def copysign(x: _Data, y: _Data) -> Tensor: ...
def digamma(x: _Data) -> Tensor: ...
def erfc(x: _Data) -> Tensor: ...
def exp2(x: _Data) -> Tensor: ...
def fmax(x: _Data, y: _Data) -> Tensor: ...
def fmin(x: _Data, y: _Data) -> Tensor: ...
def hypot(x: _Data, y: _Data) -> Tensor: ...
def lgamma(x: _Data) -> Tensor: ...
def log10(x: _Data) -> Tensor: ...
def log2(x: _Data) -> Tensor: ...
def logaddexp(x: _Data, y: _Data) -> Tensor: ...
def polygamma(n: int, x: _Data) -> Tensor: ...
def sinc(x: _Data) -> Tensor: ...
def sinc_derivative(x: _Data, n: int) -> Tensor: ...
def xlogy(x: _Data, y: _Data) -> Tensor: ...
