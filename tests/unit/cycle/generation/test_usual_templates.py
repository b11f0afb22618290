"""A domain that names no templates has the usual tasks as soon as somebody's model writes."""

import pytest

from jupiterd.cycle.domain.changed_settings import with_changes
from jupiterd.cycle.domain.domain import Domain, parse_domain
from jupiterd.cycle.generation.usual_templates import check_is_used, domain_with, recorded
from jupiterd.errors import UsageError

SERVER = {"name": "tiny", "url": "http://box/v1", "model": "tiny"}

TASKS = ("question_answer", "explanation", "summary", "exercise")


def domain(language: str, more: str = "") -> Domain:
    text = (
        f"version: 1\ntitle: Bread\nlanguage: {language}\nholdout: {{salt: a}}\n"
        f"data_sources:\n  - {{kind: folder, path: /srv/bread, license: MIT}}\n{more}"
    )
    return parse_domain(text, "bread.yaml")


def kinds(language: str, more: str = "") -> tuple[str, ...]:
    return domain_with(domain(language, more), SERVER).generation.kinds


def test_with_a_generator_that_others_made_the_usual_tasks_are_asked():
    assert kinds("en") == kinds("es") == kinds("zh") == TASKS
    assert kinds("code:python") == ("complete_function", *TASKS)
    assert kinds("code:rust") == TASKS
    assert kinds("en", "generation: {temperature: 0.5}\n") == TASKS


def test_without_one_nothing_is_asked():
    assert domain_with(domain("en"), {}).generation.kinds == ()


def test_a_cycle_s_record_spells_out_what_is_asked():
    text, asked = recorded("", domain("en"), SERVER)
    assert parse_domain(text, "bread.yaml") == asked
    assert asked.generation.kinds == TASKS
    assert recorded("as it is", domain("en"), {}) == ("as it is", domain("en"))
    named = domain("en", "generation: {templates: [{kind: summary}]}\n")
    assert recorded("as it is", named, SERVER) == ("as it is", named)


def test_what_a_file_says_counts():
    assert kinds("en", "generation: {templates: [{kind: summary}]}\n") == ("summary",)
    assert kinds("en", "generation: {templates: []}\n") == ()


def test_the_other_keys_stay_as_they_are_and_may_be_changed_under_way():
    usual = domain_with(domain("en", "generation: {temperature: 0.5}\n"), SERVER)
    assert {usual.generation.temperature_of(each) for each in usual.generation.templates} == {0.5}
    assert with_changes(usual, {"generation.top_p": "0.5"}).generation.kinds == TASKS
    fewer = with_changes(usual, {"generation.templates": "[{kind: summary}]"})
    assert fewer.generation.kinds == ("summary",)


def test_a_generator_of_which_nothing_would_be_asked_is_an_error():
    for language in ("en", "code:python"):
        check_is_used(domain(language), SERVER)
        check_is_used(domain(language), {})
    with pytest.raises(UsageError, match=r"bread wants no generated text: .* are empty"):
        check_is_used(domain("en", "generation: {templates: []}\n"), SERVER)


def test_short_tasks_are_drawn_coolly_and_kept_short_whoever_names_them():
    """A file that names them, to have fewer, means no others."""
    named = domain("en", "generation: {templates: [{kind: summary, samples: 4}, {kind: faq}]}\n")
    for each in (named, with_changes(named, {"generation.top_p": "0.5"})):
        short, long = each.generation.templates
        assert each.generation.temperature_of(short) == 0.3
        assert each.generation.max_tokens_of(short) == 384
        assert each.generation.temperature_of(long) == 0.8
        assert each.generation.max_tokens_of(long) == 768
    warm = with_changes(named, {"generation.temperature": "0.9"}).generation
    assert warm.temperature_of(warm.templates[0]) == 0.9
