"""A script's orders and events as they cross the wire, and the bounds of what is taken in.

Owns both directions. Doesn't know who sends them, or how a script is run.
"""

import re
import signal
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Final

from jupiterd.errors import MalformedError, TooLargeError
from jupiterd.gang.script import Ended, Printed, ScriptEvent
from jupiterd.gang.script_plan import MAX_PER_NODE, MAX_RANKS, RankOrder, ScriptOrder
from jupiterd.rpc import script_pb2

MAX_ARGUMENTS: Final = 1024
MAX_VARIABLES: Final = 256
MAX_TEXT_BYTES: Final = 64 << 10
"""All arguments together, and the variables of each rank."""

MAX_HASHED_BYTES: Final = 16 << 20
"""How much of a script is compared between machines."""

SIGNALS: Final = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGKILL})

MAX_ID_CHARACTERS: Final = 100

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
        shipped=order.shipped,
    )


def order_from_proto(message: script_pb2.ScriptOrder) -> ScriptOrder:
    """Read an order of another node.

    Raises:
        MalformedError: it isn't one that jupiterctl sends.
        TooLargeError: it is more than a launch needs.
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
    if len({rank.rank for rank in ranks}) < len(ranks) or message.store_port > 65535:
        raise MalformedError("an order has a rank twice, or a port that can't be")
    return ScriptOrder(
        argv,
        message.folder,
        ranks,
        message.store_host,
        message.store_port,
        id=message.id[:MAX_ID_CHARACTERS],
        gpus=tuple(message.gpus),
        shipped=message.shipped,
    )


def event_to_proto(event: ScriptEvent) -> script_pb2.ScriptEvent:
    """Return the event as a message."""
    if isinstance(event, Printed):
        printed = script_pb2.ScriptPrinted(
            rank=event.rank, is_error=event.is_error, data=event.data
        )
        return script_pb2.ScriptEvent(printed=printed)
    return script_pb2.ScriptEvent(
        ended=script_pb2.ScriptEnded(rank=event.rank, status=event.status)
    )


def event_from_proto(message: script_pb2.ScriptEvent) -> ScriptEvent:
    """Read an event."""
    if message.WhichOneof("event") == "printed":
        printed = message.printed
        return Printed(printed.rank, printed.is_error, printed.data)
    return Ended(message.ended.rank, message.ended.status)


def _rank(message: script_pb2.ScriptRank) -> RankOrder:
    if message.rank >= MAX_RANKS:
        raise MalformedError(f"there is no rank {message.rank}")
    if len(message.hostfile) > MAX_TEXT_BYTES:
        raise TooLargeError("a hostfile is larger than that of any ring")
    return RankOrder(
        message.rank, _variables(message.variables), _variables(message.defaults), message.hostfile
    )


def _variables(told: Mapping[str, str]) -> dict[str, str]:
    size = sum(len(name) + len(value) for name, value in told.items())
    _check_size("variables", len(told), MAX_VARIABLES, size)
    for name, value in told.items():
        if not _NAME.fullmatch(name) or "\0" in value:
            raise MalformedError("a variable's name or value can't be in an environment")
    return dict(told)


def _check_size(what: str, count: int, most: int, size_bytes: int) -> None:
    if count > most or size_bytes > MAX_TEXT_BYTES:
        raise TooLargeError(f"an order has more {what} than any launch needs")
