"""Can jupiterd use its TCP port, and do the other nodes answer at theirs?

Owns testing both, and the findings. Doesn't use TLS: it closes each connection at once.
"""

import errno
import socket
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

from jupiterd.daemon.runtime.address_text import parse_address
from jupiterd.doctor.examined_machine import ExaminedMachine, Row, name_of
from jupiterd.doctor.finding import Finding, fail, not_here, ok, warn
from jupiterd.ports import Address

CHECK: Final = "ports"
TIMEOUT_S: Final = 2.0
MAX_TRIED: Final = 4
"""The highest number of tried addresses of one node; one that answers is enough."""


@dataclass(frozen=True)
class Try:
    """One node, and the result of connecting to it."""

    name: str
    address: str
    errno: int
    """0: it answers."""


@dataclass(frozen=True)
class PortReading:
    """The state of our port, and of the other nodes' ports."""

    port: int
    is_running: bool
    errno: int
    """The error of connecting to our port, or of binding it if no daemon runs; 0: none."""
    others: tuple[Try, ...] = ()
    is_own_link_out: bool = False
    """Whether the daemon reports that this machine's own network link is down."""


def read(machine: ExaminedMachine) -> PortReading:
    """Return the results of testing our port and the other nodes' addresses."""
    is_running = machine.status is not None
    with ThreadPoolExecutor(8) as pool:
        others = tuple(pool.map(_try_node, machine.others))
    own = _connected(Address("127.0.0.1", machine.port)) if is_running else _bound(machine.port)
    tried = tuple(seen for seen in others if seen.address)
    return PortReading(machine.port, is_running, own, tried, machine.complains_of("link-out"))


def judge(reading: PortReading) -> list[Finding]:
    """Return a finding for our port, and one for each silent node, or one about all nodes."""
    silent = [_judge_other(seen) for seen in reading.others if seen.errno]
    answering = len(reading.others) - len(silent)
    if reading.others and not silent:
        summary = "the other node answers" if answering == 1 else f"all {answering} others answer"
        return [_judge_own(reading), ok(CHECK, summary)]
    if reading.is_own_link_out and silent and not answering:
        why = "no other node answers: this machine's own link is out (see health/link-out)"
        return [_judge_own(reading), not_here(CHECK, why)]
    return [_judge_own(reading), *silent]


def _judge_own(reading: PortReading) -> Finding:
    port = reading.port
    if not port:
        return not_here(CHECK, "the system chooses the port at each start")
    if not reading.errno:
        does = "jupiterd answers at" if reading.is_running else "nobody else listens on"
        return ok(CHECK, f"{does} TCP port {port}")
    if reading.is_running and reading.errno == errno.ETIMEDOUT:
        why = (
            f"not even this machine gets through to jupiterd's TCP port {port}: a firewall drops it"
        )
        return fail(CHECK, why, "see the check firewall; let the loopback interface in, too")
    if reading.is_running:
        why = f"jupiterd runs, and nothing answers at its TCP port {port}"
        return fail(CHECK, why, "start jupiterd again, and read its log if this lasts")
    return fail(CHECK, *_why_not_ours(port, reading.errno))


def _why_not_ours(port: int, number: int) -> tuple[str, str]:
    """Return (why, fix)."""
    find = f"find it with: sudo lsof -i TCP:{port} -s TCP:LISTEN; or choose: jupiterd --port 0"
    if number == errno.EADDRINUSE:
        return f"another program listens on TCP port {port}", find
    if number in {errno.EACCES, errno.EPERM}:
        return f"this user may not listen on TCP port {port}", "jupiterd --port 47470"
    return f"TCP port {port} can't be opened: {_name(number)}", "jupiterd --port 0"


def _judge_other(seen: Try) -> Finding:
    where, here = f"{seen.name} at {seen.address}", f"run on {seen.name}: jupiterctl doctor"
    why, fix = {
        errno.ECONNREFUSED: (
            "the machine answers, and jupiterd doesn't run there",
            f"start jupiterd on {seen.name}",
        ),
        errno.ETIMEDOUT: (
            "nothing comes back; it is off or asleep, or a firewall drops packets",
            f"wake {seen.name}, then {here}",
        ),
        errno.EHOSTUNREACH: (
            "no way leads there",
            "is it awake, and the cable in? On macOS see the check local-network",
        ),
        errno.ENETUNREACH: ("this machine is in no network that leads there", "plug the cable in"),
    }.get(seen.errno, (f"it can't be reached: {_name(seen.errno)}", here))
    return warn(CHECK, f"{where}: {why}", fix)


def _try_node(node: Row) -> Try:
    """Return the result of the first address that answers; else that of the first address."""
    addresses: Sequence[str] = node.get("addresses") or ()
    tried: list[Try] = []
    for text in list(addresses)[:MAX_TRIED]:
        tried.append(Try(name_of(node), text, _connected(parse_address(text))))
        if not tried[-1].errno:
            return tried[-1]
    return tried[0] if tried else Try(name_of(node), "", 0)


def _connected(address: Address) -> int:
    try:
        with socket.create_connection((address.host, address.port), TIMEOUT_S):
            return 0
    except TimeoutError:
        return errno.ETIMEDOUT
    except OSError as error:
        return error.errno or -1


def _bound(port: int) -> int:
    """Return the error of listening on the port, 0: none; the port is released at once."""
    try:
        with socket.create_server(("", port)):
            return 0
    except OSError as error:
        return error.errno or -1


def _name(number: int) -> str:
    return errno.errorcode.get(number, f"error {number}")
