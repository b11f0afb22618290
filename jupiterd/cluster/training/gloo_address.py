"""The address that a rank of gloo leaves in its gang's store, read and written anew.

Owns the form, which is gloo's own: the length of the host's name and the name, the length of what
follows and in it the system's form of a socket address (IPv4 here), then numbers of pairs. Doesn't
know sockets. Of two ranks the one with the greater address dials the other.
"""

import struct
from typing import Final

from jupiterd.errors import MalformedError

_LENGTH: Final = struct.Struct("=Q")
_FAMILY: Final = struct.Struct("=H")
_IPV4: Final = struct.Struct(">H4s")
AF_INET: Final = 2
DIALED: Final = bytes(4)
"""0.0.0.0: smaller than each address of loopback, and one that leads there."""

NOT_DIALED: Final = b"\xff\xff\xff\xff"
"""Greater than each; whoever has it waits to be dialed."""


def port_of(value: bytes) -> int:
    """Return the port at which a rank listens; raises MalformedError where the value has none."""
    return int(_IPV4.unpack_from(value, _place(value))[0])


def readdressed(value: bytes, address: bytes, port: int) -> bytes:
    """Return the value with another IPv4 address; raises MalformedError as above."""
    place = _place(value)
    return value[:place] + _IPV4.pack(port, address) + value[place + _IPV4.size :]


def _place(value: bytes) -> int:
    """Return where the port and the address are, behind the family."""
    try:
        (name_bytes,) = _LENGTH.unpack_from(value)
        family_at = 2 * _LENGTH.size + min(name_bytes, len(value))
        (family,) = _FAMILY.unpack_from(value, family_at)
        _IPV4.unpack_from(value, family_at + _FAMILY.size)
    except struct.error as error:
        raise MalformedError("a rank of gloo has left no address in its store") from error
    if family != AF_INET:
        raise MalformedError("a rank of gloo has left an address that isn't of IPv4")
    return family_at + _FAMILY.size
