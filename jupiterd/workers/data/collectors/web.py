"""Pages of the web, found by sitemaps and links; a cluster is a host, or a folder of one.

Owns the bounds of a site and what becomes of an outcome of its crawl.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from jupiterd.cycle.domain.data_sources import FeedSource, WebSource
from jupiterd.errors import SourceUnreachableError
from jupiterd.workers.data.collectors.collector import (
    UNREACHABLE_HINT,
    CollectedDocument,
    Found,
    Unchanged,
    Visit,
)
from jupiterd.workers.data.crawl.crawler import CrawlLimits, FetchOutcome, crawled, to_ask_again
from jupiterd.workers.data.crawl.fetcher import Manners, normalised
from jupiterd.workers.data.skips import SkipReason


class CrawledSite:
    """A site, or several."""

    collector = "web@2"

    def __init__(self, source: WebSource) -> None:
        self._source = source
        self.name = f"the site {source.urls[0]}"
        self._scratch: Path | None = None

    def documents(self, visit: Visit) -> Iterator[Found]:
        """Yield every page that has text, in the order of their addresses.

        Raises:
            SourceUnreachableError: nobody answers at any of them.
        """
        source, self._scratch = self._source, visit.scratch
        reach = CrawlLimits(_within(source), source.max_pages, source.max_depth, source.max_bytes)
        outcomes = crawled(visit, reach, manners_of(source), source.urls, source.sitemaps)
        requests, answers = 0, 0
        for key, outcome in outcomes:
            url = key.partition(" ")[2]
            requests, answers = requests + 1, answers + (not outcome.is_unheard)
            found = found_in(url, outcome, visit, source.license)
            if isinstance(found, CollectedDocument):
                yield _clustered(found, source.cluster_depth)
            elif found is not None:
                yield found
        if requests and not answers:
            raise SourceUnreachableError(f"{self.name} can't be reached", UNREACHABLE_HINT)

    def state(self) -> Iterator[Mapping[str, Any]]:
        """Yield for each address how to ask whether it has changed, and its links."""
        return iter(()) if self._scratch is None else to_ask_again(self._scratch)


def manners_of(source: WebSource | FeedSource) -> Manners:
    """Return how a source wants to be fetched."""
    return Manners(
        source.delay_s,
        source.timeout_s,
        source.max_document_bytes,
        source.allow_private_addresses,
    )


def found_in(url: str, outcome: FetchOutcome, visit: Visit, license_id: str) -> Found | None:
    """Return the document of an outcome; record why there is none."""
    if visit.purged.leaves_out(url, visit.skips):
        return None
    for reason in filter(None, (outcome.reason, outcome.trouble)):
        visit.skips.add(url, SkipReason(reason))
    if outcome.is_unchanged or visit.previous.has(url, outcome.source_hash, outcome.extractor):
        return Unchanged(url)
    if not outcome.text:
        return None
    return CollectedDocument(
        uri=url,
        cluster_id=url,
        text=outcome.text,
        source_hash=outcome.source_hash,
        license=outcome.license or license_id,
        extractor=outcome.extractor,
        revision=outcome.etag or outcome.last_modified,
        robots_ok=True,
        fetched_at=outcome.fetched_at,
    )


def _clustered(found: CollectedDocument, depth: int) -> CollectedDocument:
    parts = urlsplit(found.uri)
    folders = [part for part in parts.path.split("/") if part][:depth]
    return replace(found, cluster_id="/".join([parts.netloc, *folders]))


def _within(source: WebSource) -> Callable[[str], bool]:
    prefixes = tuple(map(normalised, source.within))
    if prefixes:
        return lambda url: url.startswith(prefixes)
    hosts = {urlsplit(normalised(url)).netloc for url in (*source.urls, *source.sitemaps)}
    return lambda url: urlsplit(url).netloc in hosts
