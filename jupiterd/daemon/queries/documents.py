"""The documents that front ends ask for, by name.

Owns the names, and what each document is given. Doesn't know what the documents say, or how a
question came here. What takes memory, idle or not, is loaded by the first question that needs it.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from jupiterd.daemon.queries.cluster.branches_document import branches_document
from jupiterd.daemon.queries.cluster.links_document import links_document
from jupiterd.daemon.queries.cluster.settings_document import settings_document
from jupiterd.daemon.queries.cluster.status_document import cycle_status_document, status_document
from jupiterd.daemon.queries.cycle.curve_files import CurveFiles
from jupiterd.daemon.queries.cycle.cycles_document import cycles_document
from jupiterd.daemon.queries.cycle.outer_rounds_document import outer_rounds_document
from jupiterd.daemon.queries.cycle.run_documents import (
    audit_document,
    data_document,
    train_document,
)
from jupiterd.daemon.queries.document_sources import (
    Document,
    DocumentSources,
    MemberHistories,
    MemberReports,
    SeenEvents,
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
        """`setting_sources` tells where settings were taken from; the rest are defaults."""
        self.sources, self.curves = sources, curves
        self.reports, self.histories, self.events = reports, histories, events
        self.setting_sources = setting_sources

    async def of(self, noun: str) -> Document:
        """Return a document as it is now; `cycle/ID` asks for that of a certain cycle.

        Raises:
            NotFoundError: there is no document of that name.
            JupiterError: why it can't be had.
        """
        kind, _, subject = noun.partition("/")
        if kind in _SLOW:
            return await _SLOW[kind](self, subject)
        if kind in _QUICK:
            return _QUICK[kind](self, subject)
        raise NotFoundError(f"there is no document called {noun}")


def _branches(documents: Documents, _: str) -> Document:
    sources = documents.sources
    return branches_document(sources.replica.state, sources.artifact_cache.store)


def _models(documents: Documents, _: str) -> Document:
    from jupiterd.daemon.queries.cluster.model_documents import models_document

    sources = documents.sources
    return models_document(sources.replica.state, sources.artifact_cache, sources.exports)


async def _audit(documents: Documents, wanted: str) -> Document:
    sources = documents.sources
    return await audit_document(sources.replica.state, sources.artifact_cache.store, wanted)


async def _why(documents: Documents, wanted: str) -> Document:
    from jupiterd.daemon.queries.cluster.cluster_trace import trace_of
    from jupiterd.daemon.queries.cluster.provenance_document import why_document

    sources = documents.sources
    return await why_document(sources.replica.state, trace_of(sources), wanted)


async def _export(documents: Documents, wanted: str) -> Document:
    from jupiterd.daemon.queries.cycle.export_document import export_document

    return await export_document(
        documents.sources.replica, documents.sources.artifact_cache, wanted
    )


async def _review(documents: Documents, wanted: str) -> Document:
    from jupiterd.daemon.queries.cycle.review_document import review_document

    return await review_document(documents.sources, wanted)


async def _drops(documents: Documents, wanted: str) -> Document:
    from jupiterd.daemon.queries.cycle.drops import drops_document

    return await drops_document(
        documents.sources.replica.state, documents.sources.artifact_cache, wanted
    )


async def _verdict(documents: Documents, wanted: str) -> Document:
    from jupiterd.daemon.queries.cycle.verdict_document import verdict_document

    sources = documents.sources
    return await verdict_document(sources.replica.state, sources.artifact_cache, wanted)


async def _model(documents: Documents, wanted: str) -> Document:
    from jupiterd.daemon.queries.cluster.model_documents import model_document

    sources = documents.sources
    return await model_document(
        sources.replica.state, sources.artifact_cache, sources.exports, wanted
    )


async def _model_export(documents: Documents, wanted: str) -> Document:
    from jupiterd.daemon.queries.cluster.model_documents import model_export_document

    sources = documents.sources
    state = sources.replica.state
    return await model_export_document(state, sources.artifact_cache, sources.exports, wanted)


async def _report(documents: Documents, wanted: str) -> Document:
    from jupiterd.daemon.queries.cycle.report_document import report_document

    return await report_document(documents.sources, documents.curves, wanted)


async def _node(documents: Documents, wanted: str) -> Document:
    from jupiterd.daemon.queries.cluster.node_document import node_document

    reports, histories = documents.reports, documents.histories
    return await node_document(documents.sources, reports, histories, wanted)


async def _held_out(documents: Documents, wanted: str) -> Document:
    from jupiterd.daemon.queries.cycle.held_out_document import held_out_document

    sources = documents.sources
    return await held_out_document(sources.replica.state, sources.artifact_cache, wanted)


async def _doctor(documents: Documents, _: str) -> Document:
    from jupiterd.daemon.queries.cluster.doctor_document import examined

    return await examined(documents.sources)


async def _curve(documents: Documents, wanted: str) -> Document:
    from jupiterd.daemon.queries.cycle.curve_document import curve_document

    return await curve_document(documents.sources, documents.curves, wanted)


async def _checkpoints(documents: Documents, wanted: str) -> Document:
    from jupiterd.daemon.queries.cycle.checkpoints_document import checkpoints_document

    sources = documents.sources
    alive = sources.view.alive()
    return await checkpoints_document(sources.replica, sources.artifact_cache, alive, wanted)


async def _completions(documents: Documents, wanted: str) -> Document:
    from jupiterd.daemon.queries.cycle.completions_document import completions_document

    sources = documents.sources
    return await completions_document(sources.replica.state, sources.artifact_cache, wanted)


_QUICK: Final[Mapping[str, Callable[[Documents, str], Document]]] = {
    "status": lambda documents, _: status_document(documents.sources),
    "cycle": lambda documents, wanted: cycle_status_document(documents.sources, wanted),
    "cycles": lambda documents, _: cycles_document(documents.sources),
    "train": lambda documents, wanted: train_document(documents.sources, wanted),
    "branches": _branches,
    "models": _models,
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

_SLOW: Final[Mapping[str, Callable[[Documents, str], Awaitable[Document]]]] = {
    "audit": _audit,
    "data": lambda documents, wanted: data_document(documents.sources, wanted),
    "why": _why,
    "export": _export,
    "verdict": _verdict,
    "review": _review,
    "model": _model,
    "model_export": _model_export,
    "report": _report,
    "drops": _drops,
    "held_out": _held_out,
    "node": _node,
    "doctor": _doctor,
    "curve": _curve,
    "checkpoints": _checkpoints,
    "completions": _completions,
}
"""The same of documents that are read from the disk, or asked of other nodes."""
