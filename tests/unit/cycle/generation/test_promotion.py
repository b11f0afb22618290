"""How students come into force as generators, and how they go again."""

import random

import pytest

from jupiterd.cycle.domain.generator import Generator
from jupiterd.cycle.generation.promotion import (
    AcceptanceStats,
    ActiveGenerators,
    GeneratorShare,
    PastRound,
    PromotionRules,
    active_generators_after,
    is_own,
    main_generator,
    self_hosting,
    writers_of,
)

KINDS = ("faq", "table")
RULES = PromotionRules(KINDS, 0.005, has_named=False)
NAMED = Generator("theirs", artifact="f" * 64)
FIRST, SECOND = "1" * 64, "2" * 64
GOOD = {kind: {FIRST: AcceptanceStats(10, 9)} for kind in KINDS}


def promoted(number: int, student: str, **more: object) -> PastRound:
    return PastRound(number, student, "PROMOTE", **more)


def held(number: int, **more: object) -> PastRound:
    return PastRound(number, "9" * 64, "HOLD", **more)


def shares(
    standing: ActiveGenerators, named: Generator | None = None
) -> dict[str, list[tuple[str, float]]]:
    return {
        kind: [(each.generator.id, each.share) for each in writers_of(kind, standing, named)]
        for kind in KINDS
    }


def test_nobody_writes_before_a_student_is_promoted():
    assert shares(active_generators_after([held(1)], RULES)) == {"faq": [], "table": []}


def test_a_promoted_student_writes_a_tenth_for_one_round_and_then_everything():
    first = promoted(1, FIRST)
    assert shares(active_generators_after([first], RULES))["faq"] == [(FIRST, 0.1)]
    after = active_generators_after([first, held(2, acceptance=GOOD)], RULES)
    assert shares(after) == {kind: [(FIRST, 1.0)] for kind in KINDS}


def test_a_student_takes_over_only_the_templates_that_it_can_do():
    rules = PromotionRules(KINDS, 0.005, has_named=True)
    acceptance = {
        "faq": {NAMED.id: AcceptanceStats(90, 80), FIRST: AcceptanceStats(10, 6)},
        "table": {NAMED.id: AcceptanceStats(90, 80), FIRST: AcceptanceStats(10, 4)},
    }
    rounds = [promoted(1, FIRST, teaches=True), held(2, acceptance=acceptance)]
    after = active_generators_after(rounds, rules)
    assert shares(after, NAMED) == {"faq": [(FIRST, 1.0)], "table": [(NAMED.id, 1.0)]}
    assert main_generator(after, NAMED, KINDS) == NAMED.artifact
    assert not is_own(KINDS, after, NAMED)
    assert after.notices[-1].endswith("is in force for faq")


def test_a_student_that_wrote_nothing_of_use_comes_into_force_for_nothing():
    acceptance = {kind: {FIRST: AcceptanceStats(10, 0)} for kind in KINDS}
    after = active_generators_after([promoted(1, FIRST), held(2, acceptance=acceptance)], RULES)
    assert (after.primary, after.canary) == ({}, "")


def test_a_named_generator_gives_way_only_to_who_teaches_as_well():
    rules = PromotionRules(KINDS, 0.005, has_named=True)
    after = active_generators_after([promoted(1, FIRST)], rules)
    assert shares(after, NAMED)["faq"] == [(NAMED.id, 1.0)]
    assert "named generator" in after.notices[0]
    after = active_generators_after([promoted(1, FIRST, teaches=True)], rules)
    assert shares(after, NAMED)["faq"] == [(NAMED.id, 0.9), (FIRST, 0.1)]


@pytest.mark.parametrize("is_canary", [True, False])
def test_a_student_goes_when_the_model_trained_with_its_text_is_worse(is_canary: bool):
    rounds = [promoted(1, FIRST), held(2, acceptance=GOOD)][: 1 if is_canary else 2]
    worse = held(len(rounds) + 1, acceptance=GOOD, worse_bpb=0.02)
    after = active_generators_after([*rounds, worse], RULES)
    assert after.students == ()
    assert "rolled back" in after.notices[-1]
    assert "0.0200" in after.notices[-1]


def test_whoever_wrote_before_comes_back():
    acceptance = {
        kind: {SECOND: AcceptanceStats(10, 9), FIRST: AcceptanceStats(90, 80)} for kind in KINDS
    }
    rounds = [
        promoted(1, FIRST), promoted(2, SECOND, acceptance=GOOD), held(3, acceptance=acceptance),
        held(4, worse_bpb=0.1),
    ]  # fmt: skip
    assert shares(active_generators_after(rounds[:3], RULES))["faq"] == [(SECOND, 1.0)]
    assert shares(active_generators_after(rounds, RULES))["faq"] == [(FIRST, 1.0)]


def test_a_little_worse_is_noise():
    rounds = [promoted(1, FIRST), held(2, acceptance=GOOD, worse_bpb=0.004)]
    assert active_generators_after(rounds, RULES).students == (FIRST,)


def test_people_can_roll_back_and_promote():
    rounds = [promoted(1, FIRST, dismissed=(FIRST,))]
    assert active_generators_after(rounds, RULES).students == ()
    assert active_generators_after([held(1, appointed=SECOND)], RULES).canary == SECOND


def test_the_share_that_students_write_is_counted_in_samples():
    acceptance = {"faq": {NAMED.id: AcceptanceStats(90, 60), FIRST: AcceptanceStats(40, 40)}}
    assert self_hosting(acceptance, NAMED.id) == 0.4
    assert self_hosting(acceptance, "") == 1.0
    assert self_hosting({}, NAMED.id) is None


@pytest.mark.parametrize("seed", range(50))
def test_whatever_happens_the_named_generator_writes_what_no_student_does(seed: int):
    draw = random.Random(seed)
    students = [str(number) * 64 for number in range(1, 9)]
    rounds = [_anything(draw, number, students) for number in range(1, 9)]
    standing = active_generators_after(rounds, PromotionRules(KINDS, 0.005, has_named=True))
    assert len(standing.students) == len(set(standing.students))
    for kind in KINDS:
        writers = writers_of(kind, standing, NAMED)
        assert sum(writer.share for writer in writers) == pytest.approx(1.0)
        assert writers[0].share >= 0.9
        if not standing.primary.get(kind):
            assert writers[0] == GeneratorShare(NAMED, writers[0].share)


def _anything(draw: random.Random, number: int, students: list[str]) -> PastRound:
    acceptance = {
        kind: {who: AcceptanceStats(10, draw.randrange(11)) for who in draw.sample(students, 3)}
        for kind in KINDS
    }
    return PastRound(
        number,
        students[number - 1],
        draw.choice(["PROMOTE", "HOLD"]),
        teaches=draw.random() < 0.7,
        worse_bpb=draw.choice([None, -0.1, 0.0, 0.1]),
        acceptance=acceptance,
        dismissed=tuple(draw.sample(students, draw.randrange(2))),
        appointed=draw.choice(["", "", students[number - 1]]),
    )


def test_the_student_that_came_last_goes_first_whichever_templates_it_writes():
    only_faq = {
        "faq": {FIRST: AcceptanceStats(90, 80), SECOND: AcceptanceStats(10, 9)},
        "table": {FIRST: AcceptanceStats(90, 80), SECOND: AcceptanceStats(10, 0)},
    }
    for kinds in (KINDS, KINDS[::-1]):
        rounds = [
            promoted(1, FIRST), promoted(2, SECOND, acceptance=GOOD), held(3, acceptance=only_faq)
        ]  # fmt: skip
        rules = PromotionRules(kinds, 0.005, has_named=False)
        assert active_generators_after(rounds, rules).newest == SECOND
        after = active_generators_after([*rounds, held(4, worse_bpb=0.1)], rules)
        assert after.students == (FIRST,)


def test_who_wrote_before_an_upgrade_goes_on():
    after = active_generators_after([promoted(1, FIRST), held(2, acceptance=None)], RULES)
    assert shares(after) == {kind: [(FIRST, 1.0)] for kind in KINDS}
