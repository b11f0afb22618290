"""A node never obeys a leader or a gang that is over, not even after a restart."""

from collections.abc import Generator
from pathlib import Path

import pytest

from jupiterd.daemon.membership.fencing import Fencing
from jupiterd.errors import DiskFullError, RefusedError
from jupiterd.ids import NodeId
from jupiterd.store.ledger_file import LedgerFile

LEADER, OTHER = NodeId("a" * 32), NodeId("b" * 32)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


@pytest.fixture
def file(path: Path) -> Generator[LedgerFile]:
    file = LedgerFile(path)
    yield file
    file.close()


async def test_higher_terms_and_attempts_are_obeyed(file: LedgerFile) -> None:
    obedience = Fencing(file)
    for term, attempt in ((1, 1), (1, 1), (1, 2), (2, 2), (2, 5), (7, 5)):
        await obedience.check(LEADER, term, attempt)


@pytest.mark.parametrize(("term", "attempt"), [(2, 9), (3, 3), (0, 0), (2, 0)])
async def test_a_lower_term_or_attempt_is_refused(
    file: LedgerFile, term: int, attempt: int
) -> None:
    obedience = Fencing(file)
    await obedience.check(LEADER, 3, 4)
    with pytest.raises(RefusedError, match="after term 3, attempt 4"):
        await obedience.check(LEADER, term, attempt)


async def test_work_without_a_gang_is_done_whatever_attempt_is_on(file: LedgerFile) -> None:
    obedience = Fencing(file)
    await obedience.check(LEADER, 3, 4)
    await obedience.check(LEADER, 3, 0)
    with pytest.raises(RefusedError):
        await obedience.check(LEADER, 3, 3)


async def test_a_refused_order_changes_nothing(file: LedgerFile) -> None:
    obedience = Fencing(file)
    await obedience.check(LEADER, 3, 4)
    with pytest.raises(RefusedError):
        await obedience.check(LEADER, 2, 100)
    await obedience.check(LEADER, 3, 4)


async def test_obedience_outlives_the_daemon(path: Path) -> None:
    before = LedgerFile(path)
    await Fencing(before).check(LEADER, 3, 4)
    before.close()
    after = LedgerFile(path)
    obedience = Fencing(after)
    with pytest.raises(RefusedError):
        await obedience.check(LEADER, 3, 3)
    with pytest.raises(RefusedError):
        await obedience.check(LEADER, 2, 9)
    await obedience.check(LEADER, 3, 4)
    after.close()


async def test_another_leader_of_the_same_term_is_refused_after_a_restart_too(path: Path) -> None:
    before = LedgerFile(path)
    await Fencing(before).check(LEADER, 3, 4)
    before.close()
    after = LedgerFile(path)
    with pytest.raises(RefusedError):
        await Fencing(after).check(OTHER, 3, 5)
    after.close()


async def test_a_leader_that_is_refused_is_asked_for_a_term_that_is_obeyed(
    file: LedgerFile,
) -> None:
    asked = list[tuple[NodeId, int]]()
    obedience = Fencing(file, lambda leader, term: asked.append((leader, term)))
    await obedience.check(LEADER, 3, 4)
    with pytest.raises(RefusedError):  # of a gang that is over, in a term that is obeyed
        await obedience.check(LEADER, 3, 3)
    assert asked == []
    for term in (2, 3):
        with pytest.raises(RefusedError):
            await obedience.check(OTHER, term, 4)
    assert asked == [(OTHER, 4), (OTHER, 4)]
    await obedience.check(OTHER, 4, 4)


async def test_what_was_written_without_a_leader_still_counts(file: LedgerFile) -> None:
    file.set("obeyed", "3/4/")
    obedience = Fencing(file)
    with pytest.raises(RefusedError):
        await obedience.check(LEADER, 2, 0)
    await obedience.check(LEADER, 3, 4)


async def test_what_is_obeyed_is_on_disk_first(path: Path, file: LedgerFile) -> None:
    await Fencing(file).check(LEADER, 12, 34)
    other = LedgerFile(path)
    assert other.get("obeyed") == f"12/34/{LEADER}"
    other.close()


async def test_an_order_that_finds_no_room_is_not_obeyed_until_it_does(
    path: Path, file: LedgerFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_room(key: str, value: str) -> None:
        raise DiskFullError(f"no room for {key} {value}")

    obedience = Fencing(file)
    with monkeypatch.context() as full:
        full.setattr(file, "set", no_room)
        for _ in range(2):
            with pytest.raises(DiskFullError):
                await obedience.check(LEADER, 3, 4)
    await obedience.check(LEADER, 3, 4)
    other = LedgerFile(path)
    assert other.get("obeyed") == f"3/4/{LEADER}"
    other.close()
