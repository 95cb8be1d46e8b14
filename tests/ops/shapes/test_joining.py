"""r_ and c_ against NumPy's, and their gradients."""

import numpy as np
import pytest

import cygrad as cg

A, B = np.array([1.0, 2.0, 3.0], "f4"), np.array([[4.0, 5.0, 6.0]], "f4")
KEYS = [
    (A, A), (A, 0.5, A), ("0,2", A, A), ("0,2", A, B), ("1,2,0", A, A), ("0,3,-1", A, A), ("0,3,0", A, A),
    ("-1,3,1", A, A), ("1", B, B), A, slice(0, 5), (slice(1, 7, 2), 9), (slice(0, 1, 5j), 2.0), (slice(4), 5, 6),
    (True, False), (1, 2), (1, 2.5),
]


def of(array, key):
    parts = key if isinstance(key, tuple) else (key,)
    parts = tuple(array(v) if isinstance(v, np.ndarray) else v for v in parts)
    return parts if isinstance(key, tuple) else parts[0]


@pytest.mark.parametrize("key", KEYS, ids=str)
@pytest.mark.parametrize("name", ("r_", "c_"))
def test_like_numpy(name, key):
    try: wanted = getattr(np, name)[key]
    except ValueError:
        with pytest.raises(ValueError): getattr(cg, name)[of(cg.tensor, key)]
        return
    y = getattr(cg, name)[of(cg.tensor, key)]
    assert y.shape == wanted.shape and np.array_equal(y.numpy(), wanted)
    if isinstance(key, tuple) and any(isinstance(v, np.ndarray) for v in key): assert y.dtype == "float32"


def test_gradients():
    x = cg.tensor([1.0, 2.0]).attach_grad()
    with cg.record():
        (cg.r_[x, 0.5, x] * cg.tensor([1.0, 2.0, 9.0, 3.0, 4.0])).sum().backward()
    assert x.grad.tolist() == [4.0, 6.0]


def test_numbers_take_the_dtype_of_tensors():
    assert cg.r_[cg.tensor([1, 2]), 3].dtype == "int64"
    assert cg.r_[cg.tensor([1, 2]), 0.5].dtype == "float32"
    assert cg.r_[cg.tensor([1.0], dtype="float64"), 3].dtype == "float64"
    assert cg.r_[cg.tensor([True]), 2].tolist() == [1, 2]
