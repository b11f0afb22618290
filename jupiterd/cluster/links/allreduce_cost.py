"""How long machines that train together take to tell each other what they have learned.

Owns the arithmetic of gradients summed in a ring, and of weight differences exchanged by islands.
Pure. Doesn't know who trains, or where figures about wires come from. Nothing is taken to overlap
with computing: nobody has measured that it does, and islands that train on meanwhile wait less.

    gradients in a ring of N ranks      2(N-1) pieces of P x bytes / N, one after the other
    differences of M islands, in int8   (M-1) x P bytes each way: everybody merges all of them;
                                        in bf16 twice, in fp32 four times as many
    steps between two exchanges         H = ceil(19 x exchange / step), from 15 to 500
    share of the time that is computed  H x step / (H x step + exchange)
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Self

from jupiterd.cluster.values.link_quality import LEAST_RTT_S, USUAL_BITS_PER_S, LinkQuality

FEWEST_INNER_STEPS: Final = 15
"""Four islands of 3.2M parameters end 1.8 % above training together at 30 and a momentum of 0.8,
and 0.8 % at 15 and 0.6. Rounds grow where exchanges take longer than wires do: `sync_interval`."""

MOST_INNER_STEPS: Final = 500
"""Beyond, islands drift apart: 1,000 steps cost 2.9 % against 50 (DiLoCo)."""

STEPS_OF_AN_EXCHANGE: Final = 19
"""So many exchanges' time is computed between two of them: 95 % of all time."""

DIFFERENCE_BYTES: Final = {"int8": 1, "bf16": 2, "fp32": 4}
"""Of one number of a weight difference, by how it is sent."""


@dataclass(frozen=True)
class Wire:
    """What two machines can send each other, both at a time."""

    bytes_per_s: float
    rtt_s: float = LEAST_RTT_S
    is_measured: bool = True
    """Else it is what links of its kind usually carry."""

    @classmethod
    def of(cls, quality: LinkQuality) -> Self:
        """Return the wire as members know it."""
        bits_per_s = quality.bits_per_s or USUAL_BITS_PER_S[quality.kind]
        rtt_s = max(LEAST_RTT_S, quality.rtt_s or 0.0)
        return cls(bits_per_s / 8, rtt_s, quality.bits_per_s is not None)

    def time_s(self, size_bytes: float) -> float:
        """Return how long a message takes."""
        return self.rtt_s + size_bytes / self.bytes_per_s


def all_reduce_s(parameters: int, number_bytes: int, ranks: int, wires: Sequence[Wire]) -> float:
    """Return how long a ring takes to sum its gradients.

    Args:
        parameters: numbers of a gradient.
        number_bytes: of one of them.
        ranks: in the ring; several of one machine are neighbours, and cost no wire.
        wires: those between neighbours of different machines; each piece waits for the slowest.
    """
    if not wires:
        return 0.0
    piece_bytes = parameters * number_bytes / ranks
    return 2 * (ranks - 1) * max(wire.time_s(piece_bytes) for wire in wires)


def cut_exchange_s(sent_bytes: float, messages: int, wires: Sequence[Wire]) -> float:
    """Return how long a step's exchanges take of ranks that each hold a part of the model.

    Args:
        sent_bytes: by the busiest rank.
        messages: that follow one another.
        wires: between the machines; every rank sends to every other one.
    """
    return max((messages * wire.rtt_s + sent_bytes / wire.bytes_per_s for wire in wires), default=0)


def exchange_s(
    parameters: int, islands: int, wires: Sequence[Wire], number_bytes: int = 1
) -> float:
    """Return how long islands take to exchange their differences, over the slowest of the wires.

    Each sends every other one all of its own.

    number_bytes: of one number of a difference
    """
    if not wires:
        return 0.0
    size_bytes = exchanged_bytes(parameters, islands, number_bytes)
    return max(wire.time_s(size_bytes) for wire in wires)


def exchanged_bytes(parameters: int, islands: int, number_bytes: int = 1) -> int:
    """Return how much an island sends, and takes in, each time."""
    return (islands - 1) * parameters * number_bytes


def inner_steps(sync_s: float, step_s: float) -> int:
    """Return after how many steps islands exchange what they have learned."""
    wanted = math.ceil(STEPS_OF_AN_EXCHANGE * sync_s / step_s)
    return min(max(FEWEST_INNER_STEPS, wanted), MOST_INNER_STEPS)


def computed_share(steps: int, step_s: float, sync_s: float) -> float:
    """Return which share of the time is computed, where each `steps` steps end in an exchange."""
    return steps * step_s / (steps * step_s + sync_s)
