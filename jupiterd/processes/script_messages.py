"""Converts a script's orders and events to messages and back, and checks received ones.

Owns both directions and the bounds. Doesn't know who sends them, or how a script runs.
"""

import re
import signal
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Final

from jupiterd.errors import MalformedError, TooLargeError
from jupiterd.processes.script_plan import (
    LAST_PORT,
    MAX_OPEN_PORTS,
    MAX_PER_NODE,
    MAX_RANKS,
    PortRange,
    RankOrder,
    ScriptOrder,
)
from jupiterd.processes.scripts.events import (
    Ended,
    Ending,
    Notice,
    Over,
    Printed,
    ScriptEvent,
    Skipped,
)
from jupiterd.processes.scripts.launch_limits import MAX_CUT_TIMEOUT_S
from jupiterd.processes.scripts.machine_share import ID
from jupiterd.protocol.frames import ConnectionsRefused
from jupiterd.rpc import script_pb2
from jupiterd.source_filter.program import MAX_ADDRESSES, plain_address

MAX_ARGUMENTS: Final = 1024
MAX_VARIABLES: Final = 256
MAX_TEXT_BYTES: Final = 64 << 10
"""Most bytes of all arguments together, and of each rank's variables."""

MAX_HASHED_BYTES: Final = 16 << 20
"""How many bytes of a script are hashed to compare it between machines."""

MAX_WINDOW: Final = 4096
"""Most rows or columns of a terminal."""

SIGNALS: Final = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGKILL})

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,255}")
_HASH: Final = re.compile(r"[0-9a-f]{64}")


def order_to_proto(order: ScriptOrder) -> script_pb2.ScriptOrder:
    """Return the order as a message."""
    return script_pb2.ScriptOrder(
        argv=order.argv,
        folder=order.folder,
        ranks=[
            script_pb2.ScriptRank(
                rank=rank.rank,
                variables=rank.variables,
                defaults=rank.defaults,
                hostfile=rank.hostfile,
            )
            for rank in order.ranks
        ],
        store_host=order.store_host,
        store_port=order.store_port,
        id=order.id,
        gpus=order.gpus,
        member_hosts=order.member_hosts,
        open_ports=[
            script_pb2.ScriptPorts(first=ports.first, last=ports.last) for ports in order.open_ports
        ],
        shipped=order.shipped,
        cut_timeout_s=order.cut_timeout_s,
        window=window_to_proto(order.window),
    )


def order_from_proto(message: script_pb2.ScriptOrder) -> ScriptOrder:
    """Read an order from another node.

    Raises:
        MalformedError: jupiterctl never sends such an order.
        TooLargeError: it is larger than any launch needs.
    """
    argv = tuple(message.argv)
    _check_size("arguments", len(argv), MAX_ARGUMENTS, sum(map(len, argv)))
    _check_size("ranks", len(message.ranks), MAX_PER_NODE, 0)
    if not argv or not argv[0] or not message.ranks:
        raise MalformedError("an order names neither a program nor a rank")
    if any("\0" in text for text in (*argv, message.folder)):
        raise MalformedError("an argument holds a zero byte")
    if message.shipped and not _HASH.fullmatch(message.shipped):
        raise MalformedError("a folder that travels has a name that can't be")
    if not (message.shipped or PurePosixPath(message.folder).is_absolute()):
        raise MalformedError("a script's folder must be an absolute path")
    _check_size("GPUs", len(message.gpus), MAX_PER_NODE, sum(map(len, message.gpus)))
    ranks = tuple(map(_rank, message.ranks))
    if len({rank.rank for rank in ranks}) < len(ranks) or message.store_port > LAST_PORT:
        raise MalformedError("an order has a rank twice, or a port that can't be")
    if message.id:
        checked_id(message.id)
        if not 1 <= message.cut_timeout_s <= MAX_CUT_TIMEOUT_S:
            raise MalformedError("an order waits for a time that can't be")
    return ScriptOrder(
        argv,
        message.folder,
        ranks,
        message.store_host,
        message.store_port,
        id=message.id,
        cut_timeout_s=message.cut_timeout_s,
        window=window_from_proto(message.window),
        gpus=tuple(message.gpus),
        member_hosts=_hosts(message.member_hosts),
        open_ports=_open_ports(message.open_ports),
        shipped=message.shipped,
    )


def _hosts(addresses: Sequence[str]) -> tuple[str, ...]:
    """Return the addresses of a launch's machines; raises MalformedError if one is no address."""
    _check_size("addresses", len(addresses), MAX_ADDRESSES, sum(map(len, addresses)))
    try:
        return tuple(str(plain_address(address)) for address in addresses)
    except ValueError as error:
        raise MalformedError("an order has an address that can't be") from error


def _open_ports(ranges: Sequence[script_pb2.ScriptPorts]) -> tuple[PortRange, ...]:
    _check_size("open ports", len(ranges), MAX_OPEN_PORTS, 0)
    if not all(1 <= ports.first <= ports.last <= LAST_PORT for ports in ranges):
        raise MalformedError("an order opens a port that can't be")
    return tuple(PortRange(ports.first, ports.last) for ports in ranges)


def checked_id(text: str) -> str:
    """Return the id of an order.

    Raises:
        MalformedError: jupiterctl never makes such an id.
    """
    if not ID.fullmatch(text):
        raise MalformedError("an order has an id that can't be")
    return text


def window_to_proto(window: tuple[int, int]) -> script_pb2.ScriptWindow:
    """Return the size of a terminal as a message."""
    return script_pb2.ScriptWindow(rows=window[0], columns=window[1])


def window_from_proto(message: script_pb2.ScriptWindow) -> tuple[int, int]:
    """Return rows and columns of a terminal; (0, 0) if they are out of bounds."""
    rows, columns = message.rows, message.columns
    return (rows, columns) if max(rows, columns) <= MAX_WINDOW else (0, 0)


def event_to_proto(event: ScriptEvent, offset: int = 0) -> script_pb2.ScriptEvent:
    """Return the event as a message; `offset`: where the reader continues after it."""
    found = script_pb2.ScriptEvent(offset=offset)
    match event:
        case Printed(rank, is_error, data):
            found.printed.CopyFrom(
                script_pb2.ScriptPrinted(rank=rank, is_error=is_error, data=data)
            )
        case Ended(rank, status):
            found.ended.CopyFrom(script_pb2.ScriptEnded(rank=rank, status=status))
        case Skipped(size_bytes):
            found.skipped.CopyFrom(script_pb2.ScriptSkipped(bytes=size_bytes))
        case Ending(reason):
            found.ending.CopyFrom(script_pb2.ScriptEnding(reason=reason))
        case Over(reason, code, hint):
            found.over.CopyFrom(script_pb2.ScriptOver(reason=reason, code=code, hint=hint))
        case Notice(words):
            found.noticed.CopyFrom(script_pb2.ScriptNoticed(words=words))
        case ConnectionsRefused():  # that machine's daemon counts these itself
            pass
    return found


def event_from_proto(message: script_pb2.ScriptEvent) -> ScriptEvent | None:
    """Read an event; None if the message only shows that the sender is still there."""
    found: ScriptEvent | None = None
    match message.WhichOneof("event"):
        case "printed":
            printed = message.printed
            found = Printed(printed.rank, printed.is_error, printed.data)
        case "ended":
            found = Ended(message.ended.rank, message.ended.status)
        case "skipped":
            found = Skipped(message.skipped.bytes)
        case "ending":
            found = Ending(message.ending.reason)
        case "over":
            found = Over(message.over.reason, message.over.code, message.over.hint)
        case "noticed":
            found = Notice(message.noticed.words)
        case _:
            pass
    return found


def _rank(message: script_pb2.ScriptRank) -> RankOrder:
    if message.rank >= MAX_RANKS:
        raise MalformedError(f"there is no rank {message.rank}")
    if len(message.hostfile) > MAX_TEXT_BYTES:
        raise TooLargeError("a hostfile is larger than that of any ring")
    return RankOrder(
        message.rank, _variables(message.variables), _variables(message.defaults), message.hostfile
    )


def _variables(variables: Mapping[str, str]) -> dict[str, str]:
    size = sum(len(name) + len(value) for name, value in variables.items())
    _check_size("variables", len(variables), MAX_VARIABLES, size)
    for name, value in variables.items():
        if not _NAME.fullmatch(name) or "\0" in value:
            raise MalformedError("a variable's name or value can't be in an environment")
    return dict(variables)


def _check_size(what: str, count: int, most: int, size_bytes: int) -> None:
    if count > most or size_bytes > MAX_TEXT_BYTES:
        raise TooLargeError(f"an order has more {what} than any launch needs")
