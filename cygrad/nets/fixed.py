"""Why a net that was captured for some sizes does not run with others: the constant that fixes a size."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from cygrad.core.errors import cut, described
from cygrad.core.graph.tensor import Tensor
from cygrad.nets.definition import Operator


class OtherSize(NamedTuple):
    """A size of an example that is another one in a run."""

    blob: str
    axis: int
    size: int


def fixing(operators: Sequence[Operator], constants: Mapping[str, Any], shapes: Mapping[str, Any],
           inputs: Mapping[str, Any], failed: int) -> str | None:
    """What a note says of an operator that failed for the shapes of `inputs`, a dict from blob to (shape, dtype): which
    operator before it, the nearest one, has a size of an example, of `shapes`, as a constant. None if there is none."""
    changes: dict[int, OtherSize] = {}                 # by the sizes of the examples
    for blob, (shape, _) in inputs.items():
        example = shapes[blob][0] if blob in shapes else ()
        if len(example) != len(shape): continue
        for axis, (old, new) in enumerate(zip(example, shape, strict=True)):
            if old != new: changes.setdefault(old, OtherSize(blob, axis, new))
    found = next(places(operators, constants, changes, failed), None)
    if found is None: return None
    what, n, size = found
    blob, axis, new = changes[size]
    multiple = "" if n == size else f"a multiple of {size}, "
    return (f"cygrad: {what} has the constant {n}, {multiple}the size of axis {axis} of the example of "
            f"{described(blob)} of shape {tuple(shapes[blob][0])}, and this run has {new} there; write the function "
            f"with -1 for this size, or so that it follows from a tensor, and capture it again")


def places(operators: Sequence[Operator], constants: Mapping[str, Any], changes: Mapping[int, OtherSize],
           failed: int) -> Iterator[tuple[str, int, int]]:
    """The operators with one of the sizes among their arguments, or among the sizes of a constant that they read, the
    nearest first: what to call them, the number, and the size. Then those with a multiple of one."""
    queue, seen, read = [failed], {failed}, list[int]()
    while queue:
        read.append(k := queue.pop(0))
        for name in operators[k].inputs:
            at = next((j for j in range(k - 1, -1, -1) if name in operators[j].outputs), None)
            if at is None or at in seen: continue
            seen.add(at)
            queue.append(at)
    for multiples in (False, True):
        for k in read:
            o = operators[k]
            for n in (*numbers(o.arguments.values()), *sizes_of(o, constants)):
                for size in changes:
                    if n == size or multiples and size > 1 and n > 0 and n % size == 0:
                        yield f"operator {k}, {cut(repr(o))},", n, size


def numbers(values: Any) -> Iterator[int]:
    """The ints in the values of arguments."""
    for value in values:
        if isinstance(value, tuple): yield from numbers(value)
        elif isinstance(value, slice): yield from numbers((value.start, value.stop))
        elif type(value) is int: yield value


def sizes_of(o: Operator, constants: Mapping[str, Any]) -> Iterator[int]:
    """The sizes of the constants that an operator reads."""
    for name in o.inputs:
        value = constants.get(name) if name is not None else None
        if isinstance(value, Tensor): yield from value.shape
