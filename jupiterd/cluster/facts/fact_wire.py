"""The form of facts on the wire: type, version and fields.

Owns it, and what becomes of a fact that another version has written: unknown ones are kept and
relayed, not folded. A fact's TYPE is its name on the wire, and WIRE_NAMES has those of fields that
are called otherwise here; neither ever changes. Fields in UNTOLD are left out as long as they say
nothing: older builds, which know none, fold the fact as ever. Doesn't know what a fact says.
"""

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from functools import cache
from typing import Any, NoReturn, get_args

from jupiterd.cluster.facts.facts import Fact, KnownFact, UnknownFact

Values = tuple[Any, ...]

_TYPES: Mapping[str, type[KnownFact]] = {kind.TYPE: kind for kind in get_args(KnownFact)}


def to_wire(fact: Fact) -> tuple[str, int, dict[str, Any]]:
    """Return (type, version, fields) with nothing but what msgpack knows inside."""
    if isinstance(fact, UnknownFact):
        return fact.type, fact.version, dict(fact.body)
    untold: frozenset[str] = getattr(fact, "UNTOLD", frozenset())
    said = {
        wire: value
        for name, wire in _fields_of(type(fact)).items()
        if (value := getattr(fact, name)) or name not in untold
    }
    return fact.TYPE, fact.VERSION, said


def from_wire(type_name: str, version: int, body: Mapping[str, Any]) -> Fact:
    """Rebuild a fact; unknown types, versions and fields that don't fit become an UnknownFact.

    Fields with a default may be missing: they came later than the fact.
    """
    kind = _TYPES.get(type_name)
    if kind is None or version != kind.VERSION or not _fit(kind, set(body)):
        return UnknownFact(type_name, version, body)
    values: dict[str, Any] = {
        name: tuple(value) if isinstance(value := body[wire], list) else value
        for name, wire in _fields_of(kind).items()
        if wire in body
    }
    return kind(**values)


def reader(type_name: str, version: int, names: tuple[str, ...]) -> Callable[[Values], Fact]:
    """Return what rebuilds a fact of the values of these fields, as `from_wire` does of a map.

    It raises ValueError where there are more values than names, or fewer.
    """
    kind = _TYPES.get(type_name)
    if kind is not None and version == kind.VERSION and names == tuple(_fields_of(kind).values()):
        return lambda values: kind(*values) if len(values) == len(names) else _miscounted()
    return lambda values: from_wire(type_name, version, dict(zip(names, values, strict=True)))


def _miscounted() -> NoReturn:
    raise ValueError("a fact has as many values as it has fields")


def _fit(kind: type[KnownFact], names: set[str]) -> bool:
    return _needed(kind) <= names and names.issubset(_fields_of(kind).values())


@cache
def _fields_of(kind: type[KnownFact]) -> Mapping[str, str]:
    """Return the names of all fields, in their order, each with its name on the wire."""
    wire: Mapping[str, str] = getattr(kind, "WIRE_NAMES", {})
    return {item.name: wire.get(item.name, item.name) for item in fields(kind)}


@cache
def _needed(kind: type[KnownFact]) -> frozenset[str]:
    """Return the names on the wire of the fields that have no default."""
    names = _fields_of(kind)
    return frozenset(
        names[item.name]
        for item in fields(kind)
        if item.default is MISSING and item.default_factory is MISSING
    )
