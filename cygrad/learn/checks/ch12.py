"""Checks of chapter 12."""

import cygrad as cg
from cygrad.learn.checking import equal, expect, live

REASONS = {
    "sum": "The gradient of a sum needs no values.",
    "exp": "The derivative of exp is its result: 1,000 numbers of 4 bytes.",
    "square": "The derivative of a square needs the input: 1,000 numbers of 4 bytes.",
    "exp of exp": "Each exp saves its own result.",
    "exp plus 1": "The addition needs no values. exp saves its result.",
    "relu": "relu only needs to know which results are positive: one bit for each.",
    "tanh of relu": "tanh saves its result. Nothing else needs that of relu, so relu keeps a bit for each element.",
}


def saved_by(f):
    w = cg.ones(1000).attach_grad()
    with cg.record() as tape: y = f(w * 1.0)
    expect(y.size == 1, "The functions were changed. (`--reset` writes the file anew.)")
    return tape.saved_bytes


def predict(reader):
    for name, f in reader.FUNCTIONS.items():
        got = reader.PREDICTIONS.get(name)
        expect(got is not None, f"There is no prediction for {name!r} yet.")
        right = saved_by(f)
        expect(got == right, f"The prediction for {name!r} is {got} bytes, but {right} bytes are saved. "
                             f"{REASONS[name]}")


def names(reader):
    def right(x):
        y = cg.sin(x * 1.5)
        for _ in range(4): y = y * 1.5
        return y.sum()

    def measured(f):
        x = cg.random.Generator(0).normal((10_000,)).attach_grad()
        before = live()
        with cg.memory.track() as t, cg.record() as tape: y = f(x)
        saved = tape.saved_bytes
        y.backward()
        return y.item(), x.grad.numpy().copy(), t.peak_bytes - before, saved

    value, gradient, peak, saved = measured(right)
    got, found, most, kept = measured(reader.total)
    equal("The sum", got, value, "The value stays the same.", rtol=0)
    equal("The gradient", found, gradient, "The chain must stay recorded.", rtol=0)
    equal("The number of bytes that the graph saves", kept, saved,
          "sin saves its input, and the products by a number save nothing.")
    limit = 3 * 40_000 + 100
    expect(most <= limit, f"The peak is {most:,} bytes, but {limit:,} are enough. One result has 40,000 bytes. A "
                          "result lives as long as a name refers to it: use one name for the chain, or write `del`.")
