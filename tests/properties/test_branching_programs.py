"""Random programs with If and While inside each other, as nets, and written out in eager code.

CYGRAD_PROGRAMS is the number of programs (60). `make test-all` runs 2,000."""

import os

import numpy as np
from branching import Block, eager_gradients, values

import cygrad as cg

COUNT = int(os.environ.get("CYGRAD_PROGRAMS", "300")) // 5


def test_values_and_gradients_are_those_of_eager_code():
    chosen = 0
    for seed in range(COUNT):
        r = np.random.default_rng(seed)
        block, arrays = Block(r), [r.standard_normal((2, 2)) for _ in range(3)]
        net = block.net()
        y = net.outputs[0]
        with np.errstate(all="ignore"):
            wanted, gradients = eager_gradients(lambda a, b, c, block=block: block.run(a, b, c).sum(), *arrays)
            net.sum(y, "loss")
            net.outputs = ["loss", y]
            found = net.add_gradient_operators(["loss"])
            names = [found[name] for name in "abc" if name in found]
            blobs = {name: a for name, a in zip("abc", arrays, strict=True) if name in net.inputs}
            loss, *made = values(net, "loss", *names, **blobs)
        np.testing.assert_allclose(loss, wanted, rtol=1e-12, atol=1e-14)    # (sums over other strides can differ)
        left = iter(made)
        for name, g in zip("abc", gradients, strict=True):
            h = next(left) if name in found else np.zeros((2, 2))
            np.testing.assert_allclose(h, g, rtol=1e-9, atol=1e-12, err_msg=f"seed {seed}, {name}")
        chosen += any(o.type in ("If", "While") for o in net.operators)
    assert chosen > COUNT // 2


def test_plans_of_random_programs_are_what_runs_take():
    for seed in range(COUNT // 5):
        r = np.random.default_rng(seed)
        net = Block(r).net()
        net.sum(net.outputs[0], "loss")
        net.outputs = "loss"
        net.add_gradient_operators(["loss"])
        shapes = dict.fromkeys(net.inputs, ((8, 8), "float64"))
        plan, workspace = net.plan(shapes), cg.graph.Workspace()
        for name in net.inputs: workspace.feed(name, r.standard_normal((8, 8)))
        before = cg.memory.stats()["live_bytes"]
        with np.errstate(all="ignore"): workspace.run(net)
        assert cg.memory.stats()["live_bytes"] - before == plan.peak_bytes
        with cg.memory.events() as events, np.errstate(all="ignore"): workspace.run(net)
        assert not events
