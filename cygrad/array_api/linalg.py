"""The extension linalg of the array API standard. The functions are those of cygrad.linalg, under the standard's
signatures."""

from cygrad.core.late_bound import namespace

__all__ = """
cholesky cross det diagonal eigh eigvalsh inv matmul matrix_norm matrix_power matrix_rank matrix_transpose outer pinv qr
slogdet solve svd svdvals tensordot trace vecdot vector_norm
""".split()

globals().update({name: getattr(namespace().linalg, name) for name in __all__})
