"""What only trusted members may do: refused here, where it is carried out, and led by one of them.

Owns the refusal, the yes that people gave beforehand (to everybody in the network, or to machines
in a file), and the hand-over: what a leader records whom nobody has said yes to counts for nothing,
so it lets another lead first. Doesn't know who is trusted (`cluster.roster`).
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Final

from jupiterd.cluster.membership.call_rights import OF_TRUSTED_MEMBERS, trust_command
from jupiterd.cluster.values.node_names import distinct_names
from jupiterd.cluster.values.rate_limit import Rate, RateLimit
from jupiterd.daemon.ledger.replica import Replica
from jupiterd.daemon.membership.heartbeat_loop import HeartbeatLoop
from jupiterd.daemon.runtime.clock import now_s
from jupiterd.daemon.runtime.untrusted_input import sanitized_text
from jupiterd.errors import JupiterError, NoLeaderError, NotTrustedError
from jupiterd.ids import NodeId, short

if TYPE_CHECKING:
    from jupiterd.cluster.ledger.state import State

log = logging.getLogger(__name__)

Execute = Callable[[str, Mapping[str, object]], Awaitable[Mapping[str, object]]]
"""Carries out a command wherever the leader is; raises JupiterError."""

LEAVE_COMMAND: Final = "jupiterctl cluster leave"
HAND_OVER: Final = "cluster.hand_over"
HAND_OVER_S: Final = 6.0
"""An election takes three seconds at most."""
LOOK_S: Final = 0.05
FOR_STRANGERS: Final = Rate(per_s=1 / 60, burst=1)
"""A leader resigns so often because somebody outside asks for what only trusted ones may do."""
GRANT_S: Final = 2.0
"""A machine that walked in waits that long for a yes which people gave beforehand."""


def check_trusted(state: "State", who: NodeId, what: str, *, is_heard: bool = True) -> None:
    """Raise NotTrustedError where nobody has said yes to a member that wants to do this.

    is_heard: whether somebody may be reached who is trusted
    """
    if who in state.roster.trusted:
        return
    name = _names(state).get(who, short(who))
    raise NotTrustedError(
        f"{name} walked in through the open door, and nobody has said yes to it: it may not {what}",
        f"if it is yours, run on {trusted_names(state)}: {trust_command(name)}"
        + ("" if is_heard else f"; if that is gone for good, here: {LEAVE_COMMAND}"),
    )


def walked_in(state: "State") -> tuple[NodeId, ...]:
    """Return the members to whom nobody has said yes."""
    return tuple(sorted(state.members.keys() - state.roster.trusted))


def trusted_names(state: "State") -> str:
    """Return on which machines somebody may say it."""
    names = _names(state)
    return " or ".join(sorted(names[node] for node in state.roster.trusted))


def _names(state: "State") -> dict[NodeId, str]:
    return distinct_names({node: sanitized_text(fact.name) for node, fact in state.members.items()})


def check_verb(
    state: "State",
    who: NodeId,
    verb: str,
    arguments: Mapping[str, object],
    *,
    is_heard: bool = True,
) -> None:
    """Raise NotTrustedError where a command, or the one that is tried, is for trusted members."""
    for each in (verb, str(arguments.get("verb", ""))):
        if each in OF_TRUSTED_MEMBERS:
            check_trusted(state, who, OF_TRUSTED_MEMBERS[each], is_heard=is_heard)


class UntrustedRequests:
    """How often strangers may have a leader resign."""

    def __init__(self) -> None:
        self._rate = RateLimit[NodeId](FOR_STRANGERS, FOR_STRANGERS, now_s())

    def is_counted(self, stranger: NodeId) -> bool:
        """Say whether its wish counts; it is taken note of."""
        return self._rate.allows(now_s(), stranger)


class HandOver:
    """This node's part in letting a trusted member lead."""

    def __init__(
        self,
        replica: Replica,
        heartbeats: HeartbeatLoop,
        step_aside: Callable[[], Coroutine[object, object, None]],
        group: asyncio.TaskGroup,
    ) -> None:
        self._replica = replica
        self._heartbeats = heartbeats
        self._step_aside = step_aside
        self._group = group
        self._task: asyncio.Task[None] | None = None
        self._strangers = UntrustedRequests()

    @property
    def is_trusted(self) -> bool:
        """Say whether somebody has said yes to this node."""
        return self._replica.node in self._replica.state.roster.trusted

    def is_possible(self) -> bool:
        """Say whether a trusted member is here to lead in this node's place."""
        return bool(self._heartbeats.alive() & self._replica.state.roster.trusted)

    def check_leader(self, who: NodeId, what: str) -> None:
        """Raise NotTrustedError where this leader may not do what a stranger asks for."""
        if not self.is_trusted:
            self.begin_for(who)
        check_trusted(self._replica.state, self._replica.node, what)

    def begin_for(self, stranger: NodeId) -> None:
        """Let a trusted member lead if one is here, but not at every word of a stranger."""
        if self.is_possible() and self._strangers.is_counted(stranger):
            self.begin()

    def begin(self) -> None:
        """Let another lead; a trusted one is the steadiest, so it asks first."""
        if self._task is None or self._task.done():
            log.info("steps_aside", extra={"reason": "a trusted member is to lead"})
            self._task = self._group.create_task(self._step_aside(), name="hand over")

    async def demand(self, verb: str, execute: Execute) -> None:
        """Have a trusted member lead before this node asks for what only such a one may record.

        Args:
            verb: what it asks for.
            execute: carries out a command wherever the leader is.

        Raises:
            NoLeaderError: the one that leads doesn't let it.
        """
        leader = self._leader()
        if verb not in OF_TRUSTED_MEMBERS or verb == HAND_OVER:
            return
        if leader is None or self._is_led_well():
            return
        try:
            await execute(HAND_OVER, {})
        except JupiterError as error:  # it may be of another version
            log.info("not_handed_over", extra={"node": short(leader), "reason": error.message})
        try:
            async with asyncio.timeout(HAND_OVER_S):
                while not self._is_led_well():  # noqa: ASYNC110 - an election notifies nobody
                    await asyncio.sleep(LOOK_S)
        except TimeoutError as error:
            raise NoLeaderError(
                f"node {short(leader)} leads, to which nobody has said yes, and no other took over",
                "stop jupiterd on it: another one leads then",
            ) from error

    def _leader(self) -> NodeId | None:
        return self._heartbeats.election.leader

    def _is_led_well(self) -> bool:
        return self._leader() in self._replica.state.roster.trusted


async def grant_standing_trust(
    replica: Replica, because: Callable[[NodeId], str], execute: Execute
) -> None:
    """Say what people gave beforehand, on this machine if it is trusted itself, for ever.

    Args:
        replica: says who walked in.
        because: where they gave it for a member; empty where they didn't.
        execute: carries out a command wherever the leader is.
    """
    while True:
        if replica.node in replica.state.roster.trusted:
            for member in walked_in(replica.state):
                if reason := because(member):
                    await _say(member, reason, execute)
        await asyncio.sleep(GRANT_S)


async def _say(member: NodeId, because: str, execute: Execute) -> None:
    try:
        await execute("node.trust", {"node": member, "because": because})
    except JupiterError as error:
        log.info("yes_not_said", extra={"node": short(member), "reason": error.message})
