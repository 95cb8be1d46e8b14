# Written by tools/make_stubs.py; do not edit.
from typing import Any, final
from typing_extensions import disjoint_base
from cygrad.core.graph.attributes import Attributes
from cygrad.core.graph.operator import Operator

DTYPES: tuple[Any, ...]
OPERATORS: dict[Any, Any]
@disjoint_base
class Rule(Operator):
    @property
    def states(self) -> Any: ...
    @property
    def settings(self) -> Any: ...
@disjoint_base
class Settings(Attributes):
    @property
    def values(self) -> Any: ...
@final
class AMSBoundUpdate(Rule):
    pass
@final
class AMSGRADUpdate(Rule):
    pass
@final
class AdaBoundUpdate(Rule):
    pass
@final
class AdadeltaUpdate(Rule):
    pass
@final
class AdagradUpdate(Rule):
    pass
@final
class AdamUpdate(Rule):
    pass
@final
class AdamWUpdate(Rule):
    pass
@final
class AdamaxUpdate(Rule):
    pass
class Belief(Rule):
    pass
@final
class LambUpdate(Rule):
    pass
@final
class LarsUpdate(Rule):
    pass
@final
class LionUpdate(Rule):
    pass
@final
class MomentumUpdate(Rule):
    pass
@final
class NesterovUpdate(Rule):
    pass
@final
class RMSpropGravesUpdate(Rule):
    pass
@final
class RMSpropUpdate(Rule):
    pass
@final
class SgdUpdate(Rule):
    pass
@final
class SgdWUpdate(Rule):
    pass
@final
class AdaBeliefMaxUpdate(Belief):
    pass
@final
class AdaBeliefUpdate(Belief):
    pass
def adabelief_max_update(w: Any, g: Any, lr: Any, t: Any, m: Any, v: Any, v_max: Any, beta1: Any = 0.9, beta2: Any = 0.999, eps: Any = 1e-08, wd: Any = 0.0, fixed_decay: Any = False, rectify: Any = False, weight_decay: Any = 0.0) -> Any: ...
def adabelief_update(w: Any, g: Any, lr: Any, t: Any, m: Any, v: Any, beta1: Any = 0.9, beta2: Any = 0.999, eps: Any = 1e-08, wd: Any = 0.0, fixed_decay: Any = False, rectify: Any = False, weight_decay: Any = 0.0) -> Any: ...
def adabound_update(w: Any, g: Any, lr: Any, t: Any, m: Any, v: Any, beta1: Any = 0.9, beta2: Any = 0.999, eps: Any = 1e-08, final_lr: Any = 0.1, gamma: Any = 0.001, first_lr: Any = 0.001, weight_decay: Any = 0.0) -> Any: ...
def adadelta_update(w: Any, g: Any, lr: Any, t: Any, v: Any, u: Any, decay: Any = 0.95, eps: Any = 1e-06, weight_decay: Any = 0.0) -> Any: ...
def adagrad_update(w: Any, g: Any, lr: Any, t: Any, v: Any, eps: Any = 1e-08, weight_decay: Any = 0.0) -> Any: ...
def adam_update(w: Any, g: Any, lr: Any, t: Any, m: Any, v: Any, beta1: Any = 0.9, beta2: Any = 0.999, eps: Any = 1e-08, weight_decay: Any = 0.0) -> Any: ...
def adamax_update(w: Any, g: Any, lr: Any, t: Any, m: Any, u: Any, beta1: Any = 0.9, beta2: Any = 0.999, eps: Any = 1e-08, weight_decay: Any = 0.0) -> Any: ...
def adamw_update(w: Any, g: Any, lr: Any, t: Any, m: Any, v: Any, beta1: Any = 0.9, beta2: Any = 0.999, eps: Any = 1e-08, wd: Any = 0.0001, first_lr: Any = 0.001) -> Any: ...
def amsbound_update(w: Any, g: Any, lr: Any, t: Any, m: Any, v: Any, v_max: Any, beta1: Any = 0.9, beta2: Any = 0.999, eps: Any = 1e-08, final_lr: Any = 0.1, gamma: Any = 0.001, bias_correction: Any = False, first_lr: Any = 0.001, weight_decay: Any = 0.0) -> Any: ...
def amsgrad_update(w: Any, g: Any, lr: Any, t: Any, m: Any, v: Any, v_max: Any, beta1: Any = 0.9, beta2: Any = 0.999, eps: Any = 1e-08, bias_correction: Any = False, weight_decay: Any = 0.0) -> Any: ...
def lamb_update(w: Any, g: Any, lr: Any, t: Any, m: Any, v: Any, beta1: Any = 0.9, beta2: Any = 0.999, eps: Any = 1e-06, gamma_l: Any = 0.0, gamma_u: Any = 10.0, bias_correction: Any = False, wd: Any = 0.0) -> Any: ...
def lars_update(w: Any, g: Any, lr: Any, t: Any, v: Any, momentum: Any = 0.9, coefficient: Any = 0.001, eps: Any = 1e-06, wd: Any = 0.0) -> Any: ...
def lion_update(w: Any, g: Any, lr: Any, t: Any, m: Any, beta1: Any = 0.9, beta2: Any = 0.99, wd: Any = 0.0) -> Any: ...
def momentum_update(w: Any, g: Any, lr: Any, t: Any, v: Any, momentum: Any = 0.9, weight_decay: Any = 0.0) -> Any: ...
def nesterov_update(w: Any, g: Any, lr: Any, t: Any, v: Any, momentum: Any = 0.9, weight_decay: Any = 0.0) -> Any: ...
def rmsprop_graves_update(w: Any, g: Any, lr: Any, t: Any, v: Any, m: Any, d: Any, decay: Any = 0.95, momentum: Any = 0.9, eps: Any = 0.0001, weight_decay: Any = 0.0) -> Any: ...
def rmsprop_update(w: Any, g: Any, lr: Any, t: Any, v: Any, decay: Any = 0.9, eps: Any = 1e-08, weight_decay: Any = 0.0) -> Any: ...
def sgd_update(w: Any, g: Any, lr: Any, t: Any, weight_decay: Any = 0.0) -> Any: ...
def sgdw_update(w: Any, g: Any, lr: Any, t: Any, v: Any, momentum: Any = 0.9, wd: Any = 0.0001, first_lr: Any = 0.001) -> Any: ...
