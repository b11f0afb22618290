"""The document that `doctor` shows, of a running daemon or without one.

Owns what the checks are told of each. Doesn't know any check.
"""

import asyncio
import platform
from typing import TYPE_CHECKING, Any, Final

from jupiterd.daemon.queries.cluster.status_document import status_document
from jupiterd.daemon.runtime.settings import Settings
from jupiterd.doctor.examination import examine
from jupiterd.doctor.finding import doctor_document
from jupiterd.doctor.place import Place

if TYPE_CHECKING:
    from jupiterd.daemon.app.node import Node

MIB: Final = 1 << 20


async def examined(node: "Node") -> dict[str, Any]:
    """Return what a running daemon finds, in threads: it goes on meanwhile."""
    place = place_of(node.settings, status_document(node), node.outlook.port)
    return doctor_document(await asyncio.to_thread(examine, place))


def place_of(settings: Settings, status: Any, port: int) -> Place:  # noqa: ANN401 - a document
    """Return what the checks are told."""
    return Place(
        state_dir=settings.state_dir,
        port=port,
        local=settings.local,
        interfaces=settings.interface,
        status=status,
        free_disk_bytes=settings.free_disk_mib * MIB,
        system=platform.system(),
    )
