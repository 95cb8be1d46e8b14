"""Checks of chapter 17."""

import cygrad as cg
from cygrad.learn.checking import equal, expect


def checkpoints(reader):
    def f(x): return cg.sin(cg.exp(x * 0.1))

    def plain(f, x, n, _):
        for _ in range(n): x = f(x)
        return x

    def run(chain, n, k):
        x = cg.random.Generator(0).normal((1000,)).attach_grad()
        before = cg.memory.stats()["by_category"]["saved"]
        with cg.record(): y = chain(f, x, n, k)
        saved = cg.memory.stats()["by_category"]["saved"] - before
        value = y.detach().numpy().copy()
        y.backward(cg.ones(1000))
        return value, saved, x.grad.numpy().copy()

    for n, k in ((12, 3), (20, 5)):
        value, whole, gradient = run(plain, n, k)
        got, saved, found = run(reader.chain, n, k)
        equal(f"chain() of n = {n} and k = {k}", got, value, "f is called n times in all: n / k groups of k calls.",
              rtol=1e-6)
        right = 4000 * (n // k - 1)
        expect(saved <= right, f"For n = {n} and k = {k}, {saved:,} bytes are saved, but {right:,} are right: a value "
                               "of 4,000 bytes at the beginning of each group but the first, which begins with the "
                               "variable. " + ("Nothing goes through cg.checkpoint." if saved == whole else
                                                "Call cg.checkpoint once for each group of k calls of f."))
        if saved < right: expect(False, f"For n = {n} and k = {k}, {saved:,} bytes are saved, but the beginnings of "
                                        f"the groups are {right:,} bytes. One checkpoint around everything computes it "
                                        "all again at once: backward then needs all values.")
        equal("The gradient", found, gradient, "It is that of the plain chain, to the bit.", rtol=0)


def distance(reader):
    for n, k in ((60, 10), (60, 7), (100, 1), (5, 5)):
        kept = -(-n // k)
        equal(f"alive({n}, {k})", reader.alive(n, k), kept + k - 1,
              "The kept values are alive all the time, and k - 1 computed ones beside them.",
              [(kept + k, "Of k values in a row one is kept, so k - 1 are computed again."),
               (n // k + k - 1, "n / k is rounded up: the last group may be shorter."),
               (n / k + k - 1, "n / k is rounded up: the last group may be shorter.")])
    for n in (1, 16, 60, 100, 1000):
        right = min(range(1, n + 1), key=lambda k, n=n: -(-n // k) + k - 1)
        equal(f"best({n})", reader.best(n), right, "Try all k from 1 to n. It is near the root of n.")
