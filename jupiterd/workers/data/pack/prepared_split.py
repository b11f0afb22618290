"""What of a data set is held out, by the rules of a cycle's holdout.

Owns the plan, made from what is read first, and each document's side. What comes later falls where
its folder or file fell. Doesn't know how text is read or packed. A look before anything starts
(`split_preview`) and the task itself come to the same by it.

Whole clusters are held out: as large ones as there are enough of, else files. Of near-duplicates
all are trained on where one is, as far as they are in what is read first.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from jupiterd.cycle.data.lineage import text_hash
from jupiterd.cycle.data.split import in_holdout
from jupiterd.cycle.holdout.clusters import DOCUMENT
from jupiterd.cycle.holdout.clusters_apart import clusters_apart
from jupiterd.cycle.holdout.holdout_choice import plan_holdout
from jupiterd.cycle.holdout.holdout_plan import Collected, HoldoutPlan, place_of
from jupiterd.cycle.holdout.holdout_rules import LEAST_DEV_DOCUMENTS, HoldoutRules
from jupiterd.workers.data.collect.text_files import PlacedText
from jupiterd.workers.data.dedup.near_duplicates import NearDuplicates

HELD_OUT_BYTES: Final = 256 << 10
"""No more is held out: a thousand pages tell the loss well enough, and are scored in a minute."""

SALT: Final = "validation"

BY_FILE: Final = HoldoutPlan(SALT, DOCUMENT)
"""Where no larger cluster can be held out: each file is one."""

LONE_SHARE: Final = 10
"""Where there is one document alone, a tenth of it is cut off its end and held out."""


@dataclass
class Split:
    """Decides which documents are held out, as they come."""

    plan: HoldoutPlan | None = None
    """None: nothing is held out."""
    fraction: float = 0.0
    chosen: frozenset[str] = frozenset()
    """Clusters that are held out whatever chance says: so that a small set has enough."""
    too_large: frozenset[str] = frozenset()
    """Clusters that would be all that is held out, and more: they are trained on."""
    copied: frozenset[str] = frozenset()
    """Texts that are never held out: a near-duplicate is trained on."""
    held_out: dict[str, PlacedText] = field(default_factory=dict[str, PlacedText])
    """Hash -> document."""
    held_out_bytes: int = 0
    held_out_clusters: set[str] = field(default_factory=set[str])

    def takes(self, placed: PlacedText) -> bool:
        """Say whether the document is held out; it is kept here then."""
        digest = text_hash(placed.text)
        if digest in self.held_out:
            return True
        cluster = self.cluster_of(placed)
        if not self.wants(cluster) or digest in self.copied:
            return False
        if self.held_out_bytes >= HELD_OUT_BYTES * (2 if cluster in self.held_out_clusters else 1):
            return False  # a cluster that was begun is held out whole, unless it is very large
        self.held_out[digest] = placed
        self.held_out_bytes += len(placed.text.encode())
        self.held_out_clusters.add(cluster)
        return True

    def cluster_of(self, placed: PlacedText) -> str:
        """Return the cluster of a document; empty where nothing is held out."""
        return "" if self.plan is None else self.plan.cluster_of(placed.path)

    def wants(self, cluster: str) -> bool:
        """Say whether a cluster is to be held out, as long as there is room."""
        if self.plan is None:
            return False
        if cluster in self.chosen:
            return True
        return cluster not in self.too_large and in_holdout(cluster, SALT, self.fraction)


def without_secrets(texts: Iterator[PlacedText], removed: Counter[str]) -> Iterator[PlacedText]:
    """Yield the texts as documents; count what they lose."""
    for placed in texts:
        document, secrets = placed.without_secrets()
        removed.update({f"removed.{kind}": number for kind, number in secrets.items()})
        yield document


def read_first(
    documents: Iterator[PlacedText], most_bytes: int, fraction: float
) -> list[PlacedText]:
    """Return the documents that come first, so many bytes of them; one that is alone in two."""
    sample: list[PlacedText] = []
    size_bytes = 0
    while size_bytes < most_bytes and (placed := next(documents, None)) is not None:
        sample.append(placed)
        size_bytes += len(placed.text.encode())
    is_cut = len(sample) == 1 and fraction and sample[0].may_be_cut
    return _cut_in_two(sample[0]) if is_cut else sample


def _cut_in_two(placed: PlacedText) -> list[PlacedText]:
    """Return the text and its end apart, cut where a line ends; whole where it is one line."""
    lines = placed.text.splitlines(keepends=True)
    last = len(lines) - len(lines) // LONE_SHARE
    if last == len(lines) or last == 0:
        return [placed]
    end = PlacedText("".join(lines[last:]), (*placed.path, "end"))
    return [replace(placed, text="".join(lines[:last])), end]


def split_of(sample: Sequence[PlacedText], fraction: float) -> Split:
    """Return what decides, from what is read first.

    As in a cycle, near-duplicates are on one side, which is that of training where chance differs,
    and a small set has a few documents held out, for the loss of one or two tells nothing.
    """
    if not fraction or len({each.text for each in sample}) < 2:
        return Split()
    groups = _groups(each.text for each in sample)
    plan = _plan(sample, groups, fraction)
    clusters = [plan.cluster_of(each.path) for each in sample]
    by_chance = _enough(plan, fraction, _sizes(sample, clusters))
    tried = (by_chance, *_apart(plan, sample, groups), *_apart(BY_FILE, sample, groups))
    for split in tried:
        split.copied = _copied(split, sample, groups)
    held = [_count_held_out(split, sample) for split in tried]
    for most in (len(sample) // 2, len(sample) - 1):
        for split, documents in zip(tried, held, strict=True):
            if 0 < documents <= most:
                return split
    return Split()


def _copied(split: Split, sample: Sequence[PlacedText], groups: Sequence[int]) -> frozenset[str]:
    """Return the texts of which a near-duplicate is trained on."""
    pairs = list(zip(sample, groups, strict=True))
    trained = {group for each, group in pairs if not split.wants(split.cluster_of(each))}
    return frozenset(text_hash(each.text) for each, group in pairs if group in trained)


def _count_held_out(split: Split, sample: Sequence[PlacedText]) -> int:
    """Return how many documents are held out."""
    wanted = [each for each in sample if split.wants(split.cluster_of(each))]
    return sum(text_hash(each.text) not in split.copied for each in wanted)


def _apart(
    plan: HoldoutPlan, sample: Sequence[PlacedText], groups: Sequence[int]
) -> Iterator[Split]:
    """Yield the choice of a few clusters none of which has a copy among the others, if any."""
    clusters = [plan.cluster_of(each.path) for each in sample]
    sizes = _sizes(sample, clusters)
    bytes_of = {name: size for name, (_, size) in sizes.items()}
    least = max(1, min(LEAST_DEV_DOCUMENTS, len(sample) // 6))
    chosen: frozenset[str] = frozenset()
    for part in clusters_apart(clusters, groups, bytes_of, SALT):
        if sum(sizes[name][0] for name in chosen) < least:
            chosen |= part
    if chosen:
        yield Split(plan, 0.0, chosen)


def _groups(texts: Iterable[str]) -> Sequence[int]:
    near = NearDuplicates(is_code=True)  # texts that differ in their numbers alone are two
    for text in texts:
        near.add(text)
    return near.groups()


def _plan(sample: Sequence[PlacedText], groups: Sequence[int], fraction: float) -> HoldoutPlan:
    documents = [
        Collected(each.path, len(each.text.encode()), group)
        for each, group in zip(sample, groups, strict=True)
    ]
    size_bytes = sum(each.size_bytes for each in documents)
    share = min(fraction, HELD_OUT_BYTES / max(1, size_bytes))
    rules = HoldoutRules(SALT, share, 0.0, 0.0, 1, LEAST_DEV_DOCUMENTS, min_document_bytes=1)
    return plan_holdout(documents, rules)[0]


def _sizes(sample: Sequence[PlacedText], clusters: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Return the documents and bytes of each cluster."""
    sizes: dict[str, tuple[int, int]] = {}
    for each, cluster in zip(sample, clusters, strict=True):
        documents, size = sizes.get(cluster, (0, 0))
        sizes[cluster] = documents + 1, size + len(each.text.encode())
    return sizes


def _enough(plan: HoldoutPlan, fraction: float, sizes: Mapping[str, tuple[int, int]]) -> Split:
    """Return the split, with clusters chosen where chance holds out too little, or all."""
    large = frozenset(name for name, (_, size) in sizes.items() if size > HELD_OUT_BYTES)
    split = Split(plan, fraction, too_large=large)
    total = sum(documents for documents, _ in sizes.values())
    held = sum(documents for name, (documents, _) in sizes.items() if split.wants(name))
    if len(sizes) == 2 or held == total:
        smallest = min(sizes, key=lambda name: (sizes[name][1], name))
        return Split(plan, 0.0, frozenset([smallest]))
    least = max(1, min(LEAST_DEV_DOCUMENTS, total // 6))
    if held >= least:
        return split
    in_line = sorted(sizes, key=lambda name: (name in large, place_of(name, SALT), name))
    return replace(split, chosen=frozenset(in_line[: min(least, len(sizes) - 1)]))
