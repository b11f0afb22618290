"""The parts in which a source is read, side by side on as many machines as may collect.

Owns the cut. It follows from what the domain file says of the source alone, never from how many
machines there are, so the same documents come whoever reads, and whoever dies over it. Doesn't know
who reads a part, or what comes of it.

A site is never cut: all pages of a host are in one part, so that the pause between two requests
holds. Hosts of which one lies below another, such as www.example.org below example.org, are one
site, for they lead to each other. Of a data set of the hub each part has every n-th file: which
files there are only who reads it knows. Files of one machine, repositories and feeds aren't cut.
"""

from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from jupiterd.cycle.base.web_addresses import normalised

if TYPE_CHECKING:
    from jupiterd.cycle.domain.data_sources import DataSource, WebSource

MAX_PARTS: Final = 8
"""A part is a process where it is read, and one machine may read them all."""

LEAST_PAGES: Final = 16
"""Fewer pages aren't worth a process of their own."""

LEAST_BYTES: Final = 1 << 20
"""Of a part."""

HUB_PARTS: Final = 4
"""A data set may have one file: then the other parts start a library and find nothing."""

LEAST_ROWS: Final = 10_000
"""Fewer rows of a data set aren't worth a process of their own."""


def parts_of(source: "DataSource") -> "tuple[DataSource, ...]":
    """Return the parts in their order, each a source of the same name; itself where it isn't cut.

    Each address that a source of sites names is in one part, and the bounds of all parts are its
    own in sum. Parts of a data set look alike: see `share_of_files`.
    """
    if source.kind == "web":
        return _parts_of_sites(source)
    if source.kind == "hugging_face":
        count = min(HUB_PARTS, source.max_documents // LEAST_ROWS, source.max_bytes // LEAST_BYTES)
        return (source,) * max(1, count)
    return (source,)


def parts_with(source: "DataSource", uri: str) -> list[int]:
    """Return the numbers of the parts that may have read what lies at an address."""
    parts = list(enumerate(parts_of(source)))
    host = _host(uri)
    own = [n for n, part in parts if part.kind == "web" and host in _hosts(part)]
    return own or [n for n, _ in parts]


def share_of_files(whole: int, files: int, part: int, parts: int) -> int:
    """Return the share of a bound that a part of a data set has: as large as its share of files.

    Args:
        whole: the bound of the source.
        files: of the data set.
        part: the part's number, which has each file whose number leaves that rest by `parts`.
        parts: of the source.
    """
    owned = [len(range(n, files, parts)) for n in range(parts)]
    return _shares(whole, owned)[part] if files else 0


def _parts_of_sites(source: "WebSource") -> "tuple[DataSource, ...]":
    sites = _sites(_hosts(source))
    count = min(
        len(sites), MAX_PARTS, _most_pages(source) // LEAST_PAGES, source.max_bytes // LEAST_BYTES
    )
    if count < 2 or not _each_begins_by_itself(source, sites):
        return (source,)
    owner = {host: n % count for n, site in enumerate(sites) for host in site}
    weights = [len(sites[n::count]) for n in range(count)]
    urls = [_of_part(n, source.urls, owner) for n in range(count)]
    more = _shares(source.max_pages - len(source.urls), weights)
    pages = [len(own) + extra for own, extra in zip(urls, more, strict=True)]
    more_bytes = _shares(source.max_bytes - count * LEAST_BYTES, pages)
    return tuple(
        source.model_copy(
            update={
                "urls": urls[n],
                "sitemaps": _of_part(n, source.sitemaps, owner),
                "within": _of_part(n, source.within, owner),
                "max_pages": pages[n],
                "max_bytes": LEAST_BYTES + more_bytes[n],
            }
        )
        for n in range(count)
    )


def _most_pages(source: "WebSource") -> int:
    """Return how many pages can come of it at most."""
    named_alone = source.max_depth == 0 and not source.sitemaps
    return min(source.max_pages, len(source.urls)) if named_alone else source.max_pages


def _hosts(source: "WebSource") -> list[str]:
    """Return the hosts that it names, in their order."""
    named = (*source.urls, *source.sitemaps, *source.within)
    return list(dict.fromkeys(map(_host, named)))


def _host(url: str) -> str:
    """Return a host without its port; empty where that is no address of the web."""
    return urlsplit(normalised(url)).hostname or ""


def _sites(hosts: Sequence[str]) -> list[list[str]]:
    """Return the hosts in groups, in their order: one that lies below another is with it."""
    known = set(hosts)
    sites: dict[str, list[str]] = {}
    for host in hosts:
        labels = host.split(".")
        above = (".".join(labels[n:]) for n in reversed(range(len(labels))))
        sites.setdefault(next(name for name in above if name in known), []).append(host)
    return list(sites.values())


def _each_begins_by_itself(source: "WebSource", sites: Sequence[Sequence[str]]) -> bool:
    """Say whether each site has what it takes to be crawled alone: where to begin, and its bounds.

    A sitemap of one host may list the pages of another, and bounds may name hosts to which links of
    others lead.
    """
    lists = [source.urls, source.within] if source.within else [source.urls]
    starts = [set(map(_host, urls)) for urls in lists]
    is_whole = all(not named.isdisjoint(site) for named in starts for site in sites)
    return is_whole and len(source.urls) <= source.max_pages and "" not in _hosts(source)


def _of_part(number: int, urls: Sequence[str], owner: Mapping[str, int]) -> tuple[str, ...]:
    return tuple(url for url in urls if owner[_host(url)] == number)


def _shares(whole: int, weights: Sequence[int]) -> list[int]:
    """Return a whole in shares of these weights; their sum is the whole."""
    ends = accumulate((0, *weights))
    return [b - a for a, b in pairwise(whole * end // sum(weights) for end in ends)]
