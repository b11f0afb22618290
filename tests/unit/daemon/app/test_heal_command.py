"""A cluster that a huge term has ended is healed on each machine, and goes on."""

from pathlib import Path

import pytest

from jupiterd.cluster.facts.facts import RolePinned
from jupiterd.cluster.ledger import entry as entry_form
from jupiterd.cluster.ledger.snapshot import compose_snapshot, seal_snapshot
from jupiterd.daemon.app.heal_command import heal_state
from jupiterd.daemon.runtime.state_dir import StateDir
from jupiterd.errors import CorruptLedgerError
from jupiterd.net.identity import Identity
from jupiterd.store.ledger_file import LedgerFile
from tests.support.daemon.two_nodes import found, serving

HIT = [2**53, 2**63 - 1, 2**40]
"""What older programs believed: out of bounds, or far above all that elections come to."""


async def hit(folder: Path, term: int, *, is_summed_up: bool = False) -> None:
    """Let a state folder be as an older program leaves it whose cluster was hit."""
    async with serving(folder, "one") as one:
        await found(one)
        await one.replica.append(7, [RolePinned(one.identity.node_id, "trainer", 1)])
        if is_summed_up:
            tips = one.replica.ledger.last()
            writer = next(iter(tips))
            node, _, ledger = writer.partition("/")
            lie = (term, node, ledger, 2), RolePinned(one.identity.node_id, "idle", 99)
            facts = [*one.replica.state.placed(), lie]
            body = compose_snapshot(one.replica.cluster, one.identity.node_id, tips, facts)
            one.file.compact(seal_snapshot(body, one.identity.sign(body)), [], [])
        else:
            one.file.append([entry_beyond(one.identity, one.replica.cluster, term)])
        one.file.set("term", str(term))
        one.file.set("obeyed", f"{term}/3/{'a' * 32}")


def entry_beyond(identity: Identity, cluster: str, term: int) -> bytes:
    told = [["WindowSet", 1, {"is_open": False, "edit": 5}]]
    body = entry_form._pack([cluster, term, identity.node_id, "b" * 16, 1, "", told])
    return entry_form.seal(body, identity.sign(body))


def healed(folder: Path, wanted: int | None = None) -> list[str]:
    state_dir = StateDir.open(folder / "one")
    try:
        return heal_state(state_dir, wanted)
    finally:
        state_dir.close()


@pytest.mark.parametrize("term", HIT)
@pytest.mark.parametrize("is_summed_up", [False, True])
async def test_a_hit_folder_opens_again_with_what_was_there_before(
    tmp_path: Path, term: int, is_summed_up: bool
) -> None:
    await hit(tmp_path, term, is_summed_up=is_summed_up)
    lines = healed(tmp_path)
    assert lines[0] == f"the highest term is 7 now; it was {term}"
    assert "left out: 1" in lines[1]
    assert "on every machine" in lines[-1]
    async with serving(tmp_path, "one") as one:
        node = one.identity.node_id
        assert one.heartbeats.election.term == 7
        assert one.replica.state.pins[node].role == "trainer"
        assert one.replica.state.window_edit == 0
        await one.order_executor._fencing.check(node, 8, 1)
        await one.replica.append(8, [RolePinned(node, "idle", 2)])
    assert healed(tmp_path) == ["nothing to heal: no term lies far above the highest, 8"]


async def test_a_daemon_says_what_heals_it(tmp_path: Path) -> None:
    await hit(tmp_path, 2**53)
    with pytest.raises(ExceptionGroup) as raised:
        async with serving(tmp_path, "one"):
            pass
    (error,) = raised.value.exceptions
    assert isinstance(error, CorruptLedgerError)
    assert "run: jupiterd heal" in error.hint


async def test_a_machine_that_was_away_is_told_the_term_by_people(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        await found(one)
    assert healed(tmp_path, 5_000_000)[0] == "the highest term is 5000000 now; it was 0"
    file = LedgerFile(tmp_path / "one" / "ledger.db")
    assert (file.get("term"), len(file.load())) == ("5000000", 1)
    file.close()
