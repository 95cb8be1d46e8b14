"""Memory statistics, limits, scopes and profiles: what every byte of tensor data is used for."""

import cygrad.bundles  # noqa: F401 (before anything compiled)
from cygrad.core.graph.scopes import scope
from cygrad.core.store.buffer import empty_cache, stats
from cygrad.memory.budgets import budget
from cygrad.memory.offloading import offload
from cygrad.memory.planning import plan
from cygrad.memory.profiling import profile
from cygrad.memory.reasons import why
from cygrad.memory.scopes import events, limit, reset_peak, track

__all__ = [
    "budget", "empty_cache", "events", "limit", "offload", "plan", "profile", "reset_peak", "scope", "stats", "track",
    "why",
]
