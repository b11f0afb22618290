"""How good the link between two members is, and what a piece of a gradient takes over it.

Owns that estimate, and the form in which members tell each other. Pure. Doesn't know how anything
is measured (`links`), or what is decided by it (`ring_order`).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from jupiterd.cluster.values.interface_kind import InterfaceKind

PIECE_BITS: Final = 8e6
"""About what ranks send each other at a time: a megabyte."""

USUAL_BITS_PER_S: Final[Mapping[InterfaceKind, float]] = {
    InterfaceKind.THUNDERBOLT: 20e9,
    InterfaceKind.ETHERNET: 1e9,
    InterfaceKind.WIFI: 0.2e9,
    InterfaceKind.VPN: 0.05e9,
    InterfaceKind.CONTAINER: 1e9,
}
"""Where nobody has measured it: jupiterctl check links does."""

LEAST_RTT_S: Final = 0.001
"""Round trips below this are alike: what differs is how busy the machines are."""

MAX_QUALITIES: Final = 32
"""Links that a member tells of; there are as many as members, and heartbeats are short."""


@dataclass(frozen=True)
class LinkQuality:
    """One link as one of its ends sees it."""

    kind: InterfaceKind
    rtt_s: float | None = None
    bits_per_s: float | None = None

    @property
    def cost_s(self) -> float:
        """Return how long a piece takes, in both directions one after the other."""
        bits_per_s = self.bits_per_s or USUAL_BITS_PER_S[self.kind]
        return max(LEAST_RTT_S, self.rtt_s or 0.0) + PIECE_BITS / bits_per_s

    def to_plain(self) -> list[float | None]:
        """Return the kind's number, then round trip and bandwidth where they are known.

        Milliseconds are enough: what is told is told again whenever it has changed.
        """
        rtt_s = None if self.rtt_s is None else max(LEAST_RTT_S, round(self.rtt_s, 3))
        return [int(self.kind), rtt_s, self.bits_per_s]


def read_qualities(document: object) -> dict[str, LinkQuality]:
    """Return what a member tells of its links, by the beginnings of node ids; nothing odd."""
    if not isinstance(document, Mapping):
        return {}
    rows = list(cast("Mapping[str, Any]", document).items())[:MAX_QUALITIES]
    found = {node: _read(row) for node, row in rows}
    return {node: quality for node, quality in found.items() if quality is not None}


def _read(row: object) -> LinkQuality | None:
    match row:
        case [int(kind), rtt_s, bits_per_s]:
            numbered = InterfaceKind.numbered(kind)
            return LinkQuality(numbered, _positive(rtt_s), _positive(bits_per_s))
        case _:
            return None


def _positive(value: object) -> float | None:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    return float(value) if 0.0 < value < math.inf else None
