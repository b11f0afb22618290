"""What follows from what was heard by multicast."""

import errno
import socket

import pytest

from jupiterd.doctor.finding import Status
from jupiterd.doctor.multicast import Readings, judge
from jupiterd.net.multicast_probe import MulticastReading, probe_multicast

HEARD = MulticastReading("eth0", "192.168.1.5", is_own_heard=True, others=("192.168.1.7",))
ALONE = MulticastReading("eth0", "192.168.1.5", is_own_heard=True)


@pytest.mark.parametrize(
    ("reading", "expects_others", "status", "word"),
    [
        (HEARD, True, Status.OK, "1 other machine heard"),
        (ALONE, False, Status.OK, "no other machine heard"),
        (ALONE, True, Status.WARN, "no other machine was heard"),
        (MulticastReading("eth0", "192.168.1.5"), False, Status.FAIL, "a firewall drops it"),
        (MulticastReading("eth0", "1.2.3.4", errno.EADDRINUSE), True, Status.FAIL, "another pro"),
        (MulticastReading("eth0", "1.2.3.4", errno.EPERM), True, Status.FAIL, "forbidden (EPERM)"),
        (MulticastReading("eth0", "1.2.3.4", errno.ENETUNREACH), True, Status.FAIL, "ENETUNREACH"),
        (MulticastReading("eth0", "fe80::1", errno.ENODEV), True, Status.WARN, "(IPv6)"),
        (MulticastReading("eth0", "fe80::1", is_own_heard=True), True, Status.OK, "(IPv6)"),
    ],
)
def test_one_interface(reading: MulticastReading, expects_others: bool, status: Status, word: str):
    (found,) = judge(Readings((reading,), expects_others))
    assert found.status is status
    assert word in found.why
    assert found.fix or status is Status.OK


def test_without_a_network_there_is_nothing_to_try():
    (found,) = judge(Readings(()))
    assert found.status is Status.WARN


def test_a_mistyped_interface_is_told_of_with_those_that_there_are():
    (found,) = judge(Readings((), missing="no interface is called eht0; here are eth0, lo"))
    assert (found.status, found.why) == (
        Status.WARN,
        "no interface is called eht0; here are eth0, lo",
    )
    assert "--interface" in found.fix


@pytest.mark.net
def test_a_real_question_is_heard_on_loopback():
    reading = probe_multicast("lo", "127.0.0.1", frozenset({"127.0.0.1"}), listen_s=0.5)
    assert (reading.errno, reading.is_own_heard) == (0, True)


@pytest.mark.net
def test_a_port_that_another_program_keeps_to_itself_is_told(monkeypatch):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        monkeypatch.setattr("jupiterd.net.multicast_probe.PORT", taken.getsockname()[1])
        reading = probe_multicast("lo", "127.0.0.1", frozenset())
    assert reading.errno == errno.EADDRINUSE
