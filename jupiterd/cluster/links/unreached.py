"""What it means that a machine is heard, or named, and yet can't be reached.

Pure. Owns the words: how far a connection came is what tells one cause from another. Doesn't know
how machines are heard (`net.mdns`) or tried (`daemon.membership.handshake`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final, cast

from jupiterd.formats import counted, printable

UNREACHED: Final = "unreached"
"""What a heartbeat tells of it, by its name in telemetry."""

MAX_NAMED: Final = 3
"""Anybody on the network can announce any number of addresses."""


MAX_CHARACTERS: Final = 64
"""Of an address and of a name, as a member tells them."""


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
    def text(self) -> str:
        """What people call it."""
        return f"{self.name} at {self.address}" if self.name else self.address


def unreached_rows(found: Sequence[Unreached]) -> list[list[Any]]:
    """Return what others are told of it: where a cable or a filter stands between two machines.

    Whom only people have named isn't, for it may be switched off.
    """
    shown = (each for each in found if each.is_heard or each.reached >= Reached.CONNECTED)
    return [[each.address, int(each.reached), each.is_heard, each.name] for each in shown][
        :MAX_NAMED
    ]


def read_unreached(document: object) -> tuple[Unreached, ...]:
    """Return what a member tells of it; what can't be read is left out."""
    rows = cast("list[Any]", document)[:MAX_NAMED] if isinstance(document, list) else []
    return tuple(found for row in rows if (found := _read(row)) is not None)


def _read(row: object) -> Unreached | None:
    match row:
        case [str(address), int(reached), bool(is_heard), str(name)] if reached in {*Reached}:
            said = printable(address[:MAX_CHARACTERS]), printable(name[:MAX_CHARACTERS])
            return Unreached(said[0], Reached(reached), is_heard, said[1])
        case _:
            return None


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
    listed = ", ".join(each.text for each in found[:MAX_NAMED])
    left = len(found) - MAX_NAMED
    return f"{listed} and {counted(left, 'more address', 'more addresses')}" if left > 0 else listed


def _host(address: str) -> str:
    return address.rpartition(":")[0].strip("[]")
