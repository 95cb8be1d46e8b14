"""The wording of errors: communicators. Those about several ranks are tested on several ranks too (tests/comm)."""

import os
import pickle
import sys
from types import SimpleNamespace

import cygrad as cg
from cygrad.comm import channel, launch

ShardedSolver = cg.comm.ShardedSolver


def comm():
    return cg.comm.Communicator()


def variable(*shape):
    return cg.ones(shape).attach_grad()


def without_mpi4py():
    """A launcher has started two processes, and mpi4py is missing."""
    before = sys.modules.get("mpi4py"), os.environ.get("PMI_SIZE")
    sys.modules["mpi4py"], os.environ["PMI_SIZE"] = None, "2"
    try: launch.world()
    finally:
        del sys.modules["mpi4py"], os.environ["PMI_SIZE"]
        if before[0] is not None: sys.modules["mpi4py"] = before[0]
        if before[1] is not None: os.environ["PMI_SIZE"] = before[1]


def null():
    """MPI.COMM_NULL of a stand-in for mpi4py."""
    before, c = sys.modules.get("mpi4py"), SimpleNamespace()
    sys.modules["mpi4py"] = SimpleNamespace(MPI=SimpleNamespace(Intracomm=SimpleNamespace, COMM_NULL=c))
    try: cg.comm.Communicator(c)
    finally:
        del sys.modules["mpi4py"]
        if before is not None: sys.modules["mpi4py"] = before


def interrupted():
    c = comm()
    c._channel.left = ()
    c.barrier()


def differ(*ranks):
    """What ranks raise whose calls are described by dicts."""
    same = {"call": "all_reduce", "options": [["inplace", "False"]], "label": "arrays", "arrays": [], "error": None}
    raise channel.difference([same | r for r in ranks])


def read_only():
    a = cg.ones(2).numpy()
    a.flags.writeable = False
    return cg.asarray(a)


def recorded():
    with cg.record(): return variable(2) * 2


def in_scope(f, *variables):
    with comm().all_reduce_callback(variables, 4): f()


def twice():
    w = variable(2)

    def passes():
        for _ in range(2):
            with cg.record(): y = w.sum()
            y.backward()

    in_scope(passes, w)


def graph():
    w = variable(2)

    def passes():
        with cg.record(): y = (w * w).sum()
        cg.backward(y, create_graph=True)

    try: in_scope(passes, w)
    finally: w.grad = None


def removed():
    w = variable(2)

    def passes():
        with cg.record(): y = w.sum()
        y.backward()

    handle = w.register_post_accumulate_grad_hook(lambda x: setattr(x, "grad", None))
    try: in_scope(passes, w)
    finally: handle.remove()


def opened():
    scope = comm().all_reduce_callback([variable(2)], 4)
    with scope: scope.__enter__()


def sharded(**parameters):
    return ShardedSolver(cg.optim.Adam(parameters or {"w": variable(2)}), comm())


def loaded(change):
    """load_state_dict() of what a solver has, changed."""
    solver = sharded()
    state = solver.state_dict()
    solver.load_state_dict(change(state) or state)


def sliced():
    w = variable(3, 1)
    solver = ShardedSolver(cg.optim.Lamb({"w": w}), comm())
    w.grad, w.fresh_grad = cg.GradientSlice([0], [[1.0]], (3, 1)), True
    solver.update()


CASES = [
    (without_mpi4py, ImportError,
     "Communicator: a launcher started 2 processes, and mpi4py, which connects them, cannot be imported (<*>); install "
     "cygrad[mpi]"),
    (lambda: cg.comm.Communicator(3), TypeError,
     "Communicator: comm must be a communicator of mpi4py, such as MPI.COMM_WORLD, or None, got 3"),
    (null, ValueError, "Communicator: comm is MPI.COMM_NULL: this process is not one of its ranks"),
    (lambda: pickle.dumps(comm()), TypeError,
     "a Communicator cannot be pickled or copied: it belongs to the processes of this job"),
    (interrupted, RuntimeError,
     "this communicator was interrupted while it waited for other ranks, so it cannot be used any more; end the "
     "program, or make another Communicator on all ranks"),
    (lambda: differ({}, {"error": "ValueError: wrong"}), RuntimeError,
     "all_reduce: rank 1 raised ValueError: wrong; nothing has changed on any rank"),
    (lambda: differ({}, {}, {"call": "barrier"}), RuntimeError,
     "rank 0 calls all_reduce, and rank 2 calls barrier; all ranks must make the same calls in the same order"),
    (lambda: differ({}, {"arrays": ["float32 (3,)"]}), ValueError,
     "all_reduce: the number of arrays is 1 on rank 1 and 0 on rank 0; they must be equal on all ranks"),
    (lambda: differ({"arrays": ["float32 (3,)"]}, {"arrays": ["float32 (4,)"]}), ValueError,
     "all_reduce: arrays[0] is float32 (4,) on rank 1 and float32 (3,) on rank 0; they must be equal on all ranks"),
    (lambda: differ({}, {"options": [["inplace", "True"]]}), ValueError,
     "all_reduce: inplace is True on rank 1 and False on rank 0; they must be equal on all ranks"),
    (lambda: differ({}, {}), AssertionError, "the ranks agree"),
    (lambda: comm().all_reduce("x"), TypeError, "all_reduce: arrays must be a list of tensors, got 'x'"),
    (lambda: comm().all_gather(cg.ones(2), [cg.GradientSlice([0], [[1.0]])]), TypeError,
     "all_gather: outs[0] is a GradientSlice, whose number of rows differs between ranks; pass its to_dense(), or use "
     "all_reduce"),
    (lambda: comm().bcast([cg.ones(1), 3]), TypeError, "bcast: arrays[1] must be a tensor, got 3"),
    (lambda: comm().all_reduce([cg.ones(2) > 0]), TypeError,
     "all_reduce: arrays[0] is a bool tensor of shape (2,); pass its astype(\"int32\")"),
    (lambda: comm().all_reduce([recorded()]), ValueError,
     "all_reduce: arrays[0], of shape (2,), is the result of a recorded operation, which a write would change; pass "
     "its detach() or a copy()"),
    (lambda: comm().all_reduce([read_only()]), ValueError,
     "all_reduce: arrays[0], of shape (2,), has read-only memory; pass a copy()"),
    (lambda: (lambda x: comm().all_reduce([cg.ones(1), x, x[1:]]))(cg.ones(3)), ValueError,
     "all_reduce: arrays[2] shares memory with arrays[1]; each is written once, so list one of them, or use a copy()"),
    (lambda: comm().all_reduce([cg.arange(3)], division=True), TypeError,
     "all_reduce: arrays[0] is int64, and division=True needs float32 or float64"),
    (lambda: comm().reduce_scatter([cg.arange(3)], cg.arange(3), division=True), TypeError,
     "reduce_scatter: out is int64, and division=True needs float32 or float64"),
    (lambda: comm().all_reduce([], division=1), TypeError, "all_reduce: division must be True or False, got 1"),
    (lambda: comm().bcast([], root=1), ValueError, "bcast: root is 1, and the ranks are 0 to 0"),
    (lambda: comm().reduce_scatter([], cg.ones(2)), ValueError,
     "reduce_scatter: arrays must have a tensor for each of 1 ranks, got 0"),
    (lambda: comm().all_gather(cg.ones(2), [cg.ones(3)]), ValueError,
     "all_gather: outs[0] is float32 (3,) and array is float32 (2,); they must be equal"),
    (lambda: comm().all_reduce_callback(iter([]), 4), ValueError,
     "all_reduce_callback: arrays is an iterator without elements, and an iterator can be read once; pass a list, such "
     "as [*model.parameters()]"),
    (lambda: comm().all_reduce_callback([3], 4), TypeError,
     "all_reduce_callback: arrays[0] must be a variable, got 3"),
    (lambda: comm().all_reduce_callback([cg.arange(3)], 4), ValueError,
     "all_reduce_callback: arrays[0], of shape (3,), is int64; the arrays are variables, whose .grad is summed"),
    (lambda: (lambda w: comm().all_reduce_callback([w, w], 4))(variable(2)), ValueError,
     "all_reduce_callback: arrays[1] is the same variable as arrays[0]; list it once"),
    (lambda: comm().all_reduce_callback([], 4, division=1), TypeError,
     "all_reduce_callback: division must be True or False, got 1"),
    (opened, RuntimeError,
     "all_reduce_callback: a scope of this communicator is open already; it takes one backward pass at a time"),
    (twice, RuntimeError,
     "all_reduce_callback: a second backward pass in one scope reached arrays[0], of shape (2,), whose sum has begun; "
     "open the scope around the last pass only"),
    (removed, RuntimeError,
     "all_reduce_callback: another hook has removed the gradient of arrays[0], of shape (2,), before it was summed; "
     "sum first"),
    (graph, RuntimeError,
     "all_reduce_callback: the gradient of arrays[0], of shape (2,), has a graph (create_graph=True), which a sum over "
     "ranks would lose; use all_reduce on a detach()"),
    (lambda: ShardedSolver(3, comm()), TypeError, "ShardedSolver: solver must be a solver of cygrad.optim, got 3"),
    (lambda: ShardedSolver(cg.optim.Sgd(), 3), TypeError, "ShardedSolver: comm must be a Communicator, got 3"),
    (sliced, TypeError,
     "update: the gradient of 'w' is a GradientSlice, and Lamb takes only tensors; use embedding() with sparse=False"),
    (lambda: loaded(lambda s: {"state": 3}), ValueError,
     "load_state_dict takes what state_dict() returned, a dict with state, param_groups and others; got ['state']"),
    (lambda: loaded(lambda s: s.pop("lr") and None), ValueError, "load_state_dict: the dict has no lr"),
    (lambda: loaded(lambda s: s["param_groups"][0].update(params=["v"])), ValueError,
     "load_state_dict: the names in the dict must be those of the solver's parameters; missing 'w'; unknown 'v'"),
    (lambda: loaded(lambda s: s["state"].update(w={"step": 0})), ValueError,
     "load_state_dict: the state of 'w' must have the tensors m, v like the parameter, float32 (2,), and the number of "
     "updates, step; got step: 0"),
    (lambda: cg.trainers.Updater(cg.optim.Sgd(), lambda: 0, comm_callback=3), TypeError,
     "Updater: comm_callback must be a scope, as comm.all_reduce_callback() returns, got 3"),
    (lambda: cg.trainers.Updater(cg.optim.Sgd(), lambda: 0, comm=comm(), comm_callback=comm().all_reduce_callback(
        [], 4)), ValueError,
     "Updater: comm_callback takes the place of comm and grads, which would sum the gradients once more; pass one of "
     "them"),
]
