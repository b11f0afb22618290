"""What stands in the place of a source that couldn't be had, and when that is enough."""

from jupiterd.cycle.base.work_item import WorkResult
from jupiterd.cycle.data.lost_sources import in_place_of, is_enough, lost_among
from jupiterd.ids import ArtifactId

COLLECTED = WorkResult(
    {name: ArtifactId(name * 8) for name in ("train", "holdout", "state", "skipped")},
    {"documents": 9.0, "bytes": 90.0, "holdout_documents": 2.0, "skipped.broken": 4.0},
)


def test_what_was_collected_before_stays_and_what_was_left_out_then_is_not_told_again():
    lost = in_place_of("docs", "https://a.example can't be fetched\nin two lines", COLLECTED)
    assert set(lost.outputs) == {"train", "holdout", "state"}
    assert lost.counts == {"documents": 9.0, "bytes": 90.0, "holdout_documents": 2.0}
    (told,) = lost_among([(lost.summary, lost.counts)])
    assert told.text() == (
        "source docs failed: https://a.example can't be fetched; "
        "what was collected of it before is used, the next round tries it anew"
    )


def test_of_a_source_that_never_answered_there_is_nothing_for_however_many_rounds():
    first = in_place_of("docs", "no way", None)
    second = in_place_of("docs", "still no way", first)
    assert (second.outputs, second.counts) == ({}, {})
    (told,) = lost_among([(second.summary, second.counts)])
    assert told.text() == (
        "source docs failed: still no way; there is none of it, the next round tries it anew"
    )


def test_what_was_collected_counts_through_rounds_that_fail():
    twice = in_place_of("docs", "two", in_place_of("docs", "one", COLLECTED))
    assert twice.outputs["train"] == COLLECTED.outputs["train"]
    assert twice.counts["documents"] == 9.0


def test_there_must_be_text_to_train_on_and_text_to_judge_by():
    train, judge = WorkResult({}, {"documents": 3}), WorkResult({}, {"holdout_documents": 1})
    assert is_enough([train, judge, in_place_of("docs", "gone", None)])
    assert not is_enough([WorkResult({}, {"documents": 3, "holdout_documents": 0})])
    assert not is_enough([judge])
    assert not is_enough([])


def test_what_is_held_out_is_asked_after_all_was_read():
    assert is_enough([WorkResult({}, {"documents": 3})])
    assert not is_enough([WorkResult({}, {"documents": 0})])


def test_what_was_collected_is_not_among_the_lost():
    assert lost_among([(COLLECTED.summary, COLLECTED.counts)]) == []


def test_of_a_source_that_is_read_in_parts_the_part_is_named_that_could_not_be_had():
    lost = in_place_of("docs", "nobody answers", None, "2 of 3")
    (told,) = lost_among([(lost.summary, lost.counts)])
    assert (told.source, told.place) == ("docs", "2 of 3")
    assert told.failure == "source docs (part 2 of 3) failed: nobody answers"
