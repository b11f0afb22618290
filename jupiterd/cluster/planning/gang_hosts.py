"""Which addresses the ranks of a gang may be connected to from.

Owns that choice, of what the members say of themselves. Pure; doesn't know what is done with it.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from jupiterd.source_filter.program import MAX_ADDRESSES, plain_address

MAX_HOSTS_OF_ONE: Final = 32
"""Addresses that a member may name; virtual machines and containers bring many."""


def gang_hosts(members: Iterable[tuple[str, Sequence[str]]]) -> tuple[str, ...]:
    """Return the addresses of all members, each once, of (where it is reached, all that it has).

    None where one doesn't say what it has (it runs an older version), or says what is no address,
    or where there are more than can be told apart: the gang is open to everybody then, as before.
    """
    found: set[str] = set()
    for host, addresses in members:
        if not addresses or len(addresses) > MAX_HOSTS_OF_ONE:
            return ()
        try:
            found |= {str(plain_address(address)) for address in (host, *addresses)}
        except ValueError:
            return ()
    return tuple(sorted(found)) if len(found) <= MAX_ADDRESSES else ()
