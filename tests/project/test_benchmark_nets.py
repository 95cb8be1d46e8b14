"""The benchmarks of nets, rows F, G and L, of layers and of solvers, on tiny sizes."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks import collect, convolutions, goals, gpt, limits, report, sequences, table, work
from benchmarks.compiler import compiler
from benchmarks.layers import layers_trainer
from benchmarks.models import Problem, losses
import cygrad as cg

SMALL_NETS = {"F": gpt.Gpt("adam", 1e-2, layers=2, width=8, heads=2, length=5, batch=3, vocabulary=7),
              "G": sequences.Lstm("sgd", 0.5, width=3, hidden=4, steps=5, batch=2),
              "L": table.Table("sgd", 10.0, rows=20, width=3, batch=30)}


@pytest.mark.parametrize("row", SMALL_NETS)
def test_nets_train_alike(row):
    """The loss changes, so equal losses mean equal gradients."""
    pytest.importorskip("torch")
    made = work.module(row).cases(["cygrad", "PyTorch"], False, SMALL_NETS[row])
    assert len(made) == {"F": 1, "G": 2, "L": 2}[row]
    for case in made:
        assert case.runs.keys() - {work.DENSE} == case.values.keys() >= {"cygrad", "PyTorch"}
        assert (work.DENSE in case.runs) == ("sparse" in case.name)
        for run in case.runs.values(): run(1)
        values = {peer: compute() for peer, compute in case.values.items()}
        work.agree(case.name, values, case.tolerance)
        assert (values["cygrad"][0] == values[work.LAYERS][0]).all()
        (mine,) = values["cygrad"]
        assert (np.abs(np.diff(mine)) > 3 * case.tolerance).all(), case.name


@pytest.mark.parametrize("problem", [
    Problem((3, 5, 4), 7, "mse", "sgd", 0.1), Problem((3, 5, 4), 7, "cross_entropy", "adam", 0.1),
    convolutions.Network(0.1, batch=2), *SMALL_NETS.values(), replace(SMALL_NETS["G"], cells=True),
    replace(SMALL_NETS["L"], sparse=True)], ids=lambda p: type(p).__name__)
def test_layers_compute_and_allocate_the_same(problem):
    """To the bit, and to the byte as bare operators whose gradients are None before a step."""
    mine, layered = (losses(make, *problem.data())[0] for make in (problem.cygrad, lambda: layers_trainer(problem)))
    assert (mine == layered).all() and mine[0] != mine[-1]
    peaks = work.module("peaks")
    bare, _, values = peaks.cygrad_peak(problem, work.FRESH, peaks.parameter_bytes(problem))
    peak, _, same = peaks.cygrad_peak(problem, work.LAYERS, peaks.parameter_bytes(problem))
    assert peak <= bare and values == same


def test_what_layers_cost_is_judged():
    samples = {"cygrad": [20.0, 20.0], work.LAYERS: [22.0, 22.0], "PyTorch": [200.0, 200.0]}
    assert work.library(work.LAYERS) == "cygrad"
    for row, text in (("B", "**1.10x** (1.10..1.10)"), ("G", "**1.10x** (1.10..1.10) (over 1.03)")):
        result = collect.judge(row, "step", "us", 1, samples, {}, 1, 0.0, False)
        assert report.of_layers(result) == text and text in report.plain_table([result])
    assert report.of_layers(collect.judge("G", "step", "us", 1, samples, {}, 1, 0.0, True)) == "disturbed"
    assert goals.LAYERS.keys() == set("BCEFGL")


@pytest.mark.parametrize("row", SMALL_NETS)
def test_the_peaks_of_nets(row):
    """The parameters are not counted; PyTorch's steps compute the same."""
    pytest.importorskip("torch")
    peaks, net = work.module("peaks"), SMALL_NETS[row]
    parameters = peaks.parameter_bytes(net)
    peak, details, values = peaks.cygrad_peak(net, work.FRESH, parameters)
    assert sum(details["by_category"].values()) == peak > 0
    assert details["by_category"]["optimizer"] == (2 * parameters if row == "F" else 0)
    theirs, _, same = peaks.torch_peak(net)
    assert theirs > 0 and same == pytest.approx(values, rel=1e-4)


def test_a_sparse_step_is_related_to_a_dense_one():
    samples = {"cygrad": [1.0, 2.0], "PyTorch": [2.0, 4.0], work.DENSE: [6.0, 12.0], "cygrad one thread": [1.0, 2.0]}
    result = collect.judge("L", "step, sparse gradient", "ms", 1, samples, {}, 1, 0.0, False)
    assert {peer: s["median"] for peer, s in result["ratios"].items()} == {"PyTorch": 2.0, work.DENSE: 6.0}
    assert report.goal(result) == ("1.30x, 5x of dense", "yes")
    samples[work.DENSE] = [4.0, 8.0]
    assert report.goal(collect.judge("L", result["name"], "ms", 1, samples, {}, 1, 0.0, False))[1] == "no"


def test_peaks_of_nets_are_judged_with_no_gradients_before():
    samples = {"cygrad": [9e6], "cygrad (.grad None)": [5e6], "PyTorch": [5e6]}
    result = collect.judge("peaks", "G: LSTM", "B", 1, samples, {}, 1, 0.0, False)
    assert [report.peak_goal(result, peer) for peer in samples] == [("", ""), ("1.00x PyTorch", "yes"), ("", "")]
    for mine, reached in ((5e6, "yes"), (5e6 + 1, "no")):
        result = collect.judge("peaks", "G: LSTM", "B", 1, samples | {work.LAYERS: [mine]}, {}, 1, 0.0, False)
        assert report.peak_goal(result, work.LAYERS) == ("that of .grad None", reached)
    result = collect.judge("peaks", "G: LSTM", "B", 1, samples | {"PyTorch": [4.9e6]}, {}, 1, 0.0, False)
    assert report.peak_goal(result, "cygrad (.grad None)")[1] == "no"
    for mine, reached in ((270e6, "yes"), (271e6, "no")):
        samples["cygrad (.grad None)"] = [mine]
        plain = collect.judge("peaks", "64 layers of 1024, batch 512, SGD", "B", 1, samples, {}, 1, 0.0, False)
        assert report.peak_goal(plain, "cygrad (.grad None)") == ("270 MB", reached)
        assert report.peak_goal(plain, "cygrad") == ("", "")


# ---- solvers ---------------------------------------------------------------------------------------------------------

def test_every_solver_has_an_update():
    """All of cygrad.optim. PyTorch's counterparts compute the same."""
    pytest.importorskip("torch")
    row, names = work.module("solvers"), {cls.__name__ for cls in cg.optim.Solver.__subclasses__()
                                          if cls.__module__ == "cygrad.optim.solvers"}
    made = row.cases(["cygrad", "PyTorch"], False, (100,))
    assert row.RULES.keys() == names and len(made) == len(names) == 19
    for case in made:
        work.agree(case.name, {peer: compute() for peer, compute in case.values.items()}, case.tolerance)
        assert case.runs.keys() == case.values.keys() >= {"cygrad"}
        for run in case.runs.values(): run(1)
        (mine,) = case.values["cygrad"]()
        assert (mine != row.arrays(100)[0]).all(), case.name
    kinds = [case.details["kind"] for case in made if "PyTorch" in case.runs]
    assert kinds.count("fused") == 7 and kinds.count("foreach") == 3
    assert ["PyTorch" in case.runs for case in made] == [bool(case.details["kind"]) for case in made]


def test_an_update_moves_what_its_rule_reads_and_writes():
    """The states are those of the rule; only norms need a second pass."""
    for name, rule in work.module("solvers").RULES.items():
        w = cg.ones(3).attach_grad()
        solver = getattr(cg.optim, name)(0.1, **rule.more)
        solver.set_parameters(w)
        states = len(solver.get_states()["0"].pstate)
        assert rule.moved == 3 + 2 * states + {"Lamb": 3, "Lars": 2}.get(name, 0), name


def test_updates_are_judged_by_copying():
    details = dict(solver="Adam", elements=1_000_000, kind="fused", limit="own")
    for copy, reached in ((100.0, "yes"), (70.0, "no")):
        samples = {"cygrad": [90.0], "PyTorch": [180.0], work.LIMITS: [copy]}
        result = collect.judge("solvers", "Adam, 1,000,000", "us", 1, samples, details, 1, 0.0, False)
        limits.mark([result])
        assert report.goal(result) == ("1.0x machine limit", reached)
        line = f"| Adam | 1,000,000 | 1 | 90 | {copy:.0f} | **{90 / copy:.2f}x** | 180 | fused | **2.00x** | "
        assert line in report.solvers_table([result])
    alone = collect.judge("solvers", "Adam, 1,000,000", "us", 1, {"cygrad": [90.0]}, details, 1, 0.0, False)
    limits.mark([alone])
    assert "limit" not in alone and report.goal(alone) == ("1.0x machine limit", "")


@pytest.mark.skipif(compiler() is None, reason="no C compiler")
def test_the_machine_copies_as_many_bytes():
    row = work.module("solvers")
    (case, *_) = row.cases([work.LIMITS], False, (100,))
    (mine, *_) = row.cases(["cygrad"], False, (100,))
    assert case.runs.keys() == {work.LIMITS} and mine.details == case.details and case.details["limit"] == "own"
    case.runs[work.LIMITS](2)
