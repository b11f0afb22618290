"""Collecting feeds: RSS, Atom as arXiv writes it, and the pages that entries link to."""

from dataclasses import replace

import pytest

from jupiterd.cycle.domain.data_sources import FeedSource
from jupiterd.errors import SourceUnreachableError
from jupiterd.workers.data.collectors.feed import Feeds
from tests.support.workers.collecting import PARAMS, collect, samples_in, skipped, texts_in
from tests.support.workers.local_site import page, serving

pytestmark = pytest.mark.net

ARXIV = """<?xml version="1.0" encoding="UTF-8"?>
<feed xmlns="http://www.w3.org/2005/Atom"><title>query</title>
 <entry><id>http://arxiv.org/abs/2401.00001v1</id><updated>2024-01-01T00:00:00Z</updated>
  <title>On bonds</title><summary>  We study bonds &amp; their angles.
  </summary><author><name>A. Author</name></author>
  <link href="http://arxiv.org/abs/2401.00001v1" rel="alternate" type="text/html"/>
  <link title="pdf" href="http://arxiv.org/pdf/2401.00001v1" rel="related"/>
  <link rel="license" href="http://creativecommons.org/licenses/by/4.0/"/></entry>
 <entry><id>http://arxiv.org/abs/2401.00002v1</id><updated>2024-01-02T00:00:00Z</updated>
  <title>On rings</title><summary>Rings are closed.</summary>
  <link href="http://arxiv.org/abs/2401.00002v1" rel="alternate"/></entry>
</feed>"""


def rss(*items):
    inner = "".join(
        f"<item><title>{title}</title><link>{link}</link>"
        f"<description>&lt;p&gt;About &lt;b&gt;{title}&lt;/b&gt;.&lt;/p&gt;</description></item>"
        for title, link in items
    )
    return f'<rss version="2.0"><channel><title>News</title>{inner}</channel></rss>'


@pytest.fixture
def site():
    with serving() as started:
        yield started


def feed(site, **changes):
    fields = {
        "urls": (f"{site.url}/feed",), "delay_s": 0.0, "allow_private_addresses": True,
        "license": "MIT", **changes,
    }  # fmt: skip
    return Feeds(FeedSource(kind="feed", **fields))


def test_entries_of_arxiv_are_documents_of_their_own(site, tmp_path):
    site.put("/feed", ARXIV, content_type="application/atom+xml")
    collect(feed(site), tmp_path)
    bonds, rings = samples_in(tmp_path)
    assert bonds.text == "On bonds\n\nWe study bonds & their angles."
    assert (bonds.license, rings.license) == ("CC-BY-4.0", "MIT")
    assert bonds.cluster_id == bonds.source_uri == "http://arxiv.org/abs/2401.00001v1"
    assert bonds.revision == "2024-01-01T00:00:00Z"
    assert (bonds.robots_ok, bonds.collector) == (True, "feed@2")


def test_markup_in_a_description_becomes_text(site, tmp_path):
    site.put("/feed", rss(("Cats", "http://a.example/cats")))
    collect(feed(site), tmp_path)
    assert texts_in(tmp_path) == {"http://a.example/cats": "Cats\n\nAbout Cats."}


def test_what_earlier_rounds_brought_is_kept_and_an_unchanged_feed_costs_one_request(
    site, tmp_path
):
    site.put("/feed", rss(("One", "http://a.example/1"), ("Two", "http://a.example/2")))
    collect(feed(site), tmp_path / "one")
    site.forget()
    collect(feed(site), tmp_path / "two", before=tmp_path / "one")
    assert site.statuses == {304: 1, 404: 1}
    assert samples_in(tmp_path / "two") == samples_in(tmp_path / "one")
    site.put("/feed", rss(("Three", "http://a.example/3"), ("Two", "http://a.example/2")))
    collect(feed(site), tmp_path / "three", before=tmp_path / "two")
    assert list(texts_in(tmp_path / "three")) == [f"http://a.example/{n}" for n in (1, 2, 3)]
    site.put("/feed", "out of order", status=500)
    with pytest.raises(SourceUnreachableError, match="can't be reached"):
        collect(feed(site), tmp_path / "four", before=tmp_path / "three")


def test_of_two_feeds_one_may_be_silent(site, tmp_path):
    site.put("/feed", rss(("One", "http://a.example/1")))
    site.put("/other", rss(("Two", "http://a.example/2")))
    both = feed(site, urls=(f"{site.url}/feed", f"{site.url}/other"))
    collect(both, tmp_path / "one")
    site.put("/feed", "out of order", status=500)
    collect(both, tmp_path / "two", before=tmp_path / "one")
    assert samples_in(tmp_path / "two") == samples_in(tmp_path / "one")
    assert skipped(tmp_path / "two") == {f"{site.url}/feed": "unreachable"}


def test_the_pages_that_entries_link_to_may_be_followed(site, tmp_path):
    site.put("/feed", rss(("One", f"{site.url}/1"), ("Two", f"{site.url}/2")))
    site.put("/1", page("Page one", "/elsewhere"))
    site.put("/2", page("Page two"))
    collect(feed(site, follow=True), tmp_path / "one")
    texts = texts_in(tmp_path / "one")
    assert list(texts) == [f"{site.url}/1", f"{site.url}/2"]
    assert texts[f"{site.url}/1"].startswith("# Page one")
    site.forget()
    site.put("/feed", rss(("Three", f"{site.url}/3")))
    site.put("/3", page("Page three"))
    collect(feed(site, follow=True), tmp_path / "two", before=tmp_path / "one")
    assert len(texts_in(tmp_path / "two")) == 3
    assert "/1" not in site.asked
    assert "/elsewhere" not in site.asked


def test_a_purged_entry_goes_and_so_does_what_was_kept_of_it(site, tmp_path):
    site.put("/feed", rss(("Cats", "http://a.example/cats"), ("Dogs", "http://b.example/dogs")))
    collect(feed(site), tmp_path / "one")
    site.put("/feed", rss(("Birds", "http://a.example/birds"), ("Fish", "http://b.example/fish")))
    params = replace(PARAMS, purged=("http://a.example",))
    collect(feed(site), tmp_path / "two", params, before=tmp_path / "one")
    assert list(texts_in(tmp_path / "two")) == ["http://b.example/dogs", "http://b.example/fish"]


def test_entries_are_bounded_and_nonsense_is_left_out(site, tmp_path):
    entities = '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;">]>'
    items = [(f"Title {n}", f"http://a.example/{n}") for n in range(5)]
    site.put("/feed", entities + rss(*items, ("&b;", "")))
    counts = collect(feed(site, max_entries=3), tmp_path)
    assert len(texts_in(tmp_path)) == 3
    assert counts["skipped.too_many"] == 3
