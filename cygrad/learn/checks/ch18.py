"""Checks of chapter 18."""

import tempfile

import cygrad as cg
from cygrad.learn.checking import equal, expect, pair


def offload(reader):
    x = cg.random.Generator(0).normal((50_000,))
    saved = []

    def f(y):
        for _ in range(10): y = cg.sin(cg.exp(y * 0.1))
        return y

    v = x.copy().attach_grad()
    with cg.record() as tape: y = f(v).sum()
    kept = tape.saved_bytes
    y.backward()

    def watched(y):
        saved.append(cg.is_recording())
        return f(y)

    with tempfile.TemporaryDirectory() as folder:
        got = reader.gradient(watched, x, folder)
    gradient, written = pair("(gradient, bytes)", got)
    expect(saved and saved[0], "f was called outside of record(), so nothing is saved.")
    expect(gradient is not None, "The gradient is None. Make a variable of x (`attach_grad`) and return its `.grad` "
                                 "after backward().")
    equal("The gradient", gradient, v.grad, "It is that of the sum of f(x), to the bit.", rtol=0)
    equal("The number of bytes that were written", written, kept, "Each saved value is written once.",
          [(0, "Nothing was written: f must run inside of `with cg.memory.offload(folder) as o`, and the number is "
               "`o.written_bytes`.")] if not written else
          [(written, "Some values were never written. Backward ran before the scope had ended, and took values back "
                     "that waited to be written.")] if written < kept else [])
