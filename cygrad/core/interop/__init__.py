"""NumPy, DLPack and pickling."""
