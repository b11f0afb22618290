"""Where a round of a cycle begins: the trunk, and what becomes of it."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupiterd.cluster.artifacts.retention import unneeded
from jupiterd.cluster.facts.attempt_facts import AttemptOpened
from jupiterd.cluster.facts.fact_wire import from_wire, to_wire
from jupiterd.cluster.facts.facts import CheckpointCommitted
from jupiterd.cluster.ledger.cycle_state import CycleFact, CycleState
from jupiterd.cluster.ledger.trunk import WORSE_BY_BPB, last_good_round, start_of, trunk_of
from jupiterd.ids import ArtifactId
from tests.support.cluster.building import (
    CYCLE,
    NODES,
    checkpoint,
    closed,
    judged,
    opened,
    pinned,
    round_over,
    started,
    suspended,
)

STEPS = 10
TRUNK_STEPS = 8


def state_of(*facts: CycleFact) -> CycleState:
    cycle = CycleState()
    for index, fact in enumerate(facts, 1):
        cycle.apply(fact, (1, NODES[0], "u", index))
    return cycle


def made(number: int, step: int, parent: str, tokens: int) -> CheckpointCommitted:
    return CheckpointCommitted(
        CYCLE, number, parent, ArtifactId(f"r{number}s{step}"), number, step, tokens, step, 2.5,
        is_final=step == STEPS, on_trunk=step <= TRUNK_STEPS,
    )  # fmt: skip


def trained(number: int, loaded: str = "", after: str = "") -> list[CycleFact]:
    """A round's epoch and its checkpoints at 4, 8 and 10 steps, with tokens as on the trunk."""
    before = TRUNK_STEPS * (number - 1)
    parents = [after, f"r{number}s4", f"r{number}s8"]
    attempt = AttemptOpened(
        CYCLE, number, number, NODES[:1], "torch", loaded, 0, follows=after if loaded else ""
    )
    steps = zip((4, TRUNK_STEPS, STEPS), parents, strict=True)
    return [attempt, *(made(number, step, parent, before + step) for step, parent in steps)]


def over(number: int, bpb: float = 2.5, verdict: str = "HOLD") -> list[CycleFact]:
    final = f"r{number}s{STEPS}"
    return [
        closed(number),
        replace(judged(verdict, final, number), val_bpb=bpb),
        round_over(final, number, verdict=verdict),
    ]


def rounds(*bpbs: float) -> list[CycleFact]:
    """So many rounds that are over, each on the trunk of the one before."""
    facts: list[CycleFact] = [started(rounds=9)]
    for number, bpb in enumerate(bpbs, 1):
        facts += trained(number, *before(number)) + over(number, bpb)
    return facts


def before(number: int) -> tuple[str, str]:
    """What a round has loaded, and what it hangs below."""
    if number == 1:
        return "", ""
    return f"r{number - 1}s{TRUNK_STEPS}", f"r{number - 1}s{STEPS}"


@pytest.mark.parametrize("verdict", ["PROMOTE", "HOLD", "REJECT", "ABSTAIN"])
def test_a_round_goes_on_with_the_trunk_whatever_the_gate_said_of_its_branch(verdict: str) -> None:
    cycle = state_of(started(), *trained(1), *over(1, verdict=verdict))
    assert trunk_of(cycle, 2) == start_of(cycle, 2) == "r1s8"
    assert cycle.start_of(2) == "r1s10", "its checkpoints hang below the candidate"
    assert trunk_of(cycle, 1) == ""


def test_its_checkpoints_are_on_the_line_though_they_have_fewer_tokens_than_the_branch() -> None:
    cycle = state_of(*rounds(2.5), *trained(2, "r1s8", "r1s10")[:2])
    last = cycle.last_checkpoint(2)
    assert last is not None
    candidate = cycle.checkpoint("r1s10")
    assert candidate is not None
    later = made(2, 4, "r1s10", candidate.tokens - 1)
    rival = round_over("r1s10", 1, promoted="m", verdict="PROMOTE")
    split = state_of(*rounds(2.5), rival, replace(later, attempt=2), opened(2, 2))
    assert split.last_checkpoint(2) == replace(later, attempt=2), (
        "a rival commit doesn't outweigh it"
    )


def test_a_round_that_has_begun_goes_on_as_it_began() -> None:
    begun = trained(2, "r1s8", "r1s10")[:2]
    cycle = state_of(*rounds(2.5), *begun, suspended("r1s8"))
    assert trunk_of(cycle, 2) == "r1s8"
    by_weights = [replace(begun[0], from_checkpoint="r1s10", follows=""), begun[1]]
    assert trunk_of(state_of(*rounds(2.5), *by_weights), 2) == ""


def test_without_an_end_of_the_trunk_a_round_begins_with_the_last_candidates_weights() -> None:
    alone = state_of(*rounds(2.5), suspended("r1s8"), suspended("r1s4"))
    assert (trunk_of(alone, 2), start_of(alone, 2)) == ("", "r1s10"), "nobody has it"
    old = state_of(started(), checkpoint("k1", is_final=True), round_over("k1"))
    assert (trunk_of(old, 2), start_of(old, 2)) == ("", "k1"), "an older version has trained it"


def test_a_trunk_whose_very_end_was_not_saved_is_gone_on_with_from_the_step_before() -> None:
    facts = [fact for fact in rounds(2.5) if getattr(fact, "artifact", "") != "r1s8"]
    final = next(f for f in facts if isinstance(f, CheckpointCommitted) and f.is_final)
    facts[facts.index(final)] = replace(final, parent="r1s4")
    assert trunk_of(state_of(*facts), 2) == "r1s4"


def test_a_round_that_made_the_model_worse_is_left_behind() -> None:
    worse = 2.5 + WORSE_BY_BPB + 0.001
    assert trunk_of(state_of(*rounds(2.5, worse)), 3) == "r1s8"
    assert trunk_of(state_of(*rounds(2.5, 2.5 + WORSE_BY_BPB - 0.001)), 3) == "r2s8"
    assert trunk_of(state_of(*rounds(2.5, worse, 2.4)), 4) == "r3s8"
    creeping = [2.5 + 0.015 * number for number in range(4)]
    assert last_good_round(state_of(*rounds(*creeping)), 5) == 2, "the best one is the measure"


def test_what_the_gate_could_not_measure_counts_as_good() -> None:
    assert trunk_of(state_of(*rounds(2.5, 0.0)), 3) == "r2s8"
    assert trunk_of(state_of(*rounds(0.0, 9.0)), 3) == "r2s8"


@given(st.lists(st.floats(1.0, 4.0), min_size=1, max_size=8))
def test_the_trunk_that_is_gone_on_with_is_never_much_worse_than_any_before(
    bpbs: Sequence[float],
) -> None:
    number = last_good_round(state_of(*rounds(*bpbs)), len(bpbs) + 1)
    good = [
        bpbs[last_good_round(state_of(*rounds(*bpbs[:count])), count + 1) - 1]
        for count in range(1, len(bpbs) + 1)
    ]
    assert bpbs[number - 1] <= min(good) + WORSE_BY_BPB


def test_its_end_is_kept_until_no_round_can_need_it() -> None:
    worse = 2.5 + 2 * WORSE_BY_BPB
    branch = [
        replace(made(2, 9, f"b{n}" if n else "r2s8", 16 + n), artifact=ArtifactId(f"b{n + 1}"))
        for n in range(20)
    ]
    running = [*rounds(2.5), *trained(2, *before(2))[:3], *branch]
    assert not unneeded([state_of(*running)]) & {"r1s8", "r2s8", "r1s10"}
    assert unneeded([state_of(*running)]) & {f"b{n}" for n in range(20)}
    assert "r1s8" not in unneeded([state_of(*rounds(2.5, worse, worse, worse))])
    later = unneeded([state_of(*rounds(2.5, 2.4, 2.3, 2.2))])
    assert "r1s8" in later
    assert not later & {"r3s8", "r4s8"}


@given(st.booleans(), st.booleans(), st.permutations(range(4)))
def test_of_two_groups_with_attempts_of_one_number_each_line_knows_what_it_began_with(
    is_ours_heavier: bool, is_ours_first: bool, arrival: Sequence[int]
) -> None:
    """One group had the trunk's end, the other only the candidate: both opened epoch 2."""
    ours, theirs = _begun("ours", "r1s8", 20), _begun("theirs", "r1s10", 21 - 2 * is_ours_heavier)
    groups = [ours, theirs] if is_ours_first else [theirs, ours]
    common = rounds(2.5)
    placed: list[tuple[CycleFact, int]] = [
        (fact, len(common) + 1 + number) for number, fact in enumerate([*groups[0], *groups[1]])
    ]
    cycle = state_of(*common)
    for number in arrival:
        fact, index = placed[number]
        cycle.apply(fact, (2, NODES[0], "u", index))
    last = cycle.last_checkpoint(2)
    assert last is not None
    assert last.artifact == ("ours" if is_ours_heavier else "theirs")
    assert trunk_of(cycle, 2) == ("r1s8" if is_ours_heavier else "")


def _begun(name: str, loaded: str, tokens: int) -> list[CycleFact]:
    attempt = AttemptOpened(CYCLE, 2, 2, NODES[:1], "torch", loaded, 0, follows="r1s10")
    saved = replace(made(2, 4, "r1s10", tokens), artifact=ArtifactId(name), began_with=loaded)
    return [attempt, saved]


def test_of_what_older_versions_wrote_the_attempt_tells_what_a_round_began_with() -> None:
    body = to_wire(made(2, 4, "r1s10", 12))
    del body[2]["began_with"]
    old = from_wire(*body)
    assert isinstance(old, CheckpointCommitted)
    attempt = trained(2, "r1s8", "r1s10")[0]
    assert trunk_of(state_of(*rounds(2.5), attempt, old), 2) == "r1s8"


def test_another_line_keeps_its_own_trunk() -> None:
    facts = [*rounds(2.5, 2.4, 2.3), checkpoint("x1", tokens=10, is_final=True), round_over("x1")]
    cycle = state_of(*facts, pinned("x1"))
    assert (trunk_of(cycle, 2), start_of(cycle, 2)) == ("", "x1")
    assert not unneeded([cycle]) & {"r2s8", "r3s8"}
