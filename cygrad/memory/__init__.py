"""Memory statistics, limits, scopes and profiles: what every byte of tensor data is used for."""

import cygrad.bundles  # noqa: F401 (before anything compiled)
from importlib import import_module as _import_module

from cygrad.core.errors import described as _described
from cygrad.core.graph.scopes import scope
from cygrad.core.store.buffer import empty_cache, stats
from cygrad.memory.scopes import events, limit, reset_peak, track

# loaded at first use, because few programs need them
_LATE = {"budget": "budgets", "offload": "offloading", "plan": "planning", "profile": "profiling", "why": "reasons"}

__all__ = ["empty_cache", "events", "limit", "reset_peak", "scope", "stats", "track", *_LATE]


def __getattr__(name):
    if name not in _LATE: raise AttributeError(f"module 'cygrad.memory' has no attribute {_described(name)}")
    found = globals()[name] = getattr(_import_module("cygrad.memory." + _LATE[name]), name)
    return found


def __dir__(): return __all__
