"""The names of things that several floors speak of.

Owns the identifier types and how each is shortened for people. Doesn't know how any is made.
"""

import re
from typing import NewType

_HEX = re.compile(r"[0-9a-f]{8,}")

NodeId = NewType("NodeId", str)
"""32 hex digits: the first half of the BLAKE3 hash of a node's P-256 public key.

The key is hashed in its DER form (SubjectPublicKeyInfo).
"""

ClusterId = NewType("ClusterId", str)
"""32 hex digits, drawn at random when a cluster is founded."""

ArtifactId = NewType("ArtifactId", str)
"""64 hex digits: BLAKE3 of an artifact's manifest."""

CycleId = NewType("CycleId", str)
"""16 hex digits, drawn when a cycle is started."""


def short(identifier: str) -> str:
    """Return the first eight digits, as people see them in tables and logs."""
    return identifier[:8]


def is_hex(identifier: object) -> bool:
    """Say whether it may be an id or the beginning of one, and so a folder's name."""
    return isinstance(identifier, str) and _HEX.fullmatch(identifier) is not None
