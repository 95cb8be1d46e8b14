"""The benchmark of captured training steps. No test depends on time."""

from dataclasses import replace

import pytest

from benchmarks import replay, work
from benchmarks.models import losses
from benchmarks.separate import ask
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
    names = sorted(replay.workloads())
    assert [name[0] for name in names] == [*"BCDEFG"]
    for name in names[:2]:
        samples = replay.child(TINY | {"name": name})
        assert list(samples) == PEERS and all(len(s) == 2 and min(s) > 0 for s in samples.values())


@pytest.mark.parametrize("name", [name for name in replay.workloads() if name[0] in "EG"])
def test_captured_steps_of_larger_models(name):
    """The losses of three steps: those of eager code, bit for bit. (child() compares all of them.)"""
    problem, x, target = replay.workloads()[name]
    wanted = losses(problem.cygrad, x, target, 3)
    for make in (replay.captured_trainer, replay.program_trainer):
        assert losses(lambda make=make: make(problem), x, target, 3)[0].tolist() == wanted[0].tolist()


@pytest.mark.parametrize("trainer", ["captured_trainer", "program_trainer"])
def test_a_step_that_computes_something_else_is_not_timed(only_cygrad, monkeypatch, trainer):
    right = getattr(replay, trainer)
    monkeypatch.setattr(replay, trainer, lambda p, **how: right(replace(p, lr=2 * p.lr), **how))
    name = sorted(replay.workloads())[0]
    with pytest.raises(ValueError, match="differ in array 0"): replay.child(TINY | {"name": name})


def test_a_fed_net_uses_the_batch_of_each_call():
    problem, x, target = next(iter(replay.workloads().values()))
    first = {fed: replay.captured_trainer(replace(problem, lr=0.0), fed) for fed in (False, True)}
    for fed, trainer in first.items():
        before = trainer.read(trainer.step(x, target))
        assert (trainer.read(trainer.step(2 * x, target)) != before) == fed


def test_a_process_that_fails_is_named():
    with pytest.raises(RuntimeError, match="(?s)benchmarks.replay: the process for .* ended with 1.*KeyError: 'Z'"):
        ask("benchmarks.replay", {"name": "Z"}, {})


def test_the_tables(monkeypatch, tmp_path, capsys):
    def measured(module, spec, environment):
        peers = PEERS[:2] if spec["name"] == "one" else [*PEERS[:2], "jax.jit"]
        return {peer: [1e-5 * (k + 1), 2e-5 * (k + 1), 6e-5 * (k + 1)] for k, peer in enumerate(peers)}

    monkeypatch.setattr(replay, "ask", measured)
    monkeypatch.setattr(replay, "workloads", lambda: dict.fromkeys(("two", "one")))
    monkeypatch.setattr(replay.machine, "cpu_name", lambda: "a CPU")
    monkeypatch.chdir(tmp_path)
    replay.main([])
    text = (tmp_path / "out" / "benchmarks" / "nets.md").read_text()
    assert text in capsys.readouterr().out
    assert text.startswith("""\
| time of a step / eager cygrad, a CPU | eager | Workspace.run | jax.jit |
|---|---:|---:|---:|
| one | 1.00 | 2.00 |  |
| two | 1.00 | 2.00 | 3.00 |

""")
    assert text.endswith("""\
| median | eager | Workspace.run | jax.jit |
|---|---:|---:|---:|
| one | 20.0 us | 40.0 us |  |
| two | 20.0 us | 40.0 us | 60.0 us |
""")
    found = {"one": measured("", {"name": "one"}, {})}
    assert "Other programs used 1.5 CPUs meanwhile" in replay.tables(found, 1.5)
    assert "Other programs" not in replay.tables(found, 0.0) + replay.tables(found, None)
