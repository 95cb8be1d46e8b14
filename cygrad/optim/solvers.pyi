# Written by tools/make_stubs.py; do not edit.
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias, TypedDict, Unpack
from cygrad.core.graph.tensor import Tensor
from cygrad.optim.solver import Solver
_Parameters: TypeAlias = (Tensor | Mapping[str, Tensor] | Iterable[Tensor] | Iterable[tuple[str, Tensor]] | Iterable[dict[str, Any]])
_Rate: TypeAlias = float | _Parameters

class AMSBound(Solver):
    beta1: float
    beta2: float
    eps: float
    final_lr: float
    gamma: float
    bias_correction: bool
    rule: str
    default: float
    settings: tuple[Any, ...]
    def __init__(self, alpha: _Rate = 0.001, /, beta1: float = 0.9, beta2: float = 0.999, eps: float = 1e-08, final_lr: float = 0.1, gamma: float = 0.001, bias_correction: bool = False, **options: Unpack[WithAlpha]) -> None: ...
class AMSGRAD(Solver):
    beta1: float
    beta2: float
    eps: float
    bias_correction: bool
    rule: str
    settings: tuple[Any, ...]
    default: float
    def __init__(self, alpha: _Rate = 0.001, /, beta1: float = 0.9, beta2: float = 0.999, eps: float = 1e-08, bias_correction: bool = False, **options: Unpack[WithAlpha]) -> None: ...
class AdaBelief(Solver):
    beta1: float
    beta2: float
    eps: float
    wd: float
    amsgrad: bool
    weight_decouple: bool
    fixed_decay: bool
    rectify: bool
    rule: str
    default: float
    settings: tuple[Any, ...]
    def __init__(self, alpha: _Rate = 0.001, /, beta1: float = 0.9, beta2: float = 0.999, eps: float = 1e-08, wd: float = 0.0, amsgrad: bool = False, weight_decouple: bool = False, fixed_decay: bool = False, rectify: bool = False, **options: Unpack[WithAlpha]) -> None: ...
class AdaBound(Solver):
    beta1: float
    beta2: float
    eps: float
    final_lr: float
    gamma: float
    rule: str
    default: float
    settings: tuple[Any, ...]
    def __init__(self, alpha: _Rate = 0.001, /, beta1: float = 0.9, beta2: float = 0.999, eps: float = 1e-08, final_lr: float = 0.1, gamma: float = 0.001, **options: Unpack[WithAlpha]) -> None: ...
class Adadelta(Solver):
    decay: float
    eps: float
    rule: str
    settings: tuple[Any, ...]
    default: float
    def __init__(self, lr: _Rate = 1.0, /, decay: float = 0.95, eps: float = 1e-06, **options: Unpack[Options]) -> None: ...
class Adagrad(Solver):
    eps: float
    rule: str
    settings: tuple[Any, ...]
    default: float
    row_sparse: bool
    def __init__(self, lr: _Rate = 0.01, /, eps: float = 1e-08, **options: Unpack[Options]) -> None: ...
class Adam(Solver):
    beta1: float
    beta2: float
    eps: float
    rule: str
    settings: tuple[Any, ...]
    default: float
    row_sparse: bool
    def __init__(self, alpha: _Rate = 0.001, /, beta1: float = 0.9, beta2: float = 0.999, eps: float = 1e-08, **options: Unpack[WithAlpha]) -> None: ...
class AdamW(Solver):
    beta1: float
    beta2: float
    eps: float
    wd: float
    rule: str
    settings: tuple[Any, ...]
    default: float
    def __init__(self, alpha: _Rate = 0.001, /, beta1: float = 0.9, beta2: float = 0.999, eps: float = 1e-08, wd: float = 0.0001, **options: Unpack[WithAlpha]) -> None: ...
class Adamax(Solver):
    beta1: float
    beta2: float
    eps: float
    rule: str
    settings: tuple[Any, ...]
    default: float
    def __init__(self, alpha: _Rate = 0.002, /, beta1: float = 0.9, beta2: float = 0.999, eps: float = 1e-08, **options: Unpack[WithAlpha]) -> None: ...
class Lamb(Solver):
    beta1: float
    beta2: float
    gamma_l: float
    gamma_u: float
    eps: float
    bias_correction: bool
    rule: str
    default: float
    settings: tuple[Any, ...]
    def __init__(self, eta: _Rate = 0.001, /, beta1: float = 0.9, beta2: float = 0.999, gamma_l: float = 0.0, gamma_u: float = 10.0, eps: float = 1e-06, bias_correction: bool = False, **options: Unpack[WithEta]) -> None: ...
class Lars(Solver):
    momentum: float
    coefficient: float
    eps: float
    rule: str
    settings: tuple[Any, ...]
    default: float
    def __init__(self, lr: _Rate = 0.001, /, momentum: float = 0.9, coefficient: float = 0.001, eps: float = 1e-06, **options: Unpack[Options]) -> None: ...
class Lion(Solver):
    beta1: float
    beta2: float
    rule: str
    settings: tuple[Any, ...]
    default: float
    def __init__(self, lr: _Rate = 0.0001, /, beta1: float = 0.9, beta2: float = 0.99, **options: Unpack[WithBetas]) -> None: ...
class Momentum(Solver):
    momentum: float
    rule: str
    settings: tuple[Any, ...]
    default: float
    row_sparse: bool
    def __init__(self, lr: _Rate = 0.001, /, momentum: float = 0.9, **options: Unpack[Options]) -> None: ...
class Nesterov(Solver):
    momentum: float
    rule: str
    settings: tuple[Any, ...]
    default: float
    def __init__(self, lr: _Rate = 0.001, /, momentum: float = 0.9, **options: Unpack[Options]) -> None: ...
class Options(TypedDict, total=False):
    params: _Parameters
    lr: float
    weight_decay: float
class RMSprop(Solver):
    decay: float
    eps: float
    rule: str
    settings: tuple[Any, ...]
    default: float
    def __init__(self, lr: _Rate = 0.001, /, decay: float = 0.9, eps: float = 1e-08, **options: Unpack[Options]) -> None: ...
class RMSpropGraves(Solver):
    decay: float
    momentum: float
    eps: float
    rule: str
    settings: tuple[Any, ...]
    default: float
    def __init__(self, lr: _Rate = 0.0001, /, decay: float = 0.95, momentum: float = 0.9, eps: float = 0.0001, **options: Unpack[Options]) -> None: ...
class Sgd(Solver):
    rule: str
    settings: tuple[Any, ...]
    default: float
    row_sparse: bool
    def __init__(self, lr: _Rate = 0.001, /, **options: Unpack[Options]) -> None: ...
class SgdW(Solver):
    momentum: float
    wd: float
    rule: str
    settings: tuple[Any, ...]
    default: float
    def __init__(self, lr: _Rate = 0.001, /, momentum: float = 0.9, wd: float = 0.0001, **options: Unpack[Options]) -> None: ...
class WithAlpha(TypedDict, total=False):
    params: _Parameters
    lr: float
    weight_decay: float
    alpha: float
    betas: tuple[float, float]
class WithBetas(TypedDict, total=False):
    params: _Parameters
    lr: float
    weight_decay: float
    betas: tuple[float, float]
class WithEta(TypedDict, total=False):
    params: _Parameters
    lr: float
    weight_decay: float
    eta: float
    betas: tuple[float, float]
