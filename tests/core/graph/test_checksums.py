"""CYGRAD_CHECK_SAVED=1: backward detects writes by NumPy to saved tensors (contract 1)."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCENES = """
import sys
import numpy as np
import cygrad as cg


def external():
    a = np.ones(5)
    x = cg.asarray(a).attach_grad()
    with cg.record():
        y = (x * x).sum()                           # line: mul at
    a[0] = 7
    return y


def a_constant():
    a = np.ones(5)
    x = cg.ones(5, "float64").attach_grad()
    with cg.record():
        y = (x * cg.asarray(a)).sum()
    a[3] = 7
    return y


def one_element_of_a_view():
    a = np.ones((4, 6))
    x = cg.asarray(a[::2, ::-1]).attach_grad()
    with cg.record():
        y = cg.exp(x).sum() + (x * x).sum()
    a[2, 3] += 1e-12
    return y


def memory_of_ours_that_numpy_has():
    x = cg.ones(5).attach_grad()
    with cg.record():
        h = cg.exp(x)
        y = h.sum()
    h.detach().numpy()[2] = 0
    return y


def two_tensors_on_one_array():
    a = np.ones(5)
    x, twin = cg.asarray(a).attach_grad(), cg.asarray(a)
    with cg.record():
        y = (x * x).sum()
    twin += 1                                       # its version, not that of x
    return y


def labels_and_matrices():
    a = np.ones((3, 4), "f4")
    w = cg.ones((2, 4)).attach_grad()
    with cg.record():
        y = cg.linear(cg.asarray(a), w).sum()
    a[:] = 0
    return y


def nothing_was_written():
    a = np.ones(70)
    x = cg.asarray(a).attach_grad()
    with cg.record():
        y = cg.relu(x * 2.0).sum() + (x * x).sum()
    return y


def written_where_it_does_not_matter():
    a = np.ones(6)
    x = cg.asarray(a)[:3].attach_grad()
    with cg.record():
        y = (x * x).sum()
    a[3:] = 5                                       # beyond what the view sees
    return y


def written_between_two_passes():
    a = np.ones(5)
    x = cg.asarray(a).attach_grad()
    with cg.record():
        y = (x * x).sum()
    y.backward(retain_graph=True)
    a[0] = 7
    return y


for f in (external, a_constant, one_element_of_a_view, memory_of_ours_that_numpy_has, two_tensors_on_one_array,
          labels_and_matrices, nothing_was_written, written_where_it_does_not_matter, written_between_two_passes):
    for create_graph in (False, True):
        y = f()
        try:
            y.backward(create_graph=create_graph)
            print(f.__name__, "passed")
        except cg.InplaceError as e:
            print(f.__name__, "raised", e)
print("live", cg.memory.stats()["live_bytes"] - y.nbytes)
"""

RIGHT = {"nothing_was_written", "written_where_it_does_not_matter"}


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """The output of the scenes with the switch off and on: {switch: [(scene, outcome, message)]}."""
    script = tmp_path_factory.mktemp("check") / "scenes.py"
    script.write_text(SCENES)
    out = {}
    for switch in ("0", "1"):
        run = subprocess.run([sys.executable, str(script)], env=os.environ | {"CYGRAD_CHECK_SAVED": switch},
                             capture_output=True, text=True, timeout=120)
        assert run.returncode == 0, run.stderr
        lines = [s.split(" ", 2) for s in run.stdout.splitlines()]
        assert lines.pop() == ["live", "0"]
        out[switch] = [(name, outcome, "".join(rest)) for name, outcome, *rest in lines]
    return out


def test_without_the_switch_nobody_notices(said):
    assert len(said["0"]) == 18 and {outcome for _, outcome, _ in said["0"]} == {"passed"}


def test_every_write_is_noticed_and_nothing_else(said):
    assert [(name, outcome) for name, outcome, _ in said["1"]] == [
        (name, "passed" if name in RIGHT else "raised") for name, _, _ in said["0"]]


def test_the_error_names_the_operation_and_its_line(said):
    number = [i for i, s in enumerate(SCENES.splitlines(), 1) if "# line: mul at" in s][0]
    message = said["1"][0][2]
    assert message.startswith("mul at ") and f"scenes.py:{number} saved a tensor of shape (5,) for backward" in message
    assert "through a NumPy array" in message and "cygrad.tensor(...), which copies" in message


def test_right_programs_stay_right():
    """The random programs, with writes, passes and graphs of gradients, raise no new errors."""
    code = ("from programs import Boom, Program, Refused, run\n"
            "import cygrad as cg\n"
            "def outcome(seed):\n"
            "    try: run(Program(seed))\n"
            "    except (Boom, MemoryError, Refused) as e: return type(e).__name__\n"
            "print([outcome(seed) for seed in range(60)])\n")
    said = [subprocess.run([sys.executable, "-c", code], env=os.environ | {"CYGRAD_CHECK_SAVED": switch},
                           cwd=Path(__file__).parents[2] / "support", capture_output=True, text=True, timeout=120)
            for switch in ("0", "1")]
    assert said[1].returncode == 0, said[1].stderr
    assert said[0].stdout == said[1].stdout and "None" in said[0].stdout


NETS = """
import numpy as np
import cygrad as cg
from cygrad.graph import Net, Workspace

a = np.ones(4)
w = cg.asarray(a).attach_grad()

def step(x):
    with cg.record(): loss = (w * x * w).sum()
    loss.backward()

net, workspace = Net.capture(step, cg.ones(4, "float64")), Workspace()
workspace.feed("x", np.ones(4))
for written in (False, True):
    workspace.forward(net)
    if written: a[1] = 5
    try:
        workspace.backward(net)
        print("passed")
    except RuntimeError as e: print(e)
"""


@pytest.mark.parametrize(("switch", "last"), [
    ("0", "passed"),
    ("1", "Workspace.backward: 'parameter' was written after forward() of net step; call forward() again"),
])
def test_the_parts_of_a_net_compare_too(switch, last):
    run = subprocess.run([sys.executable, "-c", NETS], env=os.environ | {"CYGRAD_CHECK_SAVED": switch},
                         capture_output=True, text=True, timeout=120)
    assert run.stderr == "" and run.stdout.splitlines() == ["passed", last]
