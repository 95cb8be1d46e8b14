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


def test_the_plans_of_models_reach_the_bound_and_need_little_more():
    found = plans.models()
    assert [name[0] for name in found] == [*"BCDEFG"]
    for p, gradients in found.values():
        assert plans.ratio(p) == 1
        assert p.peak_bytes + gradients <= p.held_bytes <= plans.most_held(p.peak_bytes + gradients)


def test_the_table(monkeypatch, tmp_path, capsys):
    net, shapes = plans.random_net(0)
    monkeypatch.setattr(plans, "models", lambda: {"a net": (net.plan(shapes), 100)})
    monkeypatch.setattr(plans, "RANDOM", 3)
    plans.main(["--output", str(tmp_path)])
    text = (tmp_path / "plans.md").read_text()
    assert text in capsys.readouterr().out
    head, _, model, three, last = text.splitlines()
    assert head == "| net, with gradients | arena, bytes | bound, bytes | ratio | with .grad, bytes | held, bytes |"
    assert model.startswith("| a net | ")
    assert three.startswith("| 3 random nets: median, 90 %, worst |") and last.startswith("| of them at the bound |")
