"""A backend of einops for tensors: after `import cygrad.array_api.einops`, einops.rearrange(x, ...) and the layers of
einops take them and are recorded. (einops.array_api takes tensors without it.)"""

from einops._backends import AbstractBackend

from cygrad.core.graph.tensor import Tensor
from cygrad.core.late_bound import namespace


class EinopsBackend(AbstractBackend):
    """What einops asks of a library. einops finds the class as a subclass of its own."""

    framework_name = "cygrad"

    def __init__(self):
        self.cygrad = namespace()

    def is_appropriate_type(self, tensor):
        return isinstance(tensor, Tensor)

    def from_numpy(self, x):
        return self.cygrad.asarray(x)

    def to_numpy(self, x):
        return x.detach().numpy()

    def arange(self, start, stop):
        return self.cygrad.arange(start, stop)

    def reduce(self, x, operation, axes):
        return getattr(self.cygrad, operation)(x, tuple(axes))

    def transpose(self, x, axes):
        return self.cygrad.permute(x, tuple(axes))

    def stack_on_zeroth_dimension(self, tensors):
        return self.cygrad.stack(tensors)

    def add_axis(self, x, new_position):
        return self.cygrad.expand_dims(x, new_position)

    def tile(self, x, repeats):
        return self.cygrad.tile(x, repeats)

    def concat(self, tensors, axis):
        return self.cygrad.concat(tensors, axis)

    def is_float_type(self, x):
        return x.dtype.kind == "f"

    def einsum(self, pattern, *x):
        return self.cygrad.einsum(pattern, *x)
