"""What people order: the verbs of jupiterctl, carried out by the leader.

Owns each verb's checks and its facts. A daemon that doesn't lead passes the command on.
"""

import asyncio
import json
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import grpc

from jupiterd.cluster.planning.asking_node import ASKED_AT
from jupiterd.command_arguments import CommandArguments
from jupiterd.daemon.catalog.hub_fetches import HubFetches
from jupiterd.daemon.catalog.model_import import GENERATOR, JUDGE, ModelImport
from jupiterd.daemon.commands import (
    alarm_commands,
    branch_commands,
    cycle_lifecycle,
    data_commands,
    dataset_removal,
    member_commands,
    promotion_commands,
    train_commands,
)
from jupiterd.daemon.commands.cluster_leave import leave
from jupiterd.daemon.commands.dry_run import DRY_RUN, tried, without_copying
from jupiterd.daemon.commands.start_cycle import asked_cycle, check_models
from jupiterd.daemon.cycles import generator_trial
from jupiterd.daemon.executor.named_paths import READING, named_paths
from jupiterd.daemon.membership.trust import HAND_OVER, check_verb
from jupiterd.daemon.scripts import allreduce_check
from jupiterd.daemon.scripts.allreduce_check import AllreduceCheck
from jupiterd.daemon.scripts.script_placement import hear_of_knocks
from jupiterd.daemon.scripts.shipping import ship_folder
from jupiterd.document_schema import SCHEMA
from jupiterd.errors import (
    MalformedError,
    NoLeaderError,
    UsageError,
    from_wire,
)
from jupiterd.ids import NodeId
from jupiterd.protocol.call_errors import from_rpc
from jupiterd.rpc import peer_pb2

if TYPE_CHECKING:
    from jupiterd.daemon.app.node import Node
    from jupiterd.daemon.leader.leading import Leading

FORWARD_TIMEOUT_S = 10.0

Arguments = Mapping[str, Any]


class Commands:
    """Carries out commands, here or at the leader's."""

    def __init__(self, node: "Node") -> None:
        self._node = node
        self._one_at_a_time = asyncio.Lock()
        self.hub_fetches = HubFetches()
        self._verbs = {
            "cycle.start": self._start_cycle,
            "cycle.plan": self._plan_cycle,
            **member_commands.COMMANDS,
            **branch_commands.COMMANDS,
            **cycle_lifecycle.COMMANDS,
            **promotion_commands.COMMANDS,
            **alarm_commands.COMMANDS,
            **train_commands.COMMANDS,
            **data_commands.COMMANDS,
            **dataset_removal.COMMANDS,
            "cluster.merge": self._node.merging.merge,
        }
        self._local = {
            "check.links": node.link_measurement.check,
            "hub.fetch": self.hub_fetches.hear_of,
            "script.prepare": node.script_placement.prepare,
            "script.ship": partial(ship_folder, node.shipped, node.peers),
            "cluster.leave": partial(leave, node),
            "script.knocked": partial(hear_of_knocks, node.runner.knocks),
        }
        """What the daemon that was asked does itself: it changes nothing for the cluster."""
        brought = ModelImport(node.identity.node_id, node.library.store, node.state_dir.spool)
        self._brought = {
            "train.start": brought.bring_weights,
            "cycle.start": brought.bring_models,
            "cycle.pause": partial(cycle_lifecycle.signed, node),
            "alarm.dismiss": partial(alarm_commands.named_alarms, node),
        }
        """What the daemon that was asked adds before, from its machine's disk, or what it sees."""
        self._foretold = frozenset({"train.start", "cycle.extend"})
        """Commands of which can be told what would come of them: all their checks, too."""
        self._long = {
            "check.sync": (AllreduceCheck().run, allreduce_check.LONGEST_S),
            "generator.try": (generator_trial.try_generator, generator_trial.TOLD_AFTER_S),
        }
        """What only the leader can do, while it goes on with other commands, and for how long."""

    @property
    def verbs(self) -> frozenset[str]:
        """Return all that can be ordered."""
        return frozenset({DRY_RUN, *self._verbs, *self._local, *self._long})

    async def execute(self, verb: str, arguments: Arguments) -> dict[str, Any]:
        """Carry out a command wherever the leader is, or here; raises JupiterError."""
        arguments = CommandArguments(verb, arguments)
        if verb == DRY_RUN:
            arguments = await self._for_a_dry_run(arguments)
        own, is_heard = self._node.identity.node_id, self._node.hand_over.is_possible()
        check_verb(self._node.journal.state, own, verb, arguments, is_heard=is_heard)
        await self._node.hand_over.demand(verb, self.execute)
        if verb in READING:
            paths = await asyncio.to_thread(named_paths, arguments)
            await asyncio.to_thread(self._node.runner.offered.ask, paths)
        arguments = CommandArguments(verb, self._node.written.added_to(verb, arguments))
        if verb in self._brought:
            arguments = await self._brought[verb](arguments)
        if verb == "cycle.start":
            await self._try_models(arguments)
        if verb in self._local:
            return {"schema": SCHEMA, **await self._local[verb](arguments)}
        if self._node.leading is not None:
            return await self.execute_here(verb, arguments)
        leader = self._node.pulse.election.leader
        peer = None if leader is None else self._node.peers.get(leader)
        if peer is None:
            raise NoLeaderError("nobody leads the cluster just now")
        request = peer_pb2.CommandRequest(verb=verb, arguments_json=json.dumps(dict(arguments)))
        try:
            timeout_s = self._long[verb][1] if verb in self._long else FORWARD_TIMEOUT_S
            with peer.channels.in_use() as channels:
                reply = await channels.control.Command(request, timeout=timeout_s)
        except grpc.aio.AioRpcError as error:
            raise from_rpc(error, f"the leader {peer.name}") from error
        if reply.failure.code:
            raise from_wire(reply.failure.code, reply.failure.message, reply.failure.hint)
        return _result(reply.result_json, peer.name)

    async def execute_here(
        self, verb: str, arguments: Arguments, asked_at: NodeId | None = None
    ) -> dict[str, Any]:
        """Carry out a command as the leader; raises NoLeaderError where we don't lead.

        asked_at: the member on whose machine somebody gave it; None: here
        """
        self._node.pulse.check_awake()
        if self._node.leading is None:
            raise NoLeaderError("this node doesn't lead")
        own = self._node.identity.node_id
        check_verb(self._node.journal.state, asked_at or own, verb, arguments)
        if verb == HAND_OVER:
            self._node.hand_over.begin()
            return {"schema": SCHEMA}
        check_verb(self._node.journal.state, own, verb, arguments)
        if verb == DRY_RUN:
            return await self._try(self._node.leading, arguments)
        if verb in READING or verb in alarm_commands.COMMANDS:
            arguments = {**arguments, ASKED_AT: asked_at or own}
        arguments = CommandArguments(verb, arguments)
        if verb in self._long:
            run, _ = self._long[verb]
            return {"schema": SCHEMA, **await run(self._node.leading, arguments)}
        if verb not in self._verbs:
            raise UsageError(f"unknown command {verb}")
        async with self._one_at_a_time:
            return {"schema": SCHEMA, **await self._verbs[verb](self._node.leading, arguments)}

    async def _for_a_dry_run(self, arguments: Arguments) -> Arguments:
        """Return what is tried, as the daemon that was asked would pass it on; nothing is copied.

        Raises:
            JupiterError: it would refuse it at once.
        """
        verb = str(arguments.get("verb", ""))
        tried = CommandArguments(verb, arguments.get("arguments") or {})
        given = self._node.written.added_to(verb, tried)
        if verb in {"train.start", "cycle.start"}:
            given = await without_copying(verb, given, arguments.get("to_fetch") or ())
        elif verb in self._brought:
            given = await self._brought[verb](given)
        if verb == "cycle.start":
            await self._try_models(given)
        return {"verb": verb, "arguments": dict(given)}

    async def _try(self, leading: "Leading", arguments: Arguments) -> dict[str, Any]:
        verb = str(arguments.get("verb", ""))
        if verb not in self._verbs:
            raise UsageError(f"{verb} can't be tried without being done")
        async with self._one_at_a_time:
            given = CommandArguments(verb, arguments.get("arguments") or {})
            if verb in self._foretold:
                return {
                    "schema": SCHEMA,
                    "tried": verb,
                    "foretold": await self._foretell(verb, leading, given),
                }
            run = await tried(self._verbs[verb], leading, given)
        return {"schema": SCHEMA, "tried": verb} | ({"run": run} if run else {})

    @staticmethod
    async def _foretell(verb: str, leading: "Leading", arguments: Arguments) -> dict[str, Any]:
        if verb == "train.start":
            return await train_commands.foretold_training(leading, arguments)
        return cycle_lifecycle.foretold_extension(leading, arguments)

    async def _try_models(self, arguments: Arguments) -> None:
        """See that the models that others made can be used, unless no cycle can begin anyway."""
        if cycle_lifecycle.running_cycle(self._node.journal.state.cycles.values()) is not None:
            return
        for role in (GENERATOR, JUDGE):
            if (model := arguments.get(role)) and f"{role}_folder" not in arguments:
                await self.execute("generator.try", {"generator": model})

    async def _start_cycle(self, leading: "Leading", arguments: Arguments) -> dict[str, Any]:
        cycle_lifecycle.check_that_nothing_runs(leading)
        started, foretold = asked_cycle(leading, arguments)
        await check_models(leading, started)
        await leading.record(started)
        return {"cycle": started.cycle, "domain": started.domain, **foretold}

    async def _plan_cycle(self, leading: "Leading", arguments: Arguments) -> dict[str, Any]:
        if arguments.get("is_start"):  # the dry run of a start
            cycle_lifecycle.check_that_nothing_runs(leading)
        started, foretold = asked_cycle(leading, arguments)
        return {"domain": started.domain, "rounds": started.rounds, **foretold}


def _result(told: str, leader: str) -> dict[str, Any]:
    """Return what a leader answers; raises MalformedError where that is no map."""
    try:
        result: object = json.loads(told)
    except (ValueError, RecursionError):
        result = None
    if not isinstance(result, dict):
        raise MalformedError(f"the answer of the leader {leader} can't be read")
    return cast("dict[str, Any]", result)
