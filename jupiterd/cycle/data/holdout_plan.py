"""Which text is held out, worked out once from all that was collected, and kept for all rounds.

Owns the plan: at which level clusters are told apart, which of them are for what, and what becomes
of documents that come later. Doesn't know files or models.

Clusters lie on a line, by a keyed hash. The gate has those from its beginning on, up to as many
documents as it needs; then come those for development, then the vault's; all others are trained on.
Where these parts end is recorded, and so is what is an exception. So a document that comes later
falls where its cluster fell, and a new cluster where its hash lies.

Where the domain file states a `fraction`, that decides in place of the documents' number (`split`).

A few large clusters can't be held out as wholes: of six folders the gate would have one or two.
Then files are held out of all of them. Six files of one folder are no six pieces of evidence,
though: so the clusters that the gate *counts by* are as large as there are enough of among what it
has, and larger than what is held out as a whole, or equal.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final, cast

from blake3 import blake3

from jupiterd.cycle.data.clusters import DOCUMENT, Level, Path, cluster_at, level_of, levels_of
from jupiterd.cycle.data.holdout_rules import (
    ENOUGH_GATE_CLUSTERS,
    LEAST_EFFECTIVE,
    MOST_HELD_OUT,
    HoldoutRules,
    Parts,
    shares_told,
    wanted_parts,
)
from jupiterd.cycle.data.near_clusters import joined_clusters
from jupiterd.cycle.split import DEV, GATE, TRAIN, VAULT, part_of

VERSION: Final = 1

LARGEST_OF_PART: Final = 0.25
"""A cluster with more of what the gate is to have isn't held out: it would be most of it."""


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
    """See `clusters`."""
    fraction: float = 0.0
    """As the domain file states it; 0: the ends decide."""
    dev: float = 0.0
    """With `fraction`: share of the holdout for development."""
    vault: float = 0.0
    """With `fraction`: share of the holdout for the vault."""
    ends: tuple[int, int, int] = (0, 0, 0)
    """Where gate, development and vault end on the line of hashes; excluded."""
    joined: Mapping[str, str] = field(default_factory=dict[str, str])
    """Cluster -> the one whose side it is on, being a copy of it."""
    trained_on: tuple[str, ...] = ()
    """Clusters that would be held out by their hash, and are too large for that."""
    counted_depth: int = DOCUMENT
    """The level by which the gate counts; that of what is held out as a whole, or a larger one."""
    counted_joined: Mapping[str, str] = field(default_factory=dict[str, str])
    """As `joined`, at that level."""

    def cluster_of(self, path: Path) -> str:
        """Return the cluster of a document."""
        cluster = cluster_at(path, self.depth)
        return self.joined.get(cluster, cluster)

    def counted_as(self, path: Path) -> str:
        """Return the cluster of a held-out document, by which the gate counts."""
        if self.counted_depth >= self.depth:
            return self.cluster_of(path)
        cluster = cluster_at(path, self.counted_depth)
        return self.counted_joined.get(cluster, cluster)

    def part_of(self, path: Path) -> str:
        """Return what a document is for: `train`, or a part of the holdout."""
        return self.part_of_cluster(self.cluster_of(path))

    def part_of_cluster(self, cluster: str) -> str:
        """Return what a cluster is for."""
        if self.fraction:
            return part_of(cluster, self.salt, self.fraction, self.dev, self.vault)
        place = place_of(cluster, self.salt)
        parts = zip((GATE, DEV, VAULT), self.ends, strict=True)
        part = next((part for part, end in parts if place < end), TRAIN)
        return TRAIN if cluster in self.trained_on else part

    def to_plain(self) -> dict[str, Any]:
        """Return the plan as it is recorded."""
        return {"version": VERSION, **asdict(self)}

    @classmethod
    def from_plain(cls, told: Mapping[str, Any]) -> "HoldoutPlan":
        """Rebuild a plan that was recorded."""
        return cls(
            salt=str(told["salt"]),
            depth=int(told["depth"]),
            fraction=float(told["fraction"]),
            dev=float(told["dev"]),
            vault=float(told["vault"]),
            ends=cast("tuple[int, int, int]", tuple(map(int, told["ends"]))),
            joined={str(one): str(other) for one, other in told["joined"].items()},
            trained_on=tuple(map(str, told["trained_on"])),
            counted_depth=int(told["counted_depth"]),
            counted_joined={str(one): str(two) for one, two in told["counted_joined"].items()},
        )


def place_of(cluster: str, salt: str) -> int:
    """Return where a cluster lies on the line of hashes, from 0 to 2^63."""
    # 63 bits: the wire has signed whole numbers.
    digest = blake3(f"{salt}\0{cluster}".encode()).digest(8)
    return int.from_bytes(digest, "big") >> 1


def plan_holdout(documents: Sequence[Collected], rules: HoldoutRules) -> tuple[HoldoutPlan, str]:
    """Return what is held out of these documents, and why clusters are what they are."""
    scored = _scored(documents, rules)
    wanted = wanted_parts(len(scored), rules)
    level, reason = choose_level(_joined_levels(documents, scored, rules), wanted, rules)
    joined = _joined(documents, level.depth)
    if rules.fraction is not None:
        fraction, dev, vault = shares_told(len(scored), rules)
        told = HoldoutPlan(rules.salt, level.depth, fraction, dev, vault, joined=joined)
        return told, reason
    clusters = HoldoutPlan(rules.salt, level.depth, joined=joined)
    sizes = Counter(clusters.cluster_of(each.path) for each in scored)
    ends, too_large = _ends(sizes, wanted, rules)
    plan = replace(clusters, ends=ends, trained_on=too_large)
    return _counted(plan, documents, scored, rules), reason


def _counted(
    plan: HoldoutPlan,
    documents: Sequence[Collected],
    scored: Sequence[Collected],
    rules: HoldoutRules,
) -> HoldoutPlan:
    """Return the plan with the largest clusters to count by of which the gate has enough."""
    judged = [each for each in scored if plan.part_of(each.path) == GATE]
    for level in levels_of([each.path for each in judged]):
        if level.depth >= plan.depth:
            break
        joined = _joined(documents, level.depth)
        found = replace(plan, counted_depth=level.depth, counted_joined=joined)
        sizes = Counter(found.counted_as(each.path) for each in judged)
        if is_counted_by(level_of(level.depth, sizes, rules.max_cluster_documents), rules):
            return found
    return plan


def is_counted_by(level: Level, rules: HoldoutRules) -> bool:
    """Say whether the gate can count by clusters of which it has these."""
    return level.clusters >= rules.least_clusters and level.effective >= LEAST_EFFECTIVE


def choose_level(levels: Sequence[Level], wanted: Parts, rules: HoldoutRules) -> tuple[Level, str]:
    """Return the level with the largest clusters of which the gate still has enough, and why.

    levels: the fewest clusters first
    """
    told = rules.fraction is not None
    enough = rules.least_clusters if told else max(ENOUGH_GATE_CLUSTERS, rules.least_clusters)
    documents = max(1, _documents(levels))
    share = wanted.gate / documents
    for level in levels:
        # Where the domain says how many are wanted it means clusters, however unequal.
        found = (level.clusters if told else level.effective) * share
        if found >= enough:
            return level, f"of {level.clusters:,} clusters ({level.name}) the gate has enough"
    last = levels[-1]
    return last, f"no level has enough clusters, so that each document is one ({last.clusters:,})"


def _documents(levels: Sequence[Level]) -> int:
    return next((level.clusters for level in levels if level.depth == DOCUMENT), 0)


def _scored(documents: Sequence[Collected], rules: HoldoutRules) -> list[Collected]:
    """Return what could be scored: the first of each group, unless it is too short."""
    seen: set[int] = set()
    found: list[Collected] = []
    for each in documents:
        if each.group not in seen and each.size_bytes >= rules.min_document_bytes:
            seen.add(each.group)
            found.append(each)
    return found


def _joined_levels(
    documents: Sequence[Collected], scored: Sequence[Collected], rules: HoldoutRules
) -> list[Level]:
    levels = levels_of([each.path for each in scored], rules.max_cluster_documents)
    return [_with_joined(level, documents, scored, rules) for level in levels]


def _with_joined(
    level: Level,
    documents: Sequence[Collected],
    scored: Sequence[Collected],
    rules: HoldoutRules,
) -> Level:
    plan = HoldoutPlan(rules.salt, level.depth, joined=_joined(documents, level.depth))
    sizes = Counter(plan.cluster_of(each.path) for each in scored)
    return level_of(level.depth, sizes, rules.max_cluster_documents)


def _joined(documents: Sequence[Collected], depth: int) -> dict[str, str]:
    return joined_clusters((cluster_at(each.path, depth), each.group) for each in documents)


def _ends(
    sizes: Mapping[str, int], wanted: Parts, rules: HoldoutRules
) -> tuple[tuple[int, int, int], tuple[str, ...]]:
    """Return where the parts end, and the clusters before that which are too large."""
    line = iter(sorted(sizes, key=lambda cluster: (place_of(cluster, rules.salt), cluster)))
    largest = max(1.0, LARGEST_OF_PART * max(wanted.gate, rules.least_documents))
    room = MOST_HELD_OUT * sum(sizes.values())
    ends: list[int] = []
    too_large: list[str] = []
    last = 0
    for documents, clusters in (
        (wanted.gate, min(rules.least_clusters, len(sizes) // 2)),
        (wanted.dev, min(1, wanted.dev)),
        (wanted.vault, min(1, wanted.vault)),
    ):
        taken, found = 0, 0
        while (taken < documents or found < clusters) and (cluster := next(line, "")):
            last = place_of(cluster, rules.salt) + 1
            if sizes[cluster] > min(largest, room):
                too_large.append(cluster)
                continue
            taken, found, room = taken + sizes[cluster], found + 1, room - sizes[cluster]
        ends.append(last)
    return cast("tuple[int, int, int]", tuple(ends)), tuple(sorted(too_large))
