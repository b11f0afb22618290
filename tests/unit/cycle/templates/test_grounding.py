"""An answer's terms are those of its passage, or it is about something else."""

import pytest

from jupiterd.cycle.templates.grounding import grounded_share, unknown_hosts
from tests.unit.cycle.templates.test_answers import CHINESE, ELSEWHERE, PASSAGE, RIGHT


@pytest.mark.parametrize("kind", sorted(RIGHT))
def test_a_retelling_has_terms_of_its_passage(kind: str):
    assert grounded_share(RIGHT[kind], PASSAGE, "en") > 0.2


def test_a_text_about_something_else_has_hardly_any():
    assert grounded_share(ELSEWHERE, PASSAGE, "en") < 0.1


def test_forms_of_a_word_are_one_term():
    assert grounded_share("configuring servers", "The configuration of a server.", "en") == 1.0
    assert grounded_share("configurando", "La configuraci\u00f3n.", "es") == 1.0


def test_without_spaces_pairs_of_letters_are_compared():
    assert grounded_share(CHINESE[:30], CHINESE, "zh") == 1.0
    assert grounded_share(CHINESE[60:], CHINESE[:40], "zh") < 0.3


def test_where_there_is_nothing_to_compare_nothing_is_missing():
    assert grounded_share("", PASSAGE, "en") == grounded_share(PASSAGE, "", "en") == 1.0


def test_links_that_the_passage_does_not_name_are_made_up():
    passage = "See the handbook at https://docs.bread.org/loaf for more."
    assert unknown_hosts("It is told at https://www.docs.bread.org/.", passage) == 0
    assert unknown_hosts("Ask http://127.0.0.1:8000 or https://api.example.com/v1.", passage) == 0
    assert (
        unknown_hosts("See https://help.shortk.com/a and HTTPS://Help.Shortk.com/b.", passage) == 1
    )
