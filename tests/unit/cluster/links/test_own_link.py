"""A machine whose own cable is out says so, and doesn't ask people to wake the others."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from jupiterd.cluster.health.health import ClusterView, HealthWarning, NodeView, judge
from jupiterd.cluster.links.own_link import Egress, Interface, Other, Outage, outage
from jupiterd.cluster.links.unreached import Reached, Unreached
from jupiterd.cluster.membership.failure_detector import Liveness
from jupiterd.cluster.text.health_words import OF_THIS_NODE
from jupiterd.cluster.values.interface_kind import InterfaceKind
from tests.support.cluster.building import NODES

WELL = Interface(
    is_on=True,
    has_link=True,
    families=frozenset({4}),
    addresses=frozenset({"10.0.0.1", "fe80::1"}),
)
OUT = replace(WELL, has_link=False)
CABLE = Egress("eth0", "10.0.0.1")
LINK_LOCAL = Egress("eth0", "fe80::1")
AIR = Egress("wlan0", "10.0.1.1", InterfaceKind.WIFI)
DESK, LAP = (Other(node, is_alive=False, egresses=(CABLE,)) for node in NODES[1:3])


def told(*ways: Egress, **now: Interface) -> str:
    found = outage([Other(NODES[1], is_alive=False, egresses=ways)], now)
    return "" if found is None else found.cause


@pytest.mark.parametrize(
    ("way", "now", "words"),
    [
        (CABLE, {"eth0": OUT}, "eth0 has no link (cable out?)"),
        (CABLE, {"eth0": replace(OUT, is_on=False)}, "eth0 is switched off"),
        (CABLE, {}, "eth0 is gone"),
        (
            CABLE,
            {"eth0": replace(WELL, families=frozenset(), addresses=frozenset())},
            "eth0 has lost its address 10.0.0.1",
        ),
        (AIR, {"wlan0": OUT}, "wlan0 is in no network"),
        (replace(CABLE, kind=InterfaceKind.VPN), {"eth0": OUT}, "eth0 has no link"),
        (replace(CABLE, kind=InterfaceKind.CONTAINER), {"eth0": OUT}, ""),
        (CABLE, {"eth0": WELL}, ""),
        (LINK_LOCAL, {"eth0": WELL}, ""),
        (replace(CABLE, source=""), {}, ""),
        (replace(CABLE, interface=""), {}, ""),
    ],
)
def test_what_is_wrong_with_an_interface_is_told(
    way: Egress, now: Mapping[str, Interface], words: str
) -> None:
    assert told(way, **now) == words


def test_another_address_of_that_network_may_carry_on() -> None:
    renewed = replace(WELL, addresses=frozenset({"10.0.0.7"}))
    assert not told(CABLE, eth0=renewed)
    assert told(LINK_LOCAL, eth0=renewed), "IPv4 helps no address of IPv6"


def test_a_way_that_is_left_clears_this_machine() -> None:
    assert told(CABLE, AIR, wlan0=OUT) == "eth0 is gone"
    assert not told(CABLE, AIR, wlan0=replace(WELL, families=frozenset({4})))


def test_it_is_told_where_everybody_is_silent_and_not_before() -> None:
    found = outage([DESK, LAP], {"eth0": OUT})
    assert found is not None
    assert found.cut_off == {DESK.node, LAP.node}
    assert found.cause.count("eth0") == 1
    assert outage([DESK, replace(LAP, is_alive=True)], {"eth0": OUT}) is None
    assert outage([], {}) is None


def test_who_was_never_reached_or_by_another_way_isnt_excused() -> None:
    found = outage([DESK, replace(LAP, egresses=())], {"eth0": OUT})
    assert found is not None
    assert found.cut_off == {DESK.node}
    found = outage([DESK, replace(LAP, egresses=(AIR,))], {"eth0": OUT, "wlan0": WELL})
    assert found is not None
    assert found.cut_off == {DESK.node}
    assert outage([replace(LAP, egresses=())], {}) is None


def test_two_links_that_are_out_are_both_named() -> None:
    found = outage([DESK, replace(LAP, egresses=(AIR,))], {"eth0": OUT})
    assert found is not None
    assert found.cause == "eth0 has no link (cable out?) and wlan0 is gone"
    assert found.hint.startswith("plug it in, at both ends; or")
    assert "adapter of wlan0" in found.hint


def test_health_has_one_line_in_place_of_one_for_each_other_machine() -> None:
    nodes = (
        NodeView(NODES[0], "here", Liveness.ALIVE, ("torch",)),
        NodeView(NODES[1], "desk", Liveness.GONE),
        NodeView(NODES[2], "lap", Liveness.SUSPECT),
    )
    named = Unreached("10.0.0.9:47470", Reached.NOTHING, is_heard=False)
    view = ClusterView(NODES[0], nodes, unreached=(named,))
    assert [line.code for line in judge(view)] == ["node-gone", "node-suspect", "peer-unreached"]
    out = Outage("eth0 has no link (cable out?)", "plug it in", frozenset(NODES[1:3]))
    (line,) = judge(replace(view, outage=out))
    assert line == HealthWarning(
        "link-out",
        line.severity,
        "this machine's eth0 has no link (cable out?): it reaches no other",
        "plug it in",
    )
    some = replace(out, cut_off=frozenset({NODES[1]}))
    assert [line.code for line in judge(replace(view, outage=some))] == ["link-out", "node-suspect"]
    assert "link-out" in OF_THIS_NODE, "status --check --node self counts it"
