"""The guard of conftest.py detects each kind of change."""

import signal
import subprocess
import sys
from pathlib import Path

import cygrad as cg
from tests.conftest import Guard

kept = []

BAD = """
import cygrad as cg

kept = []

def test_flag():
    cg.set_recording(True)

def test_byte():
    kept.append(cg.zeros(1, dtype="int8"))

def test_cycle():
    loop = [cg.zeros(3)]
    loop.append(loop)

def test_good():
    with cg.record():
        cg.zeros(3)
"""


def complaints(leave):
    """The complaints of the guard about a test that runs `leave`."""
    guard = Guard()
    guard.begin()
    leave()
    return guard.end()


def test_nothing_left():
    assert complaints(lambda: cg.zeros(3) + 1) == []


def test_flags():
    assert complaints(lambda: cg.set_recording(True)) == ["the recording flag is on"]
    assert complaints(lambda: cg.set_training(True)) == ["the training flag is on"]
    assert not cg.is_recording() and not cg.is_training()


def test_one_byte():
    found = complaints(lambda: kept.append(cg.zeros(1, dtype="int8")))
    kept.clear()
    assert found == ["1 live_bytes more than before", "1 live_buffers more than before"]


def test_an_empty_buffer_counts_too():
    found = complaints(lambda: kept.append(cg.zeros(0)))
    kept.clear()
    assert found == ["1 live_buffers more than before"]


def test_cycle():
    def leave():
        loop = [cg.zeros(2)]
        loop.append(loop)

    found = complaints(leave)
    assert found[0] == "8 live_bytes more than before, which a reference cycle held until the collector came"


def test_dtype_and_threads():
    assert complaints(lambda: cg.set_default_dtype("float64")) == ["the default dtype is float64, it was float32"]
    assert cg.get_default_dtype() == "float32"
    before = cg.get_num_threads()
    if cg.kernels.threads.has_openmp():
        found = complaints(lambda: cg.set_num_threads(before + 1))
        assert found == [f"the thread count is {before + 1}, it was {before}"]
        assert cg.get_num_threads() == before


def run_alone(directory, test):
    """The result of `test`, the text of a module, under the same conftest.py."""
    (directory / "conftest.py").write_text((Path(__file__).parent / "conftest.py").read_text())
    (directory / "test_bad.py").write_text(test)
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(directory), str(directory)],
        capture_output=True, text=True, cwd=Path(__file__).parent.parent,
    )


def test_tensors_of_modules_end_the_run(tmp_path):
    run = run_alone(tmp_path, "import cygrad as cg\nheld = cg.zeros(3)\ndef test(): pass\n")
    assert run.returncode == 4 and "1 tensors are live after collection: make them in tests" in run.stderr


def test_a_run_in_the_background_can_be_interrupted(tmp_path):
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)       # as a shell starts it
    try: run = run_alone(tmp_path, "import signal\ndef test(): signal.raise_signal(signal.SIGINT)\n")
    finally: signal.signal(signal.SIGINT, before)
    assert run.returncode == 2 and "KeyboardInterrupt" in run.stdout


def test_it_fails_tests(tmp_path):
    """In a separate run, the tests that leave something are errors, and the other one passes."""
    run = run_alone(tmp_path, BAD)
    assert "4 passed, 3 errors" in run.stdout, run.stdout
    for test, word in (("flag", "recording flag"), ("byte", "1 live_bytes"), ("cycle", "reference cycle")):
        assert f"ERROR at teardown of test_{test}" in run.stdout
        assert word in run.stdout
