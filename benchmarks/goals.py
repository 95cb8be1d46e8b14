"""The goals for cygrad, by row and workload.

A time is judged by the ratio to PyTorch in the same run, or by the machine's limit in the same run, because machines
and days differ. Peaks of rows F, G and L are judged by the ratio of PyTorch's to cygrad's with .grad None. `figure` is
the corresponding time on the machine for which the goals were set (2 cores with AVX-512). Other bytes do not vary and
are judged directly, and so are the milliseconds of an import. LAYERS has the goals of models in layers, IDLE that of
calls after idleness."""

from dataclasses import dataclass

from benchmarks import solvers


@dataclass(frozen=True)
class Goal:
    """figure: in the unit of its workload. ratio: the speed-up over PyTorch. limit: the largest multiple of the
    machine's time. With neither, the figure itself is the goal. kept: cygrad must also be faster than PyTorch that
    keeps memory. dense: the least speed-up over cygrad with a dense gradient, besides. two: the goal for two or more
    threads, if it differs."""

    figure: float
    ratio: float | None = None
    limit: float | None = None
    kept: bool = False
    dense: float | None = None
    two: "Goal | None" = None

    def at(self, threads):
        """The goal for a number of threads."""
        return self.two if self.two and threads > 1 else self

    def reached(self, figure, ratio, limit=None, kept=None, dense=None):
        """Whether the measurement reaches the goal: cygrad's figure, the speed-up over PyTorch, the machine's figure
        and the speed-ups over PyTorch that keeps memory and over dense gradients. None: a figure that the goal needs
        was not measured."""
        if self.kept and kept is None or self.dense and dense is None:
            return None
        beaten = (not self.kept or kept >= 1) and (not self.dense or dense >= self.dense)
        if self.limit is not None:
            return None if figure is None or limit is None else figure <= self.limit * limit and beaten
        if self.ratio is None:
            return None if figure is None else figure <= self.figure
        return None if ratio is None else ratio >= self.ratio and beaten


TO_MULTIPLY = 1.3  # the goal of every elementwise operator, as a multiple of multiply's time
LAYERS = {"B": 1.15, "C": 1.03, "E": 1.03, "F": 1.03, "G": 1.03, "L": 1.03}    # of cygrad.nn, as a multiple of cygrad's
IDLE = 1.5         # the first call after idleness and those that follow it (idle.py), as a multiple of NumPy's

CHAIN = {
    "not recorded": Goal(0.14, 1.2 / 0.14),
    "recorded": Goal(0.17, 1.6 / 0.17),
    "forward + backward": Goal(0.26, 15),
}


def against(mine, peer, mine_two, peer_two, **more):
    """The goal of a time with one thread and with two, from cygrad's times and PyTorch's."""
    return Goal(mine, peer / mine, two=Goal(mine_two, peer_two / mine_two, **more), **more)


def product(operations, mine, peer, mine_two, peer_two):
    """The goal, in microseconds, of a product with this number of operations, from GFLOP/s."""
    one, two = (operations / rate / 1e3 for rate in (mine, mine_two))
    return Goal(one, mine / peer, two=Goal(two, mine_two / peer_two))


# PyTorch's milliseconds for 16M numbers (fresh result), with one thread and with two.
FRESH = {"add": (34, 20), "mul": (34, 20), "exp": (44, 24), "tanh": (67, 35), "sigmoid": (34, 20), "gelu": (40, 21)}

# Updates of solvers: multiples of copying as many bytes. In the caches, the norms of Lamb and Lars take longer.
TO_COPY = {("Lamb", 10_000): 1.8, ("Lars", 10_000): 1.35}

GOALS = {
    **{("A", f"y * c, size {size}, {mode}"): goal for size in (1, 64) for mode, goal in CHAIN.items()},
    ("A", "(x * x).sum(), 4 numbers, forward + backward"): Goal(1.2, 30 / 1.2),
    ("B", "step"): Goal(10, 15),
    ("C", "step"): Goal(42, 8),
    ("C", "epoch of 28 batches"): Goal(1.15, 8),
    ("D", "step"): Goal(12.5, 1.15, two=Goal(7.2, 18.5 / 15.4)),
    ("E", "step"): Goal(3, 1.5),
    ("E", "conv block, forward"): Goal(6, 1.0),
    ("E", "conv block, backward"): Goal(11, 1.2),
    **{("H", f"{name}, fresh result"): against(6.5, one, 3.5, two, kept=True) for name, (one, two) in FRESH.items()},
    **{("H", f"{name}, forward + backward"): Goal(1.3 * passes * 2.0, limit=1.3, kept=True)  # 2 ms for 64 MiB
       for name, passes in dict(add=3, mul=8, exp=5, tanh=5, sigmoid=5, gelu=5).items()},
    ("I", "softmax, forward"): against(7, 37, 4, 21),
    ("I", "softmax, forward + backward"): against(14, 71, 8, 44),
    ("I", "logsumexp, forward"): against(5, 51, 3, 34),
    ("I", "logsumexp, forward + backward"): against(10, 150, 6, 106),
    **{("I", f"{name}, axis 0"): against(1.6, 7.2, 0.8, 3.6) for name in ("sum", "mean")},
    **{("I", f"{name}, axis 1"): against(1.6, 1.5, 0.8, 0.63) for name in ("sum", "mean")},
    ("I", "matmul 64"): product(2 * 64**3, 100, 57, 100, 30),
    ("I", "matmul 256"): product(2 * 256**3, 103, 100, 170, 177),
    ("I", "matmul 1024"): product(2 * 1024**3, 105, 104, 195, 197),
    ("I", "matmul 2048"): product(2 * 2048**3, 105, 101, 205, 201),
    ("I", "matmul 64 x 128"): product(64 * 2 * 128**3, 100, 93, 190, 187),
    **{("J", f"{kind}: {phase}"): Goal(seconds, peer / seconds)
       for kind in ("x + c", "x * c", "x * w")
       for phase, seconds, peer in (("forward", 0.30, 2.0), ("backward", 0.25, 3.3), ("free", 0.05, 0.16))},
    ("J", "x + c: bytes per operation"): Goal(160),
    ("J", "x * c: bytes per operation"): Goal(160),
    ("J", "x * w: bytes per operation"): Goal(160 + 128),  # and the saved buffer: 64 bytes with a header of 64
    ("F", "step"): Goal(36, 1.4),
    ("G", "step"): Goal(11.5, 1.3),
    ("G", "step, cells"): Goal(20, 1.5),
    ("L", "step, dense gradient"): Goal(4, 1.1),
    ("L", "step, sparse gradient"): Goal(0.5, 1.3, dense=5),
    **{("peaks", name): Goal(nbytes, 1.0)
       for name, nbytes in (("E: LeNet, 28x28, batch 64, SGD", 4_716_568),
                            ("E: conv block, 32 to 64 channels", 25_322_112), ("F: GPT, Adam", 43_294_428),
                            ("G: LSTM", 39_496_252), ("G: LSTM of cells", 16_367_628),
                            ("L: table, dense gradient", 53_297_156), ("L: table, sparse gradient", 3_145_740))},
    ("peaks", "D: 784-1024-1024-10, batch 256, Adam"): Goal(22e6),
    ("peaks", "64 layers of 1024, batch 512, SGD"): Goal(270e6),
    **{("solvers", f"{name}, {n:,}"): Goal(4 * n * rule.moved / 67e3, limit=TO_COPY.get((name, n), 1.0))  # 67 GB/s
       for n in solvers.SIZES for name, rule in solvers.RULES.items()},
    ("import", "import"): Goal(10),
    ("import", "first matmul"): Goal(200),
    ("import", "resident after import"): Goal(4e6),
    ("import", "resident after a first small step"): Goal(4e6),
}
