"""The addresses where peers answered, saved for the next start.

Owns the file. An address is only ever a hint: a wrong one costs one look. One that isn't in use now
stays, for its machine may only be switched off, until newer ones need its place.
"""

import asyncio
import contextlib
import json
from collections.abc import Callable, Iterable
from pathlib import Path

from jupiterd.ports import Address

MAX_FILE_BYTES = 64 << 10
MAX_SAVED = 128
SAVE_INTERVAL_S = 5.0


def load_addresses(path: Path) -> list[Address]:
    """Return the saved addresses; none where the file is missing or malformed."""
    try:
        rows = json.loads(path.read_bytes()[:MAX_FILE_BYTES])
        saved = [Address(str(row["host"]), int(row["port"])) for row in rows]
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return []
    return [address for address in saved if address.host and 0 < address.port < 65536][:MAX_SAVED]


def save_addresses(path: Path, addresses: Iterable[Address]) -> None:
    """Replace the file by these addresses in one step."""
    rows = [{"host": address.host, "port": address.port} for address in addresses]
    draft = path.with_suffix(".tmp")
    draft.write_text(json.dumps(rows))
    draft.replace(path)


async def keep_addresses(path: Path, in_use: Callable[[], Iterable[Address]]) -> None:
    """Save the addresses in use every SAVE_INTERVAL_S if they changed, and at the end."""
    saved = load_addresses(path)
    try:
        while True:
            await asyncio.sleep(SAVE_INTERVAL_S)
            saved = _save_changed(path, in_use(), saved)
    finally:
        _save_changed(path, in_use(), saved)


def _save_changed(path: Path, in_use: Iterable[Address], saved: list[Address]) -> list[Address]:
    used = dict.fromkeys(in_use)
    still = [address for address in saved if address in used]
    known = list(dict.fromkeys([*still, *used, *saved]))[:MAX_SAVED]
    if set(known) != set(saved):
        with contextlib.suppress(OSError):  # only hints, for the next start
            save_addresses(path, known)
    return known
