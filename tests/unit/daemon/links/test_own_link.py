"""What is put together before the rule judges this machine's own link."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from jupiterd.cluster.links.links import Links, Path
from jupiterd.cluster.membership.membership import Liveness
from jupiterd.cluster.values.interface_kind import InterfaceKind
from jupiterd.daemon.links import own_link
from jupiterd.daemon.links.interface_states import InterfaceState, interface_states
from jupiterd.daemon.links.own_link import own_outage
from jupiterd.ids import NodeId

HERE, THERE = NodeId("a" * 32), NodeId("c" * 32)
OUT = InterfaceState(is_on=True, has_link=False, addresses=("10.0.0.1",))


def reached(liveness: Liveness = Liveness.GONE) -> Any:
    links = Links(decides=True)
    links.learn(0.0, Path("10.0.0.2:1", "10.0.0.1", "eth0", InterfaceKind.ETHERNET))
    links.use("10.0.0.2:1", "it answered first")

    def judged(_node: NodeId) -> Liveness:
        return liveness

    return SimpleNamespace(
        identity=SimpleNamespace(node_id=HERE),
        outlook=SimpleNamespace(liveness=judged),
        journal=SimpleNamespace(state=SimpleNamespace(members={HERE: None, THERE: None})),
        peers=cast("Any", {THERE: SimpleNamespace(links=links)}),
    )


def test_the_way_by_which_it_was_reached_and_how_that_is_now_come_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = {"eth0": OUT}
    monkeypatch.setattr(own_link, "interface_states", lambda: now)
    found = own_outage(reached())
    assert found is not None
    assert (found.told, found.cut_off) == ("eth0 has no link (cable out?)", {THERE})
    now["eth0"] = InterfaceState(is_on=True, has_link=True, addresses=("169.254.3.4", "fe80::1%e"))
    found = own_outage(reached())
    assert found is not None
    assert found.told == "eth0 has lost its address 10.0.0.1"
    now["eth0"] = InterfaceState(is_on=True, has_link=True, addresses=("10.0.0.1",))
    assert own_outage(reached()) is None


def test_the_system_is_not_asked_while_somebody_answers_and_may_fail_to_say(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fails() -> dict[str, InterfaceState]:
        raise OSError("no file is left")

    monkeypatch.setattr(own_link, "interface_states", fails)
    assert own_outage(reached()) is None
    monkeypatch.setattr(own_link, "interface_states", lambda: pytest.fail("asked"))
    assert own_outage(reached(Liveness.ALIVE)) is None


def test_this_machine_says_how_its_interfaces_are() -> None:
    states = interface_states()
    loopback = next(seen for seen in states.values() if "127.0.0.1" in seen.addresses)
    assert loopback.is_on
    assert loopback.has_link
