import json
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, get_origin, get_type_hints

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupiterd.cluster.facts import fact_wire, facts
from jupiterd.cluster.facts.attempt_facts import AttemptClosed, AttemptOpened
from jupiterd.cluster.facts.fact_wire import from_wire, to_wire
from jupiterd.cluster.facts.facts import Fact, NodeAdmitted, PairingWindowSet, UnknownFact
from jupiterd.ids import CycleId, NodeId

KINDS = tuple(fact_wire._TYPES.values())

_TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
_INTEGERS = st.integers(-(2**63), 2**64 - 1)
# NaN would break the comparison, not the transport.
_FLOATS = st.floats(allow_nan=False)
_SCALARS = st.none() | st.booleans() | _INTEGERS | _FLOATS | _TEXTS

_BY_FIELD_TYPE = {
    str: _TEXTS,
    int: _INTEGERS,
    float: _FLOATS,
    bool: st.booleans(),
    bytes: st.binary(max_size=20),
    tuple: st.lists(_TEXTS, max_size=3).map(tuple),
}
_BY_FIELD_NAME = {
    "outputs": st.dictionaries(_TEXTS, _TEXTS, max_size=3),
    "counts": st.dictionaries(_TEXTS, _FLOATS, max_size=3),
    "last_seen": st.dictionaries(_TEXTS, _INTEGERS, max_size=3),
    "source": st.dictionaries(_TEXTS, _SCALARS, max_size=3),
    "settings": st.dictionaries(_TEXTS, _SCALARS, max_size=3),
    "generator": st.dictionaries(_TEXTS, _SCALARS, max_size=3),
    "judge": st.dictionaries(_TEXTS, _SCALARS, max_size=3),
    "summary": st.dictionaries(_TEXTS, _SCALARS, max_size=3),
    "batches": st.dictionaries(_TEXTS, _INTEGERS, max_size=3),
    "positions": st.dictionaries(_TEXTS, _TEXTS, max_size=3),
    "left_out": st.dictionaries(_TEXTS, _TEXTS, max_size=3),
    "horizon": st.dictionaries(_TEXTS, _FLOATS, max_size=3),
    "trained_s": st.dictionaries(_TEXTS, _FLOATS, max_size=3),
    "pseudo_gradient_bytes": st.dictionaries(_TEXTS, _INTEGERS, max_size=3),
}


def _values(name: str, hint: Any) -> st.SearchStrategy[Any]:
    plain = get_origin(hint) or getattr(hint, "__supertype__", hint)
    return _BY_FIELD_NAME[name] if plain is Mapping else _BY_FIELD_TYPE[plain]


def _facts_of(kind: type[Fact]) -> st.SearchStrategy[Fact]:
    hints = get_type_hints(kind)
    return st.builds(
        kind, **{item.name: _values(item.name, hints[item.name]) for item in fields(kind)}
    )


known_facts = st.one_of([_facts_of(kind) for kind in KINDS])


def _over_the_wire(fact: Fact) -> Fact:
    packed = msgpack.packb(to_wire(fact), use_bin_type=True)
    return from_wire(*msgpack.unpackb(packed, raw=False))


@given(known_facts)
def test_a_fact_survives_the_wire(fact: Fact):
    assert _over_the_wire(fact) == fact


def test_every_known_fact_has_its_own_name_on_the_wire():
    assert len({kind.TYPE for kind in KINDS}) == len(KINDS)
    assert set(KINDS) == set(facts.KnownFact.__args__)


def test_names_on_the_wire_stay_whatever_facts_and_fields_are_called_here():
    """Ledgers and members of every version know them by these; a new fact adds a row."""
    promised = json.loads((Path(__file__).parent / "golden" / "wire_names.json").read_text())
    assert promised == {
        name: [kind.VERSION, list(fact_wire._fields_of(kind).values())]
        for name, kind in fact_wire._TYPES.items()
    }


def test_a_field_of_another_name_is_read_back_by_its_name_on_the_wire():
    fact = AttemptClosed(CycleId("c"), 7, "it ended")
    assert to_wire(fact)[:2] == ("EpochClosed", 1)
    assert to_wire(fact)[2]["epoch"] == 7
    assert _over_the_wire(fact) == fact


@given(known_facts)
def test_a_fact_of_a_newer_version_is_kept_and_relayed_as_it_came(fact: Fact):
    type_name, version, body = to_wire(fact)
    newer = from_wire(type_name, version + 1, body)
    assert isinstance(newer, UnknownFact)
    assert to_wire(newer) == (type_name, version + 1, body)


@pytest.mark.parametrize(
    "body", [{}, {"is_open": True}, {"is_open": True, "edit": 1, "more": 2}], ids=str
)
def test_fields_that_do_not_fit_make_an_unknown_fact(body):
    assert from_wire("WindowSet", 1, body) == UnknownFact("WindowSet", 1, body)


def test_a_fact_from_before_a_field_was_added_has_its_default():
    fact = AttemptOpened(CycleId("c"), 1, 2, (NodeId("a"),), "torch", "", 0)
    type_name, version, body = to_wire(fact)
    del body["engine_reason"]
    assert from_wire(type_name, version, body) == fact


def test_a_field_that_says_nothing_is_left_out_so_that_older_builds_fold_the_fact():
    whole = AttemptOpened(CycleId("c"), 1, 2, (NodeId("a"),), "torch", "", 0)
    cut = replace(whole, stage=2, parts=(600, 400))
    assert {"stage", "parts"}.isdisjoint(to_wire(whole)[2])
    assert {"stage", "parts"} <= to_wire(cut)[2].keys()
    assert [_over_the_wire(fact) for fact in (whole, cut)] == [whole, cut]


def test_a_type_nobody_knows_makes_an_unknown_fact():
    fact = from_wire("MoonLanded", 1, {"year": 1969})
    assert fact == UnknownFact("MoonLanded", 1, {"year": 1969})
    assert _over_the_wire(fact) == fact


def test_bytes_stay_bytes():
    admitted = NodeAdmitted("n" * 32, "alpha", b"-----BEGIN\x00\xff", "first")
    assert _over_the_wire(admitted) == admitted
    assert _over_the_wire(PairingWindowSet(is_open=False, edit=4)) == PairingWindowSet(
        is_open=False, edit=4
    )
