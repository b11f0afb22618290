"""The documents that front ends ask for, by name.

Owns the names. Doesn't know what the documents say, or how a question came here.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from jupiterd.daemon.queries.cluster.branches_document import branches_document
from jupiterd.daemon.queries.cluster.links_document import links_document
from jupiterd.daemon.queries.cluster.settings_document import settings_document
from jupiterd.daemon.queries.cluster.status_document import cycle_status_document, status_document
from jupiterd.daemon.queries.cycle.cycles_document import cycles_document
from jupiterd.daemon.queries.cycle.outer_rounds_document import outer_rounds_document
from jupiterd.daemon.queries.cycle.run_documents import (
    audit_document,
    data_document,
    train_document,
)
from jupiterd.errors import NotFoundError

if TYPE_CHECKING:
    from jupiterd.daemon.app.node import Node

Document = dict[str, Any]


async def document_of(node: "Node", noun: str) -> Document:
    """Return a document as it is now; `cycle/ID` asks for that of a certain cycle.

    Raises:
        NotFoundError: there is no document of that name.
        JupiterError: why it can't be had.
    """
    kind, _, subject = noun.partition("/")
    if kind in _SLOW:
        return await _SLOW[kind](node, subject)
    if kind in _QUICK:
        return _QUICK[kind](node, subject)
    raise NotFoundError(f"there is no document called {noun}")


async def _why_document(node: "Node", wanted: str) -> Document:
    from jupiterd.daemon.queries.cluster.provenance_document import (
        why_document,  # its libraries take memory, idle or not
    )

    return await why_document(node, wanted)


async def _export_document(node: "Node", wanted: str) -> Document:
    from jupiterd.daemon.queries.cycle.export_document import export_document

    return await export_document(node, wanted)


async def _review_document(node: "Node", wanted: str) -> Document:
    from jupiterd.daemon.queries.cycle.review_document import review_document

    return await review_document(node, wanted)


async def _drops_document(node: "Node", wanted: str) -> Document:
    from jupiterd.daemon.queries.cycle.drops import drops_document

    return await drops_document(node, wanted)


async def _verdict_document(node: "Node", wanted: str) -> Document:
    from jupiterd.daemon.queries.cycle.verdict_document import verdict_document

    return await verdict_document(node, wanted)


async def _model_document(node: "Node", wanted: str) -> Document:
    from jupiterd.daemon.queries.cluster.model_documents import model_document

    return await model_document(node, wanted)


async def _model_export_document(node: "Node", wanted: str) -> Document:
    from jupiterd.daemon.queries.cluster.model_documents import model_export_document

    return await model_export_document(node, wanted)


async def _report_document(node: "Node", wanted: str) -> Document:
    from jupiterd.daemon.queries.cycle.report_document import report_document

    return await report_document(node, wanted)


async def _node_document(node: "Node", wanted: str) -> Document:
    from jupiterd.daemon.queries.cluster.node_document import node_document

    return await node_document(node, wanted)


async def _held_out_document(node: "Node", wanted: str) -> Document:
    from jupiterd.daemon.queries.cycle.held_out_document import held_out_document

    return await held_out_document(node, wanted)


async def _doctor_document(node: "Node", _: str) -> Document:
    from jupiterd.daemon.queries.cluster.doctor_document import examined

    return await examined(node)


async def _curve_document(node: "Node", wanted: str) -> Document:
    from jupiterd.daemon.queries.cycle.curve_document import curve_document

    return await curve_document(node, wanted)


async def _checkpoints_document(node: "Node", wanted: str) -> Document:
    from jupiterd.daemon.queries.cycle.checkpoints_document import checkpoints_document

    return await checkpoints_document(node, wanted)


async def _completions_document(node: "Node", wanted: str) -> Document:
    from jupiterd.daemon.queries.cycle.completions_document import completions_document

    return await completions_document(node, wanted)


def _models_document(node: "Node", wanted: str) -> Document:
    from jupiterd.daemon.queries.cluster.model_documents import models_document

    return models_document(node, wanted)


_QUICK: Mapping[str, Callable[["Node", str], Document]] = {
    "status": lambda node, _: status_document(node),
    "cycle": cycle_status_document,
    "cycles": lambda node, _: cycles_document(node),
    "train": train_document,
    "branches": lambda node, _: branches_document(node),
    "models": _models_document,
    "settings": lambda node, _: settings_document(node),
    "links": lambda node, _: links_document(node),
    "events": lambda node, _: node.outlook.events.document(),
    "outer_rounds": outer_rounds_document,
}
"""Noun -> its document, out of what the daemon holds in memory."""

_SLOW: Mapping[str, Callable[["Node", str], Awaitable[Document]]] = {
    "audit": audit_document,
    "data": data_document,
    "why": _why_document,
    "export": _export_document,
    "verdict": _verdict_document,
    "review": _review_document,
    "model": _model_document,
    "model_export": _model_export_document,
    "report": _report_document,
    "drops": _drops_document,
    "held_out": _held_out_document,
    "node": _node_document,
    "doctor": _doctor_document,
    "curve": _curve_document,
    "checkpoints": _checkpoints_document,
    "completions": _completions_document,
}
"""The same of documents that are read from the disk, or asked of other nodes."""
