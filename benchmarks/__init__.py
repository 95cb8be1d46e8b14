"""Benchmarks: cygrad beside PyTorch and NumPy on the same work, interleaved in one run.

    python -m benchmarks --help

Each row of work is a module of its own, whose docstring says what is done. `work.py` says what a row is made of,
`timing.py` how it is timed, `goals.py` what is to be reached; `report.py` and `pictures.py` show it.

    python -m benchmarks.memory

compares bytes: peaks, what operators keep, page faults."""
