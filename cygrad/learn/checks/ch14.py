"""Checks of chapter 14."""

import cygrad as cg
from cygrad.learn.checking import equal, expect, live, pair


def largest(reader):
    x = cg.random.Generator(0).normal((64, 32))
    w = cg.random.Generator(1).normal((128, 32)).attach_grad()

    def step():
        with cg.record():
            h = cg.tanh(cg.linear(x, w))
            y = cg.exp(h * 2.0)
        return h, y.sum()

    v = cg.ones((64, 32)).attach_grad()

    def concatenated():
        with cg.record(): a = cg.exp(v)
        b = cg.exp(x[:32])
        return a, b, cg.concatenate([x, x[:16]])

    for f in (step, concatenated):
        with cg.memory.profile() as p: f()
        sums = {}
        for r in p.at_peak(): sums[r.operation] = sums.get(r.operation, 0) + r.bytes
        before = sums.pop("before", 0)
        right = max(sums.items(), key=lambda item: item[1])
        single = max((r for r in p.at_peak() if r.operation != "before"), key=lambda r: r.bytes)
        got = tuple(pair("(operation, bytes)", reader.largest(f)))
        equal("The pair", got, right, "Sum the bytes of the rows of `p.at_peak()` by their operation, without "
                                      "\"before\".",
              [(("before", before), "What was alive before the profile does not count."),
               ((single.operation, single.bytes), "This is the largest row. An operation can have several: add them.")])


def history(reader):
    w = cg.ones((4, 4)).attach_grad()
    batches = [cg.random.Generator(k).normal((256, 4)) for k in range(3)]
    right = [cg.square(cg.tanh(x @ w.detach())).mean().item() for x in batches]
    before = live()
    got = reader.history(w, batches)
    equal("The list of losses", got, right, "The values must be those of before.")
    left = live() - before
    expect(left == 0, f"After the return, {left:,} bytes are live that were not before. A loss that is a tensor keeps "
                      "its graph, and the graph keeps what it has saved. Append `loss.item()`.")
    expect(all(isinstance(v, float) for v in got), f"The list has {type(got[0]).__name__}s, but floats are right.")
