"""Which tunnels the ranks of an attempt need: where each rank is reached, and on whose machine.

Owns its form in an order. Doesn't know sockets.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeGuard, cast

from jupiterd.cluster.training.store_place import MAX_MEMBERS
from jupiterd.errors import MalformedError
from jupiterd.ids import NodeId

PARAM: Final = "tunnels"
"""What an order calls it; absent where nothing is encrypted."""


GANG_ENCRYPTION: Final = "gang_encryption"
ON: Final = "on"
"""What is recorded of a run, or a cycle, whose ranks talk through tunnels."""


def is_encrypted(settings: Mapping[str, Any], machines: Collection[str]) -> bool | None:
    """Say whether what a gang's ranks send each other goes through tunnels.

    Args:
        settings: as they were recorded of its run or cycle
        machines: those that have a rank; where there is one alone, nothing leaves it: None
    """
    return settings.get(GANG_ENCRYPTION) == ON if len(set(machines)) > 1 else None


@dataclass(frozen=True)
class TunnelPlan:
    """Of one attempt."""

    gang: tuple[NodeId, ...]
    """Each rank's node."""
    hosts: tuple[str, ...]
    """Where each rank's node is reached."""

    def to_plain(self) -> dict[str, Any]:
        """Return its form in an order."""
        return {"gang": list(self.gang), "hosts": list(self.hosts)}

    @classmethod
    def from_plain(cls, plain: object) -> "TunnelPlan":
        """Rebuild it; raises MalformedError where it is none."""
        fields = cast("Mapping[str, Any]", plain) if isinstance(plain, Mapping) else {}
        gang, hosts = fields.get("gang"), fields.get("hosts")
        if not _are_texts(gang) or not _are_texts(hosts) or len(gang) != len(hosts):
            raise MalformedError("an order doesn't say which tunnels its gang needs")
        return cls(tuple(map(NodeId, gang)), tuple(hosts))

    def neighbours(self, rank: int) -> tuple[int, ...]:
        """Return the ranks beside one in a ring."""
        size = len(self.gang)
        return tuple(dict.fromkeys(((rank - 1) % size, (rank + 1) % size)))


def _are_texts(found: object) -> TypeGuard[Sequence[str]]:
    return (
        isinstance(found, list | tuple)
        and 0 < len(cast("Sequence[object]", found)) <= MAX_MEMBERS
        and all(isinstance(each, str) for each in cast("Sequence[object]", found))
    )
