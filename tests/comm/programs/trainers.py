"""Trainers on several ranks: means, files, resuming, and an early stop on which all agree."""

import os
import tempfile

import numpy as np
from common import COMM, RANK, SIZE, main, same_on_all_ranks

import cygrad as cg
from cygrad import nn
from cygrad.comm import ShardedSolver
from cygrad.data import DataLoader
from cygrad.trainers import Evaluator, Trainer, Updater

X = np.random.default_rng(0).normal(size=(8 * SIZE, 4)).astype("f4")[RANK::SIZE]      # rows of this rank
T = X.sum(1, keepdims=True)


def folder():
    """A folder that all ranks know, from rank 0."""
    name = np.zeros(200, "uint8")
    if RANK == 0:
        given = tempfile.mkdtemp().encode()
        name[:len(given)] = np.frombuffer(given, "uint8")
    (name,) = COMM.bcast([cg.tensor(name)])
    return bytes(name.numpy()).rstrip(b"\0").decode()


def remove(path):
    COMM.barrier()
    if RANK: return
    for name in os.listdir(path): os.unlink(os.path.join(path, name))
    os.rmdir(path)


def job(path=None, loss=None, while_backward_runs=False, sharded=False, **more):
    cg.random.seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Dropout(0.2), nn.Linear(8, 1))
    parameters = [*model.parameters()]
    loader = DataLoader((X, T), 4, shuffle=True, seed=RANK)
    solver = cg.optim.Adam(model.named_parameters(), lr=0.01)
    if sharded: solver = ShardedSolver(solver, COMM)
    if while_backward_runs: comm = {"comm_callback": COMM.all_reduce_callback(parameters, 100)}
    else: comm = {"comm": COMM, "grads": parameters}

    def of_batch(x, t): return cg.square(model(x) - t).mean() / SIZE if loss is None else loss() + 0 * model(x).sum()

    updater = Updater(solver, of_batch, loader.next, **comm)
    evaluator = Evaluator(lambda x, t: float(RANK), DataLoader((X, T), 4).next, comm=COMM, names=["rank"])
    trainer = Trainer(updater, more.pop("evaluator", evaluator), path, progress=False,
                      state={"model": model, "loader": loader}, **{"max_epoch": 3} | more)
    return trainer, parameters


def check_means_and_files():
    for while_backward_runs in (False, True):
        path = folder()
        trainer, parameters = job(path, while_backward_runs=while_backward_runs)
        history = trainer.train()
        means = cg.tensor(np.array(history["loss"]))
        assert same_on_all_ranks(means, *parameters) and history["rank"] == [(SIZE - 1) / 2] * 3
        COMM.barrier()
        ends = ["", *(f"-{r}" for r in range(1, SIZE))]
        assert sorted(os.listdir(path)) == sorted(
            [f"checkpoint_{i:06}{end}.safetensors" for i in (3, 5) for end in ends]
            + [f"params_{i:06}.safetensors" for i in (1, 3, 5)])
        COMM.barrier()
        job(path, max_epoch=1)[0].train()           # removes what is after its own
        COMM.barrier()
        assert sorted(name for name in os.listdir(path) if name.startswith("c")) == sorted(
            f"checkpoint_000001{end}.safetensors" for end in ends)
        remove(path)


def check_resuming_equals_no_stop():
    """Also where each rank has a part of the solver's states, and from there on without and with such parts."""
    for before, after in (False, False), (True, True), (True, False), (False, True):
        paths = folder(), folder()
        whole, expected = job(paths[0])
        whole.train()
        job(paths[1], sharded=before, max_epoch=1)[0].train()
        COMM.barrier()
        again, found = job(paths[1], sharded=after)
        again.train(resume=paths[1])
        assert all((x == y).all().item() for x, y in zip(expected, found, strict=True))
        assert again.history["loss"] == whole.history["loss"]
        for path in paths: remove(path)


def check_all_ranks_stop_together():
    """The loss of rank 0 rises, that of the others falls faster."""
    runs = []

    def loss():
        runs.append(None)
        return float(len(runs)) if RANK == 0 else -2.0 * len(runs)

    trainer, _ = job(loss=loss, evaluator=(), iter_per_epoch=1, patience=1, max_epoch=4)
    trainer.train()
    complete = 4 if SIZE > 1 else 2
    assert trainer.epoch == complete, (trainer.epoch, trainer.history["loss"])

    own = Evaluator(lambda: 1.0 if RANK else float(len(runs)), val_iter=1, names=["own"])      # without comm
    runs.clear()
    trainer, _ = job(loss=loss, evaluator=own, iter_per_epoch=1, patience=1, max_epoch=4)
    trainer.train()
    assert trainer.epoch == 2 and trainer.stopped == "own has not become better in 1 epochs"


def check_sparse_gradients():
    """Sums of slices after backward, of slices during backward, and of dense gradients make the same parameters."""
    def trained(sparse, **comm):
        stype = "row_sparse" if sparse else "default"
        table = cg.arange(12.0, dtype="float32").reshape(6, 2).copy().attach_grad(stype=stype)
        idle = cg.ones((3, 2)).attach_grad(stype=stype)
        w = cg.ones(2).attach_grad()
        variables, solver = [w, table, idle], cg.optim.Adam({"w": w, "table": table, "idle": idle}, lr=0.1)
        for name, make in comm.items(): comm[name] = make(variables)
        scope = {"grads": variables} if "comm" in comm else {}
        rows = iter([[RANK, 5], [0, 0], None if RANK else [3]])     # (None: this rank does not reach the table)
        updater = Updater(
            solver, lambda *k: (cg.embedding(k[0], table, sparse=sparse) * w).sum() if k else w.sum(),
            lambda: None if (some := next(rows)) is None else np.array(some), **comm, **scope)
        for i in range(3): updater.update(i)
        assert not idle.fresh_grad and idle.tolist() == [[1, 1]] * 3
        assert [s.t for s in solver.get_states().values()] == [3, 3, 0]
        return w, table

    after = trained(True, comm=lambda variables: COMM)
    assert same_on_all_ranks(*after)
    during = trained(True, comm_callback=lambda variables: COMM.all_reduce_callback(variables, 100))
    assert all((x == y).all().item() for x, y in zip(after, during, strict=True))
    dense = trained(False, comm=lambda variables: COMM)
    assert same_on_all_ranks(*dense) and cg.allclose(dense[0], after[0])


if __name__ == "__main__": main(globals())
