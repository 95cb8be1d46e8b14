"""A net as text: a header, and a line for each operator."""

from textwrap import indent
from typing import TYPE_CHECKING

from cygrad.core.errors import cut
from cygrad.core.graph.tensor import Tensor
from cygrad.nets.definition import NETS_OF, shown_call, shown_name, shown_outputs

if TYPE_CHECKING:
    from cygrad.nets.net import Net

WIDEST = 24                 # the = of all lines stand below each other, except after longer outputs
MODES = {None: "", True: ", train mode", False: ", predict mode"}


def text(net: "Net") -> str:
    """As Net.text."""
    n = len(net)
    lines = [f"net {cut(net.name)}: {n:,} operator{'' if n == 1 else 's'}{MODES[net.training]}"]
    lines += listed("inputs", [described_blob(net, name) for name in net.inputs])
    lines += listed("bindings", [described_tensor(name, x) for name, x in net.bindings.items()])
    lines += listed("constants", [described_constant(net, name) for name in net.constants])
    lines += listed("outputs", [described_blob(net, name) for name in net.outputs])
    if n: lines.append("")
    left = [shown_outputs(o) for o in net.operators]
    widest = max((len(t) for t in left if len(t) <= WIDEST), default=0)
    digits = len(str(n - 1))
    for k, (outputs, operator) in enumerate(zip(left, net.operators, strict=True)):
        sign = "=" if outputs else " "
        lines.append(f"  {k:>{digits}}  {outputs:<{widest}} {sign} {shown_call(operator)}")
    for k, operator in enumerate(net.operators):
        for key in NETS_OF.get(operator.type, ()):
            lines += ["", f"  {key} of {k}: " + indent(text(operator.arguments[key].net), "  ").lstrip()]
    return "\n".join(lines)


def listed(what: str, items: list[str]) -> list[str]:
    """A line for each item, the first one after the word `what`."""
    return [f"  {what if k == 0 else '':<9}  {item}" for k, item in enumerate(items)]


def described_blob(net: "Net", name: str) -> str:
    """A blob with its dtype and shape, if they are known."""
    known = net.shapes.get(name)
    if not isinstance(known, tuple | list) or len(known) != 2: return shown_name(name)
    return f"{shown_name(name)}: {known[1]} {known[0]}"


def described_tensor(name: str, x: Tensor) -> str:
    """A tensor with its dtype and shape."""
    return f"{shown_name(name)}: {x.dtype} {tuple(x.shape)}"


def described_constant(net: "Net", name: str) -> str:
    """A constant: a number with its value, a tensor with its dtype and shape."""
    value = net.constants[name]
    if isinstance(value, Tensor): return described_tensor(name, value)
    return f"{shown_name(name)} = {value!r}"
