"""A model that answers requests.

Owns what an engine is told to load. Doesn't know where its files are, nor who resolves names.
"""

from dataclasses import dataclass

from jupiterd.ids import ArtifactId


@dataclass(frozen=True)
class ServedModel:
    """What an engine loads."""

    name: str
    """What clients call it: "promoted", "python/2", the name of a run or of a folder."""

    artifact: ArtifactId | None
    """In the store of some node; None where it is a folder of this machine."""

    folder: str | None = None
    """A path on this machine alone, when it is no artifact."""
