"""A person lets a machine into a closed cluster, once both sides show the same words."""

import logging
from pathlib import Path

import grpc
import pytest

from jupiterd.cluster.facts.facts import PairingWindowSet
from jupiterd.cluster.membership.pending_joins import MAX_TRIES
from jupiterd.daemon.app.node import Node
from jupiterd.daemon.links.dial_schedule import Attempt
from jupiterd.daemon.membership.approval_client import ASK_LEADER_S, ASK_OTHERS_S
from jupiterd.daemon.runtime.approval_words import spelled, typed, word_list
from jupiterd.daemon.runtime.clock import now_s
from jupiterd.errors import NotFoundError, RefusedError, UsageError
from jupiterd.ports import Address
from tests.support.daemon.shown import status_of
from tests.support.daemon.two_nodes import TIMEOUT_S, found, lead, serving
from tests.unit.daemon.api.test_peer_service import DECISIONS, channels, join_request
from tests.unit.daemon.membership.test_handshake import greet
from tests.unit.daemon.membership.test_joining_by_token import closed


def words_at(leader: Node) -> str:
    """Return the words of the only newcomer, as a leader shows them."""
    (waiting,) = leader.local_view.waiting()
    return spelled(waiting.numbers)


def other_words(words: str) -> str:
    """Return four words of the list that are others."""
    first, *rest = words.split()
    return " ".join(["zoo" if first != "zoo" else "abandon", *rest])


def test_the_list_has_as_many_words_as_eleven_bits_need() -> None:
    assert len(set(word_list())) == 2048
    assert typed(spelled((0, 1, 2, 2047))) == (0, 1, 2, 2047)


async def test_both_sides_show_the_same_words_and_the_command(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "new") as new:
        await closed(one)
        await greet(new, one)
        words = words_at(one)
        ours, theirs = (status_of(new), status_of(one))
        assert ours["node"]["words"] == words
        assert new.replica.cluster != one.replica.cluster
        (pending,) = [node for node in theirs["nodes"] if node["state"] == "pending"]
        assert (pending["id"], pending["name"]) == (new.identity.node_id, "new")
        assert pending["words"] == words
        assert theirs["cluster"]["nodes_total"] == 1
        for document, code in ((ours, "pending-locally"), (theirs, "node-waits")):
            (found,) = [item for item in document["health"] if item["code"] == code]
            assert words in found["title"]
            assert found["hint"].endswith(": jupiterctl node approve new")


async def test_the_words_are_logged_once_however_often_it_asks(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with serving(tmp_path, "one") as one, serving(tmp_path, "new") as new:
        await closed(one)
        for _ in range(3):
            await greet(new, one)
        words = words_at(one)
        told = [record for record in caplog.records if record.message == "waits_outside"]
        assert len([record for record in told if words in vars(record)["reason"]]) == 1


async def test_who_is_approved_with_its_words_is_a_member_with_the_next_question(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "new") as new:
        await closed(one)
        await greet(new, one)
        order = {"node": "new", "words": words_at(one).upper()}
        done = await one.commands.execute_here("node.approve", order)
        assert done["node"] == new.identity.node_id
        assert one.leading.admissions.waiting.shown(now_s()) == []
        await greet(new, one)
        assert new.replica.cluster == one.replica.cluster
        admitted = new.replica.state.members[new.identity.node_id]
        assert admitted.reason == "approved by a person who compared the words"
        assert new.handshake.joining.pending_reason == new.handshake.joining.approval.words == ""


async def test_who_is_approved_unseen_is_recorded_so(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "new") as new:
        await closed(one)
        await greet(new, one)
        order = {"node": new.identity.node_id[:6], "words": ""}
        await one.commands.execute_here("node.approve", order)
        admitted = one.replica.state.members[new.identity.node_id]
        assert admitted.reason == "approved by a person without comparing the words"


async def test_other_words_let_in_nobody_and_end_in_a_pause(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "new") as new:
        await closed(one)
        await greet(new, one)
        right = words_at(one)
        for _ in range(MAX_TRIES):
            order = {"node": "new", "words": other_words(right)}
            with pytest.raises(RefusedError, match="aren't the words of new"):
                await one.commands.execute_here("node.approve", order)
        await greet(new, one)
        assert "ten minutes" in new.handshake.joining.pending_reason
        assert new.handshake.joining.approval.words == ""
        with pytest.raises(NotFoundError):
            await one.commands.execute_here("node.approve", {"node": "new", "words": right})
        assert new.identity.node_id not in one.replica.state.members


async def test_a_mistyped_word_is_no_try(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "new") as new:
        await closed(one)
        await greet(new, one)
        for _ in range(MAX_TRIES + 1):
            with pytest.raises(UsageError, match="wrod isn't one of the words"):
                await one.commands.execute_here("node.approve", {"node": "new", "words": "wrod"})
        await one.commands.execute_here("node.approve", {"node": "new", "words": words_at(one)})
        assert new.identity.node_id in one.replica.state.members


async def test_who_does_not_wait_is_not_approved(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        await closed(one)
        for name in ("new", "one"):
            with pytest.raises(
                NotFoundError, match=f"waits to be let in is called {name}"
            ) as error:
                await one.commands.execute_here("node.approve", {"node": name})
            assert "jupiterctl node list" in error.value.hint


async def test_a_cluster_that_was_founded_closed_approves_too(tmp_path: Path) -> None:
    async with serving(tmp_path, "one", closed=True) as one, serving(tmp_path, "new") as new:
        await lead(one)
        await greet(new, one)
        await one.commands.execute_here("node.approve", {"node": "new", "words": words_at(one)})
        await greet(new, one)
        assert new.replica.cluster == one.replica.cluster


async def test_a_removed_key_waits_nowhere(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "new") as new:
        await found(one, new, facts=(PairingWindowSet(is_open=False, edit=1),))
        await lead(one)
        await one.commands.execute_here("node.remove", {"node": "new"})
        await greet(new, one)
        assert one.local_view.waiting() == []
        assert new.handshake.joining.pending_reason == "it was removed from the cluster"
        with pytest.raises(NotFoundError):
            await one.commands.execute_here("node.approve", {"node": "new"})


async def test_opening_the_cluster_lets_in_who_waits(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "new") as new:
        await closed(one)
        await greet(new, one)
        await one.commands.execute_here("cluster.open", {})
        await greet(new, one)
        assert new.replica.cluster == one.replica.cluster
        assert one.local_view.waiting() == []


async def test_in_a_new_reign_the_newcomer_does_the_exchange_again(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "new") as new:
        await closed(one)
        await greet(new, one)
        before = words_at(one)
        one.leadership.on_step_down("somebody else leads")
        assert one.local_view.waiting() == []
        await greet(new, one)
        assert new.handshake.joining.approval.words == ""
        await lead(one)
        await greet(new, one)
        assert new.handshake.joining.approval.words == words_at(one) != before


async def test_a_leader_is_asked_every_second_at_one_of_its_addresses_alone(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "new") as new:
        await closed(one)
        first = await greet(new, one)
        asked_s = one.leading.admissions.waiting._entries[new.identity.node_id].seen_at
        second = Attempt(now_s())
        await new.handshake._greet(Address("localhost", one.local_view.port), second)
        assert one.leading.admissions.waiting._entries[new.identity.node_id].seen_at == asked_s
        assert second.due_s - now_s() > ASK_OTHERS_S - 1.0
        assert ASK_LEADER_S - 1.0 < first.due_s - asked_s < ASK_LEADER_S + 1.0


async def test_what_is_not_of_the_right_size_is_refused(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "new") as new:
        await closed(one)
        way = channels(new, one)
        for commitment, nonce in ((b"c" * 31, b""), (b"c" * 33, b""), (b"c" * 32, b"n" * 31)):
            request = join_request(new)
            request.commitment, request.nonce = commitment, nonce
            with pytest.raises(grpc.aio.AioRpcError) as error:
                await way.control.Join(request, timeout=TIMEOUT_S)
            assert error.value.code() is grpc.StatusCode.PERMISSION_DENIED
        assert one.leading is not None
        assert one.leading.admissions.waiting._entries == {}
        await way.close()


async def test_a_nonce_of_somebody_else_is_refused(tmp_path: Path) -> None:
    """What one node has shown is of no use to another: the commitment holds its id."""
    async with (
        serving(tmp_path, "one") as one,
        serving(tmp_path, "new") as new,
        serving(tmp_path, "thief") as thief,
    ):
        await closed(one)
        asked = join_request(new)
        assert new.handshake.joining.approval.fill(asked, one.identity.node_id, one.summary())
        way = channels(thief, one)
        request = join_request(thief)
        request.commitment = asked.commitment
        reply = await way.control.Join(request, timeout=TIMEOUT_S)
        assert (reply.decision, reply.revealed) == (DECISIONS.PENDING, False)
        new.handshake.joining.approval.take(one.identity.node_id, reply)
        new.handshake.joining.approval.fill(asked, one.identity.node_id, one.summary())
        request.nonce = asked.nonce
        reply = await way.control.Join(request, timeout=TIMEOUT_S)
        assert (reply.nonce, reply.revealed) == (b"", False)
        assert one.local_view.waiting() == []
        await way.close()
