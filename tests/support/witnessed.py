"""The scenes that test_arena.py runs under the witness (tests/support/witness.c): python witnessed.py SCENE"""

import ctypes
import sys
from contextlib import ExitStack

import numpy as np
import programs
from shadow import Shadow
from small_models import Decoder
from tests.core.store.test_buffer import trainer

import cygrad as cg
from cygrad import nn

witness = ctypes.CDLL(None)
for f in (witness.witness_committed, witness.witness_failed, witness.witness_most): f.restype = ctypes.c_long


def held():
    s = cg.memory.stats()
    return s["live_bytes"] + s["cached_bytes"]


def agree():
    """After each event of random programs, the committed pages are those that cygrad counts."""
    wrong, events = [], 0

    def look(event):
        nonlocal events
        events += 1
        if held() != witness.witness_committed(): wrong.append((event, held(), witness.witness_committed()))

    with cg.memory.events(look):
        for seed in range(int(sys.argv[2])):
            try: programs.run_kind(programs.Program(seed))
            except (programs.Boom, programs.Refused, cg.InplaceError, ValueError, MemoryError): pass
            if seed % 7 == 0: cg.memory.empty_cache()
            if seed % 5 == 0: cg.zeros(int(np.random.default_rng(seed).integers(1, 3_000_000)))
    assert not wrong, wrong[0]
    cg.memory.empty_cache()
    print(events, held(), witness.witness_committed())


def fail():
    """Each call that reserves, commits or decommits fails in a training step, alone or with all later ones. The next
    step equals that of a model that never failed."""
    persistent = int(sys.argv[2])
    parameters, step = trainer()
    twins, twin_step = trainer()
    step(), twin_step()
    failed = n = 0
    while True:
        n += 1
        values = [p.numpy().tobytes() for p in parameters.values()]
        cg.memory.empty_cache()
        before = cg.memory.stats()
        witness.witness_fail(n, persistent)
        done = False
        try:
            x = cg.empty(80 << 20, "uint8")         # too large for any segment
            del x
            cg.memory.empty_cache()                 # memory that it cannot give back is still counted
            with cg.memory.limit(held() + (1 << 20)):
                x, between = cg.zeros(100_000), cg.zeros(2000)
                del x
                x = cg.zeros(200_000)               # these need the pages of the first
                del x, between
                step()
            done = True
        except MemoryError as e:
            failed += 1
            assert "the system cannot provide a block" in str(e) or isinstance(e, cg.MemoryLimitError), e
            del e
            x = between = None
            assert [p.numpy().tobytes() for p in parameters.values()] == values
            after = cg.memory.stats()
            assert after["live_bytes"] == before["live_bytes"] and after["by_category"] == before["by_category"]
        calls = witness.witness_calls()
        witness.witness_fail(0, 0)
        assert held() == witness.witness_committed(), (held(), witness.witness_committed())
        if done:
            twin_step()
            for p, t in zip(parameters.values(), twins.values(), strict=True): assert (p.numpy() == t.numpy()).all()
            if calls < n: break
    print(n, failed, *map(witness.witness_failed, range(3)))


def trained(which):
    """A training step of a model of some MB, which returns the loss, and the parameters."""
    cg.random.seed(0)
    if which == "mlp":
        layers = [layer for _ in range(8) for layer in (nn.Linear(256, 256), nn.GELU())]
        model = nn.Sequential(*layers, nn.Linear(256, 10))
        batch = cg.random.normal((1024, 256)), np.arange(1024) % 10
        loss_of = lambda x, t: cg.cross_entropy(model(x), t)    # noqa: E731
    else:
        model, tokens = Decoder(512, 64, 3), np.random.default_rng(0).integers(0, 512, (8, 64))
        batch, loss_of = (tokens, np.roll(tokens, -1).reshape(-1)), model
    solver = cg.optim.Adam()
    solver.set_parameters(dict(model.named_parameters()))

    def step():
        solver.zero_grad()
        with cg.record(): loss = loss_of(*batch)
        loss.backward()
        solver.update()
        return loss.detach()

    return step, model.parameters()


def bound():
    """A model trains from its first step on in a budget of 0.8 of what the first step would need. The process has
    never had more. First a limit of so many bytes more is open, too, then only the budget, then nothing."""
    which, more, share = sys.argv[2], int(sys.argv[3]), 0.8
    found, pages = [], []
    budget = int(share * cg.memory.plan(trained(which)[0]).peak_bytes)
    for scopes in ("both", "budget", "none"):
        cg.memory.empty_cache()
        witness.witness_most()
        with Shadow() as shadow:
            step, parameters = trained(which)
            with ExitStack() as stack:
                if scopes == "both": stack.enter_context(cg.memory.limit(budget + more))
                if scopes != "none": b = stack.enter_context(cg.memory.budget(budget))
                found.append([[step().item() for _ in range(4)], *[w.numpy().copy() for w in parameters]])
            del step, parameters
        pages.append(witness.witness_most())
        if scopes != "none": assert shadow.peak <= budget and b.recomputed.calls, (shadow.peak, budget)
    for others in found[1:]:
        for x, y in zip(found[0], others, strict=True): np.testing.assert_array_equal(x, y)
    assert shadow.peak > budget
    print(budget, *pages)


{"agree": agree, "fail": fail, "bound": bound}[sys.argv[1]]()
