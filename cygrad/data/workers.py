"""Forked workers: processes that read samples, so that their Python code runs on other cores.

Worker w of n makes the batches w, w + n, w + 2 n, ... of an epoch, and sends each through a pipe: its structure, then
the bytes of its arrays, which are received in the memory of the loader. A pipe holds 64 KiB, so a worker is at most one
batch ahead. A worker ends when its pipe is closed, also if the process that forked it is killed."""

import multiprocessing
import os
import pickle
import random
import signal
import traceback
import warnings
import weakref
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from cygrad.core.errors import described
from cygrad.core.execute.generator import default_generator, load_generator
from cygrad.data.slots import Ring, Slot
from cygrad.data.sources import Read

PATIENCE = 5.0              # seconds until a worker that does not end is killed


class Workers:
    """An iterator over the slots with the batches first, first + 1, ..., made by `n` processes. read(k) makes batch
    number k, or returns None after the last."""

    def __init__(self, read: Callable[[int], Read | None], n: int, first: int, key: int, ring: Ring):
        self._ring, self._next, self._n = ring, 0, n
        context = multiprocessing.get_context("fork")
        self._pipes: list[Connection] = []
        self._processes: list[Any] = []
        self.close = weakref.finalize(self, end, self._processes, self._pipes, os.getpid())
        for w in range(n):
            ours, theirs = context.Pipe(duplex=False)
            self._pipes.append(ours)
            process = context.Process(target=work, args=(read, first + w, n, key, theirs, [*self._pipes]), daemon=True)
            with theirs, warnings.catch_warnings():
                # (The worker computes with NumPy and cygrad, which know about forks.)
                warnings.filterwarnings("ignore", ".*use of fork", DeprecationWarning)
                process.start()
            self._processes.append(process)

    def __iter__(self) -> "Workers": return self

    def __next__(self) -> Slot:
        w = self._next % self._n
        self._next += 1
        pipe = self._pipes[w]
        slot = self._ring.take()
        try:
            message = pipe.recv()
            if isinstance(message, tuple):
                for out in slot.prepare(*message):
                    if out.nbytes: pipe.recv_bytes_into(out.reshape(-1).view(np.uint8).data)
                return slot
        except (EOFError, OSError):
            self._processes[w].join(PATIENCE)
            code = self._processes[w].exitcode
            self.close()
            why = " (killed, perhaps for want of memory)" if code == -signal.SIGKILL else ""
            raise RuntimeError(f"DataLoader: worker {w} of {self._n} ended unexpectedly, with exit status "
                               f"{code}{why}") from None
        self._ring.give(slot)
        del slot
        self.close()
        if message is None: raise StopIteration
        try: raise message
        finally: del message                        # (the traceback refers to this frame)


def end(processes: list[Any], pipes: list[Connection], owner: int) -> None:
    """End the workers: their next write to the pipe fails. One that computes for longer is killed."""
    if os.getpid() != owner: return                 # (a forked child does not own them)
    for pipe in pipes: pipe.close()
    for process in processes:
        process.terminate()
        process.join(PATIENCE)
        if process.exitcode is None:
            process.kill()
            process.join()
        process.close()
    processes.clear()


def work(read: Callable[[int], Read | None], first: int, step: int, key: int, pipe: Connection,
         others: list[Connection]) -> None:
    """The code of a worker."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)    # (Ctrl-C is the business of the process that forked it)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    for other in others: other.close()              # (else no pipe would be closed when that process is killed)
    k = first
    try:
        while True:
            seed(key, k)
            try: batch = read(k)
            except BaseException as e:              # (sys.exit() too)
                pipe.send_bytes(pickled(e))
                return
            if batch is None:
                pipe.send(None)
                return
            send(pipe, batch)
            k += step
            del batch
    except BrokenPipeError: pass
    finally: os._exit(0)                            # (nothing of the other process is cleaned up here)


def seed(key: int, k: int) -> None:
    """Seed the global generators for batch number `k`, so that its random numbers do not depend on the number of
    workers, and are not those of another worker."""
    number = int(load_generator(key, k).integers(0, 2**62, ()).item())
    default_generator.__setstate__((number, 0))
    random.seed(number)
    np.random.seed(number % 2**32)


def send(pipe: Connection, batch: Read) -> None:
    spec, columns = batch
    pipe.send((spec, [(c.shape, c.dtype) for c in columns]))
    for column in columns:
        out = np.empty(column.shape, column.dtype)
        column.write(out)
        if out.nbytes: pipe.send_bytes(out.reshape(-1).view(np.uint8).data)


def pickled(error: BaseException) -> bytes:
    """An exception with a note that contains its traceback, or, if it cannot be pickled, a RuntimeError with both."""
    note = "In a worker of a DataLoader:\n" + "".join(traceback.format_exception(error)).rstrip()
    error.add_note(note)
    try:
        data = pickle.dumps(error)
        pickle.loads(data)
        return data
    except Exception:
        return pickle.dumps(RuntimeError(f"DataLoader: a worker raised {type(error).__name__}, which cannot be "
                                         f"pickled: {described(str(error))}\n{note}"))
