"""What is around a run of a net: the list in cygrad/core/graph/around.pyx, whose cases are in tests/support."""

import gc

import pytest
import surrounding_scopes  # noqa: F401 (it adds cases)
from surroundings import CASES, LISTED, REFUSALS, eager, loss_of, net, program, variable

import cygrad as cg
from cygrad.core.execute.program import Program
from cygrad.graph import Net, Workspace


@pytest.mark.parametrize("name", CASES)
def test_a_net_sees_what_eager_code_sees(name):
    found = CASES[name][1]
    assert found(net) == found(eager)


@pytest.mark.parametrize("name", CASES)
def test_a_program_sees_it_or_names_it(name):
    found = CASES[name][1]
    if REFUSALS[name] is None: assert found(program) == found(eager)
    else:
        with pytest.raises(RuntimeError, match=f"^run: {REFUSALS[name]}, which this program does not follow; call the "
                                               "function itself, or make another program$") as caught: found(program)
        del caught
    gc.collect()


@pytest.mark.parametrize(("register", "retain", "named"), [
    (lambda w, z: w.register_hook(print), True, r"a hook on a variable of shape \(1,\)"),
    (lambda w, z: w.register_post_accumulate_grad_hook(print), True, r"a hook on a variable of shape \(1,\)"),
    (lambda w, z: z.register_hook(print), True, "a hook on mul, recorded outside,"),
    (lambda w, z: z.grad_fn.register_hook(print), True, "a hook on mul, recorded outside,"),
    (lambda w, z: None, False, "a backward pass without retain_graph=True through mul, recorded outside,"),
])
@pytest.mark.parametrize("make", [Net.capture, Program])
def test_a_capture_refuses_by_name(make, register, retain, named):
    w = variable()
    with cg.record(): z = w * 2
    handle = register(w, z)

    def step():
        with cg.record(): loss = z.sum()
        loss.backward(retain_graph=retain)
    with pytest.raises(RuntimeError, match=f"^capture: {named} cannot be captured, because") as caught: make(step)
    del caught
    if handle is not None: handle.remove()
    z.backward()                                    # nothing was freed
    assert w.grad.item() == 2


def test_plans_and_parts_refuse_by_name():
    w, workspace = variable(), Workspace()
    made = Net.capture(loss_of(w))
    with w.register_hook(lambda g: g):
        hook = r"a variable of shape \(1,\) has a hook"
        calls = {
            made.plan: f"Net.plan: {hook}, so eager code runs net step now, without a plan; plan before, or after it",
            made.infer: f"Net.infer: {hook}, which is not called for virtual gradients; remove it meanwhile",
            lambda: workspace.forward(made):
                f"Workspace.forward: net step has no plan, because {hook}; use run\\(\\)",
        }
        for call, words in calls.items():
            with pytest.raises(RuntimeError, match=f"^{words}$"): call()
    opened = cg.GradientCollector()
    for change in (lambda: w.register_hook(lambda g: g), lambda: w.attach_grad("add"), opened.__enter__):
        workspace.forward(made)
        undo = change()
        with pytest.raises(RuntimeError, match=r"^Workspace.backward: .*, which a plan of net step does not follow; "
                                               r"call forward\(\) again, or use run\(\)$"): workspace.backward(made)
        if undo is not w: undo.__exit__(None, None, None)
    workspace.forward(made)
    workspace.backward(made)
    assert w.grad.item() == 1


def test_a_plan_leaves_an_open_collector_as_it_was():
    w, v = variable([3.0]), variable([3.0])
    with cg.GradientCollector() as gc:
        loss_of(v)()
        cg.memory.plan(loss_of(w))
        gc.zero_gradients()
        loss_of(w)()
    assert (w.grad.item(), v.grad.item()) == (1, 0)


def test_changes_back_use_the_first_program_again():
    w, workspace = variable(), Workspace()
    made = Net.capture(loss_of(w))
    for _ in range(3):
        for req in ("write", "add"):
            w.attach_grad(req)
            workspace.run(made)
    [(_, programs)] = workspace._programs.values()
    assert len(programs) == 2 and all(p.ran for p in programs)


def test_every_line_of_the_list_has_a_case():
    elsewhere = {"CYGRAD_CHECK_SAVED"}              # (tests/core/graph/test_checksums.py)
    assert {line for line, _ in CASES.values()} == LISTED - elsewhere
