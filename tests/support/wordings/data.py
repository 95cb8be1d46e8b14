"""The wording of errors: loaders."""

import copy
import os
import signal
import warnings

import numpy as np

import cygrad as cg
from cygrad.data import DataLoader

X = np.zeros((4, 2), "f4")


class Killed:
    def __len__(self): return 4

    def __getitem__(self, k): os.kill(os.getpid(), signal.SIGKILL)


def all_of(*arguments, **named):
    for _ in DataLoader(*arguments, **named): pass


class Stops:
    def __len__(self): return 2

    def __getitem__(self, k): return next(iter([]))


def two_loops():
    loader = DataLoader(X)
    first = iter(loader)
    next(iter(loader))
    next(first)


def in_a_fork():
    """What the child raises, here."""
    loader = DataLoader(X, prefetch=1)
    loader.next()
    r, w = os.pipe()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*use of fork", DeprecationWarning)
        pid = os.fork()
    if not pid:
        try: loader.next()
        except RuntimeError as e: os.write(w, str(e).encode())
        finally: os._exit(0)
    os.waitpid(pid, 0)
    text = os.read(r, 1000).decode()
    for end in r, w: os.close(end)
    loader.close()
    raise RuntimeError(text)


def loaded(state): DataLoader(X, 2).load_state_dict(state)


STATE = DataLoader(X, 2).state_dict()
CASES = [
    (lambda: all_of(Stops()), RuntimeError,
     "DataLoader: the data raised StopIteration() within a sample, as next(iterator) does at the end of another "
     "iterator; catch it there, and use return to end a generator"),
    (lambda: DataLoader(X, 2.5), TypeError, "DataLoader: batch_size must be an integer, got 2.5"),
    (lambda: DataLoader(X, 0), ValueError, "DataLoader: batch_size must be at least 1, got 0"),
    (lambda: DataLoader(X, prefetch=-1), ValueError, "DataLoader: prefetch must be at least 0, got -1"),
    (lambda: DataLoader(X, 1, 3), TypeError, "DataLoader: shuffle must be True or False, got 3"),
    (lambda: DataLoader(X, collate=3), TypeError, "DataLoader: collate must be a function of a list of samples, got 3"),
    (lambda: DataLoader(iter([1]), shuffle=True), ValueError,
     "DataLoader: only data with a length can be shuffled, got an iterable; pass a list, or shuffle it yourself"),
    (lambda: DataLoader(iter([1]), workers=2), ValueError,
     "DataLoader: an iterable can be read by one worker, got workers=2; pass a sequence for more"),
    (lambda: len(DataLoader(iter([1]))), TypeError,
     "DataLoader: an iterable has no length, so the number of its batches is unknown"),
    (lambda: DataLoader([]).next(), ValueError,
     "DataLoader: an epoch has no batch: there are 0 samples, and batch_size is 1"),
    (lambda: loaded({}), ValueError,
     "DataLoader.load_state_dict takes what state_dict() returned, a dict with seed, epoch, position, batch_size, "
     "shuffle, drop_last, samples; got []"),
    (lambda: loaded(DataLoader(X, 2).state_dict() | {"position": 99}), ValueError,
     f"DataLoader.load_state_dict: position must be at most {len(DataLoader(X, 2))}, the batches of an epoch, got 99"),
    (lambda: loaded(STATE | {"batch_size": 3}), ValueError,
     "DataLoader.load_state_dict: the saved loader has batch_size=3, this one batch_size=2; the order of the samples "
     "would be another one"),
    (two_loops, RuntimeError,
     "DataLoader: a later loop over this loader has begun, or it was closed or its state was loaded; use one loop at a "
     "time, or a loader for each"),
    (lambda: DataLoader({"a": 3}), TypeError,
     "DataLoader: a dict of data must contain arrays, one row for each sample, got a value of type dict; for "
     "samples by key, pass "
     "list(data.values())"),
    (lambda: DataLoader(3), TypeError,
     "DataLoader: data must be an array, a tuple or dict of arrays, a sequence of samples or an iterable of them, "
     "got 3"),
    (lambda: DataLoader((X, np.array(3.0))), ValueError,
     "DataLoader: data[1] is a number; an array of data has one row for each sample"),
    (lambda: DataLoader({"a": X.astype("f2")}), TypeError,
     "DataLoader: data['a'] has dtype float16; cygrad has <*>; cast it to one of them first"),
    (lambda: DataLoader((X, X[1:])), ValueError,
     "DataLoader: data[1] has 3 rows, but data[0] has 4; they must agree"),
    (lambda: all_of([(1, 2), (1,)], 2), ValueError,
     "DataLoader: a sample is (...,), but the first of its batch is (..., ...); all samples need the same "
     "structure, or "
     "pass collate="),
    (lambda: all_of([("cat", 2)], 2), TypeError, "DataLoader: a sample[0] is no array of numbers: <*>"),
    (lambda: all_of([[np.zeros(2)], [np.zeros(3)]], 2), ValueError,
     "DataLoader: a sample[0] is float64 of shape (3,), but the first of its batch is float64 of shape (2,); they must "
     "agree, or pass collate= to pad them"),
    (lambda: all_of(Killed(), workers=1), RuntimeError,
     "DataLoader: worker 0 of 1 ended unexpectedly, with exit status -9 (killed, perhaps for want of memory)"),
    (in_a_fork, RuntimeError,
     "DataLoader: this process is a fork of the one that began the epoch, whose thread and workers it does not have; "
     "call next() again, or begin a new loop, to read the rest of the epoch in this process too"),
    (lambda: copy.copy(DataLoader(X)), TypeError,
     "a DataLoader cannot be pickled or copied, since it may have a thread and workers; make another one of the same "
     "data, and load the state_dict() of this one"),
    (lambda: DataLoader(X, 2, num_workers=2), TypeError,
     "DataLoader takes workers, not num_workers: DataLoader(data, workers=...)"),
    (lambda: DataLoader(X, 2, pin_memory=True), TypeError,
     "DataLoader takes no pin_memory: all memory is the CPU's; leave it out"),
    (lambda: DataLoader(X, spam=1), TypeError,
     "DataLoader takes no spam; it takes data, batch_size, shuffle, drop_last, seed, collate, prefetch, workers"),
    (lambda: cg.data.TensorDataset, AttributeError,
     "module 'cygrad.data' has no attribute 'TensorDataset': pass the arrays themselves: DataLoader((x, labels), 64)"),
    (lambda: cg.data.spam, AttributeError, "module 'cygrad.data' has no attribute 'spam'"),
]
