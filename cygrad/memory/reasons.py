"""memory.why: the class that presents the holders of a tensor's memory."""

from weakref import ref

from cygrad.core.errors import module_of, type_name
from cygrad.core.graph.tensor import Tensor
from cygrad.core.sizes import words
from cygrad.memory.holders import holders

MOST_NAMES = 20             # the maximum number of names that are printed


class why:
    """Lists what keeps the memory of tensor `t` alive. It prints as a list; `.entries` has the same as (number,
    holder), and the numbers add up to `.holders`. `.bytes` is the size of the memory, which is freed when the last
    holder releases it, and `.category` is its category.

    Holders are tensors and their views, operations that save the memory for backward, NumPy arrays that share it, and
    variables whose gradient it is. All numbers are exact. If an open `memory.profile()` recorded the allocation,
    `.made_by` is the operation and `.line` its line. Raises TypeError if `t` is not a tensor.

    `.names` are the variables, attributes and containers that lead to the tensors on this memory, such as
    'H.cache["k"][0]', "h in step" for a local variable, and "views[0] in step, of shape (2, 4)" for a tensor other
    than `t`. They are searched for when they are first read, and the list is empty if `t` is gone by then. A container
    that several objects refer to is named by the shortest way from a local variable and from a module."""

    def __init__(self, t):
        if not isinstance(t, Tensor):
            raise TypeError(f"memory.why takes a tensor, got {type_name(t)}")
        self.bytes, self.category, self._owner, origin, self.holders, self.entries = holders(t)
        self.made_by, self.line = origin or ("", "")
        self._tensor, self._names = ref(t), None

    @property
    def names(self):
        """The variables, attributes and containers that lead to the tensors on this memory."""
        if self._names is None:
            from cygrad.memory.naming import names_of
            t = self._tensor()
            self._names = [] if t is None else names_of(t, (__file__,))
        return self._names

    def __repr__(self):
        if self._owner is not None:
            head = f"{words(self.bytes)} of a {module_of(self._owner)}.{self._owner.__name__}, which cygrad does not " \
                   f"count"
        else:
            head = f"{words(self.bytes)} of {self.category}"
        if self.made_by: head += f", made by {self.made_by} at {self.line}"
        width = len(str(self.holders))
        lines = [f"  {count:>{width}}  {who}" for count, who in self.entries]
        names = self.names[:MOST_NAMES]
        if names: lines += ["named", *(f"  {name}" for name in names)]
        if len(names) < len(self.names): lines.append(f"  and {len(self.names) - len(names)} more")
        return "\n".join([f"{head}; held by", *lines])
