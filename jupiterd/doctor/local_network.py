"""May this process use the local network? macOS asks the user, for each program.

Owns the test and the finding. From macOS 15 on, a program without the permission gets `No route to
host` only for machines of the local network; launchd daemons and root are exempt (Apple's TN3179).
"""

import errno
import socket
from dataclasses import dataclass
from typing import Final

from jupiterd.doctor.examined_machine import DISCOVERY_PORT, ExaminedMachine
from jupiterd.doctor.finding import Finding, fail, not_here, ok, warn
from jupiterd.doctor.lan import networks

CHECK: Final = "local-network"
GROUP: Final = "224.0.0.251"
FIX: Final = (
    "System Settings > Privacy & Security > Local Network: allow the program that starts jupiterd; "
    "or start it from Terminal or as a daemon of launchd"
)


@dataclass(frozen=True)
class LocalNetworkReading:
    """The result of sending a packet to the local network, on each interface."""

    system: str
    errnos: tuple[int, ...] = ()
    """One error number for each network; 0: the packet was sent."""


def read(machine: ExaminedMachine) -> LocalNetworkReading:
    """Send an empty packet to the multicast group on each network, on macOS only."""
    if machine.system != "Darwin" or machine.local:
        return LocalNetworkReading(machine.system)
    found = networks(machine.interfaces)
    return LocalNetworkReading(machine.system, tuple(_sent(network.address) for network in found))


def judge(reading: LocalNetworkReading) -> Finding:
    """Return the finding about the permission."""
    if reading.system != "Darwin":
        return not_here(CHECK, "only macOS asks for this permission")
    if errno.EHOSTUNREACH in reading.errnos:
        return fail(CHECK, "macOS keeps this program off the local network", FIX)
    if not reading.errnos:
        return not_here(CHECK, "no network was tried")
    if any(reading.errnos):
        names = ", ".join(errno.errorcode.get(number, str(number)) for number in reading.errnos)
        return warn(CHECK, f"a packet to the local network couldn't be sent: {names}", FIX)
    return ok(CHECK, "this program may speak to the local network")


def _sent(address: str) -> int:
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(address))
            sender.sendto(b"", (GROUP, DISCOVERY_PORT))
    except OSError as error:
        return error.errno or -1
    return 0
