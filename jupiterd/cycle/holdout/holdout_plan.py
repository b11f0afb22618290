"""Which text is held out: the plan that is worked out once and kept for all rounds of a cycle.

Owns the plan and what it says of any document, also of those that come later. Doesn't know how it
is worked out (`holdout_choice`), files or models.

Clusters lie on a line, by a keyed hash. The gate has those from its beginning on, up to as many
documents as it needs; then come those for development, then the vault's; all others are trained on.
Where these parts end is recorded, and so is what is an exception. So a document that comes later
falls where its cluster fell, and a new cluster where its hash lies.

A few large clusters can't be held out as wholes: of six folders the gate would have one or two.
Then files are held out of all of them alike, and each folder has a line of its own. Six files of
one folder are no six pieces of evidence, though: the gate *counts by* folders then.

Where the domain file states a `fraction`, that decides in place of the documents' number (`split`).
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final, cast

from blake3 import blake3

from jupiterd.cycle.data.split import DEV, GATE, TRAIN, VAULT, part_of
from jupiterd.cycle.holdout.clusters import DOCUMENT, Path, cluster_at

VERSION: Final = 1

LINE: Final = 1 << 63
"""Where the line of hashes ends."""

Ends = tuple[int, int, int]
"""Where gate, development and vault end on a line of hashes; excluded."""


@dataclass(frozen=True)
class Collected:
    """One document that was collected and cleaned."""

    path: Path
    size_bytes: int
    group: int
    """Of its near-duplicates; its own where there are none."""


@dataclass(frozen=True)
class HoldoutPlan:
    """What is held out, for every round of a cycle."""

    salt: str
    depth: int
    """The level of what is held out as a whole, see `clusters`."""
    fraction: float = 0.0
    """As the domain file states it; 0: the ends decide."""
    dev: float = 0.0
    """With `fraction`: share of the holdout for development."""
    vault: float = 0.0
    """With `fraction`: share of the holdout for the vault."""
    ends: Ends = (0, 0, 0)
    """Of the one line, or of that of clusters that come later."""
    lines: Mapping[str, Ends] = field(default_factory=dict[str, Ends])
    """Cluster that the gate counts by -> the ends of its own line, where each has one."""
    line_of: Mapping[str, str] = field(default_factory=dict[str, str])
    """Cluster with documents on several lines -> the one that counts."""
    joined: Mapping[str, str] = field(default_factory=dict[str, str])
    """Cluster -> the one whose side it is on, being a copy of it."""
    trained_on: tuple[str, ...] = ()
    """Clusters that would be held out by their hash, and are too large for that."""
    counted_depth: int = DOCUMENT
    """The level by which the gate counts; that of what is held out as a whole, or a larger one."""
    counted_joined: Mapping[str, str] = field(default_factory=dict[str, str])
    """As `joined`, at that level."""

    def cluster_of(self, path: Path) -> str:
        """Return the cluster of a document that is held out as a whole, or not at all."""
        cluster = cluster_at(path, self.depth)
        return self.joined.get(cluster, cluster)

    def counted_as(self, path: Path) -> str:
        """Return the cluster of a document by which the gate counts."""
        if self.counted_depth >= self.depth:
            return self.cluster_of(path)
        cluster = cluster_at(path, self.counted_depth)
        return self.counted_joined.get(cluster, cluster)

    def part_of(self, path: Path) -> str:
        """Return what a document is for: `train`, or a part of the holdout."""
        cluster = self.cluster_of(path)
        if self.fraction:
            return part_of(cluster, self.salt, self.fraction, self.dev, self.vault)
        if cluster in self.trained_on:
            return TRAIN
        line = self.line_of.get(cluster) or self.counted_as(path)
        ends = self.lines.get(line, self.ends)
        place = place_of(cluster, self.salt)
        parts = zip((GATE, DEV, VAULT), ends, strict=True)
        return next((part for part, end in parts if place < end), TRAIN)

    def to_plain(self) -> dict[str, Any]:
        """Return the plan as it is recorded."""
        return {"version": VERSION, **asdict(self)}

    @classmethod
    def from_plain(cls, document: Mapping[str, Any]) -> "HoldoutPlan":
        """Rebuild a plan that was recorded."""
        return cls(
            salt=str(document["salt"]),
            depth=int(document["depth"]),
            fraction=float(document["fraction"]),
            dev=float(document["dev"]),
            vault=float(document["vault"]),
            ends=_ends(document["ends"]),
            lines={str(cluster): _ends(ends) for cluster, ends in document["lines"].items()},
            line_of=_texts(document["line_of"]),
            joined=_texts(document["joined"]),
            trained_on=tuple(map(str, document["trained_on"])),
            counted_depth=int(document["counted_depth"]),
            counted_joined=_texts(document["counted_joined"]),
        )


def place_of(cluster: str, salt: str) -> int:
    """Return where a cluster lies on the line of hashes, from 0 to LINE."""
    # 63 bits: the wire has signed whole numbers.
    digest = blake3(f"{salt}\0{cluster}".encode()).digest(8)
    return int.from_bytes(digest, "big") >> 1


def _ends(numbers: list[int]) -> Ends:
    return cast("Ends", tuple(map(int, numbers)))


def _texts(names: Mapping[str, str]) -> dict[str, str]:
    return {str(one): str(other) for one, other in names.items()}
