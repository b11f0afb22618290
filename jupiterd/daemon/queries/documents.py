"""The documents that front ends ask for, by name.

Owns the names of those in memory, and what each is given. Doesn't know what the documents say, or
how a question came here. The others (`slow_documents`) are imported by the first question that
needs one, because they take memory that an idle daemon saves.
"""

from collections.abc import Callable, Mapping
from typing import Final

from jupiterd.daemon.queries.cluster.branches_document import branches_document
from jupiterd.daemon.queries.cluster.links_document import links_document
from jupiterd.daemon.queries.cluster.settings_document import settings_document
from jupiterd.daemon.queries.cluster.status_document import (
    cycle_status_document,
    status_document,
    train_document,
)
from jupiterd.daemon.queries.cycle.curve_files import CurveFiles
from jupiterd.daemon.queries.cycle.cycles_document import cycles_document
from jupiterd.daemon.queries.cycle.outer_rounds_document import outer_rounds_document
from jupiterd.daemon.queries.document_sources import (
    Document,
    DocumentSources,
    MemberHistories,
    MemberReports,
    SeenEvents,
    SlowSources,
)
from jupiterd.errors import NotFoundError


class Documents:
    """All documents of one daemon."""

    def __init__(
        self,
        sources: DocumentSources,
        curves: CurveFiles,
        reports: MemberReports,
        histories: MemberHistories,
        events: SeenEvents,
        setting_sources: Mapping[str, str],
    ) -> None:
        """`setting_sources` says where settings were taken from; the rest are defaults."""
        self.sources, self.events, self.setting_sources = sources, events, setting_sources
        self._slow_sources = SlowSources(sources, curves, reports, histories)

    async def of(self, noun: str) -> Document:
        """Return a document as it is now; `cycle/ID` asks for that of a certain cycle.

        Raises:
            NotFoundError: there is no document of that name.
            JupiterError: why it can't be had.
        """
        kind, _, subject = noun.partition("/")
        if kind in _QUICK:
            return _QUICK[kind](self, subject)
        from jupiterd.daemon.queries.slow_documents import SLOW_DOCUMENTS

        if kind in SLOW_DOCUMENTS:
            return await SLOW_DOCUMENTS[kind](self._slow_sources, subject)
        raise NotFoundError(f"there is no document called {noun}")


_QUICK: Final[Mapping[str, Callable[[Documents, str], Document]]] = {
    "status": lambda documents, _: status_document(documents.sources),
    "cycle": lambda documents, wanted: cycle_status_document(documents.sources, wanted),
    "cycles": lambda documents, _: cycles_document(documents.sources),
    "train": lambda documents, wanted: train_document(documents.sources, wanted),
    "branches": lambda documents, _: branches_document(
        documents.sources.replica.state, documents.sources.artifact_cache.store
    ),
    "settings": lambda documents, _: settings_document(
        documents.sources.settings, documents.setting_sources
    ),
    "links": lambda documents, _: links_document(documents.sources.view, documents.sources.peers),
    "events": lambda documents, _: documents.events.document(),
    "outer_rounds": lambda documents, wanted: outer_rounds_document(
        documents.sources.replica.state, wanted
    ),
}
"""Noun -> its document, out of what the daemon holds in memory."""
