"""The rows of the table with sample calls: what tests, the operator page and benchmarks try each operator on.

A file for each family of operators; a new operator gets its sample in the file of its family."""

from functools import cached_property

from cygrad.ops import ROWS


class Sampled:
    """A row of the table (the attributes of cygrad.ops.Row are here too), and what its tests need.

    name        the name of the row
    like        the same function in NumPy: the value is compared with it
    samples     makes `tries`, sample calls: each a tuple (positional arguments, keyword arguments); an array among the
                arguments is an input, anything else an attribute
    keeps       what backward keeps, for the operator page and the tests: "x", "y" are inputs, "out" the output, "lse" a
                value for each row, "order" a place for each element, "difference" an array of the two inputs' common
                shape; packed, "bits" a bit for each element of the first input, "truths" one and "codes" two for each
                of the output, "choice" one where one gradient is wanted, else two, "places" bits or places of a mask,
                "hard" a bit for each target where these have no gradient; per wanted input, e.g. {"x": "y", "y": "x"};
                where it depends on the call, a function of the call's arguments that returns this
    ties        an input at which the function has a kink, and the gradient that is the convention there; of several
                inputs a tuple of each
    own_gradient    whether its gradient is one of its own, not the derivative of its value
    tested      the function from arrays in front to one tensor, where the public function takes or returns others
    """

    def __init__(self, name, like, samples, keeps=(), ties=(), own_gradient=False, tested=None):
        self.row = ROWS[name]
        self.like, self.samples = like, samples
        self.keeps = keeps if callable(keeps) else dict(keeps)
        self.ties, self.own_gradient, self.tested = ties, own_gradient, tested or self.row.function

    def __getattr__(self, name):
        return getattr(self.row, name)

    def kept(self, *args, **kwargs):
        """`keeps` of a call with these arguments."""
        return self.keeps(*args, **kwargs) if callable(self.keeps) else self.keeps

    @cached_property
    def tries(self):
        return self.samples()

    def __repr__(self):
        return f"<row {self.row.name}>"


from . import (  # noqa: E402  (they import Sampled)
    compare, einsum, elementwise, functions, gradient, index, join, linalg, loss, masks, minmax, normalize, random,
    reduce, scan, shape, slices, softmax, sort, statistics, window,
)

TABLE = [
    sampled
    for family in (elementwise, functions, compare, reduce, statistics, minmax, scan, shape, join, slices, window,
                   index, masks, sort, linalg, einsum, softmax, normalize, loss, random, gradient)
    for sampled in family.SAMPLES
]
SAMPLED = {sampled.name: sampled for sampled in TABLE}
