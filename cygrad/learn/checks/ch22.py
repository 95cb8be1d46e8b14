"""Checks of chapter 22."""

from cygrad.learn.checking import equal, expect, pair


def block(reader):
    for r, v in ((1, 1), (4, 1), (4, 3), (8, 3)):
        equal(f"loads({r}, {v})", reader.loads(r, v), (r + v) / (r * v), "r + v loads serve r v multiply-adds.",
              [(r + v, "Divide by the number of multiply-adds."), ((r * v) / (r + v),
                                                                   "It is loads for each multiply-add, not the other "
                                                                   "way round.")])
    for registers in (16, 32):
        got = reader.block(registers)
        r, v = pair("(r, v)", got)
        used = r * v + v + 1
        expect(used <= registers, f"block({registers}) is {got}, which needs {used} registers: {r * v} sums, {v} "
                                  "vectors of B and a number of A.")
        expect(r * v >= 8, f"block({registers}) is {got}, which has {r * v} sums. Eight must be independent of each "
                           "other, because a multiply-add takes four cycles and two start in each.")
        right = min(((a + b) / (a * b), a, b) for a in range(1, registers) for b in range(1, registers)
                    if a * b >= 8 and a * b + b + 1 <= registers)
        expect((r + v) / (r * v) <= right[0] + 1e-9,
               f"block({registers}) is {got}, with {(r + v) / (r * v):.3f} loads for each multiply-add, but "
               f"({right[1]}, {right[2]}) has {right[0]:.3f}. Try all pairs that fit.")
