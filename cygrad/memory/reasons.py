"""memory.why as users see it."""

from cygrad.core.graph.tensor import Tensor
from cygrad.memory.holders import holders
from cygrad.memory.sizes import words


class why:
    """Who keeps the memory of tensor `t` alive. Printed, it is a list; `.entries` has the same as (how many, who),
    which add up to `.holders`. `.bytes` is the size of the memory, which goes back when the last holder lets go, and
    `.category` what it counts as.

    Tensors keep it, views of it too; so do operations that need it for backward, NumPy arrays that share it, variables
    whose gradient it is. All numbers are exact; of tensors other than `t` only the number is known. While a
    `memory.profile()` is open that has seen the memory being made, `.made_by` is the operation and `.line` its line.
    Raises TypeError for what is no tensor."""

    def __init__(self, t):
        if not isinstance(t, Tensor):
            raise TypeError(f"memory.why: wanted a tensor, got {type(t).__name__}")
        self.bytes, self.category, self._owner, origin, self.holders, self.entries = holders(t)
        self.made_by, self.line = origin or ("", "")

    def __repr__(self):
        if self._owner is not None:
            head = f"{words(self.bytes)} that belong to a {self._owner.__module__}.{self._owner.__name__} and count " \
                   f"nowhere here"
        else:
            head = f"{words(self.bytes)} of {self.category}"
        if self.made_by: head += f", made by {self.made_by} at {self.line}"
        width = len(str(self.holders))
        lines = [f"  {count:>{width}}  {who}" for count, who in self.entries]
        return "\n".join([f"{head}; held by", *lines])
