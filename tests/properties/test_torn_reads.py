"""Indices, masks, lengths and labels that change while they are used, through NumPy or another thread: no kernel reads
or writes outside of its memory (tests/support/torn.py), and what it did not write is not returned."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import cygrad as cg
from cygrad.ops.shapes.masks import mask_put


def test_memory_that_changes_while_it_is_used(tmp_path):
    script = Path(__file__).parents[1] / "support" / "torn.py"
    run = subprocess.run([sys.executable, script], capture_output=True, text=True, cwd=tmp_path)
    assert run.returncode == 0, f"{run.stdout[-500:]}\n{run.stderr[-3000:]}"
    assert run.stdout.count("\n") > 80


# An allocation lies between the count of true elements, which decides the size of the result, and their move.
SAID = "had 10 true elements at first and another number later; another thread modified it; pass a copy()"


@pytest.mark.parametrize("recording", [False, True])
@pytest.mark.parametrize("more", [True, False])
def test_a_mask_that_changes_after_it_was_counted(recording, more):
    x, mask = cg.arange(1000, dtype="float64"), np.zeros(1000, bool)
    mask[:10] = True
    shared, v = cg.asarray(mask), cg.ones(10, dtype="float64")
    if recording: x.attach_grad()

    def change(_): mask[:] = more

    for call, said in ((lambda: x[shared], f"select: the mask {SAID}"),
                       (lambda: cg.argwhere(shared), "argwhere: x had 10 elements that are not 0 at first and another "
                                                     "number later; another thread modified it; pass a copy()"),
                       (lambda: mask_put(x, v, shared),
                        f"mask_put: the mask had 10 true elements at first and has {1000 * more} now; it was modified "
                        f"since; pass a copy()")):
        mask[:], mask[:10] = False, True
        with pytest.raises(cg.InplaceError) as caught, cg.record(recording), cg.memory.events(change): call()
        assert str(caught.value) == said
        del caught
    mask[:], mask[:10] = False, True
    assert x[shared].tolist() == list(range(10))


def test_offsets_and_lengths_that_numpy_changed_since_forward():
    from cygrad.ops.layers.recurrent import rnn_layer

    at, n, w = cg.tensor([0, 2]), cg.tensor([2, 1]), cg.ones((5, 3)).attach_grad()
    with cg.record(): y = cg.embedding_bag(cg.tensor([0, 1, 2, 3]), w, at)
    at.numpy()[:] = 9
    said = (r"embedding_bag: offset 9 of bag 0; offsets begin at 0, never decrease and are at most the number of "
            r"indices, 4; it was modified since forward; pass a copy\(\)")
    with pytest.raises(cg.InplaceError, match=said): y.backward()
    x = cg.ones((2, 2, 3)).attach_grad()
    with cg.record(): y = rnn_layer(x, cg.ones((3, 3)), cg.ones((3, 3)), cg.ones(3), cg.ones(3), cg.zeros((2, 3)), n)[0]
    n.numpy()[:] = 7
    said = r"the length 7 is not one of 1 to the 2 steps of x; it was modified since forward; pass a copy\(\)"
    with pytest.raises(cg.InplaceError, match=said): y.backward()
