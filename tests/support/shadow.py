"""A shadow allocator in pure Python: it receives every memory event and has counters of its own. After each event it
compares them with memory.stats(). It shares only the events with the pool."""

import cygrad as cg

CATEGORIES = ("parameters", "gradients", "optimizer", "saved", "workspace", "other")


class Shadow:
    """A scope. On exit it raises AssertionError with the first difference. Nothing may be live on entry."""

    def __init__(self):
        self.live = {}                              # buffer id -> (bytes, category)
        self.total = self.peak = self.events = 0
        self.by_category = dict.fromkeys(CATEGORIES, 0)
        self.errors = []                            # a listener cannot raise through the pool

    def __call__(self, event):
        kind, buffer, nbytes, category = event
        self.events += 1
        before = self.live.pop(buffer, None)
        if (kind == "allocate") != (before is None) or kind not in ("allocate", "free", "category"):
            self.errors.append(f"event {self.events}, {event}: the buffer was {before}")
            return
        if before is not None:
            if before[0] != nbytes or (before[1] == category) != (kind == "free"):
                self.errors.append(f"event {self.events}, {event}: the buffer was {before}")
            self.total -= before[0]
            self.by_category[before[1]] -= before[0]
        if kind != "free":
            self.live[buffer] = nbytes, category
            self.total += nbytes
            self.by_category[category] += nbytes
        self.peak = max(self.peak, self.total)
        self.compare(event)

    def compare(self, event):
        stats = cg.memory.stats()
        ours = dict(live_bytes=self.total, live_buffers=len(self.live), by_category=self.by_category,
                    peak_bytes=self.peak)
        theirs = {key: stats[key] for key in ours}
        if ours != theirs:
            self.errors.append(f"event {self.events}, {event}: the shadow has {ours}, the pool {theirs}")
        if sum(stats["by_category"].values()) != stats["live_bytes"] or stats["cached_bytes"] < 0:
            self.errors.append(f"event {self.events}, {event}: {stats} does not add up")

    def __enter__(self):
        stats = cg.memory.stats()
        assert stats["live_bytes"] == stats["live_buffers"] == 0, stats
        cg.memory.reset_peak()
        self._scope = cg.memory.events(self)
        self._scope.__enter__()
        return self

    def __exit__(self, kind, *_):
        self._scope.__exit__()
        if kind is None:
            assert not self.errors, self.errors[0]
            assert self.total == sum(n for n, _ in self.live.values())
