"""Which dtype an operation has, contract 1: the Array API's, weak Python numbers, arrays as operands."""

import numpy as np
import pytest
from rows import ALL_DTYPES

import cygrad as cg


def api_promotion(a, b):
    """The Array API's table; with a float and an integer, the float."""
    kinds = np.dtype(a).kind + np.dtype(b).kind
    if "f" in kinds:
        return max((d for d in (a, b) if np.dtype(d).kind == "f"), key=lambda d: np.dtype(d).itemsize)
    together = np.promote_types(a, b)
    return None if together.kind == "f" else str(together)


@pytest.mark.parametrize("a", ALL_DTYPES)
@pytest.mark.parametrize("b", ALL_DTYPES)
def test_promotion(a, b):
    x, y, wanted = cg.ones(2, dtype=a), cg.ones(2, dtype=b), api_promotion(a, b)
    if wanted is None:
        with pytest.raises(TypeError, match=f"{a} and {b} have no common integer dtype; convert one with astype"):
            x + y
        return
    assert (x + y).dtype == (x * y).dtype == wanted
    quotient = (x / y).dtype
    assert quotient == (wanted if "float" in wanted else "float32")
    assert (x == y).dtype == "bool"


@pytest.mark.parametrize("dtype", ALL_DTYPES)
def test_python_numbers_are_weak(dtype):
    x = cg.ones(2, dtype=dtype)
    assert (x + True).dtype == dtype
    assert (x + 1).dtype == (1 + x).dtype == ("int64" if dtype == "bool" else dtype)
    assert (x + 1.5).dtype == (1.5 * x).dtype == (dtype if "float" in dtype else "float32")
    assert (x / 2).dtype == (dtype if "float" in dtype else "float32")


def test_numbers_that_do_not_fit():
    with pytest.raises(OverflowError, match="the number 300 does not fit the dtype uint8 of the other operand"):
        cg.ones(2, dtype="uint8") + 300
    with pytest.raises(OverflowError, match="the number -1 does not fit the dtype uint64"):
        cg.ones(2, dtype="uint64") * -1


def test_means_and_sums_of_integers():
    x = cg.tensor([1, 2], dtype="int8")
    assert x.mean().dtype == "float32" and x.mean().item() == 1.5
    assert x.sum().dtype == "int64" and cg.tensor([True, True]).sum().item() == 2
    assert cg.ones(2, dtype="uint8").sum().dtype == "uint64"
    assert cg.exp(cg.tensor([0, 1])).dtype == "float32" and (x / x).dtype == "float32"


def test_arrays_take_part_in_arithmetic():
    x, a = cg.tensor([1.0, 2.0]).attach_grad(), np.array([3.0, 4.0], "float32")
    with cg.record():
        for y in (x * a, a * x, np.float32(3) * x, x + a[0], a - x, a / x):
            assert isinstance(y, cg.Tensor) and y.requires_grad and y.dtype == "float32"
    assert (x * np.ones(2)).dtype == "float64"
    with pytest.raises(TypeError):
        x + "text"
    with pytest.raises(TypeError):
        x * None


def test_mixed_dtypes_are_differentiated():
    x, y = cg.tensor([1.0, 2.0]).attach_grad(), cg.tensor([3.0, 4.0], dtype="float64").attach_grad()
    with cg.record():
        z = x * y * cg.tensor([2, 3])
    assert z.dtype == "float64"
    z.backward()
    assert (x.grad.dtype, y.grad.dtype) == ("float32", "float64")
    assert x.grad.tolist() == [6.0, 12.0] and y.grad.tolist() == [2.0, 6.0]
