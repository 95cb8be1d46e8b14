"""The benchmark of captured training steps. No test depends on time."""

from dataclasses import replace

import pytest

from benchmarks import replay, work
import cygrad as cg

TINY = {"rounds": 2, "seconds": 1e-4}
PEERS = [replay.EAGER, replay.NET, replay.FED, replay.CALLS]


@pytest.fixture
def only_cygrad(monkeypatch):
    threads = cg.get_num_threads()
    monkeypatch.setattr(work, "installed", lambda libraries: ["cygrad"])
    yield
    cg.set_num_threads(threads)


def test_all_steps_are_timed(only_cygrad):
    found = replay.child(TINY)
    assert list(found) == list(replay.workloads()) and len(found) == 2
    for samples in found.values():
        assert list(samples) == PEERS and all(len(s) == 2 and min(s) > 0 for s in samples.values())


@pytest.mark.parametrize("trainer", ["captured_trainer", "program_trainer"])
def test_a_step_that_computes_something_else_is_not_timed(only_cygrad, monkeypatch, trainer):
    right = getattr(replay, trainer)
    monkeypatch.setattr(replay, trainer, lambda p, **how: right(replace(p, lr=2 * p.lr), **how))
    with pytest.raises(ValueError, match="differ in array 0"): replay.child(TINY)


def test_a_fed_net_uses_the_batch_of_each_call():
    (problem, x, target), _ = replay.workloads().values()
    first = {fed: replay.captured_trainer(replace(problem, lr=0.0), fed) for fed in (False, True)}
    for fed, trainer in first.items():
        before = trainer.read(trainer.step(x, target))
        assert (trainer.read(trainer.step(2 * x, target)) != before) == fed


def test_a_process_that_fails_is_named():
    with pytest.raises(RuntimeError, match="(?s)the process ended with 1.*KeyError: 'rounds'"): replay.ask({})


def test_the_tables(monkeypatch, tmp_path, capsys):
    found = {name: {peer: [1e-5 * (k + 1), 2e-5 * (k + 1), 6e-5 * (k + 1)] for k, peer in enumerate(PEERS[:2])}
             for name in ("one", "two")}
    monkeypatch.setattr(replay, "ask", lambda sizes: found)
    monkeypatch.setattr(replay.machine, "cpu_name", lambda: "a CPU")
    monkeypatch.chdir(tmp_path)
    replay.main([])
    text = (tmp_path / "out" / "benchmarks" / "nets.md").read_text()
    assert text in capsys.readouterr().out
    assert text.startswith("""\
| time of a step / eager cygrad, a CPU | one | two |
|---|---:|---:|
| cygrad, eager | 1.00 | 1.00 |
| captured net: Workspace.run | 2.00 | 2.00 |

""")
    assert text.endswith("""\
| median | one | two |
|---|---:|---:|
| cygrad, eager | 20.0 us | 20.0 us |
| captured net: Workspace.run | 40.0 us | 40.0 us |
""")
    assert "Other programs used 1.5 CPUs meanwhile" in replay.tables(found, 1.5)
    assert "Other programs" not in replay.tables(found, 0.0) + replay.tables(found, None)
