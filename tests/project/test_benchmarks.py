"""The benchmarks' arithmetic and work, on tiny inputs. No test depends on time."""

import contextlib
import gc
import importlib.util

import numpy as np
import pytest

from benchmarks import busy, collect, imports, limits, machine, steps, timing, work, worker
from benchmarks.compiler import compiler
from benchmarks.goals import GOALS, Goal
from benchmarks.memory import faults, kept, liveness, nets, overhead, shapes, varying
from benchmarks.memory import page as memory_page
from benchmarks.memory import peaks as memory_peaks
from benchmarks.models import Problem, losses, trainers
from benchmarks.separate import ask
import cygrad as cg
from cygrad.kernels import driver
from cygrad.ops import TABLE

LIBRARIES = ["cygrad", "NumPy"]


def no_say(_):
    pass


# ---- arithmetic ------------------------------------------------------------------------------------------------------

def test_spread_is_median_and_quartiles():
    assert timing.spread([5.0, 1.0, 3.0, 2.0, 4.0]) == {"median": 3.0, "q1": 2.0, "q3": 4.0, "n": 5}
    assert timing.spread([7.0]) == {"median": 7.0, "q1": 7.0, "q3": 7.0, "n": 1}
    with pytest.raises(ValueError, match="no samples"):
        timing.spread([])


def test_ratios_are_taken_in_pairs_and_leave_zeros_out():
    assert timing.ratios([6.0, 9.0, 1.0], [2.0, 3.0, 0.0]) == [3.0, 3.0]
    with pytest.raises(ValueError):
        timing.ratios([1.0], [1.0, 2.0])


def test_interleave_gives_every_peer_the_same_rounds():
    order = []
    runs = {name: lambda n, name=name: order.append(name) for name in "ab"}
    runs = {name: lambda n, name=name: [order.append(name) for _ in range(n)] for name in runs}
    samples, clean = timing.interleave(runs, 4, 1e-6)
    assert {name: len(s) for name, s in samples.items()} == {"a": 4, "b": 4}
    assert all(s > 0 for taken in samples.values() for s in taken)
    assert 0 <= clean <= 1


def test_quiet_counts_the_processors_left(monkeypatch):
    monkeypatch.setattr(timing.os, "cpu_count", lambda: 4)
    assert timing.quiet(3.0, 1) and not timing.quiet(3.0, 2)
    assert timing.quiet(None, 4)


def test_companions_are_taken_off():
    samples = {"cygrad": [3.0, 4.0], "cygrad companion": [2.0, 9.0], "cygrad multiply": [1.0, 1.0]}
    assert worker.without_companions(samples) == {"cygrad": [4.0, 0.0], "cygrad multiply": [1.0, 1.0]}


def test_judge_relates_peers_to_cygrad():
    samples = {"cygrad": [2.0, 4.0], "PyTorch": [6.0, 12.0], "cygrad multiply": [1.0, 2.0]}
    result = collect.judge("A", "x", "us", 1, samples, {}, 1, 0.123, True)
    assert result["ratios"].keys() == {"PyTorch"} and result["ratios"]["PyTorch"]["median"] == 3.0
    assert result["to_multiply"]["median"] == 2.0
    assert result["disturbed"] and result["others"] == 0.12
    assert not collect.judge("J", "x", "B", 1, samples, {}, 1, 2.0, True)["disturbed"]  # bytes are not disturbed


def test_merge_pairs_the_medians_of_processes():
    def process(peer, taken, value, disturbed):
        return [{"name": "step", "unit": "us", "tolerance": 1e-4, "details": {}, "others": 0.1, "disturbed": disturbed,
                 "samples": {peer: taken}, "values": {peer: [[value]]}}]

    answers = [process("cygrad", [1, 2, 3], 1.0, False), process("NumPy", [4, 5, 60], 1.0, False),
               process("NumPy", [7, 8, 9], 1.0, True), process("cygrad", [3, 4, 5], 1.0, False)]
    (case,) = collect.merge(answers)
    assert case["samples"] == {"cygrad": [2, 4], "NumPy": [5, 8]} and case["disturbed"]
    with pytest.raises(ValueError, match="do not do the same work"):
        collect.merge([process("cygrad", [1], 1.0, False), process("NumPy", [1], 1.1, False)])


def test_agree_names_who_differs():
    work.agree("x", {"cygrad": [np.ones(2)], "NumPy": [np.ones(2)]}, 1e-6)
    with pytest.raises(ValueError, match="cygrad and NumPy differ in array 0 by up to 0.5"):
        work.agree("x", {"cygrad": [np.ones(2)], "NumPy": [np.full(2, 1.5)]}, 1e-6)
    with pytest.raises(ValueError, match="shape"):
        work.agree("x", {"cygrad": [np.ones(2)], "NumPy": [np.ones(3)]}, 1e-6)


def test_goals_are_judged_by_ratio_or_by_figure():
    assert Goal(45, 8).reached(1.0, 8.0) and not Goal(45, 8).reached(1.0, 7.9)
    assert Goal(160).reached(160, None) and not Goal(160).reached(161, 99.0)
    assert Goal(45, 8).reached(1.0, None) is None
    both = Goal(6.5, 5, kept=True)
    assert both.reached(1.0, 5.0, None, 1.0) and not both.reached(1.0, 5.0, None, 0.9)
    assert both.reached(1.0, 5.0) is None
    rows = Goal(0.5, 1.3, dense=5)
    assert rows.reached(1.0, 1.3, dense=5.0) and not rows.reached(1.0, 1.3, dense=4.9)
    assert not rows.reached(1.0, 1.2, dense=5.0) and rows.reached(1.0, 1.3) is None
    limited = Goal(10.0, limit=1.5)
    assert limited.reached(3.0, None, 2.0) and not limited.reached(3.1, None, 2.0)
    assert limited.reached(3.0, 9.0) is None
    two = Goal(10, 2, two=Goal(6, 3))
    assert [two.at(n).ratio for n in (1, 2, 4)] == [2, 3, 3] and limited.at(2) is limited


def test_a_limit_is_what_the_machine_needs_for_as_much():
    rate = collect.judge("H", "copies", "ms", 2, {"machine": [4.0]}, dict(rate="copy", amount=8e6), 1, 0.0, True)
    work_ = collect.judge("H", "exp", "ms", 2, {"cygrad": [7.0]}, dict(limit="copy", amount=20e6), 1, 0.0, False)
    other = collect.judge("H", "exp", "ms", 1, {"cygrad": [7.0]}, dict(limit="copy", amount=20e6), 1, 0.0, False)
    product = collect.judge("H", "matmul", "us", 2, {"cygrad": [9.0]}, dict(limit="fma", amount=1.0), 1, 0.0, False)
    limits.mark([rate, work_, other, product])
    assert work_["limit"] == {"figure": pytest.approx(10.0), "disturbed": True}
    assert "limit" not in other and "limit" not in product and "limit" not in rate


@pytest.mark.skipif(compiler() is None, reason="no C compiler")
def test_the_machine_copies_reads_multiplies():
    loops = limits.library()
    x, y = np.arange(1001, dtype=np.uint8), np.zeros(1001, np.uint8)
    for threads in (1, 2, 3):
        y[:] = 0
        loops.copy(y.ctypes.data_as(limits.ctypes.c_void_p), x.ctypes.data_as(limits.ctypes.c_void_p),
                   limits.ctypes.c_long(x.size), threads)
        assert (x == y).all()
        for n in (0, 7, 513, 1001):
            z = np.arange(n, dtype=np.float32)
            read = loops.read_all(z.ctypes.data_as(limits.ctypes.c_void_p), limits.ctypes.c_long(n), threads)
            assert read == n * (n - 1) / 2
    assert loops.operations() in (2 * 12 * 8, 2 * 12 * 16)
    made = limits.cases([work.LIMITS], ("copy", "read", "fma"))
    assert [c.details["shown"] for c in made] == ["GB/s", "GB/s", "GFLOP/s"]
    for case in made:
        case.runs[work.LIMITS](1)
    assert limits.cases(["cygrad"], ("copy",)) == []


# ---- the work --------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("loss", ["mse", "cross_entropy"])
@pytest.mark.parametrize("solver", ["sgd", "adam"])
def test_libraries_train_alike(loss, solver):
    problem = Problem((3, 5, 4), 7, loss, solver, 0.01)
    made = trainers(work.installed([*work.EAGER, "HIPS"]), problem)
    work.agree(f"{loss}, {solver}", {peer: losses(make, *problem.data()) for peer, make in made.items()}, 1e-4)
    (mine,) = losses(made["cygrad"], *problem.data())
    assert mine[-1] != mine[0]


def test_every_goal_has_its_workload():
    named = {("peaks", name) for name in work.module("peaks").PROBLEMS}
    pytest.importorskip("sklearn")
    named |= {("J", f"{chain}: {what}") for chain in work.module("J").CHAINS
              for what in ("forward", "backward", "free", "bytes per operation")}
    for row in "ABCDEFGL":
        named |= {(row, case.name) for case in work.module(row).cases(["cygrad"], False)}
    named |= {("H", case.name) for case in work.module("H").cases(["cygrad"], False, 8)}
    named |= {("I", case.name) for case in work.module("I").cases(["cygrad"], False, 8)}
    named |= {("solvers", case.name) for case in work.module("solvers").cases(["cygrad"], False)}
    named |= {("import", name) for name in imports.MEASURES}
    assert GOALS.keys() <= named


@pytest.mark.parametrize("row, sizes", [("H", (1000,)), ("I", (32, (8, 16)))])
def test_large_work_is_the_same_for_all(row, sizes):
    pytest.importorskip("torch")
    gc.collect()  # its first import leaves a cycle that holds frames, including this one with its tensors
    libraries = work.installed([*work.EAGER, work.KEPT])
    made = work.module(row).cases(libraries, False, *sizes)
    for case in made:
        assert case.runs.keys() == case.values.keys() and "cygrad" in case.runs
        assert ("NumPy" in case.runs) == ("backward" not in case.name)
        work.agree(case.name, {peer: compute() for peer, compute in case.values.items()}, case.tolerance)
        assert case.details["amount"] > 0 and case.details["limit"] in limits.UNITS
    assert len(made) == {"H": 12, "I": 11}[row]


def test_a_step_of_wide_layers_is_its_products():
    wide = work.module("D")
    assert wide.flops(Problem((3, 5, 2), 7, "cross_entropy", "sgd", 0.1)) == 2 * 7 * (3 * (15 + 10) - 15)
    assert wide.flops(wide.PROBLEM) == 2_448_424_960


@pytest.mark.skipif(not importlib.util.find_spec("jax"), reason="jax is not installed")
@pytest.mark.parametrize("row", ["B", "C"])
def test_jax_trains_alike(row):
    """In a separate process, because jax's threads and forks conflict."""
    pytest.importorskip("sklearn")
    spec = dict(row=row, libraries=["cygrad", "jax.jit"], threads=1, quick=True, rounds=1, seconds=1e-4, patience=0)
    for case in collect.ask(spec):
        assert case["samples"].keys() == case["values"].keys() == {"cygrad", work.LAYERS, "jax.jit"}


def test_who_is_alone_in_its_processes(monkeypatch):
    """With two threads all libraries; in some rows with one thread too. PyTorch that keeps memory is configured so."""
    asked = []

    def process(spec):
        asked.append(spec["libraries"])
        return []

    monkeypatch.setattr(collect, "ask", process)
    for row, threads in (("B", 1), ("B", 2), ("H", 1)):
        collect.timed_row(row, ["cygrad", "NumPy"], threads, True, no_say)
    assert asked[0] == ["cygrad", "NumPy"] and all(len(libraries) == 1 for libraries in asked[1:])
    monkeypatch.undo()
    seen = []

    class Done:
        returncode, stdout = 0, "[]"

    monkeypatch.setattr(collect.subprocess, "run", lambda *_, env, **__: (seen.append(env), Done)[1])
    for libraries in (["PyTorch"], [work.KEPT]):
        collect.ask(dict(row="H", libraries=libraries, threads=1))
    plain, kept_memory = seen
    assert plain["OMP_NUM_THREADS"] == kept_memory["OMP_NUM_THREADS"] == "1"
    assert kept_memory["MALLOC_TRIM_THRESHOLD_"] == str(8 << 30) and "MALLOC_TRIM_THRESHOLD_" not in plain


def test_fresh_processes_all_take_the_same_step():
    answers = {name: imports.fresh(name) for name in work.installed(["cygrad", "HIPS", "NumPy"])}
    for answer in answers.values():
        assert answer["loss"] == pytest.approx(answers["NumPy"]["loss"], rel=1e-5) and answer["product"] == 2.0
    assert answers["NumPy"].keys() & imports.MEASURES.keys() == {
        "import numpy", "first matmul", "resident after a first small step"}
    assert answers["cygrad"].keys() >= imports.MEASURES.keys() - {"import numpy"}


@pytest.mark.parametrize("name", ["cygrad", busy.ALONE, "PyTorch", "NumPy"])
def test_work_on_a_busy_machine(name):
    """In a separate process, which sets its threads and compares the results with NumPy's."""
    if name == "PyTorch": pytest.importorskip("torch")
    with busy.spinning(1): taken = busy.ask(name, 0.001)
    assert taken.keys() == busy.works("NumPy").keys() and all(us > 0 for us in taken.values())


def test_a_busy_machine_is_told_from_a_quiet_one(monkeypatch):
    spinning = []

    @contextlib.contextmanager
    def spin(n):
        spinning.append(n)
        yield

    monkeypatch.setattr(busy, "spinning", spin)
    monkeypatch.setattr(busy, "ask", lambda name, _: {"add": 2.0 + 3 * spinning[-1] * (name == "NumPy")})
    assert busy.gather(["cygrad", "NumPy"], True, no_say) == []
    made = {g.name: g for g in busy.gather(["cygrad", "NumPy"], False, no_say)}
    assert set(spinning) == set(busy.SPINNERS.values()) and made.keys() == {f"add, {b}" for b in busy.SPINNERS}
    one = made["add, beside one that spins"]
    assert one.samples == {"cygrad": [2.0] * 3, busy.ALONE: [2.0] * 3, "NumPy": [5.0] * 3}
    assert one.details == {"times alone": {"cygrad": 1.0, busy.ALONE: 1.0, "NumPy": 2.5}}


def test_spinning_processes_end():
    with busy.spinning(2) as processes: assert [p.poll() for p in processes] == [None, None]
    assert all(p.returncode for p in processes)


def test_imports_that_were_disturbed_are_taken_again(monkeypatch):
    shares = iter([1, 1, 0.5, 1, 1, 0.5, 1, 1, 1, 1])

    def fresh(name):
        return {"share": next(shares), "import": 0.25 if name == "cygrad" else 0.5}

    monkeypatch.setattr(imports, "fresh", fresh)
    monkeypatch.setattr(imports, "ROUNDS", {True: 2})
    (got,) = [g for g in imports.gather(["cygrad", "HIPS"], True, no_say) if g.samples]
    assert got.samples == {"cygrad": [250.0, 250.0], "HIPS autograd": [500.0, 500.0]} and not got.disturbed


def test_every_elementwise_operator_has_chains_that_agree():
    operations = work.module("A")
    libraries = [*LIBRARIES, *(["PyTorch"] if importlib.util.find_spec("torch") else [])]
    operations_cases = [c for c in operations.cases(libraries, False) if c.details.get("size") == 1]
    names = {c.details["operator"] for c in operations_cases if c.details["kind"] == "table"}
    assert names == {row.name for row in operations.TABLE if row.family in operations.FAMILIES}
    assert names > set(operations.FEW)
    for case in operations_cases:
        values = {peer: compute() for peer, compute in case.values.items()}
        work.agree(case.name, values, case.tolerance)
        assert all(np.isfinite(a).all() for a in values["cygrad"]), case.name


def test_a_chain_of_operations_keeps_what_it_says():
    million = work.module("J")
    figures, values = million.measure_cygrad("x * w", 50, False, True)
    assert figures["x * w: bytes per operation"]["details"]["live_bytes"] == pytest.approx(4.0, abs=0.2)
    assert values == [[1.0, 1.0, 1e6]]


def test_the_peak_is_the_counters_peak():
    peaks = work.module("peaks")
    problem = Problem((4, 8, 3), 5, "cross_entropy", "adam", 1e-3)
    parameters = sum(w.nbytes + b.nbytes for w, b in problem.layers())
    peak, details, values = peaks.cygrad_peak(problem, "cygrad", parameters)
    assert sum(details["by_category"].values()) == peak
    assert details["by_category"]["optimizer"] == 2 * parameters
    assert peak >= 3 * parameters and len(values) == peaks.STEPS
    assert peaks.cygrad_peak(problem, work.FRESH, parameters)[0] <= peak


# ---- the steps of a kernel -------------------------------------------------------------------------------------------

def asked(**more):
    """The request to one process of the steps, with sizes for tests."""
    return dict(level=driver.level(), threads=1, names=None, small=33, large=100, shape=(3, 5), rounds=2,
                seconds=1e-4) | more


def test_steps_are_timed_for_an_element():
    made = steps.steps(33, 100, (3, 5))
    assert {name: step.elements for name, step in made.items()} == {
        "exp, small": 33, "exp, small, NumPy": 33, "neg, small": 33, "exp, large": 100, "neg, large": 100,
        "softmax in five operations": 15, "softmax in one": 15}
    for spec in (asked(), asked(names=steps.TWO_THREADS, threads=2)):
        before = cg.get_num_threads()
        timed = steps.child(spec)
        cg.set_num_threads(before)
        assert list(timed) == (spec["names"] or list(made)) and all(seconds > 0 for seconds in timed.values())


@pytest.mark.parametrize("name", ["exp", "neg", "sum", "softmax"])
def test_a_step_that_computes_something_else_is_not_timed(monkeypatch, name):
    right, threads = getattr(cg, name), cg.get_num_threads()
    monkeypatch.setattr(cg, name, lambda *args, **how: right(*args, **how) * 1.001)
    with pytest.raises(ValueError, match="NumPy and cygrad differ in array 0"):
        steps.child(asked())
    cg.set_num_threads(threads)


def test_steps_are_taken_with_the_kernels_asked_for():
    """In a separate process for each level that is built. Another level is refused."""
    levels = steps.built()
    assert levels[0] == "baseline" and driver.level() in levels
    for level in levels:
        spec = asked(level=level, names=["neg, small"])
        assert ask("benchmarks.steps", spec, {"CYGRAD_LEVEL": level}).keys() == {"neg, small"}
    with pytest.raises(RuntimeError, match=f"wanted kernels for avx1024, these are for {driver.level()}"):
        steps.child(asked(level="avx1024"))
    with pytest.raises(RuntimeError, match="(?s)ended with 1.*KeyError: 'cube'"):
        ask("benchmarks.steps", asked(names=["cube"]), {})


def test_the_table_of_steps(monkeypatch, tmp_path, capsys):
    """Medians over processes, which take turns by kind, with each figure in its row."""
    specs = []
    own = {"baseline": 0.0, "avx2": 1e-11, "avx512": 2e-11}

    def answer(module, spec, environment):
        assert environment == {"CYGRAD_LEVEL": spec["level"]}
        specs.append((spec["level"], spec["threads"]))
        names = spec["names"] or list(steps.steps(1, 1, (1, 1)))
        last = [1e-9, 5e-9, 2e-9][(len(specs) - 1) // 4]        # the median of three processes is 2
        return {name: last + own[spec["level"]] + 1e-10 * i + 1e-9 * (spec["threads"] - 1)
                for i, name in enumerate(names)}

    monkeypatch.setattr(steps, "ask", answer)
    monkeypatch.setattr(steps, "built", lambda: list(own))
    monkeypatch.setattr(steps.machine, "cpu_name", lambda: "a CPU")
    monkeypatch.chdir(tmp_path)
    steps.main([])
    assert specs == 3 * [("baseline", 1), ("avx2", 1), ("avx512", 1), ("avx512", 2)]
    assert (tmp_path / "out" / "benchmarks" / "steps.md").read_text() == """\
| float32, a CPU | ns per element |
|---|---:|
| exp of 4,096 numbers, baseline kernels | 2.000 |
| exp of 4,096 numbers, avx2 kernels | 2.010 |
| exp of 4,096 numbers, avx512 kernels | 2.020 |
| the same by NumPy | 2.120 |
| negation of 4,096 numbers | 2.220 |
| negation of 16 million | 2.420 |
| exp of 16 million | 2.320 |
| the same with two threads | 3.020 |
| softmax of 4,096 rows of 1,024 in five operations | 2.520 |
| softmax in one | 2.620 |
| the same with two threads | 3.120 |
"""
    assert "| softmax in one | 2.620 |" in capsys.readouterr().out
    assert steps.FULL["small"] == 4096 and steps.FULL["large"] == 1 << 24 and steps.FULL["shape"] == (4096, 1024)


# ---- memory ----------------------------------------------------------------------------------------------------------

@pytest.fixture
def quick_collections():
    """Freezes what PyTorch made when a test imported it, so that 15 collections take 0.2 s instead of 6."""
    gc.collect()
    gc.freeze()


def test_a_step_peaks_at_its_liveness_bound(quick_collections):
    """Exactly: fewer bytes would mean that the bound is wrong."""
    for sizes in [(3, 1), (3, 4), (4, 8, 3), (20, 5, 30, 2), (6,) * 9]:
        for loss, solver in [("mse", "sgd"), ("cross_entropy", "adam"), ("cross_entropy", "sgd")]:
            problem = Problem(sizes, 7, loss, solver, 1e-3)
            assert memory_peaks.cygrad_peak(problem)[0] == memory_peaks.bound(problem), problem


def test_the_bound_by_hand():
    """One layer 3 -> 2, batch 5: outputs y, d, s of 40 bytes each, dw 24, db 8, the loss and its gradient 4 each."""
    problem = Problem((3, 2), 5, "mse", "sgd", 1e-3)
    assert liveness.parameter_bytes(problem) == 32
    assert liveness.bound(problem) == 4 + 4 + 40 + 40   # loss, head, the gradient of s, d
    adam = Problem((3, 2), 5, "mse", "adam", 1e-3)
    assert liveness.bound(adam) == liveness.bound(problem) + 64


def test_the_bound_of_a_net_by_hand():
    """y = tanh(x w'), x 5 x 3, w 2 x 3: 40 bytes for y, d and its square, 24 for dw."""
    def one(on, w, x): return on.tanh(on.linear(x, w[0]))

    def cut(on, w, x): return on.concat(on.split(on.linear(x, w[0]), 2, 1), 1)

    made = shapes.Shapes().program(nets.Net(one, ((2, 3),), (5, 3), (5, 2)))
    assert liveness.most_live(made) == 3 * 40 + 4       # the tanh, d, its square and the loss
    assert [call.over for call in made[-4:]] == [True, True, False, False]      # d, the tanh's g; dw, the update
    made = shapes.Shapes().program(nets.Net(cut, ((2, 3),), (5, 3), (5, 2)))
    assert [(call.nbytes, call.over) for call in made[-5:-1]] == [(40, True), (40, False), (40, True), (24, False)]


@pytest.mark.parametrize("name", nets.NETS)
def test_nets_peak_at_their_bound(name, quick_collections):
    """Except for packed matrices, if neither the rows nor the columns of an operand are contiguous."""
    bound = memory_peaks.bound(nets.NETS[name])
    peak, workspace = memory_peaks.cygrad_peak(nets.NETS[name])
    if "heads last" in name:
        assert (bound, peak, workspace) == (2_621_444, 2_654_212, 128 * 64 * 4)
        told = memory_page.above_the_bound({name: dict(bound=bound, cygrad=peak, workspace=workspace)})
        assert f"({name}: 1.0125, with 32,768 bytes packed at the peak)." in told
    else: assert peak == bound
    assert memory_page.above_the_bound({name: dict(bound=bound, cygrad=bound)}) == ""


@pytest.mark.parametrize("name", nets.NETS)
def test_nets_compute_the_same(name):
    pytest.importorskip("torch")
    mine, theirs = (on().trainer(nets.NETS[name]) for on in (nets.Cygrad, nets.PyTorch))
    for _ in range(3): assert mine() == pytest.approx(theirs(), rel=1e-5)
    assert memory_peaks.torch_peak(nets.NETS[name]) > memory_peaks.bound(nets.NETS[name])


def test_pytorch_peaks_above_the_bound():
    pytest.importorskip("torch")
    name = "64-128-64-10, batch 64, Adam"
    assert memory_peaks.torch_peak(memory_peaks.PROBLEMS[name]) > liveness.bound(memory_peaks.PROBLEMS[name]) == 255_356


@pytest.mark.parametrize("name", kept.samples())
def test_an_operator_keeps_the_least(name):
    """As declared, except for a list with reasons. Operators on the list do save more."""
    n, call, _ = kept.samples()[name]
    least, why = kept.least()[name]
    assert why
    if name in kept.MORE:
        assert kept.cygrad_bytes(n, call) > least and kept.MORE[name]
    else:
        assert kept.cygrad_bytes(n, call) == least


def test_every_operator_with_a_gradient_has_a_row():
    names = kept.samples().keys()
    assert names == kept.least().keys() and kept.MORE.keys() <= names
    assert {kept.row_of(name) for name in names} == {row.name for row in TABLE if row.operator.differentiable}


def test_bytes_kept_beside_pytorch():
    """For these, the bytes of both libraries are known."""
    pytest.importorskip("torch")
    samples = kept.samples()
    wanted = {"add": (0, 0), "relu": (1250, 40_000), "mul": (80_000, 80_000), "max": (1250, 40_400),
              "sort": (10_000, 80_000), "mse": (40_000, 80_000), "gather": (800, 40_800), "dropout_with": (0, 40_000),
              "cross_entropy": (41_200, 40_804), "abs": (2500, 40_000), "maximum": (2500, 80_000),
              "where": (1250, 10_000), "select": (1250, 10_000)}
    for name, (mine, theirs) in wanted.items():
        n, ours, pytorchs = samples[name]
        assert (kept.cygrad_bytes(n, ours), kept.torch_bytes(n, pytorchs)) == (mine, theirs), name
    assert kept.left_out() == (
        "cbrt sinc_derivative recurrence put_slice logm sqrtm cofactor spectral_gaps interpolate_back pool_put "
        "pool_take avg_spread conv_weight relu_gradient scale_gradient dropout_identity").split()


def test_no_page_faults_once_memory_has_settled():
    assert faults.count("cygrad", Problem((64, 32, 10), 64, "mse", "sgd", 1e-3)) <= 50


@pytest.mark.parametrize("name", ["transformer layer, d 48, 2 x 128", "LSTM, hidden 64, 12 steps of 32"])
def test_what_a_profile_costs(name):
    """Checks that it is measured. The page has the figures."""
    found = overhead.measure(overhead.STEPS[name](), rounds=2)
    assert found["events"] > 100 and found["ratios"] == sorted(found["ratios"]) and len(found["ratios"]) == 3
    assert f"| {name} |" in overhead.overhead_table({name: found})


def test_quartiles_of_few_profiles_are_between_the_measured_ratios(monkeypatch):
    """Two ratios that are far apart gave a first quartile below zero."""
    taken = iter([1.0, 0.1, 0.2, 0.1, 0.2, 2.0, 0.1])
    monkeypatch.setattr(overhead, "seconds", lambda step, n: next(taken))
    found = overhead.measure(lambda: cg.ones(2) + 1, rounds=2)
    assert found["ratios"] == pytest.approx([5.75, 10.5, 15.25]) and found["first"] == 2


def test_page_of_memory(tmp_path):
    made = {"machine": machine.describe(), "left out": ["put"], "more": {"nll": "since"},
            "faults": {"step": dict(cygrad=[0, 0], PyTorch=[7, 9])},
            "peaks": {"step": dict(bound=100, cygrad=100, PyTorch=150)},
            "kept": {"mul": dict(cygrad=8, least=8, needs="both", PyTorch=8),
                     "max": dict(cygrad=2, least=2, needs="a bit", PyTorch=5),
                     "sum": dict(cygrad=0, least=0, needs="nothing", PyTorch=4),
                     "put": dict(cygrad=1, least=1, needs="one", PyTorch=None),
                     "nll": dict(cygrad=3, least=1, needs="labels", PyTorch=2)}}
    text = memory_page.write(made, {"peaks": "peaks.png"})
    for line in ("| step | 100 | 100 | 150 | 1.00 | 1.50 |", "| mul | 8 | 8 | 8 | same | both |",
                 "| max | 2 | 2 | 5 | 2.50x | a bit |", "| sum | 0 | 0 | 4 | all of it | nothing |",
                 "| put | 1 | 1 |  |  | one |", "| step | 0 | 7..9 |", "![The peak of a step](peaks.png)",
                 "Of 4 rows cygrad saves less than PyTorch in 2 (max; sum), more in 1 (nll), the same in the others.",
                 "cygrad saves the least in 4 of 5 rows, and more in: nll (since)."):
        assert line in text
    pytest.importorskip("matplotlib")
    for name in memory_page.draw(made, tmp_path).values():
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("name", sorted(varying.PROGRAMS))
def test_programs_whose_shapes_change_compute_the_same(name):
    """After some steps, cygrad's parameters equal PyTorch's, and the page shows the figures."""
    pytest.importorskip("torch")
    found = []
    for library in (varying.Cygrad, varying.PyTorch):
        on = library()
        step = varying.PROGRAMS[name](on, np.random.default_rng(0))
        for _ in range(3): step()
        found.append([p.detach().numpy().copy() for p in on.parameters])
    for mine, theirs in zip(*found, strict=True): np.testing.assert_allclose(mine, theirs, rtol=2e-3, atol=1e-5)
    figures = varying.run("cygrad", name, 20)
    assert figures["held"] >= figures["peak"] > 0 and len(figures["held over steps"]) == 20
    rows = {name: {"cygrad": figures, "PyTorch": varying.run("PyTorch", name, 5)}}
    assert f"| {name}, {varying.STEPS[name]:,} steps |" in memory_page.varying_table(rows)
