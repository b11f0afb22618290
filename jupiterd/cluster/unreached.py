"""What it means that a machine is heard, or named, and yet can't be reached.

Pure. Owns the words: how far a connection came is what tells one cause from another. Doesn't know
how machines are heard (`net.mdns`) or tried (`daemon.greeter`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from jupiterd.formats import counted

MAX_NAMED: Final = 3
"""Anybody on the network can announce any number of addresses."""


class Reached(IntEnum):
    """How far the last try of an address came."""

    NOTHING = 0
    """No connection was made."""
    REFUSED = 1
    """The machine answers that nothing listens there."""
    CONNECTED = 2
    """A connection was made, and nothing came over it."""
    GREETED = 3
    """It showed its key, which fits a small packet, and didn't answer to what was said then."""


@dataclass(frozen=True)
class Unreached:
    """An address where nobody can be reached, though there is reason to think so."""

    address: str
    """HOST:PORT."""
    reached: Reached
    is_heard: bool
    """It was announced by multicast since it can't be reached."""
    name: str = ""
    """Of the member that is there, where that is known."""

    @property
    def told(self) -> str:
        """What people call it."""
        return f"{self.name} at {self.address}" if self.name else self.address


@dataclass(frozen=True)
class Diagnosis:
    """Facts that mean something together."""

    code: str
    title: str
    hint: str


def diagnoses(found: Sequence[Unreached]) -> Iterator[Diagnosis]:
    """Yield what is to be told, the surest first."""
    silent = [each for each in found if each.reached >= Reached.CONNECTED]
    heard = [each for each in found if each.reached is Reached.NOTHING and each.is_heard]
    named = [each for each in found if each not in silent and not each.is_heard]
    if silent:
        host = _host(silent[0].address)
        yield Diagnosis(
            "tcp-silent",
            f"{_all(silent)}: TCP connects, and nothing comes over it",
            "most likely large packets are lost on the way (MTU): "
            f"ping -M do -s 1400 {host} shows it; give both ends the MTU of what lies between "
            "them. Or the jupiterd there hangs: look at it",
        )
    if heard:
        yield Diagnosis(
            "tcp-blocked",
            f"{_all(heard)}: heard by multicast, and TCP doesn't get through",
            "let that TCP port in on the machine (jupiterctl doctor there looks at its firewall), "
            "and look for client isolation (guest network) in the access point",
        )
    if named:
        yield Diagnosis(
            "peer-unreached",
            f"{_all(named)}: named with --peer, and {_how(named)}",
            "start jupiterd there, or let that TCP port in on its firewall; and look whether the "
            "address is right",
        )


def _how(found: Sequence[Unreached]) -> str:
    is_refused = all(each.reached is Reached.REFUSED for each in found)
    return "nothing listens on that port" if is_refused else "nobody answers there"


def _all(found: Sequence[Unreached]) -> str:
    told = ", ".join(each.told for each in found[:MAX_NAMED])
    left = len(found) - MAX_NAMED
    return f"{told} and {counted(left, 'more address', 'more addresses')}" if left > 0 else told


def _host(address: str) -> str:
    return address.rpartition(":")[0].strip("[]")
