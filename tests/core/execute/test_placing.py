"""Places of buffers in an arena: none overlap, and arenas are as small as they can be, or nearly."""

import random
import statistics

import pytest

import cygrad as cg
from cygrad.core.execute.program import Program

from benchmarks import plans


def overlaps(plan):
    """The pairs of rows that share an address and a step."""
    events = sorted([(r.first, 1, i) for i, r in enumerate(plan.rows)] + [(r.last + 1, 0, i)
                                                                         for i, r in enumerate(plan.rows)])
    alive, found = set(), []
    for _, begins, i in events:
        r = plan.rows[i]
        if not begins: alive.discard(i)
        else:
            found += [(i, k) for k in alive if r.offset < plan.rows[k].offset + plan.rows[k].nbytes
                      and plan.rows[k].offset < r.offset + r.nbytes]
            alive.add(i)
    return found


def test_no_buffers_overlap_and_most_arenas_are_the_bound():
    ratios = []
    for seed in range(40):
        net, shapes = plans.random_net(seed)
        plan = net.plan(shapes)
        assert overlaps(plan) == [] and max(r.offset + r.nbytes for r in plan.rows) <= plan.peak_bytes
        ratios.append(plans.ratio(plan))
    assert ratios.count(1) >= 39 and max(ratios) < 1.01 and statistics.mean(ratios) < 1.0005


def long_net(n, seed=0):
    """`n` operators on vectors of many lengths, each of which reads one of the last few."""
    net, dice = cg.graph.Net("long"), random.Random(seed)
    names = ["x"]
    for _ in range(n):
        name = dice.choice(names[-6:])
        names.append(net.concat([name, "x"], axis=0) if dice.random() < 0.3 else net.getitem(
            name, index=(slice(0, dice.randrange(1, 300)),)) if dice.random() < 0.5 else net.exp(name))
    net.sum(net.concat(names[-6:], axis=0), "y")
    net.share_blobs()
    return net


@pytest.mark.parametrize("n", [1, 2, 3, 64, 65, 3000])
def test_numbers_of_buffers(n):
    """Also of a tree whose leaves they fill."""
    plan = long_net(n).plan({"x": (100,)})
    assert overlaps(plan) == [] and plan.bound_bytes <= plan.peak_bytes <= 1.01 * plan.bound_bytes


def test_buffers_of_one_size_that_live_as_long_as_each_other():
    def f(x): return tuple(cg.exp(x * k) for k in range(40))

    program = Program(f, cg.ones(16))
    assert program.arena_bytes == program.bound_bytes == 40 * 64
    assert len({offset for _, offset, *_ in program.lives if offset is not None}) == 40
    assert Program(lambda x: None, cg.ones(16)).arena_bytes == 0
