"""History: what a Trainer measured, a row for each epoch."""

import csv
import io
import json
import math
import os
from collections.abc import Iterator, Mapping
from os import PathLike
from typing import Any

from cygrad.core.errors import described
from cygrad.core.handles import Replacing
from cygrad.core.paths import file_path

SHARED = ("epoch", "iteration")     # columns that are no curves
MOST_SHOWN = 50             # rows of the table that Jupyter shows


def finite(value: Any) -> bool:
    return not isinstance(value, float) or math.isfinite(value)


def is_json(name: str, what: str) -> bool:
    """Whether a file is to be JSON and not CSV. Raises ValueError, about `what`, if it is to be neither."""
    suffix = os.path.splitext(name)[1].lower()
    if suffix not in (".json", ".csv"):
        raise ValueError(f"{what} must end with .csv or .json, got {described(name)}")
    return suffix == ".json"


class History:
    """The rows of a training, dicts from column to number. history["loss"] is a column, as a list; an epoch without a
    value has None in it. len(history) is the number of rows, and `rows` are the rows themselves."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows)

    def __getitem__(self, column: str) -> list[Any]:
        if column not in self.columns:
            raise ValueError(f"the history has no column {described(column)}; it has "
                             f"{', '.join(self.columns) or 'none'}")
        return [row.get(column) for row in self.rows]

    def __repr__(self) -> str:
        return f"<History: {len(self.rows)} epochs of {', '.join(self.columns) or 'nothing'}>"

    def _repr_html_(self) -> str:
        """The last rows as a table, for Jupyter."""
        from cygrad.core.notebook import table, titled

        columns, shown = self.columns, self.rows[-MOST_SHOWN:]
        which = f", the last {MOST_SHOWN}" if len(self.rows) > MOST_SHOWN else ""
        return titled("History", f"{len(self.rows):,} epochs{which}",
                      table(columns, [["" if (v := row.get(c)) is None else v for c in columns] for row in shown]))

    @property
    def columns(self) -> list[str]:
        """The names of the columns, in the order in which they came."""
        return [*dict.fromkeys(name for row in self.rows for name in row)]

    def save(self, path: str | PathLike[str]) -> None:
        """Write the rows to a .csv file, with the names of the columns in the first line, or to a .json file, a list of
        objects; NaN and infinity, which JSON has not, become null there. Raises ValueError for another suffix."""
        name = file_path(path, "History.save", "history.csv")
        if is_json(name, "History.save: the path"):
            rows = [{name: value if finite(value) else None for name, value in row.items()} for row in self.rows]
            text = json.dumps(rows, indent=1, allow_nan=False) + "\n"
        else:
            buffer = io.StringIO()
            writer = csv.DictWriter(buffer, self.columns, restval="", lineterminator="\n")
            writer.writeheader()
            writer.writerows(self.rows)
            text = buffer.getvalue()
        with Replacing(name, "History.save") as file: file.write(text.encode())

    def plot(self, path: str | PathLike[str], columns: list[str] | None = None) -> None:
        """Draw the columns (None: all with numbers but the epoch and the iteration) over the epochs, each in its own
        panel, to a .png, .svg or .pdf file. Needs matplotlib: the extra cygrad[plot]."""
        name = file_path(path, "History.plot", "history.svg")
        try:
            from matplotlib.backends.backend_agg import FigureCanvasAgg
            from matplotlib.figure import Figure
        except ImportError:
            raise ImportError("History.plot needs matplotlib, which is not installed: pip install "
                              "cygrad[plot]") from None
        if os.path.splitext(name)[1][1:].lower() not in FigureCanvasAgg.get_supported_filetypes():
            raise ValueError(f"History.plot: the picture must be .png, .svg, .pdf or another type that matplotlib "
                             f"writes, got {described(name)}")
        shown = [column for column in self.columns if column not in SHARED] if columns is None else columns
        curves = {column: self[column] for column in shown}
        if not curves: raise ValueError("History.plot: there is nothing to draw; train an epoch first")
        epochs = self["epoch"]
        figure = Figure(figsize=(7, 1.6 * len(curves) + 0.6), layout="constrained")
        for axes, (column, values) in zip(figure.subplots(len(curves), sharex=True, squeeze=False)[:, 0],
                                          curves.items(), strict=True):
            points = [(e, v) for e, v in zip(epochs, values, strict=True) if isinstance(v, (int, float))]
            axes.plot(*zip(*points, strict=True) if points else ([], []), marker="o", ms=3, lw=1.2)
            axes.set_ylabel(column.replace("_", " "))
            axes.grid(alpha=0.3)
        axes.set_xlabel("epoch")
        with Replacing(name, "History.plot") as file:
            figure.savefig(file.name, format=os.path.splitext(name)[1][1:].lower())

    def state_dict(self) -> dict[str, Any]:
        """The rows."""
        return {"rows": [dict(row) for row in self.rows]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from what state_dict() returned."""
        self.rows = [dict(row) for row in state["rows"]]
