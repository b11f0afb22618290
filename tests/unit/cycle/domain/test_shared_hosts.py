"""Sources that ask the same hosts are read one after the other."""

from pydantic import TypeAdapter

from jupiterd.cycle.domain.data_sources import DataSource
from jupiterd.cycle.domain.shared_hosts import hosts_of, in_turns


def source(kind: str, **told: object) -> DataSource:
    return TypeAdapter[DataSource](DataSource).validate_python({"kind": kind, **told})


def site(*urls: str, **told: object) -> DataSource:
    return source("web", urls=list(urls), **told)


def test_a_source_names_the_hosts_of_all_its_addresses() -> None:
    found = site("https://A.example/x", sitemaps=["http://b.example:8080/s.xml"])
    assert hosts_of(found) == {"a.example", "b.example:8080"}
    assert hosts_of(site("https://a.example/", within=["https://c.example/docs/"])) == {
        "a.example", "c.example",
    }  # fmt: skip
    assert hosts_of(source("feed", urls=["https://a.example/feed"])) == {"a.example"}
    assert hosts_of(source("folder", path="/a.example")) == frozenset()


def test_sources_of_one_host_take_turns_and_the_others_do_not_wait() -> None:
    sources = {
        "docs": site("https://a.example/docs/"),
        "folder": source("folder", path="/texts"),
        "other": site("https://b.example/"),
        "blog": source("feed", urls=["https://a.example/feed"]),
        "rows": source("folder", path="/rows"),
    }
    assert in_turns(sources) == [["docs", "blog"], ["folder"], ["other"], ["rows"]]


def test_a_source_of_two_hosts_lets_those_of_both_wait_for_it() -> None:
    both = site("https://a.example/", "https://b.example/")
    sources = {"a": site("https://a.example/"), "b": site("https://b.example/"), "both": both}
    assert in_turns(sources) == [["a", "b", "both"]]
