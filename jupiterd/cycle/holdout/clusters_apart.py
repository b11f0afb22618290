"""Which clusters can be held out of a small set without a copy of them being trained on.

Owns that choice. Pure. Doesn't know how near-duplicates are found: each document comes with the
number of its group.
"""

from collections.abc import Mapping, Sequence

from jupiterd.cycle.holdout.holdout_plan import place_of


def clusters_apart(
    clusters: Sequence[str], groups: Sequence[int], sizes: Mapping[str, int], salt: str
) -> list[frozenset[str]]:
    """Return what can be held out, each a set of clusters, in the order in which it should be.

    The largest part is trained on: it isn't among them. Nothing is where all are copies.

    Args:
        clusters: of each document.
        groups: of each document's near-duplicates.
        sizes: of each cluster in bytes.
        salt: decides the order, by the clusters' names.
    """
    parts = _linked(clusters, groups)
    largest = max(parts, key=lambda part: (sum(sizes[name] for name in part), min(part)))
    others = [part for part in parts if part != largest]
    return sorted(others, key=lambda part: place_of(min(part), salt))


def _linked(clusters: Sequence[str], groups: Sequence[int]) -> list[frozenset[str]]:
    """Return the clusters, together where a document of one is a copy of one of the other."""
    of_group: dict[int, str] = {}
    parts: dict[str, set[str]] = {name: {name} for name in clusters}
    for cluster, group in zip(clusters, groups, strict=True):
        other = of_group.setdefault(group, cluster)
        if parts[other] is not parts[cluster]:
            small, large = sorted((parts[other], parts[cluster]), key=len)
            large |= small
            parts |= dict.fromkeys(small, large)
    return list({frozenset(part) for part in parts.values()})
