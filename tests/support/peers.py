"""PyTorch, for files of tests of which only some compare with it: `from peers import torch`.

It is not installed with every version of Python (tools/pythons.py). Then any call of it skips the test that makes the
call, and the other tests of the file run."""

import pytest

WITHOUT_TORCH = "PyTorch is not installed, so it cannot be compared with"


class Absent:
    """A package that is not installed: it has every name, and calling one skips the test."""

    def __getattr__(self, name):
        if name.startswith("__"): raise AttributeError(name)
        return self

    def __call__(self, *args, **kwargs):
        pytest.skip(WITHOUT_TORCH, allow_module_level=True)


try:
    import torch
    import torch._dynamo  # otherwise PyTorch's backward imports it on first use and keeps frames alive
except ModuleNotFoundError:
    torch = Absent()
