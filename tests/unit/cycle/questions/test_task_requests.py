"""What tasks ask a model, as lines that travel."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupiterd.cycle.questions.task_requests import (
    CONTINUED,
    FEWEST_REQUESTS,
    MAX_BATCH_BYTES,
    MOST_REQUESTS,
    WHOLE,
    WRITTEN,
    TaskRequest,
    answers_text,
    batches_of,
    read_answers,
    read_requests,
    requests_text,
    travelling_requests,
)
from jupiterd.errors import MalformedError

GREEDY = {"until": ["\n", "."], "do_sample": False, "max_gen_toks": 32, "temperature": 0.0}
ONE_OF_EACH = [
    TaskRequest(CONTINUED, ("2 + 2 =", " 4\u2028\ud83d\n"), {}),
    TaskRequest(WHOLE, ("The bread rises.",), {}),
    TaskRequest(WRITTEN, ("The capital of Spain is",), GREEDY),
]


def test_requests_and_answers_come_back_as_they_were():
    assert read_requests(requests_text(ONE_OF_EACH)) == ONE_OF_EACH
    answers = [(-1.25, True), -0.1 - 0.2, "Madrid\u2028\n"]
    assert read_answers(answers_text(answers), ONE_OF_EACH) == answers
    impossible = [(-math.inf, False)]
    assert read_answers(answers_text(impossible), ONE_OF_EACH[:1]) == impossible


@pytest.mark.parametrize(
    "settings",
    [
        {"do_sample": True},
        {"custom_generate": "somebody/their-code"},
        {"trust_remote_code": True},
        {"until": [{"a": 1}]},
        {"max_gen_toks": "32"},
        {"temperature": [0.0]},
        {"temperature": 0.7},  # the harness draws then
    ],
)
def test_a_setting_that_is_not_known_to_be_harmless_does_not_travel(settings: dict[str, object]):
    request = TaskRequest(WRITTEN, ("x",), settings)
    assert not request.travels
    with pytest.raises(MalformedError):
        travelling_requests(requests_text([request]))


def test_a_temperature_travels_where_nothing_is_drawn():
    settings = {"temperature": 0.7, "do_sample": False}
    assert TaskRequest(WRITTEN, ("x",), settings).travels
    assert TaskRequest(WRITTEN, ("x",), {"temperature": 0.0}).travels


def test_harmless_requests_travel():
    assert travelling_requests(requests_text(ONE_OF_EACH)) == ONE_OF_EACH


@pytest.mark.parametrize(
    "lines",
    ["", "{", "{}", "[]", "[1]", '["exec", "x"]', '["loglikelihood", "x"]', '["generate_until"]',
     '["loglikelihood", "x", 3]', '["generate_until", "x"]', '["generate_until", "x", []]',
     '["loglikelihood_rolling", "x", {}]', "[" * 5000,
     '["loglikelihood_rolling", "x"]\n' * (MOST_REQUESTS + 1)],
)  # fmt: skip
def test_what_is_no_batch_is_refused(lines: str):
    with pytest.raises(MalformedError):
        travelling_requests(lines)


@pytest.mark.parametrize(
    "lines",
    ["", "[1.0]", '["x"]', "[[1.0, 1]]", "[[1.0]]", "[null]", "[[1.0, true]]\n[1.0]", "[]", "{"],
)
def test_what_is_no_answer_is_refused(lines: str):
    with pytest.raises(MalformedError):
        read_answers(lines, ONE_OF_EACH[:1])


@given(st.integers(1, 2000), st.integers(1, 12), st.integers(0, 40_000))
def test_batches_are_all_requests_in_their_order(count: int, machines: int, size: int):
    long = "x" * size
    asked = [TaskRequest(WHOLE, (f"{n} {long if n < 40 else ''}",), {}) for n in range(count)]
    batches = batches_of(asked, machines)
    assert [each for batch in batches for each in batch] == asked
    assert all(1 <= len(batch) <= MOST_REQUESTS for batch in batches)
    assert all(len(requests_text(batch)) <= MAX_BATCH_BYTES for batch in batches)


def test_few_requests_are_still_enough_for_a_gpu():
    asked = [TaskRequest(WHOLE, (str(n),), {}) for n in range(40)]
    assert [len(batch) for batch in batches_of(asked, 3)] == [FEWEST_REQUESTS, FEWEST_REQUESTS, 8]


def test_where_lots_are_drawn_all_of_it_is_one_piece():
    drawing = TaskRequest(WRITTEN, ("x",), {"do_sample": True, "temperature": 1.0})
    asked = [*ONE_OF_EACH, drawing]
    assert batches_of(asked, 5) == [asked]
