"""For tests: gradients against finite differences, allocations that fail on request, leaks that cannot hide."""

import cygrad.bundles  # noqa: F401 (before anything compiled)
from cygrad.testing.gradients import gradcheck
from cygrad.testing.scopes import assert_no_leak, fail_allocation

__all__ = ["assert_no_leak", "fail_allocation", "gradcheck"]
