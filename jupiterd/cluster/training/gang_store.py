"""The store where the ranks of an attempt find each other: keys and values, and their bounds.

Owns what it holds, and what each question does to it. Doesn't know who asks, or how a rank waits
for what isn't there yet. What it answers is what torch's own stores answer.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from jupiterd.errors import MalformedError, TooLargeError
from jupiterd.protocol.frames import StoreVerb, packed_values

MAX_KEYS: Final = 4096
MAX_KEY_CHARACTERS: Final = 512
MAX_VALUE_BYTES: Final = 64 << 10
MAX_STORE_BYTES: Final = 4 << 20
"""Of all its keys and values. A rank of gloo leaves some 200 bytes, NCCL as many for a group."""

MAX_REQUESTED_KEYS: Final = 256
MAX_ANSWER_BYTES: Final = 768 << 10
"""Of several values that are asked for at once: less than fits into a frame."""

MAX_SUM: Final = 2**63 - 1
"""Of what is added up, as torch has it."""

YES: Final = b"1"
NO: Final = b""


@dataclass(frozen=True)
class StoreQuestion:
    """What a rank asks."""

    verb: StoreVerb
    keys: tuple[str, ...] = ()
    values: tuple[bytes, ...] = ()

    @classmethod
    def of(cls, verb: str, keys: Sequence[str], values: Sequence[bytes]) -> "StoreQuestion":
        """Return a question from outside.

        Raises:
            MalformedError: there is no such verb, or it wants another number of keys or values.
            TooLargeError: it has too many of them, or one that is too large.
        """
        if verb not in StoreVerb.__members__.values():
            raise MalformedError("a gang's store knows no such question")
        question = cls(StoreVerb(verb), tuple(keys), tuple(values))
        if not question._is_whole():
            raise MalformedError(f"a question to a gang's store, {verb}, lacks a part of it")
        if len(keys) > MAX_REQUESTED_KEYS or any(len(key) > MAX_KEY_CHARACTERS for key in keys):
            raise TooLargeError("a question to a gang's store has too many keys, or too long ones")
        if any(len(value) > MAX_VALUE_BYTES for value in values):
            raise TooLargeError(f"a value in a gang's store has {MAX_VALUE_BYTES} bytes at most")
        return question

    def _is_whole(self) -> bool:
        given = len(self.keys), len(self.values)
        match self.verb:
            case StoreVerb.CHECK | StoreVerb.WAIT:
                return given[1] == 0
            case StoreVerb.COUNT:
                return given == (0, 0)
            case StoreVerb.GET | StoreVerb.DELETE:
                return given == (1, 0)
            case StoreVerb.GET_ALL:
                return given[0] > 0 and given[1] == 0
            case StoreVerb.SET | StoreVerb.ADD:
                return given == (1, 1)
            case StoreVerb.COMPARE_SET:
                return given == (1, 2)

    @property
    def changes(self) -> bool:
        """Say whether what others wait for may be there after it."""
        return bool(self.values)


class GangStore:
    """One attempt's."""

    def __init__(self) -> None:
        self._values: dict[str, bytes] = {}
        self._size_bytes = 0

    def answer(self, question: StoreQuestion) -> bytes | None:
        """Return the answer; None where a key that is to be waited for isn't there yet.

        Raises:
            TooLargeError: it would hold more than it may.
            MalformedError: what is to be added up is no whole number.
        """
        keys, values = question.keys, question.values
        match question.verb:
            case StoreVerb.GET:
                found = self._values.get(keys[0])
            case StoreVerb.GET_ALL:
                found = self._all_of(keys) if self._has(keys) else None
            case StoreVerb.WAIT:
                found = YES if self._has(keys) else None
            case StoreVerb.CHECK:
                found = YES if self._has(keys) else NO
            case StoreVerb.SET:
                found = self._set(keys[0], values[0])
            case StoreVerb.ADD:
                found = self._add(keys[0], values[0])
            case StoreVerb.COMPARE_SET:
                found = self._compare_set(keys[0], *values)
            case StoreVerb.DELETE:
                found = self._delete(keys[0])
            case StoreVerb.COUNT:
                found = str(len(self._values)).encode()
        return found

    def _has(self, keys: Sequence[str]) -> bool:
        return all(key in self._values for key in keys)

    def _all_of(self, keys: Sequence[str]) -> bytes:
        values = [self._values[key] for key in keys]
        if sum(map(len, values)) > MAX_ANSWER_BYTES:
            raise TooLargeError(f"a gang's store answers with {MAX_ANSWER_BYTES} bytes at most")
        return packed_values(values)

    def _set(self, key: str, value: bytes) -> bytes:
        known = self._values.get(key)
        grown = len(value) - len(known) if known is not None else len(value) + len(key.encode())
        if len(self._values) + (known is None) > MAX_KEYS:
            raise TooLargeError(f"a gang's store holds {MAX_KEYS} keys at most")
        if self._size_bytes + grown > MAX_STORE_BYTES:
            raise TooLargeError(f"a gang's store holds {MAX_STORE_BYTES} bytes at most")
        self._values[key] = value
        self._size_bytes += grown
        return YES

    def _add(self, key: str, amount: bytes) -> bytes:
        total = _whole(self._values.get(key, b"0")) + _whole(amount)
        if abs(total) > MAX_SUM:
            raise TooLargeError("a sum in a gang's store is too large")
        self._set(key, str(total).encode())
        return str(total).encode()

    def _compare_set(self, key: str, expected: bytes, desired: bytes) -> bytes:
        known = self._values.get(key, b"")
        if known != expected:
            return known if key in self._values else expected
        self._set(key, desired)
        return desired

    def _delete(self, key: str) -> bytes:
        known = self._values.pop(key, None)
        if known is None:
            return NO
        self._size_bytes -= len(known) + len(key.encode())
        return YES


def _whole(digits: bytes) -> int:
    try:
        return int(digits[:20])
    except ValueError as error:
        raise MalformedError("what is added up in a gang's store is no whole number") from error
