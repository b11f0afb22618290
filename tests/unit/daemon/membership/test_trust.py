"""Commands of members that walked in through the open door, over real TLS."""

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jupiterd.cluster.facts.facts import (
    WALKED_IN,
    ClusterFounded,
    NodeAdmitted,
    NodeRemoved,
    PairingWindowSet,
)
from jupiterd.cluster.membership.call_rights import OF_TRUSTED_MEMBERS
from jupiterd.daemon.app.node import Node
from jupiterd.daemon.membership import trust
from jupiterd.errors import CorruptLedgerError, NotTrustedError
from jupiterd.ids import NodeId
from jupiterd.rpc import script_pb2
from tests.support.daemon.two_nodes import (
    TIMEOUT_S,
    admission_of,
    lead,
    link,
    serving,
    take_for_alive,
    until,
    whole_ledger,
)
from tests.unit.daemon.api.test_peer_service import DECISIONS, channels, join_request


async def with_guest(founder: Node, guest: Node, *more: PairingWindowSet) -> None:
    """Let one found a cluster, and another walk in."""
    own = admission_of(founder)
    identity = guest.identity
    walked_in = NodeAdmitted(identity.node_id, "guest", identity.certificate_pem, WALKED_IN)
    await founder.replica.append(1, [ClusterFounded("home"), own, walked_in, *more])
    await guest.replica.move_to(whole_ledger(founder.replica))
    for one, other in ((founder, guest), (guest, founder)):
        await link(one, other)
        take_for_alive(one, other)


@pytest.mark.parametrize("verb", OF_TRUSTED_MEMBERS)
async def test_who_walked_in_is_refused_where_it_asks_and_where_that_is_done(
    tmp_path: Path, verb: str
) -> None:
    async with serving(tmp_path, "founder") as founder, serving(tmp_path, "guest") as guest:
        await with_guest(founder, guest)
        await lead(founder)
        for carried_out in (
            guest.commands.execute(verb, {}),
            founder.commands.execute_here(verb, {}, guest.identity.node_id),
            founder.commands.execute_here(
                "dry_run", {"verb": verb, "arguments": {}}, guest.identity.node_id
            ),
        ):
            with pytest.raises(NotTrustedError, match="guest walked in") as refused:
                await carried_out
            assert refused.value.hint.endswith("run on founder: jupiterctl node trust guest")


async def test_it_is_trusted_once_somebody_has_said_yes_on_another_member(tmp_path: Path) -> None:
    async with serving(tmp_path, "founder") as founder, serving(tmp_path, "guest") as guest:
        await with_guest(founder, guest)
        await lead(founder)
        with pytest.raises(NotTrustedError):
            await guest.commands.execute("node.trust", {"node": "guest"})
        codes = [line.code for line in _health(founder)]
        assert "node-walked-in" in codes
        await founder.commands.execute("node.trust", {"node": "guest"})
        own = guest.identity.node_id
        assert own in founder.replica.state.roster.trusted
        assert "node-walked-in" not in [line.code for line in _health(founder)]
        done = await founder.commands.execute_here("cluster.open", {}, own)
        assert done["open"]


async def test_what_it_writes_into_the_ledger_itself_removes_nobody(tmp_path: Path) -> None:
    async with serving(tmp_path, "founder") as founder, serving(tmp_path, "guest") as guest:
        await with_guest(founder, guest)
        own = founder.identity.node_id
        named = guest.replica.state.roster.admissions_of(own)
        await guest.replica.append(7, [NodeRemoved(own, named, {}), admission_of(guest)])
        await founder.anti_entropy.unite(frozenset({guest.identity.node_id}))
        assert len(founder.replica.ledger) == 2, "the entry has come"
        for node in (founder, guest):
            assert own in node.replica.state.members
            assert node.replica.state.roster.trusted == {own}


async def test_it_brings_no_scripts(tmp_path: Path) -> None:
    async with (
        serving(tmp_path, "founder", allow_scripts=True) as founder,
        serving(tmp_path, "guest") as guest,
    ):
        await with_guest(founder, guest)
        way = channels(guest, founder)
        with pytest.raises(Exception, match="bring scripts"):
            await way.scripts.Prepare(script_pb2.PrepareScriptRequest(), timeout=TIMEOUT_S)
        await way.close()


async def test_as_a_leader_it_lets_others_walk_in_until_the_door_was_shut(tmp_path: Path) -> None:
    async with (
        serving(tmp_path, "founder") as founder,
        serving(tmp_path, "guest") as guest,
        serving(tmp_path, "new") as new,
    ):
        await with_guest(founder, guest)
        take_for_alive(guest)
        await lead_later(guest)
        way = channels(new, guest)
        reply = await way.control.Join(join_request(new), timeout=TIMEOUT_S)
        assert (reply.decision, reply.reason) == (DECISIONS.ADMITTED, WALKED_IN)
        assert new.identity.node_id not in guest.replica.state.roster.trusted
        await way.close()


async def test_as_a_leader_it_lets_nobody_in_afterwards(tmp_path: Path) -> None:
    async with (
        serving(tmp_path, "founder") as founder,
        serving(tmp_path, "guest") as guest,
        serving(tmp_path, "new") as new,
    ):
        shut, opened = (
            PairingWindowSet(is_open=False, edit=1),
            PairingWindowSet(is_open=True, edit=2),
        )
        await with_guest(founder, guest, shut)
        await founder.replica.append(1, [opened])
        await guest.anti_entropy.unite(frozenset({founder.identity.node_id}))
        await lead_later(guest)
        assert guest.is_open
        way = channels(new, guest)
        reply = await way.control.Join(join_request(new), timeout=TIMEOUT_S)
        assert reply.decision == DECISIONS.PENDING
        assert new.identity.node_id not in guest.replica.state.members
        await way.close()


async def test_its_sum_of_the_ledger_is_not_believed(tmp_path: Path) -> None:
    async with serving(tmp_path, "founder") as founder, serving(tmp_path, "guest") as guest:
        await with_guest(founder, guest)
        await guest.replica.append(7, [PairingWindowSet(is_open=True, edit=1)])
        raw = await guest.replica.in_short()
        with pytest.raises(CorruptLedgerError, match="whom nobody has said yes to"):
            await founder.replica.adopt(raw, guest.identity.node_id)


async def test_who_is_behind_such_a_sum_is_told_of_it_until_it_has_caught_up(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path, "founder") as founder, serving(tmp_path, "guest") as guest:
        await with_guest(founder, guest)
        assert "behind" not in [line.code for line in _health(founder)]
        await guest.replica.append(7, [PairingWindowSet(is_open=True, edit=1)])
        raw = await guest.replica.in_short()
        with pytest.raises(CorruptLedgerError):
            await founder.replica.adopt(raw, guest.identity.node_id)
        (told,) = [line for line in _health(founder) if line.code == "behind"]
        assert "guest alone has it" in told.title
        await founder.anti_entropy.unite(frozenset({guest.identity.node_id}))
        assert "behind" not in [line.code for line in _health(founder)]


async def test_a_leader_that_walked_in_lets_a_trusted_member_lead(tmp_path: Path) -> None:
    async with serving(tmp_path, "founder") as founder, serving(tmp_path, "guest") as guest:
        await with_guest(founder, guest)
        await lead_later(guest)
        with pytest.raises(NotTrustedError):
            await guest.commands.execute_here(
                "node.remove", {"node": "guest"}, founder.identity.node_id
            )
        await guest.commands.execute_here("cluster.hand_over", {}, founder.identity.node_id)
        assert guest.hand_over._task is not None


async def test_who_is_behind_gets_the_ledger_from_a_trusted_member_where_one_is_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jupiterd.daemon.ledger.replica.MAX_ENTRIES", 1)
    monkeypatch.setattr("jupiterd.daemon.ledger.replica.MAX_ENTRIES_WITHOUT_YES", 1)
    async with (
        serving(tmp_path, "founder") as founder,
        serving(tmp_path, "guest") as guest,
        serving(tmp_path, "late") as late,
    ):
        await with_late(founder, guest, late)
        for node in (founder, guest):
            await node.replica.compact()
        await late.anti_entropy.unite(frozenset({guest.identity.node_id}))
        assert "behind" in [line.code for line in _health(late)]
        await late.anti_entropy.unite(frozenset({founder.identity.node_id}))
        assert late.replica.ledger.head() == founder.replica.ledger.head()
        assert "behind" not in [line.code for line in _health(late)]


async def test_a_member_without_a_yes_holds_more_entries_one_by_one_for_who_is_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jupiterd.daemon.ledger.replica.MAX_ENTRIES", 1)
    async with (
        serving(tmp_path, "founder") as founder,
        serving(tmp_path, "guest") as guest,
        serving(tmp_path, "late") as late,
    ):
        await with_late(founder, guest, late)
        for node in (founder, guest):
            await node.replica.compact()
        assert founder.replica.ledger.entry_count < guest.replica.ledger.entry_count
        await late.anti_entropy.unite(frozenset({guest.identity.node_id}))
        assert late.replica.ledger.head() == guest.replica.ledger.head()
        assert "behind" not in [line.code for line in _health(late)]


async def with_late(founder: Node, guest: Node, late: Node) -> None:
    """Let two go on while a third member is away."""
    await with_guest(founder, guest)
    await founder.replica.append(1, [admission_of(late)])
    await late.replica.move_to(whole_ledger(founder.replica))
    for edit in range(1, 6):
        await founder.replica.append(2, [PairingWindowSet(is_open=True, edit=edit)])
    await guest.anti_entropy.unite(frozenset({founder.identity.node_id}))
    for one, other in ((guest, late), (late, guest), (founder, late), (late, founder)):
        await link(one, other)


@given(st.lists(st.tuples(st.floats(0.0, 100.0), st.integers(0, 3)), max_size=60))
@settings(max_examples=100, deadline=None)
def test_strangers_have_it_resign_once_a_minute_at_most(calls: list[tuple[float, int]]) -> None:
    now, begun = [1000.0], list[float]()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trust, "now_s", lambda: now[0])
        strangers = trust.UntrustedRequests()
        for wait_s, stranger in calls:
            now[0] += wait_s
            if strangers.is_counted(NodeId(str(stranger) * 32)):
                begun.append(now[0])
    assert bool(begun) == bool(calls)
    assert all(later - one >= 60.0 - 1e-6 for one, later in pairwise(begun))


async def lead_later(guest: Node) -> None:
    """Let one lead in a term after the founder's."""
    guest.leadership.on_lead(5)
    await until(lambda: guest.identity.node_id in guest.replica.state.roles)


def _health(node: Node) -> list[object]:
    from jupiterd.cluster.health.health import judge

    return list(judge(node.observers.health.cluster_view()))
