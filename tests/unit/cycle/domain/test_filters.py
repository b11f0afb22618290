from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupiterd.cycle.base.drop_reason import DropReason
from jupiterd.cycle.domain.filters import FILTERS, judge_sample, judge_text, passed
from tests.support.cycle.prose import GOOD
from tests.support.workers.data_material import function, real, synthetic
from tests.unit.cycle.templates.test_answers import RIGHT


def test_the_domains_language_decides_which_rules_are_met():
    assert judge_text(GOOD, "en").reason is None
    assert judge_text(GOOD, "de").reason is None
    assert judge_text(GOOD, "code:python").reason is DropReason.MINIFIED
    assert judge_text(function(1), "code:python").reason is None
    assert judge_text(function(1), "en").reason is not None


def test_real_and_generated_text_meet_the_same_rules():
    text = "# auto-generated\n" + function(1)
    for sample in (real(text), synthetic(text)):
        assert judge_sample(sample, "code:python").reason is DropReason.GENERATED


def test_short_functions_such_as_small_models_write_are_kept():
    text = "def add(first, second):\n    total = first + second\n    return total\n"
    assert judge_sample(synthetic(text), "code:python").reason is None


@pytest.mark.parametrize(
    ("uri", "is_vendored"),
    [
        ("folder:app/node_modules/left-pad/index.js", True),
        ("git:host/app/third_party/zlib/inflate.c", True),
        ("folder:vendor/main.py", False),
        ("folder:app/vendor.py", False),
    ],
)
def test_somebody_elses_code_in_a_project_is_left_out(uri, is_vendored):
    sample = replace(real(function(1)), source_uri=uri)
    reason = judge_sample(sample, "code:python").reason
    assert reason is (DropReason.VENDORED if is_vendored else None)


def test_what_is_kept_says_by_which_filters_and_with_which_scores():
    sample = real(function(1))
    kept = passed(sample, judge_sample(sample, "code:python").scores)
    assert kept.filters == FILTERS
    assert kept.filter_scores["lines"] == 6
    assert kept.filter_scores["repeated_lines"] == 0
    assert replace(kept, filters="", filter_scores={}) == sample


@given(
    st.text(st.characters(), max_size=400).map(lambda text: text * 5),
    st.sampled_from(["en", "de", "code:python", "code:c", "code:bash"]),
)
def test_no_text_is_too_odd_to_be_judged(text, language):
    judgement = judge_text(text, language)
    assert (judgement.reason is None) is bool(judgement.scores)
    assert judge_text(text, language) == judgement


def test_words_about_code_are_judged_as_words_in_a_domain_of_code_too():
    about = replace(real(RIGHT["explanation"]), kind="synthetic", depth=1, parents=("a",))
    explained = replace(about, template="explanation", source_uri="python-stdlib:mod.py")
    assert judge_sample(explained, "code:python").reason is None
    completed = replace(explained, template="complete_function")
    assert judge_sample(completed, "code:python").reason is DropReason.UNPARSABLE


def test_a_short_answer_is_a_whole_one():
    text = (
        "Question: What is the starter of a sourdough?\nAnswer: It is a mixture of flour and water "
        "in which wild yeast lives together with bacteria, and it is fed each day."
    )
    made = replace(real(text), kind="synthetic", depth=1, parents=("a",))
    assert judge_sample(replace(made, template="question_answer"), "en").reason is None
    terms = text.replace("It is a mixture", "The starter of a sourdough is a mixture")
    repeated = replace(made, text=terms.replace("it is fed", "the starter of a sourdough is fed"))
    assert judge_sample(replace(repeated, template="question_answer"), "en").reason is None
    assert judge_sample(replace(made, template="rewrite"), "en").reason is DropReason.TOO_SHORT
    assert judge_sample(real(text), "en").reason is DropReason.TOO_SHORT
