"""The arguments of one command, as they came: one that is missing, or no map where one must be.

Owns refusing those, in words: who sends them may be a program of the user's own, or a jupiterctl of
another version. Doesn't know what a command does with them.
"""

from collections.abc import Mapping
from typing import Any, Final

from jupiterd.errors import UsageError

HINT: Final = (
    "jupiterctl gives all that a command needs, where it is of the same version as jupiterd"
)

_MAPS: Final = (
    "arguments", "environment", "generator", "init", "judge", "settings", "training",
)  # fmt: skip
_MAPS_OF: Final[Mapping[str, tuple[str, ...]]] = {"data.prepare": ("source",)}
_LISTS: Final = ("alarms", "devices", "files", "folder_map", "keys", "names", "to_fetch")
_LISTS_OF: Final[Mapping[str, tuple[str, ...]]] = {
    "script.ship": ("nodes",), "script.knocked": ("hosts",),
}  # fmt: skip
_NUMBERS: Final = ("bytes_per_s", "count", "done", "rounds", "seed", "tokens", "total", "uses")


class CommandArguments(dict[str, Any]):
    """A map of them, by their names."""

    def __init__(self, verb: str, given: object) -> None:
        """Take the command, for refusals, and what was said with it.

        Raises:
            UsageError: something in it can't be what it must be.
        """
        if not isinstance(given, Mapping):
            raise UsageError(f"the arguments of {verb} are no map", HINT)
        super().__init__(given)
        self._verb = verb
        self._check()

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401 - as JSON has it
        """Return one that the command needs; raises UsageError where it is missing."""
        if (value := self.get(name)) is None:
            raise UsageError(f"{self._verb} came without {name}, which it needs", HINT)
        return value

    def _check(self) -> None:
        for names, is_such, word in (
            (_MAPS + _MAPS_OF.get(self._verb, ()), _is_map, "a map"),
            (_LISTS + _LISTS_OF.get(self._verb, ()), _is_list, "a list"),
            (_NUMBERS, _is_number, "a whole number"),
        ):
            for name in names:
                value = self.get(name)
                if value is not None and not is_such(value):
                    raise UsageError(f"{self._verb}: {name} isn't {word}", HINT)


def _is_map(value: object) -> bool:
    return isinstance(value, Mapping)


def _is_list(value: object) -> bool:
    return isinstance(value, list | tuple | set | frozenset)


def _is_number(value: object) -> bool:
    try:
        int(value)  # pyright: ignore[reportArgumentType] - that is what is asked
    except (TypeError, ValueError, OverflowError):
        return False
    return True
