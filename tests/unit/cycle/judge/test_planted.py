"""Pairs of which the better text is known."""

from collections import Counter

import pytest

from jupiterd.cycle.judge.pair import Pair, PairKind, PairOutcome
from jupiterd.cycle.judge.planted import (
    MAX_CHARS,
    MIN_CHARS,
    Begun,
    begun,
    planted_pairs,
    same_length,
    spread,
)

WORDS = "the baker lets the dough of loaf {n} rest in bowl {n} while oven {n} warms up slowly "


def documents(count: int = 30, clusters: int = 10) -> list[Begun]:
    found = [begun(f"d{n}", f"c{n % clusters}", WORDS.format(n=n) * 8, "en") for n in range(count)]
    return [each for each in found if each is not None]


def test_a_document_is_cut_between_two_words_and_nothing_of_it_is_lost() -> None:
    text = WORDS.format(n=1) * 8
    cut = begun("d", "c", text, "en")
    assert cut is not None
    assert text.startswith(cut.beginning + cut.follows)
    assert cut.follows.startswith(" ")
    assert len(cut.follows) == MAX_CHARS


def test_code_is_cut_where_its_beginning_parses() -> None:
    text = "".join(f"def count_{n}(rows):\n    return len(rows) + {n}\n\n\n" for n in range(20))
    cut = begun("d", "c", text, "code:python")
    assert cut is not None
    assert cut.beginning.endswith("\n")
    assert begun("d", "c", "def broken(:\n" * 40, "code:python") is None


def test_a_short_document_is_no_beginning() -> None:
    assert begun("d", "c", "too short to be gone on from", "en") is None
    assert begun("d", "c", "a beginning, and then nothing but room" + " " * 400, "en") is None


def test_the_real_text_is_always_ours_and_the_other_is_spoilt_in_three_ways() -> None:
    found = documents()
    pairs = planted_pairs(found, 30, "7")
    real = {each.document: each.follows for each in found}
    assert Counter(pair.kind for pair in pairs) == {
        PairKind.FOREIGN: 10,
        PairKind.SHUFFLED: 10,
        PairKind.CORRUPTED: 10,
    }
    assert all(real[pair.document].startswith(pair.ours) for pair in pairs)
    assert all(pair.ours.split() != pair.theirs.split() for pair in pairs)
    assert all(len(pair.ours) == len(pair.theirs) >= MIN_CHARS for pair in pairs)
    assert all(pair.is_planted for pair in pairs)
    shuffled = next(pair for pair in pairs if pair.kind == PairKind.SHUFFLED)
    assert sorted(real[shuffled.document].split()) != shuffled.ours.split()


def test_foreign_text_is_of_another_cluster() -> None:
    found = documents()
    where = {each.follows: each.cluster for each in found}
    foreign = [pair for pair in planted_pairs(found, 30, "7") if pair.kind == PairKind.FOREIGN]
    assert foreign
    assert all(
        where[next(each for each in where if each.startswith(pair.theirs))] != pair.cluster
        for pair in foreign
    )


def test_few_documents_are_each_spoilt_in_every_way_and_one_cluster_has_nothing_foreign() -> None:
    pairs = planted_pairs(documents(4, 2), 100, "7")
    assert len(pairs) == 12
    assert len({(pair.document, pair.kind) for pair in pairs}) == 12
    alone = planted_pairs(documents(4, 1), 100, "7")
    assert {pair.kind for pair in alone} == {PairKind.SHUFFLED}
    assert planted_pairs([], 100, "7") == []


def test_the_same_seed_plants_the_same_and_another_one_others() -> None:
    found = documents()
    first, again, other = (planted_pairs(found, 30, seed) for seed in ("7", "7", "8"))
    assert first == again
    assert [pair.theirs for pair in first] != [pair.theirs for pair in other]


def test_documents_of_all_clusters_are_taken_before_a_second_of_any() -> None:
    chosen = spread(documents(30, 10), 12)
    assert Counter(each.cluster for each in chosen).most_common(1)[0][1] == 2
    assert len({each.cluster for each in chosen}) == 10


def test_two_texts_are_shown_as_long_as_each_other() -> None:
    assert same_length("abc", "abcdef") == ("abc", "abc")


@pytest.mark.parametrize(
    ("replies", "outcome"),
    [
        (("1", "2"), PairOutcome.WIN),
        (("2", "1"), PairOutcome.LOSS),
        (("1", "1"), PairOutcome.TIE),
        (("2", "2"), PairOutcome.TIE),
        (("1", "?"), PairOutcome.TIE),
        ((), PairOutcome.TIE),
    ],
)
def test_only_a_judge_that_says_the_same_in_both_orders_has_said_anything(
    replies: tuple[str, ...], outcome: PairOutcome
) -> None:
    pair = Pair(PairKind.STUDENTS, "d", "c", "b", "o", "t", replies)
    assert pair.outcome is outcome
    assert pair.id == Pair(PairKind.STUDENTS, "d", "c", "b", "o", "t").id
