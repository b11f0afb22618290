"""Which addresses of the network may be asked: public ones, unless a source allows others.

Owns the way from a host's name to addresses that were decided on: what is connected to is what was
looked at, so that DNS can't answer differently in between. Doesn't decide (`address_ranges`).
"""

import socket

from jupiterd.address_ranges import is_public
from jupiterd.workers.data.skips import SkipReason, UnreadableError

MAX_ADDRESSES = 4


def checked_addresses(host: str, port: int, *, allow_private: bool) -> list[str]:
    """Return the addresses of a host, best first.

    Raises:
        UnreadableError: it has none, or one of them isn't public and that isn't allowed.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise UnreadableError(SkipReason.UNREACHABLE) from error
    addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
    if not allow_private and not all(map(is_public, addresses)):
        raise UnreadableError(SkipReason.PRIVATE_ADDRESS)
    return addresses[:MAX_ADDRESSES]
