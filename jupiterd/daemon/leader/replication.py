"""Giving something that was just made a second place, before anything is said of it.

Owns asking who has how much room. Doesn't know what counts or who takes it best (`cluster.copies`):
it sees to one artifact at once, and `re_replication` later to whatever has lost a copy.
"""

import asyncio
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from jupiterd.cluster.artifacts.replication_policy import Holder, has_room, takers
from jupiterd.daemon.artifacts.artifact_cache import ASK_TIMEOUT_S
from jupiterd.ids import ArtifactId, NodeId

if TYPE_CHECKING:
    from jupiterd.daemon.leader.leading import Leading

ANSWER_S: Final = 2.0
"""Whoever takes longer isn't asked to take anything: a checkpoint waits to be recorded."""

MOST_ASKED: Final = 10
"""Times that a node is asked to go on with a copy before another one is: twenty minutes."""


async def keep_two_copies(leading: "Leading", artifact: ArtifactId, holder: NodeId) -> None:
    """Bring what a node holds to the leader, or to another that is well and has more room.

    Where the leader holds it, a refusal of all others is no failure: copies are a status.

    Raises:
        JupiterError: nobody else has taken it, and the leader can't either.
    """
    is_elsewhere = holder != leading.self_id
    if is_elsewhere and has_room(await asyncio.to_thread(leading.library.store.free_bytes)):
        await leading.fetch(artifact)
        return
    others = {*leading.well_nodes()} - {holder, leading.self_id}
    told = await holders_among(leading, sorted(others), [artifact], ANSWER_S)
    chosen = takers(told, only_with_room=is_elsewhere)
    if not is_elsewhere:
        await _begin(leading, artifact, chosen)
    elif not await _is_taken(leading, artifact, chosen):
        await leading.fetch(artifact)


async def holders_among(
    leading: "Leading",
    nodes: Iterable[NodeId],
    artifacts: Sequence[ArtifactId],
    timeout_s: float = ASK_TIMEOUT_S,
) -> list[Holder]:
    """Return what each of these nodes has of these artifacts; not of whom doesn't answer."""
    roles = leading.journal.state.roles
    told = await asyncio.gather(
        *(leading.library.held_by(node, artifacts, timeout_s) for node in nodes)
    )
    return [
        Holder(node, roles[node].role if node in roles else "idle", held, free_bytes)
        for node, held, free_bytes in (each for each in told if each is not None)
    ]


async def _begin(leading: "Leading", artifact: ArtifactId, nodes: Iterable[NodeId]) -> None:
    """Ask one after another until one takes it; who isn't done in time is left to `re_replication`.

    That does where the leader has it: it needn't reach the maker to give it on.
    """
    for node in nodes:
        if await leading.library.copy_to(node, artifact) is not False:
            return


async def _is_taken(leading: "Leading", artifact: ArtifactId, nodes: Iterable[NodeId]) -> bool:
    """Ask one after another until one has all of it."""
    for node in nodes:
        if await _is_fetched(leading, artifact, node):
            return True
    return False


async def _is_fetched(leading: "Leading", artifact: ArtifactId, node: NodeId) -> bool:
    """Ask a node until it has all of it or refuses; it goes on where it was broken off."""
    for _ in range(MOST_ASKED):
        if (is_whole := await leading.library.copy_to(node, artifact)) is not None:
            return is_whole
    return False
