"""The progress bar of a Trainer, by tqdm."""

import sys
from typing import Any

from cygrad.core.execute.budget import smallest_budget
from cygrad.core.sizes import words
from cygrad.core.store.buffer import stats


def memory() -> dict[str, Any]:
    """What is live and what is held from the system, in bytes; in a memory.budget() also that, and the share of the
    work that was computed again in it so far."""
    now, budget = stats(), smallest_budget()
    found = {"live_bytes": now["live_bytes"], "held_bytes": now["live_bytes"] + now["cached_bytes"]}
    return found if budget is None else found | {"budget_bytes": budget.nbytes, "recomputed": budget.recomputed[1]}


def memory_words() -> dict[str, str]:
    """The same as text."""
    return {name.split("_")[0]: f"{value:.1%}" if name == "recomputed" else words(value)
            for name, value in memory().items()}


class Progress:
    """A bar of `total` updates, of which `done` are complete. wanted: None shows it if tqdm is installed and the output
    is a terminal. Raises ImportError if it is wanted and tqdm is missing."""

    def __init__(self, wanted: bool | None, total: int, done: int):
        self.bar: Any = None
        if wanted is False or not (wanted or (sys.stderr is not None and sys.stderr.isatty())): return
        try: from tqdm import auto      # a bar of the notebook in Jupyter
        except ImportError:
            if wanted: raise ImportError("Trainer: progress=True needs tqdm, which is not installed: pip install "
                                         "tqdm") from None
            return
        self.bar = auto.tqdm(total=total, initial=done, unit="update")

    def step(self, loss: float, rate: float | None) -> None:
        """One update is complete. loss: the mean over the epoch so far."""
        if self.bar is None: return
        shown = {"loss": f"{loss:.4g}"} | ({} if rate is None else {"lr": f"{rate:.3g}"})
        self.bar.set_postfix(shown | memory_words(), refresh=False)
        self.bar.update()

    def close(self) -> None:
        if self.bar is not None: self.bar.close()
