"""A data set that is being made is stopped; one that nobody wants any more leaves the list."""

from dataclasses import replace
from pathlib import Path

import pytest

from jupiterd.cluster.facts.facts import CycleFailed
from jupiterd.daemon.catalog.dataset_catalog import data_sets, find_data
from jupiterd.daemon.commands.data_commands import prepare_data
from jupiterd.daemon.commands.dataset_removal import remove_data, stop_data
from jupiterd.daemon.commands.dry_run import tried
from jupiterd.daemon.commands.term_adapters import with_term
from jupiterd.daemon.commands.train_commands import stop_training
from jupiterd.daemon.leader.term_services import TermServices
from jupiterd.errors import ConflictError, NotFoundError
from jupiterd.ids import CycleId
from jupiterd.protocol.commands.data_commands import PrepareData, RemoveData, StopData
from jupiterd.protocol.commands.train_commands import StopTraining
from tests.support.cluster.building import CYCLE, data_asked, training
from tests.unit.daemon.commands.test_train_commands import FOLDER, MADE, leads

TRAINED = CycleId("7" * 16)
FAILED = CycleFailed(CYCLE, "work-failed", "the folder is gone", "")


def names(leading: TermServices) -> list[str]:
    return [asked.name for _, asked in data_sets(leading.term.state)]


async def test_the_making_of_a_data_set_is_stopped_and_its_name_is_free(tmp_path: Path) -> None:
    async with leads(tmp_path, data_asked()) as leading:
        with pytest.raises(NotFoundError, match="no data set is called poems"):
            await stop_data(leading.term, StopData.read({"data": "poems"}))
        with pytest.raises(ConflictError, match="is being made"):
            await remove_data(leading.term, RemoveData.read({"data": "letters"}))
        before = leading.term.replica.ledger.head()
        await tried(with_term(stop_data), leading, StopData.read({"data": "letters"}))
        assert leading.term.replica.ledger.head() == before
        assert (await stop_data(leading.term, StopData()))["data"] == CYCLE
        assert leading.term.cycle(CYCLE).has_nothing_to_do
        with pytest.raises(NotFoundError, match="no data set is being made"):
            await stop_data(leading.term, StopData())
        with pytest.raises(ConflictError, match="was stopped before it was made"):
            find_data(leading.term.state, "letters")
        assert (await prepare_data(leading.term, PrepareData.read(FOLDER)))["name"] == "letters"


async def test_a_data_set_that_failed_leaves_the_list(tmp_path: Path) -> None:
    async with leads(tmp_path, data_asked(), FAILED) as leading:
        before = leading.term.replica.ledger.head()
        await tried(with_term(remove_data), leading, RemoveData.read({"data": "letters"}))
        assert (names(leading), leading.term.replica.ledger.head()) == (["letters"], before)
        assert (await remove_data(leading.term, RemoveData.read({"data": CYCLE[:8]})))[
            "name"
        ] == "letters"
        assert names(leading) == []
        with pytest.raises(NotFoundError, match="no data set is called letters"):
            await remove_data(leading.term, RemoveData.read({"data": "letters"}))


async def test_a_data_set_stays_as_long_as_a_training_needs_it(tmp_path: Path) -> None:
    of_another = replace(training(), cycle=TRAINED)
    async with leads(tmp_path, data_asked(), MADE, of_another) as leading:
        with pytest.raises(ConflictError, match="training letters needs the data set letters"):
            await remove_data(leading.term, RemoveData.read({"data": "letters"}))
        await stop_training(leading.term, StopTraining())
        await remove_data(leading.term, RemoveData.read({"data": "letters"}))
        assert names(leading) == []
        assert (await prepare_data(leading.term, PrepareData.read(FOLDER)))["name"] == "letters"


async def test_what_a_stopped_training_made_for_itself_stays_for_it_may_go_on(
    tmp_path: Path,
) -> None:
    async with leads(tmp_path, data_asked(), MADE, training()) as leading:
        await stop_training(leading.term, StopTraining())
        with pytest.raises(ConflictError, match="made it for itself, and may go on"):
            await remove_data(leading.term, RemoveData.read({"data": "letters"}))
        assert names(leading) == ["letters"]


async def test_what_is_made_already_is_told_as_such_where_another_is_to_be_stopped(
    tmp_path: Path,
) -> None:
    other = replace(data_asked(), cycle=TRAINED, name="pages")
    async with leads(tmp_path, data_asked(), MADE, other) as leading:
        with pytest.raises(NotFoundError, match=r"letters .* isn't being made"):
            await stop_data(leading.term, StopData.read({"data": "letters"}))


async def test_what_a_training_makes_for_itself_is_stopped_with_it(tmp_path: Path) -> None:
    async with leads(tmp_path, data_asked(), training()) as leading:
        with pytest.raises(ConflictError, match="makes it for itself") as caught:
            await stop_data(leading.term, StopData())
        assert caught.value.hint == "jupiterctl train stop letters ends both"
