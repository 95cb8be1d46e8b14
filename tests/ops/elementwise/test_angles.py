"""Degrees and radians: values as NumPy's, and gradients."""

import numpy as np
import pytest

import cygrad as cg
from cygrad.testing import gradcheck


@pytest.mark.parametrize("name", ["deg2rad", "radians", "rad2deg", "degrees"])
def test_angles(name):
    a = np.array([[0.0, 90.0, -180.0], [np.pi, 1e-3, 720.0]])
    f, like = getattr(cg, name), getattr(np, name)
    np.testing.assert_allclose(f(cg.tensor(a)).numpy(), like(a), 1e-15)
    np.testing.assert_allclose(f(cg.tensor(a, dtype="float32")).numpy(), like(a.astype("float32")), 1e-6)
    assert f(cg.tensor([180])).dtype == "float32" and isinstance(like(cg.tensor(a)), cg.Tensor)
    assert gradcheck(f, [cg.tensor(a)], order=1)
