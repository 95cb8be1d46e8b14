"""The figures of chapters 20 to 28 that react say what cygrad computes. Run with the extras docs and test:
`make docs-test`."""

import importlib
from pathlib import Path

import numpy as np
import pytest

import cygrad as cg
from cygrad.graph import Workspace

FIGURES = Path(__file__).resolve().parents[2] / "docs" / "figures"

pytestmark = pytest.mark.slow


@pytest.fixture
def figures(monkeypatch):
    """Imports a module of docs/figures."""
    monkeypatch.syspath_prepend(str(FIGURES))
    return importlib.import_module


def test_four_ways_to_log_cosh(figures, figure, browser):
    """The bytes that a step on 1,000 numbers saves and needs, and its allocations."""
    speed = figures("speed")
    text = figure("ways")
    assert browser.run("Object.keys(ways)") == list(speed.WAYS)
    for name, f in speed.WAYS.items():
        x = cg.ones(1000).attach_grad()
        before = cg.memory.stats()["live_bytes"]
        with cg.memory.events() as log, cg.memory.track() as tracked:
            with cg.record() as tape:
                h = x * 1
                y = f(h)
                del h
            saved, forward = tape.saved_bytes, sum(kind == "allocate" for kind, *_ in log)
            y.backward()
        found = browser.run(f"totals('{name}', 1000)")
        assert found == {"peak": tracked.peak_bytes - before, "saved": saved, "forward": forward,
                         "backward": sum(kind == "allocate" for kind, *_ in log) - forward}
        assert f"saves {found['saved']:,} bytes, and its peak is {found['peak']:,} bytes." in text(way=name, size=3)
        del x, y


def test_the_steps_of_exp(figure, browser):
    """The value is that of cg.exp, and 2^n e^r is its parts."""
    text = figure("exponential")
    points = np.concatenate([np.linspace(-110, 95, 400), [0, 0.5 * np.log(2), 88.72]]).astype("float32")
    found = browser.run(f"{points.tolist()}.map(exponential).map(e => [e.y === Infinity ? 'inf' : e.y, e.n, e.r])")
    with np.errstate(over="ignore"):
        y = cg.exp(cg.asarray(points)).numpy()
        np.testing.assert_array_max_ulp(np.array([float(v) for v, *_ in found], "f4"), y, maxulp=1)
    inside = (points > -104) & (points < 89)
    n, r = np.array([found[i][1:] for i in np.nonzero(inside)[0]]).T
    np.testing.assert_allclose(n * np.log(2) + r, points[inside], atol=2e-5)
    assert (np.abs(r) < 0.3467).all() and len(n) > 300
    assert text(x=-100, part=0.25).endswith("The result is denormal: 4.7644e-44.")
    assert "e^x = 25.7903." in text(x=3) and text(x=95).endswith("the result is infinite.")
    assert browser.run("bits(-0.75)") == "1" + format(126, "08b") + "1" + "0" * 22


def test_the_matrix_of_patches(figure, browser):
    text = figure("patches")
    image = cg.arange(1, 26, dtype="float32").reshape(1, 1, 5, 5)
    for k in (1, 2, 3, 4):
        for s in (1, 2, 3):
            for p in (0, 1):
                expected = cg.unfold(image, k, stride=s, padding=p)[0]
                assert browser.run(f"matrix({k}, {s}, {p})") == expected.tolist(), (k, s, p)
                words = text(kernel=k, stride=s, padding=p)
                assert f" {expected.shape[0]} x {expected.shape[1]} numbers, {expected.nbytes} bytes, " in words
                assert f"{expected.nbytes / image.nbytes:.2f} times" in words


def test_blocks_of_attention(figures, figure, browser):
    """After the last block, of any size, the results are those of the operator, and L is log sum e^s."""
    q, k, v = (np.array(a) for a in figures("speed").small())
    text, n = figure("blocks"), len(q)
    for causal in (False, True):
        y = cg.scaled_dot_product_attention(cg.asarray(q), cg.asarray(k), cg.asarray(v), is_causal=causal).numpy()
        s = q @ k.T / 2
        if causal: s = np.where(np.tril(np.ones((n, n), bool)), s, -np.inf)
        for rows in (1, 2, 4, 8):
            for columns in (1, 2, 4, 8):
                order = f"order({rows}, {columns}, {str(causal).lower()})"
                blocks = browser.run(order)
                found = browser.run(f"state({order}, {len(blocks)}, {str(causal).lower()})")
                m, l, sums = (np.array(found[name]) for name in "mly")
                np.testing.assert_allclose(sums / l, y[:, 0], rtol=1e-12)
                np.testing.assert_allclose(m + np.log(l), np.log(np.exp(s).sum(1)), rtol=1e-12, atol=1e-12)
                seen = np.zeros((n, n), int)
                for b in blocks: seen[b["i"]:b["below"], b["j"]:b["right"]] += 1
                assert seen.max() == 1 and (seen[np.isfinite(s)] == 1).all()
                assert causal or len(blocks) == n * n // (rows * columns)
    words = text(rows=2, columns=2, mask="causal", block=10, query=7)
    assert "Block 10 of 10: queries 6 to 7, keys 6 to 7. Memory for 4 scores" in words
    assert "skips 6 of 16 blocks" in words
    assert f"Complete: the result is {y[7, 0]:.4f}" in words


def test_gradient_operators_one_by_one(figures, figure, browser):
    """The operators are those of the net. A sum is written when all contributions are there, and not before."""
    nets = figures("nets")
    text = figure("walk")
    for name, make in nets.WALKED.items():
        net = make()
        backward = [o for o in net.operators if o.is_gradient]
        forward = net.operators[:len(net.operators) - len(backward)]
        text(net=name)
        for n, operator in enumerate(backward, 1):
            assert str(operator) in text(written=n)
            arrived = browser.run(f"arrived(nets['{name}'], {n})")
            if operator.type == "add" and operator.outputs == ("x_grad",):
                assert arrived["x"] == sum(o.inputs.count("x") for o in forward)
        for blob, count in arrived.items():
            assert count == browser.run(f"expected(nets['{name}'], '{blob}')") or blob == "loss", blob
            assert count == sum(o.inputs.count(blob) for o in forward) or blob == "loss"
    assert "x is read 3 times, and 1 of 3 contributions is there: it has to wait." in text(written=4)


def test_a_program_run_by_run(figures, figure, browser):
    """What a run looks up is what the runs of cygrad use, and the buffers are those of the plan."""
    nets = figures("nets")
    text, net = figure("replay"), nets.dropping()
    solver = net.objects["solver"]
    for rows in (16, 5):
        workspace, name = Workspace(), f"{rows} rows"
        workspace.feed("x", cg.ones((rows, 4)))
        workspace.feed("target", cg.zeros(rows, "int64"))
        plan = net.plan({"x": ((rows, 4), "float32"), "target": ((rows,), "int64")})
        program = browser.run(f"programs['{name}']")
        assert program["steps"] == list(plan.steps) and program["bytes"] == plan.peak_bytes
        assert program["buffers"] == [{key: getattr(row, key) for key in program["buffers"][0]} for row in plan.rows]
        for run in (1, 2, 3):
            before, found = nets.drawn(), browser.run(f"read('{name}', {run})")
            workspace.run(net)
            assert program["drawn"] == nets.drawn() - before
            if rows == 16: assert found == {"from": before, "t": next(iter(solver.get_states().values())).t}
        words = text(rows=name, run=2, step=plan.steps.index("draw"))
        expected = browser.run("position") + program["drawn"]
        assert f"from position {expected} on; the next run begins at {expected + program['drawn']}." in words
    assert "It looks up the rate and the step count, 2." in text(step=len(plan.steps) - 1)


def test_a_loop_and_its_history(figures, figure, browser):
    """Roots, gradients and the number of turns are those of the net, which refuses when the figure does."""
    nets = figures("nets")
    text, workspace = figure("loop"), Workspace()
    for turns in (3, 6, 10):
        net = nets.roots(turns)
        for x in (0.25, 1.0, 2.0, 9.0, 30.0):
            workspace.feed("x", np.array([x]))
            rows = browser.run(f"forward({x}, {turns})")
            if rows is None:
                with pytest.raises(RuntimeError, match=f"still true after {turns} turns"): workspace.run(net)
                assert f"after {turns} turns, the most that turns={turns} allows" in text(x=x, turns=turns)
                continue
            workspace.run(net)
            grad = browser.run(f"backward({x}, forward({x}, {turns}))")
            total = sum(grad[-1]) if grad else 1.0
            assert rows[-1] == workspace.fetch("root").item()
            np.testing.assert_allclose(total, workspace.fetch("x_grad").item(), rtol=1e-12)
            if x > 1: assert f"the gradient of x is {total:.6g}"[:30] in text(x=x, turns=turns, step=2 * len(rows) - 1)
    shapes = {"x": ((1,), "float64")}
    more = nets.roots(600).plan(shapes).peak_bytes - nets.roots(88).plan(shapes).peak_bytes
    assert more == 64 * 512 and "has 10 rows of 64 bytes" in text(x=9, turns=10, step=0)
