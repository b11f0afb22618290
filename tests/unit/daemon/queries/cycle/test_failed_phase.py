"""Which phase of a round is shown as failed, where its cycle has failed."""

from dataclasses import replace

import pytest

from jupiterd.cluster.ledger.cycle_state import CycleFact
from jupiterd.ids import ArtifactId
from tests.support.cluster.building import started
from tests.unit.daemon.queries.cycle.test_cycle_document import FAILED, checkpoint, document, work

READ = work("collect", counts={"documents": 40.0})
SPLIT = replace(READ, item="r1/collect/split")
FILTERED = replace(work("filter"), outputs={"kept": ArtifactId("e" * 64)})
ANSWERED = work("generate")


def states(*facts: CycleFact) -> dict[str, str]:
    rows = document(started(), *facts)["phases"]
    return {row["phase"]: row["state"] for row in rows if row["state"] != "waiting"}


@pytest.mark.parametrize(
    ("facts", "failed"),
    [
        ((), "collect"),
        ((READ,), "collect"),
        ((READ, SPLIT), "filter"),
        ((READ, SPLIT, ANSWERED), "generate"),
        ((READ, SPLIT, work("filter")), "filter"),
        ((READ, SPLIT, FILTERED), "pack"),
        ((READ, SPLIT, FILTERED, work("pack")), "train"),
        ((READ, SPLIT, FILTERED, work("pack"), checkpoint("k2", 9, final=True)), "evaluate"),
    ],
)
def test_the_first_phase_that_is_not_whole_is_the_one_that_failed(
    facts: tuple[CycleFact, ...], failed: str
) -> None:
    found = states(*facts, FAILED)
    assert [phase for phase, state in found.items() if state == "failed"] == [failed]
    assert "failed" not in states(*facts).values()


def test_a_round_without_a_generator_fails_in_no_phase_that_it_passes_over() -> None:
    found = states(READ, SPLIT, FAILED)
    assert found == {"collect": "done", "generate": "skipped", "filter": "failed"}


def test_text_that_an_older_build_has_parted_as_it_read_it_is_whole() -> None:
    parted = replace(READ, outputs={"train": ArtifactId("f" * 64)})
    assert states(parted, FAILED)["collect"] == "done"


def test_a_training_that_failed_says_how_far_it_was() -> None:
    facts = (READ, SPLIT, FILTERED, work("pack"), checkpoint("k1", 9))
    (row,) = (
        row for row in document(started(), *facts, FAILED)["phases"] if row["phase"] == "train"
    )
    assert (row["state"], row["done"], row["unit"]) == ("failed", 9, "steps")
