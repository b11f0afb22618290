"""Who is taken for the one that trains another model."""

import math
from array import array

import pytest

from jupiterd.cycle.training.model_fingerprint import (
    OF_LARGEST,
    TOLERANCE,
    ModelMismatch,
    strangers,
)

LOGITS = (0.5, -0.25, 0.125, 0.75)


def off(by: float, *, of: tuple[float, ...] = LOGITS) -> bytes:
    """Logits one of which is off by so much."""
    return array("f", [*of[:-1], of[-1] + by]).tobytes()


RIGHT = off(0.0)


def test_what_rounding_changes_is_the_same_model():
    assert strangers({"a": RIGHT, "b": off(0.9 * TOLERANCE), "c": RIGHT}, ()) == {}


def test_one_logit_that_is_off_is_enough():
    found = strangers({"a": RIGHT, "b": off(1.5 * TOLERANCE), "c": RIGHT}, ())
    assert [*found] == ["b"]
    assert found["b"].most == pytest.approx(1.5 * TOLERANCE, rel=1e-2)
    assert found["b"].allowed == TOLERANCE


def test_what_is_allowed_grows_with_the_largest_logit():
    large = (20.0, -3.0, 1.0, 2.0)
    told = {"a": off(0.0, of=large), "b": off(19 * OF_LARGEST, of=large)}
    assert strangers(told, ()) == {}
    assert [*strangers(told | {"b": off(21 * OF_LARGEST, of=large)}, ())] == ["b"]


def test_those_that_most_agree_on_are_believed():
    wrong = off(0.3)
    assert [*strangers({"a": wrong, "b": RIGHT, "c": RIGHT}, ())] == ["a"]
    assert [*strangers({"a": wrong, "b": RIGHT, "c": wrong}, ())] == ["b"]
    assert [*strangers({"a": wrong, "b": RIGHT}, ())] == ["b"], "the first, where it is a draw"


def test_those_that_have_been_let_in_before_are_believed_however_many_come():
    wrong = off(0.3)
    assert [*strangers({"a": wrong, "b": RIGHT, "c": wrong}, {"b"})] == ["a", "c"]


def test_those_that_have_been_let_in_before_stay():
    assert strangers({"a": RIGHT, "b": off(0.3)}, {"a", "b"}) == {}


def test_logits_that_are_no_numbers_or_too_few_are_of_another_model():
    told = {"a": RIGHT, "b": RIGHT, "c": off(math.nan), "d": RIGHT[:-4], "e": RIGHT[:-1]}
    assert strangers(told, ()) == dict.fromkeys("cde", ModelMismatch(math.inf, TOLERANCE))


def test_who_tells_no_logits_is_not_looked_at():
    assert strangers({"a": RIGHT, "b": b""}, ()) == {}
