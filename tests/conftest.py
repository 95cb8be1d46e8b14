"""Every test starts and ends in the same state: flags off, float32, the same number of threads, and no more live bytes
than before. The garbage collector is off meanwhile, so only reference counts free memory."""

import gc
import signal

import pytest

import cygrad as cg


class Guard:
    """The state that a test must not change. Call `begin()` once. `end()` reports and restores what has changed."""

    def begin(self):
        cg.set_recording(False)
        cg.set_training(False)
        self.stats = cg.memory.stats()
        self.threads = cg.get_num_threads()
        self.dtype = cg.get_default_dtype()

    def end(self):
        """A list of complaints, empty if the test has restored everything."""
        wrong = []
        if cg.set_recording(False):
            wrong.append("the recording flag is on")
        if cg.set_training(False):
            wrong.append("the training flag is on")
        if cg.get_default_dtype() != self.dtype:
            wrong.append(f"the default dtype is {cg.get_default_dtype()}, it was {self.dtype}")
            cg.set_default_dtype(self.dtype)
        if cg.get_num_threads() != self.threads:
            wrong.append(f"the thread count is {cg.get_num_threads()}, it was {self.threads}")
            cg.set_num_threads(self.threads)
        now = cg.memory.stats()
        for what in ("live_bytes", "live_buffers", "external_bytes"):
            if now[what] > self.stats[what]:
                gc.collect()                        # only to report the kind of leak
                left = cg.memory.stats()[what] - self.stats[what]
                wrong.append(
                    f"{now[what] - self.stats[what]} {what} more than before"
                    + ("" if left else ", which a reference cycle held until the collector came")
                )
        return wrong


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """A test that imports PyTorch skips where it is not installed (tools/pythons.py)."""
    error = call.excinfo and call.excinfo.value
    if isinstance(error, ModuleNotFoundError) and (error.name or "").partition(".")[0] == "torch":
        from peers import WITHOUT_TORCH

        try: pytest.skip(WITHOUT_TORCH)
        except pytest.skip.Exception: call.excinfo = pytest.ExceptionInfo.from_current()
    report = yield
    if report.when == "call":
        item.ended_early = report.failed or report.skipped
    return report


@pytest.fixture(autouse=True)
def guard(request):
    """The guard around each test. A test that failed or skipped is not blamed for tensors that its traceback holds."""
    sentinel = Guard()
    sentinel.begin()
    gc.disable()
    yield
    gc.enable()
    wrong = sentinel.end()
    if wrong and not getattr(request.node, "ended_early", False):
        pytest.fail(f"the test left something behind: {'; '.join(wrong)}", pytrace=False)


@pytest.fixture(scope="module", autouse=True)
def few_objects():
    """The collector and memory.why look only at what the tests of one module make. pytest keeps all reports, soon a
    million objects, and each collection in a test would traverse them."""
    gc.collect()
    gc.freeze()


def pytest_collection_finish():
    live = cg.memory.stats()["live_buffers"]
    if live:
        raise pytest.UsageError(f"{live} tensors are live after collection: make them in tests, not in their modules")


def pytest_configure(config):
    # (Shells start processes in the background with Ctrl-C ignored. Tests that send it would then wait forever.)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    config.addinivalue_line("filterwarnings", "error")


@pytest.fixture
def two_threads():
    """Kernels on two threads. Skips if the build has one."""
    before = cg.get_num_threads()
    cg.set_num_threads(2)
    if cg.get_num_threads() != 2:
        pytest.skip("this build works with one thread")
    yield
    cg.set_num_threads(before)
