"""Data-parallel training on handwritten digits:

    pip install cygrad[mpi,demo]
    mpiexec -n 2 python examples/data_parallel.py

Each rank (process) has the whole network and an equal part of each batch. The gradient of the mean loss of a batch is
the mean of the gradients of its parts, so each step is

    1. forward and backward on the own part;
    2. the mean of the gradients over ranks, while backward still runs;
    3. an update, for which each rank holds the states of its share of the parameters.

At the end the program checks that all ranks have the same bits, and that rank 0 alone, with the joined batches, gets
the same losses and parameters up to rounding. `python examples/data_parallel.py` runs the program on one rank."""

import argparse

import numpy as np
from sklearn.datasets import load_digits

import cygrad as cg

BATCH = 120                     # of all ranks together: divisible by 1, 2, 3, 4, 5, 6, ...
PACK = 4096                     # elements of gradients that are sent together


def network():
    """64-64-32-10. The seed makes the first weights the same on all ranks."""
    cg.random.seed(0)
    return cg.nn.Sequential(cg.nn.Linear(64, 64), cg.nn.Tanh(), cg.nn.Linear(64, 32), cg.nn.Tanh(),
                            cg.nn.Linear(32, 10))


def batches(steps):
    """The rows of each batch, the same on all ranks."""
    rng = np.random.default_rng(0)
    return [rng.choice(1500, BATCH, replace=False) for _ in range(steps)]


def train(net, solver, steps, rank=0, size=1, scope=None):
    """Train on the part of each batch that belongs to `rank`. Returns the mean loss of this part at each step."""
    digits = load_digits()
    images, labels = (digits.images / 16).astype("float32").reshape(-1, 64), digits.target
    feed = (np.array_split(rows, size)[rank] for rows in batches(steps))
    losses = []
    updater = cg.trainers.Updater(
        solver, lambda rows: cg.cross_entropy(net(images[rows]), labels[rows]), feed.__next__, comm_callback=scope,
        update_callback_on_finish=lambda i: losses.append(updater.last_loss.item()))
    for i in range(steps): updater.update(i)
    return np.array(losses)


def accuracy(net):
    """On the images that no batch has."""
    digits = load_digits()
    images = (digits.images[1500:] / 16).astype("float32").reshape(-1, 64)
    return (net(images).numpy().argmax(1) == digits.target[1500:]).mean()


def same_on_all_ranks(comm, parameters):
    """Whether the ranks have the same bits: rank 0's are sent to all, and all compare."""
    mine = [x.detach().copy() for x in parameters]
    comm.bcast(mine, root=0)
    different = [a.detach().numpy().tobytes() != b.numpy().tobytes() for a, b in zip(parameters, mine, strict=True)]
    count = cg.tensor([sum(different)])
    comm.all_reduce([count])
    return count.item() == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--steps", type=int, default=200)
    steps = parser.parse_args().steps

    comm = cg.comm.Communicator()
    if BATCH % comm.size: raise SystemExit(f"the batch of {BATCH} must be divisible by {comm.size} ranks")
    net = network()
    solver = cg.comm.ShardedSolver(cg.optim.Adam(0.003), comm)
    solver.set_parameters(net.named_parameters())
    scope = comm.all_reduce_callback(net.parameters(), PACK, division=True)
    losses = train(net, solver, steps, comm.rank, comm.size, scope)

    table = [cg.zeros(steps, dtype="float64") for _ in range(comm.size)]
    comm.all_gather(cg.tensor(losses), table)               # the losses of all ranks
    identical = same_on_all_ranks(comm, list(net.parameters()))
    if comm.rank == 0: report(comm, net, solver, np.array([x.numpy() for x in table]), identical)
    comm.barrier()


def report(comm, net, solver, losses, identical):
    """Print the table, and compare with one process. Raises SystemExit if something differs."""
    steps = losses.shape[1]
    alone = network()
    reference = cg.optim.Adam(0.003)
    reference.set_parameters(alone.named_parameters())
    wanted = train(alone, reference, steps)

    print(f"{comm.size} rank{'s' * (comm.size > 1)}, {BATCH // comm.size} of {BATCH} images each, {steps} steps")
    print("step   " + "".join(f"loss of rank {r}   " for r in range(comm.size)) + "mean      one process")
    for i in sorted({0, *range(steps // 4, steps, max(1, steps // 4)), steps - 1}):
        own = "".join(f"{x:14.6f}   " for x in losses[:, i])
        print(f"{i:4d}   {own}{losses[:, i].mean():.6f}  {wanted[i]:.6f}")
    print(f"bytes of Adam's states: {', '.join(f'{n:,} on rank {r}' for r, n in enumerate(solver.bytes_per_rank()))}; "
          f"{sum(solver.bytes_per_rank()):,} in one process")
    print(f"accuracy {accuracy(net):.1%}, one process {accuracy(alone):.1%}")

    loss = abs(losses.mean(0) - wanted).max()
    weights = max(abs(a.detach().numpy() - b.detach().numpy()).max()
                  for a, b in zip(net.parameters(), alone.parameters(), strict=True))
    if not identical: raise SystemExit("the ranks have different parameters")
    print("the ranks are bit-identical")
    if max(loss, weights) > 1e-4: raise SystemExit(f"one process differs: losses by {loss:g}, weights by {weights:g}")
    print(f"equal to one process on the joined batches, up to rounding: losses to {loss:.0e}, weights to {weights:.0e}")


if __name__ == "__main__": main()
