"""What people are shown of outer rounds."""

import pytest

from jupiterd.cluster.facts.facts import CycleFailed
from jupiterd.cycle.base.work_item import Phase
from jupiterd.cycle.islands.outer_round import Closing
from jupiterd.daemon.islands.outer_progress import OuterProgress, summary
from jupiterd.daemon.islands.outer_round_collection import OuterRoundCollection
from tests.support.cluster.building import CYCLE
from tests.support.daemon.two_islands import ONE, OTHER, STEP, B, TwoIslands


@pytest.mark.parametrize(
    ("closing", "says"),
    [
        (Closing(("a", "b"), (1, 1)), "outer step 7: 2 islands"),
        (Closing(("a",), (1,)), "outer step 7: one island"),
        (Closing(("a", "b"), (1, 1), (), ("c", "d")), "2 of 4 islands, 2 are missing"),
        (Closing(("a",), (1,), ("b",), ("c",)), "1 of 3 islands, one is missing, one is left out"),
        (Closing(("a",), (1,), adrift=("b", "c")), "1 of 3 islands, 2 are adrift"),
    ],
)
def test_people_are_told_who_counted(closing: Closing, says: str) -> None:
    assert summary(7, closing).endswith(says)


def states(two: TwoIslands) -> list[str]:
    """What is shown of each island."""
    run = next(plain for plain in two.board.to_plain(0.0) if plain["cycle"] == CYCLE)
    return [island["state"] for island in run["outer"]["islands"]]


async def test_what_each_island_does_is_shown_in_a_word() -> None:
    two = TwoIslands()
    two.board.begin(CYCLE, 1, Phase.TRAIN, 0.0)
    progress = OuterProgress(two.board, two.roster, two.pseudo_gradients, two.of)
    collection = OuterRoundCollection(
        two.services.reach, two.pseudo_gradients, "after", (ONE, OTHER), is_first=False
    )

    def gathering() -> list[str]:
        progress.gathering(STEP, STEP, collection)
        return states(two)

    assert gathering() == ["starting", "starting"]
    two.train(ONE, number=0)
    two.leave(B)
    assert gathering() == ["training", "away"]
    await two.term.record(CycleFailed(OTHER, "disk-full", "no room", ""))
    assert gathering() == ["training", "failed"]
    progress.finishing(STEP)
    assert states(two) == ["training", "training"]


def test_an_outer_step_that_was_taken_is_explained() -> None:
    two = TwoIslands()
    two.board.begin(CYCLE, 1, Phase.TRAIN, 0.0)
    progress = OuterProgress(two.board, two.roster, two.pseudo_gradients, two.of)
    progress.stepped(7, Closing(("a",), (1,), adrift=("b",)))
    assert two.board.to_plain(0.0)[0]["detail"] == "outer step 7: 1 of 2 islands, one is adrift"
