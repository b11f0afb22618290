"""What ranks say of each other when they were told different things."""

import json
from typing import Any

from jupiterd.cycle.training.config_agreement import (
    MAX_TELEMETRY_BYTES,
    as_numbers,
    disagreement,
    short_form,
    text_length,
    text_of,
)

NAMES = ["alpha", "beta", "gamma"]


def said(*agreements: dict[str, Any]) -> str:
    texts = [text_of(agreement) for agreement in agreements]
    length = text_length([short_form(text) for text in texts])
    return disagreement([as_numbers(text, length) for text in texts], NAMES)


def test_equal_ones_need_no_more_than_their_short_form():
    forms = [short_form(text_of({"a": 1, "b": {"c": 2}}))] * 3
    assert text_length(forms) == 0


def test_the_order_of_names_means_nothing():
    assert text_of({"a": 1, "b": 2}) == text_of({"b": 2, "a": 1})


def test_the_one_that_differs_is_named_with_what_it_has():
    usual = {"plan": {"lr": 0.1, "steps": 5}}
    assert said(usual, {"plan": {"lr": 0.2, "steps": 5}}, usual) == (
        "beta (rank 1): plan.lr is 0.2 there and 0.1 elsewhere"
    )


def test_of_two_the_first_counts_as_right():
    assert said({"step": 3}, {"step": 4}) == "beta (rank 1): step is 4 there and 3 elsewhere"


def test_rank_0_may_be_the_odd_one():
    assert said({"step": 4}, {"step": 3}, {"step": 3}).startswith("alpha (rank 0): step is 4")


def test_a_name_that_only_one_version_knows_is_told():
    told = said({"a": 1}, {"a": 1, "new": True}, {"a": 1})
    assert told == "beta (rank 1): new is true there and missing elsewhere"


def test_many_differences_are_told_in_a_line():
    told = said({str(n): 0 for n in range(9)}, {str(n): 1 for n in range(9)})
    assert told.endswith("2 is 1 there and 0 elsewhere, and 6 more")


def test_what_is_too_long_to_be_told_is_noticed_all_the_same():
    texts = [json.dumps({"a": "x" * 2 * MAX_TELEMETRY_BYTES + end}).encode() for end in "yz"]
    length = text_length([short_form(text) for text in texts])
    assert length == MAX_TELEMETRY_BYTES
    assert len(as_numbers(texts[0], length)) == MAX_TELEMETRY_BYTES


def test_numbers_survive_float32():
    import numpy as np

    text = text_of({"name": "größe", "value": 1e-3})
    length = text_length([short_form(text), short_form(text_of({}))])
    numbers = np.array(as_numbers(text, length), dtype=np.float32).tolist()
    assert bytes(map(int, numbers)).strip() == text
