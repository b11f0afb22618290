"""What is recorded of an answer at the end of a phase, and what is refused."""

from dataclasses import replace
from typing import Any

import pytest

from jupiterd.cluster.facts.facts import CycleStarted, CycleStateSet, Fact
from jupiterd.cluster.facts.phase_facts import PhaseApproved, PhaseRedone, SettingChanged
from jupiterd.cluster.ledger.cycle_state import CycleFact, CycleState
from jupiterd.cycle.base.work_item import Phase
from jupiterd.daemon.catalog.pause_facts import is_interactive, redoable, waiting_after
from jupiterd.daemon.commands.review_answers import answers
from jupiterd.errors import ConflictError, InvalidDomainError, UsageError
from jupiterd.locations import config_folder
from jupiterd.protocol.commands.cycle_commands import ResumeCycle
from tests.support.cluster.building import (
    CYCLE,
    NODES,
    checkpoint,
    opened,
    redone,
    round_over,
    started,
    work_done,
)

SHARE = "mix_ratio.synthetic_share"
HOT = "generation.temperature"
BEHIND_FILTER = ("filter", "pack", "train", "evaluate", "gate")


def begun(rounds: int = 2, *, interactive: bool = True) -> CycleStarted:
    text = (config_folder() / "domains" / "python.yaml").read_text()
    return replace(started(rounds), domain_yaml=text, interactive=interactive)


def done(phase: str, round_number: int = 1) -> CycleFact:
    return replace(work_done(f"r{round_number}/{phase}/0", round_number=round_number), phase=phase)


FILTERED = (done("collect"), done("filter"))
TRAINED = (*FILTERED, done("pack"), opened(1), checkpoint("k1", is_final=True))
JUDGED = (*TRAINED, done("evaluate"), done("gate"))


def state_of(*facts: CycleFact) -> CycleState:
    cycle = CycleState()
    for term, fact in enumerate(facts, 1):
        cycle.apply(fact, (term, NODES[0], "u", 1))
    return cycle


def answer(*facts: CycleFact, rounds: int = 2, **arguments: Any) -> list[Fact]:
    start = begun(rounds)
    return answers(state_of(start, *facts), start, ResumeCycle(**arguments))


def test_to_go_on_is_recorded_for_the_phase_that_ended_last() -> None:
    asked = CycleStateSet(CYCLE, "paused", waiting_after((1, Phase.FILTER)), 1)
    assert answer(*FILTERED, asked) == [PhaseApproved(CYCLE, 1, "filter", 0)]
    anew = redone(1, "filter", 1), replace(done("filter"), item="r1/filter/0~1")
    assert answer(*FILTERED, *anew, asked) == [PhaseApproved(CYCLE, 1, "filter", 1)]
    by_hand = CycleStateSet(CYCLE, "paused", "paused by a person", 1)
    assert answer(*FILTERED, by_hand) == []  # the phase may not be over
    assert answer() == []


def test_a_cycle_that_asks_nothing_records_no_answer() -> None:
    start = begun(interactive=False)
    assert answers(state_of(start, *FILTERED), start, ResumeCycle()) == []


def test_to_do_the_last_phase_again_is_recorded_with_those_behind_it() -> None:
    assert answer(*FILTERED, redo="last") == [PhaseRedone(CYCLE, 1, "filter", BEHIND_FILTER, 1)]
    (fact,) = answer(*FILTERED, redo="collect")
    assert isinstance(fact, PhaseRedone)
    assert (fact.phase, fact.phases) == ("collect", tuple(map(str, Phase)))
    (fact,) = answer(*FILTERED, redone(1, "pack", 1), redo="last")
    assert isinstance(fact, PhaseRedone)
    assert fact.redo == 2


def test_a_setting_counts_from_this_round_where_its_phase_has_not_begun() -> None:
    assert answer(*FILTERED, settings={SHARE: "0.2"})[0] == SettingChanged(
        CYCLE, SHARE, "0.2", 1, 1
    )
    assert answer(*FILTERED, settings={HOT: "0.5"})[0] == SettingChanged(CYCLE, HOT, "0.5", 2, 1)
    packed = (*FILTERED, done("pack"))
    assert answer(*packed, settings={SHARE: "0.2"})[0] == SettingChanged(CYCLE, SHARE, "0.2", 2, 1)


def test_a_setting_of_what_is_redone_counts_at_once() -> None:
    changed, again = answer(*FILTERED, done("pack"), settings={SHARE: "0.2"}, redo="pack")
    assert changed == SettingChanged(CYCLE, SHARE, "0.2", 1, 1)
    assert isinstance(again, PhaseRedone)


def test_from_then_on_nothing_is_asked_where_people_want_that() -> None:
    start, facts = begun(), [*answer(*FILTERED, auto=True)]
    cycle = state_of(start, *FILTERED)
    assert is_interactive(cycle, start)
    for fact in facts:
        assert isinstance(fact, SettingChanged | PhaseApproved)
        cycle.apply(fact, (9, NODES[0], "u", 1))
    assert not is_interactive(cycle, start)


@pytest.mark.parametrize(
    ("facts", "arguments", "kind", "why"),
    [
        (FILTERED, {"redo": "train"}, UsageError, "train isn't done again: the same data"),
        (FILTERED, {"redo": "rest"}, UsageError, "rest isn't done again"),
        (FILTERED, {"redo": "gate"}, ConflictError, "gate of round 1 has no results yet"),
        (JUDGED, {"redo": "filter"}, ConflictError, "filter of round 1 was trained on"),
        ((*JUDGED, round_over("k1")), {"redo": "gate"}, ConflictError, "nothing of round 2"),
        (FILTERED, {"redo": "pack"}, ConflictError, "pack of round 1 has no results yet"),
        ((), {"redo": "last"}, ConflictError, "nothing of round 1 can be done again"),
        ((*FILTERED, opened(1)), {"redo": "last"}, ConflictError, "or is trained on"),
        (FILTERED, {"settings": {"gate.alpha": "0.1"}}, UsageError, "gate.alpha can't be changed"),
        (FILTERED, {"settings": {SHARE: "2"}}, InvalidDomainError, "synthetic_share: expected"),
        (FILTERED, {"settings": {HOT: "0.5"}, "rounds": 1}, ConflictError, "round 1, the last"),
    ],
)
def test_what_comes_too_late_or_makes_no_sense_is_refused(
    facts: tuple[CycleFact, ...], arguments: dict[str, Any], kind: type[Exception], why: str
) -> None:
    with pytest.raises(kind, match=why):
        answer(*facts, **arguments)


def test_what_may_be_redone_is_what_nothing_was_trained_on() -> None:
    assert redoable(state_of(begun(), *FILTERED)) == (Phase.COLLECT, Phase.FILTER)
    assert redoable(state_of(begun(), *TRAINED)) == ()
    second = (*TRAINED, round_over("k1"), done("collect", 2))
    assert redoable(state_of(begun(), *second)) == (Phase.COLLECT,)


def test_what_judges_may_be_redone_until_the_round_is_closed() -> None:
    assert redoable(state_of(begun(), *TRAINED, done("evaluate"))) == (Phase.EVALUATE,)
    assert redoable(state_of(begun(), *JUDGED)) == (Phase.EVALUATE, Phase.GATE)
    assert answer(*JUDGED, redo="last") == [PhaseRedone(CYCLE, 1, "gate", ("gate",), 1)]
    assert answer(*JUDGED, redo="evaluate") == [
        PhaseRedone(CYCLE, 1, "evaluate", ("evaluate", "gate"), 1)
    ]
    assert redoable(state_of(begun(), *JUDGED, round_over("k1"))) == ()
