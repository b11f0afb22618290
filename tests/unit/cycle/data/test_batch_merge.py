from hypothesis import given
from hypothesis import strategies as st

from jupiterd.cycle.data.batch_merge import knew_of, united, uniting_id, without_repeated


def counts(*purged):
    return {"kept": 1.0, **{f"left_out:{source}": 0.0 for source in purged}}


def test_another_purge_is_another_uniting_whoever_asks():
    assert uniting_id(3, []) == "r3/filter/0"
    assert uniting_id(3, ["b", "a"]) == uniting_id(3, {"a", "b"})
    ids = {uniting_id(number, purged) for number in (1, 2) for purged in ([], ["a"], ["a", "b"])}
    assert len(ids) == 6


def test_the_one_that_knew_of_most_purges_counts():
    done = {
        uniting_id(1, purged): counts(*purged) for purged in ([], ["a", "b"], ["a"])
    } | {"r1/filter/1": counts(), "r12/filter/0": counts("a", "b", "c")}  # fmt: skip
    assert united(1, done) == uniting_id(1, ["a", "b"])
    assert united(2, done) == ""
    assert without_repeated(done) == {uniting_id(1, ["a", "b"]), "r1/filter/1", "r12/filter/0"}


def test_it_is_known_which_purges_one_knew_of():
    assert knew_of(counts("a", "b"), ["a"])
    assert not knew_of(counts("a"), ["a", "b"])
    assert knew_of(counts(), [])


@given(st.dictionaries(st.text("r1/filter0ab", max_size=14), st.just({}), max_size=8))
def test_other_items_all_count_however_they_are_called(done):
    others = {item for item in done if item.split("/")[1:3] != ["filter", "0"]}
    assert others <= without_repeated(done) <= done.keys()
