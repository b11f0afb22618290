"""What people are told of rows in a form that isn't read, and of reasons."""

import pytest

from jupiterd.cycle.data.reason_words import is_reason, reason_words
from jupiterd.cycle.data.row_advice import row_advice


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        (
            {"conversations": [{"from": "human", "value": "?"}]},
            "it has conversations: write messages, a list of role (user, assistant) and content",
        ),
        (
            {"instruction": "Add.", "input": "1, 2", "output": "3"},
            (
                "it has instruction and output: write instruction and input as prompt, "
                "output as completion"
            ),
        ),
        (
            {"instruction": "Add.", "input": "", "output": "3"},
            "it has instruction and output: write instruction as prompt, output as completion",
        ),
        (
            {"question": "1 + 1?", "answer": "2"},
            "it has question and answer: write question as prompt, answer as completion",
        ),
        ({"conversations": "a text", "id": 7}, ""),
        ({"body": "a text"}, ""),
    ],
)
def test_a_row_in_another_form_is_told_what_to_write(fields, told):
    assert row_advice(fields) == told


def test_reasons_are_told_in_words_and_asked_for_by_key_or_words():
    assert reason_words("no_field") == "no text field"
    assert reason_words("too_large") == "too large"
    assert reason_words("near-duplicate") == "near-duplicate"
    assert is_reason("no_field", "no text field")
    assert is_reason("no_field", "no_field")
    assert not is_reason("no_field", "too_large")
