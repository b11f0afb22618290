"""Decides when an outer round closes, and which pseudo-gradients count in it.

Owns these decisions, which one leader makes and records. Doesn't know the clock (callers pass the
time), how pseudo-gradients travel, or their contents.

A round closes as soon as every island has delivered its pseudo-gradient. Otherwise it closes after
a grace period that starts with the first delivery and lasts a share of the time that the first
island took: the others don't wait longer for a slow or lost island. In the first round no island's
speed is known: all compute equally many steps and start at different times, so that round waits far
longer. A pseudo-gradient is left out if it isn't finite or if its norm is much greater than the
others' (of three or more: of two, neither can be called the outlier); its island then takes the
merged weights. `state_divergence` finds an island whose weights differ from the others'.

With overlapped communication (islands train on while they deliver), a fast island may deliver
almost a round before a slow one whose previous steps were on time. So the grace period starts at
the slow island's expected delivery.

The grace period needs one pseudo-gradient that can be merged. Until there is one, the round waits
for all islands, and for a limited time for lost ones; then it closes without any.
"""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from statistics import median

from jupiterd.protocol.training_values import PseudoGradient

GRACE = 0.2
"""The grace period as a share of the time that the round's first island took."""

OVERLAPPED_GRACE = 0.5
"""The same where nobody waits: islands train their next round meanwhile."""

LEAST_GRACE_S = 10.0
"""A gang that loses a rank is back by then: silence is noticed in 2 s, and the rest is to start it
anew on a machine that is busy. Nobody waits so long twice: who hasn't caught up has no part in the
next round. Less would cost an island its round whenever rounds of seconds meet a busy machine."""

FIRST_GRACE = 9.0
LEAST_FIRST_GRACE_S = 60.0
"""The same for the first round: an island may be ten times as slow, or still fetch its data. And
where nobody knows how long a round took: after a change of leaders some pseudo-gradients are told
once more."""

LOST_GRACE_S = 60.0
"""How long the lost are waited for where nobody is in with a pseudo-gradient that can be merged."""

MAX_TIMES_MEDIAN = 10.0
"""A pseudo-gradient so many times as long as the median of all is taken for a fault."""


@dataclass(frozen=True)
class Closing:
    """How a round ended."""

    counted: tuple[str, ...]
    """Islands whose pseudo-gradients are merged, in their fixed order."""
    tokens: tuple[int, ...]
    """Of those, in the same order."""
    quarantined: tuple[str, ...] = ()
    """Their pseudo-gradients are left out, and they begin anew."""
    missing: tuple[str, ...] = ()
    """Whoever wasn't in."""
    strangers: tuple[str, ...] = ()
    """Their pseudo-gradients are left out: they train another model."""
    adrift: tuple[str, ...] = ()
    """Their pseudo-gradients are left out, and they are reseeded: their weights or momentum aren't
    the others'."""
    weights: tuple[int, ...] = ()
    """Of those that count, in their order: the tokens that their losses count; empty: all do."""

    def without(self, strangers: Collection[str]) -> "Closing":
        """Return the same round with the pseudo-gradients of these left out."""
        found = tuple(sorted({*self.counted} & {*strangers}))
        return replace(self._merging_none_of(strangers), strangers=found)

    def without_adrift(self, adrift: Collection[str]) -> "Closing":
        """Return the same round with the pseudo-gradients of these left out, sound or not."""
        sick = tuple(each for each in self.quarantined if each not in adrift)
        found = tuple(sorted({*self.counted, *self.quarantined} & {*adrift}))
        return replace(self._merging_none_of(adrift), quarantined=sick, adrift=found)

    def _merging_none_of(self, islands: Collection[str]) -> "Closing":
        pairs = zip(self.counted, self.tokens, strict=True)
        left = {island: tokens for island, tokens in pairs if island not in islands}
        weighty = zip(self.counted, self.weights, strict=False)  # there may be none
        weights = tuple(weight for island, weight in weighty if island in left)
        return replace(self, counted=tuple(left), tokens=tuple(left.values()), weights=weights)


class OuterRound:
    """One round while it is open."""

    def __init__(
        self,
        islands: Collection[str],
        *,
        is_first: bool = False,
        lag: int = 1,
        opened_s: float = -math.inf,
    ) -> None:
        """Open a round.

        Args:
            islands: who has a part in it.
            is_first: nobody has been measured yet.
            lag: see `outer_orders.LAGS`.
            opened_s: when the round before closed, or this leader took over; left out:
                there was none.
        """
        self._islands = frozenset(islands)
        self._opened_s = opened_s if lag > 1 else -math.inf
        self._lost: frozenset[str] = frozenset()
        self._pseudo_gradients: dict[str, PseudoGradient] = {}
        self._first_s: float | None = None
        """When the first pseudo-gradient came that can be merged."""
        self._took_s = 0.0
        """How long the first of those took that tell it."""
        self._lost_since_s = math.inf
        """Since when nobody has been here who isn't in."""
        self._grace = FIRST_GRACE if is_first else GRACE if lag == 1 else OVERLAPPED_GRACE
        self._least_grace_s = LEAST_FIRST_GRACE_S if is_first else LEAST_GRACE_S

    def arrived(self, island: str, pseudo_gradient: PseudoGradient, now_s: float) -> None:
        """Take in an island's pseudo-gradient; only its first counts, and a stranger's doesn't."""
        if island not in self._islands or island in self._pseudo_gradients:
            return
        self._pseudo_gradients[island] = pseudo_gradient
        if not _can_be_merged(pseudo_gradient):
            return
        self._first_s = now_s if self._first_s is None else self._first_s
        self._took_s = self._took_s or pseudo_gradient.elapsed_s

    def take_back(self, island: str) -> None:
        """Take in that an island's pseudo-gradient can't be had after all."""
        self._pseudo_gradients.pop(island, None)

    def set_lost(self, islands: Collection[str]) -> None:
        """Take in who is gone just now: nobody waits for these; what came from them counts."""
        self._lost = self._islands.intersection(islands)

    @property
    def pseudo_gradients(self) -> Mapping[str, PseudoGradient]:
        """Return what is in, by island."""
        return self._pseudo_gradients

    @property
    def missing(self) -> tuple[str, ...]:
        """Return who isn't in."""
        return tuple(sorted(self._islands - self._pseudo_gradients.keys()))

    @property
    def due_s(self) -> float | None:
        """Return when it closes at the latest; None as long as nothing is in to be merged."""
        if self._first_s is None:
            return None
        expected_s = max(self._first_s, self._opened_s + self._took_s)
        least_s = self._least_grace_s if self._took_s else LEAST_FIRST_GRACE_S
        return expected_s + max(least_s, self._grace * self._took_s)

    def closing(self, now_s: float) -> Closing | None:
        """Return how it ends, once it does; nothing counts where nothing could be merged."""
        good = {
            island
            for island, pseudo_gradient in self._pseudo_gradients.items()
            if self._is_sound(pseudo_gradient)
        }
        are_lost = self._lost.issuperset(self.missing)
        self._lost_since_s = min(self._lost_since_s, now_s) if are_lost else math.inf
        if good:
            is_over = are_lost or now_s >= (self.due_s or 0.0)
        else:
            is_over = not self.missing or now_s >= self._lost_since_s + LOST_GRACE_S
        return self._ending(good) if is_over else None

    def _ending(self, good: Collection[str]) -> Closing:
        counted = tuple(sorted(good))
        weights = tuple(self._pseudo_gradients[island].counted for island in counted)
        return Closing(
            counted,
            tuple(self._pseudo_gradients[island].tokens for island in counted),
            tuple(sorted(self._pseudo_gradients.keys() - {*good})),
            self.missing,
            weights=weights if all(weights) else (),
        )

    def _is_sound(self, pseudo_gradient: PseudoGradient) -> bool:
        if not _can_be_merged(pseudo_gradient):
            return False
        usual = median(
            each.norm for each in self._pseudo_gradients.values() if math.isfinite(each.norm)
        )
        return len(self._pseudo_gradients) < 3 or pseudo_gradient.norm <= MAX_TIMES_MEDIAN * usual


def _can_be_merged(pseudo_gradient: PseudoGradient) -> bool:
    """Say whether it has numbers, and something was trained for it."""
    return math.isfinite(pseudo_gradient.norm) and pseudo_gradient.tokens > 0
