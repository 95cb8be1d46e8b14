"""Checkpoints: files from which training goes on bit for bit.

A folder has params_{i:06}.safetensors, the parameters after iteration i by their names, for each epoch, and
checkpoint_{i:06}.safetensors, everything that training needs, of the last epochs. With several processes, rank r has
checkpoint_{i:06}-{r}.safetensors; that of rank 0 has no number and is written last, so where it is, all are."""

import json
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from cygrad.core.errors import cut, described
from cygrad.core.graph.tensor import Tensor
from cygrad.core.paths import file_path, folder_path
from cygrad.io import saving
from cygrad.trainers.trees import Damaged, Leaves, joined

FORMAT, VERSION = "cygrad.trainers", "1"
NAME = r"checkpoint_(\d{6,})%s\.safetensors"


class Checkpoints:
    """The folder of a Trainer. keep: the number of checkpoints that remain; None: all."""

    def __init__(self, folder: str, keep: int | None, rank: int = 0):
        self.folder, self.keep, self.rank = folder, keep, rank

    def path(self, i: int, rank: int = 0) -> str:
        return os.path.join(self.folder, f"checkpoint_{i:06}{f'-{rank}' if rank else ''}.safetensors")

    def open(self) -> None:
        """Make the folder, and remove what killed processes have left in it."""
        os.makedirs(self.folder, exist_ok=True)
        for name in os.listdir(self.folder) if not self.rank else ():
            if name.startswith(".cygrad-") and name.endswith(".tmp"):
                with suppress(OSError): os.unlink(os.path.join(self.folder, name))

    def write_parameters(self, i: int, parameters: Mapping[str, Tensor]) -> None:
        if not self.rank:
            saving.write(os.path.join(self.folder, f"params_{i:06}.safetensors"), parameters, None, "Trainer.train")

    def write(self, i: int, state: Mapping[str, Any]) -> None:
        """Write a checkpoint: the old file or the new one is there at every moment."""
        parts = Leaves("Trainer.train")
        text = json.dumps({name: parts.split(value, name) for name, value in state.items()}, separators=(",", ":"))
        saving.write(self.path(i, self.rank), parts.tensors,
                     {"format": FORMAT, "version": VERSION, "state": text}, "Trainer.train")

    def prune(self, i: int) -> None:
        """Remove the files of this rank before the last checkpoints, of which `i` is the newest, and those after it:
        an earlier training has left them. Rank 0 does this first, so that others have all files of its last one."""
        saved = found(self.folder) or found(self.folder, self.rank)     # (the folder may be that of one computer)
        kept = sorted(n for n in saved if n <= i)[-(self.keep or 0):]
        for n in found(self.folder, self.rank):
            if n > i or n < kept[0]:
                with suppress(OSError): os.unlink(self.path(n, self.rank))


def found(folder: str, rank: int = 0) -> list[int]:
    """The iterations of the checkpoints of a rank in a folder."""
    pattern = NAME % (f"-{rank}" if rank else "")
    return [int(name[1]) for entry in os.listdir(folder) if (name := re.fullmatch(pattern, entry))]


def read(path: Any, rank: int = 0) -> dict[str, Any]:
    """The state in a checkpoint, or in the last one of a folder. Raises FileNotFoundError if there is none, ValueError
    for a file that is none, and as cygrad.load() does."""
    who = "Trainer.train: resume"
    is_folder = isinstance(path, (str, bytes, os.PathLike)) and os.path.isdir(path)
    name = (folder_path if is_folder else file_path)(path, who, "runs/first")
    if is_folder:
        last = max(found(name), default=None)
        if last is None:
            raise FileNotFoundError(f"{who}: there is no checkpoint_*.safetensors in {cut(repr(name))}; pass the "
                                    f"model_save_path of a Trainer that has ended an epoch, or a checkpoint")
        name = os.path.join(name, f"checkpoint_{last:06}.safetensors")
    elif not os.path.exists(name):
        raise FileNotFoundError(f"{who}: there is no {cut(repr(name))}; pass the model_save_path of a Trainer that has "
                                f"ended an epoch, or a checkpoint")
    if rank:
        name = re.sub(r"(-\d+)?\.safetensors$", f"-{rank}.safetensors", name)
        if not os.path.exists(name):
            raise FileNotFoundError(f"{who}: there is no {cut(repr(name))} for rank {rank}; resume with as many ranks "
                                    f"as the checkpoint has files, all in one folder")
    damaged = Damaged(f"{who}: {cut(repr(name))}")
    if not name.lower().endswith(".safetensors"): damaged("its name must end with .safetensors")
    tensors = saving.read(name, who)
    metadata = saving.read_metadata(name, who)
    if (metadata.get("format"), metadata.get("version")) != (FORMAT, VERSION):
        damaged(f"its format is {described(metadata.get('format'))}, version {described(metadata.get('version'))}; "
                f"wanted {FORMAT}, version {VERSION}")
    try: state = json.loads(metadata.get("state", ""))
    except (ValueError, RecursionError): damaged("its state is not JSON")
    if not isinstance(state, dict): damaged("its state is no object")
    return {key: joined(value, tensors, damaged) for key, value in state.items()}
