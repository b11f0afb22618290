"""The document that `doctor` shows of a running daemon.

Owns examining it in threads. Doesn't know any check.
"""

import asyncio
from typing import Any

from jupiterd.daemon.queries.cluster.status_document import status_document
from jupiterd.daemon.queries.document_sources import DocumentSources
from jupiterd.doctor.examination import examine
from jupiterd.doctor.examined_machine import machine_of
from jupiterd.doctor.finding import doctor_document


async def examined(sources: DocumentSources) -> dict[str, Any]:
    """Return what a running daemon finds; it goes on meanwhile."""
    machine = machine_of(sources.settings, status_document(sources), sources.view.port)
    return doctor_document(await asyncio.to_thread(examine, machine))
