"""The documents that are read from the disk, or asked of other nodes.

Owns their names, and what each is given. Doesn't know what the documents say. Importing this takes
1 MB; the review and the doctor take 8 more, so that they are imported when somebody asks for them.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from jupiterd.daemon.queries.cluster.cluster_trace import trace_of
from jupiterd.daemon.queries.cluster.model_documents import (
    model_document,
    model_export_document,
    models_document,
)
from jupiterd.daemon.queries.cluster.model_files_document import model_files_document
from jupiterd.daemon.queries.cluster.node_document import node_document
from jupiterd.daemon.queries.cluster.provenance_document import provenance_document
from jupiterd.daemon.queries.cluster.task_nodes_document import task_nodes_document
from jupiterd.daemon.queries.cycle.checkpoints_document import checkpoints_document
from jupiterd.daemon.queries.cycle.completions_document import completions_document
from jupiterd.daemon.queries.cycle.curve_document import curve_document
from jupiterd.daemon.queries.cycle.drops import drops_document
from jupiterd.daemon.queries.cycle.export_document import export_document
from jupiterd.daemon.queries.cycle.held_out_document import (
    held_out_document,
    run_held_out_document,
)
from jupiterd.daemon.queries.cycle.questions_document import questions_document
from jupiterd.daemon.queries.cycle.report_document import report_document
from jupiterd.daemon.queries.cycle.run_documents import audit_document, data_document
from jupiterd.daemon.queries.cycle.verdict_document import verdict_document
from jupiterd.daemon.queries.document_sources import Document, SlowSources


async def _models(of: SlowSources, _: str) -> Document:
    sources = of.sources
    return models_document(sources.replica.state, sources.artifact_cache, sources.exports)


async def _model(of: SlowSources, wanted: str) -> Document:
    sources = of.sources
    return await model_document(
        sources.replica.state, sources.artifact_cache, sources.exports, wanted
    )


async def _model_export(of: SlowSources, wanted: str) -> Document:
    sources = of.sources
    state = sources.replica.state
    return await model_export_document(state, sources.artifact_cache, sources.exports, wanted)


async def _review(of: SlowSources, wanted: str) -> Document:
    from jupiterd.daemon.queries.cycle.review_document import review_document

    return await review_document(of.sources, wanted)


async def _doctor(of: SlowSources, _: str) -> Document:
    from jupiterd.daemon.queries.cluster.doctor_document import examined

    return await examined(of.sources)


SLOW_DOCUMENTS: Final[Mapping[str, Callable[[SlowSources, str], Awaitable[Document]]]] = {
    "models": _models,
    "model": _model,
    "model_export": _model_export,
    "model_files": lambda of, wanted: model_files_document(
        of.state, of.sources.artifact_cache, wanted
    ),
    "task_nodes": lambda of, wanted: task_nodes_document(of.sources.fleet, of.sources.view, wanted),
    "review": _review,
    "doctor": _doctor,
    "audit": lambda of, wanted: audit_document(of.state, of.sources.artifact_cache.store, wanted),
    "data": lambda of, wanted: data_document(of.sources, wanted),
    "why": lambda of, wanted: provenance_document(of.state, trace_of(of.sources), wanted),
    "export": lambda of, wanted: export_document(
        of.sources.replica, of.sources.artifact_cache, wanted
    ),
    "verdict": lambda of, wanted: verdict_document(of.state, of.sources.artifact_cache, wanted),
    "report": lambda of, wanted: report_document(of.sources, of.curves, wanted),
    "drops": lambda of, wanted: drops_document(of.state, of.sources.artifact_cache, wanted),
    "held_out": lambda of, wanted: held_out_document(of.state, of.sources.artifact_cache, wanted),
    "run_held_out": lambda of, wanted: run_held_out_document(
        of.state, of.sources.artifact_cache, wanted
    ),
    "questions": lambda of, wanted: questions_document(of.state, of.sources.artifact_cache, wanted),
    "node": lambda of, wanted: node_document(of.sources, of.reports, of.histories, wanted),
    "curve": lambda of, wanted: curve_document(of.sources, of.curves, wanted),
    "checkpoints": lambda of, wanted: checkpoints_document(
        of.sources.replica, of.sources.artifact_cache, of.sources.view.alive(), wanted
    ),
    "completions": lambda of, wanted: completions_document(
        of.state, of.sources.artifact_cache, wanted
    ),
}
"""Noun -> its document."""
