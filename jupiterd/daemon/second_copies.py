"""Giving something that was just made a second place, before anything is said of it.

Owns asking who has how much room. Doesn't know what counts or who takes it best
(`cluster.copies`): it sees to one artifact at once, and `upkeep` later to whatever has lost a copy.
"""

import asyncio
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from jupiterd.cluster.copies import Holder, has_room, takers
from jupiterd.daemon.library import ASK_TIMEOUT_S
from jupiterd.ids import ArtifactId, NodeId

if TYPE_CHECKING:
    from jupiterd.daemon.leading import Leading

ANSWER_S: Final = 2.0
"""Whoever takes longer isn't asked to take anything: a checkpoint waits to be recorded."""


async def keep_two_copies(leading: "Leading", artifact: ArtifactId, holder: NodeId) -> None:
    """Bring what a node holds to the leader, or to another that is well and has more room.

    Where the leader holds it, a refusal of all others is no failure: copies are a status.

    Raises:
        JupiterError: nobody else has taken it, and the leader can't either.
    """
    is_elsewhere = holder != leading.self_id
    if is_elsewhere and has_room(leading.library.store.free_bytes()):
        await leading.fetch(artifact)
        return
    others = {*leading.fit_nodes()} - {holder, leading.self_id}
    told = await holders_among(leading, sorted(others), [artifact], ANSWER_S)
    chosen = takers(told, only_with_room=is_elsewhere)
    if not await _is_taken(leading, artifact, chosen) and is_elsewhere:
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


async def _is_taken(leading: "Leading", artifact: ArtifactId, nodes: Iterable[NodeId]) -> bool:
    """Ask one after another; who takes it, but isn't done in time, goes on with it."""
    for node in nodes:
        if await leading.library.copy_to(node, artifact) is not False:
            return True
    return False
