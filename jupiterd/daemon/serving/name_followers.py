"""The names that this node serves, each with the model that it means kept loaded.

Owns one follower for each name, from when it is first served. Doesn't know how one follows
(`promotion_follower`), or who asks for names (`endpoints`).
"""

import asyncio
from collections.abc import Callable, Collection
from pathlib import Path

from jupiterd.cluster.ledger.state import State
from jupiterd.cluster.serving.promotion_follow import PROMOTED
from jupiterd.cluster.serving.served_model import ServedModel
from jupiterd.daemon.serving.named_models import served_model
from jupiterd.daemon.serving.promotion_follower import FollowedName, Meaning, PromotionFollower
from jupiterd.errors import JupiterError
from jupiterd.ids import ArtifactId


class NameFollowers:
    """What each served name means here."""

    def __init__(
        self, make: Callable[[FollowedName], PromotionFollower], group: asyncio.TaskGroup
    ) -> None:
        """`make` returns the follower of a name."""
        self._make, self._group = make, group
        self._by_name: dict[str, PromotionFollower] = {}

    def serve(self, names: Collection[str]) -> None:
        """Serve these names from now on, and no others; a folder's path means no other model."""
        for name in names:
            if not Path(name).is_absolute() and name not in self._by_name:
                follower = self._by_name[name] = self._make(FollowedName(name, meaning_of(name)))
                self._group.create_task(follower.run(), name=f"the model {name}")
        for name, follower in self._by_name.items():
            follower.serve(is_wanted=name in names)

    def of(self, name: str = PROMOTED) -> PromotionFollower | None:
        """Return the follower of a name; None where it was never served."""
        return self._by_name.get(name)

    async def meant(self, model: ServedModel) -> ServedModel:
        """Return the model that a new request goes to; see `PromotionFollower.meant`."""
        follower = self._by_name.get(model.name)
        return model if follower is None else await follower.meant(model)


def meaning_of(name: str) -> Meaning:
    """Return what says which artifact a name means, as the ledger has it; None: none does."""

    def meant(state: State) -> ArtifactId | None:
        try:
            return served_model(state, name).artifact
        except JupiterError:
            return None

    return meant
