"""Programs with a mistake, for the cases of wordings/."""

from concurrent.futures import ThreadPoolExecutor
from tempfile import TemporaryDirectory

import numpy as np
from capsules import Exporter

import cygrad as cg
from cygrad.core.execute.program import Program
from cygrad.testing import assert_no_leak, fail_allocation


def VARIABLE():
    return cg.tensor([1.0, 2.0]).attach_grad()


def RESULT():
    x = VARIABLE()
    with cg.record():
        return x * x


def recording(f):
    with cg.record():
        return f()


def set_grad(x, value):
    x.grad = value


def written_after_it_was_kept():
    x, w = VARIABLE(), VARIABLE()
    with cg.record():
        y = x * w
    w += 1
    w += 1
    y.backward()


def write_to_a_detached():
    y = RESULT()
    with cg.record():
        z = y.detach()
        z += y


def write_to_a_part_of_steps():
    p, x = cg.asarray(np.zeros((4, 2), "float32")[:, 0]), VARIABLE()
    with cg.record():
        p[1:3] += x


def hooked(value):
    x = VARIABLE()
    x.register_hook(lambda g: value)
    with cg.record():
        y = x * x
    y.backward()


def node_hooked(before, value):
    y = RESULT()
    (y.grad_fn.register_prehook if before else y.grad_fn.register_hook)(lambda *gs: value)
    y.backward()


def leaf_hooked(value):
    x = VARIABLE()
    with cg.record():
        y = x * 2
    y.grad_fn.next_functions[0][0].register_hook(lambda inputs, outputs: value)
    y.backward()


def from_a_gradient(how):
    """backward through a gradient without a graph, because grad() or backward() ran without create_graph."""
    x = VARIABLE()
    with cg.record():
        y = (x * x).sum()
        g = cg.autograd.grad(y, x, retain_graph=True)
        y.backward()
        {"sum": lambda: g.sum().backward(), "grad": lambda: cg.autograd.grad(g, x),
         ".grad": lambda: x.grad.sum().backward()}[how]()


class WritesItsGradient(cg.autograd.Function):
    """The same, with a backward that writes to its gradient."""

    @staticmethod
    def forward(ctx, x):
        return x * 1

    @staticmethod
    def backward(ctx, g):
        g *= 100


def gradient_written(through):
    """A hook, or a Function's backward, that writes to the head gradient of the caller."""
    x, head = VARIABLE(), cg.ones(2)
    with cg.record():
        y = x * 1 if through == "hook" else WritesItsGradient.apply(x)
        if through == "hook": y.register_hook(lambda g: WritesItsGradient.backward(None, g))
    y.backward(head)


def function(forward=None, backward=None, *inputs, **named):
    class Own(cg.autograd.Function):
        pass

    if forward: Own.forward = staticmethod(forward)
    if backward: Own.backward = staticmethod(backward)
    with cg.record():
        y = Own.apply(*(inputs or (VARIABLE(),)), **named)
    y.backward()


def save_and_free(ctx, x):
    y = x * 1
    ctx.save_for_backward(y)
    y.free()
    return x * 2


def two_dtypes(ctx, x):
    return x * 1, x.astype("float64")


def saved_outside():
    kept = []
    y = None

    class Own(cg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            kept.append(ctx)
            return x * 1

    with cg.record():
        y = Own.apply(VARIABLE())
    ctx = kept.pop()
    del y
    return ctx.saved_tensors


def packed(pack, unpack):
    x = VARIABLE()
    with cg.autograd.saved_tensors_hooks(pack, unpack), cg.record():
        y = cg.exp(x)
    y.backward()


def hooks_in(scope):
    """Open saved_tensors_hooks in a scope."""
    with scope, cg.autograd.saved_tensors_hooks(id, id): pass


def nan():
    x = cg.zeros(1).attach_grad()
    with cg.autograd.detect_anomaly(), cg.record():
        y = (x * 0) ** 0.5 * 0
        y.backward()


def closed_collector():
    with cg.GradientCollector() as gc:
        pass
    gc.backward(RESULT())


def other_mode():
    x = VARIABLE()
    with cg.record():
        y = cg.dropout(x, 0.5)
    y.backward(train_mode=False)


def fused(call):
    w = cg.ones(2).attach_grad()
    solver = cg.optim.Sgd({"w": w}, lr=0.1)
    with solver.fuse_into_backward():
        with cg.record(): y = (w * w).sum()
        call(solver, y)


def fused_twice():
    w = cg.ones(2).attach_grad()
    first, second = cg.optim.Sgd({"w": w}, lr=0.1), cg.optim.Sgd({"w": w}, lr=0.1)
    with first.fuse_into_backward(): second.fuse_into_backward()


def entered_again():
    w = cg.ones(2).attach_grad()
    solver = cg.optim.Sgd({"w": w}, lr=0.1)
    with solver.fuse_into_backward() as handle: pass
    with handle: pass


def half_an_update(call):
    w = VARIABLE()
    solver = cg.optim.Momentum({"w": w}, lr=0.1)
    with solver.fuse_into_backward() as handle:
        with handle.accumulate():
            with cg.record(): y = cg.matmul(cg.ones(1, w.shape[0]), w.reshape((-1, 1))).sum() + (w * w).sum()
            y.backward()
        call(solver, handle, w)


def ended_in_its_pass():
    w = cg.ones(4, 4).attach_grad()
    solver = cg.optim.Momentum({"w": w}, lr=0.1)
    with solver.fuse_into_backward():
        with cg.record():
            h = cg.matmul(cg.ones(2, 4).attach_grad(), w)
            h.register_hook(lambda g: solver.update())
            y = cg.matmul(h, w).sum()
        y.backward()


def pass_before_update(w):
    with cg.record(): y = (w * w).sum()
    y.backward()


def accumulated_twice():
    with cg.optim.Sgd({"w": VARIABLE()}, lr=0.1).fuse_into_backward() as handle:
        with handle.accumulate(), handle.accumulate(): pass


def open_budget():
    b = cg.memory.budget("1MiB")
    with b: b.__enter__()


def budget_set_up_again():
    b = cg.memory.budget("1MiB")
    with b: b.__init__("2MiB")


def small_budget():
    x = cg.ones(100)
    with cg.memory.budget(300): del x


def over_budget():
    with cg.memory.budget("1kB"): cg.sin(cg.ones(300))


def budget_of_another_thread():
    with cg.memory.budget("1MiB") as b, ThreadPoolExecutor(1) as pool:
        pool.submit(b.__exit__).result()


def written_argument():
    x, c = cg.ones(2).attach_grad(), cg.ones(2)
    with cg.record(): y = cg.checkpoint(lambda x: cg.sin(x + c), x).sum()
    c += 1
    y.backward()


def written_by_numpy():
    shared = np.ones(2)
    x, c = cg.ones(2, dtype="float64").attach_grad(), cg.asarray(shared)
    with cg.record(): y = cg.checkpoint(lambda x: cg.sin(x + c), x, determinism_check="hash").sum()
    shared[0] = 2
    y.backward()


def two_collectors():
    with cg.GradientCollector():
        cg.GradientCollector()


def collector_of_another_thread():
    with cg.GradientCollector() as gc, ThreadPoolExecutor(1) as pool:
        pool.submit(gc.close).result()


def profiled():
    with cg.memory.profile() as p:
        return p


def twice(make):
    scope = make()
    with scope, scope:
        pass


def profile_twice():
    with cg.memory.profile() as p, p:
        pass


def limited():
    with cg.memory.limit(0):
        cg.zeros((4096, 4096))


def in_two_passes_at_once():
    y, errors = RESULT(), []

    def listen(event):                              # called at every allocation, so also during a pass
        if not errors and y.grad_fn is not None:
            errors.append(None)
            try:
                y.backward(retain_graph=True)
            except RuntimeError as e:
                errors[0] = str(e)
            else:
                errors.clear()

    head = cg.ones(2)
    with cg.memory.events(listen):
        y.backward(head)
    raise RuntimeError(errors[0])


def view_of_a_leaf():
    x = VARIABLE()
    with cg.record():
        x[:1].fill_(0)


def own_gradient():
    x = VARIABLE()
    x.grad = x


def labels_written_through_numpy():
    x, labels = cg.ones((2, 3)).attach_grad(), cg.tensor([0, 1])
    with cg.record():
        loss = cg.cross_entropy(x, labels)
    labels.numpy()[0] = 10**10
    loss.backward()


def kept_index(values):
    x, index = cg.ones(2).attach_grad(), cg.tensor(values)
    with cg.record():
        y = x[index]
    index.numpy()[:] = 2**40
    return y


def run_with_another_mask():
    """mask_put() in a program, with more true elements than there are values."""
    program = Program(cg.ops.ROWS["mask_put"].function, cg.ones(2), cg.ones(1), cg.tensor([True, False]))
    program.run(cg.ones(2), cg.ones(1), cg.tensor([True, True]))


def twice_in_a_solver():
    x = VARIABLE()
    cg.optim.Sgd().set_parameters({"a": x, "b": x})


def adam():
    return cg.optim.Adam({"w": VARIABLE()})


def scaled_with_a_graph():
    w = VARIABLE()
    solver = cg.optim.Sgd({"w": w})
    with cg.record():
        y = (w * w).sum()
        y.backward(create_graph=True)
    try: solver.scale_grad(2.0)
    finally: w.grad = None                          # a cycle


def without_a_rule():
    class Nothing(cg.optim.Solver):
        pass

    w, solver = VARIABLE(), Nothing()
    solver.set_parameters({"w": w})
    with cg.record():
        y = (w * w).sum()
    y.backward()
    solver.update()


def incomplete():
    class Fails(WritesItsGradient):
        @staticmethod
        def backward(ctx, g):
            raise ArithmeticError

    w = VARIABLE()
    with cg.record():
        y = Fails.apply(w) + w * 2
    try:
        y.backward()
    except ArithmeticError:
        pass
    solver = cg.optim.Sgd()
    solver.set_parameters({"w": w})
    solver.update()


def graph_into_a_given_buffer():
    x = cg.tensor([1.0, 2.0])
    cg.mark_variables(x, cg.zeros(2))
    with cg.record():
        y = x * x
    y.backward(create_graph=True)


def backward_twice():
    y = RESULT()
    y.backward()
    y.backward()


def marked_on_its_way():
    x, head = VARIABLE(), cg.ones(2)
    with cg.record(): y = x * 2
    y.register_hook(lambda g: cg.mark_variables(x, head))
    y.backward(head)


class Same(cg.autograd.Function):
    @staticmethod
    def forward(ctx, x): return x

    @staticmethod
    def backward(ctx, g): return g


def returned_and_written():
    with cg.record():
        y = VARIABLE() * 2
        z = Same.apply(y)
        y *= 3
        z.sum()


def failing_allocation():
    with fail_allocation(1):
        cg.zeros(2)


def nested_failures():
    with fail_allocation(2), fail_allocation(1):
        pass


def counting():
    calls = []

    def f(x):
        calls.append(x.shape)
        return x * len(calls)

    return f


def freed():
    x = cg.zeros(2)
    x.free()
    return x


def free_what_is_lent():
    x = cg.zeros(2)
    a = x.numpy()
    x.free()
    return a


def free_a_gradient():
    x = VARIABLE()
    x.grad.free()


def entered_twice():
    with cg.memory.scope() as s, s:
        pass


def outlived():
    with cg.memory.scope(capped=True):
        _x, _y = cg.zeros((2, 3)), cg.zeros(5, dtype="int64")


def without_shape():
    e = Exporter()
    e.managed.inner.shape = None
    return e


def lying_solver(change):
    """A pickled Adam whose parameter "w" was changed by `change(its states)`."""
    solver = cg.optim.Adam()
    solver.set_parameters({"w": VARIABLE()})
    state = solver.__getstate__()
    change(state["parameters"]["w"][1])
    cg.optim.Adam().__setstate__(state)


def other_states(solver="Adam", fmt=None, t=None):
    """Load the states of an Adam from a file that save_states() has not written, or in which something differs."""
    adam = cg.optim.Adam({"w": VARIABLE()})
    with TemporaryDirectory() as where:
        path = where + "/states.npz"
        adam.save_states(path)
        tensors, metadata = cg.load(path), cg.io.metadata(path)
        if t is not None: tensors["w.t"] = t
        cg.save(path, tensors, metadata | {"solver": solver, "format": fmt or metadata["format"]})
        adam.load_states(path)


def other_settings():
    state = cg.optim.Adam().__getstate__()
    state["settings"]["rho"] = state["settings"].pop("eps")
    cg.optim.Adam().__setstate__(state)


def leaking():
    with assert_no_leak():
        x = cg.zeros(2)
    return x


# ---- row-sparse gradients --------------------------------------------------------------------------------------------

def one_row():
    return cg.GradientSlice([1], [[1.0, 2.0]])


def table():
    return cg.zeros((3, 2))


def kept_result():
    w = table().attach_grad()
    with cg.record():
        y = w * 2
    y.retain_grad()
    return y


def returned_by_a_hook(value, sparse=False):
    w = cg.zeros((3, 2)).requires_grad_()
    w.register_hook(lambda g: value)
    with cg.record():
        y = cg.embedding([0], w, sparse=sparse)
    y.backward()


def slice_for_nesterov():
    w = cg.zeros((3, 2)).requires_grad_()
    with cg.record():
        y = cg.embedding([0], w, sparse=True)
    y.backward()
    solver = cg.optim.Nesterov()
    solver.set_parameters({"w": w})
    solver.update()


def update_with(loss):
    """An update with the result of `loss`."""
    w = VARIABLE()
    solver = cg.optim.Sgd()
    solver.set_parameters([w])
    cg.trainers.Updater(solver, lambda: loss(w)).update(0)
