import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupiterd.cycle.mixing import shuffle_key, take_synthetic
from jupiterd.errors import Bug

OFFERED = [(f"s{number}", 100) for number in range(50)]


def test_the_share_is_never_exceeded_and_nearly_reached():
    taken, reason = take_synthetic(1000, OFFERED, 0.3, "k")
    assert len(taken) == 4  # 400 / 1400 = 28.6 %; five would be 33 %
    assert reason == (
        "4 of 50 synthetic samples, 28.6% of the bytes under a cap of 30%: "
        "more would exceed the cap"
    )


def test_all_are_taken_where_they_fit():
    taken, reason = take_synthetic(1_000_000, OFFERED, 0.3, "k")
    assert len(taken) == 50
    assert reason.endswith("all of them fit")


def test_without_synthetic_samples_the_reason_says_so():
    assert take_synthetic(1000, [], 0.3, "k") == (
        frozenset(),
        "real text alone: there are no synthetic samples",
    )


def test_a_share_of_nothing_takes_nothing():
    assert take_synthetic(1000, OFFERED, 0.0, "k")[0] == frozenset()


def test_a_share_of_everything_is_a_bug():
    with pytest.raises(Bug):
        take_synthetic(1000, OFFERED, 1.0, "k")


def test_another_key_takes_others_in_another_order():
    assert take_synthetic(1000, OFFERED, 0.3, "a")[0] != take_synthetic(1000, OFFERED, 0.3, "b")[0]
    assert shuffle_key("s1", "a") != shuffle_key("s1", "b")


@given(
    st.integers(0, 10_000),
    st.dictionaries(st.text(max_size=5), st.integers(1, 900), max_size=30),
    st.floats(0, 0.6),
)
def test_the_cap_holds_and_the_order_offered_plays_no_part(real_bytes, sizes, share):
    offered = list(sizes.items())
    taken, _ = take_synthetic(real_bytes, offered, share, "k")
    size = sum(sizes[name] for name in taken)
    assert size <= share * (size + real_bytes) + 1e-6
    assert taken == take_synthetic(real_bytes, reversed(offered), share, "k")[0]
