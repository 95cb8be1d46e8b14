# Written by tools/make_stubs.py; do not edit.

from cygrad.testing.scopes import assert_no_leak as assert_no_leak
from cygrad.testing.nets import check_gradients as check_gradients
from cygrad.testing.nets import compare_nets as compare_nets
from cygrad.testing.scopes import fail_allocation as fail_allocation
from cygrad.testing.gradients import gradcheck as gradcheck
__all__ = ['assert_no_leak', 'check_gradients', 'compare_nets', 'fail_allocation', 'gradcheck']
