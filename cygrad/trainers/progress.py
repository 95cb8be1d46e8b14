"""The progress bar of a Trainer, by tqdm."""

import sys
from typing import Any

from cygrad.core.sizes import words
from cygrad.core.store.buffer import stats


class Progress:
    """A bar of `total` updates, of which `done` are complete. wanted: None shows it if tqdm is installed and the output
    is a terminal. Raises ImportError if it is wanted and tqdm is missing."""

    def __init__(self, wanted: bool | None, total: int, done: int):
        self.bar: Any = None
        if wanted is False or not (wanted or (sys.stderr is not None and sys.stderr.isatty())): return
        try: from tqdm import tqdm
        except ImportError:
            if wanted: raise ImportError("Trainer: progress=True needs tqdm, which is not installed: pip install "
                                         "tqdm") from None
            return
        self.bar = tqdm(total=total, initial=done, unit="update")

    def step(self, loss: float, rate: float | None) -> None:
        """One update is complete. loss: the mean over the epoch so far."""
        if self.bar is None: return
        shown = {"loss": f"{loss:.4g}"} | ({} if rate is None else {"lr": f"{rate:.3g}"})
        self.bar.set_postfix(shown | {"live": words(stats()["live_bytes"])}, refresh=False)
        self.bar.update()

    def close(self) -> None:
        if self.bar is not None: self.bar.close()
