"""A crawl that was ended or killed goes on where it was, and has every page once."""

import random
from collections import Counter

import pytest

from jupiterd.errors import WorkStoppedError
from jupiterd.protocol.frames import Progressed
from jupiterd.workers.data.collect import collect_source as collecting
from jupiterd.workers.data.collect.collect_source import Places
from jupiterd.workers.data.collectors.web import CrawledSite
from tests.support.workers.collecting import (
    PARAMS,
    killed_again_and_again,
    samples_in,
    texts_in,
)
from tests.support.workers.local_site import LONG, page
from tests.unit.workers.data.collectors.test_web import gather, source


def test_a_crawl_that_was_ended_goes_on_where_it_was(site, tmp_path):
    site.put("/", page("Home", *(f"/{number}" for number in range(20))))
    for number in range(20):
        site.put(f"/{number}", page(f"Page {number}"))
    places = Places(tmp_path, tmp_path / "scratch")
    places.scratch.mkdir()

    def stop(_seconds):
        if len(site.asked) > 10:
            raise WorkStoppedError("stopped")

    web = CrawledSite(source(site, delay_s=0.5))
    with pytest.raises(WorkStoppedError):
        collecting.collect(web, places, PARAMS, pause=stop)
    first = set(site.asked)
    site.forget()
    collecting.collect(CrawledSite(source(site)), places, PARAMS)
    assert len(samples_in(tmp_path)) == 21
    assert first & set(site.asked) == {"/robots.txt"}


@pytest.mark.full
@pytest.mark.parametrize("bound", [{"max_pages": 27}, {"max_bytes": 27 << 10}])
def test_a_crawl_that_was_ended_has_the_bounds_of_one_that_was_not(site, tmp_path, bound):
    """Addresses that were out of bounds count as no page, and what was read stays read."""
    site.put("/", page("Home", *(f"/out/{number}" for number in range(5)), "/list"))
    site.put("/list", page("List", *(f"/{number}" for number in range(30))))
    for number in range(30):
        site.put(f"/{number}", page(f"Page {number}", body=LONG * 10))
        site.put(f"/out/{number}", status=302, Location=f"http://elsewhere.invalid/{number}")
    gather(site, tmp_path / "whole", **bound)
    assert 20 < len(samples_in(tmp_path / "whole")) < 30
    places = Places(tmp_path / "ended", tmp_path / "ended" / "scratch")
    places.scratch.mkdir(parents=True)
    site.forget()

    def stop(_seconds):
        if len(site.asked) > 25:  # and what is out of bounds is known
            raise WorkStoppedError("stopped")

    with pytest.raises(WorkStoppedError):
        collecting.collect(
            CrawledSite(source(site, delay_s=0.5, **bound)), places, PARAMS, pause=stop
        )
    collecting.collect(CrawledSite(source(site, **bound)), places, PARAMS)
    assert len(samples_in(tmp_path / "ended")) == len(samples_in(tmp_path / "whole"))


@pytest.mark.full
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.long)])
def test_a_crawl_that_is_killed_at_random_has_every_page_once(site, tmp_path, seed):
    chance = random.Random(seed)
    site.put("/", page("Home", *(f"/{number}" for number in range(60))))
    for number in range(60):
        site.put(f"/{number}", page(f"Page {number}", f"/{(number * 7) % 60}"))
    gather(site, tmp_path / "undisturbed")
    site.forget()
    params = {
        "source": source(site).model_copy(update={"name": "mine"}).model_dump(mode="json"),
        "language": "en",
        "fetched_at": "2026-01-02T03:04:05Z",
    }
    kills = 5
    moments = [chance.randint(1, 3) for _ in range(kills)]  # after so many words of progress
    last = killed_again_and_again(
        params,
        tmp_path,
        lambda number, frames: (
            number < kills and sum(isinstance(f, Progressed) for f in frames) >= moments[number]
        ),
    )
    assert texts_in(last) == texts_in(tmp_path / "undisturbed")
    twice = Counter(site.asked)
    del twice["/robots.txt"]
    # At most the one page that each killed worker had in hand was asked for again.
    assert sum(twice.values()) <= 61 + kills, f"seed {seed}"
