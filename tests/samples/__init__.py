"""The rows of the table with sample calls, for tests, the operator page and benchmarks.

There is one file for each family of operators. The sample of a new operator goes into the file of its family."""

from functools import cached_property

from cygrad.ops import ROWS


class Sampled:
    """A row of the table, with the attributes of cygrad.ops.Row, and the data for its tests.

    name        the name of the row
    like        the same function in NumPy, to compare the value with
    samples     makes `tries`, the sample calls: each is a tuple (positional arguments, keyword arguments). Arrays among
                the arguments are inputs, all others are attributes
    keeps       what backward saves for each wanted input, e.g. {"x": "y", "y": "x"}, or a function of the arguments
                that returns this. "x", "y" are inputs, "out" is the output; saved.py has the others in words
    ties        an input at which the function has a kink, and the conventional gradient there; tuples for several
                inputs
    own_gradient    whether its gradient is not the derivative of its value
    tested      the function from leading arrays to one tensor, if the public function has other arguments or results
    """

    def __init__(self, name, like, samples, keeps=(), ties=(), own_gradient=False, tested=None):
        self.row = ROWS[name]
        self.like, self.samples = like, samples
        self.keeps = keeps if callable(keeps) else dict(keeps)
        self.ties, self.own_gradient, self.tested = ties, own_gradient, tested or self.row.function

    def __getattr__(self, name):
        return getattr(self.row, name)

    def kept(self, *args, **kwargs):
        """`keeps` for a call with these arguments."""
        return self.keeps(*args, **kwargs) if callable(self.keeps) else self.keeps

    @cached_property
    def tries(self):
        return self.samples()

    def __repr__(self):
        return f"<row {self.row.name}>"


from . import (  # noqa: E402  (they import Sampled)
    activations, attention, channels, compare, conv, ctc, decompose, determinant, diagonal, einsum, elementwise,
    embedding, entropy, functions, general, gradient, index, join, likelihoods, linalg, linear_entropy, loss, masks,
    minmax, normalize, pool, random, recurrent, reduce, representation, resize, rules, scan, shape, slices, softmax,
    solve, sort, special, spectra, statistics, window,
)

TABLE = [
    sampled
    for family in (elementwise, functions, special, representation, activations, compare, reduce, statistics, minmax,
                   scan, shape, join, slices, window, index, masks, sort, linalg, einsum, diagonal, decompose, spectra,
                   general, solve, determinant, softmax, conv, pool, resize, normalize, channels, embedding, attention,
                   recurrent, loss, entropy, linear_entropy, ctc, likelihoods, random, gradient, rules)
    for sampled in family.SAMPLES
]
SAMPLED = {sampled.name: sampled for sampled in TABLE}
