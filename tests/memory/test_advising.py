"""memory.profile.advice: following the advice lowers the peak."""

import contextlib
import re
from functools import reduce
from pathlib import Path

import numpy as np
import pytest
from small_models import Decoder

import cygrad as cg
from cygrad.memory import advising


def random(*shape):
    return cg.tensor(np.random.default_rng(0).normal(0, 0.1, shape).astype("f4"))


def weights(*shapes):
    return [random(*shape).attach_grad() for shape in shapes]


def peak_of(f):
    f()
    with cg.memory.profile() as p:
        f()
    return p


def advised(p, text):
    found = [a for a in p.advice() if text in a.text]
    assert len(found) == 1, p.advice()
    return found[0]


def test_advice_holds():
    """Following the advice lowers the peak by the stated bytes, or by less if another moment is nearly as high."""
    w1, w2 = weights((256, 64), (64, 256))
    x = random(512, 64)

    def with_a_name():
        with cg.record():
            h = cg.relu(cg.linear(x, w1))
            g = cg.relu(cg.linear(h, w2))
            loss = (g * 2.0).sum()
        loss.backward()

    def without():
        with cg.record():
            h = cg.relu(cg.linear(x, w1))
            loss = (cg.relu(cg.linear(h, w2)) * 2.0).sum()
        loss.backward()

    first, second = peak_of(with_a_name), peak_of(without)
    assert 0 < first.peak_bytes - second.peak_bytes <= advised(first, "release the result of relu").bytes
    assert not [a for a in second.advice() if "release the result of relu" in a.text]

    def halves(rows):
        for part in rows:
            with cg.record():
                loss = (cg.gelu(cg.linear(part, w1)) ** 2).sum()
            loss.backward()

    w1.attach_grad("add")
    first, second = peak_of(lambda: halves([x])), peak_of(lambda: halves([x[:256], x[256:]]))
    said = advised(first, "half of the rows")
    assert 0.8 * said.bytes <= first.peak_bytes - second.peak_bytes and "because gelu needs its input" in said.text
    old = advised(first, "x.grad = None")
    assert old.bytes == w1.nbytes + w2.nbytes

    def step(gradients):
        if not gradients: w1.grad = w2.grad = None
        with cg.record():
            loss = cg.relu(cg.linear(cg.gelu(cg.linear(x[:64], w1)), w2)).sum()
        loss.backward()

    first, second = peak_of(lambda: step(True)), peak_of(lambda: step(False))
    assert 0 < first.peak_bytes - second.peak_bytes <= advised(first, "x.grad = None").bytes


def test_halves_of_a_batch_have_the_gradients_of_the_whole():
    """Following the advice exactly gives the same gradients at the lower peak, in every step."""
    w1, w2 = weights((64, 32), (1, 64))
    x, y = random(256, 32), random(256, 1)
    solver = cg.optim.Sgd(0.0)
    solver.set_parameters([w1, w2])

    def step(parts, weight):
        solver.zero_grad()
        for k in range(parts):
            rows = slice(256 // parts * k, 256 // parts * (k + 1))
            with cg.record():
                loss = cg.mse(cg.linear(cg.gelu(cg.linear(x[rows], w1)), w2), y[rows]) * weight
            loss.backward()
        solver.update()

    whole = peak_of(lambda: step(1, 1.0))
    expected = [w1.grad.numpy().copy(), w2.grad.numpy().copy()]
    said = advised(whole, "half of the rows").text
    for part in ("multiply each half's loss by 0.5 if it is a mean", "zero_grad() before the next step",
                 'attach_grad("add") or requires_grad_()', "update() once after both"):
        assert part in said
    for make in (lambda w: w.attach_grad("add"), lambda w: w.requires_grad_()):
        make(w1), make(w2)
        halves = peak_of(lambda: step(2, 0.5))      # (two steps: the second would add to the first)
        assert whole.peak_bytes - halves.peak_bytes >= 0.8 * advised(whole, "half of the rows").bytes
        for w, g in zip((w1, w2), expected, strict=True):
            np.testing.assert_allclose(w.grad.numpy(), g, rtol=1e-4, atol=1e-8)


def test_advice_is_readable():
    """When printed, it has at most 120 columns, with all numbers and words."""
    w, = weights((64, 64))
    solver = cg.optim.Adam()
    solver.set_parameters([w])
    with cg.memory.profile() as p:
        with cg.record(): y = cg.gelu(cg.linear(random(64, 64), w))
    assert p.advice()
    for a in p.advice():
        lines = str(a).splitlines()
        assert max(map(len, lines)) <= 120 and all(s.startswith("    ") for s in lines[1:])
        assert " ".join(s.strip() for s in lines) == f"{a.bytes:,} bytes less: {a.text}"
        assert a == (a.bytes, a.text)
    del y


def test_zero_grad_gives_gradients_back():
    """zero_grad() saves the same bytes as x.grad = None."""
    w1, w2 = weights((256, 64), (64, 256))
    x = random(64, 64)
    solver = cg.optim.Sgd()
    solver.set_parameters([w1, w2])

    def step(clear):
        clear()
        with cg.record():
            loss = cg.relu(cg.linear(cg.gelu(cg.linear(x, w1)), w2)).sum()
        loss.backward()

    def none(): w1.grad = w2.grad = None

    first, zeroed, removed = (peak_of(lambda c=c: step(c)) for c in (lambda: None, solver.zero_grad, none))
    said = advised(first, "zero_grad() before the forward pass")
    assert "zeros take no memory" in said.text and said.bytes == w1.nbytes + w2.nbytes
    assert zeroed.peak_bytes == removed.peak_bytes < first.peak_bytes


def test_advice_on_operators():
    w = random(512, 64).requires_grad_()
    x = random(64, 64)

    def apart():
        with cg.record():
            return cg.relu(cg.linear(x, w))

    def fused():
        with cg.record():
            return cg.linear(x, w, activation="relu")

    first = peak_of(apart)
    said = advised(first, 'linear(x, w, b, activation="relu")').bytes
    assert said == 64 * 512 * 4 and 0.95 * said <= first.peak_bytes - peak_of(fused).peak_bytes <= said

    def composed():
        with cg.record():
            return -cg.log(cg.softmax(x @ cg.transpose(w))).sum()

    def direct():
        with cg.record():
            return -cg.log_softmax(x @ cg.transpose(w)).sum()

    first = peak_of(composed)
    assert first.peak_bytes > peak_of(direct).peak_bytes
    assert advised(first, "instead of log(softmax(x))").bytes == 64 * 512 * 4


def test_advice_on_numbers_and_solvers():
    def step(dtype):
        w = cg.tensor(np.ones((64, 64), dtype)).requires_grad_()
        solver = cg.optim.Adam()
        solver.set_parameters([w])
        with cg.record():
            return cg.exp(w).sum()

    first, second = peak_of(lambda: step("f8")), peak_of(lambda: step("f4"))
    assert advised(first, "float32").bytes == first.peak_bytes // 2 == second.peak_bytes
    assert advised(first, "optim.Sgd").bytes == 2 * 64 * 64 * 8
    assert not [a for a in second.advice() if "float32" in a.text]
    with cg.memory.profile() as p:
        cg.zeros(10)
    assert p.advice() == []


def trained(classes=64, width=64, blocks=4, rows=8, chunk=None, checkpoint=False, fuse=False, zero=False):
    """The profile of a step of a decoder, after one step."""
    cg.random.seed(0)
    net, solver = Decoder(classes, width, blocks), cg.optim.Adam()
    solver.set_parameters(dict(net.named_parameters()))
    if checkpoint:
        for block in net.blocks: block.checkpoint_()
    tokens, labels = cg.tensor(np.arange(rows * 32).reshape(rows, 32) % classes), cg.tensor(np.arange(rows * 32) % 7)

    def step():
        if zero: solver.zero_grad()
        with cg.record(): loss = net(tokens, labels, chunk)
        loss.backward()
        solver.update()

    with solver.fuse_into_backward() if fuse else contextlib.nullcontext(): return peak_of(step)


def saved_by(text, given, **change):
    """(the bytes of the advice that has a text, what the peak falls by if it is followed)"""
    first, second = trained(**given), trained(**given, **change)
    assert not [a for a in second.advice() if text in a.text], second.advice()
    return advised(first, text).bytes, first.peak_bytes - second.peak_bytes


@pytest.mark.parametrize("zero", [False, True], ids=["forward", "backward"])
def test_logits_in_chunks(zero):
    """The logits are live as a result at the first peak, and as their own gradient at the second."""
    given = dict(classes=4096, rows=8 if not zero else 16, zero=zero)
    said, fell = saved_by(f"linear_cross_entropy(x, w, labels, chunk={2 * given['rows']})", given,
                          chunk=2 * given["rows"])
    assert abs(said - fell) <= 0.01 * fell
    p = trained(**given)
    assert p._log.made_last() == ("linear (backward)" if zero else "cross_entropy")


def test_logits_that_are_no_result_of_linear():
    w, = weights((512, 64))

    def scaled():
        with cg.record(): return cg.cross_entropy(cg.linear(random(64, 64), w) * 0.5, cg.zeros(64, "int64"))

    assert not [a for a in peak_of(scaled).advice() if "linear_cross_entropy" in a.text]


@pytest.mark.parametrize("blocks", [3, 8])
@pytest.mark.parametrize("zero", [False, True])
def test_checkpointed_blocks(blocks, zero):
    said, fell = saved_by("call checkpoint_() on each", dict(blocks=blocks, zero=zero), checkpoint=True)
    assert abs(said - fell) <= 0.15 * fell
    assert f"on each of the {blocks} layers of Decoder.blocks" in \
        advised(trained(blocks=blocks, zero=zero), "checkpoint_()").text


def test_a_single_layer_is_not_worth_a_checkpoint():
    assert not [a for a in trained(blocks=1).advice() if "checkpoint_()" in a.text]


@pytest.mark.parametrize("zero", [False, True])
def test_fused_updates(zero):
    given = dict(width=256, blocks=3, rows=1, zero=zero)
    said, fell = saved_by("fuse_into_backward()", given, fuse=True)
    assert abs(said - fell) <= 0.15 * fell


def test_gradients_that_are_added_up_are_not_fused():
    w, = weights((256, 256))
    w.attach_grad("add")
    solver = cg.optim.Sgd()
    solver.set_parameters([w])

    def step():
        for _ in range(2):
            with cg.record(): loss = cg.linear(random(4, 256), w).sum()
            loss.backward()
        solver.update()

    assert not [a for a in peak_of(step).advice() if "fuse_into_backward" in a.text]


def test_zero_grad_before_forward():
    """If the activations are larger than the gradients, all of these are saved; if not, as much as the peak falls to
    the end of backward, where they are live again."""
    small = dict(rows=32, blocks=2)
    said, fell = saved_by("zero_grad() before the forward pass", small, zero=True)
    assert abs(said - fell) <= 0.25 * fell
    said, fell = saved_by("zero_grad() before the forward pass", dict(width=256, rows=4, blocks=2), zero=True)
    assert abs(said - fell) <= 0.25 * fell


def test_advice_names_what_is_there():
    """Every cygrad name in the texts exists."""
    text = Path(advising.__file__).read_text()
    names = set(re.findall(r"\b([a-z_]+(?:\.[A-Za-z_]+)?)\((?:\\?[\"x]|\))", text)) & {
        "attach_grad", "requires_grad_", "update", "linear", "log", "astype"} | {
        "cross_entropy", "log_softmax", "bce_with_logits", "optim.Sgd", "linear_cross_entropy", "fuse_into_backward",
        "checkpoint", "nn.Module.checkpoint_"}
    assert len(names) >= 13
    for name in names:
        owners = [cg, cg.Tensor, cg.optim.Sgd]
        assert any(reduce(lambda o, part: getattr(o, part, None), name.split("."), owner) for owner in owners), name
        assert name.rpartition("Module.")[2] in text
