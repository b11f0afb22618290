"""Can daemons find each other by multicast? Sends and receives packets on every interface.

Owns the findings about the readings (`net.multicast_probe` makes them).
"""

import errno
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from jupiterd.doctor.examined_machine import ExaminedMachine, Row
from jupiterd.doctor.finding import Finding, fail, ok, warn
from jupiterd.formats import counted
from jupiterd.net.interface_kinds import kind_of
from jupiterd.net.interfaces import LOOPBACK, addresses_by_interface, interface_of, missing_of
from jupiterd.net.multicast_probe import MulticastReading, probe_multicast
from jupiterd.net.scopes import host_in, is_link_local, without_scope

CHECK = "multicast"

NAME_A_NODE = "name a machine where multicast doesn't reach: jupiterd --peer HOST"


@dataclass(frozen=True)
class Readings:
    """The probes of each interface, over IPv4 and IPv6."""

    tried: tuple[MulticastReading, ...]
    expects_others: bool = False
    """Whether other machines of the cluster are alive, so that their daemons should be heard."""
    missing: str = ""
    """A text about requested interfaces that don't exist; empty: there are none."""


def read(machine: ExaminedMachine) -> Readings:
    """Probe all interfaces at the same time, for two seconds; return the readings."""
    targets = _targets(machine)
    own = _own_addresses()
    alive = [node for node in machine.others if node.get("state") == "alive"]
    with ThreadPoolExecutor(max(1, len(targets))) as pool:
        running = [pool.submit(probe_multicast, *target, own) for target in targets]
        tried = tuple(future.result() for future in running)
    missing = "" if machine.local else missing_of(machine.interfaces)
    return Readings(tried, not all(_is_here(node, own) for node in alive), missing)


def judge(found: Readings) -> list[Finding]:
    """Return a finding for each interface and family."""
    if not found.tried and found.missing:
        return [warn(CHECK, found.missing, "name one of these: jupiterd --interface NAME")]
    if not found.tried:
        why = "no interface with an address leads to other machines"
        return [warn(CHECK, why, "connect this machine to the network, by cable if you can")]
    return [_judge_one(reading, found) for reading in found.tried]


def _judge_one(reading: MulticastReading, found: Readings) -> Finding:
    where = f"{reading.interface} ({'IPv6' if ':' in reading.address else 'IPv4'})"
    if reading.errno:
        return _unsent(reading, where)
    if not reading.is_own_heard:
        return fail(
            CHECK,
            f"what is sent to UDP port 5353 on {where} doesn't arrive: a firewall drops it",
            f"let UDP port 5353 in (see the check firewall), or {NAME_A_NODE}",
        )
    if reading.others:
        count = len(reading.others)
        heard = f"{counted(count, 'other machine')} heard"
        return ok(CHECK, f"{where}: sent and received, {heard}")
    if found.expects_others and ":" not in reading.address:
        return warn(
            CHECK,
            f"{where}: sent and received, but no other machine was heard within two seconds",
            "look for client isolation (guest network) in the access point and IGMP snooping in "
            f"the switch, or {NAME_A_NODE}",
        )
    return ok(CHECK, f"{where}: sent and received, no other machine heard")


def _unsent(reading: MulticastReading, where: str) -> Finding:
    if ":" in reading.address:  # only a warning: IPv4 is enough
        why = f"{where}: multicast can't be sent ({_name(reading.errno)})"
        return warn(CHECK, why, "nothing needs doing as long as IPv4 works")
    if reading.errno == errno.EADDRINUSE:
        why = f"{where}: another program keeps UDP port 5353 to itself"
        return fail(CHECK, why, f"find it with: sudo lsof -i UDP:5353; or {NAME_A_NODE}")
    if reading.errno in {errno.EPERM, errno.EACCES}:
        why = f"{where}: sending multicast is forbidden ({_name(reading.errno)})"
        return fail(CHECK, why, f"look at outgoing rules: sudo nft list ruleset; or {NAME_A_NODE}")
    why = f"{where}: multicast can't be sent ({_name(reading.errno)})"
    return fail(CHECK, why, f"on macOS see the check local-network; anywhere: {NAME_A_NODE}")


def _name(number: int) -> str:
    return errno.errorcode.get(number, f"error {number}")


def _targets(machine: ExaminedMachine) -> list[tuple[str, str]]:
    """Return (interface, address) for each address family on each physical interface."""
    if machine.local:
        return [(interface_of(LOOPBACK), LOOPBACK)]
    found: dict[tuple[str, bool], str] = {}
    for name, address in addresses_by_interface(machine.interfaces):
        if kind_of(name).is_physical:
            is_ipv6 = ":" in address
            if not is_ipv6 and is_link_local(address):
                continue
            found.setdefault((name, is_ipv6), without_scope(address))
    return [(name, address) for (name, _), address in found.items()]


def _own_addresses() -> frozenset[str]:
    """Return this machine's addresses: answers from them come from its own daemon."""
    return frozenset({LOOPBACK, *(without_scope(host) for _, host in addresses_by_interface())})


def _is_here(node: Row, own: frozenset[str]) -> bool:
    """Return whether a node runs on this machine, so that it can't be heard as another one."""
    hosts = {without_scope(host_in(str(text))) for text in node.get("addresses") or ()}
    return bool(hosts & own)
