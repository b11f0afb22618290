"""What a cluster of real nodes alerts people of, and that each of it is sent once."""

import asyncio
import json
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from jupiterd.cluster.facts.facts import CycleFailed, CycleStarted
from jupiterd.cluster.health.alerts import GIB, TABLE, Alert
from jupiterd.cluster.links.own_link import Outage
from jupiterd.cluster.links.unreached import Reached, Unreached
from jupiterd.cluster.membership.failure_detector import Liveness
from jupiterd.cycle.base.work_item import Phase
from jupiterd.daemon.app.node import Node
from jupiterd.daemon.observability.alert_sending import sender_of
from jupiterd.daemon.observability.webhook_sender import WebhookSender
from jupiterd.daemon.queries.cluster import health_document
from jupiterd.daemon.runtime.clock import now_s
from jupiterd.daemon.runtime.webhook import WebhookUrl
from jupiterd.doctor.health import judge
from jupiterd.ids import CycleId, NodeId
from jupiterd.protocol.frames import Progressed
from tests.support.daemon.hook_server import Hook, hook
from tests.support.daemon.shown import health_of, status_of
from tests.support.daemon.two_nodes import (
    found,
    lead,
    link,
    serving,
    take_for_alive,
    unite,
    until,
    whole_ledger,
)
from tests.support.doctor.machines import machine

pytestmark = pytest.mark.net

FULL = {"disk_free_bytes": GIB, "disk_bytes": 100 * GIB}
EMPTY = {"disk_free_bytes": 90 * GIB, "disk_bytes": 100 * GIB}
HELD_S, OVER_S = TABLE["disk-low"].hold_s, TABLE["disk-low"].clear_s
CYCLE = CycleId("d" * 16)


def fill(node: Node) -> None:
    """Let a node's disk be nearly full."""
    node.local_view.load_watch._closer = FULL
    node.local_view.load_watch._due_s = 0.0


def empty(node: Node) -> None:
    """Let a node's disk have room again."""
    node.local_view.load_watch._closer = EMPTY
    node.local_view.load_watch._due_s = 0.0


def tell(node: Node, *others: Node) -> None:
    """Let the others hear a heartbeat of a node, which changes nothing about who leads."""
    node.heartbeats._described_s = float("-inf")
    for other in others:
        beat = node.heartbeats.message(other.identity.node_id)
        beat.telemetry = node.observers.description.describe().telemetry
        leader = other.heartbeats.election._leader
        other.heartbeats.heard(node.identity.node_id, beat)
        other.heartbeats.election._leader = leader


def follow(node: Node, leader: Node) -> None:
    """Let a node take another for the leader, without an election."""
    node.heartbeats.election._leader = leader.identity.node_id


def look(node: Node, after_s: float = 0.0) -> None:
    node.observers.alerts.look(now_s() + after_s)


def _sender(node: Node, server: Hook) -> WebhookSender:
    alerts = node.observers.alerts
    return sender_of(node.settings, node.replica, alerts, WebhookUrl(server.url))


@asynccontextmanager
async def with_webhook(node: Node, server: Hook) -> AsyncGenerator[None]:
    """Have a node send its alerts to a server."""
    task = asyncio.ensure_future(_sender(node, server).run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


def codes(server: Hook) -> list[str]:
    return [json.loads(body)["alert"]["code"] for body in server.bodies]


async def test_what_is_raised_is_in_the_status_and_in_the_log_until_it_is_over(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="jupiterd")
    async with serving(tmp_path, "one") as node:
        await unite(node)
        fill(node)
        look(node)
        assert "disk-low" not in {line["code"] for line in status_of(node)["health"]}
        look(node, HELD_S)
        (line,) = [x for x in status_of(node)["health"] if x["code"] == "disk-low"]
        assert line["title"] == "the disk of one is nearly full: 1.0 GiB free"
        assert (line["severity"], bool(line["hint"])) == ("warning", True)
        assert (line["node"], line["cycle"]) == (node.identity.node_id, None)
        empty(node)
        look(node, HELD_S + 1)
        look(node, HELD_S + 1 + TABLE["disk-low"].clear_s)
        assert node.observers.alerts.raised == ()
    told = [r.getMessage() for r in caplog.records if r.getMessage().startswith("alert")]
    assert told == ["alert", "alert_over"]


async def test_a_member_that_is_gone_is_alerted_of_and_told_once_in_health(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "two") as two:
        await unite(one, two)
        one.heartbeats.roster_changed()
        farewell = two.heartbeats.message(one.identity.node_id)
        farewell.goodbye = True
        one.heartbeats.heard(two.identity.node_id, farewell)
        assert one.local_view.liveness(two.identity.node_id) is Liveness.GONE
        look(one)
        look(one, TABLE["node-gone"].hold_s)
        assert [alert.title for alert in one.observers.alerts.raised] == ["two is gone"]
        lines = [line["code"] for line in status_of(one)["health"]]
        assert lines.count("node-gone") == 1


async def test_whose_own_link_is_out_alerts_of_that_and_of_nobody_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "two") as two:
        await unite(one, two)
        gone = two.identity.node_id
        out = Outage("eth0 has no link", "plug it in", frozenset({gone}))
        monkeypatch.setattr(one.local_view, "outage", lambda: out)
        monkeypatch.setattr(
            one.local_view,
            "liveness",
            lambda node: Liveness.GONE if node == gone else Liveness.ALIVE,
        )
        look(one)
        look(one, TABLE["link-out"].hold_s)
        titles = [alert.title for alert in one.observers.alerts.raised]
        assert titles == ["one reaches no other: its eth0 has no link"]
        (line,) = [x for x in status_of(one)["health"] if x["severity"] == "warning"]
        assert (line["code"], line["node"]) == ("link-out", None)


async def test_a_line_of_health_gets_older_while_it_is_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(tmp_path, "one") as node:
        await unite(node)
        begun_s = now_s()
        node.observers.alerts.look(begun_s)
        for after_s in (0.0, 2.0, 250.9):
            monkeypatch.setattr(health_document, "now_s", lambda at=begun_s + after_s: at)
            ages = {line["code"]: line["age_s"] for line in status_of(node)["health"]}
            assert ages["alone-locally"] == int(after_s)


async def test_an_alert_is_an_event_when_it_is_raised_and_when_it_is_over(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as node:
        await unite(node)
        fill(node)
        look(node)
        node.observers.events.look()
        look(node, HELD_S)
        node.observers.events.look()
        empty(node)
        look(node, HELD_S + TABLE["disk-low"].clear_s)
        node.observers.events.look()
        told = [
            row for row in node.observers.events.document()["events"] if row["code"] == "disk-low"
        ]
    title = "the disk of one is nearly full: 1.0 GiB free"
    assert [(row["level"], row["text"]) for row in told] == [
        ("warning", f"alert: {title}"),
        ("info", f"alert over: {title}"),
    ]
    assert {row["node"] for row in told} == {node.identity.node_id}


async def test_a_cycle_that_failed_is_news_and_one_that_had_failed_before_isnt(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path, "one") as node:
        await unite(node)
        old, new = CycleId("0" * 16), CYCLE
        begun = [
            CycleStarted(each, "python", "name: python\n", 2, "1m", 7, "2026-01-01T00:00:00Z")
            for each in (old, new)
        ]
        await node.replica.append(1, [*begun, CycleFailed(old, "empty-source", "old", "")])
        look(node)
        await node.replica.append(1, [CycleFailed(new, "loss-diverged", "the loss is nan", "")])
        look(node, 2.0)
        (alert,) = node.observers.alerts.raised
        assert alert.code == "loss-nan"
        assert alert.title == "the cycle python stopped: the loss is nan"


async def test_a_training_that_jumps_and_stands_still_is_seen_by_leader_and_follower(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "two") as two:
        begun = CycleStarted(CYCLE, "python", "name: python\n", 2, "1m", 7, "2026-01-01T00:00:00Z")
        await found(one, two, facts=(begun,))
        await two.replica.move_to(whole_ledger(one.replica))
        await link(two, one)
        await lead(one)
        two.heartbeats.roster_changed()
        follow(two, one)
        assert one.leading is not None
        board = one.leading.board
        board.begin(CYCLE, 1, Phase.TRAIN, now_s())
        for step in range(46):
            loss = 3.0 if step < 40 else 6.0
            board.advance(CYCLE, "train", Progressed(step, 100, "steps", {"loss": loss}), now_s())
            tell(one, two)
            look(one, float(step))
            look(two, float(step))
        for node in (one, two):
            assert [alert.code for alert in node.observers.alerts.raised] == ["loss-spike"]
            look(node, 400.0)
            titles = [alert.title for alert in node.observers.alerts.raised]
            assert titles[0] == "the cycle python stands still: no step for 6 minutes"


@pytest.mark.parametrize(
    ("code", "words", "values"),
    [
        ("loss-high", "the loss of the cycle python is", {}),
        ("held-out-risen", "has risen since step 12", {"risen": 1.0, "best_step": 12.0}),
    ],
)
async def test_a_training_that_gets_worse_is_in_status_and_doctor_of_all(
    tmp_path: Path, code: str, words: str, values: dict[str, float]
) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "two") as two:
        begun = CycleStarted(CYCLE, "python", "name: python\n", 2, "1m", 7, "2026-01-01T00:00:00Z")
        await found(one, two, facts=(begun,))
        await two.replica.move_to(whole_ledger(one.replica))
        await link(two, one)
        await lead(one)
        two.heartbeats.roster_changed()
        follow(two, one)
        assert one.leading is not None
        board = one.leading.board
        board.begin(CYCLE, 1, Phase.TRAIN, now_s())
        for step in range(60):
            loss = 8.0 + step if code == "loss-high" else 3.0
            told = {"loss": loss, **values}
            board.advance(CYCLE, "train", Progressed(step, 100, "steps", told), now_s())
            tell(one, two)
            look(one, float(step))
            look(two, float(step))
        for node in (one, two):
            status = status_of(node)
            (line,) = [each for each in status["health"] if each["code"] == code]
            assert words in line["title"]
            examined = replace(machine(), status=status)
            (shown,) = [each for each in judge(examined, "") if each.check == f"health/{code}"]
            assert (words in shown.why, shown.fix) == (True, line["hint"])


async def test_whom_one_member_hears_and_can_not_reach_is_told_by_all(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "two") as two:
        await unite(one, two)
        two.heartbeats.roster_changed()
        take_for_alive(two, one)
        heard = Unreached("10.57.0.2:47470", Reached.CONNECTED, is_heard=True)
        named = Unreached("10.57.0.3:47470", Reached.NOTHING, is_heard=False)
        one.handshake.unreached.found = (heard, named)
        tell(one, two)
        for node, whose in ((one, ""), (two, ", says one")):
            lines = health_of(node)
            (line,) = [each for each in lines if each["code"] == "tcp-silent"]
            assert line["title"].endswith(f"TCP connects, and nothing comes over it{whose}")
            assert "MTU" in line["hint"]
        assert "peer-unreached" not in {each["code"] for each in health_of(two)}
        two.handshake.unreached.found = (heard,)
        assert [each["code"] for each in health_of(two)].count("tcp-silent") == 1


@asynccontextmanager
async def united_with_webhook(folder: Path) -> AsyncGenerator[tuple[Node, Node, Hook]]:
    """Two nodes, of which the first leads, and what both would send alerts to."""
    async with (
        serving(folder, "one") as one,
        serving(folder, "two") as two,
        hook(lambda _: 200) as server,
        with_webhook(one, server),
        with_webhook(two, server),
    ):
        await unite(one, two)
        for node, other in ((one, two), (two, one)):
            node.heartbeats.roster_changed()
            take_for_alive(node, other)
            follow(node, one)
        yield one, two, server


async def test_the_leader_sends_an_alert_once_and_its_follower_never(tmp_path: Path) -> None:
    async with united_with_webhook(tmp_path) as (one, two, server):
        fill(two)
        for after_s in (0.0, HELD_S, HELD_S + 2):
            tell(two, one)
            look(one, after_s)
            look(two, after_s)
            tell(one, two)
        await until(lambda: "sent" in one.observers.alerts.telemetry()["alerts"])
        assert codes(server) == ["disk-low"]
        tell(one, two)
        look(two, HELD_S + 3)
        # Another leads: it knows what was sent.
        for node in (one, two):
            follow(node, two)
            look(node, HELD_S + 4)
        fill(one)
        tell(one, two)
        look(two, HELD_S + 5)
        look(two, 3 * HELD_S)
        await until(lambda: codes(server) == ["disk-low"] * 2)
    told = [json.loads(body)["alert"]["title"] for body in server.bodies]
    assert [title.split()[3] for title in told] == ["two", "one"]


async def test_the_end_of_an_alert_is_sent_once_by_whoever_leads_by_then(tmp_path: Path) -> None:
    async with united_with_webhook(tmp_path) as (one, two, server):
        fill(two)
        for after_s in (0.0, HELD_S):
            tell(two, one)
            look(one, after_s)
            look(two, after_s)
            tell(one, two)
        await until(lambda: "sent" in one.observers.alerts.telemetry()["alerts"])
        tell(one, two)
        look(two, HELD_S + 1)
        for node in (one, two):
            follow(node, two)
        empty(two)
        tell(two, one)
        for after_s in (HELD_S + 2, HELD_S + OVER_S, HELD_S + OVER_S + 2):
            look(one, after_s)
            look(two, after_s)
        await until(lambda: len(server.bodies) == 2)
        assert one.observers.alerts.raised == two.observers.alerts.raised == ()
        # It begins once more, and is told of once more.
        fill(two)
        for after_s in (2 * OVER_S, 2 * OVER_S + HELD_S):
            look(two, after_s)
        await until(lambda: len(server.bodies) == 3)
    told = [json.loads(body) for body in server.bodies]
    assert [each["alert"]["state"] for each in told] == ["raised", "over", "raised"]
    assert [each["node"]["name"] for each in told] == ["one", "two", "two"]
    assert {each["alert"]["key"] for each in told} == {f"disk-low:{two.identity.node_id}"}


async def test_what_is_over_before_it_could_be_sent_is_sent_with_its_end(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, hook(lambda _: 200) as server:
        await unite(one)
        follow(one, one)
        sender = _sender(one, server)
        fill(one)
        look(one)
        look(one, HELD_S)
        empty(one)
        look(one, HELD_S + OVER_S)
        assert one.observers.alerts.raised == ()
        task = asyncio.ensure_future(sender.run())
        await until(lambda: len(server.bodies) == 2)
        task.cancel()
        await asyncio.wait([task])
        assert one.observers.alerts._sent.recent_marks() == []
    assert [json.loads(each)["alert"]["state"] for each in server.bodies] == ["raised", "over"]


async def test_the_end_of_what_nobody_was_told_of_isnt_sent(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, hook(lambda _: 404) as server:
        await unite(one)
        follow(one, one)
        async with with_webhook(one, server):
            fill(one)
            look(one)
            look(one, HELD_S)
            await until(lambda: bool(server.bodies))
            offered = list[Alert]()
            one.observers.alerts.offer = offered.append
            empty(one)
            look(one, HELD_S + OVER_S)
    assert (one.observers.alerts.raised, offered) == ((), [])


async def test_who_was_started_anew_learns_what_it_had_sent_before_it_sends(tmp_path: Path) -> None:
    async with (
        serving(tmp_path, "one") as one,
        serving(tmp_path, "two") as two,
        hook(lambda _: 200) as server,
        with_webhook(one, server),
    ):
        await unite(one, two)
        follow(one, one)
        fill(one)
        look(one)  # nobody was heard yet
        one.heartbeats.roster_changed()
        take_for_alive(one, two)
        two.observers.alerts._sent.note([f"disk-low:{one.identity.node_id}"])
        tell(two, one)
        look(one, 2.0)
        look(one, HELD_S)
        assert [alert.code for alert in one.observers.alerts.raised] == ["disk-low"]
        assert not one.observers.alerts._offered


async def test_where_nobody_is_heard_alerts_are_sent_after_a_while(tmp_path: Path) -> None:
    async with (
        serving(tmp_path, "one") as one,
        serving(tmp_path, "two") as two,
        hook(lambda _: 200) as server,
        with_webhook(one, server),
    ):
        await unite(one, two)
        follow(one, one)
        fill(one)
        look(one)
        look(one, HELD_S)
        await until(lambda: codes(server) == ["disk-low"])


async def test_where_the_leader_has_no_webhook_another_node_sends(tmp_path: Path) -> None:
    async with (
        serving(tmp_path, "one") as one,
        serving(tmp_path, "two") as two,
        hook(lambda _: 200) as server,
        with_webhook(two, server),
    ):
        await unite(one, two)
        for node, other in ((one, two), (two, one)):
            node.heartbeats.roster_changed()
            take_for_alive(node, other)
            follow(node, one)
        tell(two, one)
        assert one.observers.alerts._sender() == two.identity.node_id
        assert two.observers.alerts._sender() == two.identity.node_id
        fill(two)
        look(two)
        look(two, HELD_S)
        await until(lambda: codes(server) == ["disk-low"])


async def test_less_grave_alerts_than_wanted_arent_sent(tmp_path: Path) -> None:
    async with (
        serving(tmp_path, "one", alerts_minimum_severity="error") as one,
        hook(lambda _: 200) as server,
        with_webhook(one, server),
    ):
        await unite(one)
        follow(one, one)
        fill(one)
        look(one)
        look(one, HELD_S)
        assert [alert.code for alert in one.observers.alerts.raised] == ["disk-low"]
        assert not one.observers.alerts._offered


async def test_what_a_member_tells_wrongly_isnt_believed(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "two") as two:
        await unite(one, two)
        one.heartbeats.roster_changed()
        take_for_alive(one, two)
        peer = one.peers.require(NodeId(two.identity.node_id))
        for alerts in (None, 7, [1], {"webhook": "yes", "sent": 3}, {"sent": [None, "x" * 9]}):
            peer.telemetry = {"alerts": alerts}
            look(one)
        assert one.observers.alerts.raised == ()


async def test_heartbeats_tell_little(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, hook(lambda _: 200) as server:
        assert one.observers.alerts.telemetry() == {}
        async with with_webhook(one, server):
            one.observers.alerts._sent.note(f"verdict:{number}" for number in range(100))
            assert len(one.observers.description.describe().telemetry) < 512
