from hypothesis import given
from hypothesis import strategies as st

from jupiterd.cycle.data.split import held_out_part, in_holdout, part_of

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


def parts(fraction=0.4, dev=0.25, vault=0.25):
    return {name: part_of(name, "salt", fraction, dev, vault) for name in NAMES}


def test_the_parts_are_the_holdout_and_about_as_large_as_their_shares():
    found = parts()
    held = [part for name, part in found.items() if in_holdout(name, "salt", 0.4)]
    assert all((part != "train") == in_holdout(name, "salt", 0.4) for name, part in found.items())
    for part, share in (("dev", 0.25), ("vault", 0.25), ("gate", 0.5)):
        assert abs(held.count(part) / len(held) - share) < 0.05


def test_what_is_held_out_stays_in_its_part_when_more_is():
    small, large = parts(fraction=0.1), parts(fraction=0.5)
    held = [name for name, part in small.items() if part != "train"]
    assert held
    assert all(small[name] == large[name] for name in held)


def test_without_shares_the_gate_has_everything():
    assert set(parts(dev=0.0, vault=0.0).values()) == {"train", "gate"}


def test_the_parts_never_change():
    """Pinned: with another answer all scores of old cycles would be of other documents."""
    names = [part_of(f"c{number}", "pin", 0.5, 0.25, 0.25) for number in range(16)]
    assert "".join(name[0] for name in names) == "gttttvtddvttvvtg"


def test_a_sample_from_before_there_were_parts_is_for_the_gate():
    assert [held_out_part(split) for split in ("train", "dev", "vault")] == ["gate", "dev", "vault"]
