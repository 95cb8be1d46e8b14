"""The benchmark of budgets."""

import pytest

from benchmarks import budgets


def test_binomial_checkpointing():
    """One call again for each value without a checkpoint, until calls are made twice; with one, n (n - 1) / 2."""
    assert [budgets.binomial(100, n) for n in (100, 70, 50, 20)] == [0, 30, 50, 80]
    assert budgets.binomial(9, 1) == 9 * 10 // 2 - 9
    with_more = [budgets.binomial(100, n) for n in range(2, 100)]
    assert with_more == sorted(with_more, reverse=True)


def test_the_planner_is_near_the_bound():
    """A chain at 10 to 70 % of its memory, beside what no plan can beat."""
    import cygrad as cg

    step = budgets.chain()
    net = cg.graph.Net.capture(step)
    whole = net.plan().peak_bytes
    for share, most in ((0.7, 1.01), (0.5, 1.01), (0.3, 1.01), (0.2, 1.02), (0.1, 1.2)):
        plan = net.plan(budget=int(share * whole))
        least = budgets.bound_of(f"chain of {budgets.CHAIN}", share) * 2 * budgets.CHAIN
        assert least - 1 <= plan.recomputed.calls <= most * least


@pytest.mark.parametrize("name", [*budgets.MODELS][2:])
def test_a_model_is_a_step(name):
    import cygrad as cg

    step = budgets.MODELS[name]()
    whole = cg.graph.Net.capture(step).plan()
    assert whole.peak_bytes > 1 << 20 and "gradient" in whole.kinds


def test_the_table(monkeypatch, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(budgets, "MODELS", {"chain of 100": budgets.chain})
    monkeypatch.setattr(budgets, "ROUNDS", 1)
    monkeypatch.setattr(budgets.work, "set_threads", lambda *_: None)
    budgets.main(["--output", str(tmp_path)])
    text = (tmp_path / "budgets.md").read_text()
    assert text in capsys.readouterr().out and text.count("| chain of 100 | ") == len(budgets.SHARES)
    assert "<svg" in (tmp_path / "budgets.svg").read_text()
