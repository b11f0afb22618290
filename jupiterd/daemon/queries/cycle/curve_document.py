"""The document of a training's loss from its first step on, wherever it was written.

Owns its keys, and asking the nodes that have written it. Doesn't know what is made of their answers
(`curve_merge`).
"""

import asyncio
import logging
from collections.abc import Iterator, Sequence
from typing import Any, Final

import grpc.aio

from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.cluster.ledger.island_runs import number_of
from jupiterd.cycle.base.thinned_curve import CurvePoint
from jupiterd.daemon.catalog.selected_run import SelectedRun, shown_run
from jupiterd.daemon.queries.cycle.curve_files import CurveFiles
from jupiterd.daemon.queries.cycle.curve_merge import CurveWriter, whole_curve
from jupiterd.daemon.queries.cycle.curve_wire import Curves, curves_of
from jupiterd.daemon.queries.document_sources import DocumentSources
from jupiterd.document_schema import SCHEMA
from jupiterd.ids import CycleId, NodeId, short
from jupiterd.protocol.call_errors import from_rpc
from jupiterd.rpc import peer_pb2

log = logging.getLogger(__name__)

ANSWER_TIMEOUT_S: Final = 2.0

OF_ISLANDS: Final = 1
"""The round that an island's own run counts: it has one."""


async def curve_document(
    sources: DocumentSources, curves: CurveFiles, run_id: str
) -> dict[str, Any]:
    """Return the loss of a training's present round.

    Points are [step, loss, tokens, elapsed_s]: the loss is the mean since the point before, tokens
    and seconds are those since the round's first step that anybody noted, or null. What nodes
    in `missing` have written isn't in it: they don't answer.

    Raises:
        NotFoundError: there is no such training.
    """
    run = shown_run(sources.replica.state.cycles, run_id)
    return {"schema": SCHEMA, "curve": await curve_of(sources, curves, run)}


async def curve_of(
    sources: DocumentSources, curves: CurveFiles, run: SelectedRun
) -> dict[str, Any]:
    """Return the loss of one round of a training, as `curve_document` has it."""
    writers = [*_writers(run)]
    nodes = list(dict.fromkeys(writer.node for writer in writers))
    found, missing = await _curves_of_nodes(sources, curves, run.id, nodes)
    curve = whole_curve(writers, found, run.round)
    first_s = next((point.at_s for point in curve.points if point.at_s is not None), None)
    names = {member: fact.name for member, fact in sources.replica.state.members.items()}
    return {
        "run": run.id,
        "round": run.round,
        "islands": len(run.islands),
        "points": [_row(point, first_s) for point in curve.points],
        "validation": [_row(point, first_s) for point in curve.validations],
        "missing": [names.get(each, short(each)) for each in missing],
    }


def _row(point: CurvePoint, first_s: float | None) -> list[float | None]:
    at_s, loss = point.at_s, round(point.loss, 5)
    elapsed_s = None if at_s is None or first_s is None else round(max(at_s - first_s, 0.0), 1)
    return [point.step, loss, point.tokens, elapsed_s]


def _writers(run: SelectedRun) -> Iterator[CurveWriter]:
    yield from _of_gang(run.state, 0, run.round)
    for state, started in run.islands:
        yield from _of_gang(state, number_of(started), OF_ISLANDS)


def _of_gang(state: CycleState, island: int, round_number: int) -> Iterator[CurveWriter]:
    for _, opened in sorted(state.attempts_opened.items()):
        if opened.round == round_number and opened.gang:
            yield CurveWriter(opened.gang[0], island, opened.from_step)


async def _curves_of_nodes(
    sources: DocumentSources, curves: CurveFiles, run: CycleId, writers: Sequence[NodeId]
) -> tuple[dict[NodeId, Curves], list[NodeId]]:
    """Return the curves of each node, and the names of nodes that don't answer."""
    replies = await asyncio.gather(*(_of_node(sources, curves, run, each) for each in writers))
    pairs = list(zip(writers, replies, strict=True))
    known = {each: reply for each, reply in pairs if reply is not None}
    return known, [each for each, reply in pairs if reply is None]


async def _of_node(
    sources: DocumentSources, curves: CurveFiles, run: CycleId, writer: NodeId
) -> Curves | None:
    if writer == sources.view.own:
        return await curves.of_run(run)
    peer = sources.peers.get(writer)
    if peer is None or writer not in sources.view.alive():
        return None
    try:
        with peer.channels.in_use() as channels:
            request = peer_pb2.CurvesRequest(run=run)
            reply = await channels.control.ReadCurves(request, timeout=ANSWER_TIMEOUT_S)
    except grpc.aio.AioRpcError as error:
        reason = from_rpc(error, peer.name).message
        log.info("curve_unanswered", extra={"node": short(writer), "reason": reason})
        return None
    return curves_of(reply)
