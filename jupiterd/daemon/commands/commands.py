"""What people order, on its way: carried out here, or passed on to the leader.

Owns that way, who may give which command, and what a dry run goes through. Doesn't know what a verb
does (`verb_table`).
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

import grpc

from jupiterd.daemon.commands.dry_run import tried
from jupiterd.daemon.commands.verb import CommandResult, Verb, Where
from jupiterd.daemon.leader.term_services import TermServices
from jupiterd.daemon.ledger.replica import Replica
from jupiterd.daemon.links.peers import Peer
from jupiterd.daemon.membership.trust import check_verb
from jupiterd.document_schema import SCHEMA
from jupiterd.errors import MalformedError, NoLeaderError, UsageError, from_wire
from jupiterd.ids import NodeId
from jupiterd.protocol.call_errors import from_rpc
from jupiterd.protocol.commands.check_commands import TryCommand
from jupiterd.protocol.commands.command import Command, PlainMap, plain_map_of
from jupiterd.protocol.commands.member_commands import HandOverLead
from jupiterd.protocol.commands.requested_command import RequestedCommand
from jupiterd.rpc import peer_pb2

FORWARD_TIMEOUT_S = 10.0


@dataclass(frozen=True)
class LeaderAccess:
    """How a node reaches the leader of its cluster, itself or another node."""

    node: NodeId
    """This node."""
    services: Callable[[], TermServices | None]
    """Returns the parts of the term, where this node leads."""
    leader: Callable[[], Peer | None]
    """Returns the leader, where another node leads."""
    check_awake: Callable[[], None]
    """Ends a term at once in which this machine has slept."""
    is_heard: Callable[[], bool]
    """Says whether a trusted member is here."""
    demand_trusted: Callable[[str], Awaitable[None]]
    """Has a trusted member lead before a verb that only such a one may record."""


class Commands:
    """Carries out commands, here or at the leader's."""

    def __init__(
        self, table: Callable[[], Mapping[str, Verb]], replica: Replica, leader_access: LeaderAccess
    ) -> None:
        """`table` makes the table of verbs, at the first command: it takes memory."""
        self._make_table, self._replica, self._leader_access = table, replica, leader_access
        self._one_at_a_time = asyncio.Lock()

    @cached_property
    def _table(self) -> Mapping[str, Verb]:
        return self._make_table()

    @property
    def verbs(self) -> frozenset[str]:
        """Return all that can be ordered."""
        return frozenset({TryCommand.VERB, *self._table})

    async def give(self, command: Command) -> dict[str, Any]:
        """Carry out a command wherever the leader is, or here; raises JupiterError."""
        return await self.execute(command.VERB, command.to_plain())

    async def execute(self, verb: str, given: object) -> dict[str, Any]:
        """Carry out a command as it travels, wherever the leader is, or here.

        A verb that this version doesn't know, and fields that it doesn't, go to the leader as they
        came: it may be of a later one.

        Raises:
            JupiterError: it can't be read, or isn't allowed, or fails.
        """
        arguments = plain_map_of(verb, given)
        if verb == TryCommand.VERB:
            arguments = await self._ready_to_try(TryCommand.read(arguments))
        await self._check_allowed(verb, arguments)
        row = self._table.get(verb)
        if row is not None:
            arguments = await self._ready(row, arguments)
            if row.where is Where.LOCAL:
                return _answer(await row.carry_out(None, row.request.read(arguments)))
        if self._leader_access.services() is not None:
            return await self.execute_here(verb, arguments)
        longest_s = None if row is None else row.longest_s
        return await self._ask_leader(verb, arguments, longest_s or FORWARD_TIMEOUT_S)

    async def _check_allowed(self, verb: str, arguments: PlainMap) -> None:
        own, is_heard = self._leader_access.node, self._leader_access.is_heard()
        check_verb(self._replica.state, own, verb, arguments, is_heard=is_heard)
        await self._leader_access.demand_trusted(verb)

    async def _ready(self, row: Verb, arguments: PlainMap) -> PlainMap:
        """Return a command's fields with what this machine adds to them."""
        command = row.request.read(arguments)
        if row.preparation is not None:
            command = await row.preparation.before_order(command)
        return row.request.unknown_fields(arguments) | command.to_plain()

    async def _ask_leader(self, verb: str, arguments: PlainMap, timeout_s: float) -> dict[str, Any]:
        peer = self._leader_access.leader()
        if peer is None:
            raise NoLeaderError("nobody leads the cluster just now")
        request = peer_pb2.CommandRequest(verb=verb, arguments_json=json.dumps(dict(arguments)))
        try:
            with peer.channels.in_use() as channels:
                reply = await channels.control.Command(request, timeout=timeout_s)
        except grpc.aio.AioRpcError as error:
            raise from_rpc(error, f"the leader {peer.name}") from error
        if reply.failure.code:
            raise from_wire(reply.failure.code, reply.failure.message, reply.failure.hint)
        return _result(reply.result_json, peer.name)

    async def execute_here(
        self, verb: str, given: object, asked_at: NodeId | None = None
    ) -> dict[str, Any]:
        """Carry out a command as the leader; raises NoLeaderError where we don't lead.

        asked_at: the member on whose machine somebody gave it; None: here
        """
        self._leader_access.check_awake()
        services = self._leader_access.services()
        if services is None:
            raise NoLeaderError("this node doesn't lead")
        arguments, own = plain_map_of(verb, given), self._leader_access.node
        check_verb(self._replica.state, asked_at or own, verb, arguments)
        if verb != HandOverLead.VERB:  # which is given to a leader that may do nothing else
            check_verb(self._replica.state, own, verb, arguments)
        if verb == TryCommand.VERB:
            return await self._try(services, TryCommand.read(arguments))
        row = self._table.get(verb)
        if row is None or row.where is Where.LOCAL:
            raise UsageError(f"unknown command {verb}")
        command = _asked_at(row.request.read(arguments), asked_at or own)
        if row.is_long:
            return _answer(await row.carry_out(services, command))
        async with self._one_at_a_time:
            return _answer(await row.carry_out(services, command))

    async def _ready_to_try(self, command: TryCommand) -> PlainMap:
        """Return what is tried, as the daemon that was asked would pass it on; nothing is copied.

        Raises:
            JupiterError: it would refuse it at once.
        """
        given, row = command.arguments or {}, self._table.get(command.verb)
        if row is not None:
            tries = row.request.read(given)
            if row.preparation is not None:
                tries = await row.preparation.before_try(tries, command.to_fetch)
            given = row.request.unknown_fields(given) | tries.to_plain()
        return {"verb": command.verb, "arguments": given}

    async def _try(self, services: TermServices, command: TryCommand) -> dict[str, Any]:
        row = self._table.get(command.verb)
        if row is None or row.where is Where.LOCAL or row.is_long:
            raise UsageError(f"{command.verb} can't be tried without being done")
        async with self._one_at_a_time:
            tries = row.request.read(command.arguments or {})
            if row.forecast is not None:
                forecast = dict(await row.forecast(services, tries))
                return _answer({"tried": row.name, "foretold": forecast})
            run = await tried(row.carry_out, services, tries)
        return _answer({"tried": row.name} | ({"run": run} if run else {}))


def _asked_at(command: Command, node: NodeId) -> Command:
    """Return a command with the machine where it was given, where that is taken note of."""
    return replace(command, asked_at=node) if isinstance(command, RequestedCommand) else command


def _answer(document: CommandResult) -> dict[str, Any]:
    return {"schema": SCHEMA, **document}


def _result(document: str, leader: str) -> dict[str, Any]:
    """Return what a leader answers; raises MalformedError where that is no map."""
    try:
        result: object = json.loads(document)
    except (ValueError, RecursionError):
        result = None
    if not isinstance(result, dict):
        raise MalformedError(f"the answer of the leader {leader} can't be read")
    return cast("dict[str, Any]", result)
