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


def sets(reader):
    for pitch, rows in ((32, 200), (4096, 128), (4096 + 64, 128), (2048, 10), (64, 40), (100, 30)):
        right = len({i * pitch // 64 % 64 for i in range(rows)})
        equal(f"sets({pitch}, {rows})", reader.sets(pitch, rows), right,
              "Row i begins at i times pitch. Count the different sets, not the rows.",
              [(rows, "This is the number of rows. Several rows can have their first line in one set."),
               (len({i * pitch // 64 for i in range(rows)}),
                "These are lines. 64 lines further the sets repeat: take the remainder by 64.")])
    for nbytes, rows, right in ((4096, 128, 4160), (4000, 128, 4032), (2048, 64, 2112), (1024, 4, 1024),
                                (100, 64, 192)):
        got = reader.padded(nbytes, rows)
        expect(got % 64 == 0, f"padded({nbytes}, {rows}) is {got}, which is no multiple of 64.")
        reached = len({i * got // 64 % 64 for i in range(rows)})
        expect(got >= nbytes, f"padded({nbytes}, {rows}) is {got}: a row of {nbytes} bytes does not fit.")
        expect(reached == min(rows, 64), f"padded({nbytes}, {rows}) is {got}, with which the rows have {reached} sets, "
                                         f"but {min(rows, 64)} are possible.")
        equal(f"padded({nbytes}, {rows})", got, right,
              "A smaller pitch reaches as many sets. Try multiples of 64 from nbytes on.")
