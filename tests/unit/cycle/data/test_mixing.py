import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupiterd.cycle.data.mixing import Offered, share_cap, shuffle_key, take_synthetic
from jupiterd.errors import Bug

OFFERED = [Offered(f"s{number}", 100, f"parent {number}") for number in range(50)]


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
    offered = [Offered(name, size, name) for name, size in sizes.items()]
    taken, _ = take_synthetic(real_bytes, offered, share, "k")
    size = sum(sizes[name] for name in taken)
    assert size <= share * (size + real_bytes) + 1e-6
    assert taken == take_synthetic(real_bytes, reversed(offered), share, "k")[0]


def test_no_document_has_more_than_four_variants():
    of_one = [Offered(f"v{number}", 10, "the same") for number in range(9)]
    taken, reason = take_synthetic(1000, [*of_one, Offered("o", 10, "another")], 0.3, "k")
    assert len(taken) == 5
    assert "o" in taken
    assert reason.endswith("the others are more than 4 of one document")


@pytest.mark.parametrize(
    ("wanted", "is_own", "cap"),
    [
        (None, True, 0.3),
        (None, False, 0.4),
        (0.6, True, 0.3),
        (0.6, False, 0.6),
        (0.1, True, 0.1),
        (0.1, False, 0.1),
    ],
)
def test_our_own_student_may_give_less_than_what_others_made(wanted, is_own, cap):
    assert share_cap(wanted, is_own=is_own) == cap
