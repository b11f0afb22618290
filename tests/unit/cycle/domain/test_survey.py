"""What follows for sources that weren't read whole, and the words for it."""

from dataclasses import replace

from jupiterd.cycle.domain.survey import Survey
from jupiterd.cycle.domain.survey_lines import (
    forecast_lines,
    is_hopeless,
    reading_line,
    source_line,
    text_line,
)
from jupiterd.cycle.holdout.holdout_rules import HoldoutRules
from jupiterd.cycle.holdout.verdict_forecast import verdict_forecast
from tests.support.ctl.surveys import ENOUGH, FAR, TWELVE

RULES = HoldoutRules("salt")


def test_too_little_is_hopeless_only_where_everything_was_counted():
    forecast = verdict_forecast(TWELVE.counts, RULES)
    assert is_hopeless(TWELVE, forecast)
    assert not is_hopeless(FAR, forecast)
    begun = replace(TWELVE, sources=(replace(TWELVE.sources[0], is_at_least=True),))
    assert not is_hopeless(begun, forecast)
    assert not is_hopeless(ENOUGH, verdict_forecast(ENOUGH.counts, RULES))
    assert not is_hopeless(Survey(), verdict_forecast(Survey().counts, RULES))


def test_a_source_is_told_with_what_is_dropped_of_it():
    assert source_line(ENOUGH.sources[0]) == (
        "source notes: read 400 of 40,000 files; about 38,000 would be kept, about 181.2 MiB; "
        "of those read: documentation 300, prose 80; dropped too-short 15, stub 5"
    )
    assert source_line(TWELVE.sources[0]) == (
        "source notes: read 12 files; 12 would be kept, 58.6 KiB"
    )
    assert source_line(FAR.sources[1]).endswith(": not counted before collection")


def test_a_part_that_was_read_is_told_with_how_much_it_is_of_all():
    assert reading_line(ENOUGH) == (
        "read 400 of 40,000 files of 1 source in 2 s; "
        "5% of those read are dropped: too-short 15, stub 5"
    )
    assert text_line(ENOUGH) == "about 38,000 documents, about 181.2 MiB, about 47,500,000 tokens"
    assert reading_line(TWELVE) == "read 12 files of 1 source in 1 s"
    assert text_line(TWELVE) == "12 documents, 58.6 KiB, about 15,000 tokens"
    site = replace(ENOUGH.sources[0], kind="web", is_at_least=True)
    both = replace(ENOUGH, sources=(*TWELVE.sources, site))
    assert reading_line(both).startswith("read 412 of at least 40,012 documents of 2 sources in ")


def test_the_question_is_answered_and_what_would_help_is_said():
    first, second = forecast_lines(TWELVE, verdict_forecast(TWELVE.counts, RULES))
    assert first.startswith("can this be judged? no: 12 documents, about 15,000 tokens")
    assert second == "what would help: add text, or start with --without-verdict"
    (only,) = forecast_lines(ENOUGH, verdict_forecast(ENOUGH.counts, RULES))
    assert only.startswith("can this be judged? yes: ")
