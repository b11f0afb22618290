"""Who calls: taken from the key of the connection, and held against what the ledger says.

Owns the refusal of callers that are no members, or aren't the leader. Doesn't know the requests.
"""

from typing import Any

import grpc.aio

from jupiterd.daemon.ledger.replica import Replica
from jupiterd.daemon.membership.followed_leader import FollowedLeader
from jupiterd.errors import ConflictError, NotAMemberError
from jupiterd.ids import NodeId, short
from jupiterd.net.credentials import caller
from jupiterd.net.open_port.callers import Callers
from jupiterd.ports import Address

Context = grpc.aio.ServicerContext[Any, Any]


class MemberGuard:
    """What every call of another node is looked at for first."""

    def __init__(self, replica: Replica, callers: Callers, followed: FollowedLeader) -> None:
        self._replica, self._callers, self._followed = replica, callers, followed

    def host(self, context: Context) -> str:
        """Return the host that it calls from; empty where that isn't known."""
        return self._callers.host_of(context.peer())

    def address(self, context: Context, port: int) -> Address | None:
        """Return where the caller may answer: the host it calls from, the port it names."""
        host = self.host(context)
        return Address(host, port) if host and 0 < port < 65536 else None

    def is_answered(self, who: NodeId) -> bool:
        """Say whether a node is a member that is answered just now."""
        return not self._replica.clones.is_seen and who in self._replica.state.members

    def member(self, context: Context) -> NodeId:
        """Return the caller.

        Raises:
            NotAMemberError: it is none.
            ConflictError: another machine uses this node's key.
        """
        who = caller(context)
        if self._replica.clones.is_seen:
            raise ConflictError("another machine uses this node's key")
        if who not in self._replica.state.members:
            raise NotAMemberError(f"node {short(who)} is not a member of this cluster")
        return who

    async def leader(self, context: Context, term: int | None = None) -> NodeId:
        """Return the caller; raises RefusedError unless this node follows it."""
        who = self.member(context)
        await self._followed.check(who, term)
        return who
