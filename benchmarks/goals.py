"""The goals: what cygrad is to reach, by row and workload.

A time is judged by the ratio to PyTorch taken in the same run, since machines and days differ; `figure` is the time
meant on the machine that the goals were set on (2 cores with AVX-512). Bytes do not drift and are judged as they
are."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Goal:
    """figure: in the unit of its workload. ratio: times faster than PyTorch; None: the figure itself is the goal."""

    figure: float
    ratio: float | None = None

    def reached(self, figure, ratio):
        """Whether a measured figure (or, where the goal is one, the ratio to PyTorch) is as good; None: not
        measured."""
        if self.ratio is None:
            return None if figure is None else figure <= self.figure
        return None if ratio is None else ratio >= self.ratio


TO_MULTIPLY = 1.3  # every elementwise operator against multiply

CHAIN = {
    "not recorded": Goal(0.14, 1.2 / 0.14),
    "recorded": Goal(0.17, 1.6 / 0.17),
    "forward + backward": Goal(0.26, 15),
}

GOALS = {
    **{("A", f"y * c, size {size}, {mode}"): goal for size in (1, 64) for mode, goal in CHAIN.items()},
    ("A", "(x * x).sum(), 4 numbers, forward + backward"): Goal(1.2, 30 / 1.2),
    ("B", "step"): Goal(45, 8),
    ("C", "step"): Goal(125, 4),
    ("C", "epoch of 28 batches"): Goal(4.2, 15.3 / 4.2),
    **{("J", f"{kind}: {phase}"): Goal(seconds, peer / seconds)
       for kind in ("x + c", "x * c", "x * w")
       for phase, seconds, peer in (("forward", 0.30, 2.0), ("backward", 0.25, 3.3), ("free", 0.05, 0.16))},
    ("J", "x + c: bytes an operation"): Goal(160),
    ("J", "x * c: bytes an operation"): Goal(160),
    ("J", "x * w: bytes an operation"): Goal(160 + 128),  # and the block that it keeps, 64 bytes with a header of 64
    ("peaks", "D: 784-1024-1024-10, batch 256, Adam"): Goal(22e6),
    ("peaks", "64 layers of 1024, batch 512, SGD"): Goal(270e6),
}
