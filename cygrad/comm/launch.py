"""How a process finds the others, and how a job ends: the environment of a launcher of MPI, mpi4py, and MPI's Abort
after an exception that nobody catches."""

import os
import sys
import threading
import time
import traceback

from cygrad.core.errors import described

# What launchers set: hydra (MPICH, Intel MPI), Open MPI, PMIx (also under Slurm), MVAPICH.
SIZES = "PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE"
MARKS = *SIZES, "PMI_RANK", "PMIX_RANK"
FORWARDED = 0.2                 # seconds in which the launcher forwards what was printed: MPICH 5 loses it at an abort


def world():
    """mpi4py's COMM_WORLD, or None for a process that no launcher started: it does not import mpi4py then. Raises
    ImportError if a launcher started several processes that cannot reach each other without mpi4py."""
    if "mpi4py.MPI" not in sys.modules and not any(name in os.environ for name in MARKS): return None
    try: from mpi4py import MPI
    except (ImportError, RuntimeError) as e:        # (RuntimeError: mpi4py found no library of MPI)
        size = next((os.environ[name] for name in SIZES if name in os.environ), "1")
        if size == "1": return None
        raise ImportError(f"Communicator: a launcher started {size} processes, and mpi4py, which connects them, cannot "
                          f"be imported ({e}); install cygrad[mpi]") from e
    return MPI.COMM_WORLD


def checked(comm):
    """A communicator of mpi4py. Raises TypeError for anything else."""
    MPI = getattr(sys.modules.get("mpi4py"), "MPI", None)
    if MPI is None or not isinstance(comm, MPI.Intracomm):
        raise TypeError(f"Communicator: comm must be a communicator of mpi4py, such as MPI.COMM_WORLD, or None, got "
                        f"{described(comm)}")
    if comm == MPI.COMM_NULL:
        raise ValueError("Communicator: comm is MPI.COMM_NULL: this process is not one of its ranks")
    return comm


class Abort:
    """Ends the whole job after an exception that nobody catches, in any thread of the process: the other ranks would
    wait for this one forever. What was the hook before prints the traceback."""

    installed = False

    def __init__(self, MPI):
        self.MPI, self.process = MPI, os.getpid()
        self.main, self.thread = sys.excepthook, threading.excepthook
        sys.excepthook, threading.excepthook = self.in_main, self.in_thread

    @classmethod
    def install(cls, MPI):
        """Install the hooks once."""
        if not cls.installed: cls.installed = bool(cls(MPI))

    def in_main(self, kind, error, trace):
        try: self.main(kind, error, trace)
        finally: self.end()

    def in_thread(self, args):
        if args.exc_type is SystemExit: return self.thread(args)        # (ends the thread only)
        try: self.thread(args)
        finally: self.end()

    def end(self):
        """Abort, except in an interactive session, in a child of the rank, and after the end of MPI."""
        if hasattr(sys, "ps1") or os.getpid() != self.process or self.MPI.Is_finalized(): return
        abort(self.MPI)


def abort(MPI):
    """End all ranks, after what this one has printed."""
    try:
        for stream in (sys.stdout, sys.stderr): stream.flush()
        time.sleep(FORWARDED)
    except Exception: traceback.print_exc()
    MPI.COMM_WORLD.Abort(1)
