"""The artifacts that a leader can have: which are in reach, and a second place for what is new.

Owns asking who has how much room. Doesn't know what counts or who takes it best
(`replication_policy`): it sees to one artifact at once, and `re_replication` later to whatever has
lost a copy.
"""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from jupiterd.cluster.artifacts.replication_policy import Holder, has_room, takers
from jupiterd.daemon.artifacts.artifact_cache import ASK_TIMEOUT_S, ArtifactCache
from jupiterd.daemon.leader.machines import Machines
from jupiterd.daemon.leader.term import Term
from jupiterd.ids import ArtifactId, NodeId

ANSWER_S: Final = 2.0
"""Whoever takes longer isn't asked to take anything: a checkpoint waits to be recorded."""

MOST_ASKED: Final = 10
"""Times that a node is asked to go on with a copy before another one is: twenty minutes."""


@dataclass
class ArtifactReach:
    """What can be had of the cluster's artifacts, for one term."""

    term: Term
    machines: Machines
    artifact_cache: ArtifactCache
    damaged: set[str] = field(default_factory=set[str])
    """Checkpoints from which no gang could go on."""

    async def fetch(self, artifact: ArtifactId) -> None:
        """Bring an artifact to this node, unless it is here; errors name this node."""
        with self.term.named(self.term.self_id):
            await self.artifact_cache.ensure(artifact)

    async def is_in_reach(self, artifact: str) -> bool:
        """Say whether this node holds an artifact, or one that says so at once."""
        wanted = ArtifactId(artifact)
        if self.artifact_cache.store.holds(wanted):
            return True
        others = self.machines.answering() - {self.term.self_id}
        return True in await asyncio.gather(
            *(self.artifact_cache.is_held_by(node, wanted) for node in others)
        )

    async def keep_two_copies(self, artifact: ArtifactId, holder: NodeId) -> None:
        """Bring what a node holds to the leader, or to another that is well and has more room.

        Where the leader holds it, a refusal of all others is no failure: copies are a status.

        Raises:
            JupiterError: nobody else has taken it, and the leader can't either.
        """
        own = self.term.self_id
        is_elsewhere = holder != own
        if is_elsewhere and has_room(await asyncio.to_thread(self.artifact_cache.store.free_bytes)):
            await self.fetch(artifact)
            return
        others = {*self.machines.well_nodes()} - {holder, own}
        answers = await self.holders_among(sorted(others), [artifact], ANSWER_S)
        chosen = takers(answers, only_with_room=is_elsewhere)
        if not is_elsewhere:
            await self._begin(artifact, chosen)
        elif not await self._is_taken(artifact, chosen):
            await self.fetch(artifact)

    async def holders_among(
        self,
        nodes: Iterable[NodeId],
        artifacts: Sequence[ArtifactId],
        timeout_s: float = ASK_TIMEOUT_S,
    ) -> list[Holder]:
        """Return what each of these nodes has of these artifacts; not of whom doesn't answer."""
        roles = self.term.state.roles
        answers = await asyncio.gather(
            *(self.artifact_cache.held_by(node, artifacts, timeout_s) for node in nodes)
        )
        return [
            Holder(node, roles[node].role if node in roles else "idle", held, free_bytes)
            for node, held, free_bytes in (each for each in answers if each is not None)
        ]

    async def _begin(self, artifact: ArtifactId, nodes: Iterable[NodeId]) -> None:
        """Ask one after another until one takes it.

        Who isn't done in time is left to `re_replication`. That does where the leader has it: it
        needn't reach the maker to give it on.
        """
        for node in nodes:
            if await self.artifact_cache.copy_to(node, artifact) is not False:
                return

    async def _is_taken(self, artifact: ArtifactId, nodes: Iterable[NodeId]) -> bool:
        """Ask one after another until one has all of it."""
        for node in nodes:
            if await self._is_fetched(artifact, node):
                return True
        return False

    async def _is_fetched(self, artifact: ArtifactId, node: NodeId) -> bool:
        """Ask a node until it has all of it or refuses; it goes on where it was broken off."""
        for _ in range(MOST_ASKED):
            if (is_whole := await self.artifact_cache.copy_to(node, artifact)) is not None:
                return is_whole
        return False
