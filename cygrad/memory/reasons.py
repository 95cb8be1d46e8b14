"""memory.why: the class that presents the holders of a tensor's memory."""

from cygrad.core.errors import module_of, type_name
from cygrad.core.graph.tensor import Tensor
from cygrad.core.sizes import words
from cygrad.memory.holders import holders


class why:
    """Lists what keeps the memory of tensor `t` alive. It prints as a list; `.entries` has the same as (number,
    holder), and the numbers add up to `.holders`. `.bytes` is the size of the memory, which is freed when the last
    holder releases it, and `.category` is its category.

    Holders are tensors and their views, operations that save the memory for backward, NumPy arrays that share it, and
    variables whose gradient it is. All numbers are exact; for tensors other than `t` only the number is known. If an
    open `memory.profile()` recorded the allocation, `.made_by` is the operation and `.line` its line. Raises TypeError
    if `t` is not a tensor."""

    def __init__(self, t):
        if not isinstance(t, Tensor):
            raise TypeError(f"memory.why takes a tensor, got {type_name(t)}")
        self.bytes, self.category, self._owner, origin, self.holders, self.entries = holders(t)
        self.made_by, self.line = origin or ("", "")

    def __repr__(self):
        if self._owner is not None:
            head = f"{words(self.bytes)} of a {module_of(self._owner)}.{self._owner.__name__}, which cygrad does not " \
                   f"count"
        else:
            head = f"{words(self.bytes)} of {self.category}"
        if self.made_by: head += f", made by {self.made_by} at {self.line}"
        width = len(str(self.holders))
        lines = [f"  {count:>{width}}  {who}" for count, who in self.entries]
        return "\n".join([f"{head}; held by", *lines])
