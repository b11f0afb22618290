"""The values that say how an answer is drawn."""

import pytest

from jupiterd.ctl.chat.sampling import LARGEST_SEED, Sampling
from jupiterd.errors import UsageError


def test_only_what_was_given_is_sent():
    assert Sampling().fields() == {}
    assert Sampling(temperature=0.0, seed=3).fields() == {"temperature": 0.0, "seed": 3}


def test_values_are_set_by_name_and_taken_away():
    given = Sampling().with_value("temperature", "0.5").with_value("num_predict", "40")
    assert given == Sampling(temperature=0.5, max_tokens=40)
    assert given.with_value("temperature", "") == Sampling(max_tokens=40)


@pytest.mark.parametrize(
    ("name", "text"),
    [("temperature", "hot"), ("temperature", "2.1"), ("temperature", "nan"), ("top_p", "0"),
     ("top_p", "inf"), ("max_tokens", "0"), ("max_tokens", "1.5"), ("seed", "-1"), ("colour", "1")],
)  # fmt: skip
def test_what_cant_be_is_refused_in_one_line(name, text):
    with pytest.raises(UsageError) as caught:
        Sampling().with_value(name, text)
    assert caught.value.hint
    assert "\n" not in caught.value.message


def test_another_answer_has_another_seed():
    assert Sampling(seed=7).again() == Sampling(seed=8)
    assert Sampling(seed=LARGEST_SEED - 1).again() == Sampling(seed=0)
    assert Sampling().again() == Sampling()
