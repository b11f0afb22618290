"""Every alarm that there is ends with its cause: each is raised, and seen to end.

The clock that the daemon's parts read is a virtual one. A new kind of alarm needs a case here.
"""

import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from jupiterd.cluster import alerts, health
from jupiterd.cluster.admission import Summary
from jupiterd.cluster.alarms.dismissals import KEEPS_S
from jupiterd.cluster.chain import Tip
from jupiterd.cluster.clones import OVER_S
from jupiterd.cluster.facts import WALKED_IN, CycleFailed, NodeAdmitted, NodeRemoved, WorkCompleted
from jupiterd.cluster.lifecycle_facts import CycleRevived
from jupiterd.cluster.membership import Heard, SaidGoodbye
from jupiterd.cluster.own_link import Interface, Way
from jupiterd.cluster.shared_addresses import Told
from jupiterd.cluster.sought import PATIENCE_S
from jupiterd.cluster.unreached import Reached
from jupiterd.cluster.values.clock_offsets import KEPT, ClockOffset
from jupiterd.cluster.waiting import WAIT_S
from jupiterd.cluster.written import Entry
from jupiterd.ctl.status import ailments_of
from jupiterd.cycle.generating import WITHOUT
from jupiterd.cycle.work import Phase
from jupiterd.daemon import clock, outlook
from jupiterd.daemon.clock import now_s
from jupiterd.daemon.clusters_seen import REMEMBERED_S
from jupiterd.daemon.links import own_link
from jupiterd.daemon.links.clocks_apart import clocks_apart
from jupiterd.daemon.links.cloned_members import COUNTS_S
from jupiterd.daemon.links.unreached import FAILING_S, FAILURES, HEARD_S
from jupiterd.daemon.node import Node
from jupiterd.daemon.status_document import status_document
from jupiterd.daemon.work_events import Advanced
from jupiterd.errors import DiskFullError
from jupiterd.frames import Knocked
from jupiterd.ids import ClusterId, CycleId, NodeId
from jupiterd.ports import Address
from jupiterd.rpc import peer_pb2
from tests.unit.cluster.building import (
    CYCLE,
    checkpoint,
    commanded,
    judged,
    round_over,
    started,
    work_done,
)
from tests.unit.cluster.test_waiting import NEW, begin, show
from tests.unit.daemon.test_written_word import write
from tests.unit.daemon.two_nodes import found, lead, serving

OTHER = NodeId("b" * 32)
THERE = Address("10.57.0.2", 47470)
ATTIC = ClusterId("a" * 32)
HOUR_S = 3601.0
GIB = 1 << 30

Ending = AsyncIterator[None]
"""Raises an alarm, yields, and ends its cause."""


class Desk:
    """A daemon that leads a cluster of its own, its clock, and whatever else a case needs."""

    def __init__(self, folder: Path, stack: AsyncExitStack, patch: pytest.MonkeyPatch) -> None:
        self._folder, self._stack, self.patch = folder, stack, patch
        self._ahead_s = 0.0
        patch.setattr(
            clock,
            "time",
            SimpleNamespace(
                CLOCK_BOOTTIME=time.CLOCK_MONOTONIC,
                CLOCK_MONOTONIC=time.CLOCK_MONOTONIC,
                clock_gettime=lambda which: time.clock_gettime(which) + self._ahead_s,
            ),
        )

    async def start(self, name: str = "one", **told: Any) -> None:
        """Start a daemon, in the place of the one before."""
        self.node: Node = await self._stack.enter_async_context(serving(self._folder, name, **told))
        self.own = self.node.identity.node_id

    async def lead(self, *facts: Any) -> None:
        await found(self.node, facts=facts)
        self.node.pulse.election._leader = self.own
        await lead(self.node)
        self.node.hardware = replace(self.node.hardware, engines=("torch",))
        self.codes()

    async def with_other(self, reason: str = "window open") -> None:
        """Admit another machine that answers."""
        await self.lead(NodeAdmitted(OTHER, "other", b"certificate", reason))
        self.node.pulse.roster_changed()
        self.node.pulse.election._leader = self.own
        self.hear_other()

    def hear_other(self) -> None:
        self.node.pulse.membership.step(now_s(), Heard(OTHER))

    def pass_s(self, seconds: float) -> None:
        self._ahead_s += seconds

    def codes(self) -> set[str]:
        """Look; return the codes of all that is said to be wrong, in health and by alerts."""
        self.node.outlook.alerts.look(now_s())
        raised = {alert.code for alert in self.node.outlook.alerts.raised}
        return raised | {line["code"] for line in status_document(self.node)["health"]}


async def clone(desk: Desk) -> Ending:
    await desk.lead()
    desk.node.journal.clones.is_greeted_by_itself("strange", "10.9.9.9:1")
    desk.node.journal.clones.met(now_s())
    yield
    desk.pass_s(OVER_S)
    desk.node.pulse._speak_again()


async def removed(desk: Desk) -> Ending:
    await desk.lead()
    state = desk.node.journal.state
    gone = NodeRemoved(desk.own, state.roster.admissions_of(desk.own), {})
    await desk.node.journal.append(9, [gone])
    yield
    await desk.start("new")  # as its hint says


async def disk(desk: Desk) -> Ending:
    await desk.lead()

    def full(_raws: object) -> None:
        raise DiskFullError("no space left on device")

    file = desk.node.journal._file
    with desk.patch.context() as patch:
        patch.setattr(file, "append", full)
        with pytest.raises(DiskFullError):
            await desk.node.journal.append(1, [started()])
    yield
    await desk.node.journal.save_again()


async def link_out(desk: Desk) -> Ending:
    await desk.with_other()
    link = Interface(
        is_on=True, has_link=False, families=frozenset({4}), addresses=frozenset({"10.0.0.1"})
    )
    now = {"eth0": link}
    desk.patch.setattr(own_link, "_ways", lambda _peer: (Way("eth0", "10.0.0.1"),))
    desk.patch.setattr(own_link, "_interfaces", lambda: now)
    desk.node.pulse.membership.step(now_s(), SaidGoodbye(OTHER))
    yield
    now["eth0"] = replace(link, has_link=True)


async def no_leader(desk: Desk) -> Ending:
    await desk.lead()
    desk.node.pulse.election._leader = None
    yield
    desk.node.pulse.election._leader = desk.own


def attic(desk: Desk) -> None:
    """Let the daemon meet a cluster that is closed, and wait outside."""
    summary = Summary(ATTIC, "attic", False, False, OTHER, 1, 1)
    desk.node.greeter.seen.note(summary)
    desk.node.greeter.joining.set_pending("attic is closed")


async def pending_node(desk: Desk) -> Ending:
    desk.node.settings = replace(desk.node.settings, local=False)
    attic(desk)
    yield
    desk.pass_s(REMEMBERED_S + 1)  # it is switched off
    desk.node.greeter.joining.look_for_wanted()


async def pending_locally(desk: Desk) -> Ending:
    attic(desk)
    yield
    desk.pass_s(REMEMBERED_S + 1)
    desk.node.greeter.joining.look_for_wanted()


async def sought(desk: Desk) -> Ending:
    joining = desk.node.greeter.joining
    joining.token = SimpleNamespace(cluster=ATTIC)  # type: ignore[assignment]
    desk.pass_s(PATIENCE_S)
    joining.look_for_wanted()
    yield
    desk.node.greeter.seen.note(Summary(ATTIC, "attic", False, False, OTHER, 1, 1))
    joining.look_for_wanted()


async def behind(desk: Desk) -> Ending:
    await desk.with_other(WALKED_IN)
    desk.node.journal._refused[OTHER] = {"writer": Tip(7, 1, "f" * 64)}
    yield
    await desk.node.journal.append(1, [NodeAdmitted(OTHER, "other", b"certificate", "a yes")])


async def no_engine(desk: Desk) -> Ending:
    await desk.lead()
    desk.node.hardware = replace(desk.node.hardware, engines=())
    yield
    desk.node.hardware = replace(desk.node.hardware, engines=("torch",))


async def trusts_lan(desk: Desk) -> Ending:
    await desk.start("trusting", trust_lan=True)
    yield
    await desk.start("another")


async def contradiction(desk: Desk) -> Ending:
    await desk.lead()
    write(desk.node, Entry(name="one", memory_gb=900_000, lines={"memory_gb": 3}))
    yield
    write(desk.node, Entry(name="one"))


async def no_effect(desk: Desk) -> Ending:
    await desk.lead()
    write(desk.node, Entry(name="one", ssh_user="me", lines={"ssh_user": 3}))
    yield
    write(desk.node, Entry(name="one"))


async def clone_of_member(desk: Desk) -> Ending:
    await desk.with_other()
    reply = peer_pb2.HelloReply(clone_at="10.9.9.9:1", run_nonce="x")
    desk.node.greeter.cloned.note(OTHER, THERE, reply)
    yield
    desk.pass_s(COUNTS_S)  # neither is met any more
    desk.hear_other()


async def node_gone(desk: Desk) -> Ending:
    await desk.with_other()
    desk.node.pulse.membership.step(now_s(), SaidGoodbye(OTHER))
    yield
    desk.hear_other()


async def node_suspect(desk: Desk) -> Ending:
    await desk.lead(NodeAdmitted(OTHER, "other", b"certificate", "window open"))
    desk.node.pulse.roster_changed()
    yield
    desk.hear_other()


async def shared_address(desk: Desk) -> Ending:
    await desk.with_other()
    places = frozenset({("10.0.0.1", "1")})
    told = [Told("one", "m1", places), Told("other", "m2", places)]
    desk.patch.setattr(outlook, "told_by_all", lambda _node: told)
    yield
    told[1] = Told("other", "m2", frozenset({("10.0.0.2", "1")}))


async def clock_differs(desk: Desk) -> Ending:
    await desk.with_other()
    offset = ClockOffset()
    peer = SimpleNamespace(node=OTHER, beats=SimpleNamespace(clock=offset))
    node = desk.node
    seen = SimpleNamespace(
        journal=node.journal, identity=node.identity, settings=node.settings, peers=[peer],
        alive=lambda: {desk.own, OTHER},
    )  # fmt: skip
    desk.patch.setattr(outlook, "clocks_apart", lambda _node: clocks_apart(cast("Node", seen)))
    offset.note(1000.0, 1060.0, 0.1)
    yield
    for _ in range(KEPT):
        offset.note(1000.0, 1000.1, 0.1)


def fail_at(desk: Desk, reached: Reached) -> None:
    """Let an address fail for as long as it takes to be told of."""
    addresses = desk.node.greeter.addresses
    addresses.note(THERE)
    for _ in range(FAILURES):
        attempt = addresses[THERE]
        attempt.begin()
        desk.pass_s(FAILING_S / FAILURES)
        attempt.reach(reached)
        attempt.fail()
        attempt.end()


async def tcp_blocked(desk: Desk) -> Ending:
    await desk.lead()
    unreached = desk.node.greeter.unreached
    fail_at(desk, Reached.NOTHING)
    unreached.announced.note(THERE)
    unreached.look()
    yield
    desk.pass_s(HEARD_S)  # it was switched off
    unreached.look()


async def tcp_silent(desk: Desk) -> Ending:
    await desk.lead()
    unreached = desk.node.greeter.unreached
    fail_at(desk, Reached.CONNECTED)
    unreached.announced.note(THERE)
    unreached.look()
    yield
    desk.node.greeter.addresses[THERE].succeed()
    unreached.look()


async def peer_unreached(desk: Desk) -> Ending:
    await desk.lead()
    unreached = desk.node.greeter.unreached
    unreached.named = lambda: frozenset({THERE})
    fail_at(desk, Reached.NOTHING)
    unreached.look()
    yield
    desk.node.greeter.addresses[THERE].succeed()
    unreached.look()


async def version_differs(desk: Desk) -> Ending:
    await desk.with_other()
    newer = tuple(
        (name, "0.99.0" if name == "jupiterd" else version)
        for name, version in desk.node.hardware.versions
    )
    other = [replace(desk.node.hardware, versions=newer)]
    desk.patch.setattr(
        desk.node.outlook,
        "hardware_of",
        lambda node: other[0] if node == OTHER else desk.node.hardware,
    )
    yield
    other[0] = desk.node.hardware


async def node_waits(desk: Desk) -> Ending:
    await desk.lead()
    assert desk.node.leading is not None
    waiting = desk.node.leading.waiting
    begin(waiting, now_s(), NEW)
    show(waiting, now_s() + 1, NEW)
    yield
    desk.pass_s(WAIT_S + 2)


async def node_walked_in(desk: Desk) -> Ending:
    await desk.with_other(WALKED_IN)
    yield
    await desk.node.journal.append(1, [NodeAdmitted(OTHER, "other", b"certificate", "a yes")])


async def alone(desk: Desk) -> Ending:
    desk.node.settings = replace(desk.node.settings, local=False)
    await desk.lead()
    yield
    await desk.node.journal.append(1, [NodeAdmitted(OTHER, "other", b"certificate", "open")])


async def alone_locally(desk: Desk) -> Ending:
    await desk.lead()
    yield
    await desk.node.journal.append(1, [NodeAdmitted(OTHER, "other", b"certificate", "open")])


async def loss_nan(desk: Desk) -> Ending:
    await desk.lead(started())
    await desk.node.journal.append(1, [CycleFailed(CYCLE, "loss-diverged", "it is nan", "")])
    yield
    await desk.node.journal.append(1, [CycleRevived(CYCLE)])


async def run_failed(desk: Desk) -> Ending:
    await desk.lead(started())
    await desk.node.journal.append(1, [CycleFailed(CYCLE, "empty-source", "nothing", "")])
    yield
    later = replace(started(), cycle=CycleId("e" * 16), started_at="2026-02-01T00:00:00Z")
    await desk.node.journal.append(1, [later])


class Training:
    """A round that trains, as its leader tells of it."""

    def __init__(self, desk: Desk) -> None:
        self._desk, self._step = desk, 0
        assert desk.node.leading is not None
        self.board = desk.node.leading.board
        self.board.begin(CYCLE, 1, Phase.TRAIN, now_s())

    def steps(self, losses: Iterator[float] | list[float], **more: float) -> None:
        for loss in losses:
            self._step += 1
            self._desk.pass_s(1.0)
            event = Advanced(self._step, 900, "steps", {"loss": loss, **more})
            self.board.advance(CYCLE, "train", event, now_s())
            self._desk.codes()


async def stalled_step(desk: Desk) -> Ending:
    await desk.lead(started())
    training = Training(desk)
    training.steps([3.0] * 3)
    desk.pass_s(300.0)
    yield
    training.steps([3.0])


async def loss_spike(desk: Desk) -> Ending:
    await desk.lead(started())
    training = Training(desk)
    training.steps([3.0] * 30 + [6.0] * 3)
    yield
    training.steps([3.0])


async def loss_high(desk: Desk) -> Ending:
    await desk.lead(started())
    training = Training(desk)
    training.steps([3.0] * 3 + [4.0] * 20)
    yield
    training.steps([3.0] * 10)


async def held_out_risen(desk: Desk) -> Ending:
    await desk.lead(started())
    training = Training(desk)
    training.steps([3.0], risen=1.0, best_step=40.0)
    yield
    training.board.end(CYCLE)


async def generator_lost(desk: Desk) -> Ending:
    done = WorkCompleted(
        CYCLE, 1, "generate", "r1/generate/0", OTHER, {}, {"kept": 0.0},
        summary={WITHOUT: "nobody answers"},
    )  # fmt: skip
    await desk.lead(started(), done)
    yield
    await desk.node.journal.append(1, [commanded("stopped", 1)])


async def not_offered(desk: Desk) -> Ending:
    await desk.lead()
    desk.node.runner.offered._note("/home/ada/diary", "other")
    yield
    desk.pass_s(HOUR_S)


async def gang_knocked(desk: Desk) -> Ending:
    await desk.lead()
    desk.node.runner.knocks.note(Knocked(3), "run/0")
    yield
    desk.pass_s(HOUR_S)


async def port_crowded(desk: Desk) -> Ending:
    await desk.lead()
    desk.node.listening.crowding.note(Knocked(1, ["10.9.9.9"]))
    yield
    desk.pass_s(HOUR_S)


def burden(desk: Desk, **load: float) -> None:
    desk.node.outlook.load_watch._closer = load
    desk.node.outlook.load_watch._due_s = 0.0


async def disk_low(desk: Desk) -> Ending:
    await desk.lead()
    burden(desk, disk_free_bytes=GIB, disk_bytes=100 * GIB)
    yield
    burden(desk, disk_free_bytes=90 * GIB, disk_bytes=100 * GIB)


async def throttling(desk: Desk) -> Ending:
    await desk.lead()
    burden(desk, throttled_gpus=1)
    yield
    burden(desk, throttled_gpus=0)


async def mostly_dropped(desk: Desk) -> Ending:
    counts = {"kept": 12.0, "dropped": 188.0, "dropped.few-letters": 188.0}
    await desk.lead(started(), replace(work_done("r1/filter/0"), counts=counts))
    yield
    await desk.node.journal.append(1, [commanded("stopped", 1)])
    desk.codes()
    desk.pass_s(HOUR_S)


async def verdict(desk: Desk) -> Ending:
    await desk.lead(started())
    await desk.node.journal.append(
        1, [checkpoint("k2", is_final=True), judged("HOLD", "k2"), round_over("k2")]
    )
    yield
    desk.pass_s(HOUR_S)


CASES: dict[str, Callable[[Desk], Ending]] = {
    case.__name__.replace("_", "-"): case
    for case in (
        clone, removed, disk, link_out, no_leader, pending_node, pending_locally, sought, behind,
        no_engine, trusts_lan, contradiction, no_effect, clone_of_member, node_gone, node_suspect,
        shared_address, clock_differs, tcp_blocked, tcp_silent, peer_unreached, version_differs,
        node_waits, node_walked_in, alone, alone_locally, loss_nan, run_failed, stalled_step,
        loss_spike, loss_high, held_out_risen, generator_lost, not_offered, gang_knocked,
        port_crowded, disk_low, throttling, mostly_dropped, verdict,
    )
}  # fmt: skip


OWN_TROUBLE = {"clone", "removed", "disk", "link-out", "disk-low", "throttling"}
"""What makes the container of the machine ill that says it, and no other's."""


def test_every_kind_of_alarm_has_a_case() -> None:
    kinds = {*health.TABLE, *alerts.TABLE}
    assert CASES.keys() == kinds, "raise a new kind above, and end its cause"


@pytest.mark.parametrize("code", CASES)
async def test_it_is_told_and_it_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    rule = alerts.TABLE.get(code)
    async with AsyncExitStack() as stack:
        desk = Desk(tmp_path, stack, monkeypatch)
        await desk.start()
        case = CASES[code](desk)
        await anext(case)
        desk.codes()
        desk.pass_s(0.0 if rule is None else rule.hold_s)
        assert code in desk.codes()
        assert code in desk.codes(), "it lasts as long as its cause does"
        counted = [line["code"] for line in ailments_of(status_document(desk.node), "self")]
        assert counted == ([code] if code in OWN_TROUBLE else [])
        await anext(case, None)
        desk.codes()
        desk.pass_s(KEEPS_S if rule is None else max(KEEPS_S, rule.clear_s))
        assert code not in desk.codes()
