"""How jobs end: a rank that fails, is killed or leaves must not keep the others waiting. The example runs too."""

from pathlib import Path

import pytest
from ranks import needs_mpi, start

pytestmark = needs_mpi
ROOT = Path(__file__).parent.parent.parent

BEGIN = """
import os, signal, sys, threading, time
import cygrad as cg
comm = cg.comm.Communicator()
w = cg.ones(3).attach_grad()
def wait():
    while True: comm.all_reduce([cg.ones(3)]); time.sleep(0.01)
"""


def job(tmp_path, n, program):
    """Run a program on n ranks. Ranks that nobody ends wait for longer than start() does."""
    path = tmp_path / "job.py"
    path.write_text(BEGIN + program)
    return start(n, path)


@pytest.mark.parametrize("what, says", [
    ("x = cg.log(x)", "the loss has a NaN: log, at "), ("raise OSError('disk')", "OSError: disk"),
    ("raise KeyboardInterrupt", "KeyboardInterrupt")])
def test_a_trainer_that_fails_on_one_rank(tmp_path, what, says):
    done = job(tmp_path, 2, f"""
def loss():
    x = w * -1.0
    if comm.rank and trainer.iteration == 2: {what}
    return x.sum()
updater = cg.trainers.Updater(cg.optim.Sgd([w], lr=0.1), loss, comm=comm, grads=[w])
trainer = cg.trainers.Trainer(updater, None, None, 3, 2, progress=False)
trainer.train()
print("went on", flush=True)
""")
    assert done.returncode != 0 and "went on" not in done.stdout and says in done.stderr, done.stderr


@pytest.mark.parametrize("n", [2, 3])
def test_a_killed_rank_ends_the_job(tmp_path, n):
    done = job(tmp_path, n, "if comm.rank == 1: comm.barrier(); os.kill(os.getpid(), signal.SIGKILL)\n"
                            "comm.barrier(); comm.barrier(); print('went on')")
    assert done.returncode != 0 and "went on" not in done.stdout


def test_a_rank_that_is_killed_during_a_scope(tmp_path):
    done = job(tmp_path, 2, """
def kill(g):
    if comm.rank: os.kill(os.getpid(), signal.SIGKILL)
w.register_hook(kill)
with comm.all_reduce_callback([w], 2):
    with cg.record(): y = w.sum()
    y.backward()
print("went on")
""")
    assert done.returncode != 0 and "went on" not in done.stdout


@pytest.mark.parametrize("where", ["main", "thread"])
def test_an_exception_that_nobody_catches_ends_the_job(tmp_path, where):
    fail = {"main": "raise ValueError('wrong')",
            "thread": "threading.Thread(target=lambda: int('wrong')).start(); time.sleep(600)"}[where]
    done = job(tmp_path, 2, f"if comm.rank == 1: {fail}\nwait(); print('went on')")
    assert done.returncode != 0 and "went on" not in done.stdout
    assert "Traceback" in done.stderr and "ValueError" in done.stderr and "wrong" in done.stderr


def test_hooks_that_were_there_before_are_called(tmp_path):
    path = tmp_path / "hooks.py"
    path.write_text("import sys, threading\nsys.excepthook = lambda *e: print('mine', e[1], flush=True)\n"
                    + BEGIN + "if comm.rank: raise ValueError('wrong')\nwait()")
    done = start(2, path)
    assert done.returncode != 0 and "mine wrong" in done.stdout


def test_communicators_that_only_some_ranks_still_have(tmp_path):
    """The end waits for the ranks, not for objects: one rank has dropped its communicator, the other one has two."""
    done = job(tmp_path, 2, """
more = [cg.comm.Communicator() for _ in range(2)]
more[0].all_reduce([w])
if comm.rank: del more, comm
print("done", flush=True)
""")
    assert done.returncode == 0 and done.stdout.count("done") == 2, done.stderr


def test_a_rank_that_leaves(tmp_path):
    """Without an exception: the others raise at their next call, on either channel, also if they catch it."""
    done = job(tmp_path, 3, """
if comm.rank == 1: sys.exit(0)
scope = comm.all_reduce_callback([w], 2)
for call in (comm.barrier, scope.__enter__, comm.barrier):
    try: call()
    except RuntimeError as e: print(str(e) + "!", flush=True)
""")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("rank 0 calls barrier, and rank 1 calls the end of its program; all ranks must make the "
                             "same calls in the same order!") == 4
    assert done.stdout.count("rank 0 calls all_reduce_callback, and rank 1 calls the end of its program") == 2


def test_ctrl_c_while_waiting(tmp_path):
    """The communicator refuses further calls, whose messages could be mistaken. The program goes on; its end is that of
    the job."""
    done = job(tmp_path, 2, """
if comm.rank == 0:
    threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    try: comm.barrier()
    except KeyboardInterrupt: print("interrupted", flush=True)
    try: comm.barrier()
    except RuntimeError as e: print(e, flush=True)
    sys.exit(0)
time.sleep(600)
""")
    assert done.returncode != 0
    assert "interrupted\nthis communicator was interrupted while it waited for other ranks" in done.stdout


@pytest.mark.parametrize("n", [1, 2])
def test_the_example(n):
    done = start(n, ROOT / "examples" / "data_parallel.py", "--steps", "30")
    assert done.returncode == 0, done.stderr
    assert "the ranks are bit-identical" in done.stdout and "equal to one process" in done.stdout
