"""Collecting a web site: a real server, robots.txt, redirects, conditional requests, bad input."""

import contextlib
import gzip
import socket
import threading
from dataclasses import replace

import pytest

from jupiterd.cycle.domain.data_sources import WebSource
from jupiterd.errors import EmptySourceError, SourceUnreachableError
from jupiterd.workers.data.collect import collect_source as collecting
from jupiterd.workers.data.collect.collect_source import Places
from jupiterd.workers.data.collectors.web import CrawledSite
from jupiterd.workers.data.crawl import allowed_addresses
from jupiterd.workers.data.crawl.fetcher import Fetcher, Manners
from jupiterd.workers.data.skips import UnreadableError
from tests.support.workers.collecting import (
    PARAMS,
    collect,
    samples_in,
    skipped,
    texts_in,
)
from tests.support.workers.local_site import page, serving

pytestmark = pytest.mark.net


def source(site, *paths, **changes):
    fields = {"delay_s": 0.0, "timeout_s": 10.0, "allow_private_addresses": True, **changes}
    urls = tuple(site.url + path for path in (paths or ("/",)))
    return WebSource(kind="web", urls=urls, **fields)


def gather(site, output, *paths, before=None, **changes):
    """Collect the site; return the counts."""
    return collect(CrawledSite(source(site, *paths, **changes)), output, before=before)


def paths_in(site, output):
    return [uri.removeprefix(site.url) for uri in texts_in(output)]


def small_site(site):
    site.put("/", page("Home", "/a", "/b?x=1#part", "/missing", "mailto:me@example.org"))
    site.put("/a", page("Page a", "/", "/deep"))
    site.put("/b?x=1", page("Page b"))
    site.put("/deep", page("Deep", "/deeper"))
    site.put("/deeper", page("Deeper"))


def test_links_are_followed_within_the_depth_and_the_host(site, tmp_path):
    small_site(site)
    site.put("/b?x=1", page("Page b", "http://elsewhere.invalid/"))
    gather(site, tmp_path, max_depth=2)
    assert paths_in(site, tmp_path) == ["/", "/a", "/b?x=1", "/deep"]
    assert skipped(tmp_path) == {f"{site.url}/missing": "refused"}


def test_a_sample_carries_where_it_comes_from(site, tmp_path):
    license_link = '<link rel="license" href="https://creativecommons.org/licenses/by-sa/4.0/">'
    site.put("/", page("Home", "/guide/install"))
    site.put("/guide/install", page("Install", head=license_link))
    gather(site, tmp_path, license="MIT", cluster_depth=1)
    home, install = samples_in(tmp_path)
    host = site.url.removeprefix("http://")
    assert (home.license, install.license) == ("MIT", "CC-BY-SA-4.0")
    assert (home.cluster_id, install.cluster_id) == (host, f"{host}/guide")
    assert install.source_uri == f"{site.url}/guide/install"
    assert install.robots_ok is True
    assert install.extractor.startswith("trafilatura@")
    assert install.revision.startswith('"')
    assert len(install.source_hash) == 64
    assert install.fetched_at > "2026-01-03"  # when it was fetched, not the cycle's start
    assert install.text.startswith("# Install")
    assert (install.source, install.collector) == ("mine", "web@2")


def test_robots_txt_is_obeyed_and_the_page_that_asks_for_it_too(site, tmp_path):
    site.put("/robots.txt", "User-agent: *\nDisallow: /private/\n", content_type="text/plain")
    site.put("/", page("Home", "/private/a", "/noindex", "/open"))
    site.put("/private/a", page("Private"))
    noindex = '<meta name="ROBOTS" content="noindex, nofollow">'
    site.put("/noindex", page("Not for you", "/behind", head=noindex))
    site.put("/open", page("Open"))
    gather(site, tmp_path)
    assert paths_in(site, tmp_path) == ["/", "/open"]
    assert skipped(tmp_path) == {
        f"{site.url}/private/a": "robots",
        f"{site.url}/noindex": "robots",
    }
    assert "/private/a" not in site.asked
    assert "/behind" not in site.asked
    assert site.agents == {"JupiterCollector/1"}


def test_a_purged_address_is_never_asked_again_nor_what_leads_there_taken(site, tmp_path):
    small_site(site)
    site.put("/old", status=301, Location="/a")
    site.put("/", page("Home", "/a", "/b?x=1", "/old", "/deep"))
    gather(site, tmp_path / "before")
    site.asked.clear()
    params = replace(PARAMS, purged=(f"{site.url}/a", "mine-too", f"{site.url}/deep"))
    counts = collect(
        CrawledSite(source(site)), tmp_path / "out", params, before=tmp_path / "before"
    )
    assert paths_in(site, tmp_path / "out") == ["/", "/b?x=1"]
    assert {"/a", "/deep"}.isdisjoint(site.asked)
    assert skipped(tmp_path / "out")[f"{site.url}/a"] == "purged"
    purged = {name: n for name, n in counts.items() if name.startswith("left_out:")}
    assert purged == {f"left_out:{site.url}/a": 1, f"left_out:{site.url}/deep": 1}


def test_a_site_that_is_purged_as_a_whole_is_no_trouble_and_not_asked(site, tmp_path):
    small_site(site)
    params = replace(PARAMS, purged=(site.url,))
    counts = collect(CrawledSite(source(site)), tmp_path, params)
    assert (counts["documents"], counts[f"left_out:{site.url}"]) == (0, 1)
    assert site.asked == []


def test_rules_that_cannot_be_had_forbid_everything(site, tmp_path):
    site.put("/robots.txt", "out of order", status=503)
    site.put("/", page("Home"))
    with pytest.raises(SourceUnreachableError):
        gather(site, tmp_path)
    assert site.asked == ["/robots.txt"]


def test_two_requests_to_one_host_are_as_far_apart_as_it_asks(site, tmp_path):
    site.put("/robots.txt", "User-agent: *\nCrawl-delay: 7\n", content_type="text/plain")
    site.put("/", page("Home", "/a"))
    site.put("/a", page("Page a"))
    pauses = []
    places = Places(tmp_path, tmp_path / "scratch")
    places.scratch.mkdir()
    collecting.collect(CrawledSite(source(site)), places, PARAMS, pause=pauses.append)
    assert len(pauses) == 1  # the clock doesn't go on while we don't wait
    assert 1.0 < pauses[0] <= 7.0


def test_a_sitemap_names_pages_and_further_sitemaps(site, tmp_path):
    place = f"<loc> {site.url}/map.xml.gz </loc>"
    site.put("/index.xml", f"<sitemapindex><sitemap>{place}</sitemap></sitemapindex>")
    urls = "".join(f"<url><loc>{site.url}/{name}</loc></url>" for name in "abc")
    xml = f'<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/x">{urls}</urlset>'
    site.put("/map.xml.gz", gzip.compress(xml.encode()), content_type="application/gzip")
    for name in "abc":
        site.put(f"/{name}", page(f"Page {name}", "/linked"))
    gather(site, tmp_path, "/a", sitemaps=(f"{site.url}/index.xml",), max_depth=0)
    assert paths_in(site, tmp_path) == ["/a", "/b", "/c"]


def test_a_redirect_is_a_page_of_its_own_and_a_circle_ends(site, tmp_path):
    site.put("/", page("Home", "/old", "/round"))
    site.put("/old", status=301, Location="/new")
    site.put("/new", page("New"))
    site.put("/round", status=302, Location="/round2")
    site.put("/round2", status=302, Location="/round")
    site.put("/robots.txt", status=302, Location="/robots2.txt")
    gather(site, tmp_path)
    assert paths_in(site, tmp_path) == ["/", "/new"]


def test_a_redirect_out_of_the_bounds_or_to_another_protocol_is_not_followed(site, tmp_path):
    site.put("/", page("Home", "/out", "/file"))
    site.put("/out", status=302, Location="http://elsewhere.invalid/x")
    site.put("/file", status=302, Location="file:///etc/passwd")
    gather(site, tmp_path)
    assert skipped(tmp_path) == {
        "http://elsewhere.invalid/x": "out_of_bounds",
        f"{site.url}/file": "out_of_bounds",
    }


def test_a_private_address_is_refused_unless_allowed(site, tmp_path):
    site.put("/", page("Home"))
    with pytest.raises(EmptySourceError, match="private address 1"):
        gather(site, tmp_path, allow_private_addresses=False)
    assert site.asked == []


@pytest.fixture
def public_name(site, monkeypatch):
    """Let a name lead to a public address that is answered here, as DNS for an attacker would."""
    real = allowed_addresses.socket.getaddrinfo
    port = int(site.url.rpartition(":")[2])
    answers = {"public.example": "127.0.0.1"}

    def resolve(host, *arguments, **named):
        return real(answers.get(host, host), *arguments, **named)

    monkeypatch.setattr(allowed_addresses.socket, "getaddrinfo", resolve)
    public = allowed_addresses.is_public
    monkeypatch.setattr(
        allowed_addresses,
        "is_public",
        lambda address: str(address) == "127.0.0.1" or public(address),
    )
    return f"http://public.example:{port}"


def test_a_redirect_to_a_private_address_is_refused(site, public_name, tmp_path):
    site.put("/", page("Home", "/metadata"))
    site.put("/metadata", status=302, Location="http://169.254.169.254/latest/")
    web = WebSource(
        kind="web",
        urls=(f"{public_name}/",),
        within=(public_name, "http://169.254.169.254/"),
        delay_s=0.0,
    )
    collect(CrawledSite(web), tmp_path)
    assert skipped(tmp_path) == {"http://169.254.169.254/latest/": "private_address"}
    assert site.hosts == {public_name.removeprefix("http://")}  # the name, though pinned


def test_an_unchanged_site_costs_conditional_requests_alone(site, tmp_path):
    small_site(site)
    gather(site, tmp_path / "one")
    site.forget()
    counts = gather(site, tmp_path / "two", before=tmp_path / "one")
    assert site.statuses == {304: 5, 404: 2}  # robots.txt and the missing page are the two
    assert samples_in(tmp_path / "two") == samples_in(tmp_path / "one")
    assert counts["documents"] == 5
    third = gather(site, tmp_path / "three", before=tmp_path / "two")
    assert third == counts
    assert samples_in(tmp_path / "three") == samples_in(tmp_path / "one")


def test_what_changed_is_fetched_what_is_gone_is_dropped_what_is_new_is_found(site, tmp_path):
    small_site(site)
    gather(site, tmp_path / "one")
    site.put("/a", page("Page a, changed", "/new"))
    site.put("/new", page("New"))
    site.put("/b?x=1", "gone", status=410)
    gather(site, tmp_path / "two", before=tmp_path / "one")
    texts = texts_in(tmp_path / "two")
    assert paths_in(site, tmp_path / "two") == ["/", "/a", "/new"]
    assert texts[f"{site.url}/a"].startswith("# Page a, changed")


def test_a_site_that_vanishes_half_way_keeps_what_was_had_before(site, tmp_path):
    small_site(site)
    gather(site, tmp_path / "one")
    site.put("/a", "out of order", status=500)
    gather(site, tmp_path / "two", before=tmp_path / "one")
    assert samples_in(tmp_path / "two") == samples_in(tmp_path / "one")
    assert skipped(tmp_path / "two")[f"{site.url}/a"] == "unreachable"
    gather(site, tmp_path / "fresh", before=None)
    assert paths_in(site, tmp_path / "fresh") == ["/", "/b?x=1"]


def test_a_site_that_answers_no_more_half_way_is_not_asked_for_every_page(
    site, tmp_path, monkeypatch
):
    """The pages it gave are used; each of the others would have to be waited for."""
    monkeypatch.setattr("jupiterd.workers.data.crawl.fetcher.MAX_UNANSWERED", 3)
    paths = [f"/{number:02}" for number in range(30)]
    site.put("/", page("Home", *paths))
    for path in paths[:5]:
        site.put(path, page(f"Page {path}"))
    for path in paths[5:]:  # it breaks off before anything of the page has come
        site.put(path, stream=lambda _file: None, Content_Length="1000")
    counts = gather(site, tmp_path)
    assert len(paths_in(site, tmp_path)) == 6
    assert len(site.asked) == 2 + 5 + 3 + 3  # and three more at the end, for it may be back
    host = site.url.removeprefix("http://")
    assert counts["skipped.not_asked"] == counts[f"silent:{host}"] == 25 - 3
    assert counts["skipped.unreachable"] == 3


def test_a_site_that_has_gone_since_the_round_before_is_one_that_cannot_be_reached(tmp_path):
    with serving() as site:
        small_site(site)
        gather(site, tmp_path / "one")
    with pytest.raises(SourceUnreachableError, match=f"the site {site.url}/ can't be reached"):
        gather(site, tmp_path / "two", before=tmp_path / "one")


def in_trouble_once(site, path, status, **headers):
    """Let the page be had only when it is asked for a second time."""
    whole = site.replies[path]
    site.put(path, "later", status=status, **headers)
    site.afterwards[path] = whole


@pytest.mark.parametrize("status", [429, 503, 408])
def test_a_page_that_cannot_be_had_just_now_is_asked_for_once_more_at_the_end(
    site, tmp_path, status
):
    small_site(site)
    in_trouble_once(site, "/a", status)
    gather(site, tmp_path, max_pages=6)
    assert paths_in(site, tmp_path) == ["/", "/a", "/b?x=1", "/deep", "/deeper"]
    assert site.asked.count("/a") == 2
    assert site.asked.index("/missing") < len(site.asked) - 1 - site.asked[::-1].index("/a")


def test_a_page_that_never_answers_is_asked_for_twice_and_counts_as_one(site, tmp_path):
    site.put("/", page("Home", "/bad", "/a", "/b"))
    for name in "ab":
        site.put(f"/{name}", page(f"Page {name}"))
    site.put("/bad", "out of order", status=500)
    gather(site, tmp_path, max_pages=4)
    assert paths_in(site, tmp_path) == ["/", "/a", "/b"]
    assert skipped(tmp_path) == {f"{site.url}/bad": "unreachable"}
    assert site.asked.count("/bad") == 2


def test_a_site_that_is_not_there_is_tried_again_later(tmp_path):
    with serving() as site:
        web = source(site)
    with pytest.raises(SourceUnreachableError):
        collect(CrawledSite(web), tmp_path)
    assert not (tmp_path / "scratch" / "crawl.db").exists()


def endless(piece):
    def stream(file):
        for _ in range(1 << 20):
            file.write(piece)

    return stream


def test_a_page_of_two_gibibytes_is_cut_off(site, tmp_path):
    site.put("/", page("Home", "/huge", "/told"))
    site.put("/huge", stream=endless(b"<p>" + b"x" * 2045))
    site.put("/told", b"x", Content_Length=str(2 << 30))
    gather(site, tmp_path, max_document_bytes=1 << 20)
    assert paths_in(site, tmp_path) == ["/"]
    assert skipped(tmp_path)[f"{site.url}/huge"] == "too_large"


def test_a_packed_bomb_is_unpacked_no_further_than_the_bound(site, tmp_path):
    bomb = gzip.compress(bytes(200 << 20))
    site.put("/", page("Home", "/bomb", "/odd"))
    site.put("/bomb", bomb, Content_Encoding="gzip")
    site.put("/odd", b"?", Content_Encoding="zstd")
    gather(site, tmp_path)
    assert paths_in(site, tmp_path) == ["/"]
    assert skipped(tmp_path) == {
        f"{site.url}/bomb": "too_large",
        f"{site.url}/odd": "unknown_form",
    }


def test_a_page_packed_with_gzip_is_read(site, tmp_path):
    site.put("/", gzip.compress(page("Packed").encode()), Content_Encoding="gzip")
    gather(site, tmp_path)
    assert texts_in(tmp_path)[f"{site.url}/"].startswith("# Packed")


def test_a_page_that_drips_is_left_after_its_time(site, tmp_path):
    done = threading.Event()

    def drip(file):
        file.write(b"<html>")
        while not done.wait(0.02):
            file.write(b"<p>x")
            file.flush()

    site.put("/", page("Home", "/slow"))
    site.put("/slow", stream=drip)
    gather(site, tmp_path, timeout_s=0.3)
    done.set()
    assert skipped(tmp_path) == {f"{site.url}/slow": "timed_out"}


def test_headers_that_drip_are_left_after_their_time_too(tmp_path):
    done = threading.Event()

    def drip(server):
        connection, _ = server.accept()
        with connection, contextlib.suppress(OSError):
            connection.sendall(b"HTTP/1.1 200 OK\r\n")
            while not done.wait(0.02):
                connection.sendall(b"X-Slow: 1\r\n")

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=drip, args=(server,))
        thread.start()
        manners = Manners(0.0, 0.3, 1 << 20, allow_private=True)
        with Fetcher(manners, lambda _: None) as fetcher, pytest.raises(UnreadableError) as caught:
            fetcher.get(f"http://127.0.0.1:{server.getsockname()[1]}/")
        done.set()
        thread.join()
    assert caught.value.reason == "timed_out"


def test_pages_and_bytes_are_bounded(site, tmp_path):
    site.put("/", page("Home", *(f"/{number}" for number in range(20))))
    for number in range(20):
        site.put(f"/{number}", page(f"Page {number}"))
    counts = gather(site, tmp_path / "pages", max_pages=5)
    assert len(samples_in(tmp_path / "pages")) == 5
    assert counts["skipped.too_many"] == 16
    counts = gather(site, tmp_path / "bytes", max_bytes=4096)
    assert counts["skipped.over_budget"] > 10


def test_pictures_and_text_that_is_none_are_left_out(site, tmp_path):
    site.put("/", page("Home", "/picture", "/noise", "/notes"))
    site.put("/picture", b"\x89PNG", content_type="image/png")
    site.put("/noise", b"\x89PNG\0\0\0\rIHDR", content_type="text/plain")
    site.put("/notes", "Plain notes", content_type="text/plain; charset=utf-8")
    gather(site, tmp_path)
    assert skipped(tmp_path) == {
        f"{site.url}/picture": "unknown_form",
        f"{site.url}/noise": "not_text",
    }
    assert texts_in(tmp_path)[f"{site.url}/notes"] == "Plain notes"
