"""When work becomes serial, as a function of given times, and on which CPUs the threads of a job wake up. No test
depends on time."""

import os
import subprocess
import sys

import pytest

from cygrad.kernels import threads

MS, NEVER = 1_000_000, dict(length=0, end=0, serial_until=0)


def jobs(waits, length, idle, work=MS // 10, alone=MS // 5):
    """Run jobs for `length` ns of a clock of their own. waits: by the number of a parallel job, how long its first
    thread waits; idle: how long the program is idle before a job. Returns the times: spent waiting, at the end, and the
    number of jobs that were serial."""
    now, seen, waited, serial, k = 0, NEVER, 0, 0, 0
    while now < length:
        now += idle(k + serial)
        if now < seen["serial_until"]:
            now += alone
            serial += 1
            continue
        mine = now + work
        end = mine + waits(k)
        seen = threads.judged(seen, now, mine, end)
        waited += end - mine
        now = end
        k += 1
    return waited, now, serial


def test_one_wait_makes_nothing_serial():
    seen = threads.judged(NEVER, MS, 2 * MS, 3 * MS)
    assert seen == NEVER                                                    # as long as its own work: no wait
    assert threads.judged(NEVER, 0, 0, 300_000) == NEVER and threads.judged(NEVER, 0, 0, 300_001) != NEVER
    seen = threads.judged(NEVER, MS, 2 * MS, 12 * MS)
    assert seen == dict(length=10 * MS, end=12 * MS, serial_until=0)
    assert threads.judged(seen, 13 * MS, 14 * MS, 14 * MS) == seen          # a job without a wait in between


def test_a_second_wait_soon_after_does():
    """For sixteen times the length of both. The work that follows has a wait to spare again."""
    first = threads.judged(NEVER, MS, 2 * MS, 12 * MS)
    second = threads.judged(first, 20 * MS, 21 * MS, 25 * MS)
    assert second == dict(length=0, end=25 * MS, serial_until=25 * MS + 16 * 14 * MS)
    third = threads.judged(second, 300 * MS, 301 * MS, 311 * MS)
    assert third == dict(length=10 * MS, end=311 * MS, serial_until=second["serial_until"])
    late = threads.judged(first, 12 * MS + 161 * MS, 174 * MS, 180 * MS)    # later than 160 ms: the first one again
    assert late == dict(length=6 * MS, end=180 * MS, serial_until=0)


def test_waking_up_after_idleness_makes_nothing_serial():
    """A hundred jobs follow each wake-up, which takes 10 ms. Waiting once was enough for the rule of 0.1: then nine in
    ten jobs were serial."""
    waited, end, serial = jobs(lambda k: 10 * MS * (k % 100 == 0), 10_000 * MS, lambda k: 300 * MS * (k % 100 == 0))
    assert serial == 0 and waited > 200 * MS


@pytest.mark.parametrize("every", [1, 10, 200])
@pytest.mark.parametrize("length", [4 * MS, 30 * MS])
def test_a_busy_machine_costs_a_sixteenth(every, length):
    """Each, or every tenth job of 0.1 ms waits for a time slice of another program. With a wait for every 200 jobs,
    which work for 20 ms, jobs become serial as well."""
    waited, end, serial = jobs(lambda k: length * (k % every == every - 1), 20_000 * MS, lambda k: 0)
    assert serial and waited <= 1.05 * end / 16


def test_single_interruptions_are_not_a_busy_machine():
    """Another program takes a CPU for 5 ms, every 200 ms."""
    assert jobs(lambda k: 5 * MS * (k % 2000 == 0), 10_000 * MS, lambda k: 0)[2] == 0


# Two jobs of two parts that wait for each other, so each part has a thread of its own. Prints, for each job and each of
# the first and second thread, how many CPUs it may use, and how many the second one may use after both.
PROGRAM = """
import ctypes, os, threading, time
from cygrad.kernels import threads

capsule = threads.__pyx_capi__["parallel_for"]
name, pointer = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
name.restype, name.argtypes = ctypes.c_char_p, [ctypes.py_object]
pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
part = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_ssize_t)
parallel_for = ctypes.CFUNCTYPE(None, part, ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_ssize_t, ctypes.c_int)(
    pointer(capsule, name(capsule)))
both, main = threading.Barrier(2), threading.get_native_id()

@part
def meet(job, start, stop):
    found[threading.get_native_id() != main] = len(os.sched_getaffinity(0))
    others.update({threading.get_native_id()} - {main})
    both.wait(60)                       # no longer: if one thread computed both parts, it would wait forever

others = set()
for idle in (0, 0.002):
    time.sleep(idle)
    found = {}
    parallel_for(meet, None, 2, 1, 2)
    print(found[False], found[True])
print(*[len(os.sched_getaffinity(id)) for id in others])
"""


@pytest.mark.skipif(not threads.has_openmp() or sys.platform != "linux", reason="one thread, or another system")
def test_threads_wake_up_on_other_cpus_than_the_first():
    """Linux may wake them up on the CPU of the first thread, where they wait for its time slice to end. After a job
    they may use every CPU again."""
    cpus = len(os.sched_getaffinity(0))
    if cpus == 1: pytest.skip("one CPU")
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert done.stdout.splitlines() == [f"{cpus} {cpus}", f"{cpus} {cpus - 1}", f"{cpus}"], done.stderr
