# Written by tools/make_stubs.py; do not edit.

from cygrad.memory.budgets import budget as budget
from cygrad.core.store.buffer import empty_cache as empty_cache
from cygrad.memory.scopes import events as events
from cygrad.memory.scopes import limit as limit
from cygrad.memory.offloading import offload as offload
from cygrad.memory.planning import plan as plan
from cygrad.memory.profiling import profile as profile
from cygrad.memory.scopes import reset_peak as reset_peak
from cygrad.core.graph.scopes import scope as scope
from cygrad.core.store.buffer import stats as stats
from cygrad.memory.scopes import track as track
from cygrad.memory.reasons import why as why
__all__ = ['budget', 'empty_cache', 'events', 'limit', 'offload', 'plan', 'profile', 'reset_peak', 'scope', 'stats', 'track', 'why']
