"""Which clusters are copies of each other, so that they are held out together or not at all.

Owns joining them. Doesn't know how near-duplicates are found: each document comes with the number
of its group.

A cluster at least half of whose documents have a near-duplicate in another one is joined with the
one that has most of them: two versions of a handbook, a mirror of a site. A notice that stands in
every folder joins none; its copies stay together all the same (`workers.data.pack.hold_out`).
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

JOINED_FROM: Final = 0.5
"""A cluster is a copy where so many of its documents are."""

MOST_CLUSTERS_OF_NOTICE: Final = 50
"""A text that so many clusters have is a notice: it doesn't say that they are alike."""


def joined_clusters(documents: Iterable[tuple[str, int]]) -> dict[str, str]:
    """Return the clusters that are joined, each with the first of those it is joined with.

    documents: the cluster of each document, and its group of near-duplicates
    """
    pairs = list(documents)
    shared_by = _shared(_copies(pairs).values())
    if not shared_by:
        return {}
    sizes = Counter(cluster for cluster, _ in pairs)
    first = {cluster: cluster for cluster in shared_by}
    for cluster, others in sorted(shared_by.items()):
        nearest, shared = min(others.items(), key=lambda pair: (-pair[1], pair[0]))
        if shared >= JOINED_FROM * sizes[cluster]:
            _join(first, cluster, nearest)
    roots = {cluster: _root(first, cluster) for cluster in first}
    return {cluster: root for cluster, root in roots.items() if cluster != root}


def _copies(pairs: Sequence[tuple[str, int]]) -> dict[int, Counter[str]]:
    """Return the clusters of each group of several documents; of most there is one alone."""
    counts = Counter(group for _, group in pairs)
    groups: defaultdict[int, Counter[str]] = defaultdict(Counter)
    for cluster, group in pairs:
        if counts[group] > 1:
            groups[group][cluster] += 1
    return groups


def _shared(groups: Iterable[Mapping[str, int]]) -> dict[str, Counter[str]]:
    """Return for each cluster how many of its documents are near to one of each other cluster."""
    shared: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for group in groups:
        if 1 < len(group) <= MOST_CLUSTERS_OF_NOTICE:
            for cluster, documents in group.items():
                for other in group.keys() - {cluster}:
                    shared[cluster][other] += documents
    return shared


def _join(first: dict[str, str], one: str, other: str) -> None:
    # The first by name, so that the order in which they are joined plays no part.
    root, joined = sorted((_root(first, one), _root(first, other)))
    first[joined] = root


def _root(first: dict[str, str], cluster: str) -> str:
    while first[cluster] != cluster:
        first[cluster] = first[first[cluster]]
        cluster = first[cluster]
    return cluster
