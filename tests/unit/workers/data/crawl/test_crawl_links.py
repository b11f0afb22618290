"""How much memory a crawl takes that knows, and has found, a great many links."""

import tracemalloc
from dataclasses import replace

from jupiterd.cycle.domain.data_sources import WebSource
from jupiterd.workers.data.collect.previous_round import STATE_FILE, write_state
from jupiterd.workers.data.collect.work_queue import WorkQueue
from jupiterd.workers.data.collectors.web import CrawledSite
from jupiterd.workers.data.crawl.crawler import CrawlAddress, FetchOutcome
from jupiterd.workers.samples.sample_file import read_lines
from tests.support.workers.collecting import collect
from tests.support.workers.data_material import real, write


def test_links_lie_on_disk_however_many_there_are(tmp_path):
    """A hundred thousand are known from the round before, and as many were found just now."""
    root = "http://site.example"
    pages = [CrawlAddress("page", f"{root}/{number}") for number in range(200)]
    links = [
        [f"{root}/a-page-far-away/{place.url[-3:]}/{n}" for n in range(500)] for place in pages
    ]
    found = [
        FetchOutcome(text=f"Page {place.url}", etag='"1"', links=known, source_hash="1")
        for place, known in zip(pages, links, strict=True)
    ]
    (tmp_path / "out" / "scratch").mkdir(parents=True)
    with WorkQueue(tmp_path / "out" / "scratch" / "crawl.db") as queue:
        queue.put(place.packed() for place in pages)
        queue.finish((place.key, each.packed()) for place, each in zip(pages, found, strict=True))
    write(tmp_path / "before" / "train", [replace(real("a"), collector=CrawledSite.collector)])
    write(tmp_path / "before" / "holdout", [])
    states = (each.state(place.key) for place, each in zip(pages, found, strict=True))
    write_state(tmp_path / "before" / "state", states)
    del links, found
    web = CrawledSite(WebSource(kind="web", urls=(pages[0].url,), license="MIT"))
    tracemalloc.start()
    try:
        collect(web, tmp_path / "out", before=tmp_path / "before")
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(list(read_lines(tmp_path / "out" / "state" / STATE_FILE))) == 200
    assert peak_bytes < 8 << 20, peak_bytes
