"""The levels of cg.func that are open in this thread, and reverse mode among them.

A gradient is computed below all levels, on tensors without lifts. pull() goes down to there: at a level of lanes it
takes all of them, at a level of tangents it computes the gradient and then its tangent. With heads h of outputs y, the
gradient of x is the derivative of sum(h y). So its tangent is the derivative of sum(h dy) + sum(dh y), where dy and dh
are tangents, and y and dy have been computed from x by recorded operations."""

from threading import local

from cygrad.autograd.passes import grad_at_levels
from cygrad.core.graph.lifts import Level, depth, set_depth
from cygrad.core.interop.creation import zeros_like
from cygrad.core.thread_state import is_recording
from cygrad.ops.shapes.join import stack
from cygrad.ops.shapes.shape import broadcast_to


class State(local):
    def __init__(self):
        self.levels = []


state = State()


class level:
    """A scope in which a level is open, the innermost one: `with level(lanes) as new`. `lanes`: their number; None: a
    level of tangents."""

    def __init__(self, lanes=None):
        self.lanes = lanes

    def __enter__(self) -> Level:
        self.outside = state.levels
        self.opened = Level(self.lanes)
        state.levels = [*self.outside[:self.opened.depth - 1], self.opened]
        return self.opened

    def __exit__(self, *_):
        self.opened.close()
        state.levels = self.outside


class below:
    """A scope in which operations see the levels below `level` only."""

    def __init__(self, level):
        self.level = level

    def __enter__(self) -> None:
        self.before = set_depth(self.level.depth - 1)

    def __exit__(self, *_):
        set_depth(self.before)


def innermost():
    """The innermost level that operations see, or None."""
    return state.levels[depth() - 1] if depth() else None


def all_lanes(x, level):
    """All lanes of `x`, which repeats if it has none. Call this below the level."""
    lanes = level.value(x)
    return broadcast_to(x, (level.lanes, *x.shape)) if lanes is None else lanes


def entering(x):
    """`x` as a new variable, or as a recorded view of `x` if that is tracked while the thread records: what is computed
    from it can be differentiated by it."""
    top = innermost()
    if top is None:
        if is_recording() and x.requires_grad: return broadcast_to(x, x.shape)
        return x.detach().requires_grad_()
    with below(top):
        if top.lanes: return top.stand_in(entering(all_lanes(x, top)))
        y = entering(x)
    tangent = top.value(x)
    if tangent is not None: top.give(y, tangent)
    return y


def without_graph(x):
    """`x` without its graph. It keeps its tangents and lanes, which lose theirs too; detach() would drop tangents."""
    top = innermost()
    if top is None: return x.detach()
    lift = top.value(x)
    with below(top):
        if top.lanes: return without_graph(x) if lift is None else top.stand_in(without_graph(lift))
        y = without_graph(x)
        if lift is not None: top.give(y, without_graph(lift))
    return y


def pull(outputs, heads, inputs, create_graph, retain, built):
    """The gradients of sum(head * output) for the inputs, which entering() made when `built` levels were open; None
    where it does not depend on one."""
    top = innermost()
    if top is None or depth() > built and built == 0 and top.lanes and not create_graph:
        found = [(y, h) for y, h in zip(outputs, heads, strict=True) if y.requires_grad]
        if not found: return [None] * len(inputs)
        outputs, heads = zip(*found, strict=True)
        return list(grad_at_levels(outputs, inputs, heads, retain or create_graph, create_graph or top is not None,
                                   True))
    if top.lanes and depth() > built: return one_by_one(top, outputs, heads, inputs, create_graph, built)
    with below(top):
        if top.lanes:
            gradients = pull([all_lanes(y, top) for y in outputs], [all_lanes(h, top) for h in heads],
                             [top.value(x) for x in inputs], create_graph, retain, built)
            return [None if g is None else top.stand_in(g) for g in gradients]
        gradients = pull(outputs, heads, inputs, create_graph, True, built)
        pairs = [(top.value(y), h) for y, h in zip(outputs, heads, strict=True)]
        pairs += [(y, top.value(h)) for y, h in zip(outputs, heads, strict=True)]
        pairs = [(y, h) for y, h in pairs if y is not None and h is not None]
        if not pairs: return gradients
        tangents = pull(*zip(*pairs, strict=True), inputs, create_graph, retain, built)
        for i, (g, tangent) in enumerate(zip(gradients, tangents, strict=True)):
            if tangent is None: continue
            g = gradients[i] = zeros_like(inputs[i]) if g is None else broadcast_to(g, g.shape)     # (of its own)
            top.give(g, tangent)
    return gradients


def one_by_one(level, outputs, heads, inputs, create_graph, built):
    """pull() of heads that have lanes, which the outputs and inputs have not."""
    with below(level):
        full = [all_lanes(h, level) for h in heads]
        lanes = [pull(outputs, [h[k] for h in full], inputs, create_graph, True, built) for k in range(level.lanes)]
        return [None if gs[0] is None else level.stand_in(stack(list(gs))) for gs in zip(*lanes, strict=True)]
