"""What people steered between phases, folded in whatever order it comes."""

import random

from jupiterd.cluster.facts.facts import ManifestFrozen
from jupiterd.cluster.facts.phase_facts import PhaseApproved, SettingChanged
from jupiterd.cluster.ledger.cycle_state import CycleFact, CycleState
from jupiterd.cluster.ledger.lww_registers import Order
from jupiterd.ids import ArtifactId
from tests.support.cluster.building import CYCLE, NODES, redone, started, work_done

SHARE = "mix_ratio.synthetic_share"


def order(term: int) -> Order:
    return term, NODES[0], "u", 1


def cycle_of(*facts: CycleFact) -> CycleState:
    cycle = CycleState()
    for term, fact in enumerate(facts, 1):
        cycle.apply(fact, order(term))
    return cycle


def frozen(attempt: int) -> ManifestFrozen:
    shards = (ArtifactId(str(attempt) * 64),)
    return ManifestFrozen(CYCLE, 1, "", ArtifactId("9" * 64), shards, 10, 1000, attempt)


def test_of_a_phase_that_is_redone_only_the_new_attempt_counts() -> None:
    first, again = work_done("r1/filter/0"), work_done("r1/filter/0~1", NODES[1])
    cycle = cycle_of(started(), first)
    assert cycle.completed[1, "r1/filter/0"] == first
    cycle.apply(redone(1, "filter", 1), order(7))
    assert cycle.completed == {}
    assert cycle.steering.recorded_id(1, "filter", "r1/filter/0") == "r1/filter/0~1"
    cycle.apply(again, order(8))
    cycle.apply(work_done("r1/filter/0~1", NODES[2]), order(9))
    assert {key: fact.node for key, fact in cycle.completed.items()} == {
        (1, "r1/filter/0"): NODES[1],
    }  # fmt: skip
    assert cycle.completed[1, "r1/filter/0"].item == "r1/filter/0"
    assert first in [fact for _, fact in cycle.placed()], "nothing of before is withdrawn"


def test_what_lies_before_a_phase_that_is_redone_stays() -> None:
    cycle = cycle_of(redone(2, "filter", 1), work_done("r2/filter/0", round_number=2))
    steering = cycle.steering
    told = {phase: steering.redo_of(2, phase) for phase in ("collect", "filter", "pack", "gate")}
    assert told == {"collect": 0, "filter": 1, "pack": 1, "gate": 1}
    assert steering.redo_of(1, "filter") == 0
    assert steering.next_redo(2) == 2
    assert steering.next_redo(1) == 1


def test_a_round_that_is_packed_anew_has_another_manifest() -> None:
    cycle = cycle_of(started(), frozen(0))
    assert cycle.manifests == {1: frozen(0)}
    cycle.apply(redone(1, "pack", 1), order(3))
    assert cycle.manifests == {}
    cycle.apply(frozen(1), order(4))
    assert cycle.manifests == {1: frozen(1)}


def test_what_was_let_pass_is_asked_again_once_it_is_redone() -> None:
    cycle = cycle_of(PhaseApproved(CYCLE, 1, "filter", 0))
    assert cycle.steering.is_approved(1, "filter")
    assert not cycle.steering.is_approved(2, "filter")
    cycle.apply(redone(1, "filter", 1), order(2))
    assert not cycle.steering.is_approved(1, "filter")
    cycle.apply(PhaseApproved(CYCLE, 1, "filter", 1), order(3))
    assert cycle.steering.is_approved(1, "filter")


def test_a_changed_setting_counts_from_its_round_on() -> None:
    cycle = cycle_of(
        SettingChanged(CYCLE, SHARE, "0.1", 3, 1),
        SettingChanged(CYCLE, SHARE, "0.3", 1, 2),
        SettingChanged(CYCLE, SHARE, "0.2", 1, 1),
    )
    found = [cycle.steering.settings(number).get(SHARE) for number in range(5)]
    assert found == [None, "0.3", "0.3", "0.1", "0.1"]
    assert cycle.steering.setting_edit(SHARE, 1) == 2
    assert cycle.steering.setting_edit(SHARE, 2) == 0


def test_groups_apart_that_both_redo_a_phase_come_to_one_attempt(seed: int) -> None:
    """Each has the same history before; whatever order their facts come in, all fold alike."""
    chance = random.Random(seed)
    facts: list[tuple[CycleFact, Order]] = [
        (started(), order(1)),
        (work_done("r1/filter/0"), order(2)),
        (redone(1, "filter", 1), (5, NODES[0], "u", 1)),
        (work_done("r1/filter/0~1", NODES[0]), (5, NODES[0], "u", 2)),
        (redone(1, "filter", 1), (5, NODES[1], "v", 1)),
        (work_done("r1/filter/0~1", NODES[1]), (5, NODES[1], "v", 2)),
        (PhaseApproved(CYCLE, 1, "filter", 1), (5, NODES[1], "v", 3)),
    ]
    found: list[CycleState] = []
    for _ in range(20):
        cycle = CycleState()
        for fact, at in chance.sample(facts, len(facts)):
            cycle.apply(fact, at)
            cycle.completed  # noqa: B018 - what it keeps of that mustn't outlive the next fact
        found.append(cycle)
    assert len({repr(cycle.digest()) for cycle in found}) == 1
    assert {cycle.completed[1, "r1/filter/0"].node for cycle in found} == {NODES[0]}
    assert all(cycle.steering.is_approved(1, "filter") for cycle in found)
