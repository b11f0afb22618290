"""A network of one test's own: machines that are network namespaces, joined by a switch.

Owns the namespaces, the cables and the addresses. Doesn't know what runs on a machine, or what is
done to its link.

Nothing is named outside: a namespace lasts as long as the process that holds it, that process ends
when our end of its input closes (whatever becomes of us), and the cables go with the namespaces. So
there is nothing to clean up by name, and two labs can't meet.
"""

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Generator, Iterable
from functools import cache
from types import TracebackType
from typing import Self

TOOLS = ("unshare", "nsenter", "setpriv", "ip")
NETWORK = "10.77"
"""Machines are 10.77.SWITCH.NUMBER; nobody outside the lab sees that."""

PREFIX_LENGTH = 24

ELSEWHERE = 9
"""The switch that a separated group hangs on."""

WIRELESS = 2
"""The switch whose interfaces are called as those of Wi-Fi are."""

# Duplicate address detection would keep an IPv6 address unusable for its first two seconds.
_HOLD = (
    "echo 0 > /proc/sys/net/ipv6/conf/default/accept_dad;"
    "ip link set lo up && echo ready && exec cat"
)


class Namespace:
    """A network namespace, as long as the process lives that holds it."""

    def __init__(self) -> None:
        self._holder = subprocess.Popen(
            ["unshare", "--net", "sh", "-c", _HOLD],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert self._holder.stdout is not None
        if self._holder.stdout.readline() != b"ready\n":
            self.close()
            raise OSError("a network namespace can't be made here")

    @property
    def pid(self) -> int:
        """The holder's process id, by which others name the namespace."""
        return self._holder.pid

    @property
    def prefix(self) -> tuple[str, ...]:
        """What a command begins with to run in here, and to end when the test's process ends."""
        inside = ("nsenter", f"--net=/proc/{self.pid}/ns/net", "--")
        return (*inside, "setpriv", "--pdeathsig", "KILL", "--")

    def run(self, *command: str, given: str = "") -> str:
        """Run a command in here and return what it prints; raises OSError with its complaint."""
        done = subprocess.run(
            [*self.prefix, *command], input=given, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise OSError(f"{' '.join(command)}: {done.stderr.strip()} {given}")
        return done.stdout

    def ip(self, *commands: str) -> None:
        """Carry out some commands of `ip`, one after another, in one process."""
        self.run("ip", "-batch", "-", given="\n".join(commands))

    def close(self) -> None:
        """Let it go; it ends with the last process in it."""
        self._holder.communicate()


class Host:
    """One machine: a namespace with a cable to one switch or more."""

    def __init__(self, number: int, switches: Namespace) -> None:
        self.number = number
        self.switches = switches
        self.inside = Namespace()

    @property
    def address(self) -> str:
        """Its IPv4 address on the first switch, as it was given at the beginning."""
        return address_of(self.number)

    def port(self, switch: int = 0) -> str:
        """Return the name of its port at a switch."""
        return f"port{self.number}-{switch}"

    def mac(self, switch: int = 0) -> str:
        """Return the hardware address that its frames carry at a switch."""
        return f"02:00:00:00:{switch:02x}:{self.number:02x}"

    def plug_in(self, switch: int = 0) -> None:
        """Lay a cable to a switch; the address comes with it."""
        port, device = self.port(switch), interface(switch)
        self.switches.ip(
            f"link add {port} type veth peer name {device} "
            f"address {self.mac(switch)} netns {self.inside.pid}",
            f"link set {port} master {bridge(switch)} up",
        )
        self.inside.ip(
            f"addr add {address_of(self.number, switch)}/{PREFIX_LENGTH} brd + dev {device}",
            f"link set {device} up",
        )

    def received_bytes(self, switch: int = 0) -> int:
        """Return what has come in from a switch until now."""
        rows = self.inside.run("cat", "/proc/net/dev").splitlines()
        (row,) = (row for row in rows if row.strip().startswith(f"{interface(switch)}:"))
        return int(row.partition(":")[2].split()[0])


class Lab:
    """The switches and the machines; a context for `with`."""

    def __init__(self) -> None:
        self._ends = contextlib.ExitStack()
        self._switches: Namespace | None = None
        self.hosts: list[Host] = []

    def __enter__(self) -> Self:
        """Make the switch that machines hang on, and the one for groups cut off from it."""
        self._switches = Namespace()
        self._ends.callback(self._switches.close)
        self.add_switch(0)
        self.add_switch(ELSEWHERE)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Let everything go."""
        self._ends.close()

    def add_switch(self, switch: int) -> None:
        """Make another switch; nothing is plugged into it."""
        assert self._switches is not None
        self._switches.ip(
            # Without its own filter for multicast groups: home switches have none either.
            f"link add {bridge(switch)} type bridge stp_state 0 forward_delay 0 mcast_snooping 0",
            f"link set {bridge(switch)} up",
        )

    def add_hosts(self, count: int) -> list[Host]:
        """Make machines that are plugged into the first switch."""
        assert self._switches is not None
        made: list[Host] = []
        for _ in range(count):
            host = Host(len(self.hosts) + 1, self._switches)
            self._ends.callback(host.inside.close)
            self.hosts.append(host)
            host.plug_in()
            made.append(host)
        return made


def address_of(number: int, switch: int = 0) -> str:
    """Return the IPv4 address of a machine at a switch."""
    return f"{NETWORK}.{switch}.{number}"


def interface(switch: int) -> str:
    """Return what a machine calls its interface to a switch."""
    return f"wlan{switch}" if switch == WIRELESS else f"eth{switch}"


def bridge(switch: int) -> str:
    """Return the name of a switch."""
    return f"switch{switch}"


@cache
def why_there_is_no_lab(needed: tuple[str, ...] = ()) -> str:
    """Return what stands in the way of one, or nothing where nothing does."""
    if sys.platform != "linux":
        return "network namespaces are Linux's"
    if os.getuid():
        return "network namespaces need root"
    if missing := _missing((*TOOLS, *needed)):
        return f"not installed: {', '.join(missing)}"
    try:
        with Lab() as lab:
            lab.add_hosts(1)
    except OSError as error:
        return f"no network namespaces here: {error}"
    return ""


@contextlib.contextmanager
def lab_of(count: int) -> Generator[Lab]:
    """Yield a lab with so many machines on one switch."""
    with Lab() as lab:
        lab.add_hosts(count)
        yield lab


def _missing(tools: Iterable[str]) -> list[str]:
    return [tool for tool in tools if shutil.which(tool) is None]
