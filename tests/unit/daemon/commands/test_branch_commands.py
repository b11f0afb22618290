"""Switching the line of a cycle, at the leader, and what is shown of lines."""

import json
from pathlib import Path

import pytest

from jupiterd.cluster.facts.facts import Fact
from jupiterd.cluster.ledger.lww_registers import fact_hash
from jupiterd.cluster.ledger.state import CycleState
from jupiterd.cluster.values.branch_names import branch_name
from jupiterd.daemon.app.node import Node
from jupiterd.daemon.commands.branch_commands import switch_branch
from jupiterd.daemon.queries.cluster.branches_document import branches_document
from jupiterd.errors import ConflictError, NotFoundError
from jupiterd.ids import ArtifactId
from jupiterd.protocol.commands.cycle_commands import SwitchBranch
from jupiterd.rpc import peer_pb2
from tests.support.cluster.building import CYCLE, checkpoint, commanded, round_over, started
from tests.support.daemon.two_nodes import TIMEOUT_S, found, lead, serving, unite

LOST = "f" * 64
STOPPED = commanded("stopped", 1)


def stored(node: Node, folder: Path, text: str) -> ArtifactId:
    """An artifact in a node's store."""
    folder.mkdir(parents=True)
    (folder / "model.safetensors").write_text(text)
    return node.artifact_cache.store.ingest(folder)


async def forked(node: Node, folder: Path, *more: Fact) -> tuple[str, str]:
    """Found a cluster whose cycle has a line of one round and a branch; return both leaves."""
    long, short = stored(node, folder / "long", "1"), stored(node, folder / "short", "2")
    over = round_over(long, promoted=long, verdict="PROMOTE")
    facts = (started(rounds=1), checkpoint(long), over, checkpoint(short, tokens=50), *more)
    await found(node, facts=facts)
    return fact_hash(over), short


def cycle_of(node: Node) -> CycleState:
    return node.replica.state.cycles[CYCLE]


async def switch(node: Node, leaf: str) -> dict[str, object]:
    command = SwitchBranch.read({"cycle": CYCLE, "leaf": leaf})
    return await switch_branch(node._begin_term(1).term, node.artifact_cache, command)


async def test_a_switch_makes_another_leaf_canonical_and_back(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        over, short = await forked(one, tmp_path / "work")
        done = await switch(one, short)
        assert done == {
            "cycle": CYCLE,
            "branch": branch_name(CYCLE, short),
            "leaf": short,
            "rounds": 0,
            "pinned": True,
        }
        assert cycle_of(one).generator == ""
        done = await switch(one, "")
        assert (done["leaf"], done["pinned"]) == (over, False)
        assert cycle_of(one).generator != ""


async def test_a_switch_starts_no_work(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        _, short = await forked(one, tmp_path / "work")
        await switch(one, short)
        assert cycle_of(one).rounds_committed == 0
        assert cycle_of(one).has_nothing_to_do


async def test_a_running_cycle_is_to_be_stopped_first(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        leaf = stored(one, tmp_path / "work", "1")
        await found(one, facts=(started(), checkpoint(leaf)))
        with pytest.raises(ConflictError, match="is running") as refused:
            await switch(one, leaf)
        assert refused.value.hint == f"stop it first: jupiterctl cycle stop {CYCLE[:8]}"
        assert cycle_of(one).pinned == ""


async def test_a_leaf_that_nobody_in_reach_has_is_not_switched_to(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        await forked(one, tmp_path / "work", checkpoint(LOST, tokens=10))
        with pytest.raises(NotFoundError, match="holds checkpoint ffffffff"):
            await switch(one, LOST)
        with pytest.raises(NotFoundError, match="no branch is called dddddddd-99999999"):
            await switch(one, "9" * 64)
        assert cycle_of(one).pin_edit == 0


async def test_a_pin_that_is_there_is_not_recorded_again(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        _, short = await forked(one, tmp_path / "work")
        await switch(one, short)
        head = one.replica.ledger.head()
        await switch(one, short)
        assert one.replica.ledger.head() == head


async def test_any_member_may_switch_and_everybody_follows(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "other") as other:
        await unite(one, other)
        long, short = (stored(one, tmp_path / text, text) for text in ("longer", "short"))
        facts = (started(), checkpoint(long), checkpoint(short, tokens=50), STOPPED)
        await one.replica.append(1, facts)
        await lead(one)
        leader = other.peers.require(one.identity.node_id).channels.control
        arguments = json.dumps({"cycle": CYCLE, "leaf": short})
        request = peer_pb2.CommandRequest(verb="cluster.switch", arguments_json=arguments)
        reply = await leader.Command(request, timeout=TIMEOUT_S)
        assert reply.failure.code == ""
        await other.anti_entropy.unite(frozenset({one.identity.node_id}))
        for node in (one, other):
            assert [leaf.key for leaf in cycle_of(node).leaves()] == [short, long]


async def test_the_document_tells_of_every_leaf(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        over, short = await forked(one, tmp_path / "work", checkpoint(LOST, tokens=10))
        await switch(one, short)
        shown = branches_document(one.replica.state, one.artifact_cache.store)
        assert [row["leaf"] for row in shown["branches"]] == [short, over, LOST]
        assert [row["canonical"] for row in shown["branches"]] == [True, False, False]
        assert [row["pinned"] for row in shown["branches"]] == [True, False, False]
        assert [row["held_here"] for row in shown["branches"]] == [True, True, False]
        assert [row["kind"] for row in shown["branches"]] == ["checkpoint", "round", "checkpoint"]
        assert shown["branches"][1]["written_by"] == {"node": one.identity.node_id, "name": "one"}
        (pin,) = shown["pins"]
        assert (pin["leaf"], pin["known"]) == (short, True)


async def test_without_checkpoints_the_document_is_empty(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        assert branches_document(one.replica.state, one.artifact_cache.store) == {
            "schema": "jupiter/v1",
            "branches": [],
            "pins": [],
        }
