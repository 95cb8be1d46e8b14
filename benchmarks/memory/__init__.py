"""The memory benchmarks: `python -m benchmarks.memory` writes benchmarks/results/memory/.

Peaks of training steps and their liveness bound, bytes that each operator saves for backward, and page faults of a
step, compared with PyTorch."""
