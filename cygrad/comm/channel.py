"""Messages between ranks. A Channel sends bytes; agree() is the handshake before each collective call, which makes sure
that all ranks make the same call with equal shapes before one of them changes anything."""

import atexit
import hashlib
import json
import os
import sys
import threading
import time
from typing import Any

import numpy as np

from cygrad.comm.launch import Abort, abort

SPINS = 200                     # tests before a waiting rank sleeps: others may need its core
SHORTEST, LONGEST = 20e-6, 1e-3 # seconds of a sleep
ENDED = "the end of its program"
PROCESS = os.getpid()           # a child of it, made by fork, is no rank

CHANNELS: list[Any] = []        # those of several ranks: at the end of the program, all ranks answer on each


class Channel:
    """The ranks of a communicator of mpi4py, on a context of its own, or of one process without MPI (comm=None). All
    ranks create a channel, and call its methods, in the same order. Waiting ranks test and sleep, so that they neither
    occupy a core nor block Ctrl-C."""

    def __init__(self, comm=None):
        self.rank, self.size = (0, 1) if comm is None else (comm.Get_rank(), comm.Get_size())
        self.lock = threading.RLock()               # MPI matches messages by their order
        self.left = None                            # requests and buffers of an interrupted call
        self.scope = None                           # the open AllReduceScope
        if self.size == 1: return
        from mpi4py import MPI

        self.MPI, self.comm = sys.modules[MPI.__name__], comm.Dup()     # (an attribute, not a module, for mypy)
        self.others = [r for r in range(self.size) if r != self.rank]
        Abort.install(MPI)
        if not CHANNELS: atexit.register(end)
        CHANNELS.append(self)

    # ---- messages

    def wait(self, requests, *buffers):
        """Wait for requests, which use `buffers`."""
        tests, pause = 0, SHORTEST
        try:
            while not self.MPI.Request.Testall(requests):
                tests += 1
                if tests < SPINS: os.sched_yield()
                else:
                    time.sleep(pause)
                    pause = min(2 * pause, LONGEST)
        except BaseException:                       # MPI may still write to the buffers
            self.left = requests, buffers
            raise

    def check(self):
        """Raise RuntimeError if a call was interrupted: later messages would be taken for its own."""
        if self.left is not None:
            raise RuntimeError("this communicator was interrupted while it waited for other ranks, so it cannot be "
                               "used any more; end the program, or make another Communicator on all ranks")

    def gather(self, block):
        """The blocks of all ranks, an array (size, n), from a 1-D int64 array of each rank."""
        if self.size == 1: return block[None]
        table = np.empty((self.size, len(block)), np.int64)
        self.wait([self.comm.Iallgather(block, table)], block, table)
        return table

    def texts(self, text):
        """The texts of all ranks, as a list."""
        if self.size == 1: return [text]
        own = np.frombuffer(text.encode(), np.uint8)
        sizes = self.gather(np.array([len(own)]))[:, 0]
        texts = [np.empty(n, np.uint8) for n in sizes]
        self.swap([own] * self.size, texts)
        texts[self.rank] = own
        return [t.tobytes().decode() for t in texts]

    def swap(self, sent, received):
        """Send sent[r] to each other rank r, and receive received[r] from it: contiguous arrays. Those of the own rank
        are ignored, and empty ones are not sent."""
        if self.size == 1: return
        requests = [self.comm.Irecv(received[r].view(np.uint8), r) for r in self.others if received[r].size]
        requests += [self.comm.Isend(sent[r].view(np.uint8), r) for r in self.others if sent[r].size]
        self.wait(requests, sent, received)

    def spread(self, array, root):
        """Copy a contiguous array of rank `root` to the `array` of all ranks."""
        if self.size == 1 or not array.size: return
        self.wait([self.comm.Ibcast(array.view(np.uint8), root)], array)

    # ---- the handshake

    def agree(self, call, options=(), label="", arrays=(), error=None):
        """Return if all ranks make this call with equal options, pairs (name, text), and equal descriptions of arrays,
        which `label` names. `error`: what this rank has raised instead; it is raised after the others know.

        Raises RuntimeError for different calls and for an exception on another rank, ValueError for other differences.
        The message is the same on all ranks."""
        self.check()
        arrays = [*arrays]
        said = "\n".join([call, *(f"{name}={text}" for name, text in options), *arrays])
        digest = hashlib.blake2b(said.encode(), digest_size=16).digest()
        block = np.array([error is not None, *np.frombuffer(digest, np.int64)])
        table = self.gather(block)
        if error is None and not table[:, 0].any() and (table == block).all(): return
        own = {"call": call, "options": list(options), "label": label, "arrays": list(arrays),
               "error": None if error is None else f"{type(error).__name__}: {error}"}
        ranks = [json.loads(text) for text in self.texts(json.dumps(own))]
        try: raise error if error is not None else difference(ranks)
        finally: error = None                       # (it refers to this frame)


def difference(ranks):
    """The exception for ranks that do not agree, from their descriptions."""
    call = ranks[0]["call"]
    for r, one in enumerate(ranks):
        if one["error"]:
            return RuntimeError(f"{one['call']}: rank {r} raised {one['error']}; nothing has changed on any rank")
    for r, one in enumerate(ranks):
        if one["call"] != call:
            return RuntimeError(f"rank 0 calls {call}, and rank {r} calls {one['call']}; all ranks must make the same "
                                f"calls in the same order")
    for r, one in enumerate(ranks):
        n, m = len(ranks[0]["arrays"]), len(one["arrays"])
        pairs = [((name, text), (name, other)) for (name, text), (_, other) in
                 zip(ranks[0]["options"], one["options"], strict=True)]
        pairs += [((f"the number of {one['label']}", n), (f"the number of {one['label']}", m))]
        pairs += [((f"{one['label']}[{k}]", a), (f"{one['label']}[{k}]", b))
                  for k, (a, b) in enumerate(zip(ranks[0]["arrays"], one["arrays"], strict=False))]
        for (name, wanted), (_, got) in pairs:
            if wanted != got:
                return ValueError(f"{call}: {name} is {got} on rank {r} and {wanted} on rank 0; they must be equal on "
                                  f"all ranks")
    raise AssertionError("the ranks agree")


def end():
    """At the end of the program, answer each handshake until all ranks have come here: a rank that still makes a call
    raises, instead of waiting for this one. After an interrupted call no answer is possible, so the job is aborted."""
    open_calls = {}
    digest = np.frombuffer(hashlib.blake2b(ENDED.encode(), digest_size=16).digest(), np.int64)
    block = np.array([0, *digest])
    text = json.dumps({"call": ENDED, "options": [], "label": "", "arrays": [], "error": None})
    if CHANNELS[0].MPI.Is_finalized() or os.getpid() != PROCESS: return
    if any(c.left is not None for c in CHANNELS): abort(CHANNELS[0].MPI)

    def begin(c):
        table = np.empty((c.size, len(block)), np.int64)
        open_calls[c] = c.comm.Iallgather(block, table), table

    for c in CHANNELS: begin(c)
    pause = SHORTEST
    while open_calls:
        for c, (request, table) in list(open_calls.items()):
            if not request.Test(): continue
            del open_calls[c]
            if (table == block).all(): continue
            c.texts(text)                           # the others raise
            begin(c)
        if open_calls: time.sleep(pause)
        pause = min(2 * pause, LONGEST)
