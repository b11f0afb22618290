"""What all commands have: a verb, and fields that become a plain map and are read from one.

Owns both ways, and refusing in words what can't be read: who sends it may be a program of the
user's own, or a jupiterctl of another version. A field's type says its form on the wire; None and
False are left out there. Doesn't know any verb, or what a command does with its fields. Pure.
"""

from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, dataclass, fields
from types import NoneType
from typing import ClassVar, Final, NoReturn, Self, cast, get_args

from jupiterd.errors import UsageError

PlainMap = Mapping[str, object]
"""A map as JSON has it."""

HINT: Final = (
    "jupiterctl gives all that a command needs, where it is of the same version as jupiterd"
)

WIRE: Final = "wire"
"""In a field's metadata: its name on the wire, where that is no name in Python."""


@dataclass(frozen=True, kw_only=True)
class Command:
    """What is ordered, and with what."""

    VERB: ClassVar[str] = ""

    def to_plain(self) -> dict[str, object]:
        """Return its fields as they travel."""
        plain: dict[str, object] = {}
        for field in fields(self):
            value: object = getattr(self, field.name)
            if value is not None and value is not False:
                plain[wire_name(field)] = _plain(value)
        return plain

    @classmethod
    def read(cls, given: object) -> Self:
        """Return the command that was given with these fields; those of later versions are ignored.

        Raises:
            UsageError: one is missing, or can't be what it must be.
        """
        plain = plain_map_of(cls.VERB, given)
        known = ((field, plain.get(wire_name(field))) for field in fields(cls))
        return cls(
            **{
                field.name: cls._read_field(field, value)
                for field, value in known
                if value is not None or _is_needed(field)
            }
        )

    @classmethod
    def unknown_fields(cls, given: PlainMap) -> dict[str, object]:
        """Return what a later version says beside them."""
        known = {wire_name(field) for field in fields(cls)}
        return {name: value for name, value in given.items() if name not in known}

    def lacks(self, field: str) -> NoReturn:
        """Refuse it for a field that it needs as it is given."""
        raise _missing(self.VERB, field)

    @classmethod
    def _read_field(cls, field: "Field[object]", value: object) -> object:
        name = wire_name(field)
        if value is None:
            raise _missing(cls.VERB, name)
        is_such, word, read = _FORMS[_form(field)]
        if not is_such(value):
            raise UsageError(f"{cls.VERB}: {name} isn't {word}", HINT)
        return read(value)


def plain_map_of(verb: str, given: object) -> PlainMap:
    """Return the fields that came with a command; raises UsageError where they are no map."""
    if not isinstance(given, Mapping):
        raise UsageError(f"the arguments of {verb} are no map", HINT)
    return cast("PlainMap", given)


def wire_name(field: "Field[object]") -> str:
    """Return a field's name on the wire."""
    return str(field.metadata.get(WIRE, field.name))


def _missing(verb: str, name: str) -> UsageError:
    return UsageError(f"{verb} came without {name}, which it needs", HINT)


def _is_needed(field: "Field[object]") -> bool:
    return field.default is MISSING and field.default_factory is MISSING


def _form(field: "Field[object]") -> object:
    """Return the type of a field's value where it has one."""
    options = [each for each in get_args(field.type) if each is not NoneType]
    return options[0] if NoneType in get_args(field.type) else field.type


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(cast("PlainMap", value))
    if isinstance(value, tuple):
        return [_plain(each) for each in cast("tuple[object, ...]", value)]
    return value


def _is_anything(_value: object) -> bool:
    return True


def _is_map(value: object) -> bool:
    return isinstance(value, Mapping)


def _is_list(value: object) -> bool:
    return isinstance(value, list | tuple | set | frozenset)


def _is_number(value: object) -> bool:
    try:
        _number(value)
    except (TypeError, ValueError, OverflowError):
        return False
    return True


def _number(value: object) -> int:
    return int(value)  # pyright: ignore[reportArgumentType] - whether it can is asked before


def _map(value: object) -> PlainMap:
    return dict(cast("PlainMap", value))


def _texts(value: object) -> tuple[str, ...]:
    return tuple(map(str, cast("list[object]", value)))


def _maps(value: object) -> tuple[PlainMap, ...]:
    """Return a list's maps; whatever else is in it counts as an empty one."""
    return tuple(
        _map(each) if isinstance(each, Mapping) else {} for each in cast("list[object]", value)
    )


_FORMS: Final[Mapping[object, tuple[Callable[[object], bool], str, Callable[[object], object]]]] = {
    str: (_is_anything, "text", str),
    bool: (_is_anything, "true or false", bool),
    int: (_is_number, "a whole number", _number),
    PlainMap: (_is_map, "a map", _map),
    tuple[str, ...]: (_is_list, "a list", _texts),
    tuple[PlainMap, ...]: (_is_list, "a list", _maps),
}
"""Type -> whether a value can be read as it, what that is called, and how it is read."""
