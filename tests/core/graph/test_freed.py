"""free() and memory.scope(): memory that is released before its tensor dies."""

import copy
import gc
import operator
import pickle
import threading
import weakref

import numpy as np
import pytest

import cygrad as cg
from cygrad.core.graph.freed import FreedTensor
from cygrad.core.graph.unreadable import Unreadable
from cygrad.core.execute.program import Program
from cygrad.testing import fail_allocation
from tests.samples import TABLE


def live():
    return cg.memory.stats()["live_bytes"]


def freed():
    x = cg.ones((2, 2))
    x.free()
    return x


def alive():
    return cg.ones((2, 2))


def on_both_sides(op):
    f = getattr(operator, op)
    return {f"{op}, left": lambda x: f(x, alive()), f"{op}, right": lambda x: f(alive(), x),
            f"{op} a number": lambda x: f(x, 2.0), f"a number {op}": lambda x: f(2.0, x)}


def in_place(op):
    f = getattr(operator, op)
    return {f"{op} a tensor": lambda x: f(x, alive()), f"{op} a number": lambda x: f(x, 2.0),
            f"{op} a freed one": lambda x: f(alive(), x)}


USES = {
    **{k: use for op in "add sub mul truediv eq ne lt le gt ge".split() for k, use in on_both_sides(op).items()},
    **{k: use for op in "iadd isub imul itruediv".split() for k, use in in_place(op).items()},
    "abs": abs, "~x": lambda x: ~x, "x & y": lambda x: x & alive(), "x | y": lambda x: alive() | x,
    "x @ y": lambda x: x @ alive(), "y @ x": lambda x: alive() @ x, "x ** 2": lambda x: x**2,
    **{name: getattr(operator, name) for name in "neg pos index truth".split()},
    **{f.__name__: f for f in (float, int, len, list, bytes, bytearray, memoryview, np.asarray, np.from_dlpack,
                               copy.copy, copy.deepcopy, pickle.dumps, cg.tensor, cg.asarray, cg.from_dlpack,
                               cg.zeros_like, cg.exp, cg.sum, cg.relu, cg.stop_gradient, cg.dropout, cg.log_softmax,
                               cg.random.permutation)},
    "x[0]": lambda x: x[0], "x[0] = 1": lambda x: operator.setitem(x, 0, 1), "in": lambda x: 1.0 in x,
    "del": lambda x: operator.delitem(x, 0), "as a value": lambda x: cg.ones((2, 2)).copy_(x),
    "as an operand": lambda x: cg.linear(alive(), x), "in a list": lambda x: cg.tensor([x, x]),
    "scale_gradient": lambda x: cg.scale_gradient(x, 2), "Tensor.add": lambda x: cg.Tensor.add(x, x),
    "sum": lambda x: x.sum(), "numpy": lambda x: x.numpy(), "grad": lambda x: x.grad, "item": lambda x: x.item(),
    "grad =": lambda x: setattr(x, "grad", None), "as a gradient": lambda x: setattr(variable(), "grad", x),
    "mark_variables": lambda x: cg.mark_variables(variable(), x), "marked": lambda x: cg.mark_variables(x, alive()),
    "attach_grad": lambda x: x.attach_grad(), "in a solver": lambda x: cg.optim.Sgd().set_parameters([x]),
    "backward": cg.backward, "as a head": lambda x: cg.backward(recorded(), x),
    "grad of": lambda x: cg.autograd.grad(recorded(), x),
    **{name: operator.attrgetter(name) for name in "shape dtype strides ndim size nbytes version T grad_req".split()},
}


def variable():
    return cg.ones((2, 2)).attach_grad()


def recorded():
    v = variable()
    with cg.record():
        return v * 2


# ---- free ------------------------------------------------------------------------------------------------------------

def test_the_bytes_come_back_now():
    before = live()
    x = cg.ones((1000,))
    assert live() == before + 4000
    assert x.free() is None
    assert live() == before
    x.free()                                        # a second time has no effect
    assert repr(x) == str(x) == f"{x}" == "<freed tensor>" and isinstance(x, cg.Tensor) and x in {x}
    ref = weakref.ref(x)
    del x
    assert ref() is None and live() == before


@pytest.mark.parametrize("name", USES)
def test_every_use_raises_and_says_so(name):
    with pytest.raises(RuntimeError, match="was freed"):
        USES[name](freed())


def test_every_slot_of_tensor_is_refused():
    """If Tensor had a slot that Unreadable lacks, it would compute with an empty tensor."""
    harmless = {"__new__", "__init__", "__hash__", "__repr__"}
    by_attribute = {"__array__", "__array_namespace__", "__reduce_ex__", "__deepcopy__", "__dlpack__",
                    "__dlpack_device__"}            # looked up in instances
    names = {n for n, v in vars(cg.Tensor).items() if n.startswith("__") and callable(v)} - harmless - by_attribute
    assert {"__add__", "__radd__", "__getitem__", "__iadd__", "__bool__", "__eq__"} <= names
    missing = sorted(names - set(vars(Unreadable)) - {"__format__"})
    assert not missing, f"core/graph/unreadable.pyx lacks {missing}"
    assert FreedTensor.__basicsize__ == cg.Tensor.__basicsize__


def test_a_freed_tensor_is_not_made():
    """Without a live tensor before, it would have no memory for free() to read."""
    kind = type(freed())
    for make in (kind, lambda: kind.__new__(kind)):
        with pytest.raises(TypeError, match=r"Tensor is not instantiated; call cygrad.tensor\(data\)"):
            make()


def test_freed_tensors_die_like_others():
    """Their memory is reused. A million of them test the reference counts too."""
    for _ in range(5000):
        x = cg.ones(3)
        x.free()
        y = cg.ones(3)
        assert type(y) is cg.Tensor and y.shape == (3,)
    kept = [freed() for _ in range(3000)]
    del kept
    assert type(cg.ones(3)) is cg.Tensor


def test_kinds_of_tensors():
    before, external = live(), cg.memory.stats()["external_bytes"]
    a = np.ones(4)
    for x in (cg.tensor(1.0), cg.zeros((0, 3)), cg.asarray(a), cg.tensor([True]), cg.ones((3, 4)).T):
        x.free()
    x = cg.ones((3, 4))
    view = x[1:]
    del x
    view.free()                                     # the last holder may be a view
    assert live() == before and cg.memory.stats()["external_bytes"] == external


def test_others_hold_the_memory():
    x = cg.ones((4,))
    view, a, m = x[1:], x.numpy(), memoryview(x)
    with cg.record():
        y = x.attach_grad() * 3
        z = x * y
    x.grad.fill_(0)
    before = live()
    with pytest.raises(RuntimeError, match=r"1 kept for backward, 2 lent to arrays or by DLPack, 1 of other tensors"):
        x.free()
    with pytest.raises(RuntimeError, match=r"1 kept for backward; release"):
        y.free()
    with pytest.raises(RuntimeError, match="has other holders"):
        view.free()
    assert live() == before and x.tolist() == a.tolist() == m.tolist() and x.requires_grad
    capsule = x.detach().__dlpack__()
    with pytest.raises(RuntimeError, match=r"3 lent"):
        x.free()
    z.backward()
    assert x.grad.tolist() == [6] * 4
    del view, a, m, capsule
    x.free()
    y.free()
    z.free()
    assert live() == before - 4 * 16                # x, y, z, x.grad


def test_variables_and_gradients():
    before = live()
    v = cg.ones(8).attach_grad()
    g = v.grad
    with pytest.raises(RuntimeError, match=r"the gradient of a variable; assign None to that \.grad"):
        g.free()
    assert live() == before + 32 and g.tolist() == [0] * 8 and live() == before + 64       # (when they are read)
    v.free()                                        # frees its gradient too, if only the variable holds it
    assert live() == before + 32 and g.tolist() == [0] * 8
    g.free()
    assert live() == before and cg.memory.stats()["by_category"]["parameters"] == 0
    w = cg.ones(4).attach_grad()
    with cg.record():
        y = w * 2
    w.free()                                        # (a product with a number does not save it)
    y.backward()                                    # its gradient is dropped
    assert y.tolist() == [2] * 4


def test_graphs_go_with_their_last_tensor():
    v = cg.ones(100).attach_grad()
    before = live()
    with cg.record() as tape:
        y = v.exp().tanh().exp()
        z = y + 1
    del z
    assert tape.nodes == 3
    with pytest.raises(RuntimeError, match="1 kept for backward"):
        y.free()                                    # e^x saves its result
    with cg.record() as other:
        s = y * 2
    s.free()
    assert other.nodes == 0 and tape.nodes == 3
    del y
    assert live() == before and tape.nodes == 0


def test_solver_states_and_programs_are_held():
    v = cg.ones(4).attach_grad()
    solver = cg.optim.Adam()
    solver.set_parameters([v])
    with cg.record():
        (v * 2).backward()
    v.free()
    with pytest.raises(RuntimeError, match="update: '0' was freed"): solver.update()
    x = cg.ones((4,))
    program = Program(lambda: x * 2)
    program.run()
    for t in (x, program.outputs):
        with pytest.raises(RuntimeError, match="1 of other tensors"): t.free()
    assert program.run().tolist() == [2] * 4


def test_a_failed_free_changes_nothing():
    x = cg.ones(4).attach_grad()
    n = x.numpy()
    stats = cg.memory.stats()
    with pytest.raises(RuntimeError):
        x.free()
    assert cg.memory.stats() == stats and x.grad.tolist() == [0] * 4 and n.tolist() == [1] * 4
    with cg.record():
        (x * x).backward()
    assert x.grad.tolist() == [2] * 4


# ---- scopes ----------------------------------------------------------------------------------------------------------

def test_scope():
    before = live()
    outside = cg.ones(10)
    with cg.memory.scope() as s:
        x = outside * 2
        y = s.keep(x + 1)
        z = [x - 1, x[2:], cg.zeros((1000,))]
        assert s.keep(outside) is outside
    assert live() == before + 80
    for t in (x, *z):
        assert type(t) is FreedTensor
    assert y.tolist() == [3] * 10 and outside.tolist() == [1] * 10
    cg.ones(3)                                      # not registered any more
    del t, z


def test_scopes_nest():
    with cg.memory.scope() as outer:
        a = cg.ones(2)
        with cg.memory.scope() as inner:
            b, c = inner.keep(cg.ones(2)), inner.keep(cg.ones(2))
            d = a + 1
            e = inner.keep(a)
        assert type(d) is FreedTensor and e.tolist() == [1, 1]
        outer.keep(b)
        f = b + c
    assert b.tolist() == [1, 1]
    for t in (a, c, f):                             # the outer scope owns what the inner one kept
        assert type(t) is FreedTensor


def test_scopes_end_with_exceptions():
    before = live()
    with pytest.raises(KeyError), cg.memory.scope() as s:
        x, y = cg.ones(10), s.keep(cg.ones(1))
        raise KeyError
    assert type(x) is FreedTensor and y.item() == 1 and live() == before + 4
    del s


def test_memory_that_others_hold_stays_theirs():
    before = live()
    with cg.memory.scope() as s:
        x = cg.tensor([1.0, 2.0, 3.0])
        view, a = s.keep(x[1:]), x.numpy()
        v = s.keep(cg.ones(3).attach_grad())
        with cg.record():
            y = v * v
            z = s.keep(y * y)
    assert type(x) is FreedTensor and type(y) is FreedTensor
    assert view.tolist() == [2, 3] and a.tolist() == [1, 2, 3]
    z.backward()                                    # the graph still held the memory
    assert v.grad.tolist() == [4, 4, 4] and type(v.grad) is cg.Tensor
    del view, a, z, v
    assert live() == before


def test_variables_in_scopes():
    outside = cg.ones(3).requires_grad_()
    solver = cg.optim.Adam()
    with cg.memory.scope():
        solver.set_parameters([outside])            # the solver owns its states
        g = cg.ones(3).attach_grad("add").grad      # the variable is dead, so the scope frees it
        v = cg.ones(3).attach_grad()
        h = v.grad
        with cg.record():
            (outside * v).sum().backward()
        solver.update()
    assert type(v) is type(g) is type(h) is FreedTensor
    assert outside.grad.tolist() == [1] * 3         # made in the scope, but owned by the variable
    with cg.record():
        (outside * 2).sum().backward()
    solver.update()
    assert outside.grad.tolist() == [3] * 3


def capped_step(x, out):
    y = (x * 2).sum()
    out.append(y.item())
    return y


def test_capped_scopes():
    before, x, out = live(), cg.ones(10), []
    with cg.memory.scope(capped=True) as s:
        capped_step(x, out)                         # its names end with it
        y = s.keep(capped_step(x, out))
        z = x - 1
        assert z.tolist() == [0] * 10
        del z
    assert out == [20, 20] and y.item() == 20 and live() == before + 44
    with pytest.raises(RuntimeError, match=r"1 in all: \(10,\) float32 at .*test_freed.py:\d+;"):
        with cg.memory.scope(capped=True) as s:
            leaked, kept = x * 3, s.keep(x * 4)
    assert type(leaked) is FreedTensor and kept.tolist() == [4] * 10 and live() == before + 84
    cg.ones(3)                                      # the scope was left: nothing is registered any more
    with cg.memory.scope(capped=True):
        pass


def test_a_capped_scope_names_the_operation_and_the_first_three():
    x = cg.ones(2).attach_grad()
    with pytest.raises(RuntimeError) as e, cg.memory.scope(capped=True), cg.record():
        leaked = [x.exp(), *[cg.zeros((i,), dtype="int8") for i in range(1, 6)]]
    told = str(e.value)
    del e
    assert "6 in all" in told and "(2,) float32, made by exp at " in told and told.count(" int8 at ") == 2
    assert "; ...;" in told and all(type(t) is FreedTensor for t in leaked)


def test_gradients_may_outlive_a_capped_scope():
    x, solver = cg.ones(3).requires_grad_(), cg.optim.Adam()

    def step():
        with cg.record():
            (x * x).sum().backward()
        solver.update()

    with cg.memory.scope(capped=True):
        solver.set_parameters([x])
        step()
    assert x.grad.tolist() == [2] * 3


def test_a_capped_scope_leaves_exceptions_alone():
    before = live()
    with pytest.raises(KeyError), cg.memory.scope(capped=True):
        x = cg.ones(10)
        raise KeyError
    assert type(x) is FreedTensor and live() == before


def test_a_dead_cycle_does_not_outlive_a_capped_scope():
    class Holder:
        pass

    with cg.memory.scope(capped=True):
        a, b = Holder(), Holder()
        a.other, b.other, a.x = b, a, cg.ones(3)
        alive = weakref.ref(a)
        del a, b
    assert alive() is None


def test_capped_scopes_nest():
    with cg.memory.scope(capped=True) as outer:
        with cg.memory.scope() as inner:
            x, y = inner.keep(cg.ones(2)), cg.ones(2)
        outer.keep(x)
    assert x.tolist() == [1, 1] and type(y) is FreedTensor
    with pytest.raises(RuntimeError, match="1 in all"), cg.memory.scope(capped=True):
        with cg.memory.scope(capped=True) as inner:
            x = inner.keep(cg.ones(2))              # the outer scope owns it then
    assert type(x) is FreedTensor


def test_scopes_are_the_threads_own():
    made, ready, done = [], threading.Event(), threading.Event()

    def work():
        made.append(cg.ones(2))
        with cg.memory.scope() as s:
            made.extend([cg.ones(3), s.keep(cg.ones(4))])
            ready.set()
            done.wait()

    t = threading.Thread(target=work)
    with cg.memory.scope():
        t.start()
        ready.wait()
        x = cg.ones(5)
    assert type(x) is FreedTensor and [type(m) for m in made] == [cg.Tensor] * 3
    done.set()
    t.join()
    assert [type(m) for m in made] == [cg.Tensor, FreedTensor, cg.Tensor]
    made.clear()


def test_long_scopes_stay_small():
    """Dead tensors are removed from the list, so a loop in a scope does not make it grow."""
    x = cg.ones(1)
    with cg.memory.scope() as s:
        for _ in range(20000):
            x + 1
        referents = [r for r in gc.get_objects() if type(r) is weakref.ReferenceType and r() is None]
    assert len(referents) < 5000
    del referents, s


def test_scopes_that_are_misused():
    s = cg.memory.scope()
    with pytest.raises(RuntimeError, match="is not open"):
        s.keep(cg.ones(1))
    with s, pytest.raises(TypeError, match="x must be a tensor that is not freed"):
        s.keep(3)
    with s:                                         # again, in sequence
        x = cg.ones(1)
        with pytest.raises(RuntimeError, match="is already open"):
            s.__enter__()
    assert type(x) is FreedTensor
    with pytest.raises(RuntimeError, match="has not entered"):
        s.__exit__()
    with cg.memory.scope() as outer, pytest.raises(TypeError):
        outer.keep(x)


def test_failed_allocations_in_a_scope():
    before = live()
    x = cg.ones((3, 3))
    for n in range(1, 9):
        with fail_allocation(n) as failure:
            try:
                with cg.memory.scope():
                    y = x.exp() @ x
                    y + 1
            except MemoryError:
                pass
        if not failure.failed:
            break
    assert not failure.failed and live() == before + 36 and x.tolist() == [[1] * 3] * 3


@pytest.mark.parametrize("row", [pytest.param(row, id=row.name) for row in TABLE])
def test_every_operator_refuses_it(row):
    args, kwargs = row.tries[0]
    places = [i for i, a in enumerate(args) if isinstance(a, np.ndarray)]
    for at in places:
        xs = [cg.tensor(a) if i in places else a for i, a in enumerate(args)]
        xs[at].free()
        with pytest.raises(RuntimeError, match="was freed"):
            row.tested(*xs, **kwargs)
