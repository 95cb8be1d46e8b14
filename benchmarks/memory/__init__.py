"""The memory benchmarks: `python -m benchmarks.memory` writes benchmarks/results/memory/.

Peaks of training steps against their liveness bound, bytes that each operator keeps for backward, page faults of a
step; PyTorch beside each."""
