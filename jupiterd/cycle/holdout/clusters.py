"""Which documents belong together: the site, repository, folder or file that each is of.

Owns a document's path of ever smaller clusters, and counting the clusters of each level. Doesn't
know what is held out (`holdout_plan`), or how documents are read.

The first level is what the collector says: a host, a repository, a topmost folder, a module, a row.
Each further level is one folder deeper, and the last is the document itself.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

DOCUMENT: Final = 99
"""The depth at which each document is a cluster of its own; no folder is so deep."""

MAX_DEPTH: Final = 6
"""Folders that lie deeper than this are no level of their own."""

Path = tuple[str, ...]
"""A document's clusters, the largest first: what the collector says, then folders, then itself."""


@dataclass(frozen=True)
class Level:
    """How many clusters there are, where so many folders tell them apart."""

    depth: int
    """Folders below what the collector says; DOCUMENT: each document is a cluster."""
    clusters: int
    effective: float
    """As many equal clusters tell as much: documents^2 / sum of (documents of a cluster)^2."""

    @property
    def name(self) -> str:
        """Return what a cluster of this level is called."""
        return level_name(self.depth)


def level_name(depth: int) -> str:
    """Return what clusters are called whose documents share so many folders."""
    if depth == DOCUMENT:
        return "file, page or row"
    return "site, repository or topmost folder" if depth == 0 else f"folder {depth} deeper"


def cluster_path(uri: str, cluster_id: str) -> Path:
    """Return a document's clusters, the largest first.

    Args:
        uri: where it comes from, as its provenance says.
        cluster_id: what its collector says it must stay together with.
    """
    return (cluster_id, *_below(uri, cluster_id))


def path_of_file(name: str) -> Path:
    """Return the clusters of a file in a folder, by its name relative to the folder."""
    first, *rest = name.split("/")
    return (first, *rest) if rest else (first.rpartition(".")[0] or first,)


def cluster_at(path: Path, depth: int) -> str:
    """Return a document's cluster at a level."""
    return "/".join(path[: depth + 1])


def depths_of(paths: Iterable[Path]) -> list[int]:
    """Return the depths of all levels, the fewest clusters first."""
    deepest = max((len(path) for path in paths), default=1) - 1
    return [*range(min(deepest, MAX_DEPTH + 1)), DOCUMENT]


def level_of(depth: int, sizes: Mapping[str, int], most_of_one: int) -> Level:
    """Return a level whose clusters have so many documents."""
    return Level(depth, len(sizes), effective_clusters(sizes.values(), most_of_one))


def effective_clusters(sizes: Iterable[int], most_of_one: int) -> float:
    """Return how many equal clusters tell as much as these."""
    counted = [min(size, most_of_one) for size in sizes]
    squares = math.fsum(size * size for size in counted)
    return sum(counted) ** 2 / squares if squares else 0.0


def _below(uri: str, cluster_id: str) -> list[str]:
    """Return the names of folders, and the document's own, below its first cluster."""
    scheme, _, rest = uri.partition(":")
    if scheme in {"folder", "python-stdlib"}:
        names = rest.split("/")[1:]
        return names[1:] if names[:1] == [cluster_id] else _row_in(rest)
    if scheme.startswith("git+"):
        url, _, name = uri.removeprefix("git+").partition("#")
        return _after(f"{url}/{name}", cluster_id)
    if scheme in {"http", "https"} and "://" not in cluster_id:
        return _after(rest.removeprefix("//"), cluster_id)
    return []


def _row_in(place: str) -> list[str]:
    """Return the number of a row in a table that lies alone; none where it is no row."""
    number = place.rpartition("#")[2]
    return [number] if number != place and number.isdecimal() else []


def _after(place: str, cluster_id: str) -> list[str]:
    """Return the names that a place has beyond its cluster's; none where it isn't below it."""
    beyond = place.removeprefix(f"{cluster_id}/")
    return [] if beyond == place else [name for name in beyond.split("/") if name]
