"""The base classes of operators for other packages: those of ops/elementwise/base."""

from cygrad.ops.elementwise.base cimport *  # no-cython-lint: other packages cimport its names from here
