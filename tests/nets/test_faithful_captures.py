"""Captured functions do what eager code does: detached tensors, writes that are not recorded, gradients as values,
several passes. Each function runs as a net and as eager code from the same state, twice, and all bits are compared.

What a net would not do in the same way is refused by name."""

import threading

import numpy as np
import pytest
from rows import same_bits

import cygrad as cg
from cygrad.graph import Net, Workspace

GIVEN = np.array([1.0, 2.0, 3.0], "f4")


class World:
    """The tensors outside."""

    def __init__(self):
        self.w = cg.tensor(GIVEN).attach_grad()
        self.alias = self.w.detach()
        self.buffer = cg.zeros(3)
        self.solver = cg.optim.Sgd(0.1)
        self.solver.set_parameters([self.w])
        self.generator = cg.random.Generator(3)
        self.twin = self.w.detach().requires_grad_()
        self.model = cg.nn.Linear(3, 3)
        self.decay = cg.optim.AdamW(0.1)
        self.decay.set_parameters(dict(self.model.named_parameters()))

    def state(self):
        variables = [self.w, self.twin, *self.model.parameters()]
        found = [x.detach().numpy().copy() for x in (*variables, self.buffer)]
        found += [np.zeros(0) if x.grad is None else x.grad.numpy().copy() for x in variables]
        return [*found, np.array([x.fresh_grad for x in variables] + [self.buffer.requires_grad])]


def recorded(f):
    with cg.record(): return f()


def a_norm_before_the_pass(world, x):
    n = world.w.detach().square().sum()
    recorded(lambda: (world.w * x).sum()).backward()
    return n


def a_detached_factor(world, x):
    recorded(lambda: (world.w.detach() * world.w * x).sum()).backward()


def an_old_alias(world, x):
    y = world.alias * 2
    recorded(lambda: (world.w * x * y).sum()).backward()
    return y


def gradients_as_constants(world, x):
    g = cg.autograd.grad(recorded(lambda: (world.w * x).square().sum()), world.w)
    recorded(lambda: (g * world.w).sum()).backward()
    return g


def gradients_of_a_shared_graph(world, x):
    with cg.record():
        a = (world.w * x).tanh()
        loss = a.square().mean()
    g = cg.autograd.grad(loss, world.w, retain_graph=True)
    recorded(a.sum).backward()
    return g


def the_grad_as_a_value(world, x):
    recorded(lambda: (world.w * x).square().sum()).backward()
    step = world.w.grad * 0.1
    recorded(lambda: (step * world.w).sum()).backward()
    return step


def a_penalty(world, x):
    with cg.record():
        g = cg.autograd.grad((world.w * x).tanh().sum(), world.w, create_graph=True)
        loss = (g * g).sum()
    loss.backward()
    return g


def a_copy_into_a_buffer(world, x):
    world.buffer.copy_(world.w)
    recorded(lambda: (world.buffer * world.w).sum()).backward()


def a_moving_average(world, x):
    q = world.w * x
    world.buffer *= 0.9
    world.buffer += 0.1 * q
    recorded(lambda: (world.buffer * world.w).sum()).backward()


def a_write_to_a_detached_tensor(world, x):
    h = x * 1
    h += world.w
    recorded(lambda: (h * world.w).sum()).backward()
    return h


def a_detach_after_a_recorded_write(world, x):
    with cg.record():
        h = cg.zeros(3)
        h += world.w
        loss = (h * h.detach()).sum()
    loss.backward()
    return h.detach()


def a_view_of_a_recorded_write(world, x):
    with cg.record():
        h = cg.zeros(3)
        first = h[:2]
        h += world.w * x
        loss = (first * first.detach()).sum() + h.sum()
    loss.backward()


def steps_by_hand(world, x):
    for _ in range(2):
        recorded(lambda: (world.w * x).square().sum()).backward()
        with cg.no_grad(): world.w.__isub__(world.w.grad * 0.1)


def steps_by_hand_with_grad(world, x):
    for _ in range(2):
        g = cg.autograd.grad(recorded(lambda: (world.w * x).square().sum()), world.w)
        with cg.no_grad(): world.w.__isub__(g * 0.1)


def a_decayed_variable(world, x):
    with cg.no_grad(): world.w.__imul__(0.9)
    recorded(lambda: (world.w * x).sum()).backward()


def a_write_to_a_variable_through_its_alias(world, x):
    v = world.w.detach()[1:]
    v += 1
    recorded(lambda: (world.w * x).sum()).backward()


def an_update_between_passes(world, x):
    for k in range(2):
        world.solver.zero_grad()
        recorded(lambda: (world.w * x).square().sum()).backward()
        if k == 0: world.solver.update()
    return world.w.grad * 1


def sharpness_aware(world, x):
    world.solver.zero_grad()
    recorded(lambda: (world.w * x).square().sum()).backward()
    up = world.w.grad * 0.05
    with cg.no_grad(): world.w.__iadd__(up)
    world.solver.zero_grad()
    recorded(lambda: (world.w * x).square().sum()).backward()
    with cg.no_grad(): world.w.__isub__(up)
    world.solver.update()


def a_recorded_write_to_a_view(world, x):
    with cg.record():
        y = x * world.w
        y[0] = 5.0
        loss = y.square().sum()
    loss.backward()


def a_normalized_vector(world, x):
    v = world.w.detach() * 1
    v /= v.square().sum().sqrt()
    recorded(lambda: (world.w * v * x).sum()).backward()
    return v


def numbers_of_numpy(world, x):
    return x / np.sqrt(3.0), np.float64(2.0) * x, x + np.float32(1.5), x - np.int64(2)


def results_that_are_not_computed(world, x):
    return x * world.w.detach(), world.w, cg.ones(3), world.w.detach()


def draws(world, x):
    return world.generator.normal((3,)) + cg.random.normal((3,)) + x


def first_order_meta_learning(world, x):
    fast = world.w
    for _ in range(2):
        g = cg.autograd.grad(recorded(lambda fast=fast: (fast * x).square().mean()), fast)
        fast = recorded(lambda fast=fast, g=g: fast - 0.1 * g)
    recorded(lambda: (fast * x).sum()).backward()
    return fast.detach()


def second_order_meta_learning(world, x):
    with cg.record():
        g = cg.autograd.grad((world.w * x).square().mean(), world.w, create_graph=True)
        fast = world.w - 0.1 * g
        loss = (fast * x).square().mean()
    loss.backward()


def a_gradient_of_an_input(world, x):
    v = x.detach().requires_grad_()
    g = cg.autograd.grad(recorded(lambda: (v * world.w).tanh().sum()), v)
    return x + 0.1 * g


def zero_grad_of_a_module(world, x):
    loss = recorded(lambda: world.model(x).square().mean())
    world.model.zero_grad()
    loss.backward()
    world.decay.update()
    return loss.detach()


def zero_grad_of_a_module_at_the_end(world, x):
    recorded(lambda: world.model(x).square().mean()).backward()
    world.decay.update()
    world.model.zero_grad()


def zero_grad_of_a_solver_with_decay(world, x):
    world.decay.weight_decay(0.5)
    world.decay.zero_grad()
    recorded(lambda: world.model(x).square().mean()).backward()
    world.decay.update()


def a_variable_and_its_detached_self(world, x):
    v = (x * 1).requires_grad_()
    return cg.autograd.grad(recorded(lambda: (v * v.detach()).sum()), v)


def a_variable_and_what_it_was_made_of(world, x):
    v = x.detach().requires_grad_()
    return cg.autograd.grad(recorded(lambda: (v * x * world.w).sum()), v)


def two_variables_made_of_one_tensor(world, x):
    v, u = x.detach().requires_grad_(), x.detach().requires_grad_()
    return cg.autograd.grad(recorded(lambda: (v * u * u).sum()), v)


def two_variables_on_one_memory(world, x):
    recorded(lambda: (world.w * world.twin * x).sum()).backward()
    return world.w.grad * 1, world.twin.grad * 1


def a_variable_made_of_values(world, x):
    d = cg.full((3,), 0.1).requires_grad_()
    g = cg.autograd.grad(recorded(lambda: ((x + d) * world.w).square().sum()), d)
    recorded(lambda: ((x + 0.1 * g) * world.w).sum()).backward()


def recorded_writes_over_operands(world, x):
    with cg.record():
        h = x * world.w
        h *= x * world.w
        h /= 1 + world.w.square()
        loss = h.sum()
    loss.backward()
    return loss.detach()


def a_number_as_head(world, x):
    loss = recorded(lambda: (world.w * x).square().mean())
    loss.backward(0.25)
    y = recorded(lambda: world.w * x)
    return cg.autograd.grad(y, world.w, 3)


def a_view_written_unrecorded(world, x):
    """The view has a gradient only after the recorded write to its base."""
    with cg.record():
        y = x * 2
        v = y[0:2]
        with cg.pause(): v /= 1.5
        y *= world.w
        loss = (y * y).sum() + (v * v).sum()
    loss.backward()
    return loss.detach()


def heads_of_several_kinds(world, x):
    with cg.record(): ys = [world.w * x, world.w.square(), world.w.tanh(), world.w.sum()]
    cg.backward(ys, [2.0, np.array([1.0, 0.5, -1.0], "f4"), x, None])


SAME = [f for f in list(globals().values()) if getattr(f, "__code__", None) is not None
        and f.__code__.co_varnames[:2] == ("world", "x")]


def outcome(result):
    """The arrays of a result."""
    if result is None: return []
    parts = result if isinstance(result, tuple) else (result,)
    return [y.detach().numpy().copy() for y in parts]


def by_run(workspace, net): workspace.run(net)


def by_hooks(workspace, net): workspace.run(net, after=lambda operator, values: None)


def by_clone(workspace, net): workspace.run(net.clone())


@pytest.mark.parametrize("how", [by_run, by_hooks, by_clone])
@pytest.mark.parametrize("f", SAME, ids=lambda f: f.__name__)
def test_a_net_does_what_the_function_does(f, how):
    cg.random.seed(1)
    ours = World()
    cg.random.seed(1)
    theirs = World()
    net, workspace = Net.capture(lambda x: f(ours, x), GIVEN), Workspace()
    for scale in (1.0, -0.5, 2.0):
        x, state = GIVEN * np.float32(scale), cg.random.default_generator.state
        workspace.feed("x", x)
        how(workspace, net)
        found = [workspace.fetch(name).numpy() for name in net.outputs]
        cg.random.default_generator.state = state
        wanted = outcome(f(theirs, cg.tensor(x)))
        assert len({*net.outputs}) == len(wanted)
        for a, b in zip(found, wanted, strict=True): same_bits(a, b)
        for a, b in zip(ours.state(), theirs.state(), strict=True): same_bits(a, b)


@pytest.mark.parametrize("req", ["write", "add"])
def test_a_run_follows_the_grad_req(req):
    world = World()
    world.w.attach_grad("add" if req == "write" else "write")
    net, workspace = Net.capture(lambda x: a_detached_factor(world, x), GIVEN), Workspace()
    workspace.feed("x", GIVEN)
    workspace.run(net)
    world.w.attach_grad(req)
    world.w.zero_grad()
    for _ in range(3): workspace.run(net)
    np.testing.assert_array_equal(world.w.grad.numpy(), GIVEN * GIVEN * (3 if req == "add" else 1))


def test_threads_may_prepare_nets_of_the_same_variables():
    """Each run in a new workspace is right, or refused because another thread traces the variable meanwhile."""
    w, x, odd = cg.tensor(np.ones((16, 16), "f4")).attach_grad(), np.ones((16, 16), "f4"), []

    def step(x):
        with cg.record(): loss = cg.tanh(x @ w).sum()
        loss.backward()
        return loss

    net = Net.capture(step, x)
    wanted = step(cg.tensor(x)).item()

    def work(own):
        for _ in range(100):
            workspace = Workspace()
            workspace.feed("x", x)
            try:
                workspace.run(own)
                if workspace.fetch(own.outputs[0]).item() != wanted: odd.append("value")
            except RuntimeError as e:
                if "no values" not in str(e) and "running" not in str(e): odd.append(str(e))

    threads = [threading.Thread(target=work, args=(net.clone(),)) for _ in range(4)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    assert not odd


# ---- refused ---------------------------------------------------------------------------------------------------------

def grad_of_a_variable_made_inside(world, x):
    v = x.detach().requires_grad_()
    recorded(lambda: v.tanh().sum()).backward()
    return v.grad


def a_head_twice(world, x):
    y = recorded(lambda: world.w * x)
    cg.backward([y, y], [x, x * 2])


def a_head_that_is_a_variable(world, x):
    cg.backward([world.w], [x])


def a_state_set(world, x):
    state = world.generator.state
    a = world.generator.normal((3,))
    world.generator.state = state
    return a - world.generator.normal((3,))


def a_grad_that_is_kept(world, x):
    recorded(lambda: (world.w * x).square().sum()).backward()
    g, world.w.grad = world.w.grad, None
    recorded(lambda: (world.w * x * 10).square().sum()).backward()
    world.solver.update()
    return g


REFUSED = [
    (a_grad_that_is_kept, r"such as a \.grad that another one has replaced"),
    (grad_of_a_variable_made_inside, r"such as the \.grad of a variable that the function makes"),
    (lambda world, x: world.w.grad * x, r"such as a \.grad from before the call"),
    (a_head_twice, "a backward pass with the head 'mul' twice cannot be captured"),
    (a_head_that_is_a_variable, "a backward pass whose heads are variables cannot be captured"),
    (a_state_set, "setting the state of a random generator cannot be captured"),
    (lambda world, x: cg.random.seed(3), "setting the state of a random generator cannot be captured"),
    (lambda world, x: cg.random.Generator(3).normal((3,)) + x, "making a random generator cannot be captured"),
]


@pytest.mark.parametrize(("f", "named"), REFUSED, ids=range(len(REFUSED)))
def test_what_a_net_would_do_otherwise_is_refused(f, named):
    world = World()
    before, states = world.state(), (world.generator.state, cg.random.default_generator.state)
    with pytest.raises(RuntimeError, match=f"^capture: .*{named}"): Net.capture(lambda x: f(world, x), GIVEN)
    for a, b in zip(world.state(), before, strict=True): same_bits(a, b)
    assert (world.generator.state, cg.random.default_generator.state) == states


def test_a_plan_restores_the_state_of_generators():
    g, before = cg.random.Generator(3), cg.random.default_generator.state

    def f():
        cg.random.seed(5)
        g.state = 7, 2
        return g.normal((3,)) + cg.random.normal((3,))

    cg.memory.plan(f)
    assert g.state == (3, 0) and cg.random.default_generator.state == before


def test_a_variable_must_stay_one():
    world = World()
    net, workspace = Net.capture(lambda x: a_detached_factor(world, x), GIVEN), Workspace()
    workspace.feed("x", GIVEN)
    workspace.run(net)
    world.w.requires_grad_(False)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="is no variable and was one at the capture"): workspace.run(net)
    world.w.attach_grad()
    workspace.run(net)


def test_dropout_is_as_it_was_captured():
    g = cg.random.Generator(0)

    def f(x):
        with cg.train_mode(): return cg.dropout(x, 0.5), cg.dropout(x, 0.5, g)

    net, workspace = Net.capture(f, cg.ones(100)), Workspace()
    net.training = False
    workspace.feed("x", np.ones(100, "f4"))
    workspace.run(net)
    for name in net.outputs: assert 0 in workspace.fetch(name).tolist()


@pytest.mark.parametrize("before", range(3))
@pytest.mark.parametrize("call", [lambda f, x: f(x), cg.checkpoint], ids=["plain", "checkpoint"])
def test_an_error_names_the_versions_of_eager_code(call, before):
    """Of memory from outside that was written before a node saved it, and since."""
    def message(run):
        w = cg.tensor(np.eye(3, dtype="f4")).attach_grad()

        def f(x):
            for _ in range(before):
                with cg.pause(): w.copy_(x)
            with cg.record(): y = call(lambda x: cg.exp(x @ w @ w), x).sum()
            with cg.pause(): w.copy_(x)
            y.backward()

        with pytest.raises(cg.InplaceError) as error: run(f)
        text = str(error.value)
        del error                                   # (its traceback holds the frames)
        return text

    ours = message(lambda f: Net.capture(f, np.ones((3, 3), "f4")))
    assert f" at version {before}, but " in ours and f" is at version {before + 1};" in ours
    assert ours == message(lambda f: f(cg.ones((3, 3))))
