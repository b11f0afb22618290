"""The addresses where peers answered, kept for the next start.

Owns the file. An address is only ever a hint: a wrong one costs one look.
"""

import json
from collections.abc import Iterable
from pathlib import Path

from jupiterd.ports import Address

MAX_FILE_BYTES = 64 << 10


def load_addresses(path: Path) -> list[Address]:
    """Return what was kept; nothing where the file is missing or isn't ours."""
    try:
        rows = json.loads(path.read_bytes()[:MAX_FILE_BYTES])
        kept = [Address(str(row["host"]), int(row["port"])) for row in rows]
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return []
    return [address for address in kept if address.host and 0 < address.port < 65536]


def save_addresses(path: Path, addresses: Iterable[Address]) -> None:
    """Keep these addresses, all at once; none leaves what was kept before."""
    rows = [{"host": address.host, "port": address.port} for address in addresses]
    if rows:
        draft = path.with_suffix(".tmp")
        draft.write_text(json.dumps(rows))
        draft.replace(path)
