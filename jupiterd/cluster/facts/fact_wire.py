"""The form of facts on the wire: type, version and fields.

Owns it, and what becomes of a fact that another version has written: unknown ones are kept and
relayed, not folded. Doesn't know what a fact says.
"""

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from functools import cache
from typing import Any, NoReturn, get_args

from jupiterd.cluster.facts.facts import Fact, KnownFact, UnknownFact

Values = tuple[Any, ...]

_TYPES: Mapping[str, type[KnownFact]] = {kind.__name__: kind for kind in get_args(KnownFact)}


def to_wire(fact: Fact) -> tuple[str, int, dict[str, Any]]:
    """Return (type, version, fields) with nothing but what msgpack knows inside."""
    if isinstance(fact, UnknownFact):
        return fact.type, fact.version, dict(fact.body)
    return type(fact).__name__, fact.VERSION, {name: getattr(fact, name) for name in _names(fact)}


def from_wire(type_name: str, version: int, body: Mapping[str, Any]) -> Fact:
    """Rebuild a fact; unknown types, versions and fields that don't fit become an UnknownFact.

    Fields with a default may be missing: they came later than the fact.
    """
    kind = _TYPES.get(type_name)
    if kind is None or version != kind.VERSION or not _fit(kind, set(body)):
        return UnknownFact(type_name, version, body)
    values: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in body.items()
    }
    return kind(**values)


def reader(type_name: str, version: int, names: tuple[str, ...]) -> Callable[[Values], Fact]:
    """Return what rebuilds a fact of the values of these fields, as `from_wire` does of a map.

    It raises ValueError where there are more values than names, or fewer.
    """
    kind = _TYPES.get(type_name)
    if kind is not None and version == kind.VERSION and names == _fields_of(kind)[0]:
        return lambda values: kind(*values) if len(values) == len(names) else _miscounted()
    return lambda values: from_wire(type_name, version, dict(zip(names, values, strict=True)))


def _miscounted() -> NoReturn:
    raise ValueError("a fact has as many values as it has fields")


def _names(fact: KnownFact) -> tuple[str, ...]:
    return _fields_of(type(fact))[0]


def _fit(kind: type[KnownFact], names: set[str]) -> bool:
    known, needed = _fields_of(kind)
    return needed <= names and names.issubset(known)


@cache
def _fields_of(kind: type[KnownFact]) -> tuple[tuple[str, ...], frozenset[str]]:
    """Return the names of all fields, in their order, and of those that have no default."""
    needed = (
        item.name
        for item in fields(kind)
        if item.default is MISSING and item.default_factory is MISSING
    )
    return tuple(item.name for item in fields(kind)), frozenset(needed)
