"""Fetches the reports of members, beyond their heartbeats, as long as somebody looks at them.

Owns when they are asked and what becomes of their answers. Doesn't know what a daemon reports
(`node_report`), or who looks.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import grpc.aio

from jupiterd.daemon.links.peers import Peers
from jupiterd.daemon.observability.node_report import NodeReport
from jupiterd.daemon.observability.report_wire import Report, read_reply
from jupiterd.daemon.runtime.clock import now_s
from jupiterd.errors import JupiterError, NotFoundError
from jupiterd.ids import NodeId
from jupiterd.protocol.call_errors import from_rpc
from jupiterd.rpc import peer_pb2

ASK_S: Final = 4.0
"""How often a member is asked while somebody looks at it."""

LOOKS_S: Final = 10.0
"""For so long after the last question somebody does."""

ANSWER_S: Final = 2.0
NOTHING: Final[Mapping[str, Any]] = {"versions": None, "processes": None, "log": None}


@dataclass
class _Looked:
    report: Report
    note: str
    """Why there is no newer one, or empty."""
    requested_s: float


class RemoteReports:
    """The latest answers of members that somebody looks at."""

    def __init__(self, peers: Peers, own_report: NodeReport) -> None:
        self._peers, self._own_report = peers, own_report
        self._looked: dict[NodeId, _Looked] = {}

    async def of(self, member: NodeId) -> Report:
        """Return a member's report, its keys None where there is none; `note` says why not.

        The first time it is asked, which takes ANSWER_S at most; then the latest answer is there.
        """
        if member == self._peers.own:
            return {**await self._own_report.to_plain(), "note": ""}
        looked = self._looked.get(member)
        if looked is None:
            looked = self._looked[member] = await self._ask(member, {**NOTHING})
        looked.requested_s = now_s()
        return {**looked.report, "note": looked.note}

    async def run(self) -> None:
        """Ask again and again whoever is looked at; forget the others."""
        while True:
            await asyncio.sleep(ASK_S)
            await self.look_again(now_s())

    async def look_again(self, at_s: float) -> None:
        """Ask whoever was looked at lately."""
        recent = {m: each for m, each in self._looked.items() if at_s - each.requested_s < LOOKS_S}
        found = await asyncio.gather(*(self._ask(m, each.report) for m, each in recent.items()))
        for (member, each), new in zip(recent.items(), found, strict=True):
            each.report, each.note = new.report, new.note
            self._looked[member] = each
        for member in self._looked.keys() - recent.keys():
            del self._looked[member]

    async def _ask(self, member: NodeId, before: Report) -> _Looked:
        """Ask a member; where it doesn't answer, what it said before stands."""
        try:
            return _Looked(await self._fetched(member), "", now_s())
        except JupiterError as error:
            return _Looked(before, error.message, now_s())

    async def _fetched(self, member: NodeId) -> Report:
        peer = self._peers.require(member)
        try:
            with peer.channels.in_use() as channels:
                reply = await channels.control.AskReport(peer_pb2.ReportRequest(), timeout=ANSWER_S)
        except grpc.aio.AioRpcError as error:
            if error.code() is grpc.StatusCode.UNIMPLEMENTED:
                raise NotFoundError(f"{peer.name} runs a version that doesn't tell") from error
            raise from_rpc(error, peer.name) from error
        return read_reply(reply)
