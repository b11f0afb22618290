"""Who is taken for the one whose weights and momentum have drifted."""

from jupiterd.cycle.training.state_divergence import adrift

RIGHT, OTHER, THIRD = (bytes([number]) * 32 for number in (1, 2, 3))


def test_who_has_what_all_others_have_is_not_adrift():
    assert adrift({"a": RIGHT, "b": RIGHT, "c": RIGHT}, "abc") == ()


def test_a_state_that_most_do_not_have_is_adrift_whoever_comes_first():
    assert adrift({"a": OTHER, "b": RIGHT, "c": RIGHT}, "abc") == ("a",)
    assert adrift({"a": OTHER, "b": RIGHT, "c": RIGHT, "d": THIRD}, "abcd") == ("a", "d")


def test_where_it_is_a_draw_all_go_on_with_what_the_first_one_has():
    assert adrift({"b": OTHER, "a": RIGHT}, "ab") == ("b",)
    assert adrift({"b": RIGHT, "a": OTHER}, "ab") == ("b",)
    four = {"d": RIGHT, "c": RIGHT, "b": OTHER, "a": OTHER}
    assert adrift(four, "abcd") == ("c", "d")
    assert adrift({"a": OTHER, "b": RIGHT, "c": THIRD}, "abc") == ("b", "c")


def test_who_tells_nothing_is_not_looked_at():
    assert adrift({"a": b"", "b": RIGHT}, "ab") == ()
    assert adrift({"a": b"", "b": b"", "c": RIGHT, "d": OTHER}, "abcd") == ("d",)
    assert adrift({}, "ab") == ()


def test_one_whose_way_is_no_number_has_a_say_and_may_be_adrift_itself():
    assert adrift({"a": OTHER, "b": RIGHT, "c": RIGHT}, "ab") == ("a",)
    assert adrift({"a": RIGHT, "b": RIGHT, "c": OTHER}, "ab") == ("c",)


def test_what_no_way_that_can_be_merged_leads_on_from_is_not_gone_on_with():
    assert adrift({"a": RIGHT, "b": OTHER, "c": OTHER}, "a") == ("b", "c")
    assert adrift({"a": b"", "b": RIGHT, "c": OTHER}, "a") == ()


def test_a_newcomer_is_adrift_where_it_differs_from_one_who_was_there_before():
    assert adrift({"a": OTHER, "b": RIGHT}, "ab", before="b") == ("a",)
    assert adrift({"a": OTHER, "b": RIGHT, "c": OTHER, "d": RIGHT}, "abcd", "bd") == ("a", "c")
    assert adrift({"a": OTHER, "b": RIGHT, "c": OTHER}, "abc", before="b") == ("b",), "most have it"
