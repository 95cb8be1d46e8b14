"""The benchmarks of nets: rows F, G and L, on tiny sizes."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks import collect, convolutions, goals, gpt, report, sequences, table, work
from benchmarks.layers import layers_trainer
from benchmarks.models import Problem, losses

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
    plain = collect.judge("peaks", "64 layers of 1024, batch 512, SGD", "B", 1, samples, {}, 1, 0.0, False)
    assert report.peak_goal(plain, "cygrad") == ("270 MB", "yes")
