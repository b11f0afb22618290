"""Gaps in held-out text: which words are hidden, and what is offered beside them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupiterd.cycle.generation.cloze import BEFORE_CHARS, GapKind, HeldOutText, is_right, make_items

CODE = (
    """def count_orders_{0}(queue):
    total_{0} = {1}
    for order_{0} in queue:
        total_{0} += order_{0}.weight * {1}
    return total_{0}
"""
    * 3
)

PROSE = (
    "## About the town of {0}\n\n"
    "Once the river had reached Carrow and Dunmore in the year {1}, people of Eastham left. "
    "They came back with Harwell and 4{1} others, as the register_{0} says, to see Lowick again.\n"
    "## What became of {0} then\n\n"
)


def corpus(template, count=20):
    names = [f"{chr(97 + n)}{chr(97 + n % 7)}ra" for n in range(count)]
    return [
        HeldOutText(f"d{n:03}", f"c{n // 4}", (template * 3).format(name, 10 + n))
        for n, name in enumerate(names)
    ]


@pytest.mark.parametrize(("template", "language"), [(CODE, "code:python"), (PROSE, "en")])
def test_a_gap_offers_what_stood_there_and_three_others_like_it(template, language):
    documents = {each.id: each for each in corpus(template)}
    items = make_items(list(documents.values()), language)
    assert len(items) > 40
    for item in items:
        assert len(set(item.options)) == 4
        assert item.filled()[0] in documents[item.document].text
        assert len(item.before) == BEFORE_CHARS
        assert item.cluster == documents[item.document].cluster
        if item.kind is not GapKind.HEADING:
            assert len({len(option) for option in item.options}) == 1


def test_code_has_names_and_numbers_and_no_keywords():
    items = make_items(corpus(CODE), "code:python")
    assert {item.kind for item in items} == {GapKind.IDENTIFIER, GapKind.NUMBER}
    assert not {option for item in items for option in item.options} & {"return", "for", "def"}


def test_prose_has_headings_too():
    items = make_items(corpus(PROSE), "en")
    assert {item.kind for item in items} == set(GapKind)
    assert all("\n" not in option for item in items for option in item.options)


HEADINGS = ("12. Backups", "max_depth option", "2024 in review", "42_000 rows", "7")


@pytest.mark.parametrize("heading", HEADINGS)
@pytest.mark.parametrize("marks", ["#", "##", "######"])
def test_a_heading_that_begins_with_a_number_or_a_name_is_one_gap(heading, marks):
    line = f"{marks} {heading} of {{0}}{{1}}\n\n"
    items = make_items(corpus(PROSE + line), "en")
    assert len({item.id for item in items}) == len(items)
    assert GapKind.HEADING in {item.kind for item in items}


@given(
    st.lists(st.sampled_from(["## ", "12", "12.5", "max_depth", " In", " 2024", ". ", "\n", "a"])),
    st.sampled_from(["en", "code:python"]),
)
def test_no_text_has_two_gaps_at_one_place(pieces, language):
    items = make_items(corpus(PROSE.replace("{0}", "".join(pieces) + "{0}")), language)
    assert len({item.id for item in items}) == len(items)


def test_the_gaps_are_spread_over_the_documents_and_of_a_number_that_was_wanted():
    items = make_items(corpus(CODE), "code:python", wanted=40)
    assert len(items) == 40
    assert len({item.document for item in items}) == 20


def test_whoever_makes_them_in_whatever_order_makes_the_same():
    documents = corpus(CODE)
    items = make_items(documents, "code:python")
    again = make_items(documents[::-1], "code:python")
    assert sorted(items, key=lambda item: item.id) == sorted(again, key=lambda item: item.id)
    assert len({item.id for item in items}) == len(items)


def test_text_without_enough_words_alike_has_no_gaps():
    assert make_items([HeldOutText("d", "c", CODE.format("x", 17))], "code:python") == []
    assert make_items([], "en") == []


def test_the_likeliest_per_byte_is_right_only_where_it_is_alone():
    assert is_right([10.0, 11.0, 12.0], [10, 10, 10])
    assert is_right([10.0, 9.0], [20, 10])
    assert not is_right([10.0, 10.0], [10, 10])
    assert not is_right([float("inf"), 10.0], [10, 10])
