from jupiterd.cluster.facts.facts import CycleStateSet
from jupiterd.cluster.ledger.lww_registers import Register, canonical_bytes, fact_hash
from tests.support.cluster.building import commanded, started


def test_equal_values_have_equal_bytes_whatever_order_their_keys_came_in() -> None:
    one = {"b": [1, {"y": 2, "x": (3,)}], "a": b"c"}
    other = {"a": b"c", "b": (1, {"x": [3], "y": 2})}
    assert canonical_bytes(one) == canonical_bytes(other)
    assert canonical_bytes(one) != canonical_bytes({"a": "c", "b": one["b"]})


def test_a_fact_is_known_by_what_it_says() -> None:
    assert fact_hash(started()) == fact_hash(started())
    assert fact_hash(started()) != fact_hash(started(rounds=9))


def test_a_register_says_whether_an_offer_won() -> None:
    register: Register[str, CycleStateSet] = Register(greatest_wins=True)
    assert register.rank("k") is None
    assert register.offer("k", commanded("running", 1), (1,))
    assert not register.offer("k", commanded("running", 1), (1,))
    assert not register.offer("k", commanded("stopped", 0), (0,))
    assert register.offer("k", commanded("stopped", 2), (2,))
    assert register.rank("k") == (2,)
