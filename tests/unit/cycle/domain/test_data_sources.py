"""What a domain file may say of its sources."""

import pytest

from jupiterd.cycle.domain.data_sources import FolderSource, WebSource, named
from jupiterd.cycle.domain.domain import domain_mistakes, parse_domain

HEAD = """\
version: 1
domain: notes
title: Somebody's notes
language: en
holdout: {salt: notes-1}
"""

EVERY_KIND = """\
data_sources:
  - {kind: python_stdlib}
  - {kind: folder, path: /srv/notes, license: MIT}
  - {kind: git, url: "https://example.org/one/two.git", license: MIT, revision: v1.2}
  - {kind: web, urls: ["https://example.org/docs/"]}
  - {kind: feed, urls: ["https://example.net/feed.xml"], license: CC-BY-4.0}
  - {kind: hugging_face, path: wikimedia/wikipedia, subset: 20231101.es, license: CC-BY-SA-4.0}
  - {kind: jsonl, path: /srv/rows.jsonl.zst, license_field: license}
  - {kind: parquet, path: ~/rows.parquet, license: MIT}
"""


def sources(text, policy=""):
    return parse_domain(HEAD + policy + text, "notes.yaml").data_sources


def mistakes(text, policy=""):
    return domain_mistakes(HEAD + policy + text, "notes.yaml")


def test_every_kind_has_a_name_of_its_own():
    assert [source.name for source in sources(EVERY_KIND)] == [
        "python_stdlib",
        "notes",
        "two",
        "example.org",
        "example.net",
        "wikipedia",
        "rows",
        "rows-2",
    ]


def test_every_kind_reads_back_as_a_worker_parameter():
    domain = parse_domain(HEAD + EVERY_KIND, "notes.yaml")
    assert type(domain).model_validate(domain.model_dump(mode="json")) == domain


def test_two_sources_may_not_be_given_one_name():
    one = "  - {kind: folder, path: /srv/a, license: MIT, name: mine}\n"
    (mistake,) = mistakes("data_sources:\n" + one + one)
    assert "expected a different name for each source, got mine twice" in mistake


def test_a_derived_name_leaves_the_given_ones_alone():
    text = """data_sources:
  - {kind: folder, path: /srv/notes, license: MIT}
  - {kind: folder, path: /srv/other, license: MIT, name: notes}
"""
    assert [source.name for source in sources(text)] == ["notes-2", "notes"]


@pytest.mark.parametrize(
    ("source", "policy", "is_permitted"),
    [
        ("{kind: folder, path: /a, license: unknown}", "", False),
        ("{kind: folder, path: /a, license: unknown}", "{unknown: warn}", True),
        ("{kind: git, url: 'https://a.b/c', license: unknown}", "", False),
        ("{kind: jsonl, path: /a}", "", False),
        ("{kind: jsonl, path: /a, license_field: license}", "", True),
        ("{kind: web, urls: ['https://a.b']}", "", True),
        ("{kind: web, urls: ['https://a.b']}", "{allow: [MIT]}", True),
        ("{kind: web, urls: ['https://a.b']}", "{unknown_web: deny}", False),
        ("{kind: web, urls: ['https://a.b'], license: GPL-3.0}", "{allow: [MIT]}", False),
        ("{kind: feed, urls: ['https://a.b']}", "{unknown_web: deny}", False),
    ],
)
def test_unknown_licences_are_refused_for_files_and_warned_of_for_the_web(
    source, policy, is_permitted
):
    policy = f"license_policy: {policy}\n" if policy else ""
    found = mistakes(f"data_sources:\n  - {source}\n", policy)
    assert bool(found) is not is_permitted
    assert all("expected sources that license_policy permits" in line for line in found)


@pytest.mark.parametrize(
    "source",
    [
        "{kind: web, urls: ['ftp://a.b/']}",
        "{kind: web, urls: ['https://me:secret@a.b/']}",
        "{kind: web, urls: []}",
        "{kind: web, urls: ['https://a.b/ c']}",
        "{kind: web, urls: ['https://a.b/'], delay_s: -1}",
        "{kind: git, url: 'ext::sh -c touch% /tmp/x', license: MIT}",
        "{kind: git, url: '--upload-pack=x', license: MIT}",
        "{kind: git, url: 'ssh://git@a.b/c', license: MIT}",
        "{kind: git, url: 'https://a.b/c', license: MIT, revision: '--upload-pack=x'}",
        "{kind: hugging_face, path: ../../etc, license: MIT}",
        "{kind: jsonl, path: rows.jsonl, license: MIT}",
        "{kind: folder, path: /a, license: MIT, max_files: 0}",
        "{kind: folder, path: /a, license: MIT, name: 'A/b'}",
    ],
)
def test_what_makes_no_sense_or_could_do_harm_is_refused(source):
    assert len(mistakes(f"data_sources:\n  - {source}\n")) == 1


def test_an_old_file_means_what_it_meant():
    (folder,) = sources("data_sources: [{kind: folder, path: /srv/notes, license: MIT}]\n")
    assert folder == FolderSource(
        kind="folder", path="/srv/notes", license="MIT", glob="**/*", name="notes"
    )


def test_private_addresses_are_refused_unless_allowed():
    assert not WebSource(kind="web", urls=("https://a.b/",)).allow_private_addresses


def test_a_name_keeps_its_accents():
    folder = {"kind": "folder", "path": "/home/ana/Mis docs técnicos", "license": "MIT"}
    source = FolderSource.model_validate(folder)
    (found,) = named([source])
    assert found.name == "mis-docs-técnicos"
    assert FolderSource.model_validate({**folder, "name": found.name}).name == found.name
