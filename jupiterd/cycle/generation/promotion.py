"""Who writes a round's synthetic text: how students come into force, and how they go again.

Owns the rule, as a fold over the rounds that are over. A student that the gate promotes writes a
tenth of each template's prompts for one round, its canary; then all prompts of each template that
it can do, unless the model trained with its text is worse on development text than the student that
is to be beaten. Whoever wrote before comes back where a student goes; a generator that others made
is never gone. Who is promoted where nothing is written is `promoted_models`'s. Doesn't know facts,
nodes or how anything is judged.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from jupiterd.cycle.domain.generator import Generator
from jupiterd.cycle.gate.decision import Decision
from jupiterd.ids import short

CANARY_SHARE: Final = 0.1
"""Of each template's prompts, in a student's first round."""

LEAST_OF_USUAL: Final = 0.5
"""A student can do a template if so much of the usual part of its answers is accepted."""

LEAST_ACCEPTED: Final = 0.1
"""The same where nobody else has written."""


@dataclass(frozen=True)
class AcceptanceStats:
    """How many of one generator's answers to one template were accepted in one round."""

    prompts: int
    samples: int

    @property
    def accepted(self) -> float:
        """Return the part of the prompts that gave a sample."""
        return self.samples / self.prompts if self.prompts else 0.0


AcceptanceTable: TypeAlias = Mapping[str, Mapping[str, AcceptanceStats]]
"""Template -> id of a generator -> what came of it."""


@dataclass(frozen=True)
class PastRound:
    """What a round that is over says of generators."""

    number: int
    candidate: str
    """Artifact id of its model."""
    verdict: str
    teaches: bool = False
    """Small students were shown to learn as well from the candidate's text."""
    worse_bpb: float | None = None
    """By how much the candidate is worse than the incumbent on development text, in bits per byte;
    None where that isn't known."""
    acceptance: AcceptanceTable | None = field(
        default_factory=dict[str, "Mapping[str, AcceptanceStats]"]
    )
    """None where an earlier version generated, which didn't record who wrote what."""
    trained_on: Collection[str] = ()
    """Ids of the generators whose text it was trained with."""
    dismissed: Collection[str] = ()
    """Students that people took out of force after it."""
    appointed: str = ""
    """A student that people promoted after it, whatever the gate said."""
    appointments: Sequence[str] = ()
    """All of those, the newest last: where nothing is written, there may be several."""


@dataclass(frozen=True)
class ActiveGenerators:
    """The students in force as generators when a round begins."""

    primary: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """Template -> the students that write it in full, the newest last; those before it come back
    where it goes."""
    entered: tuple[str, ...] = ()
    """The students that ever came into force in full, in that order."""
    canary: str = ""
    """The student whose canary the round is, or empty."""
    notices: tuple[str, ...] = ()
    """What happened, in sentences, round by round."""
    rolled_back: frozenset[str] = frozenset()
    """The students that went again, some of which may have come back since."""

    @property
    def students(self) -> tuple[str, ...]:
        """Return all students in force, the newest last."""
        writing = {stack[-1] for stack in self.primary.values()}
        known = {student: place for place, student in enumerate(self.entered)}
        found = sorted(writing, key=lambda student: (known.get(student, -1), student))
        return (*found, *([self.canary] if self.canary else []))

    @property
    def newest(self) -> str:
        """Return the student that came into force last, or nothing."""
        return next(reversed(self.students), "")

    def with_notice(self, sentence: str) -> "ActiveGenerators":
        """Return the same, with a sentence about it."""
        return replace(self, notices=(*self.notices, sentence))

    def without(self, student: str) -> "ActiveGenerators":
        """Return what is left when a student goes."""
        left = {
            template: tuple(each for each in stack if each != student)
            for template, stack in self.primary.items()
        }
        primary = {template: stack for template, stack in left.items() if stack}
        canary = "" if self.canary == student else self.canary
        rolled_back = self.rolled_back | {student}
        return replace(self, primary=primary, canary=canary, rolled_back=rolled_back)


@dataclass(frozen=True)
class PromotionRules:
    """What a domain says of promotion."""

    templates: tuple[str, ...]
    """Their kinds."""
    margin_bpb: float
    """A model must be so much worse on development text before a student goes for it."""
    has_named: bool
    """People named a generator: who takes its place must be shown to teach as well."""


def active_generators_after(rounds: Sequence[PastRound], rules: PromotionRules) -> ActiveGenerators:
    """Return who is in force after these rounds, which are in their order.

    Without templates nobody is: there is nothing to write (`promoted_models` says who is promoted).
    """
    active = ActiveGenerators()
    if not rules.templates:
        return active
    for past in rounds:
        active = _with_decisions_of_people(_after(active, past, rules), past)
    return active


def _after(active: ActiveGenerators, past: PastRound, rules: PromotionRules) -> ActiveGenerators:
    student, worse_bpb = active.newest, past.worse_bpb or 0.0
    if student and worse_bpb > rules.margin_bpb:
        return active.without(student).with_notice(
            f"round {past.number}: student {short(student)} was rolled back: the model trained "
            f"with its text is {worse_bpb:.4f} bits per byte worse on development text"
        )
    tried = _end_canary(active, past, rules) if active.canary else active
    return _promoted(tried, past, rules)


def _end_canary(
    active: ActiveGenerators, past: PastRound, rules: PromotionRules
) -> ActiveGenerators:
    student = active.canary
    able = [
        kind
        for kind in rules.templates
        if past.acceptance is None or _can_write(student, past.acceptance.get(kind, {}))
    ]
    primary = dict(active.primary)
    for kind in able:
        primary[kind] = (*primary.get(kind, ()), student)
    entered = (*(each for each in active.entered if each != student), student)
    after = replace(active, primary=primary, entered=entered, canary="")
    what = ", ".join(able) or "no template: too few of its answers could be used"
    return after.with_notice(
        f"round {past.number}: student {short(student)} is in force for {what}"
    )


def _can_write(student: str, acceptance: Mapping[str, AcceptanceStats]) -> bool:
    own = acceptance.get(student)
    if own is None or not own.samples:
        return False
    others = [each.accepted for writer, each in acceptance.items() if writer != student]
    least = LEAST_OF_USUAL * max(others) if others else LEAST_ACCEPTED
    return own.accepted >= least


def _promoted(active: ActiveGenerators, past: PastRound, rules: PromotionRules) -> ActiveGenerators:
    if past.verdict != Decision.PROMOTE:
        return active
    if rules.has_named and not past.teaches:
        return active.with_notice(
            f"round {past.number}: student {short(past.candidate)} doesn't take the place of the "
            "named generator: its text wasn't shown to teach as well"
        )
    return _begin_canary(active, past)


def _begin_canary(active: ActiveGenerators, past: PastRound) -> ActiveGenerators:
    return replace(active, canary=past.candidate).with_notice(
        f"round {past.number}: student {short(past.candidate)} was promoted, and writes "
        f"{CANARY_SHARE:.0%} of the prompts of round {past.number + 1}"
    )


def _with_decisions_of_people(active: ActiveGenerators, past: PastRound) -> ActiveGenerators:
    for student in sorted(past.dismissed):
        if student in active.students:
            reason = f"round {past.number}: student {short(student)} was rolled back by a person"
            active = active.without(student).with_notice(reason)
    if past.appointed:
        reason = f"round {past.number}: student {short(past.appointed)} was promoted by a person"
        active = replace(active, canary=past.appointed).with_notice(reason)
    return active


@dataclass(frozen=True)
class GeneratorShare:
    """A generator with its part of a template's prompts."""

    generator: Generator
    share: float


def writers_of(
    template: str, active: ActiveGenerators, named: Generator | None
) -> tuple[GeneratorShare, ...]:
    """Return who writes a template in the round that begins, whoever writes most first."""
    students = active.primary.get(template, ())
    usual = _student(students[-1]) if students else named
    if not active.canary:
        return (GeneratorShare(usual, 1.0),) if usual is not None else ()
    canary = GeneratorShare(_student(active.canary), CANARY_SHARE)
    return (canary,) if usual is None else (GeneratorShare(usual, 1 - CANARY_SHARE), canary)


def _student(artifact: str) -> Generator:
    return Generator(short(artifact), artifact)


def is_own(templates: Sequence[str], active: ActiveGenerators, named: Generator | None) -> bool:
    """Say whether our own students write most of a round's synthetic text."""
    if named is None:
        return True
    by_others = sum(
        writer.share
        for template in templates
        for writer in writers_of(template, active, named)
        if writer.generator == named
    )
    return by_others < len(templates) / 2


def main_generator(
    active: ActiveGenerators, named: Generator | None, templates: Sequence[str]
) -> str:
    """Return the artifact that a candidate for generating must not be worse than; may be empty.

    That is the named one as long as it writes anything in full; where a server does, nobody can
    score it, and the newest student stands in.
    """
    still = named is not None and any(not active.primary.get(kind) for kind in templates)
    if still and named is not None and named.artifact:
        return named.artifact
    return active.newest


def self_hosting(acceptance: AcceptanceTable, named: str) -> float | None:
    """Return the part of a round's samples that our own students wrote; None where there are none.

    `named` is the id of the generator that others made, or empty.
    """
    counted = [(who, each.samples) for by in acceptance.values() for who, each in by.items()]
    total = sum(samples for _, samples in counted)
    return sum(samples for who, samples in counted if who != named) / total if total else None
