"""If and While in nets: values and gradients against eager code that is written out, and against differences."""

import numpy as np
import pytest
from branching import (
    choosing, chosen, differences, eager_gradients, fed, looped, looping, small, values,
)
from rows import both_dtypes, same_bits

import cygrad as cg
from cygrad import nn
from cygrad.graph import Net

R = np.random.default_rng(0)
A, W = R.uniform(0.5, 1.5, (3, 4)), R.standard_normal((3, 4))


# ---- If --------------------------------------------------------------------------------------------------------------

@both_dtypes
@pytest.mark.parametrize("c", [True, False])
def test_if_runs_the_chosen_net_and_its_gradient(c, dtype):
    a, w = A.astype(dtype), W.astype(dtype)
    net = choosing()
    same_bits(values(net, "loss", c=c, a=a, w=w)[0], chosen(c, cg.tensor(a), cg.tensor(w)).numpy())
    found = net.add_gradient_operators(["loss"])
    assert {*found} == {"loss", "z", "x", "w", "a"}
    loss, (da, dw) = eager_gradients(lambda a, w: chosen(c, a, w), a, w)
    for made, wanted in zip(values(net, "loss", "a_grad", "w_grad", c=c, a=a, w=w), (loss, da, dw), strict=True):
        same_bits(made, wanted)                     # (the net that ignores w gives zeros)


def test_the_gradients_are_those_of_differences():
    net = choosing()
    net.add_gradient_operators(["loss"])
    for c in (True, False):
        def f(a, w, c=c): return float(values(choosing(), "loss", c=c, a=a, w=w)[0])

        found = values(net, "a_grad", "w_grad", c=c, a=A[:2, :2], w=W[:2, :2])
        for k, g in enumerate(found):
            np.testing.assert_allclose(g, differences(f, [A[:2, :2], W[:2, :2]], k), rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("c", [True, False, 0, 3, -1, 0.0, -0.0, 1e-300, np.nan, np.inf, np.float32(0), np.int8(4),
                               np.uint64(1 << 63), [[True]], [0.0], [[[2]]]])
def test_the_condition_has_numpys_truth(c):
    z = values(choosing(), "z", c=np.array(c), a=A, w=W)[0]
    x = cg.exp(cg.tensor(A)).numpy()
    same_bits(z, (x * W * 2.0) if np.array(c).any() else x * x)


def test_one_program_serves_both_values_of_the_condition():
    net, workspace = choosing(), fed(c=True, a=A, w=W)
    workspace.run(net)
    for c in (False, True, False):
        workspace.feed("c", c)
        before = cg.memory.stats()
        workspace.run(net)
        assert cg.memory.stats()["system_allocations"] == before["system_allocations"]
        assert cg.memory.stats()["live_bytes"] == before["live_bytes"]
        same_bits(workspace.fetch("loss").numpy(), chosen(c, cg.tensor(A), cg.tensor(W)).numpy())


def test_constants_and_operators_with_names_can_be_inputs():
    net = Net()
    net.add_constant(A, "k")
    one = small("one", ["x", "p"], ("mul", ["x", "p"], "y"), outputs="y")
    two = small("two", ["x", "p"], ("add", ["x", "p"], "y"), outputs="y")
    net.add_operator("If", ["c", "k", 0.25], "y", then=one, otherwise=two)
    net.add_operator("If", [True, "y", 3.0], "z", then=one, otherwise=two)
    for c, y in ((1, A * 0.25), (0, A + 0.25)): same_bits(values(net, "z", c=c)[0], y * 3.0)


def test_inputs_and_results_can_have_any_strides():
    net = Net()
    net.permute(net.exp("a"), "x", axes=(1, 0))
    net.add_operator("If", ["c", "x", "w"], "y",
                     then=small("then", ["x", "w"], ("mul", ["x", "w"], "p"), ("permute", "p", "y", {"axes": (1, 0)}),
                                outputs="y"),
                     otherwise=small("other", ["x", "w"], ("permute", "x", "y", {"axes": (1, 0)}), outputs="y"))
    names = ["y", "i", "w"]
    net.permute("y", "t", axes=(1, 0))
    net.add_operator("While", ["t", 0, "w"], ["z", "i"], turns=3,
                     condition=small("c", names, ("less", ["i", 3], "c"), outputs="c"),
                     body=small("b", names, ("permute", "y", "q", {"axes": (1, 0)}), ("reshape", "q", "r", {
                         "shape": (4, 3)}), ("mul", ["r", "w"], "p"), ("add", ["i", 1], "j"), outputs=["p", "j"]))
    net.mul(["z", "z"], "s")
    net.sum("s", "loss")
    net.outputs = ["loss"]
    net.add_gradient_operators(["loss"])
    w = W.T.copy()

    def f(a, w):
        x = cg.exp(a).T
        z = (x * w).T.T if c else x
        for _ in range(3): z = z.T.reshape((4, 3)) * w
        return (z * z).sum()

    for c in (True, False):
        wanted, (da, dw) = eager_gradients(f, A, w)
        loss, ga, gw = values(net, "loss", "a_grad", "w_grad", c=c, a=A, w=w)
        np.testing.assert_allclose(loss, wanted, rtol=1e-14)
        np.testing.assert_allclose(ga, da, rtol=1e-13)
        np.testing.assert_allclose(gw, dw, rtol=1e-13)


def test_outputs_that_are_inputs_are_copies():
    net = Net()
    same, other = small("same", ["x"], outputs="x"), small("other", ["x"], ("neg", "x", "y"), outputs="y")
    net.add_operator("If", ["c", "x"], "y", then=same, otherwise=other)
    net.add_operator("add", ["y", 1.0], "y", inplace=True)
    for c in (True, False): same_bits(values(net, "y", c=c, x=A)[0], (A if c else -A) + 1.0)
    workspace = fed(c=True, x=A)
    workspace.run(net)
    same_bits(workspace.fetch("x").numpy(), A)
    other = Net()
    other.exp("x", "h")
    other.add_operator("If", ["c", "h"], "y", then=same, otherwise=same)
    other.sum("y", "loss")
    other.add_gradient_operators(["loss"])
    same_bits(values(other, "x_grad", c=True, x=A)[0], cg.exp(cg.tensor(A)).numpy())


def test_several_outputs_of_which_one_has_no_head_and_one_is_integer():
    net = Net()
    nets = [small(name, ["x"], (kind, "x", "y"), ("argmax", "x", "i"), ("mul", ["x", 3.0], "z"),
                  outputs=["y", "i", "z"]) for name, kind in (("sine", "sin"), ("cosine", "cos"))]
    net.add_operator("If", ["c", "x"], ["y", "i", "z"], then=nets[0], otherwise=nets[1])
    net.sum("y", "loss")
    net.outputs = ["loss", "i", "z"]
    net.add_gradient_operators(["loss"])
    for c, f in ((True, lambda x: cg.sin(x).sum()), (False, lambda x: cg.cos(x).sum())):
        loss, i, dx = values(net, "loss", "i", "x_grad", c=c, x=A)
        wanted, (g,) = eager_gradients(f, A)
        assert i == A.argmax()
        same_bits(loss, wanted)
        np.testing.assert_allclose(dx, g, rtol=1e-15)


def test_gradients_of_variables_of_captured_nets_go_to_grad():
    left, right = nn.Linear(4, 2, dtype="float64"), nn.Linear(4, 2, dtype="float64")
    shape = ((3, 4), "float64")
    net = Net("experts")
    net.exp("x", "h")
    net.add_operator("If", ["c", "h"], "y", then=Net.capture(left, shape), otherwise=Net.capture(right, shape))
    assert len(net.bindings) == 4 and all(any(x is p for p in (*left.parameters(), *right.parameters()))
                                          for x in net.bindings.values())
    net.sum("y", "loss")
    net.add_gradient_operators(["loss"], bind=True)
    workspace = fed(x=A, c=True)
    for c, layer, other in ((True, left, right), (False, right, left)):
        for p in (*left.parameters(), *right.parameters()): p.grad = None
        workspace.feed("c", c)
        for _ in range(2): workspace.run(net)       # (.grad is added to)
        with cg.record(): loss = layer(cg.exp(cg.tensor(A))).sum()
        wanted = cg.autograd.grad(loss, [*layer.parameters()])
        for p, g in zip(layer.parameters(), wanted, strict=True): same_bits(p.grad.numpy(), (g + g).numpy())
        for p in other.parameters(): assert not p.grad.numpy().any()
    for p in (*left.parameters(), *right.parameters()): p.grad = None


# ---- While -----------------------------------------------------------------------------------------------------------

@both_dtypes
@pytest.mark.parametrize("n", [0, 1, 2, 3, 7, 8])
def test_while_against_turns_that_are_written_out(n, dtype):
    a, b = A.astype(dtype), W.astype(dtype)
    net = looping()
    wanted, (da, db) = eager_gradients(lambda a, b: looped(n, a, b), a, b)
    loss, i = values(net, "loss", "i", a=a, b=b, n=n)
    same_bits(loss, wanted)
    assert i == n and i.dtype == "int64"
    net.add_gradient_operators(["loss"])
    loss, dy, dx = values(net, "loss", "a_grad", "b_grad", a=a, b=b, n=n)
    same_bits(loss, wanted)
    same_bits(dy, da)
    same_bits(dx, db)                               # (the contributions of turns are added in the order of eager code)


def test_the_gradients_of_while_are_those_of_differences():
    net = looping()
    net.add_gradient_operators(["loss"])
    a, b = A[:2, :2], W[:2, :2]
    for n in (0, 2, 5):
        def f(a, b, n=n): return float(values(looping(None), "loss", a=a, b=b, n=n)[0])

        for k, g in enumerate(values(net, "a_grad", "b_grad", a=a, b=b, n=n)):
            np.testing.assert_allclose(g, differences(f, [a, b], k), rtol=1e-6, atol=1e-8)


def test_no_turn_gives_the_inputs_and_passes_gradients_on():
    net = looping()
    net.add_gradient_operators({"y": "head"})
    y, i, da, db, dx = values(net, "y", "i", "a_grad", "b_grad", "x_grad", a=A, b=W, n=0, head=W)
    same_bits(y, A)
    same_bits(da, W)
    assert i == 0 and not db.any() and not np.signbit(dx).any()


def test_one_program_serves_all_numbers_of_turns_and_allocates_nothing():
    net = looping()
    net.add_gradient_operators(["loss"])
    workspace = fed(a=A, b=W, n=3)
    workspace.run(net)
    for n in (0, 8, 1, 5):
        workspace.feed("n", n)
        before = cg.memory.stats()
        workspace.run(net)
        after = cg.memory.stats()
        for what in ("system_allocations", "live_bytes", "live_buffers"): assert after[what] == before[what]
        same_bits(workspace.fetch("b_grad").numpy(), eager_gradients(lambda a, b, n=n: looped(n, a, b), A, W)[1][1])


def test_more_turns_than_the_bound():
    net = looping(3)
    for differentiated in (False, True):
        if differentiated: net.add_gradient_operators(["loss"])
        for run in ({}, {"before": lambda operator, values: None}):
            workspace = fed(a=A, b=W, n=4)
            with pytest.raises(RuntimeError, match="the condition is still true after 3 turns, the most that turns=3"):
                workspace.run(net, **run)
            assert "y" not in workspace
            same_bits(workspace.fetch("a").numpy(), A)
            workspace.feed("n", 3)
            workspace.run(net, **run)
            assert workspace.fetch("i").item() == 3


def test_without_gradients_there_need_be_no_bound():
    net = looping(None)
    assert values(net, "i", a=A, b=W, n=1000)[0] == 1000
    with pytest.raises(RuntimeError, match="does not say of how many; add it with turns=N"):
        net.add_gradient_operators(["loss"])


def test_nan_in_a_condition_and_in_values():
    """NaN is true, and a comparison with NaN is false."""
    inner = ["x", "n"]
    turn = small("turn", inner, ("sub", ["n", 1.0], "less"), ("mul", ["x", 2.0], "y"), outputs=["y", "less"])
    net = Net()
    net.add_operator("While", ["x", "n"], ["y", "m"], condition=small("n", inner, outputs="n"), body=turn, turns=4)
    assert values(net, "y", x=np.float32(1), n=np.float32(3))[0] == 8
    with pytest.raises(RuntimeError, match="4 turns"): values(net, "y", x=np.float32(1), n=np.float32(np.nan))
    other = Net()
    greater = small("greater", inner, ("greater", ["n", 0.0], "c"), outputs="c")
    other.add_operator("While", ["x", "n"], ["y", "m"], condition=greater, body=turn, turns=4)
    assert values(other, "y", x=np.float32(1), n=np.float32(np.nan))[0] == 1
    assert np.isnan(values(other, "y", x=np.float32(np.nan), n=np.float32(2))[0])


def test_a_sum_of_contributions_that_are_negative_zeros_keeps_its_sign():
    names = ["x", "i", "w"]
    net = Net()
    net.add_operator("While", ["x", 0, "w"], ["y", "i"], turns=3,
                     condition=small("c", names, ("less", ["i", 2], "goes"), outputs="goes"),
                     body=small("b", names, ("mul", ["x", "w"], "y"), ("add", ["i", 1], "j"), outputs=["y", "j"]))
    net.sum("y", "loss")
    net.add_gradient_operators({"loss": "head"})
    for dtype in ("float32", "float64"):
        x, w = np.array([1.0, -0.0, 0.0], dtype), np.array([-0.0, -1.0, 0.0], dtype)
        dw, dx = values(net, "w_grad", "x_grad", x=x, w=w, head=np.array(-1.0, dtype))
        _, (gx, gw) = eager_gradients(lambda x, w: -1.0 * (x * w * w).sum(), x, w)
        same_bits(dx, gx)
        same_bits(dw, gw)


def test_a_loop_over_a_vector_of_sizes_zero():
    net = looping()
    net.add_gradient_operators(["loss"])
    for n in (0, 3):
        da, db = values(net, "a_grad", "b_grad", a=np.zeros((0, 4)), b=np.zeros((0, 4)), n=n)
        assert da.shape == db.shape == (0, 4)


# ---- inside each other -----------------------------------------------------------------------------------------------

def nested(turns=6):
    """If p: x = 2 x, n times, or sin x where x is large; else x w"""
    names = ["x", "i", "n", "w"]
    step = Net("step")
    step.mean("x", "m")
    step.greater(["m", 4.0], "large")
    step.add_operator("If", ["large", "x", "w"], "y",
                      then=small("sine", ["x", "w"], ("sin", "x", "s"), ("add", ["s", "w"], "y"), outputs="y"),
                      otherwise=small("twice", ["x", "w"], ("mul", ["x", 2.0], "y"), outputs="y"))
    step.add(["i", 1], "j")
    step.inputs, step.outputs = names, ["y", "j"]
    loop = Net("loop")
    loop.add_operator("While", ["x", 0, "n", "w"], ["y", "i"], body=step, turns=turns,
                      condition=small("goes on", names, ("less", ["i", "n"], "goes"), outputs="goes"))
    loop.inputs, loop.outputs = ["x", "w", "n"], ["y"]
    net = Net("nested")
    net.tanh("a", "x")
    net.add_operator("If", ["p", "x", "w", "n"], "z", then=loop,
                     otherwise=small("product", ["x", "w", "n"], ("mul", ["x", "w"], "y"), outputs="y"))
    net.sum("z", "loss")
    return net


def written_out(p, n, a, w):
    x = cg.tanh(a)
    if not p: return (x * w).sum()
    for _ in range(n): x = cg.sin(x) + w if x.mean().item() > 4 else x * 2.0
    return x.sum()


@both_dtypes
@pytest.mark.parametrize("p, n", [(True, 0), (True, 2), (True, 5), (True, 6), (False, 3)])
def test_if_in_while_in_if(p, n, dtype):
    a, w = A.astype(dtype), W.astype(dtype)
    net = nested()
    net.add_gradient_operators(["loss"])
    wanted, gradients = eager_gradients(lambda a, w: written_out(p, n, a, w), a, w)
    loss, *found = values(net, "loss", "a_grad", "w_grad", a=a, w=w, p=p, n=n)
    same_bits(loss, wanted)
    for g, h in zip(found, gradients, strict=True): np.testing.assert_allclose(
        g, h, rtol=1e-14 if dtype == "float64" else 1e-5, atol=1e-14 if dtype == "float64" else 1e-6)


def test_a_bound_inside_of_another_loop():
    net = nested(None)
    assert values(net, "loss", a=A, w=W, p=True, n=9)
    with pytest.raises(RuntimeError, match="net loop: the gradient of operator 0, .*turns=N"):
        net.add_gradient_operators(["loss"])


# ---- random numbers --------------------------------------------------------------------------------------------------

def test_what_a_net_draws_is_drawn_again_for_its_gradient():
    names = ["x", "i", "n"]
    net = Net(name="noisy")
    net.training = True
    body = Net("turn")
    body.dropout("x", "d", p=0.5)
    body.mul(["d", "x"], "y")
    body.add(["i", 1], "j")
    body.inputs, body.outputs = names, ["y", "j"]
    drop = Net("drop")
    drop.dropout("x", "y", p=0.3)
    net.add_operator("While", ["x", 0, "n"], ["y", "i"], body=body, turns=5,
                     condition=small("goes on", names, ("less", ["i", "n"], "goes"), outputs="goes"))
    net.add_operator("If", ["c", "y"], "z", then=drop, otherwise=small("sine", ["x"], ("sin", "x", "y"), outputs="y"))
    net.dropout("z", "last", p=0.5)
    net.sum("last", "loss")
    net.add_gradient_operators(["loss"])

    def f(x):
        for _ in range(n): x = cg.dropout(x, 0.5) * x
        return cg.dropout(cg.dropout(x, 0.3) if c else cg.sin(x), 0.5).sum()

    for c, n in ((True, 3), (False, 5), (True, 0)):
        cg.random.seed(7)
        wanted, (dx,) = eager_gradients(f, A)
        ends = cg.random.default_generator.state
        for run in ({}, {"after": lambda operator, values: None}):
            workspace = fed(x=A, c=c, n=n)
            for _ in range(2):
                cg.random.seed(7)
                workspace.run(net, **run)
                assert cg.random.default_generator.state == ends
                same_bits(workspace.fetch("loss").numpy(), wanted)
                np.testing.assert_allclose(workspace.fetch("x_grad").numpy(), dx, rtol=1e-15)


def test_conditions_and_nets_inside_of_turns_draw_from_several_generators():
    """A condition draws, and a turn has an If whose net draws from another generator than the turn."""
    g, names = cg.random.Generator(5), ["x", "i"]
    with cg.record(): inner = Net.capture(lambda x: cg.dropout(x, 0.5, generator=g) * 2.0, ((3, 4), "float64"))
    body = Net("turn")
    body.less([body.random([], law="uniform", shape=(), numbers=(0.0, 1.0), dtype="float64"), 0.7], "c")
    body.add_operator("If", ["c", "x"], "y", then=inner,
                      otherwise=small("sine", ["x"], ("sin", "x", "s"), outputs="s"))
    body.add(["i", 1], "j")
    goes = Net("goes")
    goes.less([goes.random([], law="uniform", shape=(), numbers=(0.0, 1.0), dtype="float64"), 0.8])
    for part in (goes, body): part.inputs = names
    body.outputs = ["y", "j"]
    net = Net()
    net.add_operator("While", ["x", 0], ["y", "i"], condition=goes, body=body, turns=40)
    net.sum("y", "loss")
    net.outputs = ["loss", "i"]
    net.add_gradient_operators(["loss"])

    def f(x):
        uniform = cg.random.default_generator.uniform
        while uniform((), dtype="float64").item() < 0.8:
            x = cg.dropout(x, 0.5, generator=g) * 2.0 if uniform((), dtype="float64").item() < 0.7 else cg.sin(x)
        return x.sum()

    turns = set()
    for seed in range(12):
        def start(seed=seed):
            cg.random.seed(seed)
            g.state = seed, 0

        start()
        wanted, (dx,) = eager_gradients(f, A)
        ends = cg.random.default_generator.state, g.state
        for run in ({}, {"after": lambda operator, values: None}):
            workspace = fed(x=A)
            for _ in range(2):
                start()
                workspace.run(net, **run)
                assert (cg.random.default_generator.state, g.state) == ends
                same_bits(workspace.fetch("loss").numpy(), wanted)
                np.testing.assert_allclose(workspace.fetch("x_grad").numpy(), dx, rtol=1e-14)
        turns.add(workspace.fetch("i").item())
    assert len(turns) > 4


def test_a_loop_that_is_refused_has_drawn_nothing():
    names = ["x", "i"]
    body = Net("turn")
    body.dropout("x", "y")
    body.add(["i", 1], "j")
    body.inputs, body.outputs, body.training = names, ["y", "j"], True
    net = Net()
    net.add_operator("While", ["x", 0], ["y", "i"], body=body, turns=3,
                     condition=small("always", names, ("less", ["i", 9], "goes"), outputs="goes"))
    for run in ({}, {"after": lambda operator, values: None}):
        state = cg.random.default_generator.state
        with pytest.raises(RuntimeError, match="after 3 turns"): fed(x=A).run(net, **run)
        assert cg.random.default_generator.state == state
