"""A bounded crawl: pages are fetched, read and followed until none is left within the bounds.

Owns the frontier, a queue that survives this process (`work_queue`), and what came of each address:
both lie on disk, so that the number of links is no trouble.
What is fetched again is asked for on condition that it has changed. Redirects are addresses of
their own: bounds, robots.txt and private addresses are looked at for each. Doesn't know domains.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self, cast

import msgpack
from blake3 import blake3

from jupiterd.workers.data.collect.work_queue import LeasedItem, WorkQueue
from jupiterd.workers.data.collectors.collector import Visit
from jupiterd.workers.data.crawl.fetcher import (
    NO_ANSWER,
    Fetcher,
    FetchResponse,
    Manners,
    form_of,
    gunzipped,
    normalised,
)
from jupiterd.workers.data.crawl.robots import Robots
from jupiterd.workers.data.extract.extraction import Extracted
from jupiterd.workers.data.skips import SkipReason, UnreadableError

MAX_TRIES = 3
"""A page over which this worker was ended so often is given up."""

_TRIES_IN_TROUBLE = 2
"""So often a page is asked for that can't be had just now, the last time after all others."""

MAX_REDIRECTS = 5

KNOWN_PER_PAGE = 50
"""So many addresses for each page that may be fetched are remembered; more links are no use."""

_BATCH = 16

_QUEUE_FILE = "crawl.db"

_PAGE, _SITEMAP = "page", "sitemap"


@dataclass(frozen=True)
class CrawlLimits:
    """How far a crawl goes."""

    includes: Callable[[str], bool]
    max_pages: int
    max_depth: int
    max_bytes: int


@dataclass(frozen=True)
class CrawlAddress:
    """An address to be fetched."""

    kind: str
    url: str
    depth: int = 0
    hops: int = 0
    """Redirects that led here, one after the other."""

    @property
    def key(self) -> str:
        """Return what the queue knows it by."""
        return f"{self.kind} {self.url}"

    def packed(self) -> tuple[str, bytes]:
        """Return it as an item of the queue."""
        return self.key, cast("bytes", msgpack.packb([self.depth, self.hops]))

    @classmethod
    def of(cls, item: LeasedItem) -> Self:
        """Return the place of an item."""
        kind, _, url = item.key.partition(" ")
        depth, hops = cast("list[int]", msgpack.unpackb(item.payload))
        return cls(kind, url, depth, hops)


@dataclass(frozen=True)
class FetchOutcome:
    """What came of an address; absent fields are empty."""

    text: str = ""
    reason: str = ""
    """Why there is no text."""
    trouble: str = ""
    """Why it couldn't be asked for again; what was found before is kept."""
    is_unchanged: bool = False
    """The server said so, or isn't there to say otherwise."""
    redirect: str = ""
    source_hash: str = ""
    extractor: str = ""
    license: str = ""
    etag: str = ""
    last_modified: str = ""
    fetched_at: str = ""
    links: Sequence[str] = ()
    sitemaps: Sequence[str] = ()
    was_counted: bool = False
    """As one of the pages that may be fetched."""
    read_bytes: int = 0
    """Over the network, until this was known."""

    @property
    def is_unheard(self) -> bool:
        """Say whether nobody answered."""
        return not self.source_hash and bool(NO_ANSWER & {self.reason, self.trouble})

    def packed(self) -> bytes:
        """Return it as a result of the queue."""
        return cast("bytes", msgpack.packb({k: v for k, v in vars(self).items() if v}))

    @classmethod
    def of(cls, value: bytes) -> Self:
        """Return the outcome that a result holds."""
        return cls(**cast("dict[str, Any]", msgpack.unpackb(value)))

    def state(self, key: str) -> Mapping[str, Any]:
        """Return what the next round needs to ask whether it has changed."""
        return {
            "key": key, "etag": self.etag, "last_modified": self.last_modified,
            "links": list(self.links), "sitemaps": list(self.sitemaps), "reason": self.reason,
        }  # fmt: skip


@dataclass(frozen=True)
class _Known:
    """What the round before knew of an address."""

    etag: str = ""
    last_modified: str = ""
    links: Sequence[str] = ()
    sitemaps: Sequence[str] = ()
    reason: str = ""


@dataclass
class Crawler:
    """One crawl; its outcomes can be read once it has run."""

    queue: WorkQueue
    reach: CrawlLimits
    visit: Visit
    fetcher: Fetcher
    robots: Robots
    pages: int = 0
    """Begun so far, those before this process included."""
    done: int = 0
    """Addresses of which it is known what came of them."""
    _postponed: set[str] = field(default_factory=set[str])
    """Keys of what is asked for once more, after all others."""

    def run(self) -> None:
        """Fetch until nothing is left within the bounds."""
        for _, outcome in self.outcomes():
            self.done += 1
            self.pages += outcome.was_counted
            self.fetcher.read_bytes += outcome.read_bytes
        for _ in range(_TRIES_IN_TROUBLE):
            self.fetcher.ask_silent_hosts()
            self.queue.release()  # held by who has been killed, or by what was postponed
            self._go_on()

    def _go_on(self) -> None:
        while items := self.queue.lease(_BATCH, is_begun=False):
            # Hosts whose turn has come are asked first, so that none waits for another's pause.
            places = sorted(
                map(CrawlAddress.of, items), key=lambda place: self.fetcher.wait_s(place.url)
            )
            for place in places:
                self._do(place)
                self.visit.progress(self.done, max(self.done + 1, self.queue.size()), "pages")

    def _do(self, place: CrawlAddress) -> None:
        pages, read_bytes = self.pages, self.fetcher.read_bytes
        outcome = self._outcome(place, self.queue.take(place.key).tries)
        if outcome is None:
            self._postponed.add(place.key)  # and it stays leased
            return
        outcome = replace(
            outcome,
            was_counted=self.pages > pages or place.key in self._postponed,
            read_bytes=self.fetcher.read_bytes - read_bytes,
        )
        self.queue.finish([(place.key, outcome.packed())], self._further(place, outcome))
        self.done += 1

    def outcomes(self) -> Iterator[tuple[str, FetchOutcome]]:
        """Yield what came of each key, in their order."""
        for key, value in self.queue.results():
            yield key, FetchOutcome.of(value)

    def _outcome(self, place: CrawlAddress, tries: int) -> FetchOutcome | None:
        """Return what came of it; None where it is to be asked for once more."""
        known = _known(self.visit.previous.state_of(place.key))
        try:
            self._check(place, tries)
            return self._fetched(place, known)
        except UnreadableError as error:
            if error.reason in NO_ANSWER:
                if tries < _TRIES_IN_TROUBLE:
                    return None
                if self.visit.previous.sample(place.url) is not None:
                    return self._unchanged(known, str(error.reason))
            return FetchOutcome(reason=str(error.reason))

    def _check(self, place: CrawlAddress, tries: int) -> None:
        if self.visit.purged.has(place.url):
            raise UnreadableError(SkipReason.PURGED)
        if tries > MAX_TRIES:
            raise UnreadableError(SkipReason.GAVE_UP)
        # A sitemap only lists: it may lie elsewhere than the pages that are wanted.
        is_within = place.kind == _SITEMAP or self.reach.includes(place.url)
        if place.hops > MAX_REDIRECTS or not is_within:
            raise UnreadableError(SkipReason.OUT_OF_BOUNDS)
        if self.fetcher.read_bytes >= self.reach.max_bytes:
            raise UnreadableError(SkipReason.OVER_BUDGET)
        if place.kind == _PAGE and place.key not in self._postponed:
            if self.pages >= self.reach.max_pages:
                raise UnreadableError(SkipReason.TOO_MANY)
            self.pages += 1

    def _fetched(self, place: CrawlAddress, known: _Known) -> FetchOutcome:
        delay_s = self.robots.check(place.url)
        answer = self.fetcher.get(place.url, known.etag, known.last_modified, delay_s)
        if answer.is_unchanged:
            return self._unchanged(known)
        if answer.is_redirect:
            target = normalised(answer.location)
            if not target:
                raise UnreadableError(SkipReason.OUT_OF_BOUNDS)
            return FetchOutcome(redirect=target)
        if answer.status != 200:
            gone = 400 <= answer.status < 500 and answer.status not in {408, 429}
            raise UnreadableError(SkipReason.REFUSED if gone else SkipReason.UNREACHABLE)
        return self._read_sitemap(answer) if place.kind == _SITEMAP else self._read_page(answer)

    def _unchanged(self, known: _Known, trouble: str = "") -> FetchOutcome:
        return FetchOutcome(
            is_unchanged=True,
            trouble=trouble,
            reason=known.reason,
            etag=known.etag,
            last_modified=known.last_modified,
            links=known.links,
            sitemaps=known.sitemaps,
        )

    def _read_sitemap(self, answer: FetchResponse) -> FetchOutcome:
        data = answer.body
        if data.startswith(b"\x1f\x8b"):
            data = gunzipped(data, 50 << 20)  # the protocol allows 50 MB
        sitemap = self.visit.extraction.read("sitemap", data, answer.url).metadata
        return FetchOutcome(
            etag=answer.etag,
            last_modified=answer.last_modified,
            links=sitemap["pages"],
            sitemaps=sitemap["sitemaps"],
        )

    def _read_page(self, answer: FetchResponse) -> FetchOutcome:
        source_hash = blake3(answer.body).hexdigest()
        try:
            found = self.visit.extraction.read(
                form_of(answer), answer.body, answer.url, answer.charset
            )
        except UnreadableError as error:
            found = Extracted("", "", {}, error.reason)
        return FetchOutcome(
            text=found.text,
            reason=str(found.reason or ""),
            source_hash=source_hash,
            extractor=found.extractor,
            license=found.metadata.get("license", ""),
            etag=answer.etag,
            last_modified=answer.last_modified,
            fetched_at=self.visit.now(),
            links=found.metadata.get("links", ()),
        )

    def _further(self, place: CrawlAddress, outcome: FetchOutcome) -> Iterable[tuple[str, bytes]]:
        """Return the items that follow from what came of one."""
        if outcome.redirect:
            further = CrawlAddress(place.kind, outcome.redirect, place.depth, place.hops + 1)
            return [further.packed()]
        if self.queue.size() > self.reach.max_pages * KNOWN_PER_PAGE + _BATCH:
            return []
        sitemaps = [CrawlAddress(_SITEMAP, url) for url in _all_normalised(outcome.sitemaps)]
        depth = place.depth + (place.kind == _PAGE)
        if depth > self.reach.max_depth:
            return [found.packed() for found in sitemaps]
        pages = [
            CrawlAddress(_PAGE, url, depth)
            for url in _all_normalised(outcome.links)
            if self.reach.includes(url)
        ]
        return [found.packed() for found in (*sitemaps, *pages)]


def crawled(
    visit: Visit,
    reach: CrawlLimits,
    manners: Manners,
    pages: Iterable[str],
    sitemaps: Iterable[str] = (),
) -> Iterator[tuple[str, FetchOutcome]]:
    """Crawl from there, going on where a killed worker was; yield what came of each address.

    They come in the order of their keys, `page URL` and `sitemap URL`.
    """
    with WorkQueue(visit.scratch / _QUEUE_FILE) as queue, Fetcher(manners, visit.pause) as fetcher:
        queue.put(CrawlAddress(_SITEMAP, url).packed() for url in _all_normalised(sitemaps))
        queue.put(CrawlAddress(_PAGE, url).packed() for url in _all_normalised(pages))
        crawl = Crawler(queue, reach, visit, fetcher, Robots(fetcher))
        crawl.run()
        yield from crawl.outcomes()


def to_ask_again(scratch: Path) -> Iterator[Mapping[str, Any]]:
    """Yield what the next round needs to ask what was crawled there whether it has changed."""
    with WorkQueue(scratch / _QUEUE_FILE) as queue:
        for key, value in queue.results():
            outcome = FetchOutcome.of(value)
            if outcome.etag or outcome.last_modified:
                yield outcome.state(key)


def _known(line: Mapping[str, Any] | None) -> _Known:
    if line is None:
        return _Known()
    return _Known(**{name: line[name] for name in vars(_Known())})


def _all_normalised(urls: Iterable[str]) -> Iterator[str]:
    return filter(None, map(normalised, urls))
