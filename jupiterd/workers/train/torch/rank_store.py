"""The gang's store as torch sees it, whose questions go to this node's daemon over the task's link.

Owns torch's interface to it: its process groups call these methods from C++, under the names that
C++ has for them, from any thread. Doesn't know where the store is (`daemon.executor.gang_stores`).
"""

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Final

from torch.distributed import Store  # pyright: ignore[reportPrivateImportUsage]

from jupiterd.errors import MalformedError, TooLargeError
from jupiterd.protocol.frames import StoreVerb, unpacked_values

KEYS_AT_ONCE: Final = 64
"""Keys: of a gang of a thousand ranks they hold two thirds of what an answer may."""

GLOO_ASKS_AT_ONCE: Final = "GLOO_ENABLE_STORE_V2_API"
"""Where this is 1, a rank of gloo asks for the others together: else twice for each of them, which
a store of a hundred ranks feels."""

AskStore = Callable[[str, Sequence[str], Sequence[bytes], float], bytes]
"""Asks the store: verb, keys, values, and for how many seconds what isn't there is waited for."""


class RankStore(Store):
    """One rank's way to its gang's store; no address is looked up, and none is known.

    Whoever hands it to torch keeps it as well: C++ keeps what these methods are called on, and not
    the methods.
    """

    def __init__(self, ask: AskStore, timeout: timedelta) -> None:
        super().__init__()
        self.set_timeout(timeout)
        self._ask_store = ask

    def set(self, key: str, value: str | bytes) -> None:
        """Set a key's value."""
        self._ask(StoreVerb.SET, [key], _bytes(value))

    def get(self, key: str) -> bytes:
        """Return a key's value, once it is there."""
        return self._ask(StoreVerb.GET, [key])

    def add(self, key: str, value: int) -> int:
        """Add to a key's number, and return the sum."""
        return int(self._ask(StoreVerb.ADD, [key], str(value).encode()))

    def compare_set(
        self, key: str, expected_value: str | bytes, desired_value: str | bytes
    ) -> bytes:
        """Replace a key's value where it is as expected; return the one that is there then."""
        values = _bytes(expected_value), _bytes(desired_value)
        return self._ask(StoreVerb.COMPARE_SET, [key], *values)

    def check(self, keys: Sequence[str]) -> bool:
        """Say whether all of the keys are there."""
        return bool(self._ask(StoreVerb.CHECK, keys))

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        """Return once all of the keys are there."""
        self._ask(StoreVerb.WAIT, keys, timeout=timeout)

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        """Return several keys' values, once all are there."""
        found: list[bytes] = []
        for first in range(0, len(keys), KEYS_AT_ONCE):
            some = list(keys[first : first + KEYS_AT_ONCE])
            try:
                found += unpacked_values(self._ask(StoreVerb.GET_ALL, some))
            except (MalformedError, TooLargeError):  # of an older version, or large values
                found += map(self.get, some)
        return found

    def multi_set(self, keys: Sequence[str], values: Sequence[str | bytes]) -> None:
        """Set several keys' values."""
        for key, value in zip(keys, values, strict=True):
            self.set(key, value)

    def has_extended_api(self) -> bool:
        """Say that several can be asked for at once, which gloo does where it is told to."""
        return True

    def delete_key(self, key: str) -> bool:
        """Delete a key; say whether it was there."""
        return bool(self._ask(StoreVerb.DELETE, [key]))

    def num_keys(self) -> int:
        """Return how many keys there are."""
        return int(self._ask(StoreVerb.COUNT, []))

    def clone(self) -> "RankStore":
        """Return a store for another thread: this one serves them all."""
        return self

    deleteKey = delete_key  # noqa: N815 - what C++ calls
    getNumKeys = num_keys  # noqa: N815 - the same

    def _ask(
        self, verb: str, keys: Sequence[str], *values: bytes, timeout: timedelta | None = None
    ) -> bytes:
        usual: timedelta = self.timeout  # pyright: ignore[reportAttributeAccessIssue]
        within = usual if timeout is None else timeout
        return self._ask_store(verb, keys, values, within.total_seconds())


def _bytes(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else bytes(value)
