"""The dtype of a result, contract 1: the Array API's promotion, weak Python numbers, arrays as operands."""

import warnings

import numpy as np
import pytest
from rows import ALL_DTYPES

import cygrad as cg
from cygrad.core.dtypes import DTYPES


def api_promotion(a, b):
    """The Array API's table; with a float and an integer, the float."""
    kinds = np.dtype(a).kind + np.dtype(b).kind
    if "f" in kinds:
        return max((d for d in (a, b) if np.dtype(d).kind == "f"), key=lambda d: np.dtype(d).itemsize)
    together = np.promote_types(a, b)
    return None if together.kind == "f" else str(together)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_the_table_of_dtypes(dtype):
    """include/cygrad/dtypes.h agrees with NumPy."""
    x = cg.ones(3, dtype=dtype)
    assert x.itemsize == dtype.itemsize and np.dtype(memoryview(x).format) == dtype
    assert np.from_dlpack(x).dtype == cg.from_dlpack(np.ones(3, dtype)).dtype == dtype
    if dtype.kind == "f": x.attach_grad()
    else:
        with pytest.raises(TypeError, match=f"{dtype} tensors cannot have gradients"): x.attach_grad()


def test_every_dtype_is_tested():
    assert tuple(map(str, DTYPES)) == ALL_DTYPES


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
    with cg.record(), pytest.warns(cg.PrecisionWarning):
        z = x * y * cg.tensor([2, 3])
    assert z.dtype == "float64"
    z.backward()
    assert (x.grad.dtype, y.grad.dtype) == ("float32", "float64")
    assert x.grad.tolist() == [6.0, 12.0] and y.grad.tolist() == [2.0, 6.0]


def test_float64_data_with_float32_variables_warns():
    """Once for each line of the program, with the filters of `warnings`. The result does not change."""
    x, data = cg.tensor([1.0, 2.0]).attach_grad(), np.ones(2)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for _ in range(3):
            with cg.record():
                y = x * data
                z = cg.add(cg.tensor(data), x * 2)
        z.backward()
        assert y.dtype == z.dtype == "float64" and x.grad.tolist() == [2.0, 2.0] and x.grad.dtype == "float32"
    assert [w.category for w in caught] == [cg.PrecisionWarning] * 2
    assert all(w.filename == __file__ for w in caught) and caught[0].lineno + 1 == caught[1].lineno
    assert str(caught[0].message) == (
        'mul: a float32 tensor that gradients flow through meets float64 data, so the result and everything '
        'computed from it is float64; cast the data with astype("float32"), or make the variables float64')
    with cg.record(), warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(cg.PrecisionWarning, match="^linear: "):
            cg.linear(np.ones((3, 2)), x.reshape(1, 2))


def test_code_without_a_module_is_warned_too():
    """exec() in a namespace without __name__: Python drops a warning whose module is None."""
    code = "with cg.record(): y = cg.tensor([1.0]).attach_grad() * cg.ones(1, dtype='float64')"
    with pytest.warns(cg.PrecisionWarning, match="^mul: "): exec(code, {"cg": cg})


def test_what_is_meant_does_not_warn():
    x, wide = cg.tensor([1.0, 2.0]).attach_grad(), cg.ones(2, dtype="float64").attach_grad()
    x * np.ones(2)                                  # nothing is recorded
    with cg.record():
        x * 2.5 + np.float64(2.5)                   # weak numbers
        x.astype("float64") * wide                  # an explicit cast
        h = x * 2
        with pytest.raises(TypeError):              # an error, and no warning
            h += np.ones(2)
        wide * cg.ones(2) * cg.ones(2, dtype="int64") + cg.ones(2)     # the variable is float64
        cg.ones(2, dtype="int64") * x
        assert (x < np.ones(2)).tolist() == [False, False]      # a comparison has no gradient
        y = (x.double() * wide).sum()
        cg.autograd.grad(y, x, create_graph=True)
