"""What follows from what a system says of its firewall."""

from dataclasses import replace

import pytest

from jupiterd.cluster.values.interface_kind import InterfaceKind
from jupiterd.doctor.finding import Status
from jupiterd.doctor.firewall import FirewallReading, judge
from jupiterd.doctor.lan import Network
from jupiterd.doctor.system_command import CommandOutput
from tests.unit.doctor.test_nft_ruleset import ACCEPT, ESTABLISHED, field, match, ruleset

LAN = Network("eth0", InterfaceKind.ETHERNET, "192.168.1.5", "192.168.1.0/24", 1000)
LINUX = FirewallReading("Linux", 47470, (LAN,))
NOT_ROOT = CommandOutput(1, errors="Operation not permitted (you must be root)")
FROM_LAN = [match(field("ip", "saddr"), {"prefix": {"addr": "192.168.1.0", "len": 24}}), ACCEPT]


def test_a_daemon_on_loopback_needs_no_firewall_to_let_anybody_in():
    assert judge(replace(LINUX, networks=())).status is Status.NOT_HERE


def test_what_is_dropped_is_named_with_a_rule_that_lets_it_in():
    found = judge(replace(LINUX, ruleset=CommandOutput(0, ruleset(ESTABLISHED))))
    assert found.status is Status.FAIL
    assert found.why.startswith("the firewall drops TCP port 47470 (jupiterd), UDP port 5353")
    assert found.fix == ("sudo nft insert rule inet filter input ip saddr 192.168.1.0/24 accept")
    assert judge(replace(LINUX, ruleset=CommandOutput(0, ruleset(FROM_LAN)))).status is Status.OK


def test_ports_of_gangs_count_too():
    rules = ruleset(
        [match(field("tcp", "dport"), 47470), ACCEPT], [match(field("udp", "dport"), 5353), ACCEPT]
    )
    found = judge(replace(LINUX, ruleset=CommandOutput(0, rules)))
    assert found.status is Status.FAIL
    assert (
        found.why
        == "the firewall drops the TCP ports of members and gangs, which the system chooses"
    )


def test_rules_that_are_not_understood_are_a_warning():
    found = judge(replace(LINUX, ruleset=CommandOutput(0, ruleset([{"xt": None}, ACCEPT]))))
    assert found.status is Status.WARN


@pytest.mark.parametrize(
    ("reading", "fix"),
    [
        (
            replace(LINUX, ruleset=NOT_ROOT, ufw="ENABLED=yes\n"),
            "sudo ufw allow from 192.168.1.0/24",
        ),
        (
            replace(LINUX, ruleset=NOT_ROOT, firewalld=CommandOutput(0, "running\n")),
            (
                "sudo firewall-cmd --permanent --zone=trusted --add-source=192.168.1.0/24"
                " && sudo firewall-cmd --reload"
            ),
        ),
        (replace(LINUX, ruleset=NOT_ROOT), 'sudo "$(command -v jupiterd)" doctor'),
    ],
)
def test_where_only_root_may_read_the_command_of_the_tool_is_named(
    reading: FirewallReading, fix: str
):
    found = judge(reading)
    assert found.status is Status.WARN
    assert found.fix.endswith(fix)


def test_without_any_tool_there_is_no_firewall():
    assert judge(LINUX).status is Status.OK


@pytest.mark.parametrize(
    ("told", "status"),
    [
        (CommandOutput(0, "Firewall is disabled. (State = 0)\n"), Status.OK),
        (CommandOutput(0, "Firewall is enabled. (State = 1)\n"), Status.WARN),
        (CommandOutput(None), Status.WARN),
    ],
)
def test_the_firewall_of_a_mac(told: CommandOutput, status: Status):
    assert judge(FirewallReading("Darwin", 47470, (LAN,), mac=told)).status is status
