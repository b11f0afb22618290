"""A student that learns in a second: it counts which byte follows which three.

Owns counting, scoring and writing. Interpolated Witten-Bell smoothing (Witten and Bell, IEEE
Transactions on Information Theory 37(4), 1991): p(x|c) = (n(cx) + t(c) p(x|c')) / (n(c) + t(c)),
with t(c) different bytes seen after c, and c' = c without its first byte.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable
from random import Random

ORDER = 3
BYTES = 256


class ByteStudent:
    """What was counted of some texts."""

    def __init__(self, texts: Iterable[bytes], order: int = ORDER) -> None:
        """Count every byte behind every context of up to `order` bytes."""
        self._order = order
        self._after: defaultdict[bytes, Counter[int]] = defaultdict(Counter)
        for text in texts:
            for end in range(len(text)):
                for begin in range(max(0, end - order), end + 1):
                    self._after[text[begin:end]][text[end]] += 1
        self._total = {context: found.total() for context, found in self._after.items()}

    def nats(self, text: bytes) -> float:
        """Return the text's negative log-likelihood."""
        return -math.fsum(
            math.log(self._chance(text[max(0, end - self._order) : end], text[end]))
            for end in range(len(text))
        )

    def write_on(self, beginning: bytes, size_bytes: int, chance: Random) -> bytes:
        """Return so many bytes that may follow a beginning."""
        text = bytearray(beginning)
        for _ in range(size_bytes):
            text.append(self._drawn(bytes(text[-self._order :]), chance))
        return bytes(text[len(beginning) :])

    def _chance(self, context: bytes, following: int) -> float:
        chance = 1 / BYTES
        for begin in range(len(context), -1, -1):
            found = self._after.get(context[begin:])
            if found is None:
                break
            seen = self._total[context[begin:]]
            chance = (found[following] + len(found) * chance) / (seen + len(found))
        return chance

    def _drawn(self, context: bytes, chance: Random) -> int:
        for begin in range(len(context) + 1):
            found = self._after.get(context[begin:])
            if found is None:
                continue
            place = chance.random() * (self._total[context[begin:]] + len(found))
            for following, count in found.items():
                place -= count
                if place < 0:
                    return following
        return chance.randrange(BYTES)
