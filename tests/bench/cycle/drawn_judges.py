"""Judges whose skill is known, heard by the gate as it is shipped where its statistics are tied.

Owns the chance that draws their answers, and counting what the gate makes of them.
"""

from dataclasses import dataclass, replace
from random import Random

from jupiterd.cycle.gate.case import Findings
from jupiterd.cycle.gate.decision import AnswerOutcome, Decision, Question
from jupiterd.cycle.gate.tie_break import Judged
from jupiterd.cycle.gate.verdict import Verdict, decide
from jupiterd.cycle.judge.pair import Pair, PairKind
from jupiterd.cycle.judge.planted import KINDS
from tests.bench.cycle.drawn_candidates import WORKS, HeldOut

NARROW = 0.01
"""Paired SD at which text of a few dozen clusters rules out being worse by the margin."""


@dataclass(frozen=True)
class DrawnJudge:
    """How a judge answers one question."""

    skill: float
    """Chance that it names the better text, where the place doesn't decide."""
    first_place: float = 0.0
    """Share of its answers that name the text shown first, whatever it says."""
    likes: float = 0.0
    """Share of its answers about students that name the candidate's, however good it is."""

    def replies(self, chance: Random, *, ours_is_better: bool, of_students: bool) -> list[str]:
        """Return what it says where ours is shown first, and where it is shown second."""
        return [
            self._reply(chance, ours, ours_is_better=ours_is_better, of_students=of_students)
            for ours in (1, 2)
        ]

    def _reply(self, chance: Random, ours: int, *, ours_is_better: bool, of_students: bool) -> str:
        drawn = chance.random()
        if drawn < self.first_place:
            return "1"
        if of_students and drawn < self.first_place + self.likes:
            return str(ours)
        names_ours = ours_is_better == (chance.random() < self.skill)
        return str(ours if names_ours else 3 - ours)


COIN = DrawnJudge(0.5)
FIRST_PLACE = DrawnJudge(0.98, first_place=0.5)
GOOD = DrawnJudge(0.98)
PARTIAL = DrawnJudge(0.98, likes=1.0)
"""Judges planted pairs well, and of students always prefers the candidate."""


@dataclass(frozen=True)
class Answers:
    """The pairs that a judge is asked about."""

    cluster_sizes: tuple[int, ...] = (8, 6, 5, 4, *(3,) * 10, *(2,) * 10, *(1,) * 10)
    planted: int = 120
    win_chance: float = 0.5
    """That the candidate's answer is the better one, on average over clusters."""
    cluster_spread: float = 0.35
    """By so much the chance is higher in one half of the clusters, and lower in the other."""

    def judged(self, chance: Random, judge: DrawnJudge) -> Judged:
        """Return what a judge says of one candidate."""
        kinds = [str(KINDS[number % len(KINDS)]) for number in range(self.planted)]
        pairs = [
            replace(
                Pair(kind, str(number), str(number), "b", "o", "t"),
                replies=tuple(judge.replies(chance, ours_is_better=True, of_students=False)),
            )
            for number, kind in enumerate(kinds)
        ]
        for cluster, size in enumerate(self.cluster_sizes):
            wins = self.win_chance + chance.choice((-1, 1)) * self.cluster_spread
            for number in range(size):
                better = chance.random() < wins
                said = judge.replies(chance, ours_is_better=better, of_students=True)
                name = f"{cluster}-{number}"
                pairs.append(
                    Pair(PairKind.STUDENTS, name, str(cluster), "b", "o", "t", tuple(said))
                )
        return Judged("drawn", pairs)


@dataclass(frozen=True)
class Heard:
    """What became of cycles with a judge."""

    cycles: int
    fooled: int
    """Cycles with a promotion."""
    by_judge: int
    """Of them, those that a judge decided."""
    ties: int
    abstained: int
    """Ties in which the judge wasn't heard."""


def cycles_with(
    chance: Random,
    judge: DrawnJudge,
    text: HeldOut,
    true_gain_bpb: float,
    cycles: int,
    *,
    rounds: int = 20,
    answers: Answers | None = None,
) -> Heard:
    """Draw cycles whose candidates all have one true gain, until each has promoted one."""
    fooled = by_judge = ties = abstained = 0
    for _ in range(cycles):
        for look in range(1, rounds + 1):
            verdict = _verdict(chance, judge, text, true_gain_bpb, look, answers or Answers())
            ties += verdict.is_tied
            found = verdict.tie_break
            abstained += verdict.is_tied and found is not None and found.preference is None
            if verdict.decision is Decision.PROMOTE:
                fooled += 1
                by_judge += verdict.questions[Question.BETTER].outcome is AnswerOutcome.TIED
                break
    return Heard(cycles, fooled, by_judge, ties, abstained)


def _verdict(
    chance: Random,
    judge: DrawnJudge,
    text: HeldOut,
    true_gain_bpb: float,
    look: int,
    answers: Answers,
) -> Verdict:
    """Return the gate's verdict; the judge is asked where the scores alone are tied."""
    scores = text.candidate(chance, true_gain_bpb)
    unasked = Findings(WORKS.sanity, judged=Judged("drawn"))
    first = decide(scores, text.settings, look, unasked)
    if not first.is_tied:
        return first
    asked = replace(unasked, judged=answers.judged(chance, judge))
    return decide(scores, text.settings, look, asked)
