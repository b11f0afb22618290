"""Which model is the promoted one of a cycle that isn't to be trained on generated text.

Owns the rule, as a fold over the rounds that are over. Such a cycle asks nobody to write, so a
student needs no trial: it is promoted as soon as the gate or a person says so, until a later one is
promoted, or people roll it back; then the one before it is promoted again. Who writes where text is
generated is `promotion`'s. Doesn't know facts, nodes or how anything is judged.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from jupiterd.cycle.gate.decision import Decision
from jupiterd.cycle.generation.promotion import PastRound
from jupiterd.ids import short


@dataclass(frozen=True)
class PromotedModels:
    """The students that were promoted and not rolled back since."""

    students: tuple[str, ...] = ()
    """Their artifact ids, the newest last: those before it come back where it goes."""
    notices: tuple[str, ...] = ()
    """What happened, in sentences, round by round."""
    rolled_back: frozenset[str] = frozenset()
    """The students that went again, some of which may have come back since."""

    @property
    def newest(self) -> str:
        """Return the promoted model, or nothing."""
        return self.students[-1] if self.students else ""

    def with_student(self, student: str, notice: str) -> "PromotedModels":
        """Return the same with this student as the newest, wherever it was before."""
        others = (each for each in self.students if each != student)
        return replace(self, students=(*others, student), notices=(*self.notices, notice))

    def without(self, student: str, notice: str) -> "PromotedModels":
        """Return what is left when a student goes."""
        left = tuple(each for each in self.students if each != student)
        return PromotedModels(left, (*self.notices, notice), self.rolled_back | {student})


def promoted_models_after(rounds: Sequence[PastRound], margin_bpb: float) -> PromotedModels:
    """Return which students are promoted after these rounds, which are in their order.

    Args:
        rounds: those that are over.
        margin_bpb: a model must be so much worse on development text, in bits per byte, before a
            student goes for it; counts only of rounds that were trained with that student's text.
    """
    promoted = PromotedModels()
    for past in rounds:
        judged = _judged(_blamed(promoted, past, margin_bpb), past)
        promoted = _with_decisions_of_people(judged, past)
    return promoted


def _blamed(promoted: PromotedModels, past: PastRound, margin_bpb: float) -> PromotedModels:
    """Return what is left where the newest one's text did harm, before people wanted none."""
    student, worse_bpb = promoted.newest, past.worse_bpb or 0.0
    if student not in past.trained_on or not worse_bpb > margin_bpb:
        return promoted
    return promoted.without(
        student,
        f"round {past.number}: student {short(student)} was rolled back: the model trained "
        f"with its text is {worse_bpb:.4f} bits per byte worse on development text",
    )


def _judged(promoted: PromotedModels, past: PastRound) -> PromotedModels:
    if past.verdict != Decision.PROMOTE:
        return promoted
    notice = f"round {past.number}: student {short(past.candidate)} was promoted"
    return promoted.with_student(past.candidate, notice)


def _with_decisions_of_people(promoted: PromotedModels, past: PastRound) -> PromotedModels:
    for student in sorted(past.dismissed):
        if student in promoted.students:
            notice = f"round {past.number}: student {short(student)} was rolled back by a person"
            promoted = promoted.without(student, notice)
    for student in past.appointments:
        notice = f"round {past.number}: student {short(student)} was promoted by a person"
        promoted = promoted.with_student(student, notice)
    return promoted
