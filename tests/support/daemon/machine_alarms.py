"""Alarms about machines, links and who belongs together: each is raised, its cause ended."""

from dataclasses import replace

import pytest

from jupiterd.cluster.facts.facts import WALKED_IN, NodeAdmitted, NodeRemoved
from jupiterd.cluster.ledger.chain import Tip
from jupiterd.cluster.ledger.tokens import Token
from jupiterd.cluster.links.own_link import Egress, Interface
from jupiterd.cluster.links.unreached import Reached
from jupiterd.cluster.membership.admission import Summary
from jupiterd.cluster.membership.clones import OVER_S
from jupiterd.cluster.membership.failure_detector import SaidGoodbye
from jupiterd.cluster.membership.pending_joins import WAIT_S
from jupiterd.cluster.membership.shared_addresses import AnnouncedAddresses
from jupiterd.cluster.membership.token_wait import PATIENCE_S
from jupiterd.cluster.planning.cluster_file_policy import MachineEntry
from jupiterd.cluster.values.clock_offsets import RETAINED_ANSWERS, ClockOffset
from jupiterd.daemon.links import own_link
from jupiterd.daemon.links.cloned_members import COUNTS_S
from jupiterd.daemon.links.seen_clusters import REMEMBERED_S
from jupiterd.daemon.links.unreachable_peers import FAILING_S, FAILURES, HEARD_S
from jupiterd.daemon.runtime.clock import now_s
from jupiterd.daemon.view import health_view
from jupiterd.errors import DiskFullError
from jupiterd.ids import NodeId
from jupiterd.rpc import peer_pb2
from tests.support.cluster.building import started
from tests.support.daemon.alarm_desk import ATTIC, OTHER, THERE, Desk, Ending
from tests.unit.cluster.membership.test_pending_joins import NEW, begin, show
from tests.unit.daemon.commands.test_cluster_file_policy import write


async def clone(desk: Desk) -> Ending:
    await desk.lead()
    desk.node.replica.clones.is_greeted_by_itself("strange", "10.9.9.9:1")
    desk.node.replica.clones.met(now_s())
    yield
    desk.pass_s(OVER_S)
    desk.node.heartbeats._speak_again()


async def removed(desk: Desk) -> Ending:
    await desk.lead()
    state = desk.node.replica.state
    gone = NodeRemoved(desk.own, state.roster.admissions_of(desk.own), {})
    await desk.node.replica.append(9, [gone])
    yield
    await desk.start("new")  # as its hint says


async def disk(desk: Desk) -> Ending:
    await desk.lead()

    def full(_raws: object) -> None:
        raise DiskFullError("no space left on device")

    file = desk.node.replica._file
    with desk.patch.context() as patch:
        patch.setattr(file, "append", full)
        with pytest.raises(DiskFullError):
            await desk.node.replica.append(1, [started()])
    yield
    await desk.node.replica.save_again()


async def link_out(desk: Desk) -> Ending:
    await desk.with_other()
    link = Interface(
        is_on=True, has_link=False, families=frozenset({4}), addresses=frozenset({"10.0.0.1"})
    )
    now = {"eth0": link}
    desk.patch.setattr(own_link, "_paths_of", lambda _peer: (Egress("eth0", "10.0.0.1"),))
    desk.patch.setattr(own_link, "_interfaces", lambda: now)
    desk.node.heartbeats.membership.step(now_s(), SaidGoodbye(OTHER))
    yield
    now["eth0"] = replace(link, has_link=True)


async def no_leader(desk: Desk) -> Ending:
    await desk.lead()
    desk.node.heartbeats.election._leader = None
    yield
    desk.node.heartbeats.election._leader = desk.own


def attic(desk: Desk) -> None:
    """Let the daemon meet a cluster that is closed, and wait outside."""
    summary = Summary(ATTIC, "attic", False, False, OTHER, 1, 1)
    desk.node.handshake.seen.note(summary)
    desk.node.handshake.joining.set_pending("attic is closed")


def away_from_home(desk: Desk) -> None:
    """Let health take the daemon for one that finds others on other machines."""
    health, settings = desk.node.observers.health, desk.node.settings
    health._settings = replace(settings, local=False)


async def pending_node(desk: Desk) -> Ending:
    away_from_home(desk)
    attic(desk)
    yield
    desk.pass_s(REMEMBERED_S + 1)  # it is switched off
    desk.node.handshake.joining.look_for_wanted()


async def pending_locally(desk: Desk) -> Ending:
    attic(desk)
    yield
    desk.pass_s(REMEMBERED_S + 1)
    desk.node.handshake.joining.look_for_wanted()


async def sought(desk: Desk) -> Ending:
    joining = desk.node.handshake.joining
    joining.token = Token(ATTIC, "1" * 16, "2" * 32)
    desk.pass_s(PATIENCE_S)
    joining.look_for_wanted()
    yield
    desk.node.handshake.seen.note(Summary(ATTIC, "attic", False, False, OTHER, 1, 1))
    joining.look_for_wanted()


async def behind(desk: Desk) -> Ending:
    await desk.with_other(WALKED_IN)
    desk.node.replica._refused[OTHER] = {"writer": Tip(7, 1, "f" * 64)}
    yield
    await desk.node.replica.append(1, [NodeAdmitted(OTHER, "other", b"certificate", "a yes")])


async def no_engine(desk: Desk) -> Ending:
    await desk.lead()
    desk.node.local_view.hardware = replace(desk.node.hardware, engines=())
    yield
    desk.node.local_view.hardware = replace(desk.node.hardware, engines=("torch",))


async def trusts_lan(desk: Desk) -> Ending:
    await desk.start("trusting", trust_lan=True)
    yield
    await desk.start("another")


async def contradiction(desk: Desk) -> Ending:
    await desk.lead()
    write(desk.node, MachineEntry(name="one", memory_gb=900_000, lines={"memory_gb": 3}))
    yield
    write(desk.node, MachineEntry(name="one"))


async def no_effect(desk: Desk) -> Ending:
    await desk.lead()
    write(desk.node, MachineEntry(name="one", ssh_user="me", lines={"ssh_user": 3}))
    yield
    write(desk.node, MachineEntry(name="one"))


async def clone_of_member(desk: Desk) -> Ending:
    await desk.with_other()
    reply = peer_pb2.HelloReply(clone_at="10.9.9.9:1", run_nonce="x")
    desk.node.handshake.cloned.note(OTHER, THERE, reply)
    yield
    desk.pass_s(COUNTS_S)  # neither is met any more
    desk.hear_other()


async def node_gone(desk: Desk) -> Ending:
    await desk.with_other()
    desk.node.heartbeats.membership.step(now_s(), SaidGoodbye(OTHER))
    yield
    desk.hear_other()


async def node_suspect(desk: Desk) -> Ending:
    await desk.lead(NodeAdmitted(OTHER, "other", b"certificate", "window open"))
    desk.node.heartbeats.roster_changed()
    yield
    desk.hear_other()


async def shared_address(desk: Desk) -> Ending:
    await desk.with_other()
    places = frozenset({("10.0.0.1", "1")})
    told = [AnnouncedAddresses("other", "m2", places)]
    desk.patch.setattr(
        health_view, "own_advertisement", lambda *_: AnnouncedAddresses("one", "m1", places)
    )
    desk.patch.setattr(health_view, "peer_advertisements", lambda *_: told)
    yield
    told[0] = AnnouncedAddresses("other", "m2", frozenset({("10.0.0.2", "1")}))


async def clock_differs(desk: Desk) -> Ending:
    await desk.with_other()
    offset = ClockOffset()

    def offsets(*_: object) -> dict[NodeId, float]:
        return {} if offset.proved_s is None else {OTHER: offset.proved_s}

    desk.patch.setattr(health_view, "proved_offsets", offsets)
    offset.note(1000.0, 1060.0, 0.1)
    yield
    for _ in range(RETAINED_ANSWERS):
        offset.note(1000.0, 1000.1, 0.1)


def fail_at(desk: Desk, reached: Reached) -> None:
    """Let an address fail for as long as it takes to be told of."""
    addresses = desk.node.handshake.addresses
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
    unreached = desk.node.handshake.unreached
    fail_at(desk, Reached.NOTHING)
    unreached.announced.note(THERE)
    unreached.look()
    yield
    desk.pass_s(HEARD_S)  # it was switched off
    unreached.look()


async def tcp_silent(desk: Desk) -> Ending:
    await desk.lead()
    unreached = desk.node.handshake.unreached
    fail_at(desk, Reached.CONNECTED)
    unreached.announced.note(THERE)
    unreached.look()
    yield
    desk.node.handshake.addresses[THERE].succeed()
    unreached.look()


async def peer_unreached(desk: Desk) -> Ending:
    await desk.lead()
    unreached = desk.node.handshake.unreached
    unreached.named = lambda: frozenset({THERE})
    fail_at(desk, Reached.NOTHING)
    unreached.look()
    yield
    desk.node.handshake.addresses[THERE].succeed()
    unreached.look()


async def version_differs(desk: Desk) -> Ending:
    await desk.with_other()
    newer = tuple(
        (name, "0.99.0" if name == "jupiterd" else version)
        for name, version in desk.node.hardware.versions
    )
    other = [replace(desk.node.hardware, versions=newer)]
    desk.patch.setattr(
        desk.node.local_view,
        "hardware_of",
        lambda node: other[0] if node == OTHER else desk.node.hardware,
    )
    yield
    other[0] = desk.node.hardware


async def node_waits(desk: Desk) -> Ending:
    await desk.lead()
    assert desk.node.leading is not None
    waiting = desk.node.leading.admissions.waiting
    begin(waiting, now_s(), NEW)
    show(waiting, now_s() + 1, NEW)
    yield
    desk.pass_s(WAIT_S + 2)


async def node_walked_in(desk: Desk) -> Ending:
    await desk.with_other(WALKED_IN)
    yield
    await desk.node.replica.append(1, [NodeAdmitted(OTHER, "other", b"certificate", "a yes")])


async def alone(desk: Desk) -> Ending:
    away_from_home(desk)
    await desk.lead()
    yield
    await desk.node.replica.append(1, [NodeAdmitted(OTHER, "other", b"certificate", "open")])


async def alone_locally(desk: Desk) -> Ending:
    await desk.lead()
    yield
    await desk.node.replica.append(1, [NodeAdmitted(OTHER, "other", b"certificate", "open")])
