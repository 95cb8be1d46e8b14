"""x"""
class ShardedSolver: pass
