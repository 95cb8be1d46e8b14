"""Head: a blob of a net that can be called, so that an Updater takes it as its loss."""

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import cygrad.autograd as autograd
from cygrad.core.errors import cut, described
from cygrad.core.graph.tensor import Tensor
from cygrad.core.interop.numpy import asarray
from cygrad.nets.definition import Blob
from cygrad.nets.lowering import Run
from cygrad.nets.state import state_of

if TYPE_CHECKING:
    from cygrad.nets.net import Net


class Head(Blob):
    """A blob with its net, from Net.head(). head(*values) runs the operators of the net as eager code, on values for
    the inputs in their order, and returns the tensor of the blob. In record() it has a graph, so its backward() adds
    to the .grad of the variables that the net binds."""

    __slots__ = ("net",)

    net: "Net"

    def __new__(cls, net: "Net", blob: str) -> "Head":
        self = super().__new__(cls, blob)
        self.net = net
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return Head, (self.net, str(self))

    @property
    def training_operator(self) -> str | None:
        """The type of the first operator of a net captured in train mode that draws random numbers, or writes to a
        binding, such as running statistics: calls are then no evaluation in predict mode. Else None."""
        if not self.net.training: return None
        return next((o.type for o in self.net.operators
                     if "generator" in o.arguments or any(y in self.net.bindings for y in o.outputs)), None)

    def __call__(self, *values: Any) -> Tensor:
        net = self.net
        names = [str(name) for name in net.inputs if name not in net.bindings]
        if len(values) != len(names):
            raise TypeError(f"the head {described(str(self))} of net {cut(net.name)} takes a value for each input, "
                            f"{', '.join(names) or 'none'}, got {len(values)} value{'s' * (len(values) != 1)}")
        tensors = {name: x if isinstance(x, Tensor) else asarray(x) for name, x in zip(names, values, strict=True)}
        with nullcontext() if net.training is None else autograd.train_mode() if net.training else \
                autograd.predict_mode():
            found: Tensor = Run(net, tensors, [str(self)]).execute()[str(self)]
        return found


def head(net: "Net", blob: Any) -> Head:
    """As Net.head."""
    if blob is None:
        if len(net.outputs) != 1:
            raise ValueError(f"Net.head: net {cut(net.name)} has {len(net.outputs)} outputs, "
                             f"{cut(', '.join(net.outputs)) or 'none'}; name the one that is the loss")
        blob = net.outputs[0]
    name = state_of(net).need(blob, "Net.head")
    if not net.versions(name):
        raise ValueError(f"Net.head: no operator of net {cut(net.name)} writes {described(str(name))}; name its loss")
    gradient = next((o for o in net.operators if o.is_gradient), None)
    if gradient is not None:
        raise RuntimeError(f"Net.head: net {cut(net.name)} has the gradient operator {cut(repr(gradient))}; an Updater "
                           f"runs backward itself, so capture the forward pass alone")
    return Head(net, name)
