"""memory.why: every holder of a tensor's memory is counted, and named if possible."""

import gc

import numpy as np
import programs
import pytest
from programs import Boom, Program, Refused, run

import cygrad as cg


def reasons(t):
    w = cg.memory.why(t)
    assert sum(count for count, _ in w.entries) == w.holders and all(count > 0 for count, _ in w.entries)
    return {who: count for count, who in w.entries}


def test_a_tensor_by_itself():
    x = cg.zeros((3, 4))
    assert reasons(x) == {"this tensor of shape (3, 4)": 1}
    assert repr(cg.memory.why(x)) == "48 bytes of other; held by\n  1  this tensor of shape (3, 4)\n" \
                                      "named\n  x in test_a_tensor_by_itself"
    w = cg.memory.why(x)
    assert (w.bytes, w.category, w.holders, w.made_by, w.line) == (48, "other", 1, "", "")


def test_what_operations_keep():
    x = cg.ones(100).attach_grad()
    with cg.record():
        h = cg.exp(x)
        y = (h * h * x).sum()
    assert reasons(h) == {"this tensor of shape (100,), the result of exp": 1,
                          "saved for backward by exp (its output 0)": 1, "saved for backward by mul (its input 0)": 1,
                          "saved for backward by mul (its input 1)": 1}
    assert reasons(x) == {"this tensor of shape (100,), a variable": 1, "saved for backward by mul (its input 1)": 1}
    y.backward()
    assert reasons(h) == {"this tensor of shape (100,), the result of exp": 1}
    with cg.record():                               # while the scope is open, and without any scope
        y = cg.exp(h)
        assert reasons(y)["saved for backward by exp (its output 0)"] == 1
    cg.set_recording(True)
    y = cg.exp(x)
    cg.set_recording(False)
    assert reasons(y)["saved for backward by exp (its output 0)"] == 1


def test_nodes_are_found_after_their_scopes_have_gone():
    x = cg.ones(100).attach_grad()
    with cg.record() as outer:
        y = cg.exp(x)
        with cg.record():
            z = cg.exp(y)
        assert reasons(z)["saved for backward by exp (its output 0)"] == 1
    del outer
    gc.collect()
    assert reasons(y)["saved for backward by exp (its output 0)"] == 1
    assert reasons(z)["saved for backward by exp (its output 0)"] == 1
    w = cg.memory.why(y)
    del z
    assert reasons(y)["saved for backward by exp (its output 0)"] == 1 and w.holders == cg.memory.why(y).holders


def test_views_leases_and_external_memory():
    x = cg.zeros((3, 4))
    views = [x[1:], x.T, x.detach()]
    a = x.numpy()
    b = a[1:]                                       # cygrad has no record of NumPy's own view
    assert reasons(x) == {"this tensor of shape (3, 4)": 1, "NumPy arrays or other objects that share it": 1,
                          "other tensors (views of it, detached ones)": 3}
    assert reasons(views[1])["other tensors (views of it, detached ones)"] == 3
    del a, b, views
    assert reasons(x) == {"this tensor of shape (3, 4)": 1}
    e = cg.asarray(np.ones(5))
    assert repr(cg.memory.why(e)) == ("40 bytes of a numpy.ndarray, which cygrad does not count; held by\n"
                                      "  1  this tensor of shape (5,)\n"
                                      "named\n  e in test_views_leases_and_external_memory")


def test_gradients_variables_and_solver_states():
    x = cg.zeros(100).attach_grad()
    assert reasons(x.grad) == {"this tensor of shape (100,), a gradient": 1}
    with cg.record():
        y = x * 2.0
    assert reasons(x.grad) == {"this tensor of shape (100,), the .grad of a variable of shape (100,)": 1}
    g = x.grad.detach()
    assert reasons(g) == {"this tensor of shape (100,)": 1, "the .grad of a variable of shape (100,)": 1}
    twin = x.detach().attach_grad()
    assert reasons(x)["other variables on this memory"] == 1
    d = x.detach()
    assert reasons(d) == {"this tensor of shape (100,)": 1, "other variables on this memory": 2}
    del twin, y, g, d


def test_the_line_that_made_it():
    before = cg.zeros(10)
    with cg.memory.profile():
        x = cg.zeros(100)
        with cg.memory.profile():
            w = cg.memory.why(x)
        assert w.made_by == "tensor" and w.line.startswith(__file__ + ":")
        assert f"400 bytes of other, made by tensor at {w.line}; held by" in repr(w)
        assert cg.memory.why(before).line == ""
    assert cg.memory.why(x).line == ""


@pytest.mark.parametrize("seed", range(30))
def test_the_numbers_add_up_in_random_programs(seed, monkeypatch):
    """For every tensor at every event, also during a backward pass."""
    held, wrong = [], []

    def spy(program, values, *rest):
        held.append(values)                         # to which every result is appended
        return forward(program, values, *rest)

    def look(_):
        for t in [t for values in held for t in values]:
            w = cg.memory.why(t)
            if sum(count for count, _ in w.entries) != w.holders or min(count for count, _ in w.entries) < 1:
                wrong.append(str(w))

    forward = programs.forward
    monkeypatch.setattr(programs, "forward", spy)
    with cg.memory.events(look):
        try:
            run(Program(seed))
        except (Boom, MemoryError, Refused):
            pass
    assert not wrong and held and len(held[0]) > 5
    held.clear()


def test_in_the_middle_of_a_backward_pass():
    x = cg.tensor(np.ones((2, 3))).attach_grad()
    with cg.record():
        h = cg.exp(x)
        y = (cg.tanh(h) * h.broadcast_to((5, 2, 3))).sum()
    seen = []
    with cg.memory.events(lambda _: seen.append((reasons(h), reasons(x), reasons(y), reasons(x.grad)))):
        y.backward()
    assert len(seen) > 3 and any("saved for backward by exp (its output 0)" in s[0] for s in seen)


def test_what_is_no_tensor():
    with pytest.raises(TypeError, match="memory.why takes a tensor, got numpy.ndarray"):
        cg.memory.why(np.ones(3))
