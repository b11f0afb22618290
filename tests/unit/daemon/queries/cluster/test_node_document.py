"""One machine closely: its history as others heard it, and what it tells of itself where asked."""

import json
import logging
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import grpc.aio
import pytest

from jupiterd import __version__
from jupiterd.cluster.facts.facts import NodeRemoved
from jupiterd.cluster.ledger.lww_registers import canonical_bytes
from jupiterd.cluster.membership.failure_detector import SaidGoodbye
from jupiterd.cluster.values.hardware import Gpu
from jupiterd.cycle.base.work_item import Phase
from jupiterd.daemon.app.node import Node
from jupiterd.daemon.leader.progress_board import ProgressBoard
from jupiterd.daemon.observability import remote_reports
from jupiterd.daemon.observability.report_wire import (
    MAX_LINE_CHARACTERS,
    MAX_LINES,
    MAX_PROCESSES,
    MAX_VERSIONS,
    read_reply,
)
from jupiterd.daemon.runtime.clock import now_s
from jupiterd.daemon.runtime.work_events import WorkOrder
from jupiterd.errors import NotFoundError
from jupiterd.ids import CycleId
from jupiterd.rpc import peer_pb2
from tests.support.daemon.shown import shown
from tests.support.daemon.two_nodes import lead, link, serving, unite

LOST_LINE = "cable_pulled interface=eth0"
CYCLE = CycleId("c" * 16)


@pytest.fixture
async def nodes(tmp_path: Path) -> AsyncIterator[tuple[Node, Node]]:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "two") as two:
        await unite(one, two)
        yield one, two


def hears(one: Node, two: Node, **load: float) -> None:
    beat = two.heartbeats.message(one.identity.node_id)
    beat.about.CopyFrom(two.observers.description.describe().about)
    beat.telemetry = canonical_bytes({"load": load, "gpus": [[89.0, 13 << 30, 71.0, 312.5]]})
    one.heartbeats.heard(two.identity.node_id, beat)


async def test_a_member_tells_its_versions_its_work_and_the_end_of_its_log(
    nodes: tuple[Node, Node],
) -> None:
    one, two = nodes
    record = logging.makeLogRecord(
        {"msg": "cable_pulled", "levelname": "INFO", "interface": "eth0"}
    )
    two.observers.own_report.log.handle(record)
    two.worker_runner.running["spool"] = WorkOrder("abc/train/0", 1, "train", {}, {}, attempt=3)
    found = await shown(one, "node/two")
    assert found["versions"]["jupiterd"] == __version__
    assert found["processes"] == [{"task": "train", "id": "abc/train/0", "epoch": 3, "attempt": 3}]
    assert found["log"][-1].endswith(LOST_LINE)
    assert found["note"] == ""
    assert found["node"]["id"] == two.identity.node_id
    json.dumps(found, allow_nan=False)


async def test_the_own_machine_tells_the_same(nodes: tuple[Node, Node]) -> None:
    one, _ = nodes
    own, other = (await shown(one, "node/one"), await shown(one, "node/two"))
    assert own.keys() == other.keys()
    assert own["node"].keys() == other["node"].keys()
    assert own["versions"] == other["versions"]


async def test_a_history_is_of_what_was_heard_and_has_gaps_where_nothing_was(
    nodes: tuple[Node, Node],
) -> None:
    one, two = nodes
    two.local_view.hardware = replace(
        two.hardware, gpus=(Gpu("RTX 4090", "GPU-1", 24 << 30, "cuda"),)
    )
    at_s = 1200.0
    one.heartbeats.roster_changed()
    hears(one, two, cpu_percent=7.0)
    one.observers.histories.take(at_s)
    hears(one, two, cpu_percent=9.0)
    one.observers.histories.take(at_s + 2)
    one.heartbeats.membership.step(now_s(), SaidGoodbye(two.identity.node_id))
    one.observers.histories.take(at_s + 4)
    recent = (await shown(one, "node/two"))["recent"]
    assert recent["cpu_percent"] == [7.0, 9.0, None]
    assert recent["gpus"][0]["power_watts"] == [312.5, 312.5, None]


async def test_what_it_does_in_a_gang_is_told(nodes: tuple[Node, Node]) -> None:
    one, two = nodes
    await lead(one)
    assert one.leading is not None
    board: ProgressBoard = one.leading.board
    board.begin(CYCLE, 2, Phase.TRAIN, now_s())
    board.show_gang(CYCLE, [{"node": two.identity.node_id, "rank": 1, "device": "cpu"}], {})
    board.stepped(CYCLE, 1, 7, 99.96)
    found = await shown(one, "node/two")
    assert (found["node"]["tokens_per_s"], found["node"]["step_lag"]) == (100.0, 0)
    (seat,) = found["seats"]
    assert (seat["cycle"], seat["round"], seat["phase"]) == (CYCLE, 2, "train")
    assert (seat["rank"], seat["step"]) == (1, 7)


async def test_who_is_looked_at_is_asked_again_and_who_is_not_is_forgotten(
    nodes: tuple[Node, Node],
) -> None:
    one, two = nodes
    reports, member = one.observers.reports, two.identity.node_id
    assert (await reports.of(member))["log"] == []
    record = logging.makeLogRecord(
        {"msg": "cable_pulled", "levelname": "INFO", "interface": "eth0"}
    )
    two.observers.own_report.log.handle(record)
    assert (await reports.of(member))["log"] == [], "the answer at hand"
    await reports.look_again(now_s())
    assert len((await reports.of(member))["log"]) == 1
    await reports.look_again(now_s() + remote_reports.LOOKS_S + 1)
    assert reports._looked == {}


async def test_of_a_member_that_does_not_answer_the_last_word_stands_and_it_is_said_why(
    nodes: tuple[Node, Node],
) -> None:
    one, two = nodes
    reports, member = one.observers.reports, two.identity.node_id
    before = await reports.of(member)
    await one.peers.unlink(member)
    await reports.look_again(now_s())
    after = await reports.of(member)
    assert after["versions"] == before["versions"]
    assert after["note"].startswith("there is no link")


async def test_a_member_to_which_there_is_no_link_is_shown_without_a_report(
    nodes: tuple[Node, Node],
) -> None:
    one, two = nodes
    await one.peers.unlink(two.identity.node_id)
    found = await shown(one, "node/two")
    assert (found["versions"], found["processes"], found["log"]) == (None, None, None)
    assert found["note"].startswith("there is no link")


async def test_nobody_is_shown_whom_nobody_knows(nodes: tuple[Node, Node]) -> None:
    with pytest.raises(NotFoundError, match="no node is called omega"):
        await shown(nodes[0], "node/omega")


async def test_a_stranger_is_told_nothing(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "stranger") as stranger:
        await unite(one)
        await link(stranger, one)
        channels = stranger.peers.require(one.identity.node_id).channels
        with pytest.raises(grpc.aio.AioRpcError) as told:
            await channels.control.AskReport(peer_pb2.ReportRequest(), timeout=5)
        assert told.value.code() is grpc.StatusCode.PERMISSION_DENIED


def test_nobody_is_believed_more_than_fits() -> None:
    process = peer_pb2.RunningProcess(task="t" * 500, id="\x1b[2J", attempt=0)
    found = read_reply(
        peer_pb2.ReportReply(
            versions={f"package{number}": "1" for number in range(1000)},
            processes=[process] * 1000,
            log=["x" * 5000] * 1000,
        )
    )
    assert len(found["versions"]) == MAX_VERSIONS
    assert len(found["processes"]) == MAX_PROCESSES
    assert len(found["processes"][0]["task"]) == 64
    assert found["processes"][0]["id"] == "?[2J"
    assert [len(line) for line in found["log"]] == [MAX_LINE_CHARACTERS] * MAX_LINES


async def test_a_member_that_is_removed_while_it_is_asked_is_said_to_be_none(
    nodes: tuple[Node, Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = nodes
    gone = two.identity.node_id

    async def removed_meanwhile(_: object) -> dict[str, object]:
        await one.replica.append(
            2, [NodeRemoved(gone, one.replica.state.roster.admissions_of(gone), {})]
        )
        return {}

    monkeypatch.setattr(one.observers.reports, "of", removed_meanwhile)
    with pytest.raises(NotFoundError, match="no longer a member"):
        await shown(one, f"node/{gone}")
