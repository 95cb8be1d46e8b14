"""NumPy, DLPack and pickles."""
