"""Detects that a training gang can't go on: a node is silent, or the ranks finish no steps.

Owns these two failure detectors. Doesn't know streams, processes or the clock: callers pass the
time. (A node notices the death of its own worker at once: `processes.process`.)

    a rank's node hasn't been heard for SILENT_S      it is frozen, asleep, or cut off
    no rank has finished a step for the step limit    a rank is stuck, though its node is well
    a rank says that it is busy with something else   the limit of that work applies
    the first step takes far longer than predicted    as above, once: the next gang gets that time
    the ranks wait for other islands                  no step ends, and no rank is stuck
    the check itself comes late                       it proves nothing: all get that time back

Long before the step limit a step is in doubt: then the leader checks whether a link loses packets.

A false alarm costs one new attempt of the gang, so these limits are far below those of membership.
"""

from dataclasses import dataclass

SILENT_S = 2.0
ALSO_SILENT_S = 1.0
"""Once one rank is lost, so is whoever hasn't been heard for that long: machines fail together."""

BEAT_S = 0.2
"""How often a node tells of a rank's steps, and how often its leader looks at the clocks."""

ALIVE_S = 0.3
"""After so long without a step to tell of, a node says on each rank's stream that it is there.

Longer than BEAT_S: else it would say so just before most steps.
"""

LATE_S = 0.5
"""A look that comes so much later than the one before tells of our own sleep or load."""

LEAST_STEP_S = 5.0
STEPS_LONG = 5.0
"""A step may take so many times as long as usual, or LEAST_STEP_S."""

FIRST_STEP_S = 20.0
FIRST_STEPS_LONG = 10.0
"""A gang's first step may take so many times as long as is foretold of a step, or FIRST_STEP_S: it
reads its first batch. (Ranks that compile a model don't say that they begin.) Where that was too
short, the first step of the next gang isn't judged: a machine that is slow costs one gang, and no
more."""

FEW_STEPS = 5
"""Of fewer the mean says little: a longer one that was usual before counts, too."""

FIRST_BUSY_S = 120.0
"""Ranks may be busy for so long the first time. Where that was too short, the next gang gets
STEPS_LONG times as long: a machine that is slow comes to its end, and one that hangs is noticed."""

DOUBT_S = 1.2
DOUBT_STEPS_LONG = 3.0
"""A step that takes so many times as long as usual, and DOUBT_S, is looked into."""

DOUBT_GROWS = 2.0
"""Where nothing was found, the next look comes after so many times as long."""


@dataclass(frozen=True)
class Silent:
    """A rank's node says nothing."""

    rank: int
    for_s: float
    others: tuple[int, ...] = ()
    """Who else hasn't been heard for ALSO_SILENT_S."""


@dataclass(frozen=True)
class Stuck:
    """No step comes to its end; `rank` is the one that the others wait for, where that is known."""

    rank: int | None
    for_s: float


@dataclass
class _Rank:
    heard_s: float | None = None
    step: int | None = None
    has_ended: bool = False


class GangWatchdog:
    """What is known of one gang's ranks; each is watched from when it is first heard on."""

    def __init__(
        self,
        ranks: int,
        now_s: float,
        busy_s: float = 0.0,
        longest_busy_s: float | None = None,
        first_step_s: float | None = None,
    ) -> None:
        """Begin to watch.

        Args:
            ranks: how many there are.
            now_s: the time.
            busy_s: what more a step may take whose ranks are busy, for writing a checkpoint.
            longest_busy_s: how long that took at most in earlier gangs of the same training.
            first_step_s: how long a step takes as far as is known; None: the first isn't judged.
        """
        self._ranks = [_Rank() for _ in range(ranks)]
        self._looked_s = now_s
        self._busy_s = busy_s
        self.longest_busy_s = longest_busy_s
        """How long ranks were busy at most; None before the first time, which gets FIRST_BUSY_S."""
        self._first: tuple[float, int] | None = None
        self._last: tuple[float, int] | None = None
        self._progressed_s = now_s
        self._doubts = 0
        """How often it was in doubt since then."""
        self._waits = False
        self._usual_before_s: float | None = None
        """How long a step took before the ranks last waited or were busy."""
        self._rest_s: float | None = None
        """When they were last busy, as long as no step has come since."""
        self._first_step_s = first_step_s
        self._begun: set[int] = set()
        """Ranks that have said that their first step comes next."""
        self._first_was_stuck = False

    def heard(self, rank: int, now_s: float) -> None:
        """Take in that something was heard of a rank, or that it was told to begin."""
        self._ranks[rank].heard_s = now_s

    def joined(self, rank: int, now_s: float) -> None:
        """Take in that a rank has met the others."""
        self.heard(rank, now_s)
        self._progress(now_s)

    def waits(self) -> None:
        """Take in that the ranks wait for other islands: their next step may take any time.

        It is told again and again.
        """
        self._usual_before_s, self._waits = self._usual_s(), True

    def busy(self, rank: int, step: int, now_s: float) -> None:
        """Take in that a rank does something else after that many steps, before the next one.

        It scores text, or writes a checkpoint; the others wait for it.
        """
        self.stepped(rank, step, now_s)
        if self._last is not None and step == self._last[1] and not self._waits:
            self._usual_before_s = self._usual_s()
            self._rest_s = now_s if self._rest_s is None else self._rest_s

    def begins(self, rank: int, step: int, now_s: float) -> None:
        """Take in that a rank begins its first step, after that many of the round.

        What it has loaded, and what it scored before, isn't part of that.
        """
        self.heard(rank, now_s)
        self._begun.add(rank)
        if len(self._begun) == len(self._ranks) and (self._last is None or step >= self._last[1]):
            self._last, self._first, self._rest_s = (now_s, step), None, None
            self._progress(now_s)

    def next_first_step_s(self, predicted_s: float | None) -> float | None:
        """Return how long a step takes as far as is known, for the gang after this one.

        foretold_s: what is predicted where none was measured; None: nobody can know
        """
        if self._first_was_stuck:
            return None
        measured_s = self._usual_s()
        return predicted_s if measured_s is None else measured_s

    def ended(self, rank: int) -> None:
        """Take in that a rank has come to its end: it needn't be heard any more."""
        self._ranks[rank].has_ended = True

    def stepped(self, rank: int, step: int, now_s: float) -> None:
        """Take in that a rank has finished that many steps of the round."""
        self.heard(rank, now_s)
        self._ranks[rank].step = step
        if self._last is None or step > self._last[1]:
            if self._rest_s is not None:
                self.longest_busy_s = max(self.longest_busy_s or 0.0, now_s - self._rest_s)
            if self._waits or self._rest_s is not None:  # that isn't how long a step takes
                self._first, self._waits, self._rest_s = None, False, None
            self._last = (now_s, step)
            self._first = self._first or self._last
            self._progress(now_s)

    def is_in_doubt(self, now_s: float) -> bool:
        """Say whether it is time to look why nothing comes of this; once, and again much later."""
        usual_s = self._usual_s()
        least_s = DOUBT_S if usual_s is None else max(DOUBT_S, DOUBT_STEPS_LONG * usual_s)
        is_due = (
            not (self._is_over or self._waits)
            and now_s - self._progressed_s >= least_s * DOUBT_GROWS**self._doubts
        )
        self._doubts += is_due
        return is_due

    def look(self, now_s: float) -> Silent | Stuck | None:
        """Judge; call this every BEAT_S, or more often."""
        late_s = now_s - self._looked_s
        self._looked_s = now_s
        if late_s > LATE_S:
            self._give_back(late_s)
        return self._silent(now_s) or self._stuck(now_s)

    @property
    def _is_over(self) -> bool:
        return all(rank.has_ended for rank in self._ranks)

    def _give_back(self, lost_s: float) -> None:
        for rank in self._ranks:
            rank.heard_s = None if rank.heard_s is None else rank.heard_s + lost_s
        if self._first is not None:
            self._first = (self._first[0] + lost_s, self._first[1])
        if self._last is not None:
            self._last = (self._last[0] + lost_s, self._last[1])
        self._progressed_s += lost_s
        self._rest_s = None if self._rest_s is None else self._rest_s + lost_s

    def _silent(self, now_s: float) -> Silent | None:
        ages = [
            (now_s - rank.heard_s, number)
            for number, rank in enumerate(self._ranks)
            if rank.heard_s is not None and not rank.has_ended
        ]
        for_s, number = max(ages, default=(0.0, 0))
        if for_s < SILENT_S:
            return None
        also = tuple(other for age_s, other in ages if other != number and age_s >= ALSO_SILENT_S)
        return Silent(number, for_s, also)

    def _stuck(self, now_s: float) -> Stuck | None:
        limit_s = self._limit_s()
        if (
            self._is_over
            or self._waits
            or limit_s is None
            or self._last is None
            or now_s - self._last[0] < limit_s
        ):
            return None
        if self._rest_s is not None:
            self.longest_busy_s = max(self.longest_busy_s or 0.0, now_s - self._rest_s)
        self._first_was_stuck = self._usual_s() is None
        return Stuck(self._waited_for(), now_s - self._last[0])

    def _limit_s(self) -> float | None:
        """Return how long the running step may take; None as long as nobody can say."""
        usual_s = self._usual_s()
        if usual_s is None:
            return self._first_limit_s()
        limit_s = max(LEAST_STEP_S, STEPS_LONG * usual_s)
        if self._rest_s is None:
            return limit_s
        if self.longest_busy_s is None:
            return self._busy_s + max(limit_s, FIRST_BUSY_S)
        return self._busy_s + max(limit_s, STEPS_LONG * self.longest_busy_s)

    def _first_limit_s(self) -> float | None:
        """Return how long the first steps may take, as long as none of them is usual."""
        has_begun = len(self._begun) == len(self._ranks) and self._rest_s is None
        if self._first_step_s is None or not has_begun:
            return None
        return max(FIRST_STEP_S, FIRST_STEPS_LONG * self._first_step_s)

    def _usual_s(self) -> float | None:
        """Return how long a step takes here; None as long as that isn't known."""
        if self._first is None or self._last is None or self._first == self._last:
            return self._usual_before_s
        (began_s, first), (ended_s, last) = self._first, self._last
        mean_s = (ended_s - began_s) / (last - first)
        before_s = self._usual_before_s or 0.0
        return max(mean_s, before_s) if last - first < FEW_STEPS else mean_s

    def _progress(self, now_s: float) -> None:
        self._progressed_s, self._doubts = now_s, 0

    def _waited_for(self) -> int | None:
        """Return the only rank that is behind, if there is one."""
        steps = [-1 if rank.step is None else rank.step for rank in self._ranks]
        behind = [number for number, step in enumerate(steps) if step < max(steps)]
        return behind[0] if len(behind) == 1 else None
