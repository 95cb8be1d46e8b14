"""The figures of chapters 7, 9, 10 and 13 that react say what cygrad computes. Run with the extras docs and test:
`make docs-test`."""

import importlib
import itertools
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest

import cygrad as cg

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.slow


@pytest.fixture
def module(monkeypatch):
    """A module of docs/figures."""
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "figures"))
    return importlib.import_module


def test_layers_keep_what_the_graph_holds(figure, browser, module):
    kernels, told = module("kernels"), figure("kept")
    cases = browser.run("cases")
    assert [case["frozen"] for case in cases] == [[], ["0"], ["0", "1"], ["5"], ["0", "1", "5"]]
    for k, case in enumerate(cases):
        net = kernels.layered()
        for path in case["frozen"]: net.freeze(path)
        trained, states = [x for x in net.parameters() if x.requires_grad], 0
        if trained:
            before = cg.memory.stats()["by_category"]["optimizer"]
            solver = cg.optim.Adam(trained)
            states = cg.memory.stats()["by_category"]["optimizer"] - before
            del solver
        for images in 7, 100:
            kept = [row.kept_bytes for row in kernels.rows_of(net, images)]
            assert browser.run(f"kept(cases[{k}], {images})") == kept
            before = cg.memory.stats()["live_bytes"]
            with cg.record(): y = net(cg.zeros((images, 1, 8, 8)))
            held = cg.memory.stats()["live_bytes"] - before - y.nbytes
            text = told(frozen=", ".join(case["frozen"]) or "nothing", images=images)
            assert f"With {images} images, the graph keeps {held:,} bytes. " in text
            assert f" {sum(x.size for x in trained):,} of 1,386 parameters are trained" in text
            assert f"take {sum(x.nbytes for x in trained):,} bytes, and the states of Adam {states:,}. " in text
            del y


def test_a_jacobian_takes_the_passes_of_cygrad(figure, browser):
    told = figure("jacobian")
    xs, calls = cg.asarray(browser.run("xs"), dtype="float64"), []

    def f(x, results):
        calls.append(x.shape)
        return cg.stack([cg.sin((i + 1) * x).sum() for i in range(results)])

    for args, results in itertools.product(range(1, 7), repeat=2):
        calls.clear()
        J = cg.func.jacobian(f)(xs[:args], results).numpy()
        mode = "forward" if len(calls) == 2 else "reverse"      # (the first call finds the number of results)
        assert browser.run(f"fewer({args}, {results})") == mode
        for each, passes in ("forward", args), ("reverse", results):
            found = browser.run(f"jacobian({args}, {results}, '{each}', {passes})")
            assert np.allclose(found, J, rtol=1e-12, atol=1e-12)
        text, passes = told(arguments=args, results=results, mode="the fewer", passes=6), min(args, results)
        pass_, last = ("tangent", "column") if mode == "forward" else ("gradient", "row")
        assert f"jacobian() takes {mode} mode: {passes} {pass_}" in text and f"{last} {passes - 1}." in text
    half = browser.run("jacobian(3, 5, 'forward', 2)")
    assert [[x is None for x in row] for row in half] == [[False, False, True]] * 5


def test_a_query_looks_where_attention_does(figure, browser, module):
    attention, told = module("transformer").attention, figure("query")
    keys = cg.asarray(browser.run("vectors"), dtype="float64")
    for step, angle, length in itertools.product((0, 6, 11), (0, 150, 270), (0, 5, 60)):
        q = length * np.array([np.cos(np.pi * angle / 180), np.sin(np.pi * angle / 180)])
        queries = cg.zeros((12, 2), dtype="float64")
        queries[step] = cg.asarray(q)
        result, weights = attention(queries, keys, keys)
        found = browser.run(f"attend({step}, {q.tolist()}, true)")
        assert np.allclose(found["weights"], weights[step].numpy(), rtol=1e-9, atol=1e-12)
        assert np.allclose(found["result"], result[step].numpy(), rtol=1e-9, atol=1e-12)
        found = browser.run(f"attend({step}, {q.tolist()}, false)")["result"]
        whole = cg.scaled_dot_product_attention(queries, keys, keys)[step]
        assert np.allclose(found, whole.numpy(), rtol=1e-9, atol=1e-12)
    queries = cg.zeros((12, 2), dtype="float64")
    queries[6] = 60 * keys[5]                       # which is at 150 degrees
    result, weights = attention(queries, keys, keys)
    text = told(step=6, direction=150, length=60, mask="later steps")
    assert f'is {100 * weights[6, 5].item():.1f} % on step 5, "n"' in text and "It sees steps 0 to 6." in text
    assert text.endswith(f"({result[6, 0].item():.2f}, {result[6, 1].item():.2f}).")


def test_nested_scopes_do_what_the_figure_says(figure, browser):
    told = figure("modes")
    scopes = ["nothing", *browser.run("Object.keys(sets)")]
    assert len(scopes) == 7
    w, x = cg.ones(3).attach_grad(), cg.ones(1000)
    for names in itertools.product(scopes, repeat=3):
        with ExitStack() as stack:
            seen = [[cg.is_recording(), cg.is_training()]]
            for name in names:
                if name != "nothing": stack.enter_context(eval(f"cg.{name}", {"cg": cg}))
                seen.append([cg.is_recording(), cg.is_training()])
            recorded, drops = (w * 2).grad_fn is not None, cg.dropout(x, 0.5) is not x
            try: w += 1
            except cg.InplaceError: written = False
            else: written = True
        assert browser.run(f"inside({list(names)})") == seen
        text = told(outer=names[0], middle=names[1], inner=names[2])
        assert ("is recorded" in text, "is not recorded" in text) == (recorded, not recorded)
        assert ("zeroes random elements" in text, "returns its argument" in text) == (drops, not drops)
        assert ("increments the version" in text, "raises an InplaceError" in text) == (written, not written)
