"""Count the bytes of a model (chapter 16).

A model of linear layers with biases has a relu after each layer but the last. `widths` are its sizes: [64, 128, 10] has
two layers, 64 to 128 and 128 to 10. Write `count(widths, rows)`: a dict with the bytes, in float32, of

    "parameters"    all weights and biases
    "optimizer"     the states of Adam for them
    "saved"         what the graph saves when the model runs recorded on a batch of so many rows

The batch is a tensor that is no variable. Do not run the model.
"""


def count(widths, rows):
    parameters = sum(4 * (n * m + m) for n, m in zip(widths, widths[1:], strict=False))
    return {"parameters": parameters, "optimizer": 2 * parameters, "saved": 4 * rows * sum(widths[:-1])}
