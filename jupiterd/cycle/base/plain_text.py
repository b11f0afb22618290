"""Values that travel between nodes and processes, and are compared by hash.

Owns their plain form. Doesn't know what any of them means.
"""

import json
from collections.abc import Mapping
from typing import Any, Self

from blake3 import blake3
from pydantic import BaseModel, ConfigDict


class Plain(BaseModel):
    """A value that travels as plain msgpack."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    def to_plain(self) -> dict[str, Any]:
        """Return nested dicts of nothing but numbers, text and booleans."""
        return self.model_dump(mode="json")

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Self:
        """Rebuild the value; raises pydantic's ValidationError where it isn't one."""
        return cls.model_validate(plain)


def hash_of(plain: Mapping[str, Any]) -> str:
    """Return BLAKE3 of a plain value, 64 hex digits."""
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"))
    return blake3(text.encode()).hexdigest()
