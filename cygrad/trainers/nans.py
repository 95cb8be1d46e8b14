"""Where a NaN comes from: the update that met one runs again, and each operator is checked."""

from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import numpy as np

from cygrad.autograd import backward, detect_anomaly, record
from cygrad.core.errors import described
from cygrad.core.execute.generator import default_generator
from cygrad.core.graph.tensor import Tensor


def has_nan(x: Any) -> bool:
    """Whether a tensor, or an array of floating-point numbers, has a NaN."""
    a = x.detach().numpy() if isinstance(x, Tensor) else np.asarray(x)
    return a.dtype.kind == "f" and a.size > 0 and bool(np.isnan(np.min(a)))     # (min of a NaN is a NaN)


def raise_nan(who: str, what: str, loss: Callable[..., Any], batch: tuple[Any, ...], state: tuple[int, int],
              parameters: Mapping[str, Tensor]) -> NoReturn:
    """Raise FloatingPointError because `what` has a NaN. It names the first operator that computed one, and its line.
    state: that of the default generator before the forward pass."""
    source = origin(loss, batch, state, parameters)
    raise FloatingPointError(f"{who}: {what} has a NaN: {source}")


def origin(loss: Callable[..., Any], batch: tuple[Any, ...], state: tuple[int, int],
           parameters: Mapping[str, Tensor]) -> str:
    for k, x in enumerate(batch):
        if isinstance(x, (Tensor, np.ndarray)) and has_nan(x): return f"argument {k} of the batch has one already"
    for name, x in parameters.items():
        if has_nan(x): return f"the parameter {described(name)} has one already"
    default_generator.__setstate__(state)
    try:
        with detect_anomaly(forward=True):
            with record(): y = loss(*batch)
            backward(y)
    except RuntimeError as e:
        if "the first NaN" in str(e): return str(e)
        raise
    return "the same update, repeated, has none; the loss depends on something that changes, such as a generator"
