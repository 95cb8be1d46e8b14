"""Captured steps with solvers, random numbers and edits, beside eager code from the same state."""

import numpy as np
import pytest

import cygrad as cg
from cygrad.graph import Net, Workspace

GIVEN = np.array([1.0, 2.0, 3.0], "f4")


def recorded(f):
    with cg.record(): return f()


class Trained:
    """Two parameters and their solver."""

    def __init__(self, solver):
        self.a, self.b = (cg.tensor(GIVEN).attach_grad() for _ in range(2))
        self.solver = solver()
        self.solver.set_parameters({"a": self.a, "b": self.b})

    def state(self):
        states = self.solver.get_states()
        return [self.a.tolist(), self.b.tolist(), *(v.t for v in states.values()),
                *(x.tolist() for v in states.values() for x in v.pstate.values())]


def a_result_between_backward_and_update(w, x):
    w.solver.zero_grad()
    recorded(lambda: (w.a * w.b * x).sum()).backward()
    h = x * 2
    w.solver.update()
    w.solver.zero_grad()
    recorded(lambda: (w.a * w.b * h).sum()).backward()
    w.solver.update()


def a_result_between_backward_and_clipping(w, x):
    w.solver.zero_grad()
    recorded(lambda: (w.a * w.b * x).sum()).backward()
    h = x * 2
    w.solver.clip_grad_by_norm(0.5)
    w.solver.update()
    w.solver.zero_grad()
    recorded(lambda: (w.a * h).sum()).backward()
    w.solver.update()


def a_gradient_in_memory_from_before_the_update(w, x):
    w.solver.zero_grad()
    made = [x * 2]
    recorded(lambda: (w.a * w.b).square().mean()).backward()
    w.solver.update()
    recorded(lambda: (w.a * w.b * made.pop()).sum()).backward()
    w.solver.clip_grad_by_global_norm(0.5)
    w.solver.update()


def a_parameter_that_is_frozen_for_one_update(w, x):
    w.solver.zero_grad()
    recorded(lambda: (w.a * w.b * x).sum()).backward()
    w.b.grad = None
    w.solver.update()
    recorded(lambda: (w.a * w.b * x).sum()).backward()


def gradients_zeroed_before_the_update(w, x):
    w.solver.zero_grad()
    recorded(lambda: (w.a * w.b * x).sum()).backward()
    w.b.zero_grad()
    w.solver.update()
    recorded(lambda: (w.b * x).sum()).backward()
    w.solver.update()


@pytest.mark.parametrize("solver", [lambda: cg.optim.Sgd(0.1), lambda: cg.optim.Momentum(0.1),
                                    lambda: cg.optim.Adam(0.1)], ids=["sgd", "momentum", "adam"])
@pytest.mark.parametrize("f", [
    a_result_between_backward_and_update, a_result_between_backward_and_clipping,
    a_gradient_in_memory_from_before_the_update, a_parameter_that_is_frozen_for_one_update,
    gradients_zeroed_before_the_update,
], ids=lambda f: f.__name__)
def test_a_step_moves_the_parameters_as_eager_code_does(f, solver):
    ours, theirs = Trained(solver), Trained(solver)
    net, workspace = Net.capture(lambda x: f(ours, x), GIVEN), Workspace()
    for scale in (1.0, -0.5, 2.0):
        workspace.feed("x", GIVEN * np.float32(scale))
        workspace.run(net)
        f(theirs, cg.tensor(GIVEN * np.float32(scale)))
        assert ours.state() == theirs.state()


def test_a_parameter_that_no_pass_reaches_keeps_its_none():
    w, other = (cg.tensor(GIVEN).requires_grad_() for _ in range(2))
    solver = cg.optim.Sgd([w, other], lr=0.5)

    def f(x):
        solver.zero_grad()
        recorded(lambda: (w * x).sum()).backward()
        solver.update()

    net, workspace = Net.capture(f, GIVEN), Workspace()
    workspace.feed("x", GIVEN)
    for k in range(3):
        workspace.run(net)
        assert other.grad is None and w.tolist() == [0.5 - 0.5 * k, 1 - k, 1.5 - 1.5 * k]
    recorded(lambda: other.sum()).backward()
    workspace.run(net)
    assert other.grad.tolist() == [0, 0, 0] and not other.fresh_grad and other.tolist() == GIVEN.tolist()
    other.grad = None
    workspace.run(net)
    assert other.grad is None


def test_a_gradient_that_is_zeroed_after_its_pass_is_zeros():
    w = cg.tensor(GIVEN).requires_grad_()

    def f(x):
        recorded(lambda: (w * x).sum()).backward()
        w.zero_grad()

    net, workspace = Net.capture(f, GIVEN), Workspace()
    workspace.feed("x", GIVEN)
    workspace.run(net)
    assert w.grad.tolist() == [0, 0, 0]


@pytest.mark.parametrize("fresh", [False, True])
def test_an_update_before_the_pass_is_refused(fresh):
    """The gradients that it reads would be those of the run before."""
    w = Trained(lambda: cg.optim.Sgd(0.1))
    if fresh: recorded(lambda: (w.a * w.b).sum()).backward()

    def f(x):
        w.solver.update()
        recorded(lambda: (w.a * x).sum()).backward()

    with pytest.raises(RuntimeError, match="^capture: .* cannot be captured"): Net.capture(f, GIVEN)


def test_an_update_after_zero_grad_may_precede_the_pass():
    w = Trained(lambda: cg.optim.Sgd(0.1))

    def f(x):
        w.solver.zero_grad()
        w.solver.update()
        recorded(lambda: (w.a * x).sum()).backward()

    net, workspace = Net.capture(f, GIVEN), Workspace()
    workspace.feed("x", GIVEN)
    for _ in range(2):
        with pytest.warns(UserWarning, match="no backward pass has reached"): workspace.run(net)
    assert w.a.tolist() == GIVEN.tolist() and w.a.grad.tolist() == GIVEN.tolist()


@pytest.mark.parametrize("draw", [
    lambda x: cg.dropout(x, 0.5),
    lambda x: cg.scaled_dot_product_attention(x.reshape((6, 2)), x.reshape((6, 2)), x.reshape((6, 2)), dropout_p=0.5),
    lambda x: x + cg.random.normal((12,)),
], ids=["dropout", "attention", "normal"])
def test_a_run_draws_with_the_seed_of_the_time(draw):
    def f(x):
        with cg.train_mode(): return draw(x)

    x = np.linspace(1, 2, 12, dtype="f4")
    net, workspace = Net.capture(f, x), Workspace()
    workspace.feed("x", x)
    for seed in (0, 1, 0):
        cg.random.seed(seed)
        wanted = f(cg.tensor(x)).tolist()
        cg.random.seed(seed)
        workspace.run(net)
        assert workspace.fetch(net.outputs[0]).tolist() == wanted
    cg.random.default_generator.state = state = 5, 3
    wanted = f(cg.tensor(x)).tolist()
    cg.random.default_generator.state = state
    workspace.run(net)
    assert workspace.fetch(net.outputs[0]).tolist() == wanted


def test_a_detached_view_does_not_stand_for_the_recorded_one():
    def f(w, x):
        with cg.record():
            z = x * 1
            z[:].__iadd__(w)
        z.detach()[:]
        with cg.record(): loss = z.square().sum() + (w * w).sum()
        loss.backward()

    ours, theirs = (cg.tensor(GIVEN).attach_grad() for _ in range(2))
    net, workspace = Net.capture(lambda x: f(ours, x), GIVEN), Workspace()
    workspace.feed("x", GIVEN)
    workspace.run(net)
    f(theirs, cg.tensor(GIVEN))
    assert ours.grad.tolist() == theirs.grad.tolist() == [6, 12, 18]


def with_hooks(w, x):
    with cg.autograd.saved_tensors_hooks(lambda t: t * 2, lambda t: t), cg.record(): (w.a * x).sum()


@pytest.mark.parametrize(("f", "named"), [
    (lambda w, x: w.solver.set_states(w.solver.get_states()), r"set_states\(\)"),
    (lambda w, x: w.solver.load_state_dict(w.solver.state_dict()), r"load_state_dict\(\) of a solver"),
    (lambda w, x: w.solver.set_parameters({"a": w.a}), r"set_parameters\(\) of a solver"),
    (lambda w, x: w.solver.add_param_group({"params": []}), r"add_param_group\(\) of a solver"),
    (lambda w, x: w.solver.remove_parameters(["a"]), r"remove_parameters\(\) of a solver"),
    (lambda w, x: w.solver.clear_parameters(), r"clear_parameters\(\) of a solver"),
    (lambda w, x: w.solver.param_groups[0].update(lr_mult=2.0), "an assignment to param_groups"),
    (lambda w, x: cg.optim.Adam(0.1), "making a solver"),
    (with_hooks, "saved_tensors_hooks"),
])
def test_changes_of_solvers_and_hooks_are_refused_by_name(f, named):
    w = Trained(lambda: cg.optim.Momentum(0.1))
    recorded(lambda: (w.a * w.b).sum()).backward()
    w.solver.update()
    before, groups = w.state(), [dict(group) for group in w.solver.param_groups]
    with pytest.raises(RuntimeError, match=f"^capture: {named} cannot be captured"):
        Net.capture(lambda x: f(w, x), GIVEN)
    assert w.state() == before and [*w.solver.get_parameters()] == ["a", "b"]
    assert [dict(group) == old for group, old in zip(w.solver.param_groups, groups, strict=True)] == [True]


def test_open_hooks_do_not_see_captures():
    w, seen = cg.tensor(GIVEN).attach_grad(), []

    def f(x): recorded(lambda: (w * x).square().sum()).backward()

    with cg.autograd.saved_tensors_hooks(lambda t: seen.append(t) or t, lambda t: t):
        net, workspace = Net.capture(f, GIVEN), Workspace()
        workspace.feed("x", GIVEN)
        assert not seen
        workspace.run(net)                          # eager code runs it, so they see this
        assert seen
    seen.clear()


# ---- edits -----------------------------------------------------------------------------------------------------------

def captured_step():
    w = Trained(lambda: cg.optim.Sgd(0.1))

    def step(x):
        w.solver.zero_grad()
        recorded(lambda: (w.a * x).square().sum()).backward()
        w.solver.update()
    return w, Net.capture(step, GIVEN)


@pytest.mark.parametrize("edit", [
    lambda net: net.remove_operator(net.operators[0]),
    lambda net: net.insert_operator(3, "mul", ["mul", 5.0], "seen"),
])
def test_an_edit_that_would_break_a_pass_is_refused(edit):
    w, net = captured_step()
    before = str(net)
    with pytest.raises(RuntimeError, match=r"^Net\.\w+: the backward pass that begins at operator \d+ of net step "
                                           r"writes \.grad"): edit(net)
    assert str(net) == before
    workspace = Workspace()
    workspace.feed("x", GIVEN)
    workspace.run(net)
    assert w.a.tolist() != GIVEN.tolist()


def test_an_edit_after_the_pass_is_allowed():
    w, net = captured_step()
    update = net.operators[-1]
    net.remove_operator(update)
    net.add_operator("mul", ["mul", 5.0], "seen")
    workspace = Workspace()
    workspace.feed("x", GIVEN)
    workspace.run(net)
    assert w.a.tolist() == GIVEN.tolist() and w.a.grad.tolist() == [2, 16, 54]
    assert workspace.fetch("seen").tolist() == [5, 20, 45]


def test_rewire_and_unlink_keep_writes_that_others_see():
    buffer = cg.zeros(3)

    def f(x):
        h = x * 2
        z = h[1:]
        h += 1
        return h.exp() + 1, z

    def g(x):
        buffer.__iadd__(x)
        return (buffer * 2).exp() + 1

    net, workspace = Net.capture(f, GIVEN), Workspace()
    net.rewire("exp", "x")
    workspace.feed("x", GIVEN)
    workspace.run(net)
    assert [workspace.fetch(name).tolist() for name in net.outputs] == [[2, 3, 4], [5, 7]]
    other = Net.capture(g, GIVEN)
    other.unlink("exp")
    for name, value in (("x", GIVEN), ("exp", GIVEN)): workspace.feed(name, value)
    workspace.run(other)
    assert buffer.tolist() == [1, 2, 3]


def test_a_loaded_pass_gives_its_gradients(tmp_path):
    w = cg.tensor(GIVEN).attach_grad()

    def f(x):
        loss = recorded(lambda: (w * x).square().sum())
        loss.backward()
        return loss

    Net.capture(f, GIVEN, names={"w": w}).save(tmp_path / "net.safetensors")
    net, workspace = Net.load(tmp_path / "net.safetensors"), Workspace()
    for name in ("x", "w"): workspace.feed(name, GIVEN)
    workspace.run(net)
    assert workspace.fetch("w_grad").tolist() == [2, 16, 54]


@pytest.mark.parametrize("f", [
    lambda x: x + cg.eye(3), lambda x: x + cg.eye(3, k=1), lambda x: cg.repeat(x, 3),
    lambda x: cg.repeat(x, [1, 0, 2], 0),
])
def test_values_that_the_function_gives_are_no_values_of_tensors(f):
    x = np.arange(9, dtype="f4").reshape(3, 3)
    net, workspace = Net.capture(f, x), Workspace()
    workspace.feed("x", x)
    workspace.run(net)
    assert workspace.fetch(net.outputs[0]).tolist() == f(cg.tensor(x)).tolist()


def test_a_frozen_parameter_is_no_part_of_a_captured_zero_grad():
    a, b = cg.ones(3).attach_grad("add"), cg.ones(3).attach_grad("add")
    solver = cg.optim.Sgd(0.1)
    solver.set_parameters({"a": a, "b": b})
    b.drop_grad()

    def step():
        solver.zero_grad()
        recorded(lambda: a.sum()).backward()

    net, workspace = Net.capture(step), Workspace()
    assert [id(x) for x in net.bindings.values()] == [id(a)]
    workspace.run(net)
    b.attach_grad("add")                            # (its role is not the net's)
    workspace.run(net)
    assert a.grad.tolist() == [1.0, 1.0, 1.0]
