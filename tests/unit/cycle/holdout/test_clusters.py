"""Which documents belong together, level by level."""

import pytest

from jupiterd.cycle.holdout.clusters import (
    DOCUMENT,
    cluster_at,
    cluster_path,
    depths_of,
    effective_clusters,
    path_of_file,
)


@pytest.mark.parametrize(
    ("uri", "cluster", "path"),
    [
        ("folder:texts/guide/a/b.md", "guide", ("guide", "a", "b.md")),
        ("folder:texts/alone.md", "alone", ("alone",)),
        ("folder:texts/C#.md", "C#", ("C#",)),
        ("folder:texts/alone.csv#7", "alone", ("alone", "7")),
        ("folder:texts/guide/rows.csv#7", "guide", ("guide", "rows.csv#7")),
        ("python-stdlib:3.11/json/decoder.py", "json", ("json", "decoder.py")),
        (
            "git+https://git.example.org/a.git#docs/x.md",
            "https://git.example.org/a.git",
            ("https://git.example.org/a.git", "docs", "x.md"),
        ),
        (
            "git+https://git.example.org/a.git#docs/x.md",
            "https://git.example.org/a.git/docs",
            ("https://git.example.org/a.git/docs", "x.md"),
        ),
        ("https://example.org/guide/a", "example.org", ("example.org", "guide", "a")),
        ("https://example.org/guide/a", "example.org/guide", ("example.org/guide", "a")),
        ("jsonl:rows.jsonl#7", "a book", ("a book",)),
        ("https://example.org/a#7", "https://example.org/a", ("https://example.org/a",)),
    ],
)
def test_a_document_lies_in_ever_smaller_clusters(uri, cluster, path):
    assert cluster_path(uri, cluster) == path
    assert cluster_at(path, 0) == cluster


def test_a_files_name_tells_its_clusters():
    assert path_of_file("guide/a/b.md") == ("guide", "a", "b.md")
    assert path_of_file("alone.md") == ("alone",)


def test_each_level_has_the_clusters_of_one_more_folder():
    paths = [path_of_file(f"{top}/{below}/{n}.md") for top in "ab" for below in "xyz" for n in "12"]
    clusters = {depth: {cluster_at(path, depth) for path in paths} for depth in depths_of(paths)}
    found = [(depth, len(names)) for depth, names in clusters.items()]
    assert found == [(0, 2), (1, 6), (DOCUMENT, 12)]


def test_unequal_clusters_tell_less_than_equal_ones():
    assert effective_clusters([10, 10, 10, 10], 20) == pytest.approx(4)
    assert effective_clusters([37, 1, 1, 1], 100) < 1.2


def test_what_is_never_scored_of_a_large_cluster_does_not_count():
    assert effective_clusters([1000, 20, 20], 20) == pytest.approx(3)
