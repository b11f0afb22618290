"""Every command survives its way over the wire, and is refused in words where it can't be read."""

import json
import pkgutil
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, fields
from importlib import import_module
from types import NoneType
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupiterd.errors import UsageError
from jupiterd.protocol import commands
from jupiterd.protocol.commands.check_commands import CheckLinks
from jupiterd.protocol.commands.command import HINT, Command, PlainMap, wire_name
from jupiterd.protocol.commands.cycle_commands import ExtendCycle, SwitchBranch
from jupiterd.protocol.commands.data_commands import PrepareData, PurgeSource
from jupiterd.protocol.commands.script_commands import ReportRefusedConnections, ShipFolder
from jupiterd.protocol.commands.train_commands import StartTraining


def all_commands() -> Iterator[type[Command]]:
    """Yield every command that has a verb."""
    for module in pkgutil.iter_modules(commands.__path__):
        found = vars(import_module(f"{commands.__name__}.{module.name}")).values()
        for kind in found:
            if isinstance(kind, type) and issubclass(kind, Command) and kind.VERB:
                yield kind


COMMANDS = sorted(set(all_commands()), key=lambda kind: kind.VERB)

_texts = st.text(max_size=8)
_maps = st.dictionaries(_texts, st.none() | st.booleans() | st.integers() | _texts, max_size=3)
_values: Mapping[object, st.SearchStrategy[object]] = {
    str: _texts,
    bool: st.booleans(),
    int: st.integers(),
    PlainMap: _maps,
    tuple[str, ...]: st.lists(_texts, max_size=3).map(tuple),
    tuple[PlainMap, ...]: st.lists(_maps, max_size=3).map(tuple),
}


def _value_of(field: "Field[object]") -> st.SearchStrategy[object]:
    options = get_args(field.type)
    if NoneType not in options:
        return _values[field.type]
    return st.none() | _values[options[0]]


def _a(kind: type[Command]) -> st.SearchStrategy[Command]:
    return st.fixed_dictionaries({field.name: _value_of(field) for field in fields(kind)}).map(
        lambda given: kind(**given)
    )


def test_each_verb_has_one_command() -> None:
    verbs = [kind.VERB for kind in COMMANDS]
    assert len(set(verbs)) == len(verbs) > 30


@given(st.sampled_from(COMMANDS).flatmap(_a))
def test_a_command_is_the_same_after_its_way_over_the_wire(command: Command) -> None:
    assert type(command).read(json.loads(json.dumps(command.to_plain()))) == command


@pytest.mark.parametrize("kind", COMMANDS, ids=lambda kind: kind.VERB)
def test_each_field_that_is_needed_is_named_where_it_is_missing(kind: type[Command]) -> None:
    needed = [
        wire_name(field)
        for field in fields(kind)
        if field.default is MISSING and field.default_factory is MISSING
    ]
    whole: dict[str, object] = {
        "source": {"kind": "folder"} if kind is PrepareData else "docs",
        **dict.fromkeys(("files", "hosts"), ("x",)),
        "nodes": ("x",) if kind is ShipFolder else "all",
        "count": 1,
    }
    given = {name: whole.get(name, "x") for name in needed}
    assert kind.read(given).VERB == kind.VERB
    for name in needed:
        for rest in ({**given, name: None}, {k: v for k, v in given.items() if k != name}):
            with pytest.raises(UsageError) as refused:
                kind.read(rest)
            assert refused.value.message == f"{kind.VERB} came without {name}, which it needs"
            assert refused.value.hint == HINT


@pytest.mark.parametrize(
    ("kind", "given", "why"),
    [
        (PrepareData, {"name": "x", "source": "docs"}, "data.prepare: source isn't a map"),
        (ExtendCycle, {"rounds": "many"}, "cycle.extend: rounds isn't a whole number"),
        (ExtendCycle, {"rounds": float("inf")}, "cycle.extend: rounds isn't a whole number"),
        (
            ReportRefusedConnections,
            {"count": 1, "hosts": "here"},
            "script.knocked: hosts isn't a list",
        ),
        (StartTraining, {"model": "1m", "settings": []}, "train.start: settings isn't a map"),
    ],
)
def test_a_field_of_another_kind_is_refused(kind: type[Command], given: PlainMap, why: str) -> None:
    with pytest.raises(UsageError) as refused:
        kind.read(given)
    assert (refused.value.message, refused.value.hint) == (why, HINT)


@pytest.mark.parametrize("given", [None, [], "x", 3])
def test_fields_that_are_no_map_are_refused(given: object) -> None:
    with pytest.raises(UsageError, match=r"arguments of cluster\.switch are no map"):
        SwitchBranch.read(given)


def test_a_number_may_be_written_and_whatever_else_is_read_as_text() -> None:
    assert ExtendCycle.read({"rounds": "2", "cycle": 7}) == ExtendCycle(rounds=2, cycle="7")
    assert PurgeSource.read({"source": "docs"}) == PurgeSource(source="docs")


def test_what_nobody_said_is_left_out() -> None:
    assert ExtendCycle().to_plain() == {"rounds": 1}
    assert CheckLinks(node="a").to_plain() == {"node": "a"}
    assert CheckLinks(node="a", asker="b").to_plain() == {"node": "a", "from": "b"}
    assert StartTraining(model="1m").to_plain() == {"model": "1m", "settings": {}}


def test_what_a_later_version_says_is_kept_apart() -> None:
    told = {"rounds": 2, "colour": "red"}
    assert ExtendCycle.read(told) == ExtendCycle(rounds=2)
    assert ExtendCycle.unknown_fields(told) == {"colour": "red"}
