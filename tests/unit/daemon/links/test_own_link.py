"""What is put together before the rule judges this machine's own link."""

import pytest

from jupiterd.cluster.links.links import Links, Path
from jupiterd.cluster.links.own_link import Outage
from jupiterd.cluster.membership.failure_detector import Liveness
from jupiterd.cluster.values.interface_kind import InterfaceKind
from jupiterd.daemon.links import own_link
from jupiterd.daemon.links.own_link import InterfaceState, interface_states, own_outage
from jupiterd.ids import NodeId

THERE = NodeId("c" * 32)
OUT = InterfaceState(is_on=True, has_link=False, addresses=("10.0.0.1",))


def found(liveness: Liveness = Liveness.GONE) -> Outage | None:
    """Return what is wrong with the link of a machine that has reached one other."""
    links = Links(decides=True)
    links.learn(0.0, Path("10.0.0.2:1", "10.0.0.1", "eth0", InterfaceKind.ETHERNET))
    links.use("10.0.0.2:1", "it answered first")
    return own_outage({THERE: liveness}, {THERE: links})


def test_the_way_by_which_it_was_reached_and_how_that_is_now_come_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = {"eth0": OUT}
    monkeypatch.setattr(own_link, "interface_states", lambda: now)
    outage = found()
    assert outage is not None
    assert (outage.cause, outage.cut_off) == ("eth0 has no link (cable out?)", {THERE})
    now["eth0"] = InterfaceState(is_on=True, has_link=True, addresses=("169.254.3.4", "fe80::1%e"))
    outage = found()
    assert outage is not None
    assert outage.cause == "eth0 has lost its address 10.0.0.1"
    now["eth0"] = InterfaceState(is_on=True, has_link=True, addresses=("10.0.0.1",))
    assert found() is None


def test_the_system_is_not_asked_while_somebody_answers_and_may_fail_to_say(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fails() -> dict[str, InterfaceState]:
        raise OSError("no file is left")

    monkeypatch.setattr(own_link, "interface_states", fails)
    assert found() is None
    monkeypatch.setattr(own_link, "interface_states", lambda: pytest.fail("asked"))
    assert found(Liveness.ALIVE) is None


def test_this_machine_says_how_its_interfaces_are() -> None:
    states = interface_states()
    loopback = next(seen for seen in states.values() if "127.0.0.1" in seen.addresses)
    assert loopback.is_on
    assert loopback.has_link
