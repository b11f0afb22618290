from hypothesis import given
from hypothesis import strategies as st

from jupiterd.cycle.split import in_holdout

NAMES = [f"module{number}" for number in range(5000)]


def test_the_fraction_of_clusters_is_held_out():
    held = sum(in_holdout(name, "salt", 0.2) for name in NAMES)
    assert 900 < held < 1100


def test_another_salt_holds_out_others():
    first = {name for name in NAMES if in_holdout(name, "a", 0.2)}
    second = {name for name in NAMES if in_holdout(name, "b", 0.2)}
    assert 100 < len(first & second) < 300


def test_the_choice_never_changes_between_versions():
    held = [number for number in range(16) if in_holdout(f"c{number}", "pin", 0.5)]
    assert held == [0, 5, 7, 8, 9, 12, 13, 15]


@given(st.text(), st.text(min_size=1), st.floats(0.05, 0.5), st.floats(0.05, 0.5))
def test_a_larger_fraction_holds_out_all_that_a_smaller_one_does(cluster, salt, one, other):
    low, high = sorted((one, other))
    assert in_holdout(cluster, salt, high) or not in_holdout(cluster, salt, low)
