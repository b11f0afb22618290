"""One address that two machines tell as their own."""

from dataclasses import replace

from jupiterd.cluster.health.health import ClusterView, NodeView, judge
from jupiterd.cluster.membership.failure_detector import Liveness
from jupiterd.cluster.membership.shared_addresses import AnnouncedAddresses, shared_addresses
from tests.support.cluster.building import NODES

DESK = AnnouncedAddresses("desk", "m1", frozenset({("10.59.0.5", "47470"), ("fd00::1", "47470")}))
LAP = AnnouncedAddresses("lap", "m2", frozenset({("10.59.0.5", "47470"), ("fd00::2", "47470")}))
BOX = AnnouncedAddresses("box", "m3", frozenset({("10.59.0.7", "47470")}))


def shared(*told: AnnouncedAddresses) -> list[tuple[str, str, str]]:
    return list(shared_addresses(told))


def test_both_are_named_with_the_address() -> None:
    assert shared(DESK, BOX, LAP) == [("10.59.0.5", "desk", "lap")]
    other_port = replace(LAP, places=frozenset({("10.59.0.5", "50000")}))
    assert shared(other_port, DESK) == [("10.59.0.5", "desk", "lap")]


def test_daemons_of_one_machine_share_its_address_and_no_port() -> None:
    second = AnnouncedAddresses(
        "desk-2", "m1", frozenset({("10.59.0.5", "50001"), ("fd00::1", "50001")})
    )
    assert shared(DESK, second) == []
    assert shared(DESK, replace(second, machine="")) == [], "who doesn't say may be the same one"
    assert shared(DESK, replace(LAP, machine="m1")) == [("10.59.0.5", "desk", "lap")]


def test_it_is_told_in_health() -> None:
    nodes = (
        NodeView(NODES[0], "desk", Liveness.ALIVE, ("torch",)),
        NodeView(NODES[1], "lap", Liveness.ALIVE),
    )
    view = ClusterView(NODES[0], nodes, shared_addresses=(("10.59.0.5", "desk", "lap"),))
    (line,) = judge(view)
    assert line.code == "shared-address"
    assert line.title == "desk and lap both have the address 10.59.0.5"
