"""What may happen to a machine's link: pulled, cut off from some, lossy, deaf, moved.

Owns the commands for that. Each touches namespaces of the lab alone.
"""

import sys
import time
from collections.abc import Iterable, Sequence

from tests.support.network.lab import ELSEWHERE, PREFIX_LENGTH, Host, address_of, bridge, interface

FILTER = "nft"
"""What one-way cuts, loss and deafness need beside `ip`."""

THROTTLE = "tc"

_TABLE = "jupiter"

_LOOK_UP = f"""
import contextlib, socket
with contextlib.suppress(OSError):
    socket.gethostbyaddr("{address_of(200)}")
"""


def pull(host: Host, switch: int = 0) -> None:
    """Pull the cable: the machine's interface loses its carrier and keeps its address."""
    host.switches.ip(f"link set {host.port(switch)} down")


def plug(host: Host, switch: int = 0) -> None:
    """Put the cable back in."""
    host.switches.ip(f"link set {host.port(switch)} up")


def separate(hosts: Sequence[Host]) -> None:
    """Let these machines see each other, and nobody else: they hang on another switch."""
    _move(hosts, ELSEWHERE)


def heal(hosts: Sequence[Host]) -> None:
    """Bring these machines back to the first switch."""
    _move(hosts, 0)


def deafen(host: Host, to: Sequence[Host]) -> None:
    """Drop every frame that comes from these: they hear the machine, it doesn't hear them."""
    macs = ", ".join(other.mac() for other in to)
    _filter(
        host,
        f"chain heard {{ type filter hook input priority 0; ether saddr {{ {macs} }} drop; }}",
    )


def lose(host: Host, percent: int) -> None:
    """Drop so many of the packets that come in, each by chance."""
    device = interface(0)
    _filter(
        host,
        "chain heard { type filter hook input priority 0; "
        f'iifname "{device}" numgen random mod 100 < {percent} drop; }}',
    )


def block_all_but(host: Host, ports: Iterable[int]) -> None:
    """Drop every TCP packet that comes in from others, but those of some ports."""
    device, passing = interface(0), ", ".join(map(str, sorted(ports)))
    _filter(
        host,
        "chain heard { type filter hook input priority 0; "
        f"tcp dport {{ {passing} }} accept; tcp sport {{ {passing} }} accept; "
        f'iifname "{device}" meta l4proto tcp drop; }}',
    )


def silence_multicast(host: Host) -> None:
    """Drop what comes in by multicast DNS."""
    _filter(host, "chain heard { type filter hook input priority 0; udp dport 5353 drop; }")


def drop_tcp(host: Host) -> None:
    """Let no TCP in or out, as an access point does that keeps its clients apart."""
    device = interface(0)
    _filter(
        host,
        f"chain heard {{ type filter hook input priority 0; "
        f'iifname "{device}" meta l4proto tcp drop; }}\n'
        f"chain said {{ type filter hook output priority 0; "
        f'oifname "{device}" meta l4proto tcp drop; }}',
    )


def restore(host: Host) -> None:
    """Drop nothing any more."""
    host.inside.run(FILTER, "-f", "-", given=f"table inet {_TABLE}\ndelete table inet {_TABLE}\n")


def readdress(host: Host, number: int) -> str:
    """Give the machine another address, as DHCP may; return it."""
    device, mask = interface(0), PREFIX_LENGTH
    host.inside.ip(
        f"addr flush dev {device} scope global",
        f"addr add {address_of(number)}/{mask} brd + dev {device}",
    )
    return address_of(number)


def drop_all(host: Host, switch: int) -> None:
    """Drop whatever comes in from a switch; every address and carrier stays."""
    device = interface(switch)
    _filter(host, f'chain heard {{ type filter hook input priority 0; iifname "{device}" drop; }}')


def throttle(host: Host, switch: int, rate: str) -> None:
    """Let no more than that out of the machine to a switch, such as `20mbit`."""
    shape = ("tbf", "rate", rate, "burst", "16kb", "latency", "50ms")
    host.inside.run(THROTTLE, "qdisc", "add", "dev", interface(switch), "root", *shape)


def free(host: Host, switch: int = 0) -> None:
    """Let out of the machine whatever its link carries again."""
    host.inside.run(THROTTLE, "qdisc", "del", "dev", interface(switch), "root")


def forget_ipv4(host: Host, switch: int = 0) -> None:
    """Leave the machine with IPv6 alone, on the one link."""
    host.inside.run("ip", "-4", "addr", "flush", "dev", interface(switch))


def renumber(host: Host) -> None:
    """Give the interface of a machine that has only begun another number than those of others."""
    host.inside.ip("link add br8 type bridge", "link add br9 type bridge", "link del eth0")
    host.plug_in()


def lose_name_server(host: Host) -> float:
    """Let look-ups of names go out, where nobody answers; return how long one takes, in seconds."""
    host.inside.ip(f"route add default dev {interface(0)}")
    began_s = time.monotonic()
    host.inside.run(sys.executable, "-c", _LOOK_UP)
    return time.monotonic() - began_s


def link_local(host: Host, switch: int = 0) -> str:
    """Return the IPv6 address that the machine gave itself at a switch, without a scope."""
    rows = host.inside.run("ip", "-6", "-o", "addr", "show", "dev", interface(switch)).split()
    return next(word.partition("/")[0] for word in rows if word.startswith("fe80:"))


def _filter(host: Host, chains: str) -> None:
    restore(host)
    host.inside.run(FILTER, "-f", "-", given=f"table inet {_TABLE} {{\n{chains}\n}}\n")


def _move(hosts: Sequence[Host], switch: int) -> None:
    ports = [host.port() for host in hosts]
    hosts[0].switches.ip(*(f"link set {port} master {bridge(switch)}" for port in ports))
