"""The parts of a source: each address in one of them, and its bounds in sum."""

import random
from collections.abc import Sequence
from urllib.parse import urlsplit

import pytest
from pydantic import TypeAdapter

from jupiterd.cycle.domain.data_sources import DataSource, WebSource
from jupiterd.cycle.domain.source_parts import (
    HUB_PARTS,
    MAX_PARTS,
    parts_of,
    parts_with,
    share_of_files,
)

MIB = 1 << 20
ANY_SOURCE = TypeAdapter[DataSource](DataSource)
"""Made once: it takes longer than all that it checks here."""


def source(kind: str, **told: object) -> DataSource:
    return ANY_SOURCE.validate_python({"kind": kind, **told})


def site(*urls: str, **told: object) -> WebSource:
    found = source("web", urls=list(urls), **told)
    assert isinstance(found, WebSource)
    return found


def parts(whole: WebSource) -> list[WebSource]:
    """Return the parts, each of which a domain file could have named."""
    found = parts_of(whole)
    for part in found:
        assert ANY_SOURCE.validate_python(part.model_dump()) == part
    return [part for part in found if isinstance(part, WebSource)]


def hosts(urls: Sequence[str]) -> set[str]:
    return {urlsplit(url).hostname or "" for url in urls}


def test_each_site_is_a_part_with_an_even_share_of_the_bounds() -> None:
    whole = site(
        "https://a.example/", "https://b.example/x", "https://c.example/", name="docs",
        sitemaps=["https://b.example/sitemap.xml"], max_pages=1000, max_bytes=100 * MIB,
    )  # fmt: skip
    a, b, c = parts(whole)
    assert [part.urls for part in (a, b, c)] == [(url,) for url in whole.urls]
    assert [part.sitemaps for part in (a, b, c)] == [(), whole.sitemaps, ()]
    assert [part.max_pages for part in (a, b, c)] == [333, 333, 334]
    assert a.max_bytes + b.max_bytes + c.max_bytes == 100 * MIB
    assert {part.name for part in (a, b, c)} == {"docs"}


def test_pages_that_are_named_are_all_read_where_the_whole_would_read_them() -> None:
    urls = [f"https://a.example/{n}" for n in range(90)] + ["https://b.example/"]
    many, one = parts(site(*urls, max_depth=0, max_pages=100))
    assert (len(many.urls), len(one.urls)) == (90, 1)
    assert many.max_pages >= 90
    assert many.max_pages + one.max_pages == 100


def test_hosts_below_another_are_one_site_for_they_lead_to_each_other() -> None:
    whole = site(
        "https://www.a.example/", "https://b.example/", "https://a.example:8080/",
        "https://docs.www.a.example/", "https://nota.example/",
    )  # fmt: skip
    assert [hosts(part.urls) for part in parts(whole)] == [
        {"www.a.example", "a.example", "docs.www.a.example"}, {"b.example"}, {"nota.example"},
    ]  # fmt: skip


def test_ports_of_one_host_are_one_site() -> None:
    assert len(parts_of(site("http://127.0.0.1:81/", "http://127.0.0.1:82/"))) == 1
    assert len(parts_of(site("http://127.0.0.2:81/", "http://127.0.0.3:81/"))) == 2


@pytest.mark.parametrize(
    "whole",
    [
        site("https://a.example/", "https://a.example/docs"),
        site("https://a.example/", sitemaps=["https://maps.example/all.xml"]),
        site("https://a.example/", within=["https://a.example/", "https://b.example/"]),
        site("https://a.example/", "https://b.example/", within=["https://b.example/"]),
        site("https://a.example/", "https://b.example/", max_pages=31),
        site("https://a.example/", "https://b.example/", max_depth=0),
        site("https://a.example/", "https://b.example/", max_bytes=2 * MIB - 1),
        site("https://a.example/", "https://b.example:99999/"),
        site(*(f"https://{n}.example/{m}" for n in range(2) for m in range(20)), max_pages=39),
    ],
    ids=[
        "one host", "a sitemap may list other hosts", "links alone lead to a host",
        "a host without bounds of its own", "few pages", "few pages are named", "few bytes",
        "no address", "more addresses than pages",
    ],
)  # fmt: skip
def test_what_cannot_be_cut_politely_or_is_not_worth_it_stays_whole(whole: WebSource) -> None:
    assert parts_of(whole) == (whole,)


def test_what_lies_on_one_machine_or_has_one_address_stays_whole() -> None:
    for whole in (
        source("folder", path="/texts"),
        source("git", url="https://a.example/one.git", license="MIT"),
        source("feed", urls=["https://a.example/feed", "https://b.example/feed"]),
        source("python_stdlib"),
    ):
        assert parts_of(whole) == (whole,)
        assert parts_with(whole, "https://b.example/entry") == [0]


@pytest.mark.full
def test_whatever_is_named_each_address_is_in_one_part_and_the_bounds_add_up(seed: int) -> None:
    chance = random.Random(seed)
    wide = [
        site(*(f"https://{n}.example/" for n in range(count))) for count in (1, 2, MAX_PARTS + 1)
    ]
    assert [len(parts(whole)) for whole in wide] == [1, 2, MAX_PARTS]
    for whole in (*wide, *(drawn(chance) for _ in range(300))):
        cut = parts(whole)
        for named in ("urls", "sitemaps", "within"):
            told = [url for part in cut for url in getattr(part, named)]
            assert sorted(told) == sorted(getattr(whole, named))
        asked = [hosts([*part.urls, *part.sitemaps, *part.within]) for part in cut]
        assert sum(map(len, asked)) == len(set().union(*asked))  # no host is in two
        for number, part in enumerate(cut):
            of_each_host = {urlsplit(url).hostname: url for url in part.urls}
            assert all(parts_with(whole, url) == [number] for url in of_each_host.values())
            assert bool(part.within) == bool(whole.within)
        assert sum(part.max_pages for part in cut) == whole.max_pages
        assert sum(part.max_bytes for part in cut) == whole.max_bytes
        assert parts_of(whole) == tuple(cut)


def drawn(chance: random.Random) -> WebSource:
    names = [
        f"{chance.choice(('', 'www.', 'm.'))}{n}.example" for n in range(chance.randint(1, 12))
    ]
    urls = [f"https://{chance.choice(names)}/{n}" for n in range(chance.randint(1, 40))]
    begun = sorted(hosts(urls))
    below = chance.random() < 0.5
    return site(
        *urls,
        sitemaps=[f"https://{host}/map.xml" for host in begun if chance.random() < 0.3],
        within=[f"https://{host}/" for host in begun] if below else [],
        max_pages=chance.choice((1, 20, 100, 1000)),
        max_bytes=chance.choice((4096, 5 * MIB, 1 << 30)),
        max_depth=chance.randint(0, 3),
    )


def test_a_data_set_is_read_in_parts_where_enough_of_it_is_wanted() -> None:
    rows = {"max_documents": 200_000}
    assert len(parts_of(source("hugging_face", path="a/b", **rows))) == HUB_PARTS
    assert len(parts_of(source("hugging_face", path="a/b", max_documents=29_000))) == 2
    assert len(parts_of(source("hugging_face", path="a/b", max_documents=19_999))) == 1
    assert len(parts_of(source("hugging_face", path="a/b", max_bytes=1 << 20, **rows))) == 1
    whole = source("hugging_face", path="a/b", **rows)
    assert parts_with(whole, "huggingface:a/b#/train/7") == list(range(HUB_PARTS))


@pytest.mark.parametrize("files", range(1, 20))
def test_the_parts_of_a_data_set_share_its_bounds_as_they_share_its_files(files: int) -> None:
    shares = [share_of_files(200_000, files, part, HUB_PARTS) for part in range(HUB_PARTS)]
    assert sum(shares) == 200_000
    for part, share in enumerate(shares):
        own = len(range(part, files, HUB_PARTS))
        assert share == pytest.approx(200_000 * own / files, abs=1)
        assert bool(share) == bool(own)


def test_a_data_set_without_files_has_nothing_to_share() -> None:
    assert share_of_files(200_000, 0, 0, HUB_PARTS) == 0
