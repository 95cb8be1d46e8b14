"""Keep little (chapter 11).

`best_rows(batches)` looks for the row with the largest sum in each batch, a tensor (n, 64), and returns the list of
these rows. It is right, but each row is a view and holds the buffer of its whole batch. Change the function so that
what it returns holds the rows and nothing else.
"""


def best_rows(batches):
    rows = []
    for batch in batches:
        k = batch.sum(1).argmax().item()
        rows.append(batch[k].copy())
    return rows
