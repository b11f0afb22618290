"""The machine that is examined, by its daemon's settings and status.

Owns what of these the checks are told. Doesn't know any check, or whether a daemon runs.
"""

import platform
from typing import Final

from jupiterd.daemon.runtime.settings import Settings
from jupiterd.doctor.place import Place, Row

MIB: Final = 1 << 20


def place_of(settings: Settings, status: Row | None, port: int) -> Place:
    """Return what the checks are told; status: None where no daemon answers."""
    return Place(
        state_dir=settings.state_dir,
        port=port,
        local=settings.local,
        interfaces=settings.interface,
        status=status,
        free_disk_bytes=settings.free_disk_mib * MIB,
        system=platform.system(),
    )
