"""Places the nodes of a drawing in layers, after Sugiyama, Tagawa and Toda (1981): each edge goes down, an edge over
several layers bends around the nodes between, and few edges cross."""

from collections.abc import Sequence

SWEEPS = 12                 # passes over crossings and positions; more change little
LEAF = 1e-4                 # the weight of a leaf's wish


class Vertex:
    """A node with a width: its layer, its place in the layer from 0 on, and x, its middle."""

    __slots__ = "width", "layer", "order", "x", "above", "below"

    def __init__(self, width: float, layer: int):
        self.width, self.layer, self.order, self.x = width, layer, 0, 0.0
        self.above: list[Vertex] = []
        self.below: list[Vertex] = []


def longest_paths(predecessors: Sequence[Sequence[int]]) -> list[int]:
    """The layer of each node: one more than the largest of its predecessors, which have smaller numbers."""
    layers: list[int] = []
    for before in predecessors: layers.append(1 + max((layers[k] for k in before), default=-1))
    return layers


def bends(source: Vertex, target: Vertex, width: float) -> list[Vertex]:
    """New nodes of an edge, one in each layer between its ends, which are linked through them."""
    chain = [source, *(Vertex(width, k) for k in range(source.layer + 1, target.layer)), target]
    for upper, lower in zip(chain, chain[1:], strict=False):
        upper.below.append(lower)
        lower.above.append(upper)
    return chain[1:-1]


def arrange(nodes: Sequence[Vertex], gap: float) -> list[list[Vertex]]:
    """Order the nodes of each layer and set their x, with `gap` between neighbours. Returns the layers."""
    layers: list[list[Vertex]] = [[] for _ in range(1 + max((n.layer for n in nodes), default=-1))]
    for node in nodes: layers[node.layer].append(node)
    for layer in layers: number(layer)
    best, fewest = [[*layer] for layer in layers], crossings(layers)
    for sweep in range(SWEEPS if fewest else 0):
        down = sweep % 2 == 0
        for layer in layers if down else layers[::-1]:
            layer.sort(key=lambda n: barycentre(n, down))
            number(layer)
        now = crossings(layers)
        if now < fewest: best, fewest = [[*layer] for layer in layers], now
        if not fewest: break
    for layer in best: number(layer)
    position(best, gap)
    return best


def number(layer: list[Vertex]) -> None:
    for k, node in enumerate(layer): node.order = k


def barycentre(node: Vertex, down: bool) -> float:
    """The mean place of a node's neighbours in the layer that was ordered before; its own place if it has none."""
    near = node.above if down else node.below
    return sum(n.order for n in near) / len(near) if near else node.order


def crossings(layers: list[list[Vertex]]) -> int:
    """The number of pairs of edges between neighbouring layers that cross: the inversions of their lower ends, counted
    by a Fenwick tree."""
    total = 0
    for k, layer in enumerate(layers[:-1]):
        ends = [order for node in layer for order in sorted(n.order for n in node.below)]
        tree = [0] * (len(layers[k + 1]) + 1)
        for seen, end in enumerate(ends):
            i, before = end + 1, 0
            while i: before, i = before + tree[i], i & i - 1        # how many ends so far are at most this one
            total += seen - before
            i = end + 1
            while i < len(tree):
                tree[i] += 1
                i += i & -i
    return total


def position(layers: list[list[Vertex]], gap: float) -> None:
    """Set x so that nodes stand near the middle of their neighbours, in alternating sweeps, and the least left edge is
    0."""
    for layer in layers: place(layer, [0.0] * len(layer), gap)
    for sweep in range(SWEEPS):
        down = sweep % 2 == 0
        for layer in layers if down else layers[::-1]:
            place(layer, [wanted(n, down) for n in layer], gap)
    left = min((n.x - n.width / 2 for layer in layers for n in layer[:1]), default=0.0)
    for layer in layers:
        for node in layer: node.x -= left


def is_leaf(node: Vertex) -> bool:
    """Whether a node has one neighbour at the most. Leaves do not move the others, so a long chain stays straight."""
    return len(node.above) + len(node.below) < 2


def wanted(node: Vertex, down: bool) -> float:
    """The x of a node if it had its layer for itself."""
    near = (node.above if down else node.below) or node.above or node.below
    near = [n for n in near if not is_leaf(n)] or near
    return sum(n.x for n in near) / len(near) if near else node.x


def place(layer: list[Vertex], wanted: list[float], gap: float) -> None:
    """Set the x of a layer's nodes: the least squares of the distances to what is wanted, in this order and without
    overlaps. Neighbours that would overlap form a block with the mean of their wishes (pool adjacent violators)."""
    blocks: list[tuple[float, float, int]] = []     # (sum of the wishes for the first node, of weights, of nodes)
    offsets, x = [], 0.0
    for k, node in enumerate(layer):
        if k: x += (layer[k - 1].width + node.width) / 2 + gap
        offsets.append(x)
        weight, count = LEAF if is_leaf(node) else 1.0, 1
        total = weight * (wanted[k] - x)
        while blocks and blocks[-1][0] / blocks[-1][1] >= total / weight:
            more, w, n = blocks.pop()
            total, weight, count = total + more, weight + w, count + n
        blocks.append((total, weight, count))
    starts = [total / weight for total, weight, count in blocks for _ in range(count)]
    for node, offset, start in zip(layer, offsets, starts, strict=True): node.x = start + offset
