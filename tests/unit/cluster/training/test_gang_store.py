"""The store where ranks meet answers what there is, and grows no further than its bounds."""

import pytest

from jupiterd.cluster.training import gang_store
from jupiterd.cluster.training.gang_store import GangStore, StoreQuestion
from jupiterd.cluster.training.store_place import StorePlace
from jupiterd.errors import MalformedError, TooLargeError
from jupiterd.ids import NodeId
from jupiterd.protocol.frames import unpacked_values


def asked(store: GangStore, verb: str, *keys: str, values: tuple[bytes, ...] = ()) -> bytes | None:
    return store.answer(StoreQuestion.of(verb, keys, values))


def test_what_is_not_there_yet_has_no_answer_until_somebody_sets_it():
    store = GangStore()
    assert asked(store, "get", "a") is None
    assert asked(store, "wait", "a", "b") is None
    asked(store, "set", "a", values=(b"1",))
    assert asked(store, "get", "a") == b"1"
    assert asked(store, "wait", "a", "b") is None
    asked(store, "add", "b", values=(b"2",))
    assert asked(store, "wait", "a", "b") == gang_store.YES


def test_several_values_are_answered_together_once_all_are_there(monkeypatch: pytest.MonkeyPatch):
    store = GangStore()
    asked(store, "set", "a", values=(b"1",))
    assert asked(store, "get_all", "b", "a") is None
    asked(store, "set", "b", values=(b"",))
    packed = asked(store, "get_all", "b", "a")
    assert packed is not None
    assert unpacked_values(packed) == [b"", b"1"]
    monkeypatch.setattr(gang_store, "MAX_ANSWER_BYTES", 3)
    with pytest.raises(TooLargeError):
        asked(store, "get_all", "a", "a", "a", "a")


@pytest.mark.parametrize("odd", [b"\0", b"\0\0\0\2x", b"\xff\xff\xff\xff"])
def test_half_an_answer_is_refused(odd: bytes):
    with pytest.raises(MalformedError):
        unpacked_values(odd)


def test_a_store_holds_so_many_keys_and_bytes_and_no_more(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(gang_store, "MAX_KEYS", 2)
    monkeypatch.setattr(gang_store, "MAX_STORE_BYTES", 10)
    store = GangStore()
    asked(store, "set", "a", values=(b"1234",))
    asked(store, "set", "b", values=(b"1234",))
    for key, value in (("c", b""), ("a", b"12345")):
        with pytest.raises(TooLargeError):
            asked(store, "set", key, values=(value,))
    assert asked(store, "get", "a") == b"1234", "what was refused has changed nothing"
    asked(store, "delete", "b")
    asked(store, "set", "a", values=(b"123456789",))
    assert asked(store, "count") == b"1"


@pytest.mark.parametrize(
    ("verb", "keys", "values"),
    [
        ("drop", ["a"], []),
        ("set", ["a"], []),
        ("set", [], [b"1"]),
        ("get", ["a", "b"], []),
        ("compare_set", ["a"], [b"1"]),
        ("count", ["a"], []),
        ("get_all", [], []),
        ("get_all", ["a"], [b"1"]),
        ("add", ["a"], [b"one"]),
    ],
)
def test_a_question_that_makes_no_sense_is_refused(verb: str, keys: list[str], values: list[bytes]):
    with pytest.raises(MalformedError):
        GangStore().answer(StoreQuestion.of(verb, keys, values))


@pytest.mark.parametrize(
    ("keys", "values"),
    [
        (["k" * (gang_store.MAX_KEY_CHARACTERS + 1)], [b""]),
        (["k"], [b"v" * (gang_store.MAX_VALUE_BYTES + 1)]),
        (["k"], [b"1" + b"0" * 60_000]),
    ],
)
def test_a_question_that_is_too_large_is_refused(keys: list[str], values: list[bytes]):
    verb = "add" if values[0].startswith(b"1") else "set"
    with pytest.raises(TooLargeError):
        GangStore().answer(StoreQuestion.of(verb, keys, values))


def test_an_order_says_where_its_gang_meets_or_it_is_refused():
    place = StorePlace.of("c/r1/1", [NodeId("a"), NodeId("b"), NodeId("a")])
    assert place.members == ("a", "b")
    assert StorePlace.from_plain(place.to_plain()) == place
    for broken in (None, {}, {"name": "c", "holder": "a", "members": [1]}, {"name": "c"}):
        with pytest.raises(MalformedError):
            StorePlace.from_plain(broken)
