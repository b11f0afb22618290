"""A long cycle's document costs little: it is made again and again in the daemon's loop."""

import pytest

from jupiterd.cluster.facts.facts import CheckpointCommitted, WorkCompleted
from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.daemon.catalog import phase_rows as module
from jupiterd.daemon.catalog.phase_rows import Settled, phase_rows
from jupiterd.daemon.queries.cycle.cycle_document import cycle_document
from jupiterd.ids import ArtifactId
from tests.support.cluster.building import CYCLE, NODES, round_over, started
from tests.unit.daemon.queries.cycle.test_cycle_document import folded

PHASES = 7


def cycle_of(rounds: int) -> CycleState:
    """Return a cycle that has gone through so many rounds."""
    facts = []
    for number in range(1, rounds + 1):
        parent, made = (ArtifactId(f"{n:064x}") if n else "" for n in (number - 1, number))
        for phase in ("collect", "filter", "pack"):
            item = f"r{number}/{phase}/0"
            facts.append(WorkCompleted(CYCLE, number, phase, item, NODES[0], {}, {}, {}))
        last = CheckpointCommitted(
            CYCLE, number, parent, ArtifactId(made), number, 10, 100, 5, 3.5, is_final=True
        )
        facts += [last, round_over(made, number)]
    return folded(started(rounds + 1), *facts)


def test_the_facts_are_gone_through_as_often_for_many_rounds_as_for_few(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks = 0
    completed = CycleState.completed.fget
    assert completed is not None

    def counting(cycle: CycleState) -> object:
        nonlocal looks
        looks += 1
        return completed(cycle)

    monkeypatch.setattr(CycleState, "completed", property(counting))
    found: list[int] = []
    for rounds in (2, 12):
        looks = 0
        shown = cycle_document(cycle_of(rounds), None, model=None, has_leader=True)
        assert len(shown["phases"]) == PHASES * (rounds + 1)
        found.append(looks)
    assert found[0] == found[1] < 2 * PHASES


def test_rows_of_rounds_that_are_over_are_found_once(monkeypatch: pytest.MonkeyPatch) -> None:
    cycle, settled = cycle_of(3), Settled()
    first = phase_rows(cycle, None, (), settled)
    made, again = module._phase, 0

    def counting(*of: object) -> object:
        nonlocal again
        again += 1
        return made(*of)

    monkeypatch.setattr(module, "_phase", counting)
    assert phase_rows(cycle, None, (), settled) == first == phase_rows(cycle, None, ())
    assert again == PHASES + 4 * PHASES, "of the one that runs, and all where nothing was kept"


def test_what_is_held_out_and_what_it_would_show_is_told_once_text_was_parted() -> None:
    held = "15 documents of 6 clusters for the gate, 5 for development"
    facts = [
        WorkCompleted(CYCLE, 1, "collect", "r1/collect/0", NODES[0], {}, {"documents": 60}, {}),
        WorkCompleted(
            CYCLE, 1, "collect", "r1/collect/split", NODES[0], {},
            {"train_documents": 40, "holdout_documents": 20}, {"holdout": held},
        ),
    ]  # fmt: skip
    shown = cycle_document(folded(started(), *facts), None, model=None, has_leader=True)
    row = next(each for each in shown["phases"] if each["phase"] == "collect")
    assert row["detail"].endswith(held)
    assert (row["in"], row["out"]) == (60, 60)
