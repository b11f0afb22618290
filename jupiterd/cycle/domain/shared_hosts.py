"""Which sources ask the same hosts of the web: no two of them are read at the same time.

Owns that grouping: each collector keeps the pause between two requests to a host, and knows nothing
of another one's, which may run on another machine. Doesn't know who reads a source.
"""

from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

from jupiterd.cycle.base.web_addresses import normalised
from jupiterd.cycle.domain.data_sources import DataSource, FeedSource, WebSource


def hosts_of(source: DataSource) -> frozenset[str]:
    """Return the hosts whose pages a source names; none where it isn't read page by page.

    Links of a feed's entries may lead to others, which nobody knows beforehand.
    """
    if isinstance(source, WebSource):
        named = (*source.urls, *source.sitemaps, *source.within)
    elif isinstance(source, FeedSource):
        named = source.urls
    else:
        return frozenset()
    return frozenset(urlsplit(normalised(url)).netloc for url in named)


def in_turns(sources: Mapping[str, DataSource]) -> list[Sequence[str]]:
    """Return the names of sources in groups, in their order: those of a group share hosts.

    Two that have no host in common are in one group where a third has hosts of both.
    """
    groups: list[tuple[frozenset[str], list[str]]] = []
    for name, source in sources.items():
        hosts = hosts_of(source)
        met = [group for group in groups if not hosts.isdisjoint(group[0])]
        names = [each for group in met for each in group[1]]
        together = (hosts.union(*(group[0] for group in met)), [*names, name])
        groups = [group for group in groups if group not in met] + [together]
    place = {name: number for number, name in enumerate(sources)}
    found = (sorted(names, key=place.__getitem__) for _, names in groups)
    return sorted(found, key=lambda names: place[names[0]])
