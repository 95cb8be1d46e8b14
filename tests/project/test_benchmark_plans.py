"""The benchmark of memory plans."""

import numpy as np

from benchmarks import plans

from tests.support.net_runs import filled


def test_random_nets_run_and_their_arenas_are_near_the_bound():
    for seed in range(20):
        net, shapes = plans.random_net(seed)
        assert 1 <= plans.ratio(net.plan(shapes)) < 1.2
        rng = np.random.default_rng(seed)
        workspace = filled(**{name: rng.normal(0, 0.1, shapes[name]).astype("f4") for name in net.inputs})
        workspace.run(net)
        assert workspace.fetch("loss").shape == ()


def test_the_plans_of_small_models_reach_the_bound(monkeypatch):
    smallest = dict(sorted(plans.workloads().items())[:2])
    monkeypatch.setattr(plans, "workloads", lambda: smallest)
    found = plans.models()
    assert [name[0] for name in found] == ["B", "C"] and all(plans.ratio(p) == 1 for p in found.values())


def test_the_table(monkeypatch, tmp_path, capsys):
    net, shapes = plans.random_net(0)
    monkeypatch.setattr(plans, "models", lambda: {"a net": net.plan(shapes)})
    monkeypatch.setattr(plans, "RANDOM", 3)
    plans.main(["--output", str(tmp_path)])
    text = (tmp_path / "plans.md").read_text()
    assert text in capsys.readouterr().out
    head, _, model, three, last = text.splitlines()
    assert head == "| net, with gradients | arena, bytes | bound, bytes | ratio |" and model.startswith("| a net | ")
    assert three.startswith("| 3 random nets: median, 90 %, worst |") and last.startswith("| of them at the bound |")
