"""Benchmarks: cygrad beside PyTorch, NumPy, jax and HIPS autograd on the same work, interleaved in one run.

    python -m benchmarks --help

Each row of work is a module of its own, whose docstring says what is done. `work.py` says what a row is made of,
`timing.py` how it is timed, `collect.py` in which processes, `limits.py` what the machine could do, `goals.py` what is
to be reached; `stored.py` writes the results, `report.py` and `pictures.py` show them, and `compare.py` lists what
changed between two runs.

    python -m benchmarks.memory

compares bytes: peaks, what operators keep, page faults."""
