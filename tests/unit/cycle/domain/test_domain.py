from pathlib import Path

import pytest

from jupiterd.cycle.base.yaml_text import MAX_TEXT_BYTES
from jupiterd.cycle.domain.data_sources import FolderSource
from jupiterd.cycle.domain.domain import Quality, domain_mistakes, parse_domain
from jupiterd.cycle.gate.case import GateSettings
from jupiterd.errors import InvalidDomainError

DOMAINS = Path(__file__).parents[4] / "config" / "domains"

SMALL = """\
version: 1
domain: notes
title: Somebody's notes
language: en
data_sources:
  - kind: folder
    path: /srv/notes
    license: CC-BY-4.0
holdout:
  fraction: 0.2
  salt: notes-1
"""


@pytest.mark.parametrize("name", sorted(path.name for path in DOMAINS.glob("*.yaml")))
def test_every_domain_file_that_we_ship_is_right(name):
    assert domain_mistakes((DOMAINS / name).read_text(), name) == ()


def test_the_template_shows_every_key_and_its_default():
    text = (DOMAINS / "_template.yaml").read_text()
    shown = parse_domain(text, "_template.yaml")
    drawn = shown.generation.model_dump(exclude={"templates"})
    assert drawn == type(shown.generation)().model_dump(exclude={"templates"})
    parts = [getattr(shown, name) for name in type(shown).model_fields]
    for part in (shown, *parts, *shown.data_sources):
        for key in getattr(type(part), "model_fields", {}):
            assert f"{key}:" in text, key
    defaults = parse_domain(SMALL, "notes.yaml")
    assert shown.evaluation == defaults.evaluation
    assert shown.gate == defaults.gate
    assert shown.mix_ratio == defaults.mix_ratio


def test_a_short_file_gets_the_defaults():
    domain = parse_domain(SMALL, "notes.yaml")
    assert domain.mix_ratio.synthetic_share is None
    assert domain.generation.templates == ()
    assert domain.training.steps is None
    assert domain.data_sources == (
        FolderSource(
            kind="folder", path="/srv/notes", license="CC-BY-4.0", glob="**/*", name="notes"
        ),
    )
    assert domain.gate_settings() == GateSettings(0.05, 0.005, 0.02, 12, 6)


def test_quality_is_judged_where_the_domain_names_what_is_good():
    second = "holdout:", "  - {kind: python_stdlib}\nfilters: {quality: {like: [notes]}}\nholdout:"
    permitted = SMALL.replace("data_sources:", "license_policy: {allow: []}\ndata_sources:")
    domain = parse_domain(permitted.replace(*second), "notes.yaml")
    assert domain.filters.quality == Quality(like=("notes",), keep_share=0.8)
    assert parse_domain(SMALL, "notes.yaml").filters.quality is None
    everything = permitted.replace(*second).replace("[notes]", "[notes, python_stdlib]")
    (mistake,) = domain_mistakes(everything, "notes.yaml")
    assert "expected quality.like to name some, not all, of notes, python_stdlib" in mistake


def test_a_part_sent_as_a_worker_parameter_reads_back():
    domain = parse_domain((DOMAINS / "python.yaml").read_text(), "python.yaml")
    again = type(domain).model_validate(domain.model_dump(mode="json"))
    assert again == domain


@pytest.mark.parametrize(
    ("old", "new", "mistake"),
    [
        (
            "fraction: 0.2",
            "fraction: 2",
            "notes.yaml:10: holdout.fraction: expected a number from 0.05 to 0.5, got 2",
        ),
        (
            "fraction: 0.2",
            "fraction: .nan",
            (
                "notes.yaml:10: holdout.fraction: expected a number from 0.05 to 0.5, "
                "got a number that isn't finite"
            ),
        ),
        (
            "fraction: 0.2",
            "fraction: yes",
            "notes.yaml:10: holdout.fraction: expected a number from 0.05 to 0.5, got 'yes'",
        ),
        ("version: 1", "version: 2", "notes.yaml:1: version: expected 1, got 2"),
        (
            "  salt: notes-1\n",
            "",
            "notes.yaml:9: holdout.salt: expected text, got nothing",
        ),
        (
            "  salt: notes-1",
            "  slat: notes-1\n  salt: x",
            (
                "notes.yaml:11: holdout.slat: expected one of the keys fraction, salt, dev, "
                "vault, min_documents, min_clusters, got an unknown one"
            ),
        ),
        (
            "kind: folder",
            "kind: gopher",
            (
                "notes.yaml:6: data_sources.0.kind: expected one of 'feed', 'folder', 'git', "
                "'hugging_face', 'jsonl', 'parquet', 'python_stdlib', 'web', got 'gopher'"
            ),
        ),
        (
            "    path: /srv/notes\n",
            "    path: notes\n",
            (
                "notes.yaml:7: data_sources.0.path: expected an absolute path, "
                "or one that begins with ~/, got 'notes'"
            ),
        ),
        (
            "domain: notes",
            "domain: My Notes",
            (
                "notes.yaml:2: domain: expected a name of up to 32 lower-case letters, "
                "digits, - and _, got 'My Notes'"
            ),
        ),
        (
            "license: CC-BY-4.0",
            "license: unknown",
            (
                "notes.yaml:5: data_sources: expected sources that license_policy permits, "
                "got unknown in number 0"
            ),
        ),
        (
            "holdout:\n",
            "filters: {quality: {like: [nots]}}\nholdout:\n",
            "notes.yaml:9: filters: expected quality.like to name some, not all, of notes",
        ),
        (
            "holdout:\n",
            "filters: {quality: {like: []}}\nholdout:\n",
            "notes.yaml:9: filters.quality.like: expected a list of 1 to 63, got a list of 0",
        ),
        ("title: Som", "version: 1\ntitle: Som", "notes.yaml:3: version: expected each key once"),
        ("salt: notes-1", "salt: &a notes-1", "notes.yaml:11: expected plain values, got an anch"),
        ("title:", "title: [", "notes.yaml:4: expected valid YAML, got: "),
        ("title:", "1: 2\ntitle:", "notes.yaml:3: 1: expected keys that are text, got 1"),
    ],
)
def test_a_mistake_is_one_line_with_file_line_and_what_was_expected(old, new, mistake):
    assert old in SMALL
    found = domain_mistakes(SMALL.replace(old, new), "notes.yaml")
    assert len(found) == 1
    assert found[0].startswith(mistake)
    assert "\n" not in found[0]


def test_parsing_raises_the_first_mistake_and_counts_the_others():
    text = SMALL.replace("0.2", "2").replace("en\n", "5\n")
    with pytest.raises(InvalidDomainError) as caught:
        parse_domain(text, "notes.yaml")
    assert caught.value.message == (
        "notes.yaml:4: language: expected a language such as en, or code:python, got 5 (and 1 more)"
    )
    assert "domain lint" in caught.value.hint


@pytest.mark.parametrize(
    "text",
    [
        "",
        "- a",
        "just text",
        "\x00",
        "a: " + "[" * 400,
        "a: !!python/object:os.system x",
        "a: 1\n---\nb: 2\n",
        "? [a]: 3",
        "a: *b",
        "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: [*b,*b,*b,*b,*b]\n",
        "x" * (MAX_TEXT_BYTES + 1),
    ],
)
def test_harmful_or_broken_text_is_one_line_too(text):
    (mistake,) = domain_mistakes(text, "f.yaml")
    assert mistake.startswith(("f.yaml:1: expected", "f.yaml:2: expected"))


def test_yaml_words_stay_words():
    assert domain_mistakes(SMALL.replace("language: en", "language: no"), "f.yaml") == ()


def test_prose_has_templates_that_code_cannot_have():
    more = "generation: {templates: [{kind: faq, samples: 9}, {kind: table, max_tokens: 400}]}\n"
    domain = parse_domain(SMALL + more, "notes.yaml")
    faq, table = domain.generation.templates
    assert (faq.samples, domain.generation.max_tokens_of(faq)) == (9, 768)
    assert domain.generation.max_tokens_of(table) == 400
    code = SMALL.replace("language: en", "language: code:python") + more
    (mistake,) = domain_mistakes(code, "notes.yaml")
    assert "expected templates for code:python, got faq, which is prose" in mistake


@pytest.mark.parametrize("name", ["PATH", "secret_API_KEY", "KEY", "A_API_KEY=1"])
def test_a_generators_key_is_a_variable_that_is_named_like_one(name):
    said = SMALL + f"generation: {{api_key_env: {name}}}\n"
    (mistake,) = domain_mistakes(said, "notes.yaml")
    assert "_API_KEY" in mistake
