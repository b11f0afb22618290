"""Where the store of an attempt is: its name, the node that holds it, and who may ask it.

Owns its form in an order. Doesn't know what is in the store.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from jupiterd.errors import MalformedError
from jupiterd.ids import NodeId

MAX_NAME_CHARACTERS: Final = 256
MAX_MEMBERS: Final = 4096


@dataclass(frozen=True)
class StorePlace:
    """Of one attempt."""

    name: str
    """No other attempt's."""
    holder: NodeId
    """Rank 0's node."""
    members: tuple[NodeId, ...]
    """The nodes of all ranks."""

    @classmethod
    def of(cls, name: str, gang: Sequence[NodeId]) -> "StorePlace":
        """Return where the store is of a gang in rank order."""
        return cls(name, gang[0], tuple(dict.fromkeys(gang)))

    def to_plain(self) -> dict[str, Any]:
        """Return its form in an order."""
        return {"name": self.name, "holder": self.holder, "members": list(self.members)}

    @classmethod
    def from_plain(cls, plain: object) -> "StorePlace":
        """Rebuild it; raises MalformedError where it is none."""
        fields = cast("Mapping[str, Any]", plain) if isinstance(plain, Mapping) else {}
        match fields:
            case {"name": str(name), "holder": str(holder), "members": [*members]} if (
                len(name) <= MAX_NAME_CHARACTERS
                and len(members) <= MAX_MEMBERS
                and all(isinstance(member, str) for member in members)
            ):
                return cls(name, NodeId(holder), tuple(map(NodeId, members)))
            case _:
                raise MalformedError("an order doesn't say where its gang meets")
