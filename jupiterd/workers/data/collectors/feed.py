"""Entries of RSS and Atom feeds; each is a document, and a cluster, of its own.

Owns what becomes of an entry. A feed shows its newest entries alone, so what earlier rounds brought
is kept; a feed that hasn't changed costs one conditional request.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from blake3 import blake3

from jupiterd.cycle.domain.data_sources import FeedSource
from jupiterd.errors import SourceUnreachableError
from jupiterd.workers.data.collectors.collector import (
    UNREACHABLE_HINT,
    CollectedDocument,
    Found,
    Unchanged,
    Visit,
)
from jupiterd.workers.data.collectors.web import found_in, manners_of
from jupiterd.workers.data.crawl.crawler import CrawlLimits, crawled, to_ask_again
from jupiterd.workers.data.crawl.fetcher import NO_ANSWER, Fetcher, FetchResponse, normalised
from jupiterd.workers.data.crawl.robots import MAX_REDIRECTS, Robots
from jupiterd.workers.data.extract.extraction import extractor_of
from jupiterd.workers.data.skips import SkipReason, UnreadableError


class Feeds:
    """One feed, or several."""

    collector = "feed@2"

    def __init__(self, source: FeedSource) -> None:
        self._source = source
        self.name = f"the feed {source.urls[0]}"
        self._state: list[Mapping[str, Any]] = []
        self._scratch: Path | None = None

    def documents(self, visit: Visit) -> Iterator[Found]:
        """Yield every entry with a text, those of earlier rounds included.

        Raises:
            SourceUnreachableError: none of the feeds answers.
        """
        entries = self._entries(visit)
        found = self._followed(entries, visit) if self._source.follow else self._own(entries, visit)
        seen: set[str] = set()
        for one in found:
            if one.uri not in seen:
                seen.add(one.uri)
                yield one
        yield from (Unchanged(uri) for uri in visit.previous.uris() if uri not in seen)

    def state(self) -> Iterator[Mapping[str, Any]]:
        """Yield for each feed, and each page fetched, how to ask whether it has changed."""
        yield from self._state
        if self._scratch is not None:
            yield from to_ask_again(self._scratch)

    def _entries(self, visit: Visit) -> list[Mapping[str, str]]:
        entries: list[Mapping[str, str]] = []
        is_heard = False
        with Fetcher(manners_of(self._source), visit.pause) as fetcher:
            robots = Robots(fetcher)
            for url in map(normalised, self._source.urls):
                key = f"feed {url}"
                before = visit.previous.state_of(key) or _BLANK
                try:
                    answer = _fetched(url, before, fetcher, robots)
                    if not answer.is_unchanged:
                        entries += visit.extraction.read("feed", answer.body, url).metadata[
                            "entries"
                        ]
                    self._remember(key, before if answer.is_unchanged else vars(answer))
                    is_heard = True
                except UnreadableError as error:
                    is_heard |= error.reason not in NO_ANSWER
                    visit.skips.add(url, error.reason)
                    self._remember(key, before)
        if not is_heard:
            raise SourceUnreachableError(f"{self.name} can't be reached", UNREACHABLE_HINT)
        for entry in entries[self._source.max_entries :]:
            visit.skips.add(_address(entry), SkipReason.TOO_MANY)
        return entries[: self._source.max_entries]

    def _remember(self, key: str, validators: Mapping[str, Any]) -> None:
        state = {name: validators.get(name, blank) for name, blank in _BLANK.items()}
        self._state.append({**state, "key": key})

    def _own(self, entries: list[Mapping[str, str]], visit: Visit) -> Iterator[Found]:
        extractor = extractor_of("feed")
        for entry in sorted(entries, key=_address):
            uri, text = _address(entry), entry["text"]
            source_hash = blake3(text.encode()).hexdigest()
            if not uri or not text:
                visit.skips.add(uri, SkipReason.EMPTY)
            elif visit.previous.has(uri, source_hash, extractor):
                yield Unchanged(uri)
            else:
                yield CollectedDocument(
                    uri=uri,
                    cluster_id=uri,
                    text=text,
                    source_hash=source_hash,
                    license=entry["license"] or self._source.license,
                    extractor=extractor,
                    revision=entry["updated"],
                    robots_ok=True,
                    fetched_at=visit.now(),
                )

    def _followed(self, entries: list[Mapping[str, str]], visit: Visit) -> Iterator[Found]:
        source, self._scratch = self._source, visit.scratch
        links = sorted({entry["link"] for entry in entries if entry["link"]})
        reach = CrawlLimits(lambda _url: True, source.max_entries, 0, source.max_bytes)
        for key, outcome in crawled(visit, reach, manners_of(source), links):
            found = found_in(key.partition(" ")[2], outcome, visit, source.license)
            if found is not None:
                yield found


_BLANK: Mapping[str, Any] = {
    "etag": "",
    "last_modified": "",
    "links": (),
    "sitemaps": (),
    "reason": "",
}
"""The form of a crawl's lines, which lie beside those of the feeds."""


def _address(entry: Mapping[str, str]) -> str:
    """Return the link, or an id that is none: such as urn:uuid:..., or a text."""
    return normalised(entry["link"]) or entry["id"]


def _fetched(
    url: str, before: Mapping[str, Any], fetcher: Fetcher, robots: Robots
) -> FetchResponse:
    for _ in range(MAX_REDIRECTS):
        delay_s = robots.check(url)
        answer = fetcher.get(url, before["etag"], before["last_modified"], delay_s)
        if not answer.is_redirect:
            break
        url = normalised(answer.location)
        if not url:
            raise UnreadableError(SkipReason.OUT_OF_BOUNDS)
    else:
        raise UnreadableError(SkipReason.OUT_OF_BOUNDS)
    if answer.status not in {200, 304}:
        is_refused = 400 <= answer.status < 500 and answer.status != 429
        raise UnreadableError(SkipReason.REFUSED if is_refused else SkipReason.UNREACHABLE)
    return answer
