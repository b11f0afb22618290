import random
from dataclasses import replace

import pytest

from jupiterd.cycle.data.lineage import Sample, text_hash
from jupiterd.cycle.data.purge import Purge, is_of

SEED = 77


def sample(text, *parents, source="code", uri="test:x", depth=0):
    return Sample(
        id=text_hash(text), text=text, kind="synthetic" if parents else "real",
        depth=depth or len(parents[:1]), parents=tuple(each.id for each in parents),
        cluster_id="c", source_uri=uri, revision="", license="MIT", collector="c@1",
        fetched_at="", source=source,
    )  # fmt: skip


DOC = sample("doc", source="docs")
CODE = sample("code")
CHILD = sample("child", DOC)
GRANDCHILD = sample("grandchild", CHILD, depth=2)
MIXED = sample("mixed", CODE, GRANDCHILD, depth=2)
PLAIN = sample("plain", CODE)
ALL = [DOC, CODE, CHILD, GRANDCHILD, MIXED, PLAIN]


def left(samples, *sources):
    purge = Purge(sources)
    purge.learn(samples)
    return [each.text for each in purge.left(samples)]


def test_a_source_goes_with_its_descendants_to_any_depth_in_whatever_order_they_come():
    choice = random.Random(SEED)
    for _ in range(100):
        shuffled = choice.sample(ALL, len(ALL))
        assert sorted(left(shuffled, "docs")) == ["code", "plain"], SEED


def test_without_a_purge_everything_stays():
    assert left(ALL) == [each.text for each in ALL]
    assert left(ALL, "another") == [each.text for each in ALL]


def test_a_long_line_of_descendants_goes_too():
    line = [DOC]
    for number in range(200):
        line.append(sample(f"{number}", line[-1], depth=1))
    assert left(line[::-1], "docs") == []


def test_a_real_text_that_another_source_has_too_stays():
    copy = replace(DOC, source="code")
    purge = Purge(["docs"])
    purge.learn([DOC, copy])
    assert list(purge.left([DOC, copy])) == [copy]


def test_it_is_said_for_which_source_a_sample_is_taken():
    purge = Purge(["docs", "more"])
    purge.learn(ALL)
    assert [purge.hit(each) for each in ALL] == ["docs", "", "docs", "docs", "docs", ""]


@pytest.mark.parametrize(
    ("uri", "source", "hit"),
    [
        ("https://a.org/x", "https://a.org", True),
        ("https://a.org/x", "https://a.org/", True),
        ("https://a.org/x", "https://a.org/x", True),
        ("https://a.org.evil/x", "https://a.org", False),
        ("https://a.org/xy", "https://a.org/x", False),
        ("folder:texts/a.txt", "folder:texts", True),
        ("folder:texts/a.txt", "folder:", True),
        ("folder:texts/a.txt", "folder", False),
        ("texts/a.txt", "texts", False),
        ("git+https://github.com/a/b.git#src/x.py", "https://github.com/a/b.git", True),
        ("git+https://github.com/a/b.git#src/x.py", "git+https://github.com/a/b.git", True),
        ("git+https://github.com/a/b.git#src/x.py", "https://github.com/a/", True),
        ("git+https://github.com/a/b.git#src/x.py", "git+https://github.com/a/b.git#src", True),
        ("git+https://github.com/a/b.git#src/x.py", "git+https://github.com/a/b.git#s", False),
        ("git+https://github.com/a/b.github#x.py", "https://github.com/a/b.git", False),
        ("git+https://GitHub.com:443/a/b.git#x.py", "https://github.com/a/b.git", True),
        ("huggingface:w/p#/train/1", "huggingface:w/p", True),
        ("huggingface:w/pq#/train/1", "huggingface:w/p", False),
        ("jsonl:t.jsonl#3", "jsonl:t.jsonl", True),
        ("jsonl:t.jsonl#31", "jsonl:t.jsonl#3", False),
        ("parquet:all/f.parquet#3", "parquet:all/f.parquet", True),
        ("https://example.org/docs?page=2", "https://example.org/docs", True),
        ("https://example.org/docs", "https://Example.org", True),
        ("https://example.org/docs", "HTTPS://example.org:443/docs", True),
        ("https://example.org:8443/docs", "https://example.org/docs", False),
        ("http://example.org/docs", "https://example.org/docs", False),
        ("https://example.org/docs", "https://example.org/docs#intro", True),
        ("https://example.org/docs/more", "https://example.org/docs#intro", False),
        ("https://example.org/book#7", "https://example.org/book", True),
        ("", "https://example.org", False),
    ],
)
def test_an_address_stands_for_everything_below_it(uri, source, hit):
    assert is_of(sample("a", uri=uri), source) is hit
