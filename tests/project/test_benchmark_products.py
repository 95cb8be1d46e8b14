"""benchmarks/products.py: its shapes, its figures and its page, from a few small products."""

import math

import pytest

from benchmarks import products, work
from benchmarks.separate import ask

SMALL = {"squares": [(1, 16, 16, 16), (1, 48, 40, 24)], "few rows": [(1, 3, 8, 5)], "batches": [(4, 8, 6, 7)]}


def test_the_shapes_make_144_products():
    shapes = [shape for group in products.SHAPES.values() for shape in group]
    assert len(shapes) == len({products.title(shape) for shape in shapes}) == 144 // len(products.WAYS)


def test_operands_are_those_of_a_linear_layer():
    m, n, k = 3, 8, 5
    made = products.operands((1, m, n, k))
    assert {way: (a @ b).shape for way, (a, b) in made.items()} == {"forward": (m, n), "dX": (m, k), "dW": (n, k)}


def test_a_speed_up_is_of_the_better_peer():
    times = {"cygrad": [1.0, 2.0, 4.0], "NumPy": [3.0, 6.0, 12.0], "PyTorch": [2.0, 4.0, 9.0]}
    assert products.speed_up(times) == 2


def test_measured_products_make_a_page(monkeypatch):
    monkeypatch.setattr(products, "SHAPES", SMALL)
    shapes = [shape for group in SMALL.values() for shape in group]
    found = ask("benchmarks.products", {"rounds": 2, "seconds": 1e-4, "shapes": shapes, "threads": 1},
                work.environment(1))
    assert list(found["times"]) == ["16 x 16 x 16", "48 x 40 x 24", "3 x 8 x 5", "4 of 8 x 6 x 7"]
    ratios = products.chosen(found, shapes)
    assert len(ratios) == 12 and products.geometric(ratios) == pytest.approx(math.prod(ratios) ** (1 / 12))
    page = products.page({1: found}, 0.5)
    assert "## 1 thread" in page and "Other programs used 0.5 CPUs" in page and "| 4 of 8 x 6 x 7 |" in page
    below = sum(ratio < products.LEAST for ratio in ratios)
    assert f"{below} of 12 are below 0.9." in page
