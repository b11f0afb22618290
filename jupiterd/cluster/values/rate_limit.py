"""How often strangers may call: so many a second each, and so many together.

Owns the buckets, bounded in number. Doesn't know what the calls are, or what refusing looks like.
"""

from collections import OrderedDict
from dataclasses import dataclass
from typing import Generic, TypeVar

Caller = TypeVar("Caller")


@dataclass(frozen=True)
class Rate:
    """Calls: `burst` at once, and `per_s` in the long run."""

    per_s: float
    burst: float


@dataclass
class _Bucket:
    left: float
    filled_at: float

    def refill(self, now: float, rate: Rate) -> None:
        self.left = min(self.left + (now - self.filled_at) * rate.per_s, rate.burst)
        self.filled_at = now


class RateLimit(Generic[Caller]):
    """Says whether a call may be answered."""

    def __init__(self, each: Rate, together: Rate, now: float, max_callers: int = 1024) -> None:
        self._each = each
        self._together = together
        self._max_callers = max_callers
        self._all = _Bucket(together.burst, now)
        self._of: OrderedDict[Caller, _Bucket] = OrderedDict()
        self.refused = 0
        """How many calls weren't answered so far."""

    def allows(self, now: float, caller: Caller) -> bool:
        """Count one call of `caller`, and say whether it is within both rates."""
        bucket = self._bucket(now, caller)
        self._all.refill(now, self._together)
        if bucket.left < 1.0 or self._all.left < 1.0:
            self.refused += 1
            return False
        bucket.left -= 1.0
        self._all.left -= 1.0
        return True

    def _bucket(self, now: float, caller: Caller) -> _Bucket:
        """Return the caller's bucket; who called longest ago is forgotten where there are many."""
        bucket = self._of.setdefault(caller, _Bucket(self._each.burst, now))
        self._of.move_to_end(caller)
        while len(self._of) > self._max_callers:
            self._of.popitem(last=False)
        bucket.refill(now, self._each)
        return bucket
