"""One process without MPI: all methods work, and mpi4py is not imported."""

import subprocess
import sys

import numpy as np
import pytest

import cygrad as cg

WITHOUT = """
import sys
sys.modules["mpi4py"] = None                        # an import of it fails
import cygrad as cg
comm = cg.comm.Communicator()
assert (comm.rank, comm.size) == (0, 1)
"""


@pytest.mark.parametrize("environment", [{}, {"PMI_SIZE": "1", "PMI_RANK": "0"}])
def test_without_mpi4py(monkeypatch, environment):
    for name, value in environment.items(): monkeypatch.setenv(name, value)
    subprocess.run([sys.executable, "-c", WITHOUT], check=True)


def test_several_processes_without_mpi4py(monkeypatch):
    """They would be copies of one run."""
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "2")
    done = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True)
    assert "ImportError: Communicator: a launcher started 2 processes, and mpi4py, which connects" in done.stderr


def test_mpi4py_is_imported_by_launchers_only():
    program = "import sys, cygrad as cg; cg.comm.Communicator(); print('mpi4py' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
    program = "import sys, cygrad; print('cygrad.comm' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout == "False\n"


def test_calls():
    comm = cg.comm.Communicator()
    x, out, outs = cg.ones(3), cg.zeros(3), [cg.zeros(3)]
    for inplace in (False, True):
        assert comm.all_reduce([x], division=True, inplace=inplace) == [x] and x.version == 0
        assert comm.bcast([x], inplace=inplace) == [x] and x.version == 0
    comm.reduce_scatter([x], out)
    comm.all_gather(x, outs)
    comm.barrier()
    assert out.tolist() == outs[0].tolist() == [1, 1, 1]
    assert repr(comm) == "<Communicator: rank=0, size=1>"
    [s] = comm.all_reduce([cg.GradientSlice([1, 1], [[1.0], [2.0]], (3, 1))])
    assert s.indices.tolist() == [1] and s.values.tolist() == [[3]]


def test_a_scope():
    """With one rank it only scales, and it may stay in a program that others start on several."""
    w, idle = cg.ones(3).attach_grad(), cg.ones(2).attach_grad()
    scope = cg.comm.Communicator().all_reduce_callback({"w": w, "idle": idle}, 2, division=True, scale_grad=0.5)
    for _ in range(2):
        with scope:
            with cg.record(): y = (w * w).sum()
            y.backward()
        assert w.grad.tolist() == [1, 1, 1] and not idle.fresh_grad and scope.reduced == 2
    assert repr(scope) == "<AllReduceScope: pack_size=2, division=True, scale_grad=0.5, 2 gradients in 2 packs>"
    with pytest.raises(KeyError), scope: raise KeyError
    with scope: pass


def test_an_updater():
    """The scope is open in the last pass alone; callbacks run around it."""
    order = []

    class Scope:
        def __enter__(self): order.append("open")
        def __exit__(self, *error): order.append("close")

    def step(x):
        order.append("loss")
        return (w * x).sum()

    w = cg.ones(2).attach_grad()
    points = [f"{stage}_callback_on_{end}" for stage in ("backward", "comm", "update") for end in ("start", "finish")]
    calls = {point: (lambda i, point=point: order.append(point.replace("_callback_on", ""))) for point in points}
    updater = cg.trainers.Updater(cg.optim.Sgd({"w": w}, lr=1.0), step, iter([1.0, 2.0]).__next__, accum_grad=2,
                                  comm_callback=Scope(), **calls)
    updater.update(0)
    assert order == ["loss", "backward_start", "backward_finish", "loss", "backward_start", "comm_start", "open",
                     "close", "comm_finish", "backward_finish", "update_start", "update_finish"]
    assert w.tolist() == [-2, -2] and "comm_callback=Scope" in repr(updater)


def test_an_updater_whose_scope_fails():
    class Scope:
        def __enter__(self): pass
        def __exit__(self, *error): raise RuntimeError("another rank")

    w = cg.ones(2).attach_grad()
    updater = cg.trainers.Updater(cg.optim.Sgd({"w": w}, lr=1.0), lambda: w.sum(), comm_callback=Scope())
    with pytest.raises(RuntimeError, match="another rank") as caught: updater.update(0)
    assert caught.value.__notes__ == ["cygrad: in Updater.update, at backward; the gradients are zeros"]
    assert w.grad.tolist() == [0, 0] and w.tolist() == [1, 1]
    del caught


def test_sharded_solver():
    """Alone it has all states."""
    w = cg.tensor(np.ones(4)).attach_grad()
    solver = cg.comm.ShardedSolver(cg.optim.Adam(0.1), cg.comm.Communicator())
    solver.set_parameters([w])
    updater = cg.trainers.DynamicLossScalingUpdater(solver, lambda: (w * w).sum(), weight_decay=0.1)
    updater.update()
    assert w[0].item() < 1 and solver.bytes_per_rank() == [64] and solver.state_dict()["state"]["0"]["step"] == 1
    assert repr(solver) == "<ShardedSolver: solver=Adam, lr=0.1, bytes_per_rank=[64], 1 parameter>"
