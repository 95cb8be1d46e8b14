"""Tools for tests: gradient checks by finite differences, of functions and of nets, comparisons of nets, injected
allocation failures, and leak checks."""

import cygrad.bundles  # noqa: F401 (before anything compiled)
from cygrad.testing.gradients import gradcheck
from cygrad.testing.nets import check_gradients, compare_nets
from cygrad.testing.scopes import assert_no_leak, fail_allocation

__all__ = ["assert_no_leak", "check_gradients", "compare_nets", "fail_allocation", "gradcheck"]


def __dir__(): return __all__
